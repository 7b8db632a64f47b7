// SPDX-License-Identifier: Apache-2.0
#include "simulation/sim_scheduler.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <limits>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/logging.h"

namespace millrace {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
constexpr int64_t kLongest = int64_t{1} << 61;

// The scheduler whose events run on this thread, or that has started it; null: a thread from outside.
thread_local const void* inside = nullptr;

bool Always() { return true; }

// SplitMix64 (Steele, Lea, Flood 2014).
uint64_t Mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

}  // namespace

// Who runs holds the baton: a waiter that was let go on, or whoever called its way in. The thread that runs events
// holds it in between. An event that waits keeps its thread, like everybody who waits; another runs events from then
// on.
struct SimScheduler::Impl {
  struct Event {
    int64_t id = 0;
    int64_t period = 0;
    absl::AnyInvocable<bool()> fn;
  };
  using Events = std::map<std::pair<int64_t, uint64_t>, Event>;  // by time, then by lot

  struct Waiter {
    Waiter(absl::FunctionRef<bool()> r, int64_t until, uint64_t number, bool outside)
        : ready(r), deadline(until), serial(number), is_outside(outside), thread(std::this_thread::get_id()) {}
    const absl::FunctionRef<bool()> ready;
    const int64_t deadline;  // kNever: none
    const uint64_t serial;
    const bool is_outside;
    const std::thread::id thread;
    bool may_go = false;
    std::condition_variable wake;
  };

  explicit Impl(uint64_t seed) : random(seed) {}

  std::mutex mu;                // guards what follows; nobody's code runs under it
  int64_t now = 1'000'000'000;  // not 0, which some take for never
  uint64_t random;
  uint64_t history = 0;
  int64_t next_id = 1;
  uint64_t next_serial = 0;
  Events events;
  std::map<int64_t, Events::iterator> by_id;  // of the events that wait
  struct Running {
    std::thread::id thread;
    bool again = true;  // it has not been removed
  };
  std::map<int64_t, Running> running;  // the event that runs, and those that wait within
  std::vector<Waiter*> waiters;        // in the order of their coming
  std::condition_variable events_wake;
  bool events_may_run = false, stopping = false;
  std::thread::id runner;               // of the thread that runs events, from the first wait on
  std::vector<std::thread::id> spares;  // whose event waited, and has ended
  std::vector<std::thread> event_threads;
  int64_t threads = 0;  // of StartThread, that have not ended
  std::vector<std::thread> started;

  uint64_t Draw() { return Mix(random += 0x9e3779b97f4a7c15u); }
  void Remember(uint64_t what) { history = Mix(history * 31 + Mix(static_cast<uint64_t>(now)) + what); }

  void Insert(int64_t at, Event event) {
    const int64_t id = event.id;
    auto place = events.emplace(std::pair(at, Draw()), std::move(event));
    while (!place.second) place = events.emplace(std::pair(at, Draw()), std::move(event));
    by_id[id] = place.first;
  }

  // Lets `waiter` go on; the present thread must then stop.
  void Let(Waiter* waiter) {
    waiters.erase(std::find(waiters.begin(), waiters.end(), waiter));
    Remember(~waiter->serial);
    waiter->may_go = true;
    waiter->wake.notify_one();
  }

  void LetEventsRun() {
    events_may_run = true;
    events_wake.notify_all();
  }

  // Those that may go on now. Asks outside of the lock: conditions take locks of their own.
  std::vector<Waiter*> AskWaiters(std::unique_lock<std::mutex>& lock) {
    std::vector<Waiter*> able = waiters;
    const int64_t time = now;
    lock.unlock();
    std::erase_if(able, [time](Waiter* w) { return w->deadline > time && !w->ready(); });
    lock.lock();
    return able;
  }

  // When nothing can happen at the present instant: the next instant at which something can. False: there is none.
  bool Pass() {
    int64_t next = events.empty() ? kNever : events.begin()->first.first;
    for (const Waiter* w : waiters) next = std::min(next, w->deadline);
    if (next == kNever) return false;
    now = std::max(now, next);
    return true;
  }

  void RunFirst(std::unique_lock<std::mutex>& lock) {
    Events::node_type node = events.extract(events.begin());
    Event& event = node.mapped();
    by_id.erase(event.id);
    Remember(static_cast<uint64_t>(event.id));
    running[event.id].thread = std::this_thread::get_id();
    lock.unlock();
    bool once_more = false;
    try {
      once_more = event.fn();
    } catch (const std::exception& e) {
      LogError("an event threw: ", e.what());
      once_more = event.period > 0;
    }
    lock.lock();
    const auto self = running.find(event.id);
    once_more &= self->second.again;
    if (once_more) {
      Insert(now + std::max<int64_t>(event.period, 1), std::move(event));
    } else {
      lock.unlock();
      event.fn = nullptr;
      lock.lock();
    }
    running.erase(self);
  }

  // Lets something happen. REQUIRES: this thread is the one that runs events, and they may run.
  void Next(std::unique_lock<std::mutex>& lock) {
    const std::vector<Waiter*> able = AskWaiters(lock);
    const bool due = !events.empty() && events.begin()->first.first <= now;
    if (const size_t n = able.size() + (due ? 1 : 0); n > 0) {
      const size_t pick = n == 1 ? 0 : static_cast<size_t>(Draw() % n);
      if (pick == able.size()) return RunFirst(lock);
      events_may_run = false;
      Let(able[pick]);
    } else if (!Pass()) {
      // The end of all things. Nobody but the outside can say what that means.
      events_may_run = false;
      const auto outside = std::find_if(waiters.begin(), waiters.end(), [](Waiter* w) { return w->is_outside; });
      if (outside != waiters.end()) Let(*outside);
    }
  }

  void RunEvents() {
    inside = this;
    const std::thread::id me = std::this_thread::get_id();
    std::unique_lock<std::mutex> lock(mu);
    for (;;) {
      events_wake.wait(lock, [&] { return stopping || (runner == me && events_may_run); });
      if (stopping) return;
      Next(lock);
      if (runner == me) continue;
      spares.push_back(me);  // its event has waited: another has taken over
      LetEventsRun();
    }
  }

  // Another thread than this runs events from now on.
  void HandOver() {
    if (spares.empty()) {
      runner = event_threads.emplace_back([this] { RunEvents(); }).get_id();
    } else {
      runner = spares.back();
      spares.pop_back();
    }
  }

  bool Wait(absl::FunctionRef<bool()> ready, int64_t nanos) {
    std::unique_lock<std::mutex> lock(mu);
    if (!stopping) {
      Waiter waiter(ready, nanos < 0 ? kNever : now + std::min(nanos, kLongest), next_serial++, inside != this);
      if (runner == std::thread::id() || runner == std::this_thread::get_id()) HandOver();
      waiters.push_back(&waiter);
      LetEventsRun();
      waiter.wake.wait(lock, [&] { return waiter.may_go; });
    }
    lock.unlock();
    return ready();
  }

  // Events that still wait come to their ends, one after the other.
  void Stop() {
    {
      const std::lock_guard<std::mutex> lock(mu);
      stopping = true;
      events_wake.notify_all();
    }
    for (std::thread& thread : event_threads) {
      {
        const std::lock_guard<std::mutex> lock(mu);
        const auto at =
            std::find_if(waiters.begin(), waiters.end(), [&](const Waiter* w) { return w->thread == thread.get_id(); });
        if (at != waiters.end()) Let(*at);
      }
      thread.join();
    }
  }
};

SimScheduler::SimScheduler(uint64_t seed) : impl_(std::make_shared<Impl>(seed)) {}

SimScheduler::~SimScheduler() {
  Wait([this] { return impl_->threads == 0; }, -1);
  impl_->Stop();
  if (impl_->threads > 0) LogError("a simulated world ends with ", impl_->threads, " threads that wait in it");
  for (std::thread& thread : impl_->started) impl_->threads > 0 ? thread.detach() : thread.join();
  impl_->by_id.clear();
  impl_->events.clear();
}

int64_t SimScheduler::now() const {
  const std::lock_guard<std::mutex> lock(impl_->mu);
  return impl_->now;
}

void SimScheduler::Advance(int64_t nanos) {
  const std::lock_guard<std::mutex> lock(impl_->mu);
  impl_->now += nanos;
}

uint64_t SimScheduler::history() const {
  const std::lock_guard<std::mutex> lock(impl_->mu);
  return impl_->history;
}

int64_t SimScheduler::AddEvent(int64_t delay, absl::AnyInvocable<bool()> fn) {
  const int64_t period = std::clamp<int64_t>(delay, 0, kLongest);
  const std::lock_guard<std::mutex> lock(impl_->mu);
  const int64_t id = impl_->next_id++;
  impl_->Insert(impl_->now + period, {id, period, std::move(fn)});
  return id;
}

void SimScheduler::RemoveEvent(int64_t id) {
  Impl::Events::node_type doomed;  // destroyed outside of the lock
  {
    const std::lock_guard<std::mutex> lock(impl_->mu);
    if (const auto at = impl_->by_id.find(id); at != impl_->by_id.end()) {
      doomed = impl_->events.extract(at->second);
      impl_->by_id.erase(at);
      return;
    }
    const auto running = impl_->running.find(id);
    if (running == impl_->running.end()) return;
    running->second.again = false;
    if (running->second.thread == std::this_thread::get_id()) return;
  }
  const auto is_over = [&] {
    const std::lock_guard<std::mutex> lock(impl_->mu);
    return impl_->running.count(id) == 0;
  };
  Wait(is_over, -1);
}

Status SimScheduler::StartThread(absl::AnyInvocable<void() &&> fn) {
  struct Start {
    Start(absl::AnyInvocable<void() &&> f, uint64_t serial) : fn(std::move(f)), waiter(Always, kNever, serial, false) {}
    absl::AnyInvocable<void() &&> fn;
    Impl::Waiter waiter;
  };
  const std::lock_guard<std::mutex> lock(impl_->mu);
  const auto start = std::make_shared<Start>(std::move(fn), impl_->next_serial++);
  try {
    impl_->started.emplace_back([impl = impl_, start] {
      inside = impl.get();
      {
        std::unique_lock<std::mutex> wait(impl->mu);
        start->waiter.wake.wait(wait, [&] { return start->waiter.may_go; });
      }
      try {
        std::move(start->fn)();
      } catch (const std::exception& e) {
        LogError("a thread of a simulated world threw: ", e.what());
      }
      start->fn = nullptr;
      const std::lock_guard<std::mutex> end(impl->mu);
      --impl->threads;
      impl->LetEventsRun();
    });
  } catch (const std::exception& e) {
    return ResourceExhausted("no thread for a call that may wait: ", e.what());
  }
  ++impl_->threads;
  impl_->waiters.push_back(&start->waiter);
  return absl::OkStatus();
}

bool SimScheduler::Wait(absl::FunctionRef<bool()> ready, int64_t nanos) { return ready() || impl_->Wait(ready, nanos); }

}  // namespace millrace
