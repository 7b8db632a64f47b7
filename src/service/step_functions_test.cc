// SPDX-License-Identifier: Apache-2.0
#include "service/step_functions.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "absl/synchronization/notification.h"
#include "base/pool_env.h"

namespace millrace {
namespace {

class CallGateTest : public ::testing::Test {
 protected:
  CallGate gate_{EnvOf(ProcessThreadPool())};
};

TEST_F(CallGateTest, ClosedItLetsNobodyIn) {
  ASSERT_TRUE(gate_.Enter());
  gate_.Leave();
  gate_.Close();
  EXPECT_FALSE(gate_.Enter());
  EXPECT_TRUE(absl::IsCancelled(gate_.session().reason()));
  gate_.Close();  // again: nothing
}

TEST_F(CallGateTest, WhoClosesItStopsWhoIsInsideAndWaits) {
  absl::Notification inside;
  std::atomic<bool> left{false};
  std::thread call([&] {
    ASSERT_TRUE(gate_.Enter());
    CancellationManager of_caller;
    StopNode stop(gate_.session(), of_caller);
    absl::Notification stopped;
    const auto token = stop.Register([&] { stopped.Notify(); });
    inside.Notify();
    stopped.WaitForNotification();
    stop.Deregister(token);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    left = true;
    gate_.Leave();
  });
  inside.WaitForNotification();
  gate_.Close();
  EXPECT_TRUE(left) << "it waits until they have left";
  call.join();
}

TEST_F(CallGateTest, ItWaitsForAllThatAreInsideAlsoWithinEachOther) {
  ASSERT_TRUE(gate_.Enter());
  ASSERT_TRUE(gate_.Enter());  // a call within a call
  std::atomic<bool> closed{false};
  std::thread closes([&] {
    gate_.Close();
    closed = true;
  });
  while (!gate_.session().IsCancelled()) std::this_thread::yield();
  EXPECT_FALSE(gate_.Enter());
  gate_.Leave();
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_FALSE(closed);
  gate_.Leave();
  closes.join();
  EXPECT_TRUE(closed);
}

// Tells when it is let go, and by whom.
struct Ground {
  ~Ground() {
    ended_on = std::this_thread::get_id();
    over.Notify();
  }
  std::thread::id& ended_on;
  absl::Notification& over;
};

// Who closes it may be inside itself, or be waited for by who is.
TEST_F(CallGateTest, WhatCallsStandOnIsLetGoWhenTheyHaveLeft) {
  auto unused = std::make_shared<int>();
  std::thread::id ended_on;
  absl::Notification over;
  ASSERT_TRUE(gate_.Enter());
  ASSERT_TRUE(gate_.Enter());  // a call within a call
  CancellationManager of_caller;
  StopNode stop(gate_.session(), of_caller);
  gate_.CloseWithoutWait(std::shared_ptr<Ground>(new Ground{ended_on, over}));
  EXPECT_TRUE(stop.IsCancelled());
  EXPECT_FALSE(gate_.Enter());
  gate_.CloseWithoutWait(unused);  // again: nothing
  EXPECT_EQ(unused.use_count(), 1);
  gate_.Leave();
  EXPECT_FALSE(over.HasBeenNotified()) << "the outer call stands on it";
  gate_.Leave();
  over.WaitForNotification();
  EXPECT_NE(ended_on, std::this_thread::get_id()) << "what stood on it may be this thread's owner";
}

}  // namespace
}  // namespace millrace
