// SPDX-License-Identifier: Apache-2.0
#include "service/step_rendezvous.h"

#include <map>
#include <utility>

namespace millrace {
namespace {

class StepRendezvous : public Rendezvous {
 public:
  StepRendezvous(RefPtr<Rendezvous> here, uint64_t session, int64_t step,
                 std::function<const EdgeSource*(int64_t edge)> source_of)
      : here_(std::move(here)), session_(session), step_(step), source_of_(std::move(source_of)) {}

  Status Send(absl::string_view key, Tensor value, bool is_dead) override {
    return here_->Send(key, std::move(value), is_dead);
  }

  void RecvAsync(absl::string_view text, DoneCallback done) override {
    const StatusOr<EdgeKey> key = EdgeKey::Parse(text);
    if (!key.ok()) return std::move(done)(key.status(), Tensor(), false);
    const EdgeSource* const source = source_of_(key->edge);
    if (source == nullptr) return here_->RecvAsync(text, std::move(done));
    int64_t id = 0;
    {
      absl::ReleasableMutexLock lock(&mu_);
      if (!aborted_.ok()) {
        const Status why = aborted_;
        lock.Release();
        return std::move(done)(why, Tensor(), false);
      }
      id = next_++;
      asked_.emplace(id, std::move(done));
    }
    CallOptions call;
    call.cancellation = &cancellation_;
    source->worker->RecvTensor(
        call, {.step = {.session = {session_, source->incarnation}, .step = step_}, .key = *key},
        [self = RefPtr<StepRendezvous>::Share(this), id](StatusOr<RecvTensorResponse> response) {
          self->Answer(id, std::move(response));
        });
  }

  void Abort(const Status& why) override {
    std::map<int64_t, DoneCallback> asked;
    {
      absl::MutexLock lock(&mu_);
      if (!aborted_.ok()) return;
      aborted_ = why;
      asked.swap(asked_);
    }
    for (auto& [id, done] : asked) std::move(done)(why, Tensor(), false);
    cancellation_.Cancel();
    here_->Abort(why);
  }

 private:
  void Answer(int64_t id, StatusOr<RecvTensorResponse> response) {
    DoneCallback done;
    {
      absl::MutexLock lock(&mu_);
      auto it = asked_.find(id);
      if (it == asked_.end()) return;  // aborted
      done = std::move(it->second);
      asked_.erase(it);
    }
    if (!response.ok()) return std::move(done)(response.status(), Tensor(), false);
    std::move(done)(absl::OkStatus(), std::move(response->tensor.value), response->tensor.is_dead);
  }

  const RefPtr<Rendezvous> here_;
  const uint64_t session_;
  const int64_t step_;
  const std::function<const EdgeSource*(int64_t edge)> source_of_;
  CancellationManager cancellation_;  // of what is asked for
  absl::Mutex mu_;
  Status aborted_ ABSL_GUARDED_BY(mu_);
  int64_t next_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<int64_t, DoneCallback> asked_ ABSL_GUARDED_BY(mu_);  // of other workers, not answered yet
};

}  // namespace

RefPtr<Rendezvous> NewStepRendezvous(RefPtr<Rendezvous> here, uint64_t session, int64_t step,
                                     std::function<const EdgeSource*(int64_t edge)> source_of) {
  return MakeRef<StepRendezvous>(std::move(here), session, step, std::move(source_of));
}

}  // namespace millrace
