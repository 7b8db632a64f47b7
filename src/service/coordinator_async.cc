// SPDX-License-Identifier: Apache-2.0
// Steps that nobody waits for.
#include <algorithm>

#include "base/exceptions.h"
#include "service/call_in_flight.h"

namespace millrace {

// One thread at a time works on it, as its phase says: who passes it from one phase to the next does what follows.
class Coordinator::AsyncRun final : public CallInFlight {
 public:
  AsyncRun(Coordinator& coordinator, const StepOptions& options, RunSignature signature,
           std::vector<Tensor> feed_values)
      : coordinator_(coordinator),
        options_(options),
        signature_(std::move(signature)),
        feed_values_(std::move(feed_values)) {}

  static void Start(const std::shared_ptr<AsyncRun>& run, Reply<std::vector<Tensor>> done) {
    run->done_ = std::move(done);
    const Status s = WithoutExceptions([&] { return run->Check(); });
    s.ok() ? FindPlan(run) : run->Finish(s);
  }

  // Ends it only while it waits; otherwise leaves word for who works on it.
  void Stop(const Status& why) override {
    CompiledPtr unused;
    {
      absl::MutexLock lock(&mu_);
      if (stopped_.ok()) stopped_ = why;
      if (phase_ == Phase::kWorking || phase_ == Phase::kOver) return;
      ends_by_stop_ = phase_ != Phase::kRunning;
      if (ends_by_stop_) {
        phase_ = Phase::kOver;
        unused.swap(compiled_);
      }
    }
    unused = nullptr;  // while the workers are there
    ends_by_stop_ ? coordinator_.Leave(this) : joint_.Stop(why);
  }
  void Answer() override {
    if (ends_by_stop_) std::exchange(done_, nullptr)(stopped());
  }

 private:
  enum class Phase {
    kWorking,  // a thread is about to do something about it
    kWaiting,  // for a compilation
    kReady,    // it has been compiled: a thread will go on
    kRunning,  // on the workers
    kOver
  };

  // Whether it goes from one phase to the next. Stopped, it is over.
  bool Pass(Phase from, Phase to) {
    absl::MutexLock lock(&mu_);
    if (phase_ != from) return false;
    phase_ = stopped_.ok() ? to : Phase::kOver;
    return phase_ == to;
  }
  Status stopped() {
    absl::MutexLock lock(&mu_);
    return stopped_;
  }

  Status Check() const {
    if (std::min(options_.timeout, coordinator_.options_.default_timeout) < absl::InfiniteDuration()) {
      return Unimplemented("a step that no thread waits for cannot have a deadline");
    }
    if (signature_.feeds.size() != feed_values_.size()) {
      return InvalidArgument(signature_.feeds.size(), " feeds, but ", feed_values_.size(), " values");
    }
    for (size_t i = 0; i < feed_values_.size(); ++i) {
      MR_RETURN_IF_ERROR(CheckFeed(signature_.feeds[i], feed_values_[i]));
    }
    return absl::OkStatus();
  }

  // While it works: begins the step, or waits for its plan.
  static void FindPlan(const std::shared_ptr<AsyncRun>& run) {
    Coordinator& c = run->coordinator_;
    Lookup at;
    std::function<Status()> keep_going;
    bool goes_on = true;
    const Status s = WithoutExceptions([&]() -> Status {
      keep_going = c.KeepGoing(absl::InfiniteDuration());
      CompiledReply reply = [run](const StatusOr<CompiledPtr>& plan, bool is_own) { return Take(run, plan, is_own); };
      absl::MutexLock lock(&c.mu_);
      if (!run->entered) {
        if (c.alone_) return Unavailable("a step runs between steps");
        MR_RETURN_IF_ERROR(c.Enter(run.get()));
        run->changes_variables = true;  // nobody waits for the plan, which may
        run->self = run;
      }
      MR_ASSIGN_OR_RETURN(at, c.LookUp(RunSignatureView::Of(run->signature_, false), std::move(reply)));
      if (!at.found) goes_on = run->Pass(Phase::kWorking, Phase::kWaiting);
      return absl::OkStatus();
    });
    if (!s.ok()) return run->Finish(s);
    if (at.found) return StartStep(run, std::move(at.found));
    if (at.is_new) c.Compile(at.compilation, keep_going);
    if (!goes_on) run->Finish(run->stopped());
  }

  static WhatFollows Take(const std::shared_ptr<AsyncRun>& run, const StatusOr<CompiledPtr>& plan, bool is_own) {
    absl::MutexLock lock(&run->mu_);
    if (run->phase_ != Phase::kWaiting) return nullptr;
    run->phase_ = Phase::kReady;
    run->may_try_again_ = !is_own && MayTryAgain(plan.status());
    plan.ok() ? static_cast<void>(run->compiled_ = *plan) : static_cast<void>(run->refused_ = plan.status());
    return [run] { UsePlan(run); };
  }

  static void UsePlan(const std::shared_ptr<AsyncRun>& run) {
    if (!run->Pass(Phase::kReady, Phase::kWorking)) return;  // the coordinator may be gone
    if (run->compiled_) return StartStep(run, std::move(run->compiled_));
    if (!run->may_try_again_) return run->Finish(run->refused_);
    // Not here: others may stand further up on this stack for the same reason.
    const Status s = WithoutExceptions([&] {
      run->coordinator_.env().Schedule([run] { FindPlan(run); });
      return absl::OkStatus();
    });
    if (!s.ok()) run->Finish(s);
  }

  static void StartStep(const std::shared_ptr<AsyncRun>& run, CompiledPtr compiled) {
    std::vector<JointStep::Part> messages;
    const Status s = WithoutExceptions([&] {
      run->outputs_.resize(run->signature_.fetches.size());
      messages = run->coordinator_.BeginStep(*compiled, run->options_, run->feed_values_, &run->id_);
      return absl::OkStatus();
    });
    if (!s.ok()) return run->Finish(s);
    run->compiled_ = std::move(compiled);
    run->feed_values_.clear();
    if (!run->Pass(Phase::kWorking, Phase::kRunning)) {
      {
        OpenId ends(run->coordinator_);
        ends.id = run->id_;
      }
      return run->Finish(run->stopped());
    }
    run->joint_.Start(std::move(messages), {}, [run](Status result) { run->EndStep(std::move(result)); });
  }

  void EndStep(Status s) {
    s = WithoutExceptions([&] {
      return coordinator_.EndStep(*compiled_, joint_, id_, options_, std::move(s), &outputs_);
    });
    s.ok() ? Finish(std::move(outputs_)) : Finish(std::move(s));
  }

  // By who works on it, or when it has run.
  void Finish(StatusOr<std::vector<Tensor>> result) {
    Reply<std::vector<Tensor>> done = std::move(done_);
    compiled_ = nullptr;
    coordinator_.Leave(this);  // which may be the end of this object, and the coordinator
    std::move(done)(std::move(result));
  }

  Coordinator& coordinator_;
  const StepOptions options_;
  const RunSignature signature_;
  std::vector<Tensor> feed_values_, outputs_;
  Reply<std::vector<Tensor>> done_;
  CompiledPtr compiled_;
  Status refused_;
  bool may_try_again_ = false;
  int64_t id_ = 0;
  JointStep joint_;
  bool ends_by_stop_ = false;  // of the thread that stops it
  absl::Mutex mu_;
  Phase phase_ ABSL_GUARDED_BY(mu_) = Phase::kWorking;
  Status stopped_ ABSL_GUARDED_BY(mu_);
};

void Coordinator::RunAsync(const StepOptions& options, RunSignature signature, std::vector<Tensor> feed_values,
                           Reply<std::vector<Tensor>> done) {
  std::shared_ptr<AsyncRun> run;
  const Status s = WithoutExceptions([&] {
    run = std::make_shared<AsyncRun>(*this, options, std::move(signature), std::move(feed_values));
    return absl::OkStatus();
  });
  s.ok() ? AsyncRun::Start(run, std::move(done)) : std::move(done)(s);
}

}  // namespace millrace
