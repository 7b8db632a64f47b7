// SPDX-License-Identifier: Apache-2.0
// A CPU of two threads.
#pragma once

#include "base/thread_pool.h"
#include "kernel/device.h"
#include "kernel/resource_manager.h"

namespace millrace {

class TestDevice final : public Device {
 public:
  TestDevice()
      : Device(*DeviceName::Parse("/job:localhost/replica:0/task:0/device:CPU:0"), 1, HostAllocator()), pool_(2) {}
  ThreadPool& thread_pool() override { return pool_; }
  int64_t memory_limit() const override { return 0; }
  ResourceManager& resources() override { return resources_; }

 private:
  ThreadPool pool_;
  ResourceManager resources_;
};

}  // namespace millrace
