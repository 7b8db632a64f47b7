// SPDX-License-Identifier: Apache-2.0
#include "passes/prune.h"

#include "base/stopwatch.h"
#include "passes/pass_testutil.h"

namespace millrace {
namespace {

using PruneTest = PassTest;

TEST_F(PruneTest, AFedPlaceholderIsNoOneToWaitFor) {
  Node* x = Add("Placeholder", "x");
  Node* target = Add("NoOp", "target", {}, {x});
  const auto graph = PruneForRun(*graph_, {{x->output(0)}, {}, {target}});
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ((*graph)->Find("x"), nullptr);
  ASSERT_NE((*graph)->Find("target"), nullptr);
}

TEST_F(PruneTest, WhatIsFedIsNotComputedForWhomeverReadsIt) {
  Node* x = Add("Random", "x", {Add("Placeholder", "in")->output(0)});
  Node* y = Add("Join", "y", {x->output(0), x->output(0)});
  const auto graph = PruneForRun(*graph_, {{x->output(0)}, {y->output(0), x->output(0)}, {}});
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(Count(**graph, "Random"), 0);
  EXPECT_EQ(Count(**graph, "_Arg"), 1);
  EXPECT_EQ(Count(**graph, "_Retval"), 2);
}

// Work beside a variable of device 1, to which nothing but an assignment that is left out leads.
TEST_F(PruneTest, WhatIsLeftOutStillSaysWhereItsNeighboursAre) {
  const auto beside = [](const char* name) {
    return AttrMap{{"_class", std::vector<std::string>{std::string("loc:@") + name}}};
  };
  Node* x = Add("Placeholder", "x");
  Node* v = On(1, Add("Variable", "v"));
  Add("Assign", "assign", {v->output(0), x->output(0)});
  Node* direct = Add("Work", "direct", {x->output(0)}, {}, beside("v"));
  Node* chained = Add("Work", "chained", {x->output(0)}, {}, beside("assign"));
  Node* contrary = On(0, Add("Work", "contrary", {x->output(0)}, {}, beside("v")));
  Node* with_nobody = Add("Work", "with_nobody", {x->output(0)}, {}, beside("gone"));
  const auto graph = PruneForRun(
      *graph_,
      {{x->output(0)}, {direct->output(0), chained->output(0), contrary->output(0), with_nobody->output(0)}, {}});
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ((*graph)->Find("v"), nullptr);
  EXPECT_EQ((*graph)->Find("direct")->device(), v->device());
  EXPECT_EQ((*graph)->Find("chained")->device(), v->device());
  EXPECT_EQ((*graph)->Find("contrary")->device(), contrary->device());
  EXPECT_EQ((*graph)->Find("with_nobody")->device(), "");
}

// A list from a file: a look at all names for each of them would take some twenty seconds.
TEST_F(PruneTest, ManyNeighboursThatAreLeftOutTakeNoLongerThanTheirList) {
  std::vector<std::string> neighbours;
  for (int i = 0; i < 400'000; ++i) {
    neighbours.push_back(absl::StrCat("loc:@", On(1, Add("Placeholder", absl::StrCat("p", i).c_str()))->name()));
  }
  Node* work = Add("Work", "work", {Add("Placeholder", "x")->output(0)}, {}, {{"_class", neighbours}});
  const int64_t start = RealNanos();
  const auto graph = PruneForRun(*graph_, {{work->input(0)}, {work->output(0)}, {}});
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_LT(RealNanos() - start, int64_t{7'000'000'000});
  EXPECT_EQ((*graph)->Find("work")->device(), graph_->Find("p0")->device());
}

TEST_F(PruneTest, RefusesWhatCannotBeFedOrFetched) {
  Node* x = Add("Placeholder", "x");
  Node* v = Add("Variable", "v");
  Node* assign = Add("Assign", "assign", {v->output(0), x->output(0)});
  const auto fails = [&](const RunSignature& signature) {
    return absl::IsInvalidArgument(PruneForRun(*graph_, signature).status());
  };
  EXPECT_TRUE(fails({{x->output(0), x->output(0)}, {}, {}}));
  EXPECT_TRUE(fails({{v->output(0)}, {assign->output(0)}, {}}));
  EXPECT_TRUE(fails({{}, {Output{x, 1}}, {}}));
  EXPECT_TRUE(fails({{}, {Output{}}, {}}));
  EXPECT_TRUE(fails({{}, {}, {nullptr}}));
}

TEST_F(PruneTest, ThroughTheRendezvousValuesGoByTheirNames) {
  Node* x = Add("Placeholder", "x");
  Node* y = Add("Work", "y", {x->output(0)});
  PruneOptions options;
  options.through_rendezvous = true;
  options.client_device = Device(0);
  const auto graph = PruneForRun(*graph_, {{x->output(0)}, {y->output(0)}, {}}, options);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(Count(**graph, "_Arg") + Count(**graph, "_Retval"), 0);
  for (const Node* n : (*graph)->nodes()) {
    const std::string want = n->op_name() == "_Recv" ? "feed:x:0" : n->op_name() == "_Send" ? "fetch:y:0" : "";
    EXPECT_EQ(n->Attr<std::string>("tensor_name").value_or(""), want) << n->name();
  }
  EXPECT_EQ(FeedsNeededBy({x->output(0)}, {y->output(0)}), std::vector<std::vector<bool>>{{true}});
}

}  // namespace
}  // namespace millrace
