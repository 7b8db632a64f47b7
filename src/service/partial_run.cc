// SPDX-License-Identifier: Apache-2.0
#include "service/partial_run.h"

#include <algorithm>

#include "base/exceptions.h"
#include "runtime/interrupt.h"

namespace millrace {

PartialStep::PartialStep(CompiledPtr compiled, DeviceInfo client)
    : compiled_(std::move(compiled)),
      client_(std::move(client)),
      retvals_(compiled_->parts.size()),
      fed_(compiled_->signature.feeds.size()),
      fetched_(compiled_->signature.fetches.size()) {}

Status PartialStep::Start(const StepSpec& spec) {
  std::vector<bool> takes_part = compiled_->takes_part;
  takes_part[0] = true;  // the client does
  MR_RETURN_IF_ERROR(step_.Open(compiled_->workers, takes_part, spec));
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
  const auto done = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return parts_left_ == 0; };
  absl::MutexLock lock(&mu_);
  if (!AwaitUnlessInterrupted(mu_, absl::Condition(&done))) {
    mu_.Unlock();
    Stop(Cancelled("the step was interrupted"));
    mu_.Lock();
    mu_.Await(absl::Condition(&done));
  }
  return status_;
}

bool PartialStep::WaitFor(absl::Duration patience) const {
  const auto done = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return parts_left_ == 0; };
  absl::MutexLock lock(&mu_);
  return AwaitFor(mu_, absl::Condition(&done), patience);
}

PartialStep::~PartialStep() {
  step_.Stop(Cancelled("the partial run was released"));
  WaitFor(absl::InfiniteDuration());
}

std::string PartialStep::KeyOf(const char* what, Output o) const {
  return Rendezvous::Key(client_.name, client_.incarnation, client_.name, ClientTensorName(what, o), 0, 0);
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

// What has been asked for. Lives until the last answer, which may come after an exception here.
struct PartialStep::Fetching {
  absl::Mutex mu;
  size_t left ABSL_GUARDED_BY(mu) = 0;
  Status first ABSL_GUARDED_BY(mu);
  std::vector<Tensor> values ABSL_GUARDED_BY(mu);

  void Answer(size_t i, Output fetch, Status s, Tensor value, bool is_dead) {
    if (s.ok() && (is_dead || !value.IsInitialized())) {
      s = WithoutExceptions([&] {
        return InvalidArgument("The tensor returned for ", fetch.ToString(),
                               " was not valid: it is dead, it lies on a branch that was not taken");
      });
    }
    absl::MutexLock lock(&mu);
    if (first.ok()) first = std::move(s);
    values[i] = std::move(value);
    --left;
  }
};

Status PartialStep::Exchange(absl::Span<const Output> feeds, absl::Span<const Tensor> values,
                             absl::Span<const Output> fetches, std::vector<Tensor>* outputs) {
  Rendezvous& rendezvous = step_.On(0).rendezvous();
  for (size_t i = 0; i < feeds.size(); ++i) {
    MR_RETURN_IF_ERROR(rendezvous.Send(KeyOf("feed", feeds[i]), values[i], false));
  }
  const auto fetching = std::make_shared<Fetching>();
  {
    absl::MutexLock lock(&fetching->mu);
    fetching->left = fetches.size();
    fetching->values.resize(fetches.size());
  }
  for (size_t i = 0; i < fetches.size(); ++i) {
    rendezvous.RecvAsync(
        KeyOf("fetch", fetches[i]), [fetching, i, fetch = fetches[i]](const Status& s, Tensor value, bool is_dead) {
          fetching->Answer(i, fetch, s, std::move(value), is_dead);
        });
  }
  absl::Mutex& mu = fetching->mu;
  const auto done = [&fetching]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(fetching->mu) { return fetching->left == 0; };
  absl::MutexLock lock(&mu);
  if (!AwaitUnlessInterrupted(mu, absl::Condition(&done))) {
    mu.Unlock();
    Stop(Cancelled("the step was interrupted"));
    mu.Lock();
    mu.Await(absl::Condition(&done));
  }
  MR_RETURN_IF_ERROR(fetching->first);
  *outputs = std::move(fetching->values);
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
