// SPDX-License-Identifier: Apache-2.0
// Inner loops of local response normalisation: some places, one after another, all their channels.
#pragma once

#include <cstddef>

namespace millrace {

struct LrnParameters {
  size_t channels = 0;
  size_t radius = 5;  // at most the channels
  float bias = 1, alpha = 1, beta = 0.5f;
};

// How many values of scratch that many places want.
size_t LrnScratch(const LrnParameters& p, size_t places);
// y[c] = x[c] * n[c]^-beta, n[c] = bias + alpha * sum of x[k]^2 for |k - c| <= radius
void LrnForward(const LrnParameters& p, const float* x, size_t places, float* scratch, float* y);
// dx[c] = g[c] * n[c]^-beta - 2 alpha beta x[c] * sum of g[k] y[k] / n[k] for |k - c| <= radius
void LrnBackward(const LrnParameters& p, const float* g, const float* x, const float* y, size_t places, float* scratch,
                 float* dx);

}  // namespace millrace
