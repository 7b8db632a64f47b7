// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "kernel/resource_manager.h"
#include "tensor/shared_memory.h"

namespace millrace {
namespace {

constexpr int64_t kElements = 64;

Tensor Filled(int32_t value) {
  Tensor t = *Tensor::Make(DType::kInt32, Shape::Vector(kElements));
  for (int32_t& v : t.mutable_flat<int32_t>()) v = value;
  return t;
}

// Whether all elements are equal, as every write leaves them.
bool IsWhole(const Tensor& t) {
  for (int32_t v : t.flat<int32_t>()) {
    if (v != t.data<int32_t>()[0]) return false;
  }
  return t.num_elements() == kElements;
}

TEST(Variable, ReadsWhatWasAssigned) {
  Variable v(DType::kInt32, PartialShape::Unknown());
  EXPECT_FALSE(v.ReadOrEmpty().IsInitialized());
  v.Assign(Filled(3));
  EXPECT_EQ(*v.ReadOrEmpty().data<int32_t>(), 3);
}

TEST(Variable, AValueReadDoesNotChange) {
  Variable v(DType::kInt32, PartialShape::Unknown());
  v.Assign(Filled(1));
  const Tensor before = v.ReadOrEmpty();
  ASSERT_TRUE(v.Update([](Tensor* t) {
                 for (int32_t& x : t->mutable_flat<int32_t>()) ++x;
                 return absl::OkStatus();
               }).ok());
  EXPECT_EQ(*before.data<int32_t>(), 1);
  EXPECT_EQ(*v.ReadOrEmpty().data<int32_t>(), 2);
  EXPECT_EQ(*v.ReadOrEmpty().data<int32_t>(), 2);
}

// Where others hold the value, what comes of it goes at once to where it is to be.
TEST(Variable, ARewriteCopiesNothing) {
  Variable v(DType::kInt32, PartialShape::Unknown());
  EXPECT_TRUE(absl::IsFailedPrecondition(v.Rewrite([](const Tensor&, Tensor*) { return absl::OkStatus(); })));
  v.Assign(Filled(1));
  bool was_in_place = false;
  const auto add_one = [&was_in_place](const Tensor& before, Tensor* after) {
    was_in_place = before.raw() == after->raw();
    for (int64_t i = 0; i < kElements; ++i) after->mutable_data<int32_t>()[i] = before.data<int32_t>()[i] + 1;
    return absl::OkStatus();
  };
  ASSERT_TRUE(v.Rewrite(add_one).ok());
  EXPECT_TRUE(was_in_place);
  const Tensor held = v.ReadOrEmpty();
  ASSERT_TRUE(v.Rewrite(add_one).ok());
  EXPECT_FALSE(was_in_place);
  EXPECT_EQ(*held.data<int32_t>(), 2);
  const Tensor still_held = v.ReadOrEmpty();
  EXPECT_EQ(*still_held.data<int32_t>(), 3);
  EXPECT_TRUE(absl::IsUnknown(v.Rewrite([](const Tensor&, Tensor* after) {
    *after->mutable_data<int32_t>() = 7;
    return absl::UnknownError("it did not work");
  }))) << "of memory that nobody sees";
  EXPECT_EQ(*v.ReadOrEmpty().data<int32_t>(), 3);
}

// So that it need not be copied when it is sent again.
TEST(Variable, WhatIsSentToOtherProcessesMovesWhereTheyCanReadIt) {
  SharedMemory::Instance().BeginToServe();
  const auto is_shared = [](const Tensor& t) {
    return static_cast<bool>(SharedMemory::Instance().Find({t.data<char>(), t.TotalBytes()}));
  };
  const auto add_one = [](Tensor* t) {
    for (int32_t& x : t->mutable_flat<int32_t>()) ++x;
    return absl::OkStatus();
  };
  Variable v(DType::kInt32, PartialShape::Unknown());
  v.Assign(*Tensor::Zeros(DType::kInt32, Shape::Vector(1 << 18)));
  ASSERT_TRUE(v.Update(add_one).ok());
  EXPECT_FALSE(is_shared(v.ReadOrEmpty()));
  NoteSent(*v.ReadOrEmpty().buffer());
  ASSERT_TRUE(v.Update(add_one).ok());
  ASSERT_TRUE(is_shared(v.ReadOrEmpty()));
  const void* const place = v.ReadOrEmpty().raw();
  ASSERT_TRUE(v.Update(add_one).ok());
  EXPECT_EQ(v.ReadOrEmpty().raw(), place) << "it is updated in place";
  const Tensor lent = v.ReadOrEmpty();
  ASSERT_TRUE(v.Update(add_one).ok());
  EXPECT_EQ(*lent.data<int32_t>(), 3) << "but not while somebody reads it";
  EXPECT_EQ(*v.ReadOrEmpty().data<int32_t>(), 4);
  EXPECT_TRUE(is_shared(v.ReadOrEmpty()));
}

TEST(Variable, NobodySeesHalfAnUpdate) {
  Variable v(DType::kInt32, PartialShape::Unknown());
  v.Assign(Filled(0));
  std::atomic<bool> stop{false};
  std::atomic<int> broken{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      while (!stop.load()) broken += !IsWhole(v.ReadOrEmpty());
    });
  }
  threads.emplace_back([&] {
    for (int32_t i = 0; i < 2000; ++i) v.Assign(Filled(-i));
  });
  for (int i = 0; i < 2000; ++i) {
    EXPECT_TRUE(v.Update([](Tensor* t) {
                   for (int32_t& x : t->mutable_flat<int32_t>()) ++x;
                   return absl::OkStatus();
                 }).ok());
  }
  stop = true;
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(broken, 0);
}

}  // namespace
}  // namespace millrace
