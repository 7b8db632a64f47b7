// SPDX-License-Identifier: Apache-2.0
// Elements by size: ops that only move elements are written once per element size, plus once per kind of object.
#pragma once

#include <cstdint>

#include "tensor/tensor.h"

namespace millrace {

struct Element16 {
  uint64_t part[2];
};

// Calls fn.template operator()<E>() with the C++ type that stores an element of `t`.
template <typename F>
auto DispatchElement(DType t, F&& fn) {
  switch (t) {
    case DType::kString: return fn.template operator()<TString>();
    case DType::kResource: return fn.template operator()<ResourceHandle>();
    case DType::kVariant: return fn.template operator()<Variant>();
    default: break;
  }
  switch (DTypeSize(t)) {
    case 1: return fn.template operator()<uint8_t>();
    case 2: return fn.template operator()<uint16_t>();
    case 4: return fn.template operator()<uint32_t>();
    case 8: return fn.template operator()<uint64_t>();
    default: return fn.template operator()<Element16>();
  }
}

}  // namespace millrace
