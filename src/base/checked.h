// SPDX-License-Identifier: Apache-2.0
// Arithmetic on numbers that come from input: each function says whether the result fits.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace millrace {

// True and *out = a op b when the exact result fits in T; false otherwise.
template <typename T>
[[nodiscard]] inline bool CheckedAdd(T a, T b, T* out) {
  return !__builtin_add_overflow(a, b, out);
}
template <typename T>
[[nodiscard]] inline bool CheckedSub(T a, T b, T* out) {
  return !__builtin_sub_overflow(a, b, out);
}
template <typename T>
[[nodiscard]] inline bool CheckedMul(T a, T b, T* out) {
  return !__builtin_mul_overflow(a, b, out);
}

// Integer division with the corner cases defined: the divisor 0 gives false, min / -1 wraps to min (min % -1 is 0).
template <typename T>
[[nodiscard]] inline bool CheckedDiv(T a, T b, T* out) {
  if (b == 0) return false;
  if constexpr (std::is_signed_v<T>) {
    if (b == T(-1)) {
      *out = static_cast<T>(std::make_unsigned_t<T>(0) - static_cast<std::make_unsigned_t<T>>(a));
      return true;
    }
  }
  *out = static_cast<T>(a / b);
  return true;
}
template <typename T>
[[nodiscard]] inline bool CheckedMod(T a, T b, T* out) {
  if (b == 0) return false;
  if constexpr (std::is_signed_v<T>) {
    if (b == T(-1)) {
      *out = 0;
      return true;
    }
  }
  *out = static_cast<T>(a % b);
  return true;
}

// `index` into [-size, size) made non-negative; false when outside. The one place that accepts negative axes.
[[nodiscard]] inline bool NormalizeIndex(int64_t index, int64_t size, int64_t* out) {
  if (index < -size || index >= size) return false;
  *out = index < 0 ? index + size : index;
  return true;
}
// 0 <= i < n in one comparison.
[[nodiscard]] inline bool InRange(int64_t i, int64_t n) { return static_cast<uint64_t>(i) < static_cast<uint64_t>(n); }

// Float to integer without undefined behaviour: NaN gives 0, out of range saturates.
template <typename To, typename From>
[[nodiscard]] inline To SaturatingCast(From v) {
  static_assert(std::is_floating_point_v<From> && std::is_integral_v<To>);
  if (std::isnan(v)) return 0;
  constexpr From kLow = static_cast<From>(std::numeric_limits<To>::min());
  constexpr From kHigh = static_cast<From>(std::numeric_limits<To>::max());  // rounds up to 2^k for wide types
  if (v <= kLow) return std::numeric_limits<To>::min();
  if (v >= kHigh) return std::numeric_limits<To>::max();
  return static_cast<To>(v);
}

}  // namespace millrace
