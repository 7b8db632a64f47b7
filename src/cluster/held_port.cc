// SPDX-License-Identifier: Apache-2.0
#include "cluster/held_port.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace millrace {

StatusOr<HeldPort> HeldPort::Take(HostPort address) {
  const bool is_v6 = address.host == "[::1]";
  if (!is_v6 && address.host != "localhost" && address.host != "127.0.0.1") {
    return InvalidArgument("address '", address.ToString(), "' is not of the loopback interface");
  }
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  v4.sin_port = htons(static_cast<uint16_t>(address.port));
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_addr = in6addr_loopback;
  v6.sin6_port = v4.sin_port;
  sockaddr* const name = is_v6 ? reinterpret_cast<sockaddr*>(&v6) : reinterpret_cast<sockaddr*>(&v4);
  socklen_t size = is_v6 ? sizeof(v6) : sizeof(v4);

  HeldPort held(socket(is_v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), std::move(address));
  if (held.socket_ < 0 || bind(held.socket_, name, size) != 0 || getsockname(held.socket_, name, &size) != 0) {
    return Unavailable("cannot take ", held.address_.ToString(), ": ", std::strerror(errno));
  }
  held.address_.port = ntohs(is_v6 ? v6.sin6_port : v4.sin_port);
  return held;
}

HeldPort::HeldPort(HeldPort&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)), address_(std::move(other.address_)) {}

HeldPort::~HeldPort() {
  if (socket_ >= 0) close(socket_);
}

}  // namespace millrace
