// SPDX-License-Identifier: Apache-2.0
// The host's memory runs out while a device's is taken or given back: nothing of the device's is lost, and what is
// given back needs no memory.
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/exceptions.h"
#include "base/thread_pool.h"
#include "capi/plugin/plugin_device.h"
#include "failing_memory.h"
#include "kernel/device_memory.h"
#include "tensor/memory_space.h"

namespace millrace {
namespace {

constexpr size_t kRoom = 4096;  // for one tensor, and a small one

// Host memory that stands for a device's; its streams do nothing.
size_t in_use = 0;
void* Take(void*, size_t bytes) {
  if (in_use + bytes > kRoom) return nullptr;
  in_use += bytes;
  return std::aligned_alloc(64, bytes);
}
void Give(void*, void* memory, size_t bytes) {
  in_use -= bytes;
  std::free(memory);
}

MR_DeviceFunctions Functions() {
  static int anything = 0;
  MR_DeviceFunctions f = {};
  f.struct_size = sizeof f;
  f.count = [](void*) { return 1; };
  f.open = [](void*, int, TF_Status*) -> void* { return &anything; };
  f.memory_limit = [](void*) { return static_cast<int64_t>(kRoom); };
  f.allocate = &Take;
  f.deallocate = &Give;
  f.create_stream = [](void*, TF_Status*) { return reinterpret_cast<SP_Stream>(&anything); };
  f.create_event = [](void*, TF_Status*) -> void* { return &anything; };
  f.destroy_event = [](void*, void*) {};
  f.record_event = [](void*, SP_Stream, void*, TF_Status*) {};
  f.wait_for_event = [](void*, SP_Stream, void*, TF_Status*) {};
  f.copy_to_host = [](void*, SP_Stream, void*, const void*, size_t, TF_Status*) {};
  f.copy_from_host = [](void*, SP_Stream, void*, const void*, size_t, TF_Status*) {};
  f.copy_within = [](void*, SP_Stream, void*, const void*, size_t, TF_Status*) {};
  f.callback = [](void*, SP_Stream, MR_StreamCallback callback, void* arg, TF_Status*) { callback(arg, nullptr); };
  f.synchronize = [](void*, SP_Stream, TF_Status*) {};
  return f;
}

TEST(FailingDeviceMemoryTest, NothingOfADeviceIsLostAndFreeingNeedsNoMemory) {
  const MR_DeviceFunctions functions = Functions();
  const auto type = capi::MakeDeviceType("FAILING", &functions);
  ASSERT_TRUE(type.ok()) << type.status();
  const DeviceName name{.job = "localhost", .replica = 0, .task = 0, .type = "FAILING", .id = 0};
  const auto device = type->make(name, 1, 0, ProcessThreadPool());
  ASSERT_TRUE(device.ok()) << device.status();
  MemorySpace& space = *SpaceOf(**device);
  const Shape large = *Shape::Make({3840 / 4}), small = *Shape::Make({16});
  const auto make = [&](const Shape& shape) {
    return WithoutExceptions([&] { return MakeTensorIn(space, DType::kFloat, shape); });
  };
  int failed = 0;
  for (const Shape& shape : {large, small, large}) {  // for which the other's memory must be given back first
    for (int64_t n = 1; n <= 12; ++n) {
      SCOPED_TRACE(absl::StrCat("allocation ", n, " for ", shape.ToString()));
      FailAllocation(n);
      StatusOr<Tensor> t = make(shape);
      FailAllocation(1, /*and_all_after=*/true);
      const bool made = t.ok();
      if (made) *t = Tensor();  // without memory
      StopFailing();
      EXPECT_TRUE(made || absl::IsResourceExhausted(t.status())) << t.status();
      failed += !made;
      EXPECT_EQ(space.Stats().bytes_in_use, 0);
      const StatusOr<Tensor> again = make(shape);
      EXPECT_TRUE(again.ok()) << again.status() << ": " << in_use << " bytes of the device are in use";
    }
  }
  EXPECT_GT(failed, 0);
}

}  // namespace
}  // namespace millrace
