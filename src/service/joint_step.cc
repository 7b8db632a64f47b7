// SPDX-License-Identifier: Apache-2.0
#include "service/joint_step.h"

#include "absl/strings/match.h"
#include "base/exceptions.h"
#include "kernel/stop_node.h"

namespace millrace {
namespace {

// As NamedAfter says it; empty: it names none.
absl::string_view NodeIn(const Status& s) {
  const size_t at = s.message().find("\n\t [[node ");
  return at == absl::string_view::npos ? "" : s.message().substr(at);
}

}  // namespace

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
    if (absl::IsUnavailable(parts_[p].refusal)) {
      WithoutExceptions([&] {
        parts_[p].refusal = Annotate(parts_[p].refusal, absl::StrCat("step ", parts_[p].request.step.step, ": "));
        return absl::OkStatus();
      }).IgnoreError();  // where there is no memory the message says less
    }
  }
  Status s = response.ok() ? parts_[p].response.status : parts_[p].refusal;
  bool others = false;
  if (!s.ok()) {
    const bool is_consequence = parts_[p].response.is_consequence;
    absl::MutexLock lock(&mu_);
    others = stopped_.ok() && left_ > 1;
    was_aborted_ |= others;
    if (stopped_.ok()) {
      stopped_ = s;
      is_stopped_by_consequence_ = is_consequence;
    }
    // What one worker does not send, since it has failed, is known to another before the first one's answer is here.
    if (is_stopped_by_consequence_ && !is_consequence) {
      is_stopped_by_consequence_ = false;
      stopped_ = result_ = s;
    }
    if (result_.ok()) {
      result_ = CausedBy(stopped_, s);
    } else if (const absl::string_view where = NodeIn(s);
               is_stopped_from_outside_ && absl::StrContains(s.message(), stopped_.message()) &&
               !absl::StrContains(result_.message(), where)) {
      // Each says which node it has stopped at; some only wait for what another is at.
      WithoutExceptions([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
        result_ = Status(result_.code(), absl::StrCat(result_.message(), where));
        return absl::OkStatus();
      }).IgnoreError();
    }
  }
  if (others) AbortAll(s);
  {
    absl::MutexLock lock(&mu_);
    parts_[p].is_answered = true;
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
    is_stopped_from_outside_ = true;
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

void JointStep::Describe(std::vector<std::string>* lines) const {
  absl::MutexLock lock(&mu_);
  if (left_ == 0) return;
  for (const Part& part : parts_) {
    if (part.is_answered) continue;
    lines->push_back(absl::StrCat(
        "step ", part.request.step.step, " of session ", absl::Hex(part.request.step.session.session, absl::kZeroPad16),
        " waits for ", part.worker->task(), stopped_.ok() ? "" : ", to end"));
  }
}

Status JointStep::stopped() const {
  absl::MutexLock lock(&mu_);
  return stopped_;
}

}  // namespace millrace
