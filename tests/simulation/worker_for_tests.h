// SPDX-License-Identifier: Apache-2.0
// A worker with one device for unit tests, with one op of its own: Count, a stateful one, adds to a variable of its
// device and gives how often its kernel ran.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "graph/graph.h"
#include "kernel/kernel_registry.h"
#include "kernel/random_stream.h"
#include "service/worker.h"

namespace millrace {

class DeviceForTests final : public Device {
 public:
  DeviceForTests() : Device({.job = "x", .replica = 0, .task = 1, .type = "CPU", .id = 0}, 1, HostAllocator()) {}
  ThreadPool& thread_pool() override { return ProcessThreadPool(); }
  int64_t memory_limit() const override { return 0; }
  ResourceManager& resources() override { return resources_; }

 private:
  ResourceManager resources_;
};

inline std::vector<std::unique_ptr<Device>> OneDeviceForTests() {
  std::vector<std::unique_ptr<Device>> devices;
  devices.push_back(std::make_unique<DeviceForTests>());
  return devices;
}

// Its number of runs is a position, so that a session can be asked for it.
class CountKernel final : public Kernel, public RandomStream {
 public:
  Status Compute(KernelContext& ctx) override {
    ++runs_;
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape()));
    *out->mutable_data<int64_t>() = runs_;
    return absl::OkStatus();
  }
  Position position() const override { return {runs_}; }
  void set_position(const Position& p) override { runs_ = p[0]; }

 private:
  uint32_t runs_ = 0;
};

struct OpsForTests {
  OpsForTests() {
    ops.Add("Count() -> (n:i64) | | S").Shape([](ShapeContext&) { return absl::OkStatus(); });
    kernels.Add<CountKernel>({.op = "Count"});
  }
  // With one node of that name.
  PartitionToRegister Counting(const std::string& node, std::string device = "/job:x/replica:0/task:1/device:CPU:0") {
    PartitionToRegister p;
    p.partition.device = std::move(device);
    p.partition.graph = std::make_unique<Graph>(&ops);
    made.Update(p.partition.graph->AddNode({.name = node, .op = "Count"}).status());
    return p;
  }

  OpRegistry ops;
  KernelRegistry kernels;
  Status made;  // of graphs
};

}  // namespace millrace
