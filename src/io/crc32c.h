// SPDX-License-Identifier: Apache-2.0
// CRC-32C (Castagnoli), the checksum of record files, tables and checkpoints; by the processor's instruction where it
// has one.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"

namespace millrace {

// The checksum of what `crc` was computed of, followed by `data`. Start with 0.
uint32_t ExtendCrc32c(uint32_t crc, absl::string_view data);
inline uint32_t Crc32c(absl::string_view data) { return ExtendCrc32c(0, data); }

// Files store checksums masked, because the checksum of bytes that hold their own checksum is weak.
constexpr uint32_t MaskCrc(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }
constexpr uint32_t UnmaskCrc(uint32_t masked) {
  const uint32_t rotated = masked - 0xa282ead8u;
  return (rotated >> 17) | (rotated << 15);
}

}  // namespace millrace
