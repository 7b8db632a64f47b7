// SPDX-License-Identifier: Apache-2.0
// The nodes between xs and ys are those that xs reach (through tensors that can carry a gradient) and that reach ys. Each
// counts the edges to readers between; when all of them have reported, its gradients are complete and its own gradient
// function runs. So every node is visited once, and no recursion follows the depth of the graph.
#include "autodiff/gradients.h"

#include <algorithm>
#include <deque>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "autodiff/expanded_calls.h"
#include "autodiff/sum_gradients.h"
#include "base/logging.h"

namespace millrace {
namespace {

// An output of unknown type may carry one: the walk then says which op it does not know.
bool CarriesGradient(DType t) {
  t = BaseType(t);
  return t == DType::kInvalid || IsFloating(t) || IsComplex(t) || t == DType::kResource || t == DType::kVariant;
}

bool IsLoopOp(ControlOp op) {
  return op == ControlOp::kEnter || op == ControlOp::kExit || op == ControlOp::kNextIteration ||
         op == ControlOp::kLoopCond;
}

// The library's gradient function, called with the arguments and the gradients of all results.
Status CallGradientFunction(const std::string& gradient, GradContext& c) {
  AttrMap attrs = c.node()->attrs();
  if (auto f = c.Attr<FuncAttr>("f"); f.ok()) attrs = f->attrs;
  std::erase_if(attrs, [](const auto& attr) { return attr.first.starts_with("_"); });
  std::vector<Arg> inputs(c.node()->inputs().begin(), c.node()->inputs().end());
  for (int i = 0; i < c.num_outputs(); ++i) inputs.emplace_back(c.dy(i));
  Node* call = c.b().OpNode(gradient, std::move(inputs), std::move(attrs));
  MR_RETURN_IF_ERROR(c.status());
  if (call->num_outputs() != c.num_inputs()) {
    return InvalidArgument("gradient function '", gradient, "' has ", call->num_outputs(), " outputs, wanted ",
                           c.num_inputs());
  }
  for (int i = 0; i < c.num_inputs(); ++i) c.set_dx(i, call->output(i));
  return absl::OkStatus();
}

class BackwardWalk {
 public:
  BackwardWalk(const GraphBuilder& builder, const GradientOptions& options)
      : builder_(builder),
        options_(options),
        graph_(builder.graph()),
        num_ids_(static_cast<size_t>(graph_.num_node_ids())),
        stops_(options.stop_gradients.begin(), options.stop_gradients.end()) {}

  Status Run(const std::vector<Output>& ys, const std::vector<Output>& xs, const std::vector<Output>& grad_ys) {
    MR_RETURN_IF_ERROR(Seed(ys, grad_ys));
    MR_RETURN_IF_ERROR(FindBetween(ys, xs));
    for (size_t id = 0; id < num_ids_; ++id) {
      if (between_[id] != nullptr && pending_[id] == 0) ready_.push_back(between_[id]);
    }
    while (!ready_.empty()) {
      Node* n = ready_.front();
      ready_.pop_front();
      MR_RETURN_IF_ERROR(Visit(n));
      for (const Output& o : n->inputs()) {
        if (IsBetween(o.node) && --pending_[Id(o.node)] == 0) ready_.push_back(o.node);
      }
    }
    return absl::OkStatus();
  }

  // What has flowed into x, summed.
  StatusOr<Gradient> Take(Output x) {
    auto it = flows_.find(x);
    if (it == flows_.end()) return Gradient();
    Gradient sum = SumGradients(ScopeOf(x.node), it->second);
    it->second = {sum};
    MR_RETURN_IF_ERROR(builder_.status());
    return sum;
  }

 private:
  static size_t Id(const Node* n) { return static_cast<size_t>(n->id()); }
  bool IsBetween(const Node* n) const { return Id(n) < num_ids_ && between_[Id(n)] != nullptr; }

  GraphBuilder ScopeOf(Node* n) const {
    GraphBuilder b = builder_.ScopeExact(absl::StrCat(n->name(), "_grad"));
    if (!n->location().empty()) b = b.At(n->location());
    return options_.colocate ? b.ColocateWith(n) : b;
  }

  Status Seed(const std::vector<Output>& ys, const std::vector<Output>& grad_ys) {
    if (!grad_ys.empty() && grad_ys.size() != ys.size()) {
      return InvalidArgument("got ", grad_ys.size(), " gradients for ", ys.size(), " ys");
    }
    for (size_t i = 0; i < ys.size(); ++i) {
      const Output y = ys[i];
      if (!y) return InvalidArgument("y ", i, " is missing");
      const DType dtype = BaseType(y.dtype());
      Output g = grad_ys.empty() ? Output() : grad_ys[i];
      if (dtype == DType::kInvalid) {
        return NotFound("y ", i, " (", y.ToString(), ") comes from op ", y.node->op_name(), ", which is not known here");
      }
      if (!CarriesGradient(dtype)) {
        return InvalidArgument("y ", i, " (", y.ToString(), ") is ", DTypeName(dtype),
                               "; only float and complex tensors have gradients");
      }
      if (g && BaseType(g.dtype()) != dtype && dtype != DType::kResource && dtype != DType::kVariant) {
        return InvalidArgument("the gradient of y ", i, " is ", DTypeName(g.dtype()), " but y (", y.ToString(), ") is ",
                               DTypeName(dtype));
      }
      if (!g) {
        if (dtype == DType::kResource || dtype == DType::kVariant) {
          return InvalidArgument("y ", i, " (", y.ToString(), ") is ", DTypeName(dtype), " and needs a grad_y");
        }
        g = Ones(builder_.WithName(absl::StrCat("grad_ys_", i)), y);
      }
      flows_[y].push_back(Gradient{g, std::nullopt});
    }
    return builder_.status();
  }

  static Output Ones(const GraphBuilder& b, Output like) {
    const PartialShape& s = like.shape();
    if (s.rank() == 0) return b.ScalarOf(like.dtype(), 1);
    return b.OnesLike(like);
  }

  Status FindBetween(const std::vector<Output>& ys, const std::vector<Output>& xs) {
    std::vector<bool> reached(num_ids_, false);
    std::vector<Node*> stack;
    const auto push = [&](Node* n, std::vector<bool>* seen) {
      if (Id(n) >= num_ids_ || (*seen)[Id(n)]) return;
      (*seen)[Id(n)] = true;
      stack.push_back(n);
    };
    for (const Output& x : xs) {
      if (!x) return InvalidArgument("an x is missing");
      push(x.node, &reached);
    }
    while (!stack.empty()) {
      Node* n = stack.back();
      stack.pop_back();
      for (const Consumer& c : n->consumers()) {
        if (CarriesGradient(c.node->input(c.input).dtype())) push(c.node, &reached);
      }
    }
    std::vector<bool> seen(num_ids_, false);
    between_.assign(num_ids_, nullptr);
    pending_.assign(num_ids_, 0);
    std::vector<Node*> order;
    for (const Output& y : ys) push(y.node, &seen);
    while (!stack.empty()) {
      Node* n = stack.back();
      stack.pop_back();
      if (!reached[Id(n)]) continue;
      between_[Id(n)] = n;
      order.push_back(n);
      if (IsLoopOp(n->control_op())) return Unimplemented("the gradient through a loop, at ", n->Describe());
      for (const Output& o : n->inputs()) {
        if (o) push(o.node, &seen);
      }
    }
    for (Node* n : order) {
      for (const Output& o : n->inputs()) {
        if (IsBetween(o.node)) ++pending_[Id(o.node)];
      }
    }
    return absl::OkStatus();
  }

  // Null when nothing flows through the op; an error when nobody knows.
  StatusOr<std::function<Status(GradContext&)>> FunctionOf(Node* n) const {
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
      return std::function<Status(GradContext&)>([gradient](GradContext& c) { return CallGradientFunction(gradient, c); });
    }
    if (const ControlOp control = ControlOpOf(name); control == ControlOp::kSwitch || control == ControlOp::kMerge) {
      return Unimplemented("the gradient through a conditional, at ", n->Describe());
    }
    switch (op->gradient_kind) {
      case GradientKind::kFunction:
        if (op->gradient_fn != nullptr) return std::function<Status(GradContext&)>(op->gradient_fn);
        break;
      case GradientKind::kNotDifferentiable:
        return std::function<Status(GradContext&)>();
      case GradientKind::kStructural:
      case GradientKind::kMissing:
      case GradientKind::kUndecided:
        break;
    }
    return NotFound("No gradient defined for op ", name, ", at ", n->Describe(),
                    op->gradient_reason.empty() ? "" : absl::StrCat(": ", op->gradient_reason));
  }

  Status Visit(Node* n) {
    const bool goes_on = std::any_of(n->inputs().begin(), n->inputs().end(),
                                     [this](const Output& o) { return IsBetween(o.node); });
    if (!goes_on) return absl::OkStatus();
    const GraphBuilder b = ScopeOf(n);
    std::vector<Gradient> out(static_cast<size_t>(n->num_outputs()));
    bool any = false;
    for (int i = 0; i < n->num_outputs(); ++i) {
      const Output o = n->output(i);
      if (stops_.contains(o) || !CarriesGradient(o.dtype())) continue;
      MR_ASSIGN_OR_RETURN(out[static_cast<size_t>(i)], Take(o));
      any |= !out[static_cast<size_t>(i)].none();
    }
    if (!any) return absl::OkStatus();
    MR_ASSIGN_OR_RETURN(auto function, FunctionOf(n));
    if (!function) return absl::OkStatus();
    for (const Output& o : n->inputs()) {
      if (o.dtype() != DType::kInvalid) continue;
      return NotFound("the gradient of ", n->Describe(), " depends on ", o.node->Describe(),
                      ", whose op is not known here");
    }
    GradContext context(b, n, std::move(out));
    Status s = function(context);
    if (s.ok()) s = builder_.status();
    if (!s.ok()) return Annotate(s, absl::StrCat("gradient of ", n->Describe(), ": "));
    for (int i = 0; i < n->num_inputs(); ++i) MR_RETURN_IF_ERROR(Flow(n, i, context.results()[static_cast<size_t>(i)]));
    return absl::OkStatus();
  }

  // Takes what a gradient function says about input i.
  Status Flow(Node* n, int i, const Gradient& g) {
    const Output x = n->input(i);
    if (g.none() || !IsBetween(x.node)) return absl::OkStatus();
    const Output value = g.dense ? g.dense : g.sparse->values;
    const DType want = BaseType(x.dtype());
    if (!value) return Internal("gradient of ", n->Describe(), ": the gradient of input ", i, " lacks its values");
    if (!CarriesGradient(want)) return absl::OkStatus();
    const bool is_handle = want == DType::kResource || want == DType::kVariant;
    if (!is_handle && BaseType(value.dtype()) != want) {
      return Internal("gradient of ", n->Describe(), ": the gradient of input ", i, " is ", DTypeName(value.dtype()),
                      ", the input ", DTypeName(want));
    }
    if (g.dense && !is_handle && !value.shape().IsFullyDefined() && x.shape().has_rank()) {
      const Status s = graph_.RefineShape(value, x.shape());
      if (!s.ok()) return Annotate(s, absl::StrCat("gradient of ", n->Describe(), ", input ", i, ": "));
    }
    flows_[x].push_back(g);
    return absl::OkStatus();
  }

  const GraphBuilder& builder_;
  const GradientOptions& options_;
  Graph& graph_;
  const size_t num_ids_;  // nodes from here on are ours
  absl::flat_hash_set<Output> stops_;
  std::vector<Node*> between_;  // by id; null for others
  std::vector<int> pending_;    // edges to readers that have not reported
  std::deque<Node*> ready_;
  absl::flat_hash_map<Output, std::vector<Gradient>> flows_;
};

}  // namespace

StatusOr<std::vector<Gradient>> AddGradients(const GraphBuilder& builder, const std::vector<Output>& ys,
                                             const std::vector<Output>& xs, const std::vector<Output>& grad_ys,
                                             const GradientOptions& options) {
  MR_RETURN_IF_ERROR(builder.status());
  const GraphBuilder scoped = builder.scope().empty() ? builder.Scope("gradients") : builder;
  ExpandedCalls calls(builder, options);
  MR_RETURN_IF_ERROR(calls.Expand(ys, xs));
  GradientOptions meant = options;
  meant.stop_gradients = calls.Meant(options.stop_gradients);
  BackwardWalk walk(scoped, meant);
  MR_RETURN_IF_ERROR(walk.Run(calls.Meant(ys), calls.Meant(xs), grad_ys));
  std::vector<Gradient> out;
  out.reserve(xs.size());
  for (const Output& x : xs) {
    MR_ASSIGN_OR_RETURN(out.emplace_back(), walk.Take(calls.Meant(x)));
  }
  return out;
}

// Called for calls within calls: the depth of the recursion is limited.
StatusOr<std::vector<Output>> AddDenseGradients(const GraphBuilder& builder, const std::vector<Output>& ys,
                                                const std::vector<Output>& xs, const std::vector<Output>& grad_ys) {
  constexpr int kMaxDepth = 64;
  thread_local int depth = 0;
  if (depth >= kMaxDepth) return InvalidArgument("gradients of gradients of functions, more than ", kMaxDepth, " deep");
  ++depth;
  auto gradients = AddGradients(builder, ys, xs, grad_ys);
  --depth;
  MR_RETURN_IF_ERROR(gradients.status());
  std::vector<Output> dense;
  for (const Gradient& g : *gradients) dense.push_back(g.sparse ? Densify(builder, *g.sparse) : g.dense);
  MR_RETURN_IF_ERROR(builder.status());
  return dense;
}

}  // namespace millrace
