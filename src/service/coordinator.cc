// SPDX-License-Identifier: Apache-2.0
// Compilation and full steps. Partial runs are in coordinator_partial.cc.
#include "service/coordinator.h"

#include <algorithm>
#include <optional>
#include <thread>

#include "absl/cleanup/cleanup.h"
#include "base/env.h"
#include "base/exceptions.h"
#include "base/thread_pool.h"
#include "runtime/node_run.h"
#include "service/call_in_flight.h"

namespace millrace {

// What runs inline has its state here, on the caller's stack; everything else has it with the workers.
struct Coordinator::StepInFlight : CallInFlight {
  StepInFlight(int64_t id, int max_threads, StepTrace* trace) {
    context.step_id = id;
    context.cancellation = &cancellation;
    context.step_resources = &resources;
    context.max_threads = max_threads;
    context.trace = trace;
  }
  void Stop(const Status& why) override {
    cancellation.Cancel();
    joint.Stop(why);
  }

  StepContext context;
  CancellationManager cancellation;
  ResourceManager resources;
  JointStep joint;
};

// A signature that a thread compiles. Guarded by mu_ but for what is constant.
struct Coordinator::Compilation {
  const RunSignature signature;
  const bool through_rendezvous;
  const std::thread::id thread;
  bool done = false;
  StatusOr<CompiledPtr> result = CompiledPtr();
};

// The partitions of a step while they run. From Start until Wait returns true they refer to it, so nothing between the
// two throws.
class Coordinator::PartsInFlight {
 public:
  PartsInFlight(const Compiled& compiled, JointStep& joint)
      : args(compiled.parts.size()), compiled_(compiled), joint_(joint), retvals_(args.size()), left_(args.size()) {}

  std::vector<std::vector<Tensor>> args;  // by partition
  StepThread caller;

  void Start(ThreadPool& pool, bool one_after_the_other) {
    const size_t n = args.size();
    size_t p = 1;
    const Status s = WithoutExceptions([&] {
      for (; p < n && !one_after_the_other; ++p) pool.Schedule([this, p] { StartPart(p); });
      return absl::OkStatus();
    });
    if (!s.ok()) {
      for (; p < n; ++p) End(s);
    }
    for (p = 0; p < n && (p == 0 || one_after_the_other); ++p) StartPart(p);
  }

  // Helps until all have ended: true. When this thread's interrupt says stop before that: false.
  bool Wait(bool may_be_interrupted) { return caller.Drive(may_be_interrupted); }

  Status Take(std::vector<Tensor>* outputs) {
    absl::MutexLock lock(&mu_);
    MR_RETURN_IF_ERROR(first_);
    for (size_t p = 0; p < retvals_.size(); ++p) {
      const std::vector<size_t>& fetches = compiled_.parts[p].retvals;
      for (size_t i = 0; i < fetches.size(); ++i) (*outputs)[fetches[i]] = std::move(retvals_[p][i]);
    }
    return absl::OkStatus();
  }

 private:
  void StartPart(size_t p) {
    const CompiledPart& part = compiled_.parts[p];
    joint_.On(part.worker).RunAsync({part.handle, args[p], &retvals_[p]}, [this](Status s) { End(std::move(s)); });
  }

  void End(Status s) {
    if (!s.ok()) {
      {
        absl::MutexLock lock(&mu_);
        // What others report after the first failure follows from it.
        if (first_.ok() || (absl::IsCancelled(first_) && !absl::IsCancelled(s))) first_ = s;
      }
      joint_.Stop(s);
    }
    {
      absl::MutexLock lock(&mu_);
      if (--left_ > 0) return;
    }
    caller.Finish();
  }

  const Compiled& compiled_;
  JointStep& joint_;
  std::vector<std::vector<Tensor>> retvals_;
  absl::Mutex mu_;
  size_t left_ ABSL_GUARDED_BY(mu_);
  Status first_ ABSL_GUARDED_BY(mu_);
};

Coordinator::Coordinator(RefPtr<SharedGraph> graph, std::vector<Worker*> workers, CoordinatorOptions options)
    : graph_(std::move(graph)),
      workers_(std::move(workers)),
      options_(std::move(options)),
      client_(workers_.front()->devices().front()),
      cache_(options_.max_cached_nodes) {
  for (size_t w = 0; w < workers_.size(); ++w) {
    for (const DeviceInfo& d : workers_[w]->devices()) worker_of_device_[d.name] = w;
  }
}

Coordinator::~Coordinator() {
  Close(absl::InfiniteDuration()).IgnoreError();
  std::unique_ptr<Ticks> ticks;
  {
    absl::MutexLock lock(&mu_);
    ticks.swap(ticks_);
  }
  ticks.reset();  // it looks at what is destroyed next
}

namespace {

// Numbers the partition's _Arg and _Retval nodes from 0 and records which feed or fetch each is.
Status RenumberArguments(Graph& graph, CompiledPart* part) {
  // Only part of the client's arguments may be in this partition: number those from 0 in the client's order.
  std::vector<std::pair<int64_t, Node*>> args, retvals;
  for (Node* n : graph.nodes()) {
    if (!n->Is(OpTrait::kArgument) && !n->Is(OpTrait::kResult)) continue;
    MR_ASSIGN_OR_RETURN(const int64_t index, n->Attr<int64_t>("index"));
    (n->Is(OpTrait::kArgument) ? args : retvals).emplace_back(index, n);
  }
  for (auto [list, map] : {std::pair(&args, &part->args), std::pair(&retvals, &part->retvals)}) {
    std::sort(list->begin(), list->end());
    for (size_t i = 0; i < list->size(); ++i) {
      map->push_back(static_cast<size_t>((*list)[i].first));
      (*list)[i].second->SetAttr("index", static_cast<int64_t>(i));
    }
  }
  return absl::OkStatus();
}

}  // namespace

Status Coordinator::LendGraphTo(absl::FunctionRef<Status(const Graph&)> use,
                                const std::function<Status()>& keep_going) {
  MR_RETURN_IF_ERROR(graph_->mu.LockWhile(keep_going));
  const absl::Cleanup unlock = [this] { graph_->mu.Unlock(); };
  // What a construction that may still fail has added must not be remembered.
  if (graph_->mu.ClaimedHere()) {
    return FailedPrecondition("the graph cannot run while a conditional or loop is being built in it");
  }
  return use(graph_->graph);
}

StatusOr<std::string> Coordinator::Explain(const RunSignature& signature) {
  PruneOptions prune;
  prune.calls.keep_going = KeepGoing(absl::InfiniteDuration());
  prune.calls.differentiate = options_.calls.differentiate;
  CompileReport report;
  const auto lend = [&](absl::FunctionRef<Status(const Graph&)> use) {
    return LendGraphTo(use, prune.calls.keep_going);
  };
  MR_ASSIGN_OR_RETURN(
      const std::vector<Partition> partitions, CompileGraph(lend, signature, prune, options_.passes, &report));
  return ReportText(report, partitions);
}

StatusOr<CompiledPtr> Coordinator::Compile(const RunSignature& signature, PruneOptions prune) {
  prune.calls.differentiate = options_.calls.differentiate;
  auto compiled = std::make_shared<Compiled>(workers_);
  const auto lend = [&](absl::FunctionRef<Status(const Graph&)> use) {
    const auto use_and_look = [&](const Graph& graph) {
      if (prune.through_rendezvous) compiled->feeds_needed = FeedsNeededBy(signature.feeds, signature.fetches);
      return use(graph);
    };
    return LendGraphTo(use_and_look, prune.calls.keep_going);
  };
  MR_ASSIGN_OR_RETURN(std::vector<Partition> partitions, CompileGraph(lend, signature, prune, options_.passes));
  for (Partition& partition : partitions) {
    CompiledPart part;
    const auto owner = worker_of_device_.find(partition.device);
    if (owner == worker_of_device_.end()) {
      return Internal("a partition was placed on ", partition.device, ", which no worker has");
    }
    part.worker = owner->second;
    Worker& worker = *workers_[part.worker];
    MR_RETURN_IF_ERROR(RenumberArguments(*partition.graph, &part));
    compiled->num_nodes += static_cast<int64_t>(partition.graph->nodes().size());
    compiled->parts.reserve(partitions.size());  // what is registered must find its place
    MR_ASSIGN_OR_RETURN(part.handle, worker.Register(std::move(partition)));
    part.inline_partition = worker.FindInline(part.handle);
    compiled->takes_part[part.worker] = true;
    compiled->parts.push_back(std::move(part));
  }
  compiled->simple = compiled->parts.size() == 1 && compiled->parts[0].inline_partition;
  compiled->signature = signature;
  compiled->through_rendezvous = prune.through_rendezvous;
  return CompiledPtr(std::move(compiled));
}

std::function<Status()> Coordinator::KeepGoing(absl::Duration timeout) {
  return [this, timeout, start = Env::Default().MonotonicNanos()]() -> Status {
    MR_RETURN_IF_ERROR(KeepGoingUnlessInterrupted());
    if (absl::Nanoseconds(Env::Default().MonotonicNanos() - start) > timeout)
      return DeadlineExceeded(
          "Timed out waiting for notification: the step passed its deadline of ", absl::FormatDuration(timeout));
    absl::MutexLock lock(&mu_);
    return closed_ ? Cancelled("the session was closed") : absl::OkStatus();
  };
}

StatusOr<CompiledPtr> Coordinator::FindOrCompile(const RunSignatureView& view, absl::Duration timeout) {
  PruneOptions prune;
  prune.calls.keep_going = KeepGoing(timeout);
  prune.through_rendezvous = view.through_rendezvous;
  prune.client_device = client_.name;
  prune.client_incarnation = client_.incarnation;
  auto mine = std::make_shared<Compilation>(Compilation{
      .signature = {{view.feeds.begin(), view.feeds.end()},
                    {view.fetches.begin(), view.fetches.end()},
                    {view.targets.begin(), view.targets.end()}},
      .through_rendezvous = view.through_rendezvous,
      .thread = std::this_thread::get_id()});
  {
    absl::MutexLock lock(&mu_);
    for (;;) {
      if (CompiledPtr found = cache_.Find(view)) return found;
      const auto at = compiling_.find(view);
      if (at == compiling_.end()) break;
      const std::shared_ptr<Compilation> other = at->second;
      // The client may have come back here out of an interrupt check of its own compilation.
      if (other->thread == mine->thread) return Compile(mine->signature, std::move(prune));
      while (!AwaitFor(mu_, absl::Condition(&other->done), kInterruptPeriod)) {
        mu_.Unlock();
        const Status s = WithoutExceptions(prune.calls.keep_going);
        mu_.Lock();
        MR_RETURN_IF_ERROR(s);
      }
      // What ended the other's step need not end this one.
      const Status& s = other->result.status();
      if (s.ok() || !(absl::IsCancelled(s) || absl::IsDeadlineExceeded(s) || absl::IsResourceExhausted(s))) {
        return other->result;
      }
    }
    compiling_.emplace(RunSignatureView::Of(mine->signature, mine->through_rendezvous), mine);
  }
  return CompileAndKeep(view, std::move(mine), std::move(prune));
}

StatusOr<CompiledPtr> Coordinator::CompileAndKeep(const RunSignatureView& view, std::shared_ptr<Compilation> mine,
                                                  PruneOptions prune) {
  StatusOr<CompiledPtr> result = WithoutExceptions([&] { return Compile(mine->signature, std::move(prune)); });
  std::vector<CompiledPtr> dropped;  // freed outside the lock
  absl::MutexLock lock(&mu_);
  compiling_.erase(view);
  const Status kept = WithoutExceptions([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (result.ok()) dropped = cache_.Insert(*result);
    return absl::OkStatus();
  });
  if (!kept.ok()) result = kept;
  mine->result = result;
  mine->done = true;
  return result;
}

Status Coordinator::Enter(CallInFlight* call) {
  if (closed_) return Cancelled("the session is closed");
  if (call->interrupt && !ticking_) {
    ticks_ = std::make_unique<Ticks>(kInterruptPeriod, [this] { return Tick(); });
    ticking_ = true;
    idle_ticks_ = 0;
  }
  call->next = running_;
  if (running_) running_->previous = call;
  running_ = call;
  call->entered = true;
  return absl::OkStatus();
}

void Coordinator::Leave(CallInFlight* call) {
  absl::MutexLock lock(&mu_);
  if (!call->entered) return;
  if (call->is_being_stopped)
    mu_.Await(absl::Condition(+[](bool* stopping) { return !*stopping; }, &call->is_being_stopped));
  (call->previous ? call->previous->next : running_) = call->next;
  if (call->next) call->next->previous = call->previous;
}

bool Coordinator::Tick() {
  absl::MutexLock lock(&mu_);
  for (CallInFlight* step = running_; step; step = step->next) {
    if (step->interrupt) step->interrupt->MakeDue();
  }
  const int64_t steps = next_step_.load(std::memory_order_relaxed);
  idle_ticks_ = running_ == nullptr && steps == ticked_step_ ? idle_ticks_ + 1 : 0;
  ticked_step_ = steps;
  ticking_ = idle_ticks_ < absl::Seconds(1) / kInterruptPeriod;
  return ticking_;
}

StepSpec Coordinator::SpecOf(int64_t id, int inter_op_threads, StepTrace* trace) const {
  StepSpec spec{
      .id = id,
      .max_threads = options_.max_threads,
      .inter_op_threads = inter_op_threads,
      .trace = trace,
      .deterministic = options_.deterministic,
      .order_seed = options_.order_seed};
  // Each step of a session draws an order of its own; the n-th step of a session with this seed always the same.
  if (spec.order_seed != 0) spec.order_seed += static_cast<uint64_t>(id) * 0x9e3779b97f4a7c15u;
  return spec;
}

Status Coordinator::RunParts(const Compiled& compiled, StepInFlight& step, int inter_op_threads,
                             absl::Span<const Tensor> feed_values, std::vector<Tensor>* outputs) {
  PartsInFlight parts(compiled, step.joint);
  StepSpec spec = SpecOf(step.context.step_id, inter_op_threads, step.context.trace);
  spec.caller = &parts.caller;
  MR_RETURN_IF_ERROR(step.joint.Open(workers_, compiled.takes_part, spec));
  for (size_t p = 0; p < parts.args.size(); ++p) {
    for (size_t i : compiled.parts[p].args) parts.args[p].push_back(feed_values[i]);
  }
  parts.Start(options_.pool ? *options_.pool : ProcessThreadPool(), spec.single_thread());
  if (!parts.Wait(CurrentInterrupt() != nullptr)) {
    step.Stop(Interrupted());
    parts.Wait(false);
  }
  return parts.Take(outputs);
}

Status Coordinator::Run(const StepOptions& options, absl::Span<const Output> feeds,
                        absl::Span<const Tensor> feed_values, absl::Span<const Output> fetches,
                        absl::Span<Node* const> targets, std::vector<Tensor>* outputs) {
  return WithoutExceptions([&] { return RunStep(options, feeds, feed_values, fetches, targets, outputs); });
}

Status Coordinator::RunStep(const StepOptions& options, absl::Span<const Output> feeds,
                            absl::Span<const Tensor> feed_values, absl::Span<const Output> fetches,
                            absl::Span<Node* const> targets, std::vector<Tensor>* outputs) {
  if (feeds.size() != feed_values.size()) {
    return InvalidArgument(feeds.size(), " feeds, but ", feed_values.size(), " values");
  }
  for (size_t i = 0; i < feeds.size(); ++i) {
    MR_RETURN_IF_ERROR(CheckFeed(feeds[i], feed_values[i]));
  }
  outputs->resize(fetches.size());
  StepInFlight step(next_step_.fetch_add(1, std::memory_order_relaxed), options_.max_threads, options.trace);
  std::optional<Interrupt> interrupt;
  if (interrupt_check_.check) step.interrupt = &interrupt.emplace(interrupt_check_);
  const InterruptScope scope(step.interrupt);
  const absl::Duration timeout = std::min(options.timeout, options_.default_timeout);
  const absl::Cleanup leave = [&] { Leave(&step); };
  CompiledPtr compiled;
  {
    absl::MutexLock lock(&mu_);
    MR_RETURN_IF_ERROR(Enter(&step));
    compiled = cache_.Find({feeds, fetches, targets});
  }
  if (!compiled) {
    MR_ASSIGN_OR_RETURN(compiled, FindOrCompile({feeds, fetches, targets}, timeout));
  }
  Status s;
  std::atomic<bool> timed_out{false};
  {
    std::optional<Deadline> deadline;
    if (timeout < absl::InfiniteDuration()) {
      deadline.emplace(timeout, [&] {
        timed_out.store(true);
        step.Stop(WithoutExceptions([&] {
          return DeadlineExceeded(
              "Timed out waiting for notification: the step passed its deadline of ", absl::FormatDuration(timeout));
        }));
      });
    }
    if (compiled->simple && !options_.deterministic) {
      s = compiled->parts[0].inline_partition->Run(step.context, options.inter_op_threads, feed_values, outputs);
    } else {
      s = RunParts(*compiled, step, options.inter_op_threads, feed_values, outputs);
    }
  }
  if (!s.ok() && timed_out.load()) {
    return DeadlineExceeded("Timed out waiting for notification: the step passed its deadline of ",
                            absl::FormatDuration(timeout), ": ", s.message());
  }
  return s;
}

Status CheckFeed(const Output& o, const Tensor& value) {
  if (!o.node || o.index < 0 || o.index >= o.node->num_outputs()) {
    return InvalidArgument("feed ", o.node ? o.ToString() : "(null)", " does not exist");
  }
  const DType want = BaseType(o.dtype());
  if (value.dtype() != want && want != DType::kInvalid) {
    return InvalidArgument("feed ", o.ToString(), " is ", DTypeName(value.dtype()), value.shape().ToString(),
                           ", the graph wants ", DTypeName(want));
  }
  return absl::OkStatus();
}

Status Coordinator::Close(absl::Duration patience) {
  const int64_t start = Env::Default().MonotonicNanos();
  const auto left = [&] { return patience - absl::Nanoseconds(Env::Default().MonotonicNanos() - start); };
  const Status why = Cancelled("the session was closed");
  std::map<std::string, std::shared_ptr<PartialStep>> partial;
  {
    absl::MutexLock lock(&mu_);
    closed_ = true;
    partial.swap(partial_);
    for (CallInFlight* call = running_; call; call = call->next) {
      if (std::exchange(call->is_being_stopped, true)) continue;  // another thread closes the session too
      // Outside of the lock, since callbacks run. The call does not leave before this is over.
      mu_.Unlock();
      call->Stop(why);
      mu_.Lock();
      call->is_being_stopped = false;
    }
  }
  for (auto& [handle, step] : partial) step->Stop(why);
  std::vector<std::shared_ptr<PartialStep>> late;
  for (auto& [handle, step] : partial) {
    if (!step->WaitFor(left())) late.push_back(std::move(step));
  }
  size_t still = late.size();
  partial.clear();
  absl::MutexLock lock(&mu_);
  late_partial_.insert(late_partial_.end(), std::make_move_iterator(late.begin()), std::make_move_iterator(late.end()));
  auto idle = [this, own = CurrentInterrupt()]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const CallInFlight* call = running_;
    while (call && own && call->interrupt == own) call = call->next;
    return call == nullptr;
  };
  if (!AwaitFor(mu_, absl::Condition(&idle), left())) {
    for (const CallInFlight* call = running_; call; call = call->next) ++still;
  }
  if (still == 0) return absl::OkStatus();
  return DeadlineExceeded(still, " steps did not end within ", absl::FormatDuration(patience));
}

}  // namespace millrace
