// SPDX-License-Identifier: Apache-2.0
// Sets of waiting nodes are numbered as they are found, and unions of two numbers are remembered, so that a straight
// line costs one look-up a node. A graph with many waits may have as many sets as nodes: when their memory passes a
// limit, what follows is cut into nodes, which is never wrong.
#include "runtime/plan_cut.h"

#include <algorithm>
#include <queue>

#include "absl/container/flat_hash_map.h"

namespace millrace {
namespace {

constexpr size_t kMaxSetBytes = size_t{32} << 20;

bool IsStep(const PlannedNode& n) { return n.kind == PlannedNode::Kind::kStep; }
bool IsOutsideOfLoops(const PlannedNode& n) { return n.frame == 0 && n.output_frame == 0; }

// Numbered sets of small integers.
class Sets {
 public:
  static constexpr int kUnknown = -1;  // not looked into any more
  static constexpr int kEmpty = 0;

  Sets() { numbers_.emplace(Bits(), kEmpty), sets_.emplace_back(); }

  int Union(int a, int b) {
    if (a == b || b == kEmpty) return a;
    if (a == kEmpty) return b;
    if (a == kUnknown || b == kUnknown) return kUnknown;
    const auto [at, is_new] = unions_.try_emplace(std::minmax(a, b), kUnknown);
    if (!is_new) return at->second;
    Bits bits = sets_[static_cast<size_t>(a)];
    const Bits& other = sets_[static_cast<size_t>(b)];
    if (bits.size() < other.size()) bits.resize(other.size());
    for (size_t i = 0; i < other.size(); ++i) bits[i] |= other[i];
    return at->second = NumberOf(std::move(bits));
  }
  // `a` and an integer that was in none before.
  int With(int a, size_t integer) {
    if (a == kUnknown) return kUnknown;
    Bits bits = sets_[static_cast<size_t>(a)];
    bits.resize(std::max(bits.size(), integer / 64 + 1));
    bits[integer / 64] |= uint64_t{1} << (integer % 64);
    return NumberOf(std::move(bits));
  }

 private:
  using Bits = std::vector<uint64_t>;

  int NumberOf(Bits bits) {
    if (const auto at = numbers_.find(bits); at != numbers_.end()) return at->second;
    bytes_ += 2 * bits.size() * sizeof(uint64_t) + 64;
    if (bytes_ > kMaxSetBytes) return kUnknown;
    const int number = static_cast<int>(sets_.size());
    sets_.push_back(bits);
    numbers_.emplace(std::move(bits), number);
    return number;
  }

  absl::flat_hash_map<Bits, int> numbers_;
  std::vector<Bits> sets_;
  absl::flat_hash_map<std::pair<int, int>, int> unions_;
  size_t bytes_ = 0;
};

class WaitCutter {
 public:
  explicit WaitCutter(const PlanGraph& graph)
      : graph_(graph), waits_for_(graph.nodes.size()), leads_(graph.nodes.size()), unit_(graph.nodes.size(), -1) {}

  PlanCut Cut() {
    FindWaits();
    FindWhatLeadsToWaits();
    for (size_t k = 0; k < graph_.nodes.size(); ++k) {
      if (IsStep(graph_.nodes[k])) Place(static_cast<int>(k));
    }
    return Sorted();
  }

 private:
  const PlannedNode& At(int k) const { return graph_.nodes[static_cast<size_t>(k)]; }

  template <typename Visit>
  void ForEachSource(const PlannedNode& n, Visit visit) const {
    for (const PlannedNode::Input& in : n.inputs) {
      if (!IsBackEdge(At(in.node).control, n.control)) visit(in.node);
    }
    for (const int c : n.controls) visit(c);
  }

  bool MergesDifferentWaits(const PlannedNode& n) const {
    if (n.control != ControlOp::kMerge) return false;
    return std::any_of(n.inputs.begin(), n.inputs.end(), [&](const PlannedNode::Input& in) {
      const int first = waits_for_[static_cast<size_t>(n.inputs.front().node)];
      const int other = waits_for_[static_cast<size_t>(in.node)];
      return other != first || other == Sets::kUnknown;
    });
  }

  // What each node waits for, itself included.
  void FindWaits() {
    Sets sets;
    size_t waits = 0;
    by_itself_.resize(graph_.nodes.size());
    for (size_t k = 0; k < graph_.nodes.size(); ++k) {
      const PlannedNode& n = graph_.nodes[k];
      if (!IsStep(n)) continue;
      int& set = waits_for_[k];
      ForEachSource(n, [&](int from) { set = sets.Union(set, waits_for_[static_cast<size_t>(from)]); });
      const bool waits_here = IsOutsideOfLoops(n) && (n.async != nullptr || MergesDifferentWaits(n));
      by_itself_[k] = waits_here || !IsOutsideOfLoops(n) || set == Sets::kUnknown;
      // A loop is waited for at its Exits.
      const bool leaves_loop = n.frame != 0 && n.output_frame == 0;
      if (waits_here || leaves_loop) set = sets.With(set, waits++);
    }
  }

  void FindWhatLeadsToWaits() {
    for (size_t k = graph_.nodes.size(); k-- > 0;) {
      const PlannedNode& n = graph_.nodes[k];
      if (!by_itself_[k] && !n.is_transfer && !leads_[k]) continue;
      ForEachSource(n, [&](int from) { leads_[static_cast<size_t>(from)] = true; });
    }
    // Without any node that waits one segment does.
    if (std::none_of(by_itself_.begin(), by_itself_.end(), [](bool b) { return b; })) {
      leads_.assign(leads_.size(), false);
      return;
    }
    for (size_t k = 0; k < graph_.nodes.size(); ++k) {
      if (graph_.nodes[k].is_transfer) leads_[k] = true;
    }
  }

  void Place(int k) {
    const auto at = static_cast<size_t>(k);
    int unit = static_cast<int>(units_.size());
    if (!by_itself_[at]) unit = segments_.try_emplace({waits_for_[at], leads_[at]}, unit).first->second;
    if (static_cast<size_t>(unit) == units_.size()) units_.push_back({.nodes = {}, .is_segment = !by_itself_[at]});
    units_[static_cast<size_t>(unit)].nodes.push_back(k);
    unit_[at] = unit;
  }

  // Sources first; among those that could be next the nodes that wait, which may be under way while others run, then
  // by the graph's order.
  PlanCut Sorted() {
    std::vector<int> pending(units_.size()), last_seen(units_.size(), -1);
    std::vector<std::vector<int>> followers(units_.size());
    for (size_t u = 0; u < units_.size(); ++u) {
      for (const int k : units_[u].nodes) {
        ForEachSource(At(k), [&](int from) {
          const int f = unit_[static_cast<size_t>(from)];
          if (f < 0 || f == static_cast<int>(u) || last_seen[static_cast<size_t>(f)] == static_cast<int>(u)) return;
          last_seen[static_cast<size_t>(f)] = static_cast<int>(u);
          followers[static_cast<size_t>(f)].push_back(static_cast<int>(u));
          ++pending[u];
        });
      }
    }
    struct Next {
      bool is_segment;
      int first, unit;
      bool operator<(const Next& o) const {
        return is_segment != o.is_segment ? is_segment > o.is_segment : first > o.first;
      }
    };
    std::priority_queue<Next> next;
    const auto add = [&](int u) {
      const PlanUnit& unit = units_[static_cast<size_t>(u)];
      next.push({unit.is_segment, unit.nodes.front(), u});
    };
    for (size_t u = 0; u < units_.size(); ++u) {
      if (pending[u] == 0) add(static_cast<int>(u));
    }
    PlanCut sorted;
    sorted.reserve(units_.size());
    while (!next.empty()) {
      const auto u = static_cast<size_t>(next.top().unit);
      next.pop();
      sorted.push_back(std::move(units_[u]));
      for (const int f : followers[u]) {
        if (--pending[static_cast<size_t>(f)] == 0) add(f);
      }
    }
    return sorted;
  }

  const PlanGraph& graph_;
  std::vector<int> waits_for_;
  std::vector<bool> leads_;  // to a node that waits, or to a transfer
  std::vector<bool> by_itself_;
  std::vector<int> unit_;
  absl::flat_hash_map<std::pair<int, bool>, int> segments_;
  PlanCut units_;
};

}  // namespace

PlanCut CutIntoNodes(const PlanGraph& graph) {
  PlanCut cut;
  for (size_t k = 0; k < graph.nodes.size(); ++k) {
    if (IsStep(graph.nodes[k])) cut.push_back({.nodes = {static_cast<int>(k)}, .is_segment = false});
  }
  return cut;
}

PlanCut CutByWaits(const PlanGraph& graph) { return WaitCutter(graph).Cut(); }

}  // namespace millrace
