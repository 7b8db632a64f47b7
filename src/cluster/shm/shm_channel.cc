// SPDX-License-Identifier: Apache-2.0
#include "base/hash_map.h"
#include "cluster/shm/address.h"
#include "cluster/shm/connection.h"
#include "cluster/shm/shm_transport.h"

namespace millrace::shm {
namespace {

struct State;

// The replies that run on this thread: they may destroy their channels.
struct Running {
  const State* state;
  const Running* outer;
};
thread_local const Running* running_here = nullptr;

int RunningHere(const State* state) {
  int count = 0;
  for (const Running* r = running_here; r != nullptr; r = r->outer) count += r->state == state ? 1 : 0;
  return count;
}

// What the channel and its calls share: a reply may destroy the channel.
struct State : std::enable_shared_from_this<State> {
  State(Loop& l, std::string a, std::string p, const Connection::Pings& k)
      : loop(l), address(std::move(a)), path(std::move(p)), pings(k) {}

  struct Call {
    std::string method;
    RpcReply reply;
    CancellationManager* cancellation = nullptr;
    CancellationManager::Token token = CancellationManager::kInvalid;
    Loop::Timer timer{};
    bool has_timer = false;
    std::shared_ptr<Connection> connection;  // that it has been sent by
  };

  void Start(absl::string_view method, const RpcOptions& options, absl::Cord request, RpcReply reply);
  void Tell(absl::string_view method, absl::Cord request);
  // The reply, unless the call has had one; `elsewhere`: on another thread than this. It comes at once otherwise.
  void End(uint64_t id, StatusOr<absl::Cord> result, bool elsewhere);
  void EndAll(const std::shared_ptr<Connection>& connection, const Status& why);
  void Stop();

  StatusOr<std::shared_ptr<Connection>> Connected() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  Status Arm(uint64_t id, const RpcOptions& options);
  void Deliver(Call call, StatusOr<absl::Cord> result);
  void Received(Frame frame);

  Loop& loop;
  const std::string address, path;
  const Connection::Pings pings;
  absl::Mutex mu;
  uint64_t last ABSL_GUARDED_BY(mu) = 0;
  HashMap<uint64_t, Call> calls ABSL_GUARDED_BY(mu);  // without a reply
  int running ABSL_GUARDED_BY(mu) = 0;                // replies
  std::shared_ptr<Connection> current ABSL_GUARDED_BY(mu);
};

StatusOr<std::shared_ptr<Connection>> State::Connected() {
  if (current != nullptr) return current;
  MR_ASSIGN_OR_RETURN(Descriptor socket, ConnectTo(path));
  auto itself = std::make_shared<std::weak_ptr<Connection>>();
  Connection::Users users;
  users.received = [weak = weak_from_this()](Frame frame) {
    if (auto self = weak.lock()) self->Received(std::move(frame));
  };
  users.closed = [weak = weak_from_this(), itself](const Status& why) {
    auto self = weak.lock();
    if (self == nullptr) return;
    std::shared_ptr<Connection> connection;
    {
      absl::MutexLock lock(&self->mu);  // not before Connected() has told who it is
      connection = itself->lock();
      if (self->current == connection) self->current = nullptr;
    }
    if (connection != nullptr) self->EndAll(connection, why);
  };
  MR_ASSIGN_OR_RETURN(current, Connection::Start(loop, std::move(socket), pings, std::move(users)));
  *itself = current;
  return current;
}

// The two other ways to an end. Not under a lock, since the manager may run others' callbacks.
Status State::Arm(uint64_t id, const RpcOptions& options) {
  if (options.timeout <= absl::ZeroDuration()) return DeadlineExceeded("the call had no time at all");
  CancellationManager::Token token = CancellationManager::kInvalid;
  if (options.cancellation != nullptr) {
    token = options.cancellation->Register([weak = weak_from_this(), id] {
      if (auto self = weak.lock()) self->End(id, Cancelled("the call was cancelled"), /*elsewhere=*/true);
    });
    if (token == CancellationManager::kInvalid) return Cancelled("the call was cancelled before it began");
  }
  const bool has_timer = options.timeout != absl::InfiniteDuration();
  Loop::Timer timer{};
  if (has_timer) {
    timer = loop.At(loop.env().MonotonicNanos() + absl::ToInt64Nanoseconds(options.timeout),
                    [weak = weak_from_this(), id, timeout = options.timeout] {
                      auto self = weak.lock();
                      if (self == nullptr) return;
                      self->End(id, DeadlineExceeded("no reply within ", absl::FormatDuration(timeout)), false);
                    });
  }
  absl::MutexLock lock(&mu);
  const auto it = calls.find(id);
  if (it == calls.end()) {  // it has ended already: nobody will take these away
    if (has_timer) loop.Drop(timer);
    return absl::OkStatus();
  }
  it->second.cancellation = options.cancellation;
  it->second.token = token;
  it->second.timer = timer;
  it->second.has_timer = has_timer;
  return absl::OkStatus();
}

void State::Start(absl::string_view method, const RpcOptions& options, absl::Cord request, RpcReply reply) {
  uint64_t id = 0;
  {
    absl::MutexLock lock(&mu);
    id = ++last;
    Call& call = calls[id];
    call.method = std::string(method);
    call.reply = std::move(reply);
  }
  StatusOr<std::shared_ptr<Connection>> connection = nullptr;
  const Status armed = Arm(id, options);
  if (!armed.ok()) return End(id, armed, /*elsewhere=*/true);
  {
    absl::MutexLock lock(&mu);
    const auto it = calls.find(id);
    if (it == calls.end()) return;
    connection = Connected();
    if (connection.ok()) it->second.connection = *connection;
  }
  Status sent = connection.status();
  if (sent.ok()) {
    sent = (*connection)
               ->Send({.type = FrameType::kRequest,
                       .id = id,
                       .timeout = options.timeout,
                       .method = std::string(method),
                       .payload = std::move(request)});
  }
  if (!sent.ok()) return End(id, sent, /*elsewhere=*/true);
  absl::MutexLock lock(&mu);
  if (calls.contains(id)) return;
  // It ended while it was being sent: perhaps the server has heard of the end before the call.
  (*connection)->Send({.type = FrameType::kCancel, .id = id}).IgnoreError();
}

void State::Tell(absl::string_view method, absl::Cord request) {
  StatusOr<std::shared_ptr<Connection>> connection = nullptr;
  {
    absl::MutexLock lock(&mu);
    connection = Connected();
  }
  if (!connection.ok()) return;
  (*connection)
      ->Send({.type = FrameType::kTell, .method = std::string(method), .payload = std::move(request)})
      .IgnoreError();
}

void State::End(uint64_t id, StatusOr<absl::Cord> result, bool elsewhere) {
  Call call;
  {
    absl::MutexLock lock(&mu);
    const auto it = calls.find(id);
    if (it == calls.end()) return;
    call = std::move(it->second);
    calls.erase(it);
    ++running;
  }
  const absl::StatusCode code = result.status().code();
  if (call.connection != nullptr &&
      (code == absl::StatusCode::kCancelled || code == absl::StatusCode::kDeadlineExceeded)) {
    call.connection->Send({.type = FrameType::kCancel, .id = id}).IgnoreError();
  }
  if (!elsewhere) return Deliver(std::move(call), std::move(result));
  loop.env().Schedule([self = shared_from_this(), call = std::move(call), result = std::move(result)]() mutable {
    self->Deliver(std::move(call), std::move(result));
  });
}

void State::Deliver(Call call, StatusOr<absl::Cord> result) {
  const std::shared_ptr<State> self = shared_from_this();
  if (call.has_timer) loop.Drop(call.timer);
  if (call.token != CancellationManager::kInvalid && !call.cancellation->IsCancelled()) {
    call.cancellation->Deregister(call.token);
  }
  const Running frame{this, running_here};
  running_here = &frame;
  std::move(call.reply)(std::move(result));
  call.reply = nullptr;
  running_here = frame.outer;
  absl::MutexLock lock(&mu);
  --running;
}

void State::Received(Frame frame) {
  if (frame.type != FrameType::kReply) return;
  StatusOr<absl::Cord> result = std::move(frame.payload);
  if (frame.code != 0) {
    const bool is_known = frame.code > 0 && frame.code <= static_cast<int>(absl::StatusCode::kUnauthenticated);
    result =
        Status(is_known ? static_cast<absl::StatusCode>(frame.code) : absl::StatusCode::kUnknown, std::string(*result));
  }
  Call call;
  {
    absl::MutexLock lock(&mu);
    const auto it = calls.find(frame.id);
    if (it == calls.end()) return;
    call = std::move(it->second);
    calls.erase(it);
    ++running;
  }
  Deliver(std::move(call), std::move(result));
}

void State::EndAll(const std::shared_ptr<Connection>& connection, const Status& why) {
  std::vector<std::pair<uint64_t, std::string>> ended;
  {
    absl::MutexLock lock(&mu);
    for (const auto& [id, call] : calls) {
      if (call.connection == connection) ended.emplace_back(id, call.method);
    }
  }
  for (const auto& [id, method] : ended) {
    const auto code = absl::IsResourceExhausted(why) ? why.code() : absl::StatusCode::kUnavailable;
    End(id, Status(code, absl::StrCat(method, " at ", address, ": ", why.message())), /*elsewhere=*/false);
  }
}

void State::Stop() {
  std::shared_ptr<Connection> connection;
  std::vector<uint64_t> ended;
  {
    absl::MutexLock lock(&mu);
    connection = std::move(current);
    current = nullptr;
    for (const auto& [id, call] : calls) ended.push_back(id);
  }
  for (const uint64_t id : ended) End(id, Cancelled("the channel is being destroyed"), /*elsewhere=*/false);
  if (connection != nullptr) connection->Close();
  struct Wanted {
    const State& state;
    const int remaining;
    bool Holds() const ABSL_NO_THREAD_SAFETY_ANALYSIS { return state.running <= remaining; }
  } wanted{*this, RunningHere(this)};
  absl::MutexLock lock(&mu);
  loop.env().Await(mu, absl::Condition(&wanted, &Wanted::Holds));
}

class Channel final : public ShmChannel {
 public:
  explicit Channel(std::shared_ptr<State> state) : state_(std::move(state)) {}
  ~Channel() override { state_->Stop(); }
  bool IsReachable() override {
    absl::MutexLock lock(&state_->mu);
    return state_->Connected().ok();
  }
  void Call(absl::string_view method, const RpcOptions& options, absl::Cord request, RpcReply reply) override {
    const std::shared_ptr<State> state = state_;  // the reply may come, and destroy the channel, before Start() ends
    state->Start(method, options, std::move(request), std::move(reply));
  }
  void Tell(absl::string_view method, absl::Cord request) override { state_->Tell(method, std::move(request)); }

 private:
  const std::shared_ptr<State> state_;
};

}  // namespace

StatusOr<std::unique_ptr<ShmChannel>> NewShmChannel(Loop& loop, const std::string& address,
                                                    const RpcTransportOptions& options) {
  MR_ASSIGN_OR_RETURN(std::string path, PathOf(address));
  return std::make_unique<Channel>(std::make_shared<State>(
      loop, address, std::move(path), Connection::Pings{options.keepalive_interval, options.keepalive_timeout}));
}

}  // namespace millrace::shm
