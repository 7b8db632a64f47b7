// SPDX-License-Identifier: Apache-2.0
// Queues of tensors (white paper 4.6), shared by steps and sessions. Thread-safe.
//
// An element is one tensor per component. Who cannot go on waits without a thread, in the order of arrival, one line of
// those who bring and one of those who take; a callback ends each wait exactly once: with what was asked for, when the
// queue closes, or when the step is cancelled. A callback may run inside the call or on the thread of whoever made the
// wait end, never under the queue's lock; it may use the queue again.
//
// EnqueueMany puts in what fits and waits with the rest; what is in stays in. DequeueMany takes what is there and waits
// for the rest (of a PriorityQueue nothing until all are there); when it ends without all of it, what it took goes back
// to where it was.
#pragma once

#include <array>
#include <deque>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "kernel/kernel.h"
#include "kernels/shared/philox.h"

namespace millrace {

class Queue : public Resource {
 public:
  using Element = absl::InlinedVector<Tensor, 2>;
  using DoneCallback = absl::AnyInvocable<void(Status) &&>;
  using ElementCallback = absl::AnyInvocable<void(Status, Element) &&>;
  static constexpr int64_t kUnbounded = std::numeric_limits<int32_t>::max();

  struct Options {
    std::string kind;  // "FIFOQueue", of error messages
    std::string name;
    std::vector<DType> types;
    std::vector<PartialShape> shapes;  // one per component, or none: any
    int64_t capacity = kUnbounded;
    std::array<int64_t, 2> seeds = {0, 0};  // of a RandomShuffleQueue, as its node has them
  };

  const Options& options() const { return options_; }
  const std::vector<DType>& types() const { return options_.types; }
  std::string DebugString() const override;
  // InvalidArgument, saying what differs, unless `declared` describes this queue.
  virtual Status Matches(const Queue& declared) const;

  // `cancellation` may be null. It must live until the callback has run.
  void Enqueue(Element element, CancellationManager* cancellation, DoneCallback done);
  // Component tensors have a first dimension more, of one size.
  void EnqueueMany(Element batch, CancellationManager* cancellation, DoneCallback done);
  void Dequeue(CancellationManager* cancellation, ElementCallback done);
  // n elements, stacked. `up_to`: when the queue is closed, what is left is enough unless there is nothing.
  void DequeueMany(int64_t n, bool up_to, CancellationManager* cancellation, ElementCallback done);
  // Later enqueues fail; dequeues go on until too little is left. Those that wait to enqueue are let in before the
  // queue closes, or are cancelled.
  void Close(bool cancel_pending_enqueues, CancellationManager* cancellation, DoneCallback done);
  bool IsClosed() const;
  int64_t Size() const;

  // What an element looks like: kinds, number and shapes of components.
  Status CheckElement(const Element& element) const;
  Status CheckBatch(const Element& batch) const;

 protected:
  explicit Queue(Options options) : options_(std::move(options)) {}
  ~Queue() override;

  // The order of elements is the kind's. All of these are called under the lock, Pop only when there is something.
  virtual void Push(Element element) = 0;
  virtual Element Pop() = 0;
  virtual void PutBack(Element element) = 0;  // undoes the last Pop that was not undone
  virtual int64_t Stored() const = 0;
  // How many of the stored elements stay while the queue is open.
  virtual int64_t Reserve() const { return 0; }
  // Whether who finds too few elements in a closed queue gives back what it took, and DequeueUpTo takes the rest.
  virtual bool KeepsRest() const { return true; }
  // Whether elements asked for at once are taken when all of them are there, so that they are the first of all.
  virtual bool LeaveTogether() const { return false; }
  // Whether a large element may be a part of a batch's memory; else it is copied.
  virtual bool MayShareBatch() const { return true; }

 private:
  Status CheckStackable() const;

  struct Waiter;
  using WaiterPtr = std::shared_ptr<Waiter>;
  using Line = std::deque<WaiterPtr>;

  // Joins a line, and ends at once if it can.
  void Wait(WaiterPtr waiter) ABSL_LOCKS_EXCLUDED(mu_);
  void Withdraw(const WaiterPtr& waiter, std::vector<WaiterPtr>* ended) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Line& LineOf(const Waiter& w) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // True when it has ended.
  bool TryEnqueue(Waiter& w) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool TryDequeue(Waiter& w) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void GiveBack(Waiter& w) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Serves whoever can be served, and moves them to `ended`.
  void Serve(std::vector<WaiterPtr>* ended) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  int64_t Available() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Cancel(const WaiterPtr& waiter);
  void End(Waiter& w);
  void End(std::vector<WaiterPtr> ended);
  void EndDequeue(Waiter& w);

  const Options options_;
  mutable absl::Mutex mu_;
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
  Line enqueuers_ ABSL_GUARDED_BY(mu_);
  Line dequeuers_ ABSL_GUARDED_BY(mu_);
};

// In the order of arrival.
StatusOr<RefPtr<Queue>> NewFifoQueue(Queue::Options options);
// The same; components' shapes may be unknown in part, and stacking pads with zeros.
StatusOr<RefPtr<Queue>> NewPaddingFifoQueue(Queue::Options options);
// In an order that `random` draws, among at least min_after_dequeue + 1 elements while it is open.
StatusOr<RefPtr<Queue>> NewRandomShuffleQueue(Queue::Options options, int64_t min_after_dequeue, const Philox& random);
// The smallest first component first, equals in the order of arrival. `options` tells of the other components.
StatusOr<RefPtr<Queue>> NewPriorityQueue(Queue::Options options);

}  // namespace millrace
