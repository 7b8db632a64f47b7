// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/engine/elementwise_convert.h"

#include <algorithm>
#include <complex>

#include "kernels/cpu/engine/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/engine/elementwise_convert.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h
#include "kernels/cpu/engine/narrow_floats-inl.h"

HWY_BEFORE_NAMESPACE();
namespace millrace {
namespace HWY_NAMESPACE {
namespace {

template <typename I, typename F>
inline I ToSigned(F v) {
  constexpr F kLimit = -static_cast<F>(std::numeric_limits<I>::min());
  return v >= -kLimit && v < kLimit ? static_cast<I>(v) : std::numeric_limits<I>::min();
}

template <typename To, typename From>
inline To ConvertOne(From v) {
  if constexpr (std::is_floating_point_v<From> && std::is_same_v<To, uint64_t>) {
    constexpr From kHigh = 0x1p63;
    return v >= kHigh && v < 2 * kHigh
               ? static_cast<uint64_t>(ToSigned<int64_t>(v - kHigh)) + (uint64_t{1} << 63)
               : static_cast<uint64_t>(ToSigned<int64_t>(v));
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    return ToSigned<To>(v);
  } else {
    return static_cast<To>(v);
  }
}

template <typename From, typename To>
void Convert(const void* in_raw, void* out_raw, int64_t n) {
  const From* __restrict in = static_cast<const From*>(in_raw);
  To* __restrict out = static_cast<To*>(out_raw);
  for (int64_t i = 0; i < n; ++i) out[i] = ConvertOne<To>(in[i]);
}

// Bool is a byte here, 0 or 1.
template <typename From>
void ToBool(const void* in_raw, void* out_raw, int64_t n) {
  const From* __restrict in = static_cast<const From*>(in_raw);
  uint8_t* __restrict out = static_cast<uint8_t*>(out_raw);
  for (int64_t i = 0; i < n; ++i) out[i] = in[i] != From(0);
}

// From bool to a type of 16 bits in which kOne is 1.
template <uint16_t kOne>
void BoolTo(const void* in_raw, void* out_raw, int64_t n) {
  const uint8_t* __restrict in = static_cast<const uint8_t*>(in_raw);
  uint16_t* __restrict out = static_cast<uint16_t*>(out_raw);
  for (int64_t i = 0; i < n; ++i) out[i] = in[i] != 0 ? kOne : uint16_t{0};
}

template <typename From, typename To>
void RealToComplex(const void* in_raw, void* out_raw, int64_t n) {
  const From* __restrict in = static_cast<const From*>(in_raw);
  To* __restrict out = static_cast<To*>(out_raw);
  for (int64_t i = 0; i < n; ++i) {
    out[2 * i] = static_cast<To>(in[i]);
    out[2 * i + 1] = 0;
  }
}
template <typename From, typename To>
void ComplexToReal(const void* in_raw, void* out_raw, int64_t n) {
  const From* __restrict in = static_cast<const From*>(in_raw);
  To* __restrict out = static_cast<To*>(out_raw);
  for (int64_t i = 0; i < n; ++i) out[i] = static_cast<To>(in[2 * i]);
}
template <typename From, typename To>
void ComplexToComplex(const void* in, void* out, int64_t n) {
  Convert<From, To>(in, out, 2 * n);
}

template <typename From>
ConvertTile FromWide(DType to) {
  switch (to) {
    case DType::kFloat: return &Convert<From, float>;
    case DType::kDouble: return &Convert<From, double>;
    case DType::kInt32: return &Convert<From, int32_t>;
    case DType::kInt64: return &Convert<From, int64_t>;
    case DType::kUInt64: return &Convert<From, uint64_t>;
    case DType::kBool: return &ToBool<From>;
    default: return nullptr;
  }
}

// One step from `from` to `to`, or null.
ConvertTile Step(DType from, DType to) {
  using D = DType;
  if (ConvertTile f =
          from == D::kFloat    ? FromWide<float>(to)
          : from == D::kDouble ? FromWide<double>(to)
          : from == D::kInt32  ? FromWide<int32_t>(to)
          : from == D::kInt64  ? FromWide<int64_t>(to)
          : from == D::kUInt64 ? FromWide<uint64_t>(to)
                               : nullptr) {
    return f;
  }
  struct Pair {
    D from, to;
    ConvertTile fn;
  };
  static constexpr Pair kPairs[] = {
      {D::kHalf, D::kFloat, &WidenRun<Half>},
      {D::kBFloat16, D::kFloat, &WidenRun<BFloat16>},
      {D::kFloat, D::kHalf, &NarrowRun<Half>},
      {D::kFloat, D::kBFloat16, &NarrowRun<BFloat16>},
      {D::kInt8, D::kInt32, &Convert<int8_t, int32_t>},
      {D::kInt16, D::kInt32, &Convert<int16_t, int32_t>},
      {D::kUInt8, D::kInt32, &Convert<uint8_t, int32_t>},
      {D::kUInt16, D::kInt32, &Convert<uint16_t, int32_t>},
      {D::kBool, D::kInt32, &Convert<uint8_t, int32_t>},
      {D::kUInt32, D::kInt64, &Convert<uint32_t, int64_t>},
      {D::kInt32, D::kUInt8, &Convert<int32_t, uint8_t>},
      {D::kInt32, D::kUInt16, &Convert<int32_t, uint16_t>},
      {D::kInt64, D::kUInt32, &Convert<int64_t, uint32_t>},
      {D::kBool, D::kUInt8, &Convert<uint8_t, uint8_t>},
      {D::kInt8, D::kUInt8, &Convert<uint8_t, uint8_t>},
      {D::kUInt8, D::kUInt8, &Convert<uint8_t, uint8_t>},
      {D::kInt16, D::kUInt16, &Convert<uint16_t, uint16_t>},
      {D::kUInt16, D::kUInt16, &Convert<uint16_t, uint16_t>},
      {D::kInt8, D::kBool, &ToBool<uint8_t>},
      {D::kUInt8, D::kBool, &ToBool<uint8_t>},
      {D::kInt16, D::kBool, &ToBool<uint16_t>},
      {D::kUInt16, D::kBool, &ToBool<uint16_t>},
      {D::kUInt8, D::kFloat, &Convert<uint8_t, float>},
      {D::kBool, D::kFloat, &Convert<uint8_t, float>},
      {D::kBool, D::kHalf, &BoolTo<0x3c00>},
      {D::kBool, D::kBFloat16, &BoolTo<0x3f80>},
      {D::kFloat, D::kComplex64, &RealToComplex<float, float>},
      {D::kDouble, D::kComplex128, &RealToComplex<double, double>},
      {D::kComplex64, D::kFloat, &ComplexToReal<float, float>},
      {D::kComplex128, D::kDouble, &ComplexToReal<double, double>},
      {D::kComplex64, D::kComplex128, &ComplexToComplex<float, double>},
      {D::kComplex128, D::kComplex64, &ComplexToComplex<double, float>},
  };
  if (to == D::kInt8) to = D::kUInt8;  // the same bits
  if (to == D::kInt16) to = D::kUInt16;
  for (const Pair& p : kPairs) {
    if (p.from == from && p.to == to) return p.fn;
  }
  return nullptr;
}

// A NaN whose upper bits alone would be an infinity gets the quiet bit.
template <typename Float, typename Bits, int kMantissa>
void Truncate(const Float* in, Float* out, int64_t n, int bits) {
  const Bits mask = static_cast<Bits>(~((Bits{1} << bits) - 1));
  constexpr Bits kQuiet = Bits{1} << (kMantissa - 1);
  constexpr Bits kUnsigned = static_cast<Bits>(~Bits{0}) >> 1;
  constexpr Bits kInfinity = (kUnsigned >> kMantissa) << kMantissa;
  for (int64_t i = 0; i < n; ++i) {
    const Bits value = std::bit_cast<Bits>(in[i]);
    const Bits quiet = (value & kUnsigned) > kInfinity ? kQuiet : 0;
    out[i] = std::bit_cast<Float>(static_cast<Bits>((value | quiet) & mask));
  }
}
void TruncateF(const float* in, float* out, int64_t n, int bits) { Truncate<float, uint32_t, 23>(in, out, n, bits); }
void TruncateD(const double* in, double* out, int64_t n, int bits) { Truncate<double, uint64_t, 52>(in, out, n, bits); }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace millrace
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace millrace {
namespace {

HWY_EXPORT(Step);
HWY_EXPORT(TruncateF);
HWY_EXPORT(TruncateD);

DType Unquantized(DType t) {
  switch (t) {
    case DType::kQInt8: return DType::kInt8;
    case DType::kQUInt8: return DType::kUInt8;
    case DType::kQInt16: return DType::kInt16;
    case DType::kQUInt16: return DType::kUInt16;
    case DType::kQInt32: return DType::kInt32;
    default: return t;
  }
}

// The wide type next to a narrow or complex one on a route.
DType WideNeighbour(DType t) {
  switch (t) {
    case DType::kHalf:
    case DType::kBFloat16:
    case DType::kComplex64: return DType::kFloat;
    case DType::kInt8:
    case DType::kInt16:
    case DType::kUInt8:
    case DType::kUInt16: return DType::kInt32;
    case DType::kUInt32: return DType::kInt64;
    case DType::kComplex128: return DType::kDouble;
    default: return t;
  }
}

}  // namespace

ConvertRoute FindConvert(DType from, DType to) {
  from = Unquantized(from);
  to = Unquantized(to);
  ConvertRoute r;
  r.size[0] = static_cast<uint32_t>(DTypeSize(from));
  if (from == to) {
    r.found = IsPlain(from);
    return r;
  }
  // The chain of types: from, its wide neighbour, that of `to`, `to`; without repeats, and direct where there is a
  // step.
  DType mid1 = from == DType::kBool ? DType::kInt32 : WideNeighbour(from);
  const DType mid2 = to == DType::kBool ? mid1 : WideNeighbour(to);
  if (HWY_DYNAMIC_DISPATCH(Step)(from, mid2) != nullptr) mid1 = mid2;
  const DType chain[4] = {from, mid1, mid2, to};
  auto add = [&r](DType a, DType b) {
    if (a == b) return true;
    const ConvertTile f = HWY_DYNAMIC_DISPATCH(Step)(a, b);
    if (f == nullptr) return false;
    r.fn[r.steps++] = f;
    r.size[r.steps] = static_cast<uint32_t>(DTypeSize(b));
    return true;
  };
  if (HWY_DYNAMIC_DISPATCH(Step)(from, to) != nullptr) {
    r.found = add(from, to);
    return r;
  }
  r.found = add(chain[0], chain[1]) && add(chain[1], chain[2]) && add(chain[2], chain[3]);
  return r;
}

void ConvertRoute::Run(const void* in, void* out, int64_t n) const {
  if (steps == 1) return fn[0](in, out, n);
  if (steps == 0) {
    std::copy_n(static_cast<const char*>(in), static_cast<size_t>(n) * size[0], static_cast<char*>(out));
    return;
  }
  alignas(64) char x[kConvertTile * 8];
  alignas(64) char y[kConvertTile * 8];
  const char* pi = static_cast<const char*>(in);
  char* po = static_cast<char*>(out);
  for (int64_t i = 0; i < n; i += kConvertTile) {
    const int64_t k = std::min(kConvertTile, n - i);
    fn[0](pi, x, k);
    if (steps == 2) {
      fn[1](x, po, k);
    } else {
      fn[1](x, y, k);
      fn[2](y, po, k);
    }
    pi += k * size[0];
    po += k * size[steps];
  }
}

namespace {
// Routes between float and its two narrow forms, found once.
const ConvertRoute& NarrowRoute(DType narrow, bool widen) {
  static const ConvertRoute routes[] = {
      FindConvert(DType::kFloat, DType::kHalf), FindConvert(DType::kHalf, DType::kFloat),
      FindConvert(DType::kFloat, DType::kBFloat16), FindConvert(DType::kBFloat16, DType::kFloat)};
  return routes[(narrow == DType::kHalf ? 0 : 2) + (widen ? 1 : 0)];
}
}  // namespace

void WidenToFloat(DType from, const void* src, float* dst, int64_t n) { NarrowRoute(from, true).fn[0](src, dst, n); }
void NarrowFromFloat(DType to, const float* src, void* dst, int64_t n) { NarrowRoute(to, false).fn[0](src, dst, n); }

void TruncateFloats(const float* in, float* out, int64_t n, int bits) {
  HWY_DYNAMIC_DISPATCH(TruncateF)(in, out, n, bits);
}
void TruncateDoubles(const double* in, double* out, int64_t n, int bits) {
  HWY_DYNAMIC_DISPATCH(TruncateD)(in, out, n, bits);
}

}  // namespace millrace
#endif  // HWY_ONCE
