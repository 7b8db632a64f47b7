// SPDX-License-Identifier: Apache-2.0
// Gradients, optimizers, and gradient functions that are written in Python.
#include <nanobind/stl/pair.h>

#include "core.h"

namespace millrace::python {
namespace {

constexpr TF_Output kNone = {nullptr, -1};

// None, a Tensor, or a tuple (values, indices, dense shape or None).
nb::object GradientObject(Graph& graph, nb::handle self, const MR_Gradient& g) {
  if (g.dense.oper) return graph.WrapOutput(self, g.dense);
  if (!g.values.oper) return nb::none();
  return nb::make_tuple(
      graph.WrapOutput(self, g.values), graph.WrapOutput(self, g.indices), graph.WrapOutput(self, g.dense_shape));
}

MR_Gradient GradientOf(nb::handle value) {
  MR_Gradient g = {kNone, kNone, kNone, kNone};
  if (value.is_none()) return g;
  if (IsTensor(value)) {
    g.dense = OutputOf(value);
    return g;
  }
  g.values = OutputOf(value[0]);
  g.indices = OutputOf(value[1]);
  nb::object shape = nb::borrow<nb::object>(value[2]);
  if (!shape.is_none()) g.dense_shape = OutputOf(shape);
  return g;
}

std::vector<TF_Output> OutputsOf(nb::handle list) {
  std::vector<TF_Output> outputs;
  for (nb::handle t : list) outputs.push_back(t.is_none() ? kNone : OutputOf(t));
  return outputs;
}

// The state of the Python graph as the library takes it.
struct ScopeOf {
  ScopeOf(Graph& graph, const std::string& name_, const std::string& slot_scope_)
      : name(name_), slot_scope(slot_scope_), control(graph.ControlInputs({})) {
    scope.name = name.c_str();
    scope.slot_scope = slot_scope.c_str();
    scope.device = graph.device.c_str();
    scope.control_inputs = control.data();
    scope.num_control_inputs = static_cast<int>(control.size());
  }
  std::string name, slot_scope;
  std::vector<TF_Operation*> control;
  MR_Scope scope{};
};

nb::list AddGradients(nb::handle self, const std::string& scope_name, nb::list ys, nb::list xs, nb::list dys,
                      nb::list stops, bool colocate, bool accumulate) {
  Graph& graph = GraphOf(self);
  const ScopeOf scope(graph, scope_name, "");
  const std::vector<TF_Output> y = OutputsOf(ys), x = OutputsOf(xs), dy = OutputsOf(dys), stop = OutputsOf(stops);
  std::vector<MR_Gradient> dx(x.size() + 1);
  CallStatus status;
  {
    // A gradient function in Python takes the GIL again.
    const GilRelease release;
    Api().MR_AddGradients(
        graph.get(), &scope.scope, y.data(), static_cast<int>(y.size()), x.data(), static_cast<int>(x.size()),
        dy.empty() ? nullptr : dy.data(), stop.data(), static_cast<int>(stop.size()), colocate, accumulate, dx.data(),
        status);
  }
  graph.Sync(self);
  if (PyErr_Occurred()) throw nb::python_error();
  status.RaiseBuildError();
  nb::list out;
  for (size_t i = 0; i < x.size(); ++i) out.append(GradientObject(graph, self, dx[i]));
  return out;
}

// context: a Python function (operation pointer wrapped by `find`, scope, gradients) -> gradients.
void CallPython(void* context, TF_Operation* oper, const char* scope, const MR_Gradient* dys, int num_dys,
                MR_Gradient* dxs, int num_dxs, TF_Status* status) {
  const PyGILState_STATE gil = PyGILState_Ensure();
  {
    try {
      nb::handle function(static_cast<PyObject*>(context));
      nb::object self = CurrentGraph();
      Graph& graph = GraphOf(self);
      graph.Sync(self);
      nb::list incoming;
      for (int i = 0; i < num_dys; ++i) incoming.append(GradientObject(graph, self, dys[i]));
      const std::string saved = graph.name_stack;
      graph.name_stack = scope;
      nb::object result;
      try {
        result = function(graph.Wrap(self, oper), incoming);
      } catch (...) {
        graph.name_stack = saved;
        throw;
      }
      graph.name_stack = saved;
      int i = 0;
      for (nb::handle g : result) {
        if (i < num_dxs) dxs[i] = GradientOf(g);
        ++i;
      }
      if (i != num_dxs) {
        Api().SetStatus(
            status, TF_INVALID_ARGUMENT,
            ("the gradient function returned " + std::to_string(i) + " gradients for " + std::to_string(num_dxs) +
             " inputs")
                .c_str());
      }
    } catch (nb::python_error& e) {
      Api().SetStatus(status, TF_INVALID_ARGUMENT, e.what());
    } catch (const std::exception& e) {
      Api().SetStatus(status, TF_INTERNAL, e.what());
    }
  }
  PyGILState_Release(gil);
}

class Optimizer {
 public:
  Optimizer(nb::object graph, const std::string& rule, const std::string& name) : graph_(std::move(graph)) {
    CallStatus status;
    optimizer_ = Api().MR_OptimizerNew(GraphOf(graph_).get(), rule.c_str(), name.c_str(), status);
    status.RaiseIfError();
  }
  ~Optimizer() { Api().MR_OptimizerDelete(optimizer_); }
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  void SetSlotValue(int slot, double value) {
    CallStatus status;
    Api().MR_OptimizerSetSlotValue(optimizer_, slot, value, status);
    status.RaiseIfError();
  }

  nb::object Apply(const std::string& scope_name, const std::string& slot_scope, const std::string& name,
                   const std::vector<std::pair<std::string, nb::object>>& hyper, bool use_nesterov, bool use_locking,
                   nb::list vars, nb::list gradients, nb::object global_step) {
    Graph& graph = GraphOf(graph_);
    const ScopeOf scope(graph, scope_name, slot_scope);
    std::vector<const char*> hyper_names;
    std::vector<TF_Output> hyper_values;
    for (const auto& [key, value] : hyper) {
      hyper_names.push_back(key.c_str());
      hyper_values.push_back(OutputOf(value));
    }
    const std::vector<TF_Output> v = OutputsOf(vars);
    std::vector<MR_Gradient> g;
    for (nb::handle gradient : gradients) g.push_back(GradientOf(gradient));
    CallStatus status;
    TF_Operation* made = Api().MR_OptimizerApply(
        optimizer_, &scope.scope, name.c_str(), hyper_names.data(), hyper_values.data(),
        static_cast<int>(hyper_values.size()), use_nesterov, use_locking, v.data(), g.data(),
        static_cast<int>(v.size()), global_step.is_none() ? kNone : OutputOf(global_step), status);
    graph.Sync(graph_);
    status.RaiseBuildError();
    return graph.Wrap(graph_, made);
  }

  nb::object Slot(nb::handle var, int slot) const {
    return GraphOf(graph_).WrapOutput(graph_, Api().MR_OptimizerSlot(optimizer_, OutputOf(var), slot));
  }

 private:
  nb::object graph_;
  MR_Optimizer* optimizer_ = nullptr;
};

class Lbfgs {
 public:
  explicit Lbfgs(const MR_LbfgsOptions& options) {
    CallStatus status;
    lbfgs_ = Api().LbfgsNew(&options, status);
    status.RaiseIfError();
    coefficients.resize(2 * static_cast<size_t>(options.history) + 1);
  }
  ~Lbfgs() { Api().LbfgsDelete(lbfgs_); }
  Lbfgs(const Lbfgs&) = delete;
  Lbfgs& operator=(const Lbfgs&) = delete;

  std::string Tell(const std::vector<double>& values) {
    CallStatus status;
    Api().LbfgsTell(lbfgs_, values.data(), static_cast<int>(values.size()), &move, coefficients.data(), status);
    status.RaiseIfError();
    switch (move.request) {
      case MR_LBFGS_TURN: return "turn";
      case MR_LBFGS_TRY: return "try";
      case MR_LBFGS_ACCEPT: return "accept";
      case MR_LBFGS_DONE: break;
    }
    return "done";
  }
  std::string Reason() const { return Api().LbfgsReason(lbfgs_); }

  std::vector<double> coefficients;
  MR_LbfgsMove move{};

 private:
  MR_Lbfgs* lbfgs_ = nullptr;
};

}  // namespace

void DefineTraining(nb::module_& m) {
  m.def("add_gradients", &AddGradients);
  m.def("register_gradient", [](const std::string& name, nb::object function) {
    CallStatus status;
    Api().MR_RegisterGradient(name.c_str(), &CallPython, function.ptr(), status);
    status.RaiseBuildError();
    (void)function.release();  // for ever, like the registration
  });
  nb::class_<Optimizer>(m, "Optimizer")
      .def(nb::init<nb::object, const std::string&, const std::string&>())
      .def("set_slot_value", &Optimizer::SetSlotValue)
      .def("apply", &Optimizer::Apply, nb::arg("scope"), nb::arg("slot_scope"), nb::arg("name"), nb::arg("hyper"),
           nb::arg("use_nesterov"), nb::arg("use_locking"), nb::arg("vars"), nb::arg("gradients"),
           nb::arg("global_step").none())
      .def("slot", &Optimizer::Slot);
  nb::class_<Lbfgs>(m, "Lbfgs")
      .def(
          "__init__",
          [](Lbfgs* self, int history, int max_iterations, int max_tries, double gradient_tolerance,
             double loss_tolerance) {
            new (self) Lbfgs({history, max_iterations, max_tries, gradient_tolerance, loss_tolerance});
          },
          nb::arg("history"), nb::arg("max_iterations"), nb::arg("max_tries"), nb::arg("gradient_tolerance"),
          nb::arg("loss_tolerance"))
      .def("tell", &Lbfgs::Tell)
      .def_prop_ro("coefficients", [](const Lbfgs& l) { return l.coefficients; })
      .def_prop_ro("step", [](const Lbfgs& l) { return l.move.step; })
      .def_prop_ro("slot", [](const Lbfgs& l) { return l.move.slot; })
      .def_prop_ro("iterations", [](const Lbfgs& l) { return l.move.iterations; })
      .def_prop_ro("loss", [](const Lbfgs& l) { return l.move.loss; })
      .def_prop_ro("converged", [](const Lbfgs& l) { return l.move.converged != 0; })
      .def_prop_ro("reason", &Lbfgs::Reason);
}

}  // namespace millrace::python
