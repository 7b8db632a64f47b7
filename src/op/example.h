// SPDX-License-Identifier: Apache-2.0
// The example inputs of an op declaration, from which its standard tests are made.
//
//   "f32[2,3]{1 2 3 4 5 6}, i32[]{1} | axis=1; name=\"x\""
//
// One item per flat input: dtype, shape, then {values} row-major, or a generator: '~' normal(0,1), '+' uniform in
// (0.5, 1.5), '/' uniform in (-0.9, 0.9), '#' 0,1,2,... Attributes that the inputs do not determine follow after '|',
// in the notation of schema defaults. A '!' before an item says: not an input to differentiate by. Strings are quoted.
#pragma once

#include <string>
#include <vector>

#include "op/op_def.h"

namespace millrace {

struct OpExample {
  std::vector<Tensor> inputs;
  std::vector<bool> differentiate;  // per input
  AttrMap attrs;
};
// `seed` feeds the generators; the same seed gives the same values everywhere.
StatusOr<OpExample> ParseExample(const OpDef& op, absl::string_view text, uint64_t seed = 1);

}  // namespace millrace
