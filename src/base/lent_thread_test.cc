// SPDX-License-Identifier: Apache-2.0
#include "base/lent_thread.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>

#include "absl/synchronization/notification.h"

namespace millrace {
namespace {

class LentThreadTest : public ::testing::Test {
 protected:
  // What notes on which thread it runs, and says that it has.
  struct Work {
    std::thread::id thread;
    absl::Notification done;
  };
  absl::AnyInvocable<void() &&> Noting(Work& work) {
    return [&work] {
      work.thread = std::this_thread::get_id();
      work.done.Notify();
    };
  }
  const std::thread::id here_ = std::this_thread::get_id();
  ThreadPool pool_{2};
};

TEST_F(LentThreadTest, RunsTheFirstWhenItIsToldAndThePoolTheRest) {
  Work first, second;
  LentThread lent;
  LentThread::Schedule(pool_, Noting(first));
  LentThread::Schedule(pool_, Noting(second));
  second.done.WaitForNotification();
  EXPECT_NE(second.thread, here_);
  EXPECT_FALSE(first.done.HasBeenNotified());
  lent.RunNow();
  ASSERT_TRUE(first.done.HasBeenNotified());
  EXPECT_EQ(first.thread, here_);
  lent.RunNow();  // there is nothing more
}

TEST_F(LentThreadTest, WhatItsWorkBringsIsNotForIt) {
  Work inner;
  LentThread lent;
  LentThread::Schedule(pool_, [&] {
    LentThread::Schedule(pool_, Noting(inner));
    inner.done.WaitForNotification();
    throw std::runtime_error("and nothing comes of this");
  });
  lent.RunNow();
  EXPECT_NE(inner.thread, here_);
  Work later;
  LentThread::Schedule(pool_, Noting(later));
  lent.RunNow();
  EXPECT_EQ(later.thread, here_) << "it lends itself again";
}

TEST_F(LentThreadTest, WhatItHasNotRunGoesToThePool) {
  Work work, none;
  {
    LentThread lent;
    LentThread::Schedule(pool_, Noting(work));
  }
  work.done.WaitForNotification();
  EXPECT_NE(work.thread, here_);
  LentThread::Schedule(pool_, Noting(none));
  none.done.WaitForNotification();
  EXPECT_NE(none.thread, here_) << "nobody lends itself";
}

}  // namespace
}  // namespace millrace
