// SPDX-License-Identifier: Apache-2.0
#include "runtime/trace.h"

#include <gtest/gtest.h>

#include "runtime/plan_graph.h"

namespace millrace {
namespace {

TEST(StepTraceTest, HasTheFirstRunsOfAStepThatGoesOnAndOn) {
  auto graph = std::make_shared<PlanGraph>();
  graph->nodes.resize(1);
  graph->nodes[0].info.name = "again";
  StepTrace trace;
  trace.Watch(graph);
  testing::internal::CaptureStderr();
  for (size_t i = 0; i < StepTrace::kMostRuns + 3; ++i) {
    trace.Record(
        {.node = &graph->nodes[0].info, .start_ticks = TicksNow(), .thread = static_cast<uint32_t>(i + 1)}, {});
  }
  std::vector<StepRecord> records = trace.Take();
  EXPECT_NE(testing::internal::GetCapturedStderr().find("left out: 3"), std::string::npos);
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].runs.size(), StepTrace::kMostRuns);
  EXPECT_EQ(records[0].runs.back().thread, StepTrace::kMostRuns);
  trace.Watch(graph);  // the next step's is whole again
  trace.Record({.node = &graph->nodes[0].info, .start_ticks = TicksNow(), .thread = 1}, {});
  records = trace.Take();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].runs.size(), 1u);
}

}  // namespace
}  // namespace millrace
