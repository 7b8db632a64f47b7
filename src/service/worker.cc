// SPDX-License-Identifier: Apache-2.0
#include "service/worker.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/exceptions.h"
#include "base/pool_env.h"
#include "base/stopwatch.h"
#include "service/answer.h"
#include "service/collectives.h"
#include "service/inline_plan.h"
#include "service/session_devices.h"

namespace millrace {
namespace {

// Of all masters together.
constexpr size_t kMostSessions = 4000;

// For who answers later, in a callback that may not come to be for want of memory: then the first who answers does.
template <typename Response>
std::shared_ptr<Reply<Response>> Share(Reply<Response>& reply) {
  auto held = std::make_shared<Reply<Response>>();
  *held = std::move(reply);
  return held;
}
template <typename Response>
void AnswerOnce(Reply<Response>& reply, StatusOr<Response> response) {
  if (Reply<Response> once = std::exchange(reply, nullptr)) std::move(once)(std::move(response));
}

// StrFormat ends the process where memory runs out.
auto Hex(uint64_t n) { return absl::Hex(n, absl::kZeroPad16); }

}  // namespace

Worker::Worker(std::vector<std::unique_ptr<Device>> devices, const KernelRegistry* kernels, WorkerDirectory* peers,
               uint64_t incarnation)
    : incarnation_(incarnation), env_(std::move(devices), kernels, peers) {
  env_.collectives = std::make_shared<Collectives>(env_, incarnation);
}

Worker::~Worker() {
  std::map<uint64_t, SessionPtr> sessions;
  {
    absl::MutexLock lock(&mu_);
    sessions.swap(sessions_);
  }
  const Status why = WithoutExceptions([&] { return Cancelled("worker ", task(), " ends"); });
  for (const auto& [id, session] : sessions) session->Close(why);
  env_.collectives->Close(why);
  sessions.clear();
}

StatusOr<Worker::SessionPtr> Worker::Find(const SessionRef& ref, Epochs epochs) {
  if (ref.incarnation != incarnation_) {
    return Aborted("worker ", task(), " was restarted: the message is for incarnation ", Hex(ref.incarnation),
                   ", this is ", Hex(incarnation_));
  }
  SessionPtr session;
  {
    absl::ReaderMutexLock lock(&mu_);
    const auto at = sessions_.find(ref.session);
    if (at != sessions_.end()) session = at->second;
  }
  if (!session) return Aborted("worker ", task(), " has no session ", Hex(ref.session), ", or no longer");
  if (session->IsLost()) return EndLostSession(session);
  MR_RETURN_IF_ERROR(session->steps().closed());
  const int64_t present = session->epoch();
  if (ref.epoch != present && (epochs == Epochs::kPresent || ref.epoch > present)) {
    return Aborted("worker ", task(), " has session ", Hex(ref.session), " in epoch ", present,
                   ", the message is of epoch ", ref.epoch);
  }
  return session;
}

StatusOr<std::shared_ptr<WorkerStep>> Worker::FindStep(const StepRef& ref, bool runs) {
  return WithoutExceptions([&]() -> StatusOr<std::shared_ptr<WorkerStep>> {
    MR_ASSIGN_OR_RETURN(const SessionPtr session, Find(ref.session, runs ? Epochs::kPresent : Epochs::kEarlierToo));
    if (ref.session.epoch < session->epoch()) {
      if (std::shared_ptr<WorkerStep> open = session->steps().FindOpen(ref.step)) return open;
      return Aborted("step ", ref.step, " of epoch ", ref.session.epoch, " is not open on worker ", task(),
                     ", which is in epoch ", session->epoch());
    }
    const auto make = [&] { return std::make_shared<WorkerStep>(session, ref.step); };
    if (runs) return session->steps().Begin(ref.step, make);
    return session->steps().FindOrMake(ref.step, EnvOf(env_.pool()).MonotonicNanos(), make);
  });
}

StatusOr<Worker::SessionPtr> Worker::FindOrMakeSession(const CreateWorkerSessionRequest& request) {
  SessionPtr present;
  {
    absl::MutexLock lock(&mu_);
    const auto at = sessions_.find(request.session);
    if (at != sessions_.end()) present = at->second;
  }
  if (present && present->IsLost()) {
    EndLostSession(present).IgnoreError();
    present = nullptr;
  }
  if (present) return present;
  {
    absl::ReaderMutexLock lock(&mu_);
    if (sessions_.size() >= kMostSessions) {
      return ResourceExhausted(
          "worker ", task(), " has ", sessions_.size(), " sessions of masters, the most that it may; close some");
    }
  }
  MR_ASSIGN_OR_RETURN(std::unique_ptr<WorkerEnv> own, EnvOfSession(request));
  const auto made = std::make_shared<WorkerSession>(env_, request.session, std::move(own), request.settings);
  absl::MutexLock lock(&mu_);
  if (ended_.Has(request.session, request.epoch)) {
    return Aborted("session ", Hex(request.session), " of epoch ", request.epoch, " has ended on worker ", task(),
                   ": it is not made again");
  }
  return sessions_.try_emplace(request.session, made).first->second;
}

// Null: the session has the worker's.
StatusOr<std::unique_ptr<WorkerEnv>> Worker::EnvOfSession(const CreateWorkerSessionRequest& request) {
  const bool has_cluster = !request.cluster.job.empty();
  if (!has_cluster && !request.isolates_state) return nullptr;
  std::shared_ptr<WorkerDirectory> peers;
  if (has_cluster) {
    if (!env_.peers)
      return Unimplemented("worker ", task(), " reaches no others: its sessions have no cluster of their own");
    MR_ASSIGN_OR_RETURN(peers, env_.peers->Of(request.cluster, request.task));
  }
  MR_ASSIGN_OR_RETURN(std::vector<std::unique_ptr<Device>> devices,
                      DevicesOfSession(env_.devices, has_cluster ? request.task : "", request.isolates_state));
  auto own = std::make_unique<WorkerEnv>(std::move(devices), env_.kernels, peers ? peers.get() : env_.peers);
  own->own_peers = std::move(peers);
  if (!has_cluster) own->collectives = env_.collectives;
  return own;
}

void Worker::CreateSession(const CallOptions&, CreateWorkerSessionRequest request,
                           Reply<CreateWorkerSessionResponse> reply) {
  Answer(std::move(reply), [&]() -> StatusOr<CreateWorkerSessionResponse> {
    EndLost();
    // What they still do must not be seen by whoever comes next.
    if (const size_t n = num_lost_ending(); n > 0) {
      return Unavailable("worker ", task(), " still ends the steps of ", n, " sessions that have lost their masters");
    }
    MR_ASSIGN_OR_RETURN(const SessionPtr session, FindOrMakeSession(request));
    MR_RETURN_IF_ERROR(session->steps().closed());
    if (request.epoch < session->epoch()) {
      return Aborted("worker ", task(), " has session ", Hex(request.session), " in epoch ", session->epoch(),
                     ", the message is of epoch ", request.epoch);
    }
    session->BeginEpoch(request.epoch);
    session->HearOfMaster(absl::Milliseconds(request.lease_millis));
    return CreateWorkerSessionResponse{incarnation_, session->env().DeviceInfos()};
  });
}

void Worker::DeleteSession(const CallOptions&, DeleteWorkerSessionRequest request,
                           Reply<DeleteWorkerSessionResponse> reply) {
  std::shared_ptr<Reply<DeleteWorkerSessionResponse>> held;
  StepTable::Callbacks idle;
  const Status s = WithoutExceptions([&] {
    held = Share(reply);
    const auto answer = [held] {
      AnswerOnce(*held, StatusOr<DeleteWorkerSessionResponse>(DeleteWorkerSessionResponse{}));
    };
    SessionPtr session;
    if (request.session.incarnation == incarnation_) {
      absl::MutexLock lock(&mu_);
      const auto at = sessions_.find(request.session.session);
      // One of a later epoch is not what was meant.
      if (at != sessions_.end() && at->second->epoch() <= request.session.epoch) session = at->second;
    }
    if (!session) {  // it is gone, which is what was asked for
      idle.emplace_back(answer);
      return absl::OkStatus();
    }
    {
      absl::MutexLock lock(&mu_);  // first: there may be no memory for it
      ended_.Add(session->id(), session->epoch());
      ending_.push_back({session});
    }
    session->Close(Cancelled("the session was deleted on worker ", task()));
    idle = session->steps().WhenIdle(answer);
    absl::MutexLock lock(&mu_);
    const auto at = sessions_.find(session->id());
    if (at != sessions_.end() && at->second == session) sessions_.erase(at);  // its master may have made it again
    return absl::OkStatus();
  });
  if (!s.ok()) return AnswerOnce(held ? *held : reply, StatusOr<DeleteWorkerSessionResponse>(s));
  for (auto& callback : idle) std::move(callback)();
}

void Worker::RegisterPartitions(const CallOptions& call, RegisterPartitionsRequest request,
                                Reply<RegisterPartitionsResponse> reply) {
  Answer(std::move(reply), [&]() -> StatusOr<RegisterPartitionsResponse> {
    MR_ASSIGN_OR_RETURN(const SessionPtr session, Find(request.session));
    return session->Register(std::move(request.partitions), call.stop_compiling);
  });
}

void Worker::DeregisterPartitions(const CallOptions&, DeregisterPartitionsRequest request,
                                  Reply<DeregisterPartitionsResponse> reply) {
  Answer(std::move(reply), [&]() -> StatusOr<DeregisterPartitionsResponse> {
    MR_ASSIGN_OR_RETURN(const SessionPtr session, Find(request.session, Epochs::kEarlierToo));
    session->Deregister(request.handles);
    return DeregisterPartitionsResponse{};
  });
}

void Worker::RunStep(const CallOptions& call, RunStepRequest request, Reply<RunStepResponse> reply) {
  if (request.over.IsOver(request.step.step)) {
    return std::move(reply)(InvalidArgument("step ", request.step.step, " is to run and is said to be over"));
  }
  StatusOr<std::shared_ptr<WorkerStep>> step = FindStep(request.step, /*runs=*/true);
  if (!step.ok()) return std::move(reply)(step.status());
  if (request.over.next > 0) {
    CleanUpSteps({}, {request.step.session, std::move(request.over)}, [](const StatusOr<CleanUpStepsResponse>&) {});
  }
  WorkerStep::Run(*std::move(step), call, std::move(request), std::move(reply));
}

void Worker::AbortStep(const CallOptions&, AbortStepRequest request, Reply<AbortStepResponse> reply) {
  Answer(std::move(reply), [&]() -> StatusOr<AbortStepResponse> {
    MR_ASSIGN_OR_RETURN(const std::shared_ptr<WorkerStep> step, FindStep(request.step, /*runs=*/false));
    step->Abort(request.why);
    return AbortStepResponse{};
  });
}

void Worker::CleanUpSteps(const CallOptions&, CleanUpStepsRequest request, Reply<CleanUpStepsResponse> reply) {
  Answer(std::move(reply), [&]() -> StatusOr<CleanUpStepsResponse> {
    MR_ASSIGN_OR_RETURN(const SessionPtr session, Find(request.session, Epochs::kEarlierToo));
    const Status over = Aborted("the step is over");
    for (const auto& [id, step] : session->steps().Drop(std::move(request.horizon))) step->Abort(over);
    return CleanUpStepsResponse{};
  });
}

void Worker::RecvTensor(const CallOptions&, RecvTensorRequest request, Reply<RecvTensorResponse> reply) {
  std::shared_ptr<Reply<RecvTensorResponse>> held;
  const Status s = WithoutExceptions([&]() -> Status {
    const StatusOr<std::shared_ptr<WorkerStep>> step = FindStep(request.step, /*runs=*/false);
    if (!step.ok()) return Annotate(step.status(), absl::StrCat("edge ", request.key.edge, " is not sent: "));
    held = Share(reply);
    (*step)->sent_here().RecvAsync(request.key.ToString(), [held](const Status& received, Tensor value, bool is_dead) {
      AnswerOnce(*held, received.ok() ? RecvTensorResponse{{std::move(value), is_dead}}
                                      : StatusOr<RecvTensorResponse>(received));
    });
    return absl::OkStatus();
  });
  if (!s.ok()) AnswerOnce(held ? *held : reply, StatusOr<RecvTensorResponse>(s));
}

void Worker::SendTensor(const CallOptions&, SendTensorRequest request, Reply<SendTensorResponse> reply) {
  Answer(std::move(reply), [&]() -> StatusOr<SendTensorResponse> {
    MR_ASSIGN_OR_RETURN(const std::shared_ptr<WorkerStep> step, FindStep(request.step, /*runs=*/false));
    MR_RETURN_IF_ERROR(step->Push(request.key, std::move(request.tensor)));
    return SendTensorResponse{};
  });
}

namespace {

// What a client of a partial run waits for. Lives until the last answer.
struct Exchange {
  absl::Mutex mu;
  size_t left ABSL_GUARDED_BY(mu) = 0;
  Status first ABSL_GUARDED_BY(mu);
  ExchangeTensorsResponse response ABSL_GUARDED_BY(mu);
  Reply<ExchangeTensorsResponse> reply ABSL_GUARDED_BY(mu);

  void Answer(const Status& s, size_t i, ReceivedTensor tensor) {
    StatusOr<ExchangeTensorsResponse> result = ExchangeTensorsResponse{};
    Reply<ExchangeTensorsResponse> done;
    {
      absl::MutexLock lock(&mu);
      if (first.ok()) first = s;
      if (i < response.fetches.size()) response.fetches[i] = std::move(tensor);
      if (--left > 0) return;
      first.ok() ? result = std::move(response) : result = first;
      done = std::move(reply);
    }
    std::move(done)(std::move(result));
  }
};

}  // namespace

void Worker::ExchangeTensors(const CallOptions&, ExchangeTensorsRequest request, Reply<ExchangeTensorsResponse> reply) {
  std::shared_ptr<Exchange> exchange;
  size_t asked = 0;
  const Status s = WithoutExceptions([&]() -> Status {
    MR_ASSIGN_OR_RETURN(const std::shared_ptr<WorkerStep> step, FindStep(request.step, /*runs=*/false));
    for (ExchangeTensorsRequest::Feed& feed : request.feeds) {
      MR_RETURN_IF_ERROR(step->sent_here().Send(EdgeKey{feed.edge}.ToString(), std::move(feed.value), false));
    }
    const auto made = std::make_shared<Exchange>();
    {
      absl::MutexLock lock(&made->mu);
      made->response.fetches.resize(request.fetches.size());
      made->left = request.fetches.size() + 1;  // this function too
      made->reply = std::move(reply);
    }
    exchange = made;
    for (; asked < request.fetches.size(); ++asked) {
      const std::string key = EdgeKey{request.fetches[asked]}.ToString();
      step->sent_here().RecvAsync(key, [exchange, i = asked](const Status& got, Tensor value, bool is_dead) {
        exchange->Answer(got, i, {std::move(value), is_dead});
      });
    }
    return absl::OkStatus();
  });
  if (!exchange) return std::move(reply)(s);
  for (; asked < request.fetches.size(); ++asked) exchange->Answer(s, asked, {});
  exchange->Answer(s, request.fetches.size(), {});
}

void Worker::GetStatus(const CallOptions&, GetStatusRequest, Reply<GetStatusResponse> reply) {
  Answer(std::move(reply), [&]() -> StatusOr<GetStatusResponse> {
    absl::MutexLock lock(&mu_);
    return GetStatusResponse{
        task(), incarnation_, env_.DeviceInfos(), static_cast<int64_t>(sessions_.size()), RealNanos()};
  });
}

void Worker::GetRandomPositions(const CallOptions&, GetRandomPositionsRequest request,
                                Reply<GetRandomPositionsResponse> reply) {
  Answer(std::move(reply), [&]() -> StatusOr<GetRandomPositionsResponse> {
    MR_ASSIGN_OR_RETURN(const SessionPtr session, Find(request.session));
    GetRandomPositionsResponse response;
    session->GetRandomPositions(&response.positions);
    return response;
  });
}

void Worker::SetRandomPositions(const CallOptions&, SetRandomPositionsRequest request,
                                Reply<SetRandomPositionsResponse> reply) {
  Answer(std::move(reply), [&]() -> StatusOr<SetRandomPositionsResponse> {
    MR_ASSIGN_OR_RETURN(const SessionPtr session, Find(request.session));
    session->SetRandomPositions(request.positions);
    return SetRandomPositionsResponse{};
  });
}

void Worker::JoinCollective(const CallOptions& call, JoinCollectiveRequest request,
                            Reply<JoinCollectiveResponse> reply) {
  env_.collectives->Join(call, std::move(request), std::move(reply));
}

void Worker::RecvCollective(const CallOptions& call, RecvCollectiveRequest request,
                            Reply<RecvCollectiveResponse> reply) {
  env_.collectives->Recv(call, request, std::move(reply));
}

void Worker::AbortCollective(const CallOptions&, AbortCollectiveRequest request, Reply<AbortCollectiveResponse> reply) {
  Answer(std::move(reply), [&]() -> StatusOr<AbortCollectiveResponse> {
    MR_RETURN_IF_ERROR(env_.collectives->Abort(request));
    return AbortCollectiveResponse{};
  });
}

std::shared_ptr<InlinePartition> Worker::FindInline(const SessionRef& ref, int64_t handle) {
  const StatusOr<SessionPtr> session = Find(ref);
  if (!session.ok()) return nullptr;
  StatusOr<RegisteredPartition> found = (*session)->Find(handle);
  if (!found.ok() || found->space != nullptr || !found->plan->is_one_line()) return nullptr;
  return NewInlinePlan(*std::move(found), **session);
}

}  // namespace millrace
