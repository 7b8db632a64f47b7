// SPDX-License-Identifier: Apache-2.0
#include "cluster/grpc/server.h"

#include <grpc/support/time.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "base/exceptions.h"
#include "cluster/access.h"
#include "cluster/grpc/arguments.h"
#include "cluster/grpc/bytes.h"
#include "cluster/grpc/certificates.h"
#include "cluster/grpc/listener.h"
#include "cluster/grpc/log.h"
#include "cluster/grpc/peer_users.h"
#include "cluster/grpc/poller.h"
#include "cluster/grpc/protocol.h"

namespace millrace::grpc_transport {
namespace {

constexpr int kAwaited = 8;  // calls that gRPC can hand over before it must be asked again

struct HostPort {
  std::string host;
  int port = 0;
};

StatusOr<HostPort> Split(const std::string& address) {
  const size_t colon = address.rfind(':');
  int port = 0;
  if (colon == std::string::npos || colon == 0 || !absl::SimpleAtoi(address.substr(colon + 1), &port) || port < 0 ||
      port > 65535) {
    return InvalidArgument("address '", address, "': want host:port, with a port from 0 to 65535");
  }
  std::string host = address.substr(0, colon);
  if (absl::StrContains(host, ':') && (host.front() != '[' || host.back() != ']')) {
    return InvalidArgument("address '", address, "': write an IPv6 address as [address]:port");
  }
  return HostPort{std::move(host), port};
}

bool IsLoopback(absl::string_view host) {
  if (host == "localhost" || host == "[::1]") return true;
  // 127.0.0.0/8, in the usual notation: "127.evil.example" is a name.
  return absl::StartsWith(host, "127.") && host.find_first_not_of("0123456789.") == absl::string_view::npos;
}

Status CheckReach(const std::string& address, const std::string& host, const RpcTransportOptions& options) {
  if (IsLoopback(host) || options.credentials.has_value() || options.allow_insecure_remote) return absl::OkStatus();
  return FailedPrecondition(
      "refusing to listen at ", address,
      " without credentials: whoever reaches that address could run graphs here. Listen at "
      "127.0.0.1, give certificates (`millrace certs` makes them, MILLRACE_TLS_CA, _CERT and _KEY say where they are; "
      "RpcTransportOptions::credentials), or set MILLRACE_ALLOW_INSECURE_REMOTE=1 (allow_insecure_remote) where the "
      "network lets nobody else in");
}

// A certificate that has roles must have that of a server.
Status CheckRole(const RpcCredentials& credentials, const std::string& origin) {
  const std::vector<std::string> roles = RolesIn(credentials.certificate, kRoleScheme);
  if (roles.empty() || std::find(roles.begin(), roles.end(), "task") != roles.end()) return absl::OkStatus();
  return InvalidArgument(
      "the certificate", origin.empty() ? "" : " (", origin, origin.empty() ? "" : ")", " has the role ",
      absl::StrJoin(roles, ", "), "; a server's has the role task (`millrace certs` makes task.pem)");
}

class GrpcServer;

// One call, from the moment that gRPC is asked for one. It has two roads to its end, on which it is held: what was
// asked and replied, and the news that it is over, which may come early when the caller gives up.
class ServerCall {
 public:
  explicit ServerCall(GrpcServer& server) : server_(server), stream_(&context_) {}
  void Await();
  bool ShowsSecret(const std::string& secret) const;
  std::string peer() const { return context_.peer(); }

 private:
  struct Step final : public Completion {
    using Fn = void (ServerCall::*)(bool ok);
    Step(ServerCall* c, Fn f) : call(c), fn(f) {}
    void Done(bool ok) override { (call->*fn)(ok); }
    ServerCall* const call;
    const Fn fn;
  };
  // Replies with an error if nobody else does.
  class Answer {
   public:
    explicit Answer(ServerCall* call) : call_(call) {}
    Answer(Answer&& other) noexcept : call_(std::exchange(other.call_, nullptr)) {}
    ~Answer() {
      if (call_ != nullptr) (*this)(Internal("the handler dropped the call without a reply"));
    }
    void operator()(StatusOr<absl::Cord> result) { std::exchange(call_, nullptr)->Reply(std::move(result)); }

   private:
    ServerCall* call_;
  };

  void Arrived(bool ok);
  void Read(bool ok);
  void Over(bool ok);
  void Replied(bool ok) {
    static_cast<void>(ok);  // false: nobody listens any more
    Release();
  }
  void Reply(StatusOr<absl::Cord> result);
  void Refuse(grpc::StatusCode code, const std::string& why);
  void Refuse(const Status& why) { Refuse(static_cast<grpc::StatusCode>(why.code()), std::string(why.message())); }
  RpcContext DescribeCaller();
  void Release();

  GrpcServer& server_;
  std::atomic<int> roads_{2};
  CancellationManager cancellation_;
  grpc::ByteBuffer buffer_;
  grpc::GenericServerContext context_;
  grpc::GenericServerAsyncReaderWriter stream_;
  Step arrived_{this, &ServerCall::Arrived};
  Step read_{this, &ServerCall::Read};
  Step over_{this, &ServerCall::Over};
  Step replied_{this, &ServerCall::Replied};
};

class GrpcServer final : public RpcServer {
 public:
  GrpcServer(Env& env, RpcHandler* handler, int64_t max_message_bytes, const std::string& secret)
      : env_(env), handler_(handler), max_message_bytes_(max_message_bytes), secret_(secret) {}

  Status Listen(const RpcServerOptions& server_options, const HostPort& at, const RpcTransportOptions& options,
                Credentials& credentials, const LogEar& ear) {
    const std::string& address = server_options.address;
    StatusOr<std::unique_ptr<Listener>> listener = Listener::Open(
        env_, at.host, at.port, {.most = server_options.max_connections, .patience = options.keepalive_timeout});
    if (!listener.ok()) return Unavailable("cannot listen at ", address, ": ", listener.status().message());
    grpc::ServerBuilder builder;
    SetSharedArguments(options, [&](const char* name, int value) { builder.AddChannelArgument(name, value); });
    // A peer that pings more often than ours do is sent away.
    builder.AddChannelArgument(
        GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, std::max(1, Millis(options.keepalive_interval) / 4));
    builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, Millis(server_options.most_idle));
    if (server_options.max_connection_bytes > 0) {
      grpc::ResourceQuota quota("millrace");
      builder.SetResourceQuota(quota.Resize(static_cast<size_t>(server_options.max_connection_bytes)));
    }
    builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, 10000);
    builder.SetMaxReceiveMessageSize(
        max_message_bytes_ > std::numeric_limits<int>::max() ? -1 : static_cast<int>(max_message_bytes_));
    builder.SetMaxSendMessageSize(-1);
    for (grpc_compression_algorithm a : {GRPC_COMPRESS_DEFLATE, GRPC_COMPRESS_GZIP}) {
      builder.SetCompressionAlgorithmSupportStatus(a, false);
    }
    credentials_ = credentials.OfServer();
    auto taker = builder.experimental().AddExternalConnectionAcceptor(
        grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD, credentials_);
    builder.RegisterAsyncGenericService(&service_);
    std::unique_ptr<grpc::ServerCompletionQueue> queue = builder.AddCompletionQueue();
    queue_ = queue.get();
    poller_ = std::make_unique<Poller>(env_, std::move(queue));
    server_ = builder.BuildAndStart();
    if (server_ == nullptr) return Unavailable("cannot serve at ", address, ": ", ear.Why("gRPC does not say why"));
    const int port = (*listener)->port();
    address_ = absl::StrCat(at.host, ":", port);
    if (IsLoopback(at.host) && !options.credentials && !options.allow_other_users) peer_users_.emplace(env_, port);
    for (int i = 0; i < kAwaited; ++i) AwaitCall();
    MR_RETURN_IF_ERROR(poller_->Start(options.completion_threads));
    listener_ = *std::move(listener);
    return listener_->Start(std::move(taker));
  }

  ~GrpcServer() override {
    listener_.reset();
    if (server_ != nullptr) {
      server_->Shutdown(gpr_now(GPR_CLOCK_MONOTONIC));  // breaks all connections: calls get to know by Over()
      absl::MutexLock lock(&mu_);
      closing_ = true;
      env_.Await(mu_, absl::Condition(+[](int64_t* calls) { return *calls == 0; }, &calls_));
    }
    poller_.reset();
  }

  std::string address() const override { return address_; }

  // Asks gRPC for one more call, unless the server ends.
  void AwaitCall() {
    {
      absl::MutexLock lock(&mu_);
      if (closing_) return;
      ++calls_;
    }
    (new ServerCall(*this))->Await();
  }
  void CallEnded() {
    absl::MutexLock lock(&mu_);
    --calls_;
  }

  RpcHandler& handler() { return *handler_; }
  grpc::AsyncGenericService& service() { return service_; }
  grpc::ServerCompletionQueue* queue() { return queue_; }
  int64_t max_message_bytes() const { return max_message_bytes_; }
  // Whether the caller may be heard at all; before anything that it says is read.
  Status Admit(const ServerCall& call) {
    if (!call.ShowsSecret(secret_))
      return absl::UnauthenticatedError("this server wants another secret (MILLRACE_TLS_SECRET)");
    return peer_users_ ? peer_users_->CheckOwn(call.peer()) : absl::OkStatus();
  }

 private:
  Env& env_;
  RpcHandler* const handler_;
  const int64_t max_message_bytes_;
  const std::string secret_;             // that callers show; "": none
  std::optional<PeerUsers> peer_users_;  // where nothing else tells who calls
  std::string address_;
  std::shared_ptr<grpc::ServerCredentials> credentials_;
  grpc::AsyncGenericService service_;
  grpc::ServerCompletionQueue* queue_ = nullptr;  // the poller's
  std::unique_ptr<Poller> poller_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<Listener> listener_;
  absl::Mutex mu_;
  bool closing_ ABSL_GUARDED_BY(mu_) = false;
  int64_t calls_ ABSL_GUARDED_BY(mu_) = 0;  // that exist, those that gRPC has not yet filled included
};

void ServerCall::Await() {
  context_.AsyncNotifyWhenDone(over_.Tag());
  server_.service().RequestCall(&context_, &stream_, server_.queue(), server_.queue(), arrived_.Tag());
}

void ServerCall::Arrived(bool ok) {
  if (!ok) {  // the server ends; then gRPC does not say that the call is over
    Release();
    return Release();
  }
  server_.AwaitCall();
  const Status admitted = server_.Admit(*this);
  if (!admitted.ok()) return Refuse(admitted);
  stream_.Read(&buffer_, read_.Tag());
}

void ServerCall::Read(bool ok) {
  if (!ok) return Refuse(grpc::StatusCode::INVALID_ARGUMENT, "a call without a request");
  absl::string_view method = context_.method();
  if (!absl::ConsumePrefix(&method, kMethodPrefix)) {
    return Refuse(grpc::StatusCode::UNIMPLEMENTED, "a method of another service than /millrace");
  }
  StatusOr<absl::Cord> request = ToCord(&buffer_);
  if (!request.ok()) return Refuse(request.status());
  if (static_cast<int64_t>(request->size()) > server_.max_message_bytes()) {
    return Refuse(
        grpc::StatusCode::RESOURCE_EXHAUSTED,
        absl::StrCat("a request of ", request->size(), " bytes; this server takes ", server_.max_message_bytes()));
  }
  server_.handler().Handle(method, DescribeCaller(), *std::move(request), Answer(this));
}

bool ServerCall::ShowsSecret(const std::string& secret) const {
  if (secret.empty()) return true;
  const auto shown = context_.client_metadata().find(kSecretKey);
  return shown != context_.client_metadata().end() && IsSecret({shown->second.data(), shown->second.size()}, secret);
}

RpcContext ServerCall::DescribeCaller() {
  RpcContext described;
  const auto auth = context_.auth_context();
  for (const char* property : {GRPC_X509_SAN_PROPERTY_NAME, GRPC_X509_CN_PROPERTY_NAME}) {
    if (auth == nullptr || !auth->IsPeerAuthenticated()) break;
    for (const grpc::string_ref& name : auth->FindPropertyValues(property)) {
      described.peer_names.emplace_back(name.data(), name.size());
    }
  }
  described.peer = context_.peer();
  if (!described.peer_names.empty()) {
    described.peer = absl::StrCat(described.peer_names.front(), " at ", described.peer);
  }
  const gpr_timespec deadline = context_.raw_deadline();
  if (gpr_time_cmp(deadline, gpr_inf_future(deadline.clock_type)) != 0) {
    const gpr_timespec left = gpr_time_sub(deadline, gpr_now(deadline.clock_type));
    described.timeout = absl::Seconds(left.tv_sec) + absl::Nanoseconds(left.tv_nsec);
  }
  described.cancellation = &cancellation_;
  return described;
}

void ServerCall::Reply(StatusOr<absl::Cord> result) {
  absl::Cord message;
  if (!result.ok()) {
    context_.AddTrailingMetadata(kErrorCodeKey, absl::StrCat(static_cast<int>(result.status().code())));
    message = absl::Cord(result.status().message());
  } else {
    message = *std::move(result);
  }
  if (static_cast<int64_t>(message.size()) > kMaxMessageBytes) {
    return Refuse(grpc::StatusCode::RESOURCE_EXHAUSTED,
                  absl::StrCat("a reply of ", message.size(), " bytes; gRPC takes at most ", kMaxMessageBytes));
  }
  stream_.WriteAndFinish(ToByteBuffer(message), grpc::WriteOptions(), grpc::Status::OK, replied_.Tag());
}

void ServerCall::Refuse(grpc::StatusCode code, const std::string& why) {
  stream_.Finish(grpc::Status(code, why), replied_.Tag());
}

void ServerCall::Over(bool) {
  if (context_.IsCancelled())
    cancellation_.Cancel(WithoutExceptions([] { return Cancelled("the caller gave the call up"); }));
  Release();
}

void ServerCall::Release() {
  if (roads_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  GrpcServer& server = server_;
  delete this;
  server.CallEnded();
}

}  // namespace

StatusOr<std::unique_ptr<RpcServer>> NewServer(
    Env& env, const RpcServerOptions& server_options, const RpcTransportOptions& options, Credentials& credentials,
    RpcHandler* handler) {
  MR_ASSIGN_OR_RETURN(const HostPort at, Split(server_options.address));
  MR_RETURN_IF_ERROR(CheckReach(server_options.address, at.host, options));
  if (server_options.max_message_bytes <= 0) {
    return InvalidArgument("max_message_bytes is ", server_options.max_message_bytes, ", want more than 0");
  }
  if (options.credentials && options.credentials->certificate.empty()) {
    return InvalidArgument("a server at ", server_options.address, " needs a certificate and its key");
  }
  if (options.credentials && options.credentials->secret.empty()) {
    MR_RETURN_IF_ERROR(CheckRole(*options.credentials, options.origin));
  }
  const std::string secret = options.credentials ? options.credentials->secret : "";
  const LogEar ear;  // what goes wrong is in the status
  auto server = std::make_unique<GrpcServer>(env, handler, server_options.max_message_bytes, secret);
  MR_RETURN_IF_ERROR(server->Listen(server_options, at, options, credentials, ear));
  return server;
}

}  // namespace millrace::grpc_transport
