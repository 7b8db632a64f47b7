// SPDX-License-Identifier: Apache-2.0
// What the kernels of random ops share.
#pragma once

#include "kernel/kernel_registry.h"
#include "kernel/random_stream.h"
#include "kernels/shared/philox.h"

namespace millrace {

// Owns the stream of one op: attributes seed and seed2, or a random start when both are 0. Each run takes the next
// piece.
class RandomKernel : public Kernel, public RandomStream {
 public:
  Status Init(const KernelInit& init) override;
  Position position() const override;
  void set_position(const Position& p) override;

 protected:
  // Begins the stream: by the seeds, or anywhere when both are 0.
  void Start(const KernelInit& init, int64_t seed, int64_t seed2);
  // The start of a piece of the stream that nobody else gets, long enough for `outputs` numbers.
  Philox Reserve(int64_t outputs);
  // The same, long enough for this many blocks of the generator.
  Philox ReserveBlocks(uint64_t blocks);

 private:
  static constexpr uint64_t kBlocksPerOutput = 256;
  mutable absl::Mutex mu_;
  Philox generator_ ABSL_GUARDED_BY(mu_);
};

// Input i as a shape: InvalidArgument unless it is a vector of valid dimensions.
StatusOr<Shape> ShapeInput(const KernelContext& ctx, int i);

// The stream of a stateless op: the seed in input `seed` goes through one Philox block, under the key that TensorFlow
// chose, so that near seeds give unrelated streams.
StatusOr<Philox> StatelessStream(const KernelContext& ctx, int seed);

// The same for a key, a counter and an algorithm in the inputs from `key` on.
inline constexpr int kPhiloxAlgorithm = 1, kAnyAlgorithm = 3;  // TensorFlow's numbers for them
StatusOr<Philox> KeyedStream(const KernelContext& ctx, int key);

// The stream that the state in resource input 0 stands for, a variable of int64 with counter and key: the start of a
// piece of it that nobody else gets, long enough for `outputs` numbers. The algorithm is in input 1, or first in the
// state where there is no such input.
StatusOr<Philox> ReserveState(const KernelContext& ctx, int64_t outputs);

// Where the numbers of an op come from: a stream of the kernel's own; a seed, or a key and a counter, in the inputs
// behind the shape; a variable's state, in the inputs before it; what nobody can tell beforehand.
enum class Source : uint8_t { kOwn, kSeed, kKey, kState, kUnknown };
// Which input is the first behind those, of an op whose first inputs they and the shape are.
constexpr int InputsOf(Source source) {
  return source == Source::kOwn ? 1 : source == Source::kSeed ? 2 : source == Source::kKey ? 4 : 3;
}
// The stream of an op that has none of its own; of a state's, a piece for so many numbers.
StatusOr<Philox> StreamOf(const KernelContext& ctx, Source source, int64_t outputs);

void RegisterRandomState(KernelRegistry& registry);  // RngSkip
void RegisterRandomBinomial(KernelRegistry& registry);

void RegisterRandomSamplers(KernelRegistry& registry);   // shuffle, multinomial, gamma, Poisson
void RegisterTruncatedNormal(KernelRegistry& registry);  // with parameters

}  // namespace millrace
