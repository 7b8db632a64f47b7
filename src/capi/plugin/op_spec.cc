// SPDX-License-Identifier: Apache-2.0
#include "capi/plugin/op_spec.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "op/op_def.h"

namespace millrace::capi {
namespace {

void SkipSpace(absl::string_view* s) { *s = absl::StripLeadingAsciiWhitespace(*s); }

// The longest front of letters, digits and '_' that starts with a letter.
absl::string_view ConsumeName(absl::string_view* s) {
  size_t n = 0;
  while (n < s->size() && (absl::ascii_isalnum((*s)[n]) || (*s)[n] == '_')) ++n;
  if (n == 0 || !absl::ascii_isalpha((*s)[0])) return {};
  const absl::string_view name = s->substr(0, n);
  s->remove_prefix(n);
  SkipSpace(s);
  return name;
}

bool Consume(absl::string_view* s, absl::string_view what) {
  if (!absl::ConsumePrefix(s, what)) return false;
  SkipSpace(s);
  return true;
}

StatusOr<int64_t> ConsumeNumber(absl::string_view* s) {
  size_t n = !s->empty() && (*s)[0] == '-' ? 1 : 0;
  while (n < s->size() && absl::ascii_isdigit((*s)[n])) ++n;
  int64_t value = 0;
  if (!absl::SimpleAtoi(s->substr(0, n), &value)) return InvalidArgument("no integer at '", *s, "'");
  s->remove_prefix(n);
  SkipSpace(s);
  return value;
}

// 'x' or "x", with C's escapes.
StatusOr<std::string> ConsumeString(absl::string_view* s) {
  if (s->empty() || ((*s)[0] != '"' && (*s)[0] != '\'')) return InvalidArgument("no string at '", *s, "'");
  const char quote = (*s)[0];
  size_t end = 1;
  while (end < s->size() && (*s)[end] != quote) end += (*s)[end] == '\\' ? 2 : 1;
  if (end >= s->size()) return InvalidArgument("no end of the string at '", *s, "'");
  std::string out, error;
  if (!absl::CUnescape(s->substr(1, end - 1), &out, &error)) return InvalidArgument("string ", *s, ": ", error);
  s->remove_prefix(end + 1);
  SkipSpace(s);
  return out;
}

// "float", "int32_ref", "DT_FLOAT".
StatusOr<int32_t> TypeNumber(absl::string_view name) {
  std::string word(name);
  if (absl::StartsWith(name, "DT_")) word = absl::AsciiStrToLower(name.substr(3));
  absl::string_view base = word;
  const bool is_ref = absl::ConsumeSuffix(&base, "_ref");
  for (const DType t : AllTypes()) {
    if (DTypeName(t) == base) return static_cast<int32_t>(t) + (is_ref ? kRefOffset : 0);
  }
  return InvalidArgument("Unrecognized type string '", name, "'");
}

wire::AttrValue EmptyList() {
  wire::AttrValue list;
  list.kind = wire::AttrValue::Kind::kList;
  list.list.Ensure();
  return list;
}

// The types that a name of a set stands for; empty: it is none.
std::vector<DType> NamedTypes(absl::string_view kind) {
  if (kind == "numbertype" || kind == "numerictype") return Types("NUM");
  if (kind == "realnumbertype" || kind == "realnumerictype") return Types("REAL");
  if (kind == "quantizedtype") return Types("QNT");
  return {};
}

// What follows '{': types or strings, up to '}'. The kind of attribute.
StatusOr<std::string> ConsumeChoices(absl::string_view* s, wire::OpAttrDef* attr) {
  const bool strings = absl::StartsWith(*s, "\"") || absl::StartsWith(*s, "'");
  wire::AttrValue allowed = EmptyList();
  while (!Consume(s, "}")) {
    if (strings) {
      MR_ASSIGN_OR_RETURN(allowed.list->s.emplace_back(), ConsumeString(s));
    } else {
      MR_ASSIGN_OR_RETURN(allowed.list->type.emplace_back(), TypeNumber(ConsumeName(s)));
    }
    if (Consume(s, ",")) continue;
    if (!absl::StartsWith(*s, "}")) {
      return InvalidArgument("Expected , or } after ", strings ? "strings" : "types", " in list, not: '", *s, "'");
    }
  }
  if (allowed.list->s.empty() && allowed.list->type.empty()) return InvalidArgument("an empty set");
  attr->allowed_values.Ensure() = std::move(allowed);
  return std::string(strings ? "string" : "type");
}

StatusOr<std::string> ConsumeKind(absl::string_view* s, wire::OpAttrDef* attr) {
  if (Consume(s, "{")) return ConsumeChoices(s, attr);
  const absl::string_view at = *s;
  const absl::string_view word = ConsumeName(s);
  for (int k = 0; k <= static_cast<int>(AttrKind::kFunc); ++k) {
    if (word == AttrKindName(static_cast<AttrKind>(k))) return std::string(word);
  }
  const std::vector<DType> types = NamedTypes(word);
  if (types.empty()) return InvalidArgument("Trouble parsing type string at '", at, "'");
  wire::AttrValue allowed = EmptyList();
  for (DType t : types) allowed.list->type.push_back(static_cast<int32_t>(t));
  attr->allowed_values.Ensure() = std::move(allowed);
  return std::string("type");
}

// A message in text form, with or without the braces around it, off the front of *s.
absl::string_view ConsumeMessage(absl::string_view* s) {
  if (!absl::StartsWith(*s, "{")) {
    const absl::string_view all = *s;
    s->remove_prefix(s->size());
    return all;
  }
  int depth = 0;
  char quote = 0;
  for (size_t i = 0; i < s->size(); ++i) {
    const char c = (*s)[i];
    if (quote != 0) {
      if (c == '\\') ++i;
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '{') {
      ++depth;
    } else if (c == '}' && --depth == 0) {
      const absl::string_view inside = s->substr(1, i - 1);
      s->remove_prefix(i + 1);
      SkipSpace(s);
      return inside;
    }
  }
  const absl::string_view all = *s;  // which is no message
  s->remove_prefix(s->size());
  return all;
}

// A word up to ',' or ']' or space.
absl::string_view ConsumeWord(absl::string_view* s) {
  const size_t n = std::min(s->find_first_of(",] \t\n"), s->size());
  const absl::string_view word = s->substr(0, n);
  s->remove_prefix(n);
  SkipSpace(s);
  return word;
}

// One value of a kind, appended to *list.
Status ConsumeValue(absl::string_view* s, absl::string_view kind, wire::AttrValue* list) {
  auto& out = *list->list;
  if (kind == "string") {
    MR_ASSIGN_OR_RETURN(out.s.emplace_back(), ConsumeString(s));
  } else if (kind == "int") {
    MR_ASSIGN_OR_RETURN(out.i.emplace_back(), ConsumeNumber(s));
  } else if (kind == "float") {
    const absl::string_view word = ConsumeWord(s);
    if (!absl::SimpleAtof(word, &out.f.emplace_back())) return InvalidArgument("no number: '", word, "'");
  } else if (kind == "bool") {
    const absl::string_view word = ConsumeWord(s);
    if (word != "true" && word != "false") return InvalidArgument("neither true nor false: '", word, "'");
    out.b.push_back(word == "true");
  } else if (kind == "type") {
    MR_ASSIGN_OR_RETURN(out.type.emplace_back(), TypeNumber(ConsumeName(s)));
  } else if (kind == "shape") {
    MR_RETURN_IF_ERROR(wire::DecodeText(ConsumeMessage(s), &out.shape.emplace_back()));
  } else if (kind == "tensor") {
    MR_RETURN_IF_ERROR(wire::DecodeText(ConsumeMessage(s), &out.tensor.emplace_back()));
  } else {
    MR_RETURN_IF_ERROR(wire::DecodeText(ConsumeMessage(s), &out.func.emplace_back()));
  }
  return absl::OkStatus();
}

// The only element of a list as a value of its own.
wire::AttrValue Single(absl::string_view kind, wire::AttrValue list) {
  auto& in = *list.list;
  wire::AttrValue v;
  using Kind = wire::AttrValue::Kind;
  if (kind == "string") {
    v.kind = Kind::kS;
    v.s = std::move(in.s[0]);
  } else if (kind == "int") {
    v.kind = Kind::kI;
    v.i = in.i[0];
  } else if (kind == "float") {
    v.kind = Kind::kF;
    v.f = in.f[0];
  } else if (kind == "bool") {
    v.kind = Kind::kB;
    v.b = in.b[0];
  } else if (kind == "type") {
    v.kind = Kind::kType;
    v.type = in.type[0];
  } else if (kind == "shape") {
    v.kind = Kind::kShape;
    v.shape.Ensure() = std::move(in.shape[0]);
  } else if (kind == "tensor") {
    v.kind = Kind::kTensor;
    v.tensor.Ensure() = std::move(in.tensor[0]);
  } else {
    v.kind = Kind::kFunc;
    v.func.Ensure() = std::move(in.func[0]);
  }
  return v;
}

Status ConsumeDefault(absl::string_view* s, absl::string_view kind, bool is_list, wire::AttrValue* out) {
  *out = EmptyList();
  if (!is_list) {
    MR_RETURN_IF_ERROR(ConsumeValue(s, kind, out));
    *out = Single(kind, std::move(*out));
    return absl::OkStatus();
  }
  if (!Consume(s, "[")) return InvalidArgument("Expected [ at '", *s, "'");
  while (!Consume(s, "]")) {
    MR_RETURN_IF_ERROR(ConsumeValue(s, kind, out));
    if (!Consume(s, ",") && !absl::StartsWith(*s, "]")) return InvalidArgument("Expected , or ] at '", *s, "'");
  }
  return absl::OkStatus();
}

Status ParseAttr(absl::string_view s, wire::OpAttrDef* attr) {
  SkipSpace(&s);
  attr->name = std::string(ConsumeName(&s));
  if (attr->name.empty() || !Consume(&s, ":")) return InvalidArgument("Trouble parsing '<name>:'");
  absl::string_view rest = s;
  const bool is_list = Consume(&rest, "list") && Consume(&rest, "(");
  if (is_list) s = rest;
  MR_ASSIGN_OR_RETURN(const std::string kind, ConsumeKind(&s, attr));
  SkipSpace(&s);
  if (is_list && !Consume(&s, ")")) return InvalidArgument("Expected ) to close 'list(', not: '", s, "'");
  attr->type = is_list ? absl::StrCat("list(", kind, ")") : kind;
  if ((is_list || kind == "int") && Consume(&s, ">=")) {
    attr->has_minimum = true;
    const auto minimum = ConsumeNumber(&s);
    if (!minimum.ok()) {
      return InvalidArgument("Could not parse integer lower limit after '>=', found '", s, "' instead");
    }
    attr->minimum = *minimum;
  }
  if (Consume(&s, "=")) {
    const absl::string_view text = s;
    const Status parsed = ConsumeDefault(&s, kind, is_list, &attr->default_value.Ensure());
    if (!parsed.ok()) return InvalidArgument("Could not parse default value '", text, "': ", parsed.message());
  }
  if (!s.empty()) return InvalidArgument("Extra '", s, "' unparsed at the end");
  return absl::OkStatus();
}

wire::OpAttrDef* FindAttr(absl::string_view name, wire::OpDef* def) {
  for (wire::OpAttrDef& a : def->attr) {
    if (a.name == name) return &a;
  }
  return nullptr;
}

void AtLeastOne(wire::OpAttrDef* attr) {
  if (attr == nullptr || attr->has_minimum) return;
  attr->has_minimum = true;
  attr->minimum = 1;
}

Status ParseArg(absl::string_view s, wire::OpArgDef* arg, wire::OpDef* def) {
  SkipSpace(&s);
  arg->name = std::string(ConsumeName(&s));
  const auto bad = [](char c) { return !absl::ascii_islower(c) && !absl::ascii_isdigit(c) && c != '_'; };
  if (arg->name.empty() || std::any_of(arg->name.begin(), arg->name.end(), bad) || !Consume(&s, ":")) {
    return InvalidArgument("Trouble parsing 'name:'");
  }
  absl::string_view rest = s;
  arg->is_ref = Consume(&rest, "Ref") && Consume(&rest, "(");
  if (arg->is_ref) s = rest;
  absl::string_view type = ConsumeName(&s);
  if (type.empty()) return InvalidArgument("Trouble parsing either a type or an attr name at '", s, "'");
  if (Consume(&s, "*")) {
    arg->number_attr = std::string(type);
    type = ConsumeName(&s);
    if (type.empty()) return InvalidArgument("Trouble parsing either a type or an attr name at '", s, "'");
    if (FindAttr(arg->number_attr, def) == nullptr) {
      return InvalidArgument("Reference to unknown attr '", arg->number_attr, "'");
    }
  }
  if (const auto number = TypeNumber(type); number.ok()) {
    arg->type = *number;
  } else {
    wire::OpAttrDef* attr = FindAttr(type, def);
    if (attr == nullptr) return InvalidArgument("Reference to unknown attr '", type, "'");
    if (attr->type == "type") {
      arg->type_attr = std::string(type);
    } else if (attr->type == "list(type)") {
      arg->type_list_attr = std::string(type);
      AtLeastOne(attr);
    } else {
      return InvalidArgument("Reference to attr '", type, "' with type ", attr->type, " that isn't type or list(type)");
    }
  }
  if (!arg->number_attr.empty()) AtLeastOne(FindAttr(arg->number_attr, def));
  if (arg->is_ref && !Consume(&s, ")")) {
    return InvalidArgument("Did not find closing ')' for 'Ref(', instead found: '", s, "'");
  }
  if (!s.empty()) return InvalidArgument("Extra '", s, "' unparsed at the end");
  return absl::OkStatus();
}

}  // namespace

Status AddAttrSpec(absl::string_view spec, wire::OpDef* def) {
  wire::OpAttrDef attr;
  const Status parsed = ParseAttr(absl::StripTrailingAsciiWhitespace(spec), &attr);
  if (!parsed.ok()) return InvalidArgument(parsed.message(), " from Attr(\"", spec, "\") for Op ", def->name);
  def->attr.push_back(std::move(attr));
  return absl::OkStatus();
}

Status AddArgSpec(absl::string_view spec, bool is_output, wire::OpDef* def) {
  wire::OpArgDef arg;
  const Status parsed = ParseArg(absl::StripTrailingAsciiWhitespace(spec), &arg, def);
  if (!parsed.ok()) {
    return InvalidArgument(
        parsed.message(), " from ", is_output ? "Output" : "Input", "(\"", spec, "\") for Op ", def->name);
  }
  (is_output ? def->output_arg : def->input_arg).push_back(std::move(arg));
  return absl::OkStatus();
}

bool IsOpName(absl::string_view name) {
  absl::ConsumePrefix(&name, "_");
  if (name.empty() || !absl::ascii_isupper(name[0])) return false;
  return std::all_of(name.begin(), name.end(), [](char c) { return absl::ascii_isalnum(c) || c == '_' || c == '>'; });
}

}  // namespace millrace::capi
