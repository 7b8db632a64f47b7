// SPDX-License-Identifier: Apache-2.0
#include "kernel/stop_node.h"

#include <thread>

#include "gtest/gtest.h"

namespace millrace {
namespace {

TEST(StopNodeTest, TheFirstReasonIsKept) {
  StopNode session;
  EXPECT_TRUE(session.reason().ok());
  int calls = 0;
  session.Register([&] {
    ++calls;
    EXPECT_TRUE(absl::IsDeadlineExceeded(session.reason()));
    session.Cancel(Internal("later"));  // no lock is held
  });
  session.Cancel(DeadlineExceeded("first"));
  session.Cancel(Cancelled("second"));
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(session.IsCancelled());
  EXPECT_EQ(session.reason().message(), "first");
}

TEST(StopNodeTest, AChildStopsWithWhatIsAbove) {
  StopNode session;
  CancellationManager step;
  {
    StopNode call(session, step);
    session.Cancel(Unavailable("closed"));
    EXPECT_TRUE(call.IsCancelled());
    EXPECT_TRUE(absl::IsUnavailable(call.reason()));
    EXPECT_FALSE(step.IsCancelled());
  }
  const StopNode late(session, step);  // of a session that has been stopped
  EXPECT_TRUE(absl::IsUnavailable(late.reason()));
  StopNode other;
  StopNode call(other, step);
  StopNode inner(other, call);
  step.Cancel(DeadlineExceeded("of the step"));
  EXPECT_EQ(call.reason(), DeadlineExceeded("of the step"));
  EXPECT_EQ(inner.reason(), DeadlineExceeded("of the step"));
  EXPECT_TRUE(other.reason().ok());
}

TEST(StopNodeTest, AChildStopsNobodyElse) {
  StopNode session;
  CancellationManager step;
  StopNode a(session, step), b(session, step);
  a.Cancel(Internal("of the call"));
  EXPECT_TRUE(b.reason().ok());
  EXPECT_TRUE(session.reason().ok());
  EXPECT_FALSE(step.IsCancelled());
}

TEST(StopNodeTest, ACauseGivesTheCodeAndIsSaidOnce) {
  EXPECT_EQ(CausedBy(DeadlineExceeded("late"), Cancelled("taking")), DeadlineExceeded("late: taking"));
  EXPECT_EQ(CausedBy(DeadlineExceeded("late"), DeadlineExceeded("late: taking")), DeadlineExceeded("late: taking"));
}

TEST(StopNodeTest, ChildrenMayEndWhileTheSessionStops) {
  for (int round = 0; round < 200; ++round) {
    StopNode session;
    CancellationManager step;
    std::thread calls([&] {
      for (int i = 0; i < 20; ++i) {
        const StopNode call(session, step);
        if (call.IsCancelled()) {
          EXPECT_TRUE(absl::IsCancelled(call.reason()));
        }
      }
    });
    session.Cancel(Cancelled("closed"));
    calls.join();
    EXPECT_TRUE(absl::IsCancelled(StopNode(session, step).reason()));
  }
}

}  // namespace
}  // namespace millrace
