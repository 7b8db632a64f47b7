// SPDX-License-Identifier: Apache-2.0
#include "service/partial_run.h"

#include <algorithm>
#include <optional>

#include "service/coordinator.h"
#include "service/deadline.h"

namespace millrace {

PartialStep::PartialStep(std::vector<Worker*> workers, std::shared_ptr<const Compiled> compiled, RunSignature signature,
                         DeviceInfo client)
    : workers_(std::move(workers)),
      compiled_(std::move(compiled)),
      signature_(std::move(signature)),
      feeds_needed_(FeedsNeededBy(signature_.feeds, signature_.fetches)),
      client_(std::move(client)),
      retvals_(compiled_->parts.size()),
      fed_(signature_.feeds.size()),
      fetched_(signature_.fetches.size()) {}

Status PartialStep::Start(const StepSpec& spec) {
  std::vector<bool> takes_part = compiled_->takes_part;
  takes_part[0] = true;  // the client does
  MR_RETURN_IF_ERROR(step_.Open(workers_, takes_part, spec));
  {
    absl::MutexLock lock(&mu_);
    parts_left_ = compiled_->parts.size();
  }
  for (size_t p = 0; p < compiled_->parts.size(); ++p) {
    const CompiledPart& part = compiled_->parts[p];
    step_.On(part.worker).RunAsync({part.handle, {}, &retvals_[p]}, [this](Status s) {
      if (!s.ok()) step_.Stop(s);
      absl::MutexLock lock(&mu_);
      if (status_.ok()) status_ = s;
      --parts_left_;
    });
  }
  return absl::OkStatus();
}

Status PartialStep::Wait() {
  absl::MutexLock lock(&mu_);
  mu_.Await(absl::Condition(+[](size_t* left) { return *left == 0; }, &parts_left_));
  return status_;
}

PartialStep::~PartialStep() {
  step_.Stop(Cancelled("the partial run was released"));
  Wait().IgnoreError();
  for (const CompiledPart& part : compiled_->parts) workers_[part.worker]->Deregister(part.handle);
}

std::string PartialStep::KeyOf(const char* what, Output o) const {
  return Rendezvous::Key(client_.name, client_.incarnation, client_.name, ClientTensorName(what, o), 0, 0);
}

bool PartialStep::Finished() const {
  absl::MutexLock lock(&mu_);
  auto all = [](const std::vector<bool>& v) { return std::all_of(v.begin(), v.end(), [](bool b) { return b; }); };
  return all(fed_) && all(fetched_);
}

Status PartialStep::Advance(absl::Span<const Output> feeds, absl::Span<const Tensor> values,
                            absl::Span<const Output> fetches, std::vector<Tensor>* outputs) {
  if (feeds.size() != values.size()) return InvalidArgument(feeds.size(), " feeds, but ", values.size(), " values");
  auto claim = [](const std::vector<Output>& known, std::vector<bool>& used, Output o, const char* what) -> Status {
    auto it = std::find(known.begin(), known.end(), o);
    if (it == known.end()) {
      return InvalidArgument(
          what, " ", o.node ? o.ToString() : "(null)", " was not named when the partial run was set up");
    }
    const size_t i = static_cast<size_t>(it - known.begin());
    if (used[i]) return InvalidArgument(what, " ", o.ToString(), " was used in this partial run before");
    used[i] = true;
    return absl::OkStatus();
  };
  for (size_t i = 0; i < feeds.size(); ++i) MR_RETURN_IF_ERROR(CheckFeed(feeds[i], values[i]));
  {
    absl::MutexLock lock(&mu_);
    std::vector<bool> fed = fed_, fetched = fetched_;
    for (Output o : feeds) MR_RETURN_IF_ERROR(claim(signature_.feeds, fed, o, "feed"));
    for (Output o : fetches) {
      MR_RETURN_IF_ERROR(claim(signature_.fetches, fetched, o, "fetch"));
      const size_t f = static_cast<size_t>(
          std::find(signature_.fetches.begin(), signature_.fetches.end(), o) - signature_.fetches.begin());
      for (size_t i = 0; i < fed.size(); ++i) {
        if (feeds_needed_[f][i] && !fed[i]) {
          return InvalidArgument(
              "fetch ", o.ToString(), " needs feed ", signature_.feeds[i].ToString(), ", which has not been given yet");
        }
      }
    }
    fed_ = std::move(fed);
    fetched_ = std::move(fetched);
  }
  for (size_t i = 0; i < feeds.size(); ++i) {
    MR_RETURN_IF_ERROR(step_.On(0).rendezvous().Send(KeyOf("feed", feeds[i]), values[i], false));
  }
  outputs->assign(fetches.size(), Tensor());
  absl::Mutex mu;
  size_t left = fetches.size();
  Status first;
  for (size_t i = 0; i < fetches.size(); ++i) {
    step_.On(0).rendezvous().RecvAsync(KeyOf("fetch", fetches[i]), [&, i](const Status& s, Tensor value, bool) {
      absl::MutexLock lock(&mu);
      if (first.ok()) first = s;
      (*outputs)[i] = std::move(value);
      --left;
    });
  }
  const auto done = [&left] { return left == 0; };
  absl::MutexLock lock(&mu);
  if (!AwaitUnlessInterrupted(mu, absl::Condition(&done))) {
    mu.Unlock();
    Stop(Cancelled("the step was interrupted"));
    mu.Lock();
    mu.Await(absl::Condition(&done));
  }
  return first;
}

StatusOr<std::string> Coordinator::PartialRunSetup(RunSignature signature) {
  const DeviceInfo client = workers_.front()->devices().front();
  PruneOptions prune;
  prune.calls.keep_going = KeepGoing(options_.default_timeout);
  prune.through_rendezvous = true;
  prune.client_device = client.name;
  prune.client_incarnation = client.incarnation;
  MR_ASSIGN_OR_RETURN(std::shared_ptr<const Compiled> compiled, Compile(signature, prune));
  const int64_t id = next_step_.fetch_add(1, std::memory_order_relaxed);
  auto step = std::make_shared<PartialStep>(workers_, std::move(compiled), std::move(signature), client);
  MR_RETURN_IF_ERROR(step->Start({.id = id, .max_threads = options_.max_threads}));
  std::string handle = absl::StrCat("partial_run_", id);
  absl::MutexLock lock(&mu_);
  if (closed_) return Cancelled("the session is closed");
  partial_.emplace(handle, std::move(step));
  return handle;
}

Status Coordinator::PartialRun(const std::string& handle, absl::Span<const Output> feeds,
                               absl::Span<const Tensor> feed_values, absl::Span<const Output> fetches,
                               std::vector<Tensor>* outputs) {
  std::shared_ptr<PartialStep> step;
  {
    absl::MutexLock lock(&mu_);
    auto it = partial_.find(handle);
    if (it == partial_.end()) {
      return closed_ ? Cancelled("the session is closed") : InvalidArgument("there is no partial run '", handle, "'");
    }
    step = it->second;
  }
  std::optional<Deadline> deadline;
  if (options_.default_timeout < absl::InfiniteDuration()) {
    deadline.emplace(options_.default_timeout, [&step, timeout = options_.default_timeout] {
      step->Stop(DeadlineExceeded("the partial run passed its deadline of ", absl::FormatDuration(timeout)));
    });
  }
  std::optional<Interrupt> interrupt;
  if (interrupt_check_.check) interrupt.emplace(interrupt_check_);
  const InterruptScope scope(interrupt ? &*interrupt : nullptr);
  MR_RETURN_IF_ERROR(step->Advance(feeds, feed_values, fetches, outputs));
  if (!step->Finished()) return absl::OkStatus();
  const Status s = step->Wait();
  MR_RETURN_IF_ERROR(ReleasePartialRun(handle));
  return s;
}

Status Coordinator::ReleasePartialRun(const std::string& handle) {
  std::shared_ptr<PartialStep> step;  // its destructor waits, so it runs after the lock is gone
  {
    absl::MutexLock lock(&mu_);
    auto it = partial_.find(handle);
    if (it == partial_.end()) return absl::OkStatus();
    step = std::move(it->second);
    partial_.erase(it);
  }
  return absl::OkStatus();
}

}  // namespace millrace
