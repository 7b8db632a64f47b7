// SPDX-License-Identifier: Apache-2.0
// Names of devices, whole or partial.
#pragma once

#include <string>

#include "base/status.h"

namespace millrace {

// "/job:x/replica:0/task:1/device:CPU:0", any subset in any order, "*" for a part; "/cpu:0" and "CPU:0" too.
struct DeviceName {
  std::string job;   // empty: any
  int replica = -1;  // -1: any
  int task = -1;
  std::string type;  // upper case; empty: any
  int id = -1;

  static StatusOr<DeviceName> Parse(absl::string_view text);
  std::string ToString() const;                // canonical, only the parts that are set
  bool Matches(const DeviceName& full) const;  // every part that is set agrees
  // Both constraints at once; InvalidArgument when they contradict.
  StatusOr<DeviceName> Merge(const DeviceName& o) const;
  bool operator==(const DeviceName&) const = default;
};

}  // namespace millrace
