// SPDX-License-Identifier: Apache-2.0
#include "cluster/task_directory.h"

#include "cluster/local_servers.h"
#include "cluster/remote_worker.h"

namespace millrace {
namespace {

// A master that ends does so with the workers of its process: they need not watch it.
void FromThisProcess(CreateWorkerSessionRequest* request) { request->lease_millis = 0; }
void FromThisProcess(void*) {}

}  // namespace

// Looks for the task's server anew with each call: it may not be there yet, or again.
class TaskDirectory::TaskWorker final : public WorkerInterface {
 public:
  TaskWorker(std::string task, const HostPort& address, Channels* channels, bool all_by_messages)
      : task_(std::move(task)),
        address_(address),
        all_by_messages_(all_by_messages),
        remote_(task_, address.ToString(), channels) {}
  const std::string& task() const override { return task_; }
  void Close() { remote_.Close(); }

#define MR_PASS_ON(Method, Request, Response)                                                                    \
  void Method(const CallOptions& call, Request request, Reply<Response> reply) override {                        \
    LocalServers::Hold server;                                                                                   \
    if (!all_by_messages_) server = LocalServers::Get().Find(address_);                                          \
    if (!server || server->task != task_) return remote_.Method(call, std::move(request), std::move(reply));     \
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
  RemoteWorker remote_;
};

TaskDirectory::TaskDirectory(const ClusterSpec& cluster, const std::string& own_task, Channels* channels,
                             bool all_by_messages)
    : own_task_(own_task), leader_(cluster.tasks().front().name()) {
  for (const char* job : {"worker", "master", "chief"}) {
    if (const ClusterTask* t = cluster.Find(job, 0)) leader_ = t->name();
  }
  for (const ClusterTask& t : cluster.tasks()) {
    if (t.name() == own_task) continue;
    const HostPort address = ParseHostPort(t.address).value_or(HostPort());  // the cluster has been checked
    others_.push_back(std::make_unique<TaskWorker>(t.name(), address, channels, all_by_messages));
  }
}

TaskDirectory::~TaskDirectory() { Close(); }

void TaskDirectory::Close() {
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
  for (const auto& w : others_) all.push_back(w.get());
  return all;
}

}  // namespace millrace
