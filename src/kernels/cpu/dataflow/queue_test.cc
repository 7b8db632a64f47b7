// SPDX-License-Identifier: Apache-2.0
// Queues without a graph: order, waiting, ends of waits, and many threads at once.
#include "kernels/cpu/dataflow/queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>

#include "absl/synchronization/notification.h"

namespace millrace {
namespace {

using absl::StatusCode;

Queue::Options Scalars(int64_t capacity = Queue::kUnbounded) {
  Queue::Options o;
  o.name = "q";
  o.types = {DType::kInt64};
  o.shapes = {PartialShape::Scalar()};
  o.capacity = capacity;
  return o;
}

// One call: what it ended with, if it has.
struct Call {
  absl::Notification done;
  Status status;
  Queue::Element element;
  std::vector<int64_t> values() const {
    const auto flat = element[0].flat<int64_t>();
    return {flat.begin(), flat.end()};
  }
};
using CallPtr = std::shared_ptr<Call>;

Queue::DoneCallback Ends(const CallPtr& call) {
  return [call](Status s) {
    call->status = std::move(s);
    call->done.Notify();
  };
}
Queue::ElementCallback Gives(const CallPtr& call) {
  return [call](Status s, Queue::Element e) {
    call->status = std::move(s);
    call->element = std::move(e);
    call->done.Notify();
  };
}

CallPtr Enqueue(Queue& q, int64_t v, CancellationManager* c = nullptr) {
  auto call = std::make_shared<Call>();
  q.Enqueue({Tensor::Scalar(v)}, c, Ends(call));
  return call;
}
CallPtr EnqueueMany(Queue& q, std::initializer_list<int64_t> v, CancellationManager* c = nullptr) {
  auto call = std::make_shared<Call>();
  q.EnqueueMany({Tensor::Vector<int64_t>(v)}, c, Ends(call));
  return call;
}
CallPtr Dequeue(Queue& q, CancellationManager* c = nullptr) {
  auto call = std::make_shared<Call>();
  q.Dequeue(c, Gives(call));
  return call;
}
CallPtr DequeueMany(Queue& q, int64_t n, bool up_to = false, CancellationManager* c = nullptr) {
  auto call = std::make_shared<Call>();
  q.DequeueMany(n, up_to, c, Gives(call));
  return call;
}
CallPtr Close(Queue& q, bool cancel = false) {
  auto call = std::make_shared<Call>();
  q.Close(cancel, nullptr, Ends(call));
  return call;
}

bool Ended(const CallPtr& call) { return call->done.HasBeenNotified(); }
StatusCode CodeOf(const CallPtr& call) {
  EXPECT_TRUE(Ended(call));
  return call->status.code();
}
using Values = std::vector<int64_t>;

TEST(Queue, FirstInFirstOut) {
  const RefPtr<Queue> q = *NewFifoQueue(Scalars());
  for (int64_t v : {1, 2, 3, 4}) EXPECT_EQ(CodeOf(Enqueue(*q, v)), StatusCode::kOk);
  EXPECT_EQ(q->Size(), 4);
  EXPECT_EQ(Dequeue(*q)->values(), Values{1});
  EXPECT_EQ(DequeueMany(*q, 2)->values(), (Values{2, 3}));
  EXPECT_EQ(DequeueMany(*q, 0)->values(), Values{});
  EXPECT_EQ(Dequeue(*q)->values(), Values{4});
}

TEST(Queue, WaitersAreServedInTheOrderOfArrival) {
  const RefPtr<Queue> q = *NewFifoQueue(Scalars());
  const CallPtr a = Dequeue(*q), b = DequeueMany(*q, 2), c = Dequeue(*q);
  Enqueue(*q, 1);
  EXPECT_TRUE(Ended(a));
  Enqueue(*q, 2);
  EXPECT_EQ(q->Size(), 0) << "the second holds it";
  EXPECT_FALSE(Ended(b) || Ended(c));
  EnqueueMany(*q, {3, 4, 5});
  EXPECT_EQ(a->values(), Values{1});
  EXPECT_EQ(b->values(), (Values{2, 3}));
  EXPECT_EQ(c->values(), Values{4});
  EXPECT_EQ(q->Size(), 1);
}

TEST(Queue, AFullQueueTakesWhatFits) {
  const RefPtr<Queue> q = *NewFifoQueue(Scalars(2));
  const CallPtr many = EnqueueMany(*q, {1, 2, 3, 4, 5}), one = Enqueue(*q, 6);
  EXPECT_EQ(q->Size(), 2);
  EXPECT_EQ(DequeueMany(*q, 4)->values(), (Values{1, 2, 3, 4})) << "more than the capacity";
  EXPECT_TRUE(Ended(many) && Ended(one));
  EXPECT_EQ(DequeueMany(*q, 2)->values(), (Values{5, 6}));
}

TEST(Queue, CloseLetsInWhoWaits) {
  const RefPtr<Queue> q = *NewFifoQueue(Scalars(1));
  const CallPtr many = EnqueueMany(*q, {1, 2, 3}), close = Close(*q), late = Enqueue(*q, 4);
  EXPECT_FALSE(Ended(close) || q->IsClosed());
  for (int64_t v : {1, 2, 3}) EXPECT_EQ(Dequeue(*q)->values(), Values{v});
  EXPECT_EQ(CodeOf(many), StatusCode::kOk);
  EXPECT_EQ(CodeOf(close), StatusCode::kOk);
  EXPECT_EQ(CodeOf(late), StatusCode::kCancelled);
  EXPECT_EQ(CodeOf(Dequeue(*q)), StatusCode::kOutOfRange);
  EXPECT_EQ(CodeOf(Close(*q)), StatusCode::kCancelled) << "closed already";
  EXPECT_EQ(CodeOf(Close(*q, true)), StatusCode::kOk);
  EXPECT_EQ(CodeOf(EnqueueMany(*q, {})), StatusCode::kOk) << "nothing";
}

TEST(Queue, CloseMayCancelWhoWaits) {
  const RefPtr<Queue> q = *NewFifoQueue(Scalars(1));
  const CallPtr many = EnqueueMany(*q, {1, 2, 3});
  EXPECT_EQ(CodeOf(Close(*q, true)), StatusCode::kOk);
  EXPECT_EQ(CodeOf(many), StatusCode::kCancelled);
  EXPECT_EQ(Dequeue(*q)->values(), Values{1});
}

TEST(Queue, AClosedQueueEndsWhoWaitsForMore) {
  const RefPtr<Queue> q = *NewFifoQueue(Scalars());
  const CallPtr many = DequeueMany(*q, 3), rest = DequeueMany(*q, 5, true), one = Dequeue(*q);
  EnqueueMany(*q, {1, 2});
  EXPECT_FALSE(Ended(many));
  Close(*q);
  EXPECT_EQ(CodeOf(many), StatusCode::kOutOfRange);
  EXPECT_EQ(rest->values(), (Values{1, 2})) << "what the first gave back";
  EXPECT_EQ(CodeOf(one), StatusCode::kOutOfRange);
  EXPECT_EQ(CodeOf(DequeueMany(*q, 5, true)), StatusCode::kOutOfRange);
}

TEST(Queue, ACancelledDequeueGivesBackWhatItTook) {
  const RefPtr<Queue> q = *NewFifoQueue(Scalars());
  CancellationManager step;
  EnqueueMany(*q, {1, 2, 3});
  const CallPtr many = DequeueMany(*q, 5, false, &step), next = DequeueMany(*q, 2);
  EXPECT_EQ(q->Size(), 0);
  step.Cancel(DeadlineExceeded("late"));
  EXPECT_EQ(CodeOf(many), StatusCode::kDeadlineExceeded) << "who waits is told the cause";
  EXPECT_EQ(next->values(), (Values{1, 2}));
  EXPECT_EQ(Dequeue(*q)->values(), Values{3});
  EXPECT_EQ(CodeOf(Dequeue(*q, &step)), StatusCode::kDeadlineExceeded) << "cancelled before it waits";
}

TEST(Queue, ACancelledEnqueueLeavesWhatIsIn) {
  const RefPtr<Queue> q = *NewFifoQueue(Scalars(2));
  CancellationManager step;
  const CallPtr many = EnqueueMany(*q, {1, 2, 3}, &step), other = Enqueue(*q, 9);
  step.Cancel(Cancelled("enough"));
  EXPECT_EQ(CodeOf(many), StatusCode::kCancelled);
  EXPECT_EQ(DequeueMany(*q, 3)->values(), (Values{1, 2, 9}));
  EXPECT_TRUE(Ended(other));
}

// A step that ends one wait of its own by cancelling another.
TEST(Queue, OneCancellationEndsManyWaits) {
  const RefPtr<Queue> q = *NewFifoQueue(Scalars(1));
  CancellationManager step;
  std::vector<CallPtr> calls;
  for (int64_t v = 0; v < 20; ++v) calls.push_back(EnqueueMany(*q, {v, v}, &step));
  for (int64_t v = 0; v < 20; ++v) calls.push_back(DequeueMany(*q, 100, false, &step));
  step.Cancel(Cancelled("enough"));
  for (const CallPtr& c : calls) EXPECT_TRUE(Ended(c));
}

TEST(Queue, PaddingFillsWithZeros) {
  Queue::Options o;
  o.types = {DType::kFloat, DType::kString};
  o.shapes = {PartialShape::Of({-1, 2}), PartialShape::Of({-1})};
  const RefPtr<Queue> q = *NewPaddingFifoQueue(o);
  const Tensor a = *Tensor::Vector<float>({1, 2}).Reshaped(*Shape::Make({1, 2}));
  const Tensor b = *Tensor::Vector<float>({3, 4, 5, 6}).Reshaped(*Shape::Make({2, 2}));
  q->Enqueue({a, Tensor::Vector<TString>({"a", "b"})}, nullptr, [](Status s) { EXPECT_TRUE(s.ok()) << s; });
  q->Enqueue({b, Tensor::Vector<TString>({"c"})}, nullptr, [](Status s) { EXPECT_TRUE(s.ok()) << s; });
  q->Enqueue(
      {a, Tensor::Scalar<TString>("x")}, nullptr, [](Status s) { EXPECT_EQ(s.code(), StatusCode::kInvalidArgument); });
  const CallPtr got = DequeueMany(*q, 2);
  ASSERT_EQ(got->element[0].shape(), *Shape::Make({2, 2, 2}));
  const auto f = got->element[0].flat<float>();
  EXPECT_EQ((std::vector<float>{f.begin(), f.end()}), (std::vector<float>{1, 2, 0, 0, 3, 4, 5, 6}));
  ASSERT_EQ(got->element[1].shape(), *Shape::Make({2, 2}));
  EXPECT_EQ(got->element[1].data<TString>()[2].view(), "c");
  EXPECT_EQ(got->element[1].data<TString>()[3].view(), "");
  EXPECT_EQ(DequeueMany(*q, 0)->element[0].shape(), *Shape::Make({0, 0, 2}));
}

// The order that TensorFlow draws from these seeds.
TEST(Queue, ShufflingIsDrawnBySeeds) {
  Queue::Options o = Scalars();
  const RefPtr<Queue> q = *NewRandomShuffleQueue(o, 0, Philox(3, 9));
  for (int64_t v = 0; v < 20; ++v) Enqueue(*q, v);
  EXPECT_EQ(DequeueMany(*q, 7)->values(), (Values{2, 5, 1, 19, 15, 9, 6}));
  EXPECT_EQ(Dequeue(*q)->values(), Values{11});
  EXPECT_EQ(DequeueMany(*q, 12)->values(), (Values{14, 7, 4, 16, 17, 0, 13, 8, 18, 12, 3, 10}));
}

TEST(Queue, ShufflingKeepsElementsUntilItIsClosed) {
  const RefPtr<Queue> q = *NewRandomShuffleQueue(Scalars(5), 2, Philox(7, 0));
  EnqueueMany(*q, {1, 2, 3});
  EXPECT_TRUE(Ended(Dequeue(*q)));
  const CallPtr waits = DequeueMany(*q, 2);
  EXPECT_FALSE(Ended(waits));
  Enqueue(*q, 4);
  EXPECT_FALSE(Ended(waits));
  Close(*q);
  EXPECT_TRUE(Ended(waits));
  EXPECT_EQ(q->Size(), 1);
  EXPECT_FALSE(NewRandomShuffleQueue(Scalars(5), 5, Philox(0, 0)).ok());
  EXPECT_FALSE(NewRandomShuffleQueue(Scalars(5), -1, Philox(0, 0)).ok());
}

TEST(Queue, PrioritiesComeFirst) {
  Queue::Options o;
  o.types = {DType::kInt64};
  const RefPtr<Queue> q = *NewPriorityQueue(o);
  const auto put = [&](int64_t priority, int64_t v) {
    q->Enqueue({Tensor::Scalar(priority), Tensor::Scalar(v)}, nullptr, [](Status s) { EXPECT_TRUE(s.ok()) << s; });
  };
  put(3, 0);
  put(1, 1);
  put(3, 2);
  put(1, 3);
  put(-7, 4);
  Values order;
  for (int i = 0; i < 5; ++i) order.push_back(*Dequeue(*q)->element[1].data<int64_t>());
  EXPECT_EQ(order, (Values{4, 1, 3, 0, 2}));
  q->Enqueue({Tensor::Vector<int64_t>({}), Tensor::Scalar<int64_t>(1)}, nullptr, [](Status s) {
    EXPECT_EQ(s.code(), StatusCode::kInvalidArgument);
  });
  EXPECT_EQ(CodeOf(DequeueMany(*q, 1)), StatusCode::kInvalidArgument) << "shapes are not given";
}

TEST(Queue, PrioritiesAskedForAtOnceAreSorted) {
  Queue::Options o = Scalars(3);
  const RefPtr<Queue> q = *NewPriorityQueue(o);
  const auto put = [&](int64_t priority) {
    q->Enqueue(
        {Tensor::Scalar(priority), Tensor::Scalar(priority)}, nullptr, [](Status s) { EXPECT_TRUE(s.ok()) << s; });
  };
  const CallPtr three = DequeueMany(*q, 3);
  for (const int64_t priority : {5, 9}) put(priority);
  EXPECT_FALSE(Ended(three));
  EXPECT_EQ(q->Size(), 2) << "none has left before its time";
  put(-1);
  ASSERT_EQ(CodeOf(three), StatusCode::kOk);
  EXPECT_EQ(three->values(), (Values{-1, 5, 9}));
  EXPECT_EQ(CodeOf(DequeueMany(*q, 4)), StatusCode::kInvalidArgument) << "they will never be there together";
}

TEST(Queue, DescriptionsThatMakeNoSense) {
  Queue::Options o = Scalars();
  o.shapes.push_back(PartialShape::Scalar());
  EXPECT_FALSE(NewFifoQueue(o).ok());
  o.shapes = {PartialShape::Of({-1})};
  EXPECT_FALSE(NewFifoQueue(o).ok());
  EXPECT_TRUE(NewPaddingFifoQueue(o).ok());
  o.shapes = {PartialShape::Unknown()};
  EXPECT_FALSE(NewPaddingFifoQueue(o).ok());
  o.shapes = {};
  EXPECT_FALSE(NewPaddingFifoQueue(o).ok());
  const RefPtr<Queue> q = *NewFifoQueue(o);
  EXPECT_EQ(CodeOf(DequeueMany(*q, 1)), StatusCode::kInvalidArgument);
  auto call = std::make_shared<Call>();
  q->EnqueueMany({Tensor::Scalar<int64_t>(1)}, nullptr, Ends(call));
  EXPECT_EQ(CodeOf(call), StatusCode::kInvalidArgument);
  EXPECT_EQ(q->Matches(**NewFifoQueue(Scalars(7))).code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(q->Matches(*q).ok());
}

TEST(Queue, LargeRowsShareTheBatch) {
  Queue::Options o;
  o.types = {DType::kFloat};
  const RefPtr<Queue> q = *NewFifoQueue(o);
  const Tensor batch = *Tensor::Zeros(DType::kFloat, *Shape::Make({2, 8192}));
  q->EnqueueMany({batch}, nullptr, [](Status s) { EXPECT_TRUE(s.ok()) << s; });
  EXPECT_TRUE(Dequeue(*q)->element[0].SharesBufferWith(batch));
}

// Every element leaves once, whoever is cancelled in between.
TEST(Queue, ManyThreadsLoseAndDoubleNothing) {
  constexpr int kProducers = 3, kConsumers = 3;
  constexpr int64_t kEach = 1500;
  for (const int kind : {0, 1}) {
    const RefPtr<Queue> q =
        kind == 0 ? *NewFifoQueue(Scalars(16)) : *NewRandomShuffleQueue(Scalars(32), 8, Philox(1, 2));
    std::vector<std::atomic<int>> seen(kProducers * kEach);
    std::atomic<int> producing{kProducers};
    const auto wait = [](const CallPtr& call, CancellationManager& step, std::minstd_rand& random) {
      if (random() % 4 != 0) return call->done.WaitForNotification();
      if (!call->done.WaitForNotificationWithTimeout(absl::Microseconds(random() % 50)))
        step.Cancel(Cancelled("enough"));
      call->done.WaitForNotification();
    };
    std::vector<std::thread> threads;
    for (int t = 0; t < kProducers; ++t) {
      threads.emplace_back([&, t] {
        std::minstd_rand random(static_cast<unsigned>(t + 1));
        for (int64_t i = 0; i < kEach;) {
          CancellationManager step;
          const CallPtr call = Enqueue(*q, t * kEach + i, &step);
          wait(call, step, random);
          if (call->status.ok()) ++i;  // else it has not entered
        }
        if (producing.fetch_sub(1) == 1) Close(*q)->done.WaitForNotification();
      });
    }
    for (int t = 0; t < kConsumers; ++t) {
      threads.emplace_back([&, t] {
        std::minstd_rand random(static_cast<unsigned>(t + 100));
        for (;;) {
          CancellationManager step;
          const CallPtr call = t == 0 ? Dequeue(*q, &step) : DequeueMany(*q, 1 + t * 10, true, &step);
          wait(call, step, random);
          if (call->status.code() == StatusCode::kOutOfRange) return;
          if (!call->status.ok()) continue;
          for (const int64_t v : call->element[0].flat<int64_t>()) ++seen[static_cast<size_t>(v)];
        }
      });
    }
    for (std::thread& t : threads) t.join();
    for (const auto& count : seen) ASSERT_EQ(count.load(), 1);
    EXPECT_EQ(q->Size(), 0);
  }
}

}  // namespace
}  // namespace millrace
