// SPDX-License-Identifier: Apache-2.0
#include "service/ask_kernels.h"

#include "base/exceptions.h"
#include "kernel/device_memory.h"
#include "runtime/node_run.h"

namespace millrace {
namespace {

// `data`: a FunctionRef<Status()> that says whether to go on.
bool MustStop(void* data) { return !WithoutExceptions(*static_cast<absl::FunctionRef<Status()>*>(data)).ok(); }

StatusOr<std::vector<Tensor>> Evaluate(const KernelRegistry& kernels, Device& device, const Node& node,
                                       const std::vector<Tensor>& inputs, absl::FunctionRef<Status()> keep_going) {
  const KernelInit init{*node.op(), node.name(), node.attrs(), node.signature(), device};
  MR_ASSIGN_OR_RETURN(const std::unique_ptr<Kernel> kernel, kernels.Create(init));
  if (kernel->AsAsync()) return Unimplemented("asynchronous kernels are not folded");
  NodeInfo info{node.name(), node.op(), node.signature(), node.location(), &device};
  std::vector<Slot> in(inputs.size()), out(static_cast<size_t>(node.num_outputs()));
  std::vector<Slot*> in_pointers;
  for (size_t i = 0; i < inputs.size(); ++i) {
    in[i].tensor = inputs[i];
    in_pointers.push_back(&in[i]);
  }
  StepContext step;
  KernelContext ctx(info, in_pointers.data(), out.data(), 0, step);
  StopScope stop(&MustStop, &keep_going);
  stop.may_stop = ChangesOnlyItsOutputs(node.signature());
  MR_RETURN_IF_ERROR(WithoutExceptions([&] { return kernel->Compute(ctx); }));
  std::vector<Tensor> values;
  for (Slot& s : out) {
    if (!s.tensor.IsInitialized()) return Internal("kernel gave an output no value");
    values.push_back(std::move(s.tensor));
  }
  return values;
}

}  // namespace

ArgMemory MemoryOf(const Node& node, absl::string_view device_type) {
  // What comes in and goes out is in host memory.
  if (node.Is(OpTrait::kArgument)) return {{}, {true}};
  if (node.Is(OpTrait::kResult)) return {{true}, {}};
  if (node.op()) return MemoryOf(*node.op(), node.attrs(), node.signature(), device_type);
  const auto count = [](size_t n) { return std::vector<bool>(n, false); };  // it has no kernel anyway
  return {count(node.signature().input_types.size()), count(node.signature().output_types.size())};
}

void AskKernels(const KernelRegistry& kernels, Device& host, PassEnvironment* env) {
  env->has_kernel = [&kernels](const Node& n, const std::string& type) {
    return n.op() && (kernels.Has(*n.op(), n.attrs(), type) || n.Is(OpTrait::kArgument) || n.Is(OpTrait::kResult));
  };
  env->cost_of = [&kernels](const Node& n, const std::string& type) {
    return n.op() ? kernels.CostOf(*n.op(), n.attrs(), type) : &ElementCost;
  };
  env->memory_of = [](const Node& n, const std::string& type) { return MemoryOf(n, type); };
  env->evaluate =
      [&kernels, &host](const Node& n, const std::vector<Tensor>& inputs, absl::FunctionRef<Status()> keep_going) {
        return Evaluate(kernels, host, n, inputs, keep_going);
      };
}

}  // namespace millrace
