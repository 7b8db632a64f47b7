// SPDX-License-Identifier: Apache-2.0
// A master in another process, as messages over a channel.
#pragma once

#include "base/env.h"
#include "cluster/master_interface.h"
#include "cluster/rpc.h"

namespace millrace {

class RemoteMaster final : public MasterInterface {
 public:
  // Both outlive it.
  RemoteMaster(RpcChannel* channel, Env* env) : channel_(channel), env_(env) {}

#define MR_DECLARE(Method, Request, Response) \
  StatusOr<Response> Method(const MasterCall& call, Request request) override;
  MR_MASTER_METHODS(MR_DECLARE)
#undef MR_DECLARE

 private:
  template <typename Request, typename Response>
  StatusOr<Response> Exchange(const char* method, const MasterCall& call, Request request);
  StatusOr<absl::Cord> Wait(const char* method, const MasterCall& call, absl::Cord request);

  RpcChannel* const channel_;
  Env* const env_;
};

}  // namespace millrace
