// SPDX-License-Identifier: Apache-2.0
// The order in which nodes run, chosen by memory (white paper 4.1): construction order makes early what is needed late.
// Two others are tried: greedily the ready node that leaves least memory in use, and each result with all it needs
// before the next result. The one with the lowest peak is taken where that is worth it.
//
// What keeps or uses state stays in construction order, so every value is what it was. Graphs with loops that have not
// collapsed are left alone: their nodes do not run in one order.
#include <algorithm>
#include <queue>

#include "base/hash_map.h"
#include "op/op_cost.h"
#include "passes/value_memory.h"

namespace millrace {
namespace {

constexpr double kWorthPeak = 1e6;  // bytes; below nothing is looked for
constexpr double kWorth = 0.9;      // of the peak in construction order

bool UsesState(const Node& n) {
  if (n.op() == nullptr || n.op()->stateful || n.Is(OpTrait::kKeepsState)) return true;
  const auto is_handle = [](DType t) { return IsRef(t) || t == DType::kResource; };
  return std::any_of(n.signature().input_types.begin(), n.signature().input_types.end(), is_handle) ||
         std::any_of(n.inputs().begin(), n.inputs().end(), [&](Output in) { return is_handle(in.dtype()); });
}

class Orders {
 public:
  Orders(const std::vector<Node*>& order, const ValueMemory& memory, const CostModel& costs, int num_ids)
      : order_(order),
        memory_(memory),
        place_(static_cast<size_t>(num_ids)),
        sources_(order.size()),
        followers_(order.size()) {
    for (size_t k = 0; k < order.size(); ++k) place_[static_cast<size_t>(order[k]->id())] = k;
    size_t last_state = order.size();
    HashMap<const Node*, const Node*> variable_of;    // that a node's value is, by reference or shared
    HashMap<const Node*, std::vector<size_t>> reads;  // of a variable, since its last update
    for (size_t k = 0; k < order.size(); ++k) {
      const Node& n = *order[k];
      for (const Output in : n.inputs()) Link(PlaceOf(in.node), k);
      for (const Node* c : n.control_inputs()) Link(PlaceOf(c), k);
      // An update that came before a reader would copy the variable.
      for (const Output in : n.inputs()) {
        const auto at = variable_of.find(in.node);
        if (at == variable_of.end()) continue;
        std::vector<size_t>& before = reads[at->second];
        if (n.Is(OpTrait::kUpdatesVariable)) {
          for (const size_t r : std::exchange(before, {})) Link(r, k);
        } else if (!costs.SharesItsInput(n)) {
          before.push_back(k);
        }
      }
      if (n.Is(OpTrait::kMakesVariable)) {
        variable_of.emplace(&n, &n);
      } else if (costs.SharesItsInput(n) || n.Is(OpTrait::kUpdatesVariable)) {
        const auto at = variable_of.find(n.input(0).node);
        if (at != variable_of.end()) variable_of.emplace(&n, at->second);
      }
      if (!UsesState(n)) continue;
      // Arguments and what names a variable have no time of their own.
      if (n.num_inputs() == 0 && n.control_inputs().empty()) continue;
      if (last_state < order.size()) Link(last_state, k);
      last_state = k;
    }
  }

  std::vector<Node*> Greedy() const {
    std::vector<size_t> pending(order_.size()), left(memory_.values().size()), version(order_.size());
    for (size_t v = 0; v < left.size(); ++v) left[v] = memory_.values()[v].readers.size();
    struct Entry {
      double growth;
      size_t place, version;
      bool operator<(const Entry& o) const { return growth != o.growth ? growth > o.growth : place > o.place; }
    };
    std::priority_queue<Entry> ready;
    const auto offer = [&](size_t k) {
      double growth = 0;
      for (const int v : memory_.MadeBy(order_[k])) growth += memory_.values()[static_cast<size_t>(v)].bytes;
      for (const int v : memory_.ReadBy(order_[k])) {
        const ValueMemory::Value& value = memory_.values()[static_cast<size_t>(v)];
        if (left[static_cast<size_t>(v)] == 1 && !value.is_kept) growth -= value.bytes;
      }
      ready.push({growth, k, ++version[k]});
    };
    for (size_t k = 0; k < order_.size(); ++k) {
      pending[k] = sources_[k].size();
      if (pending[k] == 0) offer(k);
    }
    std::vector<Node*> result;
    std::vector<bool> done(order_.size());
    while (!ready.empty()) {
      const Entry next = ready.top();
      ready.pop();
      if (done[next.place] || next.version != version[next.place]) continue;
      done[next.place] = true;
      result.push_back(order_[next.place]);
      for (const int v : memory_.ReadBy(order_[next.place])) {
        if (--left[static_cast<size_t>(v)] != 1) continue;
        // Whoever reads it last now ends it.
        for (const Node* reader : memory_.values()[static_cast<size_t>(v)].readers) {
          const size_t k = PlaceOf(reader);
          if (!done[k] && pending[k] == 0) offer(k);
        }
      }
      for (const size_t k : followers_[next.place]) {
        if (--pending[k] == 0) offer(k);
      }
    }
    return result;
  }

  // Depth first from each node that nothing follows.
  std::vector<Node*> ByResults() const {
    std::vector<Node*> result;
    std::vector<bool> seen(order_.size());
    std::vector<std::pair<size_t, size_t>> stack;  // a node, and how many of its sources have been visited
    for (size_t root = 0; root < order_.size(); ++root) {
      if (!followers_[root].empty()) continue;
      stack.emplace_back(root, 0);
      while (!stack.empty()) {
        auto& [k, visited] = stack.back();
        if (visited < sources_[k].size()) {
          const size_t source = sources_[k][visited++];
          if (!seen[source]) {
            seen[source] = true;
            stack.emplace_back(source, 0);
          }
          continue;
        }
        result.push_back(order_[k]);
        stack.pop_back();
      }
    }
    return result;
  }

 private:
  size_t PlaceOf(const Node* n) const { return place_[static_cast<size_t>(n->id())]; }
  void Link(size_t from, size_t to) {
    sources_[to].push_back(from);
    followers_[from].push_back(to);
  }

  const std::vector<Node*>& order_;
  const ValueMemory& memory_;
  std::vector<size_t> place_;  // by node id
  std::vector<std::vector<size_t>> sources_, followers_;
};

// The order of construction is the order in which nodes run, so the graph is constructed again.
Status ConstructInOrder(const std::vector<Node*>& order, Partition& partition) {
  const Graph& from = *partition.graph;
  auto to = std::make_unique<Graph>(&from.registry());
  for (const wire::FunctionDef* f : from.Functions()) MR_RETURN_IF_ERROR(to->AddFunction(*f));
  for (const wire::GradientDef& g : from.gradient_defs()) MR_RETURN_IF_ERROR(to->AddGradientDef(g));
  to->set_versions(from.versions());
  HashMap<const Node*, Node*> copies;
  for (const Node* n : order) {
    std::vector<Output> inputs;
    for (const Output in : n->inputs()) inputs.push_back({copies.at(in.node), in.index});
    std::vector<Node*> controls;
    for (const Node* c : n->control_inputs()) controls.push_back(copies.at(c));
    MR_ASSIGN_OR_RETURN(copies[n], to->CopyNode(*n, inputs, controls));
  }
  partition.graph = std::move(to);
  return absl::OkStatus();
}

}  // namespace

Status OrderByMemory(Partition& partition, const PassEnvironment& env, std::vector<std::string>* notes) {
  if (!env.memory.reorder) return absl::OkStatus();
  const std::vector<Node*>& nodes = partition.graph->nodes();
  const auto in_loop = [](const Node* n) {
    return n->control_op() == ControlOp::kEnter || n->control_op() == ControlOp::kNextIteration;
  };
  if (std::any_of(nodes.begin(), nodes.end(), in_loop)) return absl::OkStatus();
  double all = 0;  // at most this can be the peak
  for (const Node* n : nodes) {
    for (int o = 0; o < n->num_outputs(); ++o) all += EstimateBytes(n->output_type(o), n->shape(o));
  }
  if (all < kWorthPeak) return absl::OkStatus();
  MR_ASSIGN_OR_RETURN(const std::vector<Node*> order, TopologicalOrder(*partition.graph));
  const ValueMemory memory(order, env, PositionOfDevice(env, partition.device));
  const double before = memory.PeakOf(order).bytes;
  double least = kWorth * before;
  std::vector<Node*> best;
  if (before >= kWorthPeak) {
    const Orders orders(order, memory, CostModel(env), partition.graph->num_node_ids());
    for (std::vector<Node*> other : {orders.Greedy(), orders.ByResults()}) {
      if (other.size() != order.size()) return Internal("an order by memory lost nodes");
      const double peak = memory.PeakOf(other).bytes;
      if (peak >= least) continue;
      least = peak;
      best = std::move(other);
    }
  }
  if (notes != nullptr && before >= kWorthPeak) {
    const std::string chosen =
        best.empty() ? "" : absl::StrCat(", ", BytesText(least), " in the order chosen by memory");
    notes->push_back(absl::StrCat(
        "peak of values on ", partition.device, ": ", BytesText(before), " in construction order", chosen));
  }
  return best.empty() ? absl::OkStatus() : ConstructInOrder(best, partition);
}

}  // namespace millrace
