// SPDX-License-Identifier: Apache-2.0
// Tiles of integers alone, and u64 where its order differs from that of i64. Narrower types compute in these, except
// for shifts and counts of bits, which depend on the width.
#include <algorithm>
#include <limits>
#include <type_traits>

#include "base/checked.h"

#include "kernels/cpu/engine/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/elementwise/elementwise_tiles_integer.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h
#include "kernels/cpu/elementwise/elementwise_tiles-inl.h"

HWY_BEFORE_NAMESPACE();
namespace millrace {
namespace HWY_NAMESPACE {
namespace {

template <typename T>
bool HasNoZero(const void* b_in, int64_t n) {
  const T* b = static_cast<const T*>(b_in);
  T zero = 0;
  for (int64_t i = 0; i < n; ++i) zero |= static_cast<T>(b[i] == 0);
  return zero == 0;
}
template <typename T>
bool HasNoNegative(const void* b_in, int64_t n) {
  const T* b = static_cast<const T*>(b_in);
  T bits = 0;
  for (int64_t i = 0; i < n; ++i) bits |= b[i];
  return !(bits < 0);
}

// Zero divisors are refused before; here they give zero. The quotient of two int32 in double, truncated, is the exact
// one, and vectors have that division; the only one outside the type is that of its minimum by -1, which wraps.
struct TruncateDivOp {
  template <typename T>
  static inline T Do(T a, T b) {
    if constexpr (std::is_same_v<T, int32_t>) {
      const double divisor = b == 0 ? std::numeric_limits<double>::infinity() : static_cast<double>(b);
      const double q = static_cast<double>(a) / divisor;
      return q > std::numeric_limits<int32_t>::max() ? a : static_cast<int32_t>(q);
    } else {
      T q = 0;
      return CheckedDiv(a, b, &q) ? q : T(0);
    }
  }
};
struct TruncateModOp {
  template <typename T>
  static inline T Do(T a, T b) {
    if constexpr (std::is_same_v<T, int32_t>) {
      const auto product = static_cast<uint32_t>(TruncateDivOp::Do(a, b)) * static_cast<uint32_t>(b);
      return b == 0 ? 0 : static_cast<int32_t>(static_cast<uint32_t>(a) - product);
    } else {
      T r = 0;
      return CheckedMod(a, b, &r) ? r : T(0);
    }
  }
};
struct FloorDivOp {
  template <typename T>
  static inline T Do(T a, T b) {
    const T q = TruncateDivOp::Do(a, b);
    if constexpr (std::is_signed_v<T>) {
      using U = std::make_unsigned_t<T>;
      const bool exact = static_cast<U>(q) * static_cast<U>(b) == static_cast<U>(a);  // one division is enough
      const bool rounded_up = ((a ^ b) < 0) & (b != 0) & !exact;
      return rounded_up ? static_cast<T>(q - 1) : q;
    }
    return q;
  }
};
struct FloorModOp {
  template <typename T>
  static inline T Do(T a, T b) {
    const T r = TruncateModOp::Do(a, b);
    if constexpr (std::is_signed_v<T>) {
      const bool other_sign = (r != 0) & ((r ^ b) < 0);
      return other_sign ? static_cast<T>(r + b) : r;
    }
    return r;
  }
};
// By squaring; wraps. Negative exponents are refused before.
struct PowOp {
  template <typename T>
  static inline T Do(T a, T b) {
    using U = std::make_unsigned_t<T>;
    U result = 1;
    U base = static_cast<U>(a);
    for (U e = b > 0 ? static_cast<U>(b) : U(0); e != 0; e >>= 1) {
      if (e & 1) result *= base;
      base *= base;
    }
    return static_cast<T>(result);
  }
};

// Distances outside the width are taken to its ends.
template <typename T>
inline int Distance(T y) {
  constexpr int kMax = std::numeric_limits<std::make_unsigned_t<T>>::digits - 1;
  return y < 0 ? 0 : y > kMax ? kMax : static_cast<int>(y);
}
template <>
inline int Distance(uint64_t y) {
  return y > 63 ? 63 : static_cast<int>(y);
}
template <>
inline int Distance(uint32_t y) {
  return y > 31 ? 31 : static_cast<int>(y);
}
struct LeftShiftOp {
  template <typename T>
  static inline T Do(T a, T b) {
    using Wide = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
    return static_cast<T>(static_cast<Wide>(a) << Distance(b));
  }
};
struct RightShiftOp {
  template <typename T>
  static inline T Do(T a, T b) {
    return static_cast<T>(a >> Distance(b));
  }
};

// In pairs, fours and bytes of bits: steps that vectors have.
struct PopulationCountOp {
  template <typename T>
  static inline uint8_t Do(T a) {
    using U = std::make_unsigned_t<T>;
    constexpr U kAll = static_cast<U>(~U{0}), kBytes = kAll / 255;  // 0x0101...
    constexpr U kPairs = kAll / 3, kFours = kAll / 5, kNibbles = kAll / 17;
    U v = static_cast<U>(a);
    v = static_cast<U>(v - (static_cast<U>(v >> 1) & kPairs));
    v = static_cast<U>((v & kFours) + (static_cast<U>(v >> 2) & kFours));
    v = static_cast<U>(static_cast<U>(v + static_cast<U>(v >> 4)) & kNibbles);
    return static_cast<uint8_t>(static_cast<U>(v * kBytes) >> (8 * sizeof(U) - 8));
  }
};

#define MR_BINARY_OP(Name, R, expr) \
  struct Name {                     \
    template <typename T>           \
    static inline R Do(T a, T b) {  \
      return expr;                  \
    }                               \
  };
MR_BINARY_OP(MaximumOp, T, a > b ? a : b)
MR_BINARY_OP(MinimumOp, T, a < b ? a : b)
MR_BINARY_OP(LessOp, bool, a < b)
MR_BINARY_OP(LessEqualOp, bool, a <= b)
MR_BINARY_OP(GreaterOp, bool, a > b)
MR_BINARY_OP(GreaterEqualOp, bool, a >= b)
MR_BINARY_OP(ReluGradOp, T, b > 0 ? a : 0)
MR_BINARY_OP(Relu6GradOp, T, b > 0 && b < 6 ? a : 0)
#undef MR_BINARY_OP
struct ReluOp {
  static inline uint64_t Do(uint64_t a) { return a; }
};
struct Relu6Op {
  static inline uint64_t Do(uint64_t a) { return a > 6 ? 6 : a; }
};

template <typename T>
void AddDivision(TileTable& t) {
  constexpr float kCost = sizeof(T) == 4 ? 2 : 8;
  AddBinary<TruncateDivOp, T>(t, "TruncateDiv", kCost, &HasNoZero<T>);
  AddBinary<FloorDivOp, T>(t, "FloorDiv", kCost, &HasNoZero<T>);
  AddBinary<TruncateModOp, T>(t, "Mod", kCost, &HasNoZero<T>);
  AddBinary<FloorModOp, T>(t, "FloorMod", kCost, &HasNoZero<T>);
}
template <typename... Ts>
void AddForEachWidth(TileTable& t) {
  (AddBinary<LeftShiftOp, Ts>(t, "LeftShift"), ...);
  (AddBinary<RightShiftOp, Ts>(t, "RightShift"), ...);
  (AddUnary<PopulationCountOp, Ts, uint8_t>(t, "PopulationCount"), ...);
}

void AddTiles(TileTable& t) {
  AddDivision<int32_t>(t);
  AddDivision<int64_t>(t);
  AddDivision<uint64_t>(t);
  AddBinary<PowOp, int32_t>(t, "Pow", 10, &HasNoNegative<int32_t>);
  AddBinary<PowOp, int64_t>(t, "Pow", 10, &HasNoNegative<int64_t>);
  AddForEachWidth<int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>(t);
  AddBinary<MaximumOp, uint64_t>(t, "Maximum");
  AddBinary<MinimumOp, uint64_t>(t, "Minimum");
  AddBinary<LessOp, uint64_t, bool>(t, "Less");
  AddBinary<LessEqualOp, uint64_t, bool>(t, "LessEqual");
  AddBinary<GreaterOp, uint64_t, bool>(t, "Greater");
  AddBinary<GreaterEqualOp, uint64_t, bool>(t, "GreaterEqual");
  AddBinary<ReluGradOp, uint64_t>(t, "ReluGrad");
  AddBinary<Relu6GradOp, uint64_t>(t, "Relu6Grad");
  AddUnary<ReluOp, uint64_t>(t, "Relu");
  AddUnary<Relu6Op, uint64_t>(t, "Relu6");
  // The same bits as signed.
  for (const char* op : {"Add", "Sub", "Mul", "SquaredDifference", "Square", "Equal", "NotEqual", "BitwiseAnd",
                         "BitwiseOr", "BitwiseXor", "Invert"}) {
    const TileFn* f = t.Find(op, DType::kInt64);
    if (f == nullptr) continue;
    TileFn u = *f;
    u.in = DType::kUInt64;
    if (u.out == DType::kInt64) u.out = DType::kUInt64;
    t.Add(op, u);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace millrace
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace millrace {
namespace {
HWY_EXPORT(AddTiles);
}  // namespace
void AddIntegerTiles(TileTable& t) { HWY_DYNAMIC_DISPATCH(AddTiles)(t); }
}  // namespace millrace
#endif  // HWY_ONCE
