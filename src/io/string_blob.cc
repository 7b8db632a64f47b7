// SPDX-License-Identifier: Apache-2.0
#include "io/string_blob.h"

#include <limits>

#include "io/coding.h"
#include "io/crc32c.h"

namespace millrace {
namespace {

uint32_t ExtendByLength(uint32_t crc, uint64_t length) {
  std::string bytes;
  if (length <= std::numeric_limits<uint32_t>::max()) {
    PutFixed32(static_cast<uint32_t>(length), &bytes);
  } else {
    PutFixed64(length, &bytes);
  }
  return ExtendCrc32c(crc, bytes);
}

}  // namespace

std::string EncodeStrings(const Tensor& tensor, uint32_t* crc) {
  std::string blob;
  *crc = 0;
  for (const TString& s : tensor.flat<TString>()) {
    PutVarint(s.size(), &blob);
    *crc = ExtendByLength(*crc, s.size());
  }
  const size_t lengths_end = blob.size();
  PutFixed32(MaskCrc(*crc), &blob);
  *crc = ExtendCrc32c(*crc, absl::string_view(blob).substr(lengths_end));
  for (const TString& s : tensor.flat<TString>()) {
    blob.append(s.data(), s.size());
    *crc = ExtendCrc32c(*crc, s.view());
  }
  return blob;
}

StatusOr<Tensor> DecodeStrings(absl::string_view blob, const Shape& shape, uint32_t crc) {
  const int64_t n = shape.num_elements();
  if (static_cast<uint64_t>(n) > blob.size()) return DataLoss("strings of a checkpoint are truncated");
  absl::string_view lengths = blob, rest = blob;
  uint32_t sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    uint64_t length = 0;
    if (!GetVarint(&rest, &length)) return DataLoss("string lengths of a checkpoint are broken");
    sum = ExtendByLength(sum, length);
  }
  uint32_t stored = 0;
  const absl::string_view stored_bytes = rest.substr(0, 4);
  if (!GetFixed32(&rest, &stored) || UnmaskCrc(stored) != sum) {
    return DataLoss("checksum of string lengths in a checkpoint does not match");
  }
  sum = ExtendCrc32c(ExtendCrc32c(sum, stored_bytes), rest);
  if (sum != crc) return DataLoss("checksum of strings in a checkpoint does not match");
  MR_ASSIGN_OR_RETURN(Tensor result, Tensor::Make(DType::kString, shape));
  for (TString& s : result.mutable_flat<TString>()) {
    uint64_t length = 0;
    absl::string_view bytes;
    if (!GetVarint(&lengths, &length) || !GetBytes(&rest, length, &bytes)) {
      return DataLoss("strings of a checkpoint are truncated");
    }
    s = bytes;
  }
  if (!rest.empty()) return DataLoss("bytes left over after the strings of a checkpoint");
  return result;
}

}  // namespace millrace
