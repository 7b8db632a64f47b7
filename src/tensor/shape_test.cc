// SPDX-License-Identifier: Apache-2.0
#include "tensor/shape.h"

#include <limits>

#include "gtest/gtest.h"

namespace millrace {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;

Shape S(std::initializer_list<int64_t> dims) { return *Shape::Make(dims); }
PartialShape P(std::initializer_list<int64_t> dims) { return *PartialShape::Make(std::vector<int64_t>(dims)); }
std::string ErrorOf(std::initializer_list<int64_t> dims) { return std::string(Shape::Make(dims).status().message()); }

TEST(ShapeTest, Basics) {
  EXPECT_EQ(Shape().ToString(), "[]");
  EXPECT_EQ(Shape().num_elements(), 1);
  EXPECT_EQ(S({2, 3}).ToString(), "[2,3]");
  EXPECT_EQ(S({2, 0, 3}).num_elements(), 0);
  EXPECT_EQ(Shape::Vector(5), S({5}));
  EXPECT_EQ(Shape::Vector(-5), S({0}));
  EXPECT_FALSE(S({2, 3}) == S({3, 2}));
  EXPECT_FALSE(S({1}) == S({}));
}

TEST(ShapeTest, CopiesAndMovesOfAnyRank) {
  for (int rank : {0, 1, 4, 5, 9, 254}) {
    std::vector<int64_t> dims(static_cast<size_t>(rank), 1);
    if (rank > 0) dims.back() = 7;
    const Shape original = *Shape::Make(dims);
    Shape copy = original;
    EXPECT_EQ(copy, original);
    Shape moved = std::move(copy);
    EXPECT_EQ(moved, original);
    Shape assigned = S({1, 2, 3, 4, 5, 6});
    assigned = original;
    EXPECT_EQ(assigned, original);
    assigned = S({9});
    EXPECT_EQ(assigned, S({9}));
    assigned = std::move(moved);
    EXPECT_EQ(assigned, original);
    const Shape& self = assigned;
    assigned = self;
    EXPECT_EQ(assigned, original);
  }
}

TEST(ShapeTest, RefusalsSayWhat) {
  EXPECT_EQ(ErrorOf({3, -5}), "dimension 1 of [3,-5] is negative");
  EXPECT_EQ(ErrorOf({-1}), "dimension 0 of [-1] is negative");
  EXPECT_EQ(
      ErrorOf({int64_t{1} << 32, int64_t{1} << 32}), "shape [4294967296,4294967296] has more than 2^63 - 1 elements");
  EXPECT_NE(ErrorOf({kMax, 2}), "");
  EXPECT_NE(ErrorOf({0, kMax, 2}), "");  // a zero hides no overflow
  EXPECT_EQ(ErrorOf({kMax, 0}), "");
  EXPECT_EQ(S({kMax}).num_elements(), kMax);
  EXPECT_TRUE(Shape::Make(std::vector<int64_t>(254, 1)).ok());
  EXPECT_EQ(Shape::Make(std::vector<int64_t>(255, 1)).status().message(),
            "a shape of 255 dimensions; at most 254 are supported");
  EXPECT_EQ(Shape::Make(std::vector<int32_t>(255, 0)).status().code(), kInvalidArgument);
  EXPECT_EQ(Shape::Make(std::vector<int32_t>{2, -1}).status().code(), kInvalidArgument);
  EXPECT_EQ(*Shape::Make(std::vector<int32_t>{2, 1}), S({2, 1}));
}

TEST(ShapeTest, ChangedCopies) {
  EXPECT_EQ(*S({2, 3}).WithDim(1, 5), S({2, 5}));
  EXPECT_FALSE(S({2, 3}).WithDim(2, 5).ok());
  EXPECT_FALSE(S({2, 3}).WithDim(0, -5).ok());
  EXPECT_EQ(*S({2, 3}).WithInserted(0, 1), S({1, 2, 3}));
  EXPECT_EQ(*S({2, 3}).WithInserted(2, 1), S({2, 3, 1}));
  EXPECT_FALSE(S({2, 3}).WithInserted(3, 1).ok());
  EXPECT_FALSE(S({kMax}).WithInserted(0, 2).ok());
  EXPECT_EQ(S({2, 3, 4}).WithoutDim(1), S({2, 4}));
  EXPECT_EQ(*S({2}).Concatenate(S({3, 4})), S({2, 3, 4}));
  EXPECT_FALSE(S({kMax}).Concatenate(S({kMax})).ok());
}

TEST(PartialShapeTest, Basics) {
  EXPECT_EQ(PartialShape().ToString(), "?");
  EXPECT_EQ(P({2, -1}).ToString(), "[2,?]");
  EXPECT_EQ(PartialShape::Scalar().ToString(), "[]");
  EXPECT_EQ(PartialShape::UnknownOfRank(2), P({-1, -1}));
  EXPECT_EQ(PartialShape().rank(), -1);
  EXPECT_EQ(P({2, 3}).num_elements(), 6);
  EXPECT_EQ(P({2, -1}).num_elements(), -1);
  EXPECT_EQ(PartialShape().num_elements(), -1);
  EXPECT_EQ(*P({2, 3}).ToShape(), S({2, 3}));
  EXPECT_FALSE(P({2, -1}).ToShape().ok());
  EXPECT_EQ(PartialShape(S({2, 3})), P({2, 3}));
}

TEST(PartialShapeTest, Refusals) {
  const auto code = [](std::vector<int64_t> dims) { return PartialShape::Make(dims).status().code(); };
  EXPECT_EQ(code({-2}), kInvalidArgument);
  EXPECT_EQ(code({kMax, -1, 2}), kInvalidArgument);
  EXPECT_EQ(code({kMax, -1}), absl::StatusCode::kOk);
  EXPECT_EQ(code(std::vector<int64_t>(255, -1)), kInvalidArgument);
}

TEST(PartialShapeTest, MergeAndCompatibility) {
  EXPECT_EQ(*P({2, -1}).Merge(P({-1, 3})), P({2, 3}));
  EXPECT_EQ(*PartialShape().Merge(P({1})), P({1}));
  EXPECT_EQ(*P({1}).Merge(PartialShape()), P({1}));
  EXPECT_EQ(P({2}).Merge(P({3})).status().message(),
            "Dimension 0 in both shapes must be equal, but are 2 and 3. Shapes are [2] and [3]");
  EXPECT_FALSE(P({2}).Merge(P({2, 2})).ok());
  EXPECT_TRUE(P({2, -1}).IsCompatibleWith(P({2, 5})));
  EXPECT_FALSE(P({2, -1}).IsCompatibleWith(P({2})));
}

TEST(BroadcastShapesTest, NumpyRules) {
  struct Case {
    Shape a, b;
    std::string result;
  };
  for (const Case& c :
       {Case{S({2, 3}), S({2, 3}), "[2,3]"}, Case{S({2, 3}), S({3}), "[2,3]"}, Case{S({2, 1}), S({1, 5}), "[2,5]"},
        Case{S({}), S({4}), "[4]"}, Case{S({0}), S({1}), "[0]"}, Case{S({3, 0}), S({1, 1}), "[3,0]"}}) {
    EXPECT_EQ(BroadcastShapes(c.a, c.b)->ToString(), c.result);
    EXPECT_EQ(BroadcastShapes(c.b, c.a)->ToString(), c.result);
  }
  EXPECT_EQ(BroadcastShapes(S({2}), S({3})).status().message(), "Incompatible shapes: [2] vs. [3]");
  EXPECT_FALSE(BroadcastShapes(S({0}), S({2})).ok());
  EXPECT_EQ(BroadcastShapes(S({int64_t{1} << 40, 1}), S({1, int64_t{1} << 40})).status().code(), kInvalidArgument);
}

}  // namespace
}  // namespace millrace
