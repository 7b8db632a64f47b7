// SPDX-License-Identifier: Apache-2.0
// A worker as those in other processes reach it.
#pragma once

#include "base/env.h"
#include "cluster/rpc.h"
#include "op/op_registry.h"
#include "service/worker_interface.h"

namespace millrace {

class WorkerService final : public RpcHandler {
 public:
  // All outlive it. Partitions are compiled on threads of `env`.
  WorkerService(WorkerInterface* worker, const OpRegistry* ops, Env* env) : worker_(worker), ops_(ops), env_(env) {}
  // Methods are "Worker.<name>".
  void Handle(absl::string_view method, const RpcContext& context, absl::Cord request, RpcReply reply) override;

 private:
  template <typename Request, typename Response>
  void Answer(void (WorkerInterface::*method)(const CallOptions&, Request, Reply<Response>), const RpcContext& context,
              const absl::Cord& frame, RpcReply reply);
  RpcReply EndingStepWith(CancellationManager* caller, const StepRef& step, RpcReply reply);

  WorkerInterface* const worker_;
  const OpRegistry* const ops_;
  Env* const env_;
};

}  // namespace millrace
