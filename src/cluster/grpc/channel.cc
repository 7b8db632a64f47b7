// SPDX-License-Identifier: Apache-2.0
#include "cluster/grpc/channel.h"

#include <grpc/support/time.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/channel_arguments.h>

#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "base/exceptions.h"
#include "base/hash_map.h"
#include "cluster/grpc/arguments.h"
#include "cluster/grpc/bytes.h"
#include "cluster/grpc/certificates.h"
#include "cluster/grpc/protocol.h"

namespace millrace::grpc_transport {
namespace {

constexpr int kFirstBackoffMillis = 100, kMostBackoffMillis = 2000;
constexpr int kConnectMillis = 5000;

constexpr absl::Duration kAskPatience = absl::Seconds(2);
constexpr int64_t kVerdictNanos = 2'000'000'000;  // for so long it holds

// Why the server cannot be reached, where that is no matter of time. Outlives the channel.
class Diagnosis {
 public:
  // What is known, or nothing: then the caller may find it out, and says so with Found.
  std::optional<Status> Known(int64_t now) {
    absl::MutexLock lock(&mu_);
    if (!is_being_found_ && (found_nanos_ == 0 || now - found_nanos_ > kVerdictNanos)) {
      is_being_found_ = true;
      return std::nullopt;
    }
    return why_;
  }
  void Found(Status why, int64_t now) {
    absl::MutexLock lock(&mu_);
    why_ = std::move(why);
    found_nanos_ = now;
    is_being_found_ = false;
  }

 private:
  absl::Mutex mu_;
  Status why_ ABSL_GUARDED_BY(mu_);
  int64_t found_nanos_ ABSL_GUARDED_BY(mu_) = 0;
  bool is_being_found_ ABSL_GUARDED_BY(mu_) = false;
};

class ClientCall;

// What calls share. They keep it alive, so that a reply may destroy the channel.
struct State {
  State(Env& e, Poller& p, const std::string& a, const RpcTransportOptions& options, Credentials& c,
        const grpc::ChannelArguments& with)
      : env(e),
        poller(p),
        address(a),
        secret(options.credentials ? options.credentials->secret : ""),
        server_name(options.server_name),
        credentials(c),
        arguments(with) {}
  // For a call that begins: a new connection where there is none that shows what it should.
  std::shared_ptr<grpc::Channel> Connection() {
    std::shared_ptr<grpc::Channel> old;  // ends without the lock; calls under way keep theirs
    std::shared_ptr<grpc::ChannelCredentials> now = credentials.OfChannel();  // may read files
    absl::MutexLock lock(&mu);
    if (now != shown) {
      old = std::exchange(connection, grpc::CreateCustomChannel(address, now, arguments));
      shown = std::move(now);
    }
    return connection;
  }
  void Add(std::shared_ptr<ClientCall> call) {
    absl::MutexLock lock(&mu);
    calls.insert(std::move(call));
  }
  void Remove(const std::shared_ptr<ClientCall>& call) {
    absl::MutexLock lock(&mu);
    calls.erase(call);
  }

  Env& env;
  Poller& poller;
  const std::string address;
  const std::string secret;
  const std::string server_name;
  Credentials& credentials;
  Diagnosis diagnosis;
  const grpc::ChannelArguments arguments;
  absl::Mutex mu;
  std::shared_ptr<grpc::ChannelCredentials> shown ABSL_GUARDED_BY(mu);  // by the connection
  std::shared_ptr<grpc::Channel> connection ABSL_GUARDED_BY(mu);
  HashSet<std::shared_ptr<ClientCall>> calls ABSL_GUARDED_BY(mu);  // without a reply, or while it runs
};

// The replies that run on this thread: they may destroy their channels.
struct Running {
  const State* state;
  const Running* outer;
};
thread_local const Running* running_here = nullptr;

size_t RunningHere(const State* state) {
  size_t count = 0;
  for (const Running* r = running_here; r != nullptr; r = r->outer) count += r->state == state;
  return count;
}

class ClientCall final : public Completion, public std::enable_shared_from_this<ClientCall> {
 public:
  ClientCall(std::shared_ptr<State> state, absl::string_view method, RpcReply reply)
      : state_(std::move(state)), path_(absl::StrCat(kMethodPrefix, method)), reply_(std::move(reply)) {}

  void Start(const RpcOptions& options, const absl::Cord& request) {
    state_->Add(shared_from_this());
    if (static_cast<int64_t>(request.size()) > kMaxMessageBytes) {
      return Refuse(
          ResourceExhausted("a request of ", request.size(), " bytes; gRPC takes at most ", kMaxMessageBytes));
    }
    has_patience_ = options.timeout > 2 * kAskPatience;
    if (options.timeout != absl::InfiniteDuration()) {
      context_.set_deadline(gpr_time_add(
          gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_nanos(absl::ToInt64Nanoseconds(options.timeout), GPR_TIMESPAN)));
    }
    if (!state_->secret.empty()) context_.AddMetadata(kSecretKey, state_->secret);
    reader_ = grpc::GenericStub(state_->Connection())
                  .PrepareUnaryCall(&context_, path_, ToByteBuffer(request), state_->poller.queue());
    if (options.cancellation != nullptr) {
      cancellation_ = options.cancellation;
      token_ = cancellation_->Register([self = shared_from_this()] { self->Cancel(); });
      if (token_ == CancellationManager::kInvalid) return Refuse(Cancelled("the call was cancelled before it began"));
    }
    reader_->StartCall();
    reader_->Finish(&response_, &status_, Tag());
  }

  void Cancel() {
    given_up_.store(true, std::memory_order_relaxed);
    context_.TryCancel();
  }

 private:
  void Done(bool /*ok: always*/) override {
    StatusOr<absl::Cord> result = Result();
    const bool is_unreachable = status_.error_code() == grpc::StatusCode::UNAVAILABLE;
    if (!is_unreachable || given_up_.load(std::memory_order_relaxed) || !has_patience_) {
      return Reply(std::move(result));
    }
    if (const std::optional<Status> known = state_->diagnosis.Known(state_->env.MonotonicNanos())) {
      return Reply(known->ok() ? std::move(result) : Where(known->code(), known->message()));
    }
    const Status started = state_->env.StartThread([self = shared_from_this(), result] {
      const Status why = self->FindOut();
      self->Reply(why.ok() ? result : self->Where(why.code(), why.message()));
    });
    if (started.ok()) return;
    state_->diagnosis.Found(absl::OkStatus(), state_->env.MonotonicNanos());
    Reply(std::move(result));
  }

  Status FindOut() {
    const std::shared_ptr<const RpcCredentials> ours = state_->credentials.Now();
    Status why =
        WithoutExceptions([&] { return WhyRefused(state_->address, ours.get(), state_->server_name, kAskPatience); });
    state_->diagnosis.Found(why, state_->env.MonotonicNanos());
    return why;
  }

  void Refuse(Status status) {
    state_->env.Schedule([self = shared_from_this(), status = std::move(status)] { self->Reply(status); });
  }

  void Reply(StatusOr<absl::Cord> result) {
    const std::shared_ptr<ClientCall> self = shared_from_this();
    if (cancellation_ != nullptr && token_ != CancellationManager::kInvalid && !cancellation_->IsCancelled()) {
      cancellation_->Deregister(token_);
    }
    const Running running{state_.get(), running_here};
    running_here = &running;
    std::move(reply_)(std::move(result));
    reply_ = nullptr;
    running_here = running.outer;
    state_->Remove(self);
  }

  StatusOr<absl::Cord> Result() {
    if (!status_.ok()) return TransportError();
    MR_ASSIGN_OR_RETURN(absl::Cord response, ToCord(&response_));
    const auto& trailing = context_.GetServerTrailingMetadata();
    const auto code = trailing.find(kErrorCodeKey);
    if (code == trailing.end()) return response;
    int number = 0;
    if (!absl::SimpleAtoi(absl::string_view(code->second.data(), code->second.size()), &number) || number <= 0 ||
        number > static_cast<int>(absl::StatusCode::kUnauthenticated)) {
      return Where(absl::StatusCode::kUnknown, "the peer gave an error of no known code");
    }
    return Status(static_cast<absl::StatusCode>(number), std::string(response));
  }

  Status TransportError() const {
    auto code = static_cast<absl::StatusCode>(status_.error_code());
    switch (code) {
      case absl::StatusCode::kCancelled:
        if (given_up_.load(std::memory_order_relaxed)) break;
        [[fallthrough]];
      case absl::StatusCode::kUnknown:  // streams that were reset, and the like
      case absl::StatusCode::kInternal: code = absl::StatusCode::kUnavailable; break;
      case absl::StatusCode::kDeadlineExceeded:
      case absl::StatusCode::kResourceExhausted:
      case absl::StatusCode::kUnimplemented:
      case absl::StatusCode::kUnavailable:
      case absl::StatusCode::kInvalidArgument:
      case absl::StatusCode::kPermissionDenied:
      case absl::StatusCode::kUnauthenticated: break;
      default: code = absl::StatusCode::kUnknown;
    }
    // What HTTP/2 calls ENHANCE_YOUR_CALM.
    if (absl::EndsWith(status_.error_message(), "RST_STREAM with error code 11")) {
      return Where(code, "the server's connections hold as much as they may (MILLRACE_MAX_CONNECTION_BYTES)");
    }
    return Where(code, status_.error_message());
  }

  Status Where(absl::StatusCode code, absl::string_view what) const {
    return Status(code, absl::StrCat(path_.substr(sizeof(kMethodPrefix) - 1), " at ", state_->address, ": ", what));
  }

  const std::shared_ptr<State> state_;
  const std::string path_;
  RpcReply reply_;
  CancellationManager* cancellation_ = nullptr;
  CancellationManager::Token token_ = CancellationManager::kInvalid;
  std::atomic<bool> given_up_{false};
  bool has_patience_ = false;  // for finding out what is wrong
  grpc::ClientContext context_;
  grpc::ByteBuffer response_;
  grpc::Status status_;
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader_;
};

class GrpcChannel final : public RpcChannel {
 public:
  explicit GrpcChannel(std::shared_ptr<State> state) : state_(std::move(state)) {}

  ~GrpcChannel() override {
    struct Wanted {
      State& state;
      size_t remaining;
      bool Holds() const ABSL_NO_THREAD_SAFETY_ANALYSIS { return state.calls.size() <= remaining; }
    } wanted{*state_, RunningHere(state_.get())};
    HashSet<std::shared_ptr<ClientCall>> calls;
    {
      absl::MutexLock lock(&state_->mu);
      calls = state_->calls;
    }
    for (const auto& call : calls) call->Cancel();
    calls.clear();
    absl::MutexLock lock(&state_->mu);
    state_->poller.Await(state_->mu, absl::Condition(&wanted, &Wanted::Holds));
  }

  void Call(absl::string_view method, const RpcOptions& options, absl::Cord request, RpcReply reply) override {
    std::make_shared<ClientCall>(state_, method, std::move(reply))->Start(options, request);
  }

 private:
  const std::shared_ptr<State> state_;
};

}  // namespace

std::unique_ptr<RpcChannel> NewChannel(Env& env, Poller& poller, const std::string& address,
                                       const RpcTransportOptions& options, Credentials& credentials) {
  grpc::ChannelArguments arguments;
  SetSharedArguments(options, [&](const char* name, int value) { arguments.SetInt(name, value); });
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kFirstBackoffMillis);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kMostBackoffMillis);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kConnectMillis);  // how long one attempt may last
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);              // a connection of its own
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  if (options.credentials.has_value() && !options.server_name.empty()) {
    arguments.SetSslTargetNameOverride(options.server_name);
  }
  return std::make_unique<GrpcChannel>(std::make_shared<State>(env, poller, address, options, credentials, arguments));
}

}  // namespace millrace::grpc_transport
