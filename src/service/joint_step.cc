// SPDX-License-Identifier: Apache-2.0
#include "service/joint_step.h"

#include "kernel/stop_node.h"

namespace millrace {

void JointStep::Start(std::vector<Part> parts, const CallOptions& call, absl::AnyInvocable<void(Status) &&> done) {
  const size_t n = parts.size();
  const bool one_thread = n > 0 && parts.front().request.single_thread();
  Status stopped;
  {
    absl::MutexLock lock(&mu_);
    parts_ = std::move(parts);
    stopped = stopped_;
    left_ = stopped.ok() ? n : 0;
  }
  if (!stopped.ok() || n == 0) return std::move(done)(stopped);
  done_ = std::move(done);
  // The others first, if they run elsewhere: the first may run here.
  CallOptions elsewhere = call;
  elsewhere.runs_here = call.runs_here && one_thread;
  const auto send = [this](size_t p, const CallOptions& options) {
    parts_[p].worker->RunStep(options, std::move(parts_[p].request), [this, p](StatusOr<RunStepResponse> response) {
      Answer(p, std::move(response));
    });
  };
  if (elsewhere.runs_here) {
    for (size_t p = 0; p < n; ++p) send(p, call);
  } else {
    for (size_t p = n; p-- > 1;) send(p, elsewhere);
    send(0, call);
  }
}

void JointStep::Answer(size_t p, StatusOr<RunStepResponse> response) {
  if (response.ok()) {
    parts_[p].response = *std::move(response);
  } else {
    parts_[p].refusal = response.status();
  }
  Status s = response.ok() ? parts_[p].response.status : parts_[p].refusal;
  bool others = false;
  if (!s.ok()) {
    absl::MutexLock lock(&mu_);
    others = stopped_.ok() && left_ > 1;
    was_aborted_ |= others;
    if (stopped_.ok()) stopped_ = s;
    if (result_.ok()) result_ = CausedBy(stopped_, s);
  }
  if (others) AbortAll(s);
  {
    absl::MutexLock lock(&mu_);
    if (--left_ > 0) return;
    s = result_;
  }
  auto done = std::move(done_);  // which may hold this object
  std::move(done)(std::move(s));
}

void JointStep::Stop(const Status& why) {
  {
    absl::MutexLock lock(&mu_);
    if (!stopped_.ok()) return;
    stopped_ = why;
    if (left_ == 0) return;  // it has not begun, or is over
    was_aborted_ = true;
  }
  AbortAll(why);
}

void JointStep::AbortAll(const Status& why) {
  for (const Part& part : parts_) {
    part.worker->AbortStep({}, {part.request.step, why}, [](const StatusOr<AbortStepResponse>&) {});
  }
}

void JointStep::CleanUp(const StepHorizon& horizon) {
  {
    absl::MutexLock lock(&mu_);
    if (parts_.empty() || (parts_.front().request.is_alone && !was_aborted_)) return;
  }
  for (const Part& part : parts_) {
    part.worker->CleanUpSteps({}, {part.request.step.session, horizon}, [](const StatusOr<CleanUpStepsResponse>&) {});
  }
}

Status JointStep::stopped() const {
  absl::MutexLock lock(&mu_);
  return stopped_;
}

}  // namespace millrace
