// SPDX-License-Identifier: Apache-2.0
// Tensors of the C++ client. Copies share their memory.
#pragma once

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "millrace/status.h"

namespace millrace {
inline namespace MILLRACE_CLIENT {

// Sizes of the dimensions; in a shape that describes what a graph knows, -1 is an unknown one.
using Shape = std::vector<int64_t>;

// The types of elements, with the numbers of TF_DataType.
enum class DType : int {
  kFloat = TF_FLOAT,
  kDouble = TF_DOUBLE,
  kInt32 = TF_INT32,
  kUInt8 = TF_UINT8,
  kInt16 = TF_INT16,
  kInt8 = TF_INT8,
  kString = TF_STRING,
  kComplex64 = TF_COMPLEX64,
  kInt64 = TF_INT64,
  kBool = TF_BOOL,
  kQInt8 = TF_QINT8,
  kQUInt8 = TF_QUINT8,
  kQInt32 = TF_QINT32,
  kBFloat16 = TF_BFLOAT16,
  kQInt16 = TF_QINT16,
  kQUInt16 = TF_QUINT16,
  kUInt16 = TF_UINT16,
  kComplex128 = TF_COMPLEX128,
  kHalf = TF_HALF,
  kResource = TF_RESOURCE,
  kVariant = TF_VARIANT,
  kUInt32 = TF_UINT32,
  kUInt64 = TF_UINT64,
};

namespace internal {

template <typename T>
constexpr DType DTypeOf() {
  static_assert(std::is_arithmetic_v<T>, "elements are numbers; strings have functions of their own");
  if constexpr (std::is_same_v<T, float>)
    return DType::kFloat;
  else if constexpr (std::is_same_v<T, double>)
    return DType::kDouble;
  else if constexpr (std::is_same_v<T, bool>)
    return DType::kBool;
  else if constexpr (sizeof(T) == 1)
    return std::is_signed_v<T> ? DType::kInt8 : DType::kUInt8;
  else if constexpr (sizeof(T) == 2)
    return std::is_signed_v<T> ? DType::kInt16 : DType::kUInt16;
  else if constexpr (sizeof(T) == 4)
    return std::is_signed_v<T> ? DType::kInt32 : DType::kUInt32;
  else
    return std::is_signed_v<T> ? DType::kInt64 : DType::kUInt64;
}

}  // namespace internal

// Values of one type in a shape, [] for a scalar, in the host's memory, row by row. Copies share the memory, and
// nothing writes into it. A tensor may be none: after an error, and where it was made by default.
class Tensor {
 public:
  Tensor() = default;  // none
  // Scalars and vectors: Tensor(1.5f), Tensor({1, 2, 3}), Tensor("text").
  template <typename T, typename = std::enable_if_t<std::is_arithmetic_v<T>>>
  Tensor(T value) : Tensor(Of<T>({}, &value, 1)) {}  // NOLINT: a number is a tensor
  template <typename T, typename = std::enable_if_t<std::is_arithmetic_v<T>>>
  Tensor(std::initializer_list<T> values)  // NOLINT: a list of numbers is a tensor
      : Tensor(Of<T>({static_cast<int64_t>(values.size())}, values.begin(), values.size())) {}
  Tensor(const char* text) : Tensor(Strings({}, {text})) {}         // NOLINT
  Tensor(const std::string& text) : Tensor(Strings({}, {text})) {}  // NOLINT
  // Takes over `t`.
  explicit Tensor(TF_Tensor* t) : t_(t, [](TF_Tensor* p) { Api().DeleteTensor(p); }) {}

  // Row-major values of a shape; none when their number does not fit, or memory is exhausted.
  template <typename T>
  static Tensor Of(const Shape& shape, const std::vector<T>& values) {
    return Of<T>(shape, values.data(), values.size());
  }
  // The same of `count` values, which are copied.
  template <typename T>
  static Tensor Of(const Shape& shape, const T* values, size_t count) {
    Tensor t = Empty(internal::DTypeOf<T>(), shape, count * sizeof(T));
    if (t && static_cast<size_t>(t.num_elements()) != count) return Tensor();
    if (t && count > 0) std::memcpy(Api().TensorData(t.get()), values, count * sizeof(T));
    return t;
  }
  // Strings of any bytes, in a shape; none where their number does not fit.
  static Tensor Strings(const Shape& shape, const std::vector<std::string>& values) {
    Tensor t = Empty(DType::kString, shape, values.size() * sizeof(TF_TString));
    if (t && static_cast<size_t>(t.num_elements()) != values.size()) return Tensor();
    auto* strings = t ? static_cast<TF_TString*>(Api().TensorData(t.get())) : nullptr;
    for (size_t i = 0; t && i < values.size(); ++i) {
      Api().StringCopy(&strings[i], values[i].data(), values[i].size());
    }
    return t;
  }

  // Whether there is one.
  explicit operator bool() const { return t_ != nullptr; }
  // For the C API; it stays this tensor's.
  TF_Tensor* get() const { return t_.get(); }
  // The type of its elements.
  DType dtype() const { return static_cast<DType>(Api().TensorType(get())); }
  // The product of its dimensions; 1 for a scalar.
  int64_t num_elements() const { return Api().TensorElementCount(get()); }
  // Its dimensions, all known.
  Shape shape() const {
    Shape dims;
    for (int i = 0; i < Api().NumDims(get()); ++i) dims.push_back(Api().Dim(get(), i));
    return dims;
  }

  // The elements, valid as long as a copy of this tensor lives; null when they are no T.
  template <typename T>
  const T* data() const {
    return internal::DTypeOf<T>() == dtype() ? static_cast<const T*>(Api().TensorData(get())) : nullptr;
  }
  // A copy of the elements. TF_INVALID_ARGUMENT for a tensor of another type, and for none.
  template <typename T>
  Returned<std::vector<T>> values() const {
    const T* p = data<T>();
    const auto count = static_cast<size_t>(p ? num_elements() : 0);
    return internal::Give(CheckIs(internal::DTypeOf<T>()), std::vector<T>(p, p + count));
  }
  // The value of a tensor with one element.
  template <typename T>
  Returned<T> scalar() const {
    Status s = CheckIs(internal::DTypeOf<T>());
    if (s.ok() && num_elements() != 1) {
      s = Status(TF_INVALID_ARGUMENT, "a tensor of " + std::to_string(num_elements()) + " elements is no scalar");
    }
    return internal::Give(s, s.ok() ? *data<T>() : T());
  }
  // The strings. TF_INVALID_ARGUMENT for a tensor of another type, and for none.
  Returned<std::vector<std::string>> strings() const {
    std::vector<std::string> out;
    const Status s = CheckIs(DType::kString);
    const auto* p = s.ok() ? static_cast<const TF_TString*>(Api().TensorData(get())) : nullptr;
    for (int64_t i = 0; p != nullptr && i < num_elements(); ++i) {
      out.emplace_back(Api().StringGetDataPointer(&p[i]), Api().StringGetSize(&p[i]));
    }
    return internal::Give(s, std::move(out));
  }

 private:
  static Tensor Empty(DType dtype, const Shape& shape, size_t bytes) {
    TF_Tensor* t =
        Api().AllocateTensor(static_cast<TF_DataType>(dtype), shape.data(), static_cast<int>(shape.size()), bytes);
    return t ? Tensor(t) : Tensor();
  }
  Status CheckIs(DType want) const {
    if (!t_) return Status(TF_INVALID_ARGUMENT, "there is no tensor");
    if (dtype() == want) return Status();
    return Status(TF_INVALID_ARGUMENT, "the tensor has data type " + std::to_string(static_cast<int>(dtype())) +
                                           ", wanted " + std::to_string(static_cast<int>(want)));
  }

  std::shared_ptr<TF_Tensor> t_;
};

}  // namespace MILLRACE_CLIENT
}  // namespace millrace
