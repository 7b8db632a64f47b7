// SPDX-License-Identifier: Apache-2.0
// Bad indices of every kind are refused, and sums over repeated indices neither lose updates nor depend on threads.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "gtest/gtest.h"
#include "kernels/cpu/engine/kernel_runner.h"
#include "kernels/cpu/kernel_list.h"

namespace millrace {
namespace {

using Ints = std::vector<int64_t>;

constexpr char kGather[] =
    "GatherV2(params:Tparams, indices:Tindices, axis:Taxis) -> (output:Tparams) | batch_dims:int=0; Tparams:type; "
    "Tindices in IDX; Taxis in IDX";
constexpr char kGatherNd[] =
    "GatherNd(params:Tparams, indices:Tindices) -> (output:Tparams) | Tparams:type; Tindices in IDX";
constexpr char kScatterNd[] =
    "ScatterNd(indices:Tindices, updates:T, shape:Tindices) -> (output:T) | T:type; Tindices in IDX";
constexpr char kUnsortedSum[] =
    "UnsortedSegmentSum(data:T, segment_ids:Tindices, num_segments:Tnumsegments) -> (output:T) | T in NUM; Tindices in "
    "IDX; Tnumsegments in IDX=i32";
constexpr char kSegmentSum[] = "SegmentSum(data:T, segment_ids:Tindices) -> (output:T) | T in NUM; Tindices in IDX";
constexpr char kRange[] = "Range(start:Tidx, limit:Tidx, delta:Tidx) -> (output:Tidx) | Tidx in FLT|IDX=i32";
constexpr char kSpaceToBatch[] =
    "SpaceToBatchND(input:T, block_shape:B, paddings:P) -> (output:T) | T:type; B in IDX=i32; P in IDX=i32";
constexpr char kBatchToSpace[] =
    "BatchToSpaceND(input:T, block_shape:B, crops:P) -> (output:T) | T:type; B in IDX=i32; P in IDX=i32";
constexpr char kStitch[] = "DynamicStitch(indices:N*i32, data:N*T) -> (merged:T) | N:int>=1; T:type";
constexpr char kPartition[] =
    "DynamicPartition(data:T, partitions:i32) -> (outputs:num_partitions*T) | num_partitions:int>=1; T:type";
constexpr char kInvert[] = "InvertPermutation(x:T) -> (y:T) | T in IDX=i32";
constexpr char kReverse[] =
    "ReverseSequence(input:T, seq_lengths:Tlen) -> (output:T) | seq_dim:int; batch_dim:int=0; T:type; Tlen in IDX=i64";
constexpr char kUnique[] = "Unique(x:T) -> (y:T, idx:out_idx) | T:type; out_idx in IDX=i32";
constexpr char kRagged[] =
    "RaggedTensorToTensor(shape:i32, values:f32, default_value:f32, partitions:num_row_partition_tensors*i64) -> "
    "(result:f32) | num_row_partition_tensors:int>=1; row_partition_types:list(string)";
constexpr char kWhere[] = "Where(input:T) -> (index:i64) | T in NUM|bool=bool";

KernelRunner& Runner(int threads = 1) {
  static auto* one = new KernelRunner(RegisterIndexKernels, 1);
  static auto* four = new KernelRunner(RegisterIndexKernels, 4);
  return threads == 1 ? *one : *four;
}

template <typename T>
Tensor Make(const Ints& dims, const std::vector<T>& v) {
  Tensor t = *Tensor::Make(DTypeOf<T>::value, *Shape::Make(absl::MakeConstSpan(dims)));
  std::copy(v.begin(), v.end(), t.mutable_data<T>());
  return t;
}
template <typename T>
std::vector<T> Values(const Tensor& t) {
  return {t.data<T>(), t.data<T>() + t.num_elements()};
}
std::vector<float> Random(int64_t n, uint32_t seed) {
  std::mt19937 gen(seed);
  std::normal_distribution<float> d;
  std::vector<float> v(static_cast<size_t>(n));
  for (float& x : v) x = d(gen);
  return v;
}
std::string MessageOf(const Status& s) { return std::string(s.message()); }

AttrMap TypesOf(std::initializer_list<std::pair<const char*, DType>> types) {
  AttrMap attrs;
  for (const auto& [name, type] : types) attrs.emplace(name, type);
  return attrs;
}
AttrMap GatherAttrs(DType index, int batch_dims = 0) {
  AttrMap a = TypesOf({{"Tparams", DType::kFloat}, {"Tindices", index}, {"Taxis", DType::kInt32}});
  a.emplace("batch_dims", batch_dims);
  return a;
}

TEST(Gather, RefusesIndicesOutsideAndNamesThem) {
  const Tensor params = Make<float>({5, 2}, Random(10, 1));
  const Tensor axis = Tensor::Scalar<int32_t>(0);
  for (int32_t bad : {-1, 5, std::numeric_limits<int32_t>::max(), std::numeric_limits<int32_t>::min()}) {
    auto r = Runner().Run(kGather, GatherAttrs(DType::kInt32), {params, Make<int32_t>({1, 2}, {0, bad}), axis});
    ASSERT_EQ(r.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(MessageOf(r.status()), absl::StrCat("indices[0,1] = ", bad, " is not in [0, 5)"));
  }
  for (int64_t bad : {int64_t{-1}, int64_t{5}, int64_t{1} << 40, std::numeric_limits<int64_t>::min()}) {
    auto r = Runner().Run(kGather, GatherAttrs(DType::kInt64), {params, Make<int64_t>({}, {bad}), axis});
    EXPECT_EQ(r.status().code(), absl::StatusCode::kInvalidArgument);
    AttrMap nd = TypesOf({{"Tparams", DType::kFloat}, {"Tindices", DType::kInt64}});
    r = Runner().Run(kGatherNd, nd, {params, Make<int64_t>({1, 2}, {0, bad})});
    EXPECT_EQ(r.status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(Gather, FindsOneBadIndexAmongMany) {
  const Tensor params = Make<float>({7}, Random(7, 1));
  std::vector<int32_t> ids(5000, 3);
  ids[4321] = 7;
  auto r = Runner(4).Run(
      kGather, GatherAttrs(DType::kInt32), {params, Make<int32_t>({5000}, ids), Tensor::Scalar<int32_t>(0)});
  EXPECT_EQ(MessageOf(r.status()), "indices[4321] = 7 is not in [0, 7)");
}

TEST(InvertPermutation, OnThreads) {
  std::vector<int64_t> x(100000);
  std::iota(x.begin(), x.end(), 0);
  std::shuffle(x.begin(), x.end(), std::mt19937(9));
  const AttrMap attrs = TypesOf({{"T", DType::kInt64}});
  auto y = Runner(4).Run(kInvert, attrs, {Make<int64_t>({100000}, x)});
  ASSERT_TRUE(y.ok()) << y.status();
  for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ((*y)[0].data<int64_t>()[x[i]], static_cast<int64_t>(i));
  x[70000] = x[123];
  y = Runner(4).Run(kInvert, attrs, {Make<int64_t>({100000}, x)});
  EXPECT_EQ(MessageOf(y.status()), absl::StrCat("x[70000] = ", x[123], " repeats x[123]"));
}

TEST(Gather, BatchDimensionsOutOfRange) {
  const Tensor params = Make<float>({2, 3}, Random(6, 1));
  for (int b : {10, -10, 2}) {
    auto r = Runner().Run(
        kGather, GatherAttrs(DType::kInt32, b), {params, Make<int32_t>({2, 1}, {0, 1}), Tensor::Scalar<int32_t>(1)});
    EXPECT_EQ(r.status().code(), absl::StatusCode::kInvalidArgument) << b;
  }
  auto r = Runner().Run(kGather, GatherAttrs(DType::kInt32, 1),
                        {Make<float>({0, 3}, {}), Make<int32_t>({0, 1}, {}), Tensor::Scalar<int32_t>(1)});
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_EQ((*r)[0].shape().ToString(), "[0,1]");
}

TEST(Gather, AlongAnAxisInBatches) {
  // params[b, l, i] = 100 b + 10 l + i
  std::vector<float> v;
  for (int b = 0; b < 2; ++b) {
    for (int l = 0; l < 3; ++l) {
      for (int i = 0; i < 2; ++i) v.push_back(static_cast<float>(100 * b + 10 * l + i));
    }
  }
  auto r = Runner().Run(kGather, GatherAttrs(DType::kInt32, 1),
                        {Make<float>({2, 3, 2}, v), Make<int32_t>({2, 2}, {2, 0, 1, 1}), Tensor::Scalar<int32_t>(1)});
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_EQ(Values<float>((*r)[0]), (std::vector<float>{20, 21, 0, 1, 110, 111, 110, 111}));
}

TEST(Scatter, AddsRepeatedIndicesAndChecksFirst) {
  const AttrMap attrs = TypesOf({{"T", DType::kFloat}, {"Tindices", DType::kInt32}});
  auto r = Runner().Run(
      kScatterNd, attrs,
      {Make<int32_t>({3, 1}, {2, 0, 2}), Make<float>({3, 2}, {1, 2, 3, 4, 5, 6}), Make<int32_t>({2}, {3, 2})});
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_EQ(Values<float>((*r)[0]), (std::vector<float>{3, 4, 0, 0, 6, 8}));
  r = Runner().Run(
      kScatterNd, attrs, {Make<int32_t>({1, 2}, {0, 2}), Make<float>({1}, {1}), Make<int32_t>({2}, {3, 2})});
  EXPECT_EQ(MessageOf(r.status()), "indices[0,1] = 2 is not in [0, 2)");
  // As many elements as fit, but another shape.
  r = Runner().Run(
      kScatterNd, attrs, {Make<int32_t>({1, 1}, {0}), Make<float>({5}, {1, 2, 3, 4, 5}), Make<int32_t>({1}, {1})});
  EXPECT_EQ(r.status().code(), absl::StatusCode::kInvalidArgument);
}

// Wide, middling and narrow rows are split over tasks in three ways.
TEST(UnsortedSegmentSum, SameBitsOnAnyNumberOfThreads) {
  for (const auto& [width, ascending] :
       {std::pair<int64_t, bool>{1, false}, {3, false}, {40, false}, {40, true}, {80, false}, {300, false}}) {
    const int64_t n = 200000 / width, segments = 50;
    std::mt19937 gen(7);
    std::vector<int32_t> ids(static_cast<size_t>(n));
    for (int32_t& id : ids)
      id = ascending ? static_cast<int32_t>(gen() % segments) : static_cast<int32_t>(gen() % (segments + 1)) - 1;
    if (ascending) std::sort(ids.begin(), ids.end());
    const std::vector<Tensor> in = {
        Make<float>({n, width}, Random(n * width, 3)), Make<int32_t>({n}, ids), Tensor::Scalar<int32_t>(segments)};
    const AttrMap attrs = TypesOf({{"T", DType::kFloat}, {"Tindices", DType::kInt32}});
    auto one = Runner(1).Run(kUnsortedSum, attrs, in);
    auto four = Runner(4).Run(kUnsortedSum, attrs, in);
    ASSERT_TRUE(one.ok() && four.ok());
    std::vector<double> want(static_cast<size_t>(segments * width));
    for (int64_t i = 0; i < n; ++i) {
      const int32_t id = ids[static_cast<size_t>(i)];
      for (int64_t k = 0; id >= 0 && k < width; ++k) {
        want[static_cast<size_t>(id * width + k)] += static_cast<double>(in[0].data<float>()[i * width + k]);
      }
    }
    EXPECT_EQ(std::memcmp((*one)[0].raw(), (*four)[0].raw(), (*one)[0].TotalBytes()), 0) << width;
    for (size_t i = 0; i < want.size(); ++i) {
      ASSERT_NEAR((*one)[0].data<float>()[i], want[i], 1e-5 * static_cast<double>(n)) << width;
    }
  }
}

TEST(UnsortedSegmentSum, HalfTypesAreSummedInFloat) {
  const int64_t n = 4096;
  std::vector<Half> ones(static_cast<size_t>(n), Half(1.0f));
  auto r = Runner().Run(
      kUnsortedSum, TypesOf({{"T", DType::kHalf}, {"Tindices", DType::kInt32}}),
      {Make<Half>({n}, ones), Make<int32_t>({n}, std::vector<int32_t>(static_cast<size_t>(n))),
       Tensor::Scalar<int32_t>(1)});
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_EQ(static_cast<float>((*r)[0].data<Half>()[0]), 4096.0f);  // a running half sum stops at 2048
}

TEST(SegmentSum, SameBitsOnAnyNumberOfThreads) {
  for (int64_t width : {1, 17, 600}) {
    const int64_t n = 300000 / width;
    std::vector<int64_t> ids(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) ids[static_cast<size_t>(i)] = i * i / 40000;
    const std::vector<Tensor> in = {Make<float>({n, width}, Random(n * width, 5)), Make<int64_t>({n}, ids)};
    const AttrMap attrs = TypesOf({{"T", DType::kFloat}, {"Tindices", DType::kInt64}});
    auto one = Runner(1).Run(kSegmentSum, attrs, in);
    auto four = Runner(4).Run(kSegmentSum, attrs, in);
    ASSERT_TRUE(one.ok() && four.ok());
    EXPECT_EQ(std::memcmp((*one)[0].raw(), (*four)[0].raw(), (*one)[0].TotalBytes()), 0) << width;
  }
}

TEST(SegmentSum, RefusesBadIds) {
  const AttrMap attrs = TypesOf({{"T", DType::kFloat}, {"Tindices", DType::kInt64}});
  for (const Ints& ids : {Ints{0, 2, 1}, Ints{-1, 0, 1}, Ints{0, 0, std::numeric_limits<int64_t>::max()},
                          Ints{0, 1, std::numeric_limits<int64_t>::min()}}) {
    auto r = Runner().Run(kSegmentSum, attrs, {Make<float>({3}, {1, 2, 3}), Make<int64_t>({3}, ids)});
    EXPECT_EQ(r.status().code(), absl::StatusCode::kInvalidArgument) << ids[2];
  }
  auto r = Runner().Run(kSegmentSum, attrs, {Make<float>({1}, {1}), Make<int64_t>({1}, {int64_t{1} << 61})});
  EXPECT_FALSE(r.ok());
}

TEST(Range, LongAndEndlessRangesAreErrors) {
  auto run = [](auto start, auto limit, auto delta) {
    using T = decltype(start);
    return Runner()
        .Run(kRange, TypesOf({{"Tidx", DTypeOf<T>::value}}),
             {Tensor::Scalar<T>(start), Tensor::Scalar<T>(limit), Tensor::Scalar<T>(delta)})
        .status();
  };
  const int64_t most = std::numeric_limits<int64_t>::max(), least = std::numeric_limits<int64_t>::min();
  EXPECT_FALSE(run(int64_t{0}, most, int64_t{1}).ok());
  EXPECT_FALSE(run(least, most, int64_t{1}).ok());
  EXPECT_FALSE(run(int64_t{0}, int64_t{5}, int64_t{0}).ok());
  EXPECT_FALSE(run(-1e38f, 1.0f, 1.0f).ok());
  EXPECT_FALSE(run(0.0f, NAN, 1.0f).ok());
  EXPECT_FALSE(run(0.0f, std::numeric_limits<float>::infinity(), 1.0f).ok());
  EXPECT_TRUE(run(least, most, int64_t{1} << 62).ok());
  EXPECT_TRUE(run(most, least, least).ok());
}

TEST(SpaceToBatch, UndoneByBatchToSpace) {
  const AttrMap attrs = TypesOf({{"T", DType::kFloat}});
  const Tensor in = Make<float>({2, 3, 5, 2}, Random(60, 9)), block = Make<int32_t>({2}, {2, 3});
  const Tensor edges = Make<int32_t>({2, 2}, {1, 2, 0, 1});
  auto moved = Runner().Run(kSpaceToBatch, attrs, {in, block, edges});
  ASSERT_TRUE(moved.ok()) << moved.status();
  EXPECT_EQ((*moved)[0].shape().ToString(), "[12,3,2,2]");
  auto back = Runner().Run(kBatchToSpace, attrs, {(*moved)[0], block, edges});
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(Values<float>((*back)[0]), Values<float>(in));
}

// As large as is written past the caches, with edges that make the boxes of offsets differ.
TEST(SpaceToBatch, LargeOnesToo) {
  const AttrMap attrs = TypesOf({{"T", DType::kFloat}});
  const Ints dims = {2, 131, 70, 128};
  const std::vector<float> values = Random(2 * 131 * 70 * 128, 9);
  const Tensor in = Make<float>(dims, values), block = Make<int32_t>({2}, {2, 2});
  const Tensor edges = Make<int32_t>({2, 2}, {1, 2, 1, 1});
  auto moved = Runner(4).Run(kSpaceToBatch, attrs, {in, block, edges});
  ASSERT_TRUE(moved.ok()) << moved.status();
  ASSERT_EQ((*moved)[0].shape().ToString(), "[8,67,36,128]");
  const float* const got = (*moved)[0].data<float>();
  for (int64_t i = 0; i < (*moved)[0].num_elements(); ++i) {
    const int64_t c = i % 128, x = i / 128 % 36, y = i / 128 / 36 % 67, entry = i / 128 / 36 / 67;
    const int64_t bx = 2 * x + entry / 2 % 2 - 1, by = 2 * y + entry / 4 - 1, b = entry % 2;
    const bool inside = bx >= 0 && bx < 70 && by >= 0 && by < 131;
    ASSERT_EQ(got[i], inside ? values[static_cast<size_t>(((b * 131 + by) * 70 + bx) * 128 + c)] : 0.0f) << i;
  }
  auto back = Runner(4).Run(kBatchToSpace, attrs, {(*moved)[0], block, edges});
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(Values<float>((*back)[0]), values);
}

TEST(SpaceToBatch, RefusesHostileBlocks) {
  const AttrMap attrs = TypesOf({{"T", DType::kFloat}});
  const Tensor in = Make<float>({10, 19, 22}, Random(4180, 9));
  for (int32_t bad : {-1879048192, 0, -1, std::numeric_limits<int32_t>::max()}) {
    auto r =
        Runner().Run(kSpaceToBatch, attrs, {in, Make<int32_t>({2}, {bad, bad}), Make<int32_t>({2, 2}, {0, 0, 0, 0})});
    EXPECT_EQ(r.status().code(), absl::StatusCode::kInvalidArgument) << bad;
  }
}

TEST(DynamicStitch, RefusesNegativeIndicesAndZeroesGaps) {
  AttrMap attrs = TypesOf({{"T", DType::kFloat}});
  attrs.emplace("N", 1);
  auto r =
      Runner().Run(kStitch, attrs, {Make<int32_t>({1}, {static_cast<int32_t>(0xdeadbeef)}), Make<float>({1}, {1})});
  EXPECT_EQ(r.status().code(), absl::StatusCode::kInvalidArgument);
  r = Runner().Run(kStitch, attrs, {Make<int32_t>({3}, {3, 0, 3}), Make<float>({3}, {1, 2, 3})});
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_EQ(Values<float>((*r)[0]), (std::vector<float>{2, 0, 0, 3}));
}

TEST(DynamicStitch, TakesTheLastOfSlicesOfOneNumber) {
  constexpr int64_t kRows = 700, kWidth = 5;
  std::mt19937 gen(7);
  AttrMap attrs = TypesOf({{"T", DType::kFloat}});
  attrs.emplace("N", 3);
  std::vector<Tensor> ids, inputs;
  std::vector<float> want(kRows * kWidth);
  for (uint32_t i = 0; i < 3; ++i) {
    std::vector<int32_t> rows(400);
    for (int32_t& r : rows) r = static_cast<int32_t>(gen() % (kRows - 1));
    if (i == 1) rows.back() = kRows - 1;
    const std::vector<float> data = Random(400 * kWidth, i);
    for (size_t k = 0; k < rows.size(); ++k) {
      std::copy_n(data.begin() + static_cast<std::ptrdiff_t>(k) * kWidth, kWidth, want.begin() + rows[k] * kWidth);
    }
    ids.push_back(Make<int32_t>({20, 20}, rows));
    inputs.push_back(Make<float>({20, 20, kWidth}, data));
  }
  ids.insert(ids.end(), inputs.begin(), inputs.end());
  for (int threads : {1, 4}) {
    auto r = Runner(threads).Run(kStitch, attrs, ids);
    ASSERT_TRUE(r.ok()) << r.status();
    EXPECT_EQ(Values<float>((*r)[0]), want);
  }
}

// Chunks of slices are moved side by side: the order within a partition is that of the input all the same.
TEST(DynamicPartition, KeepsTheOrder) {
  for (const int64_t n : {0, 1, 4096, 4097, 30000}) {
    for (const int64_t width : {1, 3}) {
      const int count = n == 30000 ? 1500 : 5;
      std::mt19937 gen(8);
      std::vector<int32_t> where(static_cast<size_t>(n));
      for (int32_t& w : where) w = static_cast<int32_t>(gen() % static_cast<uint32_t>(count));
      const std::vector<float> data = Random(n * width, 5);
      std::vector<std::vector<float>> want(static_cast<size_t>(count));
      for (int64_t i = 0; i < n * width; ++i) {
        want[static_cast<size_t>(where[static_cast<size_t>(i / width)])].push_back(data[static_cast<size_t>(i)]);
      }
      AttrMap attrs = TypesOf({{"T", DType::kFloat}});
      attrs.emplace("num_partitions", count);
      for (int threads : {1, 4}) {
        auto r = Runner(threads).Run(kPartition, attrs, {Make<float>({n, width}, data), Make<int32_t>({n}, where)});
        ASSERT_TRUE(r.ok()) << r.status();
        for (size_t k = 0; k < want.size(); ++k) ASSERT_EQ(Values<float>((*r)[k]), want[k]) << n << " " << k;
      }
    }
  }
}

TEST(ReverseSequence, RefusesDimensionsOutsideAndWrongLengths) {
  const Tensor in = Make<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  auto run = [&](int seq, int batch, const Tensor& lengths) {
    AttrMap attrs = TypesOf({{"T", DType::kFloat}, {"Tlen", DType::kInt64}});
    attrs.emplace("seq_dim", seq);
    attrs.emplace("batch_dim", batch);
    return Runner().Run(kReverse, attrs, {in, lengths});
  };
  const Tensor lengths = Make<int64_t>({2}, {3, 2});
  for (const auto& [seq, batch] : {std::pair(-10, 0), {-2, 0}, {1, -10}, {0, 0}, {2, 0}}) {
    EXPECT_EQ(run(seq, batch, lengths).status().code(), absl::StatusCode::kInvalidArgument) << seq << " " << batch;
  }
  EXPECT_FALSE(run(1, 0, Make<int64_t>({3}, {1, 1, 1})).ok());
  EXPECT_FALSE(run(1, 0, Make<int64_t>({2}, {4, 1})).ok());
  EXPECT_EQ(Values<float>((*run(1, 0, lengths))[0]), (std::vector<float>{3, 2, 1, 5, 4, 6}));
}

// Many keys are dealt out by their hash, and numbered in the order of their first occurrence all the same.
TEST(Unique, ManyKeys) {
  for (const int64_t n : {32767, 32768, 200000}) {
    std::mt19937 gen(9);
    std::vector<float> x(static_cast<size_t>(n));
    for (float& v : x) v = static_cast<float>(gen() % 50000);
    x[17] = x[20000] = NAN;
    x[18] = 0.0f, x[30000] = -0.0f;
    std::map<float, int32_t> numbers;
    std::vector<float> values;
    std::vector<int32_t> places;
    for (const float v : x) {
      const auto fresh = static_cast<int32_t>(values.size());
      const int32_t number = std::isnan(v) ? fresh : numbers.emplace(v, fresh).first->second;
      if (number == fresh) values.push_back(v);
      places.push_back(number);
    }
    for (int threads : {1, 4}) {
      auto r = Runner(threads).Run(kUnique, TypesOf({{"T", DType::kFloat}}), {Make<float>({n}, x)});
      ASSERT_TRUE(r.ok()) << r.status();
      ASSERT_EQ((*r)[0].num_elements(), static_cast<int64_t>(values.size()));
      EXPECT_EQ(std::memcmp((*r)[0].raw(), values.data(), values.size() * sizeof(float)), 0);
      EXPECT_EQ(Values<int32_t>((*r)[1]), places);
    }
  }
}

TEST(ListDiff, OfManyKeys) {
  std::mt19937 gen(10);
  std::vector<int64_t> x(70000), y(50000), want;
  for (int64_t& v : x) v = static_cast<int64_t>(gen() % 100000) << 32;
  for (int64_t& v : y) v = static_cast<int64_t>(gen() % 100000) << 32;
  const std::set<int64_t> excluded(y.begin(), y.end());
  std::vector<int32_t> places;
  for (size_t i = 0; i < x.size(); ++i) {
    if (excluded.count(x[i]) > 0) continue;
    want.push_back(x[i]);
    places.push_back(static_cast<int32_t>(i));
  }
  for (int threads : {1, 4}) {
    auto r = Runner(threads).Run(
        "ListDiff(x:T, y:T) -> (out:T, idx:out_idx) | T:type; out_idx in IDX=i32", TypesOf({{"T", DType::kInt64}}),
        {Make<int64_t>({70000}, x), Make<int64_t>({50000}, y)});
    ASSERT_TRUE(r.ok()) << r.status();
    EXPECT_EQ(Values<int64_t>((*r)[0]), want);
    EXPECT_EQ(Values<int32_t>((*r)[1]), places);
  }
}

TEST(Unique, OneZeroAndEveryNanOnItsOwn) {
  auto r = Runner().Run(kUnique, TypesOf({{"T", DType::kFloat}}), {Make<float>({5}, {NAN, 0.0f, -0.0f, NAN, 1.0f})});
  ASSERT_TRUE(r.ok()) << r.status();
  EXPECT_EQ(Values<int32_t>((*r)[1]), (std::vector<int32_t>{0, 1, 1, 2, 3}));
}

// Close together, a little too far apart for a table, and as far as can be.
TEST(Unique, IntegersOfAnyDistance) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max(), kLeast = std::numeric_limits<int64_t>::min();
  for (const Ints& x : {Ints{-5, 3, -5, -260, 3}, Ints{-5, 3, -5, 2000, 3}, Ints{kMost, kLeast, kMost, 0, kLeast},
                        Ints{kMost, kMost - 200, kMost, kMost - 1, kMost - 200}}) {
    auto r = Runner().Run(kUnique, TypesOf({{"T", DType::kInt64}}), {Make<int64_t>({5}, x)});
    ASSERT_TRUE(r.ok()) << r.status();
    EXPECT_EQ(Values<int64_t>((*r)[0]), (Ints{x[0], x[1], x[3]}));
    EXPECT_EQ(Values<int32_t>((*r)[1]), (std::vector<int32_t>{0, 1, 0, 2, 1}));
  }
}

TEST(Where, ManyBlocksOnAnyNumberOfThreads) {
  const int64_t n = 300000;
  std::vector<uint8_t> v(static_cast<size_t>(n));
  std::mt19937 gen(1);
  for (uint8_t& x : v) x = gen() % 3 == 0;
  const std::vector<Tensor> in = {Make<uint8_t>({n / 500, 5, 100}, v)};
  auto r = Runner(4).Run(kWhere, TypesOf({{"T", DType::kUInt8}}), in);
  ASSERT_TRUE(r.ok()) << r.status();
  const int64_t* row = (*r)[0].data<int64_t>();
  for (int64_t i = 0; i < n; ++i) {
    if (!v[static_cast<size_t>(i)]) continue;
    ASSERT_EQ((row[0] * 5 + row[1]) * 100 + row[2], i);
    row += 3;
  }
  EXPECT_EQ(row - (*r)[0].data<int64_t>(), (*r)[0].num_elements());
}

TEST(IndexKernels, RaggedRowsAreChecked) {
  using Names = std::vector<std::string>;
  const auto run = [](const Names& types, std::vector<Tensor> partitions, const std::vector<int>& shape = {-1, -1},
                      const Ints& values = {3}, const Ints& filler = {}) {
    std::vector<Tensor> inputs = {Make<int32_t>({static_cast<int64_t>(shape.size())}, shape)};
    for (const Ints& dims : {values, filler}) {
      const auto n = static_cast<size_t>(Shape::Make(dims)->num_elements());
      inputs.push_back(Make<float>(dims, std::vector<float>(n, 1)));
    }
    AttrMap attrs = {
        {"num_row_partition_tensors", static_cast<int64_t>(partitions.size())}, {"row_partition_types", types}};
    for (Tensor& p : partitions) inputs.push_back(std::move(p));
    return Runner().Run(kRagged, std::move(attrs), std::move(inputs)).status().code();
  };
  const auto vector = [](const Ints& v) { return Make<int64_t>({static_cast<int64_t>(v.size())}, v); };
  const auto scalar = [](int64_t v) { return Make<int64_t>({}, {v}); };
  const Names splits = {"ROW_SPLITS"}, ids = {"FIRST_DIM_SIZE", "VALUE_ROWIDS"};
  EXPECT_EQ(run(splits, {vector({0, 1, 3})}), absl::StatusCode::kOk);
  EXPECT_EQ(run(ids, {scalar(2), vector({0, 1, 1})}), absl::StatusCode::kOk);
  for (const Ints& bad : {Ints{}, Ints{1, 3}, Ints{0, 2}, Ints{0, 4}, Ints{0, 2, 1, 3}, Ints{0, -1, 3}}) {
    EXPECT_EQ(run(splits, {vector(bad)}), absl::StatusCode::kInvalidArgument);
  }
  for (const Ints& bad : {Ints{0, 1}, Ints{0, 1, 2}, Ints{-1, 0, 1}, Ints{1, 0, 1}}) {
    EXPECT_EQ(run(ids, {scalar(2), vector(bad)}), absl::StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(run(ids, {scalar(-1), vector({0, 1, 1})}), absl::StatusCode::kInvalidArgument);
  // Rows and splits of more values than memory has: cut off, or refused, without a walk over them.
  constexpr int64_t kMany = int64_t{1} << 60;
  EXPECT_EQ(run(ids, {scalar(kMany), vector({0, 1, kMany - 1})}, {2, 2}), absl::StatusCode::kOk);
  EXPECT_NE(run(ids, {scalar(kMany), vector({0, 1, 1})}), absl::StatusCode::kOk);
  const Names nested = {"ROW_SPLITS", "VALUE_ROWIDS"};
  EXPECT_NE(run(nested, {vector({0, kMany}), vector({0, 1, 1})}, {1, 2, 2}), absl::StatusCode::kOk);
  EXPECT_EQ(run({"VALUE_ROWIDS"}, {vector({0, 1, 1})}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(run({"ROW_LENGTHS"}, {vector({1, 2})}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(run({}, {vector({0, 3})}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(run(splits, {vector({0, 1, 3})}, {-1}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(run(splits, {vector({0, 1, 3})}, {-2, 1}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(run(splits, {vector({0, 1, 3})}, {-1, -1, 5}, {3, 4}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(run(splits, {vector({0, 1, 3})}, {-1, -1, 4}, {3, 4}, {3}), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace millrace
