// SPDX-License-Identifier: Apache-2.0
// Philox4x32-10, the counter-based generator of Salmon et al. (SC 2011), and the distributions that read it. A stream
// is determined by key and counter alone, so a step's numbers can be made by any number of threads. The mapping from
// bits to numbers is TensorFlow's: a graph with fixed seeds gives the same values.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "tensor/half.h"

namespace millrace {

class Philox {
 public:
  using Block = std::array<uint32_t, 4>;
  using Key = std::array<uint32_t, 2>;

  Philox() = default;
  Philox(uint64_t seed, uint64_t seed2) : counter_{0, 0, Low(seed2), High(seed2)}, key_{Low(seed), High(seed)} {}
  Philox(const Block& counter, const Key& key) : counter_(counter), key_(key) {}

  // The next 128 bits.
  Block operator()() {
    Block b = counter_;
    Key k = key_;
    for (int round = 0; round < 10; ++round) {
      if (round > 0) k = {k[0] + 0x9E3779B9u, k[1] + 0xBB67AE85u};
      const uint64_t p0 = uint64_t{0xD2511F53u} * b[0], p1 = uint64_t{0xCD9E8D57u} * b[2];
      b = {High(p1) ^ b[1] ^ k[0], Low(p1), High(p0) ^ b[3] ^ k[1], Low(p0)};
    }
    Skip(1);
    return b;
  }

  const Block& counter() const { return counter_; }
  const Key& key() const { return key_; }

  // As if operator() had been called `blocks` times.
  void Skip(uint64_t blocks) {
    const uint64_t low = uint64_t{counter_[1]} << 32 | counter_[0];
    const uint64_t sum = low + blocks;
    counter_[0] = Low(sum);
    counter_[1] = High(sum);
    if (sum < low && ++counter_[2] == 0) ++counter_[3];
  }

 private:
  static uint32_t Low(uint64_t v) { return static_cast<uint32_t>(v); }
  static uint32_t High(uint64_t v) { return static_cast<uint32_t>(v >> 32); }
  Block counter_{};
  Key key_{};
};

// Hands out the 32-bit words of a generator one by one.
class PhiloxWords {
 public:
  explicit PhiloxWords(Philox generator) : generator_(generator) {}
  uint32_t operator()() {
    if (used_ == 4) {
      block_ = generator_();
      used_ = 0;
    }
    return block_[static_cast<size_t>(used_++)];
  }

 private:
  Philox generator_;
  Philox::Block block_{};
  int used_ = 4;
};

// Uniform integers of [0, n), without bias; n > 0.
inline uint64_t Below32(PhiloxWords& words, uint32_t n) {
  if ((n & (n - 1)) == 0) return words() & (n - 1);
  const uint32_t rest = std::numeric_limits<uint32_t>::max() % n + 1;
  for (;;) {
    const uint32_t x = words();
    if (x >= rest) return x % n;
  }
}
inline uint64_t Below64(PhiloxWords& words, uint64_t n) {
  const uint64_t rest = (n & (n - 1)) == 0 ? 0 : std::numeric_limits<uint64_t>::max() % n + 1;
  for (;;) {
    const uint64_t low = words(), x = uint64_t{words()} << 32 | low;
    if (x >= rest) return x % n;
  }
}

// Bits to a number in [0, 1): the mantissa of a number in [1, 2), minus 1.
inline float UnitFloat(uint32_t x) { return std::bit_cast<float>(0x3f800000u | (x & 0x7fffffu)) - 1.0f; }
inline double UnitDouble(uint32_t high, uint32_t low) {
  return std::bit_cast<double>(uint64_t{1023} << 52 | uint64_t{high & 0xfffffu} << 32 | low) - 1.0;
}
inline Half UnitHalf(uint32_t x) {
  return Half(static_cast<float>(Half::FromBits(static_cast<uint16_t>(15u << 10 | (x & 0x3ffu)))) - 1.0f);
}

// Two independent standard normal numbers (Box and Muller 1958).
inline void BoxMuller(uint32_t x0, uint32_t x1, float* a, float* b) {
  const float u = std::fmax(UnitFloat(x0), 1.0e-7f);
  const float angle = 2.0f * 3.14159265358979323846f * UnitFloat(x1);
  const float radius = std::sqrt(-2.0f * std::log(u));
  *a = std::sin(angle) * radius;
  *b = std::cos(angle) * radius;
}
inline void BoxMuller(uint32_t x0, uint32_t x1, uint32_t x2, uint32_t x3, double* a, double* b) {
  const double u = std::fmax(UnitDouble(x0, x1), 1.0e-7);
  const double angle = 2.0 * 3.14159265358979323846 * UnitDouble(x2, x3);
  const double radius = std::sqrt(-2.0 * std::log(u));
  *a = std::sin(angle) * radius;
  *b = std::cos(angle) * radius;
}

}  // namespace millrace
