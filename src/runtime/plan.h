// SPDX-License-Identifier: Apache-2.0
// Plan: one partition of a graph, compiled once and run many times.
//
// A plan is a small graph of units: segments, whose nodes one thread runs in order, and nodes that run by readiness one
// by one (runtime/plan_cut.h). All nodes stand in one array in an order in which they can run, the nodes of a segment
// side by side, with their kernels, the slots they read and write, and which slots die with them; nothing is looked up
// by name in a step. A Plan is immutable and shared by concurrent steps; what changes in a step lives in a Frame, of
// which the plan keeps a few for reuse.
//
// Values lie in slots, those of a loop in slots of each of its iterations. A slot that only one unit reads is cleared
// by the last reader, and may then be used again by the same unit. One that several units read is counted: each unit's
// last reader counts down.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/hash_map.h"
#include "passes/loop_region.h"
#include "runtime/plan_cut.h"
#include "runtime/plan_graph.h"

namespace millrace {

// A reference edge into an input that wants the value: before the node runs, `temp` gets the variable's tensor.
struct Dereference {
  int source = 0;
  int temp = 0;
  int input = 0;
  bool from_constant = false;  // `source` is among the constants of the node's loop
  std::string variable;        // the node that gives the reference
};

// What execution reads at a node, in one cache line.
struct PlanNode {
  // What there is to do at a node besides running its kernel.
  enum Care : uint8_t {
    kDereferences = 1,  // PlanNodeLinks::dereferences is not empty
    kMayBeDead = 2,     // downstream of a Switch, or a transfer, whose counterpart may be
    kDiesByItself = 4,  // else it is dead exactly when the node of its segment is that was the last which may be dead
    kTellsDeath = 8,    // it may be dead, and others look at Frame::dead for it, or it is a transfer
  };
  bool Has(Care c) const { return (care & c) != 0; }

  Kernel* kernel = nullptr;
  const NodeInfo* info = nullptr;
  uint64_t dies = 0;         // inputs whose slot dies here
  int32_t input_begin = 0;   // into Frame::inputs
  int32_t output_begin = 0;  // into Frame::slots; of an Enter, Exit and NextIteration into those of another frame
  int32_t num_outputs = 0;
  int32_t release_begin = 0;  // into Plan::releases
  int32_t release_end = 0;
  int32_t dead_at = 0;  // in Frame::dead of the frame that its outputs are in
  ControlOp control = ControlOp::kNone;
  uint8_t care = 0;
  bool may_leave_dead = false;  // its kernel may leave outputs without value: they are dead
  bool may_stop = false;        // its kernel may be left in the middle (base/stop_scope.h)
};

// From an output of a node (-1: a control edge) to an input of another. Between two units; into a segment one does for
// all from the same unit.
struct PlanEdge {
  static constexpr int32_t kOrder = -2;  // an output: of PlanCut::order, nobody dies by it
  int32_t from = 0;
  int32_t node = 0;
  int32_t output = -1;
  int32_t input = -1;
};
// Where a node finds an input: among the slots of its iteration, or the constants of its loop.
struct PlanInput {
  int32_t slot = 0;
  bool is_constant = false;
};

// What only execution by readiness, and rarer cases, read. A segment's first node stands for it.
struct PlanNodeLinks {
  AsyncKernel* async = nullptr;  // PlanNode::kernel, when it is asynchronous
  int segment_end = 0;           // of the first node of a segment: behind its last
  bool in_segment = false;
  bool pays_a_thread = false;        // of a unit: another thread may be asked to run it
  bool is_transfer = false;          // runs even when dead, and tells the other side
  bool enters_constant = false;      // an Enter whose value holds for every iteration
  int frame = 0;                     // the loop that the node runs in, see Plan::frames
  int output_frame = 0;              // the loop that its outputs are in
  bool is_read = false;              // of a node of one output: it is read or kept
  int position = 0;                  // of its unit in PlanFrame::units
  int num_pending = 0;               // of a unit: edges that it waits for; of a merge by itself only the control edges
  int num_data = 0;                  // incoming data edges
  int merge_at_start = -1;           // of a merge: an input that is there when the step begins, such as a feed
  std::vector<PlanEdge> successors;  // of a unit
  std::vector<PlanInput> reads;      // one entry an input
  std::vector<int> dead_controls;    // nodes that this one waits for and that may be dead
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
  int num_dead = 0;               // nodes whose outputs are in it; 0 in plans without dead values
  std::vector<int> units;         // their first nodes
  std::vector<int32_t> pending;   // per unit: PlanNodeLinks::num_pending
  std::vector<PlanInput> inputs;  // of its nodes, one after the other
  struct CountedSlot {
    int32_t slot = 0;
    int32_t readers = 0;  // units
  };
  std::vector<CountedSlot> counted_slots;
  std::vector<int32_t> counter_of;  // by slot; -1: it is not counted
};

// What a step changes: outside of loops, or in one iteration of a loop.
struct Frame {
  const PlanFrame* layout = nullptr;
  const Slot* constants = nullptr;  // of the loop
  std::vector<Slot> slots;
  std::vector<Slot*> inputs;                        // of all nodes, one after the other
  std::vector<uint8_t> dead;                        // per node; only in plans with dead values
  std::unique_ptr<std::atomic<int32_t>[]> readers;  // left of each counted slot

  void SetUp(const PlanFrame& frame, Slot* loop_constants);
  void StartCounting() {
    for (size_t i = 0; i < layout->counted_slots.size(); ++i) {
      readers[i].store(layout->counted_slots[i].readers, std::memory_order_relaxed);
    }
  }
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
    PlanGraph::MakeKernel make_kernel;
    Device* device = nullptr;
    const CollapsedLoops* loops = nullptr;  // what the graph's `_Loop` nodes do; for the time of Compile
    bool updates_early = true;              // see PlanGraph::Read
    bool in_segments = true;                // else each node by itself, so that every order of them can be chosen
    // Arguments whose slots are never cleared while a frame is held: who runs the plan again need not set them again.
    std::vector<int> lasting_args;
  };
  // `graph` must be verified, placed on one device, and hold _Arg / _Retval nodes for what goes in and out.
  static StatusOr<std::unique_ptr<Plan>> Compile(const Graph& graph, const Options& options);
  // `cut` is one of `graph`.
  static std::unique_ptr<Plan> LayOut(std::shared_ptr<const PlanGraph> graph, const PlanCut& cut,
                                      const std::vector<int>& lasting_args = {});

  const std::vector<PlanNode>& nodes() const { return nodes_; }
  const PlanNodeLinks& links(size_t node) const { return links_[node]; }
  // Slots of its frame to clear after a node, and ~i for a reader less of counted slot i.
  const int32_t* releases() const { return releases_.data(); }
  int num_args() const { return static_cast<int>(arg_slots_.size()); }
  int num_retvals() const { return static_cast<int>(retval_slots_.size()); }
  int arg_slot(int i) const { return arg_slots_[static_cast<size_t>(i)]; }
  DType arg_type(int i) const { return graph_->arguments[static_cast<size_t>(i)].dtype; }
  int retval_slot(int i) const { return retval_slots_[static_cast<size_t>(i)]; }
  const std::string& retval_source(int i) const { return graph_->results[static_cast<size_t>(i)].source; }
  const std::vector<PlanFrame>& frames() const { return frames_; }
  const std::shared_ptr<const PlanGraph>& graph() const { return graph_; }
  // Whether the slot keeps its value when the plan runs again in the same frame.
  bool Lasts(int slot) const { return slot < num_lasting_slots_ || lasting_args_.contains(slot); }
  // One segment is all there is: no readiness to be counted.
  bool is_one_line() const { return is_one_line_; }
  const CutReport& cut() const { return cut_; }

  ~Plan();
  StatusOr<HeldFrame> AcquireFrame() const;

 private:
  friend class PlanLayout;
  friend struct ReturnFrame;
  Plan();
  StatusOr<std::unique_ptr<Frame>> MakeFrame() const;
  std::shared_ptr<const PlanGraph> graph_;  // holds the kernels
  std::vector<PlanNode> nodes_;
  std::vector<PlanNodeLinks> links_;
  std::vector<int32_t> releases_;
  std::vector<PlanNode> once_;  // run when a frame is made; their outputs have the first slots
  int num_lasting_slots_ = 0;
  std::vector<PlanFrame> frames_;
  std::vector<int> arg_slots_, retval_slots_;
  bool is_one_line_ = false;
  CutReport cut_;
  HashSet<int> lasting_args_;                         // slots
  mutable std::atomic<Frame*> spare_frame_{nullptr};  // of the last step; owned
  mutable absl::Mutex mu_;
  mutable std::vector<std::unique_ptr<Frame>> free_frames_ ABSL_GUARDED_BY(mu_);
};

}  // namespace millrace
