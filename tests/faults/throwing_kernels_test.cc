// SPDX-License-Identifier: Apache-2.0
// Kernels that throw, wherever they run, fail their step with a status that names them; the session goes on.
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>

#include "absl/strings/match.h"
#include "client/session.h"
#include "failing_memory.h"
#include "graph/control_flow.h"
#include "graph/graph_builder.h"
#include "kernel/kernel_registry.h"
#include "system/system.h"

namespace millrace {
namespace {

using absl::StatusCode;

void Throw(absl::string_view what) {
  if (what == "bad_alloc") throw std::bad_alloc();
  if (what == "length_error") throw std::length_error("too long");
  if (what == "runtime_error") throw std::runtime_error("on purpose");
  if (what == "int") throw 7;
}

class ThrowKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(what_, init.Attr<std::string>("what"));
    if (absl::StartsWith(what_, "init ")) Throw(what_.substr(5));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    if (*ctx.input(0).data<float>() != 0) {
      if (what_ != "in parallel") Throw(what_);
      ctx.ParallelFor(1000, 1e4, [](int64_t, int64_t) { throw std::bad_alloc(); });
    }
    ctx.Forward(0, 0);
    return absl::OkStatus();
  }

 private:
  std::string what_;
};

class ThrowOnceKernel : public Kernel {
 public:
  Status Compute(KernelContext&) override { throw std::bad_alloc(); }
  bool OutputsNeverChange() const override { return true; }
};

constexpr absl::string_view kNothingWithoutMemory = "nothing, without memory";
std::atomic<bool> memory_is_back{true};

// Throws before it has the callback in safety, after that, or never calls it.
class ThrowAsyncKernel : public AsyncKernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(what_, init.Attr<std::string>("what"));
    return absl::OkStatus();
  }
  void ComputeAsync(KernelContext& ctx, DoneCallback done) override {
    if (*ctx.input(0).data<float>() != 0 && what_ == kNothingWithoutMemory) {
      std::thread([done = std::move(done)]() mutable {
        FailAllocation(1, /*and_all_after=*/true);
        std::move(done)(absl::OkStatus());
        StopFailing();
        memory_is_back = true;
      }).detach();
      return;
    }
    ctx.Forward(0, 0);
    if (*ctx.input(0).data<float>() == 0 || what_ == "late") {
      std::thread([done = std::move(done)]() mutable { std::move(done)(absl::OkStatus()); }).detach();
      return;
    }
    if (what_ == "drop") return;
    if (what_ == "call and throw") {
      std::move(done)(absl::OkStatus());
      throw std::runtime_error("after the callback");
    }
    if (what_ == "keep and throw") {
      std::thread([done = std::move(done)]() mutable {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        std::move(done)(absl::OkStatus());
      }).detach();
      throw std::runtime_error("with the callback elsewhere");
    }
    Throw(what_);
  }

 private:
  std::string what_;
};

void RegisterOnce() {
  static const bool done = [] {
    System::Default().ops().Add("TestThrow(x:f32) -> (y:f32) | what:string");
    System::Default().ops().Add("TestThrowAsync(x:f32) -> (y:f32) | what:string").Traits({OpTrait::kWaits});
    System::Default().ops().Add("TestThrowOnce() -> (y:f32) | S");
    System::Default().kernels().Add<ThrowKernel>({.op = "TestThrow"});
    System::Default().kernels().Add<ThrowAsyncKernel>({.op = "TestThrowAsync"});
    System::Default().kernels().Add<ThrowOnceKernel>({.op = "TestThrowOnce"});
    return true;
  }();
  ASSERT_TRUE(done && System::Default().ops().status().ok()) << System::Default().ops().status();
}

// Where the kernel runs.
enum class Place { kInOrder, kBehindAWait, kOtherDevice, kLoop, kLoopThatWaits };

class ThrowingKernelTest : public ::testing::TestWithParam<std::tuple<Place, bool>> {
 protected:
  void SetUp() override { RegisterOnce(); }
  Place place() const { return std::get<0>(GetParam()); }

  Output Build(const GraphBuilder& b, const std::string& op, const std::string& what) {
    x_ = b.Op("Placeholder", {}, {{"dtype", DType::kFloat}});
    const auto culprit = [&](const GraphBuilder& in, Output x) {
      return in.WithName("culprit").Op(op, {x}, {{"what", what}});
    };
    const auto wait = [&](const GraphBuilder& in, Output x) {
      return in.Op("TestThrowAsync", {x}, {{"what", std::string("late")}});
    };
    switch (place()) {
      case Place::kInOrder: return b.Identity(culprit(b, b.Identity(x_)));
      case Place::kBehindAWait: return b.Identity(culprit(b, wait(b, x_)));
      case Place::kOtherDevice: return b.WithDevice("/cpu:0").Neg(culprit(b.WithDevice("/cpu:1"), x_));
      default: break;
    }
    const auto below = [](const GraphBuilder& in, const std::vector<Output>& v) -> StatusOr<std::vector<Output>> {
      return std::vector<Output>{in.Op("Less", {v[0], in.Scalar<int32_t>(3)})};
    };
    const auto body = [&](const GraphBuilder& in, const std::vector<Output>& v) -> StatusOr<std::vector<Output>> {
      const Output x = place() == Place::kLoop ? v[1] : wait(in, v[1]);
      return std::vector<Output>{in.Add(v[0], in.Scalar<int32_t>(1)), culprit(in, x)};
    };
    StatusOr<std::vector<Output>> out = WhileLoop(b, std::vector<Output>{b.Scalar<int32_t>(0), x_}, below, body);
    EXPECT_TRUE(out.ok()) << out.status();
    return out.ok() ? (*out)[1] : Output();
  }

  // One step that fails, with 1, and one that does not, with 0, several times.
  void ExpectFailure(const std::string& op, const std::string& what, StatusCode code) {
    SCOPED_TRACE(absl::StrCat(op, " ", what));
    RefPtr<SharedGraph> shared = MakeRef<SharedGraph>(&System::Default().ops());
    Output result;
    {
      const GraphLock lock(&shared->mu);
      const GraphBuilder b(&shared->graph);
      result = Build(b, op, what);
      ASSERT_TRUE(b.status().ok()) << b.status();
    }
    wire::ConfigProto config;
    config.device_count["CPU"] = 2;
    config.operation_timeout_in_ms = 20'000;
    auto session = System::Default().NewSession(shared, config, "", Determinism{std::get<1>(GetParam()), 1});
    ASSERT_TRUE(session.ok()) << session.status();
    for (const float x : {1.0f, 0.0f, 1.0f, 0.0f}) {
      std::vector<Tensor> out;
      const Status s = (*session)->Run(nullptr, std::vector<Output>{x_}, std::vector<Tensor>{Tensor::Scalar(x)},
                                       std::vector<Output>{result}, {}, &out, nullptr);
      const bool fails = x != 0 || absl::StartsWith(what, "init ");
      EXPECT_EQ(s.code(), fails ? code : StatusCode::kOk) << s;
      if (!fails) continue;
      EXPECT_TRUE(absl::StrContains(s.message(), "culprit") && absl::StrContains(s.message(), op)) << s;
    }
  }

  Output x_;
};

TEST_P(ThrowingKernelTest, BecomesAStatusThatNamesTheNode) {
  ExpectFailure("TestThrow", "bad_alloc", StatusCode::kResourceExhausted);
  ExpectFailure("TestThrow", "length_error", StatusCode::kResourceExhausted);
  ExpectFailure("TestThrow", "runtime_error", StatusCode::kInternal);
  ExpectFailure("TestThrow", "int", StatusCode::kInternal);
  ExpectFailure("TestThrow", "in parallel", StatusCode::kResourceExhausted);
  ExpectFailure("TestThrow", "init bad_alloc", StatusCode::kResourceExhausted);
  ExpectFailure("TestThrow", "init int", StatusCode::kInternal);
  ExpectFailure("TestThrowAsync", "bad_alloc", StatusCode::kResourceExhausted);
  ExpectFailure("TestThrowAsync", "call and throw", StatusCode::kInternal);
  ExpectFailure("TestThrowAsync", "keep and throw", StatusCode::kInternal);
  ExpectFailure("TestThrowAsync", "drop", StatusCode::kInternal);
}

INSTANTIATE_TEST_SUITE_P(, ThrowingKernelTest,
                         ::testing::Combine(::testing::Values(Place::kInOrder, Place::kBehindAWait, Place::kOtherDevice,
                                                              Place::kLoop, Place::kLoopThatWaits),
                                            ::testing::Bool()));

TEST(ThrowingOnceTest, BecomesAStatusThatNamesTheNode) {
  RegisterOnce();
  RefPtr<SharedGraph> shared = MakeRef<SharedGraph>(&System::Default().ops());
  Output result;
  {
    const GraphLock lock(&shared->mu);
    const GraphBuilder b(&shared->graph);
    result = b.WithName("culprit").Op("TestThrowOnce", {});
    ASSERT_TRUE(b.status().ok()) << b.status();
  }
  auto session = System::Default().NewSession(shared, {});
  ASSERT_TRUE(session.ok()) << session.status();
  for (int i = 0; i < 2; ++i) {
    std::vector<Tensor> out;
    const Status s = (*session)->Run(nullptr, {}, {}, std::vector<Output>{result}, {}, &out, nullptr);
    EXPECT_TRUE(absl::IsResourceExhausted(s) && absl::StrContains(s.message(), "culprit")) << s;
  }
}

// What an asynchronous kernel gave is looked at on the thread that it called back from, which no exception may end.
TEST(ThrowingAsyncTest, AnAsynchronousKernelThatGivesNothingWithoutMemoryEndsItsStep) {
  RegisterOnce();
  RefPtr<SharedGraph> shared = MakeRef<SharedGraph>(&System::Default().ops());
  Output x, result;
  {
    const GraphLock lock(&shared->mu);
    const GraphBuilder b(&shared->graph);
    x = b.Op("Placeholder", {}, {{"dtype", DType::kFloat}});
    result = b.Op("TestThrowAsync", {x}, {{"what", std::string(kNothingWithoutMemory)}});
    ASSERT_TRUE(b.status().ok()) << b.status();
  }
  auto session = System::Default().NewSession(shared, {});
  ASSERT_TRUE(session.ok()) << session.status();
  for (const float fails : {1.0f, 0.0f, 1.0f, 0.0f}) {
    std::vector<Tensor> out;
    memory_is_back = fails == 0;
    const Status s = (*session)->Run(nullptr, std::vector<Output>{x}, std::vector<Tensor>{Tensor::Scalar(fails)},
                                     std::vector<Output>{result}, {}, &out, nullptr);
    while (!memory_is_back) std::this_thread::yield();
    EXPECT_EQ(s.code(), fails != 0 ? StatusCode::kResourceExhausted : StatusCode::kOk) << s;
  }
}

}  // namespace
}  // namespace millrace
