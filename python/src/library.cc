// SPDX-License-Identifier: Apache-2.0
// Shared libraries that add ops and kernels.
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
  m.def("settings_table", &SettingsTable);
}

}  // namespace millrace::python
