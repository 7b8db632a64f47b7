// SPDX-License-Identifier: Apache-2.0
// How many threads run the nodes of a step at once, where it says other than its session: for the functions that its
// kernels run.
#pragma once

#include <optional>

#include "kernel/kernel.h"

namespace millrace {

// Among the step's resources.
class StepThreads final : public Resource {
 public:
  explicit StepThreads(int inter_op_threads) : inter_op_threads_(inter_op_threads) {}
  static Status Attach(int inter_op_threads, ResourceManager& step_resources);
  // Nothing: as the session says. 0: the pool's width.
  static std::optional<int> Of(const StepContext& step);
  std::string DebugString() const override { return "threads of a step"; }

 private:
  const int inter_op_threads_;
};

}  // namespace millrace
