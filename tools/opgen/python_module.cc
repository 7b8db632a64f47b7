// SPDX-License-Identifier: Apache-2.0
#include "python_module.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "schema_text.h"

namespace millrace::opgen {
namespace {

constexpr const char* kHead = R"(# SPDX-License-Identifier: Apache-2.0
"""One function for every op and composite, written by opgen from their declarations."""
from millrace._core import Op as _Op
from millrace.framework import dtypes as _dtypes
)";

// Programs of TensorFlow 1.x call functions for ops that had no public name, such as _relu_grad.
constexpr const char* kTail = R"(
def __getattr__(name):
    """A function with a `_` before its name, as TensorFlow had it."""
    if name.startswith("_") and not name.startswith("__") and name[1:] in globals():
        return globals()[name[1:]]
    raise AttributeError("module 'gen_ops' has no function %r" % name)
)";

constexpr const char* kStubHead = R"(# SPDX-License-Identifier: Apache-2.0
# Written by opgen from the declarations of ops.
from typing import Any, List, NamedTuple, Optional, Sequence, Union

from millrace.framework.graph import Operation, Tensor
from millrace.framework.types import DTypeLike, ShapeLike, TensorLike
)";

const std::set<std::string>& Keywords() {
  static const auto* words = new std::set<std::string>(absl::StrSplit(
      "False None True and as assert async await break class continue def del elif else except finally for from global "
      "if import in is lambda nonlocal not or pass raise return try while with yield name print exec",
      ' '));
  return *words;
}

// MatMul -> mat_mul, TopKV2 -> top_kv2, Conv2DBackpropInput -> conv2d_backprop_input.
std::string SnakeCase(const std::string& name) {
  std::string out;
  for (size_t i = 0; i < name.size(); ++i) {
    const auto at = [&](size_t k) { return static_cast<unsigned char>(name[k]); };
    if (std::isupper(at(i)) && i > 0 && (std::islower(at(i - 1)) || (i + 1 < name.size() && std::islower(at(i + 1))))) {
      out += '_';
    }
    out += static_cast<char>(std::tolower(at(i)));
  }
  return out;
}

std::string Identifier(const std::string& name) { return Keywords().count(name) > 0 ? name + "_" : name; }

std::string FunctionName(const OpDef& op) {
  const std::string name = SnakeCase(op.name);
  return Keywords().count(name) > 0 ? "_" + name : name;
}

std::string TypeCode(DType t) { return absl::StrCat(static_cast<int>(t)); }

std::string ArgCode(const ArgDef& a) {
  std::string type = a.type_attr.empty() ? TypeCode(a.type) : a.type_attr;
  if (a.is_ref) type = "&" + type;
  if (!a.number_attr.empty()) type = a.number_attr + "*" + type;
  if (!a.type_list_attr.empty()) type = "[" + a.type_list_attr + "]";
  return a.name + ":" + type;
}

std::string AttrCode(const AttrDef& a) {
  static const char kCodes[] = "sifbthnu";  // in the order of Kinds below
  static const AttrKind kKinds[] = {AttrKind::kString, AttrKind::kInt,   AttrKind::kFloat,  AttrKind::kBool,
                                    AttrKind::kType,   AttrKind::kShape, AttrKind::kTensor, AttrKind::kFunc};
  std::string code = a.name + ":";
  for (size_t i = 0; i < 8; ++i) {
    if (kKinds[i] == a.kind) code += kCodes[i];
  }
  if (a.is_list) code += "*";
  if (a.kind == AttrKind::kType && !a.is_list && a.has_default) {
    if (const auto* type = std::get_if<DType>(&a.default_value.storage())) {
      code += "=" + TypeCode(*type);
      for (const DType allowed : a.allowed_types) code += "|" + TypeCode(allowed);
    }
  }
  return code;
}

template <typename List, typename Function>
std::string Join(const List& list, Function&& text) {
  std::vector<std::string> pieces;
  for (const auto& item : list) pieces.push_back(text(item));
  return absl::StrJoin(pieces, " ");
}

bool InputsDetermine(const OpDef& op, const std::string& attr) {
  return std::any_of(op.inputs.begin(), op.inputs.end(), [&](const ArgDef& a) {
    return a.type_attr == attr || a.number_attr == attr || a.type_list_attr == attr;
  });
}

bool IsList(const ArgDef& a) { return !a.number_attr.empty() || !a.type_list_attr.empty(); }

std::string Quoted(const std::string& text) {
  return "\"" + absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"\"", "\\\""}, {"\n", "\\n"}}) + "\"";
}

// A default as Python writes it.
struct Literal {
  std::string operator()(const std::string& s) const { return Quoted(s); }
  std::string operator()(int64_t i) const { return absl::StrCat(i); }
  std::string operator()(float f) const {
    AttrDef attr;
    attr.kind = AttrKind::kFloat;
    attr.has_default = true;
    attr.default_value = f;
    const std::string text = AttrText(attr, OpDef());
    const std::string number = text.substr(text.find('=') + 1);
    return f - f != 0 ? "float(\"" + number + "\")" : number;
  }
  std::string operator()(bool b) const { return b ? "True" : "False"; }
  std::string operator()(DType t) const { return absl::StrCat("_dtypes.from_number(", static_cast<int>(t), ")"); }
  std::string operator()(const PartialShape& s) const {
    if (!s.has_rank()) return "None";
    return s.rank() == 0 ? "()" : absl::StrCat("(", absl::StrJoin(s.dims(), ", "), ",)");
  }
  std::string operator()(const FuncAttr& f) const { return f.name.empty() ? "None" : Quoted(f.name); }
  std::string operator()(const Tensor&) const { return "None"; }
  std::string operator()(const EmptyListAttr&) const { return "()"; }
  std::string operator()(const PlaceholderAttr&) const { return "None"; }
  template <typename T>
  std::string operator()(const std::vector<T>& list) const {
    std::string text = "(";
    for (const T& v : list) absl::StrAppend(&text, (*this)(v), ",", list.size() > 1 ? " " : "");
    return list.size() > 1 ? text.substr(0, text.size() - 2) + ")" : text + ")";
  }
};

std::string AttrType(const AttrDef& a) {
  std::string type = "Any";
  switch (a.kind) {
    case AttrKind::kString: type = "Union[str, bytes]"; break;
    case AttrKind::kInt: type = "int"; break;
    case AttrKind::kFloat: type = "float"; break;
    case AttrKind::kBool: type = "bool"; break;
    case AttrKind::kType: type = "DTypeLike"; break;
    case AttrKind::kShape: type = "ShapeLike"; break;
    case AttrKind::kTensor:
    case AttrKind::kFunc: break;
  }
  return a.is_list ? "Sequence[" + type + "]" : type;
}

std::string Comment(const std::string& text, const std::string& indent) {
  std::string out, line = indent;
  for (absl::string_view word : absl::StrSplit(text, absl::ByAnyChar(" \n\t"), absl::SkipEmpty())) {
    if (line.size() + word.size() > 98 && line.size() > indent.size()) {
      out += line + "\n";
      line = indent;
    }
    absl::StrAppend(&line, line.size() > indent.size() ? " " : "", word);
  }
  return out + line + "\n";
}

std::string DocString(const OpDef& op) {
  std::string doc = absl::StrReplaceAll(op.doc, {{"\\", "\\\\"}, {"\"\"\"", "'''"}});
  if (doc.empty()) doc = "The op " + op.name + ".";
  std::string body = Comment(doc, "    ");
  body.erase(0, 4);
  const std::string schema =
      absl::StrCat("    ", absl::StrReplaceAll(SchemaText(op), {{"\\", "\\\\"}, {"\"\"\"", "'''"}}), "\n");
  return absl::StrCat("    \"\"\"", body, "\n", schema, "    \"\"\"\n");
}

class Function {
 public:
  Function(const OpDef& op, bool composite) : op_(op), composite_(composite) {
    for (const AttrDef& a : op.attrs) {
      if (InputsDetermine(op, a.name) || a.name[0] == '_') continue;
      (a.has_default ? optional_ : required_).push_back(&a);
    }
  }

  std::string Text() const {
    std::vector<std::string> parameters, inputs, attrs;
    for (const ArgDef& a : op_.inputs) parameters.push_back(Identifier(a.name));
    for (const ArgDef& a : op_.inputs) inputs.push_back(Identifier(a.name));
    for (const AttrDef* a : required_) parameters.push_back(Identifier(a->name));
    for (const AttrDef* a : optional_) {
      parameters.push_back(absl::StrCat(Identifier(a->name), "=", std::visit(Literal(), a->default_value.storage())));
    }
    parameters.push_back("name=None");
    for (const AttrDef& a : op_.attrs) {
      attrs.push_back(InputsDetermine(op_, a.name) || a.name[0] == '_' ? "None" : Identifier(a.name));
    }
    return absl::StrCat(
        "\n_", op_.name, " = _Op(", Quoted(op_.name), ", ", Quoted(Join(op_.inputs, ArgCode)), ", ",
        Quoted(Join(op_.outputs, ArgCode)), ", ", Quoted(Join(op_.attrs, AttrCode)), composite_ ? ", True" : "",
        ")\ndef ", FunctionName(op_), "(", absl::StrJoin(parameters, ", "), "):\n", DocString(op_), "    return _",
        op_.name, "(", Tuple(inputs), ", ", Tuple(attrs), ", name)\n");
  }

  std::string Stub() const {
    std::vector<std::string> parameters;
    for (const ArgDef& a : op_.inputs) {
      parameters.push_back(absl::StrCat(Identifier(a.name), ": ", IsList(a) ? "Sequence[TensorLike]" : "TensorLike"));
    }
    for (const AttrDef* a : required_) parameters.push_back(absl::StrCat(Identifier(a->name), ": ", AttrType(*a)));
    for (const AttrDef* a : optional_) {
      parameters.push_back(absl::StrCat(Identifier(a->name), ": Optional[", AttrType(*a), "] = ..."));
    }
    parameters.push_back("name: Optional[str] = ...");
    std::string result = "Operation", before;
    if (op_.outputs.size() == 1) {
      result = OutputType(op_.outputs[0]);
    } else if (op_.outputs.size() > 1) {
      result = absl::StrCat("_", op_.name, "Output");
      before = absl::StrCat("\nclass ", result, "(NamedTuple):\n");
      for (const ArgDef& a : op_.outputs) {
        const bool hides = a.name == "count" || a.name == "index";  // a method of tuples
        absl::StrAppend(&before, "    ", Identifier(a.name), ": ", OutputType(a),
                        hides ? "  # type: ignore[assignment]" : "", "\n");
      }
    }
    return absl::StrCat(
        before, "\ndef ", FunctionName(op_), "(", absl::StrJoin(parameters, ", "), ") -> ", result, ": ...\n");
  }

 private:
  static std::string OutputType(const ArgDef& a) { return IsList(a) ? "List[Tensor]" : "Tensor"; }
  static std::string Tuple(const std::vector<std::string>& items) {
    return absl::StrCat("(", absl::StrJoin(items, ", "), items.size() == 1 ? ",)" : ")");
  }

  const OpDef& op_;
  bool composite_;
  std::vector<const AttrDef*> required_, optional_;
};

template <typename Part>
std::string Module(const char* head, const std::vector<const OpDef*>& ops, const std::vector<const OpDef*>& composites,
                   Part&& part) {
  std::string text = head;
  std::set<std::string> names;
  for (const OpDef* op : ops) {
    if (op->name[0] == '_') continue;
    names.insert(FunctionName(*op));
    text += part(Function(*op, false));
  }
  for (const OpDef* op : composites) {
    if (names.count(FunctionName(*op)) == 0) text += part(Function(*op, true));
  }
  return text;
}

}  // namespace

std::string PythonModule(const std::vector<const OpDef*>& ops, const std::vector<const OpDef*>& composites) {
  return Module(kHead, ops, composites, [](const Function& f) { return f.Text(); }) + kTail;
}

std::string PythonStub(const std::vector<const OpDef*>& ops, const std::vector<const OpDef*>& composites) {
  return Module(kStubHead, ops, composites, [](const Function& f) { return f.Stub(); });
}

}  // namespace millrace::opgen
