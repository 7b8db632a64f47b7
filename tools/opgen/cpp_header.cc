// SPDX-License-Identifier: Apache-2.0
#include "cpp_header.h"

#include <algorithm>
#include <set>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "schema_text.h"

namespace millrace::opgen {
namespace {

constexpr const char* kHead = R"(// SPDX-License-Identifier: Apache-2.0
// Typed functions for every op and composite, written by opgen from their declarations; over scope.Op, which takes any op
// by name. Inputs come first, then attributes that have no default, then the others in a struct:
//
//   namespace ops = millrace::ops;
//   auto y = ops::MatMul(scope, a, b, {.transpose_b = true});
//   auto [op, values, indices] = ops::TopKV2(scope.WithName("best"), y, 3, {.sorted = false});
//
// Attributes that the inputs determine are left out. A shape is a std::optional: std::nullopt is unknown rank.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "millrace/graph.h"

namespace millrace {
inline namespace MILLRACE_CLIENT {
namespace ops {

namespace detail {

inline Attr ShapeAttr(const std::optional<::millrace::Shape>& shape) {
  return shape ? Attr::OfShape(*shape) : Attr::UnknownShape();
}

// Hands out the outputs of one call in order; null ones after an error.
class Outputs {
 public:
  explicit Outputs(Operation op) : operation_(op) {
    for (int i = 0, n = op ? op.num_outputs() : 0; i < n; ++i) all_.push_back(op[i]);
  }
  explicit Outputs(std::vector<Output> all) : all_(std::move(all)) {}
  Operation operation() const { return operation_; }
  Output One() { return next_ < all_.size() ? all_[next_++] : Output(); }
  // All but the last `after`.
  std::vector<Output> AllBut(size_t after) { return Take(all_.size() > next_ + after ? all_.size() - next_ - after : 0); }
  std::vector<Output> List(const char* name) {
    if (!operation_) return {};
    ::millrace::internal::CallStatus status;
    const int n = Api().OperationOutputListLength(operation_.get(), name, status);
    return Take(n > 0 ? static_cast<size_t>(n) : 0);
  }

 private:
  std::vector<Output> Take(size_t count) {
    std::vector<Output> taken;
    for (; count > 0 && next_ < all_.size(); --count) taken.push_back(all_[next_++]);
    return taken;
  }
  Operation operation_;
  std::vector<Output> all_;
  size_t next_ = 0;
};

}  // namespace detail
)";

constexpr const char* kTail = R"(
}  // namespace ops
}  // namespace MILLRACE_CLIENT
}  // namespace millrace
)";

const std::set<std::string>& Keywords() {
  static const auto* words = new std::set<std::string>(absl::StrSplit(
      "alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t "
      "char32_t class compl concept const consteval constexpr constinit const_cast continue co_await "
      "co_return co_yield decltype default delete do double dynamic_cast else enum explicit export extern "
      "false float for friend goto if inline int long mutable namespace new noexcept not not_eq nullptr "
      "operator or or_eq private protected public register reinterpret_cast requires return short signed "
      "sizeof static static_assert static_cast struct switch template this thread_local throw true try "
      "typedef typeid typename union unsigned using virtual void volatile wchar_t while xor xor_eq NULL "
      "assert errno stdin stdout stderr linux unix",
      ' '));
  return *words;
}
// What the functions' own text refers to.
bool IsTaken(const std::string& name) {
  static const auto* names = new std::set<std::string>(
      {"Scope", "Input", "Output", "Operation", "Attr", "Attrs", "Api", "Tensor", "DType", "detail", "std",
       "millrace"});
  return names->count(name) > 0;
}

// Identifiers of one function's parameters or one struct's members.
class Names {
 public:
  explicit Names(std::set<std::string> used = {}) : used_(std::move(used)) {}
  std::string Add(std::string name) {
    while (Keywords().count(name) > 0 || IsTaken(name) || !used_.insert(name).second) name += "_";
    return name;
  }

 private:
  std::set<std::string> used_;
};

std::string FunctionName(const std::string& op) { return Names().Add(op); }

// How an attribute appears in C++.
struct CppAttr {
  const AttrDef* def = nullptr;
  std::string type, initial, parameter;
  bool wrapped = false;     // in std::optional<Attr>: nothing of its kind has a C++ type
  bool skip_empty = false;  // left out unless it holds something
};

std::string FloatLiteral(float v) {
  if (v != v) return "std::numeric_limits<float>::quiet_NaN()";
  if (v == std::numeric_limits<float>::infinity()) return "std::numeric_limits<float>::infinity()";
  if (v == -std::numeric_limits<float>::infinity()) return "-std::numeric_limits<float>::infinity()";
  AttrDef attr;
  attr.kind = AttrKind::kFloat;
  attr.has_default = true;
  attr.default_value = v;
  const std::string text = AttrText(attr, OpDef());
  return text.substr(text.find('=') + 1) + "f";
}

std::string TypeLiteral(DType t) {
  static const auto* names = new std::vector<std::pair<DType, const char*>>{
      {DType::kFloat, "kFloat"},     {DType::kDouble, "kDouble"},       {DType::kInt32, "kInt32"},
      {DType::kUInt8, "kUInt8"},     {DType::kInt16, "kInt16"},         {DType::kInt8, "kInt8"},
      {DType::kString, "kString"},   {DType::kComplex64, "kComplex64"}, {DType::kInt64, "kInt64"},
      {DType::kBool, "kBool"},       {DType::kQInt8, "kQInt8"},         {DType::kQUInt8, "kQUInt8"},
      {DType::kQInt32, "kQInt32"},   {DType::kBFloat16, "kBFloat16"},   {DType::kQInt16, "kQInt16"},
      {DType::kQUInt16, "kQUInt16"}, {DType::kUInt16, "kUInt16"},       {DType::kComplex128, "kComplex128"},
      {DType::kHalf, "kHalf"},       {DType::kResource, "kResource"},   {DType::kVariant, "kVariant"},
      {DType::kUInt32, "kUInt32"},   {DType::kUInt64, "kUInt64"}};
  for (const auto& [type, name] : *names) {
    if (type == t) return absl::StrCat("::millrace::DType::", name);
  }
  return absl::StrCat("static_cast<::millrace::DType>(", static_cast<int>(t), ")");
}

// A default as a C++ expression.
struct Literal {
  std::string operator()(const std::string& s) const { return absl::StrCat("\"", absl::CEscape(s), "\""); }
  std::string operator()(int64_t i) const {
    return i == std::numeric_limits<int64_t>::min() ? "std::numeric_limits<int64_t>::min()" : absl::StrCat(i);
  }
  std::string operator()(float f) const { return FloatLiteral(f); }
  std::string operator()(bool b) const { return b ? "true" : "false"; }
  std::string operator()(DType t) const { return TypeLiteral(t); }
  std::string operator()(const PartialShape& s) const {
    return s.has_rank() ? absl::StrCat("::millrace::Shape{", absl::StrJoin(s.dims(), ", "), "}") : "std::nullopt";
  }
  std::string operator()(const FuncAttr& f) const { return (*this)(f.name); }
  std::string operator()(const Tensor&) const { return "{}"; }
  std::string operator()(const EmptyListAttr&) const { return "{}"; }
  std::string operator()(const PlaceholderAttr&) const { return "{}"; }
  template <typename T>
  std::string operator()(const std::vector<T>& list) const {
    std::vector<std::string> pieces;
    for (const T& v : list) pieces.push_back((*this)(v));
    return absl::StrCat("{", absl::StrJoin(pieces, ", "), "}");
  }
};

std::string CppType(const AttrDef& attr) {
  switch (attr.kind) {
    case AttrKind::kString: return attr.is_list ? "std::vector<std::string>" : "std::string";
    case AttrKind::kInt: return attr.is_list ? "std::vector<int64_t>" : "int64_t";
    case AttrKind::kFloat: return attr.is_list ? "std::vector<float>" : "float";
    case AttrKind::kType: return attr.is_list ? "std::vector<::millrace::DType>" : "::millrace::DType";
    case AttrKind::kBool: return attr.is_list ? "" : "bool";
    case AttrKind::kShape: return attr.is_list ? "" : "std::optional<::millrace::Shape>";
    case AttrKind::kTensor: return attr.is_list ? "" : "::millrace::Tensor";
    case AttrKind::kFunc: return attr.is_list ? "" : "std::string";
  }
  return "";
}

CppAttr Describe(const AttrDef& def) {
  CppAttr a;
  a.def = &def;
  a.type = CppType(def);
  a.wrapped = a.type.empty();
  if (a.wrapped) a.type = def.has_default ? "std::optional<Attr>" : "Attr";
  a.skip_empty = def.has_default && (a.wrapped || (def.kind == AttrKind::kTensor && !def.is_list));
  if (def.has_default) a.initial = a.wrapped ? "{}" : std::visit(Literal(), def.default_value.storage());
  return a;
}

bool InputsDetermine(const OpDef& op, const std::string& attr) {
  return std::any_of(op.inputs.begin(), op.inputs.end(), [&](const ArgDef& a) {
    return a.type_attr == attr || a.number_attr == attr || a.type_list_attr == attr;
  });
}

bool IsList(const ArgDef& a) { return !a.number_attr.empty() || !a.type_list_attr.empty(); }

std::string Comment(const std::string& text, const std::string& indent = "// ") {
  std::string out, line = indent;
  for (absl::string_view word : absl::StrSplit(text, absl::ByAnyChar(" \n\t"), absl::SkipEmpty())) {
    if (line.size() + word.size() > 118 && line.size() > indent.size()) {
      out += line + "\n";
      line = indent;
    }
    absl::StrAppend(&line, line.size() > indent.size() ? " " : "", word);
  }
  return line.size() > indent.size() ? out + line + "\n" : out;
}

class FunctionWriter {
 public:
  FunctionWriter(const OpDef& op, bool composite) : op_(op), composite_(composite), name_(FunctionName(op.name)) {
    Names names({"scope", "attrs", "where", "list", "made", FunctionName(op.name)});
    for (const ArgDef& a : op.inputs) inputs_.push_back(names.Add(a.name));
    Names members;
    for (const AttrDef& def : op.attrs) {
      if (InputsDetermine(op, def.name) || def.name[0] == '_') continue;
      CppAttr a = Describe(def);
      a.parameter = def.has_default ? members.Add(def.name) : names.Add(def.name);
      (def.has_default ? options_ : required_).push_back(std::move(a));
    }
  }

  std::string Text() const {
    return absl::StrCat("\n", OptionsStruct(), ResultStruct(), Comment(op_.doc), Comment(SchemaText(op_), "//   "),
                        Signature(), Body());
  }

 private:
  std::string OptionsStruct() const {
    if (options_.empty()) return "";
    std::string text = absl::StrCat("struct ", op_.name, "Attrs {\n");
    for (const CppAttr& a : options_) {
      absl::StrAppend(&text, "  ", a.type, " ", a.parameter, " = ", a.initial, ";");
      if (!a.def->allowed_strings.empty()) absl::StrAppend(&text, "  // ", absl::StrJoin(a.def->allowed_strings, ", "));
      text += "\n";
    }
    return text + "};\n";
  }

  bool HasStruct() const { return op_.outputs.size() > 1; }
  std::string ResultStruct() const {
    if (!HasStruct()) return "";
    Names names({"op"});
    std::string text = absl::StrCat("struct ", op_.name, "Outputs {\n");
    if (!composite_) text += "  Operation op;\n";
    for (const ArgDef& a : op_.outputs) {
      absl::StrAppend(&text, "  ", IsList(a) ? "std::vector<Output> " : "Output ", names.Add(a.name), ";\n");
    }
    return text + "};\n";
  }

  std::string ReturnType() const {
    if (HasStruct()) return op_.name + "Outputs";
    if (op_.outputs.empty()) return "Operation";
    return IsList(op_.outputs[0]) ? "std::vector<Output>" : "Output";
  }

  std::string Signature() const {
    std::string text = absl::StrCat("inline ", ReturnType(), " ", name_, "(Scope scope");
    for (size_t i = 0; i < inputs_.size(); ++i) {
      absl::StrAppend(&text, IsList(op_.inputs[i]) ? ", const std::vector<Output>& " : ", const Input& ", inputs_[i]);
    }
    for (const CppAttr& a : required_) {
      const bool by_value =
          !a.def->is_list && !a.wrapped &&
          (a.def->kind == AttrKind::kInt || a.def->kind == AttrKind::kFloat || a.def->kind == AttrKind::kBool ||
           a.def->kind == AttrKind::kType);
      absl::StrAppend(&text, ", ", by_value ? "" : "const ", a.type, by_value ? " " : "& ", a.parameter);
    }
    if (!options_.empty()) absl::StrAppend(&text, ", const ", op_.name, "Attrs& attrs = {}");
    return text + ",\n    const SourceLocation& where = SourceLocation::current()) {\n";
  }

  static std::string Pair(const CppAttr& a, const std::string& value) {
    std::string v = a.skip_empty && a.wrapped ? "*" + value : value;
    if (!a.wrapped && a.def->kind == AttrKind::kShape) v = absl::StrCat("detail::ShapeAttr(", v, ")");
    if (!a.wrapped && a.def->kind == AttrKind::kFunc) v = absl::StrCat("Attr::Function(", v, ")");
    return absl::StrCat("{\"", a.def->name, "\", ", v, "}");
  }

  std::string Body() const {
    std::vector<std::string> pairs;
    std::string text;
    for (const CppAttr& a : required_) pairs.push_back(Pair(a, a.parameter));
    for (const CppAttr& a : options_) {
      if (!a.skip_empty) pairs.push_back(Pair(a, "attrs." + a.parameter));
    }
    std::string attrs = absl::StrCat("{", absl::StrJoin(pairs, ", "), "}");
    if (std::any_of(options_.begin(), options_.end(), [](const CppAttr& a) { return a.skip_empty; })) {
      absl::StrAppend(&text, "  Attrs list = ", attrs, ";\n");
      for (const CppAttr& a : options_) {
        if (!a.skip_empty) continue;
        absl::StrAppend(
            &text, "  if (attrs.", a.parameter, ") list.push_back(", Pair(a, "attrs." + a.parameter), ");\n");
      }
      attrs = "list";
    }
    return absl::StrCat(text, Return(absl::StrCat("scope.", composite_ ? "Composite" : "Op", "(\"", op_.name, "\", {",
                                                  absl::StrJoin(inputs_, ", "), "}, ", attrs, ", where)")));
  }

  std::string Return(const std::string& call) const {
    if (op_.outputs.empty()) return absl::StrCat("  return ", call, ";\n}\n");
    if (op_.outputs.size() == 1 && !composite_ && !IsList(op_.outputs[0])) {
      return absl::StrCat("  return Output(", call, ");\n}\n");
    }
    const auto lists = std::count_if(op_.outputs.begin(), op_.outputs.end(), IsList);
    std::vector<std::string> parts;
    if (HasStruct() && !composite_) parts.push_back("made.operation()");
    for (size_t i = 0; i < op_.outputs.size(); ++i) {
      if (!IsList(op_.outputs[i])) {
        parts.push_back("made.One()");
      } else if (lists == 1) {
        parts.push_back(absl::StrCat("made.AllBut(", op_.outputs.size() - 1 - i, ")"));
      } else {
        parts.push_back(absl::StrCat("made.List(\"", op_.outputs[i].name, "\")"));
      }
    }
    const std::string joined = absl::StrJoin(parts, ", ");
    return absl::StrCat("  detail::Outputs made(", call, ");\n  return ",
                        HasStruct() ? absl::StrCat("{", joined, "}") : joined, ";\n}\n");
  }

  const OpDef& op_;
  bool composite_;
  std::string name_;
  std::vector<std::string> inputs_;
  std::vector<CppAttr> required_, options_;
};

}  // namespace

std::string CppHeader(const std::vector<const OpDef*>& ops, const std::vector<const OpDef*>& composites) {
  std::string text = kHead;
  for (const OpDef* op : ops) {
    if (op->name[0] != '_') text += FunctionWriter(*op, false).Text();
  }
  text += "\n// Composites.\n";
  for (const OpDef* op : composites) text += FunctionWriter(*op, true).Text();
  return text + kTail;
}

}  // namespace millrace::opgen
