// SPDX-License-Identifier: Apache-2.0
// Finding the library, and turning its errors into exceptions.
#include <dlfcn.h>

#include <cstdlib>

#include "core.h"

namespace millrace::python {
namespace {

// RTLD_LOCAL: a TensorFlow that is loaded later must not find our functions, which have the same names as its own.
const MR_Api* Load() {
  Dl_info info{};
  std::string path;
  if (const char* given = std::getenv("MILLRACE_LIBRARY")) {
    path = given;
  } else if (dladdr(reinterpret_cast<void*>(&Load), &info) != 0 && info.dli_fname != nullptr) {
    path = info.dli_fname;
    const size_t slash = path.rfind('/');
    path = (slash == std::string::npos ? std::string() : path.substr(0, slash + 1)) + "libmillrace.so";
  }
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) throw std::runtime_error(std::string("cannot load the library of Millrace: ") + dlerror());
  auto get = reinterpret_cast<const MR_Api* (*)()>(dlsym(handle, "MR_GetApi"));
  if (get == nullptr) throw std::runtime_error(path + " is not the library of Millrace");
  const MR_Api* api = get();
  if (api->struct_size < sizeof(MR_Api)) {
    throw std::runtime_error(path + " is older than this package: version " + api->MillraceVersion());
  }
  return api;
}

}  // namespace

const MR_Api& Api() {
  static const MR_Api* const api = Load();
  return *api;
}

CallStatus::CallStatus() : status_(Api().NewStatus()) {}
CallStatus::~CallStatus() { Api().DeleteStatus(status_); }
bool CallStatus::ok() const { return Api().GetCode(status_) == TF_OK; }
TF_Code CallStatus::code() const { return Api().GetCode(status_); }
const char* CallStatus::message() const { return Api().Message(status_); }

void CallStatus::RaiseIfError(nb::handle graph) const {
  if (ok()) return;
  registry().raise_error(static_cast<int>(code()), std::string(message()), false, graph);
  throw std::runtime_error(message());
}

void CallStatus::RaiseBuildError() const {
  if (!ok()) RaiseBuildError(message());
}

void CallStatus::RaiseBuildError(const std::string& text) const {
  registry().raise_error(static_cast<int>(code()), text, true, nb::none());
  throw std::runtime_error(text);
}

Registry& registry() {
  static Registry* const r = new Registry;
  return *r;
}

}  // namespace millrace::python
