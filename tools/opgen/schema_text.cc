// SPDX-License-Identifier: Apache-2.0
#include "schema_text.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "op/attr_text.h"

namespace millrace::opgen {
namespace {

std::string Quoted(const std::string& s) { return absl::StrCat("\"", absl::CEscape(s), "\""); }

// The shortest digits that read back as the same float.
std::string FloatText(float v) {
  char text[40];
  for (int digits = 1; digits <= 9; ++digits) {
    std::snprintf(text, sizeof(text), "%.*g", digits, static_cast<double>(v));
    if (std::strtof(text, nullptr) == v) break;
  }
  std::string out = text;
  if (out.find_first_of(".en") == out.npos) out += ".0";
  return out;
}

struct ValueText {
  const AttrDef& attr;
  const OpDef& op;

  std::string operator()(const std::string& s) const { return Quoted(s); }
  std::string operator()(int64_t i) const { return absl::StrCat(i); }
  std::string operator()(float f) const { return FloatText(f); }
  std::string operator()(bool b) const { return b ? "true" : "false"; }
  std::string operator()(DType t) const { return TypeText(t); }
  std::string operator()(const PartialShape& s) const { return s.ToString(); }
  std::string operator()(const FuncAttr& f) const { return f.name; }
  std::string operator()(const PlaceholderAttr&) const { return "?"; }
  std::string operator()(const EmptyListAttr&) const { return "[]"; }
  // As it was declared.
  std::string operator()(const Tensor&) const {
    const std::string key = absl::StrCat(attr.name, ":tensor=");
    const size_t at = op.schema.find(key);
    if (at == op.schema.npos) return "?";
    const absl::string_view rest = absl::string_view(op.schema).substr(at + key.size());
    return std::string(rest.substr(0, std::min(FindOutside(rest, ';'), FindOutside(rest, ' '))));
  }
  template <typename T>
  std::string operator()(const std::vector<T>& list) const {
    std::vector<std::string> pieces;
    for (const T& v : list) pieces.push_back((*this)(v));
    return absl::StrCat("[", absl::StrJoin(pieces, ","), "]");
  }
};

std::string ArgsText(const std::vector<ArgDef>& args) {
  return absl::StrCat(
      "(", absl::StrJoin(args, ", ", [](std::string* out, const ArgDef& a) { *out += ArgText(a); }), ")");
}

std::vector<DType> Sorted(std::vector<DType> set) {
  std::sort(set.begin(), set.end());
  return set;
}

std::string KindText(const AttrDef& attr) {
  std::string set;
  if (!attr.allowed_types.empty()) {
    set = TypeSetText(attr.allowed_types);
  } else if (!attr.allowed_strings.empty()) {
    set = absl::StrCat("{", absl::StrJoin(attr.allowed_strings, ","), "}");
  }
  if (!set.empty()) return absl::StrCat(" in ", attr.is_list ? "list " : "", set);
  return attr.is_list ? absl::StrCat(":list(", AttrKindName(attr.kind), ")")
                      : absl::StrCat(":", AttrKindName(attr.kind));
}

std::string FlagsText(const OpDef& op) {
  std::string flags = absl::StrCat(op.stateful ? "S" : "", op.commutative ? "C" : "", op.aggregate ? "A" : "",
                                   op.allows_uninitialized_input ? "U" : "");
  if (op.deprecation_version > 0) absl::StrAppend(&flags, flags.empty() ? "D" : " D", op.deprecation_version);
  return flags;
}

}  // namespace

std::string TypeText(DType t) {
  static constexpr const char* kNames[] = {
      "f16", "bf16", "f32",  "f64", "i8",  "i16",  "i32",  "i64",  "u8",  "u16", "u32", "u64",
      "str", "c64",  "c128", "qi8", "qu8", "qi16", "qu16", "qi32", "res", "var", "bool"};
  for (const char* name : kNames) {
    if (DTypeFromName(name) == t) return name;
  }
  return DTypeName(t);
}

std::string TypeSetText(const std::vector<DType>& set) {
  const std::vector<DType> sorted = Sorted(set);
  for (const char* name : {"NUM", "REAL", "INT", "FLT", "HFD", "FD", "CPX", "FC", "IDX", "QNT"}) {
    if (Sorted(Types(name)) == sorted) return name;
  }
  return absl::StrJoin(sorted, "|", [](std::string* out, DType t) { *out += TypeText(t); });
}

std::string ArgText(const ArgDef& arg) {
  if (!arg.type_list_attr.empty()) return absl::StrCat(arg.name, ":[", arg.type_list_attr, "]");
  return absl::StrCat(arg.name, ":", arg.number_attr, arg.number_attr.empty() ? "" : "*", arg.is_ref ? "&" : "",
                      arg.type_attr.empty() ? TypeText(arg.type) : arg.type_attr);
}

std::string AttrText(const AttrDef& attr, const OpDef& op) {
  std::string text = attr.name + KindText(attr);
  if (attr.has_minimum) absl::StrAppend(&text, ">=", attr.minimum);
  if (attr.has_default) absl::StrAppend(&text, "=", std::visit(ValueText{attr, op}, attr.default_value.storage()));
  return text;
}

std::string SchemaText(const OpDef& op) {
  std::string text = absl::StrCat(op.name, ArgsText(op.inputs), " -> ", ArgsText(op.outputs));
  if (!op.attrs.empty()) {
    absl::StrAppend(&text, " | ", absl::StrJoin(op.attrs, "; ", [&](std::string* out, const AttrDef& a) {
      *out += AttrText(a, op);
    }));
  }
  const std::string flags = FlagsText(op);
  return flags.empty() ? text : absl::StrCat(text, " | ", flags);
}

}  // namespace millrace::opgen
