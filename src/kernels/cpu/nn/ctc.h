// SPDX-License-Identifier: Apache-2.0
// What the parts of connectionist temporal classification share.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernel/kernel_registry.h"

namespace millrace {

// inputs [time, batch, classes] with a length for each sequence, checked.
struct CtcInput {
  int64_t time = 0, batch = 0, classes = 0;
  std::vector<int64_t> lengths;
  int64_t blank() const { return classes - 1; }
  int64_t at(int64_t t, int64_t b) const { return (t * batch + b) * classes; }
};
// For decoders with TensorFlow's codes: FailedPrecondition where the lengths do not fit, and lengths below 0 mean none.
StatusOr<CtcInput> CheckCtcInput(const KernelContext& ctx, int lengths, bool is_decoder);

// Label sequences of a batch as outputs first (indices), first + step (values) and first + 2 * step (shape).
Status EmitLabels(KernelContext& ctx, const std::vector<std::vector<int64_t>>& labels, int first, int step);

// Logarithms of probabilities.
inline constexpr double kNever = -std::numeric_limits<double>::infinity();
inline double LogAdd(double a, double b) {
  if (a == kNever) return b;
  if (b == kNever) return a;
  const double top = std::max(a, b);
  return top + std::log1p(std::exp(std::min(a, b) - top));
}

void RegisterCtcDecoders(KernelRegistry& registry);

}  // namespace millrace
