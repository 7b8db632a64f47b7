// SPDX-License-Identifier: Apache-2.0
#include "runtime/update_order.h"

#include <algorithm>

#include "base/hash_map.h"
#include "graph/variable_use.h"

namespace millrace {
namespace {

bool IsHandle(DType t) { return IsRef(t) || t == DType::kResource; }

bool TakesVariable(const Node& n, int i) { return n.op() && IsHandle(n.input_type(i)); }

bool IsUpdate(const Node& n) { return n.Is(OpTrait::kUpdatesVariable) && n.num_inputs() > 0; }

// Nothing but a value out of a variable, which costs nothing to hold.
bool IsRead(const Node& n) {
  if (!n.op() || n.num_inputs() != 1 || n.num_outputs() != 1 || !n.input(0)) return false;
  if (IsRef(n.input(0).dtype())) return !n.op()->stateful;
  return n.Is(OpTrait::kReadsVariable);
}

// There before the step begins.
bool IsGiven(const Node& n) {
  if (!n.op() || n.num_inputs() != 0 || n.num_outputs() != 1 || !n.control_inputs().empty()) return false;
  return n.Is(OpTrait::kConstant) || n.Is(OpTrait::kMakesVariable) || IsRef(n.output_type(0));
}

// Numbers variables: one number for all nodes that make the same one. A handle from outside, an argument, may lead to
// any variable; where one is updated, all are one.
class Variables {
 public:
  explicit Variables(const std::vector<Node*>& order) {
    one_for_all_ = std::any_of(order.begin(), order.end(), [](const Node* n) {
      return IsUpdate(*n) && n->input(0) && !HasName(*n->input(0).node) && n->input(0).node->num_inputs() == 0;
    });
  }
  int NumberOf(const Node& maker) {
    std::string key;
    if (!one_for_all_) key = HasName(maker) ? VariableKey(maker) : absl::StrCat("node ", maker.name());
    return numbers_.try_emplace(std::move(key), static_cast<int>(numbers_.size())).first->second;
  }

 private:
  static bool HasName(const Node& n) { return n.attrs().contains("shared_name") || IsRef(n.output_type(0)); }

  bool one_for_all_ = false;
  HashMap<std::string, int> numbers_;
};

}  // namespace

void MoveUpdatesUp(std::vector<Node*>& order) {
  Variables variables(order);
  // The variable that each reference leads to, and that each value was read from.
  HashMap<Output, int> variable_of;
  // The place in the new order: 0 is the front, k + 1 is behind what stood at k.
  HashMap<const Node*, size_t> place;
  HashMap<int, size_t> last_touch;  // by variable
  std::vector<std::vector<Node*>> behind(order.size() + 1);
  for (size_t k = 0; k < order.size(); ++k) {
    Node* n = order[k];
    std::vector<int> touched;
    for (Output in : n->inputs()) {
      if (auto it = variable_of.find(in); it != variable_of.end()) touched.push_back(it->second);
    }
    size_t after = 0;
    for (Output in : n->inputs()) {
      if (in && place.contains(in.node)) after = std::max(after, place[in.node]);
    }
    for (const Node* c : n->control_inputs()) {
      if (place.contains(c)) after = std::max(after, place[c]);
    }
    for (const int v : touched) after = std::max(after, last_touch[v]);
    place[n] = IsUpdate(*n) || IsRead(*n) || IsGiven(*n) ? after : k + 1;
    behind[place[n]].push_back(n);
    for (const int v : touched) last_touch[v] = std::max(last_touch[v], place[n]);
    for (int o = 0; o < n->num_outputs(); ++o) {
      const Output out = n->output(o);
      const bool refers = IsHandle(n->output_type(o));
      if (refers && touched.empty()) {
        variable_of[out] = variables.NumberOf(*n);
      } else if (!touched.empty() && (refers || TakesVariable(*n, 0) || n->num_inputs() == 1)) {
        variable_of[out] = touched.front();  // a reference passed on, or a value that may share the buffer
      }
    }
  }
  size_t at = 0;
  for (const std::vector<Node*>& group : behind) {
    for (Node* n : group) order[at++] = n;
  }
}

}  // namespace millrace
