// SPDX-License-Identifier: Apache-2.0
// What others may know of a worker's device.
#pragma once

#include <cstdint>
#include <string>

namespace millrace {

struct DeviceInfo {
  std::string name;  // full
  std::string type;
  int64_t memory_bytes = 0;
  uint64_t incarnation = 0;
  bool own_memory = false;  // which the host cannot touch
};

// What the compiler makes of a step: to be read, and as a JSON object.
struct Explanation {
  std::string text, json;
};

}  // namespace millrace
