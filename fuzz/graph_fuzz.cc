// SPDX-License-Identifier: Apache-2.0
// Any bytes as a GraphDef: import, then one step that fetches what can run without feeds. Nothing may crash, hang or eat
// memory; every outcome else is fine.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "graph/graph_def.h"
#include "system/system.h"

namespace millrace {
namespace {

constexpr size_t kMaxBytes = 64 << 10;
constexpr size_t kMaxNodes = 256;
constexpr size_t kMaxFetches = 8;
constexpr int64_t kTimeoutMs = 200;

// Nodes with side effects outside the process: a fuzzer must not write files.
bool TouchesFiles(const wire::NodeDef& n) {
  for (const char* word : {"Save", "Restore", "Checkpoint", "File", "Print"}) {
    if (n.op.find(word) != std::string::npos) return true;
  }
  return false;
}

bool TouchesFiles(const wire::GraphDef& def) {
  for (const auto& n : def.node) {
    if (TouchesFiles(n)) return true;
  }
  if (!def.library) return false;
  for (const auto& f : def.library->function) {
    for (const auto& n : f.node_def) {
      if (TouchesFiles(n)) return true;
    }
  }
  return false;
}

void RunAll(Session& session, SharedGraph& graph) {
  std::vector<Output> fetches;
  std::vector<Node*> targets;
  {
    absl::MutexLock lock(&graph.mu);
    for (Node* n : graph.graph.nodes()) {
      if (n->op() == nullptr || n->op_name() == "Placeholder") continue;
      if (n->num_outputs() == 0) {
        targets.push_back(n);
      } else if (n->consumers().empty() || n->num_inputs() == 0) {
        fetches.push_back(n->output(0));
      }
    }
  }
  wire::RunOptions options;
  options.timeout_in_ms = kTimeoutMs;
  std::vector<Tensor> out;
  // One at a time: one bad node must not hide the others.
  for (size_t i = 0; i < fetches.size() && i < kMaxFetches; ++i) {
    (void)session.Run(&options, {}, {}, {fetches[i]}, {}, &out, nullptr);
  }
  if (!targets.empty()) (void)session.Run(&options, {}, {}, {}, targets, &out, nullptr);
}

}  // namespace
}  // namespace millrace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace millrace;  // NOLINT: the entry point has its name from libFuzzer
  if (size > kMaxBytes) return -1;
  wire::GraphDef def;
  if (!wire::Decode(absl::string_view(reinterpret_cast<const char*>(data), size), &def).ok()) return 0;
  if (def.node.size() > kMaxNodes || TouchesFiles(def)) return 0;
  const auto graph = MakeRef<SharedGraph>(&System::Default().ops());
  {
    absl::MutexLock lock(&graph->mu);
    if (!ImportGraphDef(def, {}, &graph->graph).ok()) return 0;
  }
  wire::ConfigProto config;
  config.isolate_session_state = true;  // each input starts without variables
  auto session = System::Default().NewSession(graph, config);
  if (session.ok()) RunAll(**session, *graph);
  return 0;
}
