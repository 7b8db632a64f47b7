// SPDX-License-Identifier: Apache-2.0
// The elements of tensors as bytes: plain ones as they are in memory; strings as all lengths (8 bytes each,
// little-endian), then all characters. Resources and variants do not travel.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/cord.h"
#include "base/status.h"
#include "tensor/tensor.h"

namespace millrace {

// A number as 8 bytes, little-endian.
inline constexpr size_t kLengthBytes = 8;
void AppendLength(uint64_t length, std::string* out);
uint64_t ReadLength(const char* bytes);

// Large tensors are not copied: the Cord shares their buffer. Unimplemented: a resource or variant.
Status AppendElements(const Tensor& t, absl::Cord* out);

// A new tensor. InvalidArgument when `bytes` are not those of such a tensor.
StatusOr<Tensor> TensorFromElements(DType dtype, const Shape& shape, const absl::Cord& bytes);

}  // namespace millrace
