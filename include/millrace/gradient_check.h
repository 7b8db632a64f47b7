// SPDX-License-Identifier: Apache-2.0
// Whether a gradient is right: the Jacobian of an output by the graph's gradients beside central differences.
//
//   millrace::GradientCheck check(scope, x, y);
//   double off = check.Error(session, Tensor({0.5, 2.0}));   // small, for double about 1e-9
#pragma once

#include <algorithm>
#include <cmath>

#include "millrace/session.h"

namespace millrace {
inline namespace MILLRACE_CLIENT {

// d y_j / d x_i at [i * y's elements + j].
struct Jacobians {
  // By the graph's gradients, and by differences of y.
  std::vector<double> of_gradients, of_differences;

  // The greatest difference between both; NaN where one is not a number.
  double MaxError() const {
    double most = 0;
    for (size_t i = 0; i < of_gradients.size(); ++i) {
      const double off = std::abs(of_gradients[i] - of_differences[i]);
      most = std::isnan(off) ? off : std::max(most, off);
      if (std::isnan(most)) return most;
    }
    return most;
  }
};

// Adds the gradient of y with respect to x, both of type float or double, which other values may go between.
class GradientCheck {
 public:
  // Before the first step, since it adds operations. TF_INVALID_ARGUMENT for other types.
  GradientCheck(Scope scope, Output x, Output y) : x_(x), y_(y) {
    Scope s = scope.SubScope("gradient_check");
    const auto is_real = [](Output o) { return o && (o.dtype() == DType::kFloat || o.dtype() == DType::kDouble); };
    if (!is_real(x) || !is_real(y)) {
      s.Note(Status(TF_INVALID_ARGUMENT, "gradients are checked of x and y of type float or double"));
      return;
    }
    seed_ = s.WithName("seed").Placeholder(y.dtype());
    TF_Output raw_y = y.get(), raw_x = x.get(), raw_seed = seed_.get(), made{nullptr, 0};
    internal::CallStatus status;
    Api().AddGradients(s.graph().get(), &raw_y, 1, &raw_x, 1, &raw_seed, status, &made);
    s.Note(status.Get());
    gradient_ = Output(made);
  }

  // At this value of x, with whatever else y needs. Differences are taken over 2 * delta. Two steps for each element of
  // x and one for each of y.
  Returned<Jacobians> Run(const Session& session, const Tensor& at, const std::vector<Feed>& feeds = {},
                          double delta = 1e-3) const {
    Jacobians j;
    const Status s = TryRun(session, at, feeds, delta, &j);
    return internal::Give(s, std::move(j));
  }
  // The largest difference between both.
  Returned<double> Error(const Session& session, const Tensor& at, const std::vector<Feed>& feeds = {},
                         double delta = 1e-3) const {
    Jacobians j;
    const Status s = TryRun(session, at, feeds, delta, &j);
    return internal::Give(s, j.MaxError());
  }

 private:
  Status TryRun(const Session& session, const Tensor& at, const std::vector<Feed>& feeds, double delta,
                Jacobians* j) const {
    if (!x_ || !y_ || !seed_)
      return Status(TF_FAILED_PRECONDITION, "the gradient was not added: see the graph's status");
    if (!(delta > 0)) return Status(TF_INVALID_ARGUMENT, "delta must be positive");
    if (!at || at.dtype() != x_.dtype()) return Status(TF_INVALID_ARGUMENT, "the value is not of the type of x");
    std::vector<double> x = Numbers(at), y;
    Shape shape;
    const auto evaluate = [&](std::vector<double>* out) {
      std::vector<Feed> all = feeds;
      all.push_back({x_, Make(at.dtype(), at.shape(), x)});
      std::vector<Tensor> got;
      const Status s = session.TryRun(all, {y_}, {}, &got);
      if (s.ok()) *out = Numbers(got[0]), shape = got[0].shape();
      return s;
    };
    if (const Status s = evaluate(&y); !s.ok()) return s;
    j->of_gradients.assign(x.size() * y.size(), 0);
    j->of_differences.assign(x.size() * y.size(), 0);
    for (size_t i = 0; i < x.size(); ++i) {
      const double was = x[i];
      std::vector<double> above, below;
      x[i] = was + delta;
      if (const Status s = evaluate(&above); !s.ok()) return s;
      x[i] = was - delta;
      if (const Status s = evaluate(&below); !s.ok()) return s;
      x[i] = was;
      if (above.size() != y.size() || below.size() != y.size())
        return Status(TF_INVALID_ARGUMENT, "the shape of y changes with x");
      for (size_t k = 0; k < y.size(); ++k) j->of_differences[i * y.size() + k] = (above[k] - below[k]) / (2 * delta);
    }
    if (!gradient_) return Status();  // y does not depend on x
    std::vector<double> seed(y.size(), 0);
    for (size_t k = 0; k < y.size(); ++k) {
      seed[k] = 1;
      std::vector<Feed> all = feeds;
      all.push_back({x_, at});
      all.push_back({seed_, Make(y_.dtype(), shape, seed)});
      std::vector<Tensor> got;
      if (const Status s = session.TryRun(all, {gradient_}, {}, &got); !s.ok()) return s;
      const std::vector<double> row = Numbers(got[0]);
      if (row.size() != x.size()) return Status(TF_INTERNAL, "the gradient has not the shape of x");
      for (size_t i = 0; i < x.size(); ++i) j->of_gradients[i * y.size() + k] = row[i];
      seed[k] = 0;
    }
    return Status();
  }
  static std::vector<double> Numbers(const Tensor& t) {
    const auto n = static_cast<size_t>(t.num_elements());
    if (t.dtype() == DType::kDouble) return {t.data<double>(), t.data<double>() + n};
    return {t.data<float>(), t.data<float>() + n};
  }
  static Tensor Make(DType dtype, const Shape& shape, const std::vector<double>& values) {
    if (dtype == DType::kDouble) return Tensor::Of(shape, values);
    return Tensor::Of(shape, std::vector<float>(values.begin(), values.end()));
  }

  Output x_, y_, seed_, gradient_;
};

}  // namespace MILLRACE_CLIENT
}  // namespace millrace
