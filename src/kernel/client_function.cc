// SPDX-License-Identifier: Apache-2.0
#include "kernel/client_function.h"

#include <deque>
#include <exception>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/logging.h"

namespace millrace {
namespace {

constexpr absl::Duration kIdleThreadLives = absl::Seconds(10);

struct Functions {
  absl::Mutex mu;
  absl::flat_hash_map<std::string, std::shared_ptr<ClientFunction>> by_token ABSL_GUARDED_BY(mu);
  static Functions& Get() {
    static auto* functions = new Functions;  // a call may outlive static destruction
    return *functions;
  }
};

// As many threads as there are calls at once.
class CallThreads {
 public:
  static CallThreads& Get() {
    static auto* threads = new CallThreads;
    return *threads;
  }

  Status Run(absl::AnyInvocable<void() &&> call) {
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
      return ResourceExhausted("no thread for a function of the client: ", e.what());
    }
    ++idle_;  // on behalf of the new thread
    return absl::OkStatus();
  }

 private:
  void Loop() {
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

  absl::Mutex mu_;
  std::deque<absl::AnyInvocable<void() &&>> calls_ ABSL_GUARDED_BY(mu_);
  size_t idle_ ABSL_GUARDED_BY(mu_) = 0;  // threads that wait, or are about to
};

}  // namespace

Status RegisterClientFunction(const std::string& token, std::shared_ptr<ClientFunction> function) {
  Functions& all = Functions::Get();
  absl::MutexLock lock(&all.mu);
  if (!all.by_token.try_emplace(token, std::move(function)).second) {
    return AlreadyExists("there is a function with token '", token, "'");
  }
  return absl::OkStatus();
}

void UnregisterClientFunction(const std::string& token) {
  std::shared_ptr<ClientFunction> doomed;  // its destructor is the client's: outside of the lock
  Functions& all = Functions::Get();
  absl::MutexLock lock(&all.mu);
  auto it = all.by_token.find(token);
  if (it == all.by_token.end()) return;
  doomed = std::move(it->second);
  all.by_token.erase(it);
}

std::shared_ptr<ClientFunction> FindClientFunction(const std::string& token) {
  Functions& all = Functions::Get();
  absl::MutexLock lock(&all.mu);
  auto it = all.by_token.find(token);
  return it == all.by_token.end() ? nullptr : it->second;
}

Status RunOnClientThread(absl::AnyInvocable<void() &&> call) { return CallThreads::Get().Run(std::move(call)); }

}  // namespace millrace
