// SPDX-License-Identifier: Apache-2.0
#include "base/thread_switches.h"

#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <tuple>
#include <utility>

#include "base/current_thread.h"

namespace millrace {

// The ring of records that the kernel fills for one thread, and what was read from it.
class ThreadSwitches::Watched {
 public:
  // Null where the system refuses.
  static std::unique_ptr<Watched> OfThisThread() {
    perf_event_attr attr = {};
    attr.size = sizeof(attr);
    attr.type = PERF_TYPE_SOFTWARE;
    attr.config = PERF_COUNT_SW_DUMMY;
    attr.disabled = 1;
    attr.exclude_kernel = 1;
    attr.exclude_hv = 1;
    attr.context_switch = 1;
    attr.sample_id_all = 1;
    attr.sample_type = PERF_SAMPLE_TIME;
    attr.use_clockid = 1;
    attr.clockid = CLOCK_MONOTONIC;
    const int fd = static_cast<int>(::syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC));
    if (fd < 0) return nullptr;
    void* const ring = ::mmap(nullptr, RingBytes(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (ring == MAP_FAILED) {
      ::close(fd);
      return nullptr;
    }
    std::unique_ptr<Watched> made(new (std::nothrow) Watched(fd, ring));
    if (made == nullptr) {
      ::munmap(ring, RingBytes());
      ::close(fd);
    }
    return made;
  }
  ~Watched() {
    ::munmap(ring_, RingBytes());
    ::close(fd_);
  }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;

  void Enable() { ::ioctl(fd_, PERF_EVENT_IOC_ENABLE, 0); }
  // What was recorded before says nothing of now.
  void Restart() {
    Read();
    off_since_ = 0;
    past_.clear();
    oldest_ = 0;
  }
  void Disable() { ::ioctl(fd_, PERF_EVENT_IOC_DISABLE, 0); }

  void AddBetween(int64_t from, int64_t to, std::vector<OffCpu>* all) {
    Read();
    const auto add = [&](OffCpu off) {
      off.start_nanos = std::max(off.start_nanos, from);
      off.end_nanos = std::min(off.end_nanos, to);
      if (off.start_nanos < off.end_nanos) all->push_back(off);
    };
    for (const OffCpu& off : past_) add(off);
    if (off_since_ != 0) add({thread_, off_since_, to, is_preempted_});
  }

 private:
  static constexpr size_t kMostKept = 8192;  // of a thread
  // One page that says where the records are, and a power of two of pages for them.
  static size_t PageBytes() {
    static const auto bytes = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    return bytes;
  }
  static size_t RingBytes() { return 9 * PageBytes(); }

  Watched(int fd, void* ring) : thread_(CurrentThread()), fd_(fd), ring_(static_cast<char*>(ring)) {}

  void Read() {
    auto* const control = reinterpret_cast<perf_event_mmap_page*>(ring_);
    const uint64_t head = __atomic_load_n(&control->data_head, __ATOMIC_ACQUIRE);
    uint64_t at = control->data_tail;
    while (at < head) {
      struct {
        perf_event_header header;
        uint64_t nanos;
      } record = {};
      Copy(at, &record.header, sizeof(record.header));
      if (record.header.size == 0) break;
      if (record.header.type == PERF_RECORD_SWITCH && record.header.size >= sizeof(record)) {
        Copy(at, &record, sizeof(record));
        Note(record.header.misc, static_cast<int64_t>(record.nanos));
      }
      at += record.header.size;
    }
    __atomic_store_n(&control->data_tail, head, __ATOMIC_RELEASE);
  }
  void Copy(uint64_t at, void* to, size_t bytes) const {  // records go around the ring's end
    const uint64_t size = RingBytes() - PageBytes();
    const char* const data = ring_ + PageBytes();
    const uint64_t first = std::min<uint64_t>(bytes, size - at % size);
    std::memcpy(to, data + at % size, first);
    std::memcpy(static_cast<char*>(to) + first, data, bytes - first);
  }
  void Note(uint16_t kind, int64_t nanos) {
    if ((kind & PERF_RECORD_MISC_SWITCH_OUT) != 0) {
      off_since_ = nanos;
      is_preempted_ = (kind & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT) != 0;
    } else if (off_since_ != 0) {
      Keep({thread_, off_since_, nanos, is_preempted_});
      off_since_ = 0;
    }
  }
  // What there is no memory for is forgotten: threads are watched in noexcept code.
  void Keep(const OffCpu& off) noexcept {
    if (past_.size() == kMostKept) {
      past_[std::exchange(oldest_, (oldest_ + 1) % kMostKept)] = off;
      return;
    }
    try {
      past_.push_back(off);
    } catch (const std::bad_alloc&) {
    }
  }

  const uint32_t thread_;
  const int fd_;
  char* const ring_;
  int64_t off_since_ = 0;  // 0: it runs
  bool is_preempted_ = false;
  std::vector<OffCpu> past_;  // a ring once it is full (a deque allocates when it is made)
  size_t oldest_ = 0;         // where the next goes then
};

// Ends the watching of a thread with the thread.
struct ThreadSwitchesOwner {
  const ThreadSwitches::Watched* watched = nullptr;
  bool is_asked = false;
  ~ThreadSwitchesOwner() {
    if (watched != nullptr) ThreadSwitches::Get().Forget(watched);
  }
};

ThreadSwitches& ThreadSwitches::Get() {
  static auto* const all = new ThreadSwitches;  // threads end after statics do
  return *all;
}

void ThreadSwitches::WatchThisThread() noexcept {
  thread_local ThreadSwitchesOwner owner;
  if (recordings_ == 0 || std::exchange(owner.is_asked, true)) return;
  std::unique_ptr<Watched> made = Watched::OfThisThread();
  if (made == nullptr) return;
  const absl::MutexLock lock(&mu_);
  try {
    if (recordings_ > 0) made->Enable();
    const Watched* const raw = made.get();
    watched_.push_back(std::move(made));
    owner.watched = raw;
  } catch (const std::bad_alloc&) {
    // It is not watched.
  }
}

void ThreadSwitches::Begin() {
  const absl::MutexLock lock(&mu_);
  if (recordings_++ > 0) return;
  const bool is_on = lingers_.exchange(false);
  for (const auto& w : watched_) {
    w->Restart();
    if (!is_on) w->Enable();
  }
}

void ThreadSwitches::End() {
  const absl::MutexLock lock(&mu_);
  if (--recordings_ == 0) lingers_ = true;
}

void ThreadSwitches::Disable() {
  const absl::MutexLock lock(&mu_);
  if (recordings_ > 0 || !lingers_.exchange(false)) return;
  for (const auto& w : watched_) w->Disable();
}

void ThreadSwitches::Forget(const Watched* watched) {
  const absl::MutexLock lock(&mu_);
  std::erase_if(watched_, [&](const auto& w) { return w.get() == watched; });
}

std::vector<OffCpu> ThreadSwitches::Between(int64_t from_nanos, int64_t to_nanos) {
  const absl::MutexLock lock(&mu_);
  std::vector<OffCpu> all;
  for (const auto& w : watched_) w->AddBetween(from_nanos, to_nanos, &all);
  std::sort(all.begin(), all.end(), [](const OffCpu& a, const OffCpu& b) {
    return std::tie(a.thread, a.start_nanos) < std::tie(b.thread, b.start_nanos);
  });
  return all;
}

}  // namespace millrace
