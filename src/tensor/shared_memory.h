// SPDX-License-Identifier: Apache-2.0
// Tensors in memory that other processes of this host can read, so that sending them needs no copy.
//
// A shared buffer is a segment, or the start of one. It is a buffer like any other: who lends it to another process
// holds a share of it until that process says that it has done, and nobody writes into what others hold. If the other
// process cannot say so any more, the buffer is abandoned: the lender's share stays as long as anybody else's, and the
// segment is not used again. Segments that are free are kept for a while, since memory that is touched for the first
// time costs as much as a copy.
//
// What is in use counts as memory of HostAllocator(). Each segment needs a descriptor; of those that a process may have
// this takes a part, and large tensors a small one.
//
// A child that is forked sees the same memory, and what it writes there its parent reads.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <map>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "tensor/prepared.h"
#include "tensor/segment.h"
#include "tensor/tensor.h"

namespace millrace {

class SharedBuffer final : public Buffer {
 public:
  uint64_t id() const { return id_; }  // of the segment, which no other of this process has or had
  const std::shared_ptr<Segment>& segment() const { return segment_; }
  PreparedState& prepared() const { return prepared_; }

 private:
  friend class SharedMemory;
  SharedBuffer(uint64_t id, std::shared_ptr<Segment> segment, size_t bytes)
      : Buffer(segment->data(), bytes, /*writable=*/true), id_(id), segment_(std::move(segment)) {}
  ~SharedBuffer() override = default;
  void Destroy() override;

  const uint64_t id_;
  const std::shared_ptr<Segment> segment_;
  mutable PreparedState prepared_;
  bool is_abandoned_ = false;  // under the lock of SharedMemory
};

// Thread-safe.
class SharedMemory {
 public:
  // Fewer bytes are copied when they are sent.
  static constexpr size_t kLeastOfTensor = size_t{1} << 20;

  // The process's.
  static SharedMemory& Instance();

  // ResourceExhausted where there is none, or no more may be used.
  StatusOr<RefPtr<SharedBuffer>> Allocate(size_t bytes) { return AllocateAtMost(most_segments_, bytes); }
  // The buffer that `bytes`, which somebody holds, lie in; null: they lie elsewhere.
  RefPtr<SharedBuffer> Find(absl::string_view bytes);
  // Another process may read `buffer` and will never say that it has done.
  void Abandon(RefPtr<SharedBuffer> buffer);
  // Gives back what was free for long, and what is abandoned by all. To be called now and then.
  void Trim();

  // From now on other processes of this host ask for tensors: see the functions below.
  void BeginToServe() { is_serving_.store(true, std::memory_order_relaxed); }

  // For elements that this process will send to others: shared memory, where that is worth it and there is some. False:
  // `out` is as it was.
  bool MakeTensor(DType dtype, const Shape& shape, Tensor* out);
  // Whether `t`, which lies elsewhere, would better be here: it has been sent to other processes.
  bool WantsToMove(const Tensor& t) const;
  // Memory here for another value of `t`, if that is here or wants to be and there is room. False: `out` is as it was.
  bool MakeRoomFor(const Tensor& t, Tensor* out);
  // The same, with what `t` has.
  bool CopyOf(const Tensor& t, Tensor* copy);

 private:
  struct Free {
    uint64_t id = 0;
    std::shared_ptr<Segment> segment;
    int64_t since = 0;
  };
  friend class SharedBuffer;
  SharedMemory();
  StatusOr<RefPtr<SharedBuffer>> AllocateAtMost(size_t segments, size_t bytes);
  StatusOr<Free> TakeSegment(size_t segments, size_t bytes);
  void Return(SharedBuffer* buffer);

  const size_t most_segments_;
  std::atomic<bool> is_serving_{false};
  absl::Mutex mu_;
  uint64_t last_ ABSL_GUARDED_BY(mu_) = 0;
  size_t num_segments_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<const char*, SharedBuffer*> used_ ABSL_GUARDED_BY(mu_);  // by address
  std::list<Free> free_ ABSL_GUARDED_BY(mu_);                       // the longest free first
  std::list<RefPtr<SharedBuffer>> abandoned_ ABSL_GUARDED_BY(mu_);
};

// `buffer` has been sent to another process. Nothing where it is not memory of an allocator.
void NoteSent(const Buffer& buffer);
bool WasSent(const Buffer& buffer);

}  // namespace millrace
