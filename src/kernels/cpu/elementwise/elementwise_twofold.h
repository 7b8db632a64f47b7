// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cpu/elementwise/elementwise_table.h"

namespace millrace {

// f64 atan, atan2, atanh, erf and erfc as vector code, instead of the C library's, where the processor has it.
void AddTwofoldTiles(TileTable& t);

}  // namespace millrace
