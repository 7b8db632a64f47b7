// SPDX-License-Identifier: Apache-2.0
#include "runtime/step_record.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace millrace {
namespace {

// Labels repeat the names of inputs: they take at most so much for each byte that the plan itself takes.
constexpr size_t kLabelBytesPerByte = 64;

constexpr uint64_t kMostToLookAt = 1 << 28;        // while a step's statistics are written
constexpr int64_t kMostNumber = int64_t{1} << 62;  // nanoseconds, bytes

bool IsSane(int64_t number) { return 0 <= number && number < kMostNumber; }

}  // namespace

Status TracedPlan::MakeLabels() {
  size_t left = 0;
  for (const Node& n : nodes) {
    left += kLabelBytesPerByte * (n.name.size() + n.op.size() + n.inputs.size() + n.controls.size() + 1);
  }
  std::vector<size_t> named(
      2 * nodes.size());  // by node, for its value and for its order: who named it last, from 1 on
  for (size_t i = 0; i < nodes.size(); ++i) {
    Node& n = nodes[i];
    n.label = absl::StrCat(n.name, " = ", n.op, "(");
    const char* comma = "";
    const auto add = [&](const char* before, int32_t input) -> Status {
      if (input < 0 || static_cast<size_t>(input) >= nodes.size()) {
        return InvalidArgument(
            "trace: node '", n.name, "' waits for node ", input, ", want one in [0, ", nodes.size(), ")");
      }
      size_t& last = named[2 * static_cast<size_t>(input) + (*before != 0)];
      const std::string& name = nodes[static_cast<size_t>(input)].name;
      if (std::exchange(last, i + 1) == i + 1 || n.label.size() + name.size() > left) return absl::OkStatus();
      absl::StrAppend(&n.label, comma, before, name);
      comma = ", ";
      return absl::OkStatus();
    };
    for (const int32_t input : n.inputs) MR_RETURN_IF_ERROR(add("", input));
    for (const int32_t control : n.controls) MR_RETURN_IF_ERROR(add("^", control));
    n.label.push_back(')');
    left -= std::min(left, n.label.size());
  }
  return absl::OkStatus();
}

Status StepRecord::Check() const {
  uint32_t output = 0, part = 0;
  std::vector<std::vector<uint32_t>> most_outputs;  // of a run, by plan and node
  for (const auto& plan : plans) most_outputs.emplace_back(plan->nodes.size());
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
    if (!IsSane(run.start_nanos) || !IsSane(run.end_nanos)) {
      return InvalidArgument("trace: a node ran from ", run.start_nanos, " to ", run.end_nanos, " ns");
    }
    uint32_t& most = most_outputs[static_cast<size_t>(run.plan)][static_cast<size_t>(run.node)];
    most = std::max(most, run.outputs_end - output);
    output = run.outputs_end;
    part = run.parts_end;
  }
  for (const Output& o : outputs) {
    if (!IsSane(o.bytes)) return InvalidArgument("trace: an output of ", o.bytes, " bytes");
  }
  for (const HelpPart& p : parts) {
    if (!IsSane(p.asked_nanos) || !IsSane(p.start_nanos) || !IsSane(p.end_nanos)) {
      return InvalidArgument("trace: a part ran from ", p.start_nanos, " to ", p.end_nanos, " ns");
    }
  }
  uint64_t looked_at = 0;
  for (size_t i = 0; i < runs.size(); ++i) {
    const TracedPlan::Node& node = NodeOf(runs[i]);
    const uint64_t own = OutputsOf(i).size();
    looked_at += node.label.size() / 64 + node.controls.size();
    for (const int32_t input : node.inputs) {
      looked_at += 1 + own * most_outputs[static_cast<size_t>(runs[i].plan)][static_cast<size_t>(input)];
      if (looked_at > kMostToLookAt) break;
    }
    if (looked_at > kMostToLookAt) {
      return ResourceExhausted("trace: ", runs.size(), " runs have inputs, outputs and labels beyond all measure");
    }
  }
  return absl::OkStatus();
}

}  // namespace millrace
