// SPDX-License-Identifier: Apache-2.0
#include "tensor/shared_memory.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "base/checked.h"
#include "base/stopwatch.h"
#include "tensor/host_charge.h"

namespace millrace {
namespace {

constexpr size_t kGranule = 64 * 1024;
constexpr size_t kMostBytes = size_t{1} << 46;  // of a buffer
constexpr size_t kMostWaste = 2;                // a segment serves buffers down to half of its size
constexpr int64_t kIdleNanos = 10'000'000'000;

// Sizes with 3 significant bits, so that buffers of about one size share segments.
size_t Rounded(size_t bytes) {
  size_t step = kGranule;
  while (step * 8 < bytes) step *= 2;
  return (bytes + step - 1) / step * step;
}

size_t MostSegments() {
  constexpr size_t kMost = 4096;
  rlimit descriptors{};
  if (getrlimit(RLIMIT_NOFILE, &descriptors) != 0) return kMost / 16;
  return static_cast<size_t>(std::min<rlim_t>(kMost, descriptors.rlim_cur / 4 * 3));
}

bool ChargeFor(size_t bytes) {
  return HostCharges().Charge(bytes) || (DropPreparedForms() > 0 && HostCharges().Charge(bytes));
}

bool IsLarge(DType dtype, const Shape& shape, size_t* bytes) {
  return IsPlain(dtype) && CheckedMul(static_cast<size_t>(shape.num_elements()), DTypeSize(dtype), bytes) &&
         *bytes >= SharedMemory::kLeastOfTensor;
}

absl::string_view BytesOf(const Tensor& t) { return {static_cast<const char*>(t.raw()), t.TotalBytes()}; }

}  // namespace

void SharedBuffer::Destroy() { SharedMemory::Instance().Return(this); }

SharedMemory::SharedMemory() : most_segments_(MostSegments()) {}

SharedMemory& SharedMemory::Instance() {
  static SharedMemory& memory = *new SharedMemory;  // buffers may outlive other objects of the process
  return memory;
}

StatusOr<RefPtr<SharedBuffer>> SharedMemory::AllocateAtMost(size_t segments, size_t bytes) {
  if (bytes == 0 || bytes > kMostBytes) return ResourceExhausted("no shared memory of ", bytes, " bytes");
  if (!ChargeFor(bytes)) {
    const AllocatorStats stats = HostAllocator().Stats();
    return ResourceExhausted(
        "no shared memory of ", bytes, " bytes: ", stats.bytes_in_use, " are in use, limit ", stats.bytes_limit);
  }
  StatusOr<Free> taken = TakeSegment(segments, bytes);
  if (!taken.ok()) {
    HostCharges().Discharge(bytes);
    return taken.status();
  }
  auto buffer =
      RefPtr<SharedBuffer>::Adopt(new (std::nothrow) SharedBuffer(taken->id, std::move(taken->segment), bytes));
  if (!buffer) {
    HostCharges().Discharge(bytes);
    absl::MutexLock lock(&mu_);
    --num_segments_;
    return ResourceExhausted("no memory for what stands beside ", bytes, " bytes of shared memory");
  }
  absl::MutexLock lock(&mu_);
  used_.emplace(static_cast<const char*>(buffer->data()), buffer.get());
  return buffer;
}

StatusOr<SharedMemory::Free> SharedMemory::TakeSegment(size_t segments, size_t bytes) {
  const size_t capacity = Rounded(bytes);
  Free taken, dropped;  // the latter ends outside of the lock
  {
    absl::MutexLock lock(&mu_);
    auto best = free_.end();
    for (auto it = free_.begin(); it != free_.end(); ++it) {
      const size_t has = it->segment->capacity();
      if (has < bytes || has > kMostWaste * capacity) continue;
      if (best == free_.end() || has < best->segment->capacity()) best = it;
    }
    if (best != free_.end()) {
      taken = std::move(*best);
      free_.erase(best);
      return taken;
    }
    if (num_segments_ >= segments) {
      if (free_.empty()) return ResourceExhausted("all ", segments, " segments of shared memory are in use");
      dropped = std::move(free_.front());
      free_.pop_front();
      --num_segments_;
    }
    ++num_segments_;
    taken.id = ++last_;
  }
  dropped = Free();
  StatusOr<std::unique_ptr<Segment>> made = Segment::Create(capacity);
  if (made.ok()) {
    taken.segment = *std::move(made);
    return taken;
  }
  absl::MutexLock lock(&mu_);
  --num_segments_;
  return made.status();
}

void SharedMemory::Return(SharedBuffer* buffer) {
  HostCharges().Discharge(buffer->size());
  Free freed{buffer->id_, buffer->segment_, RealNanos()};
  {
    absl::MutexLock lock(&mu_);
    used_.erase(static_cast<const char*>(buffer->data()));
    bool is_kept = !buffer->is_abandoned_;
    try {
      if (is_kept) free_.push_back(std::move(freed));
    } catch (const std::bad_alloc&) {
      is_kept = false;
    }
    if (!is_kept) --num_segments_;
  }
  delete buffer;
}

RefPtr<SharedBuffer> SharedMemory::Find(absl::string_view bytes) {
  absl::MutexLock lock(&mu_);
  auto it = used_.upper_bound(bytes.data());
  if (it == used_.begin()) return nullptr;
  SharedBuffer* const buffer = (--it)->second;
  if (bytes.data() + bytes.size() > it->first + buffer->size()) return nullptr;
  return RefPtr<SharedBuffer>::Share(buffer);
}

void SharedMemory::Abandon(RefPtr<SharedBuffer> buffer) {
  absl::MutexLock lock(&mu_);
  if (std::exchange(buffer->is_abandoned_, true)) {
    // One share is kept already, so that this ends here without an end of the buffer.
    return buffer.reset();
  }
  try {
    abandoned_.push_back(buffer);
  } catch (const std::bad_alloc&) {
    static_cast<void>(buffer.release());  // kept for ever
  }
}

void SharedMemory::Trim() {
  std::list<RefPtr<SharedBuffer>> abandoned, ended;
  std::list<Free> idle;
  const int64_t before = RealNanos() - kIdleNanos;
  {
    absl::MutexLock lock(&mu_);
    abandoned.swap(abandoned_);
    const auto first_kept = std::find_if(free_.begin(), free_.end(), [&](const Free& f) { return f.since >= before; });
    idle.splice(idle.end(), free_, free_.begin(), first_kept);
    num_segments_ -= idle.size();
  }
  for (auto it = abandoned.begin(); it != abandoned.end();) {
    const auto here = it++;
    ReleasePrepared(here->get());
    if ((*here)->HasOneRef()) ended.splice(ended.end(), abandoned, here);
  }
  absl::MutexLock lock(&mu_);
  abandoned_.splice(abandoned_.end(), abandoned);
}

bool SharedMemory::MakeTensor(DType dtype, const Shape& shape, Tensor* out) {
  size_t bytes = 0;
  if (!is_serving_.load(std::memory_order_relaxed) || !IsLarge(dtype, shape, &bytes)) return false;
  StatusOr<RefPtr<SharedBuffer>> buffer = AllocateAtMost(most_segments_ / 4, bytes);
  if (!buffer.ok()) return false;
  StatusOr<Tensor> made = Tensor::FromBuffer(dtype, shape, *std::move(buffer));
  if (!made.ok()) return false;
  *out = *std::move(made);
  return true;
}

bool SharedMemory::WantsToMove(const Tensor& t) const {
  size_t bytes = 0;
  return is_serving_.load(std::memory_order_relaxed) && t.buffer() != nullptr &&
         IsLarge(t.dtype(), t.shape(), &bytes) && WasSent(*t.buffer());
}

bool SharedMemory::MakeRoomFor(const Tensor& t, Tensor* out) {
  size_t bytes = 0;
  if (!is_serving_.load(std::memory_order_relaxed) || !IsLarge(t.dtype(), t.shape(), &bytes)) return false;
  return (WantsToMove(t) || Find(BytesOf(t))) && MakeTensor(t.dtype(), t.shape(), out);
}

bool SharedMemory::CopyOf(const Tensor& t, Tensor* copy) {
  Tensor made;
  if (!MakeRoomFor(t, &made)) return false;
  std::memcpy(made.mutable_raw(), t.raw(), t.TotalBytes());
  *copy = std::move(made);
  return true;
}

}  // namespace millrace
