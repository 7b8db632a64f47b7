// SPDX-License-Identifier: Apache-2.0
// What a device, and so a kernel, has of the world: clocks, timers, threads, files, randomness.
#pragma once

#include "base/pool_env.h"
#include "kernel/device.h"

namespace millrace {

inline Env& EnvOf(Device& device) { return EnvOf(device.thread_pool()); }

}  // namespace millrace
