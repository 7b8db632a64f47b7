// SPDX-License-Identifier: Apache-2.0
// A call of a client that a Coordinator runs: for its own files.
#pragma once

#include <optional>

#include "base/current_thread.h"
#include "service/awaited.h"
#include "service/coordinator.h"

namespace millrace {

// On the stack of the call, or, when nobody waits for it, held by `self`. Guarded by the coordinator's lock but for
// Stop and Answer.
struct Coordinator::CallInFlight {
  virtual ~CallInFlight() = default;
  // May be called from any thread, several times, while it is in flight.
  virtual void Stop(const Status& why) = 0;
  virtual void Describe(std::vector<std::string>*) const {}
  // The last thing that Close does for a call that has left while it was being stopped.
  virtual void Answer() {}
  bool IsOnStackOf(uint32_t of) const { return !self && thread == of; }

  Interrupt* interrupt = nullptr;  // null: nothing interrupts it; constant
  std::shared_ptr<CallInFlight> self;
  const uint32_t thread = CurrentThread();  // that made it
  bool entered = false;
  bool changes_variables = false;    // has a turn to do so
  bool is_being_stopped = false;     // it must not leave
  bool leaves_when_stopped = false;  // it has left meanwhile
  // Neighbours among the calls in flight.
  CallInFlight* previous = nullptr;
  CallInFlight* next = nullptr;
  std::shared_ptr<CallInFlight> next_to_answer;
};

// A call that waits for answers of workers. It asks by itself whether the session has been closed.
class Coordinator::MessageCall final : public CallInFlight {
 public:
  explicit MessageCall(Coordinator& coordinator);
  ~MessageCall() override { coordinator_.Leave(this); }
  Status Begin();
  void Stop(const Status&) override {}

  template <typename Response>
  class Answer {
   public:
    explicit Answer(MessageCall& call) : call_(call) {}
    Reply<Response> reply() {
      return [answer = answer_](StatusOr<Response> response) { answer->Give(std::move(response)); };
    }
    StatusOr<Response> Wait() { return answer_->Wait(call_.coordinator_.env(), kInterruptPeriod, call_.keep_going_); }

   private:
    MessageCall& call_;
    const std::shared_ptr<Awaited<Response>> answer_ = std::make_shared<Awaited<Response>>();
  };

 private:
  Coordinator& coordinator_;
  const std::function<Status()> keep_going_;
  std::optional<Interrupt> own_interrupt_;
  std::optional<InterruptScope> scope_;
};

// A step's number, which ends with its scope: what comes before the end of the step may throw.
class Coordinator::OpenId {
 public:
  explicit OpenId(Coordinator& coordinator) : coordinator_(coordinator) {}
  ~OpenId() {
    if (id == 0) return;
    absl::MutexLock lock(&coordinator_.mu_);
    coordinator_.step_ids_.End(id);
  }
  OpenId(const OpenId&) = delete;
  OpenId& operator=(const OpenId&) = delete;
  int64_t Release() { return std::exchange(id, 0); }

  int64_t id = 0;  // 0: none

 private:
  Coordinator& coordinator_;
};

}  // namespace millrace
