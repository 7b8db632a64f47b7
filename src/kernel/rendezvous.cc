// SPDX-License-Identifier: Apache-2.0
#include "kernel/rendezvous.h"

#include <optional>
#include <vector>

#include "absl/strings/str_format.h"

namespace millrace {
namespace {

class LocalRendezvous : public Rendezvous {
 public:
  Status Send(absl::string_view key, Tensor value, bool is_dead) override {
    DoneCallback waiter;
    {
      absl::MutexLock lock(&mu_);
      if (!aborted_.ok()) return aborted_;
      Item& item = items_[key];
      if (item.sent) return Aborted("two sends of '", key, "' in one step");
      item.sent = true;
      if (!item.waiter) {
        item.value = std::move(value);
        item.is_dead = is_dead;
        return absl::OkStatus();
      }
      waiter = *std::move(item.waiter);
      item.waiter.reset();
    }
    std::move(waiter)(absl::OkStatus(), std::move(value), is_dead);
    return absl::OkStatus();
  }

  void RecvAsync(absl::string_view key, DoneCallback done) override {
    Status status;
    Tensor value;
    bool is_dead = false;
    {
      absl::MutexLock lock(&mu_);
      Item* item = aborted_.ok() ? &items_[key] : nullptr;
      if (!item) {
        status = aborted_;
      } else if (item->received) {
        status = Aborted("two receives of '", key, "' in one step");
      } else {
        item->received = true;
        if (!item->sent) {
          item->waiter = std::move(done);
          return;
        }
        value = std::move(item->value);
        is_dead = item->is_dead;
      }
    }
    std::move(done)(status, std::move(value), is_dead);
  }

  void Abort(const Status& why) override {
    std::vector<DoneCallback> waiters;
    {
      absl::MutexLock lock(&mu_);
      if (!aborted_.ok()) return;
      aborted_ = why;
      for (auto& [key, item] : items_) {
        if (item.waiter) waiters.push_back(*std::move(item.waiter));
      }
      items_.clear();
    }
    for (DoneCallback& waiter : waiters) std::move(waiter)(why, Tensor(), false);
  }

 private:
  struct Item {
    bool sent = false;
    bool received = false;
    bool is_dead = false;
    Tensor value;
    std::optional<DoneCallback> waiter;
  };
  absl::Mutex mu_;
  Status aborted_ ABSL_GUARDED_BY(mu_);
  absl::flat_hash_map<std::string, Item> items_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

std::string Rendezvous::Key(absl::string_view src_device, uint64_t src_incarnation, absl::string_view dst_device,
                            absl::string_view name, uint64_t frame, int64_t iteration) {
  return absl::StrCat(src_device, ";", absl::Hex(src_incarnation, absl::kZeroPad16), ";", dst_device, ";", name, ";",
                      frame, ":", iteration);
}

RefPtr<Rendezvous> NewLocalRendezvous() { return MakeRef<LocalRendezvous>(); }

}  // namespace millrace
