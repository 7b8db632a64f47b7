// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/engine/linalg_gemm.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>

#include <array>
#include <atomic>
#include <cmath>
#include <complex>
#include <random>
#include <vector>

#include "kernels/cpu/engine/linalg_pairs.h"
#include "kernels/cpu/linalg/linalg_batch.h"
#include "kernels/cpu/linalg/linalg_dense.h"

namespace millrace {
namespace {

template <typename T>
std::vector<T> Numbers(int64_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<T> v(static_cast<size_t>(n));
  for (T& x : v)
    x = static_cast<T>(static_cast<int>(random() % 2001) - 1000) / static_cast<T>(std::is_integral_v<T> ? 1 : 1000);
  return v;
}

#if defined(__linux__)
// The stack of the thread that the signals of this process reach, and where their handlers ran.
struct SignalWatch {
  static inline uintptr_t stack_low = 0, stack_high = 0;
  static inline std::atomic<int> handled{0}, elsewhere{0};
  static void Handle(int) {
    const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
    handled.fetch_add(1);
    if (here < stack_low || here >= stack_high) elsewhere.fetch_add(1);
  }
};

// A handler that ran with the stack pointer in the heap would destroy what lies there.
TEST(GemmSignalsTest, SignalHandlersRunOnTheStack) {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_getattr_np(pthread_self(), &attributes), 0);
  void* low = nullptr;
  size_t size = 0;
  pthread_attr_getstack(&attributes, &low, &size);
  pthread_attr_destroy(&attributes);
  SignalWatch::stack_low = reinterpret_cast<uintptr_t>(low);
  SignalWatch::stack_high = SignalWatch::stack_low + size;
  struct sigaction action = {}, before = {};
  action.sa_handler = SignalWatch::Handle;
  ASSERT_EQ(sigaction(SIGALRM, &action, &before), 0);
  const itimerval often = {{0, 100}, {0, 100}}, never = {};
  ASSERT_EQ(setitimer(ITIMER_REAL, &often, nullptr), 0);
  for (int k : {33, 80, 96, 256, 512, 2100}) {
    for (int flags = 0; flags < 4; ++flags) {
      const std::vector<float> a(static_cast<size_t>(8 * k), 1.0f), b(static_cast<size_t>(k * 24), 1.0f);
      std::vector<float> c(8 * 24);
      GemmArgs g;
      g.transpose_a = flags & 1, g.transpose_b = flags & 2;
      g.m = 8, g.n = 24, g.k = k;
      g.a = a.data(), g.b = b.data(), g.c = c.data();
      g.lda = g.transpose_a ? 8 : k, g.ldb = g.transpose_b ? k : 24, g.ldc = 24;
      SignalWatch::handled = 0;
      for (int64_t calls = 0; SignalWatch::handled < 20 && calls < 1000000; ++calls) {
        SerialGemm(DType::kFloat, g);
      }
      EXPECT_GE(SignalWatch::handled, 20);
      EXPECT_EQ(c[0], static_cast<float>(k));
    }
  }
  setitimer(ITIMER_REAL, &never, nullptr);
  sigaction(SIGALRM, &before, nullptr);
  EXPECT_EQ(SignalWatch::elsewhere, 0);
}
#endif

template <typename T>
class GemmTest : public ::testing::Test {};
using GemmTypes = ::testing::Types<float, double, int32_t, int64_t>;
TYPED_TEST_SUITE(GemmTest, GemmTypes);

TYPED_TEST(GemmTest, EqualsTheDefinition) {
  using T = TypeParam;
  const int64_t shapes[][3] = {
      {1, 1, 1},     {1, 17, 5},     {13, 1, 9},    {12, 16, 256},  {25, 33, 300}, {130, 70, 40},
      {3, 4, 0},     {6, 6, 6},      {5, 7, 3},     {1, 12, 9},     {7, 24, 8},    {8, 29, 17},
      {300, 20, 3},  {43, 100, 8},   {2000, 16, 1}, {50, 33, 7},    {4, 63, 5},    {1, 5000, 19},
      {1, 37, 1000}, {3, 17, 1030},  {8, 1100, 21}, {1100, 2, 19},  {31, 7, 1027}, {1, 30, 30},
      {40, 1, 33},   {33, 10, 4999}, {5, 40, 9001}, {37, 20, 4100}, {5, 1100, 3}};
  for (const auto& [m, n, k] : shapes) {
    for (int flags = 0; flags < 24; ++flags) {
      const bool ta = flags & 1, tb = flags & 2, whole = flags >= 12;
      GemmArgs g;
      g.mode = static_cast<GemmMode>(flags % 12 / 4);
      const std::vector<T> a = Numbers<T>(m * k, 1), b = Numbers<T>(k * n, 2), before = Numbers<T>(m * n, 3);
      std::vector<T> c = before;
      g.m = m;
      g.n = n;
      g.k = k;
      g.a = a.data();
      g.lda = ta ? m : k;
      g.transpose_a = ta;
      g.b = b.data();
      g.ldb = tb ? k : n;
      g.transpose_b = tb;
      g.c = c.data();
      g.ldc = n;
      if (whole) {
        Gemm(nullptr, DTypeOf<T>::value, g);
      } else {
        SerialGemm(DTypeOf<T>::value, g);
      }
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          double sum = 0;
          for (int64_t p = 0; p < k; ++p) {
            sum += static_cast<double>(a[static_cast<size_t>(ta ? p * m + i : i * k + p)]) *
                   static_cast<double>(b[static_cast<size_t>(tb ? j * k + p : p * n + j)]);
          }
          const double old = static_cast<double>(before[static_cast<size_t>(i * n + j)]);
          const double want = g.mode == GemmMode::kSet ? sum : g.mode == GemmMode::kAdd ? old + sum : old - sum;
          const double tolerance = std::is_same_v<T, float> ? 1e-4 : 1e-10;
          ASSERT_NEAR(static_cast<double>(c[static_cast<size_t>(i * n + j)]), want, tolerance)
              << m << "x" << n << "x" << k << " flags " << flags;
        }
      }
    }
  }
}

TYPED_TEST(GemmTest, TilesEqualTheWhole) {
  using T = TypeParam;
  const int64_t m = 600, n = 300, k = 64;
  const std::vector<T> a = Numbers<T>(m * k, 1), b = Numbers<T>(k * n, 2);
  std::vector<T> whole(static_cast<size_t>(m * n)), tiled(whole);
  GemmArgs g;
  g.m = m;
  g.n = n;
  g.k = k;
  g.a = a.data();
  g.lda = k;
  g.b = b.data();
  g.ldb = n;
  g.c = whole.data();
  g.ldc = n;
  SerialGemm(DTypeOf<T>::value, g);
  g.c = tiled.data();
  Gemm(nullptr, DTypeOf<T>::value, g);
  for (size_t i = 0; i < whole.size(); ++i) {
    ASSERT_NEAR(static_cast<double>(whole[i]), static_cast<double>(tiled[i]), 1e-4);
  }
}

TEST(ComplexGemm, EqualsTheDefinition) {
  using C = complex128;
  for (int flags = 0; flags < 16; ++flags) {
    for (const GemmMode mode : {GemmMode::kSet, GemmMode::kAdd, GemmMode::kSubtract}) {
      for (const auto& [m, n, k] : std::vector<std::array<int64_t, 3>>{
               {1, 1, 1}, {2, 2, 2}, {7, 3, 5}, {1, 40, 9}, {13, 35, 130}, {3, 2, 0}, {6, 8, 1}}) {
        const auto part = [](int64_t count, uint32_t seed) {
          const std::vector<double> re = Numbers<double>(count, seed), im = Numbers<double>(count, seed + 1);
          std::vector<C> v;
          for (size_t i = 0; i < re.size(); ++i) v.emplace_back(re[i], im[i]);
          return v;
        };
        const std::vector<C> a = part(m * k, 1), b = part(k * n, 3), before = part(m * n, 5);
        std::vector<C> c = before;
        GemmArgs g;
        g.m = m, g.n = n, g.k = k;
        g.a = a.data(), g.b = b.data(), g.c = c.data();
        g.transpose_a = flags & 1, g.transpose_b = flags & 2;
        g.lda = g.transpose_a ? m : k, g.ldb = g.transpose_b ? k : n, g.ldc = n;
        g.mode = mode;
        const bool conjugate_a = flags & 4, conjugate_b = flags & 8;
        ComplexGemm(DType::kComplex128, g, conjugate_a, conjugate_b);
        for (int64_t i = 0; i < m; ++i) {
          for (int64_t j = 0; j < n; ++j) {
            C sum = 0;
            for (int64_t p = 0; p < k; ++p) {
              const C x = a[static_cast<size_t>(g.transpose_a ? p * m + i : i * k + p)];
              const C y = b[static_cast<size_t>(g.transpose_b ? j * k + p : p * n + j)];
              sum += (conjugate_a ? std::conj(x) : x) * (conjugate_b ? std::conj(y) : y);
            }
            const auto at = static_cast<size_t>(i * n + j);
            const C want = mode == GemmMode::kSet ? sum : mode == GemmMode::kAdd ? before[at] + sum : before[at] - sum;
            EXPECT_LE(std::abs(c[at] - want), 1e-12) << m << " " << n << " " << k << " " << flags;
          }
        }
      }
    }
  }
}

TEST(PairGemm, EqualsTheDefinition) {
  for (const auto& [m, n, k] :
       std::vector<std::array<int64_t, 3>>{{32, 32, 64}, {13, 37, 33}, {1, 64, 64}, {64, 8, 9}}) {
    for (const bool turned : {false, true}) {
      std::vector<BFloat16> a, b, c(static_cast<size_t>(m * n));
      for (const float v : Numbers<float>(m * k, 1)) a.emplace_back(v);
      for (const float v : Numbers<float>(k * n, 2)) b.emplace_back(v);
      GemmArgs g;
      g.m = m, g.n = n, g.k = k;
      g.a = a.data(), g.b = b.data(), g.c = c.data();
      g.transpose_b = turned;
      g.lda = k, g.ldb = turned ? k : n, g.ldc = n;
      if (!IsPairGemm(g)) continue;  // not of this processor
      PairGemm(g);
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          double sum = 0, sizes = 0;
          for (int64_t p = 0; p < k; ++p) {
            const double x = static_cast<double>(static_cast<float>(a[static_cast<size_t>(i * k + p)]));
            const double y =
                static_cast<double>(static_cast<float>(b[static_cast<size_t>(turned ? j * k + p : p * n + j)]));
            sum += x * y;
            sizes += std::abs(x * y);
          }
          const double got = static_cast<double>(static_cast<float>(c[static_cast<size_t>(i * n + j)]));
          EXPECT_LE(std::abs(got - sum), std::abs(sum) * 0x1.01p-8 + sizes * 0x1p-20) << m << " " << n << " " << k;
        }
      }
    }
  }
}

TEST(BatchBroadcast, Indices) {
  BatchBroadcast b;
  ASSERT_TRUE(b.Init(*Shape::Make({2, 1, 5, 6}), *Shape::Make({3, 6, 7})).ok());
  b.MakeIndices();
  EXPECT_EQ(b.count(), 6);
  EXPECT_EQ(b.x_of(2), 0);
  EXPECT_EQ(b.x_of(3), 1);
  EXPECT_EQ(b.y_of(5), 2);
  EXPECT_EQ(b.ResultShape(5, 7)->ToString(), "[2,3,5,7]");
  EXPECT_FALSE(b.Init(*Shape::Make({2, 5, 6}), *Shape::Make({3, 6, 7})).ok());
}

template <typename T>
std::vector<T> Square(int64_t n) {
  std::vector<T> a(static_cast<size_t>(n * n));
  const std::vector<double> re = Numbers<double>(n * n, 5), im = Numbers<double>(n * n, 6);
  for (size_t i = 0; i < a.size(); ++i) {
    if constexpr (std::is_floating_point_v<T>) {
      a[i] = static_cast<T>(re[i]);
    } else {
      a[i] = T(re[i], im[i]);
    }
  }
  return a;
}

template <typename T>
class DenseTest : public ::testing::Test {};
using DenseTypes = ::testing::Types<double, std::complex<double>>;
TYPED_TEST_SUITE(DenseTest, DenseTypes);

TYPED_TEST(DenseTest, FactorsSolve) {
  using T = TypeParam;
  for (const int64_t n : {1, 2, 31, 33, 64, 100, 130}) {
    const std::vector<T> a = Square<T>(n);
    for (const bool adjoint : {false, true}) {
      std::vector<T> factors(a.size()), x(static_cast<size_t>(n * 3));
      std::vector<int64_t> pivots(static_cast<size_t>(n));
      dense::CopyMatrix(a.data(), n, adjoint, factors.data());
      ASSERT_TRUE(dense::Factorize<T>(nullptr, factors.data(), n, pivots.data()));
      for (size_t i = 0; i < x.size(); ++i) x[i] = T(static_cast<double>(i % 7));
      const std::vector<T> rhs = x;
      dense::SolveFactorized<T>(nullptr, factors.data(), pivots.data(), n, x.data(), 3);
      const dense::View<T> view{a.data(), n, adjoint};
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t j = 0; j < 3; ++j) {
          T sum = 0;
          for (int64_t p = 0; p < n; ++p) sum += view(i, p) * x[static_cast<size_t>(p * 3 + j)];
          ASSERT_LT(std::abs(sum - rhs[static_cast<size_t>(i * 3 + j)]), 1e-8) << n;
        }
      }
    }
  }
}

TYPED_TEST(DenseTest, CholeskyOfAProduct) {
  using T = TypeParam;
  for (const int64_t n : {1, 2, 63, 64, 65, 150}) {
    const std::vector<T> a = Square<T>(n);
    std::vector<T> product(a.size());
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        T sum = i == j ? T(0.5) : T(0);
        for (int64_t p = 0; p < n; ++p)
          sum += a[static_cast<size_t>(i * n + p)] * dense::Conj(a[static_cast<size_t>(j * n + p)]);
        product[static_cast<size_t>(i * n + j)] = sum;
      }
    }
    std::vector<T> l = product;
    ASSERT_TRUE(dense::Cholesky<T>(nullptr, l.data(), n));
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j <= i; ++j) {
        T sum = 0;
        for (int64_t p = 0; p <= j; ++p)
          sum += l[static_cast<size_t>(i * n + p)] * dense::Conj(l[static_cast<size_t>(j * n + p)]);
        ASSERT_LT(std::abs(sum - product[static_cast<size_t>(i * n + j)]), 1e-9 * static_cast<double>(n)) << n;
      }
    }
    l[0] = T(-1);
    EXPECT_FALSE(dense::Cholesky<T>(nullptr, l.data(), n));
  }
}

TEST(Dense, DeterminantWithoutOverflow) {
  std::vector<float> a(16, 0.0f);
  for (size_t i = 0; i < 4; ++i) a[i * 5] = i < 2 ? 1e30f : 1e-30f;
  std::vector<int64_t> pivots(4);
  ASSERT_TRUE(dense::Factorize<float>(nullptr, a.data(), 4, pivots.data()));
  EXPECT_NEAR(dense::DeterminantOfFactors(a.data(), pivots.data(), 4), 1.0f, 1e-5f);
  std::fill(a.begin(), a.end(), 0.0f);
  EXPECT_FALSE(dense::Factorize<float>(nullptr, a.data(), 4, pivots.data()));
  EXPECT_EQ(dense::DeterminantOfFactors(a.data(), pivots.data(), 4), 0.0f);
}

// The time of 64 threads that take one tile after another, in tiles' own time, beside an even share.
TEST(GemmTiling, LargeProductsOccupyManyThreads) {
  constexpr int64_t kThreads = 64;
  struct Case {
    int64_t m, n, k;
    double least;  // the share of the threads' time that is work
  };
  for (const Case& c : {Case{4096, 4096, 4096, 0.75}, {8192, 4096, 4096, 0.75}, {2048, 2048, 2048, 0.4}}) {
    const GemmTiling t = TileGemm(c.m, c.n, c.k);
    ASSERT_GE(t.rows * t.down, c.m);
    ASSERT_GE(t.columns * t.across, c.n);
    const int64_t tiles = t.down * t.across, rounds = (tiles + kThreads - 1) / kThreads;
    const double work = 2.0 * static_cast<double>(c.m) * static_cast<double>(c.n) * static_cast<double>(c.k);
    const double busy = work / (static_cast<double>(rounds * kThreads) * t.flops);
    EXPECT_GE(busy, c.least) << c.m << " x " << c.n << " x " << c.k << ": " << tiles << " tiles";
  }
  const GemmTiling small = TileGemm(64, 64, 64);
  EXPECT_EQ(small.down * small.across, 1);
}

}  // namespace
}  // namespace millrace
