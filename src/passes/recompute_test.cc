// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "absl/strings/str_join.h"
#include "graph/verify.h"
#include "passes/pass_testutil.h"

namespace millrace {
namespace {

constexpr int64_t kMany = 1 << 20;  // 4 MB

class RecomputeTest : public PassTest {
 protected:
  Node* Made(const char* op, const std::string& name, std::vector<Output> inputs) {
    Node* n = Add(op, name.c_str(), std::move(inputs));
    n->set_shape(0, PartialShape::Of({kMany}));
    return n;
  }
  // x -> f0 -> f1 -> ... -> loss and backwards g(n-1) .. g0, where g(i) reads g(i+1) and f(i).
  void Chain(int length, const std::string& scope = "gradients/") {
    Node* at = Made("Placeholder", "x", {});
    for (int i = 0; i < length; ++i) forward_.push_back(at = Made("Work", absl::StrCat("f", i), {at->output(0)}));
    at = Made("Work", scope + "seed", {Made("Work", "loss", {at->output(0)})->output(0)});
    for (int i = length - 1; i >= 0; --i) {
      at = Made("Join", absl::StrCat(scope, "g", i), {at->output(0), forward_[static_cast<size_t>(i)]->output(0)});
    }
  }
  std::string Run() {
    std::vector<std::string> notes;
    const Status s = Recompute(*graph_, env_, &notes);
    EXPECT_TRUE(s.ok()) << s;
    EXPECT_TRUE(VerifyGraph(*graph_).ok()) << VerifyGraph(*graph_);
    return absl::StrJoin(notes, "\n");
  }
  Node* Find(absl::string_view name) const { return graph_->Find(name); }
  std::vector<Node*> forward_;
};

TEST_F(RecomputeTest, ABlockIsComputedAgainWhenItsGradientArrives) {
  Chain(4);
  for (const size_t i : {1, 2, 3}) forward_[i]->SetAttr("_recompute_grad", "block");
  Run();
  Node* const f1 = Find("Recomputed/f1");
  Node* const f2 = Find("Recomputed/f2");
  ASSERT_TRUE(f1 != nullptr && f2 != nullptr);
  EXPECT_EQ(Find("Recomputed/f3"), nullptr);  // the block's result is kept
  EXPECT_EQ(f1->input(0).node, forward_[0]);  // and what it reads
  EXPECT_EQ(f2->input(0).node, f1);
  ASSERT_EQ(f1->control_inputs().size(), 1u);
  EXPECT_EQ(
      f1->control_inputs()[0], Find("gradients/g3"));  // what g2, the first that reads one of the block, waits for
  EXPECT_TRUE(f2->control_inputs().empty());
  EXPECT_EQ(Find("gradients/g2")->input(1).node, f2);
  EXPECT_EQ(Find("gradients/g1")->input(1).node, f1);
  EXPECT_EQ(Find("gradients/g3")->input(1).node, forward_[3]);
  EXPECT_EQ(forward_[3]->input(0).node, forward_[2]);  // the forward pass is as it was
  EXPECT_EQ(f1->shape(0), forward_[1]->shape(0));
}

TEST_F(RecomputeTest, BlocksOfTheSquareRootOfAChainLowerThePeak) {
  Chain(64);
  for (size_t i = 0; i < 64; ++i) forward_[i]->SetAttr("_recompute_grad", absl::StrCat("block ", i / 8));
  const std::string note = Run();
  double before = 0, after = 0;
  ASSERT_EQ(std::sscanf(note.c_str(), "56 nodes are computed again for gradients: peak of values %lf MB, then %lf MB",
                        &before, &after),
            2)
      << note;
  EXPECT_GT(before, 64 * 4.1);
  EXPECT_LT(after, 20 * 4.2);
}

TEST_F(RecomputeTest, HintsAreObeyedWhenTheOptionsSaySo) {
  Chain(3);
  forward_[1]->SetAttr("_recompute_hint", true);
  EXPECT_EQ(Run(), "");
  EXPECT_EQ(Find("Recomputed/f1"), nullptr);
  env_.memory.by_hand = true;
  Run();
  EXPECT_NE(Find("Recomputed/f1"), nullptr);
}

TEST_F(RecomputeTest, TheScopeOfGradientsMayBeAnotherAndInsideOfOthers) {
  env_.memory.gradients = "backward/";
  Chain(3, "tower/backward_2/");
  env_.memory.by_hand = true;
  forward_[1]->SetAttr("_recompute_hint", true);
  Run();
  ASSERT_NE(Find("Recomputed/f1"), nullptr);
  EXPECT_EQ(Find("tower/backward_2/g1")->input(1).node, Find("Recomputed/f1"));
}

TEST_F(RecomputeTest, NamesThatOnlyLookLikeTheScopeAreNotIt) {
  Chain(3, "my_gradients/");
  env_.memory.by_hand = true;
  forward_[1]->SetAttr("_recompute_hint", true);
  Run();
  EXPECT_EQ(Find("Recomputed/f1"), nullptr);
}

TEST_F(RecomputeTest, WhatIsRandomIsKept) {
  Node* x = Made("Placeholder", "x", {});
  Node* noise = Made("Random", "noise", {x->output(0)});
  Node* f = Made("Work", "f", {noise->output(0)});
  Node* seed = Made("Work", "gradients/seed", {Made("Work", "loss", {f->output(0)})->output(0)});
  Made("Join", "gradients/g", {seed->output(0), f->output(0)});
  Made("Join", "gradients/h", {seed->output(0), noise->output(0)});
  env_.memory.by_hand = true;
  for (Node* n : {noise, f}) n->SetAttr("_recompute_hint", true);
  Run();
  EXPECT_EQ(Find("Recomputed/noise"), nullptr);
  EXPECT_EQ(Find("Recomputed/f")->input(0).node, noise);
  EXPECT_EQ(Find("gradients/h")->input(1).node, noise);
}

// a = f(x), b = f(a), c = f(b): where gradients read a anyway, b and c cost memory for little time.
TEST_F(RecomputeTest, ByCostCheapNodesOfKeptValuesAreComputedAgain) {
  Node* x = Made("Placeholder", "x", {});
  Node* a = Made("Random", "a", {x->output(0)});
  Node* b = Made("Work", "b", {a->output(0)});
  Node* c = Made("Work", "c", {b->output(0)});
  Node* seed = Made("Work", "gradients/seed", {Made("Work", "loss", {c->output(0)})->output(0)});
  Node* gc = Made("Join", "gradients/c", {seed->output(0), c->output(0)});
  Node* gb = Made("Join", "gradients/b", {gc->output(0), b->output(0)});
  Made("Join", "gradients/a", {gb->output(0), a->output(0)});
  EXPECT_EQ(Run(), "");
  env_.memory.recompute_by_cost = true;
  Run();
  ASSERT_NE(Find("Recomputed/b"), nullptr);
  EXPECT_EQ(gc->input(1).node, Find("Recomputed/c"));
  EXPECT_EQ(gb->input(1).node, Find("Recomputed/b"));
  EXPECT_EQ(Find("Recomputed/a"), nullptr);
}

}  // namespace
}  // namespace millrace
