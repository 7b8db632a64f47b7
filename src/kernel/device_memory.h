// SPDX-License-Identifier: Apache-2.0
// Devices with memory of their own, and what passes between it and the host's.
//
// Kernels of such a device queue work instead of doing it: "Compute has returned" means that it is queued, in an order
// that respects every dependency, and that memory which it uses may be given back. What fails after that fails the step
// (kernel/late_work.h). The CPU is a device without memory of its own: nothing is queued there, and nothing here costs
// it anything.
#pragma once

#include "kernel/kernel_registry.h"
#include "op/arg_memory.h"
#include "tensor/memory_space.h"

namespace millrace {

// allocator() is the host's, for arguments in host memory; what kernels make for others they take from space().
class RemoteDevice : public Device {
 public:
  MemorySpace& space() const { return space_; }

 protected:
  RemoteDevice(DeviceName name, uint64_t incarnation, MemorySpace& space)
      : Device(std::move(name), incarnation, HostAllocator()), space_(space) {}

 private:
  MemorySpace& space_;
};

// Null: the device works on host memory.
MemorySpace* SpaceOf(const Device& device);

// Says which arguments of a kernel that is registered with `spec` are in host memory: sizes, axes, predicates. To be
// said of every kernel of a device with memory of its own, before it is registered. May be called concurrently.
void SetHostMemory(const KernelSpec& spec, std::vector<std::string> args);
// Where the arguments of the kernel lie that the registry would choose. Strings, handles and variants are always in
// host memory.
ArgMemory MemoryOf(const OpDef& op, const AttrMap& attrs, const NodeSignature& signature,
                   absl::string_view device_type);

// `value`, which is in host memory, in that of the device that the context's node is on (if it has one, and the dtype
// can be there). The copy is queued, and fails late; outside of steps this function waits for it.
StatusOr<Tensor> CopyToDevice(const KernelContext& ctx, const Tensor& value);
// The value of a device in host memory, once all that was queued before has ended. `done` runs once, on any thread.
void CopyToHost(const Tensor& value, absl::AnyInvocable<void(StatusOr<Tensor>) &&> done);

// InvalidArgument when `handles` holds a handle of a variable whose value is in the memory of a device: kernels
// elsewhere could not use it.
Status CheckMayLeaveDevice(const Tensor& handles);

}  // namespace millrace
