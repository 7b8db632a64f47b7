// SPDX-License-Identifier: Apache-2.0
// Common subexpressions (white paper 5.1): stateless nodes with equal op, attributes, inputs and device become one.
#include <algorithm>

#include "base/hash_map.h"
#include "passes/pipeline.h"

namespace millrace {
namespace {

bool MayMerge(const Node& n) {
  if (!n.op() || n.op()->stateful || n.num_outputs() == 0 || n.control_op() != ControlOp::kNone) return false;
  if (n.Is(OpTrait::kInternal) || n.Is(OpTrait::kPlaceholder)) return false;
  for (DType t : n.signature().input_types) {
    if (IsRef(t)) return false;
  }
  for (DType t : n.signature().output_types) {
    if (IsRef(t)) return false;
  }
  return true;
}

// Of long values only a part counts, of rare kinds nothing.
size_t HashOf(const Tensor& t) {
  if (t.dtype() == DType::kString)
    return t.num_elements() > 0 ? absl::HashOf(absl::string_view(*t.data<TString>())) : 0;
  if (!IsPlain(t.dtype())) return 0;
  const size_t bytes = std::min<size_t>(t.TotalBytes(), 256);
  return absl::HashOf(absl::string_view(static_cast<const char*>(t.raw()), bytes), t.num_elements());
}

size_t HashOf(const AttrValue& value) {
  if (const auto* v = value.get<Tensor>()) return HashOf(*v);
  if (const auto* v = value.get<std::string>()) return absl::HashOf(*v);
  if (const auto* v = value.get<int64_t>()) return absl::HashOf(*v);
  if (const auto* v = value.get<DType>()) return absl::HashOf(*v);
  if (const auto* v = value.get<std::vector<int64_t>>()) return v->empty() ? 0 : absl::HashOf(*v);
  return 0;
}

size_t HashOf(const Node& n) {
  size_t h = absl::HashOf(n.op_name(), n.device(), n.inputs(), n.attrs().size());
  for (const Node* c : n.control_inputs()) h += absl::HashOf(c);  // in any order
  for (const auto& [name, value] : n.attrs()) h = h * 31 + HashOf(value);
  return h;
}

bool SameAttrs(const AttrMap& a, const AttrMap& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](const auto& x, const auto& y) {
           return x.first == y.first && x.second.Equals(y.second);
         });
}

bool Same(const Node& a, const Node& b) {
  if (a.op() != b.op() || a.device() != b.device() || a.inputs() != b.inputs()) return false;
  std::vector<Node*> ca = a.control_inputs(), cb = b.control_inputs();
  std::sort(ca.begin(), ca.end());
  std::sort(cb.begin(), cb.end());
  return ca == cb && SameAttrs(a.attrs(), b.attrs());
}

}  // namespace

Status MergeCommonSubexpressions(Graph& graph) {
  MR_ASSIGN_OR_RETURN(const std::vector<Node*> order, TopologicalOrder(graph));
  HashMap<size_t, std::vector<Node*>> seen;
  std::vector<Node*> merged;
  for (Node* n : order) {
    if (!MayMerge(*n)) continue;
    std::vector<Node*>& bucket = seen[HashOf(*n)];
    auto twin = std::find_if(bucket.begin(), bucket.end(), [&](Node* m) { return Same(*m, *n); });
    if (twin == bucket.end()) {
      bucket.push_back(n);
      continue;
    }
    for (int o = 0; o < n->num_outputs(); ++o) MR_RETURN_IF_ERROR(graph.ReplaceUses(n->output(o), (*twin)->output(o)));
    const std::vector<Node*> waiting = n->control_outputs();
    for (Node* to : waiting) {
      graph.AddControlEdge(*twin, to);
      graph.RemoveControlEdge(n, to);
    }
    merged.push_back(n);
  }
  for (auto n = merged.rbegin(); n != merged.rend(); ++n) graph.RemoveNode(*n);
  return absl::OkStatus();
}

}  // namespace millrace
