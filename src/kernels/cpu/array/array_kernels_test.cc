// SPDX-License-Identifier: Apache-2.0
// What the kernels that move data return, which of them share buffers, and what they refuse. The copying itself is
// tested in strided_copy_test.cc.
#include <gtest/gtest.h>

#include <numeric>

#include "base/checked.h"
#include "kernels/cpu/any_device.h"
#include "kernels/cpu/engine/kernel_runner.h"
#include "kernels/cpu/kernel_list.h"

namespace millrace {
namespace {

constexpr char kMasks[] =
    "; begin_mask:int=0; end_mask:int=0; ellipsis_mask:int=0; new_axis_mask:int=0; shrink_axis_mask:int=0";

StatusOr<std::vector<Tensor>> Compute(absl::string_view schema, AttrMap attrs, std::vector<Tensor> inputs) {
  static auto* runner = new KernelRunner(
      [](KernelRegistry& r) {
        RegisterArrayKernels(r);
        RegisterKernelsOfAnyDevice(r, "CPU");
      },
      2);
  return runner->Run(schema, std::move(attrs), std::move(inputs));
}
AttrMap F32(AttrMap more = {}) {
  more.emplace("T", DType::kFloat);
  return more;
}
// 0, 1, 2, ... in this shape.
Tensor Count(std::vector<int64_t> dims) {
  Tensor t = *Tensor::Make(DType::kFloat, *Shape::Make(absl::MakeConstSpan(dims)));
  std::iota(t.mutable_data<float>(), t.mutable_data<float>() + t.num_elements(), 0.0f);
  return t;
}
Tensor I32(std::vector<int32_t> v) { return Tensor::Vector<int32_t>(absl::MakeConstSpan(v)); }
Tensor Pairs(std::vector<int32_t> v) { return *I32(v).Reshaped(*Shape::Make({static_cast<int64_t>(v.size()) / 2, 2})); }
std::string Text(const StatusOr<std::vector<Tensor>>& r, size_t i = 0) {
  return r.ok() ? (*r)[i].DebugString(64) : std::string(absl::StatusCodeToString(r.status().code()));
}

constexpr char kPad[] = "Pad(x:T, p:i32) -> (y:T) | T:type";
constexpr char kPadV2[] = "PadV2(x:T, p:i32, c:T) -> (y:T) | T:type";
constexpr char kMirror[] = "MirrorPad(x:T, p:i32) -> (y:T) | T:type; mode:string";
constexpr char kMirrorGrad[] = "MirrorPadGrad(x:T, p:i32) -> (y:T) | T:type; mode:string";

// Every element of borders and inside, where rows are long, beside loops.
TEST(ArrayKernels, PadOfLongRows) {
  for (const int32_t before : {0, 1, 3}) {
    for (const int32_t after : {0, 2, 5}) {
      const int64_t d[3] = {3, 4, 17};
      const int32_t p[6] = {before, 1, after, before, 2, after};
      const auto made = Compute(kPad, F32(), {Count({d[0], d[1], d[2]}), Pairs({p, p + 6})});
      ASSERT_TRUE(made.ok()) << made.status();
      const float* at = (*made)[0].data<float>();
      for (int64_t i = -p[0]; i < d[0] + p[1]; ++i) {
        for (int64_t j = -p[2]; j < d[1] + p[3]; ++j) {
          for (int64_t k = -p[4]; k < d[2] + p[5]; ++k, ++at) {
            const bool inside = InRange(i, d[0]) && InRange(j, d[1]) && InRange(k, d[2]);
            ASSERT_EQ(*at, inside ? static_cast<float>((i * d[1] + j) * d[2] + k) : 0.0f) << i << " " << j << " " << k;
          }
        }
      }
    }
  }
}

TEST(ArrayKernels, Pad) {
  EXPECT_EQ(Text(Compute(kPad, F32(), {Count({1, 2}), Pairs({1, 0, 1, 2})})), "float[2,5] 0 0 0 0 0 0 0 1 0 0");
  EXPECT_EQ(Text(Compute(kPadV2, F32(), {Count({2}), Pairs({2, 1}), Tensor::Scalar(7.0f)})), "float[5] 7 7 0 1 7");
  EXPECT_EQ(Text(Compute(kPadV2, F32(), {Count({0, 2}), Pairs({1, 0, 0, 0}), Tensor::Scalar(7.0f)})), "float[1,2] 7 7");
  EXPECT_EQ(Text(Compute(kPad, F32(), {Count({2}), Pairs({-1, 0})})), "INVALID_ARGUMENT");
  EXPECT_EQ(Text(Compute(kPad, F32(), {Count({2, 2}), Pairs({1, 0})})), "INVALID_ARGUMENT");
}

// Rows of few bytes go another way than long ones.
TEST(ArrayKernels, PadRowsOfAnyLength) {
  for (const int64_t width : {1, 3, 11, 12, 13, 100}) {
    const auto made = Compute(kPadV2, F32(), {Count({2, 3, width}), Pairs({1, 0, 0, 2, 2, 1}), Tensor::Scalar(-1.0f)});
    ASSERT_TRUE(made.ok()) << made.status();
    const Tensor& out = (*made)[0];
    ASSERT_EQ(out.num_elements(), 3 * 5 * (width + 3));
    for (int64_t i = 0; i < out.num_elements(); ++i) {
      const int64_t a = i / (5 * (width + 3)) - 1, b = i / (width + 3) % 5, c = i % (width + 3) - 2;
      const bool inside = a >= 0 && b < 3 && c >= 0 && c < width;
      ASSERT_EQ(out.data<float>()[i], inside ? static_cast<float>((a * 3 + b) * width + c) : -1.0f)
          << width << " " << i;
    }
  }
}

TEST(ArrayKernels, MirrorPadAndItsTransposedMap) {
  const AttrMap reflect = F32({{"mode", "REFLECT"}}), symmetric = F32({{"mode", "SYMMETRIC"}});
  EXPECT_EQ(Text(Compute(kMirror, reflect, {Count({3}), Pairs({2, 2})})), "float[7] 2 1 0 1 2 1 0");
  EXPECT_EQ(Text(Compute(kMirror, symmetric, {Count({3}), Pairs({3, 1})})), "float[7] 2 1 0 0 1 2 2");
  EXPECT_EQ(Text(Compute(kMirror, symmetric, {Count({2, 2}), Pairs({1, 0, 0, 1})})), "float[3,3] 0 1 1 0 1 1 2 3 3");
  EXPECT_EQ(Text(Compute(kMirror, reflect, {Count({3}), Pairs({3, 0})})), "INVALID_ARGUMENT");
  // Of 0 1 | 2 3 | 4 the 1 belongs to the 2, and both 0 and 4 to the 3.
  EXPECT_EQ(Text(Compute(kMirrorGrad, symmetric, {Count({5}), Pairs({2, 1})})), "float[2] 3 7");
  EXPECT_EQ(Text(Compute(kMirrorGrad, reflect, {Count({5}), Pairs({1, 1})})), "float[3] 1 6 3");
  EXPECT_EQ(Text(Compute(kMirrorGrad, reflect, {Count({5}), Pairs({4, 2})})), "INVALID_ARGUMENT");
}

TEST(ArrayKernels, TileAndRoll) {
  constexpr char kTile[] = "Tile(x:T, m:i32) -> (y:T) | T:type";
  constexpr char kRoll[] = "Roll(x:T, s:i32, a:i32) -> (y:T) | T:type";
  EXPECT_EQ(Text(Compute(kTile, F32(), {Count({2, 1}), I32({2, 2})})), "float[4,2] 0 0 1 1 0 0 1 1");
  EXPECT_EQ(Text(Compute(kTile, F32(), {Count({2}), I32({0})})), "float[0]");
  EXPECT_EQ(Text(Compute(kTile, F32(), {Count({2}), I32({-1})})), "INVALID_ARGUMENT");
  EXPECT_EQ(Text(Compute(kRoll, F32(), {Count({2, 3}), I32({1, -1}), I32({0, 1})})), "float[2,3] 4 5 3 1 2 0");
  EXPECT_EQ(Text(Compute(kRoll, F32(), {Count({4}), I32({3, 3}), I32({0, 0})})), "float[4] 2 3 0 1");
  EXPECT_EQ(Text(Compute(kRoll, F32(), {Count({4}), I32({1}), I32({1})})), "INVALID_ARGUMENT");
}

TEST(ArrayKernels, PartsThatAreOneRunAreViews) {
  constexpr char kSlice[] = "Slice(x:T, b:i32, s:i32) -> (y:T) | T:type";
  constexpr char kSplit[] = "Split(d:i32, x:T) -> (y:n*T) | T:type; n:int";
  const Tensor big = Count({8, 16});
  auto rows = Compute(kSlice, F32(), {big, I32({2, 0}), I32({3, -1})});
  ASSERT_TRUE(rows.ok());
  EXPECT_TRUE((*rows)[0].SharesBufferWith(big));
  EXPECT_EQ((*rows)[0].data<float>()[0], 32.0f);
  auto unaligned = Compute(kSlice, F32(), {Count({8}), I32({1}), I32({2})});
  EXPECT_EQ(Text(unaligned), "float[2] 1 2");
  auto halves = Compute(kSplit, F32({{"n", 2}}), {Tensor::Scalar<int32_t>(0), big});
  ASSERT_TRUE(halves.ok());
  EXPECT_TRUE((*halves)[1].SharesBufferWith(big));
  auto columns = Compute(kSplit, F32({{"n", 16}}), {Tensor::Scalar<int32_t>(-1), Count({16, 16})});
  ASSERT_TRUE(columns.ok());
  EXPECT_EQ((*columns)[3].data<float>()[2], 35.0f);
  EXPECT_EQ(Text(Compute(kSlice, F32(), {Count({8}), I32({1}), I32({8})})), "INVALID_ARGUMENT");
}

TEST(ArrayKernels, StridedSliceAndItsGradient) {
  const std::string slice = absl::StrCat("StridedSlice(x:T, b:i32, e:i32, s:i32) -> (y:T) | T:type", kMasks);
  const std::string grad = absl::StrCat("StridedSliceGrad(x:i32, b:i32, e:i32, s:i32, dy:T) -> (y:T) | T:type", kMasks);
  EXPECT_EQ(Text(Compute(slice, F32(), {Count({5}), I32({3}), I32({0}), I32({-2})})), "float[2] 3 1");
  EXPECT_EQ(Text(Compute(slice, F32({{"shrink_axis_mask", 1}}), {Count({2, 3}), I32({-1}), I32({0}), I32({1})})),
            "float[3] 3 4 5");
  EXPECT_EQ(Text(Compute(grad, F32(), {I32({5}), I32({3}), I32({0}), I32({-2}), Count({2})})), "float[5] 0 1 0 0 0");
  EXPECT_EQ(Text(Compute(grad, F32(), {I32({5}), I32({3}), I32({0}), I32({-2}), Count({3})})), "INVALID_ARGUMENT");
}

TEST(ArrayKernels, ReshapeInfersOneSize) {
  constexpr char kReshape[] = "Reshape(x:T, s:i32) -> (y:T) | T:type";
  EXPECT_EQ(Text(Compute(kReshape, F32(), {Count({2, 2}), I32({-1})})), "float[4] 0 1 2 3");
  EXPECT_EQ(Text(Compute(kReshape, F32(), {Count({0, 3}), I32({0, -1})})), "float[0,3]");
  for (const auto& sizes :
       {I32({-1, -1}), I32({3, -1}), I32({0, -1}), I32({-2, -2}), I32({65536, 65536, 65536, 65536})}) {
    EXPECT_EQ(Text(Compute(kReshape, F32(), {Count({2, 2}), sizes})), "INVALID_ARGUMENT");
  }
}

TEST(ArrayKernels, ConcatAndPack) {
  constexpr char kConcat[] = "ConcatV2(x:N*T, a:i32) -> (y:T) | T:type; N:int";
  constexpr char kPack[] = "Pack(x:N*T) -> (y:T) | T:type; N:int; axis:int=0";
  EXPECT_EQ(Text(Compute(kConcat, F32({{"N", 2}}), {Count({2, 1}), Count({2, 2}), Tensor::Scalar<int32_t>(1)})),
            "float[2,3] 0 0 1 1 2 3");
  EXPECT_EQ(Text(Compute(kConcat, F32({{"N", 2}}), {Count({2, 1}), Count({3, 2}), Tensor::Scalar<int32_t>(1)})),
            "INVALID_ARGUMENT");
  EXPECT_EQ(Text(Compute(kPack, F32({{"N", 2}, {"axis", 1}}), {Count({2}), Count({2})})), "float[2,2] 0 0 1 1");
  // A single input with elements is passed on.
  const Tensor whole = Count({2, 2});
  auto same = Compute(kConcat, F32({{"N", 2}}), {whole, Count({0, 2}), Tensor::Scalar<int32_t>(0)});
  ASSERT_TRUE(same.ok());
  EXPECT_TRUE((*same)[0].SharesBufferWith(whole));
}

}  // namespace
}  // namespace millrace
