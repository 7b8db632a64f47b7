// SPDX-License-Identifier: Apache-2.0
#include "passes/cost_model.h"

#include "passes/pass_testutil.h"
#include "passes/placement_state.h"

namespace millrace {
namespace {

OpCost TenTimes(const CostContext& node) { return {10 * node.MostElements(), node.Bytes()}; }

class CostModelTest : public PassTest {
 protected:
  CostModelTest() {
    registry_.Add("View(x:f32) -> (y:f32)").Shape([](ShapeContext&) { return absl::OkStatus(); });
    registry_.Add("Shape(x:f32) -> (y:i32)").Shape([](ShapeContext&) { return absl::OkStatus(); });
    registry_.Add("Dear(x:f32) -> (y:f32)").Shape([](ShapeContext&) { return absl::OkStatus(); });
    EXPECT_TRUE(registry_.status().ok()) << registry_.status();
    const auto others = env_.cost_of;
    env_.cost_of = [others](const Node& n, const std::string& type) -> CostFunction {
      if (n.op_name() == "View" || n.op_name() == "Shape") return &NoCost;
      if (n.op_name() == "Dear") return &TenTimes;
      return others(n, type);
    };
    x_ = Sized(Add("Placeholder", "x"), 1000);
  }
  Node* Sized(Node* n, int64_t elements) {
    n->set_shape(0, PartialShape::Of({elements}));
    return n;
  }
  Node* Of(const char* op, const char* name, int64_t elements = 1000) {
    return Sized(Add(op, name, {x_->output(0)}), elements);
  }

  Node* x_;
  CostModel model_{env_};
};

TEST_F(CostModelTest, WhatPassesItsInputOnSharesIt) {
  Node* const same = Add("Identity", "same", {x_->output(0)}, {}, {{"T", DType::kFloat}});
  EXPECT_TRUE(model_.SharesItsInput(*Sized(same, 1000)));
  EXPECT_TRUE(model_.SharesItsInput(*Of("View", "view")));
  EXPECT_FALSE(model_.SharesItsInput(*Of("View", "part", 10))) << "not all of its elements";
  EXPECT_FALSE(model_.SharesItsInput(*Of("Shape", "shape", 1))) << "of another type";
  EXPECT_FALSE(model_.SharesItsInput(*Of("Work", "work")));
  EXPECT_FALSE(model_.SharesItsInput(*x_)) << "it has no input";
  Node* const unknown = Of("View", "unknown");
  unknown->set_shape(0, PartialShape());
  EXPECT_TRUE(model_.SharesItsInput(*unknown)) << "the elements are taken to be the same";
}

TEST_F(CostModelTest, WhoReadsShapesAloneLooksAtNoValues) {
  EXPECT_FALSE(model_.LooksAtValues(*Of("Shape", "shape", 1)));
  EXPECT_TRUE(model_.LooksAtValues(*Of("View", "view"))) << "whoever reads it reads the input";
  EXPECT_TRUE(model_.LooksAtValues(*Of("Work", "work")));
  Node* const result = Add("_Retval", "result", {x_->output(0)}, {}, {{"T", DType::kFloat}, {"index", int64_t{0}}});
  EXPECT_TRUE(model_.LooksAtValues(*result));
}

TEST_F(CostModelTest, KernelsSayWhatTheyWorkAndOthersAnOperationAnElement) {
  EXPECT_EQ(model_.Estimate(*Of("Work", "work"), 0).operations, 1000);
  EXPECT_EQ(model_.Estimate(*Of("Dear", "dear"), 0).operations, 10000);
  EXPECT_EQ(model_.Estimate(*Of("View", "view"), 0).operations, 0);
  env_.cost_of = nullptr;
  EXPECT_EQ(model_.Estimate(*Of("Dear", "dear2"), 0).operations, 1000) << "nobody is there to ask";
}

TEST_F(CostModelTest, WhatWasMeasuredGoesBeforeTheEstimate) {
  Node* const work = Of("Work", "work");
  const double estimated = model_.Nanos(*work, 0);
  EXPECT_GT(estimated, 0);
  EXPECT_EQ(model_.Nanos(*Of("View", "view"), 0), 0) << "what works nothing begins for nothing";
  env_.placement = std::make_shared<PlacementState>();
  EXPECT_EQ(model_.Nanos(*work, 0), estimated);
  env_.placement->AddCost("work", "CPU", {123456, {4000}});
  EXPECT_EQ(model_.Nanos(*work, 0), 123456);
  work->set_shape(0, PartialShape());
  EXPECT_EQ(model_.Bytes(work->output(0)), 4000) << "of a shape that is not known";
}

TEST_F(CostModelTest, ValuesTravelByHandByBusOrByNetwork) {
  env_.devices.push_back(*DeviceName::Parse("/job:localhost/replica:0/task:0/device:ACC:0"));
  env_.devices.push_back(*DeviceName::Parse("/job:localhost/replica:0/task:1/device:CPU:0"));
  env_.own_memory = {false, false, true, false};
  const double large = 64 << 20;
  EXPECT_EQ(model_.TransferNanos(large, 1, 1), 0);
  EXPECT_EQ(model_.TransferNanos(large, 0, 1), model_.TransferNanos(1, 0, 1)) << "within a process nothing is copied";
  EXPECT_GT(model_.TransferNanos(large, 0, 2), 100 * model_.TransferNanos(large, 0, 1));
  EXPECT_GT(model_.TransferNanos(large, 0, 3), model_.TransferNanos(large, 0, 2));
  EXPECT_GT(model_.TransferNanos(large, 2, 3), model_.TransferNanos(large, 0, 3)) << "over both";
}

}  // namespace
}  // namespace millrace
