// SPDX-License-Identifier: Apache-2.0
#include "graph/shared_graph.h"

#include <atomic>
#include <stdexcept>
#include <thread>

#include "gtest/gtest.h"

namespace millrace {
namespace {

// Who claims the lock, on another thread, until the test is over with it.
class Claimant {
 public:
  explicit Claimant(GraphMutex& mu)
      : thread_([this, &mu] {
          mu.Lock();
          mu.Claim();
          mu.Unlock();
          has_claim_ = true;
          while (!may_end_) std::this_thread::yield();
          mu.Lock();
          mu.ReleaseClaim();
          mu.Unlock();
        }) {
    while (!has_claim_) std::this_thread::yield();
  }
  ~Claimant() {
    may_end_ = true;
    thread_.join();
  }
  void End() { may_end_ = true; }

 private:
  std::atomic<bool> has_claim_{false}, may_end_{false};
  std::thread thread_;
};

TEST(GraphMutexTest, WhetherToGoOnIsAskedWithoutTheLock) {
  GraphMutex mu;
  const Claimant claimant(mu);
  int asked = 0;
  const auto keep_going = [&]() -> Status {
    mu.ReaderLock();  // a client's callback may look at the graph
    mu.ReaderUnlock();
    return ++asked < 3 ? absl::OkStatus() : Cancelled("enough");
  };
  const Status s = mu.LockWhile(keep_going);
  EXPECT_TRUE(absl::IsCancelled(s)) << s;
  EXPECT_EQ(asked, 3);
  EXPECT_THROW(mu.LockWhile([]() -> Status { throw std::runtime_error("asked"); }).IgnoreError(), std::runtime_error);
  mu.ReaderLock();  // nothing holds it
  mu.ReaderUnlock();
}

TEST(GraphMutexTest, TheEndOfAClaimLetsOthersIn) {
  GraphMutex mu;
  Claimant claimant(mu);
  std::atomic<int> inside{0};
  std::thread writer([&] {
    mu.Lock();
    ++inside;
    mu.Unlock();
  });
  EXPECT_TRUE(mu.LockWhile([&]() -> Status {
                  claimant.End();
                  return absl::OkStatus();
                }).ok());
  mu.Unlock();
  writer.join();
  EXPECT_EQ(inside, 1);
}

}  // namespace
}  // namespace millrace
