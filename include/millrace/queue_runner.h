// SPDX-License-Identifier: Apache-2.0
// Threads that fill a queue.
//
//   millrace::QueueRunner runner(scope, queue, {enqueue, enqueue});   // two threads
//   runner.Start(session, coordinator);
//   ... run steps that dequeue ...
//   coordinator.RequestStop();
//   auto status = coordinator.Join();
#pragma once

#include <atomic>
#include <memory>

#include "millrace/coordinator.h"
#include "millrace/session.h"

namespace millrace {
inline namespace MILLRACE_CLIENT {

// Makes two operations that close the queue: one lets in who waits, one cancels them. Start gives each operation of
// `enqueue` a thread that runs it again and again: until the coordinator stops, or the data ends (TF_OUT_OF_RANGE); the
// last one to find their end closes the queue, and its readers get what is left. A stop cancels enqueues that wait.
class QueueRunner {
 public:
  // Of a queue by its handle, and the operations that put something into it.
  QueueRunner(Scope scope, Output queue, std::vector<Operation> enqueue) : enqueue_(std::move(enqueue)) {
    const bool resource = queue.dtype() == DType::kResource;
    const char* const type = resource ? "QueueCloseV2" : "QueueClose";
    close_ = scope.Op(type, {queue});
    cancel_ = scope.Op(type, {queue}, {{"cancel_pending_enqueues", true}});
  }

  // The session is shared with the threads; the coordinator must outlive them.
  void Start(const Session& session, Coordinator& coordinator) const {
    auto left = std::make_shared<std::atomic<size_t>>(enqueue_.size());
    coordinator.OnStop([session, cancel = cancel_] { (void)Run(session, cancel); });
    for (const Operation& op : enqueue_) {
      coordinator.Start([session, op, left, close = close_, &coordinator]() -> Status {
        Status s;
        while (s.ok() && !coordinator.ShouldStop()) s = Run(session, op);
        if (--*left == 0 && s.code() == TF_OUT_OF_RANGE) (void)Run(session, close);
        // What was cancelled because of the stop is no error of its own, and the end of the data stops nobody else.
        return s.code() == TF_OUT_OF_RANGE || coordinator.ShouldStop() ? Status() : s;
      });
    }
  }
  // Closes the queue; what waits to get in still does.
  const Operation& close() const { return close_; }
  // Closes it and cancels what waits to get in.
  const Operation& cancel() const { return cancel_; }

 private:
  static Status Run(const Session& session, const Operation& op) {
#if MILLRACE_EXCEPTIONS
    try {
      session.RunTargets({op});
      return Status();
    } catch (const Error& e) {
      return Status(e.code(), e.what());
    }
#else
    return session.RunTargets({op});
#endif
  }

  std::vector<Operation> enqueue_;
  Operation close_, cancel_;
};

}  // namespace MILLRACE_CLIENT
}  // namespace millrace
