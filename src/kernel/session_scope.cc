// SPDX-License-Identifier: Apache-2.0
#include "kernel/session_scope.h"

#include <utility>

namespace millrace {
namespace {

constinit thread_local const SessionScope* innermost = nullptr;

}  // namespace

SessionScope::SessionScope(uint64_t session) : session_(session), outer_(std::exchange(innermost, this)) {}
SessionScope::~SessionScope() { innermost = outer_; }

bool SessionScope::Has(uint64_t session) {
  const SessionScope* at = innermost;
  while (at != nullptr && at->session_ != session) at = at->outer_;
  return at != nullptr;
}

}  // namespace millrace
