// SPDX-License-Identifier: Apache-2.0
// The ops that decide what runs, and how often (white paper 4.4). Everything dynamic is made of them: conditionals and
// loops of clients, functional forms after lowering, the loops that partitioning adds.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"

namespace millrace {

// Reference forms (RefSwitch, ...) count as their plain forms.
enum class ControlOp : uint8_t {
  kNone,
  kSwitch,         // its input leaves by the output that the predicate names; the other output is dead
  kMerge,          // the first live input
  kEnter,          // into iteration 0 of the frame that it names
  kExit,           // out of the frame, once it is live
  kNextIteration,  // into the next iteration
  kLoopCond,       // marks the predicate of a loop
  kTrigger,        // runs even when what it waits for is dead
};

ControlOp ControlOpOf(absl::string_view op);

// Back edges of loops are the only edges that may close a cycle.
constexpr bool IsBackEdge(ControlOp from, ControlOp to) {
  return from == ControlOp::kNextIteration && to == ControlOp::kMerge;
}

}  // namespace millrace
