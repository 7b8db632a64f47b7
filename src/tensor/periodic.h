// SPDX-License-Identifier: Apache-2.0
// How PeriodicResample lays out the numbers of one dimension along the others; shared by shape functions and kernels.
#pragma once

#include <cstdint>
#include <vector>

#include "tensor/shape.h"

namespace millrace {

// For values of shape T and a wanted shape S that leaves dimension q open: S_q = floor(prod T / prod S_i), and
// dimension i grows by at most g_i = ceil(S_i / T_i). Element s of the result is element h of the values, where h_i =
// s_i / g_i and h_q = s_q + S_q * (the digits s_i mod g_i, the first dimension's the lowest).
struct PeriodicSizes {
  Shape shape;  // of the result
  // What each coordinate of the result adds to the flat place among the values, a list a dimension.
  std::vector<std::vector<int64_t>> PlacesIn(const Shape& values) const;
  int free = 0;  // q
};

// InvalidArgument unless the ranks are equal, one dimension is open, and no other shrinks.
StatusOr<PeriodicSizes> PeriodicSizesOf(const Shape& values, const PartialShape& wanted);

}  // namespace millrace
