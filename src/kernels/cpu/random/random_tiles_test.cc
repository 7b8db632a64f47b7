// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/random/random_tiles.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace millrace {
namespace {

// Words of the generator, also where the count of blocks goes beyond 32 and 64 bits within a call.
TEST(RandomTiles, WordsAreThoseOfTheGenerator) {
  for (const uint32_t low : {0u, 0xffffffe0u}) {
    for (const uint32_t high : {0u, 0xffffffffu}) {
      for (const uint64_t apart : {1, 256}) {
        for (const int64_t n : {1, 15, 64}) {
          const Philox start({low, high, high, 7}, {11, 13});
          std::vector<uint32_t> words(static_cast<size_t>(4 * n));
          RandomWords(start, apart, n, words.data());
          for (int64_t i = 0; i < n; ++i) {
            Philox own = start;
            own.Skip(apart * static_cast<uint64_t>(i));
            const Philox::Block want = own();
            for (size_t k = 0; k < 4; ++k) EXPECT_EQ(words[static_cast<size_t>(4 * i) + k], want[k]) << i;
          }
        }
      }
    }
  }
}

TEST(RandomTiles, FractionsAreTheLowBits) {
  Philox start({0, 0, 1, 2}, {3, 4});
  for (const int bits : {23, 10, 7}) {
    float got[4 * kRandomBatch];
    RandomFractions(start, kRandomBatch, bits, got);
    Philox own = start;
    for (int64_t i = 0; i < kRandomBatch; ++i) {
      const Philox::Block words = own();
      for (size_t k = 0; k < 4; ++k) {
        EXPECT_EQ(got[static_cast<size_t>(4 * i) + k], std::ldexp(static_cast<float>(words[k] % (1u << bits)), -bits));
      }
    }
  }
}

TEST(RandomTiles, NormalsAreBoxAndMullers) {
  Philox start({0, 0, 5, 6}, {7, 8});
  int differ = 0;
  for (int call = 0; call < 50; ++call) {
    float got[4 * kRandomBatch];
    RandomNormals(start, 1, kRandomBatch, got);
    for (int64_t i = 0; i < kRandomBatch; ++i) {
      const Philox::Block x = start();
      float want[4];
      BoxMuller(x[0], x[1], &want[0], &want[1]);
      BoxMuller(x[2], x[3], &want[2], &want[3]);
      for (size_t k = 0; k < 4; ++k) {
        const float v = got[static_cast<size_t>(4 * i) + k];
        differ += v != want[k];
        EXPECT_NEAR(v, want[k], 4e-7f * std::fabs(want[k]));  // the C library rounds another way now and then
      }
    }
  }
  EXPECT_LT(differ, 50 * 4 * kRandomBatch / 10);
}

TEST(RandomTiles, SumsOfExponentialsSkipWhatIsNotFinite) {
  const double infinity = std::numeric_limits<double>::infinity();
  std::vector<double> v = {1, -infinity, std::nan(""), 2, infinity, 0};
  CumulateExps(v.data(), 6);
  const double e = std::exp(-1.0);
  const double want[] = {e, e, e, 1 + e, 1 + e, 1 + e + std::exp(-2.0)};
  for (size_t i = 0; i < 6; ++i) EXPECT_NEAR(v[i], want[i], 1e-15) << i;
}

}  // namespace
}  // namespace millrace
