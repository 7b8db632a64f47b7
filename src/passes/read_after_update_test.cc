// SPDX-License-Identifier: Apache-2.0
// Who reads a variable's new value, and who its old one.
#include "passes/pass_testutil.h"
#include "passes/prune.h"

namespace millrace {
namespace {

class ReadAfterUpdateTest : public PassTest {
 protected:
  ReadAfterUpdateTest() {
    v_ = Add("Variable", "v");
    read_ = Add("Identity", "v/read", {v_->output(0)}, {}, {{"T", DType::kFloat}});
    value_ = Add("Placeholder", "value");
  }
  Node* Update() { return Add("Assign", "update", {v_->output(0), value_->output(0)}); }
  // Where the value that `n` takes as its input was read: the node that holds the reference.
  bool ReadsAnew(const Node& n) const {
    const Node* from = n.input(0).node;
    return from != read_;
  }
  void Pass() {
    const Status s = ReadAfterUpdates(*graph_);
    ASSERT_TRUE(s.ok()) << s;
  }

  const AttrMap fetch_of_variable_ = {{"T", DType::kFloat}, {"index", int64_t{0}}, {kFetchesVariable, true}};
  Node *v_, *read_, *value_;
};

TEST_F(ReadAfterUpdateTest, WhoIsOrderedBehindAnUpdateSeesIt) {
  Node* const update = Update();
  Node* const before = Add("Work", "before", {read_->output(0)});
  Node* const behind = Add("Work", "behind", {read_->output(0)}, {update});
  Pass();
  EXPECT_EQ(before->input(0).node, read_);
  ASSERT_TRUE(ReadsAnew(*behind));
  // From the variable itself: it reads when it runs, or by a read that waits for the update.
  const Node* const from = behind->input(0).node;
  if (from != v_) {
    EXPECT_EQ(from->input(0).node, v_);
    EXPECT_EQ(from->control_inputs(), std::vector<Node*>{update});
  }
}

TEST_F(ReadAfterUpdateTest, AFetchIsOfTheVariableAtTheEnd) {
  Update();
  Node* const before = Add("Work", "before", {read_->output(0)});
  Node* const fetch = Add("_Retval", "fetch", {read_->output(0)}, {}, fetch_of_variable_);
  Node* const sum = Add("_Retval", "sum", {read_->output(0)}, {}, {{"T", DType::kFloat}, {"index", int64_t{1}}});
  Pass();
  EXPECT_EQ(before->input(0).node, read_);
  EXPECT_EQ(fetch->input(0).node, v_);
  EXPECT_EQ(sum->input(0).node, read_);  // what was v + 0
}

TEST_F(ReadAfterUpdateTest, WithoutAnUpdateAFetchIsOfWhatWasRead) {
  Node* const fetch = Add("_Retval", "fetch", {read_->output(0)}, {}, fetch_of_variable_);
  Pass();
  EXPECT_EQ(fetch->input(0).node, read_);
}

TEST_F(ReadAfterUpdateTest, SoDoesWhoIsBehindByWayOfOthers) {
  Node* const update = Update();
  Node* const group = Add("NoOp", "group", {}, {update});
  Node* const later = Add("Work", "later", {value_->output(0)}, {group});
  Node* const behind = Add("Join", "behind", {read_->output(0), later->output(0)});
  Pass();
  EXPECT_TRUE(ReadsAnew(*behind));
}

TEST_F(ReadAfterUpdateTest, WhoTakesTheUpdatesOwnResultNeedsNothing) {
  Node* const update = Update();
  Node* const beside = Add("Work", "beside", {read_->output(0)});
  Node* const result = Add("Identity", "result", {update->output(0)}, {}, {{"T", DType::kFloat}});
  const size_t nodes = graph_->nodes().size();
  Pass();
  EXPECT_EQ(beside->input(0).node, read_);
  EXPECT_EQ(result->input(0).node, update);
  EXPECT_EQ(graph_->nodes().size(), nodes);
}

TEST_F(ReadAfterUpdateTest, AnotherVariablesUpdateIsNoReason) {
  Node* const other = Add("Variable", "other");
  Node* const update = Add("Assign", "update", {other->output(0), value_->output(0)});
  Node* const behind = Add("Work", "behind", {read_->output(0)}, {update});
  Pass();
  EXPECT_EQ(behind->input(0).node, read_);
}

TEST_F(ReadAfterUpdateTest, AReadThatWaitsIsLeftAlone) {
  Node* const update = Update();
  Node* const ordered = Add("Identity", "ordered", {v_->output(0)}, {update}, {{"T", DType::kFloat}});
  Node* const behind = Add("Work", "behind", {ordered->output(0)}, {update});
  Pass();
  EXPECT_EQ(behind->input(0).node, ordered);
}

}  // namespace
}  // namespace millrace
