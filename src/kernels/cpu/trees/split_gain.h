// SPDX-License-Identifier: Apache-2.0
// What a leaf gives for the sums of the gradients g and hessians h of its examples: the weight w that is best for
// g w + (h + l2) w^2 / 2 + l1 |w|, and twice what that takes off the loss, its gain.
#pragma once

#include <cmath>
#include <vector>

#include "absl/types/span.h"

namespace millrace {

inline constexpr char kInequalityDefaultLeft[] = "INEQUALITY_DEFAULT_LEFT";
inline constexpr char kInequalityDefaultRight[] = "INEQUALITY_DEFAULT_RIGHT";
inline constexpr char kEqualityDefaultRight[] = "EQUALITY_DEFAULT_RIGHT";

inline constexpr float kGainTolerance = 1e-15f;
inline bool GainsAreEqual(float a, float b) { return std::abs(a - b) < kGainTolerance; }
inline bool GainIsLarger(float a, float b) { return a - b >= kGainTolerance; }

struct LeafPenalty {
  float l1 = 0;
  float l2 = 0;
};

struct LeafChoice {
  float weight = 0;
  float gain = 0;
};
LeafChoice BestLeaf(float gradient, float hessian, LeafPenalty penalty);

// For several logits. There are as many hessians, a diagonal, or the square of that: a matrix, column by column. Fills
// `weights`; returns the gain. l1 is only for one logit.
float BestLeaf(absl::Span<const float> gradients, absl::Span<const float> hessians, LeafPenalty penalty,
               absl::Span<float> weights);

}  // namespace millrace
