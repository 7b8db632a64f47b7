// SPDX-License-Identifier: Apache-2.0
#include "doc_pages.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "schema_text.h"

namespace millrace::opgen {
namespace {

constexpr const char* kNotice = "<!-- Written by opgen from the declarations in src/ops. -->\n";

std::string GradientText(const OpDef& op) {
  switch (op.gradient_kind) {
    case GradientKind::kFunction: return "Differentiable.";
    case GradientKind::kNotDifferentiable: return absl::StrCat("No gradient flows: ", op.gradient_reason);
    case GradientKind::kStructural: return "Differentiable, as part of the conditional or loop that it belongs to.";
    case GradientKind::kMissing: return absl::StrCat("Asking for its gradient is an error: ", op.gradient_reason);
    case GradientKind::kUndecided: break;
  }
  return "";
}

std::string OpText(const OpDef& op) {
  std::string text = absl::StrCat("\n## ", op.name, "\n", op.doc, "\n\n```\n", SchemaText(op), "\n```\n");
  if (op.stateful) text += "\nStateful: never folded or merged with its like.\n";
  if (op.deprecation_version > 0) {
    absl::StrAppend(
        &text, "\nDeprecated from GraphDef version ", op.deprecation_version, ". ", op.deprecation_reason, "\n");
  }
  if (const std::string gradient = GradientText(op); !gradient.empty()) absl::StrAppend(&text, "\n", gradient, "\n");
  if (!op.examples.empty()) {
    absl::StrAppend(&text, "\nExample inputs: `", absl::StrJoin(op.examples, "`; `"), "`\n");
  }
  return text;
}

}  // namespace

std::map<std::string, std::string> DocPages(const std::vector<const OpDef*>& ops,
                                            const std::vector<const OpDef*>& composites) {
  std::map<std::string, std::string> pages;
  std::map<std::string, std::vector<std::string>> links;
  const auto add = [&](const OpDef& op, const std::string& file, const std::string& title) {
    std::string& page = pages[file];
    if (page.empty()) page = absl::StrCat(kNotice, "# ", title, "\n");
    page += OpText(op);
    links[file].push_back(absl::StrCat("[", op.name, "](", file, "#", absl::AsciiStrToLower(op.name), ")"));
  };
  for (const OpDef* op : ops) {
    if (op->name[0] == '_') continue;
    const std::string letter(1, op->name[0]);
    add(*op, absl::StrCat(absl::AsciiStrToLower(letter), ".md"), absl::StrCat("Ops: ", letter));
  }
  for (const OpDef* op : composites) add(*op, "composites.md", "Composites");
  std::string index = absl::StrCat(kNotice, "# Ops\n\nThe notation of schemas is explained in `src/op/op_def.h`.\n");
  for (const auto& [file, list] : links) {
    absl::StrAppend(&index, "\n## ", file.substr(0, file.size() - 3), "\n", absl::StrJoin(list, ", "), "\n");
  }
  pages["index.md"] = std::move(index);
  return pages;
}

}  // namespace millrace::opgen
