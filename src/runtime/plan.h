// SPDX-License-Identifier: Apache-2.0
// Plan: one partition of a graph, compiled once and run many times.
//
// Nodes stand in one array in execution order, with their kernels, the slots they read and write, and which slots die
// with them; nothing is looked up by name in a step. A Plan is immutable and shared by concurrent steps; what changes
// in a step lives in a Frame, of which the plan keeps a few for reuse.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/synchronization/mutex.h"
#include "graph/graph.h"
#include "kernel/kernel.h"
#include "passes/loop_region.h"

namespace millrace {

// A reference edge into an input that wants the value: before the node runs, `temp` gets the variable's tensor.
struct Dereference {
  int source = 0;
  int temp = 0;
  int input = 0;
  bool from_constant = false;  // `source` is among the constants of the node's loop
};

// What execution reads at a node, in one cache line.
struct PlanNode {
  Kernel* kernel = nullptr;
  const NodeInfo* info = nullptr;
  uint64_t dies_in_order = 0;  // inputs whose slot dies here when nodes run in plan order
  int32_t input_begin = 0;     // into Frame::inputs
  int32_t output_begin = 0;    // into the slots
  int32_t num_outputs = 0;
  int32_t release_begin = 0;  // into Plan::releases: slots to clear after this node in plan order
  int32_t release_end = 0;
  ControlOp control = ControlOp::kNone;
  bool dereferences = false;    // PlanNodeLinks::dereferences is not empty
  bool may_be_dead = false;     // downstream of a Switch
  bool may_leave_dead = false;  // its kernel may leave outputs without value: they are dead
  bool may_stop = false;        // its kernel may be left in the middle (base/stop_scope.h)
};

// From an output of a node (-1: a control edge) to an input of another.
struct PlanEdge {
  int32_t node = 0;
  int32_t output = -1;
  int32_t input = -1;
};
// Where a node finds an input: among the slots of its iteration, or the constants of its loop.
struct PlanInput {
  int32_t slot = 0;
  bool is_constant = false;
};

// What only execution by readiness, and rarer cases, read.
struct PlanNodeLinks {
  AsyncKernel* async = nullptr;  // PlanNode::kernel, when it is asynchronous
  bool expensive = true;
  bool is_transfer = false;      // runs even when dead, and tells the other side
  bool is_loop_merge = false;    // a back edge ends here
  bool enters_constant = false;  // an Enter whose value holds for every iteration
  int frame = 0;                 // the loop that the node runs in, see Plan::frames
  int output_frame = 0;          // the loop that its outputs are in
  int position = 0;              // in PlanFrame::nodes
  uint64_t dies_always = 0;      // inputs of which this node is the only reader
  int num_pending = 0;           // incoming edges; of a merge only the control edges
  int num_data = 0;              // incoming data edges
  int merge_at_start = -1;       // of a merge: an input that is there when the step begins, such as a feed
  std::vector<PlanEdge> successors;
  std::vector<PlanInput> reads;    // one entry an input
  std::vector<int> dead_controls;  // nodes that this one waits for and that may be dead, for execution in plan order
  std::vector<Dereference> dereferences;
};

// A loop that runs by readiness, with what each of its iterations needs. Frame 0 is what is outside of all loops.
struct PlanFrame {
  std::string name;
  int parent = -1;
  int64_t parallel_iterations = 1;
  int num_slots = 0;
  int num_constants = 0;
  int num_enters = 0;
  std::vector<int> nodes;
  std::vector<int32_t> pending;       // per node: PlanNodeLinks::num_pending
  std::vector<int32_t> slot_readers;  // per slot
};

// What a step changes.
struct Frame {
  std::vector<Slot> slots;
  std::vector<Slot*> inputs;  // of all nodes, one after the other
  std::vector<uint8_t> dead;  // per node; only in plans with dead values, in plan order
};

class Plan;
struct ReturnFrame {
  const Plan* plan = nullptr;
  void operator()(Frame* frame) const;
};
// A frame goes back to its plan, which outlives it, and is cleared.
using HeldFrame = std::unique_ptr<Frame, ReturnFrame>;

class Plan {
 public:
  struct Options {
    // Returns the kernel of a node; stateful kernels are shared between plans by whoever owns them.
    std::function<StatusOr<std::shared_ptr<Kernel>>(const Node&)> make_kernel;
    Device* device = nullptr;
    const CollapsedLoops* loops = nullptr;  // what the graph's `_Loop` nodes do; for the time of Compile
    // Slots may be used again by later nodes: for plans that only ever run in plan order.
    bool reuse_slots = true;
    // Arguments whose slots are never cleared while a frame is held: who runs the plan again need not set them again.
    std::vector<int> lasting_args;
  };
  // `graph` must be verified, placed on one device, and hold _Arg / _Retval nodes for what goes in and out.
  static StatusOr<std::unique_ptr<Plan>> Compile(const Graph& graph, const Options& options);

  const std::vector<PlanNode>& nodes() const { return nodes_; }
  const PlanNodeLinks& links(size_t node) const { return links_[node]; }
  const int32_t* releases() const { return releases_.data(); }
  int num_args() const { return static_cast<int>(arg_slots_.size()); }
  int num_retvals() const { return static_cast<int>(retval_slots_.size()); }
  int arg_slot(int i) const { return arg_slots_[static_cast<size_t>(i)]; }
  DType arg_type(int i) const { return arg_types_[static_cast<size_t>(i)]; }
  int retval_slot(int i) const { return retval_slots_[static_cast<size_t>(i)]; }
  const std::string& retval_source(int i) const { return retval_sources_[static_cast<size_t>(i)]; }
  const std::vector<PlanFrame>& frames() const { return frames_; }
  // Whether the slot keeps its value when the plan runs again in the same frame.
  bool Lasts(int slot) const { return slot < num_lasting_slots_ || lasting_args_.contains(slot); }
  bool has_async() const { return has_async_; }
  bool runs_by_readiness() const { return !slots_are_reused_; }

  ~Plan();
  StatusOr<HeldFrame> AcquireFrame() const;

 private:
  friend class PlanCompiler;
  friend struct ReturnFrame;
  Plan();
  StatusOr<std::unique_ptr<Frame>> MakeFrame() const;
  std::vector<PlanNode> nodes_;
  std::vector<PlanNodeLinks> links_;
  std::vector<NodeInfo> infos_;
  std::vector<int32_t> releases_;
  std::vector<std::shared_ptr<Kernel>> kernels_;
  std::vector<PlanNode> once_;  // run when a frame is made; their outputs have the first slots
  int num_lasting_slots_ = 0;
  std::vector<int> input_slots_;
  std::vector<PlanFrame> frames_;
  std::vector<int> arg_slots_, retval_slots_;
  std::vector<DType> arg_types_;
  std::vector<std::string> retval_sources_;
  bool has_async_ = false;
  bool has_dead_ = false;
  bool slots_are_reused_ = false;
  absl::flat_hash_set<int> lasting_args_;             // slots
  mutable std::atomic<Frame*> spare_frame_{nullptr};  // of the last step; owned
  mutable absl::Mutex mu_;
  mutable std::vector<std::unique_ptr<Frame>> free_frames_ ABSL_GUARDED_BY(mu_);
};

}  // namespace millrace
