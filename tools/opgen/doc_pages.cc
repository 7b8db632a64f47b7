// SPDX-License-Identifier: Apache-2.0
#include "doc_pages.h"

#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "schema_text.h"

namespace millrace::opgen {
namespace {

constexpr const char* kNotice = "<!-- Written by opgen from the declarations in src/ops. -->\n";

// Text as Markdown, in which only what stands between backquotes is marked.
std::string Escaped(absl::string_view text) {
  std::string out;
  bool in_code = false;
  for (const char c : text) {
    if (c == '`') in_code = !in_code;
    if (!in_code && (c == '*' || c == '_' || c == '<' || c == '|' || c == '[')) out += '\\';
    out += c;
  }
  return out;
}

std::string Types(const std::vector<DType>& types) {
  if (types.empty()) return "any";
  return absl::StrJoin(types, ", ", [](std::string* out, DType t) { *out += DTypeName(t); });
}

std::string TypeOf(const ArgDef& arg) {
  std::string type = arg.type_attr.empty() ? DTypeName(arg.type) : absl::StrCat("`", arg.type_attr, "`");
  if (!arg.type_list_attr.empty()) return absl::StrCat("a list with the types `", arg.type_list_attr, "`");
  if (arg.is_ref) type = absl::StrCat("a reference to ", type);
  return arg.number_attr.empty() ? type : absl::StrCat("`", arg.number_attr, "` times ", type);
}

std::string ArgsTable(const char* title, const std::vector<ArgDef>& args) {
  if (args.empty()) return absl::StrCat("\n## ", title, "\nNone.\n");
  std::string text = absl::StrCat("\n## ", title, "\n| name | type |\n|---|---|\n");
  for (const ArgDef& arg : args) absl::StrAppend(&text, "| `", arg.name, "` | ", TypeOf(arg), " |\n");
  return text;
}

// As the schema has it, without the name.
std::string AttrColumns(const AttrDef& attr, const OpDef& op) {
  std::string kind = attr.is_list ? absl::StrCat("a list of ", AttrKindName(attr.kind)) : AttrKindName(attr.kind);
  if (!attr.allowed_types.empty()) absl::StrAppend(&kind, ": ", Types(attr.allowed_types));
  if (!attr.allowed_strings.empty()) absl::StrAppend(&kind, ": `", absl::StrJoin(attr.allowed_strings, "`, `"), "`");
  if (attr.has_minimum) absl::StrAppend(&kind, attr.is_list ? ", so many or more: " : ", from ", attr.minimum);
  const std::string text = AttrText(attr, op);
  const size_t at =
      attr.has_default ? text.find('=', text.find(">=") == text.npos ? 0 : text.find(">=") + 2) : text.npos;
  return absl::StrCat(kind, " | ", at == text.npos ? "" : absl::StrCat("`", text.substr(at + 1), "`"));
}

std::string AttrsTable(const OpDef& op) {
  if (op.attrs.empty()) return "";
  std::string text = "\n## Attributes\n| name | kind | default |\n|---|---|---|\n";
  for (const AttrDef& attr : op.attrs) {
    absl::StrAppend(&text, "| `", attr.name, "` | ", AttrColumns(attr, op), " |\n");
  }
  return text;
}

std::string GradientText(const OpDef& op) {
  switch (op.gradient_kind) {
    case GradientKind::kFunction: return "Differentiable.";
    case GradientKind::kNotDifferentiable: return absl::StrCat("None flows: ", Escaped(op.gradient_reason), ".");
    case GradientKind::kStructural: return "Differentiable, as part of the conditional or loop that it belongs to.";
    case GradientKind::kMissing: return absl::StrCat("Asking for it is an error: ", Escaped(op.gradient_reason), ".");
    case GradientKind::kUndecided: break;
  }
  return "";
}

std::string DevicesText(const OpDef& op, const KernelRegistry& kernels) {
  std::set<std::string> rows;  // kernels that differ in more than types are told once
  for (const KernelSpec& spec : kernels.SpecsFor(op.name)) {
    const std::string types = absl::StrJoin(spec.types, "; ", [](std::string* out, const auto& attr) {
      absl::StrAppend(out, "`", attr.first, "`: ", Types(attr.second));
    });
    rows.insert(absl::StrCat("| ", spec.device, " | ", types.empty() ? "all that the op takes" : types, " |\n"));
  }
  if (rows.empty()) return "\n## Devices\nNo kernel: the compiler replaces it, or it stands for something else.\n";
  return absl::StrCat("\n## Devices\n| device | types |\n|---|---|\n", absl::StrJoin(rows, ""),
                      "\nDevices of [plugins](../devices.md) bring kernels of their own.\n");
}

std::string OpPage(const OpDef& op, const KernelRegistry* kernels) {
  std::string text =
      absl::StrCat(kNotice, "# ", op.name, "\n", Escaped(op.doc), "\n\n```\n", SchemaText(op), "\n```\n");
  if (op.stateful) text += "\nStateful: never folded or merged with its like.\n";
  if (op.deprecation_version > 0) {
    absl::StrAppend(&text, "\nDeprecated from GraphDef version ", op.deprecation_version, ". ",
                    Escaped(op.deprecation_reason), "\n");
  }
  absl::StrAppend(&text, ArgsTable("Inputs", op.inputs), ArgsTable("Outputs", op.outputs), AttrsTable(op));
  if (const std::string gradient = GradientText(op); !gradient.empty()) {
    absl::StrAppend(&text, "\n## Gradient\n", gradient, "\n");
  }
  absl::StrAppend(&text, kernels != nullptr ? DevicesText(op, *kernels)
                                            : "\n## Devices\nA composite: it becomes other ops where it is stated.\n");
  if (!op.examples.empty()) {
    absl::StrAppend(&text, "\n## Example inputs\n`", absl::StrJoin(op.examples, "`; `"), "`\n");
  }
  return text;
}

std::string FirstSentence(const std::string& doc) {
  const size_t end = doc.find(". ");
  return Escaped(end == doc.npos ? doc : doc.substr(0, end));
}

std::string Rows(const std::vector<const OpDef*>& ops) {
  std::string text = "| op | |\n|---|---|\n";
  for (const OpDef* op : ops) {
    absl::StrAppend(&text, "| [", op->name, "](", op->name, ".md) | ", FirstSentence(op->doc), " |\n");
  }
  return text;
}

}  // namespace

std::map<std::string, std::string> DocPages(
    const std::vector<const OpDef*>& ops, const std::vector<const OpDef*>& composites, const KernelRegistry& kernels) {
  std::map<std::string, std::string> pages;
  std::map<char, std::vector<const OpDef*>> by_letter;
  for (const OpDef* op : ops) {
    if (op->name[0] == '_') continue;
    pages[op->name + ".md"] = OpPage(*op, &kernels);
    by_letter[op->name[0]].push_back(op);
  }
  for (const OpDef* op : composites) pages[op->name + ".md"] = OpPage(*op, nullptr);
  std::string index = absl::StrCat(
      kNotice,
      "# Ops\nEvery op, from its declaration: inputs, outputs, attributes, the gradient or why there is none, "
      "devices with their types. `tf.raw_ops`, `scope.Op(\"Name\", ...)` and `TF_NewOperation` take them by these "
      "names.\n");
  for (const auto& [letter, list] : by_letter) {
    absl::StrAppend(&index, "\n## ", absl::string_view(&letter, 1), "\n", Rows(list));
  }
  absl::StrAppend(&index, "\n## Composites\nSeveral ops that C++ states by one name.\n\n", Rows(composites));
  pages["index.md"] = std::move(index);
  return pages;
}

}  // namespace millrace::opgen
