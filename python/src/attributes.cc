// SPDX-License-Identifier: Apache-2.0
#include "attributes.h"

#include <cmath>

namespace millrace::python {
namespace {

class Setter {
 public:
  Setter(TF_OperationDescription* desc, const std::string& op) : desc_(desc), op_(op) {}

  void Set(const AttrSpec& a, nb::handle value) {
    if (value.is_none()) {
      if (a.kind == 'h' && !a.is_list) Api().SetAttrShape(desc_, a.name.c_str(), nullptr, -1);
      return;  // the default, or what the inputs determine
    }
    const char* name = a.name.c_str();
    if (a.is_list) return SetList(a, value);
    switch (a.kind) {
      case 's': {
        const std::string text = Text(a, value);
        return Api().SetAttrString(desc_, name, text.data(), text.size());
      }
      case 'u': {
        const std::string text = FunctionName(a, value);
        return Api().SetAttrFuncName(desc_, name, text.data(), text.size());
      }
      case 'i': return Api().SetAttrInt(desc_, name, Integer(a, value));
      case 'f': return Api().SetAttrFloat(desc_, name, Float(a, value));
      case 'b': return Api().SetAttrBool(desc_, name, Bool(a, value));
      case 't': return Api().SetAttrType(desc_, name, static_cast<TF_DataType>(TypeNumber(value)));
      case 'h': {
        std::vector<int64_t> dims;
        if (!Dims(value, &dims)) return Api().SetAttrShape(desc_, name, nullptr, -1);
        return Api().SetAttrShape(desc_, name, dims.data(), static_cast<int>(dims.size()));
      }
      default: {
        const int type = TypeNumber(value.attr("dtype"));
        const TensorHolder tensor = ToTensor(value, static_cast<TF_DataType>(type), a.name, nullptr);
        CallStatus status;
        Api().SetAttrTensor(desc_, name, tensor.get(), status);
        return status.RaiseBuildError();
      }
    }
  }

 private:
  [[noreturn]] void BadAttr(const AttrSpec& a, const char* wanted, nb::handle value) const {
    PyErr_Clear();
    if (std::string(wanted) == "a list") {  // as TensorFlow says it
      RaiseTypeError("Expected list for '" + a.name + "' argument to '" + op_ + "' Op, not " + ShortRepr(value) + ".");
    }
    RaiseTypeError("Expected " + std::string(wanted) + " for argument '" + a.name + "' of '" + op_ + "' Op, not " +
                   ShortRepr(value) + ".");
  }

  std::string Text(const AttrSpec& a, nb::handle value) const {
    if (PyBytes_Check(value.ptr()))
      return {PyBytes_AS_STRING(value.ptr()), static_cast<size_t>(PyBytes_GET_SIZE(value.ptr()))};
    if (PyUnicode_Check(value.ptr())) {
      Py_ssize_t size = 0;
      const char* text = PyUnicode_AsUTF8AndSize(value.ptr(), &size);
      if (text) return {text, static_cast<size_t>(size)};
    }
    BadAttr(a, "a string", value);
  }

  std::string FunctionName(const AttrSpec& a, nb::handle value) const {
    return IsFunctionObject(value) ? Text(a, value.attr("name")) : Text(a, value);
  }

  int64_t Integer(const AttrSpec& a, nb::handle value) const {
    nb::object index = nb::steal(PyNumber_Index(value.ptr()));
    if (!index.is_valid()) {
      PyErr_Clear();
      const double d = PyFloat_AsDouble(value.ptr());  // 2.0 is taken, as TensorFlow does for NumPy's numbers
      if (PyErr_Occurred() || std::floor(d) != d || !(std::fabs(d) < 9e18)) BadAttr(a, "int", value);
      return static_cast<int64_t>(d);
    }
    const int64_t i = PyLong_AsLongLong(index.ptr());
    if (i == -1 && PyErr_Occurred()) BadAttr(a, "int", value);
    return i;
  }

  float Float(const AttrSpec& a, nb::handle value) const {
    const double d = PyFloat_AsDouble(value.ptr());
    if (d == -1.0 && PyErr_Occurred()) BadAttr(a, "float", value);
    return static_cast<float>(d);
  }

  bool Bool(const AttrSpec& a, nb::handle value) const {
    const int truth = PyObject_IsTrue(value.ptr());
    if (truth < 0) BadAttr(a, "bool", value);
    return truth != 0;
  }

  // False: unknown rank.
  bool Dims(nb::handle value, std::vector<int64_t>* dims) const {
    nb::object list = registry().shape_list(value);
    if (list.is_none()) return false;
    *dims = nb::cast<std::vector<int64_t>>(list);
    return true;
  }

  void SetList(const AttrSpec& a, nb::handle value) {
    if (PyUnicode_Check(value.ptr()) || PyBytes_Check(value.ptr())) BadAttr(a, "a list", value);
    nb::object list = nb::steal(PySequence_List(value.ptr()));
    if (!list.is_valid()) BadAttr(a, "a list", value);
    const char* name = a.name.c_str();
    const int size = static_cast<int>(PyList_GET_SIZE(list.ptr()));
    const auto at = [&](int i) { return nb::handle(PyList_GET_ITEM(list.ptr(), i)); };
    if (a.kind == 'i') {
      std::vector<int64_t> v;
      for (int i = 0; i < size; ++i) v.push_back(Integer(a, at(i)));
      Api().SetAttrIntList(desc_, name, v.data(), size);
    } else if (a.kind == 'f') {
      std::vector<float> v;
      for (int i = 0; i < size; ++i) v.push_back(Float(a, at(i)));
      Api().SetAttrFloatList(desc_, name, v.data(), size);
    } else if (a.kind == 'b') {
      std::vector<unsigned char> v;
      for (int i = 0; i < size; ++i) v.push_back(Bool(a, at(i)));
      Api().SetAttrBoolList(desc_, name, v.data(), size);
    } else if (a.kind == 't') {
      std::vector<TF_DataType> v;
      for (int i = 0; i < size; ++i) v.push_back(static_cast<TF_DataType>(TypeNumber(at(i))));
      Api().SetAttrTypeList(desc_, name, v.data(), size);
    } else if (a.kind == 's') {
      std::vector<std::string> texts;
      for (int i = 0; i < size; ++i) texts.push_back(Text(a, at(i)));
      std::vector<const void*> data;
      std::vector<size_t> lengths;
      for (const std::string& t : texts) {
        data.push_back(t.data());
        lengths.push_back(t.size());
      }
      Api().SetAttrStringList(desc_, name, data.data(), lengths.data(), size);
    } else if (a.kind == 'h') {
      std::vector<std::vector<int64_t>> shapes(static_cast<size_t>(size));
      std::vector<const int64_t*> dims;
      std::vector<int> ranks;
      for (int i = 0; i < size; ++i) {
        std::vector<int64_t>& s = shapes[static_cast<size_t>(i)];
        ranks.push_back(Dims(at(i), &s) ? static_cast<int>(s.size()) : -1);
      }
      for (const std::vector<int64_t>& s : shapes) dims.push_back(s.data());
      Api().SetAttrShapeList(desc_, name, dims.data(), ranks.data(), size);
    } else if (a.kind == 'u') {
      std::string functions;
      for (int i = 0; i < size; ++i) functions += Field(9, Field(1, FunctionName(a, at(i))));  // each a NameAttrList
      const std::string bytes = Field(1, functions);  // the list of an AttrValue
      CallStatus status;
      Api().SetAttrValueProto(desc_, name, bytes.data(), bytes.size(), status);
      return status.RaiseBuildError();
    } else {
      BadAttr(a, "a kind of list that can be given", value);
    }
  }

  // A field of bytes of a message.
  static std::string Field(int number, const std::string& content) {
    std::string field(1, static_cast<char>(number << 3 | 2));
    for (size_t n = content.size();; n >>= 7) {
      field.push_back(static_cast<char>((n & 0x7f) | (n > 0x7f ? 0x80 : 0)));
      if (n <= 0x7f) break;
    }
    return field + content;
  }

  TF_OperationDescription* desc_;
  const std::string& op_;
};

}  // namespace

std::string ShortRepr(nb::handle value) {
  nb::object text = nb::steal(PyObject_Repr(value.ptr()));
  if (!text.is_valid()) {
    PyErr_Clear();
    return "<value>";
  }
  std::string s = nb::cast<std::string>(text);
  if (s.size() > 80) s = s.substr(0, 77) + "...";
  return s;
}

void RaiseTypeError(const std::string& message) { throw nb::type_error(AtUserLine(message).c_str()); }

bool IsFunctionObject(nb::handle value) { return !PyUnicode_Check(value.ptr()) && nb::hasattr(value, "add_to_graph"); }

int TypeNumber(nb::handle dtype) { return nb::cast<int>(registry().dtype_number(dtype)); }

void SetAttr(TF_OperationDescription* desc, const std::string& op, const AttrSpec& a, nb::handle value) {
  Setter(desc, op).Set(a, value);
}

}  // namespace millrace::python
