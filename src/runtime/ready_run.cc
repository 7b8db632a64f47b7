// SPDX-License-Identifier: Apache-2.0
// Execution by readiness. `live_` counts everything that can still make progress: queued nodes, running threads and
// outstanding asynchronous kernels; whoever brings it to zero finishes the step.
#include <algorithm>
#include <deque>

#include "absl/strings/str_join.h"
#include "runtime/node_run.h"

namespace millrace {
namespace {

class ReadyRun {
 public:
  ReadyRun(const Plan& plan, Frame& frame, StepContext& step, const ExecutorOptions& options,
           absl::AnyInvocable<void(Status) &&> done)
      : plan_(plan), frame_(frame), step_(step), options_(options), done_(std::move(done)), random_(options.order_seed) {}

  void Start() {
    const auto& nodes = plan_.nodes();
    for (size_t k = 0; k < nodes.size(); ++k) {
      frame_.pending[k].store(plan_.links(k).num_pending, std::memory_order_relaxed);
    }
    const auto& readers = plan_.slot_readers();
    for (size_t s = 0; s < readers.size(); ++s) frame_.readers[s].store(readers[s], std::memory_order_relaxed);
    live_.store(1, std::memory_order_relaxed);  // this call
    {
      absl::MutexLock lock(&mu_);
      for (size_t k = 0; k < nodes.size(); ++k) {
        if (plan_.links(k).num_pending == 0) Push(static_cast<int>(k));
      }
      ++runners_;
    }
    RunQueue();
    DropLive();
  }

 private:
  void Push(int k) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    live_.fetch_add(1, std::memory_order_relaxed);
    ready_.insert(std::lower_bound(ready_.begin(), ready_.end(), k), k);
  }

  // The earliest node in construction order, or a seeded choice.
  int Pop() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    size_t pick = 0;
    if (options_.order_seed != 0) {
      random_ = random_ * 6364136223846793005u + 1442695040888963407u;
      pick = static_cast<size_t>((random_ >> 33) % ready_.size());
    }
    const int k = ready_[pick];
    ready_.erase(ready_.begin() + static_cast<std::ptrdiff_t>(pick));
    return k;
  }

  void RunQueue() {
    for (;;) {
      int k = -1;
      {
        absl::MutexLock lock(&mu_);
        if (ready_.empty()) {
          --runners_;
          return;
        }
        k = Pop();
        MaybeAddRunner();
      }
      RunNode(k);
      DropLive();
    }
  }

  // Another worker joins while expensive nodes wait and threads are free.
  void MaybeAddRunner() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (options_.single_thread || ready_.empty() || !Links(ready_.front()).expensive) return;
    if (runners_ < Pool().parallelism()) StartRunner();
  }

  void StartRunner() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    ++runners_;
    live_.fetch_add(1, std::memory_order_relaxed);
    Pool().Schedule([this] {
      RunQueue();
      DropLive();
    });
  }

  void RunNode(int k) {
    const PlanNode& n = Node(k);
    if (failed_.load(std::memory_order_acquire)) return;
    if (step_.cancellation && step_.cancellation->IsCancelled()) return Fail(Cancelled("the step was cancelled"));
    const PlanNodeLinks& links = Links(k);
    if (links.async) return RunAsync(k);
    const Status s =
        ComputeNode(plan_, static_cast<size_t>(k), frame_, step_, links.dies_always, options_.trace);
    if (!s.ok()) return Fail(AtNode(s, n));
    Complete(k);
  }

  void RunAsync(int k) {
    const PlanNode& n = Node(k);
    const PlanNodeLinks& links = Links(k);
    if (Status s = LoadDereferences(*n.info, links.dereferences, frame_); !s.ok()) return Fail(AtNode(s, n));
    auto ctx = std::make_unique<KernelContext>(*n.info, frame_.inputs.data() + n.input_begin,
                                               frame_.slots.data() + n.output_begin, links.dies_always, step_);
    KernelContext& context = *ctx;
    live_.fetch_add(1, std::memory_order_relaxed);
    const int64_t start = options_.trace ? TraceClockNanos() : 0;
    links.async->ComputeAsync(context, [this, k, start, ctx = std::move(ctx)](Status s) {
      const PlanNode& node = Node(k);
      if (s.ok()) s = CheckOutputs(node, frame_);
      if (s.ok()) {
        if (options_.trace) RecordNode(*options_.trace, node, frame_, start);
        ClearDereferences(Links(k).dereferences, frame_);
        Complete(k);
      } else {
        Fail(AtNode(s, node));
      }
      ResumeFromCallback();
      DropLive();
    });
  }

  // A callback may come from any thread, perhaps from inside another kernel: the work it made ready goes to the pool
  // unless a runner is there to take it.
  void ResumeFromCallback() {
    absl::MutexLock lock(&mu_);
    if (!ready_.empty() && runners_ == 0) StartRunner();
  }

  void Complete(int k) {
    const PlanNode& n = Node(k);
    completed_.fetch_add(1, std::memory_order_relaxed);
    for (int slot : Links(k).reads) DropReader(slot);
    for (int o = 0; o < n.num_outputs; ++o) {
      const size_t slot = static_cast<size_t>(n.output_begin + o);
      if (plan_.slot_readers()[slot] == 0) ClearSlot(frame_.slots[slot]);
    }
    absl::InlinedVector<int, 8> now_ready;
    for (int next : Links(k).successors) {
      if (frame_.pending[static_cast<size_t>(next)].fetch_sub(1, std::memory_order_acq_rel) == 1) {
        now_ready.push_back(next);
      }
    }
    if (now_ready.empty()) return;
    absl::MutexLock lock(&mu_);
    for (int next : now_ready) Push(next);
  }

  void DropReader(int slot) {
    if (frame_.readers[static_cast<size_t>(slot)].fetch_sub(1, std::memory_order_acq_rel) == 1) {
      ClearSlot(frame_.slots[static_cast<size_t>(slot)]);
    }
  }

  void Fail(const Status& s) {
    {
      absl::MutexLock lock(&mu_);
      if (status_.ok()) status_ = s;
    }
    // Others that wait in this step must not wait for what will never come.
    if (!failed_.exchange(true, std::memory_order_acq_rel)) {
      if (step_.rendezvous) step_.rendezvous->Abort(s);
      if (step_.cancellation) step_.cancellation->Cancel();
    }
  }

  void DropLive() {
    if (live_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    Status s;
    {
      absl::MutexLock lock(&mu_);
      s = status_;
    }
    if (s.ok() && completed_.load() != static_cast<int64_t>(plan_.nodes().size())) s = Stuck();
    auto done = std::move(done_);
    delete this;
    std::move(done)(s);
  }

  Status Stuck() const {
    std::vector<std::string> blocked;
    const auto& nodes = plan_.nodes();
    for (size_t k = 0; k < nodes.size() && blocked.size() < 10; ++k) {
      const int32_t waits = frame_.pending[k].load();
      if (waits > 0) blocked.push_back(absl::StrCat(nodes[k].info->name, " (waits for ", waits, " inputs)"));
    }
    return Internal("the step cannot go on: nothing is runnable and nothing is outstanding; blocked: ",
                    absl::StrJoin(blocked, ", "));
  }

  const PlanNode& Node(int k) const { return plan_.nodes()[static_cast<size_t>(k)]; }
  const PlanNodeLinks& Links(int k) const { return plan_.links(static_cast<size_t>(k)); }
  ThreadPool& Pool() const { return plan_.nodes().front().info->device->thread_pool(); }

  const Plan& plan_;
  Frame& frame_;
  StepContext& step_;
  const ExecutorOptions options_;
  absl::AnyInvocable<void(Status) &&> done_;
  std::atomic<int64_t> live_{0};
  std::atomic<int64_t> completed_{0};
  std::atomic<bool> failed_{false};
  absl::Mutex mu_;
  std::deque<int> ready_ ABSL_GUARDED_BY(mu_);  // ascending, so ties go by construction order
  int runners_ ABSL_GUARDED_BY(mu_) = 0;
  Status status_ ABSL_GUARDED_BY(mu_);
  uint64_t random_;
};

}  // namespace

void RunByReadiness(const Plan& plan, Frame& frame, StepContext& step, const ExecutorOptions& options,
                    absl::AnyInvocable<void(Status) &&> done) {
  if (!frame.pending) {
    frame.pending = std::make_unique<std::atomic<int32_t>[]>(plan.nodes().size());
    frame.readers = std::make_unique<std::atomic<int32_t>[]>(frame.slots.size());
  }
  (new ReadyRun(plan, frame, step, options, std::move(done)))->Start();
}

}  // namespace millrace
