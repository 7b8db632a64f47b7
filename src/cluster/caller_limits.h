// SPDX-License-Identifier: Apache-2.0
// How many calls of one caller may be under way at once. Who has as many is refused and never made to wait: what its
// calls wait for (the end of a step, the tensor that another part of it makes) may be what it is about to say.
// Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "base/status.h"

namespace millrace {

class CallerLimits {
  using Counts = std::map<std::string, int64_t, std::less<>>;

 public:
  // What ends steps and sessions may go beyond the limit by so much, so that those who are at it can be freed.
  static constexpr int64_t kReserve = 1000;

  // `setting`: what refusals name, by which the limit is set to `value`; `others`: calls that come on top of it.
  CallerLimits(std::string setting, int64_t value, int64_t others = 0)
      : setting_(std::move(setting)), value_(value), others_(others) {}

  // A call, until it is destroyed or Over. Its CallerLimits outlives it.
  class Hold {
   public:
    Hold() = default;
    Hold(Hold&& other) noexcept { *this = std::move(other); }
    Hold& operator=(Hold&& other) noexcept;
    ~Hold() { Over(); }
    void Over();

   private:
    friend class CallerLimits;
    CallerLimits* limits_ = nullptr;
    Counts::iterator at_;
  };
  // ResourceExhausted: that caller has as many calls under way as it may.
  StatusOr<Hold> Begin(absl::string_view caller, bool ends_something);

 private:
  const std::string setting_;
  const int64_t value_, others_;
  absl::Mutex mu_;
  Counts under_way_ ABSL_GUARDED_BY(mu_);  // those that have some
};

}  // namespace millrace
