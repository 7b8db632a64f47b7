// SPDX-License-Identifier: Apache-2.0
#include "runtime/step_thread.h"

#include <gtest/gtest.h>

#include <thread>

#include "absl/synchronization/notification.h"
#include "base/thread_pool.h"

namespace millrace {
namespace {

TEST(StepThreadTest, WhoWaitsGetsWorkUnlessItHelpsOthers) {
  ThreadPool pool(2);
  absl::Notification worker_is_free;
  pool.Schedule([&] { worker_is_free.WaitForNotification(); });  // so that the one who waits must help
  StepThread caller;
  std::thread waits([&] { caller.Drive(/*may_be_interrupted=*/false); });
  absl::Notification helps, has_helped;
  std::thread kernel([&] {
    const WorkFor work(caller.help_point());
    pool.ParallelFor(2, 1e9, [&](int64_t, int64_t) {
      if (std::this_thread::get_id() == waits.get_id() && !helps.HasBeenNotified()) {  // it may take both parts
        helps.Notify();
        has_helped.WaitForNotification();
      }
      helps.WaitForNotification();
    });
  });
  helps.WaitForNotification();
  absl::Notification ran;
  StepThread::Work work = [&] { ran.Notify(); };
  EXPECT_FALSE(caller.TryPost(work)) << "it would wait for what it helps with";
  has_helped.Notify();
  while (!caller.TryPost(work)) std::this_thread::yield();
  ran.WaitForNotification();
  kernel.join();
  worker_is_free.Notify();
  caller.Finish();
  waits.join();
}

}  // namespace
}  // namespace millrace
