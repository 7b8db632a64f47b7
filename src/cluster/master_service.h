// SPDX-License-Identifier: Apache-2.0
// A master as clients in other processes reach it. Each call has a thread, which waits for it and helps to run its
// step.
#pragma once

#include "base/env.h"
#include "cluster/master_interface.h"
#include "cluster/rpc.h"

namespace millrace {

class MasterService final : public RpcHandler {
 public:
  // Both outlive it.
  MasterService(MasterInterface* master, Env* env) : master_(master), env_(env) {}
  // Methods are "Master.<name>".
  void Handle(absl::string_view method, const RpcContext& context, absl::Cord request, RpcReply reply) override;

 private:
  template <typename Request, typename Response>
  void Answer(StatusOr<Response> (MasterInterface::*method)(const MasterCall&, Request), const RpcContext& context,
              absl::Cord frame, RpcReply reply);

  MasterInterface* const master_;
  Env* const env_;
};

}  // namespace millrace
