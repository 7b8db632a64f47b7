// SPDX-License-Identifier: Apache-2.0
#include "cluster/remote_master.h"

#include <optional>

#include "cluster/master_codec.h"

namespace millrace {

StatusOr<absl::Cord> RemoteMaster::Wait(const char* method, const MasterCall& call, absl::Cord request) {
  struct Waiting {
    absl::Mutex mu;
    bool is_there ABSL_GUARDED_BY(mu) = false;
    StatusOr<absl::Cord> reply ABSL_GUARDED_BY(mu) = absl::Cord();
  } waiting;
  CancellationManager cancellation;  // of this call, by the caller's or by an interrupt
  CancellationManager::Token token = CancellationManager::kInvalid;
  if (call.cancellation) {
    token = call.cancellation->Register([&] { cancellation.Cancel(call.cancellation->reason()); });
    if (token == CancellationManager::kInvalid) return call.cancellation->reason();
  }
  channel_->Call(method, {call.timeout, &cancellation}, std::move(request), [&](StatusOr<absl::Cord> reply) {
    absl::MutexLock lock(&waiting.mu);
    waiting.reply = std::move(reply);
    waiting.is_there = true;
  });
  std::optional<Interrupt> interrupt;
  if (call.interrupt) interrupt.emplace(*call.interrupt, *env_);
  const InterruptScope scope(interrupt ? &*interrupt : nullptr);
  waiting.mu.Lock();
  if (!AwaitUnlessInterrupted(*env_, waiting.mu, absl::Condition(&waiting.is_there))) {
    waiting.mu.Unlock();
    cancellation.Cancel(Cancelled("the call was interrupted"));
    waiting.mu.Lock();
    env_->Await(waiting.mu, absl::Condition(&waiting.is_there));
  }
  StatusOr<absl::Cord> reply = std::move(waiting.reply);
  waiting.mu.Unlock();
  if (token != CancellationManager::kInvalid) call.cancellation->Deregister(token);
  if (absl::IsCancelled(reply.status()) && cancellation.IsCancelled()) return cancellation.reason();
  return reply;
}

template <typename Request, typename Response>
StatusOr<Response> RemoteMaster::Exchange(const char* method, const MasterCall& call, Request request) {
  MR_ASSIGN_OR_RETURN(absl::Cord frame, EncodeMessage(request));
  request = {};
  MR_ASSIGN_OR_RETURN(const absl::Cord reply, Wait(method, call, std::move(frame)));
  Response response;
  MR_RETURN_IF_ERROR(DecodeMessage(reply, nullptr, &response));
  return response;
}

#define MR_DEFINE(Method, Request, Response)                                         \
  StatusOr<Response> RemoteMaster::Method(const MasterCall& call, Request request) { \
    return Exchange<Request, Response>("Master." #Method, call, std::move(request)); \
  }
MR_MASTER_METHODS(MR_DEFINE)
#undef MR_DEFINE

}  // namespace millrace
