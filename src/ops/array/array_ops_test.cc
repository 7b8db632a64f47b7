// SPDX-License-Identifier: Apache-2.0
// What the shape functions of the array family infer from partly known shapes, and how values that denote shapes flow.
#include "ops/array/array_ops.h"

#include <gtest/gtest.h>

#include "op/example.h"
#include "ops/op_list.h"

namespace millrace {
namespace {

class ArrayOps : public ::testing::Test {
 protected:
  ArrayOps() : graph_(&Registry()), b_(&graph_) {}

  static const OpRegistry& Registry() {
    static const OpRegistry* all = [] {
      auto* r = new OpRegistry();
      RegisterAllOps(*r);
      return r;
    }();
    return *all;
  }
  Output Unknown(DType t = DType::kFloat) { return b_.Op("Placeholder", {}, {{"dtype", t}}); }
  Output Of(std::vector<int64_t> dims, DType t = DType::kFloat) {
    return b_.Op("Placeholder", {}, {{"dtype", t}, {"shape", PartialShape::Of(std::move(dims))}});
  }
  Output Vec(std::vector<int64_t> v) { return IntVector(b_, DType::kInt32, v); }
  Output Num(int64_t v) { return IntScalar(b_, DType::kInt32, v); }
  std::string ShapeString(Output o) { return o ? o.shape().ToString() : std::string(b_.status().message()); }
  bool Refused(Output o) { return !o && absl::IsInvalidArgument(b_.status()); }

  Graph graph_;
  GraphBuilder b_;
};

TEST_F(ArrayOps, Reshape) {
  EXPECT_EQ(ShapeString(b_.Reshape(Of({2, 6}), Vec({3, -1}))), "[3,4]");
  EXPECT_EQ(ShapeString(b_.Reshape(Of({-1, 6}), Vec({3, -1}))), "[3,?]");
  EXPECT_EQ(ShapeString(b_.Reshape(Of({2, 6}), Of({3}, DType::kInt32))), "[?,?,?]");
  EXPECT_EQ(ShapeString(b_.Reshape(Unknown(), b_.Shape(Of({-1, 5})))), "[?,5]");
  EXPECT_EQ(ShapeString(b_.Reshape(Of({0, 3}), Vec({0, -1}))), "[0,?]");
  EXPECT_TRUE(Refused(b_.Reshape(Of({2, 6}), Vec({5, -1}))));
}

TEST_F(ArrayOps, ExpandAndSqueeze) {
  EXPECT_EQ(ShapeString(b_.Op("ExpandDims", {Of({2, -1}), Num(-1)})), "[2,?,1]");
  EXPECT_EQ(ShapeString(b_.Op("ExpandDims", {Of({2, -1}), Of({}, DType::kInt32)})), "[?,?,?]");
  EXPECT_EQ(ShapeString(b_.Op("Squeeze", {Of({1, 2, 1})})), "[2]");
  EXPECT_EQ(ShapeString(b_.Op("Squeeze", {Of({1, -1, 1})})), "?");
  EXPECT_EQ(ShapeString(b_.Op("Squeeze", {Of({1, -1, 1})}, {{"squeeze_dims", std::vector<int64_t>{-1}}})), "[1,?]");
  EXPECT_TRUE(Refused(b_.Op("Squeeze", {Of({2, 1})}, {{"squeeze_dims", std::vector<int64_t>{0}}})));
}

TEST_F(ArrayOps, JoinAndCut) {
  EXPECT_EQ(ShapeString(b_.Op("ConcatV2", {std::vector<Output>{Of({2, -1}), Of({-1, 3})}, Num(1)})), "[2,?]");
  EXPECT_EQ(ShapeString(b_.Op("ConcatV2", {std::vector<Output>{Of({2, 4}), Unknown()}, Num(0)})), "[?,4]");
  EXPECT_EQ(ShapeString(b_.Op("Pack", {std::vector<Output>{Of({2, -1}), Of({-1, 3})}}, {{"axis", -1}})), "[2,3,2]");
  Node* split = b_.OpNode("SplitV", {Of({5, 2}), Vec({1, -1}), Num(0)}, {{"num_split", 2}});
  ASSERT_NE(split, nullptr);
  EXPECT_EQ(split->shape(0).ToString(), "[1,2]");
  EXPECT_EQ(split->shape(1).ToString(), "[4,2]");
  Node* unpack = b_.OpNode("Unpack", {Of({2, -1})}, {{"num", 3}, {"axis", 1}});
  ASSERT_NE(unpack, nullptr);
  EXPECT_EQ(unpack->shape(2).ToString(), "[2]");
  EXPECT_TRUE(Refused(b_.Op("Split", {Num(0), Of({5, 2})}, {{"num_split", 2}})));
}

TEST_F(ArrayOps, SliceAndPad) {
  EXPECT_EQ(ShapeString(b_.Op("Slice", {Of({5, -1}), Vec({1, 2}), Vec({-1, -1})})), "[4,?]");
  EXPECT_EQ(ShapeString(b_.Op("Slice", {Unknown(), Of({2}, DType::kInt32), Vec({-1, 3})})), "[?,3]");
  EXPECT_EQ(ShapeString(b_.Op("Pad", {Of({2, -1}), b_.Reshape(Vec({1, 1, 0, 2}), Vec({2, 2}))})), "[4,?]");
  EXPECT_EQ(ShapeString(b_.Op("Tile", {Of({2, -1}), Vec({3, 2})})), "[6,?]");
  EXPECT_EQ(ShapeString(b_.Op("Transpose", {Of({2, -1, 4}), Vec({2, 0, 1})})), "[4,2,?]");
  EXPECT_TRUE(Refused(b_.Op("Slice", {Of({5}), Vec({3}), Vec({3})})));
}

TEST_F(ArrayOps, ShapesSurviveArithmeticOnThem) {
  const Output shape = b_.Shape(Of({-1, 7, 3}));
  const Output tail = b_.Op("StridedSlice", {shape, Vec({1}), Vec({0}), Vec({1})}, {{"end_mask", 1}});
  EXPECT_EQ(ShapeString(b_.Reshape(Unknown(), tail)), "[7,3]");
  const Output seven = b_.Op("StridedSlice", {shape, Vec({1}), Vec({2}), Vec({1})}, {{"shrink_axis_mask", 1}});
  const Output packed = b_.Op("Pack", {std::vector<Output>{Of({}, DType::kInt32), seven}});
  EXPECT_EQ(ShapeString(b_.Op("Fill", {packed, b_.Scalar(1.0f)})), "[?,7]");
  const Output joined = b_.Op("ConcatV2", {std::vector<Output>{Vec({2}), tail}, Num(0)});
  EXPECT_EQ(ShapeString(b_.Op("Fill", {joined, b_.Scalar(1.0f)})), "[2,7,3]");
}

TEST_F(ArrayOps, ExamplesParse) {
  for (const OpDef* op : Registry().All()) {
    for (const std::string& text : op->examples) {
      EXPECT_TRUE(ParseExample(*op, text).ok()) << op->name << ": " << text << ": " << ParseExample(*op, text).status();
    }
  }
}

}  // namespace
}  // namespace millrace
