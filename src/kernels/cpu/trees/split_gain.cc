// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/trees/split_gain.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/stop_scope.h"

namespace millrace {
namespace {

// A square matrix, column by column.
class Square {
 public:
  explicit Square(size_t n) : n_(n), values_(n * n) {}
  size_t size() const { return n_; }
  float& operator()(size_t row, size_t column) { return values_[column * n_ + row]; }
  float* column(size_t c) { return values_.data() + c * n_; }
  float SquaredNormBelow(size_t row, size_t c) {
    float sum = 0;
    for (size_t i = row; i < n_; ++i) sum += (*this)(i, c) * (*this)(i, c);
    return sum;
  }

 private:
  size_t n_;
  std::vector<float> values_;
};

// Turns column k of `a` below the diagonal into zeros by a reflection, which the columns after it and `b` undergo too
// (Golub and Van Loan, section 5.1).
void Reflect(size_t k, Square* a, std::vector<float>* b) {
  const size_t n = a->size();
  const float head = (*a)(k, k), tail = a->SquaredNormBelow(k + 1, k);
  if (!(tail > std::numeric_limits<float>::min())) return;
  const float beta = head >= 0 ? -std::sqrt(head * head + tail) : std::sqrt(head * head + tail);
  std::vector<float> v(n);
  v[k] = 1;
  for (size_t i = k + 1; i < n; ++i) v[i] = (*a)(i, k) / (head - beta);
  const float tau = (beta - head) / beta;
  StopNowAndThen pause;
  const auto apply = [&](float* column) {
    pause(static_cast<int64_t>(n));
    float dot = 0;
    for (size_t i = k; i < n; ++i) dot += v[i] * column[i];
    for (size_t i = k; i < n; ++i) column[i] -= tau * dot * v[i];
  };
  for (size_t c = k + 1; c < n; ++c) apply(a->column(c));
  apply(b->data());
  (*a)(k, k) = beta;
}

// A solution of a x = b by a QR factorisation that takes the longest column that is left first (section 5.4). Where the
// matrix is singular, what it does not determine is 0.
std::vector<float> Solve(Square a, std::vector<float> b) {
  const size_t n = a.size();
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), size_t{0});
  float longest = 0;
  for (size_t c = 0; c < n; ++c) longest = std::max(longest, std::sqrt(a.SquaredNormBelow(0, c)));
  const float rounding = longest * std::numeric_limits<float>::epsilon();
  const float nothing = rounding * rounding / static_cast<float>(n);
  size_t rank = 0;
  StopNowAndThen pause;
  for (; rank < n; ++rank) {
    size_t pivot = rank;
    float most = -1;
    for (size_t c = rank; c < n; ++c) {
      pause(static_cast<int64_t>(n));
      const float norm = a.SquaredNormBelow(rank, c);
      if (norm > most) most = norm, pivot = c;
    }
    if (!(most > 0) || most < nothing * static_cast<float>(n - rank)) break;
    if (pivot != rank) {
      std::swap_ranges(a.column(pivot), a.column(pivot) + n, a.column(rank));
      std::swap(order[pivot], order[rank]);
    }
    Reflect(rank, &a, &b);
  }
  std::vector<float> x(n);
  for (size_t k = rank; k-- > 0;) {
    pause(static_cast<int64_t>(n));
    b[k] /= a(k, k);
    for (size_t i = 0; i < k; ++i) b[i] -= a(i, k) * b[k];
    x[order[k]] = b[k];
  }
  return x;
}

// The same of a diagonal matrix: elements that are nothing beside the largest count as zeros.
std::vector<float> SolveDiagonal(const std::vector<float>& a, absl::Span<const float> b) {
  const size_t n = a.size();
  const auto norm_of = [&](size_t i) { return std::isnan(a[i]) ? -1.0f : a[i] * a[i]; };
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t i, size_t k) { return norm_of(i) > norm_of(k); });
  const float rounding = std::sqrt(norm_of(order[0])) * std::numeric_limits<float>::epsilon();
  const float nothing = rounding * rounding / static_cast<float>(n);
  std::vector<float> x(n);
  for (size_t k = 0; k < n; ++k) {
    const float norm = norm_of(order[k]);
    if (!(norm > 0) || norm < nothing * static_cast<float>(n - k)) break;
    x[order[k]] = b[order[k]] / a[order[k]];
  }
  return x;
}

float WeightsOf(const std::vector<float>& x, absl::Span<const float> gradients, absl::Span<float> weights) {
  float gain = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    weights[i] = -x[i];
    gain += -gradients[i] * weights[i];
  }
  return gain;
}

}  // namespace

LeafChoice BestLeaf(float gradient, float hessian, LeafPenalty penalty) {
  constexpr float kTiny = 1e-15f;
  if (penalty.l1 > 0) {
    if (gradient > penalty.l1) {
      gradient -= penalty.l1;
    } else if (gradient < -penalty.l1) {
      gradient += penalty.l1;
    } else {
      return {};
    }
  }
  if (hessian + penalty.l2 <= kTiny) return {};
  const float weight = -gradient / (hessian + penalty.l2);
  return {weight, -gradient * weight};
}

float BestLeaf(absl::Span<const float> gradients, absl::Span<const float> hessians, LeafPenalty penalty,
               absl::Span<float> weights) {
  const size_t n = gradients.size();
  if (n == 1) {
    const LeafChoice choice = BestLeaf(gradients[0], hessians[0], penalty);
    weights[0] = choice.weight;
    return choice.gain;
  }
  if (hessians.size() != n) {
    Square matrix(n);
    for (size_t i = 0; i < n * n; ++i) matrix.column(0)[i] = hessians[i];
    for (size_t i = 0; i < n; ++i) matrix(i, i) += penalty.l2;
    return WeightsOf(Solve(std::move(matrix), {gradients.begin(), gradients.end()}), gradients, weights);
  }
  std::vector<float> diagonal(n);
  for (size_t i = 0; i < n; ++i) diagonal[i] = hessians[i] + penalty.l2;
  if (std::find(diagonal.begin(), diagonal.end(), 0.0f) != diagonal.end())
    return WeightsOf(SolveDiagonal(diagonal, gradients), gradients, weights);
  float gain = 0;
  for (size_t i = 0; i < n; ++i) {
    weights[i] = -(1 / diagonal[i]) * gradients[i];
    gain += -gradients[i] * weights[i];
  }
  return gain;
}

}  // namespace millrace
