// SPDX-License-Identifier: Apache-2.0
#include "runtime/state_use.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "base/hash_map.h"
#include "graph/variable_use.h"
#include "runtime/plan_graph.h"

namespace millrace {
namespace {

bool IsHandle(DType t) { return IsRef(t) || t == DType::kResource; }

bool CallsFunction(const Node& n) {
  return std::any_of(n.attrs().begin(), n.attrs().end(), [](const auto& attr) {
    return attr.second.template get<FuncAttr>() != nullptr ||
           attr.second.template get<std::vector<FuncAttr>>() != nullptr;
  });
}

// The state that a node makes, or finds by its name; empty: it may be any.
std::string KeyOf(const Node& n) {
  if (n.op() == nullptr || n.Is(OpTrait::kInternal) || CallsFunction(n)) return "";
  const bool has_name = n.num_inputs() == 0 && (n.attrs().contains("shared_name") || n.Is(OpTrait::kMakesVariable));
  if (has_name) return VariableKey(n);
  return n.op()->stateful || IsRef(n.output_type(0)) ? absl::StrCat("node ", n.name()) : "";
}

}  // namespace

StateUse UseOfInputs(const Node& n) {
  StateUse use = StateUse::kNone;
  for (int i = 0; i < n.num_inputs(); ++i) {
    const bool is_handle = IsHandle(n.input_type(i));
    if (is_handle && n.control_op() != ControlOp::kNone) continue;
    if (is_handle && !n.Is(OpTrait::kPassesOn) && !n.Is(OpTrait::kReadsVariable)) return StateUse::kChanges;
    if (is_handle || IsRef(n.input(i).dtype())) use = StateUse::kReads;
  }
  return use;
}

StateNumbers::StateNumbers(const std::vector<Node*>& order, int num_ids)
    : joined_to_{kOutside}, of_node_(static_cast<size_t>(num_ids), -1) {
  const auto of = [&](const Node* n) -> int& { return of_node_[static_cast<size_t>(n->id())]; };
  const auto add = [&] {
    joined_to_.push_back(static_cast<int>(joined_to_.size()));
    return joined_to_.back();
  };
  HashMap<std::string, int> by_key;
  bool may_be_any = false;
  for (const Node* n : order) {
    int state = -1;
    for (const Output in : n->inputs()) {
      if (in && IsHandle(in.dtype())) state = Join(state, of(in.node));
    }
    const auto& outputs = n->signature().output_types;
    if (std::any_of(outputs.begin(), outputs.end(), IsHandle)) {
      const bool comes_in = state >= 0 && !n->Is(OpTrait::kInternal) && !CallsFunction(*n);
      const std::string key = comes_in ? "" : KeyOf(*n);
      if (!key.empty()) {
        const auto [at, is_new] = by_key.try_emplace(key, -1);
        if (is_new) at->second = add();
        state = Join(state, at->second);
      } else if (!comes_in) {
        may_be_any = true;
        state = Join(state, add());
      }
    }
    of(n) = state;
  }
  for (const Node* n : order) {  // back edges of loops
    for (const Output in : n->inputs()) {
      if (in && n->control_op() == ControlOp::kMerge && IsHandle(in.dtype())) Join(of(n), of(in.node));
    }
  }
  for (int state = 2; may_be_any && state < static_cast<int>(joined_to_.size()); ++state) Join(1, state);
}

int StateNumbers::Of(const Node& n) const {
  const int state = of_node_[static_cast<size_t>(n.id())];
  return state < 0 ? kOutside : Root(state);
}

int StateNumbers::Root(int state) const {
  while (joined_to_[static_cast<size_t>(state)] != state) state = joined_to_[static_cast<size_t>(state)];
  return state;
}

int StateNumbers::Join(int a, int b) {
  if (a < 0 || b < 0) return std::max(a, b);
  const auto [low, high] = std::minmax({Root(a), Root(b)});
  joined_to_[static_cast<size_t>(high)] = low;
  joined_to_[static_cast<size_t>(a)] = joined_to_[static_cast<size_t>(b)] = low;  // short ways
  return low;
}

namespace {

// Of one state in one group.
struct Uses {
  std::vector<int> first_reads, last_reads;  // before the first change and since the last one
  int first_change = -1, last_change = -1;

  bool HasChange() const { return last_change >= 0; }
  // `wait`: for the node given.
  template <typename Wait>
  void Add(int node, StateUse use, Wait wait) {
    std::vector<int>& reads = last_change < 0 ? first_reads : last_reads;
    if (use == StateUse::kReads) {
      if (last_change >= 0) wait(last_change);
      reads.push_back(node);
      return;
    }
    if (reads.empty() && last_change >= 0) wait(last_change);
    for (const int r : reads) wait(r);
    if (first_change < 0) first_change = node;
    last_change = node;
    last_reads.clear();
  }

  // Pairs by which those of `later` wait for these, until `add` says that it is enough.
  template <typename Add>
  void GoBefore(const Uses& later, Add add) const {
    if (last_change >= 0) {
      for (const int r : later.first_reads) {
        if (!add(last_change, r)) return;
      }
    }
    if (later.first_change < 0) return;
    const std::vector<int>& reads = last_change < 0 ? first_reads : last_reads;
    for (const int r : reads) {
      if (!add(r, later.first_change)) return;
    }
    if (last_change >= 0 && reads.empty()) add(last_change, later.first_change);
  }
};

// Those of one state in one group.
struct GroupUses {
  int group = 0;
  const Uses* uses = nullptr;
  size_t rank = 0;
};

// Pairs between the groups that use one state. Those that others imply are left out, or a thousand changes behind a
// thousand waits would make half a million.
void OrderGroups(std::vector<GroupUses>& of_state, const GroupOrder& groups, std::vector<std::pair<int, int>>* order) {
  for (GroupUses& g : of_state) g.rank = groups.rank(g.group);
  std::sort(of_state.begin(), of_state.end(), [](const GroupUses& a, const GroupUses& b) {
    return std::tie(a.rank, a.group) < std::tie(b.rank, b.group);
  });
  // By group: those all of whose uses go before all of its own that they must go before.
  std::vector<std::vector<bool>> before(of_state.size());
  for (size_t b = 0; b < of_state.size(); ++b) {
    const Uses& later = *of_state[b].uses;
    before[b].resize(b);
    for (size_t a = b; a-- > 0;) {
      const Uses& earlier = *of_state[a].uses;
      if (before[b][a] || (!earlier.HasChange() && !later.HasChange())) continue;
      if (!groups.goes_first(of_state[a].group, of_state[b].group)) continue;
      earlier.GoBefore(later, [&](int from, int to) {
        order->emplace_back(from, to);
        return !groups.as_one;
      });
      before[b][a] = true;
      if (!earlier.HasChange()) continue;  // reads let others read beside them
      for (size_t i = 0; i < a; ++i) before[b][i] = before[b][i] || before[a][i];
    }
  }
}

}  // namespace

std::vector<std::pair<int, int>> OrderOfStates(const PlanGraph& graph, const GroupOrder& groups) {
  std::vector<std::pair<int, int>> order;
  std::map<std::pair<int, int>, Uses> uses;  // by state and group
  for (size_t k = 0; k < graph.nodes.size(); ++k) {
    const PlannedNode& n = graph.nodes[k];
    if (n.kind != PlannedNode::Kind::kStep || n.state_use == StateUse::kNone || groups.group[k] < 0) continue;
    const int node = static_cast<int>(k);
    uses[{n.state, groups.group[k]}].Add(node, n.state_use, [&](int before) {
      if (!groups.as_one) order.emplace_back(before, node);
    });
  }
  for (auto at = uses.begin(); at != uses.end();) {
    const int state = at->first.first;
    bool changes = false;
    std::vector<GroupUses> of_state;
    for (; at != uses.end() && at->first.first == state; ++at) {
      of_state.push_back({.group = at->first.second, .uses = &at->second});
      changes |= at->second.HasChange();
    }
    if (changes && of_state.size() > 1) OrderGroups(of_state, groups, &order);
  }
  return order;
}

}  // namespace millrace
