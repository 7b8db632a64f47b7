// SPDX-License-Identifier: Apache-2.0
// What the leader does: it gathers the members of groups. Nothing is kept of a round once it has begun but who the
// members of a group were, to say next time who is missing.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "base/env.h"
#include "service/step_functions.h"
#include "service/worker_interface.h"

namespace millrace {

// By job, task, type and number.
Status SortByRank(std::vector<CollectiveMember>* members);

// Thread-safe. Where memory runs out in a join, its group fails with ResourceExhausted.
class CollectiveGroups : public std::enable_shared_from_this<CollectiveGroups> {
 public:
  // The worker of a task; null: there is none, or it is that of the leader itself. Called until Close returns.
  using FindWorker = std::function<WorkerInterface*(const std::string& task)>;
  CollectiveGroups(Env& env, FindWorker find_worker) : env_(env), find_worker_(std::move(find_worker)), gate_(env) {}

  // Answers all members when the last has come. InvalidArgument for all when two contradict each other, naming both;
  // DeadlineExceeded when one has waited for as long as it wants, naming who is there and who is not; Aborted when one
  // has left. A message that a network brings twice counts once. `cancellation` (may be null) says that the member is
  // gone. Who comes to a group only after it has failed, as another session's member of it, is told so too, once: it
  // would wait for members that have given up.
  // While a group waits for members that it had before, their workers are asked each second whether they live: one that
  // is gone, or was restarted, fails the group, with Unavailable or Aborted.
  void Join(JoinCollectiveRequest request, CancellationManager* cancellation, Reply<JoinCollectiveResponse> reply);
  // The group that waits for more than this member fails with `why`. False: there is no such member.
  StatusOr<bool> Leave(uint64_t member, const Status& why);
  // Fails what waits, and what comes.
  void Close(const Status& why);

 private:
  using Key = std::tuple<int64_t, int64_t, int64_t>;  // group, instance, iteration
  static Key KeyOf(const JoinCollectiveRequest& m) { return {m.group_key, m.instance_key, m.iteration}; }
  struct Waiting {
    JoinCollectiveRequest request;
    Reply<JoinCollectiveResponse> reply;
    Env::TimerId timer = 0;
  };
  struct Gathering {
    std::vector<Waiting> members;  // not empty while it is gathered
  };
  struct Untold {
    Status why;
    std::set<uint64_t> sessions;  // that have been told
    int64_t nanos = 0;            // when it failed
  };
  static bool IsThere(const Gathering& gathering, const std::string& device);
  static StatusOr<JoinCollectiveResponse> Complete(const Gathering& all, uint64_t round);
  Status Begin(const JoinCollectiveRequest& request, CancellationManager* cancellation, Env::TimerId* timer);
  // The newcomer becomes a member; *ended is its group if it is the last. An error: it becomes none, and *ended has the
  // same error.
  Status Enter(Waiting& newcomer, Gathering* ended) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Status Check(const JoinCollectiveRequest& request, Gathering* failed) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Waiting& AddSeat(const Key& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void RememberMembers(const Key& key, const Gathering& all) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void TimeOut(uint64_t member);
  std::string Missing(const Gathering& g) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Gathering Take(const Key& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void RememberFailure(const Key& key, const Gathering& failed, const Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The tasks of members that groups wait for, with their incarnations.
  std::map<std::string, uint64_t> AwaitedTasks() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void WatchSoon() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Watch();
  void Ask(const std::string& task, uint64_t incarnation);
  void Heard(const std::string& task, uint64_t incarnation, const StatusOr<GetStatusResponse>& status);
  void Answer(Gathering gathering, const StatusOr<JoinCollectiveResponse>& answer);
  const Key* Find(uint64_t member) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  Env& env_;
  const FindWorker find_worker_;
  CallGate gate_;  // of Watch
  absl::Mutex mu_;
  Status closed_ ABSL_GUARDED_BY(mu_);
  std::map<Key, Gathering> gatherings_ ABSL_GUARDED_BY(mu_);
  std::deque<uint64_t> have_come_ ABSL_GUARDED_BY(mu_);  // members; the latest only
  // The devices of groups that were complete, and the incarnations of their workers.
  std::map<int64_t, std::map<std::string, uint64_t>> known_ ABSL_GUARDED_BY(mu_);
  bool is_watching_ ABSL_GUARDED_BY(mu_) = false;
  std::set<std::string> asked_ ABSL_GUARDED_BY(mu_);  // tasks that have not answered yet whether they live
  // What members of complete groups are still to be told, by instance and device.
  std::map<std::pair<Key, std::string>, Untold> untold_ ABSL_GUARDED_BY(mu_);
  // The session that was told last, since the last complete round.
  std::map<std::pair<Key, std::string>, uint64_t> last_told_ ABSL_GUARDED_BY(mu_);
  std::deque<std::pair<uint64_t, Status>> left_early_ ABSL_GUARDED_BY(mu_);  // before they came; the latest only
};

}  // namespace millrace
