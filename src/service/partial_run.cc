// SPDX-License-Identifier: Apache-2.0
#include "service/partial_run.h"

#include <algorithm>

#include "base/exceptions.h"
#include "runtime/interrupt.h"
#include "runtime/node_run.h"

namespace millrace {

PartialStep::PartialStep(CompiledPtr compiled, Env& env, Master master)
    : compiled_(std::move(compiled)),
      env_(env),
      master_(std::move(master)),
      fed_(compiled_->signature.feeds.size()),
      fetched_(compiled_->signature.fetches.size()) {}

void PartialStep::Start(std::vector<JointStep::Part> messages) {
  for (const JointStep::Part& m : messages) {
    if (m.worker == compiled_->view->workers.front().worker) ref_ = m.request.step;
  }
  const bool one_thread = !messages.empty() && messages.front().request.single_thread();
  if (one_thread) thread_ = std::make_shared<StepThread>(env_);
  {
    absl::MutexLock lock(&mu_);
    runs_ = true;
  }
  CallOptions call;
  call.caller = thread_.get();
  call.runs_here = true;
  step_.Start(std::move(messages), call, [this](Status s) {
    for (const JointStep::Part& m : step_.parts()) {
      for (const WorkerView::Of& w : compiled_->view->workers) {
        if (w.worker == m.worker) master_.refused(w, m.refusal);
      }
    }
    const std::shared_ptr<StepThread> thread = thread_;  // this object may be gone when it is no longer running
    {
      absl::MutexLock lock(&mu_);
      status_ = std::move(s);
      runs_ = false;
    }
    if (thread) thread->Finish();
  });
}

bool PartialStep::NeedsDriver() const {
  absl::MutexLock lock(&mu_);
  return thread_ && runs_;
}

void PartialStep::Drive(const std::atomic<bool>& told) {
  if (!NeedsDriver() || thread_->DriveUntil(told, absl::InfiniteDuration(), CurrentInterrupt() != nullptr)) return;
  Stop(Interrupted());
  thread_->DriveUntil(told, absl::InfiniteDuration(), /*may_be_interrupted=*/false);
}

Status PartialStep::Wait() {
  Drive(StepThread::kNever);
  const auto done = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return !runs_; };
  absl::MutexLock lock(&mu_);
  if (!AwaitUnlessInterrupted(env_, mu_, absl::Condition(&done))) {
    mu_.Unlock();
    Stop(Interrupted());
    mu_.Lock();
    env_.Await(mu_, absl::Condition(&done));
  }
  return status_;
}

bool PartialStep::WaitFor(absl::Duration patience) const {
  const auto done = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return !runs_; };
  if (NeedsDriver() && !thread_->DriveUntil(StepThread::kNever, patience, /*may_be_interrupted=*/false)) return false;
  absl::MutexLock lock(&mu_);
  return env_.Await(mu_, absl::Condition(&done), patience);
}

PartialStep::~PartialStep() {
  step_.Stop(WithoutExceptions([] { return Cancelled("the partial run was released"); }));
  WaitFor(absl::InfiniteDuration());
  WithoutExceptions([&] {
    step_.CleanUp(master_.end());
    return absl::OkStatus();
  }).IgnoreError();
}

bool PartialStep::Over() const {
  if (!step_.stopped().ok()) return true;
  absl::MutexLock lock(&mu_);
  auto all = [](const std::vector<bool>& v) { return std::all_of(v.begin(), v.end(), [](bool b) { return b; }); };
  return !status_.ok() || (all(fed_) && all(fetched_));
}

Status PartialStep::Claim(absl::Span<const Output> feeds, absl::Span<const Output> fetches) {
  const RunSignature& signature = compiled_->signature;
  auto claim = [](const std::vector<Output>& known, std::vector<bool>& used, Output o, const char* what,
                  const char* past) -> Status {
    auto it = std::find(known.begin(), known.end(), o);
    if (it == known.end()) {
      return InvalidArgument(
          "The ", what, " ", o.node ? o.ToString() : "(null)", " was not specified in partial_run_setup.");
    }
    const size_t i = static_cast<size_t>(it - known.begin());
    if (used[i]) return InvalidArgument("The ", what, " ", o.ToString(), " has already been ", past, ".");
    used[i] = true;
    return absl::OkStatus();
  };
  absl::MutexLock lock(&mu_);
  std::vector<bool> fed = fed_, fetched = fetched_;
  for (Output o : feeds) MR_RETURN_IF_ERROR(claim(signature.feeds, fed, o, "feed", "fed"));
  for (Output o : fetches) {
    MR_RETURN_IF_ERROR(claim(signature.fetches, fetched, o, "fetch", "fetched"));
    const size_t f = static_cast<size_t>(
        std::find(signature.fetches.begin(), signature.fetches.end(), o) - signature.fetches.begin());
    for (size_t i = 0; i < fed.size(); ++i) {
      if (compiled_->feeds_needed[f][i] && !fed[i]) {
        return InvalidArgument(
            "fetch ", o.ToString(), " needs feed ", signature.feeds[i].ToString(), ", which has not been given yet");
      }
    }
  }
  fed_ = std::move(fed);
  fetched_ = std::move(fetched);
  return absl::OkStatus();
}

// What has been asked for. Lives until the answer, which may come after an exception here.
struct PartialStep::Fetching {
  absl::Mutex mu;
  bool is_there ABSL_GUARDED_BY(mu) = false;
  StatusOr<ExchangeTensorsResponse> response ABSL_GUARDED_BY(mu) = ExchangeTensorsResponse{};
  std::shared_ptr<StepThread> thread;  // may be null
  std::atomic<bool> told{false};       // for it
};

ExchangeTensorsRequest PartialStep::RequestFor(absl::Span<const Output> feeds, absl::Span<const Tensor> values,
                                               absl::Span<const Output> fetches) const {
  const RunSignature& signature = compiled_->signature;
  const auto edge_of = [](const std::vector<Output>& all, const std::vector<int64_t>& edges, Output o) {
    return edges[static_cast<size_t>(std::find(all.begin(), all.end(), o) - all.begin())];
  };
  ExchangeTensorsRequest request{.step = ref_, .feeds = {}, .fetches = {}};
  for (size_t i = 0; i < feeds.size(); ++i) {
    const int64_t edge = edge_of(signature.feeds, compiled_->feed_edges, feeds[i]);
    if (edge >= 0) request.feeds.push_back({edge, values[i]});
  }
  for (Output o : fetches) request.fetches.push_back(edge_of(signature.fetches, compiled_->fetch_edges, o));
  return request;
}

Status PartialStep::Exchange(absl::Span<const Output> feeds, absl::Span<const Tensor> values,
                             absl::Span<const Output> fetches, std::vector<Tensor>* outputs) {
  const auto fetching = std::make_shared<Fetching>();
  fetching->thread = thread_;
  WorkerInterface& worker = *compiled_->view->workers.front().worker;
  worker.ExchangeTensors(
      {}, RequestFor(feeds, values, fetches), [fetching](StatusOr<ExchangeTensorsResponse> response) {
        {
          absl::MutexLock lock(&fetching->mu);
          fetching->response = std::move(response);
          fetching->is_there = true;
        }
        if (fetching->thread) fetching->thread->Tell(fetching->told);
      });
  Drive(fetching->told);
  StatusOr<ExchangeTensorsResponse> response = ExchangeTensorsResponse{};
  {
    absl::MutexLock lock(&fetching->mu);
    if (!AwaitUnlessInterrupted(env_, fetching->mu, absl::Condition(&fetching->is_there))) {
      fetching->mu.Unlock();
      Stop(Interrupted());
      fetching->mu.Lock();
      env_.Await(fetching->mu, absl::Condition(&fetching->is_there));
    }
    response = std::move(fetching->response);
  }
  if (!response.ok()) {
    // An answer of a step that goes on is about the message, and not what the step has ended with.
    if (step_.stopped().ok()) master_.refused(compiled_->view->workers.front(), response.status());
    return response.status();
  }
  std::vector<ReceivedTensor>& received = response->fetches;
  if (received.size() != fetches.size()) {
    return Internal("worker ", worker.task(), " gave ", received.size(), " tensors, want ", fetches.size());
  }
  outputs->clear();
  for (size_t i = 0; i < received.size(); ++i) {
    if (received[i].is_dead || !received[i].value.IsInitialized()) {
      return InvalidArgument("The tensor returned for ", fetches[i].ToString(),
                             " was not valid: it is dead, it lies on a branch that was not taken");
    }
    outputs->push_back(std::move(received[i].value));
  }
  return absl::OkStatus();
}

Status PartialStep::Advance(absl::Span<const Output> feeds, absl::Span<const Tensor> values,
                            absl::Span<const Output> fetches, std::vector<Tensor>* outputs) {
  if (feeds.size() != values.size()) return InvalidArgument(feeds.size(), " feeds, but ", values.size(), " values");
  for (size_t i = 0; i < feeds.size(); ++i) MR_RETURN_IF_ERROR(CheckFeed(feeds[i], values[i]));
  MR_RETURN_IF_ERROR(Claim(feeds, fetches));
  const Status s = WithoutExceptions([&] { return Exchange(feeds, values, fetches, outputs); });
  if (s.ok()) return s;
  Stop(s);
  return step_.stopped();  // the first cause, from which this one may have followed
}

}  // namespace millrace
