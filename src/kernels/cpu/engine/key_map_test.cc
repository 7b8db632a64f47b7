// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/engine/key_map.h"

#include <map>
#include <new>
#include <random>
#include <string>

#include "gtest/gtest.h"

namespace millrace {
namespace {

TEST(KeyMapTest, BehavesLikeAMap) {
  std::minstd_rand random(3);
  KeyMap<uint64_t> map;
  std::map<uint64_t, int64_t> expected;
  EXPECT_FALSE(map.Contains(0));
  for (int64_t i = 0; i < 20000; ++i) {
    const uint64_t key = random() % 5000 * 0x10000;
    const auto [number, is_new] = map.Insert(key, i);
    const auto [at, is_expected] = expected.emplace(key, i);
    ASSERT_EQ(is_new, is_expected);
    ASSERT_EQ(number, at->second);
    ++map[key + 1];
    ++expected[key + 1];
  }
  EXPECT_EQ(map.size(), expected.size());
  for (const auto& [key, number] : expected) {
    ASSERT_NE(map.Find(key), nullptr);
    EXPECT_EQ(*map.Find(key), number);
  }
  EXPECT_EQ(map.Find(3), nullptr);
}

// A key whose copies throw when they are told to, as memory that runs out would have it.
struct FragileKey {
  static inline bool fails = false;
  int value = 0;
  FragileKey() {
    if (fails) throw std::bad_alloc();
  }
  explicit FragileKey(int v) : value(v) {}
  bool operator==(const FragileKey& o) const { return value == o.value; }
  template <typename H>
  friend H AbslHashValue(H h, const FragileKey& k) {
    return H::combine(std::move(h), k.value);
  }
};

TEST(KeyMapTest, StaysWholeWhenItCannotGrow) {
  KeyMap<FragileKey> map;
  int refused = 0;
  for (int i = 0; i < 100; ++i) {
    const FragileKey key(i);
    FragileKey::fails = true;
    try {
      map.Insert(key, i);
    } catch (const std::bad_alloc&) {
      ++refused;
      EXPECT_FALSE(map.Contains(key));
      for (int k = 0; k < i; ++k) ASSERT_EQ(*map.Find(FragileKey(k)), k);
      FragileKey::fails = false;
      EXPECT_TRUE(map.Insert(key, i).second);
    }
    FragileKey::fails = false;
  }
  EXPECT_EQ(map.size(), 100u);
  EXPECT_EQ(refused, 5);  // at 0, 12, 24, 48 and 96 keys
}

TEST(KeyMapTest, HoldsStringsAndPairs) {
  KeyMap<std::string> strings;
  EXPECT_TRUE(strings.Insert("a", 1).second);
  EXPECT_EQ(strings.Insert("a", 2).first, 1);
  KeyMap<std::pair<int64_t, int64_t>> pairs;
  pairs[{1, 2}] = 5;
  EXPECT_EQ(*pairs.Find({1, 2}), 5);
  EXPECT_FALSE(pairs.Contains({2, 1}));
}

}  // namespace
}  // namespace millrace
