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

// Elements of so many bytes are worth a place in a message where they can be used as they lie: behind a multiple of
// Allocator::kAlignment.
inline constexpr size_t kWorthPlacing = size_t{64} << 10;
inline bool IsWorthPlacing(const Tensor& t) { return IsPlain(t.dtype()) && t.TotalBytes() >= kWorthPlacing; }

// InvalidArgument when `bytes` are not those of such a tensor. A new tensor; with `may_hold`, where they are many, in
// one piece and aligned, one that holds `bytes` and cannot be written to.
StatusOr<Tensor> TensorFromElements(DType dtype, const Shape& shape, const absl::Cord& bytes, bool may_hold = false);

}  // namespace millrace
