// SPDX-License-Identifier: Apache-2.0
// Which instruction sets code of its own per set is compiled for: what every processor has, AVX2, and AVX-512 as
// servers have had it since 2017. Those between and after them gain less than their code costs. A source that Highway
// compiles once per set includes this before hwy/foreach_target.h:
//
//   #include "kernels/cpu/engine/simd_targets.h"
//   #undef HWY_TARGET_INCLUDE
//   #define HWY_TARGET_INCLUDE "kernels/cpu/<family>/<this file>.cc"
//   #include "hwy/foreach_target.h"
#pragma once

#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
