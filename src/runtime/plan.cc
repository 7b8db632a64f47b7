// SPDX-License-Identifier: Apache-2.0
// Compilation: order the nodes, give each output a slot, resolve every input to a slot, then walk once to find the last
// reader of each slot.
#include "runtime/plan.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "graph/frame_tree.h"
#include "runtime/loop_kernel.h"
#include "runtime/node_run.h"
#include "runtime/update_order.h"

namespace millrace {
namespace {

constexpr size_t kMaxFreeFrames = 16;

bool IsArg(const Node& n) { return n.Is(OpTrait::kArgument); }
bool IsRetval(const Node& n) { return n.Is(OpTrait::kResult); }

// The position of an _Arg or _Retval, checked against `limit` so that a bad index cannot size anything.
StatusOr<size_t> IndexOf(const Node& n, size_t limit) {
  MR_ASSIGN_OR_RETURN(const int64_t index, n.Attr<int64_t>("index"));
  if (index < 0 || static_cast<uint64_t>(index) >= limit) {
    return InvalidArgument(n.Describe(), " has index ", index, ", want one in [0, ", limit, ")");
  }
  return static_cast<size_t>(index);
}

}  // namespace

class PlanCompiler {
 public:
  PlanCompiler(const Graph& graph, const Plan::Options& options) : graph_(&graph), options_(options) {}

  StatusOr<std::unique_ptr<Plan>> Compile() {
    MR_ASSIGN_OR_RETURN(order_, TopologicalOrder(*graph_));
    MoveUpdatesUp(order_);
    MR_ASSIGN_OR_RETURN(tree_, FrameTree::Of(order_, graph_->num_node_ids()));
    for (const LoopFrame& f : tree_.frames()) {
      plan_->frames_.push_back({.name = f.name, .parent = f.parent, .parallel_iterations = f.parallel_iterations});
    }
    plan_->infos_.reserve(order_.size());  // PlanNode::info points into it
    MR_RETURN_IF_ERROR(MakeKernels());
    AssignSlots();
    MR_RETURN_IF_ERROR(BindArguments());
    for (Node* n : order_) {
      if (kernels_.contains(n)) AddNode(*n, plan_->nodes_);
    }
    LinkSuccessors();
    FindDead();
    CountReaders();
    for (size_t k = 0; k < plan_->nodes_.size(); ++k) FindDeaths(k);
    if (options_.reuse_slots && !plan_->has_async_ && plan_->frames_.size() == 1) {
      ReuseSlots();
    } else {
      DescribeFrames();
    }
    for (int i : options_.lasting_args) plan_->lasting_args_.insert(plan_->arg_slot(i));
    return std::move(plan_);
  }

 private:
  static constexpr int kForever = 1 << 30;
  static constexpr int kReleased = -2;

  PlanFrame& Root() { return plan_->frames_.front(); }
  int SlotOf(Output o) const { return first_slot_.at(o.node) + o.index; }

  Status MakeKernels() {
    for (Node* n : order_) {
      if (IsArg(*n) || IsRetval(*n)) continue;
      if (!n->op()) {
        return Unimplemented(
            "op ", n->op_name(), " of ", n->Describe(), " is not known here; it was imported by name only");
      }
      if (const CollapsedLoop* loop = LoopOf(*n)) {
        MR_ASSIGN_OR_RETURN(kernels_[n], MakeLoopKernel(*loop, options_));
      } else {
        MR_ASSIGN_OR_RETURN(kernels_[n], options_.make_kernel(*n));
      }
    }
    return absl::OkStatus();
  }

  const CollapsedLoop* LoopOf(const Node& n) const {
    if (options_.loops == nullptr || !n.Is(OpTrait::kInternal)) return nullptr;
    const auto it = options_.loops->find(n.name());
    return it == options_.loops->end() ? nullptr : &it->second;
  }

  bool RunsOnce(const Node* n) const {
    auto it = kernels_.find(n);
    return it != kernels_.end() && it->second->OutputsNeverChange() && n->num_inputs() == 0 &&
           n->control_inputs().empty();
  }

  // What runs once has the first slots, and is not among the nodes of a step.
  void AssignSlots() {
    for (Node* n : order_) {
      if (!RunsOnce(n)) continue;
      AssignSlot(n);
      AddNode(*n, plan_->once_);
      kernels_.erase(n);
    }
    plan_->num_lasting_slots_ = Root().num_slots;
    for (Node* n : order_) {
      if (!first_slot_.contains(n)) AssignSlot(n);
    }
  }
  void AssignSlot(const Node* n) {
    PlanFrame& frame = plan_->frames_[static_cast<size_t>(tree_.OutputsIn(n))];
    int& count = n->IsConstantEnter() ? frame.num_constants : frame.num_slots;
    first_slot_[n] = count;
    count += n->num_outputs();
  }

  Status BindArguments() {
    size_t args = 0, retvals = 0;
    for (Node* n : order_) {
      args += IsArg(*n);
      retvals += IsRetval(*n);
    }
    plan_->arg_slots_.assign(args, -1);
    plan_->arg_types_.assign(args, DType::kInvalid);
    plan_->retval_slots_.assign(retvals, -1);
    plan_->retval_sources_.resize(retvals);
    for (Node* n : order_) {
      if (IsArg(*n)) {
        MR_ASSIGN_OR_RETURN(const size_t i, IndexOf(*n, args));
        plan_->arg_slots_[i] = SlotOf(n->output(0));
        plan_->arg_types_[i] = n->output_type(0);
      } else if (IsRetval(*n)) {
        MR_ASSIGN_OR_RETURN(const size_t i, IndexOf(*n, retvals));
        plan_->retval_slots_[i] = SlotOf(n->input(0));
        plan_->retval_sources_[i] = n->input(0).ToString();
      }
    }
    return absl::OkStatus();
  }

  void AddNode(const Node& n, std::vector<PlanNode>& to) {
    PlanNode p;
    PlanNodeLinks links;
    plan_->infos_.push_back({n.name(), n.op(), n.signature(), n.location(), options_.device});
    p.info = &plan_->infos_.back();
    const std::shared_ptr<Kernel>& kernel = kernels_.at(&n);
    p.kernel = kernel.get();
    links.async = kernel->AsAsync();
    links.expensive = kernel->IsExpensive();
    p.may_stop = links.async == nullptr && ChangesOnlyItsOutputs(n.signature());
    links.is_transfer = n.Is(OpTrait::kTransfer);
    links.enters_constant = n.IsConstantEnter();
    links.frame = tree_.RunsIn(&n);
    links.output_frame = tree_.OutputsIn(&n);
    plan_->has_async_ |= links.async != nullptr;
    plan_->kernels_.push_back(kernel);
    p.control = n.control_op();
    p.may_leave_dead = p.control == ControlOp::kSwitch || links.is_transfer;
    PlanFrame& frame = plan_->frames_[static_cast<size_t>(links.frame)];
    p.input_begin = static_cast<int32_t>(plan_->input_slots_.size());
    for (int i = 0; i < n.num_inputs(); ++i) {
      int slot = SlotOf(n.input(i));
      const bool is_constant = n.input(i).node->IsConstantEnter();
      links.reads.push_back({slot, is_constant});
      if (IsRef(n.input(i).dtype()) && !IsRef(n.input_type(i))) {
        links.dereferences.push_back({slot, frame.num_slots, i, is_constant});
        slot = frame.num_slots++;
      }
      if (links.frame == 0) plan_->input_slots_.push_back(slot);
    }
    p.dereferences = !links.dereferences.empty();
    p.output_begin = first_slot_.at(&n);
    p.num_outputs = n.num_outputs();
    to.push_back(p);
    if (&to != &plan_->nodes_) return;
    position_[&n] = plan_->nodes_.size() - 1;
    links.position = static_cast<int>(frame.nodes.size());
    frame.nodes.push_back(static_cast<int>(plan_->nodes_.size()) - 1);
    if (p.control == ControlOp::kEnter) ++plan_->frames_[static_cast<size_t>(links.output_frame)].num_enters;
    plan_->links_.push_back(std::move(links));
  }

  void LinkSuccessors() {
    auto link = [&](const Node* from, int output, const Node* to, int input) {
      auto f = position_.find(from), t = position_.find(to);
      if (t == position_.end()) return;
      if (f == position_.end()) {
        if (input >= 0 && to->control_op() == ControlOp::kMerge) plan_->links_[t->second].merge_at_start = input;
        return;
      }
      plan_->links_[f->second].successors.push_back({static_cast<int>(t->second), output, input});
      PlanNodeLinks& links = plan_->links_[t->second];
      links.num_data += input >= 0;
      links.num_pending += input < 0 || to->control_op() != ControlOp::kMerge;
      links.is_loop_merge |= IsBackEdge(from->control_op(), to->control_op());
    };
    for (const Node* n : order_) {
      for (int i = 0; i < n->num_inputs(); ++i) link(n->input(i).node, n->input(i).index, n, i);
      for (const Node* c : n->control_inputs()) link(c, -1, n, -1);
    }
  }

  // Deadness spreads from Switches along data and control edges; only a Merge stops it, and perhaps not even that.
  void FindDead() {
    for (size_t k = 0; k < plan_->nodes_.size(); ++k) {
      const PlanNode& n = plan_->nodes_[k];
      plan_->has_dead_ |= n.may_be_dead;
      if (!n.may_be_dead && !n.may_leave_dead) continue;
      for (const PlanEdge& e : plan_->links_[k].successors) {
        PlanNode& to = plan_->nodes_[static_cast<size_t>(e.node)];
        to.may_be_dead |= to.control != ControlOp::kTrigger;
        if (e.output < 0 && n.may_be_dead && to.control != ControlOp::kMerge) {
          plan_->links_[static_cast<size_t>(e.node)].dead_controls.push_back(static_cast<int>(k));
        }
      }
    }
  }

  void DescribeFrames() {
    for (PlanFrame& f : plan_->frames_) {
      for (int k : f.nodes) f.pending.push_back(plan_->links_[static_cast<size_t>(k)].num_pending);
      f.slot_readers.assign(static_cast<size_t>(f.num_slots), 0);
    }
    for (const PlanNodeLinks& links : plan_->links_) {
      for (const PlanInput& in : links.reads) {
        if (!in.is_constant)
          ++plan_->frames_[static_cast<size_t>(links.frame)].slot_readers[static_cast<size_t>(in.slot)];
      }
    }
    for (int slot : plan_->retval_slots_) ++Root().slot_readers[static_cast<size_t>(slot)];
    for (int slot = 0; slot < plan_->num_lasting_slots_; ++slot) ++Root().slot_readers[static_cast<size_t>(slot)];
  }

  std::vector<int>& Readers(const PlanNodeLinks& links) { return readers_[static_cast<size_t>(links.frame)]; }

  void CountReaders() {
    for (const PlanFrame& f : plan_->frames_) {
      readers_.emplace_back(static_cast<size_t>(f.num_slots), 0);
      last_reader_.emplace_back(static_cast<size_t>(f.num_slots), -1);
    }
    for (size_t k = 0; k < plan_->links_.size(); ++k) {
      const PlanNodeLinks& links = plan_->links_[k];
      for (const PlanInput& in : links.reads) {
        if (in.is_constant) continue;
        ++Readers(links)[static_cast<size_t>(in.slot)];
        last_reader_[static_cast<size_t>(links.frame)][static_cast<size_t>(in.slot)] = static_cast<int>(k);
      }
    }
    const auto keep = [this](int slot) {
      ++readers_[0][static_cast<size_t>(slot)];
      last_reader_[0][static_cast<size_t>(slot)] = kForever;
    };
    for (int slot : plan_->retval_slots_) keep(slot);
    for (int i : options_.lasting_args) keep(plan_->arg_slots_[static_cast<size_t>(i)]);
    for (int slot = 0; slot < plan_->num_lasting_slots_; ++slot) keep(slot);
  }

  void FindDeaths(size_t k) {
    PlanNode& n = plan_->nodes_[k];
    PlanNodeLinks& links = plan_->links_[k];
    std::vector<int>& last_reader = last_reader_[static_cast<size_t>(links.frame)];
    std::vector<int32_t>& releases = plan_->releases_;
    n.release_begin = static_cast<int32_t>(releases.size());
    for (size_t i = 0; i < links.reads.size(); ++i) {
      const int slot = links.reads[i].slot;
      if (links.reads[i].is_constant || last_reader[static_cast<size_t>(slot)] != static_cast<int>(k)) continue;
      releases.push_back(slot);
      last_reader[static_cast<size_t>(slot)] = kReleased;  // once, also when the node reads it twice
      const auto same = [slot](const PlanInput& in) { return !in.is_constant && in.slot == slot; };
      if (i >= 64 || std::count_if(links.reads.begin(), links.reads.end(), same) != 1) continue;
      n.dies_in_order |= uint64_t{1} << i;
      if (Readers(links)[static_cast<size_t>(slot)] == 1) links.dies_always |= uint64_t{1} << i;
    }
    if (links.frame == 0 && links.output_frame == 0) {
      for (int o = 0; o < n.num_outputs; ++o) {
        const int slot = n.output_begin + o;
        if (readers_[0][static_cast<size_t>(slot)] == 0) releases.push_back(slot);
      }
    }
    n.release_end = static_cast<int32_t>(releases.size());
    // The share of a dereferenced value is the node's own; the buffer is the variable's, so no node finds itself alone.
    for (const Dereference& d : links.dereferences) {
      if (d.input >= 64) continue;
      n.dies_in_order |= uint64_t{1} << d.input;
      links.dies_always |= uint64_t{1} << d.input;
    }
  }

  // Gives nodes slots that earlier nodes have done with, so that the frame stays small enough for the first cache. A
  // node's outputs stand side by side, so blocks of equal length are reused.
  void ReuseSlots() {
    std::vector<int> renamed(static_cast<size_t>(Root().num_slots), -1);
    std::vector<int> block_of(static_cast<size_t>(Root().num_slots), -1);  // new first slot -> its block's live count
    absl::flat_hash_map<int, std::vector<int>> free_blocks;                // by length
    std::vector<int> live, length;
    int count = plan_->num_lasting_slots_;
    for (int slot = 0; slot < count; ++slot) renamed[static_cast<size_t>(slot)] = slot;
    auto fresh = [&](int n) {
      const int first = count;
      count += n;
      live.resize(static_cast<size_t>(count), 0);
      length.resize(static_cast<size_t>(count), 0);
      length[static_cast<size_t>(first)] = n;
      return first;
    };
    auto acquire = [&](int n) {
      std::vector<int>& blocks = free_blocks[n];
      if (blocks.empty()) return fresh(n);
      const int first = blocks.back();
      blocks.pop_back();
      return first;
    };
    auto place = [&](int old_first, int n) {
      if (n == 0) return;
      const int first = acquire(n);
      live[static_cast<size_t>(first)] = n;
      for (int o = 0; o < n; ++o) {
        renamed[static_cast<size_t>(old_first + o)] = first + o;
        block_of[static_cast<size_t>(old_first + o)] = first;
      }
    };
    for (int slot : plan_->arg_slots_) place(slot, 1);
    for (size_t k = 0; k < plan_->nodes_.size(); ++k) {
      PlanNode& n = plan_->nodes_[k];
      PlanNodeLinks& links = plan_->links_[k];
      place(n.output_begin, n.num_outputs);
      if (n.num_outputs > 0) n.output_begin = renamed[static_cast<size_t>(n.output_begin)];
      for (Dereference& d : links.dereferences) {
        place(d.temp, 1);
        d.temp = renamed[static_cast<size_t>(d.temp)];
        d.source = renamed[static_cast<size_t>(d.source)];
      }
      for (PlanInput& in : links.reads) in.slot = renamed[static_cast<size_t>(in.slot)];
      for (const Dereference& d : links.dereferences) free_blocks[1].push_back(d.temp);
      for (int32_t r = n.release_begin; r < n.release_end; ++r) {
        int32_t& slot = plan_->releases_[static_cast<size_t>(r)];
        const int first = block_of[static_cast<size_t>(slot)];
        slot = renamed[static_cast<size_t>(slot)];
        if (--live[static_cast<size_t>(first)] == 0) {
          free_blocks[length[static_cast<size_t>(first)]].push_back(first);
        }
      }
    }
    for (int& slot : plan_->input_slots_) slot = renamed[static_cast<size_t>(slot)];
    for (int& slot : plan_->arg_slots_) slot = renamed[static_cast<size_t>(slot)];
    for (int& slot : plan_->retval_slots_) slot = renamed[static_cast<size_t>(slot)];
    Root().num_slots = count;
    plan_->slots_are_reused_ = true;
  }

  const Graph* graph_;
  const Plan::Options& options_;
  std::unique_ptr<Plan> plan_{new Plan()};
  std::vector<Node*> order_;
  FrameTree tree_;
  std::vector<std::vector<int>> readers_, last_reader_;  // by frame and slot
  absl::flat_hash_map<const Node*, std::shared_ptr<Kernel>> kernels_;
  absl::flat_hash_map<const Node*, int> first_slot_;
  absl::flat_hash_map<const Node*, size_t> position_;
};

StatusOr<std::unique_ptr<Plan>> Plan::Compile(const Graph& graph, const Options& options) {
  return PlanCompiler(graph, options).Compile();
}

Plan::~Plan() { delete spare_frame_.load(std::memory_order_acquire); }

Plan::Plan() { free_frames_.reserve(kMaxFreeFrames); }

StatusOr<HeldFrame> Plan::AcquireFrame() const {
  if (Frame* const spare = spare_frame_.exchange(nullptr, std::memory_order_acquire)) {
    return HeldFrame(spare, {this});
  }
  {
    absl::MutexLock lock(&mu_);
    if (!free_frames_.empty()) {
      HeldFrame frame(free_frames_.back().release(), {this});
      free_frames_.pop_back();
      return frame;
    }
  }
  MR_ASSIGN_OR_RETURN(std::unique_ptr<Frame> made, MakeFrame());
  return HeldFrame(made.release(), {this});
}

StatusOr<std::unique_ptr<Frame>> Plan::MakeFrame() const {
  auto frame = std::make_unique<Frame>();
  frame->slots.resize(static_cast<size_t>(frames_.front().num_slots));
  if (has_dead_) frame->dead.resize(nodes_.size());
  frame->inputs.reserve(input_slots_.size());
  for (int slot : input_slots_) frame->inputs.push_back(&frame->slots[static_cast<size_t>(slot)]);
  StepContext outside_steps;
  for (const PlanNode& n : once_) {
    Status s = ComputeNode(n, nullptr, frame->slots.data() + n.output_begin, 0, outside_steps, nullptr);
    if (!s.ok()) return AtNode(s, n);
  }
  return frame;
}

void ReturnFrame::operator()(Frame* frame) const {
  for (size_t s = static_cast<size_t>(plan->num_lasting_slots_); s < frame->slots.size(); ++s) {
    ClearSlot(frame->slots[s]);
  }
  Frame* none = nullptr;
  if (plan->spare_frame_.compare_exchange_strong(none, frame, std::memory_order_release)) return;
  std::unique_ptr<Frame> surplus(frame);  // freed outside the lock
  absl::MutexLock lock(&plan->mu_);
  if (plan->free_frames_.size() < kMaxFreeFrames) plan->free_frames_.push_back(std::move(surplus));
}

}  // namespace millrace
