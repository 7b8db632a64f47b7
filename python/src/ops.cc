// SPDX-License-Identifier: Apache-2.0
// Op: what the generated op functions call. It converts arguments, makes the node, and returns its outputs; one C++
// call for each node, as graphs of 100,000 nodes are common.

#include <algorithm>
#include <cctype>
#include <cstring>

#include "attributes.h"
#include "core.h"

namespace millrace::python {
namespace {

struct ArgSpec {
  std::string name;
  int type = 0;               // fixed type, or 0
  int type_attr = -1;         // else the index of the type attribute
  bool is_list = false;       // a list of one type
  bool is_type_list = false;  // a list of any types, the attribute `type_attr`
  bool is_ref = false;
};

// Splits at spaces.
std::vector<std::string> Words(const std::string& text) {
  std::vector<std::string> words;
  size_t at = 0;
  while (at < text.size()) {
    const size_t end = std::min(text.find(' ', at), text.size());
    if (end > at) words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

[[noreturn]] void ThrowFinalized(const std::string& op) {
  throw std::runtime_error(AtUserLine("Graph is finalized and cannot be modified: '" + op + "' cannot be added."));
}

// The attributes that the graph's scopes give to every node that does not have them.
template <typename Has>
void SetScopedAttrs(const Graph& graph, TF_OperationDescription* desc, const Has& has) {
  for (const auto& [name, encoded] : graph.scoped_attrs) {
    if (has(name)) continue;
    CallStatus status;
    Api().SetAttrValueProto(desc, name.c_str(), encoded.data(), encoded.size(), status);
    status.RaiseBuildError();
  }
}

std::string TypeName(int type) {
  return nb::cast<std::string>(nb::borrow(PyList_GetItem(registry().dtypes.ptr(), type)).attr("name"));
}

class Call;

// One op, or one composite.
class Op {
 public:
  // "x:T y:3 list:N*T any:[Ts] ref:&T" and "transpose_a:b T:t Tidx:t=3|3|9 strides:i*".
  Op(std::string name, const std::string& inputs, const std::string& outputs, const std::string& attrs, bool composite)
      : name_(std::move(name)), composite_(composite) {
    for (const std::string& word : Words(attrs)) ParseAttr(word);
    for (const std::string& word : Words(inputs)) inputs_.push_back(ParseArg(word));
    for (const std::string& word : Words(outputs)) outputs_.push_back(ParseArg(word));
  }

  nb::object operator()(nb::handle inputs, nb::handle attrs, nb::handle name) const;
  const std::string& name() const { return name_; }

 private:
  friend class Call;

  void ParseAttr(const std::string& word) {
    AttrSpec a;
    const size_t colon = word.find(':');
    a.name = word.substr(0, colon);
    a.kind = word[colon + 1];
    a.is_list = word.size() > colon + 2 && word[colon + 2] == '*';
    const size_t equals = word.find('=', colon);
    if (equals != std::string::npos) {
      nb::list types;
      for (size_t at = equals; at != std::string::npos; at = word.find('|', at + 1)) {
        types.append(std::stoi(word.substr(at + 1)));
      }
      a.types = nb::tuple(types);
    }
    attrs_.push_back(a);
  }

  int AttrIndex(const std::string& name) const {
    for (size_t i = 0; i < attrs_.size(); ++i) {
      if (attrs_[i].name == name) return static_cast<int>(i);
    }
    return -1;
  }

  ArgSpec ParseArg(const std::string& word) const {
    ArgSpec a;
    const size_t colon = word.find(':');
    a.name = word.substr(0, colon);
    std::string type = word.substr(colon + 1);
    if (const size_t star = type.find('*'); star != std::string::npos) {
      a.is_list = true;
      type = type.substr(star + 1);
    }
    if (!type.empty() && type[0] == '&') {
      a.is_ref = true;
      type = type.substr(1);
    }
    if (!type.empty() && type[0] == '[') {
      a.is_type_list = true;
      type = type.substr(1, type.size() - 2);
    }
    if (!type.empty() && type[0] >= '0' && type[0] <= '9') {
      a.type = std::stoi(type);
    } else {
      a.type_attr = AttrIndex(type);
    }
    return a;
  }

  std::string name_;
  bool composite_;
  std::vector<ArgSpec> inputs_, outputs_;
  std::vector<AttrSpec> attrs_;
  mutable nb::object result_type_;
};

// As TensorFlow's Python refuses it; the C API takes more.
void CheckNodeName(const std::string& name) {
  bool ok = !name.empty() && (std::isalnum(static_cast<unsigned char>(name[0])) || name[0] == '.' || name[0] == '_');
  for (char c : name) ok = ok && (std::isalnum(static_cast<unsigned char>(c)) || std::strchr("_.\\-/>", c) != nullptr);
  if (!ok) throw nb::value_error(AtUserLine("'" + name + "' is not a valid node name").c_str());
}

// The making of one node.
class Call {
 public:
  Call(const Op& op, nb::handle inputs, nb::handle attrs, nb::handle name)
      : op_(op), inputs_(inputs), attrs_(attrs), types_(op.attrs_.size(), 0) {
    graph_object_ = FindGraph();
    graph_ = &GraphOf(graph_object_);
    if (graph_->finalized) ThrowFinalized(op.name_);
    if (name.is_none()) {
      name_ = graph_->OperationName(op.name_);
    } else {
      Py_ssize_t size = 0;
      const char* text = nullptr;
      if (PyUnicode_Check(name.ptr())) {
        text = PyUnicode_AsUTF8AndSize(name.ptr(), &size);
      } else if (PyBytes_Check(name.ptr())) {
        text = PyBytes_AS_STRING(name.ptr());
        size = PyBytes_GET_SIZE(name.ptr());
      }
      if (text == nullptr) {
        PyErr_Clear();
        RaiseTypeError("The name of an operation must be a string, got " + ShortRepr(name));
      }
      name_ = graph_->OperationName(size > 0 ? std::string_view(text, static_cast<size_t>(size)) : op.name_);
      joins_scope_ = op.composite_ && size > 0 && text[size - 1] == '/';
      CheckNodeName(name_);
    }
  }

  nb::object Run() {
    FixTypes();
    std::vector<nb::object> tensors = Convert();
    AddFunctions();
    desc_ = Api().NewOperation(graph_->get(), op_.name_.c_str(), (joins_scope_ ? name_ + "/" : name_).c_str());
    try {
      Describe();
    } catch (...) {  // a description is freed by finishing it
      CallStatus ignored;
      Api().SetAttrPlaceholder(desc_, "_abandoned", "");
      Api().AddInput(desc_, {nullptr, -1});
      Api().FinishOperation(desc_, ignored);
      throw;
    }
    return op_.composite_ ? FinishComposite() : Finish();
  }

 private:
  nb::object Input(size_t i) const { return nb::borrow(PyTuple_GetItem(inputs_.ptr(), static_cast<Py_ssize_t>(i))); }

  nb::object FindGraph() const {
    if (InCapturingGraph()) return CurrentGraph();
    const size_t n = op_.inputs_.size();
    for (size_t i = 0; i < n; ++i) {
      PyObject* value = PyTuple_GetItem(inputs_.ptr(), static_cast<Py_ssize_t>(i));
      if (IsTensor(value)) return nb::inst_ptr<Operation>(nb::inst_ptr<Tensor>(value)->operation)->graph;
      if ((op_.inputs_[i].is_list || op_.inputs_[i].is_type_list) && (PyList_Check(value) || PyTuple_Check(value))) {
        const Py_ssize_t size = PySequence_Fast_GET_SIZE(value);
        for (Py_ssize_t k = 0; k < size; ++k) {
          PyObject* element = PySequence_Fast_GET_ITEM(value, k);
          if (IsTensor(element)) return nb::inst_ptr<Operation>(nb::inst_ptr<Tensor>(element)->operation)->graph;
        }
      }
    }
    return CurrentGraph();
  }

  // Type attributes that were given, or that an input which is a tensor already determines.
  void FixTypes() {
    for (size_t i = 0; i < op_.attrs_.size(); ++i) {
      const AttrSpec& a = op_.attrs_[i];
      if (a.kind != 't' || a.is_list) continue;
      PyObject* value = PyTuple_GetItem(attrs_.ptr(), static_cast<Py_ssize_t>(i));
      if (value != Py_None) types_[i] = TypeNumber(value);
    }
  }

  // What tf.Defun made comes into the graph before a node names it.
  void AddFunctions() const {
    const auto add = [this](nb::handle value) {
      if (IsFunctionObject(value)) value.attr("add_to_graph")(graph_object_);
    };
    for (size_t i = 0; i < op_.attrs_.size(); ++i) {
      if (op_.attrs_[i].kind != 'u') continue;
      const nb::handle value = PyTuple_GetItem(attrs_.ptr(), static_cast<Py_ssize_t>(i));
      if (PyList_Check(value.ptr()) || PyTuple_Check(value.ptr())) {
        for (const nb::handle element : value) add(element);
      } else {
        add(value);
      }
    }
  }

  // How a message names a tensor: with the line that made it, where that is another one.
  static std::string Shown(nb::handle tensor) {
    const std::string made = nb::cast<std::string>(tensor.attr("op").attr("_location"));
    return ShortRepr(tensor) + (made.empty() || made == UserLine() ? "" : ", made at " + made);
  }

  // What has said the type of an argument before it: another one of the same type.
  std::string OtherOfType(const ArgSpec& arg) const {
    for (const ArgSpec& other : op_.inputs_) {
      if (&other != &arg && other.type_attr == arg.type_attr && !other.is_type_list)
        return "argument '" + other.name + "'";
    }
    return arg.is_list ? "the others" : "the attribute";
  }

  void Require(const ArgSpec& arg, int type, nb::handle value) {
    int& fixed = types_[static_cast<size_t>(arg.type_attr)];
    if (fixed == 0) fixed = type;
    if (fixed != type) {
      RaiseTypeError("Input '" + arg.name + "' of '" + op_.name_ + "' Op has type " + TypeName(type) +
                     " that does not match type " + TypeName(fixed) + " of " + OtherOfType(arg) + ": " + Shown(value));
    }
  }

  nb::object ConvertOne(const ArgSpec& arg, nb::handle value, nb::handle name) {
    int wanted = arg.type;
    if (arg.type_attr >= 0 && !arg.is_type_list) wanted = types_[static_cast<size_t>(arg.type_attr)];
    nb::object tensor;
    if (IsTensor(value)) {
      tensor = nb::borrow(value);
    } else {
      ScopeOfArguments inside(*this);
      nb::object types = nb::none();
      if (wanted == 0 && arg.type_attr >= 0) {
        const nb::object& choice = op_.attrs_[static_cast<size_t>(arg.type_attr)].types;
        if (choice.is_valid()) types = choice;
      }
      tensor = registry().convert(value, wanted ? nb::object(nb::int_(wanted)) : nb::none(), name, arg.is_ref, types);
    }
    const auto* t = nb::inst_ptr<Tensor>(tensor);
    if (graph_->captures && nb::inst_ptr<Operation>(t->operation)->graph.ptr() != graph_object_.ptr()) {
      tensor = graph_object_.attr("_capture")(tensor);
      t = nb::inst_ptr<Tensor>(tensor);
    }
    if (nb::inst_ptr<Operation>(t->operation)->graph.ptr() != graph_object_.ptr()) {
      throw nb::value_error(
          AtUserLine("Tensor " + Shown(tensor) + " must be from the same graph as the other inputs of '" + name_ + "'")
              .c_str());
    }
    if (arg.is_ref && !t->is_ref) {
      RaiseTypeError("Input '" + arg.name + "' of '" + op_.name_ + "' Op must be a variable, got " + Shown(tensor));
    }
    if (arg.is_type_list) return tensor;
    if (arg.type_attr >= 0) {
      Require(arg, t->type, tensor);
    } else if (arg.type != t->type) {
      RaiseTypeError("Input '" + arg.name + "' of '" + op_.name_ + "' Op has type " + TypeName(t->type) +
                     " that does not match expected type of " + TypeName(arg.type) + ": " + Shown(tensor));
    }
    return tensor;
  }

  // Ops that converting makes are named below the op.
  struct ScopeOfArguments {
    explicit ScopeOfArguments(Call& c) : call(c), saved(c.graph_->name_stack) { call.graph_->name_stack = call.name_; }
    ~ScopeOfArguments() { call.graph_->name_stack = saved; }
    Call& call;
    std::string saved;
  };

  std::vector<nb::object> Convert() {
    std::vector<nb::object> keep;
    if (!PyTuple_Check(inputs_.ptr()) || static_cast<size_t>(PyTuple_Size(inputs_.ptr())) != op_.inputs_.size()) {
      RaiseTypeError("op " + op_.name_ + " has " + std::to_string(op_.inputs_.size()) + " inputs");
    }
    // In a first pass the arguments that are tensors tell the types, so that add(1, x) makes the 1 of x's type.
    for (size_t i = 0; i < op_.inputs_.size(); ++i) NoteTypes(op_.inputs_[i], Input(i));
    values_.resize(op_.inputs_.size());
    for (size_t i = 0; i < op_.inputs_.size(); ++i) {
      const ArgSpec& arg = op_.inputs_[i];
      nb::object value = Input(i);
      if (!arg.is_list && !arg.is_type_list) {
        keep.push_back(ConvertOne(arg, value, nb::str(arg.name.c_str())));
        values_[i].push_back(OutputOf(keep.back()));
        continue;
      }
      if (IsTensor(value) || (!PyList_Check(value.ptr()) && !PyTuple_Check(value.ptr()))) {
        if (IsTensor(value) || !PySequence_Check(value.ptr())) {
          RaiseTypeError(
              "Expected list for '" + arg.name + "' argument to '" + op_.name_ + "' Op, not " + ShortRepr(value) + ".");
        }
        value = nb::steal(PySequence_List(value.ptr()));
        if (!value.is_valid()) throw nb::python_error();
      }
      const Py_ssize_t size = PySequence_Fast_GET_SIZE(value.ptr());
      for (Py_ssize_t k = 0; k < size; ++k) {
        nb::handle element = PySequence_Fast_GET_ITEM(value.ptr(), k);
        const std::string element_name = arg.name + "_" + std::to_string(k);
        keep.push_back(ConvertOne(arg, element, nb::str(element_name.c_str())));
        values_[i].push_back(OutputOf(keep.back()));
      }
    }
    return keep;
  }

  void NoteTypes(const ArgSpec& arg, nb::handle value) {
    if (arg.type_attr < 0 || arg.is_type_list || types_[static_cast<size_t>(arg.type_attr)] != 0) return;
    int& type = types_[static_cast<size_t>(arg.type_attr)];
    if (arg.is_list) {
      if (!PyList_Check(value.ptr()) && !PyTuple_Check(value.ptr())) return;
      const Py_ssize_t size = PySequence_Fast_GET_SIZE(value.ptr());
      for (Py_ssize_t k = 0; k < size && type == 0; ++k) {
        nb::handle element = PySequence_Fast_GET_ITEM(value.ptr(), k);
        if (IsTensor(element)) type = nb::inst_ptr<Tensor>(element)->type;
      }
    } else if (IsTensor(value)) {
      type = nb::inst_ptr<Tensor>(value)->type;
    }
  }

  void Describe() {
    std::vector<TF_Output> all;
    for (size_t i = 0; i < op_.inputs_.size(); ++i) {
      const ArgSpec& arg = op_.inputs_[i];
      if (arg.is_list || arg.is_type_list) {
        Api().AddInputList(desc_, values_[i].data(), static_cast<int>(values_[i].size()));
      } else {
        Api().AddInput(desc_, values_[i][0]);
      }
      all.insert(all.end(), values_[i].begin(), values_[i].end());
    }
    for (size_t i = 0; i < op_.attrs_.size(); ++i) {
      const nb::handle value = PyTuple_GetItem(attrs_.ptr(), static_cast<Py_ssize_t>(i));
      if (!graph_->container.empty() && op_.attrs_[i].name == "container" &&
          (value.is_none() || PyObject_Not(value.ptr()) == 1)) {
        Api().SetAttrString(desc_, "container", graph_->container.data(), graph_->container.size());
      } else {
        SetAttr(desc_, op_.name_, op_.attrs_[i], value);
      }
    }
    if (!graph_->control.empty()) {
      for (TF_Operation* input : graph_->ControlInputs(all)) Api().AddControlInput(desc_, input);
    }
    bool has_mates = !graph_->colocation.empty();
    for (TF_Operation* with : graph_->colocation) Api().ColocateWith(desc_, with);
    for (size_t i = 0; i < op_.inputs_.size() && !op_.composite_; ++i) {
      has_mates |= op_.inputs_[i].is_ref && !values_[i].empty();
    }
    Api().ColocateReferences(desc_);
    if (TF_Operation* const referred = Referred()) {
      if (const char* device = Api().OperationDevice(referred); *device != '\0') Api().SetDevice(desc_, device);
    } else if (!graph_->device.empty()) {
      Api().SetDevice(desc_, graph_->device.c_str());
    }
    const auto override_attr = [&](const std::vector<std::pair<std::string, std::string>>& by_type, const char* attr) {
      const auto last =
          std::find_if(by_type.rbegin(), by_type.rend(), [&](const auto& o) { return o.first == op_.name_; });
      if (last != by_type.rend()) Api().SetAttrString(desc_, attr, last->second.data(), last->second.size());
    };
    override_attr(graph_->gradient_overrides, "_gradient_op_type");
    override_attr(graph_->kernel_labels, "_kernel");
    SetScopedAttrs(*graph_, desc_, [has_mates](const std::string& attr) { return has_mates && attr == "_class"; });
    const Location where = UserLocation();
    if (!where.file.empty()) Api().SetLocation(desc_, where.file.c_str(), where.line);
  }

  // What an argument refers to, or null: the op lies there, whatever device is in force.
  TF_Operation* Referred() const {
    for (size_t i = 0; i < op_.inputs_.size(); ++i) {
      if (op_.inputs_[i].is_ref && !values_[i].empty()) return values_[i][0].oper;
    }
    return nullptr;
  }

  // A TypeError when an input has a type that the op does not take.
  void RaiseIfTypeNotAllowed(const std::string& message) const {
    constexpr std::string_view kAllowed = "not in its allowed list: ";
    const size_t list = message.find(kAllowed);
    if (list == std::string::npos) return;
    for (size_t i = 0; i < op_.inputs_.size() && i < values_.size(); ++i) {
      const ArgSpec& arg = op_.inputs_[i];
      if (arg.type_attr < 0 || arg.is_type_list || values_[i].empty()) continue;
      if (message.find("'" + op_.attrs_[static_cast<size_t>(arg.type_attr)].name + "'") == std::string::npos) continue;
      const nb::object tensor = graph_->WrapOutput(graph_object_, values_[i][0]);
      RaiseTypeError("Value passed to parameter '" + arg.name + "' of '" + op_.name_ + "' Op has DataType " +
                     TypeName(nb::inst_ptr<Tensor>(tensor)->type) + " not in list of allowed values: " +
                     message.substr(list + kAllowed.size()) + ", got " + Shown(tensor));
    }
  }

  // A message about the node, with the inputs that other lines made.
  [[noreturn]] void RaiseBuildError(const CallStatus& status) const {
    std::string text = status.message();
    RaiseIfTypeNotAllowed(text);
    if (text.find("'" + name_ + "'") == std::string::npos) text = op_.name_ + " '" + name_ + "': " + text;
    text = AtUserLine(text);
    const std::string here = UserLine();
    constexpr int kLines = 6;
    int lines = 0;
    for (size_t i = 0; i < values_.size(); ++i) {
      for (const TF_Output& value : values_[i]) {
        const std::string made = Api().OperationLocation(value.oper);
        if (made.empty() || made == here) continue;
        if (++lines > kLines) continue;
        const nb::object tensor = graph_->WrapOutput(graph_object_, value);
        text += "\n  " + op_.inputs_[i].name + ": " + nb::str(tensor).c_str() + ", made at " + made;
      }
    }
    if (lines > kLines) text += "\n  and " + std::to_string(lines - kLines) + " more";
    status.RaiseBuildError(text);
    throw std::runtime_error(text);
  }

  nb::object Finish() {
    CallStatus status;
    TF_Operation* made = Api().FinishOperation(desc_, status);
    if (!status.ok()) RaiseBuildError(status);
    graph_->NoteMade(made);
    nb::object operation = graph_->Wrap(graph_object_, made);
    if ((!graph_->colocation.empty() || graph_->has_device_functions) && Referred() == nullptr) {
      graph_object_.attr("_place")(operation);
    }
    const int n = Api().OperationNumOutputs(made);
    if (n == 0) return operation;
    std::vector<TF_Output> outputs;
    for (int i = 0; i < n; ++i) outputs.push_back({made, i});
    return Results(outputs, made);
  }

  nb::object FinishComposite() {
    std::vector<TF_Output> outputs(1024);
    CallStatus status;
    const int n = Api().FinishComposite(desc_, outputs.data(), static_cast<int>(outputs.size()), status);
    if (!status.ok()) RaiseBuildError(status);
    graph_->Sync(graph_object_);
    outputs.resize(static_cast<size_t>(n));
    return Results(outputs, nullptr);
  }

  nb::object Results(const std::vector<TF_Output>& outputs, TF_Operation* made) const {
    const bool one = op_.outputs_.size() == 1;
    if (one && !op_.outputs_[0].is_list && !op_.outputs_[0].is_type_list) {
      return graph_->WrapOutput(graph_object_, outputs.at(0));
    }
    nb::list parts;
    size_t next = 0;
    for (size_t i = 0; i < op_.outputs_.size(); ++i) {
      const ArgSpec& out = op_.outputs_[i];
      if (!out.is_list && !out.is_type_list) {
        parts.append(graph_->WrapOutput(graph_object_, outputs.at(next++)));
        continue;
      }
      size_t length = outputs.size() - next - (op_.outputs_.size() - 1 - i);
      if (made != nullptr && !one) {
        CallStatus status;
        length = static_cast<size_t>(Api().OperationOutputListLength(made, out.name.c_str(), status));
      }
      nb::list list;
      for (size_t k = 0; k < length; ++k) list.append(graph_->WrapOutput(graph_object_, outputs.at(next++)));
      parts.append(list);
    }
    if (one) return parts[0];
    if (!op_.result_type_.is_valid()) {
      nb::list names;
      for (const ArgSpec& out : op_.outputs_) names.append(out.name);
      op_.result_type_ = registry().result_type(op_.name_, names);
    }
    return op_.result_type_(*nb::tuple(parts));
  }

  const Op& op_;
  nb::handle inputs_, attrs_;
  std::vector<int> types_;  // by attribute: the type, where it is known
  nb::object graph_object_;
  Graph* graph_ = nullptr;
  std::string name_;
  bool joins_scope_ = false;  // of a composite: its nodes are in the scope `name_`, as it is
  std::vector<std::vector<TF_Output>> values_;
  TF_OperationDescription* desc_ = nullptr;
};

nb::object Op::operator()(nb::handle inputs, nb::handle attrs, nb::handle name) const {
  return Call(*this, inputs, attrs, name).Run();
}

// Any op by name, with attributes as encoded AttrValues: for import tools and custom nodes.
nb::object MakeNode(nb::handle graph_object, const std::string& op, const std::string& name,
                    const std::vector<nb::object>& inputs, nb::dict attrs) {
  Graph& graph = GraphOf(graph_object);
  if (graph.finalized) ThrowFinalized(op);
  const std::string full = graph.OperationName(name);
  CheckNodeName(full);
  TF_OperationDescription* desc = Api().NewOperation(graph.get(), op.c_str(), full.c_str());
  CallStatus status;
  std::vector<TF_Output> all;
  for (const nb::object& input : inputs) {
    if (IsTensor(input)) {
      all.push_back(OutputOf(input));
      Api().AddInput(desc, all.back());
      continue;
    }
    std::vector<TF_Output> list;
    for (nb::handle element : input) list.push_back(OutputOf(element));
    Api().AddInputList(desc, list.data(), static_cast<int>(list.size()));
    all.insert(all.end(), list.begin(), list.end());
  }
  for (auto [key, value] : attrs) {
    const nb::bytes encoded = nb::cast<nb::bytes>(value);
    Api().SetAttrValueProto(desc, nb::cast<std::string>(key).c_str(), encoded.data(), encoded.size(), status);
  }
  SetScopedAttrs(graph, desc, [&](const std::string& attr) { return attrs.contains(attr.c_str()); });
  for (TF_Operation* input : graph.ControlInputs(all)) Api().AddControlInput(desc, input);
  if (!graph.device.empty()) Api().SetDevice(desc, graph.device.c_str());
  const Location where = UserLocation();
  if (!where.file.empty()) Api().SetLocation(desc, where.file.c_str(), where.line);
  TF_Operation* made = Api().FinishOperation(desc, status);
  if (!status.ok()) status.RaiseBuildError(op + " '" + full + "': " + status.message());
  graph.NoteMade(made);
  return graph.Wrap(graph_object, made);
}

}  // namespace

void DefineOps(nb::module_& m) {
  nb::class_<Op>(m, "Op")
      .def(nb::init<std::string, const std::string&, const std::string&, const std::string&, bool>(), nb::arg("name"),
           nb::arg("inputs"), nb::arg("outputs"), nb::arg("attrs"), nb::arg("composite") = false)
      .def("__call__", &Op::operator(), nb::arg("inputs"), nb::arg("attrs"), nb::arg("name").none())
      .def_prop_ro("name", &Op::name);
  m.def("make_node", &MakeNode);
}

}  // namespace millrace::python
