// SPDX-License-Identifier: Apache-2.0
// Compilation: order the nodes, give each output a slot, resolve every input to a slot, then walk once to find the last
// reader of each slot.
#include "runtime/plan.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "runtime/node_run.h"
#include "runtime/update_order.h"

namespace millrace {
namespace {

constexpr size_t kMaxFreeFrames = 16;

bool IsArg(const Node& n) { return n.op_name() == "_Arg"; }
bool IsRetval(const Node& n) { return n.op_name() == "_Retval"; }

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
  PlanCompiler(const Graph& graph, const Plan::Options& options) : graph_(graph), options_(options) {}

  StatusOr<std::unique_ptr<Plan>> Compile() {
    MR_ASSIGN_OR_RETURN(order_, TopologicalOrder(graph_));
    MoveUpdatesUp(order_);
    plan_->infos_.reserve(order_.size());  // PlanNode::info points into it
    MR_RETURN_IF_ERROR(MakeKernels());
    AssignSlots();
    MR_RETURN_IF_ERROR(BindArguments());
    for (Node* n : order_) {
      if (kernels_.contains(n)) AddNode(*n, plan_->nodes_);
    }
    LinkSuccessors();
    CountReaders();
    for (size_t k = 0; k < plan_->nodes_.size(); ++k) FindDeaths(k);
    if (options_.reuse_slots && !plan_->has_async_) ReuseSlots();
    return std::move(plan_);
  }

 private:
  static constexpr int kForever = 1 << 30;

  int SlotOf(Output o) const { return first_slot_.at(o.node) + o.index; }

  Status MakeKernels() {
    for (Node* n : order_) {
      if (IsArg(*n) || IsRetval(*n)) continue;
      if (!n->op()) {
        return Unimplemented("op ", n->op_name(), " of ", n->Describe(),
                             " is not known here; it was imported by name only");
      }
      MR_ASSIGN_OR_RETURN(kernels_[n], options_.make_kernel(*n));
    }
    return absl::OkStatus();
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
    plan_->num_lasting_slots_ = plan_->num_slots_;
    for (Node* n : order_) {
      if (!first_slot_.contains(n)) AssignSlot(n);
    }
  }
  void AssignSlot(const Node* n) {
    first_slot_[n] = plan_->num_slots_;
    plan_->num_slots_ += n->num_outputs();
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
    plan_->has_async_ |= links.async != nullptr;
    plan_->kernels_.push_back(kernel);
    p.input_begin = static_cast<int32_t>(plan_->input_slots_.size());
    for (int i = 0; i < n.num_inputs(); ++i) {
      int slot = SlotOf(n.input(i));
      links.reads.push_back(slot);
      if (IsRef(n.input(i).dtype()) && !IsRef(n.input_type(i))) {
        links.dereferences.push_back({slot, plan_->num_slots_, i});
        slot = plan_->num_slots_++;
      }
      plan_->input_slots_.push_back(slot);
    }
    p.dereferences = !links.dereferences.empty();
    p.output_begin = first_slot_.at(&n);
    p.num_outputs = n.num_outputs();
    to.push_back(p);
    if (&to != &plan_->nodes_) return;
    position_[&n] = plan_->nodes_.size() - 1;
    plan_->links_.push_back(std::move(links));
  }

  void LinkSuccessors() {
    auto link = [&](const Node* from, const Node* to) {
      auto f = position_.find(from), t = position_.find(to);
      if (f == position_.end() || t == position_.end()) return;
      plan_->links_[f->second].successors.push_back(static_cast<int>(t->second));
      ++plan_->links_[t->second].num_pending;
    };
    for (const Node* n : order_) {
      for (Output in : n->inputs()) link(in.node, n);
      for (const Node* c : n->control_inputs()) link(c, n);
    }
  }

  void CountReaders() {
    const size_t n = static_cast<size_t>(plan_->num_slots_);
    plan_->slot_readers_.assign(n, 0);
    last_reader_.assign(n, -1);
    for (size_t k = 0; k < plan_->links_.size(); ++k) {
      for (int slot : plan_->links_[k].reads) {
        ++plan_->slot_readers_[static_cast<size_t>(slot)];
        last_reader_[static_cast<size_t>(slot)] = static_cast<int>(k);
      }
    }
    for (int slot : plan_->retval_slots_) {
      ++plan_->slot_readers_[static_cast<size_t>(slot)];
      last_reader_[static_cast<size_t>(slot)] = kForever;
    }
    for (size_t slot = 0; slot < static_cast<size_t>(plan_->num_lasting_slots_); ++slot) {
      ++plan_->slot_readers_[slot];
      last_reader_[slot] = kForever;
    }
  }

  void FindDeaths(size_t k) {
    PlanNode& n = plan_->nodes_[k];
    PlanNodeLinks& links = plan_->links_[k];
    std::vector<int32_t>& releases = plan_->releases_;
    n.release_begin = static_cast<int32_t>(releases.size());
    for (size_t i = 0; i < links.reads.size(); ++i) {
      const int slot = links.reads[i];
      if (last_reader_[static_cast<size_t>(slot)] != static_cast<int>(k)) continue;
      if (std::find(releases.begin() + n.release_begin, releases.end(), slot) == releases.end()) releases.push_back(slot);
      if (i >= 64 || std::count(links.reads.begin(), links.reads.end(), slot) != 1) continue;
      n.dies_in_order |= uint64_t{1} << i;
      if (plan_->slot_readers_[static_cast<size_t>(slot)] == 1) links.dies_always |= uint64_t{1} << i;
    }
    for (int o = 0; o < n.num_outputs; ++o) {
      const int slot = n.output_begin + o;
      if (plan_->slot_readers_[static_cast<size_t>(slot)] == 0) releases.push_back(slot);
    }
    n.release_end = static_cast<int32_t>(releases.size());
    // A dereferenced value belongs to the variable: it is never the node's to reuse.
    for (const Dereference& d : links.dereferences) {
      if (d.input >= 64) continue;
      n.dies_in_order &= ~(uint64_t{1} << d.input);
      links.dies_always &= ~(uint64_t{1} << d.input);
    }
  }

  // Gives nodes slots that earlier nodes have done with, so that the frame stays small enough for the first cache. A
  // node's outputs stand side by side, so blocks of equal length are reused.
  void ReuseSlots() {
    std::vector<int> renamed(static_cast<size_t>(plan_->num_slots_), -1);
    std::vector<int> block_of(static_cast<size_t>(plan_->num_slots_), -1);  // new first slot -> its block's live count
    absl::flat_hash_map<int, std::vector<int>> free_blocks;                 // by length
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
    plan_->num_slots_ = count;
    plan_->slots_are_reused_ = true;
  }

  const Graph& graph_;
  const Plan::Options& options_;
  std::unique_ptr<Plan> plan_{new Plan()};
  std::vector<Node*> order_;
  std::vector<int> last_reader_;
  absl::flat_hash_map<const Node*, std::shared_ptr<Kernel>> kernels_;
  absl::flat_hash_map<const Node*, int> first_slot_;
  absl::flat_hash_map<const Node*, size_t> position_;
};

StatusOr<std::unique_ptr<Plan>> Plan::Compile(const Graph& graph, const Options& options) {
  return PlanCompiler(graph, options).Compile();
}

StatusOr<std::unique_ptr<Frame>> Plan::AcquireFrame() const {
  {
    absl::MutexLock lock(&mu_);
    if (!free_frames_.empty()) {
      std::unique_ptr<Frame> frame = std::move(free_frames_.back());
      free_frames_.pop_back();
      return frame;
    }
  }
  auto frame = std::make_unique<Frame>();
  frame->slots.resize(static_cast<size_t>(num_slots_));
  frame->inputs.reserve(input_slots_.size());
  for (int slot : input_slots_) frame->inputs.push_back(&frame->slots[static_cast<size_t>(slot)]);
  StepContext outside_steps;
  for (const PlanNode& n : once_) {
    KernelContext ctx(*n.info, nullptr, frame->slots.data() + n.output_begin, 0, outside_steps);
    Status s = n.kernel->Compute(ctx);
    if (s.ok()) s = CheckOutputs(n, *frame);
    if (!s.ok()) return AtNode(s, n);
  }
  return frame;
}

void Plan::ReleaseFrame(std::unique_ptr<Frame> frame) const {
  for (size_t s = static_cast<size_t>(num_lasting_slots_); s < frame->slots.size(); ++s) ClearSlot(frame->slots[s]);
  absl::MutexLock lock(&mu_);
  if (free_frames_.size() < kMaxFreeFrames) free_frames_.push_back(std::move(frame));
}

}  // namespace millrace
