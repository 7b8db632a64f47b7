// SPDX-License-Identifier: Apache-2.0
// NumPy arrays to tensors and back. Large arrays are handed over without a copy in both directions, where their memory
// is contiguous, aligned, and not shared.
#include <cstring>
#include <mutex>

#include "core.h"

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_1_23_API_VERSION
#include <numpy/arrayobject.h>

namespace millrace::python {
namespace {

constexpr size_t kCopyBelow = 4096;  // copying is cheaper than keeping track of who holds the array
constexpr uintptr_t kAlignment = 16;

// Arrays that the library let go of, maybe on a thread without the GIL.
std::mutex released_mutex;
std::vector<PyObject*>& Released() {
  static auto* list = new std::vector<PyObject*>;
  return *list;
}
bool any_released = false;

void Release(void*, size_t, void* array) {
  const std::lock_guard<std::mutex> lock(released_mutex);
  Released().push_back(static_cast<PyObject*>(array));
  any_released = true;
}

int NumpyType(TF_DataType type) {
  switch (type) {
    case TF_FLOAT: return NPY_FLOAT32;
    case TF_DOUBLE: return NPY_FLOAT64;
    case TF_INT32:
    case TF_QINT32: return NPY_INT32;
    case TF_UINT8:
    case TF_QUINT8: return NPY_UINT8;
    case TF_INT16:
    case TF_QINT16: return NPY_INT16;
    case TF_INT8:
    case TF_QINT8: return NPY_INT8;
    case TF_STRING: return NPY_OBJECT;
    case TF_COMPLEX64: return NPY_COMPLEX64;
    case TF_INT64: return NPY_INT64;
    case TF_BOOL: return NPY_BOOL;
    case TF_UINT16:
    case TF_QUINT16: return NPY_UINT16;
    case TF_COMPLEX128: return NPY_COMPLEX128;
    case TF_HALF: return NPY_FLOAT16;
    case TF_UINT32: return NPY_UINT32;
    case TF_UINT64: return NPY_UINT64;
    default: return -1;
  }
}

// A new reference. bfloat16 is ml_dtypes' type where that package is, else two raw bytes.
PyArray_Descr* Descr(TF_DataType type) {
  const int number = NumpyType(type);
  if (number >= 0) return PyArray_DescrFromType(number);
  if (type == TF_BFLOAT16) {
    nb::object dtype = nb::borrow(PyList_GetItem(registry().dtypes.ptr(), type)).attr("as_numpy_dtype");
    PyArray_Descr* descr = nullptr;
    if (PyArray_DescrConverter(dtype.ptr(), &descr) != 0) return descr;
    throw nb::python_error();
  }
  throw nb::type_error("A tensor of this type has no NumPy value.");
}

std::string DimsText(const npy_intp* dims, int rank) {
  std::string text = "(";
  for (int i = 0; i < rank; ++i) text += (i ? ", " : "") + (dims[i] < 0 ? std::string("?") : std::to_string(dims[i]));
  return text + (rank == 1 ? ",)" : ")");
}

// str, bytes and what NumPy makes of them, to an element of a string tensor.
void StoreString(PyObject* item, TF_TString* to, const std::string& what) {
  if (PyBytes_Check(item)) {
    Api().StringCopy(to, PyBytes_AS_STRING(item), static_cast<size_t>(PyBytes_GET_SIZE(item)));
    return;
  }
  nb::object text = nb::borrow(item);
  if (!PyUnicode_Check(item)) {
    throw nb::type_error(
        ("Expected strings for " + what + ", got an element of type " + Py_TYPE(item)->tp_name).c_str());
  }
  Py_ssize_t size = 0;
  const char* data = PyUnicode_AsUTF8AndSize(item, &size);
  if (data == nullptr) throw nb::python_error();
  Api().StringCopy(to, data, static_cast<size_t>(size));
}

TensorHolder StringTensor(PyArrayObject* array, const std::vector<int64_t>& shape, const std::string& what) {
  const size_t count = static_cast<size_t>(PyArray_SIZE(array));
  TensorHolder tensor(
      Api().AllocateTensor(TF_STRING, shape.data(), static_cast<int>(shape.size()), count * sizeof(TF_TString)));
  if (tensor.get() == nullptr) throw std::bad_alloc();
  auto* to = static_cast<TF_TString*>(Api().TensorData(tensor.get()));
  nb::object flat = nb::steal(PyArray_IterNew(reinterpret_cast<PyObject*>(array)));
  if (!flat.is_valid()) throw nb::python_error();
  auto* iterator = reinterpret_cast<PyArrayIterObject*>(flat.ptr());
  for (size_t i = 0; i < count; ++i) {
    nb::object item = nb::steal(PyArray_GETITEM(array, static_cast<char*>(PyArray_ITER_DATA(iterator))));
    if (!item.is_valid()) throw nb::python_error();
    StoreString(item.ptr(), to + i, what);
    PyArray_ITER_NEXT(iterator);
  }
  return tensor;
}

TensorHolder ScalarString(nb::handle value) {
  TensorHolder tensor(Api().AllocateTensor(TF_STRING, nullptr, 0, sizeof(TF_TString)));
  if (tensor.get() == nullptr) throw std::bad_alloc();
  StoreString(value.ptr(), static_cast<TF_TString*>(Api().TensorData(tensor.get())), "a string");
  return tensor;
}

// An array of the wanted type, contiguous.
nb::object ToArray(nb::handle value, TF_DataType type, const std::string& what) {
  const int number = NumpyType(type);
  if (PyArray_Check(value.ptr())) {
    auto* array = reinterpret_cast<PyArrayObject*>(value.ptr());
    if (number >= 0 && PyArray_TYPE(array) == number && PyArray_IS_C_CONTIGUOUS(array) && PyArray_ISNOTSWAPPED(array)) {
      return nb::borrow(value);
    }
  } else if (!PyList_Check(value.ptr()) && !PyTuple_Check(value.ptr()) && !PyNumber_Check(value.ptr()) &&
             PyObject_HasAttrString(value.ptr(), "__dlpack__") == 1) {
    nb::object taken = nb::module_::import_("numpy").attr("from_dlpack")(value);
    return ToArray(taken, type, what);
  }
  if (type == TF_STRING) {
    if (PyArray_Check(value.ptr())) return nb::borrow(value);
    // As objects: NumPy's own string types drop trailing NUL bytes.
    nb::object array = nb::steal(PyArray_FromAny(value.ptr(), PyArray_DescrFromType(NPY_OBJECT), 0, 0, 0, nullptr));
    if (!array.is_valid()) throw nb::python_error();
    return array;
  }
  if (type == TF_BFLOAT16) {
    return nb::module_::import_("millrace.framework.numpy_cast")
        .attr("cast")(nb::borrow(value), nb::borrow(PyList_GetItem(registry().dtypes.ptr(), type)));
  }
  nb::object array = nb::steal(PyArray_FromAny(
      value.ptr(), Descr(type), 0, 0,
      NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_FORCECAST | NPY_ARRAY_NOTSWAPPED | NPY_ARRAY_ENSUREARRAY, nullptr));
  if (!array.is_valid()) throw nb::python_error();
  return array;
}

// The values of a contiguous array of the right type. `may_keep`: the memory of a large one becomes the tensor's.
TensorHolder ArrayTensor(nb::object object, TF_DataType type, bool may_keep) {
  auto* array = reinterpret_cast<PyArrayObject*>(object.ptr());
  const int rank = PyArray_NDIM(array);
  const std::vector<int64_t> shape(PyArray_DIMS(array), PyArray_DIMS(array) + rank);
  const size_t bytes = static_cast<size_t>(PyArray_NBYTES(array));
  void* data = PyArray_DATA(array);
  if (may_keep && bytes >= kCopyBelow && reinterpret_cast<uintptr_t>(data) % kAlignment == 0) {
    TensorHolder tensor(Api().NewTensor(type, shape.data(), rank, data, bytes, &Release, object.ptr()));
    if (tensor.get() == nullptr) throw std::bad_alloc();
    object.release();
    return tensor;
  }
  TensorHolder tensor(Api().AllocateTensor(type, shape.data(), rank, bytes));
  if (tensor.get() == nullptr) throw std::bad_alloc();
  if (bytes > 0) std::memcpy(Api().TensorData(tensor.get()), data, bytes);
  return tensor;
}

}  // namespace

void DrainReleased() {
  if (!any_released) return;
  std::vector<PyObject*> list;
  {
    const std::lock_guard<std::mutex> lock(released_mutex);
    list.swap(Released());
    any_released = false;
  }
  for (PyObject* o : list) Py_DECREF(o);
}

TensorHolder ToTensor(nb::handle value, TF_DataType type, const std::string& what, const std::vector<int64_t>* dims) {
  if (type == TF_STRING && (PyBytes_Check(value.ptr()) || PyUnicode_Check(value.ptr()))) {
    if (dims && !dims->empty()) {
      throw nb::value_error(
          ("Cannot feed value of shape () for " + what + ", which has rank " + std::to_string(dims->size())).c_str());
    }
    return ScalarString(value);
  }
  nb::object object = ToArray(value, type, what);
  auto* array = reinterpret_cast<PyArrayObject*>(object.ptr());
  const int rank = PyArray_NDIM(array);
  const npy_intp* sizes = PyArray_DIMS(array);
  if (dims != nullptr) {
    bool fits = static_cast<size_t>(rank) == dims->size();
    for (int i = 0; fits && i < rank; ++i) {
      const int64_t wanted = (*dims)[static_cast<size_t>(i)];
      fits = wanted < 0 || wanted == sizes[i];
    }
    if (!fits) {
      std::vector<npy_intp> wanted(dims->begin(), dims->end());
      throw nb::value_error(("Cannot feed value of shape " + DimsText(sizes, rank) + " for " + what +
                             ", which has shape '" + DimsText(wanted.data(), static_cast<int>(wanted.size())) + "'")
                                .c_str());
    }
  }
  if (type == TF_STRING) return StringTensor(array, std::vector<int64_t>(sizes, sizes + rank), what);
  return ArrayTensor(std::move(object), type, /*may_keep=*/true);
}

TensorHolder ToTensor(nb::object&& value, TF_DataType type) {
  if (type == TF_STRING) return ToTensor(value, type, "a string", nullptr);
  const nb::object given = std::move(value);
  nb::object object = ToArray(given, type, "a result");
  const bool alone = Py_REFCNT(object.ptr()) == (object.is(given) ? 2 : 1) &&
                     PyArray_CHKFLAGS(reinterpret_cast<PyArrayObject*>(object.ptr()), NPY_ARRAY_OWNDATA);
  return ArrayTensor(std::move(object), type, alone);
}

namespace {

nb::object StringsOf(TF_Tensor* tensor, int rank, const npy_intp* dims) {
  const auto* from = static_cast<const TF_TString*>(Api().TensorData(tensor));
  const auto bytes = [&](int64_t i) {
    return nb::steal(PyBytes_FromStringAndSize(
        Api().StringGetDataPointer(from + i), static_cast<Py_ssize_t>(Api().StringGetSize(from + i))));
  };
  if (rank == 0) return bytes(0);
  nb::object array = nb::steal(PyArray_SimpleNew(rank, dims, NPY_OBJECT));
  if (!array.is_valid()) throw nb::python_error();
  auto** to = static_cast<PyObject**>(PyArray_DATA(reinterpret_cast<PyArrayObject*>(array.ptr())));
  const int64_t count = Api().TensorElementCount(tensor);
  for (int64_t i = 0; i < count; ++i) {
    PyObject* old = to[i];
    to[i] = bytes(i).release().ptr();
    Py_XDECREF(old);
  }
  return array;
}

}  // namespace

nb::object FromTensor(TF_Tensor* raw) {
  TensorHolder tensor(raw);
  const TF_DataType type = Api().TensorType(raw);
  const int rank = Api().NumDims(raw);
  npy_intp dims[64];
  if (rank > 64) throw nb::value_error("NumPy arrays have at most 64 dimensions.");
  for (int i = 0; i < rank; ++i) dims[i] = Api().Dim(raw, i);
  if (type == TF_STRING) return StringsOf(raw, rank, dims);
  PyArray_Descr* descr = Descr(type);
  const size_t bytes = Api().TensorByteSize(raw);
  if (rank == 0) {
    nb::object scalar = nb::steal(PyArray_Scalar(Api().TensorData(raw), descr, nullptr));
    Py_DECREF(descr);
    if (!scalar.is_valid()) throw nb::python_error();
    return scalar;
  }
  if (bytes >= kCopyBelow) {
    // Memory that nobody else holds becomes the array's; a variable's, or a fed array's, is copied.
    if (TF_Tensor* own = Api().TensorMaybeMove(raw)) {
      tensor.release();
      nb::capsule owner(own, [](void* t) noexcept { Api().DeleteTensor(static_cast<TF_Tensor*>(t)); });
      nb::object array = nb::steal(PyArray_NewFromDescr(
          &PyArray_Type, descr, rank, dims, nullptr, Api().TensorData(own), NPY_ARRAY_CARRAY, nullptr));
      if (!array.is_valid()) throw nb::python_error();
      PyArray_SetBaseObject(reinterpret_cast<PyArrayObject*>(array.ptr()), owner.release().ptr());
      return array;
    }
  }
  nb::object array = nb::steal(PyArray_NewFromDescr(&PyArray_Type, descr, rank, dims, nullptr, nullptr, 0, nullptr));
  if (!array.is_valid()) throw nb::python_error();
  if (bytes > 0) {
    std::memcpy(PyArray_DATA(reinterpret_cast<PyArrayObject*>(array.ptr())), Api().TensorData(raw), bytes);
  }
  return array;
}

bool InitNumpy() {
  import_array1(false);
  return true;
}

}  // namespace millrace::python
