// SPDX-License-Identifier: Apache-2.0
// Rounds of collective ops among tasks that speak by call: every bit of the result is the same on all members and in
// every order of arrival, whoever fails ends the round for all, and messages that make no sense are refused.
#include "service/collectives.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <thread>

#include "absl/strings/match.h"
#include "base/env.h"
#include "device/cpu/cpu_device.h"
#include "simulation/forwarding_worker.h"

namespace millrace {
namespace {

class Directory final : public WorkerDirectory {
 public:
  WorkerInterface* Find(absl::string_view task) override {
    const auto at = workers.find(std::string(task));
    return at == workers.end() ? nullptr : at->second;
  }
  std::string CollectiveLeader() const override { return "/job:w/replica:0/task:0"; }
  std::map<std::string, WorkerInterface*> workers;
};

// The part of a worker that collective ops need, as other tasks see it.
class Task final : public ForwardingWorker {
 public:
  Task(Directory& directory, int number, int devices)
      : ForwardingWorker(absl::StrCat("/job:w/replica:0/task:", number)),
        env_(Devices(number, devices), nullptr, &directory) {
    directory.workers[task()] = this;
    collectives = std::make_shared<Collectives>(env_, incarnation);
  }
  ~Task() override { collectives->Close(Cancelled("the test is over")); }
  void JoinCollective(const CallOptions& call, JoinCollectiveRequest request,
                      Reply<JoinCollectiveResponse> reply) override {
    collectives->Join(call, std::move(request), std::move(reply));
  }
  void RecvCollective(const CallOptions& call, RecvCollectiveRequest request,
                      Reply<RecvCollectiveResponse> reply) override {
    ++asked;
    if (dead) return std::move(reply)(Unavailable(task(), " is dead"));
    collectives->Recv(call, request, std::move(reply));
  }
  void AbortCollective(const CallOptions&, AbortCollectiveRequest request,
                       Reply<AbortCollectiveResponse> reply) override {
    const Status s = collectives->Abort(request);
    s.ok() ? std::move(reply)(AbortCollectiveResponse{}) : std::move(reply)(s);
  }

  void GetStatus(const CallOptions&, GetStatusRequest, Reply<GetStatusResponse> reply) override {
    if (dead) return std::move(reply)(Unavailable(task(), " is dead"));
    std::move(reply)(GetStatusResponse{task(), incarnation_now, {}, 0});
  }

  static constexpr uint64_t incarnation = 77;
  std::atomic<uint64_t> incarnation_now{incarnation};
  std::shared_ptr<Collectives> collectives;
  std::atomic<int> asked{0};
  std::atomic<bool> dead{false};

 private:
  static std::vector<std::unique_ptr<Device>> Devices(int task, int n) {
    std::vector<std::unique_ptr<Device>> all;
    for (int i = 0; i < n; ++i) {
      all.push_back(NewCpuDevice(
          {.job = "w", .replica = 0, .task = task, .type = "CPU", .id = i}, incarnation, ProcessThreadPool()));
    }
    return all;
  }
  WorkerEnv env_;
};

void AddFloats(void* into, const void* left, const void* right, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    static_cast<float*>(into)[i] = static_cast<const float*>(left)[i] + static_cast<const float*>(right)[i];
  }
}

class CollectivesTest : public ::testing::Test {
 protected:
  static constexpr int kTasks = 4, kDevices = 2, kMembers = kTasks * kDevices;
  CollectivesTest() {
    for (int t = 0; t < kTasks; ++t) tasks_.push_back(std::make_unique<Task>(directory_, t, kDevices));
  }

  static CollectiveCall CallOf(int member, CollectiveKind kind, int64_t size, int64_t instance = 1) {
    CollectiveCall call;
    call.kind = kind;
    call.device = absl::StrCat("/job:w/replica:0/task:", member / kDevices, "/device:CPU:", member % kDevices);
    call.group_key = 1;
    call.instance_key = instance;
    call.group_size = kMembers;
    call.dtype = DType::kFloat;
    call.allocator = &HostAllocator();
    call.merge = AddFloats;
    call.timeout = absl::Seconds(20);
    auto state = static_cast<uint32_t>(member + 1);
    call.input = *Tensor::Make(DType::kFloat, Shape::Vector(size));
    for (float& v : call.input.mutable_flat<float>()) {  // some number between -1000 and 1000
      state = state * 1664525 + 1013904223;
      v = static_cast<float>(state >> 8) / 8192 - 1000;
    }
    return call;
  }

  // Members come in the order of `seed`, each on a thread of its own if it is odd.
  std::vector<StatusOr<Tensor>> RunAll(std::vector<CollectiveCall> calls, unsigned seed) {
    std::vector<size_t> order(calls.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), std::mt19937(seed));
    std::vector<StatusOr<Tensor>> results(calls.size(), Internal("no answer"));
    absl::Mutex mu;
    size_t done = 0;
    const auto start = [&](size_t i) {
      tasks_[i / kDevices]->collectives->Run(std::move(calls[i]), [&, i](StatusOr<Tensor> r) {
        absl::MutexLock lock(&mu);
        results[i] = std::move(r);
        ++done;
      });
    };
    std::vector<std::thread> threads;
    for (const size_t i : order) seed % 2 ? void(threads.emplace_back([&start, i] { start(i); })) : start(i);
    for (std::thread& t : threads) t.join();
    const auto all = [&] { return done == results.size(); };
    absl::MutexLock lock(&mu);
    EXPECT_TRUE(mu.AwaitWithTimeout(absl::Condition(&all), absl::Seconds(30)));
    return results;
  }
  static std::vector<CollectiveCall> All(CollectiveKind kind, int64_t size) {
    std::vector<CollectiveCall> calls;
    for (int i = 0; i < kMembers; ++i) calls.push_back(CallOf(i, kind, size));
    return calls;
  }

  // Each member's client is another.
  static std::vector<CollectiveCall> AllOfSessions() {
    std::vector<CollectiveCall> calls = All(CollectiveKind::kReduce, 10);
    for (size_t i = 0; i < calls.size(); ++i) calls[i].session = i + 1;
    return calls;
  }

  Directory directory_;
  std::vector<std::unique_ptr<Task>> tasks_;
};

bool SameBits(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && std::memcmp(a.raw(), b.raw(), a.TotalBytes()) == 0;
}

TEST_F(CollectivesTest, ASumHasTheSameBitsEverywhereAndInEveryOrder) {
  for (const int64_t size : {int64_t{0}, int64_t{1}, int64_t{63}, int64_t{1000}, int64_t{1'300'001}}) {
    Tensor first;
    for (unsigned seed = 0; seed < 6; ++seed) {
      const auto results = RunAll(All(CollectiveKind::kReduce, size), seed);
      for (const StatusOr<Tensor>& r : results) {
        ASSERT_TRUE(r.ok()) << r.status();
        if (!first.IsInitialized()) first = *r;
        EXPECT_TRUE(SameBits(*r, first)) << size << " seed " << seed;
      }
    }
    std::vector<double> want(static_cast<size_t>(size));
    for (int m = 0; m < kMembers; ++m) {
      const CollectiveCall call = CallOf(m, CollectiveKind::kReduce, size);
      for (size_t i = 0; i < want.size(); ++i) want[i] += static_cast<double>(call.input.flat<float>()[i]);
    }
    for (size_t i = 0; i < want.size(); ++i) {
      ASSERT_NEAR(static_cast<double>(first.flat<float>()[i]), want[i], 2e-2) << i;
    }
  }
}

TEST_F(CollectivesTest, GathersByRankAndBroadcastsFromAnyMember) {
  const auto rows = RunAll(All(CollectiveKind::kGather, 5), 3);
  for (const StatusOr<Tensor>& r : rows) {
    ASSERT_TRUE(r.ok()) << r.status();
    ASSERT_EQ(r->shape(), Shape::Vector(5 * kMembers));
    for (int m = 0; m < kMembers; ++m) {
      EXPECT_TRUE(SameBits(*r->Rows(5 * m, 5 * m + 5), CallOf(m, CollectiveKind::kGather, 5).input)) << m;
    }
  }
  for (int source = 0; source < kMembers; ++source) {
    std::vector<CollectiveCall> calls = All(CollectiveKind::kBroadcast, 1'200'000);
    for (int m = 0; m < kMembers; ++m) {
      if (m != source) calls[static_cast<size_t>(m)].input = Tensor();
    }
    const Tensor sent = calls[static_cast<size_t>(source)].input;
    for (const StatusOr<Tensor>& r : RunAll(std::move(calls), static_cast<unsigned>(source))) {
      ASSERT_TRUE(r.ok()) << r.status();
      EXPECT_TRUE(SameBits(*r, sent)) << source;
    }
  }
}

TEST_F(CollectivesTest, ATaskThatDiesEndsTheRoundForAll) {
  tasks_[2]->dead = true;
  for (const StatusOr<Tensor>& r : RunAll(All(CollectiveKind::kReduce, 100'000), 1)) {
    ASSERT_FALSE(r.ok());
    EXPECT_TRUE(absl::IsUnavailable(r.status())) << r.status();
    EXPECT_TRUE(absl::StrContains(r.status().message(), "task:2 is dead")) << r.status();
  }
  tasks_[2]->dead = false;
  for (const StatusOr<Tensor>& r : RunAll(All(CollectiveKind::kReduce, 100), 2)) EXPECT_TRUE(r.ok()) << r.status();
}

TEST_F(CollectivesTest, ACancelledMemberTakesItsGroupAlong) {
  for (const bool is_at_leader : {true, false}) {
    CancellationManager cancellation;
    std::vector<CollectiveCall> calls = All(CollectiveKind::kReduce, 10);
    calls.resize(static_cast<size_t>(kMembers) - 1);  // one never comes
    calls[is_at_leader ? 0 : 5].cancellation = &cancellation;
    std::thread canceller([&] {
      absl::SleepFor(absl::Milliseconds(50));
      cancellation.Cancel(Cancelled("enough"));
    });
    const auto results = RunAll(std::move(calls), is_at_leader);
    canceller.join();
    for (const StatusOr<Tensor>& r : results) {
      ASSERT_FALSE(r.ok());
      EXPECT_TRUE(absl::IsAborted(r.status()) || absl::IsCancelled(r.status())) << r.status();
      EXPECT_TRUE(absl::StrContains(r.status().message(), "was cancelled")) << r.status();
    }
  }
}

TEST_F(CollectivesTest, NobodyWaitsForWhoIsMissing) {
  std::vector<CollectiveCall> calls = All(CollectiveKind::kReduce, 10);
  calls.resize(3);
  for (CollectiveCall& c : calls) c.timeout = absl::Milliseconds(100);
  for (const StatusOr<Tensor>& r : RunAll(std::move(calls), 0)) {
    EXPECT_TRUE(absl::IsDeadlineExceeded(r.status())) << r.status();
    EXPECT_TRUE(absl::StrContains(r.status().message(), "3 of 8 members are there: ")) << r.status();
    EXPECT_TRUE(absl::StrContains(r.status().message(), "task:1/device:CPU:0")) << r.status();
  }
}

TEST_F(CollectivesTest, NobodyWaitsForAMemberThatHasDied) {
  const auto without_the_last_task = [] {
    std::vector<CollectiveCall> calls = AllOfSessions();
    calls.resize(static_cast<size_t>(kMembers - kDevices));
    for (CollectiveCall& c : calls) c.timeout = absl::Minutes(10);
    return calls;
  };
  for (const StatusOr<Tensor>& r : RunAll(AllOfSessions(), 0)) ASSERT_TRUE(r.ok()) << r.status();
  tasks_.back()->dead = true;
  for (const StatusOr<Tensor>& r : RunAll(without_the_last_task(), 0)) {
    EXPECT_TRUE(absl::IsUnavailable(r.status())) << r.status();
    EXPECT_TRUE(absl::StrContains(r.status().message(), "a member is gone: /job:w/replica:0/task:3 is dead"));
  }
  // When it is back nobody has anything against it.
  tasks_.back()->dead = false;
  for (const StatusOr<Tensor>& r : RunAll(AllOfSessions(), 1)) ASSERT_TRUE(r.ok()) << r.status();
  tasks_.back()->incarnation_now = 78;
  for (const StatusOr<Tensor>& r : RunAll(without_the_last_task(), 0)) {
    EXPECT_TRUE(absl::IsAborted(r.status())) << r.status();
    EXPECT_TRUE(absl::StrContains(r.status().message(), "task:3 was restarted")) << r.status();
  }
}

TEST_F(CollectivesTest, WhoComesLateToAGroupThatHasFailedIsToldOnce) {
  for (const StatusOr<Tensor>& r : RunAll(AllOfSessions(), 0)) ASSERT_TRUE(r.ok()) << r.status();
  CancellationManager cancellation;
  std::vector<CollectiveCall> calls = AllOfSessions();
  const CollectiveCall late = calls.back();
  calls.resize(2);
  calls[1].cancellation = &cancellation;
  std::thread canceller([&] {
    absl::SleepFor(absl::Milliseconds(50));
    cancellation.Cancel(Cancelled("enough"));
  });
  for (const StatusOr<Tensor>& r : RunAll(std::move(calls), 0)) EXPECT_FALSE(r.ok());
  canceller.join();
  StatusOr<Tensor> told = Internal("no answer");
  tasks_.back()->collectives->Run(late, [&](StatusOr<Tensor> r) { told = std::move(r); });
  EXPECT_TRUE(absl::IsAborted(told.status())) << told.status();
  EXPECT_TRUE(absl::StrContains(told.status().message(), "was cancelled")) << told.status();
  // Then all try again; the others, which have not come yet, are told too, once.
  std::vector<CollectiveCall> rest = AllOfSessions();
  rest.erase(rest.begin(), rest.begin() + 2);
  rest.pop_back();
  for (CollectiveCall& c : rest) {
    StatusOr<Tensor> result = Internal("no answer");
    tasks_[static_cast<size_t>(c.session - 1) / kDevices]->collectives->Run(c, [&](StatusOr<Tensor> r) { result = r; });
    EXPECT_TRUE(absl::IsAborted(result.status())) << result.status();
  }
  for (const StatusOr<Tensor>& r : RunAll(AllOfSessions(), 0)) EXPECT_TRUE(r.ok()) << r.status();
}

// Members of one client: a failure ends its session, and it comes again with another.
TEST_F(CollectivesTest, AFailureDoesNotEchoForEver) {
  const auto attempt = [&](uint64_t session, bool all) {
    std::vector<CollectiveCall> calls = All(CollectiveKind::kReduce, 10);
    if (!all) calls.pop_back();
    CancellationManager step;
    absl::Mutex mu;
    size_t left = calls.size();
    bool is_well = true;
    for (size_t i = 0; i < calls.size(); ++i) {
      calls[i].session = session;
      calls[i].cancellation = &step;
      tasks_[i / kDevices]->collectives->Run(std::move(calls[i]), [&](const StatusOr<Tensor>& r) {
        if (!r.ok()) step.Cancel(Aborted("another member has failed"));
        absl::MutexLock lock(&mu);
        is_well &= r.ok();
        --left;
      });
    }
    if (!all) step.Cancel(Cancelled("enough"));
    const auto is_over = [&] { return left == 0; };
    absl::MutexLock lock(&mu);
    EXPECT_TRUE(mu.AwaitWithTimeout(absl::Condition(&is_over), absl::Seconds(30)));
    return is_well;
  };
  EXPECT_TRUE(attempt(1, true));
  EXPECT_FALSE(attempt(2, false));
  int tries = 0;
  for (uint64_t session = 3; !attempt(session, true) && tries < 20; ++session) ++tries;
  EXPECT_LE(tries, 1) << "who comes anew is told once of what has failed";
}

TEST_F(CollectivesTest, AMessageThatComesTwiceCountsOnce) {
  Collectives& leader = *tasks_[0]->collectives;
  const auto join = [&](uint64_t member, int64_t step, Status* told) {
    JoinCollectiveRequest request{
        .member = member, .device = absl::StrCat("/job:w/replica:0/task:", member, "/device:CPU:0"), .group_size = 2};
    request.step = step;
    request.timeout_millis = 60'000;
    *told = Internal("no answer");
    leader.Join({}, request, [told](const StatusOr<JoinCollectiveResponse>& r) { *told = r.status(); });
  };
  Status first, second, copy;
  join(1, 5, &first);
  join(1, 5, &copy);
  EXPECT_TRUE(absl::IsAborted(copy)) << copy;
  join(2, 5, &second);
  EXPECT_TRUE(first.ok() && second.ok()) << first << second;
  // It waits for nobody, after the group was complete.
  join(1, 5, &copy);
  EXPECT_TRUE(absl::IsAborted(copy)) << copy;
}

TEST_F(CollectivesTest, MessagesThatMakeNoSenseAreRefused) {
  Collectives& leader = *tasks_[0]->collectives;
  const auto join = [&](const JoinCollectiveRequest& request) {
    Status told = Internal("no answer");
    leader.Join({}, request, [&](const StatusOr<JoinCollectiveResponse>& r) { told = r.status(); });
    return told;
  };
  const JoinCollectiveRequest good{.member = 1, .device = "/job:w/replica:0/task:9/device:CPU:0", .group_size = 1};
  EXPECT_TRUE(join(good).ok());
  JoinCollectiveRequest bad = good;
  for (const int64_t size : {int64_t{0}, int64_t{-1}, INT64_MIN, int64_t{1} << 40}) {
    bad.group_size = size;
    EXPECT_TRUE(absl::IsInvalidArgument(join(bad))) << size;
  }
  bad = good;
  for (const char* device : {"", "CPU:0", "/job:w", "///", "/job:w/replica:0/task:x/device:CPU:0"}) {
    bad.device = device;
    EXPECT_TRUE(absl::IsInvalidArgument(join(bad))) << device;
  }
  // Rounds that nobody knows are kept for a while, but not without limit.
  int refused = 0;
  CancellationManager gone;
  CallOptions call;
  call.cancellation = &gone;
  int answered = 0;
  for (uint64_t i = 0; i < 11'000; ++i) {
    leader.Recv(call, {i, Task::incarnation, "whole 0"}, [&](const StatusOr<RecvCollectiveResponse>& r) {
      ++answered;
      refused += absl::IsResourceExhausted(r.status());
    });
  }
  EXPECT_EQ(refused, 1'000);
  gone.Cancel(Cancelled("enough"));
  EXPECT_EQ(answered, 11'000);
  leader.Recv({}, {5, 1, ""}, [&](const StatusOr<RecvCollectiveResponse>& r) {
    EXPECT_TRUE(absl::IsAborted(r.status())) << r.status();
  });
  for (uint64_t i = 0; i < 20'000; ++i) EXPECT_TRUE(leader.Abort({i, Aborted("noise")}).ok());
}

}  // namespace
}  // namespace millrace
