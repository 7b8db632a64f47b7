// SPDX-License-Identifier: Apache-2.0
// Layout: the units' nodes one after the other, a slot for each output, every input resolved to a slot, then a walk
// from behind to find the last reader of each slot.
#include "runtime/plan.h"

#include <algorithm>
#include <map>

#include "base/hash_map.h"
#include "base/stopwatch.h"
#include "runtime/loop_kernel.h"
#include "runtime/node_run.h"

namespace millrace {
namespace {

constexpr size_t kMaxFreeFrames = 16;

}  // namespace

class PlanLayout {
 public:
  PlanLayout(std::shared_ptr<const PlanGraph> graph, const PlanCut& cut, const std::vector<int>& lasting_args)
      : graph_(*graph), cut_(cut) {
    plan_->graph_ = std::move(graph);
    for (const LoopFrame& f : graph_.frames) {
      plan_->frames_.push_back({.name = f.name, .parent = f.parent, .parallel_iterations = f.parallel_iterations});
    }
    place_.assign(graph_.nodes.size(), -1);
    first_slot_.assign(graph_.nodes.size(), -1);
    for (const PlanUnit& u : cut_.units) {
      for (const int k : u.nodes) place_[static_cast<size_t>(k)] = num_nodes_++;
    }
    AssignSlots();
    for (const PlanGraph::Argument& a : graph_.arguments) plan_->arg_slots_.push_back(SlotOf(a.node, 0));
    for (const PlanGraph::Result& r : graph_.results) plan_->retval_slots_.push_back(SlotOf(r.node, r.output));
    for (const int i : lasting_args) plan_->lasting_args_.insert(plan_->arg_slot(i));
  }

  std::unique_ptr<Plan> LayOut() {
    plan_->nodes_.reserve(static_cast<size_t>(num_nodes_));
    plan_->links_.reserve(static_cast<size_t>(num_nodes_));
    for (const PlanUnit& u : cut_.units) AddUnit(u);
    LinkUnits();
    FindDead();
    FindWhoDiesTogether();
    FindKept();
    CountReaders();
    FindReleases();
    for (size_t f = 0; f < plan_->frames_.size(); ++f) ReuseSlots(static_cast<int>(f));
    for (PlanFrame& f : plan_->frames_) {
      for (const int unit : f.units) f.pending.push_back(Links(unit).num_pending);
    }
    const auto& units = Root().units;
    plan_->is_one_line_ = num_nodes_ == 0 || (units.size() == 1 && Links(units.front()).segment_end == num_nodes_);
    return std::move(plan_);
  }

 private:
  static constexpr int kNobody = -1;
  static constexpr int kSeveral = -2;
  static constexpr int kKept = -3;  // by who runs the plan, or by the frame
  static constexpr int kNoDeath = -1;

  // By slot of a frame.
  struct SlotReaders {
    std::vector<int> only;  // the unit that reads it, or kNobody, kSeveral, kKept
    std::vector<int32_t> count;
  };

  const PlannedNode& At(int k) const { return graph_.nodes[static_cast<size_t>(k)]; }
  int PlaceOf(int k) const { return place_[static_cast<size_t>(k)]; }
  PlanNode& NodeAt(int place) { return plan_->nodes_[static_cast<size_t>(place)]; }
  PlanNodeLinks& Links(int place) { return plan_->links_[static_cast<size_t>(place)]; }
  // The first node of the unit that a node is in.
  int UnitOf(int place) { return FrameAt(Links(place).frame).units[static_cast<size_t>(Links(place).position)]; }
  PlanFrame& FrameAt(int frame) { return plan_->frames_[static_cast<size_t>(frame)]; }
  PlanFrame& Root() { return plan_->frames_.front(); }
  int SlotOf(int k, int output) const { return first_slot_[static_cast<size_t>(k)] + output; }

  // What runs once has the first slots, and is not among the nodes of a step.
  void AssignSlots() {
    for (size_t k = 0; k < graph_.nodes.size(); ++k) {
      if (graph_.nodes[k].kind != PlannedNode::Kind::kOnce) continue;
      AssignSlot(static_cast<int>(k));
      plan_->once_.push_back(Described(static_cast<int>(k)));
    }
    plan_->num_lasting_slots_ = Root().num_slots;
    for (size_t k = 0; k < graph_.nodes.size(); ++k) {
      if (first_slot_[k] < 0) AssignSlot(static_cast<int>(k));
    }
  }
  void AssignSlot(int k) {
    PlanFrame& frame = FrameAt(At(k).output_frame);
    int& count = At(k).enters_constant ? frame.num_constants : frame.num_slots;
    first_slot_[static_cast<size_t>(k)] = count;
    count += At(k).num_outputs();
  }

  PlanNode Described(int k) const {
    const PlannedNode& n = At(k);
    PlanNode p;
    p.kernel = n.kernel.get();
    p.info = &n.info;
    p.output_begin = SlotOf(k, 0);
    p.num_outputs = n.num_outputs();
    p.control = n.control;
    p.may_leave_dead = n.control == ControlOp::kSwitch || n.is_transfer;
    p.may_stop = n.may_stop;
    return p;
  }

  void AddUnit(const PlanUnit& u) {
    const auto first = static_cast<int>(plan_->nodes_.size());
    PlanFrame& frame = FrameAt(At(u.nodes.front()).frame);
    const auto position = static_cast<int>(frame.units.size());
    frame.units.push_back(first);
    for (const int k : u.nodes) AddNode(k, position, u.is_segment);
    PlanNodeLinks& links = Links(first);
    if (u.is_segment) links.segment_end = static_cast<int>(plan_->nodes_.size());
    links.pays_a_thread = u.pays_a_thread;
  }

  void AddNode(int k, int position, bool in_segment) {
    const PlannedNode& n = At(k);
    PlanNode p = Described(k);
    PlanNodeLinks links;
    links.async = n.async;
    links.in_segment = in_segment;
    links.is_transfer = n.is_transfer;
    links.enters_constant = n.enters_constant;
    links.frame = n.frame;
    links.output_frame = n.output_frame;
    links.position = position;
    PlanFrame& frame = FrameAt(n.frame);
    p.input_begin = static_cast<int32_t>(frame.inputs.size());
    p.dead_at = FrameAt(n.output_frame).num_dead++;
    for (size_t i = 0; i < n.inputs.size(); ++i) {
      int slot = SlotOf(n.inputs[i].node, n.inputs[i].output);
      const bool is_constant = At(n.inputs[i].node).enters_constant;
      links.reads.push_back({slot, is_constant});
      if (n.inputs[i].dereferences) {
        links.dereferences.push_back(
            {slot, frame.num_slots, static_cast<int>(i), is_constant, At(n.inputs[i].node).info.name});
        slot = frame.num_slots++;
      }
      frame.inputs.push_back({slot, is_constant && !n.inputs[i].dereferences});
    }
    if (!links.dereferences.empty()) p.care |= PlanNode::kDereferences;
    if (n.control == ControlOp::kEnter) ++FrameAt(n.output_frame).num_enters;
    plan_->nodes_.push_back(p);
    plan_->links_.push_back(std::move(links));
  }

  void LinkUnits() {
    std::vector<int> joined(plan_->nodes_.size(), -1);  // by unit: the segment that it has an edge to
    HashMap<int, std::vector<int>> before;              // by first node of a unit, see PlanCut::order
    for (const auto& [from, to] : cut_.order) before[UnitOf(PlaceOf(to))].push_back(from);
    for (const PlanUnit& u : cut_.units) {
      const int first = PlaceOf(u.nodes.front());
      const int segment = u.is_segment ? first : -1;
      for (const int k : u.nodes) {
        const PlannedNode& n = At(k);
        for (size_t i = 0; i < n.inputs.size(); ++i) {
          Link(n.inputs[i].node, n.inputs[i].output, k, static_cast<int>(i), segment, joined);
        }
        for (const int c : n.controls) Link(c, -1, k, -1, segment, joined);
      }
      const auto at = before.find(first);
      if (at == before.end()) continue;
      for (const int from : at->second) Link(from, PlanEdge::kOrder, u.nodes.front(), -1, segment, joined);
    }
  }
  // `segment`: the first node of the one that `to` is in, or -1.
  void Link(int from, int output, int to, int input, int segment, std::vector<int>& joined) {
    const int f = PlaceOf(from), t = PlaceOf(to);
    PlanNodeLinks& links = Links(t);
    const bool merges = At(to).control == ControlOp::kMerge && input >= 0;
    if (f < 0) {
      if (merges) links.merge_at_start = input;
      return;
    }
    const int from_unit = UnitOf(f);
    if (segment >= 0) {
      int& joins = joined[static_cast<size_t>(from_unit)];
      if (from_unit == segment || joins == segment) return;
      joins = segment;
      ++Links(segment).num_pending;
    } else {
      links.num_data += input >= 0;
      links.num_pending += !merges;
    }
    Links(from_unit).successors.push_back({f, t, output, input});
  }

  // Deadness spreads from Switches along data and control edges; only a Merge stops it, and perhaps not even that.
  void FindDead() {
    for (const PlanUnit& u : cut_.units) {
      for (const int k : u.nodes) FindDead(k);
    }
    bool any = false;
    for (int place = 0; place < num_nodes_; ++place) any |= MayGiveDead(place);
    if (any) return;
    for (PlanFrame& f : plan_->frames_) f.num_dead = 0;
  }
  void FindDead(int k) {
    PlanNode& n = NodeAt(PlaceOf(k));
    bool may_be_dead = false;
    for (const PlannedNode::Input& in : At(k).inputs) may_be_dead |= MayGiveDead(PlaceOf(in.node));
    for (const int c : At(k).controls) {
      const int from = PlaceOf(c);
      if (!MayGiveDead(from)) continue;
      may_be_dead = true;
      // Who waits for a receive alone dies with what was received.
      const bool dies_with_it =
          NodeAt(from).Has(PlanNode::kMayBeDead) || At(c).is_transfer || At(c).control == ControlOp::kExit;
      if (dies_with_it && n.control != ControlOp::kMerge) Links(PlaceOf(k)).dead_controls.push_back(from);
    }
    may_be_dead = (may_be_dead && n.control != ControlOp::kTrigger) || At(k).is_transfer;
    if (may_be_dead) n.care |= PlanNode::kMayBeDead | PlanNode::kDiesByItself;
  }
  bool MayGiveDead(int place) {
    if (place < 0) return false;
    const PlanNode& n = NodeAt(place);
    // A loop may end without a live Exit.
    return n.Has(PlanNode::kMayBeDead) || n.may_leave_dead || n.control == ControlOp::kExit;
  }

  // What may make a node dead has a number: nodes that have the same one are dead in the same steps. Where several
  // things may, each node has a number of its own.
  void FindWhoDiesTogether() {
    deaths_.assign(static_cast<size_t>(num_nodes_), kNoDeath);
    for (const PlanUnit& u : cut_.units) {
      int last = kNoDeath;
      for (const int k : u.nodes) {
        PlanNode& n = NodeAt(PlaceOf(k));
        if (!u.is_segment || !n.Has(PlanNode::kMayBeDead)) continue;
        const int death = deaths_[static_cast<size_t>(PlaceOf(k))] = DeathOf(k);
        if (death == last) n.care &= static_cast<uint8_t>(~PlanNode::kDiesByItself);
        last = death;
      }
    }
    const auto tells = [this](int place) {
      if (NodeAt(place).Has(PlanNode::kMayBeDead)) NodeAt(place).care |= PlanNode::kTellsDeath;
    };
    for (int place = 0; place < num_nodes_; ++place) {
      const PlanNodeLinks& links = Links(place);
      if (links.is_transfer) tells(place);
      for (const int from : links.dead_controls) tells(from);
      for (const PlanEdge& e : links.successors) tells(e.from);
    }
  }
  int DeathOf(int k) {
    int death = kNoDeath;
    bool is_one = At(k).control != ControlOp::kMerge;
    const auto also = [&](int other) {
      is_one &= death == kNoDeath || death == other;
      death = other;
    };
    for (const PlannedNode::Input& in : At(k).inputs) {
      if (MayGiveDead(PlaceOf(in.node))) also(DeathOfOutput(PlaceOf(in.node), in.output));
    }
    for (const int from : Links(PlaceOf(k)).dead_controls) also(DeathForControls(from));
    return is_one && death != kNoDeath ? death : num_deaths_++;
  }
  int DeathOfOutput(int place, int output) {
    const int own = deaths_[static_cast<size_t>(place)];
    if (own != kNoDeath && !NodeAt(place).may_leave_dead) return own;
    const auto [at, is_new] = output_deaths_.try_emplace({place, output}, num_deaths_);
    num_deaths_ += is_new;
    return at->second;
  }
  int DeathForControls(int place) {
    if (Links(place).is_transfer) return DeathOfOutput(place, 0);  // who only sends is not dead: nobody else reads that
    const int own = deaths_[static_cast<size_t>(place)];
    return own != kNoDeath ? own : DeathOfOutput(place, -1);
  }

  // A Merge by itself reads one of its inputs, and what comes later is dropped as it comes.
  bool DropsItsInputsItself(int place) {
    return NodeAt(place).control == ControlOp::kMerge && !Links(place).in_segment;
  }

  // By who runs the plan.
  void FindKept() {
    for (const PlanFrame& f : plan_->frames_) {
      readers_.push_back({.only = std::vector<int>(static_cast<size_t>(f.num_slots), kNobody),
                          .count = std::vector<int32_t>(static_cast<size_t>(f.num_slots), 0)});
    }
    const auto keep = [&](int slot) { readers_.front().only[static_cast<size_t>(slot)] = kKept; };
    for (const int slot : plan_->retval_slots_) keep(slot);
    for (const int slot : plan_->lasting_args_) keep(slot);
    for (int slot = 0; slot < plan_->num_lasting_slots_; ++slot) keep(slot);
  }

  void CountReaders() {
    for (size_t f = 0; f < plan_->frames_.size(); ++f) {
      PlanFrame& frame = plan_->frames_[f];
      CountReaders(frame, readers_[f]);
      frame.counter_of.assign(static_cast<size_t>(frame.num_slots), -1);
      for (size_t slot = 0; slot < readers_[f].only.size(); ++slot) {
        if (readers_[f].only[slot] != kSeveral) continue;
        frame.counter_of[slot] = static_cast<int32_t>(frame.counted_slots.size());
        frame.counted_slots.push_back({static_cast<int32_t>(slot), readers_[f].count[slot]});
      }
    }
    for (int place = 0; place < num_nodes_; ++place) {
      if (NodeAt(place).num_outputs == 1) Links(place).is_read = FateOf(place, 0) != kNobody;
    }
  }
  // A unit counts once, a Merge by itself for each of its inputs.
  void CountReaders(const PlanFrame& frame, SlotReaders& readers) {
    std::vector<int> seen(readers.only.size(), -1);
    for (const int unit : frame.units) {
      const int end = std::max(Links(unit).segment_end, unit + 1);
      for (int place = unit; place < end; ++place) {
        for (const PlanInput& in : Links(place).reads) {
          if (in.is_constant) continue;
          const auto slot = static_cast<size_t>(in.slot);
          int& only = readers.only[slot];
          const bool drops_it_itself = DropsItsInputsItself(place);
          if (!drops_it_itself && std::exchange(seen[slot], unit) == unit) continue;
          if (only != kKept) only = only == kNobody && !drops_it_itself ? unit : kSeveral;
          ++readers.count[slot];
        }
      }
    }
  }
  // Who reads output `o` of the node: a unit, or kNobody, kSeveral, kKept.
  int FateOf(int place, int o) {
    if (Links(place).enters_constant) return kKept;
    const auto frame = static_cast<size_t>(Links(place).output_frame);
    return readers_[frame].only[static_cast<size_t>(NodeAt(place).output_begin + o)];
  }

  // From behind, so that the first reader met in a unit is its last.
  void FindReleases() {
    std::vector<int32_t>& releases = plan_->releases_;
    std::vector<std::vector<int>> seen;
    for (const SlotReaders& r : readers_) seen.emplace_back(r.only.size(), -1);
    for (int place = num_nodes_ - 1; place >= 0; --place) {
      PlanNode& n = NodeAt(place);
      const PlanNodeLinks& links = Links(place);
      n.release_begin = static_cast<int32_t>(releases.size());
      const int unit = UnitOf(place);
      const SlotReaders& readers = readers_[static_cast<size_t>(links.frame)];
      for (size_t i = 0; i < links.reads.size(); ++i) {
        if (links.reads[i].is_constant) continue;
        const auto slot = static_cast<size_t>(links.reads[i].slot);
        const int only = readers.only[slot];
        if (only == kKept) continue;
        bool dies = false;
        if (DropsItsInputsItself(place)) {
          dies = readers.count[slot] == 1;
        } else if (std::exchange(seen[static_cast<size_t>(links.frame)][slot], unit) != unit) {
          dies = only == unit;
          releases.push_back(dies ? static_cast<int32_t>(slot) : ~FrameAt(links.frame).counter_of[slot]);
        }
        const auto same = [&](const PlanInput& in) { return !in.is_constant && in.slot == links.reads[i].slot; };
        if (i >= 64 || std::count_if(links.reads.begin(), links.reads.end(), same) != 1) continue;
        n.dies |= uint64_t{dies} << i;
      }
      for (int o = 0; links.output_frame == links.frame && n.control != ControlOp::kNextIteration && o < n.num_outputs;
           ++o) {
        if (FateOf(place, o) == kNobody) releases.push_back(n.output_begin + o);
      }
      n.release_end = static_cast<int32_t>(releases.size());
      // The share of a dereferenced value is the node's own; the buffer is the variable's, so no node finds itself
      // alone.
      for (const Dereference& d : links.dereferences) {
        if (d.input < 64) n.dies |= uint64_t{1} << d.input;
      }
    }
    std::reverse(releases.begin(), releases.end());
    const auto size = static_cast<int32_t>(releases.size());
    for (PlanNode& n : plan_->nodes_) {
      n.release_begin = size - std::exchange(n.release_end, size - n.release_begin);
    }
  }

  // Gives the nodes of a segment slots that earlier nodes of it have done with, so that the frame stays small enough
  // for the first cache. A node's outputs stand side by side, so blocks of equal length are reused, by the unit that
  // cleared all of one. What comes from another frame or iteration has slots of its own.
  void ReuseSlots(int f) {
    PlanFrame& frame = FrameAt(f);
    const auto old_slots = static_cast<size_t>(frame.num_slots);
    std::vector<int> renamed(old_slots, -1), block_of(old_slots, -1);
    HashMap<int, std::vector<int>> free_blocks;  // by length; of the unit
    std::vector<int> live, length, cleared_by;   // by first slot of a block
    int count = f == 0 ? plan_->num_lasting_slots_ : 0;
    for (int slot = 0; slot < count; ++slot) renamed[static_cast<size_t>(slot)] = slot;
    const auto fresh = [&](int n) {
      const int first = count;
      count += n;
      live.resize(static_cast<size_t>(count), 0);
      length.resize(static_cast<size_t>(count), 0);
      cleared_by.resize(static_cast<size_t>(count), kNobody);
      length[static_cast<size_t>(first)] = n;
      return first;
    };
    const auto acquire = [&](int n) {
      std::vector<int>& blocks = free_blocks[n];
      if (blocks.empty()) return fresh(n);
      const int first = blocks.back();
      blocks.pop_back();
      return first;
    };
    const auto place_block = [&](int old_first, int n) {
      if (n == 0) return;
      const auto first = static_cast<size_t>(acquire(n));
      live[first] = n;
      cleared_by[first] = kNobody;
      for (int o = 0; o < n; ++o) {
        renamed[static_cast<size_t>(old_first + o)] = static_cast<int>(first) + o;
        block_of[static_cast<size_t>(old_first + o)] = static_cast<int>(first);
      }
    };
    const auto rename = [&](auto& slot) { slot = renamed[static_cast<size_t>(slot)]; };
    const auto clear = [&](int slot, int unit) {
      const auto first = static_cast<size_t>(block_of[static_cast<size_t>(slot)]);
      cleared_by[first] = cleared_by[first] == kNobody || cleared_by[first] == unit ? unit : kSeveral;
      if (--live[first] == 0 && cleared_by[first] == unit) {
        free_blocks[length[first]].push_back(static_cast<int>(first));
      }
    };
    const auto place_outputs = [&](PlanNode& n) {
      place_block(n.output_begin, n.num_outputs);
      if (n.num_outputs > 0) rename(n.output_begin);
    };
    if (f == 0) {
      for (const int slot : plan_->arg_slots_) place_block(slot, 1);
    } else {
      for (int place = 0; place < num_nodes_; ++place) {
        const bool comes_in = Links(place).output_frame == f && !Links(place).enters_constant &&
                              (Links(place).frame != f || NodeAt(place).control == ControlOp::kNextIteration);
        if (comes_in) place_outputs(NodeAt(place));
      }
    }
    int unit = -1;
    for (int place = 0; place < num_nodes_; ++place) {
      PlanNode& n = NodeAt(place);
      PlanNodeLinks& links = Links(place);
      const int own = UnitOf(place);
      if (std::exchange(unit, own) != own) free_blocks.clear();
      const bool is_own = links.frame == f && n.control != ControlOp::kNextIteration;
      if (links.output_frame == f && (is_own || f == 0)) place_outputs(n);
      if (links.frame != f) continue;
      for (Dereference& d : links.dereferences) {
        place_block(d.temp, 1);
        rename(d.temp);
        if (!d.from_constant) rename(d.source);
      }
      for (PlanInput& in : links.reads) {
        if (!in.is_constant) rename(in.slot);
      }
      for (const Dereference& d : links.dereferences) free_blocks[1].push_back(d.temp);
      for (int32_t r = n.release_begin; r < n.release_end; ++r) {
        int32_t& slot = plan_->releases_[static_cast<size_t>(r)];
        if (slot < 0) continue;
        clear(slot, unit);
        rename(slot);
      }
    }
    for (PlanInput& in : frame.inputs) {
      if (!in.is_constant) rename(in.slot);
    }
    if (f == 0) {
      for (int& slot : plan_->arg_slots_) rename(slot);
      for (int& slot : plan_->retval_slots_) rename(slot);
      HashSet<int> lasting;
      for (int slot : plan_->lasting_args_) lasting.insert(renamed[static_cast<size_t>(slot)]);
      plan_->lasting_args_ = std::move(lasting);
    }
    frame.counter_of.assign(static_cast<size_t>(count), -1);
    for (size_t i = 0; i < frame.counted_slots.size(); ++i) {
      rename(frame.counted_slots[i].slot);
      frame.counter_of[static_cast<size_t>(frame.counted_slots[i].slot)] = static_cast<int32_t>(i);
    }
    frame.num_slots = count;
  }

  const PlanGraph& graph_;
  const PlanCut& cut_;
  std::unique_ptr<Plan> plan_{new Plan()};
  int num_nodes_ = 0;
  std::vector<int> place_;                            // of a node of the graph in the plan; -1: it is no node of a step
  std::vector<int> first_slot_;                       // by node of the graph
  std::vector<int> deaths_;                           // of nodes in segments that may be dead; kNoDeath: of others
  std::map<std::pair<int, int>, int> output_deaths_;  // of what others may leave without a value
  int num_deaths_ = 0;
  std::vector<SlotReaders> readers_;  // by frame, before slots are renamed
};

std::unique_ptr<Plan> Plan::LayOut(std::shared_ptr<const PlanGraph> graph, const PlanCut& cut,
                                   const std::vector<int>& lasting_args) {
  return PlanLayout(std::move(graph), cut, lasting_args).LayOut();
}

StatusOr<std::unique_ptr<Plan>> Plan::Compile(const Graph& graph, const Options& options) {
  const auto make_kernel = [&](const Node& n) -> StatusOr<std::shared_ptr<Kernel>> {
    if (options.loops != nullptr && n.Is(OpTrait::kInternal)) {
      const auto loop = options.loops->find(n.name());
      if (loop != options.loops->end()) return MakeLoopKernel(loop->second, options);
    }
    return options.make_kernel(n);
  };
  MR_ASSIGN_OR_RETURN(std::shared_ptr<const PlanGraph> read,
                      PlanGraph::Read(graph, options.device, make_kernel, options.updates_early));
  const int64_t start = RealNanos();
  const PlanCut cut = options.in_segments ? CutByWaits(*read) : CutIntoNodes(*read);
  std::unique_ptr<Plan> plan = LayOut(std::move(read), cut, options.lasting_args);
  CutReport& report = plan->cut_;
  for (const PlanUnit& u : cut.units) {
    ++(u.is_segment ? report.segments : report.single_nodes);
    if (u.is_segment) report.longest = std::max(report.longest, static_cast<int64_t>(u.nodes.size()));
  }
  report.order_nanos = plan->graph_->order_nanos;
  report.nanos = RealNanos() - start;
  return plan;
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

void Frame::SetUp(const PlanFrame& frame, Slot* loop_constants) {
  if (layout == &frame && constants == loop_constants) return;
  if (layout != &frame) {
    slots.resize(static_cast<size_t>(frame.num_slots));
    dead.resize(static_cast<size_t>(frame.num_dead));
    if (!frame.counted_slots.empty()) readers.reset(new std::atomic<int32_t>[frame.counted_slots.size()]);
  }
  inputs.clear();
  inputs.reserve(frame.inputs.size());
  for (const PlanInput& in : frame.inputs) {
    inputs.push_back((in.is_constant ? loop_constants : slots.data()) + in.slot);
  }
  layout = &frame;
  constants = loop_constants;
}

StatusOr<std::unique_ptr<Frame>> Plan::MakeFrame() const {
  auto frame = std::make_unique<Frame>();
  frame->SetUp(frames_.front(), nullptr);
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
