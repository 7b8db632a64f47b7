// SPDX-License-Identifier: Apache-2.0
#include "cluster/shm/loop.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "absl/synchronization/notification.h"
#include "base/lent_thread.h"

namespace millrace::shm {
namespace {

class OnMessage final : public Loop::Watcher {
 public:
  OnMessage(int fd, std::function<void()> then) : fd_(fd), then_(std::move(then)) {}
  void OnReady(uint32_t) override {
    uint64_t count = 0;
    if (read(fd_, &count, sizeof(count)) == sizeof(count)) then_();
  }

 private:
  const int fd_;
  const std::function<void()> then_;
};

// A step that a message brings to a thread of the loop may hold the last share of what the loop belongs to.
TEST(LoopTest, EndsOnAThreadThatHasLentItself) {
  for (int i = 0; i < 20; ++i) {
    const Descriptor message(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    StatusOr<std::unique_ptr<Loop>> made = Loop::New(Env::Default());
    ASSERT_TRUE(made.ok()) << made.status();
    std::unique_ptr<Loop> loop = *std::move(made);
    absl::Notification begun, ended;
    const auto work = [&] {
      LentThread::Schedule(ProcessThreadPool(), [&] {
        begun.WaitForNotification();
        loop.reset();
        ended.Notify();
      });
    };
    ASSERT_TRUE(loop->Watch(message.get(), std::make_shared<OnMessage>(message.get(), work)).ok());
    const uint64_t one = 1;
    ASSERT_EQ(write(message.get(), &one, sizeof(one)), static_cast<ssize_t>(sizeof(one)));
    begun.Notify();
    EXPECT_TRUE(ended.WaitForNotificationWithTimeout(absl::Seconds(20)));
    if (!ended.HasBeenNotified()) std::abort();  // it would wait for itself here, too
  }
}

}  // namespace
}  // namespace millrace::shm
