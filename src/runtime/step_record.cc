// SPDX-License-Identifier: Apache-2.0
#include "runtime/step_record.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace millrace {
namespace {

constexpr size_t kMostLabelBytes = 64 << 20;  // of a plan

}  // namespace

Status TracedPlan::MakeLabels() {
  size_t bytes = 0;
  std::vector<std::string> waited_for;
  for (Node& n : nodes) {
    waited_for.clear();
    const auto add = [&](const char* before, int32_t input) -> Status {
      if (input < 0 || static_cast<size_t>(input) >= nodes.size()) {
        return InvalidArgument(
            "trace: node '", n.name, "' waits for node ", input, ", want one in [0, ", nodes.size(), ")");
      }
      const std::string& name = nodes[static_cast<size_t>(input)].name;
      bytes += name.size() + 1;
      if (bytes > kMostLabelBytes)
        return ResourceExhausted("trace: the inputs of nodes take more than ", kMostLabelBytes, " bytes");
      std::string shown = absl::StrCat(before, name);
      if (std::find(waited_for.begin(), waited_for.end(), shown) == waited_for.end())
        waited_for.push_back(std::move(shown));
      return absl::OkStatus();
    };
    for (const int32_t input : n.inputs) MR_RETURN_IF_ERROR(add("", input));
    for (const int32_t control : n.controls) MR_RETURN_IF_ERROR(add("^", control));
    n.label = absl::StrCat(n.name, " = ", n.op, "(");
    const char* comma = "";
    for (const std::string& name : waited_for) {
      absl::StrAppend(&n.label, comma, name);
      comma = ", ";
    }
    n.label.push_back(')');
  }
  return absl::OkStatus();
}

Status StepRecord::Check() const {
  uint32_t output = 0, part = 0;
  for (const Run& run : runs) {
    if (run.plan < 0 || static_cast<size_t>(run.plan) >= plans.size() || run.node < 0 ||
        static_cast<size_t>(run.node) >= plans[static_cast<size_t>(run.plan)]->nodes.size()) {
      return InvalidArgument("trace: there is no node ", run.node, " of plan ", run.plan);
    }
    if (run.outputs_end < output || run.outputs_end > outputs.size() || run.parts_end < part ||
        run.parts_end > parts.size()) {
      return InvalidArgument("trace: outputs up to ", run.outputs_end, " of ", outputs.size(), ", parts up to ",
                             run.parts_end, " of ", parts.size());
    }
    output = run.outputs_end;
    part = run.parts_end;
  }
  return absl::OkStatus();
}

}  // namespace millrace
