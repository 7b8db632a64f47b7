// SPDX-License-Identifier: Apache-2.0
// A port of the loopback interface that nobody listens at and nobody else can have.
#pragma once

#include <utility>

#include "base/status.h"
#include "cluster/cluster_spec.h"

namespace millrace {

class HeldPort {
 public:
  // Of localhost, 127.0.0.1 or [::1]; port 0: a free one. Unavailable when somebody has it.
  static StatusOr<HeldPort> Take(HostPort address);
  HeldPort(HeldPort&& other) noexcept;
  HeldPort& operator=(HeldPort&&) = delete;
  ~HeldPort();

  const HostPort& address() const { return address_; }  // with the port that was got

 private:
  HeldPort(int socket, HostPort address) : socket_(socket), address_(std::move(address)) {}

  int socket_;
  HostPort address_;
};

}  // namespace millrace
