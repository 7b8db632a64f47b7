// SPDX-License-Identifier: Apache-2.0
// In which order what works in parallel gives its elements: a flag of ops up to 1.15, a word of those after it.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/cpu/data/dataset_calls.h"

namespace millrace {

enum class ElementOrder : uint8_t {
  kKept,
  kAsAsked,  // kept, unless the pipeline is said to be sloppy
  kFree,     // as elements are ready
};

inline StatusOr<ElementOrder> ElementOrderOf(const KernelInit& init) {
  if (!init.HasAttr("deterministic")) {
    MR_ASSIGN_OR_RETURN(const bool sloppy, init.Attr<bool>("sloppy"));
    return sloppy ? ElementOrder::kFree : ElementOrder::kAsAsked;
  }
  MR_ASSIGN_OR_RETURN(const std::string word, init.Attr<std::string>("deterministic"));
  if (word == "true") return ElementOrder::kKept;
  if (word == "false") return ElementOrder::kFree;
  if (word == "default") return ElementOrder::kAsAsked;
  return InvalidArgument("Unrecognized determinism policy: ", word);
}

inline bool IsFree(ElementOrder order, const DataContext& ctx) {
  return order == ElementOrder::kFree || (order == ElementOrder::kAsAsked && ctx.sloppy);
}

// Of an op that goes without: its input num_parallel_calls.
inline Status CheckParallelCalls(const KernelContext& ctx, int i) {
  MR_ASSIGN_OR_RETURN(const int64_t calls, ScalarInput(ctx, i, "num_parallel_calls"));
  const bool is_number = calls > 0 || calls == kAutotune;
  return is_number ? absl::OkStatus() : InvalidArgument("num_parallel_calls must be greater than zero.");
}

}  // namespace millrace
