// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/nn/nn_simd.h"

#include <type_traits>

#include "kernels/cpu/engine/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/nn/nn_simd.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace millrace {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using Full = hn::ScalableTag<float>;
using One = hn::CappedTag<float, 1>;

// Calls fn(tag, i) for whole vectors of [0, n), then for single elements.
template <class Fn>
HWY_INLINE void ForEach(size_t n, Fn fn) {
  const Full d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) fn(d, i);
  for (; i < n; ++i) fn(One(), i);
}

// Calls fn(tag, c, number) for groups of four vectors of columns, which make reading row by row sequential, then for
// single vectors and single columns; `number` says how many vectors of tag lie at c.
template <class Fn>
HWY_INLINE void ForColumns(size_t cols, Fn fn) {
  const Full d;
  const size_t lanes = hn::Lanes(d);
  size_t c = 0;
  for (; c + 4 * lanes <= cols; c += 4 * lanes) fn(d, c, std::integral_constant<size_t, 4>());
  for (; c + lanes <= cols; c += lanes) fn(d, c, std::integral_constant<size_t, 1>());
  for (; c < cols; ++c) fn(One(), c, std::integral_constant<size_t, 1>());
}

void AddRowsT(const float* x, size_t rows, size_t cols, float* sum) {
  ForColumns(cols, [&](auto d, size_t c, auto number) {
    const size_t lanes = hn::Lanes(d);
    hn::Vec<decltype(d)> s[4];
    for (size_t j = 0; j < number; ++j) s[j] = hn::LoadU(d, sum + c + j * lanes);
    for (size_t r = 0; r < rows; ++r) {
      for (size_t j = 0; j < number; ++j) s[j] = hn::Add(s[j], hn::LoadU(d, x + r * cols + c + j * lanes));
    }
    for (size_t j = 0; j < number; ++j) hn::StoreU(s[j], d, sum + c + j * lanes);
  });
}

void AddMomentsT(const float* x, size_t rows, size_t cols, const float* shift, float* sum, float* squares) {
  ForColumns(cols, [&](auto d, size_t c, auto number) {
    const size_t lanes = hn::Lanes(d);
    hn::Vec<decltype(d)> s[4], q[4], k[4];
    for (size_t j = 0; j < number; ++j) {
      k[j] = hn::LoadU(d, shift + c + j * lanes);
      s[j] = hn::LoadU(d, sum + c + j * lanes);
      q[j] = hn::LoadU(d, squares + c + j * lanes);
    }
    for (size_t r = 0; r < rows; ++r) {
      for (size_t j = 0; j < number; ++j) {
        const auto e = hn::Sub(hn::LoadU(d, x + r * cols + c + j * lanes), k[j]);
        s[j] = hn::Add(s[j], e);
        q[j] = hn::MulAdd(e, e, q[j]);
      }
    }
    for (size_t j = 0; j < number; ++j) {
      hn::StoreU(s[j], d, sum + c + j * lanes);
      hn::StoreU(q[j], d, squares + c + j * lanes);
    }
  });
}

void AddDotsT(const float* g, const float* x, size_t rows, size_t cols, const float* shift, float* sum, float* dot) {
  ForColumns(cols, [&](auto d, size_t c, auto number) {
    const size_t lanes = hn::Lanes(d);
    hn::Vec<decltype(d)> s[4], q[4], k[4];
    for (size_t j = 0; j < number; ++j) {
      k[j] = hn::LoadU(d, shift + c + j * lanes);
      s[j] = hn::LoadU(d, sum + c + j * lanes);
      q[j] = hn::LoadU(d, dot + c + j * lanes);
    }
    for (size_t r = 0; r < rows; ++r) {
      for (size_t j = 0; j < number; ++j) {
        const size_t at = r * cols + c + j * lanes;
        const auto v = hn::LoadU(d, g + at);
        s[j] = hn::Add(s[j], v);
        q[j] = hn::MulAdd(v, hn::Sub(hn::LoadU(d, x + at), k[j]), q[j]);
      }
    }
    for (size_t j = 0; j < number; ++j) {
      hn::StoreU(s[j], d, sum + c + j * lanes);
      hn::StoreU(q[j], d, dot + c + j * lanes);
    }
  });
}

void ScaleShiftT(const float* x, size_t rows, size_t cols, const float* m, const float* a, const float* b, float* y) {
  for (size_t r = 0; r < rows; ++r, x += cols, y += cols) {
    ForEach(cols, [&](auto d, size_t c) {
      const auto e = hn::Sub(hn::LoadU(d, x + c), hn::LoadU(d, m + c));
      hn::StoreU(hn::MulAdd(e, hn::LoadU(d, a + c), hn::LoadU(d, b + c)), d, y + c);
    });
  }
}

void ShiftRowsT(const float* x, size_t rows, size_t cols, const float* b, float* y) {
  for (size_t r = 0; r < rows; ++r, x += cols, y += cols) {
    ForEach(cols, [&](auto d, size_t c) { hn::StoreU(hn::Add(hn::LoadU(d, x + c), hn::LoadU(d, b + c)), d, y + c); });
  }
}

void CombineT(const float* g, const float* x, size_t rows, size_t cols, const float* m, const float* a, const float* b,
              const float* k, float* y) {
  for (size_t r = 0; r < rows; ++r, g += cols, x += cols, y += cols) {
    ForEach(cols, [&](auto d, size_t c) {
      const auto e = hn::Sub(hn::LoadU(d, x + c), hn::LoadU(d, m + c));
      const auto t = hn::Mul(e, hn::LoadU(d, b + c));
      const auto f = hn::Sub(hn::LoadU(d, g + c), hn::LoadU(d, k + c));
      hn::StoreU(hn::MulAdd(f, hn::LoadU(d, a + c), t), d, y + c);
    });
  }
}

template <typename T>
HWY_INLINE T SumSquaresOf(const T* x, size_t n) {
  const hn::ScalableTag<T> d;
  const size_t lanes = hn::Lanes(d);
  auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  size_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    const auto a = hn::LoadU(d, x + i), b = hn::LoadU(d, x + i + lanes);
    const auto c = hn::LoadU(d, x + i + 2 * lanes), e = hn::LoadU(d, x + i + 3 * lanes);
    s0 = hn::MulAdd(a, a, s0);
    s1 = hn::MulAdd(b, b, s1);
    s2 = hn::MulAdd(c, c, s2);
    s3 = hn::MulAdd(e, e, s3);
  }
  T total = hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))));
  for (; i < n; ++i) total += x[i] * x[i];
  return total;
}
float SumSquaresF32(const float* x, size_t n) { return SumSquaresOf(x, n); }
double SumSquaresF64(const double* x, size_t n) { return SumSquaresOf(x, n); }

}  // namespace HWY_NAMESPACE
}  // namespace millrace
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace millrace {

HWY_EXPORT(AddRowsT);
HWY_EXPORT(AddMomentsT);
HWY_EXPORT(AddDotsT);
HWY_EXPORT(ScaleShiftT);
HWY_EXPORT(ShiftRowsT);
HWY_EXPORT(CombineT);
HWY_EXPORT(SumSquaresF32);
HWY_EXPORT(SumSquaresF64);

void AddRows(const float* x, size_t rows, size_t cols, float* sum) {
  HWY_DYNAMIC_DISPATCH(AddRowsT)(x, rows, cols, sum);
}
void AddMoments(const float* x, size_t rows, size_t cols, const float* shift, float* sum, float* squares) {
  HWY_DYNAMIC_DISPATCH(AddMomentsT)(x, rows, cols, shift, sum, squares);
}
void AddDots(const float* g, const float* x, size_t rows, size_t cols, const float* shift, float* sum, float* dot) {
  HWY_DYNAMIC_DISPATCH(AddDotsT)(g, x, rows, cols, shift, sum, dot);
}
void ScaleShift(const float* x, size_t rows, size_t cols, const float* m, const float* a, const float* b, float* y) {
  HWY_DYNAMIC_DISPATCH(ScaleShiftT)(x, rows, cols, m, a, b, y);
}
void ShiftRows(const float* x, size_t rows, size_t cols, const float* b, float* y) {
  HWY_DYNAMIC_DISPATCH(ShiftRowsT)(x, rows, cols, b, y);
}
void Combine(const float* g, const float* x, size_t rows, size_t cols, const float* m, const float* a, const float* b,
             const float* k, float* y) {
  HWY_DYNAMIC_DISPATCH(CombineT)(g, x, rows, cols, m, a, b, k, y);
}
float SumSquares(const float* x, size_t n) { return HWY_DYNAMIC_DISPATCH(SumSquaresF32)(x, n); }
double SumSquares(const double* x, size_t n) { return HWY_DYNAMIC_DISPATCH(SumSquaresF64)(x, n); }

}  // namespace millrace
#endif
