// SPDX-License-Identifier: Apache-2.0
#include "graph/unknown_op.h"

namespace millrace {

Status UnknownOp(const Node& node) { return UnknownOp(node.op_name(), node.Describe()); }
Status UnknownOp(absl::string_view op, absl::string_view node) {
  return Unimplemented(
      "op ", op, " of ", node,
      " is not known in the process that is to run it: the library that defines it is to be loaded "
      "there, in a server before it starts (millrace serve --op-library, or tf.load_op_library before "
      "tf.train.Server)");
}

}  // namespace millrace
