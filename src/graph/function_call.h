// SPDX-License-Identifier: Apache-2.0
// Function calls by expansion: a node whose op is a function of the library is replaced by the nodes of the body.
#pragma once

#include "graph/graph.h"

namespace millrace {

struct FunctionBody {
  std::vector<Output> outputs;         // flat, as the signature says; an argument that is returned is the input itself
  std::vector<Node*> control_outputs;  // nodes that must have run when the call is over
};

struct CallSpec {
  std::string function;
  AttrMap attrs;                       // of the call; defaults are added
  std::vector<Output> inputs;          // flat
  std::vector<Node*> control_inputs;
  std::string prefix;                  // of the new nodes' names
  std::string device;                  // for body nodes that name none
};

// Adds the body of a function of `graph`'s library to `graph`. InvalidArgument when the call does not fit the signature or
// the body is broken; the graph is then unchanged. Calls within the body stay calls.
StatusOr<FunctionBody> InstantiateFunction(const CallSpec& call, Graph* graph);

// Expands every call in `graph`, calls within bodies too, with the functions of `library` (which may be `graph` itself).
// Body nodes that nothing needs are left out.
Status InlineCalls(const Graph& library, Graph* graph);

}  // namespace millrace
