// SPDX-License-Identifier: Apache-2.0
#include "kernel/cancellation.h"

#include "base/exceptions.h"
#include "base/this_world.h"

namespace millrace {

CancellationManager::~CancellationManager() = default;

Status CancellationManager::Why() const {
  absl::MutexLock lock(&mu_);
  return reason_;
}

void CancellationManager::Cancel(const Status& why) {
  std::map<Token, absl::AnyInvocable<void()>> callbacks;
  {
    absl::MutexLock lock(&mu_);
    if (!reason_.ok()) return;
    reason_ = why;
    cancelled_.store(true, std::memory_order_release);
    callbacks.swap(callbacks_);
    running_ = true;
  }
  for (auto& [token, callback] : callbacks) {
    // Whoever could not be told for want of memory stops at its next look; the others are told all the same.
    WithoutExceptions([&callback = callback] {
      callback();
      return absl::OkStatus();
    }).IgnoreError();
  }
  absl::MutexLock lock(&mu_);
  running_ = false;
}

CancellationManager::Token CancellationManager::Register(absl::AnyInvocable<void()> callback) {
  absl::MutexLock lock(&mu_);
  if (cancelled_.load(std::memory_order_acquire)) return kInvalid;
  const Token token = next_++;
  callbacks_.emplace(token, std::move(callback));
  return token;
}

bool CancellationManager::Deregister(Token token) {
  absl::MutexLock lock(&mu_);
  if (callbacks_.erase(token) != 0) return true;
  AwaitInThisWorld(mu_, absl::Condition(+[](bool* running) { return !*running; }, &running_));
  return false;
}

}  // namespace millrace
