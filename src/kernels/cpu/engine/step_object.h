// SPDX-License-Identifier: Apache-2.0
// Stacks and tensor arrays: objects that live for one step, and the three forms of handle that name them: a reference
// to a string vector (the first ops of a family), a string vector {container, name} (the second), a resource (the
// third). References and resources hold the object, so that following one costs no look-up.
//
// Whatever an object holds is dropped at the end of the step, even when a handle was fetched and outlives it.
#pragma once

#include <string>
#include <typeinfo>
#include <utility>

#include "kernel/kernel.h"

namespace millrace {

class StepObject : public Resource {
 public:
  explicit StepObject(std::string name) : name_(std::move(name)) {}
  const std::string& name() const { return name_; }
  // Drops what it holds; whoever uses it later gets an error. Thread-safe.
  virtual void Close() = 0;

 private:
  const std::string name_;
};

// `base` with a number that no other object has.
std::string UniqueStepName(absl::string_view base);

// Makes the step own the object: it can be found by name, and is closed when the step ends.
Status AddToStep(const StepContext& step, const char* container, RefPtr<StepObject> object);

// Sets output o to a handle of the form that the node declares.
Status OutputStepHandle(KernelContext& ctx, int o, const char* container, RefPtr<StepObject> object);

namespace internal {
// Null, or an error, when the handle holds no object.
Status NamedStepObject(const KernelContext& ctx, int i, StepObject** object);
Status WrongStepObject(const KernelContext& ctx, int i);
}  // namespace internal

// The object behind handle input i, which lives at least as long as the kernel runs. T is final.
template <typename T>
Status FindStepObject(const KernelContext& ctx, int i, T** object) {
  const Tensor& t = ctx.input(i);
  StepObject* found = nullptr;
  if (t.dtype() == DType::kResource && t.num_elements() == 1) {
    RefCounted* const held = t.data<ResourceHandle>()->resource.get();
    if (held != nullptr) {
      if (typeid(*held) != typeid(T)) return internal::WrongStepObject(ctx, i);
      *object = static_cast<T*>(held);
      return absl::OkStatus();
    }
  }
  MR_RETURN_IF_ERROR(internal::NamedStepObject(ctx, i, &found));
  if (typeid(*found) != typeid(T)) return internal::WrongStepObject(ctx, i);
  *object = static_cast<T*>(found);
  return absl::OkStatus();
}

}  // namespace millrace
