// SPDX-License-Identifier: Apache-2.0
// exp(x - max) keeps softmax from overflowing; its sum is at least 1, so the logarithm is safe as well. Sums run in
// lanes over short stretches and in double beyond.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/math/math_softmax_rows.h"

#include "kernels/cpu/engine/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/math/math_tiles_softmax.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h
#include "kernels/cpu/elementwise/elementwise_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace millrace {
namespace HWY_NAMESPACE {
namespace {

constexpr int64_t kStretch = 2048;

#if HWY_TARGET == HWY_AVX3
// *out = exp(x - max) and its sum, and the greatest of a row, for floats: as the loops below, but that the processor
// multiplies by powers of two, down to denormals, and masks the last elements.
inline __m512 ExpOfDifference(__m512 x, __m512 max) {
  using F = FloatTraits<float>;
  const __m512 d = _mm512_max_ps(_mm512_set1_ps(F::kExpLow), _mm512_sub_ps(x, max));  // in this order NaN stays
  const __m512 n = _mm512_roundscale_ps(
      _mm512_mul_ps(d, _mm512_set1_ps(1.44269504f)), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  const __m512 r = _mm512_fnmadd_ps(n, _mm512_set1_ps(F::kLn2Low), _mm512_fnmadd_ps(n, _mm512_set1_ps(F::kLn2High), d));
  constexpr Reciprocals<float> kSeries(false);
  __m512 p = _mm512_set1_ps(kSeries.value[F::kExpTerms]);
#pragma GCC unroll 8
  for (int k = F::kExpTerms - 1; k >= 2; --k) p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(kSeries.value[k]));
  const __m512 y = _mm512_add_ps(_mm512_set1_ps(1.0f), _mm512_fmadd_ps(_mm512_mul_ps(r, r), p, r));
  return _mm512_scalef_ps(y, n);
}
inline __mmask16 FirstOf16(int64_t n) { return static_cast<__mmask16>(n >= 16 ? 0xffff : (1 << n) - 1); }

inline float MaxOfFloats(const float* x, int64_t n) {
  __m512 a = _mm512_set1_ps(-std::numeric_limits<float>::infinity()), b = a;
  int64_t i = 0;
  for (; i + 32 <= n; i += 32) {
    a = _mm512_max_ps(_mm512_loadu_ps(x + i), a);
    b = _mm512_max_ps(_mm512_loadu_ps(x + i + 16), b);
  }
  for (; i < n; i += 16) {
    const __mmask16 mask = FirstOf16(n - i);
    a = _mm512_mask_max_ps(a, mask, _mm512_maskz_loadu_ps(mask, x + i), a);
  }
  return _mm512_reduce_max_ps(_mm512_max_ps(a, b));
}

inline double ExpsOfFloats(const float* x, float max, int64_t n, float* out) {
  const __m512 m = _mm512_set1_ps(max);
  double sum = 0;
  for (int64_t first = 0; first < n; first += kStretch) {
    const int64_t end = std::min(first + kStretch, n);
    __m512 a = _mm512_setzero_ps(), b = a;
    int64_t i = first;
    for (; i + 32 <= end; i += 32) {
      const __m512 e = ExpOfDifference(_mm512_loadu_ps(x + i), m), f = ExpOfDifference(_mm512_loadu_ps(x + i + 16), m);
      _mm512_storeu_ps(out + i, e);
      _mm512_storeu_ps(out + i + 16, f);
      a = _mm512_add_ps(a, e);
      b = _mm512_add_ps(b, f);
    }
    for (; i < end; i += 16) {
      const __mmask16 mask = FirstOf16(end - i);
      const __m512 e = ExpOfDifference(_mm512_maskz_loadu_ps(mask, x + i), m);
      _mm512_mask_storeu_ps(out + i, mask, e);
      a = _mm512_mask_add_ps(a, mask, a, e);
    }
    sum += static_cast<double>(_mm512_reduce_add_ps(_mm512_add_ps(a, b)));
  }
  return sum;
}
#endif

template <typename T>
struct Rows {
  static constexpr int kLanes = static_cast<int>(128 / sizeof(T));

  static T Max(const T* x, int64_t n) {
#if HWY_TARGET == HWY_AVX3
    if constexpr (sizeof(T) == sizeof(float)) return MaxOfFloats(x, n);
#endif
    T lanes[kLanes];
    for (int l = 0; l < kLanes; ++l) lanes[l] = -std::numeric_limits<T>::infinity();
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
      for (int l = 0; l < kLanes; ++l) lanes[l] = x[i + l] > lanes[l] ? x[i + l] : lanes[l];
    }
    for (int l = 0; i < n; ++i, ++l) lanes[l] = x[i] > lanes[l] ? x[i] : lanes[l];
#pragma GCC unroll 8
    for (int half = kLanes / 2; half > 0; half /= 2) {
      for (int l = 0; l < half; ++l) lanes[l] = lanes[l + half] > lanes[l] ? lanes[l + half] : lanes[l];
    }
    return lanes[0];
  }

  // Sum of at most kStretch elements of f(i).
  template <typename F>
  static double StretchSum(int64_t n, F f) {
    T lanes[kLanes] = {};
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
#pragma GCC ivdep
      for (int l = 0; l < kLanes; ++l) lanes[l] += f(i + l);
    }
    for (int l = 0; i < n; ++i, ++l) lanes[l] += f(i);
    for (int half = kLanes / 2; half > 0; half /= 2) {
      for (int l = 0; l < half; ++l) lanes[l] += lanes[l + half];
    }
    return static_cast<double>(lanes[0]);
  }

  // *out = exp(x - max); returns the sum.
  static double Exps(const T* x, T max, int64_t n, T* out) {
#if HWY_TARGET == HWY_AVX3
    if constexpr (sizeof(T) == sizeof(float)) return ExpsOfFloats(x, max, n, out);
#endif
    double sum = 0;
    for (int64_t i = 0; i < n; i += kStretch) {
      const int64_t m = std::min(kStretch, n - i);
      const T* in = x + i;
      T* e = out + i;
      sum += StretchSum(m, [=](int64_t j) { return e[j] = Exp(in[j] - max); });
    }
    return sum;
  }

  // Short rows: kAtOnce of them side by side, so that all loops run over rows.
  static constexpr int kAtOnce = static_cast<int>(64 / sizeof(T));
  static_assert(kRowsTogether % kAtOnce == 0);
  static constexpr int64_t kShort = kLongestTogether;
  // Up to which length that pays: less where the last elements can be masked.
  static constexpr int64_t kShortPays = HWY_TARGET == HWY_AVX3 && sizeof(T) == sizeof(float) ? 12 : kShort;
  struct Block {
    T at[kShort][kAtOnce];
  };

  static void ReadRows(const T* x, int64_t n, Block* v) {
    for (int l = 0; l < kAtOnce; ++l) {
      for (int64_t j = 0; j < n; ++j) v->at[j][l] = x[l * n + j];
    }
  }
  static void WriteRows(const Block& v, int64_t n, T* out) {
    for (int l = 0; l < kAtOnce; ++l) {
      for (int64_t j = 0; j < n; ++j) out[l * n + j] = v.at[j][l];
    }
  }
  // *v less the greatest of each row; its exponentials in *exps.
  static void ExpsOfRows(int64_t n, Block* v, Block* exps) {
    T max[kAtOnce];
    for (int l = 0; l < kAtOnce; ++l) max[l] = v->at[0][l];
    for (int64_t j = 1; j < n; ++j) {
      for (int l = 0; l < kAtOnce; ++l) max[l] = v->at[j][l] > max[l] ? v->at[j][l] : max[l];
    }
    for (int64_t j = 0; j < n; ++j) {
#pragma GCC ivdep
      for (int l = 0; l < kAtOnce; ++l) {
        const T d = v->at[j][l] - max[l];
        exps->at[j][l] = Exp(d);
        v->at[j][l] = d;
      }
    }
  }
  // Pairwise, into row 0.
  static void SumOfRows(int64_t n, Block* sums) {
    for (int64_t m = n; m > 1; m = (m + 1) / 2) {
      for (int64_t j = 0; j < m / 2; ++j) {
        for (int l = 0; l < kAtOnce; ++l) sums->at[j][l] += sums->at[m - 1 - j][l];
      }
    }
  }

  template <bool kLog>
  static void ShortRows(const T* x, int64_t n, T* out) {
    Block v, sums;
    ReadRows(x, n, &v);
    ExpsOfRows(n, &v, &sums);
    if (!kLog) std::copy_n(sums.at[0], n * kAtOnce, v.at[0]);
    SumOfRows(n, &sums);
    T last[kAtOnce];
    for (int l = 0; l < kAtOnce; ++l) last[l] = kLog ? Log(sums.at[0][l]) : T(1) / sums.at[0][l];
    for (int64_t j = 0; j < n; ++j) {
      for (int l = 0; l < kAtOnce; ++l) v.at[j][l] = kLog ? v.at[j][l] - last[l] : v.at[j][l] * last[l];
    }
    WriteRows(v, n, out);
  }

  // label(l, j): what the labels say of class j in row l.
  template <typename Label>
  static void ShortEntropies(const T* x, int64_t n, Label label, T* losses, T* out) {
    Block v, exps, sums;
    ReadRows(x, n, &v);
    ExpsOfRows(n, &v, &exps);
    std::copy_n(exps.at[0], n * kAtOnce, sums.at[0]);
    SumOfRows(n, &sums);
    double log_sum[kAtOnce], loss[kAtOnce] = {};
    for (int l = 0; l < kAtOnce; ++l) log_sum[l] = static_cast<double>(sums.at[0][l]);
#pragma GCC ivdep
    for (int l = 0; l < kAtOnce; ++l) log_sum[l] = Log(log_sum[l]);
    for (int64_t j = 0; j < n; ++j) {
      for (int l = 0; l < kAtOnce; ++l) {
        // A class that the labels exclude adds nothing, however impossible the logits make it.
        const T y = label(l, j);
        loss[l] += y == T(0) ? 0.0 : static_cast<double>(y * (static_cast<T>(log_sum[l]) - v.at[j][l]));
        v.at[j][l] = exps.at[j][l] * (T(1) / sums.at[0][l]) - y;
      }
    }
    for (int l = 0; l < kAtOnce; ++l) losses[l] = static_cast<T>(loss[l]);
    WriteRows(v, n, out);
  }

  static void SoftmaxRow(const T* x, int64_t n, T* out) {
    const T scale = static_cast<T>(1 / Exps(x, Max(x, n), n, out));
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) out[i] *= scale;
  }

  static void LogSoftmaxRow(const T* x, int64_t n, T* out) {
    const T max = Max(x, n);
    double sum = 0;
    T buffer[kStretch];
    for (int64_t i = 0; i < n; i += kStretch) sum += Exps(x + i, max, std::min(kStretch, n - i), buffer);
    const T log_sum = static_cast<T>(std::log(sum));
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) out[i] = (x[i] - max) - log_sum;
  }

  template <bool kLog>
  static void AllRows(const T* x, int64_t rows, int64_t n, T* out) {
    int64_t r = 0;
    if (n <= kShortPays) {
      for (; r + kAtOnce <= rows; r += kAtOnce) ShortRows<kLog>(x + r * n, n, out + r * n);
    }
    for (; r < rows; ++r) (kLog ? LogSoftmaxRow : SoftmaxRow)(x + r * n, n, out + r * n);
  }

  static T EntropyOfRow(const T* x, const T* labels, int64_t n, T* out) {
    const T max = Max(x, n);
    const double sum = Exps(x, max, n, out);
    const T log_sum = static_cast<T>(std::log(sum)), scale = static_cast<T>(1 / sum);
    double loss = 0;
    for (int64_t i = 0; i < n; i += kStretch) {
      const int64_t m = std::min(kStretch, n - i);
      const T* in = x + i;
      const T* label = labels + i;
      T* e = out + i;
      // A class that the labels exclude adds nothing, however impossible the logits make it.
      loss += StretchSum(m, [=](int64_t j) { return label[j] == T(0) ? T(0) : label[j] * (log_sum - (in[j] - max)); });
#pragma GCC ivdep
      for (int64_t j = 0; j < m; ++j) e[j] = e[j] * scale - label[j];
    }
    return static_cast<T>(loss);
  }

  static T SparseEntropyOfRow(const T* x, int64_t label, int64_t n, T* out) {
    const T max = Max(x, n);
    const T chosen = x[label] - max;
    const double sum = Exps(x, max, n, out);
    const T scale = static_cast<T>(1 / sum);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) out[i] *= scale;
    out[label] -= T(1);
    return static_cast<T>(std::log(sum)) - chosen;
  }

  static void CrossEntropy(const T* x, const T* labels, int64_t rows, int64_t n, T* loss, T* out) {
    int64_t r = 0;
    if (n <= kShortPays) {
      for (; r + kAtOnce <= rows; r += kAtOnce) {
        Block y;
        ReadRows(labels + r * n, n, &y);
        ShortEntropies(x + r * n, n, [&](int l, int64_t j) { return y.at[j][l]; }, loss + r, out + r * n);
      }
    }
    for (; r < rows; ++r) loss[r] = EntropyOfRow(x + r * n, labels + r * n, n, out + r * n);
  }

  static void SparseCrossEntropy(const T* x, const int64_t* labels, int64_t rows, int64_t n, T* loss, T* out) {
    int64_t r = 0;
    if (n <= kShortPays) {
      for (; r + kAtOnce <= rows; r += kAtOnce) {
        const int64_t* const chosen = labels + r;
        ShortEntropies(
            x + r * n, n, [=](int l, int64_t j) { return chosen[l] == j ? T(1) : T(0); }, loss + r, out + r * n);
      }
    }
    for (; r < rows; ++r) loss[r] = SparseEntropyOfRow(x + r * n, labels[r], n, out + r * n);
  }

  static constexpr SoftmaxRows<T> kRows = {&AllRows<false>, &AllRows<true>, &CrossEntropy, &SparseCrossEntropy};
};

const SoftmaxRows<float>* FloatRows() { return &Rows<float>::kRows; }
const SoftmaxRows<double>* DoubleRows() { return &Rows<double>::kRows; }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace millrace
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace millrace {

HWY_EXPORT(FloatRows);
HWY_EXPORT(DoubleRows);
const SoftmaxRows<float>& FloatSoftmaxRows() { return *HWY_DYNAMIC_DISPATCH(FloatRows)(); }
const SoftmaxRows<double>& DoubleSoftmaxRows() { return *HWY_DYNAMIC_DISPATCH(DoubleRows)(); }

}  // namespace millrace
#endif
