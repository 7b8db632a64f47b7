// SPDX-License-Identifier: Apache-2.0
// A client's connection to the system: runs parts of a graph, keeps state between runs. Thread-safe: several threads
// may Run at once. Every Run has a deadline (RunOptions, else the session's operation_timeout_in_ms, else none only
// when both are 0); Close cancels what runs and returns within 10 seconds.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "graph/shared_graph.h"
#include "service/device_info.h"
#include "tensor/tensor.h"
#include "wire/config.h"

namespace millrace {

// Deterministic mode: each step runs on one thread, its caller's, over all devices, and among nodes that are ready the
// order is drawn from the seed (0: construction order) and from how many steps the session has begun. The same seed
// gives the same schedules; every seed must give the same values.
struct Determinism {
  bool on = false;
  uint64_t order_seed = 0;
};

class Session {
 public:
  virtual ~Session() = default;

  // One step. `feeds[i]` (any output of the graph) takes `feed_values[i]`; `outputs` gets one tensor per fetch.
  // `options` and `metadata` may be null.
  virtual Status Run(const wire::RunOptions* options, absl::Span<const Output> feeds,
                     absl::Span<const Tensor> feed_values, absl::Span<const Output> fetches,
                     absl::Span<Node* const> targets, std::vector<Tensor>* outputs, wire::RunMetadata* metadata) = 0;

  // Partial run: a step whose feeds and fetches come in several calls. Setup names all of them.
  virtual StatusOr<std::string> PartialRunSetup(absl::Span<const Output> feeds, absl::Span<const Output> fetches,
                                                absl::Span<Node* const> targets) = 0;
  virtual Status PartialRun(const std::string& handle, absl::Span<const Output> feeds,
                            absl::Span<const Tensor> feed_values, absl::Span<const Output> fetches,
                            std::vector<Tensor>* outputs) = 0;
  // Ends it, whether it has failed, is finished, or will not be.
  virtual Status ReleasePartialRun(const std::string& handle) = 0;

  // What the compiler makes of such a step: the time and the effect of its stages, the partitions, where each node lies
  // and why. The step does not run.
  virtual StatusOr<Explanation> Explain(absl::Span<const Output> feeds, absl::Span<const Output> fetches,
                                        absl::Span<Node* const> targets) = 0;

  virtual StatusOr<std::vector<DeviceInfo>> ListDevices() = 0;
  // Where the session's random ops are in their streams, as a text; and putting them there, in this session or another
  // one of the same graph, which then draws the same numbers. Ops that the text does not name stay where they are.
  // Between steps.
  virtual StatusOr<std::string> RandomState() = 0;
  virtual Status SetRandomState(absl::string_view state) = 0;

  // Cancels steps in flight; later calls fail with Cancelled. Idempotent.
  virtual Status Close() = 0;
};

}  // namespace millrace
