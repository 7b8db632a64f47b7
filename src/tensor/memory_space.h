// SPDX-License-Identifier: Apache-2.0
// Memory that the host cannot read or write: that of a device with memory of its own. Host memory is no MemorySpace;
// where a pointer to one is null, host memory is meant.
//
// A tensor in a space has its buffer's header in host memory and its bytes in the space: the host knows dtype and
// shape, and the address that Tensor::raw gives means something on the device alone. What needs a value on the host
// answers with a Status (CheckOnHost). No such tensor comes to a kernel of the CPU, or to a client: what passes between
// memories is copied (passes/copy_between_memories.cc), and handles of variables do not leave their device.
//
// Work in a space is queued. Whatever is asked for here happens after everything that was asked for before, kernels of
// the device included, and may end at any time after the call has returned. So memory may be freed, and given to
// somebody else, while queued work still uses it: what the next owner queues comes later. Thread-safe; a space lives as
// long as the process.
#pragma once

#include <string>

#include "absl/functional/any_invocable.h"
#include "base/status.h"
#include "tensor/tensor.h"

namespace millrace {

class MemorySpace {
 public:
  // Runs exactly once, on any thread, perhaps before the call returns; with the error of the copy, or of the device.
  using DoneCallback = absl::AnyInvocable<void(Status) &&>;

  virtual ~MemorySpace() = default;
  virtual std::string name() const = 0;  // for messages
  // Null when there is no room, also after waiting for queued work. May throw std::bad_alloc, with nothing taken.
  virtual void* Allocate(size_t bytes) = 0;
  virtual void Deallocate(void* p, size_t bytes) = 0;  // `bytes` as asked for; throws nothing
  virtual AllocatorStats Stats() const = 0;
  // Copies of `bytes` > 0. Host memory must stay as it is until `done` runs, and so must `from` of CopyToHost.
  virtual void CopyToHost(const void* from, void* to, size_t bytes, DoneCallback done) = 0;
  virtual void CopyFromHost(const void* from, void* to, size_t bytes, DoneCallback done) = 0;
  virtual Status CopyWithin(const void* from, void* to, size_t bytes) = 0;
  // `done` runs when everything that was queued before has ended.
  virtual void WhenIdle(DoneCallback done) = 0;
  // What the device's own kernels queue their work on.
  virtual void* native_stream() = 0;
};

// Where the tensor's bytes are; null: in host memory.
MemorySpace* SpaceOf(const Tensor& t);
// FailedPrecondition, with the name of the memory, when the host cannot read the bytes.
Status CheckOnHost(const Tensor& t);
// Bytes that are not set, of a dtype whose elements are plain numbers. ResourceExhausted names size and memory.
StatusOr<Tensor> MakeTensorIn(MemorySpace& space, DType dtype, const Shape& shape);

}  // namespace millrace
