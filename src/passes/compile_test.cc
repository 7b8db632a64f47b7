// SPDX-License-Identifier: Apache-2.0
#include "passes/compile.h"

#include "passes/pass_testutil.h"

namespace millrace {
namespace {

class CompileTest : public PassTest {
 protected:
  StatusOr<std::vector<Partition>> Compile(const RunSignature& signature, CompileReport* report = nullptr) {
    return CompileGraph(
        [&](absl::FunctionRef<Status(const Graph&)> use) {
          ++lent_;
          return use(*graph_);
        },
        signature, options_, env_, report);
  }
  static const StageReport* Find(const CompileReport& report, absl::string_view name) {
    const auto it = std::find_if(
        report.stages.begin(), report.stages.end(), [name](const StageReport& s) { return s.name == name; });
    return it == report.stages.end() ? nullptr : &*it;
  }

  PruneOptions options_;
  int lent_ = 0;
};

TEST_F(CompileTest, PrunesWhatTheSignatureDoesNotNeed) {
  Node* x = Add("Placeholder", "x");
  Node* y = Add("Work", "y", {x->output(0)});
  Node* z = Add("Random", "z", {y->output(0)});
  Add("Random", "unneeded", {y->output(0)});
  const auto parts = Compile({{y->output(0)}, {z->output(0)}, {}});
  ASSERT_TRUE(parts.ok()) << parts.status();
  ASSERT_EQ(parts->size(), 1u);
  const Graph& g = *parts->front().graph;
  EXPECT_EQ(Count(g, "_Arg"), 1);
  EXPECT_EQ(Count(g, "_Retval"), 1);
  EXPECT_EQ(Count(g, "Random"), 1);
  EXPECT_EQ(g.Find("y"), nullptr);
  EXPECT_EQ(g.Find("unneeded"), nullptr);
  EXPECT_EQ(graph_->nodes().size(), 4u);  // the client's graph is as it was
  EXPECT_EQ(lent_, 1);
}

TEST_F(CompileTest, TellsWhatEachStageDidAndLeavesOutWhatIsSwitchedOff) {
  Node* x = Add("Placeholder", "x");
  Node* a = Add("Work", "a", {x->output(0)});
  Node* b = Add("Work", "b", {x->output(0)});
  Node* c = On(1, Add("Join", "c", {a->output(0), b->output(0)}));
  const RunSignature signature{{x->output(0)}, {c->output(0)}, {}};
  CompileReport with, without;
  const auto merged = Compile(signature, &with);
  ASSERT_TRUE(merged.ok()) << merged.status();
  for (const char* name : {"merge_before_folding", "merge_common_subexpressions"}) {
    EXPECT_TRUE(CheckOptionalStage(name).ok());
    env_.switched_off.insert(name);
  }
  const auto apart = Compile(signature, &without);
  ASSERT_TRUE(apart.ok()) << apart.status();
  ASSERT_EQ(merged->size(), 2u);
  EXPECT_EQ(Count(*merged->at(0).graph, "Work"), 1);
  EXPECT_EQ(Count(*apart->at(0).graph, "Work"), 2);
  EXPECT_TRUE(Find(with, "merge_before_folding")->ran);
  EXPECT_FALSE(Find(without, "merge_before_folding")->ran);
  EXPECT_LT(Find(with, "place")->nodes, Find(without, "place")->nodes);
  EXPECT_EQ(with.stages.front().name, "prune");
  const std::string text = ReportText(without, *apart);
  for (const char* part : {"merge_before_folding", " off ", "partition on", "CPU:1", "c (Join) is on"}) {
    EXPECT_NE(text.find(part), text.npos) << part << " in\n" << text;
  }
  const std::string json = ReportJson(with, *merged);
  for (const char* part : {R"({"stages": [{"name": "prune", "ran": true, "microseconds": )", R"("nodes_after": )",
                           R"({"node": "c", "op": "Join", "device": ")", R"("refusal": null)"}) {
    EXPECT_NE(json.find(part), json.npos) << part << " in\n" << json;
  }
}

TEST_F(CompileTest, StagesThatWorkersFinishAreSwitchedOffToo) {
  Node* x = Add("Placeholder", "x");
  const RunSignature signature{{}, {x->output(0)}, {}};
  const auto cut = Compile(signature);
  ASSERT_TRUE(cut.ok()) << cut.status();
  EXPECT_TRUE(cut->at(0).in_segments && cut->at(0).updates_early);
  for (const char* stage : {kCutStage, kOrderUpdatesStage}) {
    ASSERT_TRUE(CheckOptionalStage(stage).ok());
    env_.switched_off.insert(stage);
  }
  CompileReport report;
  const auto whole = Compile(signature, &report);
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_FALSE(whole->at(0).in_segments || whole->at(0).updates_early);
  EXPECT_FALSE(Find(report, kCutStage)->ran || Find(report, kOrderUpdatesStage)->ran);
}

TEST_F(CompileTest, OnlyStagesThatKeepTheMeaningMayBeSwitchedOff) {
  for (const char* name : {"prune", "place", "partition", "", "no such stage"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(CheckOptionalStage(name))) << name;
  }
}

TEST_F(CompileTest, EndsWhenItMayNotGoOn) {
  Node* x = Add("Placeholder", "x");
  int asked = 0;
  options_.calls.keep_going = [&] { return ++asked > 3 ? Cancelled("enough") : absl::OkStatus(); };
  const auto parts = Compile({{}, {x->output(0)}, {}});
  EXPECT_TRUE(absl::IsCancelled(parts.status())) << parts.status();
  EXPECT_EQ(asked, 4);
}

}  // namespace
}  // namespace millrace
