// SPDX-License-Identifier: Apache-2.0
// What ends sessions and steps of a worker that their masters have not ended: resets, and silence.
#include <algorithm>

#include "base/logging.h"
#include "base/pool_env.h"
#include "service/answer.h"
#include "service/worker.h"

namespace millrace {
namespace {

// How long a step that was named waits for its master's message.
constexpr absl::Duration kUnbegunLife = absl::Seconds(60);

}  // namespace

void Worker::ClearContainers(const std::vector<std::string>& containers) {
  for (const auto& d : env_.devices) {
    if (containers.empty()) d->resources().ClearAll();
    for (const std::string& c : containers) d->resources().Clear(c);
  }
}

void Worker::Reset(const CallOptions&, ResetRequest request, Reply<ResetResponse> reply) {
  // Answered by the last session whose steps have ended.
  struct Resetting {
    Worker* worker = nullptr;
    ResetRequest request;
    Reply<ResetResponse> reply;
    absl::Mutex mu;
    size_t left ABSL_GUARDED_BY(mu) = 1;  // this function
    Status failure ABSL_GUARDED_BY(mu);
    void Begin() {
      absl::MutexLock lock(&mu);
      ++left;
    }
    void End(Status s) {
      {
        absl::MutexLock lock(&mu);
        if (failure.ok()) failure = std::move(s);
        if (--left > 0) return;
        s = failure;
      }
      Answer(std::move(reply), [&]() -> StatusOr<ResetResponse> {
        MR_RETURN_IF_ERROR(s);
        worker->ClearContainers(request.containers);
        return ResetResponse{};
      });
    }
  };
  std::vector<SessionPtr> sessions, ended;
  std::shared_ptr<Resetting> resetting;
  Status why;
  const Status s = WithoutExceptions([&] {
    resetting = std::make_shared<Resetting>();
    const auto closed = [&](const char* what) {
      return absl::StrCat(what, ": the containers of worker ", task(), " were reset");
    };
    why = request.closes_all ? Cancelled(closed("the session was closed")) : Aborted(closed("its state is gone"));
    absl::MutexLock lock(&mu_);
    for (const auto& [id, session] : sessions_) {
      if (!request.closes_all && !session->Uses(request.containers)) continue;
      sessions.push_back(session);
      ended_.Add(id, session->epoch());
    }
    const size_t present = sessions.size();
    // What steps of others still do would be seen by whoever uses the containers next.
    ended = EndingSessions();
    for (const SessionPtr& session : ended) {
      if (session && (request.closes_all || session->Uses(request.containers))) sessions.push_back(session);
    }
    // Those of other masters, which know nothing of this, are made again when they ask for it.
    for (size_t i = 0; i < present && !request.closes_all; ++i) {
      ending_.push_back({sessions[i]});
      sessions_.erase(sessions[i]->id());
    }
    return absl::OkStatus();
  });
  ended.clear();
  if (!s.ok()) return std::move(reply)(s);
  resetting->worker = this;
  resetting->request = std::move(request);
  resetting->reply = std::move(reply);
  for (SessionPtr& session : sessions) {
    resetting->Begin();
    StepTable::Callbacks idle;
    Status closed = WithoutExceptions([&] {
      session->Close(why);
      idle = session->steps().WhenIdle([resetting] { resetting->End(absl::OkStatus()); });
      return absl::OkStatus();
    });
    session = nullptr;
    if (!closed.ok()) resetting->End(std::move(closed));
    for (auto& callback : idle) std::move(callback)();
  }
  resetting->End(absl::OkStatus());
}

void Worker::Heartbeat(const CallOptions&, HeartbeatRequest request, Reply<HeartbeatResponse> reply) {
  Answer(std::move(reply), [&]() -> StatusOr<HeartbeatResponse> {
    HeartbeatResponse response{incarnation_, {}};
    for (const SessionRef& ref : request.sessions) {
      // One whose lease has run out does not come back: its master may have been told already that it is gone.
      const StatusOr<SessionPtr> session = Find(ref, Epochs::kEarlierToo);
      session.ok() ? (*session)->HearOfMaster() : response.lost.push_back(ref.session);
    }
    return response;
  });
}

Status Worker::EndLostSession(const SessionPtr& session) {
  const Status why = WithoutExceptions([&] {
    return Aborted("session ", absl::Hex(session->id(), absl::kZeroPad16), " has ended on worker ", task(),
                   ": nothing was heard of its master for longer than its lease");
  });
  {
    absl::MutexLock lock(&mu_);
    const auto at = sessions_.find(session->id());
    if (at == sessions_.end() || at->second != session) return why;
    ended_.Add(session->id(), session->epoch());
    ending_.push_back({session, /*is_lost=*/true});
    sessions_.erase(at);
  }
  LogWarning(why.message());
  session->Close(why);
  return why;
}

std::vector<Worker::SessionPtr> Worker::EndingSessions() {
  std::vector<SessionPtr> sessions;  // also those that have ended: let go where no lock is held
  std::erase_if(ending_, [&](const Ending& e) {
    const SessionPtr& session = sessions.emplace_back(e.session.lock());
    return !session || session->steps().num_running() == 0;
  });
  return sessions;
}

size_t Worker::num_lost_ending() {
  std::vector<SessionPtr> sessions;
  absl::MutexLock lock(&mu_);
  sessions = EndingSessions();
  return static_cast<size_t>(std::count_if(ending_.begin(), ending_.end(), [](const Ending& e) { return e.is_lost; }));
}

std::vector<Worker::SessionPtr> Worker::Sessions() const {
  std::vector<SessionPtr> sessions;
  absl::ReaderMutexLock lock(&mu_);
  for (const auto& [id, session] : sessions_) sessions.push_back(session);
  return sessions;
}

std::vector<std::string> Worker::DescribeSteps() {
  std::vector<std::string> lines;
  for (const SessionPtr& session : Sessions()) {
    for (const auto& [id, step] : session->steps().Open()) step->Describe(&lines);
  }
  return lines;
}

std::vector<std::string> Worker::DescribeStalledSteps(absl::Duration patience) {
  std::vector<std::string> lines;
  const int64_t now = EnvOf(env_.pool()).MonotonicNanos();
  for (const SessionPtr& session : Sessions()) {
    for (const auto& [id, step] : session->steps().Open()) {
      if (step->HasStalled(now, absl::ToInt64Nanoseconds(patience))) step->Describe(&lines);
    }
  }
  return lines;
}

void Worker::EndLost() {
  const std::vector<SessionPtr> sessions = Sessions();
  const int64_t now = EnvOf(env_.pool()).MonotonicNanos();
  for (const SessionPtr& session : sessions) {
    if (session->IsLost()) {
      EndLostSession(session).IgnoreError();
      continue;
    }
    for (const auto& [id, step] : session->steps().DropUnbegun(now - absl::ToInt64Nanoseconds(kUnbegunLife))) {
      step->Abort(NotFound("step ", id, " is not known on worker ", task(), ": its master has not begun it within ",
                           absl::FormatDuration(kUnbegunLife)));
    }
    for (const auto& [id, step] : session->steps().Open()) step->AskForMissing();
  }
  num_lost_ending();
}

}  // namespace millrace
