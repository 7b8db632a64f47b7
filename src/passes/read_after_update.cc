// SPDX-License-Identifier: Apache-2.0
// Reads of variables that TensorFlow's programs expect to see an update.
//
// `v.read` is one Identity node, made with the variable and used everywhere. There its output shares the variable's
// buffer, and an update writes into that buffer; so a node that is ordered behind the update (by a control edge, as
// moving averages are behind the training step) finds the new value although it reads by way of an Identity that ran
// before. Here a read keeps the value that it read. So that such programs mean the same, a reader that is ordered
// behind an update of the variable takes the variable itself, and reads it when it runs; all others keep the snapshot.
//
// Who fetches `v` beside its update looks at that buffer when the step is over, and sees the new value in every run. So
// a fetch of a read takes the variable too, which is looked at last.
//
// A branch or a loop carries the snapshot in by a Switch or a constant Enter; what replaces it is carried in the same
// way. A loop that updates the variable, itself or in loops inside it, runs one iteration after the other, and each
// begins with a snapshot of its own, for which its updates wait: for readers of the iteration that are behind none.
#include <algorithm>
#include <deque>
#include <utility>

#include "absl/types/span.h"
#include "base/hash_map.h"
#include "graph/frame_tree.h"
#include "graph/variable_use.h"
#include "passes/pipeline.h"
#include "passes/prune.h"

namespace millrace {
namespace {

constexpr int kOutside = 0;  // of all loops

// A variable that is both read and updated.
struct Updated {
  std::vector<Node*> reads, updates;
};

std::vector<Updated> FindUpdated(const Graph& graph) {
  std::vector<Updated> all;
  HashMap<std::string, size_t> index;
  for (Node* n : graph.nodes()) {
    if (!ReadsVariable(*n)) continue;
    const auto [it, added] = index.try_emplace(VariableKey(*MakerOf(n->input(0))), all.size());
    if (added) all.emplace_back();
    all[it->second].reads.push_back(n);
  }
  if (all.empty()) return all;
  for (Node* n : graph.nodes()) {
    const bool makes = n->num_outputs() > 0 && IsRef(n->output_type(0)) && MakerOf(n->output(0)) == n;
    if (!makes) continue;
    const auto it = index.find(VariableKey(*n));
    if (it == index.end()) continue;
    const std::vector<Node*> updates = UpdatesOf(n);
    all[it->second].updates.insert(all[it->second].updates.end(), updates.begin(), updates.end());
  }
  std::erase_if(all, [](const Updated& u) { return u.updates.empty(); });
  return all;
}

// The loops of the graph as it was at first; nodes that are added later may not be asked about.
class Loops {
 public:
  Status Init(const Graph& graph) {
    const auto is_enter = [](const Node* n) { return n->control_op() == ControlOp::kEnter; };
    if (std::none_of(graph.nodes().begin(), graph.nodes().end(), is_enter)) return absl::OkStatus();
    MR_ASSIGN_OR_RETURN(const std::vector<Node*> order, TopologicalOrder(graph));
    MR_ASSIGN_OR_RETURN(tree_, FrameTree::Of(order, graph.num_node_ids()));
    merge_of_.resize(tree_.frames().size(), nullptr);
    enters_of_.resize(tree_.frames().size());
    for (Node* n : order) {
      const auto frame = static_cast<size_t>(FrameOf(n));
      if (n->control_op() == ControlOp::kEnter) enters_of_[frame].push_back(n);
      const bool goes_round = n->control_op() == ControlOp::kMerge && n->num_inputs() == 2 &&
                              n->input(1).node->control_op() == ControlOp::kNextIteration;
      if (goes_round && merge_of_[frame] == nullptr) merge_of_[frame] = n;
    }
    return absl::OkStatus();
  }
  bool none() const { return enters_of_.empty(); }
  // Where the outputs of a node are.
  int FrameOf(const Node* n) const { return none() ? kOutside : tree_.OutputsIn(n); }
  int Parent(int frame) const { return tree_.frames()[static_cast<size_t>(frame)].parent; }
  const std::string& Name(int frame) const { return tree_.frames()[static_cast<size_t>(frame)].name; }
  // Runs in every iteration, the last and incomplete one included, before everything that depends on the iteration.
  Node* MergeOf(int frame) const { return merge_of_[static_cast<size_t>(frame)]; }
  const std::vector<Node*>& EntersOf(int frame) const { return enters_of_[static_cast<size_t>(frame)]; }
  // Whether `frame` is `outer` or inside it.
  bool IsWithin(int frame, int outer) const {
    while (frame != outer && frame != kOutside) frame = Parent(frame);
    return frame == outer;
  }
  // The innermost loop around `n` that runs one of `updates`, itself or in a loop inside it.
  int SharedWith(const Node& n, const std::vector<Node*>& updates) const {
    if (none()) return kOutside;
    int frame = tree_.RunsIn(&n);
    const auto runs_one = [&](int f) {
      return std::any_of(updates.begin(), updates.end(), [&](const Node* u) { return IsWithin(tree_.RunsIn(u), f); });
    };
    while (frame != kOutside && !runs_one(frame)) frame = Parent(frame);
    return frame;
  }
  // The node that stands for `n` in `frame`, which runs it: itself, or the nodes that enter the loop inside.
  std::vector<Node*> SeenFrom(int frame, Node* n) const {
    int at = tree_.RunsIn(n);
    if (at == frame) return {n};
    while (Parent(at) != frame) at = Parent(at);
    return EntersOf(at);
  }

 private:
  FrameTree tree_;
  std::vector<Node*> merge_of_;
  std::vector<std::vector<Node*>> enters_of_;
};

// Which of up to 64 variables are updated before a node in the same iteration of a loop and of all around it: bit v of
// the entry of node id n says that node n cannot run before an update of variable v. So the graph is walked once for 64
// variables.
class BehindUpdates {
 public:
  BehindUpdates(const Graph& graph, absl::Span<const Updated> variables, const Loops& loops, int frame)
      : loops_(loops), frame_(frame), masks_(static_cast<size_t>(graph.num_node_ids())) {
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
    for (const Consumer& c : from.consumers()) {
      if (!IsBackEdge(from.control_op(), c.node->control_op()) || !IsAround(c.node)) Add(c.node, bits);
    }
    for (const Node* to : from.control_outputs()) Add(to, bits);
  }
  bool IsAround(const Node* merge) const {
    return frame_ != kOutside && loops_.IsWithin(frame_, loops_.FrameOf(merge)) && loops_.FrameOf(merge) != kOutside;
  }
  void Add(const Node* n, uint64_t bits) {
    State& state = At(*n);
    if ((state.behind | bits) == state.behind) return;
    state.behind |= bits;
    if (!std::exchange(state.is_queued, true)) changed_.push_back(n);
  }

  const Loops& loops_;
  const int frame_;
  std::vector<State> masks_;
  std::deque<const Node*> changed_;
};

// A reader of a snapshot, and what it is to read.
struct Change {
  Consumer reader;
  std::vector<Output> carried;  // the snapshot's ways to the reader: outputs of carriers, the outermost first
  Node* read = nullptr;
  size_t variable = 0;
  int frame = kOutside;    // the loop that it shares with updates
  bool is_behind = false;  // reads when it runs; else the snapshot of the iteration
};

class Finder {
 public:
  Finder(const Graph& graph, const Loops& loops, absl::Span<const Updated> block)
      : graph_(graph), loops_(loops), block_(block) {}

  std::vector<Change> Find() {
    for (size_t v = 0; v < block_.size(); ++v) {
      for (Node* read : block_[v].reads) FollowRead(v, read);
    }
    return std::move(changes_);
  }

 private:
  void FollowRead(size_t v, Node* read) {
    std::vector<std::vector<Output>> stack = {{}};
    while (!stack.empty()) {
      const std::vector<Output> carried = std::move(stack.back());
      stack.pop_back();
      const Output from = carried.empty() ? read->output(0) : carried.back();
      for (const Consumer& c : from.node->ConsumersOf(from.index)) {
        if (CarriesValue(*c.node) && c.input == 0) {
          for (int o = 0; o < c.node->num_outputs(); ++o) {
            stack.push_back(carried);
            stack.back().push_back(c.node->output(o));
          }
        } else if (carried.empty() && IsFetch(*c.node)) {
          if (IsBeside(*read, *c.node))
            changes_.push_back({.reader = c, .read = read, .variable = v, .is_behind = true});
        } else if (MayChange(c)) {
          Change change{c, carried, read, v, loops_.SharedWith(*c.node, block_[v].updates)};
          change.is_behind = Behind(change.frame).Contains(*c.node, v);
          if (change.is_behind || change.frame != kOutside) changes_.push_back(std::move(change));
        }
      }
    }
  }
  // Not of what has become a read since, as the sum of a variable and 0 does.
  static bool IsFetch(const Node& n) { return n.attrs().contains(kFetchesVariable); }
  // A reference does not travel, and what is temporary may be gone at the end.
  static bool IsBeside(const Node& read, const Node& fetch) {
    return read.assigned_device() == fetch.assigned_device() &&
           MakerOf(read.input(0))->op_name() != "TemporaryVariable";
  }
  static bool MayChange(const Consumer& c) {
    return c.node->op() != nullptr && !c.node->Is(OpTrait::kInternal) && c.node->control_op() == ControlOp::kNone &&
           !IsRef(c.node->input_type(c.input));
  }
  const BehindUpdates& Behind(int frame) {
    std::unique_ptr<BehindUpdates>& behind = behind_[frame];
    if (!behind) behind = std::make_unique<BehindUpdates>(graph_, block_, loops_, frame);
    return *behind;
  }

  const Graph& graph_;
  const Loops& loops_;
  const absl::Span<const Updated> block_;
  HashMap<int, std::unique_ptr<BehindUpdates>> behind_;
  std::vector<Change> changes_;
};

class Rewriter {
 public:
  Rewriter(Graph& graph, const Loops& loops) : graph_(graph), loops_(loops) {}

  Status Make(const Change& change, const Updated& variable) {
    for (int f = change.frame; f != kOutside; f = loops_.Parent(f)) one_at_a_time_.insert(loops_.Name(f));
    const Consumer& c = change.reader;
    if (!change.is_behind) {
      MR_ASSIGN_OR_RETURN(const Output snapshot, SnapshotFor(change, variable));
      return snapshot ? graph_.SetInput(c.node, c.input, snapshot) : absl::OkStatus();
    }
    MR_ASSIGN_OR_RETURN(Output ref, Carry(change.read->input(0), change.carried));
    if (!ref) return absl::OkStatus();
    if (c.node->assigned_device() != change.read->assigned_device()) {
      MR_ASSIGN_OR_RETURN(ref, ReadFor(c, ref));
    }
    return graph_.SetInput(c.node, c.input, ref);
  }

  void LimitParallelIterations() const {
    if (one_at_a_time_.empty()) return;
    for (Node* n : graph_.nodes()) {
      if (n->control_op() != ControlOp::kEnter) continue;
      if (one_at_a_time_.contains(n->Attr<std::string>("frame_name").value_or(""))) {
        n->SetAttr("parallel_iterations", int64_t{1});
      }
    }
  }

 private:
  // The value at the beginning of an iteration, where the reader is; none where the snapshot is taken in the loop
  // anyway.
  StatusOr<Output> SnapshotFor(const Change& change, const Updated& variable) {
    const auto is_inside = [&](Output o) { return loops_.IsWithin(loops_.FrameOf(o.node), change.frame); };
    const auto inside = std::find_if(change.carried.begin(), change.carried.end(), is_inside);
    if (is_inside(change.read->output(0)) || inside == change.carried.end()) return Output();
    Node*& snapshot = snapshots_[{change.read, change.frame}];
    const size_t outside = static_cast<size_t>(inside - change.carried.begin()) + 1;
    if (snapshot == nullptr) {
      MR_ASSIGN_OR_RETURN(
          const Output ref, Carry(change.read->input(0), absl::MakeConstSpan(change.carried).first(outside)));
      Node* merge = loops_.MergeOf(change.frame);
      if (!ref || merge == nullptr) return Output();
      MR_ASSIGN_OR_RETURN(snapshot, AddRead(ref, absl::StrCat(change.read->name(), "/iteration"), {merge}));
      for (Node* update : variable.updates) {
        const bool is_there = loops_.IsWithin(loops_.FrameOf(update), change.frame);
        if (!is_there) continue;
        for (Node* n : loops_.SeenFrom(change.frame, update)) graph_.AddControlEdge(snapshot, n);
      }
    }
    return Carry(snapshot->output(0), absl::MakeConstSpan(change.carried).subspan(outside));
  }

  // A reference does not travel: for a reader on another device, a read where the variable is, when the reader could
  // run but for it.
  StatusOr<Output> ReadFor(const Consumer& reader, Output ref) {
    std::vector<Node*> controls = reader.node->control_inputs();
    for (int i = 0; i < reader.node->num_inputs(); ++i) {
      const Output in = reader.node->input(i);
      const bool is_there = in.node->control_op() == ControlOp::kEnter || IsRef(in.dtype()) || i == reader.input;
      if (!is_there) controls.push_back(in.node);
    }
    MR_ASSIGN_OR_RETURN(Node * read, AddRead(ref, absl::StrCat(reader.node->name(), "/read"), std::move(controls)));
    return read->output(0);
  }

  StatusOr<Node*> AddRead(Output ref, const std::string& name, std::vector<Node*> controls) {
    NodeSpec spec;
    spec.op = "Identity";
    spec.name = graph_.UniqueName(name);
    spec.inputs = {ref};
    spec.control_inputs = std::move(controls);
    return Add(std::move(spec), *ref.node);
  }

  // `o` where the last of `way` is; none when there is no op that brings it there.
  StatusOr<Output> Carry(Output o, absl::Span<const Output> way) {
    for (const Output& step : way) {
      MR_ASSIGN_OR_RETURN(Node * carrier, CarrierOf(o, *step.node));
      if (carrier == nullptr) return Output();
      o = carrier->output(step.index);
    }
    return o;
  }

  StatusOr<Node*> CarrierOf(Output o, const Node& like) {
    Node*& carrier = carriers_[{o, &like}];
    if (carrier != nullptr) return carrier;
    NodeSpec spec;
    spec.op = absl::StrCat(IsRef(o.dtype()) ? "Ref" : "", like.op_name());
    if (graph_.FindOp(spec.op) == nullptr) return nullptr;
    spec.name = graph_.UniqueName(absl::StrCat(like.name(), "/variable"));
    spec.inputs = like.inputs();
    spec.inputs[0] = o;
    spec.control_inputs = like.control_inputs();
    spec.attrs = like.attrs();
    spec.location = like.location();
    MR_ASSIGN_OR_RETURN(carrier, Add(std::move(spec), *o.node));
    return carrier;
  }

  StatusOr<Node*> Add(NodeSpec spec, const Node& beside) {
    spec.device = beside.device();
    MR_ASSIGN_OR_RETURN(Node * node, graph_.AddNode(std::move(spec)));
    node->set_assigned_device(beside.assigned_device());
    return node;
  }

  Graph& graph_;
  const Loops& loops_;
  HashMap<std::pair<Output, const Node*>, Node*> carriers_;
  HashMap<std::pair<const Node*, int>, Node*> snapshots_;  // by read and loop
  HashSet<std::string> one_at_a_time_;
};

}  // namespace

Status ReadAfterUpdates(Graph& graph) {
  const std::vector<Updated> updated = FindUpdated(graph);
  if (updated.empty()) return absl::OkStatus();
  Loops loops;
  MR_RETURN_IF_ERROR(loops.Init(graph));
  std::vector<std::pair<Change, const Updated*>> changes;
  for (size_t first = 0; first < updated.size(); first += 64) {
    const auto block = absl::MakeConstSpan(updated).subspan(first, 64);
    for (Change& change : Finder(graph, loops, block).Find()) {
      const Updated& variable = block[change.variable];
      changes.emplace_back(std::move(change), &variable);
    }
  }
  Rewriter rewriter(graph, loops);
  for (const auto& [change, variable] : changes) MR_RETURN_IF_ERROR(rewriter.Make(change, *variable));
  rewriter.LimitParallelIterations();
  return absl::OkStatus();
}

}  // namespace millrace
