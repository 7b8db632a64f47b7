// SPDX-License-Identifier: Apache-2.0
// Cuts out of a client's graph what one run signature needs (white paper 4.2): every fed output is replaced by an _Arg,
// every fetched one gets a _Retval, and what neither fetches nor targets need is left out. Calls stay, with the
// functions that they name.
#pragma once

#include <memory>
#include <vector>

#include "graph/inline_calls.h"

namespace millrace {

struct RunSignature {
  std::vector<Output> feeds;
  std::vector<Output> fetches;
  std::vector<Node*> targets;
};

// An attribute of the _Retval of a fetch that reads a variable and nothing else, as the client stated it.
inline constexpr char kFetchesVariable[] = "_fetches_variable";

struct PruneOptions {
  // Feeds and fetches meet the client in the step's rendezvous (_Recv / _Send) instead of as arguments: partial runs.
  bool through_rendezvous = false;
  std::string client_device;
  uint64_t client_incarnation = 0;
  ExpandOptions calls;
};

// InvalidArgument: an output fed twice or fed into an input that wants a reference, an index out of range.
StatusOr<std::unique_ptr<Graph>> PruneForRun(const Graph& source, const RunSignature& signature,
                                             const PruneOptions& options = {});

// The name under which feed or fetch `o` meets the client in a partial run.
std::string ClientTensorName(const char* what, Output o);

// Which of `feeds` each of `fetches` depends on.
std::vector<std::vector<bool>> FeedsNeededBy(const std::vector<Output>& feeds, const std::vector<Output>& fetches);

}  // namespace millrace
