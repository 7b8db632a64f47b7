// SPDX-License-Identifier: Apache-2.0
// One fuzz input: import, gradients, steps. Shared by the libFuzzer target and by the replay of the corpus.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "tensor/tensor.h"
#include "wire/graph.h"

namespace millrace::fuzz {

inline constexpr size_t kMaxBytes = 64 << 10;

// How an input is run, as bits of minus the producer version of its GraphDef, where that is negative.
enum Way : int32_t {
  kPlain = 0,
  kFeedConstants = 1,  // constants become placeholders without a shape, so only kernels see their values
  kGradients = 2,      // the gradients of what nothing reads with respect to the constants are fetched too
  kThreeDevices = 4,
  kOneThread = 8,
  kUnoptimized = 16,
  kAllAtOnce = 32,  // one step for everything, else one per fetch
  kAllWays = 63,
};
Way WayOf(const wire::GraphDef& def);
void SetWay(int32_t way, wire::GraphDef* def);

// Gets the op that was fetched or what else was done, how it ended and what it gave.
using Outcome = absl::FunctionRef<void(absl::string_view op, const Status& status, absl::Span<const Tensor> out)>;

// Sets the memory limit that inputs are run under, unless the environment has one. Before anything else.
void LimitMemory();
// Graphs with ops that touch files are passed over, unless the caller has made the current folder one where they may.
void RunInput(absl::string_view bytes, Outcome outcome, bool may_touch_files = false);

}  // namespace millrace::fuzz
