// SPDX-License-Identifier: Apache-2.0
// What the case table does not ask: numbers that are not finite or hardly representable, threads, cancellation.
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cpu/engine/kernel_runner.h"
#include "kernels/cpu/linalg/linalg.h"
#include "kernels/cpu/linalg/linalg_schur_simd.h"

namespace millrace {
namespace {

constexpr char kEigen[] = "SelfAdjointEigV2(input:T) -> (e:T, v:T) | compute_v:bool=true; T:type";
constexpr char kSvd[] = "Svd(input:T) -> (s:T, u:T, v:T) | compute_uv:bool=true; full_matrices:bool=false; T:type";
constexpr char kQr[] = "Qr(input:T) -> (q:T, r:T) | full_matrices:bool=false; T:type";
constexpr char kSolve[] = "MatrixSolveLs(matrix:T, rhs:T, l2_regularizer:f64) -> (output:T) | fast:bool=true; T:type";

// n x n, of the size of `scale`, symmetric.
Tensor Matrix(int64_t n, double scale) {
  Tensor t = *Tensor::Make(DType::kDouble, *Shape::Make({n, n}));
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j <= i; ++j) {
      const double v = scale * std::sin(static_cast<double>(1 + i * i + 3 * j));
      t.mutable_data<double>()[i * n + j] = t.mutable_data<double>()[j * n + i] = v;
    }
  }
  return t;
}

AttrMap OfDouble() { return {{"T", AttrValue(DType::kDouble)}}; }

TEST(Spectral, NotFiniteInputsEnd) {
  KernelRunner runner(RegisterLinalgKernels, 2);
  for (const double bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    for (const int64_t at : {0, 7, 24}) {
      Tensor x = Matrix(5, 1);
      x.mutable_data<double>()[at] = bad;
      const bool read = at != 7;  // only the lower triangle is
      EXPECT_EQ(runner.Run(kEigen, OfDouble(), {x}).status().code() == absl::StatusCode::kInvalidArgument, read);
      const auto svd = runner.Run(kSvd, OfDouble(), {x});
      ASSERT_TRUE(svd.ok()) << svd.status();
      for (const double v : (*svd)[0].flat<double>()) EXPECT_TRUE(std::isnan(v));
      EXPECT_TRUE(runner.Run(kQr, OfDouble(), {x}).ok());
      AttrMap slow = OfDouble();
      slow["fast"] = AttrValue(false);
      EXPECT_TRUE(runner.Run(kSolve, slow, {x, x, Tensor::Scalar<double>(0)}).ok());
    }
  }
}

// Sizes around those of vectors and of the strips that rotations are applied to.
template <typename T>
void CheckEigen(int64_t n) {
  KernelRunner runner(RegisterLinalgKernels, 1);
  const Tensor exact = Matrix(n, 1);
  const double* a = exact.data<double>();
  Tensor x = *Tensor::Make(DTypeOf<T>::value, *Shape::Make({n, n}));
  for (int64_t i = 0; i < n * n; ++i) x.mutable_data<T>()[i] = static_cast<T>(a[i]);
  const auto eigen = runner.Run(kEigen, {{"T", AttrValue(DTypeOf<T>::value)}}, {x});
  ASSERT_TRUE(eigen.ok()) << eigen.status();
  const T *values = (*eigen)[0].data<T>(), *vectors = (*eigen)[1].data<T>();
  const double tolerance = static_cast<double>(std::numeric_limits<T>::epsilon()) * 40 * static_cast<double>(n);
  for (int64_t k = 0; k < n; ++k) {
    EXPECT_LE(values[std::max<int64_t>(k - 1, 0)], values[k]);
    for (int64_t i = 0; i < n; ++i) {
      double product = 0, overlap = 0;  // A v_k, and v_k^T v_i
      for (int64_t j = 0; j < n; ++j) {
        const auto v = static_cast<double>(vectors[j * n + k]);
        product += a[i * n + j] * v;
        overlap += v * static_cast<double>(vectors[j * n + i]);
      }
      ASSERT_NEAR(product, static_cast<double>(values[k]) * static_cast<double>(vectors[i * n + k]), tolerance) << n;
      ASSERT_NEAR(overlap, i == k ? 1.0 : 0.0, tolerance) << n;
    }
  }
}
TEST(Spectral, VectorsOfAnySize) {
  for (const int64_t n : {1, 2, 3, 4, 9, 17, 31, 40, 67, 100, 131}) {
    CheckEigen<float>(n);
    CheckEigen<double>(n);
  }
}

TEST(Spectral, ScaleDoesNotMatter) {
  KernelRunner runner(RegisterLinalgKernels, 2);
  const auto want = runner.Run(kSvd, OfDouble(), {Matrix(9, 1)}),
             eigen = runner.Run(kEigen, OfDouble(), {Matrix(9, 1)});
  ASSERT_TRUE(want.ok() && eigen.ok());
  for (const int shift : {-1070, -600, 600, 1022}) {
    const double scale = std::ldexp(1, shift);
    const auto got = runner.Run(kSvd, OfDouble(), {Matrix(9, scale)});
    const auto values = runner.Run(kEigen, OfDouble(), {Matrix(9, scale)});
    ASSERT_TRUE(got.ok() && values.ok());
    for (size_t i = 0; i < 9; ++i) {
      const double limit = shift < -1022 ? 0.05 : 1e-14;
      if (!std::isinf((*got)[0].flat<double>()[i])) {
        EXPECT_NEAR((*got)[0].flat<double>()[i] / scale, (*want)[0].flat<double>()[i], limit * 5);
        EXPECT_NEAR((*values)[0].flat<double>()[i] / scale, (*eigen)[0].flat<double>()[i], limit * 5);
      }
    }
  }
}

TEST(Spectral, ThreadsDoNotMatter) {
  KernelRunner one(RegisterLinalgKernels, 1), many(RegisterLinalgKernels, 4);
  for (const char* op : {kEigen, kSvd, kQr}) {
    const auto a = one.Run(op, OfDouble(), {Matrix(150, 1)}), b = many.Run(op, OfDouble(), {Matrix(150, 1)});
    ASSERT_TRUE(a.ok() && b.ok());
    for (size_t k = 0; k < a->size(); ++k) EXPECT_EQ((*a)[k].flat<double>(), (*b)[k].flat<double>());
  }
}

TEST(Spectral, EndsWithTheStep) {
  KernelRunner runner(RegisterLinalgKernels, 1);
  CancellationManager cancellation;
  cancellation.Cancel(Cancelled("enough"));
  runner.step.cancellation = &cancellation;
  for (const char* op : {kEigen, kSvd}) {
    EXPECT_EQ(runner.Run(op, OfDouble(), {Matrix(9, 1)}).status().code(), absl::StatusCode::kCancelled);
  }
}

// Random ones, ones near a diagonal of very different sizes, and such whose eigenvalues lie on a circle.
std::vector<double> SchurCase(int kind, int64_t n) {
  std::mt19937 random(static_cast<uint32_t>(7 * n + kind));
  std::normal_distribution<double> normal;
  std::vector<double> a(static_cast<size_t>(n * n));
  const auto size = [&](int64_t i) { return kind == 1 ? std::pow(10.0, -8.0 * static_cast<double>(i) / 100) : 1.0; };
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double v = kind == 2 ? (j == (i + 1) % n ? 1.0 : 0.0) : normal(random);
      if (kind == 1) v *= 1e-10 * std::sqrt(size(i) * size(j));
      a[static_cast<size_t>(i * n + j)] = v + (i == j && kind == 1 ? size(i) : 0.0);
    }
  }
  return a;
}

TEST(Schur, OfRealMatrices) {
  using C = complex128;
  for (int kind = 0; kind < 3; ++kind) {
    for (const int64_t n : {1, 2, 3, 4, 7, 16, 33, 101}) {
      const std::vector<double> a = SchurCase(kind, n);
      std::vector<double> t = a, adjoint(a.size());
      for (int64_t i = 0; i < n; ++i) adjoint[static_cast<size_t>(i * n + i)] = 1;
      ASSERT_TRUE(dense::RealSchur(t.data(), adjoint.data(), n)) << kind << " " << n;
      std::vector<C> triangle(t.begin(), t.end()), turned(adjoint.begin(), adjoint.end());
      dense::SplitBlocks(triangle.data(), turned.data(), n);
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t j = 0; j < i; ++j) EXPECT_EQ(triangle[static_cast<size_t>(i * n + j)], C(0)) << kind << " " << n;
      }
      double most = 0;
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          C sum = 0;  // of Q T Q^H
          for (int64_t k = 0; k < n; ++k) {
            C inner = 0;
            for (int64_t l = k; l < n; ++l) {
              inner += triangle[static_cast<size_t>(k * n + l)] * turned[static_cast<size_t>(l * n + j)];
            }
            sum += std::conj(turned[static_cast<size_t>(k * n + i)]) * inner;
          }
          most = std::max(most, std::abs(sum - a[static_cast<size_t>(i * n + j)]));
        }
      }
      EXPECT_LE(most, 1e-14 * static_cast<double>(n)) << kind << " " << n;
    }
  }
}

}  // namespace
}  // namespace millrace
