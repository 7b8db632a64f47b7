// SPDX-License-Identifier: Apache-2.0
#include "service/step_stats.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"

namespace millrace {
namespace {

class StepStatsTest : public ::testing::Test {
 protected:
  // [start, end) in microseconds, on thread 3.
  NodeTrace& Ran(const std::string& node, int64_t start, int64_t end, std::vector<std::string> inputs = {}) {
    NodeTrace& t = nodes_.emplace_back();
    t.node = node;
    t.op = "Op";
    t.device = "/device:CPU:0";
    t.start_nanos = start * 1000;
    t.end_nanos = end * 1000;
    t.thread = 3;
    t.thread_name = "millrace";
    t.inputs = std::move(inputs);
    return t;
  }
  void Gave(NodeTrace& t, uint64_t buffer, int64_t bytes, bool is_shared = false) {
    t.outputs.push_back(
        {.dtype = DType::kFloat, .shape = Shape(), .bytes = bytes, .buffer = buffer, .is_shared = is_shared});
  }
  void Fill() {
    StepMeasure measure;
    measure.Stop();
    measure.Fill(nodes_, {}, absl::FromUnixSeconds(1000), &stats_);
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

  std::vector<NodeTrace> nodes_;
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
  NodeTrace& recv = Ran("recv", 2, 9);
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
  NodeTrace& t = Ran("a", 0, 100);
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
