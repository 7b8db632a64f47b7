// SPDX-License-Identifier: Apache-2.0
#include "cluster/remote_worker.h"

#include "base/exceptions.h"
#include "cluster/worker_codec.h"

namespace millrace {
namespace {

// What does not wait for a graph to run is answered soon, or never.
constexpr absl::Duration kControlTimeout = absl::Seconds(30);
constexpr absl::Duration kCompileTimeout = absl::Minutes(10);

template <typename Request>
constexpr absl::Duration TimeoutOf() {
  if constexpr (std::is_same_v<Request, RunStepRequest> || std::is_same_v<Request, RecvTensorRequest> ||
                std::is_same_v<Request, ExchangeTensorsRequest> || std::is_same_v<Request, JoinCollectiveRequest> ||
                std::is_same_v<Request, RecvCollectiveRequest>) {
    return absl::InfiniteDuration();  // an abort ends the step or the round, and these with it
  } else if constexpr (std::is_same_v<Request, RegisterPartitionsRequest>) {
    return kCompileTimeout;
  } else {
    return kControlTimeout;
  }
}

}  // namespace

RemoteWorker::RemoteWorker(std::string task, std::string address, Channels* channels)
    : task_(std::move(task)), address_(std::move(address)), channels_(channels) {}

RemoteWorker::~RemoteWorker() { Close(); }

void RemoteWorker::Close() {
  CallsUnderWay all;
  {
    absl::MutexLock lock(&mu_);
    is_closed_ = true;
    all = under_way_;
  }
  for (const auto& call : all) call->cancellation.Cancel(Cancelled("this process has done with it"));
  const auto none = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return under_way_.empty(); };
  absl::MutexLock lock(&mu_);
  channels_->env().Await(mu_, absl::Condition(&none));
}

std::shared_ptr<RemoteWorker::CallUnderWay> RemoteWorker::Begin(CancellationManager* of_caller, bool is_heartbeat) {
  auto call = std::make_shared<CallUnderWay>();
  call->is_heartbeat = is_heartbeat;
  if (of_caller != nullptr) {  // which is gone, or does not care, once there is a reply
    const auto token = of_caller->Register([of_caller, weak = std::weak_ptr(call)] {
      if (const auto c = weak.lock()) c->cancellation.Cancel(of_caller->reason());
    });
    if (token == CancellationManager::kInvalid) call->cancellation.Cancel(of_caller->reason());
  }
  absl::MutexLock lock(&mu_);
  if (is_closed_) return nullptr;
  call->number = next_call_++;
  under_way_.insert(call);
  return call;
}

void RemoteWorker::End(const std::shared_ptr<CallUnderWay>& call) {
  absl::MutexLock lock(&mu_);
  under_way_.erase(call);
}

Status RemoteWorker::dead() const {
  absl::MutexLock lock(&mu_);
  return dead_;
}

void RemoteWorker::SetDead(const Status& why) {
  std::vector<std::shared_ptr<CallUnderWay>> given_up;
  {
    absl::MutexLock lock(&mu_);
    dead_ = why;
    for (const auto& call : under_way_) {
      if (!why.ok() && !call->is_heartbeat) given_up.push_back(call);
    }
  }
  for (const auto& call : given_up) call->cancellation.Cancel(why);
}

Status RemoteWorker::Annotated(const Status& s) const {
  return Annotate(s, absl::StrCat("task ", task_, " at ", address_, ": "));
}

Status RemoteWorker::TellLater(CleanUpStepsRequest request) {
  return WithoutExceptions([&] {
    absl::MutexLock lock(&mu_);
    CleanUpStepsRequest& known = to_tell_[request.session.session];
    if (known.horizon.IsOlderThan(request.horizon)) known = std::move(request);
    return absl::OkStatus();
  });
}

StepHorizon RemoteWorker::TakeToTell(const SessionRef& session) {
  absl::MutexLock lock(&mu_);
  const auto known = to_tell_.extract(session.session);
  return known.empty() ? StepHorizon{} : std::move(known.mapped().horizon);
}

void RemoteWorker::TellNow() {
  std::map<uint64_t, CleanUpStepsRequest> all;
  {
    absl::MutexLock lock(&mu_);
    all.swap(to_tell_);
  }
  for (auto& [session, request] : all) {
    SendNow<CleanUpStepsRequest, CleanUpStepsResponse>(
        "Worker.CleanUpSteps", kControlTimeout, {}, std::move(request), [](const StatusOr<CleanUpStepsResponse>&) {});
  }
}

template <typename Request>
Status RemoteWorker::Tell(const char* method, Request& request) {
  return WithoutExceptions([&]() -> Status {
    MR_RETURN_IF_ERROR(dead());
    MR_ASSIGN_OR_RETURN(RpcChannel * channel, channels_->Get(address_));
    MR_ASSIGN_OR_RETURN(absl::Cord frame, EncodeMessage(request));
    channel->Tell(method, std::move(frame));
    return absl::OkStatus();
  });
}

template <typename Request, typename Response>
void RemoteWorker::Send(const char* method, absl::Duration timeout, const CallOptions& options, Request request,
                        Reply<Response> reply) {
  if constexpr (std::is_same_v<Request, SendTensorRequest>) {
    const Status s = Tell(method, request);
    return s.ok() ? std::move(reply)(Response{}) : std::move(reply)(s);
  }
  if constexpr (std::is_same_v<Request, CleanUpStepsRequest>) {
    const Status s = TellLater(std::move(request));
    return s.ok() ? std::move(reply)(Response{}) : std::move(reply)(s);
  }
  if constexpr (std::is_same_v<Request, RunStepRequest>) request.over = TakeToTell(request.step.session);
  if constexpr (std::is_same_v<Request, DeleteWorkerSessionRequest>) TakeToTell(request.session);
  if constexpr (std::is_same_v<Request, HeartbeatRequest>) TellNow();
  SendNow(method, timeout, options, std::move(request), std::move(reply));
}

template <typename Request, typename Response>
void RemoteWorker::SendNow(const char* method, absl::Duration timeout, const CallOptions& options, Request request,
                           Reply<Response> reply) {
  RpcChannel* channel = nullptr;
  absl::Cord frame;
  std::shared_ptr<CallUnderWay> call;
  constexpr bool kIsHeartbeat = std::is_same_v<Request, HeartbeatRequest>;
  const Status s = WithoutExceptions([&]() -> Status {
    MR_ASSIGN_OR_RETURN(channel, channels_->Get(address_));
    MR_ASSIGN_OR_RETURN(frame, EncodeMessage(request));
    call = Begin(options.cancellation, kIsHeartbeat);
    if (!call) return Unavailable("this process has done with it");
    Status dead = kIsHeartbeat ? absl::OkStatus() : this->dead();
    if (!dead.ok()) End(call);
    return dead;
  });
  // Without a transport there is a way only when the task comes to this process.
  if (absl::IsUnimplemented(s) && channel == nullptr) return std::move(reply)(Annotated(Unavailable(s.message())));
  if (!s.ok()) return std::move(reply)(Annotated(s));
  channel->Call(method, {timeout, &call->cancellation}, std::move(frame),
                [this, call, reply = std::move(reply)](StatusOr<absl::Cord> answer) mutable {
                  Response response;
                  Status got = answer.status();
                  if (got.ok()) {
                    got = WithoutExceptions([&] { return DecodeMessage(*answer, nullptr, &response); });
                  }
                  if (absl::IsCancelled(got) && call->cancellation.IsCancelled()) got = call->cancellation.reason();
                  got.ok() ? std::move(reply)(std::move(response)) : std::move(reply)(Annotated(got));
                  End(call);
                });
}

#define MR_DEFINE(Method, Request, Response)                                                   \
  void RemoteWorker::Method(const CallOptions& call, Request request, Reply<Response> reply) { \
    Send("Worker." #Method, TimeoutOf<Request>(), call, std::move(request), std::move(reply)); \
  }
MR_WORKER_METHODS(MR_DEFINE)
#undef MR_DEFINE

}  // namespace millrace
