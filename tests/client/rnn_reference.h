// SPDX-License-Identifier: Apache-2.0
// Recurrent cells as plain loops in double, for tests: written from the definitions, sharing nothing with the library.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

namespace reference {

// Row-major.
struct Matrix {
  size_t rows = 0, columns = 0;
  std::vector<double> v;
  Matrix() = default;
  Matrix(size_t r, size_t c, double value = 0) : rows(r), columns(c), v(r * c, value) {}
  Matrix(size_t r, size_t c, std::vector<double> values) : rows(r), columns(c), v(std::move(values)) {}
  double& at(size_t i, size_t j) { return v[i * columns + j]; }
  double at(size_t i, size_t j) const { return v[i * columns + j]; }
};

inline double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

inline Matrix Beside(const Matrix& a, const Matrix& b) {
  Matrix out(a.rows, a.columns + b.columns);
  for (size_t i = 0; i < a.rows; ++i) {
    for (size_t j = 0; j < out.columns; ++j) out.at(i, j) = j < a.columns ? a.at(i, j) : b.at(i, j - a.columns);
  }
  return out;
}

// a w + bias (bias may be empty)
inline Matrix Linear(const Matrix& a, const Matrix& w, const std::vector<double>& bias) {
  Matrix out(a.rows, w.columns);
  for (size_t i = 0; i < a.rows; ++i) {
    for (size_t j = 0; j < w.columns; ++j) {
      double sum = bias.empty() ? 0 : bias[j];
      for (size_t k = 0; k < a.columns; ++k) sum += a.at(i, k) * w.at(k, j);
      out.at(i, j) = sum;
    }
  }
  return out;
}

inline Matrix PlainStep(const Matrix& x, const Matrix& h, const Matrix& kernel, const Matrix& bias) {
  Matrix out = Linear(Beside(x, h), kernel, bias.v);
  for (double& e : out.v) e = std::tanh(e);
  return out;
}

inline Matrix GruStep(const Matrix& x, const Matrix& h, const Matrix& gates_kernel, const Matrix& gates_bias,
                      const Matrix& kernel, const Matrix& bias) {
  const Matrix gates = Linear(Beside(x, h), gates_kernel, gates_bias.v);
  const size_t n = h.columns;
  Matrix reset = h, out = h;
  for (size_t i = 0; i < h.rows; ++i) {
    for (size_t k = 0; k < n; ++k) reset.at(i, k) *= Sigmoid(gates.at(i, k));
  }
  const Matrix candidate = Linear(Beside(x, reset), kernel, bias.v);
  for (size_t i = 0; i < h.rows; ++i) {
    for (size_t k = 0; k < n; ++k) {
      const double u = Sigmoid(gates.at(i, n + k));
      out.at(i, k) = u * h.at(i, k) + (1 - u) * std::tanh(candidate.at(i, k));
    }
  }
  return out;
}

struct Lstm {
  Matrix kernel, bias, w_f, w_i, w_o, projection;  // the last four may be empty
  double forget_bias = 1, cell_clip = 0, proj_clip = 0;

  void Step(const Matrix& x, Matrix* c, Matrix* h) const {
    const Matrix g = Linear(Beside(x, *h), kernel, bias.v);
    const size_t n = c->columns;
    Matrix out(x.rows, n);
    auto weight = [](const Matrix& w, size_t k) { return w.v.empty() ? 0.0 : w.v[k]; };
    auto clip = [](double v, double limit) { return limit > 0 ? std::fmin(std::fmax(v, -limit), limit) : v; };
    for (size_t b = 0; b < x.rows; ++b) {
      for (size_t k = 0; k < n; ++k) {
        const double before = c->at(b, k);
        const double i = Sigmoid(g.at(b, k) + weight(w_i, k) * before);
        const double f = Sigmoid(g.at(b, 2 * n + k) + forget_bias + weight(w_f, k) * before);
        const double now = clip(f * before + i * std::tanh(g.at(b, n + k)), cell_clip);
        c->at(b, k) = now;
        out.at(b, k) = Sigmoid(g.at(b, 3 * n + k) + weight(w_o, k) * now) * std::tanh(now);
      }
    }
    *h = projection.v.empty() ? out : Linear(out, projection, {});
    for (double& e : h->v) e = projection.v.empty() ? e : clip(e, proj_clip);
  }
};

}  // namespace reference
