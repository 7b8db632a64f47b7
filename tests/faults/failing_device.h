// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "base/env.h"
#include "failing_memory.h"
#include "kernel/device.h"
#include "kernel/resource_manager.h"

namespace millrace {

// Its memory fails with the rest.
class FailingDevice final : public Device {
 public:
  FailingDevice(DeviceName name, ThreadPool& pool) : Device(std::move(name), 1, FailingAllocator()), pool_(pool) {}
  ThreadPool& thread_pool() override { return pool_; }
  int64_t memory_limit() const override { return 0; }
  ResourceManager& resources() override { return resources_; }

 private:
  ThreadPool& pool_;
  ResourceManager resources_;
};

}  // namespace millrace
