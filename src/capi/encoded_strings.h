// SPDX-License-Identifier: Apache-2.0
// String elements as programs write them, in the two forms that TensorFlow's C API has had.
//   1.x  for each element 8 bytes, the distance of its string from the end of these; a string is a varint length and
//   the
//        characters (TF_StringEncode).
//   2.x  TF_TString, which is our TString.
// Nothing that stands in such memory is trusted.
#pragma once

#include "absl/types/span.h"
#include "tensor/tensor.h"

namespace millrace::capi {

// The bytes of a string tensor in the form of 1.x.
struct EncodedStrings : RefCounted {
  RefPtr<Buffer> bytes;  // may be larger than `size`; null when that is 0
  size_t size = 0;
  Shape shape;
  bool is_source = false;  // a client wrote them; else they were made of a Tensor, for a client to read

  const char* data() const { return bytes ? static_cast<const char*>(bytes->data()) : nullptr; }
};

// The strings of `encoded`, seen where they are: the tensor holds a share of the bytes. InvalidArgument.
StatusOr<Tensor> DecodeStrings(const EncodedStrings& encoded);
// A string tensor in the form of 1.x. ResourceExhausted.
StatusOr<RefPtr<EncodedStrings>> EncodeStrings(const Tensor& strings);

size_t EncodedSize(size_t length);
// Writes EncodedSize(s.size()) bytes.
void EncodeString(absl::string_view s, char* to);
// How many bytes at `from` are one string, and which. InvalidArgument.
StatusOr<size_t> DecodeString(absl::Span<const char> from, absl::string_view* s);

// Whether each of `strings`, which a client wrote into the memory of `size` bytes at `begin`, can be read: a kind's
// size is possible, an offset stays in that memory, and what a pointer points to is mapped. InvalidArgument names the
// element.
Status CheckStrings(absl::Span<const TString> strings, const void* begin, size_t size);

}  // namespace millrace::capi
