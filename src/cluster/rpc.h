// SPDX-License-Identifier: Apache-2.0
// Calls between processes as bytes: what a transport (gRPC, a simulated network) does, and all that it knows.
//
// A payload is an absl::Cord, so that the memory of tensors goes into a message without a copy: the Cord owns what it
// refers to. A transport neither reads nor changes payloads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/status.h"
#include "kernel/cancellation.h"

namespace millrace {

// Runs exactly once, on any thread, never under a lock of the transport.
using RpcReply = absl::AnyInvocable<void(StatusOr<absl::Cord>) &&>;

struct RpcOptions {
  absl::Duration timeout = absl::InfiniteDuration();  // then the reply is DeadlineExceeded
  CancellationManager* cancellation = nullptr;        // may be null; lives until the reply, which is Cancelled then
};

// A way to one address. May be called concurrently; no call waits. Connects when it must, and again after a failure.
// Destruction gives up the calls under way, and returns when all have been replied to.
class RpcChannel {
 public:
  virtual ~RpcChannel() = default;
  // `method` is a name like "RunStep". An error of the transport, or of the handler, is the reply: Unavailable when
  // nobody could be reached or the way broke (the call may have been obeyed), Unimplemented for an unknown method,
  // ResourceExhausted for what is larger than the server takes.
  virtual void Call(absl::string_view method, const RpcOptions& options, absl::Cord request, RpcReply reply) = 0;
  // A call that nobody waits for: it may be lost without a word.
  virtual void Tell(absl::string_view method, absl::Cord request) {
    Call(method, {.timeout = kTellTimeout}, std::move(request), [](const StatusOr<absl::Cord>&) {});
  }

 protected:
  static constexpr absl::Duration kTellTimeout = absl::Seconds(30);
};

// Of one call on the side that serves.
struct RpcContext {
  std::string peer;                                   // who calls, for logs and errors
  absl::Duration timeout = absl::InfiniteDuration();  // that the caller has left
  CancellationManager* cancellation = nullptr;  // never null; cancelled when the caller gives up; lives until the reply
  std::vector<std::string> peer_names;  // in the certificate that the caller has shown: alternative names, common name
};

// What a server does with calls. May be called concurrently, on threads of the transport: must not wait.
class RpcHandler {
 public:
  virtual ~RpcHandler() = default;
  virtual void Handle(absl::string_view method, const RpcContext& context, absl::Cord request, RpcReply reply) = 0;
};

// Listens from its creation on. Destruction refuses new calls, cancels those under way, and returns when all have been
// replied to.
class RpcServer {
 public:
  virtual ~RpcServer() = default;
  virtual std::string address() const = 0;  // "host:port" with the port that was got
};

struct RpcServerOptions {
  std::string address;  // "host:port"; port 0: any that is free
  int64_t max_message_bytes = int64_t{4} << 30;
  int64_t max_connections = 0;       // at once; who comes then gets ResourceExhausted; 0: no limit
  int64_t max_connection_bytes = 0;  // that all connections hold for messages, those being read included; 0: no limit
  absl::Duration most_idle = absl::Minutes(10);  // a connection without calls for so long is closed
};

// Creates servers and channels. Lives as long as they do.
class RpcTransport {
 public:
  virtual ~RpcTransport() = default;
  // `handler` outlives the server.
  virtual StatusOr<std::unique_ptr<RpcServer>> Listen(const RpcServerOptions& options, RpcHandler* handler) = 0;
  virtual StatusOr<std::unique_ptr<RpcChannel>> Connect(const std::string& address) = 0;
};

}  // namespace millrace
