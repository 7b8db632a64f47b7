// SPDX-License-Identifier: Apache-2.0
// Sessions whose steps look at what interrupts the client.
#pragma once

#include "runtime/interrupt.h"

namespace millrace {

class Interruptible {
 public:
  // Before the first step.
  virtual void SetInterruptCheck(const InterruptCheck& check) = 0;

 protected:
  ~Interruptible() = default;
};

}  // namespace millrace
