// SPDX-License-Identifier: Apache-2.0
// String tensors in the data files of V2 checkpoints: lengths as varints, a checksum of the lengths, then all bytes.
#pragma once

#include <string>

#include "base/status.h"
#include "tensor/tensor.h"

namespace millrace {

// *crc is the checksum of the entry, which is not that of the blob: it takes the lengths with fixed width.
std::string EncodeStrings(const Tensor& tensor, uint32_t* crc);
// DataLoss where lengths or checksums do not fit.
StatusOr<Tensor> DecodeStrings(absl::string_view blob, const Shape& shape, uint32_t crc);

}  // namespace millrace
