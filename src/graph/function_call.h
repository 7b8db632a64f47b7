// SPDX-License-Identifier: Apache-2.0
// The body of a function of the library, added to a graph: what calls and functional conditionals and loops are made
// of.
#pragma once

#include "graph/graph.h"

namespace millrace {

struct FunctionBody {
  std::vector<Output> outputs;  // flat, as the signature says; an argument that is returned is the input itself
  // Nodes that must have run when the call is over: side effects, but for those inside a conditional or loop of the
  // body's own, for which nobody outside can wait.
  std::vector<Node*> control_outputs;
};

struct CallSpec {
  std::string function;
  AttrMap attrs;               // of the call; defaults are added
  std::vector<Output> inputs;  // flat
  std::vector<Node*> control_inputs;
  std::string prefix;  // of the new nodes' names
  std::string device;  // for body nodes that name none
};

// Adds the body of a function of `graph`'s library to `graph`. InvalidArgument when the call does not fit the signature
// or the body is broken; the graph is then unchanged. Calls within the body stay calls, and wait for the control
// inputs. The frames of loops get names of their own.
StatusOr<FunctionBody> InstantiateFunction(const CallSpec& call, Graph* graph);

}  // namespace millrace
