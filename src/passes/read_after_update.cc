// SPDX-License-Identifier: Apache-2.0
// Reads of variables that TensorFlow's programs expect to see an update.
//
// `v.read` is one Identity node, made with the variable and used everywhere. There its output shares the variable's
// buffer, and an update writes into that buffer; so a node that is ordered behind the update (by a control edge, as
// moving averages are behind the training step) finds the new value although it reads by way of an Identity that ran
// before. Here a read keeps the value that it read. So that such programs mean the same, a reader that is ordered
// behind an update of the variable takes the variable itself, and reads it when it runs; all others keep the snapshot.
#include <deque>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "passes/pipeline.h"

namespace millrace {
namespace {

bool IsRead(const Node& n) {
  return n.op_name() == "Identity" && IsRef(n.input(0).dtype()) && n.control_inputs().empty();
}

bool MayReadItself(const Node& reader, const Node& read) {
  return reader.op() != nullptr && !reader.op_name().starts_with("_") && reader.control_op() == ControlOp::kNone &&
         reader.assigned_device() == read.assigned_device();
}

// A variable that is both read and updated.
struct Updated {
  Output ref;
  std::vector<Node*> reads, updates;
};

std::vector<Updated> FindUpdated(const Graph& graph) {
  std::vector<Updated> all;
  absl::flat_hash_map<Output, size_t> index;
  for (Node* n : graph.nodes()) {
    if (!IsRead(*n)) continue;
    const auto [it, added] = index.try_emplace(n->input(0), all.size());
    if (added) all.push_back({n->input(0), {}, {}});
    all[it->second].reads.push_back(n);
  }
  for (Updated& u : all) {
    for (const Consumer& c : u.ref.node->consumers()) {
      if (c.node->input(c.input) == u.ref && IsRef(c.node->input_type(c.input)) &&
          c.node->control_op() == ControlOp::kNone) {
        u.updates.push_back(c.node);
      }
    }
  }
  std::erase_if(all, [](const Updated& u) { return u.updates.empty(); });
  return all;
}

// Which of up to 64 variables are updated before a node: bit v of the entry of node id n says that node n cannot run
// before an update of variable v. So the graph is walked once for 64 variables.
class BehindUpdates {
 public:
  BehindUpdates(const Graph& graph, absl::Span<const Updated> variables)
      : masks_(static_cast<size_t>(graph.num_node_ids())) {
    for (size_t v = 0; v < variables.size(); ++v) {
      for (const Node* n : variables[v].updates) Pass(*n, uint64_t{1} << v);
    }
    while (!changed_.empty()) {
      const Node* n = changed_.front();
      changed_.pop_front();
      State& state = At(*n);
      state.is_queued = false;
      Pass(*n, state.behind);
    }
  }
  bool Contains(const Node& n, size_t v) const { return masks_[static_cast<size_t>(n.id())].behind >> v & 1; }

 private:
  struct State {
    uint64_t behind = 0;
    bool is_queued = false;
  };
  State& At(const Node& n) { return masks_[static_cast<size_t>(n.id())]; }
  void Pass(const Node& from, uint64_t bits) {
    for (const Consumer& c : from.consumers()) Add(c.node, bits);
    for (const Node* to : from.control_outputs()) Add(to, bits);
  }
  void Add(const Node* n, uint64_t bits) {
    State& state = At(*n);
    if ((state.behind | bits) == state.behind) return;
    state.behind |= bits;
    if (!std::exchange(state.is_queued, true)) changed_.push_back(n);
  }

  std::vector<State> masks_;
  std::deque<const Node*> changed_;
};

}  // namespace

Status ReadAfterUpdates(Graph& graph) {
  const std::vector<Updated> updated = FindUpdated(graph);
  for (size_t first = 0; first < updated.size(); first += 64) {
    const auto block = absl::MakeConstSpan(updated).subspan(first, 64);
    const BehindUpdates behind(graph, block);
    for (size_t v = 0; v < block.size(); ++v) {
      for (Node* read : block[v].reads) {
        const std::vector<Consumer> readers = read->consumers();
        for (const Consumer& c : readers) {
          if (!behind.Contains(*c.node, v) || !MayReadItself(*c.node, *read) || IsRef(c.node->input_type(c.input)))
            continue;
          MR_RETURN_IF_ERROR(graph.SetInput(c.node, c.input, block[v].ref));
        }
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace millrace
