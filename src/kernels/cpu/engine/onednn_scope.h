// SPDX-License-Identifier: Apache-2.0
// What must hold on a thread while it is inside oneDNN.
#pragma once

#include <signal.h>

#include "base/signal_state.h"
#include "oneapi/dnnl/dnnl_types.h"

#if DNNL_CPU_THREADING_RUNTIME == DNNL_RUNTIME_OMP
#include <omp.h>
#endif

namespace millrace::onednn {

// oneDNN runs on this thread alone while one of these lives. One that was built without threads does so anyway.
#if DNNL_CPU_THREADING_RUNTIME == DNNL_RUNTIME_OMP
class OneThread {
 public:
  OneThread() : before_(omp_get_max_threads()) {
    if (before_ != 1) omp_set_num_threads(1);
  }
  ~OneThread() {
    if (before_ != 1) omp_set_num_threads(before_);
  }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  const int before_;
};
#elif DNNL_CPU_THREADING_RUNTIME == DNNL_RUNTIME_SEQ
struct OneThread {
  OneThread() {}  // NOLINT: one that is declared and not named again is used
};
#else
#error "oneDNN wants the OpenMP runtime, or none (DNNL_CPU_RUNTIME=SEQ)"
#endif

// Signals for this thread wait while one of these lives. oneDNN's generated matrix products, up to version 3.11, keep
// the stack pointer in memory from the heap when the inner dimension is long; a handler that ran then would write its
// frame over whatever lies in front (https://github.com/uxlfoundation/oneDNN/issues/4845). Faults are never held back.
// Threads that block signals anyhow pay nothing.
class SignalsHeld {
 public:
  explicit SignalsHeld(bool hold = true) : held_(hold && !signals_are_blocked) {
    if (!held_) return;
    sigset_t held;
    sigfillset(&held);
    for (int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS}) sigdelset(&held, fault);
    pthread_sigmask(SIG_BLOCK, &held, &before_);
  }
  ~SignalsHeld() {
    if (held_) pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;

 private:
  const bool held_;
  sigset_t before_;
};

}  // namespace millrace::onednn
