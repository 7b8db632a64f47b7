// SPDX-License-Identifier: Apache-2.0
// A pool that serves both parallelism inside kernels and independent kernels, so nothing oversubscribes.
//
// Workers spin for a short while (about 50 us) before they park, because waking a parked thread costs about 40 us on a
// virtual machine. Thread-safe. A pool of size n has n-1 threads of its own: whoever calls ParallelFor is the n-th.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"

namespace millrace {

class ThreadPool {
 public:
  // `parallelism` >= 1: the number of threads that may work at once, the caller of ParallelFor included.
  explicit ThreadPool(int parallelism);
  ~ThreadPool();  // waits for scheduled work
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int parallelism() const;

  // Runs `fn` on some thread, soon. With parallelism 1 there is still one worker thread for this.
  void Schedule(absl::AnyInvocable<void() &&> fn);

  // Calls fn(begin, end) on disjoint ranges that cover [0, n), perhaps on several threads at once, and returns when all
  // are done. `cost_per_unit` (about nanoseconds per index) sizes the ranges: small totals run inline. `max_threads` <=
  // 0 means the pool's parallelism. Nested calls are allowed. Ranges may differ from run to run: a kernel whose result
  // depends on the split must choose its own blocks and pass block numbers as indices.
  void ParallelFor(int64_t n, double cost_per_unit, absl::FunctionRef<void(int64_t begin, int64_t end)> fn,
                   int max_threads = 0);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The process's pool, as wide as the machine (or MILLRACE_NUM_THREADS), created on first use and never destroyed.
ThreadPool& ProcessThreadPool();

}  // namespace millrace
