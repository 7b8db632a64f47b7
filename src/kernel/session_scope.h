// SPDX-License-Identifier: Apache-2.0
// Which sessions a thread of a pool works for. What it runs may be the client's (a function of a step, a kernel of a
// plugin, the deallocator of a buffer), and close or delete the session: that must not wait for itself.
#pragma once

#include <cstdint>

namespace millrace {

// This thread runs a part of a step, or a call of a function, of `session` (0: of none).
class SessionScope {
 public:
  explicit SessionScope(uint64_t session);
  ~SessionScope();
  SessionScope(const SessionScope&) = delete;
  SessionScope& operator=(const SessionScope&) = delete;

  // Whether this thread is in a scope of `session`, however many others lie within it.
  static bool Has(uint64_t session);

 private:
  const uint64_t session_;
  const SessionScope* const outer_;
};

}  // namespace millrace
