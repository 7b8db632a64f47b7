// SPDX-License-Identifier: Apache-2.0
// The steps of a session that run inline. They are no messages and cost next to nothing: each takes a free slot while
// it runs. Only when the session is closed they are counted in the table of its steps (step_table.h), like all others,
// and stopped.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/env.h"
#include "kernel/cancellation.h"
#include "service/step_table.h"

namespace millrace {

// Thread-safe. Outlives its session.
class InlineSteps {
 public:
  explicit InlineSteps(Env& env) : env_(env) {}
  ~InlineSteps();
  InlineSteps(const InlineSteps&) = delete;
  InlineSteps& operator=(const InlineSteps&) = delete;

  // Refuses what comes later with `why`, and stops what runs; that counts in `table` from now on, and holds `owner`,
  // which owns the table, until it has ended. The first reason is kept.
  void Close(const Status& why, StepTable& table, const std::shared_ptr<void>& owner);
  Status closed() const;

 private:
  struct Block;
  // Free, a cancellation that runs, the same while it is being stopped, or stopped.
  struct alignas(64) Slot {
    std::atomic<uintptr_t> step{0};
    StepTable* table = nullptr;  // of a step that is counted there
    std::shared_ptr<void> owner;
  };

 public:
  // A step that runs inline, in its scope.
  class Running {
   public:
    // `step` outlives this.
    Running(InlineSteps& steps, CancellationManager& step) : steps_(steps), slot_(steps.Begin(step)) {
      own_ = reinterpret_cast<uintptr_t>(&step);
    }
    ~Running() {
      uintptr_t expected = own_;
      if (slot_ && !slot_->step.compare_exchange_strong(expected, 0)) steps_.EndStopped(*slot_);
    }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;
    bool is_refused() const { return slot_ == nullptr; }
    bool is_stopped() const { return slot_ != nullptr && slot_->step.load() != own_; }

   private:
    InlineSteps& steps_;
    Slot* const slot_;
    uintptr_t own_;
  };

 private:
  static constexpr int kSlots = 16;
  static constexpr uintptr_t kStopped = 1;  // alone; with a cancellation: it is being stopped
  struct Block {
    Slot slots[kSlots];
    std::atomic<Block*> next{nullptr};
  };

  Slot* Begin(CancellationManager& step);  // null: refused
  void EndStopped(Slot& slot);

  Env& env_;
  Block first_;
  std::atomic<bool> is_closed_{false};
  mutable absl::Mutex mu_;
  Status why_ ABSL_GUARDED_BY(mu_);
};

}  // namespace millrace
