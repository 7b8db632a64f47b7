// SPDX-License-Identifier: Apache-2.0
// The engine against the obvious loop nest, for every element size and many nests.
#include "kernels/cpu/engine/strided_copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

namespace millrace {
namespace {

void ReferenceCopy(size_t size, char* dst, const char* src, const CopyDims& dims, size_t depth = 0) {
  if (depth == dims.size()) {
    std::memcpy(dst, src, size);
    return;
  }
  const auto bytes = static_cast<int64_t>(size);
  for (int64_t i = 0; i < dims[depth].size; ++i) {
    ReferenceCopy(
        size, dst + i * dims[depth].dst_stride * bytes, src + i * dims[depth].src_stride * bytes, dims, depth + 1);
  }
}

// Source and destination of `n` elements with `first_*` as origin of the nest.
void Check(DType dtype, const CopyDims& dims, int64_t n_dst, int64_t n_src, int64_t first_dst = 0,
           int64_t first_src = 0) {
  const size_t size = DTypeSize(dtype);
  std::vector<char> src(static_cast<size_t>(n_src) * size);
  std::mt19937 rng(7);
  for (char& c : src) c = static_cast<char>(rng());
  std::vector<char> want(static_cast<size_t>(n_dst) * size, 'x'), got = want;
  const auto origin = [size](std::vector<char>& v, int64_t i) { return v.data() + i * static_cast<int64_t>(size); };
  ReferenceCopy(size, origin(want, first_dst), origin(src, first_src), dims);
  StridedCopy(nullptr, dtype, origin(got, first_dst), origin(src, first_src), dims);
  EXPECT_EQ(std::memcmp(want.data(), got.data(), want.size()), 0) << DTypeName(dtype) << " rank " << dims.size();
}

constexpr DType kBySize[] = {DType::kInt8, DType::kHalf, DType::kFloat, DType::kDouble, DType::kComplex128};

class EveryElementSize : public ::testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(StridedCopy, EveryElementSize, ::testing::ValuesIn(kBySize));

TEST_P(EveryElementSize, RowsOfOneElement) {
  for (int64_t rows : {1, 2, 5, 40}) {
    for (int64_t n : {2, 3, 7, 16, 33, 77, 130, 300}) {
      Check(GetParam(), {{rows, n, 1}, {n, 1, 0}}, rows * n + 100, rows);
    }
  }
}

TEST_P(EveryElementSize, TwoDimensionalTransposition) {
  for (int64_t rows : {1, 2, 3, 4, 5, 7, 16, 17, 33, 70, 300}) {
    for (int64_t columns : {1, 2, 3, 4, 8, 15, 31, 64, 65, 130, 300}) {
      Check(GetParam(), {{rows, columns, 1}, {columns, 1, rows}}, rows * columns, rows * columns);
    }
  }
}

TEST_P(EveryElementSize, AllPermutationsOfFourDimensions) {
  const int64_t sizes[] = {3, 5, 2, 19};
  int64_t in_strides[] = {190, 38, 19, 1};
  int perm[] = {0, 1, 2, 3};
  do {
    CopyDims dims;
    int64_t stride = 570;
    for (int p : perm) {
      stride /= sizes[p];
      dims.push_back({sizes[p], stride, in_strides[p]});
    }
    Check(GetParam(), dims, 570, 570);
  } while (std::next_permutation(perm, perm + 4));
}

TEST_P(EveryElementSize, RunsOfEveryLength) {
  for (int64_t run = 1; run <= 40; ++run) {
    Check(GetParam(), {{5, run + 3, run + 1}, {run, 1, 1}}, 5 * (run + 3), 5 * (run + 1));
  }
}

TEST_P(EveryElementSize, ReversedRepeatedAndScattered) {
  for (int64_t n = 1; n < 200; ++n) Check(GetParam(), {{n, 1, -1}}, n, n, 0, n - 1);
  Check(GetParam(), {{7, 9, -9}, {9, 1, -1}}, 63, 63, 0, 62);
  Check(GetParam(), {{3, 50, 0}, {50, 1, 1}}, 150, 50);
  Check(GetParam(), {{50, 40, 1}, {40, 1, 0}}, 2000, 50);
  Check(GetParam(), {{10, 30, 4}, {4, -7, 1}}, 300, 40, 21, 0);
}

TEST_P(EveryElementSize, LargeEnoughForSeveralUnits) {
  Check(GetParam(), {{200000, 1, 1}}, 200000, 200000);
  Check(GetParam(), {{200000, 1, 0}}, 200000, 1);
  Check(GetParam(), {{3, 70000, 1}, {70000, 1, 3}}, 210000, 210000);
  Check(GetParam(), {{70000, 3, 1}, {3, 1, 70000}}, 210000, 210000);
  Check(GetParam(), {{2, 90000, 90001}, {90000, 1, 1}}, 180000, 180002);
}

// So large that lines go past the caches; with gaps, and with rows that begin in the middle of a line.
TEST_P(EveryElementSize, LargeEnoughForStreams) {
  const int64_t n = (9 << 20) / static_cast<int64_t>(DTypeSize(GetParam()));
  const int64_t rows = 1024, columns = n / rows;
  Check(GetParam(), {{rows, columns, 1}, {columns, 1, rows}}, n, n);
  Check(GetParam(), {{rows, columns + 1, 1}, {columns, 1, rows}}, n + rows, n, 1);
  Check(GetParam(), {{rows, columns + 3, columns}, {columns, 1, 1}}, n + 3 * rows, n, 1);
}

TEST_P(EveryElementSize, FillsEveryLength) {
  for (int64_t n = 1; n <= 700; n += n < 80 ? 1 : 37) Check(GetParam(), {{n, 1, 0}}, n + 2, 1, 1);
}

TEST(StridedCopy, RowsAreJoined) {
  const int64_t widths[][2] = {{77, 130}, {128, 192}, {800, 1500}};  // the last two go past the caches if they are many
  for (const auto& [left, right] : widths) {
    for (int64_t rows : {int64_t{1}, int64_t{7}, (9 << 20) / (left + right)}) {
      const std::vector<char> a(static_cast<size_t>(rows * left), 'a'), b(static_cast<size_t>(rows * right), 'b');
      for (const int64_t offset : {0, 1}) {
        std::vector<char> memory(a.size() + b.size() + 66, 'x');
        char* const begin =
            memory.data() + offset + static_cast<int64_t>(-reinterpret_cast<uintptr_t>(memory.data()) % 64);
        JoinRows(nullptr, begin, rows, {{a.data(), left}, {b.data(), right}});
        for (int64_t r = 0; r < rows; ++r) {
          const char* row = begin + r * (left + right);
          ASSERT_EQ(std::count(row, row + left, 'a'), left) << r;
          ASSERT_EQ(std::count(row + left, row + left + right, 'b'), right) << r;
        }
        EXPECT_EQ(begin[rows * (left + right)], 'x');
      }
    }
  }
}

TEST(StridedCopy, EmptyAndScalarNests) {
  Check(DType::kFloat, {}, 1, 1);
  Check(DType::kFloat, {{0, 1, 1}}, 1, 1);
  Check(DType::kFloat, {{5, 0, 0}, {0, 1, 1}}, 1, 1);
}

TEST(StridedCopy, StringsAreAssigned) {
  const TString long_text("a string that is too long to be kept inline");
  auto in = Tensor::Vector<TString>({TString("a"), long_text, TString("c"), TString("d")});
  auto out = Tensor::Make(DType::kString, *Shape::Make({2, 2}));
  ASSERT_TRUE(out.ok());
  const CopyDim dims[] = {{2, 2, 1}, {2, 1, 2}};
  StridedCopy(nullptr, DType::kString, out->mutable_raw(), in.raw(), dims);
  EXPECT_EQ(out->data<TString>()[0].view(), "a");
  EXPECT_EQ(out->data<TString>()[1].view(), "c");
  EXPECT_EQ(out->data<TString>()[2].view(), long_text.view());
  FillElements(nullptr, DType::kString, out->mutable_raw(), &long_text, 4);
  EXPECT_EQ(out->data<TString>()[3].view(), long_text.view());
}

}  // namespace
}  // namespace millrace
