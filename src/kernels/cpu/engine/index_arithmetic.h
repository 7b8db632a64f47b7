// SPDX-License-Identifier: Apache-2.0
// Element arithmetic of the scatter, segment and window kernels: integers wrap, half types go through float, the
// maximum and the minimum of anything and NaN is NaN.
#pragma once

#include <complex>
#include <limits>
#include <type_traits>

#include "base/checked.h"
#include "tensor/dtype.h"

namespace millrace {

enum class RowOp : uint8_t { kAssign, kAdd, kSub, kMul, kDiv, kMin, kMax };

template <typename T>
inline constexpr bool kIsHalf = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;
template <typename T>
inline constexpr bool kIsComplexType = std::is_same_v<T, complex64> || std::is_same_v<T, complex128>;

// The type that sums and products of T are kept in.
template <typename T>
using Accumulator = std::conditional_t<kIsHalf<T>, float, T>;

template <typename T>
T LowestOf() {
  if constexpr (kIsHalf<T>) {
    return T::FromBits(std::is_same_v<T, Half> ? 0xfbff : 0xff7f);
  } else {
    return std::numeric_limits<T>::lowest();
  }
}
template <typename T>
T HighestOf() {
  if constexpr (kIsHalf<T>) {
    return T::FromBits(std::is_same_v<T, Half> ? 0x7bff : 0x7f7f);
  } else {
    return std::numeric_limits<T>::max();
  }
}

// Whether a takes the place of b as the largest so far: NaN is above everything, and the first of equals stays.
template <typename T>
inline bool IsAbove(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (a != a) return b == b;
  }
  return a > b;
}

// a op b, for types that C++ can calculate with.
template <RowOp op, typename T>
inline T Combine(T a, T b) {
  if constexpr (op == RowOp::kMax) {
    const T larger = b > a ? b : a;  // in this form the compiler makes vector code of it
    return b != b ? b : larger;
  } else if constexpr (op == RowOp::kMin) {
    const T smaller = b < a ? b : a;
    return b != b ? b : smaller;
  } else if constexpr (std::is_same_v<T, bool>) {
    return op == RowOp::kSub ? a != b : (op == RowOp::kMul ? a && b : a || b);
  } else if constexpr (std::is_integral_v<T>) {
    using U = std::conditional_t<(sizeof(T) < 4), uint32_t, std::make_unsigned_t<T>>;
    if constexpr (op == RowOp::kAdd) return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
    if constexpr (op == RowOp::kSub) return static_cast<T>(static_cast<U>(a) - static_cast<U>(b));
    if constexpr (op == RowOp::kMul) return static_cast<T>(static_cast<U>(a) * static_cast<U>(b));
    T q{};
    return CheckedDiv(a, b, &q) ? q : T{};  // callers refuse zeros first
  } else {
    if constexpr (op == RowOp::kAdd) return a + b;
    if constexpr (op == RowOp::kSub) return a - b;
    if constexpr (op == RowOp::kMul) return a * b;
    return a / b;
  }
}

// D(d op s): D is T, or float when T is a half type and sums are kept wide.
template <RowOp op, typename D, typename T>
inline void CombineInto(D& d, const T& s) {
  if constexpr (op == RowOp::kAssign) {
    d = static_cast<D>(s);
  } else if constexpr (kIsHalf<T>) {
    d = static_cast<D>(Combine<op>(static_cast<float>(d), static_cast<float>(s)));
  } else {
    d = Combine<op>(d, s);
  }
}

// Calls f.template operator()<T>() for the C++ type of dtype, if it is in the list; else returns false.
template <typename... Ts, typename F>
bool VisitTypes(DType dtype, F&& f) {
  return ((DTypeOf<Ts>::value == dtype ? (f.template operator()<Ts>(), true) : false) || ...);
}
template <typename F>
bool VisitRealTypes(DType dtype, F&& f) {
  return VisitTypes<float, double, Half, BFloat16, int32_t, int64_t, int8_t, int16_t, uint8_t, uint16_t, uint32_t,
                    uint64_t>(dtype, f);
}
template <typename F>
bool VisitNumberTypes(DType dtype, F&& f) {
  return VisitRealTypes(dtype, f) || VisitTypes<complex64, complex128>(dtype, f);
}

}  // namespace millrace
