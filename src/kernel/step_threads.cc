// SPDX-License-Identifier: Apache-2.0
#include "kernel/step_threads.h"

namespace millrace {
namespace {

constexpr char kName[] = "_step_threads";

}  // namespace

Status StepThreads::Attach(int inter_op_threads, ResourceManager& step_resources) {
  return step_resources.Create(ResourceManager::kDefaultContainer, kName, MakeRef<StepThreads>(inter_op_threads));
}

std::optional<int> StepThreads::Of(const StepContext& step) {
  if (step.step_resources == nullptr) return std::nullopt;
  const auto found = step.step_resources->Lookup<StepThreads>(ResourceManager::kDefaultContainer, kName);
  return found.ok() ? std::optional((*found)->inter_op_threads_) : std::nullopt;
}

}  // namespace millrace
