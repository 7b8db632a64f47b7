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
// where there is no shared name.
struct ResourceName {
  std::string container;
  std::string name;
};
StatusOr<ResourceName> ResourceNameOf(const KernelInit& init);

// A resource that is its kernel's, and so its session's, own. Handles that come in by a feed or a string find it by a
// name that nothing else has.
class OwnResource {
 public:
  OwnResource() = default;
  ~OwnResource();
  OwnResource(const OwnResource&) = delete;
  OwnResource& operator=(const OwnResource&) = delete;

  // Says that there is one. Each node has one name for what it makes.
  void Declare(const KernelInit& init);
  bool is_declared() const { return !name_.empty(); }
  const std::string& name() const { return name_; }
  // From now on it is found. Once.
  void Publish(RefPtr<Resource> resource);

 private:
  std::string name_;
  RefPtr<Resource> resource_;  // null until it is published
};

// Sets output o to a handle of the form that the node declares.
Status OutputHandle(KernelContext& ctx, int o, const ResourceName& name, absl::string_view type_name,
                    RefPtr<Resource> resource);

namespace internal {
// Null: the handle holds nothing, and is to be looked up by *name.
StatusOr<RefPtr<Resource>> HeldResource(const KernelContext& ctx, int i, ResourceName* name);
// Null: there is none of that name.
RefPtr<Resource> FindOwnResource(const std::string& name);
}  // namespace internal

// NotFound where no resource of that type has the name.
template <typename T>
StatusOr<RefPtr<T>> FindResourceByName(const KernelContext& ctx, const ResourceName& name) {
  const RefPtr<Resource> own = internal::FindOwnResource(name.name);
  if (T* p = dynamic_cast<T*>(own.get())) return RefPtr<T>::Share(p);
  return ctx.resources().Lookup<T>(name.container, name.name);
}

// The resource behind handle input i, of either form. T is what it is registered as. NotFound when there is none of
// that name, InvalidArgument when it is something else.
template <typename T>
StatusOr<RefPtr<T>> FindResource(const KernelContext& ctx, int i) {
  ResourceName name;
  MR_ASSIGN_OR_RETURN(const RefPtr<Resource> held, internal::HeldResource(ctx, i, &name));
  if (!held) return FindResourceByName<T>(ctx, name);
  if (T* p = dynamic_cast<T*>(held.get())) return RefPtr<T>::Share(p);
  return BadHandle(ctx, i, "is a handle of another type of resource");
}

// Base of the kernels that make a resource of type T and give its handle. The resource is made in the first step that
// asks for it. As in TensorFlow, it is the session's own and ends with it if the node has no `shared_name`; else it is
// that of the first node which made one of that name, and stays until its container is reset.
template <typename T>
class ResourceKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(name_, ResourceNameOf(init));
    MR_ASSIGN_OR_RETURN(const std::string shared_name, init.Attr<std::string>("shared_name"));
    if (shared_name.empty() && !IsSharedByNode(init)) own_.Declare(init);
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) final {
    MR_ASSIGN_OR_RETURN(RefPtr<T> resource, Find(ctx));
    const ResourceName name{name_.container, own_.is_declared() ? own_.name() : name_.name};
    return OutputHandle(ctx, 0, name, TypeName(), std::move(resource));
  }
  bool IsExpensive() const final { return false; }
  bool OutputsNeverChange() const final { return true; }

 protected:
  const ResourceName& name() const { return name_; }
  virtual absl::string_view TypeName() const = 0;
  // Whether the node's name is a shared name where it has no other, as a variable's is.
  virtual bool IsSharedByNode(const KernelInit&) const { return false; }
  virtual StatusOr<RefPtr<T>> Make(KernelContext& ctx) = 0;
  // Whether the resource that another node has made under this name is what this node declares.
  virtual Status Verify(const T& resource) const = 0;

 private:
  StatusOr<RefPtr<T>> Find(KernelContext& ctx) {
    {
      absl::MutexLock lock(&mu_);
      if (resource_) return resource_;
      if (own_.is_declared()) {
        MR_ASSIGN_OR_RETURN(RefPtr<T> made, Make(ctx));
        own_.Publish(made);
        return resource_ = std::move(made);
      }
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
  OwnResource own_;
  absl::Mutex mu_;
  RefPtr<T> resource_ ABSL_GUARDED_BY(mu_);
};

}  // namespace millrace
