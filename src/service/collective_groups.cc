// SPDX-License-Identifier: Apache-2.0
#include "service/collective_groups.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "base/exceptions.h"
#include "op/device_name.h"
#include "service/worker_env.h"

namespace millrace {
namespace {

constexpr int64_t kMaxGroupSize = 1 << 16;
constexpr size_t kMaxGatherings = 10'000;
constexpr size_t kMaxLeftEarly = 1'000;
constexpr size_t kMaxRemembered = 1'000;  // messages that might come twice
constexpr absl::Duration kFailureIsNews = absl::Seconds(30);
constexpr absl::Duration kWatchPeriod = absl::Seconds(1);

std::string Title(const JoinCollectiveRequest& m) {
  return absl::StrCat("group ", m.group_key, ", instance ", m.instance_key, " of collective ops: ");
}

auto RankOf(const DeviceName& d) { return std::tie(d.job, d.replica, d.task, d.type, d.id); }

}  // namespace

Status SortByRank(std::vector<CollectiveMember>* members) {
  std::vector<std::pair<DeviceName, CollectiveMember>> named;
  for (CollectiveMember& m : *members) {
    MR_ASSIGN_OR_RETURN(DeviceName name, DeviceName::Parse(m.device));
    named.emplace_back(std::move(name), std::move(m));
  }
  std::sort(named.begin(), named.end(), [](const auto& a, const auto& b) { return RankOf(a.first) < RankOf(b.first); });
  for (size_t i = 0; i < named.size(); ++i) (*members)[i] = std::move(named[i].second);
  return absl::OkStatus();
}

const CollectiveGroups::Key* CollectiveGroups::Find(uint64_t member) const {
  for (const auto& [key, g] : gatherings_) {
    for (const Waiting& w : g.members) {
      if (w.request.member == member) return &key;
    }
  }
  return nullptr;
}

bool CollectiveGroups::IsThere(const Gathering& gathering, const std::string& device) {
  return std::any_of(
      gathering.members.begin(), gathering.members.end(), [&](const Waiting& w) { return w.request.device == device; });
}

CollectiveGroups::Gathering CollectiveGroups::Take(const Key& key) {
  const auto at = gatherings_.find(key);
  Gathering taken = std::move(at->second);
  gatherings_.erase(at);
  return taken;
}

void CollectiveGroups::RememberFailure(const Key& key, const Gathering& failed, const Status& why) {
  const auto known = known_.find(std::get<0>(key));
  if (known == known_.end() || untold_.size() + known->second.size() > kMaxGatherings) return;
  Untold untold{why, {}, env_.MonotonicNanos()};
  std::set<std::string> told;
  for (const Waiting& w : failed.members) {
    told.insert(w.request.device);
    untold.sessions.insert(w.request.session);
  }
  for (const auto& [device, incarnation] : known->second) {
    if (told.contains(device)) continue;
    // Of those that fail since they were told of an earlier failure nobody is told: that would have no end.
    const auto last = last_told_.extract({key, device});
    if (!last.empty() && untold.sessions.contains(last.mapped())) continue;
    untold_.insert_or_assign({key, device}, untold);
  }
}

void CollectiveGroups::RememberMembers(const Key& key, const Gathering& all) {
  std::map<std::string, uint64_t> devices;
  for (const Waiting& w : all.members) {
    untold_.erase({key, w.request.device});
    last_told_.erase({key, w.request.device});
    devices[w.request.device] = w.request.incarnation;
  }
  known_[std::get<0>(key)] = std::move(devices);
  if (known_.size() > kMaxGatherings) known_.erase(known_.begin());
}

void CollectiveGroups::Answer(Gathering gathering, const StatusOr<JoinCollectiveResponse>& answer) {
  for (Waiting& w : gathering.members) {
    env_.StopTimer(w.timer);
    StatusOr<JoinCollectiveResponse> own = WithoutExceptions([&] { return answer; });
    std::move(w.reply)(std::move(own));
  }
}

StatusOr<JoinCollectiveResponse> CollectiveGroups::Complete(const Gathering& all, uint64_t round) {
  JoinCollectiveResponse response;
  response.round = round;
  const JoinCollectiveRequest* source = nullptr;
  for (const Waiting& w : all.members) {
    response.members.push_back({w.request.device, w.request.incarnation});
    if (w.request.is_source) source = &w.request;
  }
  MR_RETURN_IF_ERROR(SortByRank(&response.members));
  const JoinCollectiveRequest& any = all.members.front().request;
  if (!any.has_source) return response;
  if (source == nullptr) {
    return InvalidArgument(
        Title(any), "nobody sends: all ", any.group_size, " members, ",
        absl::StrJoin(response.members, ", ", [](std::string* out, const CollectiveMember& m) { *out += m.device; }),
        ", want to receive");
  }
  response.dims = source->dims;
  for (size_t i = 0; i < response.members.size(); ++i) {
    if (response.members[i].device == source->device) response.source = static_cast<int64_t>(i);
  }
  return response;
}

// Checks the newcomer against who is there. An error is the newcomer's, and that of *failed, who waited in vain.
Status CollectiveGroups::Check(const JoinCollectiveRequest& request, Gathering* failed) {
  const Key key = KeyOf(request);
  const auto early = std::find_if(
      left_early_.begin(), left_early_.end(), [&](const auto& gone) { return gone.first == request.member; });
  const auto at = gatherings_.find(key);
  if (early != left_early_.end()) {
    const Status why = Annotate(early->second, Title(request));
    if (at != gatherings_.end()) {
      *failed = Take(key);
      RememberFailure(key, *failed, why);
    }
    return why;
  }
  if (const auto untold = untold_.extract({key, request.device}); !untold.empty()) {
    const Untold& failure = untold.mapped();
    const bool is_news = env_.MonotonicNanos() - failure.nanos < absl::ToInt64Nanoseconds(kFailureIsNews);
    if (is_news && !failure.sessions.contains(request.session)) {
      if (last_told_.size() < kMaxGatherings) last_told_[{key, request.device}] = request.session;
      return failure.why;
    }
  }
  if (at == gatherings_.end()) {
    if (gatherings_.size() >= kMaxGatherings) {
      return ResourceExhausted(Title(request), kMaxGatherings, " groups wait for members already");
    }
    return absl::OkStatus();
  }
  const JoinCollectiveRequest& first = at->second.members.front().request;
  const auto refuse = [&](const Status& s) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    *failed = Take(key);
    return s;
  };
  if (request.group_size != first.group_size || request.claim != first.claim ||
      request.has_source != first.has_source) {
    return refuse(InvalidArgument(Title(request), "its members disagree: ", first.device, " does ", first.claim, ", ",
                                  request.device, " does ", request.claim));
  }
  for (const Waiting& w : at->second.members) {
    const JoinCollectiveRequest& there = w.request;
    if (there.device == request.device) {
      const bool same_step = there.session == request.session && there.step == request.step;
      return refuse(same_step ? InvalidArgument(Title(request), request.device, " takes part twice in one step")
                              : Aborted(Title(request), request.device, " takes part again, in another step"));
    }
    if (there.is_source && request.is_source) {
      return refuse(InvalidArgument(Title(request), "both ", there.device, " and ", request.device, " send"));
    }
  }
  const StatusOr<DeviceName> old_name = DeviceName::Parse(first.device), name = DeviceName::Parse(request.device);
  if (old_name.ok() && name.ok() && old_name->type != name->type) {
    return refuse(InvalidArgument(
        Title(request), "its members are devices of two types: ", first.device, " and ", request.device));
  }
  return absl::OkStatus();
}

// All or nothing.
CollectiveGroups::Waiting& CollectiveGroups::AddSeat(const Key& key) {
  if (const auto at = gatherings_.find(key); at != gatherings_.end()) return at->second.members.emplace_back();
  Gathering fresh;
  fresh.members.emplace_back();
  return gatherings_.emplace(key, std::move(fresh)).first->second.members.back();
}

Status CollectiveGroups::Enter(Waiting& newcomer, Gathering* ended) {
  MR_RETURN_IF_ERROR(closed_);
  const uint64_t member = newcomer.request.member;
  if (std::find(have_come_.begin(), have_come_.end(), member) != have_come_.end()) {
    return Aborted(Title(newcomer.request), "this message of ", newcomer.request.device, " has come before");
  }
  MR_RETURN_IF_ERROR(Check(newcomer.request, ended));
  const Key key = KeyOf(newcomer.request);
  const auto size = static_cast<size_t>(newcomer.request.group_size);
  have_come_.push_back(member);
  if (have_come_.size() > kMaxRemembered) have_come_.pop_front();
  AddSeat(key) = std::move(newcomer);
  if (gatherings_.find(key)->second.members.size() == size) {
    *ended = Take(key);
  } else {
    WatchSoon();
  }
  return absl::OkStatus();
}

// What lies before the newcomer's entry: it is told to leave when it is gone, and after its time.
Status CollectiveGroups::Begin(const JoinCollectiveRequest& request, CancellationManager* cancellation,
                               Env::TimerId* timer) {
  if (request.group_size < 1 || request.group_size > kMaxGroupSize) {
    return InvalidArgument(Title(request), "a group has 1 to ", kMaxGroupSize, " members, not ", request.group_size);
  }
  MR_ASSIGN_OR_RETURN(const DeviceName name, DeviceName::Parse(request.device));
  if (name.job.empty() || name.task < 0 || name.type.empty() || name.id < 0) {
    return InvalidArgument(Title(request), "'", request.device, "' is not the whole name of a device");
  }
  const std::weak_ptr<CollectiveGroups> weak = weak_from_this();
  if (cancellation != nullptr) {  // which may be gone with the reply
    const auto token = cancellation->Register([weak, member = request.member, device = request.device] {
      if (const auto self = weak.lock()) {
        self->Leave(member, Unavailable("member ", device, " is gone")).status().IgnoreError();
      }
    });
    if (token == CancellationManager::kInvalid) return Cancelled("the caller gave up");
  }
  const absl::Duration timeout = absl::Milliseconds(std::clamp<int64_t>(request.timeout_millis, 1, int64_t{1} << 40));
  *timer = env_.ScheduleAfter(timeout, [weak, member = request.member] {
    if (const auto self = weak.lock()) self->env_.Schedule([self, member] { self->TimeOut(member); });
  });
  return absl::OkStatus();
}

void CollectiveGroups::Join(JoinCollectiveRequest request, CancellationManager* cancellation,
                            Reply<JoinCollectiveResponse> reply) {
  Env::TimerId timer = 0;
  const Status begun = WithoutExceptions([&] { return Begin(request, cancellation, &timer); });
  if (!begun.ok()) return std::move(reply)(begun);
  Waiting newcomer{std::move(request), std::move(reply), timer};
  Gathering ended;
  StatusOr<JoinCollectiveResponse> answer = JoinCollectiveResponse();
  Status enters;
  {
    absl::MutexLock lock(&mu_);
    enters = WithoutExceptions([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return Enter(newcomer, &ended); });
    if (!enters.ok()) {
      answer = enters;
      const Key key = KeyOf(newcomer.request);
      if (ended.members.empty() && absl::IsResourceExhausted(enters) && gatherings_.contains(key)) ended = Take(key);
    } else if (!ended.members.empty()) {
      answer = WithoutExceptions([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
        StatusOr<JoinCollectiveResponse> all = Complete(ended, env_.Random64());
        if (all.ok()) RememberMembers(KeyOf(ended.members.front().request), ended);
        return all;
      });
    }
  }
  if (!enters.ok()) {
    env_.StopTimer(timer);
    std::move(newcomer.reply)(enters);
  }
  if (!ended.members.empty()) Answer(std::move(ended), answer);
}

std::string CollectiveGroups::Missing(const Gathering& g) const {
  std::set<std::string> there;
  for (const Waiting& w : g.members) there.insert(w.request.device);
  const JoinCollectiveRequest& any = g.members.front().request;
  std::string text =
      absl::StrCat(there.size(), " of ", any.group_size, " members are there: ", absl::StrJoin(there, ", "));
  const auto known = known_.find(any.group_key);
  std::vector<std::string> missing;
  if (known != known_.end() && known->second.size() == static_cast<size_t>(any.group_size)) {
    for (const auto& [device, incarnation] : known->second) {
      if (!there.contains(device)) missing.push_back(device);
    }
  }
  const auto left = static_cast<size_t>(any.group_size) - there.size();
  if (missing.size() == left) return absl::StrCat(text, "; missing: ", absl::StrJoin(missing, ", "));
  return absl::StrCat(text, "; ", left, " missing, which have never come");
}

void CollectiveGroups::TimeOut(uint64_t member) {
  Gathering ended;
  Status why;
  {
    absl::MutexLock lock(&mu_);
    const Key* const key = Find(member);
    if (key == nullptr) return;
    ended = Take(Key(*key));
    why = WithoutExceptions([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      const JoinCollectiveRequest& any = ended.members.front().request;
      return DeadlineExceeded(
          Title(any), "after ", absl::FormatDuration(absl::Milliseconds(any.timeout_millis)), " ", Missing(ended));
    });
  }
  Answer(std::move(ended), why);
}

std::map<std::string, uint64_t> CollectiveGroups::AwaitedTasks() const {
  std::map<std::string, uint64_t> tasks;
  for (const auto& [key, gathering] : gatherings_) {
    const auto known = known_.find(std::get<0>(key));
    if (known == known_.end()) continue;
    for (const auto& [device, incarnation] : known->second) {
      if (IsThere(gathering, device)) continue;
      const StatusOr<DeviceName> name = DeviceName::Parse(device);
      if (name.ok()) tasks[TaskOf(*name)] = incarnation;
    }
  }
  return tasks;
}

// Without memory for it groups wait as long as they may.
void CollectiveGroups::WatchSoon() {
  if (is_watching_) return;
  is_watching_ = WithoutExceptions([&] {
                   env_.ScheduleAfter(kWatchPeriod, [weak = weak_from_this()] {
                     if (const auto self = weak.lock()) self->env_.Schedule([self] { self->Watch(); });
                   });
                   return absl::OkStatus();
                 }).ok();
}

void CollectiveGroups::Watch() {
  if (!gate_.Enter()) return;
  std::map<std::string, uint64_t> tasks;
  {
    absl::MutexLock lock(&mu_);
    is_watching_ = false;
    if (!gatherings_.empty()) WatchSoon();
    WithoutExceptions([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      tasks = AwaitedTasks();
      return absl::OkStatus();
    }).IgnoreError();
  }
  for (const auto& [task, incarnation] : tasks) Ask(task, incarnation);
  gate_.Leave();
}

// Without memory it is asked, or heard, again.
void CollectiveGroups::Ask(const std::string& task, uint64_t incarnation) {
  WorkerInterface* const worker = find_worker_(task);
  if (worker == nullptr) return;
  const Status asked = WithoutExceptions([&, this] {
    {
      absl::MutexLock lock(&mu_);
      if (!asked_.insert(task).second) return absl::OkStatus();  // it has not answered yet
    }
    worker->GetStatus({}, {}, [weak = weak_from_this(), task, incarnation](const StatusOr<GetStatusResponse>& status) {
      const auto self = weak.lock();
      if (self == nullptr) return;
      WithoutExceptions([&] {
        self->Heard(task, incarnation, status);
        return absl::OkStatus();
      }).IgnoreError();
    });
    return absl::OkStatus();
  });
  if (asked.ok()) return;
  absl::MutexLock lock(&mu_);
  asked_.erase(task);
}

void CollectiveGroups::Heard(const std::string& task, uint64_t incarnation, const StatusOr<GetStatusResponse>& status) {
  {
    absl::MutexLock lock(&mu_);
    asked_.erase(task);
  }
  Status why;
  if (!status.ok()) {
    why = Unavailable("a member is gone: ", status.status().message());
  } else if (status->incarnation != incarnation) {
    why = Aborted("a member is gone: task ", task, " was restarted");
  }
  if (why.ok()) return;
  std::vector<std::pair<Gathering, Status>> ended;
  {
    absl::MutexLock lock(&mu_);
    for (auto group = known_.begin(); group != known_.end();) {
      const auto is_gone = [&](const auto& member) {
        const StatusOr<DeviceName> name = DeviceName::Parse(member.first);
        return member.second == incarnation && name.ok() && TaskOf(*name) == task;
      };
      std::vector<std::string> gone;
      for (const auto& member : group->second) {
        if (is_gone(member)) gone.push_back(member.first);
      }
      std::vector<Key> failed;
      for (const auto& [key, gathering] : gatherings_) {
        const auto lacks = [&g = gathering](const std::string& device) { return !IsThere(g, device); };
        if (std::get<0>(key) == group->first && std::any_of(gone.begin(), gone.end(), lacks)) failed.push_back(key);
      }
      for (const std::string& device : gone) group->second.erase(device);  // which need not be told
      for (const Key& key : failed) {
        Gathering taken = Take(key);
        const Status told = Annotate(why, Title(taken.members.front().request));
        RememberFailure(key, taken, told);
        ended.emplace_back(std::move(taken), told);
      }
      // Who waits now waits for whoever comes.
      group = failed.empty() ? std::next(group) : known_.erase(group);
    }
  }
  for (auto& [gathering, told] : ended) Answer(std::move(gathering), told);
}

StatusOr<bool> CollectiveGroups::Leave(uint64_t member, const Status& why) {
  Gathering ended;
  Status told = why;
  {
    absl::MutexLock lock(&mu_);
    const Key* const key = Find(member);
    if (key == nullptr) {
      MR_RETURN_IF_ERROR(WithoutExceptions([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
        left_early_.emplace_back(member, why);
        if (left_early_.size() > kMaxLeftEarly) left_early_.pop_front();
        return absl::OkStatus();
      }));
      return false;
    }
    ended = Take(Key(*key));
    // Members are told at least why.
    WithoutExceptions([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      const JoinCollectiveRequest& any = ended.members.front().request;
      told = Annotate(why, Title(any));
      RememberFailure(KeyOf(any), ended, told);
      return absl::OkStatus();
    }).IgnoreError();
  }
  Answer(std::move(ended), told);
  return true;
}

void CollectiveGroups::Close(const Status& why) {
  std::map<Key, Gathering> all;
  {
    absl::MutexLock lock(&mu_);
    closed_ = why;
    all.swap(gatherings_);
  }
  for (auto& [key, gathering] : all) Answer(std::move(gathering), why);
  gate_.Close();
}

}  // namespace millrace
