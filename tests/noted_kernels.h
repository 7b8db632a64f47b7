// SPDX-License-Identifier: Apache-2.0
// Kernels that note on which threads they run and how many at once, and one that ends on another thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "kernel/kernel_registry.h"
#include "system/system.h"

namespace millrace {

class Notes {
 public:
  struct Taken {
    std::set<std::thread::id> threads;
    std::vector<std::string> nodes;  // in the order in which they began
    std::set<int> max_threads;       // of ParallelFor
    int most_inside = 0;
  };
  static Notes& Get() {
    static Notes notes;
    return notes;
  }
  // What was noted since the last time.
  Taken Take() {
    absl::MutexLock lock(&mu_);
    return std::exchange(taken_, {});
  }
  void Enter(KernelContext& ctx) {
    absl::MutexLock lock(&mu_);
    taken_.threads.insert(std::this_thread::get_id());
    taken_.nodes.push_back(ctx.node_name());
    taken_.max_threads.insert(ctx.step().max_threads);
    taken_.most_inside = std::max(taken_.most_inside, ++inside_);
  }
  void Leave() {
    absl::MutexLock lock(&mu_);
    --inside_;
  }

 private:
  absl::Mutex mu_;
  Taken taken_ ABSL_GUARDED_BY(mu_);
  int inside_ ABSL_GUARDED_BY(mu_) = 0;
};

class NotedKernel : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    Notes::Get().Enter(ctx);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    Notes::Get().Leave();
    ctx.Forward(0, 0);
    return absl::OkStatus();
  }
};

// Ends on a thread of its own, a little later.
class OnOtherThreadKernel : public AsyncKernel {
 public:
  void ComputeAsync(KernelContext& ctx, DoneCallback done) override {
    ctx.Forward(0, 0);
    std::thread([done = std::move(done)]() mutable {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      std::move(done)(absl::OkStatus());
    }).detach();
  }
};

// TestNoted and TestOnOtherThread, of a float; once a process.
inline bool AddNotedKernels() {
  static const bool added = [] {
    OpRegistry& ops = System::Default().ops();
    for (const char* op : {"TestNoted", "TestOnOtherThread"}) ops.Add(absl::StrCat(op, "(x:f32) -> (y:f32)"));
    System::Default().kernels().Add<NotedKernel>({.op = "TestNoted"});
    System::Default().kernels().Add<OnOtherThreadKernel>({.op = "TestOnOtherThread"});
    return ops.status().ok();
  }();
  return added;
}

}  // namespace millrace
