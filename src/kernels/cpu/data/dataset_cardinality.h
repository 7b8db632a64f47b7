// SPDX-License-Identifier: Apache-2.0
// How many elements a data set has, as far as the ops that made it tell without reading it.
#pragma once

#include "kernels/cpu/data/dataset.h"

namespace millrace {

inline constexpr int64_t kInfiniteCardinality = -1;
inline constexpr int64_t kUnknownCardinality = -2;

// kInfiniteCardinality where it never ends, kUnknownCardinality where only reading would tell.
int64_t CardinalityOf(const Dataset& dataset);

}  // namespace millrace
