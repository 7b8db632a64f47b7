// SPDX-License-Identifier: Apache-2.0
#include "tensor/dtype.h"

#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "tensor/handles.h"
#include "tensor/tstring.h"

namespace millrace {
namespace {

struct TypeInfo {
  DType type;
  absl::string_view name;
  absl::string_view short_name;
  size_t size;
};

// In the order of their numbers, from 1 on.
constexpr std::array<TypeInfo, 23> kTypes = {{
    {DType::kFloat, "float", "f32", 4},
    {DType::kDouble, "double", "f64", 8},
    {DType::kInt32, "int32", "i32", 4},
    {DType::kUInt8, "uint8", "u8", 1},
    {DType::kInt16, "int16", "i16", 2},
    {DType::kInt8, "int8", "i8", 1},
    {DType::kString, "string", "str", sizeof(TString)},
    {DType::kComplex64, "complex64", "c64", 8},
    {DType::kInt64, "int64", "i64", 8},
    {DType::kBool, "bool", "bool", 1},
    {DType::kQInt8, "qint8", "qi8", 1},
    {DType::kQUInt8, "quint8", "qu8", 1},
    {DType::kQInt32, "qint32", "qi32", 4},
    {DType::kBFloat16, "bfloat16", "bf16", 2},
    {DType::kQInt16, "qint16", "qi16", 2},
    {DType::kQUInt16, "quint16", "qu16", 2},
    {DType::kUInt16, "uint16", "u16", 2},
    {DType::kComplex128, "complex128", "c128", 16},
    {DType::kHalf, "half", "f16", 2},
    {DType::kResource, "resource", "res", sizeof(ResourceHandle)},
    {DType::kVariant, "variant", "var", sizeof(Variant)},
    {DType::kUInt32, "uint32", "u32", 4},
    {DType::kUInt64, "uint64", "u64", 8},
}};

constexpr bool InOrder() {
  for (size_t i = 0; i < kTypes.size(); ++i) {
    if (static_cast<size_t>(kTypes[i].type) != i + 1) return false;
  }
  return true;
}
static_assert(InOrder());

const TypeInfo* Find(DType t) {
  const auto index = static_cast<uint32_t>(t) - 1u;
  return index < kTypes.size() ? &kTypes[index] : nullptr;
}

template <size_t N>
constexpr uint32_t MaskOf(const std::array<DType, N>& types) {
  uint32_t mask = 0;
  for (DType t : types) mask |= 1u << static_cast<uint32_t>(t);
  return mask;
}
bool InMask(uint32_t mask, DType t) {
  const auto number = static_cast<uint32_t>(BaseType(t));
  return number < 32 && ((mask >> number) & 1) != 0;
}

constexpr std::array kFloats = {DType::kHalf, DType::kBFloat16, DType::kFloat, DType::kDouble};
constexpr std::array kComplexes = {DType::kComplex64, DType::kComplex128};
constexpr std::array kIntegers = {DType::kInt8,  DType::kInt16,  DType::kInt32,  DType::kInt64,
                                  DType::kUInt8, DType::kUInt16, DType::kUInt32, DType::kUInt64};
constexpr std::array kQuantized = {DType::kQInt8, DType::kQUInt8, DType::kQInt16, DType::kQUInt16, DType::kQInt32};
constexpr std::array kHandles = {DType::kString, DType::kResource, DType::kVariant};

// Floats, integers, complex, bool, quantized: each public list of plain types is a prefix of this one.
constexpr std::array kPlain = {
    DType::kHalf,   DType::kBFloat16, DType::kFloat,     DType::kDouble,     DType::kInt8,
    DType::kInt16,  DType::kInt32,    DType::kInt64,     DType::kUInt8,      DType::kUInt16,
    DType::kUInt32, DType::kUInt64,   DType::kComplex64, DType::kComplex128, DType::kBool,
    DType::kQInt8,  DType::kQUInt8,   DType::kQInt16,    DType::kQUInt16,    DType::kQInt32};
static_assert(kPlain.size() + kHandles.size() == kTypes.size());

constexpr auto kAll = [] {
  std::array<DType, kTypes.size()> all{};
  for (size_t i = 0; i < all.size(); ++i) all[i] = kTypes[i].type;
  return all;
}();

absl::Span<const DType> PlainPrefix(size_t n) { return absl::MakeConstSpan(kPlain).first(n); }

}  // namespace

std::optional<DType> DTypeFromNumber(int32_t number) {
  const TypeInfo* const info = Find(static_cast<DType>(number));
  return info ? std::optional<DType>(info->type) : std::nullopt;
}

std::string DTypeName(DType t) {
  const TypeInfo* const info = Find(BaseType(t));
  if (info == nullptr) return t == DType::kInvalid ? "invalid" : absl::StrCat("dtype", static_cast<int>(t));
  return absl::StrCat(info->name, IsRef(t) ? "_ref" : "");
}

std::optional<DType> DTypeFromName(absl::string_view name) {
  const bool is_ref = absl::ConsumeSuffix(&name, "_ref");
  for (const TypeInfo& info : kTypes) {
    if (name == info.name || name == info.short_name) return is_ref ? MakeRefType(info.type) : info.type;
  }
  return std::nullopt;
}

size_t DTypeSize(DType t) {
  const TypeInfo* const info = Find(BaseType(t));
  return info ? info->size : 0;
}

bool IsPlain(DType t) { return InMask(MaskOf(kPlain), t); }
bool IsFloating(DType t) { return InMask(MaskOf(kFloats), t); }
bool IsComplex(DType t) { return InMask(MaskOf(kComplexes), t); }
bool IsInteger(DType t) { return InMask(MaskOf(kIntegers), t); }
bool IsQuantized(DType t) { return InMask(MaskOf(kQuantized), t); }

absl::Span<const DType> AllTypes() { return kAll; }
absl::Span<const DType> FloatTypes() { return PlainPrefix(kFloats.size()); }
absl::Span<const DType> RealNumberTypes() { return PlainPrefix(kFloats.size() + kIntegers.size()); }
absl::Span<const DType> NumberTypes() { return PlainPrefix(kFloats.size() + kIntegers.size() + kComplexes.size()); }
absl::Span<const DType> PlainTypes() { return kPlain; }

}  // namespace millrace
