// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/engine/step_object.h"

#include <atomic>

namespace millrace {
namespace {

// What the step's resources hold.
class StepLease final : public Resource {
 public:
  explicit StepLease(RefPtr<StepObject> object) : object_(std::move(object)) {}
  StepObject& object() const { return *object_; }
  std::string DebugString() const override { return object_->DebugString(); }

 private:
  ~StepLease() override { object_->Close(); }
  const RefPtr<StepObject> object_;
};

// What a reference to a handle refers to: its value names the object for ops that take the string.
class HandleVariable final : public Variable {
 public:
  HandleVariable(Tensor names, RefPtr<StepObject> object)
      : Variable(DType::kString, PartialShape(names.shape())), object_(std::move(object)) {
    Assign(std::move(names));
  }
  StepObject* object() const { return object_.get(); }

 private:
  const RefPtr<StepObject> object_;
};

StatusOr<Tensor> NamesOf(const char* container, const StepObject& object) {
  MR_ASSIGN_OR_RETURN(Tensor names, Tensor::Make(DType::kString, Shape::Vector(2)));
  names.mutable_data<TString>()[0] = TString(container);
  names.mutable_data<TString>()[1] = TString(object.name());
  return names;
}

Status FindByName(const KernelContext& ctx, const std::string& container, const std::string& name,
                  StepObject** object) {
  if (!ctx.step().step_resources) return Internal("node '", ctx.node_name(), "' needs a step");
  auto lease = ctx.step().step_resources->Lookup<StepLease>(container, name);
  if (!lease.ok()) return Annotate(lease.status(), absl::StrCat("node '", ctx.node_name(), "': "));
  *object = &(*lease)->object();  // the step holds on to the lease
  return absl::OkStatus();
}

}  // namespace

std::string UniqueStepName(absl::string_view base) {
  static std::atomic<int64_t> next{0};
  return absl::StrCat(base, "_", next.fetch_add(1, std::memory_order_relaxed));
}

Status AddToStep(const StepContext& step, const char* container, RefPtr<StepObject> object) {
  if (!step.step_resources) return Internal("'", object->name(), "' needs a step");
  const std::string name = object->name();
  return step.step_resources->Create<StepLease>(container, name, MakeRef<StepLease>(std::move(object)));
}

Status OutputStepHandle(KernelContext& ctx, int o, const char* container, RefPtr<StepObject> object) {
  const DType form = ctx.node().signature.output_types[static_cast<size_t>(o)];
  if (form == DType::kResource) {
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(o, Shape()));
    ResourceHandle& h = *out->mutable_data<ResourceHandle>();
    h.device = ctx.device().name();
    h.container = container;
    h.name = object->name();
    h.type_name = container;
    h.resource = std::move(object);
    return absl::OkStatus();
  }
  MR_ASSIGN_OR_RETURN(Tensor names, NamesOf(container, *object));
  if (IsRef(form)) {
    ctx.set_output_ref(o, RefPtr<Variable>(MakeRef<HandleVariable>(std::move(names), std::move(object))));
  } else {
    ctx.set_output(o, std::move(names));
  }
  return absl::OkStatus();
}

namespace internal {

Status NamedStepObject(const KernelContext& ctx, int i, StepObject** object) {
  Tensor names = ctx.input(i);
  if (ctx.has_ref_input(i)) {
    Variable& v = ctx.ref_input(i);
    if (typeid(v) == typeid(HandleVariable)) {
      *object = static_cast<HandleVariable&>(v).object();
      return absl::OkStatus();
    }
    names = v.ReadOrEmpty();
  }
  if (names.dtype() == DType::kString && names.num_elements() == 2) {
    const TString* s = names.data<TString>();
    return FindByName(ctx, std::string(s[0].view()), std::string(s[1].view()), object);
  }
  if (names.dtype() == DType::kResource && names.num_elements() == 1) {
    const ResourceHandle& h = *names.data<ResourceHandle>();
    return FindByName(ctx, h.container, h.name, object);
  }
  return BadHandle(ctx, i, "is not a handle of a stack or tensor array");
}

Status WrongStepObject(const KernelContext& ctx, int i) {
  return BadHandle(ctx, i, "is a handle of another type of resource");
}

}  // namespace internal

}  // namespace millrace
