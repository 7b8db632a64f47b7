// SPDX-License-Identifier: Apache-2.0
// A worker that passes all on to another, which may be exchanged: what stands between callers and a worker derives from
// it.
#pragma once

#include <atomic>
#include <string>

#include "service/worker_methods.h"

namespace millrace {

class ForwardingWorker : public WorkerInterface {
 public:
  explicit ForwardingWorker(std::string task) : task_(std::move(task)) {}
  // Null: there is none; calls are answered with Unavailable.
  void Forward(WorkerInterface* to) { to_.store(to); }

  const std::string& task() const override { return task_; }

#define MR_FORWARD(Method, Request, Response)                                              \
  void Method(const CallOptions& call, Request request, Reply<Response> reply) override {  \
    WorkerInterface* const to = to_.load();                                                \
    if (to == nullptr) return std::move(reply)(Unavailable("there is no worker ", task_)); \
    to->Method(call, std::move(request), std::move(reply));                                \
  }
  MR_WORKER_METHODS(MR_FORWARD)
#undef MR_FORWARD

  std::shared_ptr<InlinePartition> FindInline(const SessionRef& session, int64_t handle) override {
    WorkerInterface* const to = to_.load();
    return to == nullptr ? nullptr : to->FindInline(session, handle);
  }

 private:
  const std::string task_;
  std::atomic<WorkerInterface*> to_{nullptr};
};

}  // namespace millrace
