// SPDX-License-Identifier: Apache-2.0
// A step whose feeds and fetches come in several calls.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "service/joint_step.h"
#include "service/signature_cache.h"

namespace millrace {

// Existence and dtype.
Status CheckFeed(const Output& o, const Tensor& value);

// Thread-safe. Every value crosses the rendezvous of the first worker, whose first device stands for the client.
class PartialStep {
 public:
  // What it tells its master, which outlives it.
  struct Master {
    std::function<StepHorizon()> end;                                              // it is over; says which steps are
    std::function<void(const WorkerView::Of& worker, const Status& why)> refused;  // a message was
  };
  PartialStep(CompiledPtr compiled, Env& env, Master master);
  ~PartialStep();  // stops what still runs, and waits for it

  // Once, before all else; it then runs in the background. One of the messages is for the first worker.
  void Start(std::vector<JointStep::Part> messages);

  // Gives feeds, waits for fetches. InvalidArgument that leaves the step as it was: an unknown name, one used before, a
  // fetch whose feeds are not there. Any other error is the step's end.
  Status Advance(absl::Span<const Output> feeds, absl::Span<const Tensor> values, absl::Span<const Output> fetches,
                 std::vector<Tensor>* outputs);
  void Stop(const Status& why) { step_.Stop(why); }
  // Until all of the step has run, which this thread's interrupt may stop: its status.
  Status Wait();
  bool WaitFor(absl::Duration patience) const;  // the same, without the status; false: it still runs
  bool Over() const;  // it was stopped or has failed, or every feed was given and every fetch taken

 private:
  struct Fetching;
  ExchangeTensorsRequest RequestFor(absl::Span<const Output> feeds, absl::Span<const Tensor> values,
                                    absl::Span<const Output> fetches) const;
  Status Claim(absl::Span<const Output> feeds, absl::Span<const Output> fetches);
  Status Exchange(absl::Span<const Output> feeds, absl::Span<const Tensor> values, absl::Span<const Output> fetches,
                  std::vector<Tensor>* outputs);

  bool NeedsDriver() const;
  // Until told or over. Interrupted, it stops the step first.
  void Drive(const std::atomic<bool>& told);

  const CompiledPtr compiled_;
  Env& env_;
  std::shared_ptr<StepThread> thread_;  // of a step that has but one: whoever waits for it drives it; else null
  const Master master_;
  JointStep step_;
  StepRef ref_;  // on the first worker
  mutable absl::Mutex mu_;
  bool runs_ ABSL_GUARDED_BY(mu_) = false;
  Status status_ ABSL_GUARDED_BY(mu_);
  std::vector<bool> fed_ ABSL_GUARDED_BY(mu_);
  std::vector<bool> fetched_ ABSL_GUARDED_BY(mu_);
};

}  // namespace millrace
