// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <string>

#include "absl/strings/match.h"
#include "cluster/held_port.h"
#include "cluster/shm/shm_transport.h"
#include "cluster/transport_loader.h"

namespace millrace {
namespace {

bool IsLoopback(absl::string_view address) {
  return absl::StartsWith(address, "localhost:") || absl::StartsWith(address, "127.0.0.1:") ||
         absl::StartsWith(address, "[::1]:");
}

// Where a server at this loopback "host:port" is to be found through shared memory.
std::string LocalName(absl::string_view address) {
  return absl::StrCat("unix:@millrace-", geteuid(), "-", address.substr(address.rfind(':') + 1));
}

class TwoServers final : public RpcServer {
 public:
  TwoServers(std::unique_ptr<RpcServer> everywhere, std::unique_ptr<RpcServer> here)
      : everywhere_(std::move(everywhere)), here_(std::move(here)) {}
  std::string address() const override { return everywhere_->address(); }

 private:
  const std::unique_ptr<RpcServer> everywhere_, here_;
};

class TwoChannels final : public RpcChannel {
 public:
  TwoChannels(std::unique_ptr<RpcChannel> everywhere, std::unique_ptr<ShmChannel> here)
      : everywhere_(std::move(everywhere)), here_(std::move(here)) {}
  void Call(absl::string_view method, const RpcOptions& options, absl::Cord request, RpcReply reply) override {
    Way().Call(method, options, std::move(request), std::move(reply));
  }
  void Tell(absl::string_view method, absl::Cord request) override { Way().Tell(method, std::move(request)); }

 private:
  RpcChannel& Way() const { return here_->IsReachable() ? *here_ : *everywhere_; }
  const std::unique_ptr<RpcChannel> everywhere_;
  const std::unique_ptr<ShmChannel> here_;
};

// Found through shared memory alone, at a port that is its own.
class ServerOfHost final : public RpcServer {
 public:
  ServerOfHost(HeldPort port, std::unique_ptr<RpcServer> here) : port_(std::move(port)), here_(std::move(here)) {}
  std::string address() const override { return port_.address().ToString(); }

 private:
  const HeldPort port_;
  const std::unique_ptr<RpcServer> here_;
};

// Among processes of one user on one host.
class HostTransport final : public RpcTransport {
 public:
  HostTransport(Env& env, const RpcTransportOptions& options, Status why_no_other)
      : here_(env, options), why_no_other_(std::move(why_no_other)) {}

  StatusOr<std::unique_ptr<RpcServer>> Listen(const RpcServerOptions& options, RpcHandler* handler) override {
    if (absl::StartsWith(options.address, "unix:")) return here_.Listen(options, handler);
    MR_ASSIGN_OR_RETURN(HostPort at, ParseHostPort(options.address));
    if (!IsLoopback(options.address)) return NoOther(options.address);
    MR_ASSIGN_OR_RETURN(HeldPort port, HeldPort::Take(std::move(at)));
    RpcServerOptions local = options;
    local.address = LocalName(port.address().ToString());
    MR_ASSIGN_OR_RETURN(std::unique_ptr<RpcServer> here, here_.Listen(local, handler));
    return std::make_unique<ServerOfHost>(std::move(port), std::move(here));
  }

  StatusOr<std::unique_ptr<RpcChannel>> Connect(const std::string& address) override {
    if (!absl::StartsWith(address, "unix:") && !IsLoopback(address)) return NoOther(address);
    return here_.Connect(IsLoopback(address) ? LocalName(address) : address);
  }

 private:
  Status NoOther(const std::string& address) const {
    return Annotate(why_no_other_, absl::StrCat(address, " is not of the loopback interface, and "));
  }

  ShmTransport here_;
  const Status why_no_other_;
};

class LocalFirstTransport final : public RpcTransport {
 public:
  LocalFirstTransport(Env& env, const RpcTransportOptions& options, std::unique_ptr<RpcTransport> grpc)
      : everywhere_(std::move(grpc)), here_(env, options), may_be_local_(!options.credentials.has_value()) {}

  StatusOr<std::unique_ptr<RpcServer>> Listen(const RpcServerOptions& options, RpcHandler* handler) override {
    if (absl::StartsWith(options.address, "unix:")) return here_.Listen(options, handler);
    MR_ASSIGN_OR_RETURN(std::unique_ptr<RpcServer> everywhere, everywhere_->Listen(options, handler));
    if (!may_be_local_ || !IsLoopback(options.address)) return everywhere;
    RpcServerOptions local = options;
    local.address = LocalName(everywhere->address());
    MR_ASSIGN_OR_RETURN(std::unique_ptr<RpcServer> here, here_.Listen(local, handler));
    return std::make_unique<TwoServers>(std::move(everywhere), std::move(here));
  }

  StatusOr<std::unique_ptr<RpcChannel>> Connect(const std::string& address) override {
    if (absl::StartsWith(address, "unix:")) return here_.Connect(address);
    MR_ASSIGN_OR_RETURN(std::unique_ptr<RpcChannel> everywhere, everywhere_->Connect(address));
    if (!may_be_local_ || !IsLoopback(address)) return everywhere;
    MR_ASSIGN_OR_RETURN(std::unique_ptr<ShmChannel> here, here_.ConnectShm(LocalName(address)));
    return std::make_unique<TwoChannels>(std::move(everywhere), std::move(here));
  }

 private:
  const std::unique_ptr<RpcTransport> everywhere_;
  ShmTransport here_;
  const bool may_be_local_;
};

}  // namespace

StatusOr<std::unique_ptr<RpcTransport>> NewRpcTransport(Env& env, const RpcTransportOptions& options) {
  StatusOr<std::unique_ptr<RpcTransport>> grpc = NewGrpcTransport(env, options);
  if (absl::IsUnimplemented(grpc.status()) && !options.credentials)
    return NewHostTransport(env, options, grpc.status());
  MR_RETURN_IF_ERROR(grpc.status());
  return std::make_unique<LocalFirstTransport>(env, options, *std::move(grpc));
}

std::unique_ptr<RpcTransport> NewHostTransport(Env& env, const RpcTransportOptions& options,
                                               const Status& why_no_other) {
  return std::make_unique<HostTransport>(env, options, why_no_other);
}

}  // namespace millrace
