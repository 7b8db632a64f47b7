// SPDX-License-Identifier: Apache-2.0
// Any bytes as a GraphDef: import, then steps that fetch what can run without feeds. Nothing may crash, hang or eat
// memory; every outcome else is fine.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>

#include "graph_mutator.h"
#include "graph_run.h"
#include "system/system.h"

namespace millrace::fuzz {
namespace {

// Libfuzzer counts these as it counts edges: which op ended how is worth more than which branch was taken.
__attribute__((section("__libfuzzer_extra_counters"), used)) uint8_t outcomes[1 << 14];

// The same in every process, so that a corpus keeps its meaning.
size_t Mix(size_t hash, absl::string_view text) {
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return hash;
}

void Note(absl::string_view op, const Status& status, absl::Span<const Tensor> out) {
  size_t what = static_cast<size_t>(status.code());
  if (!out.empty()) {
    what = 100 + static_cast<size_t>(out[0].dtype()) * 16 + static_cast<size_t>(out[0].shape().rank() & 7);
  }
  std::string words;  // of a message, without the numbers in it
  for (const char c : status.message().substr(0, 40)) {
    if (c >= 'a' && c <= 'z') words.push_back(c);
  }
  outcomes[Mix(Mix(what, op), words) % std::size(outcomes)] = 1;
}

bool DecodeGraph(const uint8_t* data, size_t size, wire::GraphDef* def) {
  return wire::Decode(absl::string_view(reinterpret_cast<const char*>(data), size), def).ok();
}

// 0 when it does not fit.
size_t Put(const wire::GraphDef& def, uint8_t* out, size_t max_size) {
  const std::string bytes = wire::Encode(def);
  if (bytes.size() > max_size) return 0;
  std::memcpy(out, bytes.data(), bytes.size());
  return bytes.size();
}

}  // namespace
}  // namespace millrace::fuzz

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
  millrace::fuzz::LimitMemory();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > millrace::fuzz::kMaxBytes) return -1;
  millrace::fuzz::RunInput(absl::string_view(reinterpret_cast<const char*>(data), size), millrace::fuzz::Note);
  return 0;
}

// From libFuzzer: mutates bytes as it does by default.
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed) {
  using namespace millrace;  // NOLINT: the entry point has its name from libFuzzer
  fuzz::Random random(seed + 1);
  wire::GraphDef def;
  if (seed % 16 == 0 || !fuzz::DecodeGraph(data, size, &def)) return LLVMFuzzerMutate(data, size, max_size);
  for (int i = 0; i < 1 + static_cast<int>(seed % 4); ++i) fuzz::Mutate(System::Default().ops(), random, &def);
  const size_t written = fuzz::Put(def, data, max_size);
  return written > 0 ? written : LLVMFuzzerMutate(data, size, max_size);
}

extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t* data1, size_t size1, const uint8_t* data2, size_t size2,
                                            uint8_t* out, size_t max_size, unsigned int seed) {
  using namespace millrace;  // NOLINT: the entry point has its name from libFuzzer
  fuzz::Random random(seed + 1);
  wire::GraphDef a, b;
  if (!fuzz::DecodeGraph(data1, size1, &a) || !fuzz::DecodeGraph(data2, size2, &b)) return 0;
  fuzz::Join(random, b, &a);
  return fuzz::Put(a, out, max_size);
}
