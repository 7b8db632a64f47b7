// SPDX-License-Identifier: Apache-2.0
// Calls of C libraries that report an error by a function that must not return.
//
// The library's error function calls Fail, which leaves the library by a jump back into Try. No destructor runs on the
// way, so a step passed to Try makes no object that has one; what the library holds is freed by its owner afterwards.
#pragma once

#include <csetjmp>
#include <cstdio>

namespace millrace {

class LongJump {
 public:
  // False when the step ended in Fail. Never inlined: setjmp makes the locals of its function unreliable.
  template <typename Step>
  [[gnu::noinline]] bool Try(const Step& step) {
    if (setjmp(place_) != 0) return false;
    step();
    return true;
  }
  [[noreturn]] void Fail(const char* message) {
    std::snprintf(message_, sizeof(message_), "%s", message);
    std::longjmp(place_, 1);
  }
  const char* message() const { return message_; }

 private:
  std::jmp_buf place_;
  char message_[256] = "";
};

}  // namespace millrace
