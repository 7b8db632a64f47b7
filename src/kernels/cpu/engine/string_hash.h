// SPDX-License-Identifier: Apache-2.0
// Hashes of strings that never change: programs keep what was learned under them.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "absl/strings/string_view.h"

namespace millrace {

// FarmHash's Fingerprint64.
uint64_t Fingerprint64(absl::string_view text);
// FarmHash's Fingerprint128, low half first.
std::pair<uint64_t, uint64_t> Fingerprint128(absl::string_view text);
// MurmurHash64A with TensorFlow's seed.
uint64_t MurmurHash64(absl::string_view text);
// SipHash-2-4 with a key of 128 bits: who does not know the key finds no texts of one hash.
uint64_t SipHash64(const std::array<uint64_t, 2>& key, absl::string_view text);

}  // namespace millrace
