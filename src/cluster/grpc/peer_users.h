// SPDX-License-Identifier: Apache-2.0
// Whose process stands behind a connection over the loopback interface, which by itself authenticates nobody.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "absl/synchronization/mutex.h"
#include "base/env.h"

namespace millrace::grpc_transport {

// The connections to one port of this host, as the kernel lists them with their users (proc(5), /proc/net/tcp). The
// list is good for a second, and read anew for a peer that is not in it. Thread-safe.
class PeerUsers {
 public:
  // Files are read from `env`, which outlives this, below `root`, a folder that stands for "/" in tests.
  PeerUsers(Env& env, int port, std::string root = "") : env_(env), port_(port), root_(std::move(root)) {}

  // OK if `peer`, in gRPC's notation ("ipv4:127.0.0.1:5000", "ipv6:[::1]:5000", its brackets as %5B and %5D), is a
  // process of this process's user or of root; else PermissionDenied, which says whose it is and what allows it. What
  // is no open connection any more is nobody's: the kernel ascribes those to root.
  Status CheckOwn(const std::string& peer);

 private:
  using Address = std::pair<std::array<uint8_t, 16>, int>;  // an IPv6 address, or one of IPv4 as IPv6 maps it; port

  static bool Parse(std::string peer, Address* address);
  Status Read() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ReadTable(const std::string& text) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  Env& env_;
  const int port_;
  const std::string root_;
  absl::Mutex mu_;
  int64_t read_at_ ABSL_GUARDED_BY(mu_) = -1;  // on the monotonic clock; -1: never
  std::map<Address, uid_t> users_ ABSL_GUARDED_BY(mu_);
};

}  // namespace millrace::grpc_transport
