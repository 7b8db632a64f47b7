// SPDX-License-Identifier: Apache-2.0
// Sets of waiting nodes are numbered as they are found, and unions of two numbers are remembered, so that a straight
// line costs one look-up a node. A graph with many waits may have as many sets as nodes: when their memory passes a
// limit, what follows is cut into nodes, which keeps every edge; uses of states have no order there.
#include "runtime/plan_cut.h"

#include <algorithm>
#include <bit>
#include <queue>
#include <tuple>

#include "base/hash_map.h"
#include "runtime/state_use.h"

namespace millrace {
namespace {

constexpr size_t kMaxSetBytes = size_t{32} << 20;

bool IsStep(const PlannedNode& n) { return n.kind == PlannedNode::Kind::kStep; }
// Its outputs are in another iteration or loop.
bool GoesElsewhere(const PlannedNode& n) { return n.frame != n.output_frame || n.control == ControlOp::kNextIteration; }

template <typename Visit>
void ForEachSource(const PlanGraph& graph, const PlannedNode& n, Visit visit) {
  for (const PlannedNode::Input& in : n.inputs) {
    if (!IsBackEdge(graph.nodes[static_cast<size_t>(in.node)].control, n.control)) visit(in.node);
  }
  for (const int c : n.controls) visit(c);
}

// Numbered sets of small integers.
class Sets {
 public:
  static constexpr int kUnknown = -1;  // not looked into any more
  static constexpr int kEmpty = 0;

  Sets() { numbers_.emplace(Bits(), kEmpty), sets_.emplace_back(), folded_.push_back(0); }

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
  // Whether `b` has all of `a`, which is another one, and more.
  bool IsPart(int a, int b) const {
    if (a == kUnknown || b == kUnknown || a == b) return false;
    if ((folded_[static_cast<size_t>(a)] & ~folded_[static_cast<size_t>(b)]) != 0) return false;
    const Bits &part = sets_[static_cast<size_t>(a)], &all = sets_[static_cast<size_t>(b)];
    return part.size() <= all.size() &&
           std::equal(part.begin(), part.end(), all.begin(), [](uint64_t p, uint64_t q) { return (p & ~q) == 0; });
  }
  size_t Size(int a) const {
    if (a == kUnknown) return 0;
    size_t size = 0;
    for (const uint64_t word : sets_[static_cast<size_t>(a)]) size += static_cast<size_t>(std::popcount(word));
    return size;
  }

 private:
  using Bits = std::vector<uint64_t>;

  int NumberOf(Bits bits) {
    if (const auto at = numbers_.find(bits); at != numbers_.end()) return at->second;
    bytes_ += 2 * bits.size() * sizeof(uint64_t) + 64;
    if (bytes_ > kMaxSetBytes) return kUnknown;
    const int number = static_cast<int>(sets_.size());
    uint64_t folded = 0;
    for (size_t i = 0; i < bits.size(); ++i) folded |= std::rotl(bits[i], static_cast<int>(i % 64));
    folded_.push_back(folded);
    sets_.push_back(bits);
    numbers_.emplace(std::move(bits), number);
    return number;
  }

  HashMap<Bits, int> numbers_;
  std::vector<Bits> sets_;
  std::vector<uint64_t> folded_;  // by number: all words of a set in one, which says quickly that it is part of none
  HashMap<std::pair<int, int>, int> unions_;
  size_t bytes_ = 0;
};

class WaitCutter {
 public:
  explicit WaitCutter(const PlanGraph& graph)
      : graph_(graph), waits_for_(graph.nodes.size()), leads_(graph.nodes.size()) {}

  PlanCut Cut() {
    FindWaits();
    FindWhatLeadsToWaits();
    for (size_t k = 0; k < graph_.nodes.size(); ++k) {
      if (IsStep(graph_.nodes[k])) Place(static_cast<int>(k));
    }
    std::vector<std::pair<int, int>> order = OrderOfUnits();
    return SortedCut(graph_, {std::move(units_), std::move(order)});
  }
  // Of nodes by themselves.
  std::vector<std::pair<int, int>> OrderOfNodes() {
    FindWaits();
    HashMap<std::pair<int, int>, int> numbers;
    std::vector<std::pair<int, int>> group_at;  // by number: the frame and what is waited for
    std::vector<int> group(graph_.nodes.size(), -1);
    for (size_t k = 0; k < graph_.nodes.size(); ++k) {
      const PlannedNode& n = graph_.nodes[k];
      // A Merge goes on with the first that comes, and waits for nothing else.
      if (n.async != nullptr || n.control == ControlOp::kMerge || GoesElsewhere(n)) continue;
      if (waits_for_[k] == Sets::kUnknown) continue;
      const std::pair<int, int> at = {n.frame, waits_for_[k]};
      const auto [number, is_new] = numbers.try_emplace(at, static_cast<int>(group_at.size()));
      if (is_new) group_at.push_back(at);
      group[k] = number->second;
    }
    const auto goes_first = [&](int a, int b) {
      const auto &x = group_at[static_cast<size_t>(a)], &y = group_at[static_cast<size_t>(b)];
      return x.first == y.first && sets_.IsPart(x.second, y.second);
    };
    const auto rank = [&](int g) { return sets_.Size(group_at[static_cast<size_t>(g)].second); };
    return OrderOfStates(graph_, {.group = group, .goes_first = goes_first, .rank = rank});
  }

 private:
  const PlannedNode& At(int k) const { return graph_.nodes[static_cast<size_t>(k)]; }

  // Of a loop: goes on with what enters it, or with what comes from the iteration before.
  bool IsHead(const PlannedNode& n) const {
    return std::any_of(n.inputs.begin(), n.inputs.end(), [&](const PlannedNode::Input& in) {
      return IsBackEdge(At(in.node).control, n.control);
    });
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
    size_t waits = 0;
    by_itself_.resize(graph_.nodes.size());
    for (size_t k = 0; k < graph_.nodes.size(); ++k) {
      const PlannedNode& n = graph_.nodes[k];
      if (!IsStep(n)) continue;
      int& set = waits_for_[k];
      ForEachSource(graph_, n, [&](int from) { set = sets_.Union(set, waits_for_[static_cast<size_t>(from)]); });
      const bool waits_here = n.async != nullptr || IsHead(n) || MergesDifferentWaits(n);
      by_itself_[k] = waits_here || GoesElsewhere(n) || set == Sets::kUnknown;
      // A loop is waited for at its Exits. What enters one is there when it is there outside.
      const bool ends_something = n.control == ControlOp::kExit || n.control == ControlOp::kNextIteration;
      if (waits_here || ends_something) set = sets_.With(set, waits++);
    }
  }

  // What decides whether a loop goes on, over all iterations: the sooner it is known, the more of them overlap.
  void FindWhatLeadsToDecisions() {
    std::vector<int> open;
    const auto add = [&](int k) {
      if (leads_[static_cast<size_t>(k)] || At(k).control == ControlOp::kEnter) return;
      leads_[static_cast<size_t>(k)] = true;
      open.push_back(k);
    };
    for (size_t k = 0; k < graph_.nodes.size(); ++k) {
      if (graph_.nodes[k].control == ControlOp::kLoopCond && graph_.nodes[k].frame != 0) add(static_cast<int>(k));
    }
    while (!open.empty()) {
      const PlannedNode& n = At(open.back());
      open.pop_back();
      for (const PlannedNode::Input& in : n.inputs) add(in.node);
      for (const int c : n.controls) add(c);
    }
  }

  void FindWhatLeadsToWaits() {
    FindWhatLeadsToDecisions();
    struct Leading {
      bool reads = false, changes = false;
    };
    HashMap<std::tuple<int, int, int>, Leading> leading;  // uses of a state that stand later, in the same frame and set
    for (size_t k = graph_.nodes.size(); k-- > 0;) {
      const PlannedNode& n = graph_.nodes[k];
      if (n.state_use != StateUse::kNone && !by_itself_[k]) {
        Leading& later = leading[{n.state, n.frame, waits_for_[k]}];
        const bool changes = n.state_use == StateUse::kChanges;
        if (later.changes || (changes && later.reads)) leads_[k] = true;
        if (leads_[k] || n.is_transfer) (changes ? later.changes : later.reads) = true;
      }
      const bool waits = by_itself_[k] && n.control != ControlOp::kNextIteration && n.control != ControlOp::kExit;
      if (!waits && !n.is_transfer && !leads_[k]) continue;
      ForEachSource(graph_, n, [&](int from) { leads_[static_cast<size_t>(from)] = true; });
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
    if (!by_itself_[at]) unit = segments_.try_emplace({At(k).frame, waits_for_[at], leads_[at]}, unit).first->second;
    if (static_cast<size_t>(unit) == units_.size()) units_.push_back({.nodes = {}, .is_segment = !by_itself_[at]});
    units_[static_cast<size_t>(unit)].nodes.push_back(k);
    units_[static_cast<size_t>(unit)].pays_a_thread |= At(k).expensive;
  }

  // Only segments take part: nodes by themselves wait, or pass values on.
  std::vector<std::pair<int, int>> OrderOfUnits() const {
    std::vector<int> group(graph_.nodes.size(), -1);
    for (size_t u = 0; u < units_.size(); ++u) {
      for (const int k : units_[u].nodes) {
        if (units_[u].is_segment) group[static_cast<size_t>(k)] = static_cast<int>(u);
      }
    }
    const auto goes_first = [&](int a, int b) {
      const auto x = static_cast<size_t>(units_[static_cast<size_t>(a)].nodes.front());
      const auto y = static_cast<size_t>(units_[static_cast<size_t>(b)].nodes.front());
      if (graph_.nodes[x].frame != graph_.nodes[y].frame) return false;
      return waits_for_[x] == waits_for_[y] ? leads_[x] && !leads_[y] : sets_.IsPart(waits_for_[x], waits_for_[y]);
    };
    const auto rank = [&](int u) {
      const auto first = static_cast<size_t>(units_[static_cast<size_t>(u)].nodes.front());
      return 2 * sets_.Size(waits_for_[first]) + (leads_[first] ? 0 : 1);
    };
    return OrderOfStates(graph_, {.group = group, .goes_first = goes_first, .rank = rank, .as_one = true});
  }

  const PlanGraph& graph_;
  Sets sets_;
  std::vector<int> waits_for_;
  std::vector<bool> leads_;  // to a node that waits, a transfer, or what decides whether a loop goes on
  std::vector<bool> by_itself_;
  HashMap<std::tuple<int, int, bool>, int> segments_;
  std::vector<PlanUnit> units_;
};

}  // namespace

// By unit: those that wait for it.
std::vector<std::vector<int>> FollowersOf(const PlanGraph& graph, const PlanCut& cut) {
  std::vector<int> unit_of(graph.nodes.size(), -1), seen(cut.units.size(), -1);
  for (size_t u = 0; u < cut.units.size(); ++u) {
    for (const int k : cut.units[u].nodes) unit_of[static_cast<size_t>(k)] = static_cast<int>(u);
  }
  std::vector<std::vector<int>> before(cut.units.size()), followers(cut.units.size());  // `before`: by PlanCut::order
  for (const auto& [from, to] : cut.order) {
    before[static_cast<size_t>(unit_of[static_cast<size_t>(to)])].push_back(unit_of[static_cast<size_t>(from)]);
  }
  for (size_t u = 0; u < cut.units.size(); ++u) {
    const auto follow = [&](int from) {
      if (from < 0 || from == static_cast<int>(u)) return;
      if (std::exchange(seen[static_cast<size_t>(from)], static_cast<int>(u)) == static_cast<int>(u)) return;
      followers[static_cast<size_t>(from)].push_back(static_cast<int>(u));
    };
    for (const int k : cut.units[u].nodes) {
      ForEachSource(
          graph, graph.nodes[static_cast<size_t>(k)], [&](int from) { follow(unit_of[static_cast<size_t>(from)]); });
    }
    for (const int from : before[u]) follow(from);
  }
  return followers;
}

// Sources first; among those that could be next the nodes by themselves, which may be under way while others run, then
// by the graph's order.
PlanCut SortedCut(const PlanGraph& graph, PlanCut cut) {
  const std::vector<std::vector<int>> followers = FollowersOf(graph, cut);
  std::vector<int> pending(cut.units.size());
  for (const std::vector<int>& list : followers) {
    for (const int f : list) ++pending[static_cast<size_t>(f)];
  }
  struct Next {
    bool is_segment;
    int first, unit;
    bool operator<(const Next& o) const {
      return is_segment != o.is_segment ? is_segment > o.is_segment : first > o.first;
    }
  };
  std::priority_queue<Next> next;
  const auto add = [&](size_t u) {
    next.push({cut.units[u].is_segment, cut.units[u].nodes.front(), static_cast<int>(u)});
  };
  for (size_t u = 0; u < cut.units.size(); ++u) {
    if (pending[u] == 0) add(u);
  }
  std::vector<PlanUnit> sorted;
  sorted.reserve(cut.units.size());
  while (!next.empty()) {
    const auto u = static_cast<size_t>(next.top().unit);
    next.pop();
    sorted.push_back(std::move(cut.units[u]));
    for (const int f : followers[u]) {
      if (--pending[static_cast<size_t>(f)] == 0) add(static_cast<size_t>(f));
    }
  }
  cut.units = std::move(sorted);
  return cut;
}

PlanCut CutIntoNodes(const PlanGraph& graph) {
  PlanCut cut;
  for (size_t k = 0; k < graph.nodes.size(); ++k) {
    if (!IsStep(graph.nodes[k])) continue;
    cut.units.push_back(
        {.nodes = {static_cast<int>(k)}, .is_segment = false, .pays_a_thread = graph.nodes[k].expensive});
  }
  cut.order = WaitCutter(graph).OrderOfNodes();
  return cut;
}

PlanCut CutByWaits(const PlanGraph& graph) { return WaitCutter(graph).Cut(); }

}  // namespace millrace
