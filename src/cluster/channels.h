// SPDX-License-Identifier: Apache-2.0
// The process's transport, which is made when it is first needed, and a channel for each address. Thread-safe.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/env.h"
#include "cluster/rpc.h"

namespace millrace {

class Channels {
 public:
  using MakeTransport = std::function<StatusOr<std::unique_ptr<RpcTransport>>()>;
  // `env`, in which callers wait for replies, outlives it.
  Channels(Env& env, MakeTransport make) : env_(env), make_(std::move(make)) {}

  Env& env() const { return env_; }
  // What `make` says when it makes none; it is asked again the next time.
  StatusOr<RpcTransport*> transport();
  // Lives as long as this.
  StatusOr<RpcChannel*> Get(const std::string& address);

 private:
  Env& env_;
  const MakeTransport make_;
  absl::Mutex mu_;
  std::unique_ptr<RpcTransport> transport_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, std::unique_ptr<RpcChannel>, std::less<>> channels_ ABSL_GUARDED_BY(mu_);
};

}  // namespace millrace
