// SPDX-License-Identifier: Apache-2.0
// Resources that outlive steps (queues, readers, barriers ...) and the two forms of handle that name them: a reference
// to a string vector {container, name} (the first ops of a family) and a resource (the later ones). Both hold the
// object, so that following one costs no look-up; a handle that came in by a feed is looked up by its names.
#pragma once

#include <string>
#include <utility>

#include "kernel/kernel.h"

namespace millrace {

// What the attributes `container` and `shared_name` say: the default container where there is none, the node's own name
// where the resource is not shared by name.
struct ResourceName {
  std::string container;
  std::string name;
};
StatusOr<ResourceName> ResourceNameOf(const KernelInit& init);

// Sets output o to a handle of the form that the node declares.
Status OutputHandle(KernelContext& ctx, int o, const ResourceName& name, absl::string_view type_name,
                    RefPtr<Resource> resource);

namespace internal {
// Null: the handle holds nothing, and is to be looked up by *name.
StatusOr<RefPtr<Resource>> HeldResource(const KernelContext& ctx, int i, ResourceName* name);
}  // namespace internal

// The resource behind handle input i, of either form. T is what it is registered as. NotFound when there is none of
// that name, InvalidArgument when it is something else.
template <typename T>
StatusOr<RefPtr<T>> FindResource(const KernelContext& ctx, int i) {
  ResourceName name;
  MR_ASSIGN_OR_RETURN(const RefPtr<Resource> held, internal::HeldResource(ctx, i, &name));
  if (!held) return ctx.resources().Lookup<T>(name.container, name.name);
  if (T* p = dynamic_cast<T*>(held.get())) return RefPtr<T>::Share(p);
  return BadHandle(ctx, i, "is a handle of another type of resource");
}

// Base of the kernels that make a resource of type T and give its handle. The resource is made in the first step that
// asks for it, unless another node has made one of that name; it stays until its container is reset.
template <typename T>
class ResourceKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(name_, ResourceNameOf(init));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) final {
    MR_ASSIGN_OR_RETURN(RefPtr<T> resource, Find(ctx));
    return OutputHandle(ctx, 0, name_, TypeName(), std::move(resource));
  }
  bool IsExpensive() const final { return false; }
  bool OutputsNeverChange() const final { return true; }

 protected:
  const ResourceName& name() const { return name_; }
  virtual absl::string_view TypeName() const = 0;
  virtual StatusOr<RefPtr<T>> Make(KernelContext& ctx) = 0;
  // Whether the resource that another node has made under this name is what this node declares.
  virtual Status Verify(const T& resource) const = 0;

 private:
  StatusOr<RefPtr<T>> Find(KernelContext& ctx) {
    {
      absl::MutexLock lock(&mu_);
      if (resource_) return resource_;
    }
    MR_ASSIGN_OR_RETURN(RefPtr<T> found, ctx.resources().template LookupOrCreate<T>(name_.container, name_.name, [&] {
      return Make(ctx);
    }));
    MR_RETURN_IF_ERROR(Verify(*found));
    absl::MutexLock lock(&mu_);
    resource_ = found;
    return found;
  }

  ResourceName name_;
  absl::Mutex mu_;
  RefPtr<T> resource_ ABSL_GUARDED_BY(mu_);
};

}  // namespace millrace
