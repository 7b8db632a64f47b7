// SPDX-License-Identifier: Apache-2.0
// The cut for several threads: nodes are dealt out to as many lanes as there are threads, the one with the longest way
// to the end first, each to where it would end first; a value from another lane comes later by a hand-over. Then each
// lane is cut where it must wait for another one and where another one waits for it.
#include <algorithm>
#include <queue>

#include "runtime/plan_cut.h"
#include "runtime/state_use.h"

namespace millrace {
namespace {

constexpr double kHandOverNanos = 15e3;
constexpr double kUnitNanos = 1.5e3;   // to count a unit for readiness
constexpr double kLightNanos = 4e3;    // stays with what it follows
constexpr double kThreadNanos = 10e3;  // what a unit must cost for another thread to be asked

bool IsStep(const PlannedNode& n) { return n.kind == PlannedNode::Kind::kStep; }

std::vector<std::pair<int, int>> OrderInOneGroup(const PlanGraph& graph) {
  return OrderOfStates(
      graph, {.group = std::vector<int>(graph.nodes.size(), 0),
              .goes_first = [](int, int) { return false; },
              .rank = [](int) { return size_t{0}; }});
}

// The nodes of a step with all that they wait for.
struct Lines {
  std::vector<int> nodes;                  // of the graph
  std::vector<std::vector<int>> from, to;  // by node of the graph; each source once
  std::vector<std::pair<int, int>> order;  // the edges among these that keep the uses of states in order

  explicit Lines(const PlanGraph& graph)
      : from(graph.nodes.size()), to(graph.nodes.size()), order(OrderInOneGroup(graph)) {
    for (const auto& [before, after] : order) from[static_cast<size_t>(after)].push_back(before);
    for (size_t k = 0; k < graph.nodes.size(); ++k) {
      const PlannedNode& n = graph.nodes[k];
      if (!IsStep(n)) continue;
      nodes.push_back(static_cast<int>(k));
      const auto link = [&](int source) {
        if (IsStep(graph.nodes[static_cast<size_t>(source)])) from[k].push_back(source);
      };
      for (const PlannedNode::Input& in : n.inputs) link(in.node);
      for (const int c : n.controls) link(c);
      std::sort(from[k].begin(), from[k].end());
      from[k].erase(std::unique(from[k].begin(), from[k].end()), from[k].end());
      for (const int source : from[k]) to[static_cast<size_t>(source)].push_back(static_cast<int>(k));
    }
  }
};

class Lanes {
 public:
  Lanes(const Lines& lines, absl::Span<const double> nanos, int threads)
      : lines_(lines),
        nanos_(nanos),
        lanes_(static_cast<size_t>(threads)),
        free_at_(static_cast<size_t>(threads)),
        lane_of_(nanos.size(), -1),
        ends_(nanos.size()) {
    Deal();
  }

  PlanCut Cut() {
    FindMeetings();
    PlanCut cut;
    for (const std::vector<int>& lane : lanes_) {
      bool begins = true;
      for (const int k : lane) {
        const auto at = static_cast<size_t>(k);
        if (begins || begins_unit_[at]) cut.units.push_back({.nodes = {}, .is_segment = true});
        cut.units.back().nodes.push_back(k);
        begins = ends_unit_[at];
      }
    }
    for (PlanUnit& u : cut.units) {
      double cost = 0;
      for (const int k : u.nodes) cost += nanos_[static_cast<size_t>(k)];
      u.pays_a_thread = cost >= kThreadNanos;
    }
    cut.order = lines_.order;
    return cut;
  }

 private:
  // The longest way from the beginning of each node to the end of the step.
  std::vector<double> Ways() const {
    std::vector<double> way(nanos_.size());
    for (auto k = lines_.nodes.rbegin(); k != lines_.nodes.rend(); ++k) {
      const auto at = static_cast<size_t>(*k);
      for (const int f : lines_.to[at]) way[at] = std::max(way[at], way[static_cast<size_t>(f)]);
      way[at] += nanos_[at];
    }
    return way;
  }

  void Deal() {
    const std::vector<double> way = Ways();
    const auto later = [&](int a, int b) {
      const double wa = way[static_cast<size_t>(a)], wb = way[static_cast<size_t>(b)];
      return wa != wb ? wa < wb : a > b;
    };
    std::priority_queue<int, std::vector<int>, decltype(later)> ready(later);
    std::vector<size_t> pending(nanos_.size());
    for (const int k : lines_.nodes) {
      pending[static_cast<size_t>(k)] = lines_.from[static_cast<size_t>(k)].size();
      if (pending[static_cast<size_t>(k)] == 0) ready.push(k);
    }
    while (!ready.empty()) {
      const int k = ready.top();
      ready.pop();
      Give(k);
      for (const int f : lines_.to[static_cast<size_t>(k)]) {
        if (--pending[static_cast<size_t>(f)] == 0) ready.push(f);
      }
    }
  }

  void Give(int k) {
    const auto at = static_cast<size_t>(k);
    size_t best = 0;
    double best_end = 0;
    const int last = LastSource(k);
    for (size_t lane = 0; lane < lanes_.size(); ++lane) {
      if (last >= 0 && nanos_[at] < kLightNanos && lane_of_[static_cast<size_t>(last)] != static_cast<int>(lane)) {
        continue;
      }
      double begin = free_at_[lane];
      for (const int source : lines_.from[at]) {
        const bool is_here = lane_of_[static_cast<size_t>(source)] == static_cast<int>(lane);
        begin = std::max(begin, ends_[static_cast<size_t>(source)] + (is_here ? 0 : kHandOverNanos));
      }
      const double end = begin + nanos_[at];
      if (best_end == 0 || end < best_end) {
        best = lane;
        best_end = end;
      }
    }
    lane_of_[at] = static_cast<int>(best);
    ends_[at] = free_at_[best] = best_end;
    lanes_[best].push_back(k);
    dealt_.push_back(k);
  }

  // The one that ends last, -1: none.
  int LastSource(int k) const {
    int last = -1;
    for (const int source : lines_.from[static_cast<size_t>(k)]) {
      if (last < 0 || ends_[static_cast<size_t>(source)] > ends_[static_cast<size_t>(last)]) last = source;
    }
    return last;
  }

  // Where a lane must wait for another one: not where it has waited for something later of that lane before, or for a
  // lane that has.
  void FindMeetings() {
    const size_t threads = lanes_.size();
    begins_unit_.assign(nanos_.size(), false);
    ends_unit_.assign(nanos_.size(), false);
    std::vector<int> place(nanos_.size());                                       // in its lane
    std::vector<std::vector<int>> seen(threads, std::vector<int>(threads, -1));  // by lane: how far it knows each lane
    std::vector<std::vector<int>> seen_at(nanos_.size());                        // the same when a node has run
    for (const int k : dealt_) {
      const auto at = static_cast<size_t>(k);
      const auto lane = static_cast<size_t>(lane_of_[at]);
      for (const int source : lines_.from[at]) {
        const auto s = static_cast<size_t>(source);
        const auto other = static_cast<size_t>(lane_of_[s]);
        if (other == lane || place[s] <= seen[lane][other]) continue;
        begins_unit_[at] = true;
        ends_unit_[s] = true;
        for (size_t l = 0; l < threads; ++l) seen[lane][l] = std::max(seen[lane][l], seen_at[s][l]);
      }
      place[at] = ++seen[lane][lane];
      seen_at[at] = seen[lane];
    }
  }

  const Lines& lines_;
  const absl::Span<const double> nanos_;
  std::vector<std::vector<int>> lanes_;
  std::vector<double> free_at_;
  std::vector<int> lane_of_;
  std::vector<double> ends_;
  std::vector<int> dealt_;  // all nodes, sources first
  std::vector<bool> begins_unit_, ends_unit_;
};

}  // namespace

bool MayHaveWidth(const PlanGraph& graph) {
  const Lines lines(graph);
  std::vector<int> longest(graph.nodes.size());  // way of expensive nodes to each
  int count = 0, most = 0;
  for (const int k : lines.nodes) {
    const auto at = static_cast<size_t>(k);
    for (const int source : lines.from[at]) longest[at] = std::max(longest[at], longest[static_cast<size_t>(source)]);
    longest[at] += graph.nodes[at].expensive;
    count += graph.nodes[at].expensive;
    most = std::max(most, longest[at]);
  }
  return most < count;
}

PlanCut CutByCost(const PlanGraph& graph, absl::Span<const double> nanos, int threads) {
  const Lines lines(graph);
  return SortedCut(graph, Lanes(lines, nanos, threads).Cut());
}

double EstimateNanos(const PlanGraph& graph, const PlanCut& cut, absl::Span<const double> nanos, int threads) {
  const std::vector<std::vector<int>> followers = FollowersOf(graph, cut);
  std::vector<double> free_at(static_cast<size_t>(threads)), starts(cut.units.size());
  std::vector<int> last_thread(cut.units.size(), -1);
  double all = 0;
  for (size_t u = 0; u < cut.units.size(); ++u) {
    // Whoever made it ready goes on with it, unless another thread could begin earlier.
    size_t best = 0;
    double best_begin = -1;
    for (size_t t = 0; t < free_at.size(); ++t) {
      const bool handed_over = last_thread[u] >= 0 && last_thread[u] != static_cast<int>(t);
      const double begin = std::max(free_at[t], starts[u] + (handed_over ? kHandOverNanos : 0));
      if (best_begin >= 0 && begin >= best_begin) continue;
      best = t;
      best_begin = begin;
    }
    double end = best_begin + kUnitNanos;
    for (const int k : cut.units[u].nodes) end += nanos[static_cast<size_t>(k)];
    free_at[best] = end;
    all = std::max(all, end);
    for (const int f : followers[u]) {
      if (end < starts[static_cast<size_t>(f)]) continue;
      starts[static_cast<size_t>(f)] = end;
      last_thread[static_cast<size_t>(f)] = static_cast<int>(best);
    }
  }
  return all;
}

}  // namespace millrace
