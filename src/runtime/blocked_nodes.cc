// SPDX-License-Identifier: Apache-2.0
#include "runtime/blocked_nodes.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"

namespace millrace {
namespace {

// "x (iteration 3 of loop 'while') waits for a, b".
void Describe(const Plan& plan, const Iteration& it, int k, std::vector<std::string>* out) {
  std::vector<absl::string_view> missing;
  for (size_t f = 0; f < plan.nodes().size() && missing.size() < 5; ++f) {
    const PlanNodeLinks& from = plan.links(f);
    const bool here = from.frame == it.run->frame_index && from.output_frame == from.frame;
    if (here && it.nodes[static_cast<size_t>(from.position)].is_done) continue;
    if (std::any_of(from.successors.begin(), from.successors.end(), [k](const PlanEdge& e) { return e.node == k; })) {
      missing.push_back(plan.nodes()[f].info->name);
    }
  }
  out->push_back(absl::StrCat(
      plan.nodes()[static_cast<size_t>(k)].info->name,
      it.run->parent == nullptr ? "" : absl::StrCat(" (iteration ", it.number, " of loop '", it.run->frame->name, "')"),
      " waits for ", absl::StrJoin(missing, ", ")));
}

// The first few nodes that have not run, of iterations that have not ended.
void FindBlocked(const Plan& plan, const LoopRun& run, std::vector<std::string>* blocked) {
  constexpr size_t kEnough = 10;
  for (const auto& it : run.iterations) {
    for (size_t k = 0; k < it->nodes.size() && blocked->size() < kEnough; ++k) {
      if (!it->nodes[k].is_done) Describe(plan, *it, run.frame->nodes[k], blocked);
    }
    for (const auto& [frame, inner] : it->loops) {
      if (blocked->size() < kEnough) FindBlocked(plan, *inner, blocked);
    }
  }
}

}  // namespace

Status CheckComplete(const Plan& plan, const LoopRun& root) {
  std::vector<std::string> blocked;
  FindBlocked(plan, root, &blocked);
  if (blocked.empty()) return absl::OkStatus();
  return Internal(
      "the step cannot go on: nothing is runnable and nothing is outstanding; blocked: ", absl::StrJoin(blocked, "; "));
}

}  // namespace millrace
