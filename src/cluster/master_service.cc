// SPDX-License-Identifier: Apache-2.0
#include "cluster/master_service.h"

#include "base/exceptions.h"
#include "cluster/master_codec.h"

namespace millrace {

template <typename Request, typename Response>
void MasterService::Answer(StatusOr<Response> (MasterInterface::*method)(const MasterCall&, Request),
                           const RpcContext& context, absl::Cord frame, RpcReply reply) {
  const auto shared = std::make_shared<RpcReply>(std::move(reply));
  MasterCall call;
  call.timeout = context.timeout;
  call.cancellation = context.cancellation;
  const Status started =
      env_->StartThread([this, method, call, peer = context.peer, frame = std::move(frame), shared]() mutable {
        StatusOr<absl::Cord> answer = WithoutExceptions([&]() -> StatusOr<absl::Cord> {
          call.peer = &peer;
          Request request;
          MR_RETURN_IF_ERROR(
              Annotate(DecodeMessage(frame, nullptr, &request), absl::StrCat("a message from ", peer, ": ")));
          frame.Clear();
          MR_ASSIGN_OR_RETURN(Response response, (master_->*method)(call, std::move(request)));
          return EncodeMessage(response);
        });
        std::move (*shared)(std::move(answer));
      });
  if (!started.ok()) std::move (*shared)(started);
}

void MasterService::Handle(absl::string_view method, const RpcContext& context, absl::Cord request, RpcReply reply) {
#define MR_HANDLE(Method, Request, Response)                                                                   \
  if (method == "Master." #Method) {                                                                           \
    return Answer<Request, Response>(&MasterInterface::Method, context, std::move(request), std::move(reply)); \
  }
  MR_MASTER_METHODS(MR_HANDLE)
#undef MR_HANDLE
  std::move(reply)(Unimplemented("a master has no method ", method.substr(0, 100)));
}

}  // namespace millrace
