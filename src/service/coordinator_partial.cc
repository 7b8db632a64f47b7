// SPDX-License-Identifier: Apache-2.0
// Partial runs: a step that is open between the calls of its client. It is stopped and awaited when it fails, is
// released, has given its last fetch, or the session is closed.
#include <optional>

#include "absl/cleanup/cleanup.h"
#include "base/exceptions.h"
#include "service/call_in_flight.h"

namespace millrace {

struct Coordinator::PartialCall : CallInFlight {
  void Stop(const Status& why) override {
    if (step) step->Stop(why);
  }
  // Set under the lock, and not once the session is closed; taken away while nobody stops the call.
  std::shared_ptr<PartialStep> step;
};

namespace {

constexpr absl::Duration kReleasePatience = absl::Seconds(10);

class StepDeadline : public Deadline {
 public:
  StepDeadline(Env& env, absl::Duration left, absl::Duration timeout, PartialStep& step)
      : Deadline(env, left, [&step, timeout] {
          step.Stop(WithoutExceptions([&] {
            return DeadlineExceeded("the partial run passed its deadline of ", absl::FormatDuration(timeout));
          }));
        }) {}
};

}  // namespace

// The step may end here, which waits and speaks to the workers: the call must still be in flight.
void Coordinator::LeavePartial(PartialCall* call) {
  std::shared_ptr<PartialStep> step;
  {
    absl::MutexLock lock(&mu_);
    AwaitStopped(call);
    step = std::move(call->step);
  }
  step.reset();
  Leave(call);
}

StatusOr<std::string> Coordinator::PartialRunSetup(RunSignature signature) {
  return WithoutExceptions([&] { return StartPartialRun(signature); });
}

StatusOr<std::string> Coordinator::StartPartialRun(const RunSignature& signature) {
  std::optional<Interrupt> interrupt;
  PartialCall call;
  if (interrupt_check_.check) call.interrupt = &interrupt.emplace(interrupt_check_, env());
  const InterruptScope scope(call.interrupt);
  const absl::Cleanup leave = [&] { LeavePartial(&call); };
  {
    absl::MutexLock lock(&mu_);
    MR_RETURN_IF_ERROR(Enter(&call));
    MR_RETURN_IF_ERROR(
        TakeTurn(&call, /*changes_variables=*/true, /*between_steps=*/false, KeepGoing(options_.default_timeout)));
    if (partial_.size() + partial_starting_ >= options_.max_partial_runs) {
      return ResourceExhausted(partial_.size() + partial_starting_,
                               " partial runs of this session are open; end or release some (MR_ReleasePartialRun)");
    }
    ++partial_starting_;
  }
  const absl::Cleanup started = [&] {
    absl::MutexLock lock(&mu_);
    --partial_starting_;
  };
  const int64_t begun = env().MonotonicNanos();
  MR_ASSIGN_OR_RETURN(
      CompiledPtr compiled, AwaitCompiled(RunSignatureView::Of(signature, true), KeepGoing(options_.default_timeout)));
  const absl::Duration left = options_.default_timeout - absl::Nanoseconds(env().MonotonicNanos() - begun);
  StepOptions options;
  options.inter_op_threads = options_.inter_op_threads;
  OpenId open(*this);
  std::vector<JointStep::Part> messages = BeginStep(*compiled, options, {}, &open.id);
  const int64_t id = open.id;
  auto step = std::make_shared<PartialStep>(
      std::move(compiled), env(),
      PartialStep::Master{[this, id] { return EndId(id); },
                          [this](const WorkerView::Of& w, const Status& refusal) { NoteRefusal(w, refusal); }});
  open.Release();
  {
    absl::MutexLock lock(&mu_);
    if (closed_) return Cancelled("the session is closed");
    call.step = step;
  }
  {
    // What waits for nobody runs here.
    const StepDeadline deadline(env(), left, options_.default_timeout, *step);
    step->Start(std::move(messages));
  }
  std::string handle = absl::StrCat("partial_run_", id);
  absl::MutexLock lock(&mu_);
  if (closed_) return Cancelled("the session is closed");
  partial_.emplace(handle, std::move(step));
  return handle;
}

Status Coordinator::PartialRun(const std::string& handle, absl::Span<const Output> feeds,
                               absl::Span<const Tensor> feed_values, absl::Span<const Output> fetches,
                               std::vector<Tensor>* outputs, CancellationManager* cancellation) {
  return WithoutExceptions([&] {
    return GoOnWithPartialRun(handle, feeds, feed_values, fetches, outputs, cancellation);
  });
}

Status Coordinator::GoOnWithPartialRun(
    const std::string& handle, absl::Span<const Output> feeds, absl::Span<const Tensor> feed_values,
    absl::Span<const Output> fetches, std::vector<Tensor>* outputs, CancellationManager* cancellation) {
  std::optional<Interrupt> interrupt;
  PartialCall call;
  if (interrupt_check_.check) call.interrupt = &interrupt.emplace(interrupt_check_, env());
  const InterruptScope scope(call.interrupt);
  const absl::Cleanup leave = [&] { LeavePartial(&call); };
  {
    absl::MutexLock lock(&mu_);
    MR_RETURN_IF_ERROR(Enter(&call));
    auto it = partial_.find(handle);
    if (it == partial_.end()) return InvalidArgument("there is no partial run '", handle, "'");
    call.step = it->second;
  }
  PartialStep& step = *call.step;
  Status s;
  CancellationManager::Token token = CancellationManager::kInvalid;
  if (cancellation) {
    token = cancellation->Register([&] { step.Stop(cancellation->reason()); });
    if (token == CancellationManager::kInvalid) step.Stop(cancellation->reason());
  }
  const absl::Cleanup forget = [&] {
    if (token != CancellationManager::kInvalid) cancellation->Deregister(token);
  };
  bool is_over;  // looked at once: a step that fails behind this call's answer tells the next call why
  {
    const StepDeadline deadline(env(), options_.default_timeout, options_.default_timeout, step);
    s = step.Advance(feeds, feed_values, fetches, outputs);
    is_over = step.Over();
    if (s.ok() && is_over) s = step.Wait();
  }
  if (is_over) MR_RETURN_IF_ERROR(ReleasePartialRun(handle));
  return s;
}

Status Coordinator::ReleasePartialRun(const std::string& handle) {
  PartialCall call;
  const absl::Cleanup leave = [&] { LeavePartial(&call); };
  {
    absl::MutexLock lock(&mu_);
    const auto it = partial_.find(handle);  // none once the session is closed
    if (it == partial_.end()) return absl::OkStatus();
    MR_RETURN_IF_ERROR(Enter(&call));
    call.step = std::move(it->second);
    partial_.erase(it);
  }
  call.step->Stop(WithoutExceptions([] { return Cancelled("the partial run was released"); }));
  if (call.step->WaitFor(kReleasePatience)) return absl::OkStatus();
  absl::MutexLock lock(&mu_);
  late_partial_.emplace(handle, call.step);  // its end would wait for the step
  return DeadlineExceeded("partial run '", handle, "' did not end within ", absl::FormatDuration(kReleasePatience));
}

}  // namespace millrace
