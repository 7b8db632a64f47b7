// SPDX-License-Identifier: Apache-2.0
#include "tensor/shared_memory.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tensor/host_charge.h"
#include "tensor/plain_allocator.h"

namespace millrace {
namespace {

constexpr size_t kBytes = size_t{3} << 20;
constexpr int64_t kFloats = kBytes / sizeof(float);

SharedMemory& Memory() {
  SharedMemory& memory = SharedMemory::Instance();
  memory.BeginToServe();
  return memory;
}

absl::string_view BytesOf(const Tensor& t) { return {static_cast<const char*>(t.raw()), t.TotalBytes()}; }
bool IsShared(const Tensor& t) { return static_cast<bool>(Memory().Find(BytesOf(t))); }
int64_t InUse() { return HostAllocator().Stats().bytes_in_use; }

TEST(SharedMemoryTest, ABufferIsCountedAndItsSegmentUsedAgain) {
  const int64_t before = InUse();
  auto buffer = Memory().Allocate(kBytes);
  ASSERT_TRUE(buffer.ok()) << buffer.status();
  EXPECT_GE(InUse() - before, static_cast<int64_t>(kBytes));
  const uint64_t id = (*buffer)->id();
  const char* const data = static_cast<const char*>((*buffer)->data());
  EXPECT_EQ(Memory().Find({data, kBytes}), *buffer);
  EXPECT_EQ(Memory().Find({data + 5, 10}), *buffer);
  EXPECT_FALSE(Memory().Find({data + 5, kBytes})) << "it ends before";
  EXPECT_FALSE(Memory().Find({data - 1, 1}));
  *buffer = nullptr;
  EXPECT_LT(InUse() - before, static_cast<int64_t>(kBytes));
  EXPECT_FALSE(Memory().Find({data, 1})) << "nobody has it";
  const auto again = Memory().Allocate(kBytes - 1000);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ((*again)->id(), id);
}

TEST(SharedMemoryTest, MemoryFromElsewhereCountsForTheLimit) {
  PlainAllocator host(1000);
  EXPECT_TRUE(host.Charge(600));
  EXPECT_FALSE(host.Charge(600));
  EXPECT_EQ(host.Allocate(600), nullptr);
  host.Discharge(600);
  EXPECT_TRUE(host.Charge(600));
  EXPECT_EQ(host.Stats().bytes_in_use, 600);
}

// Who is gone without a word may still read.
TEST(SharedMemoryTest, WhatIsAbandonedIsNotWrittenToAndNotUsedAgain) {
  auto mine = *Memory().Allocate(kBytes);
  const uint64_t id = mine->id();
  const std::weak_ptr<Segment> segment = mine->segment();
  Memory().Abandon(mine);
  Memory().Abandon(mine);  // by another
  Memory().Trim();
  EXPECT_FALSE(mine->HasOneRef()) << "who writes must take a copy";
  mine = nullptr;
  EXPECT_FALSE(segment.expired());
  Memory().Trim();
  EXPECT_TRUE(segment.expired()) << "it is kept without a reason";
  EXPECT_NE((*Memory().Allocate(kBytes))->id(), id);
}

TEST(SharedMemoryTest, LargeTensorsAreMadeHereWhereOthersAskForThem) {
  Tensor t;
  EXPECT_FALSE(Memory().MakeTensor(DType::kFloat, Shape::Vector(10), &t));
  EXPECT_FALSE(Memory().MakeTensor(DType::kString, Shape::Vector(kFloats), &t));
  EXPECT_FALSE(t.IsInitialized());
  ASSERT_TRUE(Memory().MakeTensor(DType::kFloat, Shape::Vector(kFloats), &t));
  EXPECT_TRUE(IsShared(t));
  EXPECT_TRUE(t.OwnsBufferAlone());
  EXPECT_NE(PreparedStateOf(*t.buffer()), nullptr) << "kernels may keep forms of it";
}

TEST(SharedMemoryTest, WhatWasSentIsCopiedHere) {
  Tensor t = *Tensor::Zeros(DType::kFloat, Shape::Vector(kFloats)), copy;
  t.mutable_data<float>()[kFloats - 1] = 7;
  EXPECT_FALSE(Memory().WantsToMove(t));
  EXPECT_FALSE(Memory().CopyOf(t, &copy));
  NoteSent(*t.buffer());
  EXPECT_TRUE(Memory().WantsToMove(t));
  ASSERT_TRUE(Memory().CopyOf(t, &copy));
  EXPECT_TRUE(IsShared(copy));
  EXPECT_EQ(BytesOf(copy), BytesOf(t));
  EXPECT_FALSE(Memory().WantsToMove(copy));
  Tensor next;
  EXPECT_TRUE(Memory().CopyOf(copy, &next)) << "and its copies too";
}

}  // namespace
}  // namespace millrace
