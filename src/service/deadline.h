// SPDX-License-Identifier: Apache-2.0
// Calls back when a deadline passes. One thread for the process, started on first use. Thread-safe.
#pragma once

#include <cstdint>

#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"

namespace millrace {

// Cancels its callback on destruction: after that the callback has either run to its end or never will.
class Deadline {
 public:
  Deadline() = default;
  Deadline(absl::Duration after, absl::AnyInvocable<void()> callback);
  ~Deadline();
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

 private:
  int64_t id_ = -1;
};

// Calls back again and again until the callback returns false. Destruction as above.
class Ticks {
 public:
  Ticks(absl::Duration period, absl::AnyInvocable<bool()> callback);
  ~Ticks();
  Ticks(const Ticks&) = delete;
  Ticks& operator=(const Ticks&) = delete;

 private:
  int64_t id_;
};

}  // namespace millrace
