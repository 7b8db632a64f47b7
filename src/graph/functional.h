// SPDX-License-Identifier: Apache-2.0
// Loops over the first dimension of tensors: map, fold, scan. The elements lie in tensor arrays, so gradients flow
// through and iterations of a map overlap. Several tensors of the same first dimension are taken together.
#pragma once

#include <vector>

#include "graph/control_flow.h"

namespace millrace {

struct SweepOptions {
  int parallel_iterations = 10;
  bool back_prop = true;
  bool swap_memory = false;
  bool reverse = false;  // from the last element to the first
};

// `fn` of each element (one input per tensor of `elements`), its results stacked. `dtypes` are those of the results;
// empty: those of the elements.
StatusOr<std::vector<Output>> MapFn(
    const GraphBuilder& b, absl::Span<const Output> elements, absl::Span<const DType> dtypes, const BuildFn& fn,
    const SweepOptions& options = {}, absl::string_view name = "map");

// The last of the accumulators that `fn` makes, one after the other, of the accumulators and an element (its inputs, in
// this order). Without `initial` values the first element is where it starts.
StatusOr<std::vector<Output>> Fold(
    const GraphBuilder& b, absl::Span<const Output> elements, absl::Span<const Output> initial, const BuildFn& fn,
    const SweepOptions& options = {}, absl::string_view name = "foldl");

// Likewise, but all the accumulators stacked, each at the place of its element.
StatusOr<std::vector<Output>> Scan(
    const GraphBuilder& b, absl::Span<const Output> elements, absl::Span<const Output> initial, const BuildFn& fn,
    const SweepOptions& options = {}, absl::string_view name = "scan");

}  // namespace millrace
