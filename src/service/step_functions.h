// SPDX-License-Identifier: Apache-2.0
// Functions that kernels run by themselves: compiled to plans of one device, each with kernels of its own.
#pragma once

#include <memory>

#include "absl/synchronization/mutex.h"
#include "base/env.h"
#include "graph/graph.h"
#include "kernel/kernel_registry.h"
#include "kernel/step_function.h"
#include "kernel/stop_node.h"
#include "service/session_settings.h"

namespace millrace {

// What calls of functions pass while they run, so that they end before the devices that they use: an iterator, whose
// threads call functions, may outlive its session. Thread-safe.
class CallGate {
 public:
  explicit CallGate(Env& env) : env_(env) {}
  // False when it is closed. Who has entered must leave.
  bool Enter();
  void Leave();
  // Cancels what runs, waits for it, and lets nobody in any longer.
  void Close();
  // The same without the wait, for who may be inside itself, or be waited for by who is. `ground`, on which calls
  // stand, is let go when the last of them has left, by another thread, since what is in it may own theirs. Only the
  // first call to close counts.
  void CloseWithoutWait(std::shared_ptr<void> ground);
  StopNode& session() { return session_; }

 private:
  Env& env_;
  StopNode session_;
  absl::Mutex mu_;
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
  int running_ ABSL_GUARDED_BY(mu_) = 0;
  std::shared_ptr<void> ground_ ABSL_GUARDED_BY(mu_);
};

// What the functions of a session, which may outlive it, have of it.
struct SessionCalls {
  SessionCalls(Env& env, uint64_t of, SessionSettings of_session)
      : gate(env), session(of), settings(std::move(of_session)) {}
  CallGate gate;
  const uint64_t session;  // as of SessionScope
  const SessionSettings settings;
};

// Tells `kernel`, if it wants to know, where the functions of `graph`'s library are. *functions is made when the first
// kernel wants it. Kernels and device last until the gate of `calls` is closed and all have left.
Status GiveFunctions(Kernel& kernel, const Graph& graph, const KernelRegistry& kernels, Device& device,
                     const std::shared_ptr<SessionCalls>& calls, std::shared_ptr<FunctionSource>* functions);

}  // namespace millrace
