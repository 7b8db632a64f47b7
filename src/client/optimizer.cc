// SPDX-License-Identifier: Apache-2.0
#include "client/optimizer.h"

#include "client/variables.h"

namespace millrace {

const std::vector<OptimizerDef>& Optimizers() {
  static const std::vector<OptimizerDef>* list = new std::vector<OptimizerDef>{
      {"GradientDescent", "GradientDescent", {}, {{"learning_rate", 0.01}}, {}, "Plain stochastic gradient descent."},
      {"Momentum", "Momentum", {{"Momentum", 0}}, {{"learning_rate", 0.01}, {"momentum", 0.9}}, {},
       "Gradient descent with momentum, or Nesterov momentum."},
      {"Adagrad", "Adagrad", {{"Adagrad", 0.1}}, {{"learning_rate", 0.01}}, {}, "Adagrad (Duchi et al. 2011)."},
      {"Adadelta", "Adadelta", {{"Adadelta", 0}, {"Adadelta_1", 0}},
       {{"learning_rate", 0.001}, {"rho", 0.95}, {"epsilon", 1e-8}}, {}, "Adadelta (Zeiler 2012)."},
      {"Adam", "Adam", {{"Adam", 0}, {"Adam_1", 0}},
       {{"learning_rate", 0.001}, {"beta1", 0.9}, {"beta2", 0.999}, {"epsilon", 1e-8}}, {"beta1", "beta2"},
       "Adam (Kingma and Ba 2014)."},
      {"AdaMax", "AdaMax", {{"AdaMax", 0}, {"AdaMax_1", 0}},
       {{"learning_rate", 0.001}, {"beta1", 0.9}, {"beta2", 0.999}, {"epsilon", 1e-8}}, {"beta1"},
       "AdaMax (Kingma and Ba 2014)."},
      {"RMSProp", "RMSProp", {{"RMSProp", 1}, {"RMSProp_1", 0}},
       {{"learning_rate", 0.001}, {"rho", 0.9}, {"momentum", 0}, {"epsilon", 1e-10}}, {}, "RMSProp."},
      {"CenteredRMSProp", "CenteredRMSProp", {{"RMSProp", 0}, {"RMSProp_1", 1}, {"RMSProp_2", 0}},
       {{"learning_rate", 0.001}, {"rho", 0.9}, {"momentum", 0}, {"epsilon", 1e-10}}, {},
       "RMSProp with the gradient's mean taken out."},
      {"Ftrl", "Ftrl", {{"Ftrl", 0.1}, {"Ftrl_1", 0}},
       {{"learning_rate", 0.001}, {"l1", 0}, {"l2", 0}, {"lr_power", -0.5}}, {}, "FTRL-proximal (McMahan et al. 2013)."},
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

class Updater {
 public:
  Updater(const GraphBuilder& root, const UpdateRequest& request)
      : root_(root),
        b_(root.Scope(request.name.empty() ? request.optimizer->name : request.name)),
        request_(request),
        def_(*request.optimizer) {}

  StatusOr<Node*> Run(const std::vector<std::pair<Output, Gradient>>& list) {
    MR_RETURN_IF_ERROR(CheckHyper());
    std::vector<Node*> updates;
    for (const auto& [variable, gradient] : list) {
      if (gradient.none()) continue;
      MR_ASSIGN_OR_RETURN(Node * update, Update(variable, gradient));
      updates.push_back(update);
    }
    if (updates.empty()) return InvalidArgument("no variable has a gradient");
    for (Output power : powers_in_use_) updates.push_back(AdvancePower(power, updates));
    Node* all = nullptr;
    if (request_.global_step) {
      const Output one = b_.ScalarOf(BaseType(request_.global_step.dtype()), 1);
      all = b_.WithControl(updates).WithName("step").OpNode("AssignAdd", {request_.global_step, one});
    } else {
      all = b_.WithControl(updates).WithName("train").OpNode("NoOp", {});
    }
    MR_RETURN_IF_ERROR(b_.status());
    return all;
  }

 private:
  Status CheckHyper() const {
    for (const auto& [name, value] : request_.hyper) {
      bool known = false;
      for (const auto& [own, initial] : def_.hyper) known |= name == own;
      if (!known) return InvalidArgument("optimizer ", def_.name, " has no hyper-parameter '", name, "'");
      if (!value) return InvalidArgument("hyper-parameter '", name, "' has no value");
    }
    return absl::OkStatus();
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

  // The variable that holds hyper^step, and starts at hyper.
  StatusOr<Output> Power(const std::string& name, DType t) {
    Output& cached = power_[{name, t}];
    if (!cached) {
      MR_ASSIGN_OR_RETURN(const ClientVariable v, AddVariable(root_, absl::StrCat(name, "_power"), Hyper(name, t)));
      cached = v.ref;
      powers_in_use_.push_back(v.ref);
      factor_[v.ref.node] = Hyper(name, t);
    }
    return cached;
  }
  Node* AdvancePower(Output power, const std::vector<Node*>& after) {
    const GraphBuilder later = b_.WithControl(after);
    return later.OpNode("Assign", {power, later.Mul(power, factor_[power.node])});
  }

  Status AddSlots(Output variable, std::vector<Output>* slots) {
    if (!variable.shape().IsFullyDefined()) {
      return InvalidArgument("variable ", variable.ToString(), " has shape ", variable.shape().ToString(),
                             "; slots need a known one");
    }
    const DType t = BaseType(variable.dtype());
    for (const auto& [name, initial] : def_.slots) {
      const GraphBuilder at = root_.ScopeExact(variable.node->name());
      const Output dims = at.Const(Tensor::Vector<int64_t>(variable.shape().dims()));
      const Output value = at.Op("Fill", {dims, at.ScalarOf(t, initial)});
      MR_ASSIGN_OR_RETURN(const ClientVariable v, AddVariable(at, name, value));
      slots->push_back(v.ref);
    }
    return absl::OkStatus();
  }

  StatusOr<Node*> Update(Output variable, const Gradient& gradient) {
    if (!variable || !IsRef(variable.dtype())) {
      return InvalidArgument("optimizers update variables by reference (VariableV2); ",
                             variable ? variable.ToString() : "(null)", " is none");
    }
    std::vector<Output> slots;
    MR_RETURN_IF_ERROR(AddSlots(variable, &slots));
    const GraphBuilder at = b_.ColocateWith(variable.node).Scope(absl::StrCat("update_", variable.node->name()));
    const std::string sparse_op = absl::StrCat("SparseApply", def_.update);
    if (gradient.sparse && b_.graph().registry().Find(sparse_op)) {
      return Build(at, sparse_op, variable, slots, gradient.sparse->values, gradient.sparse->indices);
    }
    if (gradient.sparse && std::string_view(def_.update) == "GradientDescent") {
      const Output change = at.Mul(gradient.sparse->values, Hyper("learning_rate", BaseType(variable.dtype())));
      Node* n = at.OpNode("ScatterSub", {variable, gradient.sparse->indices, change});
      MR_RETURN_IF_ERROR(at.status());
      return n;
    }
    const Output dense = gradient.sparse ? Densify(at, *gradient.sparse) : gradient.dense;
    return Build(at, absl::StrCat("Apply", def_.update), variable, slots, dense, {});
  }

  // Fills the op's inputs by their names.
  StatusOr<Node*> Build(const GraphBuilder& at, const std::string& op, Output variable, const std::vector<Output>& slots,
                        Output gradient, Output indices) {
    const OpDef* def = at.graph().registry().Find(op);
    if (!def) return Unimplemented("update op ", op, " does not exist");
    const DType t = BaseType(variable.dtype());
    std::vector<Arg> inputs;
    size_t slot = 0;
    for (const ArgDef& arg : def->inputs) {
      if (arg.name == "var") {
        inputs.push_back(variable);
      } else if (arg.is_ref) {
        if (slot >= slots.size()) return Internal("optimizer ", def_.name, " has too few slots for ", op);
        inputs.push_back(slots[slot++]);
      } else if (arg.name == "grad" || arg.name == "delta") {
        inputs.push_back(gradient);
      } else if (arg.name == "indices") {
        inputs.push_back(indices);
      } else if (arg.name == "lr" || arg.name == "alpha") {
        inputs.push_back(Hyper("learning_rate", t));
      } else if (arg.name == "beta1_power" || arg.name == "beta2_power") {
        MR_ASSIGN_OR_RETURN(const Output power, Power(arg.name.substr(0, 5), t));
        inputs.push_back(power);
      } else {
        inputs.push_back(Hyper(arg.name, t));
      }
    }
    AttrMap attrs;
    if (def->FindAttr("use_nesterov")) attrs["use_nesterov"] = request_.use_nesterov;
    Node* n = at.OpNode(op, std::move(inputs), std::move(attrs));
    MR_RETURN_IF_ERROR(at.status());
    return n;
  }

  const GraphBuilder root_;
  const GraphBuilder b_;
  const UpdateRequest& request_;
  const OptimizerDef& def_;
  std::map<std::pair<std::string, DType>, Output> hyper_, power_;
  std::vector<Output> powers_in_use_;
  std::map<const Node*, Output> factor_;
};

}  // namespace

StatusOr<Node*> ApplyGradients(const GraphBuilder& b, const UpdateRequest& request,
                               const std::vector<std::pair<Output, Gradient>>& variables_and_gradients) {
  if (!request.optimizer) return InvalidArgument("no optimizer was named");
  return Updater(b, request).Run(variables_and_gradients);
}

}  // namespace millrace
