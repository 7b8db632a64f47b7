// SPDX-License-Identifier: Apache-2.0
#include "cluster/shm/loop.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>

#include "base/lent_thread.h"

namespace millrace::shm {
namespace {

constexpr int kThreads = 2;
constexpr int kEventsAtOnce = 64;

epoll_event Event(uint64_t key, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = key;
  return event;
}

}  // namespace

// While a thread of the loop does what messages have brought. That may end the loop.
class Loop::Lending {
 public:
  explicit Lending(Loop* loop) : loop_(loop), outer_(std::exchange(here_, this)) {}
  ~Lending() { here_ = outer_; }
  Lending(const Lending&) = delete;
  Lending& operator=(const Lending&) = delete;

  // The one on this thread for `loop`; null: there is none.
  static Lending* Of(const Loop* loop) {
    Lending* at = here_;
    while (at != nullptr && at->loop_ != loop) at = at->outer_;
    return at;
  }
  void EndLoop() { loop_ = nullptr; }
  bool loop_has_ended() const { return loop_ == nullptr; }

 private:
  static constinit thread_local Lending* here_;
  const Loop* loop_;
  Lending* const outer_;
};
constinit thread_local Loop::Lending* Loop::Lending::here_ = nullptr;

StatusOr<std::unique_ptr<Loop>> Loop::New(Env& env) {
  Descriptor epoll(epoll_create1(EPOLL_CLOEXEC));
  Descriptor wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  epoll_event event = Event(0, EPOLLIN);
  if (!epoll.ok() || !wake.ok() || epoll_ctl(epoll.get(), EPOLL_CTL_ADD, wake.get(), &event) != 0) {
    return SystemError(absl::StatusCode::kResourceExhausted, "no descriptors to wait for events");
  }
  std::unique_ptr<Loop> loop(new Loop(env, std::move(epoll), std::move(wake)));
  for (int i = 0; i < kThreads; ++i) {
    {
      absl::MutexLock lock(&loop->mu_);
      ++loop->num_running_;
    }
    Status started = env.StartThread([raw = loop.get()] { raw->Run(); });
    if (started.ok()) continue;
    absl::MutexLock lock(&loop->mu_);
    if (--loop->num_running_ == 0) return started;  // else one must do, which lends itself to nobody
  }
  return loop;
}

Loop::~Loop() {
  Lending* const here = Lending::Of(this);
  {
    absl::MutexLock lock(&mu_);
    stopping_ = true;
    if (here != nullptr) --num_running_;
  }
  if (here != nullptr) here->EndLoop();
  Wake();
  absl::MutexLock lock(&mu_);
  env_.Await(mu_, absl::Condition(+[](int* running) { return *running == 0; }, &num_running_));
}

void Loop::Wake() {
  const uint64_t one = 1;
  static_cast<void>(!write(wake_.get(), &one, sizeof(one)));  // fails only when it is awake anyway
}

StatusOr<Loop::Key> Loop::Watch(int fd, std::shared_ptr<Watcher> watcher) {
  absl::MutexLock lock(&mu_);
  const Key key = ++last_;
  epoll_event event = Event(key, EPOLLIN | EPOLLONESHOT);
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    return SystemError(absl::StatusCode::kResourceExhausted, "cannot wait for a socket");
  }
  watchers_.emplace(key, Watched{fd, std::move(watcher)});
  return key;
}

void Loop::WaitFor(Key key, const Watched& watched) {
  epoll_event event = Event(key, EPOLLIN | EPOLLONESHOT | (watched.also_when_writable ? uint32_t{EPOLLOUT} : 0));
  epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, watched.fd, &event);
}

void Loop::AlsoWhenWritable(Key key, bool wanted) {
  absl::MutexLock lock(&mu_);
  const auto it = watchers_.find(key);
  if (it == watchers_.end()) return;
  it->second.also_when_writable = wanted;
  if (!it->second.is_running) WaitFor(key, it->second);
}

void Loop::Forget(Key key) {
  std::shared_ptr<Watcher> watcher;  // ends outside of the lock
  absl::MutexLock lock(&mu_);
  const auto it = watchers_.find(key);
  if (it == watchers_.end()) return;
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, it->second.fd, nullptr);
  watcher = std::move(it->second.watcher);
  watchers_.erase(it);
}

void Loop::Serve(Key key, uint32_t events) {
  std::shared_ptr<Watcher> watcher;
  {
    absl::MutexLock lock(&mu_);
    const auto it = watchers_.find(key);
    if (it == watchers_.end() || std::exchange(it->second.is_running, true)) return;
    watcher = it->second.watcher;
  }
  watcher->OnReady(events);
  absl::MutexLock lock(&mu_);
  const auto it = watchers_.find(key);
  if (it == watchers_.end()) return;
  it->second.is_running = false;
  WaitFor(key, it->second);
}

Loop::Timer Loop::At(int64_t nanos, absl::AnyInvocable<void() &&> fn) {
  bool is_first = false;
  Timer timer;
  {
    absl::MutexLock lock(&mu_);
    timer = {nanos, ++last_};
    is_first = timers_.emplace(timer, std::move(fn)).first == timers_.begin();
  }
  if (is_first) Wake();
  return timer;
}

void Loop::Drop(const Timer& timer) {
  absl::AnyInvocable<void() &&> dropped;
  absl::MutexLock lock(&mu_);
  const auto it = timers_.find(timer);
  if (it == timers_.end()) return;
  dropped = std::move(it->second);
  timers_.erase(it);
}

int Loop::MillisToWait() {
  absl::MutexLock lock(&mu_);
  if (timers_.empty()) return -1;
  const int64_t nanos = timers_.begin()->first.first - env_.MonotonicNanos();
  return static_cast<int>(std::clamp<int64_t>((nanos + 999'999) / 1'000'000, 0, 3'600'000));
}

void Loop::RunTimers() {
  while (true) {
    absl::AnyInvocable<void() &&> due;
    {
      absl::MutexLock lock(&mu_);
      if (stopping_ || timers_.empty() || timers_.begin()->first.first > env_.MonotonicNanos()) return;
      due = std::move(timers_.begin()->second);
      timers_.erase(timers_.begin());
    }
    std::move(due)();
  }
}

void Loop::Run() {
  epoll_event events[kEventsAtOnce];
  while (true) {
    num_waiting_.fetch_add(1);
    const int count = epoll_wait(epoll_.get(), events, kEventsAtOnce, MillisToWait());
    num_waiting_.fetch_sub(1);
    LentThread lent;
    for (int i = 0; i < count; ++i) {
      if (events[i].data.u64 == 0) {
        uint64_t ignored = 0;
        static_cast<void>(!read(wake_.get(), &ignored, sizeof(ignored)));
      } else {
        Serve(events[i].data.u64, events[i].events);
      }
    }
    RunTimers();
    {
      absl::MutexLock lock(&mu_);
      if (stopping_) {
        if (--num_running_ > 0) Wake();  // the other
        return;
      }
    }
    // Who waits does not run anything, so one of the two takes what comes at all times.
    if (num_waiting_.load() == 0) continue;
    Lending lending(this);
    lent.RunNow();
    if (lending.loop_has_ended()) return;
  }
}

}  // namespace millrace::shm
