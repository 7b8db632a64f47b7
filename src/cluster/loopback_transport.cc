// SPDX-License-Identifier: Apache-2.0
#include "cluster/loopback_transport.h"

#include <atomic>
#include <optional>

#include "absl/strings/strip.h"
#include "base/pool_env.h"

namespace millrace {
namespace {

// A call under way. The reply comes once: the handler's, a cancellation, the end of its time.
struct Pending {
  explicit Pending(RpcReply r) : reply(std::move(r)) {}
  void Answer(StatusOr<absl::Cord> answer) {
    std::optional<RpcReply> once;
    {
      absl::MutexLock lock(&mu);
      once.swap(reply);
    }
    if (once) std::move (*once)(std::move(answer));
  }
  void GiveUp(const Status& why) {
    context.Cancel();
    Answer(why);
  }
  absl::Mutex mu;
  std::optional<RpcReply> reply ABSL_GUARDED_BY(mu);
  CancellationManager context;  // of the side that serves
};

}  // namespace

struct LoopbackTransport::Shared {
  struct Entry {
    RpcHandler* handler = nullptr;
    absl::Mutex mu;
    bool is_open ABSL_GUARDED_BY(mu) = true;
    int64_t num_calls ABSL_GUARDED_BY(mu) = 0;
    std::map<const Pending*, std::weak_ptr<Pending>> pending ABSL_GUARDED_BY(mu);
  };
  Env* env = nullptr;
  std::atomic<int64_t> num_calls{0}, num_bytes{0};
  absl::Mutex mu;
  int next_port ABSL_GUARDED_BY(mu) = 1;
  std::map<std::string, std::shared_ptr<Entry>> servers ABSL_GUARDED_BY(mu);
};

class LoopbackTransport::Server final : public RpcServer {
 public:
  Server(std::shared_ptr<Shared> shared, std::string address, std::shared_ptr<Shared::Entry> entry)
      : shared_(std::move(shared)), address_(std::move(address)), entry_(std::move(entry)) {}
  ~Server() override {
    {
      absl::MutexLock lock(&shared_->mu);
      shared_->servers.erase(address_);
    }
    std::map<const Pending*, std::weak_ptr<Pending>> pending;
    {
      absl::MutexLock lock(&entry_->mu);
      entry_->is_open = false;
      pending.swap(entry_->pending);
    }
    for (const auto& [key, weak] : pending) {
      if (const auto p = weak.lock()) p->context.Cancel();
    }
    absl::MutexLock lock(&entry_->mu);
    EnvOf(ProcessThreadPool())
        .Await(entry_->mu, absl::Condition(+[](int64_t* calls) { return *calls == 0; }, &entry_->num_calls));
  }
  std::string address() const override { return address_; }

 private:
  const std::shared_ptr<Shared> shared_;
  const std::string address_;
  const std::shared_ptr<Shared::Entry> entry_;
};

class LoopbackTransport::Channel final : public RpcChannel {
 public:
  Channel(std::shared_ptr<Shared> shared, std::string address)
      : shared_(std::move(shared)), address_(std::move(address)) {}

  void Call(absl::string_view method, const RpcOptions& options, absl::Cord request, RpcReply reply) override {
    const auto pending = std::make_shared<Pending>(std::move(reply));
    std::shared_ptr<Shared::Entry> entry;
    {
      absl::MutexLock lock(&shared_->mu);
      const auto at = shared_->servers.find(address_);
      if (at != shared_->servers.end()) entry = at->second;
    }
    bool is_there = false;
    if (entry) {
      absl::MutexLock lock(&entry->mu);
      is_there = entry->is_open;
      if (is_there) ++entry->num_calls, entry->pending.emplace(pending.get(), pending);
    }
    if (!is_there) return pending->Answer(Unavailable("nobody listens at ", address_));
    const std::weak_ptr<Pending> weak = pending;
    CancellationManager::Token token = CancellationManager::kInvalid;
    if (options.cancellation) {
      token = options.cancellation->Register([weak] {
        if (const auto p = weak.lock()) p->GiveUp(Cancelled("the call was cancelled"));
      });
      if (token == CancellationManager::kInvalid) pending->GiveUp(Cancelled("the call was cancelled"));
    }
    if (shared_->env != nullptr && options.timeout < absl::InfiniteDuration()) {
      shared_->env->ScheduleAfter(options.timeout, [weak] {
        if (const auto p = weak.lock()) p->GiveUp(DeadlineExceeded("the call took longer than it may"));
      });
    }
    shared_->num_calls.fetch_add(1);
    shared_->num_bytes.fetch_add(static_cast<int64_t>(request.size()));
    const RpcContext context{"loopback", options.timeout, &pending->context};
    entry->handler->Handle(
        method, context, std::move(request), [shared = shared_, entry, pending](StatusOr<absl::Cord> answer) {
          if (answer.ok()) shared->num_bytes.fetch_add(static_cast<int64_t>(answer->size()));
          pending->Answer(std::move(answer));
          absl::MutexLock lock(&entry->mu);
          entry->pending.erase(pending.get());
          --entry->num_calls;
        });
  }

 private:
  const std::shared_ptr<Shared> shared_;
  const std::string address_;
};

LoopbackTransport::LoopbackTransport(Env* env) : shared_(std::make_shared<Shared>()) { shared_->env = env; }

StatusOr<std::unique_ptr<RpcServer>> LoopbackTransport::Listen(const RpcServerOptions& options, RpcHandler* handler) {
  auto entry = std::make_shared<Shared::Entry>();
  entry->handler = handler;
  std::string address = options.address;
  absl::MutexLock lock(&shared_->mu);
  if (absl::string_view host = address; absl::ConsumeSuffix(&host, ":0")) {
    address = absl::StrCat(host, ":", shared_->next_port++);
  }
  if (!shared_->servers.emplace(address, entry).second) return Unavailable(address, " is taken");
  return std::unique_ptr<RpcServer>(std::make_unique<Server>(shared_, address, std::move(entry)));
}

StatusOr<std::unique_ptr<RpcChannel>> LoopbackTransport::Connect(const std::string& address) {
  return std::unique_ptr<RpcChannel>(std::make_unique<Channel>(shared_, address));
}

int64_t LoopbackTransport::num_calls() const { return shared_->num_calls.load(); }
int64_t LoopbackTransport::num_bytes() const { return shared_->num_bytes.load(); }

}  // namespace millrace
