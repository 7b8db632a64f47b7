// SPDX-License-Identifier: Apache-2.0
// One round of a group, on one of its tasks. The members of the task hand over their inputs; when all have, one value
// is made of them by memory. Tasks form a ring in the order of their members' ranks, and each asks its left neighbour
// for pieces:
//
//   A reduction is cut into as many blocks as there are tasks. Block b begins as task b's value; each task on the way
//   combines what it gets with its own, so that the last one, task b-1, has the block's result (reduce-scatter).
//   A whole value (a block's result, a task's part of a gather, a broadcast) goes from its owner around the ring.
//
// The order of combination is that of the ring, whoever comes first: every member gets the same bits, each time.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "kernel/collective.h"
#include "kernel/rendezvous.h"
#include "service/worker_interface.h"

namespace millrace {

// What the other members are told of a failure at `task`.
Status ForOthers(const std::string& task, const Status& why);

// What a round needs of its worker. Thread-safe; lives as long as the round.
class RoundHost {
 public:
  virtual ~RoundHost() = default;
  virtual const std::string& task() const = 0;
  virtual WorkerInterface* Peer(absl::string_view task) = 0;  // null: there is none
  // Runs `work` on the pool, or says why it does not: the worker ends, or there is no memory.
  virtual Status Schedule(absl::AnyInvocable<void()> work) = 0;
  virtual void ParallelFor(int64_t n, double cost, absl::FunctionRef<void(int64_t, int64_t)> fn) = 0;
  // Nobody needs the round any more. Who asks for it later is told `failure`; OK: that it is over.
  virtual void Forget(uint64_t round, const Status& failure) = 0;
};

// Thread-safe.
class CollectiveRound : public std::enable_shared_from_this<CollectiveRound> {
 public:
  CollectiveRound(std::shared_ptr<RoundHost> host, uint64_t id);

  // A member of this task, which has been told who the others are. `done` is called once; `call.cancellation` is not
  // looked at.
  void Add(CollectiveCall call, const JoinCollectiveResponse& told, CollectiveExecutor::Done done);
  // A piece for the right neighbour. May throw for want of memory.
  void Recv(const std::string& piece, Rendezvous::DoneCallback done);
  // Ends it for the members here, and for those elsewhere too if `tell_others`. Nothing once it has ended.
  void Fail(const Status& why, bool tell_others);

 private:
  struct Task {
    std::string name;
    uint64_t incarnation = 0;
    int64_t first_rank = 0, members = 0;
  };
  struct Member {
    int64_t rank = 0;
    CollectiveCall call;
    CollectiveExecutor::Done done;
  };
  // Elements of the result that travel at once.
  struct Piece {
    int64_t begin = 0, size = 0;
    size_t start = 0;  // of reductions: the task whose value it begins with
    size_t owner = 0;  // the task where it is whole first
  };

  Status SetUp(const CollectiveCall& call, const JoinCollectiveResponse& told) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // True: all members of this task are there.
  StatusOr<bool> Enter(CollectiveCall& call, const JoinCollectiveResponse& told, CollectiveExecutor::Done& done)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Start();
  Status Prepare();
  void CutPieces(int64_t begin, int64_t end, size_t start, size_t owner);
  Status Combine();  // the inputs of this task's members
  void Ask(const std::string& piece, std::function<Status(Tensor)> then);
  Status OnPartial(size_t p, Tensor partial);
  Status OnWhole(size_t p, const Tensor& whole);
  Status Publish(const std::string& piece, Tensor value);
  void Received();
  void Finish();
  StatusOr<Tensor> Part(const Tensor& of, int64_t begin, int64_t size) const;
  void* At(int64_t element);  // of the result
  size_t Distance(size_t from) const { return (index_ + tasks_.size() - from) % tasks_.size(); }

  const std::shared_ptr<RoundHost> host_;
  const uint64_t id_;
  const RefPtr<Rendezvous> pieces_out_;
  CancellationManager cancellation_;  // of what is asked for

  absl::Mutex mu_;
  bool over_ ABSL_GUARDED_BY(mu_) = false;
  Status failure_ ABSL_GUARDED_BY(mu_);
  std::vector<Member> members_ ABSL_GUARDED_BY(mu_);  // here, until they are done
  int64_t to_receive_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t to_be_fetched_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<Task> tasks_;  // constant from SetUp on

  // Set before anything is asked for, constant from then on (but for the elements of `result_`, each of which belongs
  // to one piece).
  CollectiveCall how_;  // that of the first member, without the input
  size_t index_ = 0;    // of this task
  int64_t source_ = 0;
  Shape source_shape_;
  std::vector<Tensor> inputs_;  // by rank
  Tensor own_;                  // combined
  Tensor result_;
  std::vector<Piece> pieces_;
};

}  // namespace millrace
