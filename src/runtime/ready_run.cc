// SPDX-License-Identifier: Apache-2.0
// Execution by readiness (white paper 4.4). A unit of a plan (a segment, else one node) is queued when what it waits
// for has come. A node runs in an iteration of a frame; values carry the iteration that they belong to by lying in its
// slots. Switch makes dead values; a node with a dead input does not run but passes its death on, until a Merge finds
// something live. Enter, Exit and NextIteration put their value into the slots of another iteration. An iteration ends
// when nothing in it runs or can still arrive; a frame ends with its last iteration, and exits that were never live are
// dead then.
//
// One lock guards the bookkeeping; kernels run outside of it. `live_` counts everything that can still make progress:
// running threads and outstanding asynchronous kernels; whoever brings it to zero finishes the step. An exception in
// the bookkeeping fails the step, whose queue is then emptied without a look at it, so that it need not be in order.
#include <algorithm>
#include <atomic>
#include <deque>

#include "base/help_point.h"
#include "base/lent_thread.h"
#include "base/thread_pool.h"
#include "kernel/session_scope.h"
#include "runtime/blocked_nodes.h"
#include "runtime/interrupt.h"
#include "runtime/loop_state.h"
#include "runtime/node_run.h"
#include "runtime/step_watch.h"

namespace millrace {
namespace {

// Mixes, the same way in every process.
uint64_t FrameId(uint64_t parent, int64_t iteration, absl::string_view name) {
  uint64_t h = 0xcbf29ce484222325u ^ (parent * 0x9e3779b97f4a7c15u) ^
               (static_cast<uint64_t>(iteration) + 1) * 0xff51afd7ed558ccdu;
  for (const char c : name) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  h ^= h >> 32;
  return h == 0 ? 1 : h;
}

class ReadyRun final : public StepWatch::Part {
 public:
  ReadyRun(const Plan& plan, Frame& frame, StepContext& step, const ExecutorOptions& options)
      : plan_(plan),
        frame_(frame),
        step_(step),
        options_(options),
        spare_(plan.frames().size()),
        random_(options.order_seed) {
    if (options.trace) options.trace->Watch(plan.graph());
    absl::MutexLock lock(&mu_);
    Prepare(root_, 0, nullptr);
    Iteration& it = Begin(root_, &frame);
    for (size_t u = 0; u < it.nodes.size(); ++u) {
      const int unit = root_.frame->units[u];
      NodeState& state = it.nodes[u];
      if (MergesByItself(unit)) state.merge_input = Links(unit).merge_at_start;
      if (state.pending == 0 && (!MergesByItself(unit) || state.merge_input >= 0)) Queue(it, unit);
    }
    live_ = 1;  // the caller of Start
    runners_ = 1;
  }

  void Start(absl::AnyInvocable<void(Status) &&> done) {
    done_ = std::move(done);
    if (options_.watch) options_.watch->Add(this);
    RunQueue();
    DropLive();
  }

  int64_t num_finished() override {
    absl::MutexLock lock(&mu_);
    return num_finished_;
  }
  void Describe(std::vector<std::string>* lines) override {
    absl::MutexLock lock(&mu_);
    DescribeWaiting(plan_, root_, lines);
  }

 private:
  struct Ready {
    Iteration* iteration;
    int node;  // the first of a segment stands for it
    bool operator<(const Ready& o) const {
      return iteration->serial != o.iteration->serial ? iteration->serial < o.iteration->serial : node < o.node;
    }
  };

  // ---- What is to be freed: outside of the lock, since a buffer's deallocator may be the client's ----

  struct Garbage {
    std::vector<Slot> slots;
    std::vector<std::unique_ptr<Iteration>> iterations;
    std::vector<std::unique_ptr<LoopRun>> runs;
    void Swap(Garbage& other) {
      slots.swap(other.slots);
      iterations.swap(other.iterations);
      runs.swap(other.runs);
    }
    // Iterations stay, without their values, to be used again.
    void Free() {
      slots.clear();
      runs.clear();
      for (const auto& it : iterations) {
        for (Slot& s : it->own.slots) ClearSlot(s);
      }
    }
  };
  Garbage TakeGarbage() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return std::exchange(garbage_, {}); }
  void Keep(std::vector<std::unique_ptr<Iteration>>& cleared) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    for (; !cleared.empty(); cleared.pop_back()) {
      spare_[static_cast<size_t>(cleared.back()->frame)].push_back(std::move(cleared.back()));
    }
  }
  void Clear(Slot& s) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (!IsEmpty(s)) garbage_.slots.push_back(std::exchange(s, {}));
  }

  // ---- Queue and threads ----

  void Queue(Iteration& it, int k) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    State(it, k).is_ready = true;
    ++it.live;
    const Ready item{&it, k};
    ready_.insert(std::lower_bound(ready_.begin(), ready_.end(), item), item);
  }

  // The earliest iteration's earliest node in construction order, or a seeded choice.
  Ready Pop() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    size_t pick = 0;
    if (options_.order_seed != 0) {
      random_ = random_ * 6364136223846793005u + 1442695040888963407u;
      pick = static_cast<size_t>((random_ >> 33) % ready_.size());
    }
    const Ready item = ready_[pick];
    ready_.erase(ready_.begin() + static_cast<std::ptrdiff_t>(pick));
    return item;
  }

  void RunQueue() ABSL_LOCKS_EXCLUDED(mu_) {
    for (;;) {
      try {
        return RunUntilEmpty();
      } catch (...) {
        Fail(StatusFromException());
      }
    }
  }

  void RunUntilEmpty() ABSL_LOCKS_EXCLUDED(mu_) {
    const SessionScope session(options_.session);
    const WorkFor caller(options_.caller ? options_.caller->help_point() : nullptr);
    Inputs inputs;
    Slot aside;
    Interrupt* const interrupt = CurrentInterrupt();
    Ready item{nullptr, 0};
    bool completed = false, empty = false;
    Garbage garbage;  // freed after the lock is released
    while (!empty) {
      const bool found = UnderLock([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
        if (std::exchange(completed, false) && status_.ok()) Complete(item, &aside);
        do {
          empty = ready_.empty();
          if (empty) break;
          item = Pop();
          MaybeAddRunner();
        } while (Skip(item));
        empty ? static_cast<void>(--runners_) : FindInputs(item, &inputs);
        Keep(garbage.iterations);
        garbage.Swap(garbage_);  // keeps the memory of both lists
      });
      if (!found || empty) continue;
      garbage.Free();
      if (interrupt && interrupt->IsDue() && interrupt->Look()) Fail(Interrupted());
      if (!IsEmpty(aside)) aside = {};
      completed = Run(item, inputs, &aside);
    }
  }

  // False when `work` on the bookkeeping threw. It may be half done then, so the step has failed before anybody else
  // sees it.
  template <typename Work>
  bool UnderLock(Work work) ABSL_LOCKS_EXCLUDED(mu_) {
    Status s;
    {
      absl::MutexLock lock(&mu_);
      s = WithoutExceptions([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
        work();
        return absl::OkStatus();
      });
      if (s.ok()) return true;
      if (!status_.ok()) return false;
      status_ = s;
    }
    StopOthers(s);
    return false;
  }

  // Another worker joins while units wait that pay for it and threads are free.
  void MaybeAddRunner() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (options_.single_thread || !status_.ok()) return;
    if (ready_.empty() || !Links(ready_.front().node).pays_a_thread) return;
    const int width = Pool().parallelism();
    if (runners_ < (options_.inter_op_threads > 0 ? std::min(options_.inter_op_threads, width) : width)) StartRunner();
  }

  void StartRunner() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    StepThread::Work run = [this] {
      RunQueue();
      DropLive();
    };
    if (options_.caller != nullptr && options_.single_thread) {
      options_.caller->Post(std::move(run));
    } else if (options_.caller == nullptr || !options_.caller->TryPost(run)) {
      LentThread::Schedule(Pool(), std::move(run));
    }
    ++runners_;  // nobody sees it before the lock is released
    ++live_;
  }

  // ---- Running one node ----

  // Whether a unit that is ready runs though another has failed, up to the first kernel that may be left in the middle.
  bool RunsToItsEnd(const Ready& item) const {
    if (item.iteration->frame != 0) return false;
    const PlanNodeLinks& links = Links(item.node);
    return links.in_segment || (!links.async && !links.is_transfer && Node(item.node).control == ControlOp::kNone &&
                                !State(*item.iteration, item.node).is_dead);
  }

  // What need not run: after a failure all that could not run by then, else what is dead.
  bool Skip(const Ready& item) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (!status_.ok()) return !a_node_failed_ || !RunsToItsEnd(item);
    const PlanNodeLinks& links = Links(item.node);
    if (links.in_segment || !State(*item.iteration, item.node).is_dead || links.is_transfer ||
        Node(item.node).control == ControlOp::kTrigger)
      return false;
    Complete(item, nullptr);
    return true;
  }

  using Inputs = absl::InlinedVector<Slot*, 8>;

  // The slots that a node reads: a merge only the one that made it ready, a dead transfer none.
  void FindInputs(const Ready& item, Inputs* inputs) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    inputs->clear();
    const PlanNodeLinks& links = Links(item.node);
    if (links.in_segment) return;
    const NodeState& state = State(*item.iteration, item.node);
    const bool merge = Node(item.node).control == ControlOp::kMerge;
    Slot* const* const all = item.iteration->values->inputs.data() + Node(item.node).input_begin;
    for (size_t i = 0; i < links.reads.size(); ++i) {
      const bool is_read = merge ? static_cast<int>(i) == state.merge_input : !state.is_dead;
      inputs->push_back(is_read ? all[i] : &nothing_);
    }
  }

  // Where a node writes: its slots, or `aside` when they are in another iteration.
  Slot* OutputsOf(const Ready& item, Slot* aside) {
    const ControlOp op = Node(item.node).control;
    const bool elsewhere = op == ControlOp::kEnter || op == ControlOp::kExit || op == ControlOp::kNextIteration;
    return elsewhere ? aside : item.iteration->slots_from(Node(item.node).output_begin);
  }

  // False when it failed or goes on without this thread.
  bool Run(const Ready& item, const Inputs& inputs, Slot* aside) ABSL_LOCKS_EXCLUDED(mu_) {
    const PlanNode& n = Node(item.node);
    const PlanNodeLinks& links = Links(item.node);
    if (links.in_segment) {
      Status s = RunSegment(plan_, item.node, links.segment_end, *item.iteration->values, item.iteration->step,
                            options_, RunsToItsEnd(item));
      return s.ok() || FailAtNode(s);
    }
    if (step_.cancellation && step_.cancellation->IsCancelled() && !RunsToItsEnd(item)) {
      return Fail(step_.cancellation->reason());
    }
    if (n.Has(PlanNode::kDereferences)) {
      Frame& values = *item.iteration->values;
      Status s = LoadDereferences(*n.info, links.dereferences, values.slots.data(), values.constants);
      if (!s.ok()) return FailAtNode(AtNode(s, n));
    }
    if (links.async) return RunAsync(item, inputs);
    StopScope stop(&StepMustStop, &step_);
    stop.may_stop = n.may_stop;
    Status s = ComputeNode(n, inputs.data(), OutputsOf(item, aside), n.dies, item.iteration->step, options_.trace);
    return s.ok() || FailAtNode(AtNode(plan_, s, n, inputs));
  }

  // An asynchronous kernel that is under way. Held by its callback and by the thread that starts the kernel; it lives
  // as long as one of them does, whatever the kernel throws, and a callback that is dropped instead of run ends it too.
  class AsyncRun {
   public:
    AsyncRun(ReadyRun& run, const Ready& item, const Inputs& inputs)
        : run_(run),
          item_(item),
          inputs_(inputs),
          thread_(run.options_.trace ? run.options_.trace->NoteThread() : 0),
          start_(run.options_.trace ? TicksNow() : 0),
          context_(
              *run.Node(item.node).info, inputs_.data(), item.iteration->slots_from(run.Node(item.node).output_begin),
              run.Node(item.node).dies, item.iteration->step) {}
    KernelContext& context() { return context_; }
    void End(Status s) {
      ended_ = true;
      run_.EndAsync(item_, {run_.Node(item_.node).info, start_, thread_, true}, std::move(s));
    }
    void LetGo() {
      if (holders_.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
      if (!ended_) End(WithoutExceptions([] { return Internal("the kernel dropped its callback"); }));
      delete this;
    }

   private:
    ReadyRun& run_;
    const Ready item_;
    const Inputs inputs_;
    const uint32_t thread_;
    const int64_t start_;
    KernelContext context_;
    std::atomic<int> holders_{2};
    bool ended_ = false;  // by the callback, before it lets go
  };
  class AsyncDone {
   public:
    explicit AsyncDone(AsyncRun* run) : run_(run) {}
    AsyncDone(AsyncDone&& other) noexcept : run_(std::exchange(other.run_, nullptr)) {}
    ~AsyncDone() {
      if (run_ != nullptr) run_->LetGo();
    }
    AsyncDone(const AsyncDone&) = delete;
    AsyncDone& operator=(const AsyncDone&) = delete;
    void operator()(Status s) && {
      AsyncRun* const run = std::exchange(run_, nullptr);
      run->End(std::move(s));
      run->LetGo();
    }

   private:
    AsyncRun* run_;
  };

  bool RunAsync(const Ready& item, const Inputs& inputs) ABSL_LOCKS_EXCLUDED(mu_) {
    const PlanNode& n = Node(item.node);
    auto* const run = new AsyncRun(*this, item, inputs);
    {
      absl::MutexLock lock(&mu_);
      ++live_;
    }
    try {
      Links(item.node).async->ComputeAsync(run->context(), AsyncDone(run));
    } catch (...) {
      FailAtNode(AtNode(StatusFromException(), n));
    }
    run->LetGo();
    return false;
  }

  void EndAsync(const Ready& item, const StepTrace::Run& traced, Status s) ABSL_LOCKS_EXCLUDED(mu_) {
    const PlanNode& n = Node(item.node);
    const Slot* outputs = item.iteration->slots_from(n.output_begin);
    if (s.ok()) s = WithoutExceptions([&] { return CheckOutputs(n, outputs); });
    if (s.ok()) {
      if (options_.trace) options_.trace->Record(traced, {outputs, static_cast<size_t>(n.num_outputs)});
      Garbage garbage;
      UnderLock([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
        if (status_.ok()) Complete(item, nullptr);
        // The callback may come from any thread, perhaps from inside another kernel: the work it made ready goes
        // elsewhere unless a runner is there to take it.
        if (!ready_.empty()) runners_ == 0 ? StartRunner() : MaybeAddRunner();
        garbage = TakeGarbage();
      });
    } else {
      FailAtNode(AtNode(s, n));
    }
    DropLive();
  }

  // ---- What follows from a node ----

  void Complete(const Ready& item, Slot* aside) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const PlanNode& n = Node(item.node);
    const PlanNodeLinks& links = Links(item.node);
    Iteration& it = *item.iteration;
    NodeState& state = State(it, item.node);
    state.is_done = true;
    ++num_finished_;
    if (links.in_segment) {
      SpreadFrom(it, item.node);
      return DropFrom(it);
    }
    ClearDereferences(links.dereferences, it.values->slots.data());
    if (n.control == ControlOp::kMerge && state.merge_input >= 0) DropInput(it, links, state.merge_input);
    const bool is_dead = state.is_dead && !links.is_transfer && n.control != ControlOp::kTrigger;
    switch (n.control) {
      case ControlOp::kEnter: Enter(it, item.node, aside, is_dead); break;
      case ControlOp::kExit: Exit(it, item.node, aside, is_dead); break;
      case ControlOp::kNextIteration:
        if (!is_dead) Advance(*it.run, it.number + 1, item.node, std::move(*aside));
        break;
      default: Spread(it, item.node, is_dead); break;
    }
    Release(it, item.node);
    DropFrom(it);
  }

  // A Merge by itself has done with one of its inputs.
  void DropInput(Iteration& it, const PlanNodeLinks& merge, int input) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const PlanInput& in = merge.reads[static_cast<size_t>(input)];
    if (in.is_constant) return;
    const int counter = it.run->frame->counter_of[static_cast<size_t>(in.slot)];
    if (counter >= 0) CountDown(it, counter);
  }
  // Segments count too, without the lock.
  void CountDown(Iteration& it, int counter) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const auto c = static_cast<size_t>(counter);
    if (it.values->readers[c].fetch_sub(1, std::memory_order_acq_rel) > 1) return;
    Clear(it.slot(it.run->frame->counted_slots[c].slot));
  }
  // What a node by itself reads, and what nobody reads of its outputs.
  void Release(Iteration& it, int k) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const PlanNode& n = Node(k);
    for (int32_t r = n.release_begin; r < n.release_end; ++r) {
      const int32_t slot = plan_.releases()[r];
      slot < 0 ? CountDown(it, ~slot) : Clear(it.slot(slot));
    }
  }

  // Tells those that wait for a unit. Whether its nodes are dead stands in the frame.
  void SpreadFrom(Iteration& it, int unit, bool is_enter = false) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const Frame& values = *it.values;
    for (const PlanEdge& e : Links(unit).successors) {
      const PlanNode& from = Node(e.from);
      bool dead =
          e.output != PlanEdge::kOrder && !values.dead.empty() && values.dead[static_cast<size_t>(from.dead_at)] != 0;
      if (!dead && e.output >= 0 && !Links(e.from).enters_constant)
        dead = IsEmpty(it.slot(from.output_begin + e.output));
      Arrive(it, e, dead, is_enter);
    }
  }
  // The outputs of `k`, a node by itself, are there: in iteration `it`.
  void Spread(Iteration& it, int k, bool is_dead) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const PlanNode& n = Node(k);
    // Who waits for a receive alone dies with what was received: a control edge of the other side.
    if (Links(k).is_transfer && n.num_outputs == 1) is_dead = IsEmpty(it.slot(n.output_begin));
    if (!it.values->dead.empty()) it.values->dead[static_cast<size_t>(n.dead_at)] = is_dead;
    SpreadFrom(it, k, n.control == ControlOp::kEnter);
  }
  // `value` comes from another iteration or frame; none is dead.
  void Deliver(Iteration& it, int k, Slot* value) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (value != nullptr) it.slot(Node(k).output_begin) = std::move(*value);
    Spread(it, k, value == nullptr);
    if (!Links(k).is_read) Clear(it.slot(Node(k).output_begin));
  }

  void Arrive(Iteration& it, const PlanEdge& e, bool is_dead, bool from_enter) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    NodeState& state = State(it, e.node);
    if (!MergesByItself(e.node)) {
      state.is_dead |= is_dead;
      if (--state.pending == 0) Queue(it, it.run->frame->units[static_cast<size_t>(Links(e.node).position)]);
      return;
    }
    const PlanNodeLinks& links = Links(e.node);
    if (e.input < 0) {
      --state.pending;
    } else if (is_dead) {
      ++state.dead_data;
      // Nothing follows a dead value around a loop: the back edge stays silent.
      state.is_dead = state.merge_input < 0 && (from_enter || state.dead_data == links.num_data);
    } else if (state.merge_input >= 0 || state.is_ready) {
      DropInput(it, links, e.input);  // too late
    } else {
      state.merge_input = e.input;
      state.is_dead = false;
    }
    if (!state.is_ready && state.pending == 0 && (state.merge_input >= 0 || state.is_dead)) Queue(it, e.node);
  }

  // ---- Frames ----

  void Prepare(LoopRun& run, int frame, Iteration* parent) {
    run.frame = &plan_.frames()[static_cast<size_t>(frame)];
    run.frame_index = frame;
    run.parent = parent;
    run.enters_missing = run.frame->num_enters;
    run.constants.resize(static_cast<size_t>(run.frame->num_constants));
  }

  LoopRun& RunOf(int frame, Iteration& parent) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    std::unique_ptr<LoopRun>& run = parent.loops[frame];
    if (!run) {
      run = std::make_unique<LoopRun>();
      Prepare(*run, frame, &parent);
      run->id = FrameId(parent.run->id, parent.number, run->frame->name);
      ++parent.live;
      Begin(*run, nullptr);
    }
    return *run;
  }

  // The next iteration. What is constant in the loop is there at once.
  Iteration& Begin(LoopRun& run, Frame* values) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const PlanFrame& frame = *run.frame;
    const int64_t number = run.iterations.empty() ? next_number_of_empty_ : run.iterations.back()->number + 1;
    std::vector<std::unique_ptr<Iteration>>& spare = spare_[static_cast<size_t>(run.frame_index)];
    if (spare.empty()) spare.push_back(std::make_unique<Iteration>());
    Iteration& it = *run.iterations.emplace_back(std::move(spare.back()));
    spare.pop_back();
    it.run = &run;
    it.frame = run.frame_index;
    it.number = number;
    it.serial = next_serial_++;
    it.values = values != nullptr ? values : &it.own;
    it.values->SetUp(frame, run.constants.data());
    it.values->StartCounting();
    it.nodes.assign(frame.units.size(), {});
    for (size_t u = 0; u < frame.units.size(); ++u) it.nodes[u].pending = frame.pending[u];
    it.step = step_;
    it.step.frame = run.id;
    it.step.iteration = number;
    for (const LoopRun::ArrivedConstant& c : run.arrived) Spread(it, c.enter, c.is_dead);
    return it;
  }

  void Enter(Iteration& from, int k, Slot* value, bool is_dead) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const PlanNodeLinks& links = Links(k);
    LoopRun& run = RunOf(links.output_frame, from);
    --run.enters_missing;
    if (links.enters_constant) {
      if (!is_dead) run.constants[static_cast<size_t>(Node(k).output_begin)] = std::move(*value);
      run.arrived.push_back({k, is_dead});
      for (const auto& it : run.iterations) Spread(*it, k, is_dead);
    } else {
      Deliver(*run.iterations.front(), k, is_dead ? nullptr : value);
    }
    MaybeEnd(run);
  }

  void Exit(Iteration& it, int k, Slot* value, bool is_dead) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    LoopRun& run = *it.run;
    const auto has = [k](const std::vector<int>& list) { return std::find(list.begin(), list.end(), k) != list.end(); };
    if (is_dead) {
      if (!has(run.live_exits) && !has(run.dead_exits)) run.dead_exits.push_back(k);
      return;
    }
    run.live_exits.push_back(k);
    std::erase(run.dead_exits, k);
    Deliver(*run.parent, k, value);
  }

  // Value of NextIteration k, for iteration `number`.
  void Advance(LoopRun& run, int64_t number, int k, Slot value) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    Iteration* to = run.Find(number);
    if (to == nullptr) {
      if (static_cast<int64_t>(run.iterations.size()) >= run.frame->parallel_iterations) {
        run.waiting.push_back({k, std::move(value)});
        return;
      }
      to = &Begin(run, nullptr);
    }
    Deliver(*to, k, &value);
  }

  // ---- Ends ----

  void DropFrom(Iteration& it) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    --it.live;
    if (it.run->parent != nullptr) MaybeEnd(*it.run);
  }

  // Ends the iterations in which nothing can happen any more, and with the last one the frame.
  void MaybeEnd(LoopRun& run) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    while (!run.iterations.empty() && run.iterations.front()->live == 0 && run.enters_missing == 0) {
      const int64_t next = run.iterations.front()->number + 1;
      garbage_.iterations.push_back(std::move(run.iterations.front()));
      run.iterations.pop_front();
      if (run.waiting.empty()) continue;
      next_number_of_empty_ = next;
      std::vector<LoopRun::WaitingValue> waiting = std::move(run.waiting);
      run.waiting.clear();
      Iteration& it = Begin(run, nullptr);
      next_number_of_empty_ = 0;
      for (LoopRun::WaitingValue& w : waiting) {
        Deliver(it, w.node, &w.value);
      }
    }
    if (!run.iterations.empty()) return;
    Iteration& parent = *run.parent;
    for (int k : run.dead_exits) Spread(parent, k, true);
    const auto self = parent.loops.find(run.frame_index);
    garbage_.runs.push_back(std::move(self->second));
    parent.loops.erase(self);
    DropFrom(parent);
  }

  // Always false.
  bool Fail(const Status& s, bool at_a_node = false) ABSL_LOCKS_EXCLUDED(mu_) {
    {
      absl::MutexLock lock(&mu_);
      if (!status_.ok()) return false;
      status_ = s;
      a_node_failed_ = at_a_node && (step_.cancellation == nullptr || !step_.cancellation->IsCancelled());
    }
    StopOthers(s);
    return false;
  }

  bool FailAtNode(const Status& s) ABSL_LOCKS_EXCLUDED(mu_) { return Fail(s, true); }

  // Others that wait in this step must not wait for what will never come.
  void StopOthers(const Status& why) ABSL_LOCKS_EXCLUDED(mu_) {
    if (step_.rendezvous) step_.rendezvous->Abort(why);
    if (step_.cancellation) step_.cancellation->Cancel(why);
  }

  void DropLive() {
    Status s;
    {
      absl::MutexLock lock(&mu_);
      if (--live_ > 0) return;
      s = status_;
      if (s.ok())
        s = WithoutExceptions([this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return CheckComplete(plan_, root_); });
    }
    auto done = std::move(done_);
    if (options_.watch) options_.watch->Remove(this);
    delete this;
    std::move(done)(s);
  }

  bool MergesByItself(int k) const { return Node(k).control == ControlOp::kMerge && !Links(k).in_segment; }
  // Of the unit that node `k` is in.
  NodeState& State(Iteration& it, int k) const { return it.nodes[static_cast<size_t>(Links(k).position)]; }
  const PlanNode& Node(int k) const { return plan_.nodes()[static_cast<size_t>(k)]; }
  const PlanNodeLinks& Links(int k) const { return plan_.links(static_cast<size_t>(k)); }
  ThreadPool& Pool() const { return plan_.nodes().front().info->device->thread_pool(); }

  const Plan& plan_;
  Frame& frame_;
  StepContext& step_;
  const ExecutorOptions options_;
  absl::AnyInvocable<void(Status) &&> done_;
  Slot nothing_;  // the input of a node whose value is dead
  absl::Mutex mu_;
  LoopRun root_ ABSL_GUARDED_BY(mu_);
  std::deque<Ready> ready_ ABSL_GUARDED_BY(mu_);  // ascending
  int64_t live_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t num_finished_ ABSL_GUARDED_BY(mu_) = 0;
  int runners_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t next_serial_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t next_number_of_empty_ ABSL_GUARDED_BY(mu_) = 0;
  Garbage garbage_ ABSL_GUARDED_BY(mu_);
  std::vector<std::vector<std::unique_ptr<Iteration>>> spare_ ABSL_GUARDED_BY(mu_);  // by frame
  Status status_ ABSL_GUARDED_BY(mu_);
  bool a_node_failed_ ABSL_GUARDED_BY(mu_) = false;  // by which status_ came; the bookkeeping is in order
  uint64_t random_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

void RunByReadiness(const Plan& plan, Frame& frame, StepContext& step, const ExecutorOptions& options,
                    absl::AnyInvocable<void(Status) &&> done) {
  ReadyRun* run = nullptr;
  const Status s = WithoutExceptions([&] {
    run = new ReadyRun(plan, frame, step, options);
    return absl::OkStatus();
  });
  if (!s.ok()) return std::move(done)(s);
  run->Start(std::move(done));
}

}  // namespace millrace
