// SPDX-License-Identifier: Apache-2.0
#include "kernel/edge_key.h"

#include <gtest/gtest.h>

#include <limits>

namespace millrace {
namespace {

TEST(EdgeKeyTest, TextsAreReadAsTheyAreWritten) {
  for (const EdgeKey key : {EdgeKey{0, 0, 0}, EdgeKey{17, 0, 0}, EdgeKey{3, std::numeric_limits<uint64_t>::max(), 12},
                            EdgeKey{std::numeric_limits<int64_t>::max(), 5, std::numeric_limits<int64_t>::max()}}) {
    const StatusOr<EdgeKey> read = EdgeKey::Parse(key.ToString());
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(*read, key);
  }
  EXPECT_EQ((EdgeKey{17, 0, 0}.ToString()), "17;0:0");
}

TEST(EdgeKeyTest, OtherTextsAreRefused) {
  for (const char* text : {"", ";", "1", "1;2", "1:2", "1:2;3", "1;2:3:4", " 1;2:3", "1;-2:3", "1;2:3 ", "01;2:3",
                           "a;0:0", "1;99999999999999999999:0"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(EdgeKey::Parse(text).status())) << text;
  }
}

}  // namespace
}  // namespace millrace
