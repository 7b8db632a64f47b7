// SPDX-License-Identifier: Apache-2.0
// Shared libraries that add ops and kernels.
#include <nanobind/stl/optional.h>

#include <optional>

#include "core.h"

namespace millrace::python {
namespace {

// Opens the library; the ops that it adds, as an encoded OpList.
nb::bytes LoadLibrary(const std::string& path) {
  CallStatus status;
  TF_Library* library = nullptr;
  {
    const GilRelease release;
    library = Api().LoadLibrary(path.c_str(), status);
  }
  status.RaiseIfError();
  const TF_Buffer ops = Api().GetOpList(library);
  nb::bytes encoded(static_cast<const char*>(ops.data), ops.length);
  Api().DeleteLibraryHandle(library);
  return encoded;
}

// The kernels of an op, or of all, as an encoded KernelList.
nb::bytes RegisteredKernels(const std::optional<std::string>& op) {
  CallStatus status;
  TF_Buffer* found = op ? Api().GetRegisteredKernelsForOp(op->c_str(), status) : Api().GetAllRegisteredKernels(status);
  status.RaiseIfError();
  nb::bytes encoded(static_cast<const char*>(found->data), found->length);
  Api().DeleteBuffer(found);
  return encoded;
}

std::string SettingsTable() {
  static const auto table = reinterpret_cast<decltype(&MR_SettingsTable)>(LibraryFunction("MR_SettingsTable"));
  CallBuffer text;
  CallStatus status;
  table(text, status);
  status.RaiseIfError();
  return std::string(text.view());
}

}  // namespace

void DefineLibraries(nb::module_& m) {
  m.def("load_library", &LoadLibrary, nb::arg("path"));
  m.def("registered_kernels", &RegisteredKernels, nb::arg("op").none() = nb::none());
  m.def("settings_table", &SettingsTable);
}

}  // namespace millrace::python
