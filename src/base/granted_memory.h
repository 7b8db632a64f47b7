// SPDX-License-Identifier: Apache-2.0
// How much memory the system lets this process use.
#pragma once

#include <cstdint>
#include <string>

#include "base/env.h"

namespace millrace {

struct MemoryGrant {
  int64_t main = 0;       // bytes
  int64_t with_swap = 0;  // those of the main memory and of what it swaps to
};

// What the machine has, and no more than the control groups of this process grant (`docker run --memory`, Kubernetes'
// limits, systemd's MemoryMax), whoever else uses it. Files are read from `env`, below `root`, a folder that stands for
// "/" in tests.
MemoryGrant GrantedMemory(Env& env, const std::string& root = "");

// The same of this process; asked once.
const MemoryGrant& GrantedMemory();

}  // namespace millrace
