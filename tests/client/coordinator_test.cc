// SPDX-License-Identifier: Apache-2.0
// Coordinators and queue runners of the C++ client, compiled twice: returning errors, and throwing them.
#include "millrace/coordinator.h"

#include <gtest/gtest.h>

#include "millrace/queue_runner.h"

namespace {

using millrace::Coordinator;
using millrace::DType;
using millrace::Graph;
using millrace::Operation;
using millrace::Output;
using millrace::QueueRunner;
using millrace::Scope;
using millrace::Session;
using millrace::Status;
using millrace::Tensor;
using std::chrono::milliseconds;

template <typename Fn>
TF_Code CodeOf(Fn fn) {
#if MILLRACE_EXCEPTIONS
  try {
    fn();
    return TF_OK;
  } catch (const millrace::Error& e) {
    return e.code();
  }
#else
  if constexpr (std::is_same_v<decltype(fn()), Status>) {
    return fn().code();
  } else {
    return fn().status().code();
  }
#endif
}
#if MILLRACE_EXCEPTIONS
#define CLIENT_TEST(name) TEST(ThrowingCoordinatorTest, name)
template <typename T>
T Value(T v) {
  return v;
}
#else
#define CLIENT_TEST(name) TEST(CoordinatorTest, name)
template <typename T>
T Value(millrace::Result<T> r) {
  EXPECT_TRUE(r.ok()) << r.status().message();
  return *std::move(r);
}
#endif

CLIENT_TEST(ThreadsStopTogether) {
  Coordinator c;
  for (int t = 0; t < 3; ++t) {
    c.Start([&]() -> Status {
      while (!c.WaitForStop(milliseconds(1000))) {
      }
      return Status();
    });
  }
  int calls = 0;
  c.OnStop([&] { ++calls; });
  EXPECT_FALSE(c.ShouldStop());
  c.RequestStop();
  c.RequestStop();
  EXPECT_EQ(CodeOf([&] { return c.Join(); }), TF_OK);
  c.OnStop([&] { ++calls; });
  EXPECT_EQ(calls, 2);
}

CLIENT_TEST(TheFirstErrorIsReportedOnce) {
  Coordinator c;
  c.Start([]() -> Status { return Status(TF_DATA_LOSS, "torn"); });
  c.Start([&]() -> Status {
    while (!c.ShouldStop()) std::this_thread::yield();
    return Status(TF_INTERNAL, "later");
  });
  EXPECT_EQ(CodeOf([&] { return c.Join(); }), TF_DATA_LOSS);
  EXPECT_EQ(CodeOf([&] { return c.Join(); }), TF_OK);
}

CLIENT_TEST(TheEndOfTheDataIsNoError) {
  Coordinator c;
  c.Start([]() -> Status { return Status(TF_OUT_OF_RANGE, "end"); });
  EXPECT_EQ(CodeOf([&] { return c.Join(); }), TF_OK);
  EXPECT_TRUE(c.ShouldStop());
}

CLIENT_TEST(ThreadsThatGoOnAreReported) {
  Coordinator c;
  std::atomic<bool> go{true};
  c.Start([&]() -> Status {
    while (go) std::this_thread::yield();
    return Status();
  });
  c.RequestStop();
  EXPECT_EQ(CodeOf([&] { return c.Join(milliseconds(20)); }), TF_DEADLINE_EXCEEDED);
  go = false;
  EXPECT_EQ(CodeOf([&] { return c.Join(); }), TF_OK);
}

// A queue that counts up to `end`, then says that this is the end.
struct Counter {
  Graph graph;
  Scope scope{graph};
  Output queue, dequeue, size;
  Operation init, enqueue;

  Counter(const char* version, int64_t end, int64_t capacity) {
    const auto op = [&](const char* name) { return std::string(name) + version; };
    Output v = scope.Op("VariableV2", {}, {{"dtype", DType::kInt64}, {"shape", millrace::Attr::OfShape({})}});
    init = scope.Op("Assign", {v, scope.Const(int64_t{0})});
    Output next = scope.Op("CountUpTo", {v}, {{"limit", end}});
    queue = scope.Op(
        op("FIFOQueue").c_str(), {}, {{"component_types", std::vector<DType>{DType::kInt64}}, {"capacity", capacity}});
    enqueue = scope.Op(op("QueueEnqueue").c_str(), {queue, millrace::Input(std::vector<Output>{next})});
    dequeue = scope.Op(op("QueueDequeue").c_str(), {queue}, {{"component_types", std::vector<DType>{DType::kInt64}}});
    size = scope.Op(op("QueueSize").c_str(), {queue});
  }
};

CLIENT_TEST(ARunnerFillsAQueueUntilTheDataEnds) {
  for (const char* version : {"", "V2"}) {
    Counter counter(version, 100, 7);
    const QueueRunner runner(counter.scope, counter.queue, {counter.enqueue, counter.enqueue, counter.enqueue});
    Session session(counter.graph);
    ASSERT_EQ(CodeOf([&] { return session.RunTargets({counter.init}); }), TF_OK);
    Coordinator c;
    runner.Start(session, c);
    std::vector<bool> seen(100);
    for (int i = 0; i < 100; ++i) {
      const int64_t v = Value(Value(session.Run({counter.dequeue}))[0].values<int64_t>())[0];
      EXPECT_FALSE(seen[static_cast<size_t>(v)]);
      seen[static_cast<size_t>(v)] = true;
    }
    EXPECT_EQ(CodeOf([&] { return session.Run({counter.dequeue}); }), TF_OUT_OF_RANGE);
    EXPECT_EQ(CodeOf([&] { return c.Join(); }), TF_OK);
  }
}

CLIENT_TEST(AStopEndsARunnerThatWaits) {
  Counter counter("V2", int64_t{1} << 40, 2);
  const QueueRunner runner(counter.scope, counter.queue, {counter.enqueue});
  Session session(counter.graph);
  ASSERT_EQ(CodeOf([&] { return session.RunTargets({counter.init}); }), TF_OK);
  Coordinator c;
  runner.Start(session, c);
  while (Value(Value(session.Run({counter.size}))[0].values<int32_t>())[0] < 2) std::this_thread::yield();
  c.RequestStop();
  EXPECT_EQ(CodeOf([&] { return c.Join(); }), TF_OK);
}

CLIENT_TEST(ARunnerThatFailsStopsAll) {
  Graph graph;
  Scope scope(graph);
  Output fed = scope.Placeholder(DType::kFloat);
  Output queue = scope.Op("FIFOQueueV2", {}, {{"component_types", std::vector<DType>{DType::kFloat}}});
  Operation enqueue = scope.Op("QueueEnqueueV2", {queue, millrace::Input(std::vector<Output>{fed})});
  const QueueRunner runner(scope, queue, {enqueue});
  Session session(graph);
  Coordinator c;
  runner.Start(session, c);
  EXPECT_EQ(CodeOf([&] { return c.Join(); }), TF_INVALID_ARGUMENT) << "nobody feeds it";
}

}  // namespace
