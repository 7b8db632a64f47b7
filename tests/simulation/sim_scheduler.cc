// SPDX-License-Identifier: Apache-2.0
#include "simulation/sim_scheduler.h"

#include <algorithm>
#include <exception>
#include <limits>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/logging.h"
#include "simulation/crew.h"

namespace millrace {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
constexpr int64_t kLongest = int64_t{1} << 61;

// The scheduler whose events run on this thread, or that has started it; null: a thread from outside.
thread_local const void* inside = nullptr;
// What runs events on this thread, if it does.
thread_local const void* event_thread = nullptr;

bool Always() { return true; }

// SplitMix64 (Steele, Lea, Flood 2014).
uint64_t Mix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

}  // namespace

// Who holds the baton runs: a thread that was let go on, whoever called its way in, or a thread of the crew that runs
// events. Who gives it up chooses who has it next, and hands it over without a third.
struct SimScheduler::Impl {
  struct Event {
    int64_t id = 0;
    int64_t period = 0;
    absl::AnyInvocable<bool()> fn;
  };
  using Events = std::map<std::pair<int64_t, uint64_t>, Event>;  // by time, then by lot

  // A thread that runs events. One whose event waits does nothing else meanwhile.
  struct EventThread {
    explicit EventThread(CrewMember& m) : member(m) {}
    CrewMember& member;
    Turn turn, ended;
  };
  struct Waiter {
    const absl::FunctionRef<bool()> ready;
    const int64_t deadline;  // kNever: none
    const uint64_t serial;
    const bool is_outside;
    Turn* const turn;
    const EventThread* const of_event;  // null: it is none
  };
  // What happens next: a waiter goes on, or the first event runs, or nothing can happen.
  struct Choice {
    Waiter* waiter = nullptr;
    bool is_event = false;
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
  std::vector<Waiter*> able;           // of Choose
  bool stopping = false;
  std::vector<std::unique_ptr<EventThread>> event_threads;
  std::vector<EventThread*> idle;  // of these
  int64_t threads = 0;             // of StartThread, that have not ended

  uint64_t Draw() { return Mix(random += 0x9e3779b97f4a7c15u); }
  void Remember(uint64_t what) { history = Mix(history * 31 + Mix(static_cast<uint64_t>(now)) + what); }

  void Insert(int64_t at, Event event) {
    const int64_t id = event.id;
    auto place = events.emplace(std::pair(at, Draw()), std::move(event));
    while (!place.second) place = events.emplace(std::pair(at, Draw()), std::move(event));
    by_id[id] = place.first;
  }

  // Those that may go on now. Asks outside of the lock: conditions take locks of their own.
  void AskWaiters(std::unique_lock<std::mutex>& lock) {
    able = waiters;
    const int64_t time = now;
    lock.unlock();
    std::erase_if(able, [time](Waiter* w) { return w->deadline > time && !w->ready(); });
    lock.lock();
  }

  // When nothing can happen at the present instant: the next instant at which something can. False: there is none.
  bool Pass() {
    int64_t next = events.empty() ? kNever : events.begin()->first.first;
    for (const Waiter* w : waiters) next = std::min(next, w->deadline);
    if (next == kNever) return false;
    now = std::max(now, next);
    return true;
  }

  Choice Chosen(Waiter* waiter) {
    waiters.erase(std::find(waiters.begin(), waiters.end(), waiter));
    Remember(~waiter->serial);
    return {waiter, false};
  }

  // REQUIRES: the caller has the baton, and waits or has ended.
  Choice Choose(std::unique_lock<std::mutex>& lock) {
    for (;;) {
      AskWaiters(lock);
      const bool due = !events.empty() && events.begin()->first.first <= now;
      if (const size_t n = able.size() + (due ? 1 : 0); n > 0) {
        const size_t pick = n == 1 ? 0 : static_cast<size_t>(Draw() % n);
        return pick == able.size() ? Choice{nullptr, true} : Chosen(able[pick]);
      }
      if (Pass()) continue;
      // The end of all things. Nobody but the outside can say what that means.
      const auto outside = std::find_if(waiters.begin(), waiters.end(), [](Waiter* w) { return w->is_outside; });
      return outside == waiters.end() ? Choice() : Chosen(*outside);
    }
  }

  // Whose turn it is then; null: nobody's.
  Turn* TurnOf(const Choice& next) {
    if (next.waiter != nullptr) return next.waiter->turn;
    if (!next.is_event) return nullptr;
    if (idle.empty()) {
      EventThread* const made = event_threads.emplace_back(std::make_unique<EventThread>(Crew::Take())).get();
      made->member.work = [this, made] { RunEvents(*made); };
      return &made->member.turn;
    }
    EventThread* const other = idle.back();
    idle.pop_back();
    return &other->turn;
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

  // From the first turn on, which is to run an event.
  void RunEvents(EventThread& me) {
    inside = this;
    event_thread = &me;
    std::unique_lock<std::mutex> lock(mu);
    while (!stopping) {
      RunFirst(lock);
      if (stopping) break;  // the event had waited
      const Choice next = Choose(lock);
      if (next.is_event) continue;
      idle.push_back(&me);
      Turn* const turn = TurnOf(next);
      lock.unlock();
      if (turn != nullptr) turn->Give();
      me.turn.Await();
      lock.lock();
    }
    inside = event_thread = nullptr;
    lock.unlock();
    me.ended.Give();
  }

  bool Wait(absl::FunctionRef<bool()> ready, int64_t nanos) {
    static thread_local Turn my_turn;
    std::unique_lock<std::mutex> lock(mu);
    if (!stopping) {
      Waiter waiter{ready,    nanos < 0 ? kNever : now + std::min(nanos, kLongest), next_serial++, inside != this,
                    &my_turn, static_cast<const EventThread*>(event_thread)};
      waiters.push_back(&waiter);
      const Choice next = Choose(lock);
      if (next.waiter != &waiter) {
        Turn* const turn = TurnOf(next);
        lock.unlock();
        if (turn != nullptr) turn->Give();
        my_turn.Await();
        return ready();
      }
    }
    lock.unlock();
    return ready();
  }

  // Events that still wait come to their ends, one after the other.
  void Stop() {
    std::unique_lock<std::mutex> lock(mu);
    stopping = true;
    for (const auto& thread : event_threads) {
      const auto at =
          std::find_if(waiters.begin(), waiters.end(), [&](const Waiter* w) { return w->of_event == thread.get(); });
      Turn* const turn = at == waiters.end() ? &thread->turn : TurnOf(Chosen(*at));
      lock.unlock();
      turn->Give();
      thread->ended.Await();
      lock.lock();
    }
  }
};

SimScheduler::SimScheduler(uint64_t seed) : impl_(std::make_shared<Impl>(seed)) {}

SimScheduler::~SimScheduler() {
  Wait([this] { return impl_->threads == 0; }, -1);
  impl_->Stop();
  if (impl_->threads > 0) LogError("a simulated world ends with ", impl_->threads, " threads that wait in it");
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
    absl::AnyInvocable<void() &&> fn;
    Impl::Waiter waiter;
  };
  const std::lock_guard<std::mutex> lock(impl_->mu);
  CrewMember* member = nullptr;
  try {
    member = &Crew::Take();
  } catch (const std::exception& e) {
    return ResourceExhausted("no thread for a call that may wait: ", e.what());
  }
  const std::shared_ptr<Start> start(
      new Start{std::move(fn), {Always, kNever, impl_->next_serial++, false, &member->turn, nullptr}});
  member->work = [impl = impl_, start] {
    inside = impl.get();
    try {
      std::move(start->fn)();
    } catch (const std::exception& e) {
      LogError("a thread of a simulated world threw: ", e.what());
    }
    start->fn = nullptr;
    std::unique_lock<std::mutex> end(impl->mu);
    --impl->threads;
    Turn* const next = impl->TurnOf(impl->Choose(end));
    end.unlock();
    inside = nullptr;
    if (next != nullptr) next->Give();
  };
  ++impl_->threads;
  impl_->waiters.push_back(&start->waiter);
  return absl::OkStatus();
}

bool SimScheduler::Wait(absl::FunctionRef<bool()> ready, int64_t nanos) { return ready() || impl_->Wait(ready, nanos); }

}  // namespace millrace
