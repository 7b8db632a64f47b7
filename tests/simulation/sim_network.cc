// SPDX-License-Identifier: Apache-2.0
// A call is a request on its way, a serving of it (two, when it arrives twice), and an answer on its way. Its caller
// gets the first of: the answer, a cancellation, the end of its time, the news that its connection broke.
#include "simulation/sim_network.h"

#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "simulation/fake_disk.h"

namespace millrace {
namespace {

using Link = std::pair<std::string, std::string>;

// On the side that serves.
struct Serving {
  int64_t id = 0;
  CancellationManager context;
};

struct Listener {
  RpcHandler* handler = nullptr;
  Env* env = nullptr;
  std::string machine;
  int64_t life = 0;
  bool is_open = true;
  int64_t num_calls = 0;
};

struct ChannelCalls;

struct Call {
  int64_t id = 0;
  std::string method, from, to, address;
  absl::Duration timeout;
  Env* env = nullptr;  // of the caller
  std::shared_ptr<ChannelCalls> channel;
  std::optional<RpcReply> reply;
  std::vector<std::shared_ptr<Serving>> servings;
  bool has_arrived = false;  // what arrives later is a copy
};
using CallPtr = std::shared_ptr<Call>;

// Of a channel: under way, by number, or being replied to.
struct ChannelCalls {
  std::map<int64_t, CallPtr> calls;
  int64_t replying = 0;
};

}  // namespace

struct SimNetwork::State : std::enable_shared_from_this<State> {
  State(Env& e, uint64_t seed) : env(e), random(seed) {}

  uint64_t Draw() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) { return NextRandom(&random); }
  bool Happens(double share) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    return share > 0 && static_cast<double>(Draw() >> 11) * 0x1p-53 < share;
  }
  absl::Duration Between(absl::Duration low, absl::Duration high) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    if (high <= low) return low;
    return low +
           absl::Nanoseconds(static_cast<int64_t>(Draw() % static_cast<uint64_t>((high - low) / absl::Nanoseconds(1))));
  }
  void Note(const Call& call, absl::string_view what) {
    if (trace) trace(absl::StrCat(call.from, " -> ", call.to, " ", call.method, ": ", what));
  }

  static void After(Env& where, absl::Duration delay, absl::AnyInvocable<void() &&> fn) {
    delay > absl::ZeroDuration()
        ? static_cast<void>(where.ScheduleAfter(delay, std::move(fn)))
        : where.Schedule(std::move(fn));
  }

  // How long a message is on its way; nothing: it is lost.
  std::optional<absl::Duration> Way(const std::string& from, const std::string& to) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    const bool is_lost = Happens(weather.lost);
    absl::Duration way = Between(weather.min_delay, weather.max_delay);
    if (is_lost || cut.count({from, to}) != 0) return std::nullopt;
    if (const auto at = clogged.find({from, to}); at != clogged.end()) {
      way += std::max(absl::Nanoseconds(at->second - env.MonotonicNanos()), absl::ZeroDuration());
    }
    return way;
  }

  // The caller's reply, once.
  void Finish(const CallPtr& call, StatusOr<absl::Cord> answer) {
    std::optional<RpcReply> once;
    {
      absl::MutexLock lock(&mu);
      once.swap(call->reply);
      if (!once) return;
      ++call->channel->replying;
      call->channel->calls.erase(call->id);
    }
    Note(*call, answer.ok() ? "answered" : answer.status().ToString());
    std::move (*once)(std::move(answer));
    once.reset();
    absl::MutexLock lock(&mu);
    --call->channel->replying;
  }
  // When the caller does not want it any more.
  void GiveUp(const CallPtr& call, const Status& why) {
    {
      absl::MutexLock lock(&mu);
      if (!call->reply) return;
      if (const std::optional<absl::Duration> way = Way(call->from, call->to)) {
        After(env, *way, [self = shared_from_this(), call] {
          std::vector<std::shared_ptr<Serving>> servings;
          {
            absl::MutexLock inner(&self->mu);
            servings = call->servings;
          }
          for (const auto& s : servings) s->context.Cancel(Cancelled("the caller gave the call up"));
        });
      }
    }
    Finish(call, why);
  }
  void Break(const CallPtr& call, absl::string_view why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    After(*call->env, Between(absl::ZeroDuration(), weather.silence),
          [self = shared_from_this(), call, text = std::string(why)] { self->Finish(call, Unavailable(text)); });
  }

  void Send(const CallPtr& call, const absl::Cord& request) ABSL_LOCKS_EXCLUDED(mu) {
    absl::MutexLock lock(&mu);
    const auto at = machine_of.find(call->address);
    call->to = at == machine_of.end() ? call->address : at->second;
    const int copies = Happens(weather.twice) ? 2 : 1;
    int lost = 0;
    for (int copy = 0; copy < copies; ++copy) {
      const std::optional<absl::Duration> way = Way(call->from, call->to);
      if (!way) {
        ++lost;
        continue;
      }
      const auto found = listeners.find(call->address);
      Env& there = found == listeners.end() ? env : *found->second->env;
      After(there, *way, [self = shared_from_this(), call, request] { self->Deliver(call, request); });
    }
    if (lost == copies) Break(call, absl::StrCat("the connection to ", call->to, " broke"));
  }

  void Deliver(const CallPtr& call, const absl::Cord& request) ABSL_LOCKS_EXCLUDED(mu) {
    std::shared_ptr<Listener> listener;
    const auto serving = std::make_shared<Serving>();
    bool is_copy = false;
    {
      absl::MutexLock lock(&mu);
      is_copy = std::exchange(call->has_arrived, true);
      const auto at = listeners.find(call->address);
      if (at != listeners.end() && at->second->is_open) listener = at->second;
      if (listener) {
        ++listener->num_calls;
        call->servings.push_back(serving);
        serving->id = next_id++;
        open_servings.emplace(serving->id, std::pair(serving, listener));
      }
    }
    if (!listener) {
      if (!is_copy) Finish(call, Unavailable("nobody listens at ", call->address));
      return;
    }
    Note(*call, is_copy ? "arrives again" : "arrives");
    const RpcContext context{call->from, call->timeout, &serving->context, {}};
    listener->handler->Handle(
        call->method, context, request,
        [self = shared_from_this(), call, listener, serving, is_copy](StatusOr<absl::Cord> answer) {
          self->Answer(call, listener, serving, is_copy, std::move(answer));
        });
  }

  void Answer(const CallPtr& call, const std::shared_ptr<Listener>& listener, const std::shared_ptr<Serving>& serving,
              bool is_copy, StatusOr<absl::Cord> answer) ABSL_LOCKS_EXCLUDED(mu) {
    absl::MutexLock lock(&mu);
    if (answer.ok()) num_bytes += static_cast<int64_t>(answer->size());
    open_servings.erase(serving->id);
    --listener->num_calls;
    const auto life = lives.find(listener->machine);
    if (is_copy || (life != lives.end() && life->second != listener->life)) return;
    const std::optional<absl::Duration> way = Way(listener->machine, call->from);
    if (!way) return Break(call, absl::StrCat("the connection to ", call->to, " broke before the answer came"));
    After(*call->env, *way, [self = shared_from_this(), call, answer = std::move(answer)]() mutable {
      self->Finish(call, std::move(answer));
    });
  }

  Env& env;
  std::function<void(const std::string&)> trace;
  absl::Mutex mu;
  uint64_t random ABSL_GUARDED_BY(mu);
  Weather weather ABSL_GUARDED_BY(mu);
  std::set<Link> cut ABSL_GUARDED_BY(mu);
  std::map<Link, int64_t> clogged ABSL_GUARDED_BY(mu);                // until when
  std::map<std::string, int64_t> lives ABSL_GUARDED_BY(mu);           // of machines: counts deaths
  std::map<std::string, std::string> machine_of ABSL_GUARDED_BY(mu);  // addresses, also of those that listen no more
  std::map<std::string, std::shared_ptr<Listener>> listeners ABSL_GUARDED_BY(mu);
  // By number, so that nothing depends on addresses in memory.
  int64_t next_id ABSL_GUARDED_BY(mu) = 1;
  std::map<int64_t, std::pair<std::shared_ptr<Serving>, std::shared_ptr<Listener>>> open_servings ABSL_GUARDED_BY(mu);
  std::map<int64_t, std::shared_ptr<ChannelCalls>> channels ABSL_GUARDED_BY(mu);
  int next_port ABSL_GUARDED_BY(mu) = 1;
  int64_t num_calls ABSL_GUARDED_BY(mu) = 0, num_bytes ABSL_GUARDED_BY(mu) = 0;
};

class SimNetwork::Server final : public RpcServer {
 public:
  Server(std::shared_ptr<State> state, std::string address, std::shared_ptr<Listener> listener)
      : state_(std::move(state)), address_(std::move(address)), listener_(std::move(listener)) {}
  ~Server() override {
    std::vector<std::shared_ptr<Serving>> servings;
    {
      absl::MutexLock lock(&state_->mu);
      listener_->is_open = false;
      const auto at = state_->listeners.find(address_);
      if (at != state_->listeners.end() && at->second == listener_) state_->listeners.erase(at);
      for (const auto& [id, serving] : state_->open_servings) {
        if (serving.second == listener_) servings.push_back(serving.first);
      }
    }
    for (const auto& s : servings) s->context.Cancel(Cancelled("the caller gave the call up"));
    absl::MutexLock lock(&state_->mu);
    listener_->env->Await(state_->mu, absl::Condition(+[](int64_t* n) { return *n == 0; }, &listener_->num_calls));
  }
  std::string address() const override { return address_; }

 private:
  const std::shared_ptr<State> state_;
  const std::string address_;
  const std::shared_ptr<Listener> listener_;
};

class SimNetwork::Channel final : public RpcChannel {
 public:
  Channel(std::shared_ptr<State> state, std::string machine, int64_t life, Env& env, std::string address)
      : state_(std::move(state)), machine_(std::move(machine)), life_(life), env_(env), address_(std::move(address)) {
    absl::MutexLock lock(&state_->mu);
    id_ = state_->next_id++;
    state_->channels.emplace(id_, calls_);
  }
  ~Channel() override {
    std::map<int64_t, CallPtr> calls;
    {
      absl::MutexLock lock(&state_->mu);
      state_->channels.erase(id_);
      calls = calls_->calls;
    }
    for (const auto& [id, call] : calls) state_->GiveUp(call, Cancelled("the channel is gone"));
    const auto is_idle = [this] { return calls_->calls.empty() && calls_->replying == 0; };
    absl::MutexLock lock(&state_->mu);
    env_.Await(state_->mu, absl::Condition(&is_idle));
  }

  void Call(absl::string_view method, const RpcOptions& options, absl::Cord request, RpcReply reply) override {
    const auto call = std::make_shared<millrace::Call>();
    call->method = std::string(method);
    call->from = machine_;
    call->address = address_;
    call->timeout = options.timeout;
    call->env = &env_;
    call->channel = calls_;
    bool is_dead = false;
    {
      absl::MutexLock lock(&state_->mu);
      call->reply = std::move(reply);
      call->id = state_->next_id++;
      calls_->calls.emplace(call->id, call);
      is_dead = state_->lives[machine_] != life_;
      ++state_->num_calls;
      state_->num_bytes += static_cast<int64_t>(request.size());
    }
    if (is_dead) return state_->Finish(call, Unavailable("this machine is dead"));
    const std::weak_ptr weak = call;
    if (options.cancellation) {
      const auto token = options.cancellation->Register([state = state_, weak] {
        if (const auto c = weak.lock()) state->GiveUp(c, Cancelled("the call was cancelled"));
      });
      if (token == CancellationManager::kInvalid) return state_->Finish(call, Cancelled("the call was cancelled"));
    }
    if (options.timeout < absl::InfiniteDuration()) {
      env_.ScheduleAfter(options.timeout, [state = state_, weak] {
        if (const auto c = weak.lock()) state->GiveUp(c, DeadlineExceeded("the call took longer than it may"));
      });
    }
    state_->Send(call, request);
  }

 private:
  const std::shared_ptr<State> state_;
  const std::string machine_;
  const int64_t life_;
  Env& env_;
  const std::string address_;
  const std::shared_ptr<ChannelCalls> calls_ = std::make_shared<ChannelCalls>();
  int64_t id_ = 0;
};

class SimNetwork::Transport final : public RpcTransport {
 public:
  Transport(std::shared_ptr<State> state, std::string machine, Env& env)
      : state_(std::move(state)), machine_(std::move(machine)), env_(env) {
    absl::MutexLock lock(&state_->mu);
    life_ = state_->lives[machine_];
  }

  StatusOr<std::unique_ptr<RpcServer>> Listen(const RpcServerOptions& options, RpcHandler* handler) override {
    const auto listener = std::make_shared<Listener>();
    listener->handler = handler;
    listener->env = &env_;
    listener->machine = machine_;
    listener->life = life_;
    std::string address = options.address;
    absl::MutexLock lock(&state_->mu);
    if (state_->lives[machine_] != life_) return Unavailable("this machine is dead");
    if (absl::string_view host = address; absl::ConsumeSuffix(&host, ":0")) {
      address = absl::StrCat(host, ":", state_->next_port++);
    }
    if (!state_->listeners.emplace(address, listener).second) return Unavailable(address, " is taken");
    state_->machine_of[address] = machine_;
    return std::unique_ptr<RpcServer>(std::make_unique<Server>(state_, address, listener));
  }

  StatusOr<std::unique_ptr<RpcChannel>> Connect(const std::string& address) override {
    return std::unique_ptr<RpcChannel>(std::make_unique<Channel>(state_, machine_, life_, env_, address));
  }

 private:
  const std::shared_ptr<State> state_;
  const std::string machine_;
  Env& env_;
  int64_t life_ = 0;
};

SimNetwork::SimNetwork(Env& env, uint64_t seed) : state_(std::make_shared<State>(env, seed)) {}
SimNetwork::~SimNetwork() = default;

std::unique_ptr<RpcTransport> SimNetwork::NewTransport(const std::string& machine, Env& env) {
  return std::make_unique<Transport>(state_, machine, env);
}

void SimNetwork::SetWeather(const Weather& weather) {
  absl::MutexLock lock(&state_->mu);
  state_->weather = weather;
}

void SimNetwork::Cut(const std::string& from, const std::string& to, bool is_cut) {
  absl::MutexLock lock(&state_->mu);
  is_cut ? static_cast<void>(state_->cut.insert({from, to})) : static_cast<void>(state_->cut.erase({from, to}));
}

void SimNetwork::Clog(const std::string& from, const std::string& to, absl::Duration time) {
  absl::MutexLock lock(&state_->mu);
  state_->clogged[{from, to}] = state_->env.MonotonicNanos() + absl::ToInt64Nanoseconds(time);
}

void SimNetwork::Heal() {
  absl::MutexLock lock(&state_->mu);
  state_->cut.clear();
  state_->clogged.clear();
}

void SimNetwork::Kill(const std::string& machine) {
  std::vector<std::shared_ptr<Serving>> servings;
  std::vector<CallPtr> own;
  {
    absl::MutexLock lock(&state_->mu);
    ++state_->lives[machine];
    std::erase_if(state_->listeners, [&](const auto& l) { return l.second->machine == machine; });
    for (const auto& [id, serving] : state_->open_servings) {
      if (serving.second->machine == machine) servings.push_back(serving.first);
    }
    for (const auto& [id, channel] : state_->channels) {
      for (const auto& [number, call] : channel->calls) {
        if (call->from == machine) {
          own.push_back(call);
        } else if (call->to == machine) {
          state_->Break(call, absl::StrCat(machine, " died"));
        }
      }
    }
  }
  for (const CallPtr& call : own) state_->GiveUp(call, Unavailable("this machine is dead"));
  for (const auto& s : servings) s->context.Cancel(Cancelled("the caller gave the call up"));
}

void SimNetwork::SetTrace(std::function<void(const std::string&)> trace) { state_->trace = std::move(trace); }

int64_t SimNetwork::num_calls() const {
  absl::MutexLock lock(&state_->mu);
  return state_->num_calls;
}
int64_t SimNetwork::num_bytes() const {
  absl::MutexLock lock(&state_->mu);
  return state_->num_bytes;
}

}  // namespace millrace
