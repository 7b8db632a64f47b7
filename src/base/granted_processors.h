// SPDX-License-Identifier: Apache-2.0
// How many processors the system lets this process use.
#pragma once

#include <string>

#include "base/env.h"

namespace millrace {

// The processors that the calling thread may run on (`taskset`, cpusets), and no more than the time that its control
// groups grant (`docker run --cpus`, systemd's CPUQuota), rounded up: at least 1. Files are read from `env`, below
// `root`, a folder that stands for "/" in tests.
int GrantedProcessors(Env& env, const std::string& root = "");

}  // namespace millrace
