// SPDX-License-Identifier: Apache-2.0
// The matrix has either a row for each k, then multiples of its rows are added up, or a row for each result, then its
// rows are multiplied with the vectors number by number.
#include "kernels/cpu/engine/linalg_thin_simd.h"

#include <algorithm>
#include <type_traits>

#include "kernels/cpu/engine/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/engine/linalg_thin_simd.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/engine/vector_runs-inl.h"

HWY_BEFORE_NAMESPACE();
namespace millrace {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

template <typename T>
struct Thin {
  const T* vectors;
  int64_t vector, step;  // from one vector to the next, and along k
  int64_t count;         // of vectors
  const T* matrix;
  int64_t ld;
  int64_t length, k;
  T* c;
  int64_t c_vector, c_step;
  GemmMode mode;
};

template <typename T, class V>
HWY_INLINE V Add(V a, V b, V sum) {
  if constexpr (std::is_floating_point_v<T>) {
    return hn::MulAdd(a, b, sum);
  } else {
    return hn::Add(hn::Mul(a, b), sum);
  }
}

template <typename T>
HWY_INLINE void Put(T sum, GemmMode mode, T* to) {
  *to = mode == GemmMode::kSet ? sum : mode == GemmMode::kAdd ? *to + sum : *to - sum;
}

// Adds multiples of `kRows` rows of the matrix, from `p` on, to the sums of kCount vectors, which are `kMost` apart.
template <int kCount, int kRows, int64_t kMost, typename T>
HWY_INLINE void AddRows(const Thin<T>& t, int64_t vector, int64_t p, int64_t first, int64_t m, T* HWY_RESTRICT sums) {
  T a[kCount][kRows];
  for (int v = 0; v < kCount; ++v) {
    for (int r = 0; r < kRows; ++r) a[v][r] = t.vectors[(vector + v) * t.vector + (p + r) * t.step];
  }
  const T* const b = t.matrix + p * t.ld + first;
  ForVectors<T>(m, [&](auto how, int64_t c) HWY_ATTR {
    const auto d = how.d;
    hn::Vec<decltype(d)> row[kRows];
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) row[r] = how.Load(b + r * t.ld + c);
#pragma GCC unroll 4
    for (int v = 0; v < kCount; ++v) {
      T* const to = sums + v * kMost + c;
      const auto before = hn::LoadU(d, to);
      if constexpr (kRows == 1) {
        hn::StoreU(Add<T>(hn::Set(d, a[v][0]), row[0], before), d, to);
      } else {
        auto even = hn::Mul(hn::Set(d, a[v][0]), row[0]), odd = hn::Mul(hn::Set(d, a[v][1]), row[1]);
#pragma GCC unroll 8
        for (int r = 2; r < kRows; r += 2) {
          even = Add<T>(hn::Set(d, a[v][r]), row[r], even);
          odd = Add<T>(hn::Set(d, a[v][r + 1]), row[r + 1], odd);
        }
        hn::StoreU(hn::Add(before, hn::Add(even, odd)), d, to);
      }
    }
  });
}

template <int kCount, typename T>
void RowsOf(const Thin<T>& t, int64_t vector) {
  constexpr int64_t kMost = 8192 / static_cast<int64_t>(sizeof(T)) / (kCount == 3 ? 4 : kCount);
  constexpr int kRows = 8;
  HWY_ALIGN T sums[kCount * kMost];
  for (int64_t first = 0; first < t.length; first += kMost) {
    const int64_t m = std::min(kMost, t.length - first);
    std::fill_n(sums, kCount * kMost, T{0});
    int64_t p = 0;
    for (; p + kRows <= t.k; p += kRows) AddRows<kCount, kRows, kMost>(t, vector, p, first, m, sums);
    for (; p < t.k; ++p) AddRows<kCount, 1, kMost>(t, vector, p, first, m, sums);
    for (int v = 0; v < kCount; ++v) {
      T* const to = t.c + (vector + v) * t.c_vector + first * t.c_step;
      const T* const from = sums + v * kMost;
      if (t.c_step == 1 && t.mode == GemmMode::kSet) {
        std::copy(from, from + m, to);
      } else {
        for (int64_t c = 0; c < m; ++c) Put(from[c], t.mode, to + c * t.c_step);
      }
    }
  }
}

// `k` numbers of kCount vectors, which are `apart`, with those of kRows rows of the matrix.
template <int kCount, int kRows, typename T>
HWY_INLINE void Dots(const Thin<T>& t, const T* HWY_RESTRICT vectors, int64_t apart, const T* HWY_RESTRICT matrix,
                     int64_t k, GemmMode mode, T* c) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  hn::Vec<decltype(d)> sums[kCount][kRows];
#pragma GCC unroll 4
  for (int v = 0; v < kCount; ++v) {
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) sums[v][r] = hn::Zero(d);
  }
  const auto add = [&](auto how, int64_t p) HWY_ATTR {
    hn::Vec<decltype(d)> row[kRows];
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) row[r] = how.Load(matrix + r * t.ld + p);
#pragma GCC unroll 4
    for (int v = 0; v < kCount; ++v) {
      const auto x = how.Load(vectors + v * apart + p);
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) sums[v][r] = Add<T>(x, row[r], sums[v][r]);
    }
  };
  int64_t p = 0;
  for (; p + lanes <= k; p += lanes) add(Whole<decltype(d)>{d}, p);
#if MILLRACE_HAS_PARTS
  if (p < k) add(Part(d, k - p), p);
  p = k;
#endif
#pragma GCC unroll 4
  for (int v = 0; v < kCount; ++v) {
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      T sum = hn::GetLane(hn::SumOfLanes(d, sums[v][r]));
      for (int64_t j = p; j < k; ++j) sum += vectors[v * apart + j] * matrix[r * t.ld + j];
      Put(sum, mode, c + v * t.c_vector + r * t.c_step);
    }
  }
}

template <int kCount, typename T>
void DotsOf(const Thin<T>& t, int64_t vector) {
  constexpr int64_t kMost = 1024;
  constexpr int kRows = kCount == 1 ? 4 : 2;
  HWY_ALIGN T copied[kCount * kMost];
  for (int64_t p = 0; p < t.k; p += kMost) {
    const int64_t k = std::min(kMost, t.k - p);
    const GemmMode mode = p > 0 && t.mode == GemmMode::kSet ? GemmMode::kAdd : t.mode;
    const T* vectors = t.vectors + vector * t.vector + p * t.step;
    int64_t apart = t.vector;
    if (t.step != 1) {
      for (int v = 0; v < kCount; ++v) {
        for (int64_t j = 0; j < k; ++j) copied[v * kMost + j] = vectors[v * t.vector + j * t.step];
      }
      vectors = copied;
      apart = kMost;
    }
    const T* matrix = t.matrix + p;
    T* c = t.c + vector * t.c_vector;
    int64_t row = 0;
    for (; row + kRows <= t.length; row += kRows, matrix += kRows * t.ld, c += kRows * t.c_step) {
      Dots<kCount, kRows>(t, vectors, apart, matrix, k, mode, c);
    }
    for (; row < t.length; ++row, matrix += t.ld, c += t.c_step) {
      Dots<kCount, 1>(t, vectors, apart, matrix, k, mode, c);
    }
  }
}

constexpr int64_t kShort = 8;  // terms of a sum that is kept in registers

// Sums of so few rows, written as they come.
template <int kCount, typename T>
void ShortSumsOf(const Thin<T>& t, int64_t vector) {
  T a[kCount][kShort];
  for (int v = 0; v < kCount; ++v) {
    for (int64_t p = 0; p < t.k; ++p) a[v][p] = t.vectors[(vector + v) * t.vector + p * t.step];
  }
  T* const c = t.c + vector * t.c_vector;
  ForVectors<T>(t.length, [&](auto how, int64_t i) HWY_ATTR {
    const auto d = how.d;
    hn::Vec<decltype(d)> sums[kCount];
    const auto first = how.Load(t.matrix + i);
#pragma GCC unroll 4
    for (int v = 0; v < kCount; ++v) sums[v] = hn::Mul(hn::Set(d, a[v][0]), first);
    for (int64_t p = 1; p < t.k; ++p) {
      const auto row = how.Load(t.matrix + p * t.ld + i);
#pragma GCC unroll 4
      for (int v = 0; v < kCount; ++v) sums[v] = Add<T>(hn::Set(d, a[v][p]), row, sums[v]);
    }
#pragma GCC unroll 4
    for (int v = 0; v < kCount; ++v) {
      T* const to = c + v * t.c_vector + i;
      if (t.mode == GemmMode::kAdd) sums[v] = hn::Add(how.Load(to), sums[v]);
      if (t.mode == GemmMode::kSubtract) sums[v] = hn::Sub(how.Load(to), sums[v]);
      how.Store(sums[v], to);
    }
  });
}

// All vectors with some rows of a matrix that has a row for each k.
template <typename T>
void AllRowsOf(const Thin<T>& t) {
  int64_t v = 0;
  if (t.k <= kShort && t.c_step == 1) {
    for (; v + 4 <= t.count; v += 4) ShortSumsOf<4>(t, v);
    for (; v < t.count; ++v) ShortSumsOf<1>(t, v);
    return;
  }
  for (; v + 4 <= t.count; v += 4) RowsOf<4>(t, v);
  if (t.count - v == 3) RowsOf<3>(t, v);
  if (t.count - v == 2) RowsOf<2>(t, v);
  if (t.count - v == 1) RowsOf<1>(t, v);
}

// More vectors than are multiplied at once take the rows by blocks that the second-level cache keeps.
template <typename T>
void ByRows(Thin<T> t) {
  if (t.count <= 4) return AllRowsOf(t);
  constexpr int64_t kBlockBytes = 256 << 10;
  const int64_t block = std::max<int64_t>(kBlockBytes / (t.length * static_cast<int64_t>(sizeof(T))), 8) / 8 * 8;
  const int64_t k = t.k;
  for (int64_t p = 0; p < k; p += block) {
    t.k = std::min(block, k - p);
    AllRowsOf(t);
    t.vectors += block * t.step;
    t.matrix += block * t.ld;
    if (t.mode == GemmMode::kSet) t.mode = GemmMode::kAdd;
  }
}

// Short sums with a matrix that has a row for each result: some of these rows are turned at a time.
template <typename T>
void RunTurned(GemmArgs g);

template <typename T>
void Run(const GemmArgs& g, bool few_rows) {
  if (few_rows && g.transpose_b && g.k <= kShort) return RunTurned<T>(g);
  Thin<T> t;
  const T *const a = static_cast<const T*>(g.a), *const b = static_cast<const T*>(g.b);
  t.c = static_cast<T*>(g.c);
  t.k = g.k;
  t.mode = g.mode;
  if (few_rows) {
    t.vectors = a, t.vector = g.transpose_a ? 1 : g.lda, t.step = g.transpose_a ? g.lda : 1, t.count = g.m;
    t.matrix = b, t.ld = g.ldb, t.length = g.n;
    t.c_vector = g.ldc, t.c_step = 1;
  } else {
    t.vectors = b, t.vector = g.transpose_b ? g.ldb : 1, t.step = g.transpose_b ? 1 : g.ldb, t.count = g.n;
    t.matrix = a, t.ld = g.lda, t.length = g.m;
    t.c_vector = 1, t.c_step = g.ldc;
  }
  if (few_rows ? !g.transpose_b : g.transpose_a) return ByRows(t);  // the matrix has a row for each k
  int64_t v = 0;
  for (; v + 4 <= t.count; v += 4) DotsOf<4>(t, v);
  if (t.count - v == 3) DotsOf<3>(t, v);
  if (t.count - v == 2) DotsOf<2>(t, v);
  if (t.count - v == 1) DotsOf<1>(t, v);
}

template <typename T>
void RunTurned(GemmArgs g) {
  constexpr int64_t kMost = 1024;
  HWY_ALIGN T turned[kShort * kMost];
  const T* rows = static_cast<const T*>(g.b);
  T* c = static_cast<T*>(g.c);
  const int64_t n = g.n, ld = g.ldb;
  g.b = turned;
  g.transpose_b = false;
  g.ldb = kMost;
  for (int64_t first = 0; first < n; first += kMost, c += kMost) {
    g.n = std::min(kMost, n - first);
    g.c = c;
    for (int64_t i = 0; i < g.n; ++i, rows += ld) {
      for (int64_t p = 0; p < g.k; ++p) turned[p * kMost + i] = rows[p];
    }
    Run<T>(g, true);
  }
}

void RunThin(DType dtype, const GemmArgs& g, bool few_rows) {
  switch (dtype) {
    case DType::kFloat: return Run<float>(g, few_rows);
    case DType::kDouble: return Run<double>(g, few_rows);
    case DType::kInt32: return Run<uint32_t>(g, few_rows);
    default: return Run<uint64_t>(g, few_rows);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace millrace
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace millrace {
namespace {

HWY_EXPORT(RunThin);

// Sums of so few terms that packing a factor costs more than the product. Any number of rows is few then.
bool HasShortSums(const GemmArgs& g) { return g.k <= HWY_NAMESPACE::kShort && g.n >= 16; }

bool HasFewRows(const GemmArgs& g) { return g.m <= g.n || HasShortSums(g); }

}  // namespace

bool IsThinGemm(DType dtype, const GemmArgs& g) {
  constexpr int64_t kMost = 8, kLeast = 16;  // vectors; numbers in a row of the matrix
  const bool few_rows = HasFewRows(g);
  const int64_t count = few_rows ? g.m : g.n, length = few_rows ? g.n : g.m;
  const bool by_rows = few_rows ? !g.transpose_b : g.transpose_a;
  if (HasShortSums(g)) return true;
  if (dtype == DType::kFloat) {
    constexpr int64_t kSmall = 1 << 14;  // elements of a matrix
    if (count != 1 || (by_rows ? length : g.k) < kLeast) return false;
    return (few_rows && by_rows) || g.k * length <= kSmall;
  }
  return count <= kMost && (by_rows ? length : g.k) >= kLeast;
}

bool IsThinSum(DType dtype, const GemmArgs& g) {
  const bool few_rows = HasFewRows(g), by_rows = few_rows ? !g.transpose_b : g.transpose_a;
  return dtype == DType::kFloat && by_rows && std::min(g.m, g.n) <= 16 && std::max(g.m, g.n) >= 16;
}

void ThinGemm(DType dtype, const GemmArgs& g) { HWY_DYNAMIC_DISPATCH(RunThin)(dtype, g, HasFewRows(g)); }

}  // namespace millrace
#endif
