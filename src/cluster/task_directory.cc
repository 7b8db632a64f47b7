// SPDX-License-Identifier: Apache-2.0
#include "cluster/task_directory.h"

#include "cluster/local_servers.h"
#include "cluster/remote_worker.h"

namespace millrace {
namespace {

// A master that ends does so with the workers of its process: they need not watch it.
void FromThisProcess(CreateWorkerSessionRequest* request) { request->lease_millis = 0; }
void FromThisProcess(void*) {}

void CallBy(const std::string& task, const wire::ClusterDef& cluster, CreateWorkerSessionRequest* request) {
  request->task = task;
  request->cluster = cluster;
}
void CallBy(const std::string&, const wire::ClusterDef&, void*) {}

}  // namespace

// Looks for the task's server anew with each call: it may not be there yet, or again.
class TaskDirectory::TaskWorker final : public WorkerInterface {
 public:
  TaskWorker(std::string task, const HostPort& address, Channels* channels, bool all_by_messages,
             const wire::ClusterDef& of_sessions)
      : task_(std::move(task)),
        address_(address),
        all_by_messages_(all_by_messages),
        of_sessions_(of_sessions),
        remote_(task_, address.ToString(), channels) {}
  const std::string& task() const override { return task_; }
  void Close() { remote_.Close(); }

#define MR_PASS_ON(Method, Request, Response)                                                                    \
  void Method(const CallOptions& call, Request request, Reply<Response> reply) override {                        \
    LocalServers::Hold server;                                                                                   \
    if (!all_by_messages_) server = LocalServers::Get().Find(address_);                                          \
    const bool has_other_name = !of_sessions_.job.empty();                                                       \
    if (has_other_name) CallBy(task_, of_sessions_, &request);                                                   \
    if (!server || (server->task != task_ && !has_other_name)) {                                                 \
      return remote_.Method(call, std::move(request), std::move(reply));                                         \
    }                                                                                                            \
    FromThisProcess(&request);                                                                                   \
    WorkerInterface* const worker = server->worker;                                                              \
    worker->Method(call, std::move(request),                                                                     \
                   [reply = std::move(reply), server = std::move(server)](StatusOr<Response> response) mutable { \
                     std::move(reply)(std::move(response));                                                      \
                   });                                                                                           \
  }
  MR_WORKER_METHODS(MR_PASS_ON)
#undef MR_PASS_ON

  void SetDead(const Status& why) override { remote_.SetDead(why); }

  // Never: what it lends would outlive the server.
  std::shared_ptr<InlinePartition> FindInline(const SessionRef&, int64_t) override { return nullptr; }

 private:
  const std::string task_;
  const HostPort address_;
  const bool all_by_messages_;
  const wire::ClusterDef of_sessions_;
  RemoteWorker remote_;
};

TaskDirectory::TaskDirectory(const ClusterSpec& cluster, const std::string& own_task, Channels* channels,
                             bool all_by_messages, const wire::ClusterDef& of_sessions)
    : own_task_(own_task),
      channels_(channels),
      all_by_messages_(all_by_messages),
      leader_(cluster.tasks().front().name()) {
  for (const char* job : {"worker", "master", "chief"}) {
    if (const ClusterTask* t = cluster.Find(job, 0)) leader_ = t->name();
  }
  for (const ClusterTask& t : cluster.tasks()) {
    const HostPort address = ParseHostPort(t.address).value_or(HostPort());  // the cluster has been checked
    addresses_.insert(AddressKey(address));
    if (t.name() == own_task && of_sessions.job.empty()) continue;
    others_.push_back(std::make_unique<TaskWorker>(t.name(), address, channels, all_by_messages, of_sessions));
    if (t.name() == own_task) own_ = others_.back().get();
  }
}

TaskDirectory::~TaskDirectory() { Close(); }

void TaskDirectory::Close() {
  std::vector<TaskDirectory*> of_sessions;
  {
    absl::MutexLock lock(&mu_);
    for (const auto& [key, own] : of_sessions_) of_sessions.push_back(own.directory.get());
  }
  for (TaskDirectory* d : of_sessions) d->Close();
  for (const auto& w : others_) w->Close();
}

WorkerInterface* TaskDirectory::Find(absl::string_view task) {
  if (task == own_task_) return own_;
  for (const auto& w : others_) {
    if (w->task() == task) return w.get();
  }
  return nullptr;
}

std::vector<WorkerInterface*> TaskDirectory::All() const {
  std::vector<WorkerInterface*> all = {own_};
  for (const auto& w : others_) {
    if (w.get() != own_) all.push_back(w.get());
  }
  return all;
}

void TaskDirectory::KeepSessionsWithin(const HostPort& own) {
  absl::MutexLock lock(&mu_);
  keeps_within_ = true;
  addresses_.insert(AddressKey(own));
}

void TaskDirectory::EndUnused() {
  std::vector<std::shared_ptr<TaskDirectory>> unused;
  absl::MutexLock lock(&mu_);
  for (auto at = of_sessions_.begin(); at != of_sessions_.end();) {
    // Only Find makes a second holder of one.
    const bool is_unused = at->second.directory.use_count() == 1 && !std::exchange(at->second.is_new, false);
    if (is_unused) unused.push_back(std::move(at->second.directory));
    at = is_unused ? of_sessions_.erase(at) : std::next(at);
  }
}

StatusOr<std::shared_ptr<TaskDirectory>> TaskDirectory::Find(
    const wire::ClusterDef& cluster, const std::string& own_task) {
  constexpr size_t kMostClusters = 100;
  constexpr size_t kMostTasks = 10'000;
  MR_ASSIGN_OR_RETURN(const ClusterSpec spec, ClusterSpec::Make(cluster));
  if (spec.tasks().size() > kMostTasks) {
    return ResourceExhausted(
        "a session's cluster has ", spec.tasks().size(), " tasks; at most ", kMostTasks, " are allowed");
  }
  bool has_own = false;
  std::string key = own_task;
  for (const ClusterTask& t : spec.tasks()) {
    has_own |= t.name() == own_task;
    absl::StrAppend(&key, "\n", t.name(), " ", t.address);
  }
  if (!has_own) return InvalidArgument("the session's cluster has no task ", own_task);
  absl::MutexLock lock(&mu_);
  for (const ClusterTask& t : spec.tasks()) {
    MR_ASSIGN_OR_RETURN(const HostPort address, ParseHostPort(t.address));
    if (keeps_within_ && !addresses_.contains(AddressKey(address))) {
      return PermissionDenied(
          "a session's cluster has ", t.name(), " at ", address.ToString(), ", which is no address of the cluster of ",
          own_task_, "; MILLRACE_ALLOW_ANY_CLUSTER=1 for the server (--allow-any-cluster) would allow it");
    }
  }
  if (const auto at = of_sessions_.find(key); at != of_sessions_.end()) {
    at->second.is_new = true;
    return at->second.directory;
  }
  if (of_sessions_.size() >= kMostClusters) {
    return ResourceExhausted("the server's sessions have ", kMostClusters, " clusters of their own already");
  }
  const auto made = std::make_shared<TaskDirectory>(spec, own_task, channels_, all_by_messages_, cluster);
  of_sessions_.emplace(std::move(key), OfSessions{made});
  return made;
}

StatusOr<std::shared_ptr<WorkerDirectory>> TaskDirectory::Of(
    const wire::ClusterDef& cluster, const std::string& own_task) {
  return Find(cluster, own_task);
}

StatusOr<std::shared_ptr<TaskDirectory>> TaskDirectory::AllOf(const wire::ClusterDef& cluster, const HostPort& own) {
  MR_ASSIGN_OR_RETURN(const ClusterSpec spec, ClusterSpec::Make(cluster));
  std::vector<std::string> here;
  for (const ClusterTask& t : spec.tasks()) {
    MR_ASSIGN_OR_RETURN(const HostPort address, ParseHostPort(t.address));
    if (AddressKey(address) == AddressKey(own)) here.push_back(t.name());
  }
  if (here.size() != 1) {
    return InvalidArgument("ConfigProto.cluster_def has ", here.size(), " tasks at ", own.ToString(),
                           ", the address of the session's server; want 1");
  }
  return Find(cluster, here.front());
}

}  // namespace millrace
