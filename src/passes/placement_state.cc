// SPDX-License-Identifier: Apache-2.0
#include "passes/placement_state.h"

namespace millrace {

void PlacementState::AddCost(const std::string& node, const std::string& device_type, const Cost& cost) {
  absl::MutexLock lock(&mu_);
  const auto [at, is_new] = costs_.try_emplace({node, device_type}, cost);
  if (is_new) return;
  at->second.nanos = (at->second.nanos + cost.nanos) / 2;
  at->second.output_bytes = cost.output_bytes;
}

std::optional<PlacementState::Cost> PlacementState::FindCost(
    const std::string& node, const std::string& device_type) const {
  absl::MutexLock lock(&mu_);
  const auto at = costs_.find(std::pair(node, device_type));
  return at == costs_.end() ? std::nullopt : std::optional(at->second);
}

void PlacementState::Pin(const std::string& node, const std::string& device) {
  absl::MutexLock lock(&mu_);
  pins_.emplace(node, device);
}

std::string PlacementState::PinOf(const std::string& node) const {
  absl::MutexLock lock(&mu_);
  const auto at = pins_.find(node);
  return at == pins_.end() ? "" : at->second;
}

bool PlacementState::IsNews(const std::string& text) {
  absl::MutexLock lock(&mu_);
  return told_.insert(text).second;
}

}  // namespace millrace
