// SPDX-License-Identifier: Apache-2.0
#include "runtime/plan_width.h"

#include <algorithm>

#include "base/exceptions.h"
#include "base/stopwatch.h"

namespace millrace {
namespace {

constexpr int kMeasuredRuns = 3;
constexpr size_t kTrialRuns = 6;      // of each way; the first does not count
constexpr double kPromised = 0.9;     // of the time in order, for a trial
constexpr double kKept = 0.95;        // of the time in order, for the decision
constexpr double kWorthNanos = 40e3;  // less is not looked for
constexpr int64_t kShortNanos = 20'000;
constexpr int64_t kRestFactor = 8;  // runs until the next look
constexpr int64_t kShortRest = 2;   // the same after a trial that refuted what was promised, perhaps for others' load

double Median(std::vector<int64_t> v) {
  std::sort(v.begin(), v.end());
  return static_cast<double>(v[v.size() / 2]);
}

}  // namespace

PlanWidth::PlanWidth(std::shared_ptr<const Plan> plan)
    : plan_(std::move(plan)), may_have_width_(MayHaveWidth(*plan_->graph())) {}

int PlanWidth::ThreadsFor(const ExecutorOptions& options) const {
  if (!may_have_width_ || options.single_thread || options.inter_op_threads == 1) return 1;
  const int width = plan_->nodes().front().info->device->thread_pool().parallelism();
  return options.inter_op_threads > 0 ? std::min(options.inter_op_threads, width) : width;
}

Status PlanWidth::Run(StepContext& step, const ExecutorOptions& options, UseFrame fill, UseFrame take) {
  if (const int threads = ThreadsFor(options); threads > 1) {
    return RunOneWay(Choose(threads, options.trace != nullptr), step, options, fill, take);
  }
  MR_ASSIGN_OR_RETURN(const HeldFrame frame, plan_->AcquireFrame());
  MR_RETURN_IF_ERROR(fill(*plan_, *frame));
  MR_RETURN_IF_ERROR(RunInOrder(*plan_, *frame, step, options));
  return take(*plan_, *frame);
}

PlanWidth::Turn PlanWidth::Next(const ExecutorOptions& options) {
  Turn turn;
  if (const int threads = ThreadsFor(options); threads > 1) turn.choice_ = Choose(threads, options.trace != nullptr);
  turn.of_ = this;
  return turn;
}

void PlanWidth::Turn::Begin() {
  if (of_ != nullptr) start_ = RealNanos();
}

Status PlanWidth::Turn::RunInOrder(const Plan& plan, Frame& frame, StepContext& step, const ExecutorOptions& options) {
  if (choice_.kind == Kind::kMeasured) return RunMeasured(plan, frame, step, options, &costs_);
  return millrace::RunInOrder(plan, frame, step, options);
}

void PlanWidth::Turn::End(bool ok) noexcept {
  PlanWidth* const of = std::exchange(of_, nullptr);
  if (of == nullptr) return;
  const int64_t nanos = ok ? RealNanos() - start_ : -1;
  of->is_short_.store(ok && nanos < kShortNanos, std::memory_order_relaxed);
  if (choice_.kind != Kind::kAsDecided) of->Ended(choice_, costs_, nanos);
}

Status PlanWidth::RunOneWay(const Choice& choice, StepContext& step, const ExecutorOptions& options, UseFrame fill,
                            UseFrame take) {
  const Plan& plan = choice.wide ? *choice.wide : *plan_;
  NodeCosts costs;
  const auto run = [&]() -> Status {
    MR_ASSIGN_OR_RETURN(const HeldFrame frame, plan.AcquireFrame());
    MR_RETURN_IF_ERROR(fill(plan, *frame));
    Status s = choice.wide ? RunByReadinessHere(plan, *frame, step, options, /*may_be_interrupted=*/true)
               : choice.kind == Kind::kMeasured
                   ? RunMeasured(plan, *frame, step, options, &costs)
                   : RunInOrder(plan, *frame, step, options);
    return s.ok() ? take(plan, *frame) : s;
  };
  if (choice.kind == Kind::kAsDecided) return run();
  const int64_t start = RealNanos();
  const Status s = WithoutExceptions(run);
  Ended(choice, costs, s.ok() ? RealNanos() - start : -1);
  return s;
}

PlanWidth::Choice PlanWidth::Choose(int threads, bool is_traced) {
  const int64_t run = runs_.fetch_add(1, std::memory_order_relaxed);
  const bool wide = is_wide_.load(std::memory_order_relaxed);
  if (run < next_look_.load(std::memory_order_relaxed) && !wide) return {};
  absl::MutexLock lock(&mu_);
  Choice as_decided{.kind = Kind::kAsDecided, .wide = wide ? wide_ : nullptr, .threads = threads};
  if (is_traced || run < next_look_.load(std::memory_order_relaxed) || is_busy_) return as_decided;
  is_busy_ = true;
  if (!in_trial_) return {.kind = Kind::kMeasured, .wide = nullptr, .threads = threads};
  if (in_order_nanos_.size() <= wide_nanos_.size()) {
    return {.kind = Kind::kInOrder, .wide = nullptr, .threads = threads};
  }
  return {.kind = Kind::kWide, .wide = wide_, .threads = threads};
}

void PlanWidth::Ended(const Choice& choice, const NodeCosts& costs, int64_t nanos) {
  Dropped dropped;  // outside of the lock
  absl::MutexLock lock(&mu_);
  is_busy_ = false;
  if (nanos < 0) return;
  const Status s = WithoutExceptions([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    switch (choice.kind) {
      case Kind::kAsDecided: break;
      case Kind::kMeasured: UseCosts(costs, choice.threads, &dropped); break;
      case Kind::kInOrder: in_order_nanos_.push_back(nanos); break;
      case Kind::kWide:
        wide_nanos_.push_back(nanos);
        if (wide_nanos_.size() == kTrialRuns) Decide(&dropped);
        break;
    }
    return absl::OkStatus();
  });
  if (!s.ok()) Rest(/*wide=*/false, &dropped);  // there is no memory for it
}

void PlanWidth::UseCosts(const NodeCosts& costs, int threads, Dropped* dropped) {
  const PlanGraph& graph = *plan_->graph();
  wall_.resize(graph.nodes.size());
  work_.resize(graph.nodes.size());
  // The plan's nodes stand in the graph's order.
  size_t place = 0;
  double in_order = 0;
  for (size_t k = 0; k < graph.nodes.size(); ++k) {
    if (graph.nodes[k].kind != PlannedNode::Kind::kStep) continue;
    const bool less = measured_ > 0 && wall_[k] <= costs.wall[place];
    if (!less) {
      wall_[k] = costs.wall[place];
      work_[k] = costs.work[place];
    }
    in_order += wall_[k];
    ++place;
  }
  if (++measured_ < kMeasuredRuns) return;
  measured_ = 0;
  const PlanCut cut = CutByCost(graph, work_, threads);
  const double wide = EstimateNanos(graph, cut, work_, threads);
  if (cut.units.size() < 2 || wide > kPromised * in_order || in_order - wide < kWorthNanos) {
    return Rest(/*wide=*/false, dropped);
  }
  *dropped = std::exchange(wide_, Plan::LayOut(plan_->graph(), cut));
  in_order_nanos_.clear();
  wide_nanos_.clear();
  in_trial_ = true;
}

void PlanWidth::Decide(Dropped* dropped) {
  in_order_nanos_.erase(in_order_nanos_.begin());
  wide_nanos_.erase(wide_nanos_.begin());
  in_trial_ = false;
  Rest(Median(wide_nanos_) < kKept * Median(in_order_nanos_), dropped);
}

void PlanWidth::Rest(bool wide, Dropped* dropped) {
  is_wide_.store(wide, std::memory_order_relaxed);
  if (!wide) *dropped = std::exchange(wide_, nullptr);
  const bool refuted = !wide && !wide_nanos_.empty();
  wide_nanos_.clear();
  in_order_nanos_.clear();
  measured_ = 0;
  in_trial_ = false;
  next_look_.store(
      runs_.load(std::memory_order_relaxed) * (refuted ? kShortRest : kRestFactor), std::memory_order_relaxed);
}

}  // namespace millrace
