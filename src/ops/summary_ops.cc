// SPDX-License-Identifier: Apache-2.0
// Ops: summaries, printing, assertions.
#include "ops/op_list.h"

namespace millrace {

void RegisterSummaryOps(OpRegistry& registry) { (void)registry; }

}  // namespace millrace
