// SPDX-License-Identifier: Apache-2.0
#include "service/placement_periods.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

TEST(PlacementPeriods, MeasuresBeforeItPlacesAndDoublesItsPeriods) {
  PlacementPeriods periods(5);
  std::vector<int> placed, measured;
  for (int step = 0; step < 50; ++step) {
    const PlacementPeriods::Turn turn = periods.Next();
    if (turn == PlacementPeriods::Turn::kPlace) placed.push_back(step);
    if (turn == PlacementPeriods::Turn::kMeasure) measured.push_back(step);
  }
  EXPECT_EQ(placed, (std::vector<int>{5, 10, 20, 40}));
  EXPECT_EQ(measured, (std::vector<int>{2, 3, 4, 7, 8, 9, 17, 18, 19, 37, 38, 39}));
}

TEST(PlacementPeriods, NeverWithoutAPeriod) {
  PlacementPeriods periods(0);
  for (int step = 0; step < 20; ++step) EXPECT_EQ(periods.Next(), PlacementPeriods::Turn::kNone);
}

TEST(PlacementPeriods, CostsAreKeptByNodeAndTypeOfDevice) {
  PlacementState state;
  const char device[] = "/job:localhost/replica:0/task:0/device:CPU:1";
  const auto step = [&](std::vector<std::pair<const char*, int64_t>> nodes) {
    TracedPlan plan;
    plan.device = device;
    StepRecord record;
    for (const auto& [name, nanos] : nodes) {
      record.outputs.push_back({DType::kFloat, Shape(), 40});
      record.runs.push_back(
          {.node = static_cast<int32_t>(plan.nodes.size()),
           .start_nanos = 100,
           .end_nanos = 100 + nanos,
           .outputs_end = static_cast<uint32_t>(record.outputs.size())});
      plan.nodes.push_back({.name = name, .op = "Work"});
    }
    record.plans = {std::make_shared<const TracedPlan>(plan)};
    return std::vector<StepRecord>{record};
  };
  KeepCosts(step({{"a", 1000}, {"_recv_1", 5}}), state);
  KeepCosts(step({{"a", 2000}}), state);
  const auto cost = state.FindCost("a", "CPU");
  ASSERT_TRUE(cost.has_value());
  EXPECT_EQ(cost->nanos, 1500);
  EXPECT_EQ(cost->output_bytes, std::vector<int64_t>{40});
  EXPECT_FALSE(state.FindCost("_recv_1", "CPU").has_value());
  EXPECT_FALSE(state.FindCost("a", "ACC").has_value());
}

}  // namespace
}  // namespace millrace
