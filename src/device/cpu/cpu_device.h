// SPDX-License-Identifier: Apache-2.0
// CPU devices: host memory and the pool of the machine. Several may exist in one process (device_count); each has its
// own resources.
#pragma once

#include <memory>

#include "kernel/device.h"
#include "kernel/resource_manager.h"

namespace millrace {

// `pool` must outlive the device.
std::unique_ptr<Device> NewCpuDevice(DeviceName name, uint64_t incarnation, ThreadPool& pool);

}  // namespace millrace
