// SPDX-License-Identifier: Apache-2.0
#include "passes/cost_model.h"

#include <algorithm>

#include "passes/placement_state.h"

namespace millrace {
namespace {

// What is taken for true of a device until something has been measured there. A device with memory of its own is an
// accelerator: faster, and slower to begin.
constexpr double kHostOperations = 16, kHostBytes = 8, kHostStart = 150;
constexpr double kOwnOperations = 1000, kOwnBytes = 200, kOwnStart = 5e3;

constexpr double kHandOver = 15e3;  // to another thread of this process
constexpr double kBusBytes = 6, kBusStart = 20e3;
constexpr double kNetworkBytes = 1.25, kNetworkStart = 100e3;

}  // namespace

bool CostModel::SharesItsInput(const Node& n) const {
  if (n.num_inputs() == 0 || n.num_outputs() == 0) return false;
  if (n.Is(OpTrait::kPassesOn) || n.Is(OpTrait::kReadsVariable) || n.control_op() != ControlOp::kNone) return true;
  if (CostOf(n, kClient) != &NoCost || BaseType(n.input_type(0)) != BaseType(n.output_type(0))) return false;
  // Another shape of the same elements; not that of integers as a value.
  if (!n.input(0) || !n.input(0).shape().IsFullyDefined() || !n.shape(0).IsFullyDefined()) return true;
  return EstimateElements(n.input(0).shape()) == EstimateElements(n.shape(0));
}

bool CostModel::LooksAtValues(const Node& n) const {
  return SharesItsInput(n) || n.Is(OpTrait::kResult) || CostOf(n, kClient) != &NoCost;
}

OpCost CostModel::Estimate(const Node& n, size_t device) const {
  if (n.Is(OpTrait::kConstant) || n.Is(OpTrait::kArgument) || n.Is(OpTrait::kResult) || SharesItsInput(n)) return {};
  CostContext context{n.attrs(), {}, {}};
  for (const Output in : n.inputs()) {
    if (in) context.inputs.push_back({in.dtype(), in.shape()});
  }
  for (int o = 0; o < n.num_outputs(); ++o) context.outputs.push_back({n.output_type(o), n.shape(o)});
  return CostOf(n, device)(context);
}

CostModel::Speed CostModel::SpeedOf(size_t device) const {
  if (HasOwnMemory(device)) return {kOwnOperations, kOwnBytes, kOwnStart};
  return {kHostOperations, kHostBytes, kHostStart};
}

double CostModel::Nanos(const Node& n, size_t device) const {
  if (env_.placement) {
    if (const auto measured = env_.placement->FindCost(n.name(), env_.devices[device].type)) return measured->nanos;
  }
  const OpCost cost = Estimate(n, device);
  if (cost.operations == 0) return 0;
  const Speed speed = SpeedOf(device);
  return speed.start_nanos + std::max(cost.operations / speed.operations_per_nano, cost.bytes / speed.bytes_per_nano);
}

double CostModel::Bytes(Output o) const {
  if (env_.placement && !o.shape().IsFullyDefined()) {
    for (const DeviceName& d : env_.devices) {
      const auto measured = env_.placement->FindCost(o.node->name(), d.type);
      if (!measured || measured->output_bytes.size() <= static_cast<size_t>(o.index)) continue;
      return static_cast<double>(measured->output_bytes[static_cast<size_t>(o.index)]);
    }
  }
  return EstimateBytes(o.dtype(), o.shape());
}

double CostModel::TransferNanos(double bytes, size_t from, size_t to) const {
  if (from == to) return 0;
  const DeviceName& a = env_.devices[from];
  const DeviceName& b = env_.devices[to];
  double nanos = kHandOver;  // within a process a tensor is handed over, not copied
  if (a.job != b.job || a.replica != b.replica || a.task != b.task) nanos = kNetworkStart + bytes / kNetworkBytes;
  for (const size_t d : {from, to}) nanos += HasOwnMemory(d) ? kBusStart + bytes / kBusBytes : 0;
  return nanos;
}

}  // namespace millrace
