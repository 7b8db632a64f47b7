// SPDX-License-Identifier: Apache-2.0
// Inner loops of local response normalisation: one place, all its channels.
#pragma once

#include <cstddef>

namespace millrace {

struct LrnParameters {
  size_t radius = 5;
  float bias = 1, alpha = 1, beta = 0.5f;
};

// Both want `scratch` of 2 * channels + 4 * radius values; radius <= channels.
// y[c] = x[c] * n[c]^-beta, n[c] = bias + alpha * sum of x[k]^2 for |k - c| <= radius
void LrnForward(const LrnParameters& p, const float* x, size_t channels, float* scratch, float* y);
// dx[c] = g[c] * n[c]^-beta - 2 alpha beta x[c] * sum of g[k] y[k] / n[k] for |k - c| <= radius
void LrnBackward(const LrnParameters& p, const float* g, const float* x, const float* y, size_t channels,
                 float* scratch, float* dx);

}  // namespace millrace
