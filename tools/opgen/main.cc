// SPDX-License-Identifier: Apache-2.0
// opgen writes what follows from the declarations of ops.
//
//   opgen --header FILE    millrace/ops.h
//   opgen --docs FOLDER    Markdown pages
//   opgen --python FILE    millrace/ops/gen_ops.py
//   opgen --stub FILE      millrace/ops/gen_ops.pyi
//   opgen --schemas FILE   the golden list of schemas
//   opgen --check FILE     compares FILE with it; exit status 1 where they differ
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>
#include <sstream>

#include "absl/strings/str_split.h"
#include "cpp_header.h"
#include "doc_pages.h"
#include "python_module.h"
#include "schema_text.h"
#include "system/system.h"

namespace millrace::opgen {
namespace {

bool Write(const std::filesystem::path& path, const std::string& text) {
  std::error_code ignored;
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), ignored);
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (file.fail()) std::cerr << "opgen: cannot write " << path << "\n";
  return !file.fail();
}

struct Declared {
  std::vector<const OpDef*> ops, composites;
};

StatusOr<Declared> AllDeclared() {
  System& system = System::Default();
  MR_RETURN_IF_ERROR(system.ops().status());
  MR_RETURN_IF_ERROR(system.composites().status());
  Declared d;
  d.ops = system.ops().All();
  for (const CompositeDef* c : system.composites().All()) d.composites.push_back(&c->def);
  std::sort(d.composites.begin(), d.composites.end(), [](const OpDef* a, const OpDef* b) { return a->name < b->name; });
  return d;
}

StatusOr<std::string> Schemas(const Declared& d) {
  std::string text =
      "# The schema of every op, in the notation of src/op/op_def.h. Written by: opgen --schemas docs/op_schemas.txt\n";
  for (const auto* list : {&d.ops, &d.composites}) {
    if (list == &d.composites) text += "# Composites\n";
    for (const OpDef* op : *list) {
      const std::string line = SchemaText(*op);
      MR_ASSIGN_OR_RETURN(OpDef again, ParseSchema(line));
      if (SchemaText(again) != line) return Internal("the schema does not read back as it was written: ", line);
      text += line + "\n";
    }
  }
  return text;
}

bool Check(const std::string& path, const std::string& wanted) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    std::cerr << "opgen: cannot read " << path << "\n";
    return false;
  }
  std::stringstream content;
  content << file.rdbuf();
  if (content.str() == wanted) return true;
  const std::vector<std::string> old_lines = absl::StrSplit(content.str(), '\n'),
                                 new_lines = absl::StrSplit(wanted, '\n');
  const std::set<std::string> old_set(old_lines.begin(), old_lines.end()), new_set(new_lines.begin(), new_lines.end());
  for (const std::string& line : old_lines) {
    if (new_set.count(line) == 0) std::cerr << "- " << line << "\n";
  }
  for (const std::string& line : new_lines) {
    if (old_set.count(line) == 0) std::cerr << "+ " << line << "\n";
  }
  std::cerr << "The declared ops differ from " << path
            << ". New ops, and new attributes with a default, are compatible; "
            << "anything else breaks stored graphs. If it is meant, update the list: opgen --schemas " << path << "\n";
  return false;
}

bool Run(const std::string& mode, const std::string& path) {
  const StatusOr<Declared> declared = AllDeclared();
  if (!declared.ok()) {
    std::cerr << "opgen: " << declared.status() << "\n";
    return false;
  }
  if (mode == "--header") return Write(path, CppHeader(declared->ops, declared->composites));
  if (mode == "--python") return Write(path, PythonModule(declared->ops, declared->composites));
  if (mode == "--stub") return Write(path, PythonStub(declared->ops, declared->composites));
  if (mode == "--docs") {
    for (const auto& [name, text] : DocPages(declared->ops, declared->composites, System::Default().kernels())) {
      if (!Write(std::filesystem::path(path) / name, text)) return false;
    }
    return true;
  }
  const StatusOr<std::string> schemas = Schemas(*declared);
  if (!schemas.ok()) {
    std::cerr << "opgen: " << schemas.status() << "\n";
    return false;
  }
  return mode == "--check" ? Check(path, *schemas) : Write(path, *schemas);
}

}  // namespace
}  // namespace millrace::opgen

int main(int argc, char** argv) {
  const std::set<std::string> modes = {"--header", "--docs", "--python", "--stub", "--schemas", "--check"};
  if (argc < 3 || argc % 2 == 0) {
    std::cerr << "usage: opgen {--header FILE | --docs FOLDER | --python FILE | --stub FILE | --schemas FILE | --check "
                 "FILE}...\n";
    return 2;
  }
  for (int i = 1; i + 1 < argc; i += 2) {
    if (modes.count(argv[i]) == 0) {
      std::cerr << "opgen: unknown mode " << argv[i] << "\n";
      return 2;
    }
    if (!millrace::opgen::Run(argv[i], argv[i + 1])) return 1;
  }
  return 0;
}
