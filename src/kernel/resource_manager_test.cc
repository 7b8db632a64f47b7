// SPDX-License-Identifier: Apache-2.0
#include "kernel/resource_manager.h"

#include <gtest/gtest.h>

#include <thread>

namespace millrace {
namespace {

struct Box final : Resource {
  explicit Box(int v, int* gone = nullptr) : value(v), gone_count(gone) {}
  ~Box() override {
    if (gone_count != nullptr) ++*gone_count;
  }
  std::string DebugString() const override { return "box"; }
  const int value;
  int* const gone_count;
};
struct Crate final : Resource {
  std::string DebugString() const override { return "crate"; }
};

class ResourceManagerTest : public ::testing::Test {
 protected:
  int ValueOf(const std::string& container, const std::string& name) {
    const auto found = all_.Lookup<Box>(container, name);
    return found.ok() ? (*found)->value : -1;
  }
  ResourceManager all_;
};

TEST_F(ResourceManagerTest, AResourceIsFoundByContainerNameAndType) {
  ASSERT_TRUE(all_.Create("a", "x", MakeRef<Box>(1)).ok());
  ASSERT_TRUE(all_.Create("b", "x", MakeRef<Box>(2)).ok());
  ASSERT_TRUE(all_.Create("a", "x", MakeRef<Crate>()).ok()) << "of another type";
  EXPECT_EQ(ValueOf("a", "x"), 1);
  EXPECT_EQ(ValueOf("b", "x"), 2);
  EXPECT_TRUE(absl::IsAlreadyExists(all_.Create("a", "x", MakeRef<Box>(3))));
  EXPECT_EQ(ValueOf("a", "x"), 1);
  const Status none = all_.Lookup<Box>("a", "y").status();
  EXPECT_TRUE(absl::IsNotFound(none));
  EXPECT_NE(none.message().find("'y'"), absl::string_view::npos) << none;
}

TEST_F(ResourceManagerTest, WhoHoldsAResourceKeepsItAlive) {
  int gone = 0;
  ASSERT_TRUE(all_.Create("a", "x", MakeRef<Box>(1, &gone)).ok());
  RefPtr<Box> held = *all_.Lookup<Box>("a", "x");
  ASSERT_TRUE(all_.Delete<Box>("a", "x").ok());
  EXPECT_TRUE(absl::IsNotFound(all_.Delete<Box>("a", "x")));
  EXPECT_EQ(held->value, 1);
  EXPECT_EQ(gone, 0);
  held.reset();
  EXPECT_EQ(gone, 1);
}

TEST_F(ResourceManagerTest, ContainersAreClearedByThemselves) {
  for (const char* container : {"a", "aa", "b"}) {
    for (const char* name : {"x", "y"}) ASSERT_TRUE(all_.Create(container, name, MakeRef<Box>(1)).ok());
  }
  all_.Clear("a");
  EXPECT_EQ(ValueOf("a", "x") + ValueOf("a", "y"), -2);
  EXPECT_EQ(ValueOf("aa", "x") + ValueOf("b", "y"), 2);
  all_.ClearAll();
  EXPECT_EQ(ValueOf("aa", "x") + ValueOf("b", "y"), -2);
}

TEST_F(ResourceManagerTest, ItIsMadeOnceHoweverManyThreadsAskForIt) {
  std::atomic<int> made{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      const auto found =
          all_.LookupOrCreate<Box>("a", "x", [&]() -> StatusOr<RefPtr<Box>> { return MakeRef<Box>(++made); });
      ASSERT_TRUE(found.ok());
      EXPECT_EQ((*found)->value, 1);
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(made, 1);
}

TEST_F(ResourceManagerTest, WhatCannotBeMadeLeavesNothingBehind) {
  const auto fail = []() -> StatusOr<RefPtr<Box>> { return InvalidArgument("no box"); };
  EXPECT_EQ(all_.LookupOrCreate<Box>("a", "x", fail).status(), InvalidArgument("no box"));
  EXPECT_EQ(ValueOf("a", "x"), -1);
  EXPECT_TRUE(all_.LookupOrCreate<Box>("a", "x", []() -> StatusOr<RefPtr<Box>> { return MakeRef<Box>(4); }).ok());
  EXPECT_EQ(ValueOf("a", "x"), 4);
}

}  // namespace
}  // namespace millrace
