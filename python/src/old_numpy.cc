// SPDX-License-Identifier: Apache-2.0
// For programs older than NumPy 2.4: an array of one element and any number of dimensions is a number again, for
// float(), int() and %, and as a count or an index (before NumPy 1.12). The slots of the type are changed, so only the
// runner of old programs asks for it.
#include "core.h"

namespace millrace::python {
namespace {

unaryfunc g_float = nullptr, g_int = nullptr, g_index = nullptr;

PyObject* Convert(PyObject* array, unaryfunc original, PyObject* (*convert)(PyObject*)) {
  PyObject* item = PyObject_CallMethod(array, "item", nullptr);
  if (item == nullptr) {  // more than one element: the error is NumPy's
    PyErr_Clear();
    return original(array);
  }
  PyObject* number = convert(item);
  Py_DECREF(item);
  return number;
}

PyObject* ToFloat(PyObject* array) { return Convert(array, g_float, PyNumber_Float); }
PyObject* ToInt(PyObject* array) { return Convert(array, g_int, PyNumber_Long); }
PyObject* ToIndex(PyObject* array) { return Convert(array, g_index, PyNumber_Index); }

void ConvertArraysOfOneElement() {
  if (g_float != nullptr) return;
  nb::object type = nb::module_::import_("numpy").attr("ndarray");
  PyNumberMethods* slots = reinterpret_cast<PyTypeObject*>(type.ptr())->tp_as_number;
  if (slots == nullptr || slots->nb_float == nullptr || slots->nb_int == nullptr || slots->nb_index == nullptr) {
    return;
  }
  g_float = std::exchange(slots->nb_float, ToFloat);
  g_int = std::exchange(slots->nb_int, ToInt);
  g_index = std::exchange(slots->nb_index, ToIndex);
  PyType_Modified(reinterpret_cast<PyTypeObject*>(type.ptr()));
}

}  // namespace

void DefineOldNumpy(nb::module_& m) { m.def("convert_arrays_of_one_element", &ConvertArraysOfOneElement); }

}  // namespace millrace::python
