// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/engine/string_hash.h"

#include <string>

#include "gtest/gtest.h"

namespace millrace {
namespace {

// A text of n bytes.
std::string Text(size_t n) {
  std::string s;
  for (size_t i = 0; i < n; ++i) s.push_back(static_cast<char>((i * 7 + n * 13 + 1) % 251));
  return s;
}

// One number for the buckets of texts of all lengths from 0 to 299.
template <typename Fn>
uint64_t OfAllLengths(Fn hash) {
  constexpr uint64_t kBuckets = (uint64_t{1} << 62) - 57;
  uint64_t all = 0;
  for (size_t n = 0; n < 300; ++n) all = all * 31 + hash(Text(n)) % kBuckets;
  return all;
}

// What TensorFlow 2.21 gives.
TEST(StringHash, EveryLength) {
  EXPECT_EQ(OfAllLengths(Fingerprint64), 7016908655730529750u);
  EXPECT_EQ(OfAllLengths(MurmurHash64), 15860029160436442659u);
  EXPECT_EQ(OfAllLengths([](const std::string& s) { return SipHash64({123, 456}, s); }), 17720157546680159458u);
}

// What TensorFlow 2.21's SdcaFprint gives.
TEST(StringHash, EveryLengthTo128Bits) {
  uint64_t all = 0;
  for (size_t n = 0; n < 300; ++n) {
    const auto [low, high] = Fingerprint128(Text(n));
    all = (all * 31 + low) * 31 + high;
  }
  EXPECT_EQ(all, 8571920244547199684u);
}

// The example of SipHash's paper: key 00 to 0f, text 00 to 0e.
TEST(StringHash, SipHashAsPublished) {
  std::string text;
  for (char c = 0; c < 15; ++c) text.push_back(c);
  EXPECT_EQ(SipHash64({0x0706050403020100, 0x0f0e0d0c0b0a0908}, text), 0xa129ca6149be45e5u);
}

TEST(StringHash, KeysMatter) { EXPECT_NE(SipHash64({1, 2}, "text"), SipHash64({1, 3}, "text")); }

}  // namespace
}  // namespace millrace
