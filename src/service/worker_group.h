// SPDX-License-Identifier: Apache-2.0
// The workers of a session, as its master knows them.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "service/worker_interface.h"

namespace millrace {

// What the master knew of its workers when it compiled something. Constant.
struct WorkerView {
  struct Of {
    WorkerInterface* worker = nullptr;
    SessionRef session;
    std::vector<DeviceInfo> devices;
  };
  std::vector<Of> workers;
  std::map<std::string, size_t> worker_of_device;
};
using WorkerViewPtr = std::shared_ptr<const WorkerView>;

// Thread-safe. Outlives its calls.
class WorkerGroup {
 public:
  // `session`: the number under which workers know it. The workers outlive the group.
  WorkerGroup(std::vector<WorkerInterface*> workers, uint64_t session, bool node_by_node);

  // Creates the session on each worker that has none, and asks what devices it has.
  void Connect(const CallOptions& call, absl::AnyInvocable<void(Status) &&> done);
  // Null until all workers have a session.
  WorkerViewPtr view() const;
  // Forgets a session that its worker does not know any more. False: it was forgotten before.
  bool Forget(WorkerInterface* worker, const SessionRef& session);
  // Ends the session on all workers, and waits for no answer.
  void Delete();

 private:
  struct Connecting;
  Status Keep(std::vector<StatusOr<CreateWorkerSessionResponse>>& responses, const std::vector<size_t>& asked);

  const std::vector<WorkerInterface*> workers_;
  const uint64_t session_;
  const bool node_by_node_;
  mutable absl::Mutex mu_;
  std::vector<WorkerView::Of> known_ ABSL_GUARDED_BY(mu_);  // without devices: the worker has no session
  WorkerViewPtr view_ ABSL_GUARDED_BY(mu_);
};

}  // namespace millrace
