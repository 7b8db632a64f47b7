// SPDX-License-Identifier: Apache-2.0
// A worker in another process, as messages over a channel.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "cluster/channels.h"
#include "service/worker_methods.h"

namespace millrace {

class RemoteWorker final : public WorkerInterface {
 public:
  // Connects with its first call. `channels` outlives it.
  RemoteWorker(std::string task, std::string address, Channels* channels);
  ~RemoteWorker() override;
  // Gives up the calls under way, refuses others, and returns when all have been replied to. What comes of a reply may
  // call other workers: who destroys several closes all of them first.
  void Close();
  const std::string& task() const override { return task_; }

#define MR_DECLARE(Method, Request, Response) \
  void Method(const CallOptions& call, Request request, Reply<Response> reply) override;
  MR_WORKER_METHODS(MR_DECLARE)
#undef MR_DECLARE

  void SetDead(const Status& why) override;
  std::shared_ptr<InlinePartition> FindInline(const SessionRef&, int64_t) override { return nullptr; }

 private:
  template <typename Request, typename Response>
  void Send(const char* method, absl::Duration timeout, const CallOptions& call, Request request,
            Reply<Response> reply);
  template <typename Request, typename Response>
  void SendNow(const char* method, absl::Duration timeout, const CallOptions& call, Request request,
               Reply<Response> reply);

  // Without an answer.
  template <typename Request>
  Status Tell(const char* method, Request& request);

  // A call under way: given up by its caller, by the end of this, or since the worker is dead.
  struct CallUnderWay {
    CancellationManager cancellation;
    bool is_heartbeat = false;
    int64_t number = 0;  // the order in which calls began, and are given up: the same in each run of a simulated world
  };
  struct Earlier {
    bool operator()(const std::shared_ptr<CallUnderWay>& a, const std::shared_ptr<CallUnderWay>& b) const {
      return a->number < b->number;
    }
  };
  using CallsUnderWay = std::set<std::shared_ptr<CallUnderWay>, Earlier>;
  // What is over need not be said at once: the next step's message says it too, or a heartbeat comes with it.
  Status TellLater(CleanUpStepsRequest request);
  StepHorizon TakeToTell(const SessionRef& session);
  void TellNow();
  // Null: it is closed.
  std::shared_ptr<CallUnderWay> Begin(CancellationManager* of_caller, bool is_heartbeat);
  void End(const std::shared_ptr<CallUnderWay>& call);
  Status dead() const;
  Status Annotated(const Status& s) const;

  const std::string task_, address_;
  Channels* const channels_;
  mutable absl::Mutex mu_;
  bool is_closed_ ABSL_GUARDED_BY(mu_) = false;
  Status dead_ ABSL_GUARDED_BY(mu_);
  int64_t next_call_ ABSL_GUARDED_BY(mu_) = 0;
  CallsUnderWay under_way_ ABSL_GUARDED_BY(mu_);
  std::map<uint64_t, CleanUpStepsRequest> to_tell_ ABSL_GUARDED_BY(mu_);  // by session
};

}  // namespace millrace
