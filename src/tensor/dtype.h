// SPDX-License-Identifier: Apache-2.0
// Element types. The numbers are those of TensorFlow's DataType and TF_DataType; a reference type is the value + 100
// and appears only on edges, never in an attribute.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "tensor/half.h"

namespace millrace {

class TString;
struct ResourceHandle;
class Variant;

enum class DType : int32_t {
  kInvalid = 0,
  kFloat = 1,
  kDouble = 2,
  kInt32 = 3,
  kUInt8 = 4,
  kInt16 = 5,
  kInt8 = 6,
  kString = 7,
  kComplex64 = 8,
  kInt64 = 9,
  kBool = 10,
  kQInt8 = 11,
  kQUInt8 = 12,
  kQInt32 = 13,
  kBFloat16 = 14,
  kQInt16 = 15,
  kQUInt16 = 16,
  kUInt16 = 17,
  kComplex128 = 18,
  kHalf = 19,
  kResource = 20,
  kVariant = 21,
  kUInt32 = 22,
  kUInt64 = 23,
};

inline constexpr int kRefOffset = 100;
constexpr bool IsRef(DType t) { return static_cast<int>(t) > kRefOffset; }
constexpr DType BaseType(DType t) { return IsRef(t) ? DType(static_cast<int>(t) - kRefOffset) : t; }
constexpr DType MakeRefType(DType t) { return IsRef(t) ? t : DType(static_cast<int>(t) + kRefOffset); }

// Checked conversion from a number in a file or message: nullopt unless it names one of the types above (references and
// kInvalid excluded).
std::optional<DType> DTypeFromNumber(int32_t number);

// "float", "int32", "float_ref", ...; the names of error messages and schemas.
std::string DTypeName(DType t);
// Accepts these names and the short ones of schemas (f32, i64, bf16, ...).
std::optional<DType> DTypeFromName(absl::string_view name);

// Bytes per element: 0 for kInvalid; for strings, resources and variants the size of the C++ object.
size_t DTypeSize(DType t);
// True when elements are plain bytes (all but string, resource, variant).
bool IsPlain(DType t);
bool IsFloating(DType t);  // half, bfloat16, float, double
bool IsComplex(DType t);
bool IsInteger(DType t);  // signed and unsigned, not quantized, not bool
bool IsQuantized(DType t);

// Static map from C++ type to DType.
template <typename T>
struct DTypeOf;
#define MR_DTYPE_OF(T, K)                    \
  template <>                                \
  struct DTypeOf<T> {                        \
    static constexpr DType value = DType::K; \
  };
MR_DTYPE_OF(float, kFloat)
MR_DTYPE_OF(double, kDouble)
MR_DTYPE_OF(int32_t, kInt32)
MR_DTYPE_OF(uint8_t, kUInt8)
MR_DTYPE_OF(int16_t, kInt16)
MR_DTYPE_OF(int8_t, kInt8)
MR_DTYPE_OF(TString, kString)
MR_DTYPE_OF(int64_t, kInt64)
MR_DTYPE_OF(std::complex<float>, kComplex64)
MR_DTYPE_OF(std::complex<double>, kComplex128)
MR_DTYPE_OF(bool, kBool)
MR_DTYPE_OF(BFloat16, kBFloat16)
MR_DTYPE_OF(uint16_t, kUInt16)
MR_DTYPE_OF(Half, kHalf)
MR_DTYPE_OF(ResourceHandle, kResource)
MR_DTYPE_OF(Variant, kVariant)
MR_DTYPE_OF(uint32_t, kUInt32)
MR_DTYPE_OF(uint64_t, kUInt64)
#undef MR_DTYPE_OF

using complex64 = std::complex<float>;
using complex128 = std::complex<double>;

// Lists for registrations.
absl::Span<const DType> AllTypes();         // every type above
absl::Span<const DType> RealNumberTypes();  // f16 bf16 f32 f64 i8..i64 u8..u64
absl::Span<const DType> NumberTypes();      // RealNumberTypes + complex
absl::Span<const DType> FloatTypes();       // f16 bf16 f32 f64
absl::Span<const DType> PlainTypes();       // NumberTypes + bool + quantized

}  // namespace millrace
