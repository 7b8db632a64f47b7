// SPDX-License-Identifier: Apache-2.0
#include "service/step_rendezvous.h"

#include <map>
#include <tuple>
#include <utility>

namespace millrace {
namespace {

class RemoteRendezvous final : public StepRendezvous {
 public:
  RemoteRendezvous(RefPtr<Rendezvous> here, int64_t step, std::function<const EdgePeer*(int64_t edge)> peer_of,
                   std::function<void(const Status&)> failed, std::function<void(const Tensor&)> got_pushed)
      : here_(std::move(here)),
        step_(step),
        peer_of_(std::move(peer_of)),
        failed_(std::move(failed)),
        got_pushed_(std::move(got_pushed)) {}

  Status Send(absl::string_view text, Tensor value, bool is_dead) override {
    MR_ASSIGN_OR_RETURN(const EdgeKey key, EdgeKey::Parse(text));
    const EdgePeer* const peer = peer_of_(key.edge);
    if (peer == nullptr || !IsPushed(*peer, key)) return here_->Send(text, std::move(value), is_dead);
    MR_RETURN_IF_ERROR(here_->Send(text, value, is_dead));
    peer->worker->SendTensor(
        {}, {StepAt(*peer), key, {std::move(value), is_dead}}, [](const StatusOr<SendTensorResponse>&) {});
    return absl::OkStatus();
  }

  void RecvAsync(absl::string_view text, DoneCallback done) override {
    const StatusOr<EdgeKey> key = EdgeKey::Parse(text);
    if (!key.ok()) return std::move(done)(key.status(), Tensor(), false);
    const EdgePeer* const peer = peer_of_(key->edge);
    if (peer == nullptr) return here_->RecvAsync(text, std::move(done));
    const bool is_pushed = IsPushed(*peer, *key);
    int64_t id = 0;
    {
      absl::ReleasableMutexLock lock(&mu_);
      if (!aborted_.ok()) {
        const Status why = aborted_;
        lock.Release();
        return std::move(done)(why, Tensor(), false);
      }
      id = next_++;
      awaited_.emplace(id, Awaited{std::move(done), *key, *peer, is_pushed ? Way::kPushed : Way::kAskedFor});
    }
    if (!is_pushed) return Ask(id, *key, *peer);
    here_->RecvAsync(
        text, [self = RefPtr<RemoteRendezvous>::Share(this), id](const Status& s, Tensor value, bool is_dead) {
          if (s.ok()) self->got_pushed_(value);
          self->Answer(id, s.ok() ? RecvTensorResponse{{std::move(value), is_dead}} : StatusOr<RecvTensorResponse>(s));
        });
  }

  void AskForMissing() override {
    std::vector<std::tuple<int64_t, EdgeKey, EdgePeer>> missing;
    {
      absl::MutexLock lock(&mu_);
      for (auto& [id, a] : awaited_) {
        if (a.way == Way::kMissed) missing.emplace_back(id, a.key, a.peer);
        if (a.way != Way::kAskedFor) a.way = a.way == Way::kMissed ? Way::kAskedFor : Way::kMissed;
      }
    }
    for (const auto& [id, key, peer] : missing) Ask(id, key, peer);
  }

  void Abort(const Status& why) override {
    std::map<int64_t, Awaited> awaited;
    {
      absl::MutexLock lock(&mu_);
      if (!aborted_.ok()) return;
      aborted_ = why;
      awaited.swap(awaited_);
    }
    for (auto& [id, a] : awaited) std::move(a.done)(why, Tensor(), false);
    cancellation_.Cancel(why);
    here_->Abort(why);
  }

  void Describe(std::vector<std::string>* lines) override {
    absl::MutexLock lock(&mu_);
    size_t n = 0;
    for (const auto& [id, a] : awaited_) {
      if (++n > 10) break;
      lines->push_back(absl::StrCat("waits for edge ", a.key.edge, " from ", a.peer.worker->task()));
    }
    if (n > 10) lines->push_back(absl::StrCat("and for ", awaited_.size() - 10, " more"));
  }

 private:
  enum class Way {
    kPushed,
    kMissed,  // pushed, and AskForMissing has noticed that it is not there
    kAskedFor
  };
  struct Awaited {
    DoneCallback done;
    EdgeKey key;
    EdgePeer peer;
    Way way = Way::kAskedFor;
  };

  // A loop may send more than can be kept.
  static bool IsPushed(const EdgePeer& peer, const EdgeKey& key) { return peer.is_pushed && key.frame == 0; }
  StepRef StepAt(const EdgePeer& peer) const { return {.session = peer.session, .step = step_}; }

  void Ask(int64_t id, const EdgeKey& key, const EdgePeer& peer) {
    CallOptions call;
    call.cancellation = &cancellation_;
    peer.worker->RecvTensor(
        call, {StepAt(peer), key},
        [self = RefPtr<RemoteRendezvous>::Share(this), id](StatusOr<RecvTensorResponse> response) {
          self->Answer(id, std::move(response));
        });
  }

  void Answer(int64_t id, StatusOr<RecvTensorResponse> response) {
    DoneCallback done;
    {
      absl::MutexLock lock(&mu_);
      auto it = awaited_.find(id);
      if (it == awaited_.end()) return;  // aborted, or it has come on the other way
      done = std::move(it->second.done);
      awaited_.erase(it);
    }
    if (!response.ok()) {
      failed_(response.status());
      return std::move(done)(response.status(), Tensor(), false);
    }
    std::move(done)(absl::OkStatus(), std::move(response->tensor.value), response->tensor.is_dead);
  }

  const RefPtr<Rendezvous> here_;
  const int64_t step_;
  const std::function<const EdgePeer*(int64_t edge)> peer_of_;
  const std::function<void(const Status&)> failed_;
  const std::function<void(const Tensor&)> got_pushed_;
  CancellationManager cancellation_;  // of what is asked for
  absl::Mutex mu_;
  Status aborted_ ABSL_GUARDED_BY(mu_);
  int64_t next_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<int64_t, Awaited> awaited_ ABSL_GUARDED_BY(mu_);  // of other workers, not come yet
};

}  // namespace

RefPtr<StepRendezvous> NewStepRendezvous(
    RefPtr<Rendezvous> here, int64_t step, std::function<const EdgePeer*(int64_t edge)> peer_of,
    std::function<void(const Status&)> failed, std::function<void(const Tensor&)> got_pushed) {
  return MakeRef<RemoteRendezvous>(std::move(here), step, std::move(peer_of), std::move(failed), std::move(got_pushed));
}

}  // namespace millrace
