// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/engine/resource_handle.h"

#include <atomic>
#include <map>
#include <typeinfo>

namespace millrace {
namespace {

// What a reference to a handle refers to: its value names the resource for ops that take the string.
class HandleVariable final : public Variable {
 public:
  HandleVariable(Tensor names, RefPtr<Resource> resource)
      : Variable(DType::kString, PartialShape(names.shape())), resource_(std::move(resource)) {
    Assign(std::move(names));
  }
  const RefPtr<Resource>& resource() const { return resource_; }

 private:
  const RefPtr<Resource> resource_;
};

// Never freed: kernels may end behind all devices.
struct OwnResources {
  static OwnResources& Get() {
    static auto* all = new OwnResources;
    return *all;
  }
  absl::Mutex mu;
  std::map<std::string, Resource*> by_name ABSL_GUARDED_BY(mu);  // alive as long as they are here
};

}  // namespace

StatusOr<ResourceName> ResourceNameOf(const KernelInit& init) {
  ResourceName name;
  MR_ASSIGN_OR_RETURN(name.container, init.Attr<std::string>("container"));
  MR_ASSIGN_OR_RETURN(name.name, init.Attr<std::string>("shared_name"));
  if (name.container.empty()) name.container = ResourceManager::kDefaultContainer;
  if (name.name.empty()) name.name = init.node_name;
  return name;
}

void OwnResource::Declare(const KernelInit& init) {
  static std::atomic<uint64_t> number{0};
  // The incarnation tells what processes have made apart.
  name_ = absl::StrCat("_", absl::Hex(init.device.incarnation()), "_", ++number, "_", init.node_name);
}

void OwnResource::Publish(RefPtr<Resource> resource) {
  OwnResources& all = OwnResources::Get();
  absl::MutexLock lock(&all.mu);
  all.by_name.emplace(name_, resource.get());
  resource_ = std::move(resource);
}

OwnResource::~OwnResource() {
  if (!resource_) return;
  OwnResources& all = OwnResources::Get();
  absl::MutexLock lock(&all.mu);
  all.by_name.erase(name_);
}

Status OutputHandle(KernelContext& ctx, int o, const ResourceName& name, absl::string_view type_name,
                    RefPtr<Resource> resource) {
  const DType form = ctx.node().signature.output_types[static_cast<size_t>(o)];
  if (form == DType::kResource) {
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(o, Shape()));
    ResourceHandle& h = *out->mutable_data<ResourceHandle>();
    h.device = ctx.device().name();
    h.container = name.container;
    h.name = name.name;
    h.type_name = std::string(type_name);
    h.resource = std::move(resource);
    return absl::OkStatus();
  }
  MR_ASSIGN_OR_RETURN(Tensor names, Tensor::Make(DType::kString, Shape::Vector(2)));
  names.mutable_data<TString>()[0] = TString(name.container);
  names.mutable_data<TString>()[1] = TString(name.name);
  if (IsRef(form)) {
    ctx.set_output_ref(o, RefPtr<Variable>(MakeRef<HandleVariable>(std::move(names), std::move(resource))));
  } else {
    ctx.set_output(o, std::move(names));
  }
  return absl::OkStatus();
}

namespace internal {

RefPtr<Resource> FindOwnResource(const std::string& name) {
  OwnResources& all = OwnResources::Get();
  absl::MutexLock lock(&all.mu);
  const auto at = all.by_name.find(name);
  return at == all.by_name.end() ? RefPtr<Resource>() : RefPtr<Resource>::Share(at->second);
}

StatusOr<RefPtr<Resource>> HeldResource(const KernelContext& ctx, int i, ResourceName* name) {
  Tensor t = ctx.input(i);
  if (ctx.has_ref_input(i)) {
    Variable& v = ctx.ref_input(i);
    if (typeid(v) == typeid(HandleVariable)) return static_cast<HandleVariable&>(v).resource();
    t = v.ReadOrEmpty();
  }
  if (t.dtype() == DType::kString && t.num_elements() == 2) {
    const TString* s = t.data<TString>();
    *name = {std::string(s[0].view()), std::string(s[1].view())};
    return RefPtr<Resource>();
  }
  if (t.dtype() != DType::kResource || t.num_elements() != 1) return BadHandle(ctx, i, "is not one handle");
  const ResourceHandle& h = *t.data<ResourceHandle>();
  *name = {h.container, h.name};
  if (!h.resource) return RefPtr<Resource>();
  if (Resource* r = dynamic_cast<Resource*>(h.resource.get())) return RefPtr<Resource>::Share(r);
  return BadHandle(ctx, i, "is a handle of another type of resource");
}

}  // namespace internal

}  // namespace millrace
