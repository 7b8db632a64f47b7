// SPDX-License-Identifier: Apache-2.0
// Timers of an Env that end with their scope.
#pragma once

#include <optional>
#include <utility>

#include "base/env.h"

namespace millrace {

// Calls back again and again until the callback returns false. Cancels its callback on destruction: after that the
// callback has either run to its end or never will.
class Ticks {
 public:
  Ticks(Env& env, absl::Duration period, absl::AnyInvocable<bool()> callback)
      : env_(env), id_(env.StartTimer(period, std::move(callback))) {}
  ~Ticks() { env_.StopTimer(id_); }
  Ticks(const Ticks&) = delete;
  Ticks& operator=(const Ticks&) = delete;

 private:
  Env& env_;
  const Env::TimerId id_;
};

// Calls back once; never when `after` is infinite. Destruction as above.
class Deadline {
 public:
  template <typename Callback>
  Deadline(Env& env, absl::Duration after, Callback callback) {
    if (after == absl::InfiniteDuration()) return;
    once_.emplace(env, after, [callback = std::move(callback)]() mutable {
      callback();
      return false;
    });
  }

 private:
  std::optional<Ticks> once_;
};

}  // namespace millrace
