// SPDX-License-Identifier: Apache-2.0
// Plain loops over q, for the compiler to vectorise. Signals are turned by squares in registers.
#include <cstring>
#include <utility>

#include "kernels/cpu/engine/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/engine/fourier_tiles.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h
#include "hwy/highway.h"
#include "kernels/cpu/engine/fourier_tiles.h"

HWY_BEFORE_NAMESPACE();
namespace millrace {
namespace HWY_NAMESPACE {
namespace {

// Output k of a butterfly: turned by turns[k], or as it is in the last pass.
template <bool kTurn, typename T>
inline void Put(T* yr, T* yi, int64_t at, const T* w, T re, T im) {
  if constexpr (kTurn) {
    yr[at] = re * w[0] - im * w[1];
    yi[at] = re * w[1] + im * w[0];
  } else {
    yr[at] = re;
    yi[at] = im;
  }
}

template <bool kTurn, typename T>
void Radix2(const FourierPass<T>& f) {
  const int64_t step = f.step, far = step * f.count;
  for (int64_t p = 0; p < f.count; ++p) {
    const T w[2] = {f.turns[2 * p], f.turns[2 * p + 1]};
    const T *xr = f.xr + step * p, *xi = f.xi + step * p;
    T *yr = f.yr + 2 * step * p, *yi = f.yi + 2 * step * p;
#pragma GCC ivdep
    for (int64_t q = 0; q < step; ++q) {
      const T ar = xr[q], ai = xi[q], br = xr[q + far], bi = xi[q + far];
      yr[q] = ar + br;
      yi[q] = ai + bi;
      Put<kTurn>(yr, yi, q + step, w, ar - br, ai - bi);
    }
  }
}

template <bool kTurn, typename T>
void Radix3(const FourierPass<T>& f) {
  constexpr T kSine = T(0.866025403784438646763723170752936183L);
  const int64_t step = f.step, far = step * f.count;
  for (int64_t p = 0; p < f.count; ++p) {
    T w[4];
    for (int k = 0; k < 4; ++k) w[k] = f.turns[4 * p + k];
    const T *xr = f.xr + step * p, *xi = f.xi + step * p;
    T *yr = f.yr + 3 * step * p, *yi = f.yi + 3 * step * p;
#pragma GCC ivdep
    for (int64_t q = 0; q < step; ++q) {
      const T ar = xr[q], ai = xi[q];
      const T sr = xr[q + far] + xr[q + 2 * far], si = xi[q + far] + xi[q + 2 * far];
      const T vr = kSine * (xi[q + far] - xi[q + 2 * far]), vi = kSine * (xr[q + 2 * far] - xr[q + far]);
      const T ur = ar - sr / 2, ui = ai - si / 2;
      yr[q] = ar + sr;
      yi[q] = ai + si;
      Put<kTurn>(yr, yi, q + step, w, ur + vr, ui + vi);
      Put<kTurn>(yr, yi, q + 2 * step, w + 2, ur - vr, ui - vi);
    }
  }
}

template <bool kTurn, typename T>
void Radix4(const FourierPass<T>& f) {
  const int64_t step = f.step, far = step * f.count;
  for (int64_t p = 0; p < f.count; ++p) {
    T w[6];
    for (int k = 0; k < 6; ++k) w[k] = f.turns[6 * p + k];
    const T *xr = f.xr + step * p, *xi = f.xi + step * p;
    T *yr = f.yr + 4 * step * p, *yi = f.yi + 4 * step * p;
#pragma GCC ivdep
    for (int64_t q = 0; q < step; ++q) {
      const T ar = xr[q] + xr[q + 2 * far], ai = xi[q] + xi[q + 2 * far];
      const T br = xr[q] - xr[q + 2 * far], bi = xi[q] - xi[q + 2 * far];
      const T cr = xr[q + far] + xr[q + 3 * far], ci = xi[q + far] + xi[q + 3 * far];
      const T dr = xr[q + far] - xr[q + 3 * far], di = xi[q + far] - xi[q + 3 * far];
      yr[q] = ar + cr;
      yi[q] = ai + ci;
      Put<kTurn>(yr, yi, q + step, w, br + di, bi - dr);
      Put<kTurn>(yr, yi, q + 2 * step, w + 2, ar - cr, ai - ci);
      Put<kTurn>(yr, yi, q + 3 * step, w + 4, br - di, bi + dr);
    }
  }
}

template <bool kTurn, typename T>
void Radix5(const FourierPass<T>& f) {
  constexpr T kC1 = T(0.309016994374947424102293417182819059L), kC2 = T(-0.809016994374947424102293417182819059L);
  constexpr T kS1 = T(0.951056516295153572116439333379382143L), kS2 = T(0.587785252292473129168705954639072769L);
  const int64_t step = f.step, far = step * f.count;
  for (int64_t p = 0; p < f.count; ++p) {
    T w[8];
    for (int k = 0; k < 8; ++k) w[k] = f.turns[8 * p + k];
    const T *xr = f.xr + step * p, *xi = f.xi + step * p;
    T *yr = f.yr + 5 * step * p, *yi = f.yi + 5 * step * p;
#pragma GCC ivdep
    for (int64_t q = 0; q < step; ++q) {
      const T ar = xr[q], ai = xi[q];
      const T s1r = xr[q + far] + xr[q + 4 * far], s1i = xi[q + far] + xi[q + 4 * far];
      const T s2r = xr[q + 2 * far] + xr[q + 3 * far], s2i = xi[q + 2 * far] + xi[q + 3 * far];
      const T d1r = xr[q + far] - xr[q + 4 * far], d1i = xi[q + far] - xi[q + 4 * far];
      const T d2r = xr[q + 2 * far] - xr[q + 3 * far], d2i = xi[q + 2 * far] - xi[q + 3 * far];
      const T m1r = ar + kC1 * s1r + kC2 * s2r, m1i = ai + kC1 * s1i + kC2 * s2i;
      const T m2r = ar + kC2 * s1r + kC1 * s2r, m2i = ai + kC2 * s1i + kC1 * s2i;
      const T n1r = kS1 * d1r + kS2 * d2r, n1i = kS1 * d1i + kS2 * d2i;
      const T n2r = kS2 * d1r - kS1 * d2r, n2i = kS2 * d1i - kS1 * d2i;
      yr[q] = ar + s1r + s2r;
      yi[q] = ai + s1i + s2i;
      Put<kTurn>(yr, yi, q + step, w, m1r + n1i, m1i - n1r);
      Put<kTurn>(yr, yi, q + 2 * step, w + 2, m2r + n2i, m2i - n2r);
      Put<kTurn>(yr, yi, q + 3 * step, w + 4, m2r - n2i, m2i + n2r);
      Put<kTurn>(yr, yi, q + 4 * step, w + 6, m1r - n1i, m1i + n1r);
    }
  }
}

#if HWY_TARGET == HWY_SSE2
constexpr int kVectorBytes = 16;
#elif HWY_TARGET <= HWY_AVX3
constexpr int kVectorBytes = 64;
#else
constexpr int kVectorBytes = 32;
#endif

// Odd radices: pairs of inputs from both ends, whose sums meet cosines and whose differences meet sines. V is a vector
// of T, or T.
template <bool kTurn, int kRadix, typename V, typename T>
HWY_INLINE void OddButterfly(const FourierPass<T>& f, int64_t p, int64_t q) {
  constexpr int kHalf = kRadix / 2;
  const int64_t step = f.step, far = step * f.count;
  const T *w = f.turns + 2 * (kRadix - 1) * p, *xr = f.xr + step * p + q, *xi = f.xi + step * p + q;
  T *yr = f.yr + kRadix * step * p + q, *yi = f.yi + kRadix * step * p + q;
  V sr[kHalf], si[kHalf], dr[kHalf], di[kHalf], first_r, first_i;
  std::memcpy(&first_r, xr, sizeof(V));
  std::memcpy(&first_i, xi, sizeof(V));
  V re = first_r, im = first_i;
#pragma GCC unroll 6
  for (int j = 0; j < kHalf; ++j) {
    V ar, ai, br, bi;
    std::memcpy(&ar, xr + (j + 1) * far, sizeof(V));
    std::memcpy(&ai, xi + (j + 1) * far, sizeof(V));
    std::memcpy(&br, xr + (kRadix - 1 - j) * far, sizeof(V));
    std::memcpy(&bi, xi + (kRadix - 1 - j) * far, sizeof(V));
    sr[j] = ar + br, si[j] = ai + bi;
    dr[j] = ar - br, di[j] = ai - bi;
    re += sr[j], im += si[j];
  }
  std::memcpy(yr, &re, sizeof(V));
  std::memcpy(yi, &im, sizeof(V));
  const auto put = [&](int k, V out_r, V out_i) HWY_ATTR {
    if constexpr (kTurn) {
      const T c = w[2 * (k - 1)], s = w[2 * (k - 1) + 1];
      const V turned = out_r * c - out_i * s;
      out_i = out_r * s + out_i * c;
      out_r = turned;
    }
    std::memcpy(yr + k * step, &out_r, sizeof(V));
    std::memcpy(yi + k * step, &out_i, sizeof(V));
  };
#pragma GCC unroll 6
  for (int k = 1; k <= kHalf; ++k) {
    V mr = first_r, mi = first_i, nr = {}, ni = {};
#pragma GCC unroll 6
    for (int j = 1; j <= kHalf; ++j) {
      const T c = f.roots[2 * (j * k % kRadix)], s = -f.roots[2 * (j * k % kRadix) + 1];
      mr += c * sr[j - 1], mi += c * si[j - 1];
      nr += s * dr[j - 1], ni += s * di[j - 1];
    }
    put(k, mr + ni, mi - nr);
    put(kRadix - k, mr - ni, mi + nr);
  }
}
template <bool kTurn, int kRadix, typename T>
void RadixOdd(const FourierPass<T>& f) {
  typedef T Vector __attribute__((vector_size(kVectorBytes)));
  constexpr int64_t kLanes = kVectorBytes / static_cast<int64_t>(sizeof(T));
  for (int64_t p = 0; p < f.count; ++p) {
    int64_t q = 0;
    for (; q + kLanes <= f.step; q += kLanes) OddButterfly<kTurn, kRadix, Vector>(f, p, q);
    for (; q < f.step; ++q) OddButterfly<kTurn, kRadix, T>(f, p, q);
  }
}

// Sums and differences of such pairs for a radix that is known when it runs.
template <typename V>
struct Pairs {
  static constexpr int kMost = static_cast<int>(kMaxFourierRadix / 2);
  V sr[kMost], si[kMost], dr[kMost], di[kMost];
};

// Outputs k to k + kCount - 1 and their mirror images.
template <bool kTurn, int kCount, typename V, typename T>
HWY_INLINE void PutOutputs(const FourierPass<T>& f, const Pairs<V>& pairs, V first_r, V first_i, int k, const T* w,
                           T* yr, T* yi) {
  const int radix = static_cast<int>(f.radix);
  V mr[kCount], mi[kCount], nr[kCount], ni[kCount];
  int at[kCount];  // j (k + i) modulo the radix
#pragma GCC unroll 4
  for (int i = 0; i < kCount; ++i) {
    mr[i] = first_r, mi[i] = first_i;
    nr[i] = ni[i] = V{};
    at[i] = k + i;
  }
  for (int j = 0; j < radix / 2; ++j) {
#pragma GCC unroll 4
    for (int i = 0; i < kCount; ++i) {
      const T c = f.roots[2 * at[i]], s = -f.roots[2 * at[i] + 1];
      mr[i] += c * pairs.sr[j], mi[i] += c * pairs.si[j];
      nr[i] += s * pairs.dr[j], ni[i] += s * pairs.di[j];
      at[i] += k + i;
      at[i] -= at[i] >= radix ? radix : 0;
    }
  }
  const auto put = [&](int output, V out_r, V out_i) HWY_ATTR {
    if constexpr (kTurn) {
      const T c = w[2 * (output - 1)], s = w[2 * (output - 1) + 1];
      const V turned = out_r * c - out_i * s;
      out_i = out_r * s + out_i * c;
      out_r = turned;
    }
    std::memcpy(yr + output * f.step, &out_r, sizeof(V));
    std::memcpy(yi + output * f.step, &out_i, sizeof(V));
  };
#pragma GCC unroll 4
  for (int i = 0; i < kCount; ++i) {
    put(k + i, mr[i] + ni[i], mi[i] - nr[i]);
    put(radix - k - i, mr[i] - ni[i], mi[i] + nr[i]);
  }
}

template <bool kTurn, typename V, typename T>
void PrimeButterfly(const FourierPass<T>& f, int64_t p, int64_t q) {
  const int64_t step = f.step, far = step * f.count;
  const T *w = f.turns + 2 * (f.radix - 1) * p, *xr = f.xr + step * p + q, *xi = f.xi + step * p + q;
  T *yr = f.yr + f.radix * step * p + q, *yi = f.yi + f.radix * step * p + q;
  Pairs<V> pairs;
  V first_r, first_i;
  std::memcpy(&first_r, xr, sizeof(V));
  std::memcpy(&first_i, xi, sizeof(V));
  V re = first_r, im = first_i;
  const int half = static_cast<int>(f.radix / 2);
  for (int j = 0; j < half; ++j) {
    V ar, ai, br, bi;
    std::memcpy(&ar, xr + (j + 1) * far, sizeof(V));
    std::memcpy(&ai, xi + (j + 1) * far, sizeof(V));
    std::memcpy(&br, xr + (f.radix - 1 - j) * far, sizeof(V));
    std::memcpy(&bi, xi + (f.radix - 1 - j) * far, sizeof(V));
    pairs.sr[j] = ar + br, pairs.si[j] = ai + bi;
    pairs.dr[j] = ar - br, pairs.di[j] = ai - bi;
    re += pairs.sr[j], im += pairs.si[j];
  }
  std::memcpy(yr, &re, sizeof(V));
  std::memcpy(yi, &im, sizeof(V));
  int k = 1;
  for (; k + 4 <= half + 1; k += 4) PutOutputs<kTurn, 4>(f, pairs, first_r, first_i, k, w, yr, yi);
  for (; k + 2 <= half + 1; k += 2) PutOutputs<kTurn, 2>(f, pairs, first_r, first_i, k, w, yr, yi);
  if (k <= half) PutOutputs<kTurn, 1>(f, pairs, first_r, first_i, k, w, yr, yi);
}
template <bool kTurn, typename T>
void RadixPrime(const FourierPass<T>& f) {
  typedef T Vector __attribute__((vector_size(kVectorBytes)));
  constexpr int64_t kLanes = kVectorBytes / static_cast<int64_t>(sizeof(T));
  for (int64_t p = 0; p < f.count; ++p) {
    int64_t q = 0;
    for (; q + kLanes <= f.step; q += kLanes) PrimeButterfly<kTurn, Vector>(f, p, q);
    for (; q < f.step; ++q) PrimeButterfly<kTurn, T>(f, p, q);
  }
}

template <bool kTurn, typename T>
void Run(const FourierPass<T>& f) {
  switch (f.radix) {
    case 2: return Radix2<kTurn>(f);
    case 3: return Radix3<kTurn>(f);
    case 4: return Radix4<kTurn>(f);
    case 5: return Radix5<kTurn>(f);
    case 7: return RadixOdd<kTurn, 7>(f);
    case 11: return RadixOdd<kTurn, 11>(f);
    case 13: return RadixOdd<kTurn, 13>(f);
    default: return RadixPrime<kTurn>(f);
  }
}

// A square of values: interleaving row i with row i + kSide / 2, log2(kSide) times, transposes it.
template <typename T, int kBytes>
struct Square {
  static constexpr int kSide = kBytes / static_cast<int>(sizeof(T));
  typedef T Row __attribute__((vector_size(kBytes)));
  Row rows[kSide];

  template <size_t... I>
  static void Interleave(Row a, Row b, Row* low, Row* high, std::index_sequence<I...>) {
    *low = __builtin_shufflevector(a, b, (static_cast<int>(I) % 2 * kSide + static_cast<int>(I) / 2)...);
    *high = __builtin_shufflevector(a, b, (static_cast<int>(I) % 2 * kSide + (kSide + static_cast<int>(I)) / 2)...);
  }
  void Transpose() {
#pragma GCC unroll 4
    for (int round = 1; round < kSide; round *= 2) {
      Row turned[kSide];
#pragma GCC unroll 8
      for (int i = 0; i < kSide / 2; ++i) {
        Interleave(rows[i], rows[i + kSide / 2], &turned[2 * i], &turned[2 * i + 1], std::make_index_sequence<kSide>());
      }
#pragma GCC unroll 16
      for (int i = 0; i < kSide; ++i) rows[i] = turned[i];
    }
  }
};

// Numbers of signals that lie along the memory, by squares of kBytes a side, from lane `l` on. Returns the first lane
// that is left.
template <typename T, int kBytes>
int64_t GatherSquares(const SignalLayout& s, const T* values, int64_t l, int64_t n, T* re, T* im) {
  constexpr int kSide = Square<T, kBytes>::kSide;
  for (; l + kSide <= s.lanes; l += kSide) {
    for (int64_t k = 0; k < n; k += kSide / 2) {
      Square<T, kBytes> square;
#pragma GCC unroll 16
      for (int i = 0; i < kSide; ++i) std::memcpy(&square.rows[i], values + s.at[l + i] + 2 * k, kBytes);
      square.Transpose();
#pragma GCC unroll 8
      for (int i = 0; i < kSide / 2; ++i) {
        std::memcpy(re + (k + i) * s.lanes + l, &square.rows[2 * i], kBytes);
        std::memcpy(im + (k + i) * s.lanes + l, &square.rows[2 * i + 1], kBytes);
      }
    }
  }
  return l;
}
template <typename T, int kBytes>
int64_t ScatterSquares(const SignalLayout& s, const T* re, const T* im, T scale, int64_t l, int64_t n, T* values) {
  constexpr int kSide = Square<T, kBytes>::kSide;
  for (; l + kSide <= s.lanes; l += kSide) {
    for (int64_t k = 0; k < n; k += kSide / 2) {
      Square<T, kBytes> square;
#pragma GCC unroll 8
      for (int i = 0; i < kSide / 2; ++i) {
        std::memcpy(&square.rows[2 * i], re + (k + i) * s.lanes + l, kBytes);
        std::memcpy(&square.rows[2 * i + 1], im + (k + i) * s.lanes + l, kBytes);
      }
      square.Transpose();
#pragma GCC unroll 16
      for (int i = 0; i < kSide; ++i) {
        const auto row = square.rows[i] * scale;
        std::memcpy(values + s.at[l + i] + 2 * k, &row, kBytes);
      }
    }
  }
  return l;
}

#if HWY_TARGET <= HWY_AVX3
constexpr int kWidest = 64;
#elif HWY_TARGET <= HWY_AVX2
constexpr int kWidest = 32;
#else
constexpr int kWidest = 16;
#endif

// How many lanes from `first` on have their numbers of one k side by side.
int64_t SideBySide(const SignalLayout& s, int64_t first) {
  int64_t l = first + 1;
  while (l < s.lanes && s.at[l] == s.at[l - 1] + 2) ++l;
  return l - first;
}

// Numbers of `lanes` lanes that lie side by side, where a short count is known when this is compiled.
template <int kLanes, typename T>
void GatherSide(const SignalLayout& s, const T* values, int64_t first, int64_t lanes, T* re, T* im) {
  if constexpr (kLanes > 0) lanes = kLanes;
  for (int64_t k = 0; k < s.n; ++k) {
    const T* from = values + s.at[first] + k * s.stride;
    T *const to_re = re + k * s.lanes + first, *const to_im = im + k * s.lanes + first;
#pragma GCC ivdep
    for (int64_t l = 0; l < lanes; ++l) {
      to_re[l] = from[2 * l];
      to_im[l] = from[2 * l + 1];
    }
  }
}
template <int kLanes, typename T>
void ScatterSide(const SignalLayout& s, const T* re, const T* im, T scale, int64_t first, int64_t lanes, T* values) {
  if constexpr (kLanes > 0) lanes = kLanes;
  for (int64_t k = 0; k < s.n; ++k) {
    T* to = values + s.at[first] + k * s.stride;
    const T *const from_re = re + k * s.lanes + first, *const from_im = im + k * s.lanes + first;
#pragma GCC ivdep
    for (int64_t l = 0; l < lanes; ++l) {
      to[2 * l] = from_re[l] * scale;
      to[2 * l + 1] = from_im[l] * scale;
    }
  }
}

template <typename T>
void GatherOf(const SignalLayout& s, const T* values, T* re, T* im) {
  int64_t l = 0;
  if (s.stride == 2 && s.n > 1) {
    const auto one_by_one = [&](int64_t lane, int64_t begin) {
      for (int64_t k = begin; k < s.n; ++k) {
        re[k * s.lanes + lane] = values[s.at[lane] + 2 * k];
        im[k * s.lanes + lane] = values[s.at[lane] + 2 * k + 1];
      }
    };
    const int64_t n = s.n - s.n % (kWidest / static_cast<int64_t>(sizeof(T)) / 2);
    l = GatherSquares<T, kWidest>(s, values, l, n, re, im);
    if constexpr (kWidest > 32) l = GatherSquares<T, 32>(s, values, l, n, re, im);
    if constexpr (kWidest > 16) l = GatherSquares<T, 16>(s, values, l, n, re, im);
    for (int64_t done = 0; done < l; ++done) one_by_one(done, n);
    for (; l < s.lanes; ++l) one_by_one(l, 0);
  }
  for (int64_t run = 0; l < s.lanes; l += run) {
    run = SideBySide(s, l);
    switch (run) {
      case 1: GatherSide<1>(s, values, l, run, re, im); break;
      case 4: GatherSide<4>(s, values, l, run, re, im); break;
      case 8: GatherSide<8>(s, values, l, run, re, im); break;
      default: GatherSide<0>(s, values, l, run, re, im);
    }
  }
}

template <typename T>
void ScatterOf(const SignalLayout& s, const T* re, const T* im, T scale, T* values) {
  int64_t l = 0;
  if (s.stride == 2 && s.n > 1) {
    const auto one_by_one = [&](int64_t lane, int64_t begin) {
      for (int64_t k = begin; k < s.n; ++k) {
        values[s.at[lane] + 2 * k] = re[k * s.lanes + lane] * scale;
        values[s.at[lane] + 2 * k + 1] = im[k * s.lanes + lane] * scale;
      }
    };
    const int64_t n = s.n - s.n % (kWidest / static_cast<int64_t>(sizeof(T)) / 2);
    l = ScatterSquares<T, kWidest>(s, re, im, scale, l, n, values);
    if constexpr (kWidest > 32) l = ScatterSquares<T, 32>(s, re, im, scale, l, n, values);
    if constexpr (kWidest > 16) l = ScatterSquares<T, 16>(s, re, im, scale, l, n, values);
    for (int64_t done = 0; done < l; ++done) one_by_one(done, n);
    for (; l < s.lanes; ++l) one_by_one(l, 0);
  }
  for (int64_t run = 0; l < s.lanes; l += run) {
    run = SideBySide(s, l);
    switch (run) {
      case 1: ScatterSide<1>(s, re, im, scale, l, run, values); break;
      case 4: ScatterSide<4>(s, re, im, scale, l, run, values); break;
      case 8: ScatterSide<8>(s, re, im, scale, l, run, values); break;
      default: ScatterSide<0>(s, re, im, scale, l, run, values);
    }
  }
}

void GatherFloat(const SignalLayout& s, const float* values, float* re, float* im) { GatherOf(s, values, re, im); }
void GatherDouble(const SignalLayout& s, const double* values, double* re, double* im) { GatherOf(s, values, re, im); }
void ScatterFloat(const SignalLayout& s, const float* re, const float* im, float scale, float* values) {
  ScatterOf(s, re, im, scale, values);
}
void ScatterDouble(const SignalLayout& s, const double* re, const double* im, double scale, double* values) {
  ScatterOf(s, re, im, scale, values);
}

// Z = E + iO, of the even and the odd numbers: X[k] = E[k] + w^k O[k], and X[half - k] = conj(E[k] - w^k O[k]).
template <typename T>
void SplitBins(const RealBins<T>& b) {
  const int64_t lanes = b.lanes;
  for (int64_t k = 0; k <= b.half / 2; ++k) {
    const T c = b.turns[2 * k], s = b.turns[2 * k + 1];
    const int64_t to = k * lanes, back = (b.half - k) * lanes, from_back = k == 0 ? 0 : back;
#pragma GCC ivdep
    for (int64_t l = 0; l < lanes; ++l) {
      const T ar = b.re[to + l], ai = b.im[to + l], br = b.re[from_back + l], bi = b.im[from_back + l];
      const T er = (ar + br) / 2, ei = (ai - bi) / 2, odd_r = (ai + bi) / 2, odd_i = (br - ar) / 2;
      const T wr = odd_r * c - odd_i * s, wi = odd_r * s + odd_i * c;
      b.re[to + l] = er + wr;
      b.im[to + l] = ei + wi;
      b.re[back + l] = er - wr;
      b.im[back + l] = wi - ei;
    }
  }
}

template <typename T>
void JoinBins(const RealBins<T>& b) {
  const int64_t lanes = b.lanes;
  for (int64_t k = 0; k <= b.half / 2; ++k) {
    const T c = b.turns[2 * k], s = b.turns[2 * k + 1];
    const int64_t to = k * lanes, back = (b.half - k) * lanes;
#pragma GCC ivdep
    for (int64_t l = 0; l < lanes; ++l) {
      const T ar = b.re[to + l], ai = b.im[to + l], br = b.re[back + l], bi = b.im[back + l];
      const T er = ar + br, ei = ai - bi, dr = ar - br, di = ai + bi;
      const T odd_r = dr * c + di * s, odd_i = di * c - dr * s;  // times conj(w^k)
      b.re[to + l] = er - odd_i;
      b.im[to + l] = ei + odd_r;
      if (k == 0) continue;  // number `half` is not of the signal
      b.re[back + l] = er + odd_i;
      b.im[back + l] = odd_r - ei;
    }
  }
}

void SplitFloat(const RealBins<float>& b) { SplitBins(b); }
void SplitDouble(const RealBins<double>& b) { SplitBins(b); }
void JoinFloat(const RealBins<float>& b) { JoinBins(b); }
void JoinDouble(const RealBins<double>& b) { JoinBins(b); }

void RunFloat(const FourierPass<float>& f) { f.count > 1 ? Run<true>(f) : Run<false>(f); }
void RunDouble(const FourierPass<double>& f) { f.count > 1 ? Run<true>(f) : Run<false>(f); }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace millrace
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace millrace {

HWY_EXPORT(RunFloat);
HWY_EXPORT(RunDouble);
HWY_EXPORT(GatherFloat);
HWY_EXPORT(GatherDouble);
HWY_EXPORT(ScatterFloat);
HWY_EXPORT(ScatterDouble);
HWY_EXPORT(SplitFloat);
HWY_EXPORT(SplitDouble);
HWY_EXPORT(JoinFloat);
HWY_EXPORT(JoinDouble);

void RunFourierPass(const FourierPass<float>& pass) { HWY_DYNAMIC_DISPATCH(RunFloat)(pass); }
void RunFourierPass(const FourierPass<double>& pass) { HWY_DYNAMIC_DISPATCH(RunDouble)(pass); }
void ToRealBins(const RealBins<float>& bins) { HWY_DYNAMIC_DISPATCH(SplitFloat)(bins); }
void ToRealBins(const RealBins<double>& bins) { HWY_DYNAMIC_DISPATCH(SplitDouble)(bins); }
void FromRealBins(const RealBins<float>& bins) { HWY_DYNAMIC_DISPATCH(JoinFloat)(bins); }
void FromRealBins(const RealBins<double>& bins) { HWY_DYNAMIC_DISPATCH(JoinDouble)(bins); }
void GatherNumbers(const SignalLayout& s, const float* values, float* re, float* im) {
  HWY_DYNAMIC_DISPATCH(GatherFloat)(s, values, re, im);
}
void GatherNumbers(const SignalLayout& s, const double* values, double* re, double* im) {
  HWY_DYNAMIC_DISPATCH(GatherDouble)(s, values, re, im);
}
void ScatterNumbers(const SignalLayout& s, const float* re, const float* im, float scale, float* values) {
  HWY_DYNAMIC_DISPATCH(ScatterFloat)(s, re, im, scale, values);
}
void ScatterNumbers(const SignalLayout& s, const double* re, const double* im, double scale, double* values) {
  HWY_DYNAMIC_DISPATCH(ScatterDouble)(s, re, im, scale, values);
}

}  // namespace millrace
#endif
