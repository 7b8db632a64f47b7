// SPDX-License-Identifier: Apache-2.0
// Who may call what on a server that reads roles from certificates. A role is an alternative name of a certificate,
// "URI:millrace://role/task" (`millrace certs` makes such):
//   task     another task of the cluster: all methods
//   client   a program with sessions: those of the master, and the status
//   monitor  the status alone
// A refusal is the caller's answer, and a line in the log, of one caller once a minute. Thread-safe.
#pragma once

#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/env.h"
#include "cluster/rpc.h"

namespace millrace {

inline constexpr char kRoleScheme[] = "millrace://role/";

class AccessGuard {
 public:
  AccessGuard(Env* env, std::string task) : env_(env), task_(std::move(task)) {}
  // PermissionDenied, naming the caller, its roles and those that are wanted.
  Status Check(absl::string_view method, const RpcContext& caller);
  int64_t refused() const;

 private:
  Env* const env_;
  const std::string task_;
  mutable absl::Mutex mu_;
  int64_t refused_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<std::string, int64_t> told_ ABSL_GUARDED_BY(mu_);  // by caller without its port: when, in nanoseconds
};

}  // namespace millrace
