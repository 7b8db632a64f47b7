// SPDX-License-Identifier: Apache-2.0
// Calls back when a deadline passes. One thread for the process, started on first use. Thread-safe.
#pragma once

#include <memory>

#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"

namespace millrace {

struct TimerEntry;

// Calls back again and again until the callback returns false. Cancels its callback on destruction: after that the
// callback has either run to its end or never will.
class Ticks {
 public:
  Ticks(absl::Duration period, absl::AnyInvocable<bool()> callback);
  ~Ticks();
  Ticks(const Ticks&) = delete;
  Ticks& operator=(const Ticks&) = delete;

 private:
  const std::unique_ptr<TimerEntry> entry_;
};

// Calls back once. Destruction as above.
class Deadline {
 public:
  Deadline(absl::Duration after, absl::AnyInvocable<void()> callback);

 private:
  Ticks once_;
};

}  // namespace millrace
