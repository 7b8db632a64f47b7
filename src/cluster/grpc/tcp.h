// SPDX-License-Identifier: Apache-2.0
// A plain connection, for looking at what a server does with it.
#pragma once

#include <memory>
#include <string>

#include "absl/time/time.h"

namespace millrace::grpc_transport {

class TcpConnection {
 public:
  // Null when there is none within `patience`, which is also that of each Receive.
  static std::unique_ptr<TcpConnection> Open(const std::string& host, int port, absl::Duration patience);
  ~TcpConnection();
  TcpConnection(const TcpConnection&) = delete;
  TcpConnection& operator=(const TcpConnection&) = delete;

  // Whether all of it has gone.
  bool Send(const std::string& bytes);
  enum class Got { kBytes, kEnd, kNothing };
  Got Receive(std::string* bytes);

 private:
  TcpConnection(int socket, int patience_millis) : socket_(socket), patience_millis_(patience_millis) {}
  bool AwaitEvents(short events) const;

  const int socket_;
  const int patience_millis_;
};

}  // namespace millrace::grpc_transport
