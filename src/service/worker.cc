// SPDX-License-Identifier: Apache-2.0
#include "service/worker.h"

#include <atomic>

#include "absl/strings/str_format.h"
#include "base/exceptions.h"
#include "service/inline_plan.h"

namespace millrace {
namespace {

// Answers with what `work` returns, a StatusOr, or what it throws.
template <typename Response, typename Work>
void Answer(Reply<Response> reply, Work work) {
  StatusOr<Response> response = WithoutExceptions([&]() -> StatusOr<Response> { return work(); });
  std::move(reply)(std::move(response));
}

std::string Hex(uint64_t n) { return absl::StrFormat("%016x", n); }

}  // namespace

Worker::Worker(std::vector<std::unique_ptr<Device>> devices, const KernelRegistry* kernels, WorkerDirectory* peers,
               uint64_t incarnation)
    : incarnation_(incarnation), env_(std::move(devices), kernels, peers) {}

Worker::~Worker() {
  std::map<uint64_t, SessionPtr> sessions;
  {
    absl::MutexLock lock(&mu_);
    sessions.swap(sessions_);
  }
  for (const auto& [id, session] : sessions) session->Close(Cancelled("worker ", task(), " ends"));
  sessions.clear();
}

StatusOr<Worker::SessionPtr> Worker::Find(const SessionRef& ref) const {
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
  MR_RETURN_IF_ERROR(session->steps().closed());
  return session;
}

StatusOr<std::shared_ptr<WorkerStep>> Worker::FindStep(const StepRef& ref, bool runs) const {
  return WithoutExceptions([&]() -> StatusOr<std::shared_ptr<WorkerStep>> {
    MR_ASSIGN_OR_RETURN(const SessionPtr session, Find(ref.session));
    const auto make = [&] { return std::make_shared<WorkerStep>(session, ref.step); };
    return runs ? session->steps().Begin(ref.step, make) : session->steps().FindOrMake(ref.step, make);
  });
}

void Worker::CreateSession(const CallOptions&, CreateWorkerSessionRequest request,
                           Reply<CreateWorkerSessionResponse> reply) {
  Answer(std::move(reply), [&]() -> StatusOr<CreateWorkerSessionResponse> {
    SessionPtr session;
    {
      absl::MutexLock lock(&mu_);
      SessionPtr& at = sessions_[request.session];
      if (!at) at = std::make_shared<WorkerSession>(env_, request.session, request.node_by_node);
      session = at;
    }
    MR_RETURN_IF_ERROR(session->steps().closed());
    return CreateWorkerSessionResponse{incarnation_, env_.DeviceInfos()};
  });
}

void Worker::DeleteSession(const CallOptions&, DeleteWorkerSessionRequest request,
                           Reply<DeleteWorkerSessionResponse> reply) {
  SessionPtr session;
  if (request.session.incarnation == incarnation_) {
    absl::MutexLock lock(&mu_);
    const auto at = sessions_.find(request.session.session);
    if (at != sessions_.end()) {
      session = std::move(at->second);
      sessions_.erase(at);
    }
  }
  if (!session) return std::move(reply)(DeleteWorkerSessionResponse{});  // it is gone, which is what was asked for
  session->Close(Cancelled("the session was deleted on worker ", task()));
  session->steps().WhenIdle([reply = std::move(reply)]() mutable { std::move(reply)(DeleteWorkerSessionResponse{}); });
}

void Worker::RegisterPartitions(const CallOptions& call, RegisterPartitionsRequest request,
                                Reply<RegisterPartitionsResponse> reply) {
  Answer(std::move(reply), [&]() -> StatusOr<RegisterPartitionsResponse> {
    MR_ASSIGN_OR_RETURN(const SessionPtr session, Find(request.session));
    MR_ASSIGN_OR_RETURN(
        std::vector<int64_t> handles, session->Register(std::move(request.partitions), call.stop_compiling));
    return RegisterPartitionsResponse{std::move(handles)};
  });
}

void Worker::DeregisterPartitions(const CallOptions&, DeregisterPartitionsRequest request,
                                  Reply<DeregisterPartitionsResponse> reply) {
  Answer(std::move(reply), [&]() -> StatusOr<DeregisterPartitionsResponse> {
    MR_ASSIGN_OR_RETURN(const SessionPtr session, Find(request.session));
    session->Deregister(request.handles);
    return DeregisterPartitionsResponse{};
  });
}

void Worker::RunStep(const CallOptions& call, RunStepRequest request, Reply<RunStepResponse> reply) {
  StatusOr<std::shared_ptr<WorkerStep>> step = FindStep(request.step, /*runs=*/true);
  if (!step.ok()) return std::move(reply)(step.status());
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
    MR_ASSIGN_OR_RETURN(const SessionPtr session, Find(request.session));
    for (const auto& step : session->steps().Drop(std::move(request.horizon))) step->Abort(Aborted("the step is over"));
    return CleanUpStepsResponse{};
  });
}

void Worker::RecvTensor(const CallOptions&, RecvTensorRequest request, Reply<RecvTensorResponse> reply) {
  const StatusOr<std::shared_ptr<WorkerStep>> step = FindStep(request.step, /*runs=*/false);
  if (!step.ok()) {
    return std::move(reply)(Annotate(step.status(), absl::StrCat("edge ", request.key.edge, " is not sent: ")));
  }
  (*step)->sent_here().RecvAsync(
      request.key.ToString(), [reply = std::move(reply)](const Status& s, Tensor value, bool is_dead) mutable {
        if (!s.ok()) return std::move(reply)(s);
        std::move(reply)(RecvTensorResponse{{std::move(value), is_dead}});
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
    exchange = std::make_shared<Exchange>();
    {
      absl::MutexLock lock(&exchange->mu);
      exchange->left = request.fetches.size() + 1;  // this function too
      exchange->response.fetches.resize(request.fetches.size());
      exchange->reply = std::move(reply);
    }
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
    return GetStatusResponse{task(), incarnation_, env_.DeviceInfos(), static_cast<int64_t>(sessions_.size())};
  });
}

void Worker::ClearContainers(const std::vector<std::string>& containers) {
  for (const auto& d : env_.devices) {
    if (containers.empty()) d->resources().ClearAll();
    for (const std::string& c : containers) d->resources().Clear(c);
  }
}

void Worker::Reset(const CallOptions&, ResetRequest request, Reply<ResetResponse> reply) {
  // Answered by the last session whose steps have ended.
  struct Resetting {
    std::atomic<size_t> left{1};  // this function
    Worker* worker;
    ResetRequest request;
    Reply<ResetResponse> reply;
    void Next() {
      if (left.fetch_sub(1) > 1) return;
      worker->ClearContainers(request.containers);
      std::move(reply)(ResetResponse{});
    }
  };
  std::vector<SessionPtr> sessions;
  {
    absl::MutexLock lock(&mu_);
    for (const auto& [id, session] : sessions_) sessions.push_back(session);
  }
  auto resetting = std::make_shared<Resetting>();
  resetting->worker = this;
  resetting->request = std::move(request);
  resetting->reply = std::move(reply);
  for (const SessionPtr& session : sessions) {
    session->Close(Cancelled("the session was closed: the containers of worker ", task(), " were reset"));
    resetting->left.fetch_add(1);
    session->steps().WhenIdle([resetting] { resetting->Next(); });
  }
  sessions.clear();
  resetting->Next();
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

std::shared_ptr<InlinePartition> Worker::FindInline(const SessionRef& ref, int64_t handle) {
  const StatusOr<SessionPtr> session = Find(ref);
  if (!session.ok()) return nullptr;
  StatusOr<RegisteredPartition> found = (*session)->Find(handle);
  if (!found.ok() || found->space != nullptr || !found->plan->is_one_line()) return nullptr;
  return NewInlinePlan(std::move(found->plan), (*session)->is_closed());
}

}  // namespace millrace
