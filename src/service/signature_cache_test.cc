// SPDX-License-Identifier: Apache-2.0
#include "service/signature_cache.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

CompiledPtr Make(int fetch, int64_t num_nodes, bool through_rendezvous = false) {
  auto c = std::make_shared<Compiled>(nullptr);
  c->signature.fetches = {Output{nullptr, fetch}};
  c->through_rendezvous = through_rendezvous;
  c->num_nodes = num_nodes;
  return c;
}

TEST(SignatureCacheTest, DropsWhatWasUsedLongestAgoByItsNodes) {
  SignatureCache cache(1000);
  const std::vector<Output> fetches = {{nullptr, 0}, {nullptr, 1}, {nullptr, 2}, {nullptr, 3}};
  const auto find = [&](size_t i, bool partial = false) {
    return cache.Find({{}, absl::Span<const Output>(&fetches[i], 1), {}, partial});
  };
  EXPECT_EQ(find(0), nullptr);
  const CompiledPtr full = Make(0, 300), partial = Make(0, 300, true);
  EXPECT_TRUE(cache.Insert(full).empty());
  EXPECT_TRUE(cache.Insert(partial).empty());
  EXPECT_EQ(find(0), full);
  EXPECT_EQ(find(0, true), partial);
  EXPECT_TRUE(cache.Insert(Make(1, 300)).empty());
  EXPECT_EQ(find(0), full);
  EXPECT_EQ(cache.Insert(Make(2, 300)), std::vector<CompiledPtr>{partial});
  EXPECT_EQ(find(0), full);
  EXPECT_EQ(find(0, true), nullptr);
  EXPECT_EQ(cache.Insert(Make(3, 5000)).size(), 3u);  // the newest stays whatever it weighs
  EXPECT_NE(find(3), nullptr);
  EXPECT_EQ(find(0), nullptr);
  EXPECT_EQ(cache.Clear().size(), 1u);
  EXPECT_EQ(find(3), nullptr);
  EXPECT_TRUE(cache.Insert(Make(3, 1000)).empty());
}

}  // namespace
}  // namespace millrace
