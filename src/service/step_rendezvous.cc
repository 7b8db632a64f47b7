// SPDX-License-Identifier: Apache-2.0
#include "service/step_rendezvous.h"

#include <map>
#include <utility>

namespace millrace {
namespace {

class RemoteRendezvous final : public StepRendezvous {
 public:
  RemoteRendezvous(RefPtr<Rendezvous> here, int64_t step, std::function<const EdgeSource*(int64_t edge)> source_of,
                   std::function<void(const Status&)> failed)
      : here_(std::move(here)), step_(step), source_of_(std::move(source_of)), failed_(std::move(failed)) {}

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
      asked_.emplace(id, Asked{std::move(done), key->edge, source->worker});
    }
    CallOptions call;
    call.cancellation = &cancellation_;
    source->worker->RecvTensor(
        call, {.step = {.session = source->session, .step = step_}, .key = *key},
        [self = RefPtr<RemoteRendezvous>::Share(this), id](StatusOr<RecvTensorResponse> response) {
          self->Answer(id, std::move(response));
        });
  }

  void Abort(const Status& why) override {
    std::map<int64_t, Asked> asked;
    {
      absl::MutexLock lock(&mu_);
      if (!aborted_.ok()) return;
      aborted_ = why;
      asked.swap(asked_);
    }
    for (auto& [id, a] : asked) std::move(a.done)(why, Tensor(), false);
    cancellation_.Cancel(why);
    here_->Abort(why);
  }

  void Describe(std::vector<std::string>* lines) override {
    absl::MutexLock lock(&mu_);
    size_t n = 0;
    for (const auto& [id, asked] : asked_) {
      if (++n > 10) break;
      lines->push_back(absl::StrCat("waits for edge ", asked.edge, " from ", asked.worker->task()));
    }
    if (n > 10) lines->push_back(absl::StrCat("and for ", asked_.size() - 10, " more"));
  }

 private:
  struct Asked {
    DoneCallback done;
    int64_t edge = 0;
    const WorkerInterface* worker = nullptr;
  };

  void Answer(int64_t id, StatusOr<RecvTensorResponse> response) {
    DoneCallback done;
    {
      absl::MutexLock lock(&mu_);
      auto it = asked_.find(id);
      if (it == asked_.end()) return;  // aborted
      done = std::move(it->second.done);
      asked_.erase(it);
    }
    if (!response.ok()) {
      failed_(response.status());
      return std::move(done)(response.status(), Tensor(), false);
    }
    std::move(done)(absl::OkStatus(), std::move(response->tensor.value), response->tensor.is_dead);
  }

  const RefPtr<Rendezvous> here_;
  const int64_t step_;
  const std::function<const EdgeSource*(int64_t edge)> source_of_;
  const std::function<void(const Status&)> failed_;
  CancellationManager cancellation_;  // of what is asked for
  absl::Mutex mu_;
  Status aborted_ ABSL_GUARDED_BY(mu_);
  int64_t next_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<int64_t, Asked> asked_ ABSL_GUARDED_BY(mu_);  // of other workers, not answered yet
};

}  // namespace

RefPtr<StepRendezvous> NewStepRendezvous(
    RefPtr<Rendezvous> here, int64_t step, std::function<const EdgeSource*(int64_t edge)> source_of,
    std::function<void(const Status&)> failed) {
  return MakeRef<RemoteRendezvous>(std::move(here), step, std::move(source_of), std::move(failed));
}

}  // namespace millrace
