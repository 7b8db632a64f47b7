// SPDX-License-Identifier: Apache-2.0
// A step takes its slot before it looks whether the session is closed; who closes it says so before it looks at the
// slots: one of the two sees the other. Blocks of slots are added when there are more steps at once than ever before.
#include "service/inline_steps.h"

#include <utility>

#include "base/current_thread.h"

namespace millrace {

InlineSteps::~InlineSteps() {
  for (Block* block = first_.next.load(); block != nullptr;) delete std::exchange(block, block->next.load());
}

InlineSteps::Slot* InlineSteps::Begin(CancellationManager& step) {
  const uintptr_t own = reinterpret_cast<uintptr_t>(&step);
  const uint32_t start = CurrentThread();
  for (Block* block = &first_;;) {
    for (uint32_t i = 0; i < kSlots; ++i) {
      Slot& slot = block->slots[(start + i) % kSlots];
      uintptr_t is_free = 0;
      if (slot.step.load(std::memory_order_relaxed) != 0 || !slot.step.compare_exchange_strong(is_free, own)) continue;
      if (!is_closed_.load()) return &slot;
      uintptr_t expected = own;
      if (!slot.step.compare_exchange_strong(expected, 0)) EndStopped(slot);
      return nullptr;
    }
    Block* next = block->next.load();
    if (next == nullptr) {
      auto made = std::make_unique<Block>();
      if (block->next.compare_exchange_strong(next, made.get())) next = made.release();
    }
    block = next;
  }
}

void InlineSteps::Close(const Status& why, StepTable& table, const std::shared_ptr<void>& owner) {
  {
    absl::MutexLock lock(&mu_);
    if (why_.ok()) why_ = why;
  }
  is_closed_.store(true);
  for (Block* block = &first_; block != nullptr; block = block->next.load()) {
    for (Slot& slot : block->slots) {
      uintptr_t step = slot.step.load();
      if (step == 0 || (step & kStopped) != 0) continue;
      table.BeginInline();
      if (!slot.step.compare_exchange_strong(step, step | kStopped)) {  // it has ended meanwhile
        for (auto& callback : table.End(0, /*is_over=*/false)) std::move(callback)();
        continue;
      }
      reinterpret_cast<CancellationManager*>(step)->Cancel(why);
      absl::MutexLock lock(&mu_);
      slot.table = &table;
      slot.owner = owner;
      slot.step.store(kStopped);
    }
  }
}

Status InlineSteps::closed() const {
  absl::MutexLock lock(&mu_);
  return why_;
}

void InlineSteps::EndStopped(Slot& slot) {
  std::shared_ptr<void> owner;
  StepTable* table = nullptr;
  {
    absl::MutexLock lock(&mu_);
    const auto is_stopped = [&slot] { return slot.step.load() == kStopped; };
    env_.Await(mu_, absl::Condition(&is_stopped));  // whoever stops it uses its cancellation
    owner = std::move(slot.owner);
    table = std::exchange(slot.table, nullptr);
  }
  slot.step.store(0);
  StepTable::Callbacks idle = table->End(0, /*is_over=*/false);
  owner = nullptr;
  for (auto& callback : idle) std::move(callback)();
}

}  // namespace millrace
