// SPDX-License-Identifier: Apache-2.0
#include "op/shape_context.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "op/shape_testutil.h"

namespace millrace {
namespace {

Status AsShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(PartialShape s, c.InputAsShape(0));
  c.set_output(0, s);
  return absl::OkStatus();
}
Status Axis(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(PartialShape in, c.WithRankAtLeast(0, 2));
  MR_ASSIGN_OR_RETURN(auto axis, c.ConstantInt(1));
  if (!axis || !in.has_rank()) return absl::OkStatus();
  MR_ASSIGN_OR_RETURN(int at, c.Axis(*axis, in.rank()));
  c.set_output(0, PartialShape::Of({in.dim(at)}));
  return absl::OkStatus();
}

const OpRegistry& Ops() {
  static const OpRegistry* registry = [] {
    auto* r = new OpRegistry;
    r->Add("Bin(x:T, y:T) -> (z:T) | T in FC").Shape(BroadcastShape);
    r->Add("Same(x:N*T) -> (z:T) | N:int>=1; T:type").Shape(MergedShape);
    r->Add("Fill(dims:i32) -> (z:f32)").Shape(AsShape);
    r->Add("Dim(x:f32, axis:i32) -> (z:f32)").Shape(Axis);
    r->Add("Two(x:f32) -> (a:f32, b:f32)").Shape(UnchangedShape);
    r->Add("Open(x:f32) -> (a:f32)");
    return r;
  }();
  return *registry;
}

TEST(ShapeTest, Broadcasts) {
  ShapeCase c(Ops(), "Bin");
  EXPECT_EQ(c.Run("[2,3];[3]"), "[2,3]");
  EXPECT_EQ(c.Run("[];[4]"), "[4]");
  EXPECT_EQ(c.Run("[2,?];[1,5]"), "[2,5]");
  EXPECT_EQ(c.Run("[?];[1]"), "[?]");
  EXPECT_EQ(c.Run("[?];[7]"), "[7]");
  EXPECT_EQ(c.Run("[0,1];[1,3]"), "[0,3]");
  EXPECT_EQ(c.Run("?;[2]"), "?");
  EXPECT_TRUE(absl::StartsWith(c.Run("[2];[3]"), "error: Dimensions must be equal"));
  EXPECT_TRUE(absl::StartsWith(c.Run("[4294967296,1];[1,4294967296]"), "error:"));
  EXPECT_TRUE(absl::StartsWith(c.Run("[2]"), "error: Bin takes 2 inputs"));
}

TEST(ShapeTest, Merges) {
  ShapeCase c(Ops(), "Same");
  EXPECT_EQ(c.Run("[2,?];?;[?,3]"), "[2,3]");
  EXPECT_TRUE(absl::StartsWith(c.Run("[2];[3]"), "error:"));
  EXPECT_EQ(ShapeCase(Ops(), "Two").Run("[5]"), "[5];[5]");
  EXPECT_EQ(ShapeCase(Ops(), "Open").Run("[5]"), "?");
}

TEST(ShapeTest, ReadsValuesAsShapes) {
  ShapeCase c(Ops(), "Fill");
  EXPECT_EQ(c.Run("[2]"), "[?,?]");
  EXPECT_EQ(c.Run("?"), "?");
  EXPECT_EQ(c.Run("[?]"), "?");
  EXPECT_TRUE(absl::StartsWith(c.Run("[2,2]"), "error:"));
  EXPECT_TRUE(absl::StartsWith(c.Run("[2147483647]"), "error:"));
  EXPECT_EQ(c.Constant(0, Tensor::Vector<int32_t>({3, -1})).Run(""), "[3,?]");
  EXPECT_TRUE(absl::StartsWith(c.Constant(0, Tensor::Vector<int32_t>({-2})).Run(""), "error:"));
  EXPECT_TRUE(absl::StartsWith(c.Constant(0, Tensor::Vector<int64_t>({1ll << 40, 1ll << 40})).Run(""), "error:"));
}

TEST(ShapeTest, ChecksRanksAndAxes) {
  ShapeCase c(Ops(), "Dim");
  c.Constant(1, Tensor::Scalar<int32_t>(-1));
  EXPECT_EQ(c.Run("[2,3]"), "[3]");
  EXPECT_EQ(c.Run("?"), "?");
  EXPECT_TRUE(absl::StrContains(c.Run("[2]"), "Shape must be at least rank 2 but is rank 1"));
  c.Constant(1, Tensor::Scalar<int32_t>(2));
  EXPECT_TRUE(absl::StrContains(c.Run("[2,3]"), "axis 2 is out of range [-2, 2)"));
  c.Constant(1, Tensor::Scalar<float>(2));
  EXPECT_TRUE(absl::StartsWith(c.Run("[2,3]"), "error:"));
}

TEST(PartialShapeTest, DimensionsThatAreNotThereAreUnknown) {
  EXPECT_EQ(PartialShape().dim(0), -1);
  EXPECT_EQ(PartialShape::Of({2}).dim(1), -1);
  EXPECT_EQ(PartialShape::Of({2}).dim(-1), -1);
}

}  // namespace
}  // namespace millrace
