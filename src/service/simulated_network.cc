// SPDX-License-Identifier: Apache-2.0
#include "service/simulated_network.h"

#include <optional>

#include "service/copy_message.h"
#include "service/worker_methods.h"

namespace millrace {

class SimulatedNetwork::StubWorker final : public WorkerInterface {
 public:
  StubWorker(SimulatedNetwork& network, std::string task) : network_(network), task_(std::move(task)) {}
  const std::string& task() const override { return task_; }

#define MR_SEND(Method, Request, Response)                                                \
  void Method(const CallOptions& call, Request request, Reply<Response> reply) override { \
    Send(call, std::move(request), std::move(reply), &WorkerInterface::Method);           \
  }
  MR_WORKER_METHODS(MR_SEND)
#undef MR_SEND

  std::shared_ptr<InlinePartition> FindInline(const SessionRef&, int64_t) override { return nullptr; }

 private:
  // A call from its sending until its reply: which comes once, the first of the answer, a cancellation, a death.
  template <typename Response>
  struct Pending {
    explicit Pending(Reply<Response> r) : reply(std::move(r)) {}
    void Answer(StatusOr<Response> response) {
      if (!reply) return;
      Reply<Response> once = *std::move(reply);
      reply.reset();
      std::move(once)(std::move(response));
    }
    std::optional<Reply<Response>> reply;
  };

  template <typename Request, typename Response>
  using MethodOf = void (WorkerInterface::*)(const CallOptions&, Request, Reply<Response>);

  template <typename Request, typename Response>
  void Send(const CallOptions& call, Request request, Reply<Response> reply, MethodOf<Request, Response> method) {
    const auto pending = std::make_shared<Pending<Response>>(std::move(reply));
    if (call.cancellation) {
      const auto token = call.cancellation->Register([weak = std::weak_ptr(pending)] {
        if (const auto p = weak.lock()) p->Answer(Cancelled("the call was cancelled"));
      });
      if (token == CancellationManager::kInvalid) return pending->Answer(Cancelled("the call was cancelled"));
    }
    const Status s = OwnTensors(request);
    if (!s.ok()) return pending->Answer(s);
    ++network_.num_messages_;
    network_.after_(network_.Delay(), [this, pending, method, request = std::move(request)]() mutable {
      Deliver(pending, method, std::move(request));
    });
  }

  template <typename Request, typename Response>
  void Deliver(const std::shared_ptr<Pending<Response>>& pending, MethodOf<Request, Response> method, Request request) {
    const Host& host = network_.hosts_[task_];
    if (host.worker == nullptr) return pending->Answer(Unavailable("there is no worker ", task_));
    CallOptions there;
    there.caller = host.thread;
    there.runs_here = true;
    (host.worker->*method)(there, std::move(request), [this, pending, life = host.life](StatusOr<Response> response) {
      if (response.ok()) {
        if (Status s = OwnTensors(*response); !s.ok()) response = s;
      }
      ++network_.num_messages_;
      network_.after_(network_.Delay(), [this, pending, life, response = std::move(response)]() mutable {
        const bool died = network_.hosts_[task_].life != life;
        pending->Answer(died ? Unavailable("worker ", task_, " died") : std::move(response));
      });
    });
  }

  SimulatedNetwork& network_;
  const std::string task_;
};

class SimulatedNetwork::Directory final : public WorkerDirectory {
 public:
  explicit Directory(SimulatedNetwork& network) : network_(network) {}
  WorkerInterface* Find(absl::string_view task) override { return network_.Stub(std::string(task)); }

 private:
  SimulatedNetwork& network_;
};

SimulatedNetwork::SimulatedNetwork(uint64_t seed, absl::Duration longest_delay, After after)
    : random_(seed * 2 + 1),
      longest_delay_(longest_delay),
      after_(std::move(after)),
      directory_(std::make_unique<Directory>(*this)) {}

SimulatedNetwork::~SimulatedNetwork() = default;

absl::Duration SimulatedNetwork::Delay() {
  random_ = random_ * 6364136223846793005u + 1442695040888963407u;
  return longest_delay_ * (static_cast<double>(random_ >> 33) / 2147483648.0);
}

void SimulatedNetwork::Attach(WorkerInterface* worker, StepThread* thread) {
  Host& host = hosts_[worker->task()];
  host.worker = worker;
  host.thread = thread;
}

void SimulatedNetwork::Detach(const std::string& task) {
  Host& host = hosts_[task];
  host.worker = nullptr;
  ++host.life;
}

WorkerInterface* SimulatedNetwork::Stub(const std::string& task) {
  std::unique_ptr<StubWorker>& stub = stubs_[task];
  if (!stub) stub = std::make_unique<StubWorker>(*this, task);
  return stub.get();
}

WorkerDirectory* SimulatedNetwork::directory() { return directory_.get(); }

}  // namespace millrace
