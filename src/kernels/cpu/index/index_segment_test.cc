// SPDX-License-Identifier: Apache-2.0
// Segments of rows of every width that is gone through in another way.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "kernels/cpu/engine/kernel_runner.h"
#include "kernels/cpu/kernel_list.h"

namespace millrace {
namespace {

struct Reduction {
  const char* name;
  const char* types;
  double empty;
  uint32_t values;  // of an element, from 0 on: results are exact in every type
  std::function<double(double, double)> combine;
};

template <typename T>
Tensor Make(std::vector<int64_t> dims, const std::vector<T>& v) {
  Tensor t = *Tensor::Make(DTypeOf<T>::value, *Shape::Make(dims));
  std::copy(v.begin(), v.end(), t.mutable_data<T>());
  return t;
}

StatusOr<std::vector<Tensor>> Segments(const char* name, const char* types, const Tensor& data, const Tensor& ids) {
  static KernelRunner runner(RegisterIndexKernels, 2);
  AttrMap attrs;
  attrs.emplace("T", data.dtype());
  attrs.emplace("Tindices", ids.dtype());
  return runner.Run(
      absl::StrCat(name, "(data:T, segment_ids:Tindices) -> (output:T) | T in ", types, "; Tindices in IDX"), attrs,
      {data, ids});
}

// Segments of one row, of few, of more than a block of ids or rows, and of none.
template <typename T>
void Check(const Reduction& reduction) {
  const std::vector<int> lengths = {1, 3, 0, 2, 17, 1, 40, 5, 0, 0, 130, 8, 64, 1};
  std::vector<int32_t> ids;
  for (size_t s = 0; s < lengths.size(); ++s)
    ids.insert(ids.end(), static_cast<size_t>(lengths[s]), static_cast<int32_t>(s));
  const std::vector<int64_t> wide_ids(ids.begin(), ids.end());
  const auto n = static_cast<int64_t>(ids.size());
  for (const int64_t width : {1, 2, 3, 4, 5, 7, 8, 9, 16, 20, 64, 67, 515}) {
    std::mt19937 gen(11);
    std::vector<float> values(static_cast<size_t>(n * width));
    for (float& x : values) x = static_cast<float>(gen() % reduction.values);
    std::vector<double> want(lengths.size() * static_cast<size_t>(width), reduction.empty);
    for (int64_t i = 0; i < n; ++i) {
      const size_t row = static_cast<size_t>(i);
      const bool fresh = i == 0 || ids[row] != ids[row - 1];
      for (int64_t k = 0; k < width; ++k) {
        double& w = want[static_cast<size_t>(ids[row] * width + k)];
        const auto x = static_cast<double>(values[static_cast<size_t>(i * width + k)]);
        w = fresh ? x : reduction.combine(w, x);
      }
    }
    std::vector<T> data;
    for (const float x : values) data.push_back(static_cast<T>(x));
    for (const Tensor& places : {Make<int32_t>({n}, ids), Make<int64_t>({n}, wide_ids)}) {
      const auto r = Segments(reduction.name, reduction.types, Make<T>({n, width}, data), places);
      ASSERT_TRUE(r.ok()) << r.status();
      const Tensor& result = (*r)[0];
      ASSERT_EQ(result.num_elements(), static_cast<int64_t>(want.size()));
      for (size_t i = 0; i < want.size(); ++i) {
        const T expected = static_cast<T>(static_cast<float>(want[i]));
        ASSERT_EQ(std::memcmp(result.template data<T>() + i, &expected, sizeof(T)), 0)
            << reduction.name << " of " << DTypeName(DTypeOf<T>::value) << ", width " << width << ", at " << i;
      }
    }
  }
}

TEST(Segment, RowsOfAnyWidth) {
  const auto add = [](double a, double b) { return a + b; };
  const auto larger = [](double a, double b) { return std::max(a, b); };
  const auto smaller = [](double a, double b) { return std::min(a, b); };
  const auto times = [](double a, double b) { return a * b; };
  for (const Reduction& r :
       {Reduction{"SegmentSum", "NUM", 0, 2, add}, Reduction{"SegmentProd", "NUM", 1, 2, times},
        Reduction{"SegmentMax", "REAL", 0, 100, larger}, Reduction{"SegmentMin", "REAL", 0, 100, smaller}}) {
    Check<float>(r);
    Check<double>(r);
    Check<Half>(r);
    Check<BFloat16>(r);
    Check<int32_t>(r);
    Check<int64_t>(r);
    Check<uint8_t>(r);
  }
}

// One NaN among numbers, wherever it stands, is the result; infinities are numbers; the sign of zeros is kept.
TEST(Segment, NaNInfinityAndZero) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  for (const int64_t width : {1, 3, 20}) {
    for (int64_t at = 0; at < 11; ++at) {
      std::vector<float> data(static_cast<size_t>(11 * width), 1.0f);
      for (int64_t k = 0; k < width; ++k) data[static_cast<size_t>(at * width + k)] = nan;
      const Tensor ids = Make<int32_t>({11}, std::vector<int32_t>(11));
      for (const char* name : {"SegmentMax", "SegmentMin"}) {
        const auto r = Segments(name, "REAL", Make<float>({11, width}, data), ids);
        ASSERT_TRUE(r.ok()) << r.status();
        for (int64_t k = 0; k < width; ++k) EXPECT_TRUE(std::isnan((*r)[0].data<float>()[k])) << name << " " << at;
      }
    }
    const Tensor ids = Make<int32_t>({3}, {0, 0, 1});
    const auto fill = [&](float a, float b, float c) {
      std::vector<float> data;
      for (const float x : {a, b, c}) data.insert(data.end(), static_cast<size_t>(width), x);
      return Make<float>({3, width}, data);
    };
    EXPECT_EQ((*Segments("SegmentMax", "REAL", fill(-inf, -inf, 1), ids))[0].data<float>()[0], -inf);
    EXPECT_EQ((*Segments("SegmentMin", "REAL", fill(inf, inf, 1), ids))[0].data<float>()[0], inf);
    const auto sum = Segments("SegmentSum", "NUM", fill(-0.0f, -0.0f, -0.0f), ids);
    EXPECT_TRUE(std::signbit((*sum)[0].data<float>()[0]) && std::signbit((*sum)[0].data<float>()[width]));
  }
}

}  // namespace
}  // namespace millrace
