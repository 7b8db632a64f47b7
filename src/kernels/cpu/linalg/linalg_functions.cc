// SPDX-License-Identifier: Apache-2.0
// CPU kernels: MatrixExponential, MatrixLogarithm, MatrixSquareRoot, in double precision.
//
// Exponential: Pade's approximant of degree 13 with scaling and squaring (Higham, SIAM J. Matrix Anal. 26, 2005).
// Square root: of the Schur form. Logarithm: square roots of the Schur form until it is close to one, then
// Gauss and Legendre's rule for the integral of X (1 + t X)^-1.
#include <array>

#include "base/stop_scope.h"
#include "kernels/cpu/engine/cost.h"
#include "kernels/cpu/linalg/linalg.h"
#include "kernels/cpu/linalg/linalg_dense.h"
#include "kernels/cpu/linalg/linalg_reflections.h"
#include "kernels/cpu/linalg/linalg_schur_simd.h"
#include "kernels/cpu/linalg/linalg_stack.h"

namespace millrace {
namespace {

using C = complex128;

template <typename T>
class Square {
 public:
  explicit Square(int64_t n) : n_(n), data_(static_cast<size_t>(n * n)) {}
  static Square One(int64_t n) {
    Square out(n);
    for (int64_t i = 0; i < n; ++i) out(i, i) = 1;
    return out;
  }
  int64_t n() const { return n_; }
  T* data() { return data_.data(); }
  const T* data() const { return data_.data(); }
  T& operator()(int64_t i, int64_t j) { return data_[static_cast<size_t>(i * n_ + j)]; }
  T operator()(int64_t i, int64_t j) const { return data_[static_cast<size_t>(i * n_ + j)]; }

  void Add(double scale, const Square& o) {
    for (size_t i = 0; i < data_.size(); ++i) data_[i] += scale * o.data_[i];
  }
  void Scale(double v) {
    for (T& x : data_) x *= v;
  }
  double Norm1() const {
    double most = 0;
    for (int64_t j = 0; j < n_; ++j) {
      double sum = 0;
      for (int64_t i = 0; i < n_; ++i) sum += std::abs((*this)(i, j));
      if (!(sum <= most)) most = sum;  // NaN stays
    }
    return most;
  }

 private:
  int64_t n_;
  std::vector<T> data_;
};

template <typename T>
Square<T> Product(const KernelContext* ctx, const Square<T>& a, const Square<T>& b) {
  StopIfAsked();
  const int64_t n = a.n();
  Square<T> out(n);
  dense::SubtractProduct(ctx, dense::View<T>{a.data(), n}, dense::View<T>{b.data(), n}, n, n, n, out.data(), n);
  out.Scale(-1);
  return out;
}

template <typename T>
Square<T> Exponential(const KernelContext* ctx, Square<T> a) {
  constexpr std::array<double, 14> kPade = {
      64764752532480000.0,
      32382376266240000.0,
      7771770303897600.0,
      1187353796428800.0,
      129060195264000.0,
      10559470521600.0,
      670442572800.0,
      33522128640.0,
      1323241920.0,
      40840800.0,
      960960.0,
      16380.0,
      182.0,
      1.0};
  const int64_t n = a.n();
  const double norm = a.Norm1();
  if (!std::isfinite(norm)) {
    Square<T> out(n);
    std::fill_n(out.data(), n * n, T(std::numeric_limits<double>::quiet_NaN()));
    return out;
  }
  const int squarings = norm > 5.37 ? std::max(0, std::ilogb(norm / 5.37) + 1) : 0;
  a.Scale(std::ldexp(1.0, -squarings));
  const Square<T> one = Square<T>::One(n), a2 = Product(ctx, a, a), a4 = Product(ctx, a2, a2),
                  a6 = Product(ctx, a4, a2);
  const auto half = [&](size_t odd) {
    Square<T> high(n);
    high.Add(kPade[12 + odd], a6);
    high.Add(kPade[10 + odd], a4);
    high.Add(kPade[8 + odd], a2);
    Square<T> sum = Product(ctx, a6, high);
    sum.Add(kPade[6 + odd], a6);
    sum.Add(kPade[4 + odd], a4);
    sum.Add(kPade[2 + odd], a2);
    sum.Add(kPade[odd], one);
    return sum;
  };
  const Square<T> u = Product(ctx, a, half(1)), v = half(0);
  Square<T> above = v, below = v;
  above.Add(1, u);
  below.Add(-1, u);
  std::vector<int64_t> pivots(static_cast<size_t>(n));
  dense::Factorize(ctx, below.data(), n, pivots.data());
  dense::SolveFactorized(ctx, below.data(), pivots.data(), n, above.data(), n);
  for (int i = 0; i < squarings; ++i) above = Product(ctx, above, above);
  return above;
}

// A = Q T Q^H with T of Hessenberg's form: by reflections, which turn the rows of Q^H.
void Hessenberg(Square<C>& t, Square<C>& adjoint) {
  const int64_t n = t.n();
  std::vector<C> memory(static_cast<size_t>(3 * n));
  C *const v = memory.data(), *const work = v + n, *const conjugate = work + n;
  for (int64_t k = 0; k + 2 < n; ++k) {
    StopIfAsked();
    const int64_t begin = k + 1, size = n - begin;
    for (int64_t i = begin; i < n; ++i) v[i] = std::exchange(t(i, k), C(0));
    C tau;
    t(begin, k) = dense::MakeReflection(v + begin, size, &tau);
    if (tau == C(0)) continue;
    dense::Reflect(v, tau, begin, n, t.data() + begin, n, size, work);
    dense::Reflect(v, tau, begin, n, adjoint.data(), n, n, work);
    // T -= (T v) conj(tau) v^H.
    for (int64_t i = 0; i < size; ++i) conjugate[i] = std::conj(dense::Times(tau, v[begin + i]));
    GemmArgs product;
    product.m = n;
    product.n = 1;
    product.k = size;
    product.a = t.data() + begin;
    product.lda = n;
    product.b = v + begin;
    product.ldb = 1;
    product.c = work;
    product.ldc = 1;
    dense::Multiply<C>(nullptr, product, false);
    dense::SubtractProduct(
        nullptr, dense::View<C>{work, 1}, dense::View<C>{conjugate, size}, n, size, 1, t.data() + begin, n);
  }
}

// A = Q T Q^H with T triangular. False when it was not found.
bool Schur(Square<C>& t, Square<C>& adjoint) {
  Hessenberg(t, adjoint);
  return dense::HessenbergToSchur(t.data(), adjoint.data(), t.n());
}

Square<C> TriangularRoot(const Square<C>& t) {
  Square<C> r(t.n());
  dense::RootOfTriangle(t.data(), r.data(), t.n());
  return r;
}

Square<C> TriangularLogarithm(Square<C> t) {
  // Nodes and weights of the rule with 8 places on [0, 1].
  constexpr double kPlaces[] = {0.1834346424956498, 0.5255324099163290, 0.7966664774136267, 0.9602898564975363};
  constexpr double kWeights[] = {0.3626837833783620, 0.3137066458778873, 0.2223810344533745, 0.1012285362903763};
  const int64_t n = t.n();
  std::vector<C> diagonal;
  for (int64_t i = 0; i < n; ++i) diagonal.push_back(std::log(t(i, i)));
  int roots = 0;
  Square<C> x = t;
  for (; roots < 100; ++roots) {
    for (int64_t i = 0; i < n; ++i) x(i, i) -= 1;
    if (!(x.Norm1() > 0.1)) break;
    t = TriangularRoot(t);
    x = t;
  }
  Square<C> sum(n), below(n), part(n);
  for (int k = 0; k < 8; ++k) {
    const double place = 0.5 + (k < 4 ? -0.5 : 0.5) * kPlaces[k % 4];
    part = below = x;
    below.Scale(place);
    for (int64_t i = 0; i < n; ++i) below(i, i) += 1;
    dense::SolveTriangle<C>(nullptr, dense::View<C>{below.data(), n}, false, false, n, part.data(), n, n);
    sum.Add(0.5 * kWeights[k % 4], part);
  }
  sum.Scale(std::ldexp(1.0, roots));
  for (int64_t i = 0; i < n; ++i) sum(i, i) = diagonal[static_cast<size_t>(i)];
  return sum;
}

template <typename T>
Square<T> NotANumber(int64_t n) {
  Square<T> out(n);
  std::fill_n(out.data(), n * n, T(std::numeric_limits<double>::quiet_NaN()));
  return out;
}

// Q X Q^H, from Q^H.
template <typename T>
Square<T> TurnedBack(const KernelContext* ctx, const Square<T>& x, const Square<T>& adjoint) {
  Square<T> q(x.n());
  dense::CopyMatrix(adjoint.data(), x.n(), true, q.data());
  return Product(ctx, Product(ctx, q, x), adjoint);
}

// Q F(T) Q^H; NaN where the Schur form was not found.
template <typename F>
Square<C> ThroughSchur(const KernelContext* ctx, Square<C> a, const F& of_triangle) {
  const int64_t n = a.n();
  Square<C> adjoint = Square<C>::One(n);
  if (!std::isfinite(a.Norm1()) || !Schur(a, adjoint)) return NotANumber<C>(n);
  for (int64_t i = 0; i < n; ++i) std::fill_n(a.data() + i * n, i, C(0));
  return TurnedBack(ctx, of_triangle(a), adjoint);
}

Square<C> Root(const KernelContext* ctx, Square<C> a) {
  return ThroughSchur(ctx, std::move(a), [](const Square<C>& t) { return TriangularRoot(t); });
}

// A real matrix has a real square root unless an eigenvalue is negative; then the result is NaN.
Square<double> Root(const KernelContext* ctx, Square<double> a) {
  const int64_t n = a.n();
  Square<double> adjoint = Square<double>::One(n), out(n);
  if (!std::isfinite(a.Norm1()) || !dense::RealSchur(a.data(), adjoint.data(), n)) return NotANumber<double>(n);
  bool is_real = true;
  for (int64_t i = 0; i < n; ++i) is_real = is_real && a(i, i) >= 0 && (i == 0 || a(i, i - 1) == 0);
  if (is_real) {
    dense::RootOfTriangle(a.data(), out.data(), n);
    return TurnedBack(ctx, out, adjoint);
  }
  Square<C> t(n), turned(n);
  std::copy_n(a.data(), n * n, t.data());
  std::copy_n(adjoint.data(), n * n, turned.data());
  dense::SplitBlocks(t.data(), turned.data(), n);
  const Square<C> root = TurnedBack(ctx, TriangularRoot(t), turned);
  const double size = root.Norm1();
  for (int64_t i = 0; i < n * n; ++i) {
    if (std::abs(root.data()[i].imag()) > 1e-7 * size) return NotANumber<double>(n);
    out.data()[i] = root.data()[i].real();
  }
  return out;
}

// out = fn(in) for each matrix, computed with numbers of type W.
template <typename T, typename W, typename Fn>
Status EachMatrix(KernelContext& ctx, const Fn& fn) {
  const Tensor& in = ctx.input(0);
  MR_RETURN_IF_ERROR(CheckSquare(in));
  const Shape shape = in.shape();
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  if (shape.num_elements() == 0) return absl::OkStatus();
  const int64_t n = shape.dim(shape.rank() - 1), size = n * n;
  const T* from = in.data<T>();
  T* to = out->mutable_data<T>();
  ForEachMatrix(ctx, shape.num_elements() / size, 4 * n, [&](int64_t i, const KernelContext* inner) {
    Square<W> a(n);
    for (int64_t k = 0; k < size; ++k) a.data()[k] = static_cast<W>(from[i * size + k]);
    const Square<W> y = fn(inner, std::move(a));
    for (int64_t k = 0; k < size; ++k) {
      to[i * size + k] = static_cast<T>(y.data()[k]);
    }
  });
  return absl::OkStatus();
}

template <typename T>
Status MatrixExponential(KernelContext& ctx) {
  using W = std::conditional_t<dense::kIsReal<T>, double, C>;
  return EachMatrix<T, W>(ctx, [](const KernelContext* c, Square<W> a) { return Exponential<W>(c, std::move(a)); });
}
template <typename T>
Status MatrixLogarithm(KernelContext& ctx) {
  return EachMatrix<T, C>(ctx, [](const KernelContext* c, Square<C> a) {
    return ThroughSchur(c, std::move(a), [](const Square<C>& t) { return TriangularLogarithm(t); });
  });
}
template <typename T>
Status MatrixSquareRoot(KernelContext& ctx) {
  using W = std::conditional_t<dense::kIsReal<T>, double, C>;
  return EachMatrix<T, W>(ctx, [](const KernelContext* c, Square<W> a) { return Root(c, std::move(a)); });
}

}  // namespace

void RegisterMatrixFunctionKernels(KernelRegistry& r) {
  r.AddFn({.op = "MatrixExponential", .types = {{"T", Types("f32")}}, .cost = CubicCost}, MatrixExponential<float>);
  r.AddFn({.op = "MatrixExponential", .types = {{"T", Types("f64")}}, .cost = CubicCost}, MatrixExponential<double>);
  r.AddFn({.op = "MatrixExponential", .types = {{"T", Types("c64")}}, .cost = CubicCost}, MatrixExponential<complex64>);
  r.AddFn(
      {.op = "MatrixExponential", .types = {{"T", Types("c128")}}, .cost = CubicCost}, MatrixExponential<complex128>);
  r.AddFn({.op = "MatrixLogarithm", .types = {{"T", Types("c64")}}, .cost = CubicCost}, MatrixLogarithm<complex64>);
  r.AddFn({.op = "MatrixLogarithm", .types = {{"T", Types("c128")}}, .cost = CubicCost}, MatrixLogarithm<complex128>);
  r.AddFn({.op = "MatrixSquareRoot", .types = {{"T", Types("f32")}}, .cost = CubicCost}, MatrixSquareRoot<float>);
  r.AddFn({.op = "MatrixSquareRoot", .types = {{"T", Types("f64")}}, .cost = CubicCost}, MatrixSquareRoot<double>);
  r.AddFn({.op = "MatrixSquareRoot", .types = {{"T", Types("c64")}}, .cost = CubicCost}, MatrixSquareRoot<complex64>);
  r.AddFn({.op = "MatrixSquareRoot", .types = {{"T", Types("c128")}}, .cost = CubicCost}, MatrixSquareRoot<complex128>);
}

}  // namespace millrace
