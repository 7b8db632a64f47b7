// SPDX-License-Identifier: Apache-2.0
// The contract of kernels.
//
// A kernel is made once per node of a plan (Init reads attributes), then computes many times, from several steps at
// once: Compute must not change the kernel, except under a lock of its own. The framework guarantees, before Compute,
// that the number and dtypes of the inputs are those that the op declares; everything else (ranks, sizes, indices,
// relations between inputs) the kernel checks and answers with a Status. Inputs are never dead and never uninitialised,
// except reference inputs of ops that declare so, and the inputs of a merge or a transfer. A kernel must give every
// output a value or fail; a Switch or a Recv that leaves an output without one says that it is dead. Blocking is not
// allowed in Compute: who must wait is an AsyncKernel. Zero-element inputs are legal everywhere.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "kernel/cancellation.h"
#include "kernel/device.h"
#include "kernel/rendezvous.h"
#include "kernel/resource_manager.h"
#include "kernel/tensor_access.h"
#include "op/op_def.h"

namespace millrace {

class Kernel;

// What is known when a kernel is made.
struct KernelInit {
  const OpDef& op;
  const std::string& node_name;
  const AttrMap& attrs;
  const NodeSignature& signature;
  Device& device;

  template <typename T>
  StatusOr<T> Attr(absl::string_view name) const {
    return GetAttr<T>(attrs, name);
  }
  bool HasAttr(absl::string_view name) const { return attrs.find(name) != attrs.end(); }
  DType input_type(int i) const { return signature.input_types[static_cast<size_t>(i)]; }
  DType output_type(int i) const { return signature.output_types[static_cast<size_t>(i)]; }
  int num_inputs() const { return static_cast<int>(signature.input_types.size()); }
  int num_outputs() const { return static_cast<int>(signature.output_types.size()); }
};

// A value on an edge during a step: a tensor, or a reference to a variable.
struct Slot {
  Tensor tensor;
  RefPtr<Variable> ref;
};

class StepTrace;

// State of one step that kernels may use. Lives as long as the step.
struct StepContext {
  int64_t step_id = 0;
  Rendezvous* rendezvous = nullptr;
  CancellationManager* cancellation = nullptr;
  ResourceManager* step_resources = nullptr;  // cleared at the end of the step (temporary variables, stacks)
  int max_threads = 0;                        // for ParallelFor; 0: the pool's width
  // The frame and iteration that the node runs in; 0 and 0 outside of loops.
  uint64_t frame = 0;
  int64_t iteration = 0;
  StepTrace* trace = nullptr;  // for what runs nodes of its own; null: the step is not traced
};

// Everything about a node that does not change between steps.
struct NodeInfo {
  std::string name;
  const OpDef* op = nullptr;
  NodeSignature signature;
  std::string location;
  Device* device = nullptr;
  uint64_t sent_outputs = 0;  // bits of those that a transfer takes from host memory
};

class KernelContext {
 public:
  // Made by the executor: `inputs[i]` points at the slot of input i, `outputs` at as many slots as the node has
  // outputs. Bit i of `forwardable` says that input i's slot dies with this node, so its buffer may be taken.
  KernelContext(const NodeInfo& node, Slot* const* inputs, Slot* outputs, uint64_t forwardable, StepContext& step)
      : node_(node), inputs_(inputs), outputs_(outputs), forwardable_(forwardable), step_(step) {}

  int num_inputs() const { return static_cast<int>(node_.signature.input_types.size()); }
  int num_outputs() const { return static_cast<int>(node_.signature.output_types.size()); }
  const Tensor& input(int i) const { return inputs_[i]->tensor; }
  DType input_dtype(int i) const { return node_.signature.input_types[static_cast<size_t>(i)]; }
  DType output_dtype(int i) const { return BaseType(node_.signature.output_types[static_cast<size_t>(i)]); }
  // Flat positions of a list argument.
  ArgRange input_arg(absl::string_view name) const;

  // Only where dead inputs do not keep a kernel from running: a merge, a transfer.
  bool is_dead(int i) const { return !inputs_[i]->tensor.IsInitialized() && !inputs_[i]->ref; }
  // Passes input i on as output o, without its place in the input when that dies here.
  void Forward(int i, int o) {
    if (i < 64 && (forwardable_ >> i & 1)) {
      outputs_[o].tensor = std::move(inputs_[i]->tensor);
    } else {
      outputs_[o].tensor = inputs_[i]->tensor;
    }
  }

  // The variable behind a reference input (declared &T).
  Variable& ref_input(int i) const { return *inputs_[i]->ref; }
  // Passes reference input i on as output o.
  void ForwardRef(int i, int o) { outputs_[o].ref = inputs_[i]->ref; }
  void set_output_ref(int o, RefPtr<Variable> v) { outputs_[o].ref = std::move(v); }
  bool has_ref_input(int i) const { return static_cast<bool>(inputs_[i]->ref); }

  // Output o as fresh memory of the device, where other processes can read it if it is large and for them. The pointer
  // is valid until Compute returns.
  StatusOr<Tensor*> AllocateOutput(int o, const Shape& shape);
  // Reuses the buffer of the first input in `candidates` that dies here and has as many bytes; else allocates. The
  // kernel must then cope with reading and writing the same memory, element by element.
  StatusOr<Tensor*> ForwardOrAllocate(std::initializer_list<int> candidates, int o, const Shape& shape);
  // Input i as output o with another shape (same number of elements, same element size), without a copy.
  Status ForwardReshaped(int i, int o, const Shape& shape);
  // Input i, which has the output's dtype, as output o, when its buffer may be reused; else null. The input stays
  // readable until Compute returns.
  Tensor* ForwardOwned(int i, int o) {
    Tensor& in = inputs_[i]->tensor;
    if (i >= 64 || (forwardable_ >> i & 1) == 0 || !in.OwnsBufferAlone()) return nullptr;
    TensorAccess::MoveBufferKeepingView(in, outputs_[o].tensor);
    return &outputs_[o].tensor;
  }
  void set_output(int o, Tensor t) { outputs_[o].tensor = std::move(t); }
  Tensor* mutable_output(int o) { return &outputs_[o].tensor; }
  StatusOr<Tensor> AllocateTemp(DType dtype, const Shape& shape);
  // Takes input i out of its slot when it dies here and nobody else holds its buffer (then the caller may write into
  // it); else an uninitialised tensor.
  Tensor TakeInput(int i);

  // See ThreadPool::ParallelFor; `cost_per_unit` is about nanoseconds per index.
  void ParallelFor(int64_t n, double cost_per_unit, absl::FunctionRef<void(int64_t, int64_t)> fn) const {
    node_.device->thread_pool().ParallelFor(n, cost_per_unit, fn, step_.max_threads);
  }

  const NodeInfo& node() const { return node_; }
  const std::string& node_name() const { return node_.name; }
  Device& device() const { return *node_.device; }
  ResourceManager& resources() const { return node_.device->resources(); }
  StepContext& step() const { return step_; }

 private:
  bool MakeOutputToSend(int o, const Shape& shape);

  const NodeInfo& node_;
  Slot* const* inputs_;
  Slot* outputs_;
  uint64_t forwardable_;
  StepContext& step_;
};

class AsyncKernel;

class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual Status Init(const KernelInit& init);  // default: nothing to read
  virtual Status Compute(KernelContext& ctx) = 0;
  virtual AsyncKernel* AsAsync() { return nullptr; }
  // False for ops that cost no more than a hand-over between threads (the default is judged by measurement).
  virtual bool IsExpensive() const { return true; }
  // True for a kernel without inputs that gives the same outputs in every step of a session (a constant, a variable's
  // reference): it runs once, and its outputs stay.
  virtual bool OutputsNeverChange() const { return false; }
};

// A kernel that may have to wait. ComputeAsync returns at once; `done` runs exactly once, on any thread, and the
// context stays valid until then. It must honour ctx.step().cancellation.
class AsyncKernel : public Kernel {
 public:
  using DoneCallback = absl::AnyInvocable<void(Status) &&>;
  virtual void ComputeAsync(KernelContext& ctx, DoneCallback done) = 0;
  Status Compute(KernelContext& ctx) final;  // Internal: the executor never calls it
  AsyncKernel* AsAsync() final { return this; }
};

// The resource behind a handle input. NotFound / InvalidArgument name node and handle.
template <typename T>
StatusOr<RefPtr<T>> ResourceFromInput(const KernelContext& ctx, int i);

Status BadHandle(const KernelContext& ctx, int i, absl::string_view why);

template <typename T>
StatusOr<RefPtr<T>> ResourceFromInput(const KernelContext& ctx, int i) {
  const Tensor& t = ctx.input(i);
  if (t.dtype() != DType::kResource || t.num_elements() != 1) return BadHandle(ctx, i, "is not one resource handle");
  const ResourceHandle& h = *t.data<ResourceHandle>();
  if (h.resource) {
    if (T* p = dynamic_cast<T*>(h.resource.get())) return RefPtr<T>::Share(p);
    return BadHandle(ctx, i, "is a handle of another type of resource");
  }
  return ctx.resources().template Lookup<T>(h.container, h.name);
}

}  // namespace millrace
