// SPDX-License-Identifier: Apache-2.0
// The nodes between xs and ys are those that xs reach (through tensors that can carry a gradient) and that reach ys.
// Each counts the edges to readers between; when all of them have reported, its gradients are complete and its own
// gradient function runs. So every node is visited once, and no recursion follows the depth of the graph, only that of
// loops.
#include "autodiff/gradients.h"

#include <algorithm>

#include "autodiff/backward_walk.h"
#include "autodiff/expanded_calls.h"
#include "autodiff/sum_gradients.h"
#include "base/hash_map.h"
#include "base/logging.h"
#include "graph/loop_shapes.h"

namespace millrace {

bool CarriesGradient(DType t) {
  t = BaseType(t);
  return t == DType::kInvalid || IsFloating(t) || IsComplex(t) || t == DType::kResource || t == DType::kVariant;
}

BackwardWalk::BackwardWalk(const GraphBuilder& builder, const GradientOptions& options)
    : builder_(builder),
      options_(options),
      graph_(builder.graph()),
      num_ids_(static_cast<size_t>(graph_.num_node_ids())),
      stops_(options.stop_gradients.begin(), options.stop_gradients.end()),
      structure_(graph_) {}

BackwardWalk::~BackwardWalk() = default;

GraphBuilder BackwardWalk::ScopeOf(Node* n) const {
  // What a client's gradient function names cannot be made unique: it keeps a scope of its own.
  const bool is_ours = n->op() != nullptr && !n->op()->schema.empty();
  GraphBuilder b = options_.as_in_c && is_ours ? builder_ : builder_.ScopeExact(absl::StrCat(n->name(), "_grad"));
  if (!n->location().empty()) b = b.At(n->location());
  return options_.colocate ? b.ColocateWith(n) : b;
}

Status BackwardWalk::Run(const std::vector<Output>& ys, const std::vector<Output>& xs,
                         const std::vector<Output>& grad_ys) {
  around_ = graph_.context();
  for (const Output& y : ys) {
    if (!y) return InvalidArgument("a y is missing");
    integers_ = integers_ || (options_.as_in_c && IsInteger(BaseType(y.dtype())));
  }
  MR_RETURN_IF_ERROR(FindRoot(ys));
  MR_RETURN_IF_ERROR(FindBetween(ys, xs));
  Region& root = RegionOfLoop(nullptr);
  if (has_control_flow_) MR_RETURN_IF_ERROR(StartTape(ys[0]));
  const InRegion in(this, &root);
  MR_RETURN_IF_ERROR(Seed(ys, grad_ys));
  return WalkRegion(root);
}

StatusOr<Gradient> BackwardWalk::Take(Output x) {
  auto it = flows_.find(x);
  if (it == flows_.end()) return Gradient();
  if (it->second.size() > 1) {
    std::optional<InRegion> in;
    if (has_control_flow_) {
      MR_ASSIGN_OR_RETURN(Region * region, RegionOf(x.node));
      in.emplace(this, region);
    }
    const Gradient sum = SumGradients(ScopeOf(x.node), it->second);
    it->second = {sum};
    MR_RETURN_IF_ERROR(builder_.status());
  }
  return it->second[0];
}

// Outside of the walk nobody could make a sparse gradient dense within a loop.
StatusOr<Gradient> BackwardWalk::TakeResult(Output x) {
  MR_ASSIGN_OR_RETURN(Gradient g, Take(x));
  if (!has_control_flow_ || g.dense || g.none()) return g;
  MR_ASSIGN_OR_RETURN(Region * region, RegionOf(x.node));
  if (region->loop == nullptr && root_ == nullptr) return g;
  const InRegion in(this, region);
  g = Gradient{Densify(ScopeOf(x.node), *g.sparse), std::nullopt};
  MR_RETURN_IF_ERROR(builder_.status());
  return g;
}

Status BackwardWalk::Seed(const std::vector<Output>& ys, const std::vector<Output>& grad_ys) {
  if (!grad_ys.empty() && grad_ys.size() != ys.size()) {
    return InvalidArgument("got ", grad_ys.size(), " gradients for ", ys.size(), " ys");
  }
  for (size_t i = 0; i < ys.size(); ++i) {
    const Output y = ys[i];
    const DType dtype = BaseType(y.dtype());
    Output g = grad_ys.empty() ? Output() : grad_ys[i];
    if (dtype == DType::kInvalid) {
      return NotFound("y ", i, " (", y.ToString(), ") comes from op ", y.node->op_name(), ", which is not known here");
    }
    if (!Carries(dtype)) {
      return InvalidArgument(
          "y ", i, " (", y.ToString(), ") is ", DTypeName(dtype), "; only float and complex tensors have gradients");
    }
    if (g && BaseType(g.dtype()) != dtype && dtype != DType::kResource && dtype != DType::kVariant) {
      return InvalidArgument(
          "the gradient of y ", i, " is ", DTypeName(g.dtype()), " but y (", y.ToString(), ") is ", DTypeName(dtype));
    }
    if (!g) {
      MR_ASSIGN_OR_RETURN(g, SeedOf(i, y));
    }
    flows_[y].push_back(Gradient{g, std::nullopt});
  }
  return builder_.status();
}

StatusOr<Output> BackwardWalk::SeedOf(size_t i, Output y) {
  const DType dtype = BaseType(y.dtype());
  if (dtype == DType::kResource || dtype == DType::kVariant) {
    return InvalidArgument("y ", i, " (", y.ToString(), ") is ", DTypeName(dtype), " and needs a grad_y");
  }
  if (options_.as_in_c) return builder_.OnesLike(y);
  const GraphBuilder b = builder_.WithName(absl::StrCat("grad_ys_", i));
  bool is_live = true;
  if (has_control_flow_) {
    MR_ASSIGN_OR_RETURN(const Liveness when, structure_.LivenessOf(y));
    is_live = when.empty();
  }
  if (!is_live || !y.shape().IsFullyDefined()) return b.OnesLike(y);
  // As in TensorFlow y itself is not computed for its shape, nor what must be done before it.
  const Output one = b.ScalarOf(dtype, 1);
  if (y.shape().rank() == 0) return one;
  std::vector<int64_t> dims(y.shape().dims().begin(), y.shape().dims().end());
  const Output shape = builder_.WithName("Shape").Const(Tensor::Vector<int64_t>(absl::MakeConstSpan(dims)));
  return builder_.WithName("Fill").Op("Fill", {shape, one});
}

// Nothing flows through such a node. In a loop what stands behind it counts all the same, as in TensorFlow: a variable
// that the result depends on by such nodes alone has a gradient of zeros, and not none.
StatusOr<bool> BackwardWalk::Blocks(const Node* n, bool entered_loop) {
  if (n->control_op() == ControlOp::kEnter) {
    MR_ASSIGN_OR_RETURN(Loop * loop, structure_.LoopOf(n));
    return structure_.Describe(loop).ok() && !loop->back_prop;
  }
  if (n->op() == nullptr || n->op()->gradient_kind != GradientKind::kNotDifferentiable) return false;
  if (n->control_op() != ControlOp::kNone || n->op_name() == "StackPushV2") return false;
  if (n->attrs().contains("_gradient_op_type") || options_.custom.contains(n->op_name()) ||
      graph_.FindFunction(n->op_name()) != nullptr) {
    return false;
  }
  if (!entered_loop) return true;
  MR_ASSIGN_OR_RETURN(const Loop* loop, structure_.LoopOf(n));
  return IsRoot(loop);
}

Status BackwardWalk::Reach(const std::vector<Output>& xs, std::vector<bool>* reached) {
  std::vector<Node*> stack;
  const auto push = [&](Node* n) {
    if (Id(n) >= num_ids_ || (*reached)[Id(n)]) return;
    (*reached)[Id(n)] = true;
    stack.push_back(n);
  };
  for (const Output& x : xs) {
    if (!x) return InvalidArgument("an x is missing");
    push(x.node);
  }
  const HashSet<Output> starts(xs.begin(), xs.end());
  bool entered_loop = false;
  while (!stack.empty()) {
    Node* n = stack.back();
    stack.pop_back();
    entered_loop |= n->control_op() == ControlOp::kEnter;
    for (const Consumer& c : n->consumers()) {
      const Output o = c.node->input(c.input);
      if (!Carries(o.dtype()) || (stops_.contains(o) && !starts.contains(o))) continue;
      MR_ASSIGN_OR_RETURN(const bool blocks, Blocks(c.node, entered_loop));
      MR_ASSIGN_OR_RETURN(const bool cut, IsCut(c));
      if (blocks || cut) continue;
      push(c.node);
      if (c.node->op_name() != "StackPushV2" || c.input != 1) continue;
      MR_RETURN_IF_ERROR(LinkStacks());
      if (const auto it = pop_of_push_.find(c.node); it != pop_of_push_.end()) push(it->second);
    }
  }
  return absl::OkStatus();
}

Status BackwardWalk::FindBetween(const std::vector<Output>& ys, const std::vector<Output>& xs) {
  std::vector<bool> reached(num_ids_, false), seen(num_ids_, false);
  MR_RETURN_IF_ERROR(Reach(xs, &reached));
  between_.assign(num_ids_, nullptr);
  std::vector<Node*> order, stack;
  const auto push = [&](Node* n) {
    if (n == nullptr || Id(n) >= num_ids_ || seen[Id(n)] || !reached[Id(n)]) return;
    seen[Id(n)] = true;
    stack.push_back(n);
  };
  for (const Output& y : ys) push(y.node);
  while (!stack.empty()) {
    Node* n = stack.back();
    stack.pop_back();
    between_[Id(n)] = n;
    order.push_back(n);
    has_control_flow_ |= n->control_op() != ControlOp::kNone;
    for (int i = 0; i < n->num_inputs(); ++i) {
      if (!n->input(i)) continue;
      MR_ASSIGN_OR_RETURN(const bool cut, IsCut({n, i}));
      if (!cut) push(n->input(i).node);
    }
    if (const auto it = push_of_pop_.find(n); it != push_of_pop_.end()) push(it->second);
  }
  return CountReaders(order);
}

Status BackwardWalk::CountReaders(const std::vector<Node*>& order) {
  pending_.assign(num_ids_, 0);
  for (Node* n : order) {
    for (int i = 0; i < n->num_inputs(); ++i) {
      const Output o = n->input(i);
      if (!o || !IsBetween(o.node)) continue;
      MR_ASSIGN_OR_RETURN(const Item reader, Reader(n, i));
      if (!reader) continue;
      MR_ASSIGN_OR_RETURN(const Item producer, Producer(o));
      if (producer.node != nullptr) ++pending_[Id(producer.node)];
      if (producer.loop != nullptr) ++pending_loops_[producer.loop];
    }
  }
  for (size_t id = 0; id < num_ids_; ++id) {
    Node* n = between_[id];
    if (n == nullptr) continue;
    MR_ASSIGN_OR_RETURN(const bool skeleton, IsSkeleton(n));
    if (n->control_op() == ControlOp::kExit && has_control_flow_) {
      MR_ASSIGN_OR_RETURN(Loop * loop, structure_.LoopLeft(n));
      exits_[loop].push_back(n);
      if (exits_[loop].size() == 1) RegionOfLoop(loop->parent).items.push_back({nullptr, loop});
    } else if (!skeleton) {
      MR_ASSIGN_OR_RETURN(Region * region, RegionOf(n));
      region->items.push_back({n, nullptr});
    }
  }
  for (const auto& [push, pop] : pop_of_push_) {
    if (!IsBetween(push) || !IsBetween(pop)) continue;
    MR_ASSIGN_OR_RETURN(const std::vector<Item> readers, ItemsAround(pop));
    MR_ASSIGN_OR_RETURN(const std::vector<Item> producers, ItemsAround(const_cast<Node*>(push)));
    size_t k = 0;
    while (k < readers.size() && k < producers.size() && readers[k] == producers[k]) ++k;
    if (k == readers.size() || k == producers.size()) continue;
    stack_edges_[readers[k]].push_back(producers[k]);
    if (producers[k].node != nullptr) ++pending_[Id(producers[k].node)];
    if (producers[k].loop != nullptr) ++pending_loops_[producers[k].loop];
  }
  return absl::OkStatus();
}

Status BackwardWalk::WalkRegion(Region& region) {
  for (const Item& item : region.items) {
    if ((item.node != nullptr ? pending_[Id(item.node)] : pending_loops_[item.loop]) == 0) region.ready.push_back(item);
  }
  while (!region.ready.empty()) {
    const Item item = region.ready.front();
    region.ready.pop_front();
    MR_RETURN_IF_ERROR(item.loop != nullptr ? LoopGradient(item.loop) : Visit(item.node));
    MR_RETURN_IF_ERROR(Finish(item));
  }
  return absl::OkStatus();
}

Status BackwardWalk::Report(Item producer) {
  if (!producer) return absl::OkStatus();
  int& left = producer.node != nullptr ? pending_[Id(producer.node)] : pending_loops_[producer.loop];
  if (--left != 0) return absl::OkStatus();
  if (producer.loop != nullptr) {
    RegionOfLoop(producer.loop->parent).ready.push_back(producer);
    return absl::OkStatus();
  }
  MR_ASSIGN_OR_RETURN(Region * region, RegionOf(producer.node));
  region->ready.push_back(producer);
  return absl::OkStatus();
}

Status BackwardWalk::Finish(const Item& item) {
  const auto report = [&](Node* n, int i) -> Status {
    const Output o = n->input(i);
    if (!o || !IsBetween(o.node)) return absl::OkStatus();
    MR_ASSIGN_OR_RETURN(const Item reader, Reader(n, i));
    if (!(reader == item)) return absl::OkStatus();
    MR_ASSIGN_OR_RETURN(const Item producer, Producer(o));
    return Report(producer);
  };
  if (item.node != nullptr) {
    for (int i = 0; i < item.node->num_inputs(); ++i) MR_RETURN_IF_ERROR(report(item.node, i));
  } else {
    MR_RETURN_IF_ERROR(structure_.Describe(item.loop));
    for (Node* enter : item.loop->enters) {
      if (IsBetween(enter)) MR_RETURN_IF_ERROR(report(enter, 0));
    }
  }
  if (const auto it = stack_edges_.find(item); it != stack_edges_.end()) {
    for (const Item& producer : it->second) MR_RETURN_IF_ERROR(Report(producer));
  }
  return absl::OkStatus();
}

// Null when nothing flows through the op; an error when nobody knows.
StatusOr<std::function<Status(GradContext&)>> BackwardWalk::FunctionOf(Node* n) const {
  std::string name = n->op_name();
  const bool is_override = n->attrs().contains("_gradient_op_type");
  if (is_override) {
    MR_ASSIGN_OR_RETURN(name, n->Attr<std::string>("_gradient_op_type"));
  }
  if (auto it = options_.custom.find(name); it != options_.custom.end()) return it->second;
  const OpDef* op = is_override ? graph_.registry().Find(name) : n->op();
  if (op == nullptr && name.starts_with("CustomGradient-")) {
    // A Python function's own gradient, which did not travel with the graph. The node only passes on what the function
    // computed, so the gradient of those ops is there.
    LogWarning("the custom gradient ", name, " of ", n->Describe(),
               " is not part of the graph; the gradient of the ops behind it is taken");
    op = n->op();
  }
  if (op == nullptr) return NotFound("No gradient is registered under the name '", name, "' for ", n->Describe());
  if (const std::string gradient = LibraryGradient(graph_, *n); !gradient.empty()) {  // other calls have been expanded
    return std::function<Status(GradContext&)>([gradient](GradContext& c) {
      return CallGradientFunction(gradient, c);
    });
  }
  switch (op->gradient_kind) {
    case GradientKind::kFunction:
      if (op->gradient_fn != nullptr) return std::function<Status(GradContext&)>(op->gradient_fn);
      break;
    case GradientKind::kNotDifferentiable: return std::function<Status(GradContext&)>();
    case GradientKind::kStructural:
    case GradientKind::kMissing:
    case GradientKind::kUndecided: break;
  }
  return NotFound("No gradient defined for op ", name, ", at ", n->Describe(),
                  op->gradient_reason.empty() ? "" : absl::StrCat(": ", op->gradient_reason));
}

Status BackwardWalk::Visit(Node* n) {
  const bool is_pop = push_of_pop_.contains(n);
  const bool goes_on =
      is_pop ||
      std::any_of(n->inputs().begin(), n->inputs().end(), [this](const Output& o) { return o && IsBetween(o.node); });
  if (!goes_on) return absl::OkStatus();
  std::vector<Gradient> out(static_cast<size_t>(n->num_outputs()));
  bool any = pop_of_push_.contains(n);
  for (int i = 0; i < n->num_outputs(); ++i) {
    const Output o = n->output(i);
    if (stops_.contains(o) || !Carries(o.dtype())) continue;
    MR_ASSIGN_OR_RETURN(out[static_cast<size_t>(i)], Take(o));
    any |= !out[static_cast<size_t>(i)].none();
  }
  if (!any) return absl::OkStatus();
  if (is_pop) return PopGradientOf(n, out[0]);
  if (pop_of_push_.contains(n)) return PushGradientOf(n, out[0]);
  switch (n->control_op()) {
    case ControlOp::kNone: break;
    case ControlOp::kSwitch: return SwitchGradient(n, std::move(out));
    case ControlOp::kEnter:  // of the loop that ys are in
      return Flow(n, 0, out[0]);
    case ControlOp::kMerge:
      if (!ControlFlowStructure::IsLoopMerge(n)) return MergeGradient(n, out[0]);
      return InvalidArgument(
          n->Describe(),
          " is a variable of the loop that the gradient is taken in. Within a loop there is "
          "no gradient with respect to or through a variable's initial value; take it with respect to "
          "what the body reads, or of the loop's result");
    default: return InvalidArgument("the gradient cannot pass ", n->Describe());
  }
  MR_ASSIGN_OR_RETURN(auto function, FunctionOf(n));
  if (!function) return absl::OkStatus();
  for (const Output& o : n->inputs()) {
    if (o.dtype() != DType::kInvalid) continue;
    return NotFound(
        "the gradient of ", n->Describe(), " depends on ", o.node->Describe(), ", whose op is not known here");
  }
  return Apply(n, function, std::move(out));
}

Status BackwardWalk::Apply(Node* n, const std::function<Status(GradContext&)>& function, std::vector<Gradient> out) {
  std::vector<Output> guards;
  MR_ASSIGN_OR_RETURN(const Liveness branches, BranchesOf(n));
  if (!branches.empty()) {
    for (const Gradient& g : out) {
      if (!g.none()) guards.push_back(g.dense ? g.dense : g.sparse->values);
    }
  }
  const int mark = graph_.num_node_ids();
  if (current_->context != nullptr) current_->context->set_guards(guards);
  const GraphBuilder b = ScopeOf(n);
  GradContext context(b, n, std::move(out));
  Status s = function(context);
  if (s.ok()) s = builder_.status();
  if (!s.ok()) return Annotate(s, absl::StrCat("gradient of ", n->Describe(), ": "));
  std::vector<Gradient> results;
  for (const Gradient& g : context.results()) {
    MR_ASSIGN_OR_RETURN(results.emplace_back(), Guard(b, g, mark, guards));
  }
  if (current_->context != nullptr) current_->context->set_guards({});
  for (int i = 0; i < n->num_inputs(); ++i) MR_RETURN_IF_ERROR(Flow(n, i, std::move(results[static_cast<size_t>(i)])));
  return absl::OkStatus();
}

// Takes what a gradient function says about input i.
Status BackwardWalk::Flow(Node* n, int i, Gradient g) {
  const Output x = n->input(i);
  if (g.none() || !x || !IsBetween(x.node)) return absl::OkStatus();
  const Output value = g.dense ? g.dense : g.sparse->values;
  const DType want = BaseType(x.dtype());
  if (!value) return Internal("gradient of ", n->Describe(), ": the gradient of input ", i, " lacks its values");
  if (!Carries(want)) return absl::OkStatus();
  const bool is_handle = want == DType::kResource || want == DType::kVariant;
  if (!is_handle && BaseType(value.dtype()) != want) {
    return Internal("gradient of ", n->Describe(), ": the gradient of input ", i, " is ", DTypeName(value.dtype()),
                    ", the input ", DTypeName(want));
  }
  if (g.dense && !is_handle && !value.shape().IsFullyDefined() && x.shape().has_rank()) {
    const Status s = graph_.RefineShape(value, x.shape());
    if (!s.ok()) return Annotate(s, absl::StrCat("gradient of ", n->Describe(), ", input ", i, ": "));
  }
  if (has_control_flow_ && n->control_op() == ControlOp::kNone) {
    MR_ASSIGN_OR_RETURN(g, Lift(n, x, std::move(g)));
  }
  flows_[x].push_back(std::move(g));
  return absl::OkStatus();
}

StatusOr<std::vector<Gradient>> AddGradients(
    const GraphBuilder& builder, const std::vector<Output>& ys, const std::vector<Output>& xs,
    const std::vector<Output>& grad_ys, const GradientOptions& options) {
  MR_RETURN_IF_ERROR(builder.status());
  const GraphBuilder scoped = builder.scope().empty() ? builder.Scope("gradients") : builder;
  ExpandedCalls calls(builder.graph(), options);
  MR_RETURN_IF_ERROR(calls.Expand(ys, xs));
  RefineLoopShapes(&builder.graph());
  GradientOptions meant = options;
  meant.stop_gradients = calls.Meant(options.stop_gradients);
  BackwardWalk walk(scoped, meant);
  MR_RETURN_IF_ERROR(walk.Run(calls.Meant(ys), calls.Meant(xs), grad_ys));
  std::vector<Gradient> out;
  out.reserve(xs.size());
  for (const Output& x : xs) {
    MR_ASSIGN_OR_RETURN(out.emplace_back(), walk.TakeResult(calls.Meant(x)));
  }
  return out;
}

}  // namespace millrace
