// SPDX-License-Identifier: Apache-2.0
#include "kernel/client_function.h"

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/hash_map.h"

namespace millrace {
namespace {

struct Functions {
  absl::Mutex mu;
  HashMap<std::string, std::shared_ptr<ClientFunction>> by_token ABSL_GUARDED_BY(mu);
  static Functions& Get() {
    static auto* functions = new Functions;  // a call may outlive static destruction
    return *functions;
  }
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

}  // namespace millrace
