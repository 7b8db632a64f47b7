// SPDX-License-Identifier: Apache-2.0
// Optimizer updates as functions over flat runs of elements. A run is the whole variable, or one row of it.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include "tensor/dtype.h"

namespace millrace {

// What a rule reads besides its arrays: scalars in the op's order (gradient and indices left out), and flags.
struct RuleFlags {
  bool use_nesterov = false;
  bool update_slots = true;
};
inline constexpr int kMaxRuleVariables = 4;  // var and up to three slots
inline constexpr int kMaxRuleScalars = 6;

// What a rule computes in: narrow floats in float.
template <typename T>
using RuleCompute = std::conditional_t<std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>, float, T>;

// T is float, double, complex64, complex128, Half or BFloat16. `vars[0]` is the variable, then its slots.
template <typename T>
using RuleFn = void (*)(const RuleCompute<T>* scalars, const RuleFlags& flags, T* const* vars, const T* grad,
                        int64_t n);

// The rule named as in "ApplyAdam" ("Adam"), or null: unknown, not defined for complex numbers, or without vector code
// for narrow floats, which then go through float.
template <typename T>
RuleFn<T> FindRule(const std::string& name);

}  // namespace millrace
