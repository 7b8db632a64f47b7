// SPDX-License-Identifier: Apache-2.0
#include "service/collectives.h"

#include <algorithm>
#include <atomic>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_join.h"
#include "base/exceptions.h"
#include "base/pool_env.h"

namespace millrace {
namespace {

constexpr absl::Duration kRoundPatience = absl::Minutes(10);  // nobody computes in a round
constexpr absl::Duration kLeaderPatience = absl::Seconds(5);  // beyond the time that the leader gives a member
constexpr size_t kMaxRounds = 10'000;
constexpr size_t kMaxFailedEarly = 1'000;

// A reply that several may want to give: the first does.
template <typename Response>
class FirstReply {
 public:
  explicit FirstReply(Reply<Response> reply) : reply_(std::move(reply)) {}
  void operator()(StatusOr<Response> response) {
    if (!is_given_.exchange(true)) std::move(reply_)(std::move(response));
  }

 private:
  std::atomic<bool> is_given_{false};
  Reply<Response> reply_;
};

std::string ClaimOf(const CollectiveCall& c) {
  const char* const what =
      c.kind == CollectiveKind::kReduce ? "CollectiveReduce"
      : c.kind == CollectiveKind::kGather
          ? "CollectiveGather"
          : "CollectiveBcast";
  std::string claim = absl::StrCat(what, "(", DTypeName(c.dtype));
  if (c.kind != CollectiveKind::kBroadcast) absl::StrAppend(&claim, c.input.shape().ToString());
  if (!c.combination.empty()) absl::StrAppend(&claim, ", ", c.combination);
  return absl::StrCat(claim, ") in a group of ", c.group_size);
}

}  // namespace

// A call of a kernel, from its beginning until `done`, which is called by the first of: the result, a failure, a
// cancellation, the end of time.
class Collectives::Member : public std::enable_shared_from_this<Member> {
 public:
  Member(std::shared_ptr<Collectives> owner, CollectiveCall call, Done done)
      : owner_(std::move(owner)), id_(owner_->world_.Random64()), call_(std::move(call)), done_(std::move(done)) {}

  void Run() {
    const Status s = WithoutExceptions([&] { return Begin(); });
    if (!s.ok()) End(s);
  }

 private:
  Status Begin() {
    const std::weak_ptr<Member> weak = weak_from_this();
    CancellationManager* const cancellation = call_.cancellation;
    if (cancellation != nullptr) {
      const auto why = [cancellation, device = call_.device] {
        return WithoutExceptions([&] {
          return Cancelled("member ", device, " was cancelled: ", cancellation->reason().message());
        });
      };
      const auto token = cancellation->Register([why, weak] {
        if (const auto self = weak.lock()) self->GiveUp(why());
      });
      if (token == CancellationManager::kInvalid) return why();
    }
    if (call_.timeout < absl::InfiniteDuration()) {
      const Env::TimerId timer = owner_->world_.ScheduleAfter(call_.timeout + kLeaderPatience, [weak] {
        const auto self = weak.lock();
        if (!self) return;
        self->owner_->world_.Schedule([self] { self->GiveUp(WithoutExceptions([&] { return self->TooLate(); })); });
      });
      absl::MutexLock lock(&mu_);
      timer_ = timer;
      has_timer_ = true;
    }
    Join();
    return absl::OkStatus();
  }

  void Join() {
    JoinCollectiveRequest request;
    request.member = id_;
    request.device = call_.device;
    request.incarnation = owner_->incarnation_;
    request.session = call_.session;
    request.step = call_.step;
    request.group_key = call_.group_key;
    request.instance_key = call_.instance_key;
    request.iteration = call_.iteration;
    request.group_size = call_.group_size;
    request.claim = ClaimOf(call_);
    request.has_source = call_.kind == CollectiveKind::kBroadcast;
    request.is_source = request.has_source && call_.input.IsInitialized();
    if (request.is_source) {
      const absl::Span<const int64_t> dims = call_.input.shape().dims();
      request.dims.assign(dims.begin(), dims.end());
    }
    request.timeout_millis = absl::ToInt64Milliseconds(call_.timeout);
    Reply<JoinCollectiveResponse> reply = [self = shared_from_this()](StatusOr<JoinCollectiveResponse> told) {
      self->Joined(std::move(told));
    };
    WorkerInterface* const leader = owner_->Leader();
    if (leader == nullptr) return owner_->groups_->Join(std::move(request), nullptr, std::move(reply));
    leader->JoinCollective({}, std::move(request), std::move(reply));
  }

  void Joined(StatusOr<JoinCollectiveResponse> told) {
    if (!told.ok()) return End(told.status());
    const Status s = WithoutExceptions([&] { return Enter(*told); });
    if (s.ok()) return;
    // Its neighbour will ask for what this member does not have, and tells the others.
    owner_->FailRound(told->round, s);
    End(s);
  }

  Status Enter(const JoinCollectiveResponse& told) {
    MR_ASSIGN_OR_RETURN(const std::shared_ptr<CollectiveRound> round, owner_->FindOrMake(told.round));
    {
      absl::MutexLock lock(&mu_);
      round_ = round;
    }
    round->Add(call_, told, [self = shared_from_this()](StatusOr<Tensor> r) { self->End(std::move(r)); });
    Status gave_up;
    {
      absl::MutexLock lock(&mu_);
      gave_up = gave_up_;
    }
    if (!gave_up.ok()) round->Fail(gave_up, true);
    return absl::OkStatus();
  }

  Status TooLate() const {
    return DeadlineExceeded(
        "group ", call_.group_key, ", instance ", call_.instance_key, " of collective ops: after ",
        absl::FormatDuration(call_.timeout), " ", call_.device,
        " had no answer from the leader, or not all that its group is to send");
  }

  // Ends the call, and the group with it.
  void GiveUp(const Status& why) {
    std::shared_ptr<CollectiveRound> round;
    {
      absl::MutexLock lock(&mu_);
      if (is_over_ || !gave_up_.ok()) return;
      gave_up_ = why;
      round = round_;
    }
    if (round) {
      round->Fail(why, true);
    } else {
      // The others wait until their time is over if they cannot be told.
      WithoutExceptions([&]() -> Status {
        const Status told = absl::IsCancelled(why) ? Aborted(why.message()) : why;
        WorkerInterface* const leader = owner_->Leader();
        if (leader == nullptr) return owner_->groups_->Leave(id_, told).status();
        leader->AbortCollective({}, {id_, told}, [](const StatusOr<AbortCollectiveResponse>&) {});
        return absl::OkStatus();
      }).IgnoreError();
    }
    End(why);
  }

  void End(StatusOr<Tensor> result) {
    Done done;
    bool has_timer = false;
    {
      absl::MutexLock lock(&mu_);
      if (is_over_) return;
      is_over_ = true;
      has_timer = has_timer_;
      done = std::move(done_);
    }
    if (has_timer) owner_->world_.StopTimer(timer_);
    std::move(done)(std::move(result));
  }

  const std::shared_ptr<Collectives> owner_;
  const uint64_t id_;
  const CollectiveCall call_;
  absl::Mutex mu_;
  bool is_over_ ABSL_GUARDED_BY(mu_) = false;
  bool has_timer_ ABSL_GUARDED_BY(mu_) = false;
  Env::TimerId timer_ = 0;
  Status gave_up_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<CollectiveRound> round_ ABSL_GUARDED_BY(mu_);
  Done done_ ABSL_GUARDED_BY(mu_);
};

Collectives::Collectives(WorkerEnv& env, uint64_t incarnation)
    : task_(env.task),
      peers_(env.peers),
      pool_(env.pool()),
      world_(EnvOf(env.pool())),
      incarnation_(incarnation),
      groups_(std::make_shared<CollectiveGroups>(
          world_,
          [peers = peers_, own = task_](const std::string& task) -> WorkerInterface* {
            return peers == nullptr || task == own ? nullptr : peers->Find(task);
          })),
      gate_(world_) {}

void Collectives::Close(const Status& why) {
  std::map<uint64_t, RoundHere> rounds;
  {
    absl::MutexLock lock(&mu_);
    closed_ = why;
    rounds = rounds_;
  }
  groups_->Close(why);
  for (const auto& [id, here] : rounds) here.round->Fail(why, true);
  for (const auto& [id, here] : rounds) Forget(id, why);  // also those that wait for neighbours only
  gate_.Close();
}

Status Collectives::Schedule(absl::AnyInvocable<void()> work) {
  if (!gate_.Enter()) return Cancelled("worker ", task_, " ends");
  const Status s = WithoutExceptions([&] {
    pool_.Schedule([self = shared_from_this(), work = std::move(work)]() mutable {
      work();
      work = nullptr;
      self->gate_.Leave();
    });
    return absl::OkStatus();
  });
  if (!s.ok()) gate_.Leave();
  return s;
}

WorkerInterface* Collectives::Leader() const {
  const std::string leader = peers_ ? peers_->CollectiveLeader() : "";
  return leader.empty() || leader == task_ ? nullptr : peers_->Find(leader);
}

void Collectives::Run(CollectiveCall call, Done done) {
  const StatusOr<std::shared_ptr<Member>> member = WithoutExceptions([&]() -> StatusOr<std::shared_ptr<Member>> {
    return std::make_shared<Member>(shared_from_this(), std::move(call), std::move(done));
  });
  member.ok() ? (*member)->Run() : std::move(done)(member.status());
}

std::shared_ptr<CollectiveRound> Collectives::Find(uint64_t round) {
  absl::MutexLock lock(&mu_);
  const auto at = rounds_.find(round);
  return at == rounds_.end() ? nullptr : at->second.round;
}

StatusOr<std::shared_ptr<CollectiveRound>> Collectives::FindOrMake(uint64_t id) {
  if (auto round = Find(id)) return round;
  const auto made = std::make_shared<CollectiveRound>(shared_from_this(), id);
  const Env::TimerId timer = world_.ScheduleAfter(kRoundPatience, [weak = weak_from_this(), id] {
    const auto self = weak.lock();
    const auto round = self ? self->Find(id) : nullptr;
    if (round == nullptr) return;
    self->world_.Schedule([self, round, id] {
      const Status why =
          DeadlineExceeded("a round of collective ops was not over after ", absl::FormatDuration(kRoundPatience));
      round->Fail(why, true);
      self->Forget(id, why);
    });
  });
  auto stop_timer = absl::MakeCleanup([&] { world_.StopTimer(timer); });
  absl::MutexLock lock(&mu_);
  MR_RETURN_IF_ERROR(closed_);
  const auto failed =
      std::find_if(failed_early_.begin(), failed_early_.end(), [&](const auto& f) { return f.first == id; });
  if (failed != failed_early_.end()) return failed->second;
  if (rounds_.size() >= kMaxRounds) {
    return ResourceExhausted(kMaxRounds, " rounds of collective ops are under way already");
  }
  const auto [at, is_new] = rounds_.try_emplace(id, RoundHere{made, timer});
  if (is_new) std::move(stop_timer).Cancel();
  return at->second.round;
}

void Collectives::RememberFailed(uint64_t round, const Status& why) {
  failed_early_.emplace_back(round, why);
  if (failed_early_.size() > kMaxFailedEarly) failed_early_.pop_front();
}

void Collectives::Forget(uint64_t round, const Status& failure) {
  RoundHere here;
  {
    absl::MutexLock lock(&mu_);
    const auto at = rounds_.find(round);
    if (at == rounds_.end()) return;
    here = std::move(at->second);
    rounds_.erase(at);
    // Who asks for it later is told that it is over, or waits in vain until a round's time is over.
    WithoutExceptions([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      RememberFailed(round, failure.ok() ? Aborted("the round of collective ops is over") : failure);
      return absl::OkStatus();
    }).IgnoreError();
  }
  world_.StopTimer(here.timer);
}

void Collectives::FailRound(uint64_t id, const Status& why) {
  if (const auto round = Find(id)) return round->Fail(why, true);
  absl::MutexLock lock(&mu_);
  WithoutExceptions([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    RememberFailed(id, ForOthers(task_, why));
    return absl::OkStatus();
  }).IgnoreError();
}

void Collectives::Join(const CallOptions& call, JoinCollectiveRequest request, Reply<JoinCollectiveResponse> reply) {
  groups_->Join(std::move(request), call.cancellation, std::move(reply));
}

void Collectives::Recv(const CallOptions& call, const RecvCollectiveRequest& request,
                       Reply<RecvCollectiveResponse> reply) {
  std::shared_ptr<FirstReply<RecvCollectiveResponse>> first;
  const Status s = WithoutExceptions([&]() -> Status {
    if (request.incarnation != incarnation_) {
      return Aborted("worker ", task_, " was restarted since the round of collective ops began");
    }
    MR_ASSIGN_OR_RETURN(const std::shared_ptr<CollectiveRound> round, FindOrMake(request.round));
    first = std::make_shared<FirstReply<RecvCollectiveResponse>>(std::move(reply));
    if (call.cancellation != nullptr) {
      const auto token = call.cancellation->Register([weak = std::weak_ptr(first)] {
        if (const auto r = weak.lock()) (*r)(WithoutExceptions([] { return Cancelled("the caller gave up"); }));
      });
      if (token == CancellationManager::kInvalid) return Cancelled("the caller gave up");
    }
    round->Recv(request.piece, [first](const Status& got, Tensor value, bool) {
      (*first)(got.ok() ? StatusOr<RecvCollectiveResponse>(RecvCollectiveResponse{std::move(value)}) : got);
    });
    return absl::OkStatus();
  });
  if (s.ok()) return;
  first ? (*first)(s) : std::move(reply)(s);
}

Status Collectives::Abort(const AbortCollectiveRequest& request) {
  const Status why = request.why.ok() ? Aborted("a member has left") : request.why;
  if (const auto round = Find(request.id)) {
    round->Fail(why, false);
    return absl::OkStatus();
  }
  MR_ASSIGN_OR_RETURN(const bool is_member, groups_->Leave(request.id, why));
  if (is_member) return absl::OkStatus();
  absl::MutexLock lock(&mu_);
  RememberFailed(request.id, why);
  return absl::OkStatus();
}

}  // namespace millrace
