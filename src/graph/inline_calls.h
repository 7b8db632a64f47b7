// SPDX-License-Identifier: Apache-2.0
// Calls by expansion. A call is a node whose op is a function of the library, or one that takes functions as
// attributes: PartitionedCall and its kin, If, Case, While, For, SymbolicGradient. It is replaced by the nodes of the
// bodies, inside of Switch and Merge, or of a loop, where the op says so; what is left are primitives, and calls of
// functions that call themselves, which run when they are reached (graph/recursion.h).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "base/hash_map.h"
#include "graph/graph_builder.h"

namespace millrace {

// d(sum of ys)/d(xs) given the gradients of the ys, as dense tensors; null where nothing flows.
using Differentiate =
    std::function<StatusOr<std::vector<Output>>(const GraphBuilder& b, const std::vector<Output>& ys,
                                                const std::vector<Output>& xs, const std::vector<Output>& dys)>;

struct ExpandOptions {
  Differentiate differentiate;                      // for SymbolicGradient; none: Unimplemented
  std::function<Status()> keep_going;               // asked now and then; an error ends the work
  const HashSet<std::string>* recursive = nullptr;  // RecursiveFunctions, found anew where null
  std::vector<std::string> devices;                 // that targets of remote calls may name when they run
};

bool IsCall(const Graph& graph, const Node& n);

// The functions that a call names in its attributes, in order.
std::vector<const FuncAttr*> FunctionsOf(const Node& call);

// Adds what `call` computes to its graph, which must hold the library, with names below `prefix`. The call stays, and
// calls within bodies stay calls. `wait_for_inputs`: what has no inputs waits for the inputs of the call, which puts it
// into the conditional or loop that the call is in. On error nodes may have been added.
//
// Errors name the call: InvalidArgument (a function with the wrong signature, a broken body), NotFound (no such
// function), Unimplemented (a remote call whose target is not constant where no devices are given).
StatusOr<Expansion> ExpandCall(Node* call, const std::string& prefix, bool wait_for_inputs,
                               const ExpandOptions& options, Graph* graph);

// ResourceExhausted when what `calls` expand to, with the calls within their bodies, is too much. Nothing is built.
Status CheckExpandedSize(const Graph& library, absl::Span<Node* const> calls);

// Expands every call in `graph`, calls within bodies too, with the functions of `library` (which may be `graph`
// itself). Body nodes that nothing needs are left out. ResourceExhausted when the calls become too many nodes.
Status InlineCalls(const Graph& library, Graph* graph, const ExpandOptions& options = {});

}  // namespace millrace
