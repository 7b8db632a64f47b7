// SPDX-License-Identifier: Apache-2.0
// PlanGraph: what a plan runs, before it is cut into units and laid out in slots: nodes with their kernels, in an order
// in which they can run one after the other, and where each finds its inputs. Plans of one graph that are cut in
// different ways share it. Immutable.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "graph/frame_tree.h"
#include "graph/graph.h"
#include "kernel/kernel.h"
#include "passes/loop_region.h"
#include "runtime/state_use.h"
#include "runtime/step_record.h"

namespace millrace {

struct PlannedNode {
  enum class Kind : uint8_t {
    kArgument,  // a value that who runs the plan puts there
    kOnce,      // runs when a frame is made
    kStep,
  };
  struct Input {
    int node = 0;
    int output = 0;
    bool dereferences = false;  // a reference edge into an input that wants the value
  };
  Kind kind = Kind::kStep;
  ControlOp control = ControlOp::kNone;
  bool is_transfer = false;      // runs even when dead, and tells the other side
  bool enters_constant = false;  // an Enter whose value holds for every iteration
  bool expensive = false;
  bool may_stop = false;  // its kernel may be left in the middle (base/stop_scope.h)
  StateUse state_use = StateUse::kNone;
  int state = StateNumbers::kOutside;  // that it uses, see StateNumbers
  int frame = 0;                       // the loop that the node runs in
  int output_frame = 0;                // the loop that its outputs are in
  int64_t edge = -1;                   // of a transfer: its number, which both sides have; -1: none
  NodeInfo info;
  std::shared_ptr<Kernel> kernel;  // of an argument none
  AsyncKernel* async = nullptr;    // `kernel`, when it is asynchronous
  std::vector<Input> inputs;
  std::vector<int> controls;  // nodes that it waits for

  int num_outputs() const { return static_cast<int>(info.signature.output_types.size()); }
};

struct PlanGraph {
  struct Argument {
    int node = 0;
    DType dtype = DType::kInvalid;
  };
  struct Result {
    int node = 0;
    int output = 0;
    std::string source;
  };
  std::vector<PlannedNode> nodes;
  std::vector<Argument> arguments;
  std::vector<Result> results;
  std::vector<LoopFrame> frames;
  int64_t order_nanos = 0;  // that it took to put them in order

  // Returns the kernel of a node; stateful kernels are shared between plans by whoever owns them.
  using MakeKernel = std::function<StatusOr<std::shared_ptr<Kernel>>(const Node&)>;
  // `graph` must be verified, placed on `device`, and hold _Arg / _Retval nodes for what goes in and out. Nodes stand
  // in topological order, what leads to a Send first; with `updates_early` as MoveUpdatesUp puts them.
  static StatusOr<std::shared_ptr<const PlanGraph>> Read(
      const Graph& graph, Device* device, const MakeKernel& make_kernel, bool updates_early = true);

  // What traces tell of its nodes; made by the first step that is traced. Thread-safe, throws std::bad_alloc.
  std::shared_ptr<const TracedPlan> Traced() const;

 private:
  mutable absl::Mutex mu_;
  mutable std::shared_ptr<const TracedPlan> traced_ ABSL_GUARDED_BY(mu_);
};

}  // namespace millrace
