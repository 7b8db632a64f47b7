// SPDX-License-Identifier: Apache-2.0
#include "kernel/rendezvous.h"

#include <functional>
#include <optional>
#include <unordered_map>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"

namespace millrace {
namespace {

// Looks a key up without making a string of it. (Abseil's hash maps break when they cannot grow.)
struct KeyHash {
  using is_transparent = void;
  size_t operator()(absl::string_view key) const { return std::hash<std::string_view>()({key.data(), key.size()}); }
};
struct KeyEqual {
  using is_transparent = void;
  bool operator()(absl::string_view a, absl::string_view b) const { return a == b; }
};

class LocalRendezvous : public Rendezvous {
 public:
  Status Send(absl::string_view key, Tensor value, bool is_dead) override {
    DoneCallback waiter;
    {
      absl::MutexLock lock(&mu_);
      if (!aborted_.ok()) return aborted_;
      const auto at = FindOrAdd(key);
      Item& item = at->second;
      if (item.sent) return Aborted("two sends of '", key, "' in one step");
      item.sent = true;
      if (!item.waiter) {
        item.value = std::move(value);
        item.is_dead = is_dead;
        return absl::OkStatus();
      }
      waiter = *std::move(item.waiter);
      item.waiter.reset();
      ForgetInLoop(at);
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
      if (!aborted_.ok()) {
        status = aborted_;
      } else {
        const auto at = FindOrAdd(key);
        Item& item = at->second;
        if (item.received) {
          status = Aborted("two receives of '", key, "' in one step");
        } else {
          item.received = true;
          if (!item.sent) {
            item.waiter = std::move(done);
            return;
          }
          value = std::move(item.value);
          is_dead = item.is_dead;
          ForgetInLoop(at);
        }
      }
    }
    std::move(done)(status, std::move(value), is_dead);
  }

  void Abort(const Status& why) override {
    Items items;
    {
      absl::MutexLock lock(&mu_);
      if (!aborted_.ok()) return;
      aborted_ = why;
      items.swap(items_);
    }
    for (auto& [key, item] : items) {
      if (item.waiter) (*std::move(item.waiter))(why, Tensor(), false);
    }
  }

 private:
  struct Item {
    bool sent = false;
    bool received = false;
    bool is_dead = false;
    Tensor value;
    std::optional<DoneCallback> waiter;
  };
  using Items = std::unordered_map<std::string, Item, KeyHash, KeyEqual>;

  Items::iterator FindOrAdd(absl::string_view key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const auto at = items_.find(key);
    return at != items_.end() ? at : items_.try_emplace(std::string(key)).first;
  }

  // A key outside of loops stays known, so that its second use is noticed. A loop may have more iterations than fit.
  void ForgetInLoop(Items::iterator at) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (!absl::EndsWith(at->first, ";0:0")) items_.erase(at);
  }

  absl::Mutex mu_;
  Status aborted_ ABSL_GUARDED_BY(mu_);
  Items items_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

RefPtr<Rendezvous> NewLocalRendezvous() { return MakeRef<LocalRendezvous>(); }

}  // namespace millrace
