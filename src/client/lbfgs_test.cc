// SPDX-License-Identifier: Apache-2.0
#include "client/lbfgs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

namespace millrace {
namespace {

using Vector = std::vector<double>;
using Function = std::function<double(const Vector& x, Vector* gradient)>;

double DotOf(const Vector& a, const Vector& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}
double MaxOf(const Vector& v) {
  double most = 0;
  for (const double e : v) most = std::max(most, std::abs(e));
  return most;
}

struct Found {
  Vector x;
  double loss = 0;
  int iterations = 0, evaluations = 0;
  bool converged = false;
  std::string reason;
};

// Who has the vectors.
Found Minimize(const Function& f, Vector x, const LbfgsOptions& options) {
  Lbfgs solver = *Lbfgs::New(options);
  const size_t m = static_cast<size_t>(options.history), n = x.size();
  std::vector<Vector> basis(2 * m + 1, Vector(n));
  Vector d(n), at(n), gradient(n);
  Found found;
  double loss = f(x, &basis[2 * m]);
  found.evaluations = 1;
  StatusOr<Lbfgs::Move> move = solver.Tell({loss, MaxOf(basis[2 * m]), DotOf(basis[2 * m], basis[2 * m])});
  while (move.ok() && *move != Lbfgs::Move::kDone) {
    if (*move == Lbfgs::Move::kAccept) {
      const auto k = static_cast<size_t>(solver.slot());
      for (size_t i = 0; i < n; ++i) {
        basis[k][i] = at[i] - x[i];
        basis[m + k][i] = gradient[i] - basis[2 * m][i];
      }
      x = at;
      basis[2 * m] = gradient;
      Vector told = {MaxOf(gradient)};
      for (const size_t r : {k, m + k, 2 * m}) {
        for (const Vector& b : basis) told.push_back(DotOf(basis[r], b));
      }
      move = solver.Tell(told);
      continue;
    }
    if (*move == Lbfgs::Move::kTurn) {
      std::fill(d.begin(), d.end(), 0.0);
      for (size_t b = 0; b < basis.size(); ++b) {
        for (size_t i = 0; i < n; ++i) d[i] += solver.coefficients()[b] * basis[b][i];
      }
    }
    for (size_t i = 0; i < n; ++i) at[i] = x[i] + solver.step() * d[i];
    loss = f(at, &gradient);
    ++found.evaluations;
    move = solver.Tell({loss, DotOf(gradient, d)});
  }
  EXPECT_TRUE(move.ok()) << move.status();
  found.x = x;
  found.loss = solver.loss();
  found.iterations = solver.iterations();
  found.converged = solver.converged();
  found.reason = solver.reason();
  return found;
}

double Rosenbrock(const Vector& x, Vector* g) {
  double sum = 0;
  std::fill(g->begin(), g->end(), 0.0);
  for (size_t i = 0; i + 1 < x.size(); ++i) {
    const double a = x[i + 1] - x[i] * x[i], b = 1 - x[i];
    sum += 100 * a * a + b * b;
    (*g)[i] += -400 * a * x[i] - 2 * b;
    (*g)[i + 1] += 200 * a;
  }
  return sum;
}

TEST(LbfgsTest, FindsTheEndOfTheValley) {
  for (const size_t n : {size_t{2}, size_t{10}, size_t{100}}) {
    for (const int history : {1, 3, 10}) {
      Vector x(n, 1.0);
      for (size_t i = 0; i < n; i += 2) x[i] = -1.2;
      const Found found = Minimize(Rosenbrock, x, {.history = history, .loss_tolerance = 0, .max_iterations = 2000});
      EXPECT_TRUE(found.converged) << n << " " << history << " " << found.reason;
      // Some starts in many dimensions lead to the other, local minimum.
      EXPECT_TRUE(found.loss < 1e-8 || std::abs(found.loss - 3.986) < 1e-2) << found.loss;
      EXPECT_LT(found.evaluations, 2 * found.iterations + 20);
    }
  }
}

TEST(LbfgsTest, AQuadraticWithinItsHistoryNeedsAsManyStepsAsItHasDimensions) {
  const Vector curvature = {1, 10, 100, 1000};
  const auto f = [&](const Vector& x, Vector* g) {
    double sum = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      (*g)[i] = curvature[i] * x[i];
      sum += curvature[i] * x[i] * x[i] / 2;
    }
    return sum;
  };
  const Found found = Minimize(f, {1, 1, 1, 1}, {.loss_tolerance = 0, .max_iterations = 200});
  EXPECT_TRUE(found.converged);
  EXPECT_LT(MaxOf(found.x), 1e-5);
  EXPECT_LT(found.iterations, 25);
}

TEST(LbfgsTest, StepsOutOfTheDomainAreTakenBack) {
  const auto f = [](const Vector& x, Vector* g) {  // log barrier: not finite for x <= 0
    (*g)[0] = 1 - 1 / x[0];
    return x[0] > 0 ? x[0] - std::log(x[0]) : NAN;
  };
  const Found found = Minimize(f, {0.001}, {});
  EXPECT_TRUE(found.converged) << found.reason;
  EXPECT_NEAR(found.x[0], 1, 1e-4);
}

TEST(LbfgsTest, EndsWhereThereIsNoEnd) {
  const Found falls = Minimize(
      [](const Vector& x, Vector* g) {
        (*g)[0] = -1;
        return -x[0];
      },
      {0}, {});
  EXPECT_FALSE(falls.converged);
  EXPECT_LT(falls.evaluations, 100);
  const Found kinked = Minimize(  // no step from 1 with slope +-1 meets the curvature condition
      [](const Vector& x, Vector* g) {
        (*g)[0] = x[0] > 0 ? 1 : -1;
        return std::abs(x[0]);
      },
      {0.7}, {});
  EXPECT_LT(kinked.evaluations, 200);
  EXPECT_TRUE(Minimize(
                  [](const Vector&, Vector* g) {
                    (*g)[0] = 0;
                    return 1.0;
                  },
                  {3}, {})
                  .converged);
}

TEST(LbfgsTest, RefusesWhatMakesNoSense) {
  EXPECT_TRUE(absl::IsInvalidArgument(Lbfgs::New({.history = 0}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Lbfgs::New({.gradient_tolerance = NAN}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Lbfgs::New({.max_tries = 0}).status()));
  Lbfgs solver = *Lbfgs::New({});
  EXPECT_TRUE(absl::IsInvalidArgument(solver.Tell({1.0}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(solver.Tell({NAN, 1.0, 1.0}).status()));
  EXPECT_TRUE(solver.Tell({1.0, 0.0, 0.0}).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(solver.Tell({1.0, 0.0}).status()));
}

}  // namespace
}  // namespace millrace
