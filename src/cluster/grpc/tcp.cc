// SPDX-License-Identifier: Apache-2.0
#include "cluster/grpc/tcp.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "cluster/grpc/arguments.h"

namespace millrace::grpc_transport {

std::unique_ptr<TcpConnection> TcpConnection::Open(const std::string& host, int port, absl::Duration patience) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) return nullptr;
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> all(found, freeaddrinfo);
  for (const addrinfo* a = found; a != nullptr; a = a->ai_next) {
    const int made = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (made < 0) continue;
    auto tcp = std::unique_ptr<TcpConnection>(new TcpConnection(made, Millis(patience)));
    if (connect(made, a->ai_addr, a->ai_addrlen) != 0 && errno != EINPROGRESS) continue;
    int error = 0;
    socklen_t size = sizeof(error);
    if (tcp->AwaitEvents(POLLOUT) && getsockopt(made, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0) {
      return tcp;
    }
  }
  return nullptr;
}

TcpConnection::~TcpConnection() { close(socket_); }

bool TcpConnection::AwaitEvents(short events) const {
  pollfd waited{socket_, events, 0};
  int ready = 0;
  do {
    ready = poll(&waited, 1, patience_millis_);
  } while (ready < 0 && errno == EINTR);
  return ready > 0;
}

bool TcpConnection::Send(const std::string& bytes) {
  for (size_t sent = 0; sent < bytes.size();) {
    const ssize_t n = send(socket_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (n > 0) {
      sent += static_cast<size_t>(n);
    } else if (errno == EAGAIN) {
      if (!AwaitEvents(POLLOUT)) return false;
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

TcpConnection::Got TcpConnection::Receive(std::string* bytes) {
  if (!AwaitEvents(POLLIN)) return Got::kNothing;
  bytes->resize(16384);
  const ssize_t n = recv(socket_, bytes->data(), bytes->size(), 0);
  bytes->resize(n > 0 ? static_cast<size_t>(n) : 0);
  return n > 0 ? Got::kBytes : Got::kEnd;
}

}  // namespace millrace::grpc_transport
