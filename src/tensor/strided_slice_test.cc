// SPDX-License-Identifier: Apache-2.0
#include "tensor/strided_slice.h"

#include <gtest/gtest.h>

#include <limits>

namespace millrace {
namespace {

using V = std::vector<int64_t>;

PartialShape P(V dims) { return PartialShape::Of(std::move(dims)); }

StatusOr<StridedSlice> Resolve(const PartialShape& in, const V& begin, const V& end, const V& strides,
                               StridedSliceMasks masks = {}) {
  return ResolveStridedSlice(in, absl::MakeConstSpan(begin), absl::MakeConstSpan(end), strides, masks);
}
std::string OutputOf(const PartialShape& in, const V& begin, const V& end, const V& strides,
                     StridedSliceMasks masks = {}) {
  auto s = Resolve(in, begin, end, strides, masks);
  return s.ok() ? s->OutputShape()->ToString() : std::string(s.status().message());
}

TEST(StridedSlice, ClampsLikePython) {
  const PartialShape in = P({5});
  EXPECT_EQ(OutputOf(in, {1}, {4}, {1}), "[3]");
  EXPECT_EQ(OutputOf(in, {-2}, {100}, {1}), "[2]");
  EXPECT_EQ(OutputOf(in, {-100}, {100}, {2}), "[3]");
  EXPECT_EQ(OutputOf(in, {4}, {1}, {1}), "[0]");
  EXPECT_EQ(OutputOf(in, {4}, {0}, {-2}), "[2]");
  EXPECT_EQ(OutputOf(in, {100}, {-100}, {-1}), "[5]");
}

TEST(StridedSlice, ExtremeBoundsDoNotOverflow) {
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min(), kMax = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(OutputOf(P({5}), {kMin}, {kMax}, {kMax}), "[1]");
  EXPECT_EQ(OutputOf(P({5}), {kMax}, {kMin}, {kMin}), "[1]");
  EXPECT_EQ(OutputOf(P({5}), {kMin}, {kMin}, {1}), "[0]");
}

TEST(StridedSlice, BeginIsWhereTheFirstElementLies) {
  auto s = Resolve(P({4, 6}), {-1, 5}, {0, 0}, {-1, -2}, {.end = 1});
  ASSERT_TRUE(s.ok());
  EXPECT_TRUE(s->known);
  EXPECT_FALSE(s->identity);
  EXPECT_EQ(s->dims[0].begin, 3);
  EXPECT_EQ(s->dims[0].size, 4);
  EXPECT_EQ(s->dims[1].begin, 5);
  EXPECT_EQ(s->dims[1].stride, -2);
  EXPECT_EQ(s->OutputShape()->ToString(), "[4,3]");
}

TEST(StridedSlice, Masks) {
  const PartialShape in = P({4, 3, 5});
  EXPECT_EQ(OutputOf(in, {1, 0}, {2, 0}, {1, 1}, {.ellipsis = 2}), "[1,3,5]");
  EXPECT_EQ(OutputOf(in, {0, 1}, {0, 2}, {1, 1}, {.ellipsis = 1, .shrink_axis = 2}), "[4,3]");
  EXPECT_EQ(OutputOf(in, {0, 1}, {0, 2}, {1, 1}, {.new_axis = 1}), "[1,1,3,5]");
  EXPECT_EQ(OutputOf(in, {0, 0}, {0, 0}, {1, 1}, {.ellipsis = 1, .new_axis = 2}), "[4,3,5,1]");
  EXPECT_EQ(OutputOf(in, {1, 1, -1}, {2, 2, 0}, {1, 1, 1}, {.shrink_axis = 7}), "[]");
  // A single index ignores the begin mask; a new axis wins over a single index.
  auto s = Resolve(in, {2}, {3}, {1}, {.begin = 1, .end = 1, .shrink_axis = 1});
  ASSERT_TRUE(s.ok());
  EXPECT_EQ(s->dims[0].begin, 2);
  EXPECT_EQ(OutputOf(in, {0}, {0}, {1}, {.new_axis = 1, .shrink_axis = 1}), "[1,4,3,5]");
}

TEST(StridedSlice, IdentityEvenWhenTheShapeChanges) {
  auto s = Resolve(P({4, 3}), {0, 0, 0}, {0, 0, 3}, {1, 1, 1}, {.begin = 2, .end = 2, .new_axis = 1});
  ASSERT_TRUE(s.ok());
  EXPECT_TRUE(s->identity);
  EXPECT_EQ(s->OutputShape()->ToString(), "[1,4,3]");
}

TEST(StridedSlice, PartialKnowledge) {
  EXPECT_EQ(OutputOf(P({-1, 3}), {1, 0}, {3, 2}, {1, 1}), "[?,2]");
  EXPECT_EQ(OutputOf(P({-1, 3}), {1}, {2}, {1}, {.shrink_axis = 1}), "[3]");
  EXPECT_EQ(OutputOf(PartialShape(), {1}, {2}, {1}), "?");
  auto s = ResolveStridedSlice(P({4, 3}), std::nullopt, std::nullopt, V{1, 1}, {.begin = 2, .end = 2});
  ASSERT_TRUE(s.ok());
  EXPECT_FALSE(s->known);
  EXPECT_EQ(s->OutputShape()->ToString(), "[?,3]");
}

TEST(StridedSlice, Refusals) {
  const PartialShape in = P({4, 3});
  for (const auto& s :
       {Resolve(in, {0}, {1}, {0}), Resolve(in, {4}, {5}, {1}, {.shrink_axis = 1}),
        Resolve(in, {-5}, {0}, {1}, {.shrink_axis = 1}), Resolve(in, {0}, {1}, {-1}, {.shrink_axis = 1}),
        Resolve(in, {0, 0, 0}, {1, 1, 1}, {1, 1, 1}), Resolve(in, {0, 0}, {1}, {1}),
        Resolve(in, {0, 0}, {0, 0}, {1, 1}, {.ellipsis = 3}), Resolve(in, V(32), V(32), V(32, 1))}) {
    EXPECT_EQ(s.status().code(), absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace millrace
