// SPDX-License-Identifier: Apache-2.0
#include "base/waiting_threads.h"

#include <exception>
#include <thread>
#include <utility>

#include "absl/time/time.h"
#include "base/flushed_denormals.h"
#include "base/logging.h"

namespace millrace {
namespace {

constexpr absl::Duration kIdleThreadLives = absl::Seconds(10);

}  // namespace

WaitingThreads& WaitingThreads::Get() {
  static auto* threads = new WaitingThreads;  // a call may outlive static destruction
  return *threads;
}

Status WaitingThreads::Run(absl::AnyInvocable<void() &&> call) {
  absl::MutexLock lock(&mu_);
  if (idle_ > calls_.size()) {
    calls_.push_back(std::move(call));
    return absl::OkStatus();
  }
  calls_.push_back(std::move(call));
  try {
    std::thread([this] { Loop(); }).detach();
  } catch (const std::exception& e) {
    calls_.pop_back();
    return ResourceExhausted("no thread for a call that may wait: ", e.what());
  }
  ++idle_;  // on behalf of the new thread
  return absl::OkStatus();
}

void WaitingThreads::Loop() {
  const FlushedDenormals flushed;
  mu_.Lock();
  const auto has_call = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return !calls_.empty(); };
  while (mu_.AwaitWithTimeout(absl::Condition(&has_call), kIdleThreadLives)) {
    absl::AnyInvocable<void() &&> call = std::move(calls_.front());
    calls_.pop_front();
    --idle_;
    mu_.Unlock();
    try {
      std::move(call)();
    } catch (const std::exception& e) {  // a last resort: whoever waits for the call knows nothing of it
      LogError("a call on a thread of its own threw: ", e.what());
    }
    call = nullptr;
    mu_.Lock();
    ++idle_;
  }
  --idle_;
  mu_.Unlock();
}

}  // namespace millrace
