// SPDX-License-Identifier: Apache-2.0
#include "service/collective_groups.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "base/exceptions.h"
#include "op/device_name.h"

namespace millrace {
namespace {

constexpr int64_t kMaxGroupSize = 1 << 16;
constexpr size_t kMaxGatherings = 10'000;
constexpr size_t kMaxLeftEarly = 1'000;
constexpr absl::Duration kFailureIsNews = absl::Seconds(30);

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
  for (const std::string& device : known->second) {
    if (!told.contains(device)) untold_.insert_or_assign({key, device}, untold);
  }
}

void CollectiveGroups::Answer(Gathering gathering, const StatusOr<JoinCollectiveResponse>& answer) {
  for (const Env::TimerId id : gathering.timers) env_.StopTimer(id);
  for (Waiting& w : gathering.members) std::move(w.reply)(answer);
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
Status CollectiveGroups::Enter(JoinCollectiveRequest& request, Gathering* failed) {
  const Key key = KeyOf(request);
  const auto early = std::find_if(
      left_early_.begin(), left_early_.end(), [&](const auto& gone) { return gone.first == request.member; });
  if (early != left_early_.end()) return early->second;
  if (const auto untold = untold_.extract({key, request.device}); !untold.empty()) {
    const Untold& failure = untold.mapped();
    const bool is_news = env_.MonotonicNanos() - failure.nanos < absl::ToInt64Nanoseconds(kFailureIsNews);
    if (is_news && !failure.sessions.contains(request.session)) return failure.why;
  }
  const auto at = gatherings_.find(key);
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

void CollectiveGroups::Join(JoinCollectiveRequest request, CancellationManager* cancellation,
                            Reply<JoinCollectiveResponse> reply) {
  const Status valid = WithoutExceptions([&]() -> Status {
    if (request.group_size < 1 || request.group_size > kMaxGroupSize) {
      return InvalidArgument(Title(request), "a group has 1 to ", kMaxGroupSize, " members, not ", request.group_size);
    }
    MR_ASSIGN_OR_RETURN(const DeviceName name, DeviceName::Parse(request.device));
    if (name.job.empty() || name.task < 0 || name.type.empty() || name.id < 0) {
      return InvalidArgument(Title(request), "'", request.device, "' is not the whole name of a device");
    }
    return absl::OkStatus();
  });
  if (!valid.ok()) return std::move(reply)(valid);
  const uint64_t member = request.member;
  const absl::Duration timeout = absl::Milliseconds(std::clamp<int64_t>(request.timeout_millis, 1, int64_t{1} << 40));
  const std::weak_ptr<CollectiveGroups> weak = weak_from_this();
  if (cancellation != nullptr) {  // which may be gone with the reply
    const auto token = cancellation->Register([weak, member, device = request.device] {
      if (const auto self = weak.lock()) self->Leave(member, Unavailable("member ", device, " is gone"));
    });
    if (token == CancellationManager::kInvalid) return std::move(reply)(Cancelled("the caller gave up"));
  }
  Gathering ended;
  StatusOr<JoinCollectiveResponse> answer = JoinCollectiveResponse();
  bool waits = false;
  {
    absl::MutexLock lock(&mu_);
    Status s = closed_;
    if (s.ok()) s = Enter(request, &ended);
    if (!s.ok()) {
      ended.members.push_back({std::move(request), std::move(reply)});
      answer = s;
    } else {
      const Key key = KeyOf(request);
      Gathering& g = gatherings_[key];
      const auto size = static_cast<size_t>(request.group_size);
      g.members.push_back({std::move(request), std::move(reply)});
      waits = g.members.size() < size;
      if (!waits) {
        ended = Take(key);
        answer = Complete(ended, env_.Random64());
        if (answer.ok()) {
          std::set<std::string>& known = known_[ended.members.front().request.group_key];
          known.clear();
          for (const Waiting& w : ended.members) untold_.erase({key, w.request.device});
          for (const CollectiveMember& m : answer->members) known.insert(m.device);
          if (known_.size() > kMaxGatherings) known_.erase(known_.begin());
        }
      }
    }
  }
  if (!waits) return Answer(std::move(ended), answer);
  const Env::TimerId timer = env_.ScheduleAfter(timeout, [weak, member] {
    if (const auto self = weak.lock()) self->env_.Schedule([self, member] { self->TimeOut(member); });
  });
  bool is_there = false;
  {
    absl::MutexLock lock(&mu_);
    if (const Key* key = Find(member)) {
      gatherings_[*key].timers.push_back(timer);
      is_there = true;
    }
  }
  if (!is_there) env_.StopTimer(timer);
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
    std::set_difference(
        known->second.begin(), known->second.end(), there.begin(), there.end(), std::back_inserter(missing));
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
    const JoinCollectiveRequest& any = ended.members.front().request;
    why = DeadlineExceeded(
        Title(any), "after ", absl::FormatDuration(absl::Milliseconds(any.timeout_millis)), " ", Missing(ended));
  }
  Answer(std::move(ended), why);
}

bool CollectiveGroups::Leave(uint64_t member, const Status& why) {
  Gathering ended;
  Status told;
  {
    absl::MutexLock lock(&mu_);
    const Key* const key = Find(member);
    if (key == nullptr) {
      left_early_.emplace_back(member, why);
      if (left_early_.size() > kMaxLeftEarly) left_early_.pop_front();
      return false;
    }
    ended = Take(Key(*key));
    told = Annotate(why, Title(ended.members.front().request));
    RememberFailure(KeyOf(ended.members.front().request), ended, told);
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
}

}  // namespace millrace
