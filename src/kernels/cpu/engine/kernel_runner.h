// SPDX-License-Identifier: Apache-2.0
// For unit tests: runs one registered kernel on given inputs, without a graph.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device/cpu/cpu_device.h"
#include "kernel/kernel_registry.h"

namespace millrace {

class KernelRunner {
 public:
  // `threads` wide pool of its own.
  KernelRunner(void (*register_kernels)(KernelRegistry&), int threads)
      : pool_(threads),
        device_(NewCpuDevice(*DeviceName::Parse("/job:localhost/replica:0/task:0/device:CPU:0"), 1, pool_)) {
    register_kernels(registry_);
  }

  // `schema` declares the op as the kernel knows it. Attributes not given take their defaults.
  StatusOr<std::vector<Tensor>> Run(absl::string_view schema, AttrMap attrs, std::vector<Tensor> inputs) {
    MR_ASSIGN_OR_RETURN(const OpDef op, ParseSchema(schema));
    std::vector<std::string> unknown;
    MR_RETURN_IF_ERROR(CompleteAttrs(op, &attrs, &unknown));
    NodeInfo node;
    node.name = "node";
    node.op = &op;
    node.device = device_.get();
    MR_ASSIGN_OR_RETURN(node.signature, ResolveSignature(op, attrs));
    MR_ASSIGN_OR_RETURN(auto kernel, registry_.Create(KernelInit{op, node.name, attrs, node.signature, *device_}));
    std::vector<Slot> in(inputs.size()), out(node.signature.output_types.size());
    std::vector<Slot*> pointers;
    for (size_t i = 0; i < in.size(); ++i) {
      in[i].tensor = std::move(inputs[i]);
      pointers.push_back(&in[i]);
    }
    KernelContext ctx(node, pointers.data(), out.data(), inputs_die ? ~uint64_t{0} : 0, step);
    MR_RETURN_IF_ERROR(kernel->Compute(ctx));
    std::vector<Tensor> results;
    for (Slot& s : out) results.push_back(s.ref ? s.ref->ReadOrEmpty() : s.tensor);
    return results;
  }

  StepContext step;         // of every run
  bool inputs_die = false;  // a run may take the buffers of its inputs

 private:
  ThreadPool pool_;
  std::unique_ptr<Device> device_;
  KernelRegistry registry_;
};

}  // namespace millrace
