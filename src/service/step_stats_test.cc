// SPDX-License-Identifier: Apache-2.0
#include "service/step_stats.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>

#include "absl/strings/match.h"
#include "wire/step_stats.h"

namespace millrace {
namespace {

class StepStatsTest : public ::testing::Test {
 protected:
  struct Told {
    std::string node, device = "/device:CPU:0";
    std::vector<std::string> inputs;  // "^node" for an order alone
    int64_t edge = -1;
    StepRecord::Run run;
    std::vector<StepRecord::Output> outputs;
    std::vector<HelpPart> parts;
    bool is_asynchronous = false;
  };
  // [start, end) in microseconds, on thread 3.
  Told& Ran(const std::string& node, int64_t start, int64_t end, std::vector<std::string> inputs = {}) {
    Told& t = told_.emplace_back();
    t.node = node;
    t.inputs = std::move(inputs);
    t.run = {.start_nanos = start * 1000, .end_nanos = end * 1000, .thread = 3};
    return t;
  }
  void Gave(Told& t, uint64_t buffer, int64_t bytes, bool is_shared = false) {
    t.outputs.push_back(
        {.dtype = DType::kFloat, .shape = Shape(), .bytes = bytes, .buffer = buffer, .is_shared = is_shared});
  }
  // A plan for each device, its nodes in the order in which they are named.
  void Fill() {
    StepRecord record;
    record.threads = {{3, "millrace"}};
    std::map<std::string, TracedPlan> plans;
    for (const Told& t : told_) NodeOf(plans[t.device], t.node);
    for (const Told& t : told_) {
      TracedPlan& plan = plans[t.device];
      plan.device = t.device;
      StepRecord::Run run = t.run;
      run.node = NodeOf(plan, t.node);
      run.plan = static_cast<int32_t>(std::distance(plans.begin(), plans.find(t.device)));
      run.is_asynchronous = t.is_asynchronous;
      TracedPlan::Node node = {.name = t.node, .op = "Op", .edge = t.edge};
      for (const std::string& input : t.inputs) {
        const bool is_control = input.front() == '^';
        (is_control ? node.controls : node.inputs).push_back(NodeOf(plan, input.substr(is_control ? 1 : 0)));
      }
      plan.nodes[static_cast<size_t>(run.node)] = node;
      record.outputs.insert(record.outputs.end(), t.outputs.begin(), t.outputs.end());
      record.parts.insert(record.parts.end(), t.parts.begin(), t.parts.end());
      run.outputs_end = static_cast<uint32_t>(record.outputs.size());
      run.parts_end = static_cast<uint32_t>(record.parts.size());
      record.runs.push_back(run);
    }
    for (auto& [device, plan] : plans) {
      ASSERT_TRUE(plan.MakeLabels().ok());
      record.plans.push_back(std::make_shared<const TracedPlan>(plan));
    }
    StepMeasure measure;
    measure.Stop(absl::FromUnixSeconds(1000));
    wire::RunMetadata metadata;
    ASSERT_TRUE(wire::Decode(measure.Write({record}, {}), &metadata).ok());
    if (metadata.step_stats) stats_ = *metadata.step_stats;
  }
  static int32_t NodeOf(TracedPlan& plan, const std::string& name) {
    for (size_t i = 0; i < plan.nodes.size(); ++i) {
      if (plan.nodes[i].name == name) return static_cast<int32_t>(i);
    }
    plan.nodes.push_back({.name = name});
    return static_cast<int32_t>(plan.nodes.size()) - 1;
  }
  const wire::NodeExecStats* Find(const std::string& node, const std::string& device = "/device:CPU:0") {
    for (const wire::DeviceStepStats& d : stats_.dev_stats) {
      if (d.device != device) continue;
      for (const wire::NodeExecStats& n : d.node_stats) {
        if (n.node_name == node) return &n;
      }
    }
    ADD_FAILURE() << "no entry of " << node << " on " << device;
    static const wire::NodeExecStats none;
    return &none;
  }
  static int64_t Fresh(const wire::NodeExecStats& n) { return n.memory.empty() ? 0 : n.memory[0].total_bytes; }

  std::deque<Told> told_;
  wire::StepStats stats_;
};

TEST_F(StepStatsTest, ANodeIsScheduledWhenTheLastOfWhatItWaitsForHasEnded) {
  Ran("a", 10, 20);
  Ran("b", 12, 30);
  Ran("c", 45, 50, {"a", "^b"});
  Fill();
  const wire::NodeExecStats& a = *Find("a");
  const wire::NodeExecStats& c = *Find("c");
  EXPECT_EQ(c.all_start_nanos - a.all_start_nanos, 35000);
  EXPECT_EQ(c.scheduled_nanos - a.all_start_nanos, 20000) << "when b ended";
  EXPECT_EQ(a.scheduled_nanos, a.all_start_nanos) << "it waits for nothing: when the first began";
  EXPECT_EQ(c.all_end_rel_nanos, 5000);
  EXPECT_EQ(c.timeline_label, "c = Op(a, ^b)");
  EXPECT_EQ(stats_.dev_stats[0].thread_names.at(3), "millrace 3");
  EXPECT_EQ(stats_.dev_stats[0].node_stats.front().node_name, "_SOURCE");
}

TEST_F(StepStatsTest, InALoopTheRunBeforeCounts) {
  Ran("a", 0, 10);
  Ran("b", 11, 20, {"a"});
  Ran("a", 21, 30);
  Ran("b", 31, 40, {"a"});
  Fill();
  std::vector<int64_t> waited;
  for (const wire::NodeExecStats& n : stats_.dev_stats[0].node_stats) {
    if (n.node_name == "b") waited.push_back(n.all_start_nanos - n.scheduled_nanos);
  }
  EXPECT_EQ(waited, (std::vector<int64_t>{1000, 1000}));
}

TEST_F(StepStatsTest, ARecvWaitsForItsSend) {
  Ran("send", 0, 5).edge = 7;
  Told& recv = Ran("recv", 2, 9);
  recv.edge = 7;
  recv.is_asynchronous = true;
  recv.device = "/device:CPU:1";
  Ran("other", 0, 1).edge = 8;
  Fill();
  EXPECT_EQ(Find("recv", "/device:CPU:1")->timeline_label, "recv = Op(send)");
  EXPECT_EQ(Find("recv", "/device:CPU:1")->op_end_rel_nanos, 0) << "its thread was free at once";
}

TEST_F(StepStatsTest, BytesCountWhereTheyAreNew) {
  Gave(Ran("a", 0, 10), 100, 4096);
  Gave(Ran("in_place", 10, 20, {"a"}), 100, 4096);
  Gave(Ran("anew", 20, 30, {"in_place"}), 200, 512);
  Gave(Ran("variable", 30, 40), 300, 64, /*is_shared=*/true);
  Fill();
  EXPECT_EQ(Fresh(*Find("a")), 4096);
  EXPECT_EQ(Fresh(*Find("in_place")), 0);
  EXPECT_EQ(Fresh(*Find("anew")), 512);
  EXPECT_EQ(Fresh(*Find("variable")), 0);
  EXPECT_EQ(Find("variable")->output.size(), 1u) << "told all the same";
}

TEST_F(StepStatsTest, PartsOfOtherThreadsStandByThemselves) {
  Told& t = Ran("a", 0, 100);
  t.parts = {{.thread = 5, .asked_nanos = 10000, .start_nanos = 20000, .end_nanos = 60000}};
  Fill();
  EXPECT_TRUE(absl::StrContains(Find("a")->timeline_label, "[helpers 40 us]"));
  const wire::NodeExecStats& part = *Find("a (part)", "/device:CPU:0 pool threads");
  EXPECT_EQ(part.thread_id, 5u);
  EXPECT_EQ(part.all_start_nanos - part.scheduled_nanos, 10000);
  EXPECT_EQ(part.all_end_rel_nanos, 40000);
}

TEST_F(StepStatsTest, AStepThatRanNothingTellsNothing) {
  Fill();
  EXPECT_TRUE(stats_.dev_stats.empty());
}

}  // namespace
}  // namespace millrace
