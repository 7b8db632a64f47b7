// SPDX-License-Identifier: Apache-2.0
// Steps that nobody waits for.
#include <algorithm>

#include "base/exceptions.h"
#include "service/call_in_flight.h"

namespace millrace {

class Coordinator::AsyncRun final : public CallInFlight {
 public:
  AsyncRun(Coordinator& coordinator, const StepOptions& options, RunSignature signature,
           std::vector<Tensor> feed_values, Reply<std::vector<Tensor>> done)
      : coordinator_(coordinator),
        options_(options),
        signature_(std::move(signature)),
        feed_values_(std::move(feed_values)),
        done_(std::move(done)) {}

  static void Start(const std::shared_ptr<AsyncRun>& run) {
    const Status s = WithoutExceptions([&]() -> Status {
      MR_RETURN_IF_ERROR(run->Check());
      Coordinator& c = run->coordinator_;
      {
        absl::MutexLock lock(&c.mu_);
        MR_RETURN_IF_ERROR(c.Enter(run.get()));
        run->self = run;
      }
      const absl::Duration timeout = std::min(run->options_.timeout, c.options_.default_timeout);
      c.FindOrCompileAsync(RunSignatureView::Of(run->signature_, false), c.KeepGoing(timeout),
                           [run](StatusOr<CompiledPtr> compiled) { StartStep(run, std::move(compiled)); });
      return absl::OkStatus();
    });
    if (!s.ok()) run->Stop(s);
  }

  void Stop(const Status& why) override {
    if (Pass(Phase::kCompiling, Phase::kOver)) return Finish(why);
    joint_.Stop(why);
  }

 private:
  enum class Phase { kCompiling, kRunning, kOver };

  // False when it was not in phase `from`.
  bool Pass(Phase from, Phase to) {
    absl::MutexLock lock(&mu_);
    if (phase_ != from) return false;
    phase_ = to;
    return true;
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

  static void StartStep(const std::shared_ptr<AsyncRun>& run, StatusOr<CompiledPtr> compiled) {
    if (!compiled.ok()) return run->Stop(compiled.status());
    std::vector<JointStep::Part> messages;
    const Status s = WithoutExceptions([&] {
      run->outputs_.resize(run->signature_.fetches.size());
      messages = run->coordinator_.BeginStep(**compiled, run->options_, run->feed_values_, &run->id_);
      return absl::OkStatus();
    });
    if (!s.ok()) return run->Stop(s);
    run->compiled_ = *std::move(compiled);
    run->feed_values_.clear();
    if (!run->Pass(Phase::kCompiling, Phase::kRunning)) {  // it was stopped
      run->coordinator_.EndId(run->id_);
      return;
    }
    run->joint_.Start(std::move(messages), {}, [run](Status result) { run->EndStep(std::move(result)); });
  }

  void EndStep(Status s) {
    s = WithoutExceptions([&] {
      return coordinator_.EndStep(*compiled_, joint_, id_, options_, std::move(s), &outputs_);
    });
    s.ok() ? Finish(std::move(outputs_)) : Finish(std::move(s));
  }

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
  int64_t id_ = 0;
  JointStep joint_;
  absl::Mutex mu_;
  Phase phase_ ABSL_GUARDED_BY(mu_) = Phase::kCompiling;
};

void Coordinator::RunAsync(const StepOptions& options, RunSignature signature, std::vector<Tensor> feed_values,
                           Reply<std::vector<Tensor>> done) {
  AsyncRun::Start(
      std::make_shared<AsyncRun>(*this, options, std::move(signature), std::move(feed_values), std::move(done)));
}

}  // namespace millrace
