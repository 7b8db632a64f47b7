// SPDX-License-Identifier: Apache-2.0
// The schema notation of op_def.h. Lines of the schema list parse as they are: a leading era ("0.5"), the markers '*'
// and
// '+', the set sign and arrows in deprecation flags are accepted.
#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/hash_map.h"
#include "op/attr_text.h"
#include "op/op_def.h"

namespace millrace {
namespace {

constexpr absl::string_view kElementOf = "\xe2\x88\x88";  // the set sign
constexpr absl::string_view kArrow = "\xe2\x86\x92";

absl::string_view Trim(absl::string_view s) { return absl::StripAsciiWhitespace(s); }

bool IsWordChar(char c) { return absl::ascii_isalnum(c) || c == '_'; }
absl::string_view ConsumeWord(absl::string_view* s) {
  size_t n = 0;
  while (n < s->size() && IsWordChar((*s)[n])) ++n;
  const absl::string_view word = s->substr(0, n);
  s->remove_prefix(n);
  return word;
}

// Inserts `t` unless present.
void AddType(DType t, std::vector<DType>* out) {
  if (std::find(out->begin(), out->end(), t) == out->end()) out->push_back(t);
}

struct NamedSet {
  const char* name;
  std::vector<DType> types;
};
const std::vector<NamedSet>& NamedSets() {
  using enum DType;
  static const auto* sets = new std::vector<NamedSet>{
      {"NUM",
       {kFloat, kDouble, kInt32, kUInt8, kInt16, kInt8, kComplex64, kInt64, kQInt8, kQUInt8, kQInt32, kBFloat16,
        kUInt16, kComplex128, kHalf, kUInt32, kUInt64}},
      {"REAL", {kFloat, kDouble, kInt32, kUInt8, kInt16, kInt8, kInt64, kBFloat16, kUInt16, kHalf, kUInt32, kUInt64}},
      {"INT", {kInt8, kInt16, kInt32, kInt64, kUInt8, kUInt16, kUInt32, kUInt64}},
      {"FLT", {kHalf, kBFloat16, kFloat, kDouble}},
      {"HFD", {kHalf, kFloat, kDouble}},
      {"FD", {kFloat, kDouble}},
      {"CPX", {kComplex64, kComplex128}},
      {"FC", {kHalf, kBFloat16, kFloat, kDouble, kComplex64, kComplex128}},
      {"IDX", {kInt32, kInt64}},
      {"QNT", {kQInt8, kQUInt8, kQInt16, kQUInt16, kQInt32}},
  };
  return *sets;
}

StatusOr<AttrKind> ParseKind(absl::string_view text) {
  for (int k = 0; k <= static_cast<int>(AttrKind::kFunc); ++k) {
    if (text == AttrKindName(static_cast<AttrKind>(k))) return static_cast<AttrKind>(k);
  }
  return InvalidArgument("'", text, "' is not an attribute kind");
}

// Cuts ">=n" off the end of *text.
Status ParseMinimum(absl::string_view* text, AttrDef* attr) {
  const size_t at = FindOutside(*text, '>');
  if (at == text->npos) return absl::OkStatus();
  absl::string_view minimum = text->substr(at);
  *text = Trim(text->substr(0, at));
  if (!absl::ConsumePrefix(&minimum, ">=") || !absl::SimpleAtoi(Trim(minimum), &attr->minimum)) {
    return InvalidArgument("bad minimum '", minimum, "'");
  }
  attr->has_minimum = true;
  return absl::OkStatus();
}

// "{A,B}" into strings, anything else into types; "list " before it says that each element is one of them.
Status ParseAllowed(absl::string_view set, AttrDef* attr) {
  MR_RETURN_IF_ERROR(ParseMinimum(&set, attr));
  if (absl::ConsumePrefix(&set, "list ")) attr->is_list = true;
  if (!absl::StartsWith(set, "{")) {
    attr->kind = AttrKind::kType;
    MR_ASSIGN_OR_RETURN(attr->allowed_types, ParseTypeSet(set));
    return absl::OkStatus();
  }
  if (!absl::EndsWith(set, "}")) return InvalidArgument("unterminated set ", set);
  attr->kind = AttrKind::kString;
  for (absl::string_view piece : absl::StrSplit(set.substr(1, set.size() - 2), ',')) {
    MR_ASSIGN_OR_RETURN(attr->allowed_strings.emplace_back(), ParseString(Trim(piece)));
  }
  return absl::OkStatus();
}

// The part after ':': "int>=1", "list(type)>=0", "list(f32|str)", "list(type) in FC".
Status ParseAttrKind(absl::string_view text, AttrDef* attr) {
  MR_RETURN_IF_ERROR(ParseMinimum(&text, attr));
  if (!absl::ConsumePrefix(&text, "list(")) {
    MR_ASSIGN_OR_RETURN(attr->kind, ParseKind(text));
    return absl::OkStatus();
  }
  attr->is_list = true;
  const size_t close = text.find(')');
  if (close == text.npos) return InvalidArgument("unterminated list(");
  const absl::string_view element = text.substr(0, close);
  absl::string_view rest = Trim(text.substr(close + 1));
  if (auto kind = ParseKind(element); kind.ok()) {
    attr->kind = *kind;
  } else {
    MR_RETURN_IF_ERROR(ParseAllowed(element, attr));
  }
  if (absl::ConsumePrefix(&rest, kElementOf) || absl::ConsumePrefix(&rest, "in ")) {
    return ParseAllowed(Trim(rest), attr);
  }
  return rest.empty() ? absl::OkStatus() : InvalidArgument("unexpected '", rest, "'");
}

// Position of the '=' that begins the default: not the one of ">=".
size_t FindDefault(absl::string_view text) {
  size_t at = FindOutside(text, '=');
  while (at != text.npos && at > 0 && text[at - 1] == '>') at = FindOutside(text, '=', at + 1);
  return at;
}

StatusOr<AttrDef> ParseAttr(absl::string_view text) {
  AttrDef attr;
  absl::ConsumePrefix(&text, "+");
  attr.name = std::string(ConsumeWord(&text));
  if (attr.name.empty()) return InvalidArgument("attribute without a name at '", text, "'");
  absl::string_view value;
  bool has_value = false;
  if (const size_t at = FindDefault(text); at != text.npos) {
    value = Trim(text.substr(at + 1));
    text = text.substr(0, at);
    has_value = true;
  }
  text = Trim(text);
  if (absl::ConsumePrefix(&text, ":")) {
    MR_RETURN_IF_ERROR(ParseAttrKind(Trim(text), &attr));
  } else if (absl::ConsumePrefix(&text, kElementOf) || absl::ConsumePrefix(&text, "in ")) {
    MR_RETURN_IF_ERROR(ParseAllowed(Trim(text), &attr));
  } else {
    return InvalidArgument("attribute '", attr.name, "' has no kind");
  }
  if (has_value) {
    MR_ASSIGN_OR_RETURN(attr.default_value, ParseAttrText(attr.kind, attr.is_list, value));
    attr.has_default = true;
  }
  return attr;
}

StatusOr<ArgDef> ParseArg(absl::string_view text) {
  ArgDef arg;
  arg.name = std::string(ConsumeWord(&text));
  if (arg.name.empty() || !absl::ConsumePrefix(&text, ":")) {
    return InvalidArgument("argument '", arg.name, text, "' is not name:type");
  }
  text = Trim(text);
  if (absl::ConsumePrefix(&text, "[")) {
    arg.type_list_attr = std::string(ConsumeWord(&text));
    if (text != "]" || arg.type_list_attr.empty()) return InvalidArgument("argument ", arg.name, ": bad list");
    return arg;
  }
  if (const size_t star = text.find('*'); star != text.npos) {
    arg.number_attr = std::string(Trim(text.substr(0, star)));
    text = Trim(text.substr(star + 1));
    if (arg.number_attr.empty()) return InvalidArgument("argument ", arg.name, ": list without a length");
  }
  arg.is_ref = absl::ConsumePrefix(&text, "&");
  arg.type_attr = std::string(ConsumeWord(&text));
  if (!text.empty() || arg.type_attr.empty()) return InvalidArgument("argument ", arg.name, ": bad type");
  return arg;
}

// "(a:T, b:N*T)" at the front of *text.
Status ParseArgs(absl::string_view* text, std::vector<ArgDef>* args) {
  *text = Trim(*text);
  if (!absl::StartsWith(*text, "(")) return InvalidArgument("expected '(' at '", *text, "'");
  const size_t close = text->find(')');
  if (close == text->npos) return InvalidArgument("missing ')'");
  for (absl::string_view piece : SplitOutside(text->substr(1, close - 1), ',')) {
    MR_ASSIGN_OR_RETURN(args->emplace_back(), ParseArg(piece));
  }
  text->remove_prefix(close + 1);
  return absl::OkStatus();
}

// True and *op changed when the section consists of flags.
bool ParseFlags(absl::string_view text, OpDef* op) {
  OpDef parsed;
  const std::vector<absl::string_view> words = absl::StrSplit(text, ' ', absl::SkipEmpty());
  if (words.empty()) return false;
  for (absl::string_view word : words) {
    if (word[0] == 'D') {
      word.remove_prefix(1);
      size_t digits = 0;
      while (digits < word.size() && absl::ascii_isdigit(word[digits])) ++digits;
      if (!absl::SimpleAtoi(word.substr(0, digits), &parsed.deprecation_version)) return false;
      word.remove_prefix(digits);
      if (absl::ConsumePrefix(&word, kArrow) || absl::ConsumePrefix(&word, "->")) {
        parsed.deprecation_reason = absl::StrCat("Use ", word, ".");
      } else if (!word.empty()) {
        return false;
      }
      continue;
    }
    for (char c : word) {
      if (c == 'S') {
        parsed.stateful = true;
      } else if (c == 'C') {
        parsed.commutative = true;
      } else if (c == 'A') {
        parsed.aggregate = true;
      } else if (c == 'U') {
        parsed.allows_uninitialized_input = true;
      } else {
        return false;
      }
    }
  }
  op->stateful |= parsed.stateful;
  op->commutative |= parsed.commutative;
  op->aggregate |= parsed.aggregate;
  op->allows_uninitialized_input |= parsed.allows_uninitialized_input;
  if (parsed.deprecation_version > 0) {
    op->deprecation_version = parsed.deprecation_version;
    op->deprecation_reason = parsed.deprecation_reason;
  }
  return true;
}

// Splits at '|' that stands between spaces (sets write it without).
std::vector<absl::string_view> Sections(absl::string_view text) {
  std::vector<absl::string_view> out;
  size_t begin = 0, from = 0;
  while (true) {
    const size_t at = FindOutside(text, '|', from);
    if (at == text.npos) break;
    const bool spaced = (at == 0 || text[at - 1] == ' ') && (at + 1 == text.size() || text[at + 1] == ' ');
    if (spaced) {
      out.push_back(Trim(text.substr(begin, at - begin)));
      begin = at + 1;
    }
    from = at + 1;
  }
  out.push_back(Trim(text.substr(begin)));
  return out;
}

// Checks that what arguments refer to exists, and turns type names of arguments into fixed types.
Status ResolveArgs(std::vector<ArgDef>* args, const OpDef& op) {
  for (ArgDef& arg : *args) {
    if (!arg.type_attr.empty() && op.FindAttr(arg.type_attr) == nullptr) {
      const auto fixed = DTypeFromName(arg.type_attr);
      if (!fixed || IsRef(*fixed))
        return InvalidArgument("argument ", arg.name, ": no type or attribute ", arg.type_attr);
      arg.type = *fixed;
      arg.type_attr.clear();
    }
    const auto check = [&](const std::string& name, AttrKind kind, bool list) {
      const AttrDef* attr = op.FindAttr(name);
      return name.empty() || (attr != nullptr && attr->kind == kind && attr->is_list == list);
    };
    if (!check(arg.type_attr, AttrKind::kType, false) || !check(arg.number_attr, AttrKind::kInt, false) ||
        !check(arg.type_list_attr, AttrKind::kType, true)) {
      return InvalidArgument("argument ", arg.name, " refers to an attribute that is absent or of the wrong kind");
    }
  }
  return absl::OkStatus();
}

Status CheckUnique(const OpDef& op) {
  HashSet<absl::string_view> attrs, args, outputs;
  for (const AttrDef& a : op.attrs) {
    if (!attrs.insert(a.name).second) return InvalidArgument("attribute ", a.name, " declared twice");
  }
  for (const ArgDef& a : op.inputs) {
    if (!args.insert(a.name).second) return InvalidArgument("input ", a.name, " declared twice");
  }
  for (const ArgDef& a : op.outputs) {
    if (!outputs.insert(a.name).second) return InvalidArgument("output ", a.name, " declared twice");
  }
  return absl::OkStatus();
}

Status ParseInto(absl::string_view text, OpDef* op) {
  text = Trim(text);
  if (!text.empty() && absl::ascii_isdigit(text[0])) {
    const size_t space = text.find(' ');
    if (space == text.npos) return InvalidArgument("no op name");
    text = Trim(text.substr(space));
  }
  absl::ConsumePrefix(&text, "*");
  absl::ConsumePrefix(&text, "+");
  op->name = std::string(ConsumeWord(&text));
  if (op->name.empty()) return InvalidArgument("no op name");
  MR_RETURN_IF_ERROR(ParseArgs(&text, &op->inputs));
  text = Trim(text);
  if (!absl::ConsumePrefix(&text, "->")) return InvalidArgument("expected '->' at '", text, "'");
  MR_RETURN_IF_ERROR(ParseArgs(&text, &op->outputs));
  text = Trim(text);
  if (!text.empty()) {
    if (!absl::ConsumePrefix(&text, "|")) return InvalidArgument("expected '|' at '", text, "'");
    bool has_attrs = false;
    for (absl::string_view section : Sections(text)) {
      if (section.empty() || ParseFlags(section, op)) continue;
      if (has_attrs) return InvalidArgument("bad flags '", section, "'");
      has_attrs = true;
      for (absl::string_view piece : SplitOutside(section, ';')) {
        if (piece.empty()) continue;
        MR_ASSIGN_OR_RETURN(op->attrs.emplace_back(), ParseAttr(piece));
      }
    }
  }
  MR_RETURN_IF_ERROR(CheckUnique(*op));
  MR_RETURN_IF_ERROR(ResolveArgs(&op->inputs, *op));
  return ResolveArgs(&op->outputs, *op);
}

}  // namespace

StatusOr<std::vector<DType>> ParseTypeSet(absl::string_view text) {
  std::vector<DType> out;
  for (absl::string_view word : absl::StrSplit(text, '|')) {
    word = Trim(word);
    const auto set =
        std::find_if(NamedSets().begin(), NamedSets().end(), [word](const NamedSet& s) { return word == s.name; });
    if (set != NamedSets().end()) {
      for (DType t : set->types) AddType(t, &out);
    } else if (auto t = DTypeFromName(word); t && !IsRef(*t)) {
      AddType(*t, &out);
    } else {
      return InvalidArgument("'", word, "' is neither a type nor a set of types");
    }
  }
  return out;
}

std::vector<DType> Types(absl::string_view text) {
  auto types = ParseTypeSet(text);
  return types.ok() ? *std::move(types) : std::vector<DType>();
}

StatusOr<OpDef> ParseSchema(absl::string_view schema) {
  OpDef op;
  const Status s = ParseInto(schema, &op);
  if (!s.ok()) return Annotate(s, absl::StrCat("schema of ", op.name.empty() ? "?" : op.name, ": "));
  op.schema = std::string(schema);
  return op;
}

}  // namespace millrace
