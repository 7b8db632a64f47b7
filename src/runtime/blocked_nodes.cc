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

constexpr size_t kEnough = 10;

// The first few nodes that have not run, of iterations that have not ended.
void FindBlocked(const Plan& plan, const LoopRun& run, std::vector<std::string>* blocked) {
  for (const auto& it : run.iterations) {
    for (size_t k = 0; k < it->nodes.size() && blocked->size() < kEnough; ++k) {
      const NodeState& node = it->nodes[k];
      if (!node.is_done && !node.is_ready) Describe(plan, *it, run.frame->units[k], blocked);
    }
    for (const auto& [frame, inner] : it->loops) {
      if (blocked->size() < kEnough) FindBlocked(plan, *inner, blocked);
    }
  }
}

void FindUnderWay(const Plan& plan, const LoopRun& run, std::vector<std::string>* under_way) {
  for (const auto& it : run.iterations) {
    for (size_t k = 0; k < it->nodes.size() && under_way->size() < kEnough; ++k) {
      if (!it->nodes[k].is_ready || it->nodes[k].is_done) continue;
      const NodeInfo& node = *plan.nodes()[static_cast<size_t>(run.frame->units[k])].info;
      under_way->push_back(absl::StrCat(node.name, " (", node.op->name, ") is under way",
                                        node.location.empty() ? "" : absl::StrCat(", defined at ", node.location)));
    }
    for (const auto& [frame, inner] : it->loops) {
      if (under_way->size() < kEnough) FindUnderWay(plan, *inner, under_way);
    }
  }
}

}  // namespace

Status CheckComplete(const Plan& plan, const LoopRun& root) {
  std::vector<std::string> blocked;
  FindBlocked(plan, root, &blocked);
  FindUnderWay(plan, root, &blocked);
  if (blocked.empty()) return absl::OkStatus();
  return Internal(
      "the step cannot go on: nothing is runnable and nothing is outstanding; blocked: ", absl::StrJoin(blocked, "; "));
}

void DescribeWaiting(const Plan& plan, const LoopRun& root, std::vector<std::string>* lines) {
  std::vector<std::string> under_way, blocked;
  FindUnderWay(plan, root, &under_way);
  FindBlocked(plan, root, &blocked);
  lines->insert(lines->end(), under_way.begin(), under_way.end());
  lines->insert(lines->end(), blocked.begin(), blocked.end());
}

}  // namespace millrace
