// SPDX-License-Identifier: Apache-2.0
#include "kernel/kernel.h"

#include "tensor/shared_memory.h"

namespace millrace {

Status Kernel::Init(const KernelInit&) { return absl::OkStatus(); }

Status AsyncKernel::Compute(KernelContext& ctx) {
  return Internal("asynchronous kernel of node '", ctx.node_name(), "' was run as a synchronous one");
}

ArgRange KernelContext::input_arg(absl::string_view name) const {
  const std::vector<ArgDef>& args = node_.op->inputs;
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i].name == name) return node_.signature.input_args[i];
  }
  return {};
}

bool KernelContext::MakeOutputToSend(int o, const Shape& shape) {
  return o < 64 && (node_.sent_outputs >> o & 1) != 0 &&
         SharedMemory::Instance().MakeTensor(output_dtype(o), shape, &outputs_[o].tensor);
}

StatusOr<Tensor*> KernelContext::AllocateOutput(int o, const Shape& shape) {
  Tensor& out = outputs_[o].tensor;
  if (node_.sent_outputs != 0 && MakeOutputToSend(o, shape)) return &out;
  MR_RETURN_IF_ERROR(Tensor::MakeIn(&out, output_dtype(o), shape, node_.device->allocator()));
  return &out;
}

Tensor KernelContext::TakeInput(int i) {
  if (i < 64 && ((forwardable_ >> i) & 1) != 0 && inputs_[i]->tensor.OwnsBufferAlone()) {
    return std::move(inputs_[i]->tensor);
  }
  return Tensor();
}

StatusOr<Tensor*> KernelContext::ForwardOrAllocate(std::initializer_list<int> candidates, int o, const Shape& shape) {
  Tensor& out = outputs_[o].tensor;
  if (node_.sent_outputs != 0 && MakeOutputToSend(o, shape)) return &out;
  const DType want = output_dtype(o);
  for (int i : candidates) {
    if (i >= 64 || ((forwardable_ >> i) & 1) == 0) continue;
    Tensor& in = inputs_[i]->tensor;
    if (in.dtype() != want || in.num_elements() != shape.num_elements() || !in.OwnsBufferAlone()) continue;
    // The input stays readable until the slot is released after Compute.
    if (&in.shape() == &shape || in.shape() == shape) {
      TensorAccess::MoveBufferKeepingView(in, out);
    } else {
      MR_ASSIGN_OR_RETURN(out, in.Reshaped(shape));
    }
    return &out;
  }
  return AllocateOutput(o, shape);
}

Status KernelContext::ForwardReshaped(int i, int o, const Shape& shape) {
  MR_ASSIGN_OR_RETURN(outputs_[o].tensor, inputs_[i]->tensor.Reshaped(shape));
  return absl::OkStatus();
}

StatusOr<Tensor> KernelContext::AllocateTemp(DType dtype, const Shape& shape) {
  return Tensor::Make(dtype, shape, node_.device->allocator());
}

Status BadHandle(const KernelContext& ctx, int i, absl::string_view why) {
  return InvalidArgument("input ", i, " of node '", ctx.node_name(), "' ", why);
}

}  // namespace millrace
