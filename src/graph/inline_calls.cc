// SPDX-License-Identifier: Apache-2.0
// Calls are expanded in the order in which they appear, those in bodies after the ones around them: a list, no
// recursion.
#include "graph/inline_calls.h"

#include <algorithm>

#include "base/hash_map.h"
#include "graph/control_depth.h"
#include "graph/recursion.h"
#include "graph/verify.h"

namespace millrace {
namespace {

constexpr int kMaxInlinedNodes = 1'000'000;
constexpr int64_t kMaxInlinedBytes = int64_t{8} << 30;
constexpr size_t kMaxPrefix = 512;  // of names, which grow with the depth of calls
constexpr int kMaxDepth = 256;

// What a call becomes when all calls in it are expanded too: may grow exponentially with the depth of calls.
struct Size {
  double nodes = 0;
  double bytes = 0;  // of constants
  void Add(const Size& o) {
    nodes += o.nodes;
    bytes += o.bytes;
  }
};

double BytesOf(const wire::TensorProto& t) {
  double bytes = static_cast<double>(DTypeSize(static_cast<DType>(t.dtype)));
  if (t.tensor_shape) {
    for (const wire::TensorShapeDim& d : t.tensor_shape->dim)
      bytes *= static_cast<double>(std::max<int64_t>(d.size, 0));
  }
  for (const std::string& s : t.string_val) bytes += static_cast<double>(s.size());
  return bytes;
}

// Sizes, found without expanding. The depth of the recursion is bounded by VerifyFunctions.
class ExpandedSizes {
 public:
  explicit ExpandedSizes(const Graph& library) : library_(library) {
    for (const std::string& name : RecursiveFunctions(library)) known_[name] = {1, 0};  // called, not expanded
  }

  Size Of(const Node& call) {
    Size size = OfFunction(call.op_name());
    for (const FuncAttr* f : FunctionsOf(call)) size.Add(OfFunction(f->name));
    return size;
  }

 private:
  Size OfFunction(absl::string_view name) {
    if (auto it = known_.find(name); it != known_.end()) return it->second;
    const wire::FunctionDef* def = library_.FindFunction(name);
    if (def == nullptr) return {1, 0};
    Size size;
    for (const wire::NodeDef& n : def->node_def) {
      size.Add(OfFunction(n.op));
      for (const auto& [attr, value] : n.attr) {
        if (value.tensor) size.bytes += BytesOf(*value.tensor);
        if (value.func) size.Add(OfFunction(value.func->name));
        if (!value.list) continue;
        for (const wire::NameAttrList& f : value.list->func) size.Add(OfFunction(f.name));
      }
    }
    return known_[def->signature->name] = size;
  }

  const Graph& library_;
  HashMap<std::string, Size> known_;
};

Status TooManyNodes() { return ResourceExhausted("function calls expand to more than ", kMaxInlinedNodes, " nodes"); }

class Inliner {
 public:
  Inliner(const Graph& library, Graph* graph, const ExpandOptions& options)
      : library_(library), graph_(graph), options_(options) {
    options_.recursive = &recursive_;
  }

  Status Run() {
    AddCalls(0, -1);
    if (calls_.empty() && !NamesFunctions()) return absl::OkStatus();
    MR_RETURN_IF_ERROR(VerifyFunctions(library_));
    if (graph_ != &library_) {
      for (const wire::FunctionDef* f : library_.Functions()) MR_RETURN_IF_ERROR(graph_->AddFunction(*f));
      for (const wire::GradientDef& g : library_.gradient_defs()) MR_RETURN_IF_ERROR(graph_->AddGradientDef(g));
    }
    if (calls_.empty()) return absl::OkStatus();
    recursive_ = RecursiveFunctions(library_);
    std::vector<Node*> calls;
    for (const Item& item : calls_) calls.push_back(item.call);
    MR_RETURN_IF_ERROR(CheckExpandedSize(library_, calls));
    inside_ = InsideControlFlow(*graph_);
    first_new_ = graph_->num_node_ids();
    for (size_t k = 0; k < calls_.size(); ++k) {
      if (k % 64 == 0 && options_.keep_going) MR_RETURN_IF_ERROR(options_.keep_going());
      MR_RETURN_IF_ERROR(ExpandOne(static_cast<int>(k)));
      if (graph_->num_node_ids() - first_new_ > kMaxInlinedNodes) return TooManyNodes();
    }
    for (const Item& item : calls_) graph_->RemoveNode(item.call);
    return DropUnneeded();
  }

 private:
  struct Item {
    Node* call;
    int parent;  // the call in whose body it is; -1: none
    int depth;
  };

  // Whether a kernel will ask for functions: those of data sets, for instance.
  bool NamesFunctions() const {
    const auto names = [](const Node* n) { return !FunctionsOf(*n).empty(); };
    return std::any_of(graph_->nodes().begin(), graph_->nodes().end(), names);
  }

  void AddCalls(int mark, int parent) {
    const auto& nodes = graph_->nodes();
    const auto first =
        std::partition_point(nodes.begin(), nodes.end(), [mark](const Node* n) { return n->id() < mark; });
    const int depth = parent < 0 ? 1 : calls_[static_cast<size_t>(parent)].depth + 1;
    for (auto it = first; it != nodes.end(); ++it) {
      if (IsCall(library_, **it)) calls_.push_back({*it, parent, depth});
    }
  }

  Status ExpandOne(int k) {
    const Item item = calls_[static_cast<size_t>(k)];
    if (item.depth > kMaxDepth) return TooDeep(k);
    Expansion expansion;
    if (const Expansion* known = graph_->FindExpansion(item.call)) {
      expansion = *known;
    } else {
      const int mark = graph_->num_node_ids();
      const bool wait_for_inputs = item.parent < 0 && inside_[static_cast<size_t>(item.call->id())];
      MR_ASSIGN_OR_RETURN(expansion, ExpandCall(item.call, PrefixOf(*item.call), wait_for_inputs, options_, graph_));
      AddCalls(mark, k);
    }
    for (int i = 0; i < item.call->num_outputs(); ++i) {
      if (i % 256 == 255 && options_.keep_going) MR_RETURN_IF_ERROR(options_.keep_going());
      MR_RETURN_IF_ERROR(graph_->ReplaceUses(item.call->output(i), expansion.outputs[static_cast<size_t>(i)]));
    }
    const std::vector<Node*> waiting = item.call->control_outputs();
    for (Node* to : waiting) {
      graph_->RemoveControlEdge(item.call, to);
      graph_->AddControlEdge(expansion.done, to);
    }
    return absl::OkStatus();
  }

  static std::string PrefixOf(const Node& call) {
    if (call.name().size() <= kMaxPrefix) return call.name();
    return absl::StrCat(call.name().substr(0, kMaxPrefix / 2), "_", call.id());
  }

  Status TooDeep(int k) const {
    std::string chain;
    int shown = 0;
    for (; k >= 0 && shown < 5; k = calls_[static_cast<size_t>(k)].parent, ++shown) {
      const Node& call = *calls_[static_cast<size_t>(k)].call;
      const auto functions = FunctionsOf(call);
      chain = absl::StrCat(" -> ", functions.empty() ? call.op_name() : functions[0]->name, chain);
    }
    return InvalidArgument("functions call each other more than ", kMaxDepth, " deep: ...", chain);
  }

  // What was expanded and leads neither to a node that was there before nor to a side effect.
  Status DropUnneeded() {
    std::vector<bool> needed(static_cast<size_t>(graph_->num_node_ids()), false);
    std::vector<Node*> stack;
    const auto need = [&](Node* n) {
      if (needed[static_cast<size_t>(n->id())]) return;
      needed[static_cast<size_t>(n->id())] = true;
      stack.push_back(n);
    };
    for (Node* n : graph_->nodes()) {
      if (n->id() < first_new_ || n->op() == nullptr || n->op()->stateful) need(n);
    }
    while (!stack.empty()) {
      const Node* n = stack.back();
      stack.pop_back();
      for (const Output& o : n->inputs()) need(o.node);
      for (Node* c : n->control_inputs()) need(c);
      if (n->control_op() != ControlOp::kSwitch) continue;
      for (const Consumer& c : n->consumers()) {  // a loop must have a way out
        if (c.node->control_op() == ControlOp::kExit) need(c.node);
      }
    }
    std::vector<Node*> unneeded;
    for (Node* n : graph_->nodes()) {
      if (!needed[static_cast<size_t>(n->id())]) unneeded.push_back(n);
    }
    for (Node* n : unneeded) {  // open the loops
      for (int i = 1; i < n->num_inputs(); ++i) {
        if (IsBackEdge(n->input(i).node->control_op(), n->control_op())) {
          MR_RETURN_IF_ERROR(graph_->SetInput(n, i, n->input(0)));
        }
      }
    }
    const auto is_free = [](const Node* n) { return n->consumers().empty() && n->control_outputs().empty(); };
    for (Node* n : unneeded) {
      if (is_free(n)) stack.push_back(n);
    }
    while (!stack.empty()) {
      Node* n = stack.back();
      stack.pop_back();
      std::vector<Node*> before = n->control_inputs();
      for (const Output& o : n->inputs()) before.push_back(o.node);
      std::sort(before.begin(), before.end());
      before.erase(std::unique(before.begin(), before.end()), before.end());
      std::erase_if(before, [&](const Node* f) { return needed[static_cast<size_t>(f->id())]; });
      graph_->RemoveNode(n);
      for (Node* f : before) {
        if (is_free(f)) stack.push_back(f);
      }
    }
    return absl::OkStatus();
  }

  const Graph& library_;
  Graph* graph_;
  ExpandOptions options_;
  HashSet<std::string> recursive_;
  std::vector<Item> calls_;
  std::vector<bool> inside_;  // nodes of the client's conditionals and loops
  int first_new_ = 0;
};

}  // namespace

Status CheckExpandedSize(const Graph& library, absl::Span<Node* const> calls) {
  ExpandedSizes sizes(library);
  Size total;
  for (const Node* call : calls) total.Add(sizes.Of(*call));
  if (total.nodes > kMaxInlinedNodes) return TooManyNodes();
  if (total.bytes > static_cast<double>(kMaxInlinedBytes)) {
    return ResourceExhausted("function calls expand to constants of more than ", kMaxInlinedBytes >> 30, " GiB");
  }
  return absl::OkStatus();
}

Status InlineCalls(const Graph& library, Graph* graph, const ExpandOptions& options) {
  return Inliner(library, graph, options).Run();
}

}  // namespace millrace
