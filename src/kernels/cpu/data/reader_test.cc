// SPDX-License-Identifier: Apache-2.0
// Readers without a graph: who waits, who is served, and how waits end. Formats are tested by the Python client's
// files.
#include "kernels/cpu/data/reader.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "absl/synchronization/notification.h"

namespace millrace {
namespace {

using absl::StatusCode;

struct Call {
  absl::Notification done;
  Status status;
  Reader::Records records;
};
using CallPtr = std::shared_ptr<Call>;

class Readers : public ::testing::Test {
 protected:
  Readers() {
    Queue::Options o;
    o.types = {DType::kString};
    o.shapes = {PartialShape::Scalar()};
    queue_ = *NewFifoQueue(o);
    reader_ = MakeRef<Reader>("IdentityReader", NewIdentityFormat(), true);
  }
  CallPtr Read(int64_t n = 1, CancellationManager* c = nullptr) {
    auto call = std::make_shared<Call>();
    reader_->Read(n, queue_, c, pool_, [call](Status s, Reader::Records records) {
      call->status = std::move(s);
      call->records = std::move(records);
      call->done.Notify();
    });
    return call;
  }
  void Put(const char* name) {
    queue_->Enqueue({Tensor::Scalar<TString>(name)}, nullptr, [](Status s) { EXPECT_TRUE(s.ok()); });
  }
  void Close() {
    queue_->Close(false, nullptr, [](Status s) { EXPECT_TRUE(s.ok()); });
  }

  ThreadPool pool_{2};
  RefPtr<Queue> queue_;
  RefPtr<Reader> reader_;
};

TEST_F(Readers, ServesInTheOrderOfArrival) {
  const CallPtr first = Read(), second = Read(), third = Read();
  EXPECT_FALSE(first->done.HasBeenNotified());
  Put("a");
  first->done.WaitForNotification();
  EXPECT_FALSE(second->done.HasBeenNotified());
  Put("b");
  second->done.WaitForNotification();
  EXPECT_EQ(first->records[0].value, "a");
  EXPECT_EQ(second->records[0].key, "b");
  EXPECT_EQ(reader_->records_produced(), 2);
  Close();
  third->done.WaitForNotification();
  EXPECT_EQ(third->status.code(), StatusCode::kOutOfRange);
}

TEST_F(Readers, EndsThoseThatAreCancelled) {
  CancellationManager step, other;
  const CallPtr active = Read(1, &step), in_line = Read(1, &other), last = Read();
  other.Cancel(Cancelled("enough"));
  in_line->done.WaitForNotification();
  EXPECT_EQ(in_line->status.code(), StatusCode::kCancelled);
  EXPECT_FALSE(active->done.HasBeenNotified());
  step.Cancel(Cancelled("enough"));
  active->done.WaitForNotification();
  EXPECT_EQ(active->status.code(), StatusCode::kCancelled);
  const CallPtr refused = Read(1, &step);
  refused->done.WaitForNotification();
  EXPECT_EQ(refused->status.code(), StatusCode::kCancelled);
  Put("a");
  last->done.WaitForNotification();
  EXPECT_EQ(last->records[0].value, "a");
}

TEST_F(Readers, RefusesQueuesOfOtherThings) {
  Queue::Options o;
  o.types = {DType::kInt64};
  queue_ = *NewFifoQueue(o);
  queue_->Enqueue({Tensor::Scalar<int64_t>(3)}, nullptr, [](Status) {});
  const CallPtr call = Read();
  call->done.WaitForNotification();
  EXPECT_EQ(call->status.code(), StatusCode::kInvalidArgument);
}

TEST_F(Readers, EveryReadEndsOnceWhateverCancelsIt) {
  constexpr int kReads = 400;
  std::atomic<int> ended{0}, read{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kReads; ++i) {
        CancellationManager step;
        absl::Notification done;
        reader_->Read(1, queue_, &step, pool_, [&](Status s, Reader::Records) {
          ended.fetch_add(1);
          if (s.ok()) read.fetch_add(1);
          done.Notify();
        });
        if ((i + t) % 2 == 0) step.Cancel(Cancelled("enough"));
        done.WaitForNotification();
      }
    });
  }
  std::thread filler([&] {
    for (int i = 0; i < 3 * kReads; ++i) Put("x");
  });
  for (std::thread& t : threads) t.join();
  filler.join();
  EXPECT_EQ(ended.load(), 3 * kReads);
  EXPECT_EQ(reader_->records_produced(), read.load());
}

}  // namespace
}  // namespace millrace
