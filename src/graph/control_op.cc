// SPDX-License-Identifier: Apache-2.0
#include "graph/control_op.h"

#include <utility>

#include "absl/strings/strip.h"

namespace millrace {

ControlOp ControlOpOf(absl::string_view op) {
  static constexpr std::pair<absl::string_view, ControlOp> kOps[] = {
      {"Switch", ControlOp::kSwitch},         {"Merge", ControlOp::kMerge},
      {"Enter", ControlOp::kEnter},           {"Exit", ControlOp::kExit},
      {"LoopCond", ControlOp::kLoopCond},     {"NextIteration", ControlOp::kNextIteration},
      {"ControlTrigger", ControlOp::kTrigger}};
  absl::ConsumePrefix(&op, "Ref");
  for (const auto& [name, control] : kOps) {
    if (op == name) return control;
  }
  return ControlOp::kNone;
}

}  // namespace millrace
