// SPDX-License-Identifier: Apache-2.0
// A graph that a client grows while sessions run it. Whoever reads or changes `graph` holds `mu`. Nodes are never
// removed from it, but for those of a conditional or loop whose construction fails, so a Node* stays valid as long as
// the SharedGraph (node attributes of finished nodes do not change).
#pragma once

#include <atomic>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"
#include "base/ref_counted.h"
#include "graph/graph.h"

struct MR_Block;

namespace millrace {

// A mutex that a thread may claim for longer than it holds it: while a client's callbacks build the inside of a loop,
// the lock is free between their calls, so that others can read, but other writers wait for the end of the claim.
class ABSL_LOCKABLE GraphMutex {
 public:
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION();
  // Locks, or gives up when `keep_going` says why (it is asked, without the lock, while another thread's claim lasts);
  // then it is not locked.
  Status LockWhile(absl::FunctionRef<Status()> keep_going) ABSL_NO_THREAD_SAFETY_ANALYSIS;
  void Unlock() ABSL_UNLOCK_FUNCTION() { mu_.Unlock(); }
  void ReaderLock() ABSL_SHARED_LOCK_FUNCTION() { mu_.ReaderLock(); }
  void ReaderUnlock() ABSL_UNLOCK_FUNCTION() { mu_.ReaderUnlock(); }

  // With the lock held. Claims of one thread nest.
  void Claim();
  void ReleaseClaim();
  // Whether this thread has claimed it.
  bool ClaimedHere() const;

 private:
  // With the lock held, which is lost and taken again: whether no other thread claims it, within `patience`.
  bool AwaitRelease(absl::Duration patience);

  absl::Mutex mu_;
  std::atomic<const void*> claimant_{nullptr};  // written with mu_ held
  int claims_ = 0;
};

class ABSL_SCOPED_LOCKABLE GraphLock {
 public:
  explicit GraphLock(GraphMutex* mu) ABSL_EXCLUSIVE_LOCK_FUNCTION(mu) : mu_(mu) { mu_->Lock(); }
  ~GraphLock() ABSL_UNLOCK_FUNCTION() { mu_->Unlock(); }
  GraphLock(const GraphLock&) = delete;
  GraphLock& operator=(const GraphLock&) = delete;

 private:
  GraphMutex* const mu_;
};

class ABSL_SCOPED_LOCKABLE GraphReaderLock {
 public:
  explicit GraphReaderLock(GraphMutex* mu) ABSL_SHARED_LOCK_FUNCTION(mu) : mu_(mu) { mu_->ReaderLock(); }
  ~GraphReaderLock() ABSL_UNLOCK_FUNCTION() { mu_->ReaderUnlock(); }
  GraphReaderLock(const GraphReaderLock&) = delete;
  GraphReaderLock& operator=(const GraphReaderLock&) = delete;

 private:
  GraphMutex* const mu_;
};

class SharedGraph : public RefCounted {
 public:
  explicit SharedGraph(const OpRegistry* registry) : own_(std::make_unique<Graph>(registry)), graph(*own_) {}
  // A view of a graph that the caller owns and guards for the view's life; `mu` guards the view only.
  explicit SharedGraph(Graph* borrowed) : graph(*borrowed) {}
  bool is_view() const { return own_ == nullptr; }

 private:
  const std::unique_ptr<Graph> own_;

 public:
  GraphMutex mu;
  Graph& graph ABSL_GUARDED_BY(mu);
  MR_Block* open_block ABSL_GUARDED_BY(mu) = nullptr;  // the C API's: the innermost one that has not ended
};

}  // namespace millrace
