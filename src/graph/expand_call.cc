// SPDX-License-Identifier: Apache-2.0
// One call in terms of primitives.
//
// If and Case: every argument goes through a Switch, every result through a Merge. Among n branches a binary search by
// the index chooses, so that a Case of many branches stays shallow. While: every loop variable is Enter -> Merge ->
// Switch -> (body) -> NextIteration -> Merge, and leaves by Exit; a variable that the body returns as it got it enters
// as a constant. For: a While that counts.
//
// A body node without inputs waits for a pivot, which is live exactly when the body runs.
#include <algorithm>
#include <optional>

#include "base/hash_map.h"
#include "graph/function_call.h"
#include "graph/inline_calls.h"
#include "graph/recursion.h"

namespace millrace {
namespace {

enum class Form { kNone, kCall, kRemote, kIf, kCase, kWhile, kFor, kGradient };

Form FormOf(absl::string_view op) {
  static const auto* forms = new HashMap<absl::string_view, Form>{
      {"PartitionedCall", Form::kCall},     {"StatefulPartitionedCall", Form::kCall},
      {"RemoteCall", Form::kRemote},        {"If", Form::kIf},
      {"StatelessIf", Form::kIf},           {"Case", Form::kCase},
      {"StatelessCase", Form::kCase},       {"While", Form::kWhile},
      {"StatelessWhile", Form::kWhile},     {"For", Form::kFor},
      {"SymbolicGradient", Form::kGradient}};
  auto it = forms->find(op);
  return it == forms->end() ? Form::kNone : it->second;
}

// What both shapes allow.
PartialShape Common(const PartialShape& a, const PartialShape& b) {
  if (!a.has_rank() || !b.has_rank() || a.rank() != b.rank()) return PartialShape();
  std::vector<int64_t> dims;
  for (int i = 0; i < a.rank(); ++i) dims.push_back(a.dim(i) == b.dim(i) ? a.dim(i) : -1);
  auto common = PartialShape::Make(dims);
  return common.ok() ? *common : PartialShape();
}

class Expander {
 public:
  Expander(Node* call, const std::string& prefix, std::vector<Node*> wait_for, const ExpandOptions& options,
           Graph* graph)
      : call_(call),
        prefix_(prefix),
        wait_for_(std::move(wait_for)),
        options_(options),
        graph_(graph),
        b_(GraphBuilder(graph).ScopeExact(prefix).WithDevice(call->device()).At(call->location())),
        once_(b_.WithControl(wait_for_)) {}

  StatusOr<Expansion> Run() {
    for (const Output& in : call_->inputs()) {
      if (in.dtype() == DType::kInvalid) return Unimplemented("its input ", in.ToString(), " comes from an unknown op");
    }
    MR_RETURN_IF_ERROR(Expand());
    MR_RETURN_IF_ERROR(b_.status());
    if (outputs_.size() != static_cast<size_t>(call_->num_outputs())) {
      return InvalidArgument("it has ", call_->num_outputs(), " outputs, the body ", outputs_.size());
    }
    for (const Output& o : outputs_) over_.push_back(Anchor(o));
    over_.insert(over_.end(), wait_for_.begin(), wait_for_.end());
    Node* done = b_.WithName("done").WithControl(over_).OpNode("NoOp", {});
    MR_RETURN_IF_ERROR(b_.status());
    return Expansion{std::move(outputs_), done};
  }

 private:
  struct Body {
    std::vector<Output> outputs;
    std::vector<Node*> effects;
  };

  Status Expand() {
    switch (FormOf(call_->op_name())) {
      case Form::kCall: {
        MR_ASSIGN_OR_RETURN(const FuncAttr f, call_->Attr<FuncAttr>("f"));
        return Plain(f, call_->inputs(), call_->device());
      }
      case Form::kRemote: return Remote();
      case Form::kIf: return If();
      case Form::kCase: return Case();
      case Form::kWhile: return While();
      case Form::kFor: return For();
      case Form::kGradient: return SymbolicGradient();
      case Form::kNone: break;
    }
    return Plain({call_->op_name(), call_->attrs()}, call_->inputs(), call_->device());
  }

  // A node to wait for instead of a value: a Switch itself is never dead.
  Node* Anchor(Output o) const {
    return o.node->control_op() == ControlOp::kSwitch ? b_.WithName("there").Identity(o).node : o.node;
  }

  std::vector<DType> OutputTypes() const { return call_->signature().output_types; }

  // The body of `f`; `role` is the attribute that names it, `results` what it must return.
  StatusOr<Body> Instantiate(const FuncAttr& f, const char* role, absl::string_view scope, std::vector<Output> inputs,
                             const std::vector<Node*>& wait_for, absl::Span<const DType> results, std::string device) {
    const std::string who = absl::StrCat("function '", f.name, "'", *role ? absl::StrCat(" (", role, ")") : "");
    if (IsRecursive(f.name)) return CallAtRunTime(f, who, scope, inputs, wait_for, results, device);
    CallSpec spec{f.name, f.attrs, std::move(inputs), wait_for, absl::StrCat(prefix_, scope), std::move(device)};
    auto body = InstantiateFunction(spec, graph_);
    if (!body.ok()) return Annotate(body.status(), absl::StrCat(who, ": "));
    if (body->outputs.size() != results.size()) {
      return InvalidArgument(who, " returns ", body->outputs.size(), " values, wanted ", results.size());
    }
    for (size_t i = 0; i < results.size(); ++i) {
      const DType got = BaseType(body->outputs[i].dtype());
      if (got == results[i] || got == DType::kInvalid || results[i] == DType::kInvalid) continue;
      return InvalidArgument(who, " returns ", DTypeName(got), " as value ", i, ", wanted ", DTypeName(results[i]));
    }
    return Body{std::move(body->outputs), std::move(body->control_outputs)};
  }

  bool IsRecursive(const std::string& function) {
    if (options_.recursive != nullptr) return options_.recursive->contains(function);
    if (!found_recursive_) found_recursive_ = RecursiveFunctions(*graph_);
    return found_recursive_->contains(function);
  }

  // A node that calls `f` when it is reached: expansion of a function that calls itself would not end.
  StatusOr<Body> CallAtRunTime(const FuncAttr& f, const std::string& who, absl::string_view scope,
                               const std::vector<Output>& inputs, const std::vector<Node*>& wait_for,
                               absl::Span<const DType> results, const std::string& device) {
    const auto& signature = *graph_->FindFunction(f.name)->signature;
    std::vector<DType> taken, given(results.begin(), results.end());
    for (const Output& in : inputs) taken.push_back(BaseType(in.dtype()));
    for (size_t i = 0; i < given.size(); ++i) {
      if (given[i] == DType::kInvalid && i < signature.output_arg.size()) {
        given[i] = static_cast<DType>(signature.output_arg[i].type);
      }
      if (given[i] == DType::kInvalid) return InvalidArgument(who, ": the type of its result ", i, " is not known");
    }
    Node* call =
        b_.ScopeExact(absl::StrCat(prefix_, scope))
            .WithDevice(device)
            .WithControl(wait_for)
            .WithName("call")
            .OpNode("StatefulPartitionedCall", {Arg(inputs)},
                    {{"Tin", taken}, {"Tout", given}, {"f", f}, {kCalledAtRunTime, true}});
    MR_RETURN_IF_ERROR(b_.status());
    Body body;
    for (int i = 0; i < call->num_outputs(); ++i) body.outputs.push_back(call->output(i));
    body.effects = {call};
    return body;
  }

  Status Plain(const FuncAttr& f, std::vector<Output> inputs, const std::string& device) {
    MR_ASSIGN_OR_RETURN(Body body, Instantiate(f, "", "", std::move(inputs), wait_for_, OutputTypes(), device));
    outputs_ = std::move(body.outputs);
    over_ = std::move(body.effects);
    return absl::OkStatus();
  }

  Status Remote() {
    MR_ASSIGN_OR_RETURN(const FuncAttr f, call_->Attr<FuncAttr>("f"));
    const Tensor* target = graph_->ConstantValue(call_->input(0));
    if (target == nullptr) return RemoteByName(f);
    if (target->dtype() != DType::kString || target->num_elements() != 1) {
      return InvalidArgument(
          "its target is ", DTypeName(target->dtype()), target->shape().ToString(), ", not one string");
    }
    return Plain(f, {call_->inputs().begin() + 1, call_->inputs().end()}, target->data<TString>()->str());
  }

  // A body for each device that the target may turn out to be, of which one runs.
  Status RemoteByName(const FuncAttr& f) {
    if (options_.devices.empty()) {
      return Unimplemented("its target ", call_->input(0).ToString(), " is not a constant");
    }
    std::vector<Branch> branches;
    for (const std::string& device : options_.devices) {
      branches.push_back({f, "f", absl::StrCat("/on_device_", branches.size()), device});
    }
    Node* index = b_.OpNode("_DeviceIndex", {call_->input(0)}, {{"devices", options_.devices}});
    MR_RETURN_IF_ERROR(b_.status());
    const auto at_least = [&](int i) {
      return b_.Op("GreaterEqual", {index->output(0), once_.Scalar(static_cast<int32_t>(i))});
    };
    return Choose(branches, at_least(0), at_least);
  }

  // TensorFlow's idea of truth: a scalar other than 0 or "", a tensor with elements.
  Output ToBool(Output value) const {
    return BaseType(value.dtype()) == DType::kBool && value.shape().rank() == 0 ? value : b_.Op("ToBool", {value});
  }

  Status If() {
    MR_ASSIGN_OR_RETURN(const FuncAttr then_branch, call_->Attr<FuncAttr>("then_branch"));
    MR_ASSIGN_OR_RETURN(const FuncAttr else_branch, call_->Attr<FuncAttr>("else_branch"));
    const std::string& device = call_->device();
    const std::vector<Branch> branches = {
        {else_branch, "else_branch", "/else", device}, {then_branch, "then_branch", "/then", device}};
    const Output condition = ToBool(call_->input(0));
    MR_RETURN_IF_ERROR(b_.status());
    return Choose(branches, condition, [condition](int) { return condition; });
  }

  Status Case() {
    MR_ASSIGN_OR_RETURN(const std::vector<FuncAttr> functions, call_->Attr<std::vector<FuncAttr>>("branches"));
    std::vector<Branch> branches;
    for (size_t i = 0; i < functions.size(); ++i) {
      branches.push_back({functions[i], "branches", absl::StrCat("/branch_", i), call_->device()});
    }
    const Output given = call_->input(0), last = once_.Scalar(static_cast<int32_t>(functions.size() - 1));
    // An index below 0 means the last branch, as one above does.
    const Output index = b_.Op("SelectV2", {b_.Op("Less", {given, once_.Scalar(int32_t{0})}), last, given});
    MR_RETURN_IF_ERROR(b_.status());
    return Choose(branches, b_.Op("GreaterEqual", {index, last}), [&](int i) {
      return b_.Op("GreaterEqual", {index, once_.Scalar(int32_t{i})});
    });
  }

  struct Branch {
    FuncAttr function;
    const char* role;
    std::string scope;
    std::string device;
  };

  // One of `branches` runs: the last for which at_least(its number) is true. `any` is any bool.
  Status Choose(const std::vector<Branch>& branches, Output any, const std::function<Output(int)>& at_least) {
    if (branches.empty()) return InvalidArgument("it has no branches");
    const std::vector<Output> args(call_->inputs().begin() + 1, call_->inputs().end());
    const Output pivot = once_.WithName("pivot").Identity(any);
    MR_RETURN_IF_ERROR(b_.status());
    MR_ASSIGN_OR_RETURN(
        Chosen result, ChooseAmong(branches, 0, static_cast<int>(branches.size()), args, pivot, at_least));
    outputs_ = std::move(result.outputs);
    over_.push_back(result.over.node);
    return absl::OkStatus();
  }

  struct Chosen {
    std::vector<Output> outputs;
    Output over;  // live when the branch that was chosen is over
  };

  // The depth of the recursion is the logarithm of the number of branches.
  StatusOr<Chosen> ChooseAmong(const std::vector<Branch>& branches, int begin, int end, const std::vector<Output>& args,
                               Output pivot, const std::function<Output(int)>& at_least) {
    if (end - begin == 1) return RunBranch(branches[static_cast<size_t>(begin)], args, pivot);
    const int middle = begin + (end - begin) / 2;
    const Output condition = at_least(middle);
    Node* fork = b_.OpNode("Switch", {pivot, condition});
    std::vector<Output> half[2];
    for (const Output& arg : args) {
      Node* s = b_.OpNode("Switch", {arg, condition});
      MR_RETURN_IF_ERROR(b_.status());
      for (int k : {0, 1}) half[k].push_back(s->output(k));
    }
    MR_RETURN_IF_ERROR(b_.status());
    const Output low = b_.WithName("pivot_f").Identity(fork->output(0));
    const Output high = b_.WithName("pivot_t").Identity(fork->output(1));
    MR_RETURN_IF_ERROR(b_.status());
    MR_ASSIGN_OR_RETURN(Chosen f, ChooseAmong(branches, begin, middle, half[0], low, at_least));
    MR_ASSIGN_OR_RETURN(Chosen t, ChooseAmong(branches, middle, end, half[1], high, at_least));
    Chosen merged;
    for (size_t i = 0; i < f.outputs.size(); ++i) {
      merged.outputs.push_back(b_.Op("Merge", {std::vector<Output>{f.outputs[i], t.outputs[i]}}));
    }
    merged.over = b_.WithName("over").Op("Merge", {std::vector<Output>{f.over, t.over}});
    MR_RETURN_IF_ERROR(b_.status());
    return merged;
  }

  StatusOr<Chosen> RunBranch(const Branch& branch, const std::vector<Output>& args, Output pivot) {
    MR_ASSIGN_OR_RETURN(
        Body body,
        Instantiate(branch.function, branch.role, branch.scope, args, {pivot.node}, OutputTypes(), branch.device));
    const Output over = body.effects.empty() ? pivot : b_.WithControl(body.effects).Identity(pivot);
    MR_RETURN_IF_ERROR(b_.status());
    return Chosen{std::move(body.outputs), over};
  }

  struct LoopSpec {
    std::vector<Output> inputs;
    std::vector<bool> constant;  // the body does not change it
    int64_t parallel_iterations = 10;
    std::function<StatusOr<Body>(const std::vector<Output>& values, Node* pivot)> condition;
    std::function<StatusOr<Body>(const std::vector<Output>& values, Node* pivot)> body;
  };

  Status While() {
    MR_ASSIGN_OR_RETURN(const FuncAttr condition, call_->Attr<FuncAttr>("cond"));
    MR_ASSIGN_OR_RETURN(const FuncAttr body, call_->Attr<FuncAttr>("body"));
    LoopSpec loop;
    MR_ASSIGN_OR_RETURN(loop.parallel_iterations, call_->Attr<int64_t>("parallel_iterations"));
    loop.inputs = call_->inputs();
    loop.constant = ReturnedAsTheyAre(body.name, 0);
    loop.condition = [&](const std::vector<Output>& values, Node* pivot) -> StatusOr<Body> {
      const DType any[] = {DType::kInvalid};
      MR_ASSIGN_OR_RETURN(Body c, Instantiate(condition, "cond", "/cond", values, {pivot}, any, call_->device()));
      c.outputs[0] = ToBool(c.outputs[0]);
      return c;
    };
    loop.body = [&](const std::vector<Output>& values, Node* pivot) {
      return Instantiate(body, "body", "/body", values, {pivot}, OutputTypes(), call_->device());
    };
    return Loop(std::move(loop));
  }

  // Variables: iterations done, index, then the inputs; constants: number of iterations, delta.
  Status For() {
    MR_ASSIGN_OR_RETURN(const FuncAttr body, call_->Attr<FuncAttr>("body"));
    const Output start = call_->input(0), delta = call_->input(2);
    LoopSpec loop;
    loop.inputs = {once_.Scalar(int64_t{0}), start, NumIterations(), delta};
    loop.inputs.insert(loop.inputs.end(), call_->inputs().begin() + 3, call_->inputs().end());
    loop.constant = {false, false, true, true};
    const std::vector<bool> same = ReturnedAsTheyAre(body.name, 1);
    loop.constant.insert(loop.constant.end(), same.begin(), same.end());
    MR_RETURN_IF_ERROR(b_.status());
    loop.condition = [&](const std::vector<Output>& values, Node*) -> StatusOr<Body> {
      return Body{{b_.Op("Less", {values[0], values[2]})}, {}};
    };
    loop.body = [&](const std::vector<Output>& values, Node* pivot) -> StatusOr<Body> {
      std::vector<Output> args = {values[1]};
      args.insert(args.end(), values.begin() + 4, values.end());
      MR_ASSIGN_OR_RETURN(
          Body inner, Instantiate(body, "body", "/body", args, {pivot}, OutputTypes(), call_->device()));
      const Output one = b_.WithControl({pivot}).Scalar(int64_t{1});
      std::vector<Output> next = {b_.Add(values[0], one), b_.Add(values[1], values[3]), values[2], values[3]};
      next.insert(next.end(), inner.outputs.begin(), inner.outputs.end());
      return Body{std::move(next), std::move(inner.effects)};
    };
    MR_RETURN_IF_ERROR(Loop(std::move(loop)));
    outputs_.erase(outputs_.begin(), outputs_.begin() + 4);
    return absl::OkStatus();
  }

  // In 64 bits, where no difference of limits overflows. A delta of 0 is refused by the division.
  Output NumIterations() const {
    const auto wide = [this](int i) { return b_.Cast(call_->input(i), DType::kInt64); };
    const Output delta = wide(2), sign = b_.Op("Sign", {delta}), gap = b_.Sub(wide(1), wide(0));
    const Output ahead = b_.Op("GreaterEqual", {b_.Mul(gap, sign), once_.Scalar(int64_t{0})});
    Node* check = b_.OpNode("Assert", {ahead, std::vector<Output>{once_.Const(Tensor::Scalar(
                                                  TString("a For loop whose delta leads away from its limit")))}});
    return b_.WithControl({check}).Op("FloorDiv", {b_.Sub(b_.Add(gap, delta), sign), delta});
  }

  // Which arguments from `first` on the function returns unchanged, by way of nothing but Identity.
  std::vector<bool> ReturnedAsTheyAre(const std::string& function, size_t first) const {
    std::vector<bool> same(static_cast<size_t>(call_->num_outputs()), false);
    const wire::FunctionDef* f = graph_->FindFunction(function);
    if (f == nullptr || f->signature->input_arg.size() != same.size() + first ||
        f->signature->output_arg.size() != same.size()) {
      return same;
    }
    for (const auto* args : {&f->signature->input_arg, &f->signature->output_arg}) {
      for (const wire::OpArgDef& arg : *args) {
        if (!arg.number_attr.empty() || !arg.type_list_attr.empty()) return same;
      }
    }
    HashMap<absl::string_view, absl::string_view> identities;  // and what each reads
    for (const wire::NodeDef& n : f->node_def) {
      if (n.op == "Identity" && !n.input.empty()) identities[n.name] = n.input[0];
    }
    for (size_t i = 0; i < same.size(); ++i) {
      auto ret = f->ret.find(f->signature->output_arg[i].name);
      if (ret == f->ret.end()) continue;
      std::vector<absl::string_view*> passed;  // what the nodes on the way read; they are not followed again
      absl::string_view at = ret->second;
      for (;;) {
        auto it = identities.find(at.substr(0, at.find(':')));
        if (it == identities.end()) break;
        if (passed.size() > identities.size()) return std::vector<bool>(same.size(), false);  // a cycle
        at = it->second;
        passed.push_back(&it->second);
      }
      for (absl::string_view* reads : passed) *reads = at;
      const std::string& argument = f->signature->input_arg[i + first].name;
      same[i] = at == argument || at == absl::StrCat(argument, ":0");
    }
    return same;
  }

  // What is known of a variable's shape must hold in every iteration. It starts as the input's; when the body returns
  // something else the loop is stated again with what they have in common.
  Status Loop(LoopSpec loop) {
    if (std::all_of(loop.constant.begin(), loop.constant.end(), [](bool c) { return c; })) {
      loop.inputs.push_back(once_.Scalar(int32_t{0}));  // what the loop turns on
      loop.constant.push_back(false);
      only_turns_ = true;
    }
    MR_RETURN_IF_ERROR(b_.status());
    const std::string frame = graph_->UniqueName(absl::StrCat(prefix_, "/loop"));
    std::vector<PartialShape> shapes;
    for (const Output& in : loop.inputs) shapes.push_back(in.shape());
    constexpr int kMaxAttempts = 3;
    for (int attempt = 0;; ++attempt) {
      const int mark = graph_->num_node_ids();
      bool holds = true;
      MR_ASSIGN_OR_RETURN(std::vector<Output> exits, StateLoop(loop, frame, &shapes, &holds));
      if (holds) {
        outputs_ = std::move(exits);
        break;
      }
      graph_->RollbackTo(mark);
      if (attempt == kMaxAttempts) return Internal("the shapes of a loop do not settle");
      if (attempt == kMaxAttempts - 1) shapes.assign(shapes.size(), PartialShape());
    }
    if (only_turns_) {
      over_.push_back(outputs_.back().node);
      outputs_.pop_back();
    }
    return absl::OkStatus();
  }

  std::vector<Output> Given(const std::vector<Output>& values) const {
    return {values.begin(), values.end() - (only_turns_ ? 1 : 0)};
  }

  StatusOr<std::vector<Output>> StateLoop(const LoopSpec& loop, const std::string& frame,
                                          std::vector<PartialShape>* shapes, bool* holds) {
    const size_t n = loop.inputs.size();
    std::vector<Output> values(n);
    std::vector<Node*> merges(n, nullptr);
    Node* turn = nullptr;  // live in every iteration
    for (size_t i = 0; i < n; ++i) {
      const Output enter = once_.Op(
          "Enter", {loop.inputs[i]},
          {{"frame_name", AttrValue(frame)},
           {"is_constant", bool{loop.constant[i]}},
           {"parallel_iterations", std::max<int64_t>(loop.parallel_iterations, 1)}});
      values[i] = enter;
      if (loop.constant[i]) continue;
      merges[i] = b_.OpNode("Merge", {std::vector<Output>{enter, enter}});
      MR_RETURN_IF_ERROR(b_.status());
      merges[i]->set_shape(0, (*shapes)[i]);
      values[i] = merges[i]->output(0);
      if (turn == nullptr) turn = merges[i];
    }
    MR_RETURN_IF_ERROR(b_.status());
    MR_ASSIGN_OR_RETURN(const Body condition, loop.condition(Given(values), turn));
    const Output go_on = b_.WithControl(condition.effects).Op("LoopCond", {condition.outputs[0]});
    std::vector<Output> leaving(n);
    Node* pivot = nullptr;
    for (size_t i = 0; i < n; ++i) {
      if (merges[i] == nullptr) continue;
      Node* s = b_.OpNode("Switch", {values[i], go_on});
      MR_RETURN_IF_ERROR(b_.status());
      leaving[i] = s->output(0);
      values[i] = s->output(1);
      if (pivot == nullptr) pivot = b_.WithName("pivot").Identity(s->output(1)).node;
    }
    MR_RETURN_IF_ERROR(b_.status());
    MR_ASSIGN_OR_RETURN(Body body, loop.body(Given(values), pivot));
    if (only_turns_) body.outputs.push_back(values.back());
    if (body.effects.size() > 1) body.effects = {b_.WithControl(body.effects).OpNode("NoOp", {})};
    MR_RETURN_IF_ERROR(b_.status());
    std::vector<Output> exits(n);
    for (size_t i = 0; i < n; ++i) {
      exits[i] = loop.inputs[i];
      if (merges[i] == nullptr) continue;
      const Output next = b_.WithControl(body.effects).Op("NextIteration", {body.outputs[i]});
      MR_RETURN_IF_ERROR(b_.status());
      MR_RETURN_IF_ERROR(graph_->SetInput(merges[i], 1, next));
      exits[i] = b_.Op("Exit", {leaving[i]});
      over_.push_back(exits[i].node);
      const PartialShape common = Common((*shapes)[i], body.outputs[i].shape());
      if (common == (*shapes)[i]) continue;
      *holds = false;
      (*shapes)[i] = common;
    }
    MR_RETURN_IF_ERROR(b_.status());
    if (!*holds) over_.clear();
    return exits;
  }

  Status SymbolicGradient() {
    MR_ASSIGN_OR_RETURN(const FuncAttr f, call_->Attr<FuncAttr>("f"));
    for (const wire::GradientDef& g : graph_->gradient_defs()) {
      if (g.function_name == f.name) return Plain({g.gradient_func, f.attrs}, call_->inputs(), call_->device());
    }
    if (!options_.differentiate) return Unimplemented("gradients cannot be taken here");
    const size_t num_x = static_cast<size_t>(call_->num_outputs());
    if (num_x > call_->inputs().size()) return InvalidArgument("it has more outputs than inputs");
    std::vector<Output> xs(call_->inputs().begin(), call_->inputs().begin() + static_cast<std::ptrdiff_t>(num_x));
    const std::vector<Output> dys(call_->inputs().begin() + static_cast<std::ptrdiff_t>(num_x), call_->inputs().end());
    for (Output& x : xs) x = b_.WithName("x").Identity(x);  // paths from one x to another are not the body's
    MR_RETURN_IF_ERROR(b_.status());
    std::vector<DType> types;
    for (const Output& dy : dys) types.push_back(BaseType(dy.dtype()));
    MR_ASSIGN_OR_RETURN(const Body body, Instantiate(f, "f", "", xs, wait_for_, types, call_->device()));
    std::vector<Output> ys, seeds;
    for (size_t i = 0; i < dys.size(); ++i) {
      if (!IsFloating(types[i]) && !IsComplex(types[i])) continue;
      ys.push_back(body.outputs[i]);
      seeds.push_back(dys[i]);
    }
    MR_ASSIGN_OR_RETURN(outputs_, options_.differentiate(b_, ys, xs, seeds));
    if (outputs_.size() != num_x) return Internal("got ", outputs_.size(), " gradients for ", num_x, " inputs");
    for (size_t i = 0; i < num_x; ++i) {
      if (!outputs_[i]) outputs_[i] = b_.ZerosLike(xs[i]);
    }
    over_ = body.effects;
    return b_.status();
  }

  Node* call_;
  const std::string& prefix_;
  const std::vector<Node*> wait_for_;  // before anything of the call runs
  const ExpandOptions& options_;
  Graph* graph_;
  GraphBuilder b_;
  GraphBuilder once_;  // for what has no inputs, outside of branches and bodies
  std::vector<Output> outputs_;
  std::vector<Node*> over_;  // who waits for the call waits for these
  std::optional<HashSet<std::string>> found_recursive_;
  bool only_turns_ = false;  // the loop has no variable but one of ours
};

// What a call of a client's does waits for its inputs: that puts it into the conditional or loop that the call is in.
StatusOr<std::vector<Node*>> WaitFor(Node* call, const std::string& prefix, bool for_inputs, Graph* graph) {
  std::vector<Node*> out = call->control_inputs();
  const GraphBuilder b = GraphBuilder(graph).ScopeExact(prefix).WithDevice(call->device());
  for (const Output& o : for_inputs ? call->inputs() : std::vector<Output>()) {
    if (o) out.push_back(o.node->control_op() == ControlOp::kSwitch ? b.Identity(o).node : o.node);
  }
  if (out.size() > 1) out = {b.WithName("start").WithControl(out).OpNode("NoOp", {})};
  MR_RETURN_IF_ERROR(b.status());
  return out;
}

StatusOr<Expansion> Expand(Node* call, const std::string& prefix, bool for_inputs, const ExpandOptions& options,
                           Graph* graph) {
  MR_ASSIGN_OR_RETURN(std::vector<Node*> wait_for, WaitFor(call, prefix, for_inputs, graph));
  return Expander(call, prefix, std::move(wait_for), options, graph).Run();
}

}  // namespace

bool IsCall(const Graph& graph, const Node& n) {
  // A copy into a graph that lacks the library has lost the signature.
  if (n.op() == nullptr || n.op()->schema.empty()) return graph.FindFunction(n.op_name()) != nullptr;
  return FormOf(n.op_name()) != Form::kNone && !n.attrs().contains(kCalledAtRunTime);
}

std::vector<const FuncAttr*> FunctionsOf(const Node& call) {
  std::vector<const FuncAttr*> out;
  for (const auto& [name, value] : call.attrs()) {
    if (const FuncAttr* f = value.get<FuncAttr>()) out.push_back(f);
    if (const auto* list = value.get<std::vector<FuncAttr>>()) {
      for (const FuncAttr& f : *list) out.push_back(&f);
    }
  }
  return out;
}

StatusOr<Expansion> ExpandCall(Node* call, const std::string& prefix, bool wait_for_inputs,
                               const ExpandOptions& options, Graph* graph) {
  GraphContext* context = graph->SetContext(nullptr);
  auto expansion = Expand(call, prefix, wait_for_inputs, options, graph);
  graph->SetContext(context);
  if (!expansion.ok()) return Annotate(expansion.status(), absl::StrCat("call of ", call->Describe(), ": "));
  return expansion;
}

}  // namespace millrace
