// SPDX-License-Identifier: Apache-2.0
// Whether the steps of a plan that is one segment go faster on several threads, and how. Measured, not guessed: in a
// few early runs it is measured what each node costs; if a cut by these costs promises a tenth of the time, runs in
// order and runs of the cut plan take turns for a while, and the faster way stays. All of it is repeated now and then,
// ever more rarely. A plan that has no two expensive nodes independent of each other pays nothing for this.
//
// Thread-safe.
#pragma once

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"
#include "runtime/executor.h"
#include "runtime/plan.h"

namespace millrace {

class PlanWidth {
  enum class Kind { kAsDecided, kMeasured, kInOrder, kWide };  // the last two: timed
  struct Choice {
    Kind kind = Kind::kAsDecided;
    std::shared_ptr<const Plan> wide;  // null: in order
    int threads = 1;
  };

 public:
  // `plan` is one segment.
  explicit PlanWidth(std::shared_ptr<const Plan> plan);

  // Runs the plan, or its cut form, with `fill` and `take` before and after, to put arguments into the frame and take
  // results out of it. `options.inter_op_threads` limits the threads.
  using UseFrame = absl::FunctionRef<Status(const Plan& plan, Frame& frame)>;
  Status Run(StepContext& step, const ExecutorOptions& options, UseFrame fill, UseFrame take);

  // Whether the last run of a turn took less than it takes another thread to come.
  bool IsShort() const { return is_short_.load(std::memory_order_relaxed); }

  // One run, for who runs it by itself.
  class Turn {
   public:
    Turn() = default;
    Turn(Turn&& o) noexcept { *this = std::move(o); }
    Turn& operator=(Turn&& o) noexcept {
      of_ = std::exchange(o.of_, of_);
      std::swap(choice_, o.choice_);
      start_ = o.start_;
      return *this;
    }
    ~Turn() { End(false); }
    // The plan to be run by readiness; null: in order, by RunInOrder.
    const Plan* wide() const { return choice_.wide.get(); }
    void Begin();  // now
    Status RunInOrder(const Plan& plan, Frame& frame, StepContext& step, const ExecutorOptions& options);
    void End(bool ok) noexcept;  // it is over; a run that has failed tells nothing of its cost

   private:
    friend class PlanWidth;
    PlanWidth* of_ = nullptr;  // null: it has ended
    Choice choice_;
    int64_t start_ = 0;
    NodeCosts costs_;
  };
  // This outlives it.
  Turn Next(const ExecutorOptions& options);

 private:
  int ThreadsFor(const ExecutorOptions& options) const;  // 1: in order, always
  Choice Choose(int threads, bool is_traced);            // a traced run shows what is decided, and is not measured
  Status RunOneWay(const Choice& choice, StepContext& step, const ExecutorOptions& options, UseFrame fill,
                   UseFrame take);
  void Ended(const Choice& choice, const NodeCosts& costs, int64_t nanos);
  // *dropped: a plan that is not used any more, to be freed outside of the lock.
  using Dropped = std::shared_ptr<const Plan>;
  void UseCosts(const NodeCosts& costs, int threads, Dropped* dropped) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Decide(Dropped* dropped) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Rest(bool wide, Dropped* dropped) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::shared_ptr<const Plan> plan_;
  const bool may_have_width_;
  std::atomic<int64_t> runs_{0};
  std::atomic<int64_t> next_look_{1};  // the run from which on something is measured again; the first one never is
  std::atomic<bool> is_wide_{false};   // decided
  std::atomic<bool> is_short_{false};  // the last run
  absl::Mutex mu_;
  bool is_busy_ ABSL_GUARDED_BY(mu_) = false;  // a run is being measured or timed: one at a time
  int measured_ ABSL_GUARDED_BY(mu_) = 0;
  bool in_trial_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<double> wall_ ABSL_GUARDED_BY(mu_), work_ ABSL_GUARDED_BY(mu_);  // by node of the graph: the least yet
  std::shared_ptr<const Plan> wide_ ABSL_GUARDED_BY(mu_);
  std::vector<int64_t> in_order_nanos_ ABSL_GUARDED_BY(mu_), wide_nanos_ ABSL_GUARDED_BY(mu_);  // of the trial
};

}  // namespace millrace
