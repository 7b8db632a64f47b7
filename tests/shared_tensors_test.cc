// SPDX-License-Identifier: Apache-2.0
// Large tensors between tasks that reach each other through shared memory: they are read where their owner has them,
// and no reader sees what the owner does with them later.
#include <algorithm>
#include <atomic>
#include <thread>

#include "cluster/held_port.h"
#include "cluster/transport_loader.h"
#include "servers_fixture.h"

namespace millrace {
namespace {

constexpr int64_t kElements = 1 << 19;

bool IsAll(const Tensor& t, float value) {
  const auto elements = t.flat<float>();
  return t.num_elements() == kElements &&
         std::all_of(elements.begin(), elements.end(), [&](float x) { return x == value; });
}

// A variable of the parameter server, and what the worker does with it.
class SharedTensorsTest : public ServersTest {
 protected:
  SharedTensorsTest() {
    const HeldPort a = HeldPort::Take({"localhost", 0}).value(), b = HeldPort::Take({"localhost", 0}).value();
    cluster_ = TwoTasks();
    cluster_.job[0].tasks[0] = a.address().ToString();
    cluster_.job[1].tasks[0] = b.address().ToString();
  }
  void SetUp() override {
    ps_ = Started("ps", cluster_);
    worker_ = Started("worker", cluster_);
    client_ = NewClient(worker_->target());
    Node* const init = client_.Add([&](const GraphBuilder& graph) {
      const GraphBuilder on_ps = graph.WithDevice(kPs), on_worker = graph.WithDevice(kWorker);
      const PartialShape shape(Shape::Vector(kElements));
      const Output v = on_ps.Op("VariableV2", {}, {{"shape", shape}, {"dtype", DType::kFloat}});
      const Output zeros = on_ps.Op(
          "Const", {}, {{"value", *Tensor::Zeros(DType::kFloat, Shape::Vector(kElements))}, {"dtype", DType::kFloat}});
      read_ = on_worker.Identity(v);
      add_ = on_ps.OpNode("AssignAdd", {v, on_ps.Op("OnesLike", {zeros})});
      turn_ = on_ps.OpNode("Assign", {v, on_worker.Op("Neg", {read_})});
      return on_ps.OpNode("Assign", {v, zeros});
    });
    ASSERT_TRUE(client_.Run({}, {init}).ok());
  }
  Tensor Read() {
    const auto got = client_.Run({read_});
    EXPECT_TRUE(got.ok()) << got.status();
    return got.ok() ? got->front() : Tensor();
  }

  StatusOr<std::unique_ptr<RpcTransport>> NewTransport() override {
    return NewHostTransport(Env::Default(), {}, Unimplemented("there is shared memory alone"));
  }

  wire::ClusterDef cluster_;
  std::unique_ptr<Server> ps_, worker_;
  Client client_;
  Output read_;
  Node* add_ = nullptr;
  Node* turn_ = nullptr;
};
INSTANTIATE_TEST_SUITE_P(ByMessages, SharedTensorsTest, ::testing::Values(true));

TEST_P(SharedTensorsTest, WhoHoldsAValueSeesNoLaterUpdate) {
  std::vector<Tensor> held;
  for (int i = 0; i < 6; ++i) {
    held.push_back(Read());
    ASSERT_TRUE(client_.Run({}, {add_}).ok());
  }
  for (size_t i = 0; i < held.size(); ++i) EXPECT_TRUE(IsAll(held[i], static_cast<float>(i))) << i;
  client_.session.reset();  // with the connections by which they came
  client_ = NewClient(ps_->target());
  held.pop_back();
  EXPECT_TRUE(IsAll(held.back(), 4));
}

TEST_P(SharedTensorsTest, WhatOneMakesForTheOtherIsWhatItGets) {
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(client_.Run({}, {add_}).ok());
    ASSERT_TRUE(client_.Run({}, {turn_}).ok());  // 0, then -1, 0, -1 ...
    EXPECT_TRUE(IsAll(Read(), i % 2 == 0 ? -1.0f : 0.0f)) << i;
  }
}

TEST_P(SharedTensorsTest, NobodyReadsHalfAnUpdate) {
  std::atomic<bool> is_over{false};
  std::thread writer([&] {
    for (int i = 0; i < 40; ++i) EXPECT_TRUE(client_.Run({}, {add_}).ok());
    is_over = true;
  });
  while (!is_over) {
    const Tensor t = Read();
    EXPECT_TRUE(t.IsInitialized() && IsAll(t, t.data<float>()[0]));
  }
  writer.join();
  EXPECT_TRUE(IsAll(Read(), 40));
}

}  // namespace
}  // namespace millrace
