// SPDX-License-Identifier: Apache-2.0
// Full steps. Partial runs are in partial_run.cc.
#include "service/coordinator.h"

#include <algorithm>
#include <optional>

#include "absl/cleanup/cleanup.h"
#include "base/env.h"
#include "base/exceptions.h"
#include "base/thread_pool.h"
#include "graph/verify.h"
#include "runtime/node_run.h"

namespace millrace {

// What runs inline has its state here, on the caller's stack; everything else has it with the workers.
struct Coordinator::StepInFlight {
  StepInFlight(int64_t id, int max_threads, StepTrace* trace) {
    context.step_id = id;
    context.cancellation = &cancellation;
    context.step_resources = &resources;
    context.max_threads = max_threads;
    context.trace = trace;
  }
  void Stop(const Status& why) {
    cancellation.Cancel();
    joint.Stop(why);
  }

  StepContext context;
  CancellationManager cancellation;
  ResourceManager resources;
  JointStep joint;
  Interrupt* interrupt = nullptr;  // null: nothing interrupts it
  // Neighbours among the steps in flight.
  StepInFlight* previous = nullptr;
  StepInFlight* next = nullptr;
};

// The partitions of a step while they run. From Start until Wait returns true they refer to it, so nothing between the
// two throws.
class Coordinator::PartsInFlight {
 public:
  PartsInFlight(const Compiled& compiled, JointStep& joint)
      : args(compiled.parts.size()), compiled_(compiled), joint_(joint), retvals_(args.size()), left_(args.size()) {}

  std::vector<std::vector<Tensor>> args;  // by partition

  void Start(bool one_after_the_other) {
    const size_t n = args.size();
    size_t p = 1;
    const Status s = WithoutExceptions([&] {
      for (; p < n && !one_after_the_other; ++p) ProcessThreadPool().Schedule([this, p] { StartPart(p); });
      return absl::OkStatus();
    });
    if (!s.ok()) {
      for (; p < n; ++p) End(s);
    }
    for (p = 0; p < n && (p == 0 || one_after_the_other); ++p) StartPart(p);
  }

  // Until all have ended: true. When this thread's interrupt says stop before that: false.
  bool Wait(bool unless_interrupted) {
    const auto done = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return left_ == 0; };
    absl::MutexLock lock(&mu_);
    if (unless_interrupted) return AwaitUnlessInterrupted(mu_, absl::Condition(&done));
    mu_.Await(absl::Condition(&done));
    return true;
  }

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
    absl::MutexLock lock(&mu_);
    --left_;
  }

  const Compiled& compiled_;
  JointStep& joint_;
  std::vector<std::vector<Tensor>> retvals_;
  absl::Mutex mu_;
  size_t left_ ABSL_GUARDED_BY(mu_);
  Status first_ ABSL_GUARDED_BY(mu_);
};

Coordinator::Coordinator(RefPtr<SharedGraph> graph, std::vector<Worker*> workers, CoordinatorOptions options)
    : graph_(std::move(graph)), workers_(std::move(workers)), options_(std::move(options)) {
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
  for (auto& [signature, compiled] : cache_) Deregister(*compiled);
}

void Coordinator::Deregister(const Compiled& compiled) const {
  for (const CompiledPart& part : compiled.parts) workers_[part.worker]->Deregister(part.handle);
}

StatusOr<std::shared_ptr<const Compiled>> Coordinator::Compile(const RunSignature& signature, PruneOptions prune) {
  prune.calls.differentiate = options_.calls.differentiate;
  std::unique_ptr<Graph> pruned;
  {
    MR_RETURN_IF_ERROR(graph_->mu.LockWhile(prune.calls.keep_going));
    const absl::Cleanup unlock = [this] { graph_->mu.Unlock(); };
    // What a construction that may still fail has added must not be remembered.
    if (graph_->mu.ClaimedHere()) {
      return FailedPrecondition("the graph cannot run while a conditional or loop is being built in it");
    }
    MR_ASSIGN_OR_RETURN(pruned, PruneForRun(graph_->graph, signature, prune));
  }
  MR_RETURN_IF_ERROR(KeepGoingUnlessInterrupted());
  MR_RETURN_IF_ERROR(VerifyGraph(*pruned));
  MR_ASSIGN_OR_RETURN(std::vector<Partition> partitions, RunPasses(std::move(pruned), options_.passes));
  MR_RETURN_IF_ERROR(KeepGoingUnlessInterrupted());
  auto compiled = std::make_shared<Compiled>();
  // The workers must not keep the partitions of a signature that failed.
  absl::Cleanup deregister = [this, &compiled] { Deregister(*compiled); };
  compiled->takes_part.resize(workers_.size());
  for (Partition& partition : partitions) {
    CompiledPart part;
    const auto owner = worker_of_device_.find(partition.device);
    if (owner == worker_of_device_.end()) {
      return Internal("a partition was placed on ", partition.device, ", which no worker has");
    }
    part.worker = owner->second;
    Worker& worker = *workers_[part.worker];
    MR_RETURN_IF_ERROR(RenumberArguments(*partition.graph, &part));
    MR_ASSIGN_OR_RETURN(part.handle, worker.Register(std::move(partition)));
    part.inline_partition = worker.FindInline(part.handle);
    compiled->takes_part[part.worker] = true;
    compiled->parts.push_back(std::move(part));
  }
  compiled->simple = compiled->parts.size() == 1 && compiled->parts[0].inline_partition;
  compiled->signature = signature;
  std::move(deregister).Cancel();
  return std::shared_ptr<const Compiled>(std::move(compiled));
}

Status RenumberArguments(Graph& graph, CompiledPart* part) {
  // Only part of the client's arguments may be in this partition: number those from 0 in the client's order.
  std::vector<std::pair<int64_t, Node*>> args, retvals;
  for (Node* n : graph.nodes()) {
    if (n->op_name() != "_Arg" && n->op_name() != "_Retval") continue;
    MR_ASSIGN_OR_RETURN(const int64_t index, n->Attr<int64_t>("index"));
    (n->op_name() == "_Arg" ? args : retvals).emplace_back(index, n);
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

std::function<Status()> Coordinator::KeepGoing(absl::Duration timeout) {
  return [this, timeout, start = Env::Default().MonotonicNanos()]() -> Status {
    MR_RETURN_IF_ERROR(KeepGoingUnlessInterrupted());
    if (absl::Nanoseconds(Env::Default().MonotonicNanos() - start) > timeout)
      return DeadlineExceeded("the step passed its deadline of ", absl::FormatDuration(timeout));
    absl::MutexLock lock(&mu_);
    return closed_ ? Cancelled("the session was closed") : absl::OkStatus();
  };
}

StatusOr<std::shared_ptr<const Compiled>> Coordinator::CompileAndKeep(
    const RunSignatureView& view, absl::Duration timeout) {
  PruneOptions prune;
  prune.calls.keep_going = KeepGoing(timeout);
  RunSignature signature{
      {view.feeds.begin(), view.feeds.end()},
      {view.fetches.begin(), view.fetches.end()},
      {view.targets.begin(), view.targets.end()}};
  MR_ASSIGN_OR_RETURN(std::shared_ptr<const Compiled> compiled, Compile(signature, std::move(prune)));
  std::shared_ptr<const Compiled> evicted;
  {
    absl::MutexLock lock(&mu_);
    if (cache_.size() >= options_.max_cached_signatures) {
      evicted = std::move(cache_.begin()->second);
      cache_.erase(cache_.begin());
    }
    auto [it, inserted] = cache_.try_emplace(std::move(signature), compiled);
    if (!inserted) {  // another thread was first, and made an equal plan
      evicted = std::move(compiled);
      compiled = it->second;
    }
    if (last_ == evicted) last_ = nullptr;
  }
  if (evicted) Deregister(*evicted);
  return compiled;
}

std::shared_ptr<const Compiled> Coordinator::Find(const RunSignatureView& view) {
  if (last_ && RunSignatureEqual()(last_->signature, view)) return last_;
  auto it = cache_.find(view);
  if (it != cache_.end()) last_ = it->second;
  return it != cache_.end() ? it->second : nullptr;
}

StatusOr<std::shared_ptr<const Compiled>> Coordinator::Enter(
    const RunSignatureView& view, StepInFlight* step, absl::Duration timeout) {
  std::shared_ptr<const Compiled> compiled;
  for (;;) {
    {
      absl::MutexLock lock(&mu_);
      if (closed_) return Cancelled("the session is closed");
      if (!compiled) compiled = Find(view);
      if (compiled) {
        step->next = running_;
        if (running_) running_->previous = step;
        running_ = step;
        if (step->interrupt && !ticking_) {
          ticking_ = true;
          idle_ticks_ = 0;
          ticks_ = std::make_unique<Ticks>(kInterruptPeriod, [this] { return Tick(); });
        }
        return compiled;
      }
    }
    MR_ASSIGN_OR_RETURN(compiled, CompileAndKeep(view, timeout));
  }
}

void Coordinator::Leave(StepInFlight* step) {
  absl::MutexLock lock(&mu_);
  (step->previous ? step->previous->next : running_) = step->next;
  if (step->next) step->next->previous = step->previous;
}

bool Coordinator::Tick() {
  absl::MutexLock lock(&mu_);
  for (StepInFlight* step = running_; step; step = step->next) {
    if (step->interrupt) step->interrupt->MakeDue();
  }
  const int64_t steps = next_step_.load(std::memory_order_relaxed);
  idle_ticks_ = running_ == nullptr && steps == ticked_step_ ? idle_ticks_ + 1 : 0;
  ticked_step_ = steps;
  ticking_ = idle_ticks_ < absl::Seconds(1) / kInterruptPeriod;
  return ticking_;
}

Status Coordinator::RunParts(const Compiled& compiled, StepInFlight& step, absl::Span<const Tensor> feed_values,
                             std::vector<Tensor>* outputs) {
  StepSpec spec{
      step.context.step_id, options_.max_threads, step.context.trace, options_.deterministic, options_.order_seed};
  // Each step of a session draws an order of its own; the n-th step of a session with this seed always the same.
  if (spec.order_seed != 0) spec.order_seed += static_cast<uint64_t>(spec.id) * 0x9e3779b97f4a7c15u;
  PartsInFlight parts(compiled, step.joint);
  MR_RETURN_IF_ERROR(step.joint.Open(workers_, compiled.takes_part, spec));
  for (size_t p = 0; p < parts.args.size(); ++p) {
    for (size_t i : compiled.parts[p].args) parts.args[p].push_back(feed_values[i]);
  }
  parts.Start(options_.deterministic);
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
  MR_ASSIGN_OR_RETURN(const std::shared_ptr<const Compiled> compiled, Enter({feeds, fetches, targets}, &step, timeout));
  const absl::Cleanup leave = [&] { Leave(&step); };
  Status s;
  std::atomic<bool> timed_out{false};
  {
    std::optional<Deadline> deadline;
    if (timeout < absl::InfiniteDuration()) {
      deadline.emplace(timeout, [&] {
        timed_out.store(true);
        step.Stop(WithoutExceptions([&] {
          return DeadlineExceeded("the step passed its deadline of ", absl::FormatDuration(timeout));
        }));
      });
    }
    if (compiled->simple && !options_.deterministic) {
      s = compiled->parts[0].inline_partition->Run(step.context, feed_values, outputs);
    } else {
      s = RunParts(*compiled, step, feed_values, outputs);
    }
  }
  if (!s.ok() && timed_out.load()) {
    return DeadlineExceeded("the step passed its deadline of ", absl::FormatDuration(timeout), ": ", s.message());
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
  absl::flat_hash_map<std::string, std::shared_ptr<PartialStep>> partial;
  {
    absl::MutexLock lock(&mu_);
    closed_ = true;
    for (StepInFlight* step = running_; step; step = step->next) step->Stop(Cancelled("the session was closed"));
    partial.swap(partial_);
  }
  for (auto& [handle, step] : partial) step->Stop(Cancelled("the session was closed"));
  partial.clear();
  absl::MutexLock lock(&mu_);
  auto idle = [this, own = CurrentInterrupt()]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const StepInFlight* step = running_;
    while (step && own && step->interrupt == own) step = step->next;
    return step == nullptr;
  };
  if (!mu_.AwaitWithTimeout(absl::Condition(&idle), patience)) {
    int left = 0;
    for (const StepInFlight* step = running_; step; step = step->next) ++left;
    return DeadlineExceeded(left, " steps did not end within ", absl::FormatDuration(patience));
  }
  return absl::OkStatus();
}

}  // namespace millrace
