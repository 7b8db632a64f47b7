// SPDX-License-Identifier: Apache-2.0
#include "service/worker_group.h"

#include <set>
#include <utility>

#include "base/exceptions.h"

namespace millrace {
namespace {

// The same worker twice would run each step's message twice.
Status CheckDistinct(const std::vector<WorkerInterface*>& workers) {
  std::set<absl::string_view> tasks;
  for (const WorkerInterface* w : workers) {
    if (!tasks.insert(w->task()).second) return InvalidArgument("worker ", w->task(), " is given twice");
  }
  return workers.empty() ? InvalidArgument("there are no workers") : absl::OkStatus();
}

Status GivenUp() {
  return WithoutExceptions([] { return Cancelled("nobody waits for the workers' sessions any more"); });
}

void DeleteSession(WorkerInterface& worker, const SessionRef& session) {
  worker.DeleteSession({}, {session}, [](const StatusOr<DeleteWorkerSessionResponse>&) {});
}

}  // namespace

struct WorkerGroup::State {
  State(std::vector<WorkerInterface*> all, uint64_t id, absl::Duration of_sessions, bool isolates,
        SessionSettings of_all)
      : workers(std::move(all)),
        session(id),
        lease(of_sessions),
        isolates_state(isolates),
        settings(std::move(of_all)),
        checked(CheckDistinct(workers)),
        known(workers.size()) {}

  void BeginEpoch() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  Status Keep(size_t w, int64_t of_epoch, StatusOr<CreateWorkerSessionResponse> response);
  StatusOr<WorkerViewPtr> MakeView();

  const std::vector<WorkerInterface*> workers;
  const uint64_t session;
  const absl::Duration lease;
  const bool isolates_state;
  const SessionSettings settings;
  const Status checked;
  absl::Mutex mu;
  bool is_deleted ABSL_GUARDED_BY(mu) = false;
  int64_t epoch ABSL_GUARDED_BY(mu) = 0;
  // Without devices: the worker has no session of this epoch. Without a worker: it never had one.
  std::vector<WorkerView::Of> known ABSL_GUARDED_BY(mu);
  WorkerViewPtr view ABSL_GUARDED_BY(mu);
};

// What the workers have answered to one Connect.
struct WorkerGroup::Connecting {
  explicit Connecting(std::shared_ptr<State> of) : state(std::move(of)) {}
  void Answer(size_t w, StatusOr<CreateWorkerSessionResponse> response) {
    Status s = WithoutExceptions([&] { return state->Keep(w, epoch, std::move(response)); });
    {
      absl::MutexLock lock(&mu);
      if (first.ok()) first = std::move(s);
      if (--left > 0) return;
      s = first;
    }
    Finish(s.ok() ? WithoutExceptions([&] { return state->MakeView(); }) : StatusOr<WorkerViewPtr>(std::move(s)));
  }
  void Finish(StatusOr<WorkerViewPtr> result) {
    Connected once;
    {
      absl::MutexLock lock(&mu);
      once = std::exchange(done, nullptr);
    }
    if (once) std::move(once)(std::move(result));
  }

  const std::shared_ptr<State> state;
  int64_t epoch = 0;  // constant once workers are asked
  absl::Mutex mu;
  size_t left ABSL_GUARDED_BY(mu) = 0;
  Status first ABSL_GUARDED_BY(mu);    // failure
  Connected done ABSL_GUARDED_BY(mu);  // null once it has run
};

WorkerGroup::WorkerGroup(std::vector<WorkerInterface*> workers, uint64_t session, absl::Duration lease,
                         bool isolates_state, SessionSettings settings)
    : state_(std::make_shared<State>(std::move(workers), session, lease, isolates_state, std::move(settings))) {}

void WorkerGroup::Connect(CancellationManager* cancellation, Connected done) {
  State& state = *state_;
  if (!state.checked.ok()) return std::move(done)(state.checked);
  std::shared_ptr<Connecting> connecting;
  std::vector<std::pair<size_t, Reply<CreateWorkerSessionResponse>>> asked;
  const Status s = WithoutExceptions([&]() -> Status {
    connecting = std::make_shared<Connecting>(state_);
    absl::MutexLock lock(&state.mu);
    if (state.is_deleted) return Cancelled("the session is closed");
    connecting->epoch = state.epoch;
    for (size_t w = 0; w < state.workers.size(); ++w) {
      if (!state.known[w].devices.empty()) continue;
      asked.emplace_back(w, [connecting, w](StatusOr<CreateWorkerSessionResponse> response) {
        connecting->Answer(w, std::move(response));
      });
    }
    return absl::OkStatus();
  });
  if (!s.ok()) return std::move(done)(s);
  if (asked.empty()) return std::move(done)(WithoutExceptions([&] { return state.MakeView(); }));
  {
    absl::MutexLock lock(&connecting->mu);
    connecting->left = asked.size();
    connecting->done = std::move(done);
  }
  if (cancellation != nullptr) {
    const auto give_up = [weak = std::weak_ptr(connecting)] {
      if (const auto c = weak.lock()) c->Finish(GivenUp());
    };
    StatusOr<CancellationManager::Token> token =
        WithoutExceptions([&] { return StatusOr<CancellationManager::Token>(cancellation->Register(give_up)); });
    if (!token.ok() || *token == CancellationManager::kInvalid) {
      return connecting->Finish(token.ok() ? GivenUp() : token.status());
    }
  }
  // The answer tells which session there is: it is not given up, even when nobody waits for it any more.
  for (auto& [w, reply] : asked) {
    const int64_t lease = w == 0 ? 0 : absl::ToInt64Milliseconds(state.lease);
    state.workers[w]->CreateSession(
        {}, {state.session, connecting->epoch, lease, state.isolates_state, {}, "", state.settings}, std::move(reply));
  }
}

void WorkerGroup::State::BeginEpoch() {
  ++epoch;
  for (WorkerView::Of& of : known) of.devices.clear();
}

Status WorkerGroup::State::Keep(size_t w, int64_t of_epoch, StatusOr<CreateWorkerSessionResponse> response) {
  WorkerInterface& worker = *workers[w];
  if (absl::IsAborted(response.status())) {
    // It made the session, which has ended since, and we were not told: no other session of this epoch will be made.
    // Who has a view finds that out by its steps, and drops it with the epoch (Forget).
    absl::MutexLock lock(&mu);
    if (!is_deleted && of_epoch == epoch && view == nullptr) BeginEpoch();
  }
  if (!response.ok()) return Annotate(response.status(), absl::StrCat("worker ", worker.task(), ": "));
  const SessionRef made{session, response->incarnation, of_epoch};
  if (response->devices.empty()) {
    DeleteSession(worker, made);
    return Internal("worker ", worker.task(), " has no devices");
  }
  {
    absl::MutexLock lock(&mu);
    if (!is_deleted && of_epoch != epoch) return Aborted("a worker was lost while the session was made");
    if (!is_deleted) {
      known[w] = {&worker, made, std::move(response->devices)};
      return absl::OkStatus();
    }
  }
  DeleteSession(worker, made);
  return Cancelled("the session is closed");
}

StatusOr<WorkerViewPtr> WorkerGroup::State::MakeView() {
  absl::MutexLock lock(&mu);
  if (is_deleted) return Cancelled("the session is closed");
  if (view) return view;
  auto made = std::make_shared<WorkerView>();
  made->workers = known;
  for (size_t w = 0; w < known.size(); ++w) {
    if (known[w].devices.empty()) return Aborted("worker ", workers[w]->task(), " has lost its session again");
    for (const DeviceInfo& d : known[w].devices) {
      if (made->worker_of_device.emplace(d.name, w).second) continue;
      return InvalidArgument("two workers have device ", d.name);
    }
  }
  view = std::move(made);
  return view;
}

WorkerViewPtr WorkerGroup::view() const {
  absl::MutexLock lock(&state_->mu);
  return state_->view;
}

bool WorkerGroup::Forget(WorkerInterface* worker, const SessionRef& session) {
  WorkerViewPtr dropped;
  absl::MutexLock lock(&state_->mu);
  for (WorkerView::Of& k : state_->known) {
    if (k.worker != worker || k.session != session || k.devices.empty()) continue;
    state_->BeginEpoch();
    dropped = std::exchange(state_->view, nullptr);
    return true;
  }
  return false;
}

std::vector<std::pair<WorkerInterface*, SessionRef>> WorkerGroup::Sessions() const {
  std::vector<std::pair<WorkerInterface*, SessionRef>> all;
  absl::MutexLock lock(&state_->mu);
  for (size_t w = 0; w < state_->known.size(); ++w) all.emplace_back(state_->workers[w], state_->known[w].session);
  return all;
}

void WorkerGroup::Delete() {
  std::vector<WorkerView::Of> known;
  WorkerViewPtr dropped;
  {
    absl::MutexLock lock(&state_->mu);
    state_->is_deleted = true;
    known.swap(state_->known);
    dropped = std::exchange(state_->view, nullptr);
  }
  for (const WorkerView::Of& k : known) {
    if (k.worker != nullptr) DeleteSession(*k.worker, k.session);
  }
}

}  // namespace millrace
