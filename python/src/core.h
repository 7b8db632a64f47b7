// SPDX-License-Identifier: Apache-2.0
// The objects that the extension module and the Python package share: graphs, operations and tensors as Python sees
// them, over the C API. Everything here runs with the GIL held unless it says otherwise.
//
// Ownership: a Graph keeps its Operation objects, an Operation its Tensor objects and its graph, a Tensor its
// operation. These are cycles, which Python's collector frees (each type has a traverse function).
#pragma once

#define PY_SSIZE_T_CLEAN
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "millrace/c_api.h"

namespace nb = nanobind;

namespace millrace::python {

// The library's function table. The library lies beside the module, or where MILLRACE_LIBRARY says.
const MR_Api& Api();
// A function that is not in the table. Throws where the library has none of that name.
void* LibraryFunction(const char* name);

// Without, or with, the GIL. A thread that wants it while the interpreter ends gets it never again: Python would end
// the thread by unwinding its stack, which frames of C++ must not see, so it waits for the process's end here.
class GilRelease {
 public:
  GilRelease() : state_(PyEval_SaveThread()) {}
  ~GilRelease();
  GilRelease(const GilRelease&) = delete;
  GilRelease& operator=(const GilRelease&) = delete;

 private:
  PyThreadState* const state_;
};
class GilAcquire {
 public:
  GilAcquire();
  ~GilAcquire() { PyGILState_Release(state_); }
  GilAcquire(const GilAcquire&) = delete;
  GilAcquire& operator=(const GilAcquire&) = delete;

 private:
  PyGILState_STATE state_;
};
// Calls a Python function, likewise. A new reference, or null with an error.
PyObject* CallOrWait(PyObject* function, PyObject* argument);

// A status for one call, raised as a Python exception when it is an error.
class CallStatus {
 public:
  CallStatus();
  ~CallStatus();
  CallStatus(const CallStatus&) = delete;
  CallStatus& operator=(const CallStatus&) = delete;
  operator TF_Status*() { return status_; }  // NOLINT: passed to every call
  bool ok() const;
  TF_Code code() const;
  const char* message() const;
  // millrace.errors.<class>, for errors of running nodes of `graph` (which may be none).
  void RaiseIfError(nb::handle graph = nb::none()) const;
  // ValueError and its like, for errors of building graphs.
  void RaiseBuildError() const;
  void RaiseBuildError(const std::string& message) const;

 private:
  TF_Status* status_;
};

// Bytes that a call fills.
class CallBuffer {
 public:
  CallBuffer() : buffer_(Api().NewBuffer()) {}
  ~CallBuffer() { Api().DeleteBuffer(buffer_); }
  CallBuffer(const CallBuffer&) = delete;
  CallBuffer& operator=(const CallBuffer&) = delete;
  operator TF_Buffer*() { return buffer_; }  // NOLINT
  nb::bytes bytes() const { return nb::bytes(buffer_->data, buffer_->length); }
  std::string_view view() const { return {static_cast<const char*>(buffer_->data), buffer_->length}; }

 private:
  TF_Buffer* buffer_;
};

class Graph;

// An operation of a graph. Python's class Operation derives from it.
struct Operation {
  TF_Operation* oper = nullptr;
  nb::object graph;                 // the Python object of its Graph
  std::vector<nb::object> outputs;  // Tensor objects, made when asked for
};

// An output of an operation. Python's class Tensor derives from it.
struct Tensor {
  nb::object operation;
  int index = 0;
  TF_DataType type = TF_FLOAT;  // without the reference flag
  bool is_ref = false;
};

// One level of control_dependencies(): ops made inside wait for `inputs`, unless they read an op made inside.
struct ControlScope {
  std::vector<TF_Operation*> inputs;
  std::unordered_set<TF_Operation*> made;
  bool clears = false;  // control_dependencies(None): scopes outside do not count
};

// A graph and the state of its construction. Python's class Graph derives from it.
class Graph {
 public:
  Graph() : graph_(Api().NewGraph()) {}
  ~Graph() { Api().DeleteGraph(graph_); }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  TF_Graph* get() const { return graph_; }

  // `name` made unique, and taken; name_scope of its own when it ends with '/'.
  std::string UniqueName(std::string_view name, bool mark);
  // `name` below the current name scope, unique. A name that ends with '/' is a scope that was entered: taken as it is.
  std::string OperationName(std::string_view name);

  // The Python object of an operation of this graph.
  nb::object Wrap(nb::handle self, TF_Operation* oper);
  nb::object WrapOutput(nb::handle self, TF_Output output);
  // Notes the operations that the library has added on its own since the last call.
  void Sync(nb::handle self);
  // Drops the objects of operations that the library has taken back.
  void Forget();

  std::string name_stack;  // without '/' at the end
  std::string device;      // of the innermost device(), merged
  std::string container;   // where ops that keep something keep it, unless their attribute says
  bool has_device_functions = false;
  bool finalized = false;
  std::vector<ControlScope> control;
  std::vector<TF_Operation*> colocation;
  std::vector<std::pair<std::string, std::string>> gradient_overrides;  // by op type, the last one counts
  bool captures = false;  // the body of a function: tensors of other graphs become arguments, by its Python object's
                          // _capture
  std::vector<std::pair<std::string, std::string>> kernel_labels;
  std::vector<std::pair<std::string, nb::bytes>> scoped_attrs;  // AttrValue messages that every new node gets
  std::unordered_map<TF_Operation*, nb::object> operations;

  size_t count() const { return position_; }  // operations noted so far

  // The control inputs that an op with these inputs gets.
  std::vector<TF_Operation*> ControlInputs(const std::vector<TF_Output>& inputs) const;
  void NoteMade(TF_Operation* oper);

 private:
  TF_Graph* graph_;
  std::unordered_map<std::string, int> names_;  // lower case -> how often it was asked for
  size_t position_ = 0;                         // of the next operation to note
};

// What the package tells the module once: its classes and helpers.
struct Registry {
  nb::object graph_type, operation_type, tensor_type;
  nb::object convert;        // (value, dtype number or None, name, as_ref) -> Tensor
  nb::object dtype_number;   // any dtype-like -> number
  nb::object dtypes;         // list: number -> DType
  nb::object shape_list;     // any shape-like -> list or None
  nb::object error_for;      // (code, message, whether a graph is being built, graph or None) -> exception
  nb::object result_type;    // (op name, names) -> named tuple type
  nb::object default_graph;  // () -> Graph, when the stack of the thread is empty
  nb::object warn_growth;    // (line "file:number", operations in the graph) -> warns
  nb::object step_waits;  // (session, fetched tensors, target operations) of a step that has waited for long -> warns
  std::string package_path;  // frames of files below it are not the user's
};
Registry& registry();

// The innermost graph of this thread's stack, or the default one.
nb::object CurrentGraph();
// Whether the default graph is the body of a function that takes tensors of other graphs as arguments.
bool InCapturingGraph();
Graph& GraphOf(nb::handle graph);
TF_Output OutputOf(nb::handle tensor);
bool IsTensor(nb::handle object);
bool IsOperation(nb::handle object);

// The line of the user's program that is being run: the innermost frame outside the package.
struct Location {
  std::string file;
  int line = 0;
};
Location UserLocation();
// "file:line" of it, or "".
std::string UserLine();
// `message`, with that line at its end where it does not say it.
std::string AtUserLine(const std::string& message);

// NumPy values to tensors and back.
class TensorHolder {
 public:
  explicit TensorHolder(TF_Tensor* t = nullptr) : tensor_(t) {}
  TensorHolder(TensorHolder&& other) noexcept : tensor_(std::exchange(other.tensor_, nullptr)) {}
  TensorHolder& operator=(TensorHolder&& other) noexcept {
    std::swap(tensor_, other.tensor_);
    return *this;
  }
  ~TensorHolder() {
    if (tensor_) Api().DeleteTensor(tensor_);
  }
  TF_Tensor* get() const { return tensor_; }
  TF_Tensor* release() { return std::exchange(tensor_, nullptr); }

 private:
  TF_Tensor* tensor_;
};

bool InitNumpy();
// Raises TypeError or ValueError. `dims` (may be null): the shape wanted, -1 unknown, `rank` -1 unknown.
TensorHolder ToTensor(nb::handle value, TF_DataType type, const std::string& what, const std::vector<int64_t>* dims);
// Of a value that the caller gives away: an array that nobody else knows becomes the tensor's memory, others are
// copied.
TensorHolder ToTensor(nb::object&& value, TF_DataType type);
// Consumes `tensor`.
nb::object FromTensor(TF_Tensor* tensor);
// Frees what feeds let go of on other threads.
void DrainReleased();

// Makes steps of a session stop for signals. What the handler of a signal raised is raised by RaiseInterruption, on the
// thread that ran the step.
void WatchSignals(TF_Session* session);
void RaiseInterruption();

// A step that this thread runs. When it has waited for some seconds on the process's main thread, `tell` is called
// once, with the GIL held.
class StepScope {
 public:
  using Tell = void (*)(const void* session, const void* plan);
  StepScope(Tell tell, const void* session, const void* plan);
  ~StepScope();
  StepScope(const StepScope&) = delete;
  StepScope& operator=(const StepScope&) = delete;
  // Called while the step waits. True when it is time to tell.
  bool IsLong();
  void TellOnce() const { tell_(session_, plan_); }

 private:
  const Tell tell_;
  const void* const session_;
  const void* const plan_;
  StepScope* const outer_;
  std::chrono::steady_clock::time_point first_look_{};
  bool told_ = false;
};

// For types with attributes of their own and a traverse function: the attributes.
inline int VisitAttributes(PyObject* self, visitproc visit, void* arg) {
  PyObject** attributes = _PyObject_GetDictPtr(self);
  if (attributes != nullptr) Py_VISIT(*attributes);
  return 0;
}
inline void ClearAttributes(PyObject* self) {
  PyObject** attributes = _PyObject_GetDictPtr(self);
  if (attributes != nullptr) Py_CLEAR(*attributes);
}
#define MR_VISIT_ATTRIBUTES() \
  if (const int stop = VisitAttributes(self, visit, arg)) return stop

// The parts of the module.
void DefineGraph(nb::module_& m);
void DefineOps(nb::module_& m);
void DefineSession(nb::module_& m);
void DefineTraining(nb::module_& m);
void DefineFiles(nb::module_& m);
void DefineControlFlow(nb::module_& m);
void DefineOldNumpy(nb::module_& m);
void DefineCallbacks(nb::module_& m);
void DefineLibraries(nb::module_& m);
void DefineServer(nb::module_& m);

}  // namespace millrace::python
