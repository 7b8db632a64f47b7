// SPDX-License-Identifier: Apache-2.0
// How many connections a server has at once. Who comes beyond that is told so, and not heard. Not thread-safe.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <deque>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/descriptor.h"
#include "base/env.h"
#include "base/logging.h"

namespace millrace {

class ConnectionLimit {
 public:
  // `most`: 0 for no limit. `env` outlives it.
  ConnectionLimit(Env& env, int64_t most) : env_(env), most_(most) {}

  bool IsReached(int64_t open) const { return most_ > 0 && open >= most_; }
  // For people: what the limit is.
  std::string ToString() const {
    return absl::StrCat("the server has ", most_, " connections and takes no more (MILLRACE_MAX_CONNECTIONS)");
  }
  // Sends `farewell` to a connection of the server at `address`, as far as that takes no time. The socket stays for a
  // while: one that ends with something unread ends at the other side before what was sent to it.
  void Refuse(Descriptor socket, const std::string& address, const std::string& farewell) {
    static_cast<void>(send(socket.get(), farewell.data(), farewell.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
    shutdown(socket.get(), SHUT_WR);
    refused_.push_back(std::move(socket));
    if (refused_.size() > kStaying) refused_.pop_front();
    ++untold_;
    const int64_t now = env_.MonotonicNanos();
    if (told_nanos_ >= 0 && now - told_nanos_ < kQuietNanos) return;
    LogWarning(address, ": ", untold_, " connections refused: ", ToString());
    untold_ = 0;
    told_nanos_ = now;
  }

 private:
  static constexpr size_t kStaying = 16;
  static constexpr int64_t kQuietNanos = 60'000'000'000;

  Env& env_;
  const int64_t most_;
  std::deque<Descriptor> refused_;
  int64_t told_nanos_ = -1;
  int64_t untold_ = 0;
};

}  // namespace millrace
