// SPDX-License-Identifier: Apache-2.0
#include "client/lbfgs.h"

#include <algorithm>
#include <cmath>

namespace millrace {
namespace {

constexpr double kSufficientDecrease = 1e-4, kCurvature = 0.9;  // of the strong Wolfe conditions
constexpr double kMaxGrowth = 10;                               // of a step beyond all that was tried

// The minimum of the cubic with these values and slopes at a and b; NaN where it has none.
double CubicMinimum(double a, double loss_a, double slope_a, double b, double loss_b, double slope_b) {
  const double d1 = slope_a + slope_b - 3 * (loss_a - loss_b) / (a - b);
  const double under = d1 * d1 - slope_a * slope_b;
  if (!(under >= 0)) return NAN;
  const double d2 = std::copysign(std::sqrt(under), b - a);
  return b - (b - a) * (slope_b + d2 - d1) / (slope_b - slope_a + 2 * d2);
}

}  // namespace

Lbfgs::Lbfgs(const LbfgsOptions& options)
    : options_(options),
      size_(2 * static_cast<size_t>(options.history) + 1),
      dots_(size_ * size_),
      coefficients_(size_) {}

StatusOr<Lbfgs> Lbfgs::New(const LbfgsOptions& options) {
  if (options.history < 1 || options.history > 1000) {
    return InvalidArgument("L-BFGS keeps 1 to 1000 pairs, not ", options.history);
  }
  if (options.max_iterations < 1 || options.max_tries < 1) {
    return InvalidArgument(
        "max_iterations and max_tries must be positive, got ", options.max_iterations, " and ", options.max_tries);
  }
  if (!(options.gradient_tolerance >= 0 && options.loss_tolerance >= 0)) {
    return InvalidArgument(
        "tolerances must not be negative, got ", options.gradient_tolerance, " and ", options.loss_tolerance);
  }
  return Lbfgs(options);
}

Lbfgs::Move Lbfgs::Done(bool converged, std::string reason) {
  is_over_ = true;
  converged_ = converged;
  reason_ = std::move(reason);
  return asked_ = Move::kDone;
}

StatusOr<Lbfgs::Move> Lbfgs::Tell(absl::Span<const double> values) {
  if (is_over_) return FailedPrecondition("this L-BFGS is done: ", reason_);
  const size_t wanted = !has_begun_ ? 3 : asked_ == Move::kAccept ? 1 + 3 * size_ : 2;
  if (values.size() != wanted) return InvalidArgument("L-BFGS was told ", values.size(), " numbers, wants ", wanted);
  if (!has_begun_) {
    for (const double v : values) {
      if (!std::isfinite(v)) return InvalidArgument("the first loss and gradient must be finite, got ", v);
    }
    has_begun_ = true;
    loss_ = values[0];
    if (values[1] <= options_.gradient_tolerance) return Done(true, "the gradient is as small as it is to be");
    dots_[G() * size_ + G()] = values[2];
    return Turn();
  }
  return asked_ == Move::kAccept ? Accepted(values) : Search({step_, values[0], values[1]});
}

// The direction: two loops over the pairs, on coefficients instead of vectors.
Lbfgs::Move Lbfgs::Turn() {
  std::vector<double>& c = coefficients_;
  const auto times = [&](size_t i) {  // the vector so far, times basis i
    double sum = 0;
    for (size_t j = 0; j < size_; ++j) sum += c[j] * Dot(j, i);
    return sum;
  };
  std::fill(c.begin(), c.end(), 0.0);
  c[G()] = -1;
  std::vector<double> alphas(pairs_.size());
  for (size_t p = pairs_.size(); p-- > 0;) {
    const size_t s = S(pairs_[p]), y = Y(pairs_[p]);
    alphas[p] = times(s) / Dot(s, y);
    c[y] -= alphas[p];
  }
  if (!pairs_.empty()) {
    const size_t s = S(pairs_.back()), y = Y(pairs_.back());
    for (double& v : c) v *= Dot(s, y) / Dot(y, y);
  }
  for (size_t p = 0; p < pairs_.size(); ++p) {
    const size_t s = S(pairs_[p]), y = Y(pairs_[p]);
    c[s] += alphas[p] - times(y) / Dot(s, y);
  }
  slope_ = times(G());
  if (!(slope_ < 0)) {  // of rounding: the pairs are worth nothing any more
    if (pairs_.empty()) return Done(false, "the gradient has no length");
    pairs_.clear();
    return Turn();
  }
  has_bracket_ = false;
  tries_ = 0;
  low_ = {0, loss_, slope_};
  step_ = pairs_.empty() ? std::min(1.0, 1 / std::sqrt(Dot(G(), G()))) : 1;
  return asked_ = Move::kTurn;
}

Lbfgs::Move Lbfgs::Search(const Trial& tried) {
  ++tries_;
  const bool finite = std::isfinite(tried.loss) && std::isfinite(tried.slope);
  const bool decreases = finite && tried.loss <= loss_ + kSufficientDecrease * tried.step * slope_;
  if (decreases && std::abs(tried.slope) <= -kCurvature * slope_) {
    accepted_ = tried;
    slot_ = 0;  // the lowest that is free, or the oldest
    while (std::find(pairs_.begin(), pairs_.end(), slot_) != pairs_.end()) ++slot_;
    if (slot_ == options_.history) slot_ = pairs_.front();
    return asked_ = Move::kAccept;
  }
  if (tries_ >= options_.max_tries) return GiveUpSearch();
  if (!decreases || (low_.step > 0 && tried.loss >= low_.loss) || (has_bracket_ && tried.loss >= low_.loss)) {
    high_ = finite ? tried : Trial{tried.step, INFINITY, INFINITY};
    has_bracket_ = true;
    return Zoom();
  }
  if (has_bracket_) {
    if (tried.slope * (high_.step - low_.step) >= 0) high_ = low_;
    low_ = tried;
    return Zoom();
  }
  if (tried.slope >= 0) {
    high_ = low_;
    low_ = tried;
    has_bracket_ = true;
    return Zoom();
  }
  // Further: where the cubic has its minimum, within limits.
  double next = CubicMinimum(low_.step, low_.loss, low_.slope, tried.step, tried.loss, tried.slope);
  if (!(next >= 1.1 * tried.step)) next = std::isfinite(next) ? 2 * tried.step : kMaxGrowth * tried.step;
  low_ = tried;
  step_ = std::min(next, kMaxGrowth * tried.step);
  return asked_ = Move::kTry;
}

Lbfgs::Move Lbfgs::Zoom() {
  const double left = std::min(low_.step, high_.step), width = std::abs(high_.step - low_.step);
  if (!(width > 1e-16 * std::max(1e-300, std::abs(low_.step) + std::abs(high_.step)))) return GiveUpSearch();
  double next = std::isfinite(high_.loss)
                    ? CubicMinimum(low_.step, low_.loss, low_.slope, high_.step, high_.loss, high_.slope)
                    : NAN;
  if (!(next > left + 0.1 * width && next < left + 0.9 * width)) next = left + 0.5 * width;
  step_ = next;
  return asked_ = Move::kTry;
}

Lbfgs::Move Lbfgs::GiveUpSearch() {
  if (pairs_.empty()) return Done(false, "no step along the direction meets the Wolfe conditions");
  pairs_.clear();  // along the gradient, once
  return Turn();
}

Lbfgs::Move Lbfgs::Accepted(absl::Span<const double> values) {
  const double before = loss_;
  loss_ = accepted_.loss;
  ++iterations_;
  const size_t rows[] = {S(slot_), Y(slot_), G()};
  for (size_t r = 0; r < 3; ++r) {
    for (size_t j = 0; j < size_; ++j) {
      dots_[rows[r] * size_ + j] = dots_[j * size_ + rows[r]] = values[1 + r * size_ + j];
    }
  }
  if (!pairs_.empty() && pairs_.front() == slot_ && pairs_.size() == static_cast<size_t>(options_.history)) {
    pairs_.erase(pairs_.begin());
  }
  const size_t s = S(slot_), y = Y(slot_);
  if (Dot(s, y) > 1e-10 * std::sqrt(Dot(s, s) * Dot(y, y))) pairs_.push_back(slot_);
  if (values[0] <= options_.gradient_tolerance) return Done(true, "the gradient is as small as it is to be");
  const double scale = std::max({std::abs(before), std::abs(loss_), 1.0});
  if (before - loss_ <= options_.loss_tolerance * scale) return Done(true, "the loss hardly falls any more");
  if (iterations_ >= options_.max_iterations) return Done(false, "max_iterations were made");
  return Turn();
}

}  // namespace millrace
