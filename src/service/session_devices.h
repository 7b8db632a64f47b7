// SPDX-License-Identifier: Apache-2.0
// The devices of a worker as one session sees them: with names of its own, or with resources of its own.
#pragma once

#include <memory>
#include <vector>

#include "kernel/device.h"

namespace millrace {

// Wrappers of `devices`, which outlive them. `task`, if it is not empty, is what the session calls the worker:
// "/job:x/replica:0/task:1". Unimplemented for devices with memory of their own.
StatusOr<std::vector<std::unique_ptr<Device>>> DevicesOfSession(
    const std::vector<std::unique_ptr<Device>>& devices, const std::string& task, bool isolates_state);

}  // namespace millrace
