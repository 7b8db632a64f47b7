// SPDX-License-Identifier: Apache-2.0
// Finds loops that can run as straight lines: one predicate, decided from the loop's variables; a body behind the
// Switches that it decides; nothing that waits. Such a loop is replaced by one `_Loop` node, whose kernel runs two
// plans in turn, for the predicate and for the body. Innermost loops go first, so nests of loops go too.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace millrace {

// Where a value comes from at the beginning of an iteration.
struct LoopValue {
  enum class Kind : uint8_t {
    kVariable,   // changes from iteration to iteration
    kInvariant,  // came from outside
    kComputed,   // by the predicate's plan in this iteration
  };
  Kind kind = Kind::kVariable;
  int index = 0;
  bool operator==(const LoopValue&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const LoopValue& v) {
    return H::combine(std::move(h), v.kind, v.index);
  }
};

struct LoopRegion {
  std::string name;                // of the frame
  std::vector<Output> variables;   // initial values, outside of the loop
  std::vector<Output> invariants;  // outside of the loop
  // _Arg i of `predicate` is predicate_args[i]; _Retval 0 is the predicate, the rest are the kComputed values. _Arg i
  // of `body` is body_args[i], _Retval i the next value of variable i.
  std::unique_ptr<Graph> predicate, body;
  std::vector<LoopValue> predicate_args, body_args;
  std::vector<Node*> exits;        // of the graph that holds the loop
  std::vector<LoopValue> results;  // what each exit passes on
  std::vector<Node*> nodes;        // all nodes of the frame, the Enters included
  std::vector<Node*> waits_for;    // control inputs of the Enters
};

// `nodes` are those of the frame called `name`, its Enters included, in topological order; there are no frames within
// it. Null when the loop does not have this form.
StatusOr<std::unique_ptr<LoopRegion>> FindLoopRegion(const std::string& name, std::vector<Node*> nodes,
                                                     const OpRegistry& registry);

// What a `_Loop` node does: its inputs are the first values of the variables, then the invariants.
struct CollapsedLoop {
  std::string name;  // of the frame
  size_t num_variables = 0;
  std::unique_ptr<Graph> predicate, body;  // as in LoopRegion
  std::vector<LoopValue> predicate_args, body_args;
  std::vector<LoopValue> results;  // by output
};
using CollapsedLoops = std::map<std::string, CollapsedLoop>;  // by node

}  // namespace millrace
