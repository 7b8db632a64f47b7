// SPDX-License-Identifier: Apache-2.0
#include "cluster/worker_service.h"

#include "base/exceptions.h"
#include "cluster/worker_codec.h"
#include "service/worker_methods.h"

namespace millrace {

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
  (worker_->*method)(call, std::move(request), [reply = std::move(reply)](StatusOr<Response> response) mutable {
    if (!response.ok()) return std::move(reply)(response.status());
    std::move(reply)(WithoutExceptions([&] { return EncodeMessage(*response); }));
  });
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
