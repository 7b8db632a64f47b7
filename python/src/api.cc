// SPDX-License-Identifier: Apache-2.0
// Finding the library, and turning its errors into exceptions.
#include <cxxabi.h>
#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>

#include "core.h"

namespace millrace::python {
namespace {

// RTLD_LOCAL: a TensorFlow that is loaded later must not find our functions, which have the same names as its own.
void* Open() {
  Dl_info info{};
  std::string path;
  if (const char* given = std::getenv("MILLRACE_LIBRARY")) {
    path = given;
  } else if (dladdr(reinterpret_cast<void*>(&Open), &info) != 0 && info.dli_fname != nullptr) {
    path = info.dli_fname;
    const size_t slash = path.rfind('/');
    path = (slash == std::string::npos ? std::string() : path.substr(0, slash + 1)) + "libmillrace.so";
  }
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) throw std::runtime_error(std::string("cannot load the library of Millrace: ") + dlerror());
  return handle;
}

void* Library() {
  static void* const handle = Open();
  return handle;
}

const MR_Api* Load() {
  const MR_Api* api = reinterpret_cast<decltype(&MR_GetApi)>(LibraryFunction("MR_GetApi"))();
  if (api->struct_size < sizeof(MR_Api)) {
    throw std::runtime_error(
        std::string("the library of Millrace is older than this package: version ") + api->MillraceVersion());
  }
  return api;
}

}  // namespace

void* LibraryFunction(const char* name) {
  void* const found = dlsym(Library(), name);
  if (found == nullptr) throw std::runtime_error(std::string("the library of Millrace is too old: it has no ") + name);
  return found;
}

const MR_Api& Api() {
  static const MR_Api* const api = Load();
  return *api;
}

namespace {

template <typename Call>
auto UnlessPythonEnds(Call call) {
  try {
    return call();
  } catch (abi::__forced_unwind&) {
    for (;;) pause();
  }
}

}  // namespace

GilRelease::~GilRelease() {
  UnlessPythonEnds([this] { PyEval_RestoreThread(state_); });
}
GilAcquire::GilAcquire() : state_(UnlessPythonEnds([] { return PyGILState_Ensure(); })) {}
PyObject* CallOrWait(PyObject* function, PyObject* argument) {
  return UnlessPythonEnds([=] { return PyObject_CallFunctionObjArgs(function, argument, nullptr); });
}

CallStatus::CallStatus() : status_(Api().NewStatus()) {}
CallStatus::~CallStatus() { Api().DeleteStatus(status_); }
bool CallStatus::ok() const { return Api().GetCode(status_) == TF_OK; }
TF_Code CallStatus::code() const { return Api().GetCode(status_); }
const char* CallStatus::message() const { return Api().Message(status_); }

// A message may quote bytes of any kind.
static nb::object Text(const std::string& message) {
  return nb::steal(PyUnicode_DecodeUTF8(message.data(), static_cast<Py_ssize_t>(message.size()), "backslashreplace"));
}

// Raised from here, so that a traceback ends in the Python function that called the library.
[[noreturn]] static void Raise(TF_Code code, const std::string& message, bool building, nb::handle graph) {
  const nb::object error = registry().error_for(static_cast<int>(code), Text(message), building, graph);
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
  throw nb::python_error();
}

void CallStatus::RaiseIfError(nb::handle graph) const {
  if (!ok()) Raise(code(), message(), false, graph);
}

void CallStatus::RaiseBuildError() const {
  if (!ok()) RaiseBuildError(message());
}

void CallStatus::RaiseBuildError(const std::string& text) const { Raise(code(), text, true, nb::none()); }

Registry& registry() {
  static Registry* const r = new Registry;
  return *r;
}

}  // namespace millrace::python
