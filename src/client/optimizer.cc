// SPDX-License-Identifier: Apache-2.0
#include "client/optimizer.h"

#include <algorithm>

#include "client/variables.h"
#include "graph/control_flow_context.h"

namespace millrace {

const std::vector<OptimizerDef>& Optimizers() {
  static const std::vector<OptimizerDef>* list = new std::vector<OptimizerDef>{
      {"GradientDescent", "GradientDescent", {}, {{"learning_rate", 0.01}}, {}, "Plain stochastic gradient descent."},
      {"Momentum",
       "Momentum",
       {{"Momentum", 0}},
       {{"learning_rate", 0.01}, {"momentum", 0.9}},
       {},
       "Gradient descent with momentum, or Nesterov momentum."},
      {"Adagrad", "Adagrad", {{"Adagrad", 0.1}}, {{"learning_rate", 0.01}}, {}, "Adagrad (Duchi et al. 2011)."},
      {"Adadelta",
       "Adadelta",
       {{"Adadelta", 0}, {"Adadelta_1", 0}},
       {{"learning_rate", 0.001}, {"rho", 0.95}, {"epsilon", 1e-8}},
       {},
       "Adadelta (Zeiler 2012)."},
      {"Adam",
       "Adam",
       {{"Adam", 0}, {"Adam_1", 0}},
       {{"learning_rate", 0.001}, {"beta1", 0.9}, {"beta2", 0.999}, {"epsilon", 1e-8}},
       {"beta1", "beta2"},
       "Adam (Kingma and Ba 2014)."},
      {"AdaMax",
       "AdaMax",
       {{"AdaMax", 0}, {"AdaMax_1", 0}},
       {{"learning_rate", 0.001}, {"beta1", 0.9}, {"beta2", 0.999}, {"epsilon", 1e-8}},
       {"beta1"},
       "AdaMax (Kingma and Ba 2014)."},
      {"RMSProp",
       "RMSProp",
       {{"RMSProp", 1}, {"RMSProp_1", 0}},
       {{"learning_rate", 0.001}, {"rho", 0.9}, {"momentum", 0}, {"epsilon", 1e-10}},
       {},
       "RMSProp."},
      {"CenteredRMSProp",
       "CenteredRMSProp",
       {{"RMSProp_1", 0}, {"RMSProp", 1}, {"RMSProp_2", 0}},
       {{"learning_rate", 0.001}, {"rho", 0.9}, {"momentum", 0}, {"epsilon", 1e-10}},
       {},
       "RMSProp with the gradient's mean taken out."},
      {"Ftrl",
       "Ftrl",
       {{"Ftrl", 0.1}, {"Ftrl_1", 0}},
       {{"learning_rate", 0.001}, {"l1", 0}, {"l2", 0}, {"lr_power", -0.5}},
       {},
       "FTRL-proximal (McMahan et al. 2013)."},
      {"FtrlV2",
       "FtrlV2",
       {{"Ftrl", 0.1}, {"Ftrl_1", 0}},
       {{"learning_rate", 0.001}, {"l1", 0}, {"l2", 0}, {"l2_shrinkage", 0}, {"lr_power", -0.5}},
       {},
       "FTRL-proximal with shrinkage of the variable beside that of the online problem."},
      {"AdagradDA",
       "AdagradDA",
       {{"AdagradDA", 0}, {"AdagradDA_1", 0.1}},
       {{"learning_rate", 0.001}, {"l1", 0}, {"l2", 0}, {"global_step", 1}},
       {},
       "Adagrad by dual averaging (Duchi et al. 2011); global_step is the number of the update, from 1."},
      {"ProximalAdagrad",
       "ProximalAdagrad",
       {{"ProximalAdagrad", 0.1}},
       {{"learning_rate", 0.001}, {"l1", 0}, {"l2", 0}},
       {},
       "Adagrad with a proximal step (Duchi and Singer 2009)."},
      {"ProximalGradientDescent",
       "ProximalGradientDescent",
       {},
       {{"learning_rate", 0.001}, {"l1", 0}, {"l2", 0}},
       {},
       "Gradient descent with a proximal step (Duchi and Singer 2009)."},
      {"AddSign",
       "AddSign",
       {{"AddSign", 0}},
       {{"learning_rate", 0.1}, {"alpha", 1}, {"sign_decay", 1}, {"beta", 0.9}},
       {},
       "Steps that are longer where gradient and momentum agree (Bello et al. 2017)."},
      {"PowerSign",
       "PowerSign",
       {{"PowerSign", 0}},
       {{"learning_rate", 0.1}, {"logbase", 1}, {"sign_decay", 1}, {"beta", 0.9}},
       {},
       "Steps that are longer by a power where gradient and momentum agree (Bello et al. 2017)."},
  };
  return *list;
}

const OptimizerDef* FindOptimizer(absl::string_view name) {
  for (const OptimizerDef& def : Optimizers()) {
    if (name == def.name) return &def;
  }
  return nullptr;
}

namespace {

// What an optimizer must know of a variable, be it a reference or a resource handle.
struct Target {
  Output ref;
  DType dtype = DType::kInvalid;
  PartialShape shape;
  bool is_resource = false;
};

StatusOr<Target> TargetOf(Output variable) {
  if (variable && IsRef(variable.dtype())) return Target{variable, BaseType(variable.dtype()), variable.shape(), false};
  if (variable && variable.dtype() == DType::kResource) {
    const std::optional<HandleShape>& known = variable.node->handle(variable.index);
    if (known && known->dtype != DType::kInvalid) return Target{variable, known->dtype, known->shape, true};
  }
  return InvalidArgument("optimizers update variables (VariableV2 or VarHandleOp); ",
                         variable ? variable.ToString() : "(null)", " is none");
}

// A variable that holds a power, what was read of it, and what takes it to the next.
struct PowerInUse {
  Output variable, value, factor;
};

class Updater {
 public:
  Updater(const GraphBuilder& root, const UpdateRequest& request)
      : root_(root),
        b_(root.ScopeExact(request.name)),
        slots_(&root.graph()),
        request_(request),
        def_(*request.optimizer) {}

  StatusOr<Node*> Run(const std::vector<std::pair<Output, Gradient>>& list) {
    MR_RETURN_IF_ERROR(CheckHyper());
    AddDefaults(list);
    MR_RETURN_IF_ERROR(AddPowers(list));
    std::vector<Node*> updates;
    for (const auto& [variable, gradient] : list) {
      if (gradient.none()) continue;
      MR_ASSIGN_OR_RETURN(Node * update, Update(variable, gradient));
      updates.push_back(update);
    }
    if (updates.empty()) return InvalidArgument("no variable has a gradient");
    for (const PowerInUse& power : powers_in_use_) updates.push_back(AdvancePower(power, updates));
    MR_RETURN_IF_ERROR(slots_.status());
    return Finish(updates);
  }

 private:
  // Before all slots, as TensorFlow makes them: of the kind of the variable whose name is first, beside which they lie.
  Status AddPowers(const std::vector<std::pair<Output, Gradient>>& list) {
    for (const auto& [variable, gradient] : list) {
      if (gradient.none() || !variable) continue;
      if (!first_ || variable.node->name() < first_.node->name()) first_ = variable;
    }
    for (const auto& [variable, gradient] : list) {
      if (gradient.none()) continue;
      MR_ASSIGN_OR_RETURN(const Target target, TargetOf(variable));
      const OpDef* const def = root_.graph().registry().Find(absl::StrCat("Apply", def_.update));
      for (size_t i = 0; def != nullptr && i < def->inputs.size(); ++i) {
        if (!IsPower(def->inputs[i].name)) continue;
        MR_RETURN_IF_ERROR(Power(def->inputs[i].name.substr(0, 5), target.dtype).status());
      }
    }
    return absl::OkStatus();
  }
  static bool IsPower(absl::string_view input) { return input == "beta1_power" || input == "beta2_power"; }

  // As TensorFlow names them: the node that does all is called like the optimizer.
  StatusOr<Node*> Finish(const std::vector<Node*>& updates) {
    const absl::string_view base = request_.name;
    NodeSpec spec;
    spec.name = root_.scope().empty() ? std::string(base) : absl::StrCat(root_.scope(), "/", base);
    spec.control_inputs = updates;
    if (request_.global_step) {
      MR_ASSIGN_OR_RETURN(const Target counter, TargetOf(request_.global_step));
      const GraphBuilder at = b_.ColocateWith(counter.ref.node).WithControl(updates);
      const Output one = at.WithName("value").ScalarOf(counter.dtype, 1);
      MR_RETURN_IF_ERROR(at.status());
      MR_ASSIGN_OR_RETURN(const auto group, one.node->Attr<std::vector<std::string>>("_class"));
      spec.attrs.emplace("_class", AttrValue(group));
      spec.op = counter.is_resource ? "AssignAddVariableOp" : "AssignAdd";
      spec.inputs = {counter.ref, one};
    } else {
      spec.op = "NoOp";
    }
    return root_.graph().AddNode(std::move(spec));
  }

  Status CheckHyper() const {
    for (const auto& [name, value] : request_.hyper) {
      if (!HasHyper(name)) return InvalidArgument("optimizer ", def_.name, " has no hyper-parameter '", name, "'");
      if (!value) return InvalidArgument("hyper-parameter '", name, "' has no value");
    }
    return absl::OkStatus();
  }

  bool HasHyper(absl::string_view name) const {
    return std::any_of(def_.hyper.begin(), def_.hyper.end(), [&](const auto& own) { return name == own.first; });
  }

  // Constants for what is not given, before anything else.
  void AddDefaults(const std::vector<std::pair<Output, Gradient>>& list) {
    for (const auto& [variable, gradient] : list) {
      if (gradient.none() || !variable) continue;
      for (const auto& [name, initial] : def_.hyper) {
        if (!request_.hyper.contains(name)) Hyper(name, BaseType(variable.dtype()));
      }
      return;
    }
  }

  Output Hyper(const std::string& name, DType t) {
    Output& cached = hyper_[{name, t}];
    if (cached) return cached;
    if (auto it = request_.hyper.find(name); it != request_.hyper.end()) return cached = b_.Cast(it->second, t);
    for (const auto& [own, initial] : def_.hyper) {
      if (name == own) return cached = b_.WithName(name).ScalarOf(t, initial);
    }
    b_.Fail(Internal("optimizer ", def_.name, " lacks hyper-parameter ", name));
    return {};
  }

  // What the variable holds that holds hyper^step, and starts at hyper.
  StatusOr<Output> Power(const std::string& name, DType t) {
    Output& cached = power_[{name, t}];
    if (cached) return cached;
    Output* kept = request_.state ? &(*request_.state)[absl::StrCat(name, "_power/", DTypeName(t))] : nullptr;
    Output variable = kept ? *kept : Output();
    if (!variable) {
      const ScopedContext outside(&root_.graph(), nullptr);
      const GraphBuilder at = root_.WithoutControl().ColocateWith(first_.node);
      const std::string own_name = absl::StrCat(name, "_power");
      MR_ASSIGN_OR_RETURN(
          const ClientVariable v,
          first_.dtype() == DType::kResource
              ? AddResourceVariable(at, own_name, InitialPower(name, t))
              : AddVariable(at, own_name, InitialPower(name, t)));
      variable = v.ref;
      if (kept) *kept = variable;
    }
    const bool is_ref = IsRef(variable.dtype());
    cached = is_ref ? variable : b_.Op("ReadVariableOp", {variable}, {{"dtype", t}});
    powers_in_use_.push_back({variable, cached, Hyper(name, t)});
    return cached;
  }
  // What the variable starts from must not wait for what the updates wait for.
  Output InitialPower(const std::string& name, DType t) {
    const GraphBuilder at = root_.WithoutControl().WithName(absl::StrCat(name, "_power/initial_value"));
    if (auto it = request_.hyper.find(name); it != request_.hyper.end()) {
      const Tensor* known = root_.graph().ConstantValue(it->second);
      return known && known->dtype() == t ? at.Const(*known) : root_.WithoutControl().Cast(it->second, t);
    }
    for (const auto& [own, initial] : def_.hyper) {
      if (name == own) return at.ScalarOf(t, initial);
    }
    return Hyper(name, t);
  }
  Node* AdvancePower(const PowerInUse& power, const std::vector<Node*>& after) {
    const GraphBuilder later = b_.ColocateWith(power.variable.node).WithControl(after);
    const Output next = later.Mul(power.value, power.factor);
    return later.OpNode(IsRef(power.variable.dtype()) ? "Assign" : "AssignVariableOp", {power.variable, next});
  }

  Status AddSlots(const Target& target, std::vector<Output>* slots) {
    const Output variable = target.ref;
    const DType t = target.dtype;
    const bool shape_is_known = target.shape.IsFullyDefined();
    for (const auto& [name, initial] : def_.slots) {
      Output* kept = request_.state ? &(*request_.state)[absl::StrCat(variable.node->name(), "/", name)] : nullptr;
      if (kept && *kept) {
        slots->push_back(*kept);
        continue;
      }
      // Made once, also where the update is part of a loop or a branch.
      const ScopedContext outside(&root_.graph(), nullptr);
      const auto given = request_.slot_values.find(name);
      const GraphBuilder above = request_.slot_scope.empty() ? slots_ : slots_.ScopeExact(request_.slot_scope);
      const GraphBuilder at = above.ScopeExact(variable.node->name()).ColocateWith(variable.node);
      const GraphBuilder initializer = at.ScopeExact(SlotName(name)).ScopeExact("Initializer");
      Output dims;
      if (shape_is_known) {
        dims = initializer.Const(Tensor::Vector<int64_t>(target.shape.dims()));
      } else {
        MR_ASSIGN_OR_RETURN(dims, ShapeWhenInitialized(initializer, target));
      }
      const double first = given == request_.slot_values.end() ? initial : given->second;
      const Output value = initializer.Op("Fill", {dims, initializer.ScalarOf(t, first)});
      MR_ASSIGN_OR_RETURN(
          const ClientVariable v, target.is_resource ? AddResourceVariable(at, SlotName(name), value, shape_is_known)
                                                     : AddVariable(at, SlotName(name), value, shape_is_known));
      slots->push_back(v.ref);
      if (kept) *kept = v.ref;
    }
    return absl::OkStatus();
  }

  // Of the value that the variable has, or else of the one that it will start from.
  static StatusOr<Output> ShapeWhenInitialized(const GraphBuilder& b, const Target& target) {
    const Node* assign = b.graph().Find(absl::StrCat(target.ref.node->name(), "/Assign"));
    if (assign == nullptr || assign->num_inputs() < 2) {
      return InvalidArgument("variable ", target.ref.ToString(), " has shape ", target.shape.ToString(),
                             ", and no assignment of a first value that would say which; slots need one");
    }
    const Output is_there = b.Op(target.is_resource ? "VarIsInitializedOp" : "IsVariableInitialized", {target.ref});
    Node* fork = b.OpNode("Switch", {is_there, is_there});
    Node* first = b.OpNode("Switch", {assign->input(1), is_there});
    MR_RETURN_IF_ERROR(b.status());
    const GraphBuilder then = b.WithControl({b.Identity(fork->output(1)).node});
    const Output value = target.is_resource ? then.Op("ReadVariableOp", {target.ref}, {{"dtype", target.dtype}})
                                            : then.Identity(target.ref);
    return b.Op("Merge", {std::vector<Output>{b.Shape(first->output(0)), then.Shape(value)}});
  }

  // "Adam_1" of an optimizer that is called "Second" is "Second_1".
  std::string SlotName(const std::string& name) const {
    if (request_.slot_name.empty()) return name;
    const size_t number = name.rfind('_');
    return request_.slot_name + (number == std::string::npos ? "" : name.substr(number));
  }

  // One row per index: the update rules take each index once.
  IndexedSlices SumRepeated(const GraphBuilder& at, const IndexedSlices& s) {
    Node* unique = at.OpNode("Unique", {s.indices}, {{"out_idx", DType::kInt32}});
    if (!unique) return s;
    const Output count = at.Op(
        "StridedSlice",
        {at.Shape(Output{unique, 0}), at.Vector<int32_t>({0}), at.Vector<int32_t>({1}), at.Vector<int32_t>({1})},
        {{"shrink_axis_mask", int64_t{1}}});
    return {at.Op("UnsortedSegmentSum", {s.values, Output{unique, 1}, count}), Output{unique, 0}, s.dense_shape};
  }

  StatusOr<Node*> Update(Output variable, const Gradient& gradient) {
    MR_ASSIGN_OR_RETURN(const Target target, TargetOf(variable));
    std::vector<Output> slots;
    MR_RETURN_IF_ERROR(AddSlots(target, &slots));
    const GraphBuilder at = b_.ColocateWith(variable.node).Scope(absl::StrCat("update_", variable.node->name()));
    const char* kind = target.is_resource ? "Resource" : "";
    const std::string sparse_op = absl::StrCat(kind, "SparseApply", def_.update);
    if (gradient.sparse && b_.graph().registry().Find(sparse_op)) {
      const IndexedSlices rows = SumRepeated(at, *gradient.sparse);
      return Build(at, sparse_op, target, slots, rows.values, rows.indices);
    }
    if (gradient.sparse && std::string_view(def_.update) == "GradientDescent") {
      const Output change = at.Mul(gradient.sparse->values, Hyper("learning_rate", target.dtype));
      Node* n = at.OpNode(absl::StrCat(kind, "ScatterSub"), {variable, gradient.sparse->indices, change});
      MR_RETURN_IF_ERROR(at.status());
      return n;
    }
    const Output dense = gradient.sparse ? Densify(at, *gradient.sparse) : gradient.dense;
    return Build(at, absl::StrCat(kind, "Apply", def_.update), target, slots, dense, {});
  }

  // Fills the op's inputs by their names.
  StatusOr<Node*> Build(const GraphBuilder& at, const std::string& op, const Target& target,
                        const std::vector<Output>& slots, Output gradient, Output indices) {
    const OpDef* def = at.graph().registry().Find(op);
    if (!def) return Unimplemented("update op ", op, " does not exist");
    const DType t = target.dtype;
    std::vector<Arg> inputs;
    size_t slot = 0;
    for (const ArgDef& arg : def->inputs) {
      if (arg.name == "var") {
        inputs.push_back(target.ref);
      } else if (arg.is_ref || arg.type == DType::kResource) {
        if (slot >= slots.size()) return Internal("optimizer ", def_.name, " has too few slots for ", op);
        inputs.push_back(slots[slot++]);
      } else if (arg.name == "grad" || arg.name == "delta") {
        inputs.push_back(gradient);
      } else if (arg.name == "indices") {
        inputs.push_back(indices);
      } else if (arg.name == "lr" || (arg.name == "alpha" && !HasHyper("alpha"))) {
        inputs.push_back(Hyper("learning_rate", t));
      } else if (IsPower(arg.name)) {
        MR_ASSIGN_OR_RETURN(const Output power, Power(arg.name.substr(0, 5), t));
        inputs.push_back(power);
      } else {
        inputs.push_back(Hyper(arg.name, arg.type == DType::kInvalid ? t : arg.type));
      }
    }
    AttrMap attrs;
    if (def->FindAttr("use_nesterov")) attrs["use_nesterov"] = request_.use_nesterov;
    if (request_.use_locking && def->FindAttr("use_locking")) attrs["use_locking"] = true;
    Node* n = at.OpNode(op, std::move(inputs), std::move(attrs));
    MR_RETURN_IF_ERROR(at.status());
    return n;
  }

  const GraphBuilder root_;
  const GraphBuilder b_;
  const GraphBuilder slots_;  // where slot variables go: outside every scope
  const UpdateRequest& request_;
  const OptimizerDef& def_;
  std::map<std::pair<std::string, DType>, Output> hyper_, power_;
  std::vector<PowerInUse> powers_in_use_;
  Output first_;  // of the variables with a gradient, by name
};

}  // namespace

StatusOr<Node*> ApplyGradients(const GraphBuilder& b, const UpdateRequest& request,
                               const std::vector<std::pair<Output, Gradient>>& variables_and_gradients) {
  if (!request.optimizer) return InvalidArgument("no optimizer was named");
  return Updater(b, request).Run(variables_and_gradients);
}

}  // namespace millrace
