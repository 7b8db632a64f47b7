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

// Thread-safe. Answers of workers may come when it is gone: a session that is made too late is deleted.
class WorkerGroup {
 public:
  // `session`: the number under which workers know it. The workers outlive the group and all answers. `lease` (0: none)
  // is of the sessions on all workers but the first, which is of the master's own process.
  // `isolates_state`: variables and other resources are the session's.
  WorkerGroup(std::vector<WorkerInterface*> workers, uint64_t session, absl::Duration lease = absl::ZeroDuration(),
              bool isolates_state = false, SessionSettings settings = {});
  ~WorkerGroup() { Delete(); }

  // Creates the session on each worker that has none, and asks what devices it has. A worker that fails is named; what
  // the others have made is kept for the next time. `done` runs once, without a wait when `cancellation` (may be null)
  // is cancelled.
  using Connected = absl::AnyInvocable<void(StatusOr<WorkerViewPtr>) &&>;
  void Connect(CancellationManager* cancellation, Connected done);
  // Null until all workers have a session.
  WorkerViewPtr view() const;
  // The worker does not know its session any more: a new epoch begins with the next Connect, which speaks to all of
  // them. False: it had begun before.
  bool Forget(WorkerInterface* worker, const SessionRef& session);
  // Each worker, with what it knows the session as; without an incarnation: it has not had it yet.
  std::vector<std::pair<WorkerInterface*, SessionRef>> Sessions() const;
  // Ends the session on all workers, and waits for no answer. What comes later is refused.
  void Delete();

 private:
  struct State;
  struct Connecting;
  const std::shared_ptr<State> state_;
};

}  // namespace millrace
