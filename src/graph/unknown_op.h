// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/graph.h"

namespace millrace {

// What a process says that is to run a node whose op it does not have.
Status UnknownOp(const Node& node);
Status UnknownOp(absl::string_view op, absl::string_view node);

}  // namespace millrace
