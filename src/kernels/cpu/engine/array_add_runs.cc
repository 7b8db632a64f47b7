// SPDX-License-Identifier: Apache-2.0
#include <complex>
#include <type_traits>

#include "kernels/cpu/array/array_kernels.h"

namespace millrace {
namespace {

template <typename T>
void AddRun(void* dst, const void* src, int64_t n) {
  T* d = static_cast<T*>(dst);
  const T* s = static_cast<const T*>(src);
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
      d[i] = T(static_cast<float>(d[i]) + static_cast<float>(s[i]));
    } else {
      d[i] = static_cast<T>(d[i] + s[i]);
    }
  }
}

}  // namespace

// Signed integers are added as unsigned ones: the same bits, and overflow wraps.
AddRunFn AddRunFunction(DType dtype) {
  switch (dtype) {
    case DType::kHalf: return AddRun<Half>;
    case DType::kBFloat16: return AddRun<BFloat16>;
    case DType::kFloat: return AddRun<float>;
    case DType::kDouble: return AddRun<double>;
    case DType::kComplex64: return AddRun<complex64>;
    case DType::kComplex128: return AddRun<complex128>;
    case DType::kInt8:
    case DType::kUInt8: return AddRun<uint8_t>;
    case DType::kInt16:
    case DType::kUInt16: return AddRun<uint16_t>;
    case DType::kInt32:
    case DType::kUInt32: return AddRun<uint32_t>;
    case DType::kInt64:
    case DType::kUInt64: return AddRun<uint64_t>;
    default: return nullptr;
  }
}

}  // namespace millrace
