// SPDX-License-Identifier: Apache-2.0
// L-BFGS without vectors: what it must know of them are dot products, and what it says of them are coefficients, so
// that they may lie on any number of devices. Two-loop recursion (Nocedal 1980) on the matrix of dot products; line
// search for the strong Wolfe conditions (Nocedal and Wright, Numerical Optimization, 3.5 and 3.6).
//
// Who has the vectors keeps a point x, the gradient g there, a direction d, and a basis of 2m+1 vectors: m steps s, m
// changes of the gradient y (zero at first), and g. It tells what it found and is told what to do next:
//
//   kTurn    d = sum of coefficients[i] * basis[i], and then as kTry.
//   kTry     Tell the loss and the slope (gradient times d) at x + step * d.
//   kAccept  x + step * d is the new x. s[slot] = step * d, y[slot] = the gradient there - g, and g is the gradient
//            there. Tell the largest |element| of g, and the dot products of s[slot], y[slot] and g with all of the
//            basis.
//   kDone    x is the answer; reason() says why. (What was tried last may not be x.)
#pragma once

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "base/status.h"

namespace millrace {

struct LbfgsOptions {
  int history = 10;                  // m
  double gradient_tolerance = 1e-5;  // done when no element of the gradient is larger
  double loss_tolerance = 2.2e-9;    // done when a step gains less, relative to max(|loss| before, after, 1)
  int max_iterations = 100;
  int max_tries = 20;  // of one line search
};

class Lbfgs {
 public:
  enum class Move { kTurn, kTry, kAccept, kDone };
  // InvalidArgument for options that make no sense.
  static StatusOr<Lbfgs> New(const LbfgsOptions& options);

  // What was asked for; first of all the loss, the largest |element| of the gradient, and the gradient times itself.
  // InvalidArgument: it is not as many numbers as that, or the first loss or gradient is not finite. A loss or slope
  // that is not finite means that the step went too far.
  StatusOr<Move> Tell(absl::Span<const double> values);

  double step() const { return step_; }
  int slot() const { return slot_; }
  const std::vector<double>& coefficients() const { return coefficients_; }
  int iterations() const { return iterations_; }
  double loss() const { return loss_; }  // at x
  bool converged() const { return converged_; }
  const std::string& reason() const { return reason_; }

 private:
  struct Trial {
    double step = 0, loss = 0, slope = 0;
  };
  explicit Lbfgs(const LbfgsOptions& options);
  size_t S(int slot) const { return static_cast<size_t>(slot); }
  size_t Y(int slot) const { return static_cast<size_t>(options_.history + slot); }
  size_t G() const { return 2 * static_cast<size_t>(options_.history); }
  double Dot(size_t i, size_t j) const { return dots_[i * size_ + j]; }

  Move Turn();
  Move Search(const Trial& tried);
  Move Zoom();
  Move Done(bool converged, std::string reason);
  Move Accepted(absl::Span<const double> values);
  Move GiveUpSearch();

  LbfgsOptions options_;
  size_t size_;               // of the basis
  std::vector<double> dots_;  // of the basis, size_ * size_
  std::vector<double> coefficients_;
  std::vector<int> pairs_;  // slots of the history, oldest first
  Move asked_ = Move::kDone;
  bool has_begun_ = false, is_over_ = false, converged_ = false;
  int iterations_ = 0, slot_ = 0, tries_ = 0;
  double loss_ = 0, slope_ = 0, step_ = 0;  // at x, along d; of the trial
  // Of the line search: between low, the best so far, and high there is a good step, once `has_bracket_`.
  bool has_bracket_ = false;
  Trial low_, high_, accepted_;
  std::string reason_;
};

}  // namespace millrace
