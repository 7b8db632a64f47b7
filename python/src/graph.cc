// SPDX-License-Identifier: Apache-2.0
// Graphs, operations and tensors.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include <algorithm>
#include <optional>

#include "core.h"

namespace millrace::python {
namespace {

std::string Lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return out;
}

thread_local std::vector<PyObject*> graph_stack;  // strong references

int TraverseOperation(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  MR_VISIT_ATTRIBUTES();
  if (!nb::inst_ready(self)) return 0;
  auto* op = nb::inst_ptr<Operation>(self);
  Py_VISIT(op->graph.ptr());
  for (const nb::object& t : op->outputs) Py_VISIT(t.ptr());
  return 0;
}
int ClearOperation(PyObject* self) {
  ClearAttributes(self);
  if (!nb::inst_ready(self)) return 0;
  auto* op = nb::inst_ptr<Operation>(self);
  op->outputs.clear();
  op->graph.reset();
  return 0;
}
int TraverseTensor(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  MR_VISIT_ATTRIBUTES();
  if (nb::inst_ready(self)) Py_VISIT(nb::inst_ptr<Tensor>(self)->operation.ptr());
  return 0;
}
int ClearTensor(PyObject* self) {
  ClearAttributes(self);
  if (nb::inst_ready(self)) nb::inst_ptr<Tensor>(self)->operation.reset();
  return 0;
}
int TraverseGraph(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  MR_VISIT_ATTRIBUTES();
  if (!nb::inst_ready(self)) return 0;
  for (const auto& [oper, object] : nb::inst_ptr<Graph>(self)->operations) Py_VISIT(object.ptr());
  return 0;
}
int ClearGraph(PyObject* self) {
  ClearAttributes(self);
  if (nb::inst_ready(self)) {
    auto dropped = std::move(nb::inst_ptr<Graph>(self)->operations);
    nb::inst_ptr<Graph>(self)->operations.clear();
  }
  return 0;
}

PyType_Slot operation_slots[] = {
    {Py_tp_traverse, reinterpret_cast<void*>(TraverseOperation)},
    {Py_tp_clear, reinterpret_cast<void*>(ClearOperation)},
    {0, nullptr}};
PyType_Slot tensor_slots[] = {
    {Py_tp_traverse, reinterpret_cast<void*>(TraverseTensor)},
    {Py_tp_clear, reinterpret_cast<void*>(ClearTensor)},
    {0, nullptr}};
PyType_Slot graph_slots[] = {
    {Py_tp_traverse, reinterpret_cast<void*>(TraverseGraph)},
    {Py_tp_clear, reinterpret_cast<void*>(ClearGraph)},
    {0, nullptr}};

nb::object OutputObject(nb::handle operation, int index) {
  auto* op = nb::inst_ptr<Operation>(operation);
  const size_t at = static_cast<size_t>(index);
  if (op->outputs[at].is_valid()) return op->outputs[at];
  nb::object made = nb::inst_alloc(registry().tensor_type);
  auto* t = new (nb::inst_ptr<Tensor>(made)) Tensor;
  nb::inst_mark_ready(made);
  t->operation = nb::borrow(operation);
  t->index = index;
  const int type = Api().OperationOutputType({op->oper, index});
  t->is_ref = type > 100;
  t->type = static_cast<TF_DataType>(type > 100 ? type - 100 : type);
  op->outputs[at] = made;
  return made;
}

// None when the rank is unknown; -1 for unknown dimensions.
nb::object ShapeOf(nb::handle tensor) {
  const TF_Output output = OutputOf(tensor);
  auto* t = nb::inst_ptr<Tensor>(tensor);
  Graph& graph = GraphOf(nb::inst_ptr<Operation>(t->operation)->graph);
  CallStatus status;
  const int rank = Api().GraphGetTensorNumDims(graph.get(), output, status);
  status.RaiseBuildError();
  if (rank < 0) return nb::none();
  std::vector<int64_t> dims(static_cast<size_t>(rank) + 1);
  Api().GraphGetTensorShape(graph.get(), output, dims.data(), rank, status);
  status.RaiseBuildError();
  nb::list list;
  for (int i = 0; i < rank; ++i) list.append(dims[static_cast<size_t>(i)]);
  return list;
}

void SetShape(nb::handle tensor, const std::optional<std::vector<int64_t>>& dims) {
  if (!dims) return;
  auto* t = nb::inst_ptr<Tensor>(tensor);
  Graph& graph = GraphOf(nb::inst_ptr<Operation>(t->operation)->graph);
  CallStatus status;
  Api().GraphSetTensorShape(graph.get(), OutputOf(tensor), dims->data(), static_cast<int>(dims->size()), status);
  status.RaiseBuildError();
}

nb::list Operations(nb::handle self) {
  Graph& graph = GraphOf(self);
  nb::list list;
  size_t position = 0;
  while (TF_Operation* oper = Api().GraphNextOperation(graph.get(), &position)) list.append(graph.Wrap(self, oper));
  return list;
}

nb::object ConstantValue(nb::handle tensor) {
  auto* t = nb::inst_ptr<Tensor>(tensor);
  Graph& graph = GraphOf(nb::inst_ptr<Operation>(t->operation)->graph);
  TF_Tensor* value = nullptr;
  CallStatus status;
  if (Api().TryEvaluateConstant(graph.get(), OutputOf(tensor), &value, status) == 0) return nb::none();
  return FromTensor(value);
}

nb::list ImportGraphDef(nb::handle self, nb::bytes def, const std::string& prefix,
                        const std::vector<std::pair<std::string, nb::object>>& input_map,
                        const std::vector<std::string>& returned) {
  Graph& graph = GraphOf(self);
  struct Options {
    TF_ImportGraphDefOptions* o = Api().NewImportGraphDefOptions();
    ~Options() { Api().DeleteImportGraphDefOptions(o); }
  } options;
  const auto split = [](const std::string& name, int* index) {
    const size_t colon = name.rfind(':');
    *index = 0;
    if (colon == std::string::npos) return name;
    try {
      *index = std::stoi(name.substr(colon + 1));
    } catch (const std::exception&) {
      throw nb::value_error(("'" + name + "' names no tensor: wanted <operation>:<output number>").c_str());
    }
    return name.substr(0, colon);
  };
  Api().ImportGraphDefOptionsSetPrefix(options.o, prefix.c_str());
  Api().ImportGraphDefOptionsSetUniquifyNames(options.o, 1);
  if (!graph.device.empty()) Api().ImportGraphDefOptionsSetDefaultDevice(options.o, graph.device.c_str());
  std::vector<TF_Output> none;
  for (TF_Operation* input : graph.ControlInputs(none))
    Api().ImportGraphDefOptionsAddControlDependency(options.o, input);
  for (const auto& [from, to] : input_map) {
    if (!from.empty() && from[0] == '^') {
      Api().ImportGraphDefOptionsRemapControlDependency(options.o, from.c_str() + 1, nb::inst_ptr<Operation>(to)->oper);
      continue;
    }
    int index = 0;
    const std::string name = split(from, &index);
    Api().ImportGraphDefOptionsAddInputMapping(options.o, name.c_str(), index, OutputOf(to));
  }
  std::vector<bool> is_tensor;
  for (const std::string& element : returned) {
    int index = 0;
    const std::string name = split(element, &index);
    is_tensor.push_back(element.find(':') != std::string::npos);
    if (is_tensor.back()) {
      Api().ImportGraphDefOptionsAddReturnOutput(options.o, name.c_str(), index);
    } else {
      Api().ImportGraphDefOptionsAddReturnOperation(options.o, name.c_str());
    }
  }
  TF_Buffer bytes{def.data(), def.size(), nullptr};
  CallStatus status;
  TF_ImportGraphDefResults* made = Api().GraphImportGraphDefWithResults(graph.get(), &bytes, options.o, status);
  status.RaiseBuildError();
  std::unique_ptr<TF_ImportGraphDefResults, void (*)(TF_ImportGraphDefResults*)> results(
      made, [](TF_ImportGraphDefResults* r) { Api().DeleteImportGraphDefResults(r); });
  graph.Sync(self);
  int num_missing = 0;
  const char** missing = nullptr;
  int* missing_index = nullptr;
  Api().ImportGraphDefResultsMissingUnusedInputMappings(made, &num_missing, &missing, &missing_index);
  if (num_missing > 0) {
    throw nb::value_error((std::string("input_map names '") + missing[0] + ":" + std::to_string(missing_index[0]) +
                           "', which is not in the graph_def or not an input of any of its nodes")
                              .c_str());
  }
  int num_outputs = 0, num_operations = 0;
  TF_Output* outputs = nullptr;
  TF_Operation** operations = nullptr;
  Api().ImportGraphDefResultsReturnOutputs(made, &num_outputs, &outputs);
  Api().ImportGraphDefResultsReturnOperations(made, &num_operations, &operations);
  nb::list list;
  for (bool tensor : is_tensor) {
    list.append(tensor ? graph.WrapOutput(self, *outputs++) : graph.Wrap(self, *operations++));
  }
  return list;
}

nb::list Inputs(nb::handle self) {
  auto* op = nb::inst_ptr<Operation>(self);
  Graph& graph = GraphOf(op->graph);
  nb::list list;
  const int n = Api().OperationNumInputs(op->oper);
  for (int i = 0; i < n; ++i) list.append(graph.WrapOutput(op->graph, Api().OperationInput({op->oper, i})));
  return list;
}

nb::list ControlInputsOf(nb::handle self) {
  auto* op = nb::inst_ptr<Operation>(self);
  const int n = Api().OperationNumControlInputs(op->oper);
  std::vector<TF_Operation*> inputs(static_cast<size_t>(n) + 1);
  Api().OperationGetControlInputs(op->oper, inputs.data(), n);
  nb::list list;
  for (int i = 0; i < n; ++i) list.append(GraphOf(op->graph).Wrap(op->graph, inputs[static_cast<size_t>(i)]));
  return list;
}

nb::list Consumers(nb::handle self) {
  auto* t = nb::inst_ptr<Tensor>(self);
  auto* op = nb::inst_ptr<Operation>(t->operation);
  const TF_Output output = OutputOf(self);
  const int n = Api().OperationOutputNumConsumers(output);
  std::vector<TF_Input> readers(static_cast<size_t>(n) + 1);
  Api().OperationOutputConsumers(output, readers.data(), n);
  nb::list list;
  std::unordered_set<TF_Operation*> seen;
  for (int i = 0; i < n; ++i) {
    TF_Operation* reader = readers[static_cast<size_t>(i)].oper;
    if (seen.insert(reader).second) list.append(GraphOf(op->graph).Wrap(op->graph, reader));
  }
  return list;
}

void DefineGraphType(nb::module_& m) {
  nb::class_<Graph>(m, "Graph", nb::type_slots(graph_slots), nb::is_weak_referenceable(), nb::dynamic_attr())
      .def(nb::init<>())
      .def_rw("_name_stack", &Graph::name_stack)
      .def_rw("_device", &Graph::device)
      .def_rw("_container", &Graph::container)
      .def_rw("_has_device_functions", &Graph::has_device_functions)
      .def_rw("_finalized", &Graph::finalized)
      .def_rw("_gradient_overrides", &Graph::gradient_overrides)
      .def_rw("_captures", &Graph::captures)
      .def_rw("_kernel_labels", &Graph::kernel_labels)
      .def_rw("_scoped_attrs", &Graph::scoped_attrs)
      .def(
          "unique_name",
          [](Graph& g, const std::string& name, bool mark_as_used) {
            return g.UniqueName(g.name_stack.empty() ? name : g.name_stack + "/" + name, mark_as_used);
          },
          nb::arg("name"), nb::arg("mark_as_used") = true)
      .def("_push_control",
           [](Graph& g, const std::vector<nb::object>& inputs, bool clears) {
             ControlScope scope;
             scope.clears = clears;
             for (const nb::object& o : inputs) scope.inputs.push_back(nb::inst_ptr<Operation>(o)->oper);
             g.control.push_back(std::move(scope));
           })
      .def("_pop_control", [](Graph& g) { g.control.pop_back(); })
      .def("_control_inputs",
           [](nb::handle self) {
             nb::list list;
             for (TF_Operation* op : GraphOf(self).ControlInputs({})) list.append(GraphOf(self).Wrap(self, op));
             return list;
           })
      .def("_push_colocation",
           [](Graph& g, nb::handle op) { g.colocation.push_back(nb::inst_ptr<Operation>(op)->oper); })
      .def("_pop_colocation", [](Graph& g) { g.colocation.pop_back(); })
      .def("_take_colocation",
           [](nb::handle self) {
             nb::list list;
             Graph& g = GraphOf(self);
             for (TF_Operation* op : g.colocation) list.append(g.Wrap(self, op));
             g.colocation.clear();
             return list;
           })
      .def_prop_ro("_last_id",
                   [](nb::handle self) {
                     GraphOf(self).Sync(self);
                     return GraphOf(self).count();
                   })
      .def("_suspend_flow", [](Graph& g) { return reinterpret_cast<uintptr_t>(Api().FlowSuspend(g.get())); })
      .def("_resume_flow",
           [](Graph& g, uintptr_t suspended) { Api().FlowResume(g.get(), reinterpret_cast<void*>(suspended)); })
      .def("_sync", [](nb::handle self) { GraphOf(self).Sync(self); })
      .def("get_operations", &Operations, "All operations, in the order of their making.")
      .def("_find",
           [](nb::handle self, const std::string& name) -> nb::object {
             TF_Operation* oper = Api().GraphOperationByName(GraphOf(self).get(), name.c_str());
             return oper ? GraphOf(self).Wrap(self, oper) : nb::none();
           })
      .def("_graph_def",
           [](Graph& g) {
             CallBuffer buffer;
             CallStatus status;
             Api().GraphToGraphDef(g.get(), buffer, status);
             status.RaiseIfError();
             return buffer.bytes();
           })
      .def("_versions",
           [](Graph& g) {
             CallBuffer buffer;
             CallStatus status;
             Api().GraphVersions(g.get(), buffer, status);
             status.RaiseIfError();
             return buffer.bytes();
           })
      .def("_op_def",
           [](Graph& g, const std::string& name) {
             CallBuffer buffer;
             CallStatus status;
             Api().GraphGetOpDef(g.get(), name.c_str(), buffer, status);
             status.RaiseIfError();
             return buffer.bytes();
           })
      .def("_import", &ImportGraphDef);
}

// What is taken from a graph again, as the body of a loop that raised, has no texts any more.
constexpr char kRemoved[] = "(removed)";

std::string NameOf(const Operation& op) {
  const char* const name = Api().OperationName(op.oper);
  return name != nullptr ? name : kRemoved;
}

void DefineOperationType(nb::module_& m) {
  nb::class_<Operation>(
      m, "Operation", nb::type_slots(operation_slots), nb::is_weak_referenceable(), nb::dynamic_attr())
      .def_prop_ro(
          "graph", [](Operation& op) { return op.graph; }, "The graph that it belongs to.")
      .def_prop_ro(
          "name", [](Operation& op) { return NameOf(op); }, "Its full name.")
      .def_prop_ro(
          "type",
          [](Operation& op) {
            const char* const type = Api().OperationOpType(op.oper);
            return type != nullptr ? type : kRemoved;
          },
          "The name of its op.")
      .def_prop_ro(
          "device", [](Operation& op) { return Api().OperationDevice(op.oper); }, "The device asked for.")
      .def_prop_ro(
          "outputs",
          [](nb::handle self) {
            nb::list list;
            const size_t n = nb::inst_ptr<Operation>(self)->outputs.size();
            for (size_t i = 0; i < n; ++i) list.append(OutputObject(self, static_cast<int>(i)));
            return list;
          },
          "Its output tensors.")
      .def_prop_ro("inputs", &Inputs, "The tensors that it reads.")
      .def_prop_ro("control_inputs", &ControlInputsOf, "The operations that it waits for.")
      .def_prop_ro("_location", [](Operation& op) { return Api().OperationLocation(op.oper); })
      .def("_set_device",
           [](nb::handle self, const std::string& device) {
             auto* op = nb::inst_ptr<Operation>(self);
             Api().SetRequestedDevice(GraphOf(op->graph).get(), op->oper, device.c_str());
           })
      .def("_set_attr",
           [](nb::handle self, const std::string& name, nb::bytes value) {
             auto* op = nb::inst_ptr<Operation>(self);
             TF_Buffer buffer{value.data(), value.size(), nullptr};
             CallStatus status;
             Api().SetAttr(GraphOf(op->graph).get(), op->oper, name.c_str(), &buffer, status);
             status.RaiseBuildError();
           })
      .def("_add_control_input",
           [](nb::handle self, nb::handle input) {
             auto* op = nb::inst_ptr<Operation>(self);
             Api().AddOperationControlInput(GraphOf(op->graph).get(), op->oper, nb::inst_ptr<Operation>(input)->oper);
           })
      .def("_remove_all_control_inputs",
           [](nb::handle self) {
             auto* op = nb::inst_ptr<Operation>(self);
             Api().RemoveAllControlInputs(GraphOf(op->graph).get(), op->oper);
           })
      .def("_update_input",
           [](nb::handle self, int index, nb::handle tensor) {
             auto* op = nb::inst_ptr<Operation>(self);
             if (nb::inst_ptr<Tensor>(tensor)->operation.is_none() ||
                 !nb::inst_ptr<Operation>(nb::inst_ptr<Tensor>(tensor)->operation)->graph.is(op->graph)) {
               throw nb::value_error("the new input and the operation must be from the same graph");
             }
             CallStatus status;
             Api().UpdateEdge(GraphOf(op->graph).get(), OutputOf(tensor), {op->oper, index}, status);
             if (status.code() == TF_OUT_OF_RANGE) status.RaiseIfError();
             status.RaiseBuildError();
           })
      .def("_node_def",
           [](Operation& op) {
             CallBuffer buffer;
             CallStatus status;
             Api().OperationToNodeDef(op.oper, buffer, status);
             status.RaiseIfError();
             return buffer.bytes();
           })
      .def("_attr", [](Operation& op, const std::string& name) {
        CallBuffer buffer;
        CallStatus status;
        Api().OperationGetAttrValueProto(op.oper, name.c_str(), buffer, status);
        if (!status.ok()) {
          throw nb::value_error(
              (std::string("No attr named '") + name + "' in operation '" + NameOf(op) + "'").c_str());
        }
        return buffer.bytes();
      });
}

void DefineTensorType(nb::module_& m) {
  nb::class_<Tensor>(m, "Tensor", nb::type_slots(tensor_slots), nb::is_weak_referenceable(), nb::dynamic_attr())
      .def_prop_ro(
          "op", [](Tensor& t) { return t.operation; }, "The operation that it is an output of.")
      .def_prop_ro(
          "graph", [](Tensor& t) { return nb::inst_ptr<Operation>(t.operation)->graph; },
          "The graph that it belongs to.")
      .def_ro("value_index", &Tensor::index, "Which output of its operation.")
      .def_prop_ro(
          "name",
          [](Tensor& t) { return NameOf(*nb::inst_ptr<Operation>(t.operation)) + ":" + std::to_string(t.index); },
          "<operation>:<output number>.")
      .def_prop_ro(
          "dtype",
          [](Tensor& t) {
            return nb::borrow(PyList_GetItem(registry().dtypes.ptr(), t.is_ref ? t.type + 100 : t.type));
          },
          "The type of its elements.")
      .def_prop_ro(
          "device", [](Tensor& t) { return Api().OperationDevice(nb::inst_ptr<Operation>(t.operation)->oper); },
          "The device asked for.")
      .def_prop_ro("_dims", &ShapeOf)
      .def("_set_dims", &SetShape, nb::arg("dims").none())
      .def("_constant_value", &ConstantValue)
      .def("consumers", &Consumers, "The operations that read it.");
}

}  // namespace

std::string Graph::UniqueName(std::string_view name, bool mark) {
  const auto found = names_.find(Lower(name));
  if (found == names_.end()) {
    if (mark) names_.emplace(Lower(name), 1);
    return std::string(name);
  }
  int count = found->second;
  std::string candidate;
  do {
    candidate = std::string(name) + "_" + std::to_string(count++);
  } while (names_.count(Lower(candidate)) > 0);
  if (mark) {
    names_[Lower(name)] = count;
    names_.emplace(Lower(candidate), 1);
  }
  return candidate;
}

std::string Graph::OperationName(std::string_view name) {
  if (!name.empty() && name.back() == '/') return std::string(name.substr(0, name.size() - 1));
  if (name_stack.empty()) return UniqueName(name, true);
  std::string full;
  full.reserve(name_stack.size() + name.size() + 1);
  full.append(name_stack).append("/").append(name);
  return UniqueName(full, true);
}

nb::object Graph::Wrap(nb::handle self, TF_Operation* oper) {
  nb::object& known = operations[oper];
  if (known.is_valid()) return known;
  nb::object made = nb::inst_alloc(registry().operation_type);
  auto* op = new (nb::inst_ptr<Operation>(made)) Operation;
  nb::inst_mark_ready(made);
  op->oper = oper;
  op->graph = nb::borrow(self);
  op->outputs.resize(static_cast<size_t>(Api().OperationNumOutputs(oper)));
  operations[oper] = made;
  return made;
}

nb::object Graph::WrapOutput(nb::handle self, TF_Output output) {
  return output.oper ? OutputObject(Wrap(self, output.oper), output.index) : nb::none();
}

void Graph::Sync(nb::handle self) {
  const bool place = has_device_functions;
  while (TF_Operation* oper = Api().GraphNextOperation(graph_, &position_)) {
    names_.emplace(Lower(Api().OperationName(oper)), 1);
    if (operations.count(oper) > 0) continue;
    NoteMade(oper);
    if (place && *Api().OperationDevice(oper) == '\0') self.attr("_apply_device_functions")(Wrap(self, oper));
  }
}

void Graph::Forget() {
  std::unordered_set<TF_Operation*> present;
  size_t position = 0;
  while (TF_Operation* oper = Api().GraphNextOperation(graph_, &position)) present.insert(oper);
  position_ = std::min(position_, position);
  for (auto it = operations.begin(); it != operations.end();) {
    if (present.count(it->first) > 0) {
      ++it;
      continue;
    }
    nb::inst_ptr<Operation>(it->second)->oper = nullptr;
    it = operations.erase(it);
  }
}

std::vector<TF_Operation*> Graph::ControlInputs(const std::vector<TF_Output>& inputs) const {
  std::vector<TF_Operation*> list;
  for (auto scope = control.rbegin(); scope != control.rend(); ++scope) {
    const bool dominated =
        std::any_of(inputs.begin(), inputs.end(), [&](TF_Output input) { return scope->made.count(input.oper) > 0; });
    if (!dominated) {
      for (TF_Operation* op : scope->inputs) {
        const bool reads = std::any_of(inputs.begin(), inputs.end(), [&](TF_Output i) { return i.oper == op; });
        if (!reads && std::find(list.begin(), list.end(), op) == list.end()) list.push_back(op);
      }
    }
    if (scope->clears) break;
  }
  return list;
}

void Graph::NoteMade(TF_Operation* oper) {
  for (ControlScope& scope : control) scope.made.insert(oper);
}

bool InCapturingGraph() { return !graph_stack.empty() && GraphOf(graph_stack.back()).captures; }

nb::object CurrentGraph() {
  if (!graph_stack.empty()) return nb::borrow(graph_stack.back());
  return registry().default_graph();
}

Graph& GraphOf(nb::handle graph) { return *nb::inst_ptr<Graph>(graph); }

TF_Output OutputOf(nb::handle tensor) {
  auto* t = nb::inst_ptr<Tensor>(tensor);
  return {nb::inst_ptr<Operation>(t->operation)->oper, t->index};
}

bool IsTensor(nb::handle object) {
  PyTypeObject* type = Py_TYPE(object.ptr());
  auto* wanted = reinterpret_cast<PyTypeObject*>(registry().tensor_type.ptr());
  return type == wanted || PyType_IsSubtype(type, wanted) != 0;
}

bool IsOperation(nb::handle object) {
  PyTypeObject* type = Py_TYPE(object.ptr());
  auto* wanted = reinterpret_cast<PyTypeObject*>(registry().operation_type.ptr());
  return type == wanted || PyType_IsSubtype(type, wanted) != 0;
}

Location UserLocation() {
  Location where;
  const std::string& own = registry().package_path;
  PyFrameObject* frame = PyEval_GetFrame();
  Py_XINCREF(frame);
  while (frame != nullptr) {
    PyCodeObject* code = PyFrame_GetCode(frame);
    Py_ssize_t size = 0;
    const char* file = PyUnicode_AsUTF8AndSize(code->co_filename, &size);
    const std::string_view view(file ? file : "", file ? static_cast<size_t>(size) : 0);
    // contextlib's frames lie between a context manager of ours and the program's line with `with`.
    static constexpr std::string_view kContexts = "/contextlib.py";
    const bool internal = view.substr(0, own.size()) == own || view.substr(0, 8) == "<frozen " ||
                          (view.size() > kContexts.size() && view.substr(view.size() - kContexts.size()) == kContexts);
    if (!internal) {
      where.file = view;
      where.line = PyFrame_GetLineNumber(frame);
    }
    Py_DECREF(code);
    PyFrameObject* back = internal ? PyFrame_GetBack(frame) : nullptr;
    Py_DECREF(frame);
    frame = back;
  }
  PyErr_Clear();
  return where;
}

std::string UserLine() {
  const Location where = UserLocation();
  return where.file.empty() ? "" : where.file + ":" + std::to_string(where.line);
}

std::string AtUserLine(const std::string& message) {
  const std::string line = UserLine();
  if (line.empty()) return message;
  const size_t found = message.find(line), end = found + line.size();
  const bool there = found != std::string::npos && (end == message.size() || message[end] < '0' || message[end] > '9');
  return there ? message : message + (message.back() == '.' ? " At " : ". At ") + line;
}

void DefineGraph(nb::module_& m) {
  DefineGraphType(m);
  DefineOperationType(m);
  DefineTensorType(m);
  m.def("push_graph", [](nb::object g) { graph_stack.push_back(g.release().ptr()); });
  m.def("pop_graph", []() {
    if (graph_stack.empty()) throw nb::value_error("the stack of graphs is empty");
    nb::object top = nb::steal(graph_stack.back());
    graph_stack.pop_back();
    return top;
  });
  m.def("stack_depth", []() { return graph_stack.size(); });
  m.def("current_graph", &CurrentGraph);
  m.def("user_location", []() {
    const Location where = UserLocation();
    return nb::make_tuple(where.file, where.line);
  });
  m.def("set_registry", [](nb::dict values) {
    Registry& r = registry();
    r.graph_type = values["graph_type"];
    r.operation_type = values["operation_type"];
    r.tensor_type = values["tensor_type"];
    r.convert = values["convert"];
    r.dtype_number = values["dtype_number"];
    r.dtypes = values["dtypes"];
    r.shape_list = values["shape_list"];
    r.error_for = values["error_for"];
    r.result_type = values["result_type"];
    r.default_graph = values["default_graph"];
    r.warn_growth = values["warn_growth"];
    r.step_waits = values["step_waits"];
    r.package_path = nb::cast<std::string>(values["package_path"]);
  });
}

}  // namespace millrace::python
