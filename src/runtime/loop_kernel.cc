// SPDX-License-Identifier: Apache-2.0
#include "runtime/loop_kernel.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "graph/frame_tree.h"
#include "runtime/interrupt.h"
#include "runtime/node_run.h"

namespace millrace {
namespace {

// A value that crosses into a plan or out of it, in each iteration.
struct Crossing {
  Slot* from;
  Slot* to;
  bool moves;  // nobody else reads `from`
};
using Crossings = absl::InlinedVector<Crossing, 8>;

inline void Carry(const Crossings& crossings) {
  for (const Crossing& c : crossings) {
    if (c.from->ref) {
      c.to->tensor = c.from->ref->ReadOrEmpty();
    } else if (c.moves) {
      MoveTensor(c.from->tensor, &c.to->tensor);  // in the next iteration a node that is dead may have the slot
    } else {
      c.to->tensor = c.from->tensor;
    }
  }
}

// A plan that runs once an iteration, in a frame that is kept for the whole loop.
class Segment {
 public:
  using Slots = absl::InlinedVector<Slot, 8>;

  Segment(std::unique_ptr<Plan> plan, std::vector<LoopValue> args) : plan_(std::move(plan)), args_(std::move(args)) {
    absl::flat_hash_map<int, int> last_reader;
    for (int i = 0; i < plan_->num_retvals(); ++i) last_reader[plan_->retval_slot(i)] = i;
    for (int i = 0; i < plan_->num_retvals(); ++i) {
      const int slot = plan_->retval_slot(i);
      moves_.push_back(last_reader[slot] == i && !plan_->Lasts(slot));
    }
  }

  const Plan& plan() const { return *plan_; }

  // Arguments that do not change have slots that last as long as the frame is held.
  void SetInvariants(Frame& frame, const KernelContext& ctx, size_t first) const {
    for (size_t i = 0; i < args_.size(); ++i) {
      if (args_[i].kind != LoopValue::Kind::kInvariant) continue;
      ArgOf(frame, i).tensor = ctx.input(static_cast<int>(first) + args_[i].index);
    }
  }

  // From the loop's values to the arguments; each value is one argument at most.
  Crossings In(Frame& frame, Slots& variables, Slots& computed) const {
    Crossings in;
    for (size_t i = 0; i < args_.size(); ++i) {
      const LoopValue& v = args_[i];
      if (v.kind == LoopValue::Kind::kInvariant) continue;
      Slots& from = v.kind == LoopValue::Kind::kVariable ? variables : computed;
      in.push_back({&from[static_cast<size_t>(v.index)], &ArgOf(frame, i), /*moves=*/true});
    }
    return in;
  }

  // From retval `first` on.
  Crossings Out(Frame& frame, size_t first, Slots& to) const {
    Crossings out;
    for (size_t i = 0; i < to.size(); ++i) {
      const auto slot = static_cast<size_t>(plan_->retval_slot(static_cast<int>(first + i)));
      out.push_back({&frame.slots[slot], &to[i], moves_[first + i]});
    }
    return out;
  }

 private:
  Slot& ArgOf(Frame& frame, size_t i) const {
    return frame.slots[static_cast<size_t>(plan_->arg_slot(static_cast<int>(i)))];
  }

  std::unique_ptr<Plan> plan_;
  std::vector<LoopValue> args_;
  std::vector<bool> moves_;  // per retval: nobody reads its slot after it, and the plan does not keep it
};

class LoopKernel : public Kernel {
 public:
  LoopKernel(const LoopRegion& region, Segment predicate, Segment body)
      : name_(region.name),
        num_variables_(region.variables.size()),
        results_(region.results),
        predicate_(std::move(predicate)),
        body_(std::move(body)) {}

  // Inputs: the variables' first values, then the invariants.
  Status Compute(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(const HeldFrame predicate_frame, predicate_.plan().AcquireFrame());
    MR_ASSIGN_OR_RETURN(const HeldFrame body_frame, body_.plan().AcquireFrame());
    Segment::Slots variables(num_variables_), computed(static_cast<size_t>(predicate_.plan().num_retvals() - 1)),
        pred(1);
    for (size_t i = 0; i < num_variables_; ++i) variables[i].tensor = ctx.input(static_cast<int>(i));
    predicate_.SetInvariants(*predicate_frame, ctx, num_variables_);
    body_.SetInvariants(*body_frame, ctx, num_variables_);
    // The predicate's plan only looks at the variables: its arguments last, and go back as they came.
    const Crossings into_predicate = predicate_.In(*predicate_frame, variables, computed);
    Crossings back;
    for (const Crossing& c : into_predicate) back.push_back({c.to, c.from, /*moves=*/true});
    const Crossings decision = predicate_.Out(*predicate_frame, 0, pred);
    const Crossings out_of_predicate = predicate_.Out(*predicate_frame, 1, computed);
    const Crossings into_body = body_.In(*body_frame, variables, computed);
    const Crossings out_of_body = body_.Out(*body_frame, 0, variables);
    StepContext& step = ctx.step();
    StopScope stop(&StepMustStop, &step);
    const ExecutorOptions options{.trace = step.trace, .stop = &stop};
    Interrupt* const interrupt = CurrentInterrupt();
    for (int64_t iteration = 0;; ++iteration) {
      // Plans look after each node, but a loop may have none.
      if (step.cancellation && step.cancellation->IsCancelled()) return Cancelled("the step was cancelled");
      if (interrupt && interrupt->IsDue() && interrupt->Look()) return Interrupted();
      Carry(into_predicate);
      MR_RETURN_IF_ERROR(RunInOrder(predicate_.plan(), *predicate_frame, step, options));
      Carry(decision);
      if (!IsDecision(pred[0].tensor)) return NoDecision(pred[0].tensor);
      Carry(out_of_predicate);
      Carry(back);
      if (!*pred[0].tensor.data<bool>()) break;
      Carry(into_body);
      MR_RETURN_IF_ERROR(RunInOrder(body_.plan(), *body_frame, step, options));
      Carry(out_of_body);
      for (size_t i = 0; i < num_variables_; ++i) {
        if (variables[i].tensor.IsInitialized()) continue;
        return InvalidArgument("variable ", i, " of loop '", name_, "' has no value after iteration ", iteration,
                               ": it lies on a branch that was not taken");
      }
    }
    for (size_t i = 0; i < results_.size(); ++i) {
      const size_t at = static_cast<size_t>(results_[i].index);
      switch (results_[i].kind) {
        case LoopValue::Kind::kVariable: ctx.set_output(static_cast<int>(i), variables[at].tensor); break;
        case LoopValue::Kind::kComputed: ctx.set_output(static_cast<int>(i), computed[at].tensor); break;
        case LoopValue::Kind::kInvariant:
          ctx.set_output(static_cast<int>(i), ctx.input(static_cast<int>(num_variables_ + at)));
          break;
      }
    }
    return absl::OkStatus();
  }

 private:
  static bool IsDecision(const Tensor& pred) {
    return pred.IsInitialized() && pred.dtype() == DType::kBool && pred.num_elements() == 1;
  }
  Status NoDecision(const Tensor& pred) const {
    return InvalidArgument(
        "the predicate of loop '", name_, "' must be a scalar bool, but it is ",
        pred.IsInitialized() ? absl::StrCat(DTypeName(pred.dtype()), pred.shape().ToString()) : "dead");
  }

  const std::string name_;
  const size_t num_variables_;
  const std::vector<LoopValue> results_;
  const Segment predicate_, body_;
};

// Rewrites a copy of the graph, loop by loop.
class LoopCollapser {
 public:
  LoopCollapser(const Graph& graph, const Plan::Options& options) : source_(graph), options_(options) {
    options_.make_kernel = [this, make = options.make_kernel](const Node& n) -> StatusOr<std::shared_ptr<Kernel>> {
      auto it = by_name_.find(n.name());
      if (it != by_name_.end()) return it->second;
      return make(n);
    };
  }

  StatusOr<CollapsedGraph> Run() {
    CollapsedGraph result;
    const bool has_loops = std::any_of(source_.nodes().begin(), source_.nodes().end(), [](const Node* n) {
      return n->control_op() == ControlOp::kLoopCond;
    });
    if (!has_loops) return result;
    MR_RETURN_IF_ERROR(CopyGraph());
    for (;;) {
      MR_ASSIGN_OR_RETURN(const bool more, CollapseInnermost());
      if (!more) break;
    }
    if (by_name_.empty()) return result;
    for (Node* n : graph_->nodes()) {
      if (auto it = by_name_.find(n->name()); it != by_name_.end()) result.kernels.emplace(n, it->second);
    }
    result.graph = std::move(graph_);
    return result;
  }

 private:
  Status CopyGraph() {
    graph_ = std::make_unique<Graph>(&source_.registry());
    MR_ASSIGN_OR_RETURN(const std::vector<Node*> order, TopologicalOrder(source_));
    absl::flat_hash_map<const Node*, Node*> copies;
    for (const Node* n : order) {
      std::vector<Output> inputs;
      for (const Output& o : n->inputs()) {
        auto it = copies.find(o.node);
        inputs.push_back(it == copies.end() ? Output() : Output{it->second, o.index});  // a back edge comes below
      }
      std::vector<Node*> controls;
      for (const Node* c : n->control_inputs()) controls.push_back(copies.at(c));
      MR_ASSIGN_OR_RETURN(copies[n], graph_->CopyNode(*n, inputs, controls));
    }
    for (const Node* n : order) {
      for (int i = 0; i < n->num_inputs(); ++i) {
        Node* copy = copies.at(n);
        if (!copy->input(i)) {
          MR_RETURN_IF_ERROR(graph_->SetInput(copy, i, {copies.at(n->input(i).node), n->input(i).index}));
        }
      }
    }
    return absl::OkStatus();
  }

  // All loops without loops inside that have not been refused yet; false when that changed nothing. So there are as
  // many rounds as loops are deep.
  StatusOr<bool> CollapseInnermost() {
    MR_ASSIGN_OR_RETURN(const std::vector<Node*> order, TopologicalOrder(*graph_));
    MR_ASSIGN_OR_RETURN(const FrameTree tree, FrameTree::Of(order, graph_->num_node_ids()));
    const std::vector<LoopFrame>& frames = tree.frames();
    std::vector<bool> has_children(frames.size(), false);
    for (const LoopFrame& f : frames) {
      if (f.parent >= 0) has_children[static_cast<size_t>(f.parent)] = true;
    }
    std::vector<std::vector<Node*>> nodes(frames.size());
    for (Node* n : order) {
      const bool enters = n->control_op() == ControlOp::kEnter;
      nodes[static_cast<size_t>(enters ? tree.OutputsIn(n) : tree.RunsIn(n))].push_back(n);
    }
    bool changed = false;
    for (size_t f = 1; f < frames.size(); ++f) {
      if (has_children[f] || refused_.contains(frames[f].name)) continue;
      MR_ASSIGN_OR_RETURN(
          std::unique_ptr<LoopRegion> region, FindLoopRegion(frames[f].name, std::move(nodes[f]), graph_->registry()));
      std::shared_ptr<Kernel> kernel;
      if (region) {
        MR_ASSIGN_OR_RETURN(kernel, Compile(*region));
      }
      if (kernel) {
        MR_RETURN_IF_ERROR(Replace(*region, std::move(kernel)));
        changed = true;
      } else {
        refused_.insert(frames[f].name);
      }
    }
    return changed;
  }

  // Null when a part has to wait for something.
  StatusOr<std::shared_ptr<Kernel>> Compile(LoopRegion& region) {
    const auto compile = [&](const Graph& graph, const std::vector<LoopValue>& args, bool all_last) {
      Plan::Options options = options_;
      options.lasting_args.clear();
      for (size_t i = 0; i < args.size(); ++i) {
        if (all_last || args[i].kind == LoopValue::Kind::kInvariant)
          options.lasting_args.push_back(static_cast<int>(i));
      }
      return Plan::Compile(graph, options);
    };
    MR_ASSIGN_OR_RETURN(
        std::unique_ptr<Plan> predicate, compile(*region.predicate, region.predicate_args, /*all_last=*/true));
    MR_ASSIGN_OR_RETURN(std::unique_ptr<Plan> body, compile(*region.body, region.body_args, /*all_last=*/false));
    if (predicate->runs_by_readiness() || body->runs_by_readiness()) return std::shared_ptr<Kernel>();
    return std::make_shared<LoopKernel>(
        region, Segment(std::move(predicate), region.predicate_args), Segment(std::move(body), region.body_args));
  }

  Status Replace(const LoopRegion& region, std::shared_ptr<Kernel> kernel) {
    NodeSpec spec;
    spec.op = "_Loop";
    do {
      spec.name = absl::StrCat("_loop_", serial_++);
    } while (graph_->Find(spec.name) != nullptr);
    std::vector<DType> in, out;
    for (const std::vector<Output>* list : {&region.variables, &region.invariants}) {
      for (const Output& o : *list) {
        spec.inputs.push_back(o);
        in.push_back(BaseType(o.dtype()));
      }
    }
    for (const Node* exit : region.exits) out.push_back(BaseType(exit->output_type(0)));
    spec.attrs["Tin"] = in;
    spec.attrs["Tout"] = out;
    spec.control_inputs = region.waits_for;
    if (!region.nodes.empty()) spec.location = region.nodes.front()->location();
    MR_ASSIGN_OR_RETURN(Node * loop, graph_->AddNode(std::move(spec)));
    loop->set_assigned_device(region.nodes.front()->assigned_device());
    for (size_t i = 0; i < region.exits.size(); ++i) {
      Node* exit = region.exits[i];
      loop->set_shape(static_cast<int>(i), exit->shape(0));
      MR_RETURN_IF_ERROR(graph_->ReplaceUses(exit->output(0), loop->output(static_cast<int>(i))));
      const std::vector<Node*> waiting = exit->control_outputs();
      for (Node* to : waiting) graph_->AddControlEdge(loop, to);
    }
    by_name_[loop->name()] = std::move(kernel);
    // Readers go first, once nobody reads around the loop.
    for (Node* n : region.nodes) {
      for (int i = 0; i < n->num_inputs(); ++i) {
        if (IsBackEdge(n->input(i).node->control_op(), n->control_op())) {
          MR_RETURN_IF_ERROR(graph_->SetInput(n, i, n->input(0)));
        }
      }
    }
    for (auto n = region.nodes.rbegin(); n != region.nodes.rend(); ++n) graph_->RemoveNode(*n);
    return absl::OkStatus();
  }

  const Graph& source_;
  Plan::Options options_;
  std::unique_ptr<Graph> graph_;
  absl::flat_hash_map<std::string, std::shared_ptr<Kernel>> by_name_;
  absl::flat_hash_set<std::string> refused_;
  int serial_ = 0;
};

}  // namespace

StatusOr<CollapsedGraph> CollapseLoops(const Graph& graph, const Plan::Options& options) {
  return LoopCollapser(graph, options).Run();
}

}  // namespace millrace
