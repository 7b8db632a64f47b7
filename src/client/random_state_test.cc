// SPDX-License-Identifier: Apache-2.0
#include "client/random_state.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

TEST(RandomState, RoundTrip) {
  const RandomPositions all = {{"a/dropout/random_uniform", {1, 2, 3, 4, 5, 0xffffffffu}}, {"b", {0, 0, 0, 0, 0, 0}}};
  const std::string text = EncodeRandomPositions(all);
  EXPECT_EQ(text,
            "millrace random state 1\n"
            "00000001 00000002 00000003 00000004 00000005 ffffffff a/dropout/random_uniform\n"
            "00000000 00000000 00000000 00000000 00000000 00000000 b\n");
  ASSERT_TRUE(DecodeRandomPositions(text).ok());
  EXPECT_EQ(*DecodeRandomPositions(text), all);
  EXPECT_TRUE(DecodeRandomPositions(EncodeRandomPositions({}))->empty());
}

TEST(RandomState, RefusesOtherTexts) {
  const std::string good = EncodeRandomPositions({{"node", {1, 2, 3, 4, 5, 6}}});
  for (size_t n = 0; n < good.size(); ++n) {
    if (n == 24) continue;  // the first line alone: no streams
    EXPECT_FALSE(DecodeRandomPositions(good.substr(0, n)).ok()) << n;
  }
  EXPECT_FALSE(DecodeRandomPositions(good + good.substr(24)).ok());
  EXPECT_FALSE(DecodeRandomPositions(good + good).ok());
  std::string other = good;
  other[25] = 'x';
  EXPECT_FALSE(DecodeRandomPositions(other).ok());
}

}  // namespace
}  // namespace millrace
