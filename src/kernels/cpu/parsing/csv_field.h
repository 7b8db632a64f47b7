// SPDX-License-Identifier: Apache-2.0
// Fields of CSV records as elements of tensors.
#pragma once

#include <algorithm>
#include <vector>

#include "absl/strings/numbers.h"
#include "tensor/tensor.h"

namespace millrace {

// A field as element `i` of `out`.
inline bool StoreCsvField(absl::string_view field, Tensor& out, int64_t i) {
  switch (out.dtype()) {
    case DType::kInt32: return absl::SimpleAtoi(field, out.mutable_data<int32_t>() + i);
    case DType::kInt64: return absl::SimpleAtoi(field, out.mutable_data<int64_t>() + i);
    case DType::kFloat: return absl::SimpleAtof(field, out.mutable_data<float>() + i);
    case DType::kDouble: return absl::SimpleAtod(field, out.mutable_data<double>() + i);
    default: out.mutable_data<TString>()[i] = field; return true;
  }
}

inline void StoreCsvDefault(const Tensor& value, Tensor& out, int64_t i) {
  if (out.dtype() == DType::kString) {
    out.mutable_data<TString>()[i] = *value.data<TString>();
    return;
  }
  const size_t unit = DTypeSize(out.dtype());
  std::copy_n(static_cast<const char*>(value.raw()), unit,
              static_cast<char*>(out.mutable_raw()) + static_cast<size_t>(i) * unit);
}

// Which fields of a record are wanted, in ascending order (none: all), for `count` outputs.
inline Status CheckSelectedFields(const std::vector<int64_t>& selected, int count) {
  if (selected.empty()) return absl::OkStatus();
  if (static_cast<int>(selected.size()) != count) {
    return InvalidArgument("select_cols should match output size, got ", selected.size(), " and ", count);
  }
  for (size_t i = 0; i < selected.size(); ++i) {
    if (selected[i] < 0) return InvalidArgument("select_cols should be non-negative indices, got ", selected[i]);
    if (i > 0 && selected[i] <= selected[i - 1]) {
      return InvalidArgument("select_cols should be strictly increasing indices");
    }
  }
  return absl::OkStatus();
}

}  // namespace millrace
