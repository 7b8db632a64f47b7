// SPDX-License-Identifier: Apache-2.0
#include "kernel/device_memory.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "kernel/late_work.h"

namespace millrace {
namespace {

// Memory that only counts as out of the host's reach.
class FakeSpace final : public MemorySpace {
 public:
  std::string name() const override { return "/device:FAKE:0"; }
  void* Allocate(size_t bytes) override { return bytes <= limit ? std::malloc(bytes) : nullptr; }
  void Deallocate(void* p, size_t) override {
    std::free(p);
    ++freed;
  }
  AllocatorStats Stats() const override { return {.bytes_limit = static_cast<int64_t>(limit)}; }
  void CopyToHost(const void* from, void* to, size_t bytes, DoneCallback done) override {
    std::memcpy(to, from, bytes);
    std::move(done)(failure);
  }
  void CopyFromHost(const void* from, void* to, size_t bytes, DoneCallback done) override {
    std::memcpy(to, from, bytes);
    std::move(done)(failure);
  }
  Status CopyWithin(const void* from, void* to, size_t bytes) override {
    std::memcpy(to, from, bytes);
    return failure;
  }
  void WhenIdle(DoneCallback done) override { std::move(done)(absl::OkStatus()); }
  void* native_stream() override { return nullptr; }

  size_t limit = 1 << 20;
  int freed = 0;
  Status failure;
};

TEST(MemorySpaceTest, TheHostReadsNoValueOfADevice) {
  FakeSpace space;
  StatusOr<Tensor> t = MakeTensorIn(space, DType::kInt32, Shape::Vector(3));
  ASSERT_TRUE(t.ok()) << t.status();
  EXPECT_EQ(SpaceOf(*t), &space);
  EXPECT_EQ(SpaceOf(Tensor::Vector<int32_t>({1})), nullptr);
  EXPECT_EQ(SpaceOf(Tensor()), nullptr);
  EXPECT_EQ(t->DebugString(), "int32[3] in the memory of /device:FAKE:0");
  EXPECT_EQ(t->IntValues().status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(t->IntScalar().status().code(), absl::StatusCode::kFailedPrecondition);
  StatusOr<Tensor> clone = t->Clone();
  ASSERT_TRUE(clone.ok());
  EXPECT_EQ(SpaceOf(*clone), &space);
  EXPECT_FALSE(clone->SharesBufferWith(*t));
  *clone = Tensor();
  EXPECT_EQ(space.freed, 1);
}

TEST(MemorySpaceTest, WhatDoesNotFitNamesTheMemory) {
  FakeSpace space;
  space.limit = 8;
  const Status s = MakeTensorIn(space, DType::kFloat, Shape::Vector(3)).status();
  EXPECT_EQ(s.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(s.message().find("/device:FAKE:0 cannot allocate 12 bytes"), std::string::npos) << s;
  EXPECT_EQ(MakeTensorIn(space, DType::kString, Shape()).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(MakeTensorIn(space, DType::kFloat, Shape::Vector(0)).ok());
}

TEST(MemorySpaceTest, CopiesGoToTheHostAndSayWhyNot) {
  FakeSpace space;
  StatusOr<Tensor> t = MakeTensorIn(space, DType::kInt32, Shape::Vector(2));
  ASSERT_TRUE(t.ok());
  std::memcpy(t->mutable_raw(), "\1\0\0\0\2\0\0\0", 8);
  std::vector<int64_t> got;
  CopyToHost(*t, [&](StatusOr<Tensor> copy) { got = *copy->IntValues(); });
  EXPECT_EQ(got, (std::vector<int64_t>{1, 2}));
  space.failure = Internal("broken");
  Status s;
  CopyToHost(*t, [&](StatusOr<Tensor> copy) { s = copy.status(); });
  EXPECT_EQ(s.message(), "broken");
}

TEST(HostMemoryTest, FollowsTheKernelThatServes) {
  OpDef op;
  op.name = "HostMemoryTestOp";
  op.inputs = {{.name = "x"}, {.name = "sizes"}};
  op.outputs = {{.name = "y"}};
  NodeSignature signature;
  signature.input_types = {DType::kFloat, DType::kInt32, DType::kInt32};
  signature.output_types = {DType::kString};
  signature.input_args = {{0, 1}, {1, 3}};
  signature.output_args = {{0, 1}};
  SetHostMemory({.op = op.name, .device = "FAKE", .types = {{"T", {DType::kFloat}}}}, {"sizes"});
  SetHostMemory({.op = op.name, .device = "FAKE", .types = {{"T", {DType::kFloat}}}, .priority = -1}, {"x"});
  AttrMap attrs;
  attrs["T"] = DType::kFloat;
  EXPECT_EQ(MemoryOf(op, attrs, signature, "FAKE").host_inputs, (std::vector<bool>{false, true, true}));
  EXPECT_EQ(MemoryOf(op, attrs, signature, "FAKE").host_outputs, std::vector<bool>{true});  // strings always
  attrs["T"] = DType::kDouble;
  EXPECT_EQ(MemoryOf(op, attrs, signature, "FAKE").host_inputs, (std::vector<bool>{false, false, false}));
}

TEST(LateWorkTest, IsOverWhenTheLastHasEnded) {
  std::vector<std::string> told;
  auto work = MakeRef<LateWork>([&](const Status& s) { told.push_back(std::string(s.message())); });
  Status result = Internal("not called");
  work->Begin();
  work->Begin();
  work->WhenOver([&](Status s) { result = std::move(s); });
  work->End(Internal("first"));
  work->Begin();
  work->End(Internal("second"));
  EXPECT_EQ(result.message(), "not called");
  work->End(absl::OkStatus());
  EXPECT_EQ(result.message(), "first");
  EXPECT_EQ(told, std::vector<std::string>{"first"});
}

TEST(LateWorkTest, BelongsToAStep) {
  ResourceManager resources;
  StepContext step;
  EXPECT_EQ(LateWork::Of(step), nullptr);
  step.step_resources = &resources;
  EXPECT_EQ(LateWork::Of(step), nullptr);
  auto work = MakeRef<LateWork>([](const Status&) {});
  ASSERT_TRUE(LateWork::Attach(work, resources).ok());
  EXPECT_EQ(LateWork::Of(step), work.get());
  bool over = false;
  work->WhenOver([&](const Status& s) { over = s.ok(); });
  EXPECT_TRUE(over);
}

TEST(HandleTest, OfAVariableStaysOnItsDevice) {
  Tensor handles = *Tensor::Make(DType::kResource, Shape());
  EXPECT_TRUE(CheckMayLeaveDevice(handles).ok());
  ResourceHandle& h = *handles.mutable_data<ResourceHandle>();
  h.name = "v";
  h.device = "/device:FAKE:0";
  h.resource = MakeRef<Variable>(DType::kFloat, PartialShape());
  const Status s = CheckMayLeaveDevice(handles);
  EXPECT_NE(s.message().find("variable 'v'"), std::string::npos) << s;
  EXPECT_TRUE(CheckMayLeaveDevice(Tensor::Vector<int32_t>({1})).ok());
}

}  // namespace
}  // namespace millrace
