// SPDX-License-Identifier: Apache-2.0
// Mutates inputs at random, without coverage: blind SECONDS SEED FOLDER CURRENT. Each input is in the file CURRENT
// while it runs, so that it is there after a crash.
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "graph_mutator.h"
#include "graph_run.h"
#include "system/system.h"

namespace {

using millrace::wire::GraphDef;
using Clock = std::chrono::steady_clock;

constexpr double kSlowSeconds = 3;

std::vector<GraphDef> Load(const std::string& folder) {
  std::vector<GraphDef> graphs;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    GraphDef def;
    if (millrace::wire::Decode(bytes, &def).ok()) graphs.push_back(std::move(def));
  }
  return graphs;
}

double SecondsSince(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  namespace fuzz = millrace::fuzz;
  fuzz::LimitMemory();
  const double limit = std::atof(argv[1]);
  fuzz::Random random(static_cast<unsigned>(std::atoi(argv[2])));
  const millrace::OpRegistry& ops = millrace::System::Default().ops();
  std::vector<GraphDef> graphs = Load(argv[3]);
  if (graphs.empty()) return 2;
  const std::string current = argv[4];
  const auto start = Clock::now();
  size_t runs = 0, slow = 0;
  while (SecondsSince(start) < limit) {
    GraphDef def = graphs[random() % graphs.size()];
    if (random() % 4 == 0) fuzz::Join(random, graphs[random() % graphs.size()], &def);
    for (size_t i = 1 + random() % 6; i > 0; --i) fuzz::Mutate(ops, random, &def);
    const std::string bytes = millrace::wire::Encode(def);
    if (bytes.size() > fuzz::kMaxBytes) continue;
    std::ofstream(current, std::ios::binary) << bytes;
    const auto began = Clock::now();
    bool ok = true;
    fuzz::RunInput(bytes, [&](auto, const millrace::Status& s, auto) { ok = ok && s.ok(); });
    ++runs;
    if (SecondsSince(began) > kSlowSeconds) {
      std::cerr << SecondsSince(began) << " s: " << current << ".slow" << slow << std::endl;
      std::ofstream(current + ".slow" + std::to_string(slow++), std::ios::binary) << bytes;
    }
    // What runs well is worth going on from.
    if (ok && graphs.size() < 20000) graphs.push_back(std::move(def));
  }
  std::cout << runs << " runs, " << slow << " slow\n";
  return slow > 0 ? 1 : 0;
}
