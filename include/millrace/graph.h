// SPDX-License-Identifier: Apache-2.0
// Graphs and how to build them: Scope carries names, devices, control dependencies and source positions.
#pragma once

#include <map>

#include "millrace/attr.h"
#include "millrace/c_api_training.h"
#include "millrace/source_location.h"

namespace millrace {
inline namespace MILLRACE_CLIENT {

class Operation;
class PartialRun;
class Session;
namespace internal {
class Flow;
class RawRnnLoop;
}  // namespace internal

// A tensor of a graph. Null after an error.
class Output {
 public:
  Output() = default;
  // That output of the C API's operation.
  Output(TF_Operation* oper, int index) : o_{oper, index} {}
  // The same.
  explicit Output(TF_Output o) : o_(o) {}
  inline Output(const Operation& op);  // NOLINT: an operation stands for its first output
  // Whether there is one.
  explicit operator bool() const { return o_.oper != nullptr; }
  // For the C API.
  TF_Output get() const { return o_; }
  // The type of its elements; of a variable's reference 100 more. There must be an output.
  DType dtype() const { return static_cast<DType>(Api().OperationOutputType(o_)); }
  // "node:0"; empty where there is none.
  std::string name() const {
    return o_.oper ? std::string(Api().OperationName(o_.oper)) + ":" + std::to_string(o_.index) : std::string();
  }

 private:
  TF_Output o_ = {nullptr, 0};
};

// A node of a graph; lives as long as the graph. Null after an error.
class Operation {
 public:
  Operation() = default;
  // That of the C API.
  explicit Operation(TF_Operation* oper) : oper_(oper) {}
  // Whether there is one.
  explicit operator bool() const { return oper_ != nullptr; }
  // For the C API.
  TF_Operation* get() const { return oper_; }
  // Its name in the graph, with its scopes: "layer/MatMul".
  std::string name() const { return oper_ ? Api().OperationName(oper_) : ""; }
  std::string device() const { return oper_ ? Api().OperationDevice(oper_) : ""; }  // as asked for
  // Its op: "MatMul".
  std::string type() const { return oper_ ? Api().OperationOpType(oper_) : ""; }
  // How many outputs it has; lists count with all their tensors.
  int num_outputs() const { return Api().OperationNumOutputs(oper_); }
  // An output by its number, from 0 to num_outputs() - 1.
  Output operator[](int index) const { return Output(oper_, index); }

 private:
  TF_Operation* oper_ = nullptr;
};

inline Output::Output(const Operation& op) : o_{op.get(), 0} {}

// One argument of an op: a tensor of the graph, a list of them, or a constant.
class Input {
 public:
  Input(Output o) : outputs_{o} {}                                                // NOLINT: reads like the value
  Input(const Operation& op) : outputs_{Output(op)} {}                            // NOLINT
  Input(std::vector<Output> list) : outputs_(std::move(list)), is_list_(true) {}  // NOLINT
  Input(Tensor value) : constant_(std::move(value)), is_constant_(true) {}        // NOLINT
  template <typename T, typename = std::enable_if_t<std::is_arithmetic_v<T>>>
  Input(T value) : Input(Tensor(value)) {}          // NOLINT
  Input(const char* text) : Input(Tensor(text)) {}  // NOLINT

 private:
  friend class Scope;
  std::vector<Output> outputs_;
  Tensor constant_;
  bool is_list_ = false;
  bool is_constant_ = false;
};

// Sessions on a graph keep it alive. Copies are the same graph. Build it from one thread at a time.
class Graph {
 public:
  Graph() : state_(std::make_shared<State>(Api().NewGraph(), true)) {}
  // A graph that the caller keeps alive, such as that of a gradient function of an op (c_api_ops.h).
  static Graph Borrow(TF_Graph* graph) { return Graph(std::make_shared<State>(graph, false)); }
  // For the C API; it stays this graph's.
  TF_Graph* get() const { return state_->graph; }

  // The operation of this name; a null one where there is none.
  Operation Find(const std::string& name) const { return Operation(Api().GraphOperationByName(get(), name.c_str())); }
  // In the order of their making.
  std::vector<Operation> Operations() const {
    std::vector<Operation> all;
    size_t at = 0;
    while (TF_Operation* op = Api().GraphNextOperation(get(), &at)) all.emplace_back(op);
    return all;
  }
  // The shape that is known of a tensor; false when not even its rank is.
  bool ShapeOf(Output o, Shape* shape) const {
    internal::CallStatus status;
    const int rank = Api().GraphGetTensorNumDims(get(), o.get(), status);
    if (!status.ok() || rank < 0) return false;
    shape->assign(static_cast<size_t>(rank), -1);
    Api().GraphGetTensorShape(get(), o.get(), shape->data(), rank, status);
    return status.ok();
  }
  // An encoded GraphDef.
  Returned<std::string> ToGraphDef() const {
    internal::CallStatus status;
    TF_Buffer* buffer = Api().NewBuffer();
    Api().GraphToGraphDef(get(), buffer, status);
    std::string bytes(static_cast<const char*>(buffer->data), buffer->length);
    Api().DeleteBuffer(buffer);
    return internal::Give(status.Get(), std::move(bytes));
  }
  // Adds an encoded GraphDef, its names below `prefix` unless that is empty.
  Done Import(const std::string& graph_def, const std::string& prefix = "") {
    internal::CallStatus status;
    TF_Buffer* buffer = Api().NewBufferFromString(graph_def.data(), graph_def.size());
    TF_ImportGraphDefOptions* options = Api().NewImportGraphDefOptions();
    Api().ImportGraphDefOptionsSetPrefix(options, prefix.c_str());
    Api().GraphImportGraphDef(get(), buffer, options, status);
    Api().DeleteImportGraphDefOptions(options);
    Api().DeleteBuffer(buffer);
    return internal::Finish(status.Get());
  }
  // The gradients of the sum of `ys` with respect to each of `xs`; a null Output where none flows. `grad_ys` (may be
  // empty: ones) arrive at the ys.
  Returned<std::vector<Output>> Gradients(const std::vector<Output>& ys, const std::vector<Output>& xs,
                                          const std::vector<Output>& grad_ys = {}) {
    internal::CallStatus status;
    std::vector<TF_Output> y = Raw(ys), x = Raw(xs), dx = Raw(grad_ys), dy(xs.size());
    if (!dx.empty() && dx.size() != y.size()) {
      return internal::Give(
          Status(TF_INVALID_ARGUMENT, "grad_ys must be empty or as many as ys"), std::vector<Output>());
    }
    Api().AddGradients(get(), y.data(), static_cast<int>(y.size()), x.data(), static_cast<int>(x.size()),
                       dx.empty() ? nullptr : dx.data(), status, dy.data());
    std::vector<Output> out;
    for (const TF_Output& o : dy) out.emplace_back(o);
    return internal::Give(status.Get(), std::move(out));
  }

  // The first error of building by scopes.
  const Status& status() const { return state_->status; }

 private:
  friend class Scope;
  friend class Model;
  friend class Session;
  friend class PartialRun;
  friend class internal::Flow;
  struct State {
    State(TF_Graph* g, bool owned) : graph(g), is_owned(owned) {}
    ~State() {
      if (is_owned) Api().DeleteGraph(graph);
    }
    State(const State&) = delete;
    State& operator=(const State&) = delete;
    TF_Graph* const graph;
    const bool is_owned;
    Status status;
    std::map<std::string, int> used_names;
  };
  explicit Graph(std::shared_ptr<State> state) : state_(std::move(state)) {}
  static std::vector<TF_Output> Raw(const std::vector<Output>& list) {
    std::vector<TF_Output> raw;
    for (const Output& o : list) raw.push_back(o.get());
    return raw;
  }
  std::string UniqueName(const std::string& wanted) {
    for (int& count = state_->used_names[wanted];; ++count) {
      const std::string name = count == 0 ? wanted : wanted + "_" + std::to_string(count);
      if (Find(name)) continue;
      ++count;
      return name;
    }
  }

  std::shared_ptr<State> state_;
};

// Where and how new operations go. Scopes are values: With... and SubScope return changed copies.
//
// Without exceptions, operations made after the first error are null and the graph stays as it was; status() keeps that
// error, so a program may check once at the end.
class Scope {
 public:
  // The graph's outermost scope: names without a prefix, no device.
  explicit Scope(Graph graph) : graph_(std::move(graph)) {}
  // Joins the scope `name`, as it is.
  Scope(Graph graph, const std::string& name) : graph_(std::move(graph)), prefix_(name.empty() ? "" : name + "/") {}

  // A scope inside of this one, whose name is made unique: "layer", "layer_1".
  Scope SubScope(const std::string& name) const {
    Scope s = *this;
    s.prefix_ = s.graph_.UniqueName(prefix_ + name) + "/";
    return s;
  }
  Scope WithName(std::string name) const {  // of the next operation, instead of its op's
    Scope s = *this;
    s.name_ = std::move(name);
    return s;
  }
  // New operations ask for this device: "/cpu:1", "/job:ps/task:0"; "": for none.
  Scope WithDevice(std::string device) const {
    Scope s = *this;
    s.device_ = std::move(device);
    return s;
  }
  Scope WithControl(const std::vector<Operation>& before) const {  // in addition to those in force
    Scope s = *this;
    s.control_.insert(s.control_.end(), before.begin(), before.end());
    return s;
  }
  // Also in a step that runs nothing else of `op`: its device is the new operations' too, instead of the scope's.
  Scope ColocateWith(Operation op) const {
    Scope s = *this;
    s.device_ = op.device();
    s.colocate_.push_back(op);
    return s;
  }
  // The graph that operations go into.
  Graph& graph() { return graph_; }
  const std::string& prefix() const { return prefix_; }  // "" or "a/b/"
  const std::string& device() const { return device_; }  // "" or what was asked for
  // The first error of building, without exceptions.
  const Status& status() const { return graph_.status(); }
  // Keeps the first error of building (or throws it), for what builds by other means.
  void Note(const Status& error) {
    if (!error.ok()) Fail(error);
  }

  // scope.Op("MatMul", {a, b}, {{"transpose_a", true}}). Attributes that the inputs determine are left out. A constant
  // among the inputs is named after its argument: "Reshape/shape".
  Operation Op(const char* type, const std::vector<Input>& inputs, const Attrs& attrs = {},
               const SourceLocation& where = SourceLocation::current()) {
    if (!graph_.status().ok()) return Fail(graph_.status());
    std::string name = UniqueName(type);
    std::vector<std::vector<TF_Output>> args;
    if (!Arguments(type, name, inputs, where, &args)) return Operation();
    if (name.back() == '/') name.pop_back();  // the last of its scope, which has the scope's name
    return Build(type, name, inputs, args, attrs, where);
  }

  // Expands a composite (second part of docs/op_schemas.txt): what is made of ops, like dropout or a loss. All its
  // outputs. Its nodes are named below its name; a name that ends in '/' is a scope that they join as it is ("/": this
  // one).
  std::vector<Output> Composite(const char* type, const std::vector<Input>& inputs, const Attrs& attrs = {},
                                const SourceLocation& where = SourceLocation::current()) {
    if (!graph_.status().ok()) return Fail(graph_.status()), std::vector<Output>();
    const std::string name = UniqueName(type);
    std::vector<std::vector<TF_Output>> args;
    if (!Arguments(type, name, inputs, where, &args)) return {};
    Status error;
    TF_OperationDescription* desc = Describe(type, name, inputs, args, attrs, where, &error);
    constexpr int kMaxOutputs = 1 << 14;
    std::vector<TF_Output> outputs(kMaxOutputs);
    internal::CallStatus status;
    const int n = MR_FinishComposite(desc, outputs.data(), kMaxOutputs, status);
    if (error.ok()) error = status.Get();
    if (!error.ok()) return Fail(error), std::vector<Output>();
    std::vector<Output> made;
    for (int i = 0; i < n; ++i) made.emplace_back(outputs[static_cast<size_t>(i)]);
    return made;
  }

  // A constant. TF_INVALID_ARGUMENT for a tensor that is none.
  Output Const(const Tensor& value, const SourceLocation& where = SourceLocation::current()) {
    return Output(ConstOp(value, UniqueName("Const"), where));
  }
  // What steps feed, of any shape.
  Output Placeholder(DType dtype, const SourceLocation& where = SourceLocation::current()) {
    return Output(Op("Placeholder", {}, {{"dtype", dtype}}, where));
  }
  // What steps feed, of this shape; -1: a dimension of any size.
  Output Placeholder(DType dtype, Shape shape, const SourceLocation& where = SourceLocation::current()) {
    return Output(Op("Placeholder", {}, {{"dtype", dtype}, {"shape", Attr::OfShape(std::move(shape))}}, where));
  }

 private:
  friend class internal::Flow;
  friend class internal::RawRnnLoop;
  Operation ConstOp(const Tensor& value, const std::string& name, const SourceLocation& where) {
    if (!value) return Fail(Status(TF_INVALID_ARGUMENT, "a constant has no value"));
    return Build("Const", name, {}, {}, {{"value", value}, {"dtype", value.dtype()}}, where);
  }

  // Of the next operation, in full.
  std::string UniqueName(const char* type) {
    if (name_ == "/" && !prefix_.empty()) return prefix_;
    if (!name_.empty() && name_.back() == '/') return prefix_ + name_;
    return graph_.UniqueName(prefix_ + (name_.empty() ? type : name_));
  }

  // The inputs as tensors of the graph; false after an error. `name` is the operation's.
  bool Arguments(const char* type, const std::string& name, const std::vector<Input>& inputs,
                 const SourceLocation& where, std::vector<std::vector<TF_Output>>* args) {
    for (const Input& input : inputs) {
      if (input.is_constant_) {
        const char* arg = Api().OpInputName(type, static_cast<int>(args->size()));
        const std::string below = name == "/" ? "" : name.back() == '/' ? name : name + "/";
        const std::string constant = graph_.UniqueName(below + (arg ? arg : "Const"));
        args->push_back({Output(ConstOp(input.constant_, constant, where)).get()});
        if (!graph_.status().ok()) return false;
      } else {
        args->push_back(Graph::Raw(input.outputs_));
      }
    }
    return true;
  }

  TF_OperationDescription* Describe(
      const char* type, const std::string& name, const std::vector<Input>& inputs,
      const std::vector<std::vector<TF_Output>>& args, const Attrs& attrs, const SourceLocation& where, Status* error) {
    const MR_Api& api = Api();
    internal::CallStatus status;
    TF_OperationDescription* desc = api.NewOperation(graph_.get(), type, name.c_str());
    for (size_t i = 0; i < args.size(); ++i) {
      if (inputs[i].is_list_) {
        api.AddInputList(desc, args[i].data(), static_cast<int>(args[i].size()));
      } else {
        api.AddInput(desc, args[i][0]);
      }
    }
    for (const NamedAttr& attr : attrs) {
      attr.value.Set(desc, attr.name, status);
      if (error->ok()) *error = status.Get();
    }
    for (const Operation& op : control_) api.AddControlInput(desc, op.get());
    for (const Operation& op : colocate_) api.ColocateWith(desc, op.get());
    api.ColocateReferences(desc);
    if (!device_.empty()) api.SetDevice(desc, device_.c_str());
    api.SetLocation(desc, where.file_name(), static_cast<int>(where.line()));
    return desc;
  }

  Operation Build(const char* type, const std::string& name, const std::vector<Input>& inputs,
                  const std::vector<std::vector<TF_Output>>& args, const Attrs& attrs, const SourceLocation& where) {
    Status error;
    TF_OperationDescription* desc = Describe(type, name, inputs, args, attrs, where, &error);
    internal::CallStatus status;
    TF_Operation* oper = Api().FinishOperation(desc, status);
    if (error.ok()) error = status.Get();
    return error.ok() ? Operation(oper) : Fail(error);
  }

  Operation Fail(const Status& error) {
    if (graph_.state_->status.ok()) graph_.state_->status = error;
#if MILLRACE_EXCEPTIONS
    graph_.state_->status = Status();  // it is reported now; the graph stays usable
    throw Error(error);
#else
    return Operation();
#endif
  }

  Graph graph_;
  std::string prefix_, name_, device_;
  std::vector<Operation> control_, colocate_;
};

}  // namespace MILLRACE_CLIENT
}  // namespace millrace
