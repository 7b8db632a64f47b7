// SPDX-License-Identifier: Apache-2.0
// How work reaches the workers.
//
// A ParallelFor puts a Job on its caller's stack and its address into a free slot of the pool. Whoever works on the
// job, the caller included, takes chunk after chunk from a counter. A worker enters a slot (counts itself as a user)
// before it reads the job's address, and the caller clears the address before it waits for the users to be gone, so
// nobody holds a job that has ended. No lock and no allocation is involved.
//
// A Schedule goes through a queue under a mutex.
//
// An idle worker spins for a while and then parks on a futex. Spinning must not cost others their time, so a worker
// keeps a credit: work that arrives soon raises it, a long wait lowers it, and at zero the worker parks at once. A
// worker that was itself descheduled while spinning knows that the machine is oversubscribed and drops its credit.
//
// Waking: work is published first, then the publisher looks for sleepers; a worker that parks counts itself as a
// sleeper first, then looks for work. All of this is sequentially consistent, so one of the two sees the other. A
// publisher wakes nobody while enough workers spin; a worker that takes from the queue passes the wake on when it
// leaves something there.
#include "base/thread_pool.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <climits>
#include <cmath>
#include <cstdlib>
#include <deque>
#include <exception>
#include <mutex>
#include <new>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/current_thread.h"
#include "base/env.h"
#include "base/flushed_denormals.h"
#include "base/futex.h"
#include "base/granted_processors.h"
#include "base/help_point.h"
#include "base/limited_env.h"
#include "base/logging.h"
#include "base/pool_env.h"
#include "base/settings.h"
#include "base/signal_state.h"
#include "base/stop_scope.h"
#include "base/stopwatch.h"
#include "base/thread_switches.h"

namespace millrace {
namespace {

constexpr int kMaxParallelism = 1024;
constexpr double kMinChunkNanos = 20e3;
constexpr int kChunksPerThread = 4;
constexpr double kStoppableNanos = 2e6;
constexpr int64_t kSpinNanos = 50'000;
// A parked worker needs up to 100 us to come back, so its waits look longer than they were.
constexpr int64_t kShortParkNanos = 200'000;
// A gap this long between two looks at the clock (about 1 us apart) means that the thread did not run.
constexpr int64_t kDescheduledNanos = 30'000;
constexpr int kMaxCredit = 8;
constexpr int kPausesPerLook = 16;
constexpr int kNumSlots = 64;

void Pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Of the pool that this thread makes next; without an Env: that of the process.
struct World {
  Env* env = nullptr;
  bool has_threads = true;
};
thread_local World next_world;
constinit std::atomic<Env& (*)(const ThreadPool&)> env_of_pool{nullptr};  // there is a pool when it is asked for

thread_local HelpPoint* work_for = nullptr;
thread_local HelpMeter* help_meter = nullptr;

enum class SpinEnd { kReady, kTimeout, kDescheduled };

template <typename Ready>
SpinEnd SpinUntil(Ready ready) {
  if (ready()) return SpinEnd::kReady;
  const int64_t start = RealNanos();
  for (int64_t last = start;;) {
    for (int i = 0; i < kPausesPerLook; ++i) {
      Pause();
      if (ready()) return SpinEnd::kReady;
    }
    // Where more threads than cores run, the one waited for may need this core.
    ::sched_yield();
    if (ready()) return SpinEnd::kReady;
    const int64_t now = RealNanos();
    if (now - last > kDescheduledNanos) return SpinEnd::kDescheduled;
    if (now - start > kSpinNanos) return SpinEnd::kTimeout;
    last = now;
  }
}

struct Job {
  Job(absl::FunctionRef<void(int64_t, int64_t)> f, int64_t total, int64_t chunk_size, int helpers)
      : fn(f),
        n(total),
        chunk(chunk_size),
        num_chunks((total - 1) / chunk_size + 1),
        made_for(work_for),
        meter(help_meter),
        asked_nanos(meter ? RealNanos() : 0),
        helpers_wanted(helpers) {}

  const absl::FunctionRef<void(int64_t, int64_t)> fn;
  const int64_t n;
  const int64_t chunk;
  const int64_t num_chunks;
  HelpPoint* const made_for;
  HelpMeter* const meter;
  const int64_t asked_nanos;
  std::atomic<int64_t> next{0};
  std::atomic<int> helpers_wanted;
  std::atomic<bool> failed{false};
  std::exception_ptr error;  // written by the thread that set `failed`

  void RunChunks() {
    try {
      for (int64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < num_chunks;) {
        const int64_t begin = i * chunk;
        fn(begin, i + 1 == num_chunks ? n : begin + chunk);
      }
    } catch (...) {
      if (!failed.exchange(true)) error = std::current_exception();
      next.store(num_chunks, std::memory_order_relaxed);
    }
  }

  // By a thread that is not the caller.
  void Help() {
    if (meter == nullptr) return RunChunks();
    if (next.load(std::memory_order_relaxed) >= num_chunks) return;
    ThreadSwitches::Get().WatchThisThread();
    const int64_t start = RealNanos();
    RunChunks();
    meter->Add({CurrentThread(), asked_nanos, start, RealNanos()});
  }
};

}  // namespace

struct ThreadPool::Impl final : HelpPoint::Helpable {
  // One ParallelFor in progress. `users` counts the workers inside in steps of 2; bit 0: the caller is parked.
  struct alignas(64) Slot {
    std::atomic<bool> taken{false};
    std::atomic<Job*> job{nullptr};
    std::atomic<uint32_t> users{0};
  };

  explicit Impl(World world) : env(world.env ? *world.env : Env::Default()), has_threads(world.has_threads) {
    env_of_pool.store([](const ThreadPool& pool) -> Env& { return pool.impl_->env; });
  }

  Env& env;
  const bool has_threads;
  int parallelism = 1;
  std::vector<std::thread> workers;
  Slot slots[kNumSlots];
  alignas(64) std::atomic<uint64_t> open_slots{0};  // slots whose job still wants helpers
  std::atomic<int64_t> queued{0};                   // size of `queue`
  alignas(64) std::atomic<int> spinning{0};
  std::atomic<int> sleepers{0};
  std::atomic<uint32_t> wake_epoch{0};
  std::atomic<bool> stopping{false};
  std::mutex mu;
  std::deque<absl::AnyInvocable<void() &&>> queue;  // guarded by mu

  bool HasWork() const { return queued.load() > 0 || open_slots.load() != 0; }

  void Wake(int wanted) {
    const int missing = std::min(wanted - spinning.load(), sleepers.load());
    if (missing <= 0) return;
    wake_epoch.fetch_add(1);
    FutexWake(wake_epoch, missing);
  }

  bool RunQueued() {
    if (queued.load() == 0) return false;
    absl::AnyInvocable<void() &&> fn;
    int64_t left;
    {
      const std::lock_guard<std::mutex> lock(mu);
      if (queue.empty()) return false;
      fn = std::move(queue.front());
      queue.pop_front();
      left = queued.fetch_sub(1) - 1;
    }
    if (left > 0) Wake(1);
    try {
      std::move(fn)();
    } catch (const std::exception& e) {  // a last resort: whoever scheduled it waits for more than this line
      LogError("work of the thread pool threw: ", e.what());
    }
    return true;
  }

  bool HelpOne() {
    const uint64_t open = open_slots.load();
    return open != 0 && HelpAt(std::countr_zero(open), nullptr);
  }

  bool HelpWithWorkFor(HelpPoint& point) override {
    for (uint64_t open = open_slots.load(); open != 0; open &= open - 1) {
      if (HelpAt(std::countr_zero(open), &point)) return true;
    }
    return false;
  }

  // `point`: what the job must be made for; null: anything.
  bool HelpAt(int index, HelpPoint* point) {
    const uint64_t bit = uint64_t{1} << index;
    Slot& slot = slots[index];
    slot.users.fetch_add(2);
    bool helped = false;
    if (Job* job = slot.job.load(); job != nullptr && (point == nullptr || job->made_for == point)) {
      const int wanted = job->helpers_wanted.fetch_sub(1, std::memory_order_relaxed);
      if (wanted <= 1) open_slots.fetch_and(~bit);
      if (wanted >= 1) {
        if (point != nullptr) point->SetHelping(true);
        job->Help();
        if (point != nullptr) point->SetHelping(false);
        open_slots.fetch_and(~bit);
        helped = true;
      }
    }
    if (slot.users.fetch_sub(2) == 3) FutexWake(slot.users, 1);
    return helped;
  }

  void Park() {
    sleepers.fetch_add(1);
    const uint32_t epoch = wake_epoch.load();
    if (!HasWork() && !stopping.load()) FutexWait(wake_epoch, epoch);
    sleepers.fetch_sub(1);
  }

  // Returns when there may be work; changes the credit by how long that took.
  void WaitForWork(int* credit) {
    const int64_t start = RealNanos();
    int64_t limit = kSpinNanos;
    if (*credit > 0) {
      spinning.fetch_add(1);
      const SpinEnd end = SpinUntil([this] { return HasWork() || stopping.load(std::memory_order_relaxed); });
      spinning.fetch_sub(1);
      if (end == SpinEnd::kDescheduled) *credit = 1;
    }
    if (!HasWork()) {
      Park();
      limit = kShortParkNanos;
    }
    *credit = RealNanos() - start < limit ? std::min(*credit + 2, kMaxCredit) : std::max(*credit - 1, 0);
  }

  void WorkerMain() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    signals_are_blocked = true;
    pthread_setname_np(pthread_self(), "millrace");
    const FlushedDenormals flushed;
    int credit = kMaxCredit;
    while (true) {
      if (RunQueued() || HelpOne()) continue;
      if (stopping.load() && queued.load() == 0) return;
      if (!stopping.load()) WaitForWork(&credit);
    }
  }

  Slot* TakeSlot() {
    for (Slot& slot : slots) {
      if (!slot.taken.load(std::memory_order_relaxed) && !slot.taken.exchange(true, std::memory_order_acquire)) {
        return &slot;
      }
    }
    return nullptr;
  }

  static void WaitForUsers(Slot& slot) {
    if (SpinUntil([&] { return slot.users.load() == 0; }) == SpinEnd::kReady) return;
    slot.users.fetch_or(1);
    for (uint32_t users; (users = slot.users.load()) != 1;) FutexWait(slot.users, users);
    slot.users.fetch_and(~uint32_t{1});
  }

  void Split(int64_t n, double total, absl::FunctionRef<void(int64_t, int64_t)> fn, int max_threads);

  void RunJob(Job& job, int helpers) {
    Slot* const slot = TakeSlot();
    if (slot == nullptr) return job.RunChunks();
    const uint64_t bit = uint64_t{1} << (slot - slots);
    slot->job.store(&job);
    open_slots.fetch_or(bit);
    Wake(helpers);
    if (job.made_for) job.made_for->Ask(this);
    job.RunChunks();
    open_slots.fetch_and(~bit);
    slot->job.store(nullptr);
    WaitForUsers(*slot);
    slot->taken.store(false, std::memory_order_release);
  }
};

WorkFor::WorkFor(HelpPoint* point) : outer_(std::exchange(work_for, point)) {}
WorkFor::~WorkFor() { work_for = outer_; }

HelpMeter::HelpMeter() : outer_(std::exchange(help_meter, this)) {}
HelpMeter::~HelpMeter() { help_meter = outer_; }

void HelpMeter::Add(const HelpPart& part) noexcept {
  const std::lock_guard<std::mutex> lock(mu_);
  try {
    parts_.push_back(part);
  } catch (const std::bad_alloc&) {
    // It is missing.
  }
}

int64_t HelpMeter::TakeNanos() {
  int64_t sum = 0;
  for (const HelpPart& part : parts_) sum += part.end_nanos - part.start_nanos;
  parts_.clear();
  return sum;
}

// As where workers park: news and work are published first, then a sleeper is looked for; who goes to sleep says so
// first, then looks again.
void HelpPoint::Tell() {
  news_.fetch_add(1);
  if (sleeps_.load()) env_.WakeOne(news_);
}

void HelpPoint::Ask(Helpable* pool) {
  if (pool_.load(std::memory_order_relaxed) != pool) pool_.store(pool);
  if (sleeps_.load()) Tell();
}

bool HelpPoint::HelpOnce() {
  Helpable* const pool = pool_.load();
  return pool != nullptr && pool->HelpWithWorkFor(*this);
}

void HelpPoint::WaitAndHelp(uint32_t seen, int64_t patience_nanos) {
  bool helped = false;
  if (!env_.IsSimulated()) {
    SpinUntil([&] {
      helped = HelpOnce();
      return helped || news_.load() != seen;
    });
  }
  if (helped || news_.load() != seen) return;
  sleeps_.store(true);
  if (!HelpOnce()) env_.WaitWhile(news_, seen, patience_nanos);
  sleeps_.store(false);
}

ThreadPool::ThreadPool(int parallelism) : impl_(std::make_unique<Impl>(std::exchange(next_world, World()))) {
  if (!impl_->has_threads) return;
  impl_->parallelism = std::clamp(parallelism, 1, kMaxParallelism);
  const int wanted = std::max(impl_->parallelism - 1, 1);
  impl_->workers.reserve(static_cast<size_t>(wanted));
  for (int i = 0; i < wanted; ++i) {
    try {
      impl_->workers.emplace_back([impl = impl_.get()] { impl->WorkerMain(); });
    } catch (const std::system_error& e) {
      LogWarning("thread pool runs with ", i, " instead of ", wanted, " threads: ", e.what());
      break;
    }
  }
}

Env& EnvOf(const ThreadPool& pool) { return env_of_pool.load()(pool); }

std::unique_ptr<ThreadPool> NewThreadPool(Env& env) {
  next_world = {&env, false};
  return std::make_unique<ThreadPool>(1);
}

std::unique_ptr<ThreadPool> NewThreadPool(Env& env, int parallelism) {
  next_world = {&env, true};
  return std::make_unique<ThreadPool>(parallelism);
}

ThreadPool::~ThreadPool() {
  impl_->stopping.store(true);
  impl_->wake_epoch.fetch_add(1);
  FutexWake(impl_->wake_epoch, kMaxParallelism);
  for (std::thread& worker : impl_->workers) worker.join();
}

int ThreadPool::parallelism() const { return impl_->parallelism; }

void ThreadPool::Schedule(absl::AnyInvocable<void() &&> fn) {
  if (!impl_->has_threads) return impl_->env.Schedule(std::move(fn));
  if (impl_->workers.empty()) {  // there was no memory for any; never here, where the caller may hold locks
    const Status s = impl_->env.StartThread(std::move(fn));
    if (!s.ok()) throw std::runtime_error(std::string(s.message()));
    return;
  }
  {
    const std::lock_guard<std::mutex> lock(impl_->mu);
    impl_->queue.push_back(std::move(fn));
    impl_->queued.fetch_add(1);
  }
  impl_->Wake(1);
}

namespace {

using RangeFn = absl::FunctionRef<void(int64_t, int64_t)>;

// Runs ranges in pieces that take about a millisecond each, as the clock tells, and asks before each whether to go on.
class StoppablePieces {
 public:
  StoppablePieces(StopScope* scope, double cost_per_unit, RangeFn fn)
      : scope_(scope), first_(static_cast<int64_t>(std::clamp(kFirstNanos / cost_per_unit, 1.0, 1e15))), fn_(fn) {}

  void operator()(int64_t begin, int64_t end) {
    const StopHelper helper(scope_);
    for (int64_t piece = first_; begin < end;) {
      if (stopped_.load(std::memory_order_relaxed) || scope_->Ask()) {
        stopped_.store(true, std::memory_order_relaxed);
        throw WorkStopped();
      }
      const int64_t units = std::min(piece, end - begin), start = RealNanos();
      fn_(begin, begin + units);
      begin += units;
      const int64_t took = RealNanos() - start;
      if (took < kShortNanos) piece = std::min(piece, int64_t{1} << 60) * 2;
      if (took > kLongNanos) piece = std::max<int64_t>(piece / 2, 1);
    }
  }

 private:
  static constexpr double kFirstNanos = 200e3;
  static constexpr int64_t kShortNanos = 700'000, kLongNanos = 3'000'000;
  StopScope* const scope_;
  const int64_t first_;
  const RangeFn fn_;
  std::atomic<bool> stopped_{false};
};

}  // namespace

void ThreadPool::ParallelFor(int64_t n, double cost_per_unit, RangeFn fn, int max_threads) {
  const double total = static_cast<double>(n) * cost_per_unit;
  if (total >= kStoppableNanos) {
    if (StopScope* const scope = CurrentStopScope()) {
      StoppablePieces pieces(scope, cost_per_unit, fn);
      return impl_->Split(n, total, [&](int64_t begin, int64_t end) { pieces(begin, end); }, max_threads);
    }
  }
  impl_->Split(n, total, fn, max_threads);
}

void ThreadPool::Impl::Split(int64_t n, double total, RangeFn fn, int max_threads) {
  if (n <= 0) return;
  if (n == 1 || max_threads == 1 || parallelism == 1 || !(total >= 2 * kMinChunkNanos)) return fn(0, n);
  const int threads = max_threads > 0 ? std::min(max_threads, parallelism) : parallelism;
  const double by_cost = std::min(total / kMinChunkNanos, static_cast<double>(threads) * kChunksPerThread);
  const int64_t chunks = std::min(n, static_cast<int64_t>(by_cost));
  const int64_t chunk = (n - 1) / chunks + 1;
  const int helpers = static_cast<int>(std::min<int64_t>(threads, chunks)) - 1;
  if (helpers == 0) return fn(0, n);
  Job job(fn, n, chunk, helpers);
  RunJob(job, helpers);
  if (job.failed.load()) std::rethrow_exception(job.error);
}

namespace {

int ProcessParallelism() {
  const int64_t threads = NumberOr("MILLRACE_NUM_THREADS");
  return threads > 0 ? static_cast<int>(std::min<int64_t>(threads, INT_MAX)) : GrantedProcessors(Env::Default());
}

}  // namespace

ThreadPool& ProcessThreadPool() {
  static ThreadPool& pool = *new ThreadPool(ProcessParallelism());
  return pool;
}

}  // namespace millrace
