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
  const auto node = [&](const char* name, int64_t nanos) {
    return NodeTrace{
        .node = name,
        .op = "Work",
        .device = device,
        .start_nanos = 100,
        .end_nanos = 100 + nanos,
        .thread = 0,
        .outputs = {{DType::kFloat, Shape(), 40}}};
  };
  KeepCosts({node("a", 1000), node("_recv_1", 5)}, state);
  KeepCosts({node("a", 2000)}, state);
  const auto cost = state.FindCost("a", "CPU");
  ASSERT_TRUE(cost.has_value());
  EXPECT_EQ(cost->nanos, 1500);
  EXPECT_EQ(cost->output_bytes, std::vector<int64_t>{40});
  EXPECT_FALSE(state.FindCost("_recv_1", "CPU").has_value());
  EXPECT_FALSE(state.FindCost("a", "ACC").has_value());
}

}  // namespace
}  // namespace millrace
