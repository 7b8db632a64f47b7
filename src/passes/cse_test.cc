// SPDX-License-Identifier: Apache-2.0
#include "passes/pass_testutil.h"

namespace millrace {
namespace {

using MergeTest = PassTest;

TEST_F(MergeTest, MergesWhatIsEqualAndWhatBecomesEqual) {
  Node* x = Add("Placeholder", "x");
  Node* first = Add("Work", "first", {x->output(0)});
  Node* second = Add("Work", "second", {x->output(0)});
  Node* a = Add("Work", "a", {first->output(0)});
  Node* b = Add("Work", "b", {second->output(0)});
  Node* after = Add("NoOp", "after", {}, {b});
  Node* use = Add("Join", "use", {a->output(0), b->output(0)});
  ASSERT_TRUE(MergeCommonSubexpressions(*graph_).ok());
  EXPECT_EQ(Count(*graph_, "Work"), 2);
  EXPECT_EQ(use->input(0), use->input(1));
  EXPECT_EQ(after->control_inputs(), std::vector<Node*>{use->input(0).node});
}

TEST_F(MergeTest, KeepsWhatDiffers) {
  Node* x = Add("Placeholder", "x");
  Node* y = Add("Placeholder", "y");
  Node* order = Add("NoOp", "order");
  Add("Work", "plain", {x->output(0)});
  Add("Work", "other_attribute", {x->output(0)}, {}, {{"kind", int64_t{1}}});
  Add("Work", "other_input", {y->output(0)});
  Add("Work", "other_order", {x->output(0)}, {order});
  On(1, Add("Work", "other_device", {x->output(0)}));
  Add("Random", "draws", {x->output(0)});
  Add("Random", "draws_again", {x->output(0)});
  const size_t before = graph_->nodes().size();
  ASSERT_TRUE(MergeCommonSubexpressions(*graph_).ok());
  EXPECT_EQ(graph_->nodes().size(), before);
}

}  // namespace
}  // namespace millrace
