// SPDX-License-Identifier: Apache-2.0
#include "runtime/blocked_nodes.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"

namespace millrace {
namespace {

// "x (iteration 3 of loop 'while') waits for a, b". `unit`: its first node.
void Describe(const Plan& plan, const Iteration& it, int unit, std::vector<std::string>* out) {
  const int position = plan.links(static_cast<size_t>(unit)).position;
  const auto name = [&](int node) -> const std::string& { return plan.nodes()[static_cast<size_t>(node)].info->name; };
  int waits = unit;
  std::vector<absl::string_view> missing;
  for (size_t f = 0; f < plan.nodes().size() && missing.size() < 5; ++f) {
    const PlanNodeLinks& from = plan.links(f);
    const bool here = from.frame == it.run->frame_index && from.output_frame == from.frame;
    if (here && it.nodes[static_cast<size_t>(from.position)].is_done) continue;
    for (const PlanEdge& e : from.successors) {
      const PlanNodeLinks& to = plan.links(static_cast<size_t>(e.node));
      if (to.frame != it.run->frame_index || to.position != position) continue;
      if (missing.empty()) waits = e.node;
      missing.push_back(name(e.from));
      break;
    }
  }
  out->push_back(absl::StrCat(
      name(waits),
      it.run->parent == nullptr ? "" : absl::StrCat(" (iteration ", it.number, " of loop '", it.run->frame->name, "')"),
      " waits for ", absl::StrJoin(missing, ", ")));
}

// The first few nodes that have not run, of iterations that have not ended.
void FindBlocked(const Plan& plan, const LoopRun& run, std::vector<std::string>* blocked) {
  constexpr size_t kEnough = 10;
  for (const auto& it : run.iterations) {
    for (size_t k = 0; k < it->nodes.size() && blocked->size() < kEnough; ++k) {
      if (!it->nodes[k].is_done) Describe(plan, *it, run.frame->units[k], blocked);
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
