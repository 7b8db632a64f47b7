// SPDX-License-Identifier: Apache-2.0
// Which ops a convolution or a product can do on the way: what one kernel may stand for.
#pragma once

#include "absl/strings/string_view.h"

namespace millrace {

enum class FusionPart : uint8_t {
  kNone,
  kConvolution,    // what the others follow, with a fused form `_Fused<op>`
  kProduct,        // likewise, of two matrices
  kBias,           // of the channels of input 0
  kNormalization,  // of input 0, by moments that are given
  kAddition,       // of two values
  kActivation,     // of each element by itself
  kUniform,        // random numbers from 0 on, never -0: with 0 added they are what they were
};

FusionPart FusionPartOf(absl::string_view op);
// In the attribute `fused_ops`; versions of an op have one name.
absl::string_view FusedName(absl::string_view op);

}  // namespace millrace
