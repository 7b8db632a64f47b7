// SPDX-License-Identifier: Apache-2.0
#include "cluster/shm/loop.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>

namespace millrace::shm {
namespace {

constexpr int kEventsAtOnce = 64;

epoll_event Event(uint64_t key, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = key;
  return event;
}

}  // namespace

StatusOr<std::unique_ptr<Loop>> Loop::New(Env& env) {
  Descriptor epoll(epoll_create1(EPOLL_CLOEXEC));
  Descriptor wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  epoll_event event = Event(0, EPOLLIN);
  if (!epoll.ok() || !wake.ok() || epoll_ctl(epoll.get(), EPOLL_CTL_ADD, wake.get(), &event) != 0) {
    return SystemError(absl::StatusCode::kResourceExhausted, "no descriptors to wait for events");
  }
  std::unique_ptr<Loop> loop(new Loop(env, std::move(epoll), std::move(wake)));
  {
    absl::MutexLock lock(&loop->mu_);
    loop->running_ = true;
  }
  Status started = env.StartThread([raw = loop.get()] { raw->Run(); });
  if (!started.ok()) {
    absl::MutexLock lock(&loop->mu_);
    loop->running_ = false;
    return started;
  }
  return loop;
}

Loop::~Loop() {
  {
    absl::MutexLock lock(&mu_);
    stopping_ = true;
  }
  Wake();
  absl::MutexLock lock(&mu_);
  env_.Await(mu_, absl::Condition(+[](bool* running) { return !*running; }, &running_));
}

void Loop::Wake() {
  const uint64_t one = 1;
  static_cast<void>(!write(wake_.get(), &one, sizeof(one)));  // fails only when it is awake anyway
}

StatusOr<Loop::Key> Loop::Watch(int fd, std::shared_ptr<Watcher> watcher) {
  absl::MutexLock lock(&mu_);
  const Key key = ++last_;
  epoll_event event = Event(key, EPOLLIN);
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    return SystemError(absl::StatusCode::kResourceExhausted, "cannot wait for a socket");
  }
  watchers_.emplace(key, std::move(watcher));
  return key;
}

void Loop::AlsoWhenWritable(Key key, int fd, bool wanted) {
  epoll_event event = Event(key, EPOLLIN | (wanted ? uint32_t{EPOLLOUT} : 0));
  epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
}

void Loop::Forget(Key key, int fd) {
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  std::shared_ptr<Watcher> watcher;  // ends outside of the lock
  absl::MutexLock lock(&mu_);
  const auto it = watchers_.find(key);
  if (it == watchers_.end()) return;
  watcher = std::move(it->second);
  watchers_.erase(it);
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
    const int count = epoll_wait(epoll_.get(), events, kEventsAtOnce, MillisToWait());
    for (int i = 0; i < count; ++i) {
      if (events[i].data.u64 == 0) {
        uint64_t ignored = 0;
        static_cast<void>(!read(wake_.get(), &ignored, sizeof(ignored)));
        continue;
      }
      std::shared_ptr<Watcher> watcher;
      {
        absl::MutexLock lock(&mu_);
        const auto it = watchers_.find(events[i].data.u64);
        if (it != watchers_.end()) watcher = it->second;
      }
      if (watcher != nullptr) watcher->OnReady(events[i].events);
    }
    RunTimers();
    absl::MutexLock lock(&mu_);
    if (!stopping_) continue;
    running_ = false;
    return;
  }
}

}  // namespace millrace::shm
