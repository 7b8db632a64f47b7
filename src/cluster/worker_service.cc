// SPDX-License-Identifier: Apache-2.0
#include "cluster/worker_service.h"

#include <atomic>

#include "base/exceptions.h"
#include "cluster/worker_codec.h"
#include "kernel/stop_node.h"
#include "service/worker_methods.h"

namespace millrace {

namespace {

// A reply that several may want to give: the first does.
class FirstReply {
 public:
  explicit FirstReply(RpcReply reply) : reply_(std::move(reply)) {}
  void operator()(StatusOr<absl::Cord> answer) {
    if (!is_given_.exchange(true)) std::move(reply_)(std::move(answer));
  }

 private:
  std::atomic<bool> is_given_{false};
  RpcReply reply_;
};

// What is answered when its caller gives it up: a worker waits until the step ends, which nobody may know of.
RpcReply AnsweredAtTheLatestWith(CancellationManager* caller, RpcReply reply) {
  const auto first = std::make_shared<FirstReply>(std::move(reply));
  const auto token = caller->Register([caller, weak = std::weak_ptr(first)] {
    if (const auto r = weak.lock()) (*r)(caller->reason());
  });
  if (token == CancellationManager::kInvalid) (*first)(caller->reason());
  return [first](StatusOr<absl::Cord> answer) { (*first)(std::move(answer)); };
}

}  // namespace

template <typename Request, typename Response>
void WorkerService::Answer(void (WorkerInterface::*method)(const CallOptions&, Request, Reply<Response>),
                           const RpcContext& context, const absl::Cord& frame, RpcReply reply) {
  Request request;
  const Status s = WithoutExceptions([&]() -> Status {
    MR_RETURN_IF_ERROR(DecodeMessage(frame, ops_, &request));
    return CheckMessage(request);
  });
  if (!s.ok()) return std::move(reply)(Annotate(s, absl::StrCat("a message from ", context.peer, ": ")));
  CallOptions call;
  call.cancellation = context.cancellation;
  call.stop_compiling = context.cancellation;
  if constexpr (std::is_same_v<Request, RunStepRequest>) {
    reply = EndingStepWith(context.cancellation, request.step, std::move(reply));
  }
  if constexpr (std::is_same_v<Request, RecvTensorRequest> || std::is_same_v<Request, ExchangeTensorsRequest>) {
    reply = AnsweredAtTheLatestWith(context.cancellation, std::move(reply));
  }
  (worker_->*method)(call, std::move(request), [reply = std::move(reply)](StatusOr<Response> response) mutable {
    if (!response.ok()) return std::move(reply)(response.status());
    std::move(reply)(WithoutExceptions([&] { return EncodeMessage(*response); }));
  });
}

// A worker ends a step when it is told to, which a master that is gone does not.
RpcReply WorkerService::EndingStepWith(CancellationManager* caller, const StepRef& step, RpcReply reply) {
  const auto open = std::make_shared<RpcReply>(std::move(reply));
  const auto end = [worker = worker_, step, caller, weak = std::weak_ptr(open)] {
    if (const auto held = weak.lock()) {
      worker->AbortStep({}, {step, WithPrefix("the step's master is gone: ", caller->reason())},
                        [](const StatusOr<AbortStepResponse>&) {});
    }
  };
  if (caller->Register(end) == CancellationManager::kInvalid) end();
  return [open](StatusOr<absl::Cord> answer) { std::move (*open)(std::move(answer)); };
}

void WorkerService::Handle(absl::string_view method, const RpcContext& context, absl::Cord request, RpcReply reply) {
  if (method == "Worker.RegisterPartitions") {
    const auto shared = std::make_shared<RpcReply>(std::move(reply));
    const Status started = env_->StartThread([this, context, request = std::move(request), shared] {
      Answer<RegisterPartitionsRequest, RegisterPartitionsResponse>(
          &WorkerInterface::RegisterPartitions, context, request, std::move(*shared));
    });
    if (!started.ok()) std::move (*shared)(started);
    return;
  }
#define MR_HANDLE(Method, Request, Response)                                                        \
  if (method == "Worker." #Method) {                                                                \
    return Answer<Request, Response>(&WorkerInterface::Method, context, request, std::move(reply)); \
  }
  MR_WORKER_METHODS(MR_HANDLE)
#undef MR_HANDLE
  std::move(reply)(Unimplemented("a worker has no method ", method.substr(0, 100)));
}

}  // namespace millrace
