// SPDX-License-Identifier: Apache-2.0
#include "base/lent_thread.h"

#include <exception>
#include <utility>

#include "base/logging.h"

namespace millrace {
namespace {

thread_local LentThread* lent_here = nullptr;

}  // namespace

LentThread::LentThread() : outer_(std::exchange(lent_here, this)) {}

LentThread::~LentThread() {
  lent_here = outer_;
  if (pool_ != nullptr) pool_->Schedule(std::move(work_));
}

void LentThread::Schedule(ThreadPool& pool, absl::AnyInvocable<void() &&> fn) {
  LentThread* const lent = lent_here;
  if (lent == nullptr || lent->pool_ != nullptr) return pool.Schedule(std::move(fn));
  lent->work_ = std::move(fn);
  lent->pool_ = &pool;
}

void LentThread::RunNow() {
  if (std::exchange(pool_, nullptr) == nullptr) return;
  lent_here = nullptr;  // what the work brings does not wait for its end
  try {
    std::move(work_)();
  } catch (const std::exception& e) {  // as in the pool
    LogError("work of a thread that takes messages threw: ", e.what());
  }
  work_ = nullptr;
  lent_here = this;
}

}  // namespace millrace
