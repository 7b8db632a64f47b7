// SPDX-License-Identifier: Apache-2.0
// Memory of tensors that HostAllocator() has not given, in its statistics and against its limit. Thread-safe.
#pragma once

#include <cstddef>

namespace millrace {

class HostCharge {
 public:
  // False, and nothing is counted: the limit would be passed.
  virtual bool Charge(size_t bytes) = 0;
  virtual void Discharge(size_t bytes) = 0;

 protected:
  ~HostCharge() = default;
};

// That of HostAllocator().
HostCharge& HostCharges();

}  // namespace millrace
