// SPDX-License-Identifier: Apache-2.0
// Python functions that steps call (py_func), and signals that arrive while a step runs.
//
// A graph owns its functions, as Python objects that the garbage collector sees: a function may refer to the graph. The
// library knows a function only by its token and a link that the object cuts when it dies. The link is read and cut
// with the GIL held.
#include <unistd.h>

#include <optional>

#include "core.h"

namespace millrace::python {
namespace {

class PyFunction;

struct Link {
  PyFunction* function = nullptr;
};

void ReleaseLink(void* link) { delete static_cast<Link*>(link); }

class PyFunction {
 public:
  // call(list of values) -> list of arrays; describe(exception) -> (code, message).
  PyFunction(std::string token, nb::object call, nb::object describe, std::vector<int> types)
      : token_(std::move(token)),
        call_(std::move(call)),
        describe_(std::move(describe)),
        types_(std::move(types)),
        link_(new Link{this}) {
    CallStatus status;
    Api().RegisterClientFunction(token_.c_str(), &PyFunction::Run, link_, &ReleaseLink, status);
    if (!status.ok()) delete std::exchange(link_, nullptr);
    status.RaiseIfError();
  }
  ~PyFunction() {
    if (link_ == nullptr) return;
    link_->function = nullptr;
    Api().UnregisterClientFunction(token_.c_str());
  }
  PyFunction(const PyFunction&) = delete;
  PyFunction& operator=(const PyFunction&) = delete;

  void Clear() { call_.reset(); }
  nb::handle call() const { return call_; }
  const std::string& token() const { return token_; }

 private:
  static void Run(void* link, TF_Tensor** inputs, int num_inputs, TF_Tensor** outputs, int num_outputs,
                  TF_Status* status) {
    const GilAcquire gil;
    PyFunction* self = static_cast<Link*>(link)->function;
    if (self == nullptr || !self->call_.is_valid()) {
      return Api().SetStatus(status, TF_INVALID_ARGUMENT, "the graph that this function of Python belongs to is gone");
    }
    // The object may die while the function runs.
    const nb::object call = self->call_, describe = self->describe_;
    const std::vector<int> types = self->types_;
    try {
      nb::list values;
      for (int i = 0; i < num_inputs; ++i) values.append(FromTensor(std::exchange(inputs[i], nullptr)));
      nb::object returned = nb::steal(CallOrWait(call.ptr(), values.ptr()));
      if (!returned.is_valid()) throw nb::python_error();
      nb::list results = nb::cast<nb::list>(returned);
      returned.reset();
      values.clear();
      if (results.size() != static_cast<size_t>(num_outputs) || types.size() != results.size()) {
        return Api().SetStatus(
            status, TF_INVALID_ARGUMENT, "the operation has other outputs than the function that it calls");
      }
      for (int i = num_outputs - 1; i >= 0; --i) {
        nb::object value = nb::borrow(results[static_cast<size_t>(i)]);
        nb::del(results[static_cast<size_t>(i)]);
        outputs[i] = ToTensor(std::move(value), static_cast<TF_DataType>(types[static_cast<size_t>(i)])).release();
      }
    } catch (nb::python_error& error) {
      Describe(error, describe, status);
    } catch (const std::exception& error) {
      Api().SetStatus(status, TF_INVALID_ARGUMENT, error.what());
    }
  }

  static void Describe(nb::python_error& error, const nb::object& describe, TF_Status* status) {
    try {
      const nb::tuple text = nb::cast<nb::tuple>(describe(error.value()));
      Api().SetStatus(status, static_cast<TF_Code>(nb::cast<int>(text[0])), nb::cast<std::string>(text[1]).c_str());
    } catch (const std::exception& second) {
      Api().SetStatus(status, TF_UNKNOWN, second.what());
    }
  }

  const std::string token_;
  nb::object call_, describe_;
  const std::vector<int> types_;
  Link* link_;
};

int TraverseFunction(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (nb::inst_ready(self)) Py_VISIT(nb::inst_ptr<PyFunction>(self)->call().ptr());
  return 0;
}
int ClearFunction(PyObject* self) {
  if (nb::inst_ready(self)) nb::inst_ptr<PyFunction>(self)->Clear();
  return 0;
}
PyType_Slot function_slots[] = {
    {Py_tp_traverse, reinterpret_cast<void*>(TraverseFunction)},
    {Py_tp_clear, reinterpret_cast<void*>(ClearFunction)},
    {0, nullptr}};

// ---- Signals ----

thread_local std::optional<nb::python_error> interruption;
thread_local StepScope* current_step = nullptr;

constexpr std::chrono::seconds kLongWait{5};

// Python runs handlers of signals on its main thread alone, which is the process's. What a handler raises is kept until
// the step has ended.
int LookForSignals(void*) {
  if (getpid() != gettid() || interruption) return interruption.has_value();
  const GilAcquire gil;
  if (current_step != nullptr && current_step->IsLong()) current_step->TellOnce();
  if (PyErr_CheckSignals() == 0) return 0;
  interruption.emplace();
  return 1;
}

}  // namespace

StepScope::StepScope(Tell tell, const void* session, const void* plan)
    : tell_(tell), session_(session), plan_(plan), outer_(std::exchange(current_step, this)) {}
StepScope::~StepScope() { current_step = outer_; }

bool StepScope::IsLong() {
  if (told_) return false;
  const auto now = std::chrono::steady_clock::now();
  if (first_look_ == std::chrono::steady_clock::time_point{}) first_look_ = now;
  told_ = now - first_look_ >= kLongWait;
  return told_;
}

void WatchSignals(TF_Session* session) {
  CallStatus status;
  Api().SetInterruptCheck(session, &LookForSignals, nullptr, status);
}

void RaiseInterruption() {
  if (!interruption) return;
  nb::python_error error = std::move(*interruption);
  interruption.reset();
  throw error;  // NOLINT: by value
}

void DefineCallbacks(nb::module_& m) {
  nb::class_<PyFunction>(m, "PyFunction", nb::type_slots(function_slots), nb::is_weak_referenceable())
      .def(nb::init<std::string, nb::object, nb::object, std::vector<int>>())
      .def_prop_ro("token", [](const PyFunction& f) { return f.token(); });
}

}  // namespace millrace::python
