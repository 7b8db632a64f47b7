// SPDX-License-Identifier: Apache-2.0
// A graph that a client grows while sessions run it. Whoever reads or changes `graph` holds `mu`. Nodes are never removed
// from it, so a Node* stays valid as long as the SharedGraph (node attributes of finished nodes do not change).
#pragma once

#include "absl/synchronization/mutex.h"
#include "base/ref_counted.h"
#include "graph/graph.h"

namespace millrace {

class SharedGraph : public RefCounted {
 public:
  explicit SharedGraph(const OpRegistry* registry) : graph(registry) {}
  absl::Mutex mu;
  Graph graph ABSL_GUARDED_BY(mu);
};

}  // namespace millrace
