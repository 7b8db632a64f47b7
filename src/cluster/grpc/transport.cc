// SPDX-License-Identifier: Apache-2.0
// The transport, and the function by which it leaves this library.
#include <cstdlib>

#include "absl/base/call_once.h"
#include "absl/base/internal/cycleclock.h"
#include "absl/strings/string_view.h"
#include "cluster/grpc/channel.h"
#include "cluster/grpc/credentials.h"
#include "cluster/grpc/log.h"
#include "cluster/grpc/poller.h"
#include "cluster/grpc/server.h"
#include "cluster/transport_library.h"

namespace millrace::grpc_transport {
namespace {

class GrpcTransport final : public RpcTransport {
 public:
  GrpcTransport(Env& env, const RpcTransportOptions& options, std::unique_ptr<Credentials> credentials)
      : env_(env), options_(options), credentials_(std::move(credentials)) {}

  StatusOr<std::unique_ptr<RpcServer>> Listen(const RpcServerOptions& options, RpcHandler* handler) override {
    return NewServer(env_, options, options_, *credentials_, handler);
  }

  StatusOr<std::unique_ptr<RpcChannel>> Connect(const std::string& address) override {
    absl::MutexLock lock(&mu_);
    if (poller_ == nullptr) {
      auto poller = std::make_unique<Poller>(env_, std::make_unique<grpc::CompletionQueue>());
      MR_RETURN_IF_ERROR(poller->Start(options_.completion_threads));
      poller_ = std::move(poller);
    }
    return NewChannel(env_, *poller_, address, options_, *credentials_);
  }

 private:
  Env& env_;
  const RpcTransportOptions options_;
  const std::unique_ptr<Credentials> credentials_;
  absl::Mutex mu_;
  std::unique_ptr<Poller> poller_ ABSL_GUARDED_BY(mu_);  // of all channels
};

// gRPC reads a large message into pieces of some MB, of which malloc by default gives the pages back to the system as
// soon as they are free: the next message takes them anew, one by one. Malloc keeps what is no larger than the largest
// piece that was freed before (mallopt(3), M_MMAP_THRESHOLD), up to twice as much in all: so it sees one of the most
// that counts, 32 MiB, which nobody touches. Where somebody has set these limits, nothing changes.
void KeepPagesOfMessages() {
  constexpr size_t kMost = (size_t{32} << 20) - (size_t{64} << 10);
  void* volatile piece = malloc(kMost);
  free(piece);
}

}  // namespace
}  // namespace millrace::grpc_transport

extern "C" __attribute__((visibility("default"))) const char* MR_NewGrpcTransport(
    const char* version, millrace::Env* env, const millrace::RpcTransportOptions* options,
    millrace::RpcTransport** transport, millrace::Status* status) {
  using namespace millrace;  // NOLINT: the function is outside of every namespace
  if (absl::string_view(version) != kTransportLibraryVersion) return kTransportLibraryVersion;
  // gRPC looks at errno some time after connect(), and may wait for one of Abseil's locks in between. The first in the
  // process that finds another waiting there reads the clock's rate, from a file that most machines do not have: errno
  // is ENOENT, and the connection that was being made is given up. So the rate is read before there are connections.
  absl::base_internal::CycleClock::Frequency();
  grpc_transport::TakeOverLog();
  static absl::once_flag kept;
  absl::call_once(kept, grpc_transport::KeepPagesOfMessages);
  auto credentials = grpc_transport::Credentials::Make(*env, *options);
  *status = credentials.status();
  if (status->ok()) *transport = new grpc_transport::GrpcTransport(*env, *options, *std::move(credentials));
  return kTransportLibraryVersion;
}
