// SPDX-License-Identifier: Apache-2.0
// The types of devices that libraries add to the CPU.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/thread_pool.h"
#include "kernel/device.h"

namespace millrace {

struct DeviceType {
  std::string name;  // "TESTACC"
  std::function<int()> count;
  // For a session: device `ordinal`, with resources of its own. `pool` outlives it.
  std::function<StatusOr<std::unique_ptr<Device>>(DeviceName name, uint64_t incarnation, int ordinal, ThreadPool& pool)>
      make;
};

}  // namespace millrace
