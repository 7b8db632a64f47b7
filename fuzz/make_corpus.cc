// SPDX-License-Identifier: Apache-2.0
// Writes the seed corpus: make_corpus FOLDER < graphs in text form, one file per "# name" line.
#include <fstream>
#include <iostream>
#include <string>

#include "wire/graph.h"

namespace {

bool Write(const std::string& path, const std::string& text) {
  millrace::wire::GraphDef def;
  const absl::Status s = millrace::wire::DecodeText(text, &def);
  if (!s.ok()) {
    std::cerr << path << ": " << s << "\n";
    return false;
  }
  std::ofstream out(path, std::ios::binary);
  out << millrace::wire::Encode(def);
  return out.good();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: make_corpus FOLDER < seeds.pbtxt\n";
    return 2;
  }
  const std::string folder = std::string(argv[1]) + "/";
  std::string line, name, text;
  bool ok = true;
  const auto flush = [&] {
    if (!name.empty()) ok = Write(folder + name, text) && ok;
    text.clear();
  };
  while (std::getline(std::cin, line)) {
    if (line.rfind("# ", 0) == 0) {
      flush();
      name = line.substr(2);
    } else {
      text += line + "\n";
    }
  }
  flush();
  return ok ? 0 : 1;
}
