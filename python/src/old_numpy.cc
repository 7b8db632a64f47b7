// SPDX-License-Identifier: Apache-2.0
// For programs older than today's NumPy: an array of one element and any number of dimensions is a number again, for
// float(), int() and %, and as a count or an index (before NumPy 1.12); a list with slices in it is an index of that
// many dimensions (before 1.23); an array of no elements is false (before 2.2). The slots of the type are changed, so
// only the runner of old programs asks for it.
#include "core.h"

namespace millrace::python {
namespace {

unaryfunc g_float = nullptr, g_int = nullptr, g_index = nullptr;
inquiry g_bool = nullptr;
binaryfunc g_subscript = nullptr;
objobjargproc g_assign = nullptr;

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

int ToBool(PyObject* array) {
  PyObject* size = PyObject_GetAttrString(array, "size");
  if (size == nullptr) return -1;
  const int some = PyObject_IsTrue(size);
  Py_DECREF(size);
  return some == 1 ? g_bool(array) : some;
}

// A tuple of what is in a list that holds a slice, `...` or None; other keys as they are. A new reference, null on
// errors.
PyObject* ExactKey(PyObject* key) {
  if (PyList_Check(key)) {
    for (Py_ssize_t i = 0; i < PyList_Size(key); ++i) {
      PyObject* part = PyList_GetItem(key, i);
      if (PySlice_Check(part) || part == Py_Ellipsis || part == Py_None) return PyList_AsTuple(key);
    }
  }
  Py_INCREF(key);
  return key;
}

PyObject* Subscript(PyObject* array, PyObject* key) {
  PyObject* used = ExactKey(key);
  if (used == nullptr) return nullptr;
  PyObject* found = g_subscript(array, used);
  Py_DECREF(used);
  return found;
}

int Assign(PyObject* array, PyObject* key, PyObject* value) {
  PyObject* used = ExactKey(key);
  if (used == nullptr) return -1;
  const int result = g_assign(array, used, value);
  Py_DECREF(used);
  return result;
}

void RestoreOldNumpy() {
  if (g_float != nullptr) return;
  nb::object type = nb::module_::import_("numpy").attr("ndarray");
  PyNumberMethods* slots = reinterpret_cast<PyTypeObject*>(type.ptr())->tp_as_number;
  PyMappingMethods* mapping = reinterpret_cast<PyTypeObject*>(type.ptr())->tp_as_mapping;
  if (slots == nullptr || slots->nb_float == nullptr || slots->nb_int == nullptr || slots->nb_index == nullptr ||
      slots->nb_bool == nullptr || mapping == nullptr || mapping->mp_subscript == nullptr ||
      mapping->mp_ass_subscript == nullptr) {
    return;
  }
  g_bool = std::exchange(slots->nb_bool, ToBool);
  g_subscript = std::exchange(mapping->mp_subscript, Subscript);
  g_assign = std::exchange(mapping->mp_ass_subscript, Assign);
  g_float = std::exchange(slots->nb_float, ToFloat);
  g_int = std::exchange(slots->nb_int, ToInt);
  g_index = std::exchange(slots->nb_index, ToIndex);
  PyType_Modified(reinterpret_cast<PyTypeObject*>(type.ptr()));
}

}  // namespace

void DefineOldNumpy(nb::module_& m) { m.def("restore_old_numpy", &RestoreOldNumpy); }

}  // namespace millrace::python
