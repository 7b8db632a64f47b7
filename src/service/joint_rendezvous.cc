// SPDX-License-Identifier: Apache-2.0
#include "service/joint_rendezvous.h"

#include <map>
#include <utility>

namespace millrace {
namespace {

class JointRendezvous : public Rendezvous {
 public:
  JointRendezvous(int64_t step_id, const absl::flat_hash_set<std::string>& own_devices, Transport* transport)
      : step_id_(step_id), own_devices_(own_devices), transport_(transport), local_(NewLocalRendezvous()) {}

  Status Send(absl::string_view key, Tensor value, bool is_dead) override {
    return local_->Send(key, std::move(value), is_dead);
  }

  void RecvAsync(absl::string_view key, DoneCallback done) override {
    const absl::string_view device = key.substr(0, key.find(';'));
    if (own_devices_.contains(device)) return local_->RecvAsync(key, std::move(done));
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
    transport_->RecvAsync(
        device, step_id_, key,
        [self = RefPtr<JointRendezvous>::Share(this), id](const Status& s, Tensor value, bool is_dead) {
          self->Answer(id, s, std::move(value), is_dead);
        });
  }

  // Does not wait for the answers of other workers: those that still come are dropped.
  void Abort(const Status& why) override {
    std::map<int64_t, DoneCallback> asked;
    {
      absl::MutexLock lock(&mu_);
      if (!aborted_.ok()) return;
      aborted_ = why;
      asked.swap(asked_);
    }
    for (auto& [id, done] : asked) std::move(done)(why, Tensor(), false);
    local_->Abort(why);
  }

 private:
  void Answer(int64_t id, const Status& s, Tensor value, bool is_dead) {
    DoneCallback done;
    {
      absl::MutexLock lock(&mu_);
      auto it = asked_.find(id);
      if (it == asked_.end()) return;
      done = std::move(it->second);
      asked_.erase(it);
    }
    std::move(done)(s, std::move(value), is_dead);
  }

  const int64_t step_id_;
  const absl::flat_hash_set<std::string>& own_devices_;
  Transport* const transport_;
  const RefPtr<Rendezvous> local_;
  absl::Mutex mu_;
  Status aborted_ ABSL_GUARDED_BY(mu_);
  int64_t next_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<int64_t, DoneCallback> asked_ ABSL_GUARDED_BY(mu_);  // of other workers, not answered yet
};

}  // namespace

RefPtr<Rendezvous> NewJointRendezvous(int64_t step_id, const absl::flat_hash_set<std::string>& own_devices,
                                      Transport* transport) {
  return MakeRef<JointRendezvous>(step_id, own_devices, transport);
}

}  // namespace millrace
