// SPDX-License-Identifier: Apache-2.0
// Runs inputs again without libFuzzer: replay FILE_OR_FOLDER... Fails when one takes longer than it may; what else is
// wrong with one ends the process, so each is named first (with -v).
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "graph_run.h"

namespace {

namespace fs = std::filesystem;

constexpr double kMaxSeconds = 20;  // steps have deadlines of 0.2 s; sanitizers slow down what comes before them

std::vector<fs::path> Inputs(const std::vector<std::string>& from) {
  std::vector<fs::path> files;
  for (const std::string& name : from) {
    if (!fs::is_directory(name)) {
      files.emplace_back(name);
      continue;
    }
    for (const auto& entry : fs::directory_iterator(name)) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
  }
  return files;
}

double Seconds(const fs::path& file, bool verbose) {
  std::ifstream in(file, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  const auto start = std::chrono::steady_clock::now();
  millrace::fuzz::RunInput(bytes, [&](absl::string_view op, const millrace::Status& s, auto out) {
    if (!verbose) return;
    std::cout << "  " << op << ": " << s.ToString();
    if (!out.empty()) std::cout << " " << millrace::DTypeName(out[0].dtype()) << " " << out[0].shape().ToString();
    std::cout << std::endl;
  });
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> from(argv + 1, argv + argc);
  const bool verbose = !from.empty() && from[0] == "-v";
  if (verbose) from.erase(from.begin());
  millrace::fuzz::LimitMemory();
  int slow = 0;
  const std::vector<fs::path> inputs = Inputs(from);
  for (const fs::path& file : inputs) {
    if (verbose) std::cout << file.string() << std::endl;
    const double seconds = Seconds(file, verbose);
    if (seconds > kMaxSeconds) {
      std::cerr << file.string() << ": took " << seconds << " s\n";
      ++slow;
    } else if (verbose) {
      std::cout << "  " << seconds << " s" << std::endl;
    }
  }
  std::cout << inputs.size() << " inputs, " << slow << " too slow\n";
  return inputs.empty() || slow > 0 ? 1 : 0;
}
