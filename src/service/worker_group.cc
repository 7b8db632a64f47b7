// SPDX-License-Identifier: Apache-2.0
#include "service/worker_group.h"

#include <utility>

#include "base/exceptions.h"

namespace millrace {

WorkerGroup::WorkerGroup(std::vector<WorkerInterface*> workers, uint64_t session, bool node_by_node)
    : workers_(std::move(workers)), session_(session), node_by_node_(node_by_node), known_(workers_.size()) {}

struct WorkerGroup::Connecting {
  std::vector<size_t> asked;
  std::vector<StatusOr<CreateWorkerSessionResponse>> responses;  // of those
  absl::Mutex mu;
  size_t left ABSL_GUARDED_BY(mu) = 0;
  absl::AnyInvocable<void(Status) &&> done;
};

void WorkerGroup::Connect(const CallOptions& call, absl::AnyInvocable<void(Status) &&> done) {
  const auto connecting = std::make_shared<Connecting>();
  {
    absl::MutexLock lock(&mu_);
    for (size_t w = 0; w < workers_.size(); ++w) {
      if (known_[w].devices.empty()) connecting->asked.push_back(w);
    }
  }
  if (connecting->asked.empty()) return std::move(done)(absl::OkStatus());
  const size_t n = connecting->asked.size();
  connecting->responses.resize(n, CreateWorkerSessionResponse{});
  connecting->done = std::move(done);
  {
    absl::MutexLock lock(&connecting->mu);
    connecting->left = n;
  }
  for (size_t i = 0; i < n; ++i) {
    workers_[connecting->asked[i]]->CreateSession(
        call, {session_, node_by_node_}, [this, connecting, i](StatusOr<CreateWorkerSessionResponse> response) {
          {
            absl::MutexLock lock(&connecting->mu);
            connecting->responses[i] = std::move(response);
            if (--connecting->left > 0) return;
          }
          const Status s = WithoutExceptions([&] { return Keep(connecting->responses, connecting->asked); });
          std::move(connecting->done)(s);
        });
  }
}

Status WorkerGroup::Keep(std::vector<StatusOr<CreateWorkerSessionResponse>>& responses,
                         const std::vector<size_t>& asked) {
  for (size_t i = 0; i < asked.size(); ++i) {
    if (!responses[i].ok())
      return Annotate(responses[i].status(), absl::StrCat("worker ", workers_[asked[i]]->task(), ": "));
    if (responses[i]->devices.empty()) return Internal("worker ", workers_[asked[i]]->task(), " has no devices");
  }
  absl::MutexLock lock(&mu_);
  for (size_t i = 0; i < asked.size(); ++i) {
    const size_t w = asked[i];
    known_[w] = {workers_[w], {session_, responses[i]->incarnation}, std::move(responses[i]->devices)};
  }
  auto view = std::make_shared<WorkerView>();
  view->workers = known_;
  for (size_t w = 0; w < known_.size(); ++w) {
    if (known_[w].devices.empty()) return Aborted("worker ", workers_[w]->task(), " has lost its session again");
    for (const DeviceInfo& d : known_[w].devices) {
      if (view->worker_of_device.emplace(d.name, w).second) continue;
      return InvalidArgument("two workers have device ", d.name);
    }
  }
  view_ = std::move(view);
  return absl::OkStatus();
}

WorkerViewPtr WorkerGroup::view() const {
  absl::MutexLock lock(&mu_);
  return view_;
}

bool WorkerGroup::Forget(WorkerInterface* worker, const SessionRef& session) {
  WorkerViewPtr dropped;
  absl::MutexLock lock(&mu_);
  for (WorkerView::Of& k : known_) {
    if (k.worker != worker || k.session != session || k.devices.empty()) continue;
    k.devices.clear();
    dropped = std::exchange(view_, nullptr);
    return true;
  }
  return false;
}

void WorkerGroup::Delete() {
  std::vector<WorkerView::Of> known;
  {
    absl::MutexLock lock(&mu_);
    known = std::exchange(known_, std::vector<WorkerView::Of>(workers_.size()));
    view_ = nullptr;
  }
  for (const WorkerView::Of& k : known) {
    if (k.devices.empty()) continue;
    k.worker->DeleteSession({}, {k.session}, [](const StatusOr<DeleteWorkerSessionResponse>&) {});
  }
}

}  // namespace millrace
