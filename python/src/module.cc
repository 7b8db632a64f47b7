// SPDX-License-Identifier: Apache-2.0
// The extension module millrace._core.
#include "core.h"

NB_MODULE(_core, m) {
  using namespace millrace::python;
  if (!InitNumpy()) throw nb::python_error();
  nb::set_leak_warnings(false);
  m.def("version", []() { return Api().MillraceVersion(); });
  DefineGraph(m);
  DefineOps(m);
  DefineSession(m);
  DefineTraining(m);
  DefineFiles(m);
  DefineControlFlow(m);
  DefineOldNumpy(m);
  DefineCallbacks(m);
  DefineLibraries(m);
  DefineServer(m);
}
