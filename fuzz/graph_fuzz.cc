// SPDX-License-Identifier: Apache-2.0
// Any bytes as a GraphDef: import, then one step that fetches what can run without feeds. Nothing may crash, hang or
// eat memory; every outcome else is fine.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "absl/hash/hash.h"
#include "graph/graph_def.h"
#include "graph_mutator.h"
#include "system/system.h"

namespace millrace {
namespace {

constexpr size_t kMaxBytes = 64 << 10;
constexpr size_t kMaxNodes = 256;
constexpr size_t kMaxFetches = 8;
constexpr int64_t kTimeoutMs = 200;

// Libfuzzer counts these as it counts edges: which op ended how is worth more than which branch was taken.
__attribute__((section("__libfuzzer_extra_counters"), used)) uint8_t outcomes[1 << 14];

void Note(absl::string_view op, const Status& status, absl::Span<const Tensor> out) {
  size_t what = static_cast<size_t>(status.code());
  if (!out.empty())
    what = 100 + static_cast<size_t>(out[0].dtype()) * 16 + static_cast<size_t>(out[0].shape().rank() & 7);
  // Of a message its words, without the numbers in it.
  for (const char c : status.message().substr(0, 40)) {
    if (c >= 'a' && c <= 'z') what = what * 31 + static_cast<size_t>(c);
  }
  outcomes[(absl::HashOf(op) * 31 + what) % std::size(outcomes)] = 1;
}

void RunAll(Session& session, SharedGraph& graph) {
  std::vector<Output> fetches;
  std::vector<Node*> targets;
  {
    millrace::GraphLock lock(&graph.mu);
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
    out.clear();
    const Status s = session.Run(&options, {}, {}, {fetches[i]}, {}, &out, nullptr);
    Note(fetches[i].node->op_name(), s, out);
  }
  if (!targets.empty()) (void)session.Run(&options, {}, {}, {}, targets, &out, nullptr);
}

}  // namespace
}  // namespace millrace

// Legal graphs may want more memory than there is: beyond this the allocator says so.
extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
  return setenv("MILLRACE_MEMORY_LIMIT_BYTES", "536870912", /*overwrite=*/0);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace millrace;  // NOLINT: the entry point has its name from libFuzzer
  if (size > kMaxBytes) return -1;
  wire::GraphDef def;
  if (!wire::Decode(absl::string_view(reinterpret_cast<const char*>(data), size), &def).ok()) return 0;
  if (def.node.size() > kMaxNodes || fuzz::TouchesFiles(def)) return 0;
  const auto graph = MakeRef<SharedGraph>(&System::Default().ops());
  {
    millrace::GraphLock lock(&graph->mu);
    const Status s = ImportGraphDef(def, {}, &graph->graph).status();
    if (!s.ok()) {
      Note("import", s, {});
      return 0;
    }
  }
  wire::ConfigProto config;
  config.isolate_session_state = true;  // each input starts without variables
  auto session = System::Default().NewSession(graph, config);
  if (session.ok()) RunAll(**session, *graph);
  return 0;
}

// From libFuzzer: mutates bytes as it does by default.
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed) {
  using namespace millrace;  // NOLINT: the entry point has its name from libFuzzer
  fuzz::Random random(seed + 1);
  wire::GraphDef def;
  if (seed % 16 == 0 || !wire::Decode(absl::string_view(reinterpret_cast<const char*>(data), size), &def).ok()) {
    return LLVMFuzzerMutate(data, size, max_size);
  }
  for (int i = 0; i < 1 + static_cast<int>(seed % 4); ++i) fuzz::Mutate(System::Default().ops(), random, &def);
  const std::string bytes = wire::Encode(def);
  if (bytes.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
  std::memcpy(data, bytes.data(), bytes.size());
  return bytes.size();
}
