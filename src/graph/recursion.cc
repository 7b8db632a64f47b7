// SPDX-License-Identifier: Apache-2.0
// Tarjan's strongly connected components, with a stack of our own: chains of calls may be of any length.
#include "graph/recursion.h"

#include <algorithm>

#include "base/hash_map.h"

namespace millrace {
namespace {

void CollectCalls(const Graph& graph, const wire::AttrValue& attr, std::vector<absl::string_view>* out) {
  const auto add = [&](const wire::NameAttrList& f) {
    if (const auto* found = graph.FindFunction(f.name)) out->push_back(found->signature->name);
  };
  if (attr.kind == wire::AttrValue::Kind::kFunc && attr.func) add(*attr.func);
  if (attr.kind == wire::AttrValue::Kind::kList && attr.list) {
    for (const auto& f : attr.list->func) add(f);
  }
}

class Components {
 public:
  explicit Components(const Graph& library) : library_(library) {}

  void VisitFrom(const wire::FunctionDef& root) {
    if (!known_.contains(root.signature->name)) Push(root);
    while (!visits_.empty()) {
      Visit& top = visits_.back();
      if (top.next == top.calls.size()) {
        Leave();
        continue;
      }
      const absl::string_view callee = top.calls[top.next++];
      if (callee == top.name) recursive_.insert(std::string(callee));
      auto it = known_.find(callee);
      if (it == known_.end()) {
        Push(*library_.FindFunction(callee));
      } else if (it->second.open) {
        top.lowest = std::min(top.lowest, it->second.number);
      }
    }
  }
  HashSet<std::string> Take() { return std::move(recursive_); }

 private:
  struct Visit {
    absl::string_view name;
    std::vector<absl::string_view> calls;
    int lowest;  // the first open function that it reaches
    size_t next = 0;
  };
  struct Known {
    int number;
    bool open;  // its component is not complete
  };

  void Push(const wire::FunctionDef& f) {
    const int number = static_cast<int>(known_.size());
    known_[f.signature->name] = {number, true};
    open_.push_back(f.signature->name);
    visits_.push_back({f.signature->name, CallsOf(library_, f), number});
  }

  void Leave() {
    const Visit done = std::move(visits_.back());
    visits_.pop_back();
    if (!visits_.empty()) visits_.back().lowest = std::min(visits_.back().lowest, done.lowest);
    if (done.lowest != known_[done.name].number) return;
    const bool alone = open_.back() == done.name;
    absl::string_view member;
    do {
      member = open_.back();
      open_.pop_back();
      known_[member].open = false;
      if (!alone) recursive_.insert(std::string(member));
    } while (member != done.name);
  }

  const Graph& library_;
  HashMap<absl::string_view, Known> known_;
  std::vector<absl::string_view> open_;
  std::vector<Visit> visits_;
  HashSet<std::string> recursive_;
};

}  // namespace

std::vector<absl::string_view> CallsOf(const Graph& graph, const wire::FunctionDef& def) {
  std::vector<absl::string_view> out;
  for (const wire::NodeDef& n : def.node_def) {
    if (const auto* f = graph.FindFunction(n.op)) out.push_back(f->signature->name);
    for (const auto& [name, attr] : n.attr) CollectCalls(graph, attr, &out);
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

HashSet<std::string> RecursiveFunctions(const Graph& library) {
  Components components(library);
  for (const wire::FunctionDef* f : library.Functions()) components.VisitFrom(*f);
  return components.Take();
}

}  // namespace millrace
