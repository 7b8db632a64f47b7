// SPDX-License-Identifier: Apache-2.0
#include "cluster/grpc/poller.h"

#include <grpc/support/time.h>
#include <unistd.h>

#include <algorithm>

namespace millrace::grpc_transport {
namespace {

constexpr int kMostThreads = 4;
constexpr int kLookMillis = 5;  // how often a thread that serves while it waits looks whether it still must

thread_local Poller* served_here = nullptr;

int DefaultThreads() { return std::clamp(static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)) / 2, 1, kMostThreads); }

}  // namespace

Status Poller::Start(int threads) {
  if (threads <= 0) threads = DefaultThreads();
  for (int i = 0; i < threads; ++i) {
    {
      absl::MutexLock lock(&mu_);
      ++running_;
    }
    Status started = env_.StartThread([this] { Serve(); });
    if (started.ok()) continue;
    absl::MutexLock lock(&mu_);
    --running_;
    if (i == 0) return started;
    break;  // fewer will do
  }
  return absl::OkStatus();
}

Poller::~Poller() {
  queue_->Shutdown();
  void* tag = nullptr;
  bool ok = false;
  absl::MutexLock lock(&mu_);
  if (running_ == 0) {
    while (queue_->Next(&tag, &ok)) static_cast<Completion*>(tag)->Run(ok);
  }
  env_.Await(mu_, absl::Condition(+[](int* running) { return *running == 0; }, &running_));
}

void Poller::Serve() {
  served_here = this;
  void* tag = nullptr;
  bool ok = false;
  while (queue_->Next(&tag, &ok)) static_cast<Completion*>(tag)->Run(ok);
  served_here = nullptr;
  absl::MutexLock lock(&mu_);
  --running_;
}

void Poller::Await(absl::Mutex& mu, const absl::Condition& condition) {
  if (served_here != this) {
    env_.Await(mu, condition);
    return;
  }
  while (!condition.Eval()) {
    mu.Unlock();
    void* tag = nullptr;
    bool ok = false;
    const gpr_timespec until =
        gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(kLookMillis, GPR_TIMESPAN));
    if (queue_->AsyncNext(&tag, &ok, until) == grpc::CompletionQueue::GOT_EVENT) static_cast<Completion*>(tag)->Run(ok);
    mu.Lock();
  }
}

}  // namespace millrace::grpc_transport
