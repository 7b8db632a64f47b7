// SPDX-License-Identifier: Apache-2.0
// Computes values again for gradients instead of keeping them (white paper 4.1). Gradients go through the graph
// backwards, so what the first nodes made is needed last, and is kept all the time in between.
//
// Nodes are chosen by mark or by cost. By mark: attribute `_recompute_grad`, the name of a block whose results are kept
// (recompute_grad in Python), and, where the session's options say MANUAL or more, `_recompute_hint`. By cost: what
// takes about as long as reading its inputs, when these are there for gradients anyway. Chosen nodes that are joined by
// edges, and have the same name of a block or none, make a block. Nodes in the scope of gradients read copies of the
// block's nodes, which begin when the gradient arrives that the first of these readers needs: a control edge says so.
// What a block reads from outside is kept; so is what is random or has a state, and a copy gives the same bits.
//
// No cycle can arise. Say each node stands at its place in a topological order, and a copy behind the places of what it
// reads and of its trigger; these are in front of every reader of the copy.
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "base/hash_map.h"
#include "op/op_cost.h"
#include "passes/value_memory.h"

namespace millrace {
namespace {

constexpr double kWorthPeak = 1e6;       // bytes; by cost nothing is done below
constexpr double kCheapOperations = 12;  // an element, at most
constexpr absl::string_view kCopy = "Recomputed/";

constexpr absl::string_view kBlock = "_recompute_grad";

bool IsMarked(const Node& n, const MemoryOptions& options) {
  return n.attrs().contains(kBlock) || (options.by_hand && n.attrs().contains("_recompute_hint"));
}
bool InSameBlock(const Node& a, const Node& b) {
  const auto x = a.attrs().find(kBlock), y = b.attrs().find(kBlock);
  const bool has = x != a.attrs().end();
  return has == (y != b.attrs().end()) && (!has || x->second.Equals(y->second));
}

// Below a scope of that name at any depth, or one that was made unique: "gradients", "gradients_1".
class ScopeMatcher {
 public:
  explicit ScopeMatcher(absl::string_view scope) : scope_(absl::StripSuffix(scope, "/")) {}
  bool Matches(absl::string_view name) const {
    for (size_t at = name.find(scope_); at != name.npos; at = name.find(scope_, at + 1)) {
      if (at > 0 && name[at - 1] != '/') continue;
      absl::string_view rest = name.substr(at + scope_.size());
      if (absl::ConsumePrefix(&rest, "_")) {
        const size_t digits = rest.find_first_not_of("0123456789");
        if (digits == 0 || digits == rest.npos) continue;
        rest.remove_prefix(digits);
      }
      if (absl::StartsWith(rest, "/")) return true;
    }
    return false;
  }

 private:
  const absl::string_view scope_;
};

class Recomputer {
 public:
  Recomputer(Graph& graph, const PassEnvironment& env, std::vector<Node*> order)
      : graph_(graph),
        env_(env),
        costs_(env),
        scope_(env.memory.gradients),
        order_(std::move(order)),
        place_(static_cast<size_t>(graph.num_node_ids())),
        is_late_(place_.size()),
        may_be_dead_(place_.size()),
        block_of_(place_.size(), -1) {}

  // How many nodes were computed twice.
  StatusOr<int> Run() {
    for (size_t k = 0; k < order_.size(); ++k) {
      const Node* n = order_[k];
      place_[Id(n)] = k;
      is_late_[Id(n)] = scope_.Matches(n->name());
      bool dead = n->control_op() != ControlOp::kNone;
      for (const Output in : n->inputs()) dead |= may_be_dead_[Id(in.node)];
      for (const Node* c : n->control_inputs()) dead |= may_be_dead_[Id(c)];
      may_be_dead_[Id(n)] = dead;
    }
    ChooseBlocks();
    for (Block& block : blocks_) {
      if (!block.nodes.empty()) MR_RETURN_IF_ERROR(Copy(block));
    }
    return copied_;
  }

 private:
  struct Block {
    std::vector<Node*> nodes;  // sources first
  };
  static size_t Id(const Node* n) { return static_cast<size_t>(n->id()); }

  bool MayRunTwice(const Node& n) const {
    if (!n.op() || n.op()->stateful || n.num_outputs() == 0 || n.num_inputs() == 0) return false;
    if (may_be_dead_[Id(&n)] || is_late_[Id(&n)] || n.Is(OpTrait::kInternal) || n.Is(OpTrait::kKeepsState))
      return false;
    const auto is_handle = [](DType t) { return IsRef(t) || t == DType::kResource || t == DType::kVariant; };
    const NodeSignature& s = n.signature();
    return std::none_of(s.input_types.begin(), s.input_types.end(), is_handle) &&
           std::none_of(s.output_types.begin(), s.output_types.end(), is_handle) &&
           std::none_of(n.inputs().begin(), n.inputs().end(), [&](Output in) { return is_handle(in.dtype()); });
  }

  bool IsReadLate(const Node& n) const {
    return std::any_of(n.consumers().begin(), n.consumers().end(), [&](const Consumer& c) {
      return is_late_[Id(c.node)] && costs_.LooksAtValues(*c.node);
    });
  }

  bool IsCheap(const Node& n) const {
    double most = 0;
    for (const Output in : n.inputs()) most = std::max(most, EstimateElements(in.shape()));
    for (int o = 0; o < n.num_outputs(); ++o) most = std::max(most, EstimateElements(n.shape(o)));
    return costs_.Estimate(n, CostModel::kClient).operations <= kCheapOperations * most;
  }
  // Is there when gradients are computed, whatever is done here.
  bool IsKept(Output in) const {
    while (costs_.SharesItsInput(*in.node) && block_of_[Id(in.node)] < 0) {
      if (IsReadLate(*in.node)) return true;
      in = in.node->input(0);
    }
    const Node& n = *in.node;
    return block_of_[Id(&n)] >= 0 || n.Is(OpTrait::kMakesVariable) || n.Is(OpTrait::kConstant) ||
           n.Is(OpTrait::kArgument) || IsReadLate(n);
  }

  bool IsResultOfBlock(const Node& n) const {
    return std::any_of(n.consumers().begin(), n.consumers().end(), [&](const Consumer& c) {
      return !is_late_[Id(c.node)] && !InSameBlock(n, *c.node) && costs_.LooksAtValues(*c.node);
    });
  }

  void ChooseBlocks() {
    for (Node* n : order_) {
      if (!MayRunTwice(*n)) continue;
      if (n->attrs().contains(kBlock) && IsResultOfBlock(*n)) continue;
      bool chosen = IsMarked(*n, env_.memory);
      if (!chosen && env_.memory.recompute_by_cost && IsCheap(*n)) {
        chosen = std::all_of(n->inputs().begin(), n->inputs().end(), [&](Output in) { return IsKept(in); });
      }
      if (chosen) AddToBlock(n);
    }
  }

  // Joins the blocks of its inputs.
  void AddToBlock(Node* n) {
    int at = -1;
    for (const Output in : n->inputs()) {
      const int other = block_of_[Id(in.node)];
      if (other < 0 || other == at || !InSameBlock(*n, *in.node)) continue;
      if (at < 0) {
        at = other;
        continue;
      }
      Block& into = blocks_[static_cast<size_t>(std::min(at, other))];
      Block& from = blocks_[static_cast<size_t>(std::max(at, other))];
      at = std::min(at, other);
      for (Node* m : from.nodes) block_of_[Id(m)] = at;
      into.nodes.insert(into.nodes.end(), from.nodes.begin(), from.nodes.end());
      from.nodes.clear();
    }
    if (at < 0) {
      at = static_cast<int>(blocks_.size());
      blocks_.emplace_back();
    }
    block_of_[Id(n)] = at;
    blocks_[static_cast<size_t>(at)].nodes.push_back(n);
  }

  bool IsCopy(const Node* n) const { return Id(n) >= place_.size(); }
  bool IsReader(const Consumer& c) const {
    return !IsCopy(c.node) && is_late_[Id(c.node)] && !may_be_dead_[Id(c.node)] && costs_.LooksAtValues(*c.node);
  }

  // The gradient that a late reader waits for, and the place of that reader; those in front of it read what is there.
  struct Start {
    Node* trigger = nullptr;
    size_t place = 0;
  };
  Start StartOf(const Block& block) const {
    std::vector<Node*> readers;
    for (const Node* n : block.nodes) {
      for (const Consumer& c : n->consumers()) {
        if (IsReader(c)) readers.push_back(c.node);
      }
    }
    const auto by_place = [&](const Node* a, const Node* b) { return place_[Id(a)] < place_[Id(b)]; };
    std::sort(readers.begin(), readers.end(), by_place);
    Start start;
    for (const Node* r : readers) {
      for (const Output in : r->inputs()) {
        if (IsCopy(in.node) || !is_late_[Id(in.node)] || in.node->num_inputs() == 0) continue;
        if (start.trigger == nullptr || by_place(start.trigger, in.node)) start.trigger = in.node;
      }
      start.place = place_[Id(r)];
      if (start.trigger != nullptr) break;
    }
    return start;
  }

  Status Copy(Block& block) {
    const Start start = StartOf(block);
    if (start.trigger == nullptr) return absl::OkStatus();
    const auto reads_again = [&](const Consumer& c) { return IsReader(c) && place_[Id(c.node)] >= start.place; };
    const auto by_place = [&](const Node* a, const Node* b) { return place_[Id(a)] < place_[Id(b)]; };
    std::sort(block.nodes.begin(), block.nodes.end(), by_place);
    // From behind: what late nodes read, and what these copies read.
    HashMap<const Node*, Node*> copies;
    for (auto n = block.nodes.rbegin(); n != block.nodes.rend(); ++n) {
      const bool is_read = std::any_of((*n)->consumers().begin(), (*n)->consumers().end(), [&](const Consumer& c) {
        return reads_again(c) || copies.contains(c.node);
      });
      if (is_read) copies.emplace(*n, nullptr);
    }
    for (Node* n : block.nodes) {
      const auto at = copies.find(n);
      if (at == copies.end()) continue;
      MR_ASSIGN_OR_RETURN(at->second, CopyOf(*n, copies, start.trigger));
      ++copied_;
    }
    for (const Node* n : block.nodes) {
      const auto at = copies.find(n);
      if (at == copies.end()) continue;
      const std::vector<Consumer> consumers = n->consumers();
      for (const Consumer& c : consumers) {
        if (!reads_again(c)) continue;
        MR_RETURN_IF_ERROR(graph_.SetInput(c.node, c.input, at->second->output(c.node->input(c.input).index)));
      }
    }
    return absl::OkStatus();
  }

  StatusOr<Node*> CopyOf(const Node& n, const HashMap<const Node*, Node*>& copies, Node* trigger) {
    NodeSpec spec;
    spec.op = n.op_name();
    spec.name = graph_.UniqueName(absl::StrCat(kCopy, n.name()));
    spec.attrs = n.attrs();
    spec.device = n.device();
    spec.location = n.location();
    for (const ArgRange& arg : n.signature().input_args) spec.input_arg_sizes.push_back(arg.end - arg.begin);
    bool waits = true;
    for (Output in : n.inputs()) {
      const auto copy = copies.find(in.node);
      if (copy != copies.end()) {
        in.node = copy->second;
        waits = false;
      }
      spec.inputs.push_back(in);
    }
    spec.control_inputs = n.control_inputs();
    if (waits) spec.control_inputs.push_back(trigger);
    MR_ASSIGN_OR_RETURN(Node * copy, graph_.AddNode(std::move(spec)));
    for (int o = 0; o < n.num_outputs(); ++o) copy->set_shape(o, n.shape(o));
    return copy;
  }

  Graph& graph_;
  const PassEnvironment& env_;
  const CostModel costs_;
  const ScopeMatcher scope_;
  const std::vector<Node*> order_;
  std::vector<size_t> place_;  // in the order, by node id
  std::vector<bool> is_late_;  // in the scope of gradients
  std::vector<bool> may_be_dead_;
  std::vector<int> block_of_;
  std::vector<Block> blocks_;
  int copied_ = 0;
};

}  // namespace

Status Recompute(Graph& graph, const PassEnvironment& env, std::vector<std::string>* notes) {
  const auto is_marked = [&](const Node* n) { return IsMarked(*n, env.memory); };
  const bool has_marks = std::any_of(graph.nodes().begin(), graph.nodes().end(), is_marked);
  if (!has_marks && !env.memory.recompute_by_cost) return absl::OkStatus();
  MR_ASSIGN_OR_RETURN(std::vector<Node*> order, TopologicalOrder(graph));
  const double before = ValueMemory(order, env, 0).PeakOf(order).bytes;
  if (!has_marks && before < kWorthPeak) return absl::OkStatus();
  MR_ASSIGN_OR_RETURN(const int copied, Recomputer(graph, env, std::move(order)).Run());
  if (notes == nullptr) return absl::OkStatus();
  MR_ASSIGN_OR_RETURN(order, TopologicalOrder(graph));
  const double after = ValueMemory(order, env, 0).PeakOf(order).bytes;
  notes->push_back(absl::StrCat(copied, " nodes are computed again for gradients: peak of values ", BytesText(before),
                                ", then ", BytesText(after)));
  return absl::OkStatus();
}

}  // namespace millrace
