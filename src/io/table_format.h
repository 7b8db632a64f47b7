// SPDX-License-Identifier: Apache-2.0
// Numbers that writer and reader of tables share.
#pragma once

#include <cstddef>
#include <cstdint>

namespace millrace::table_format {

inline constexpr uint64_t kMagic = 0xdb4775248b80fb57u;
inline constexpr size_t kFooterBytes = 48;
inline constexpr size_t kTrailerBytes = 5;  // type and checksum after each block
inline constexpr unsigned char kRaw = 0;
inline constexpr unsigned char kSnappy = 1;
inline constexpr size_t kBlockTargetBytes = 256 << 10;
inline constexpr size_t kMaxBlockBytes = size_t{1} << 31;
inline constexpr int kDataRestartInterval = 16;
inline constexpr int kIndexRestartInterval = 1;

}  // namespace millrace::table_format
