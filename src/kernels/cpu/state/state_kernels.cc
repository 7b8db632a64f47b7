// SPDX-License-Identifier: Apache-2.0
// Kernels: variables and their whole-value updates.
#include "kernels/cpu/any_device.h"
#include "kernels/cpu/elementwise/elementwise_in_place.h"
#include "kernels/cpu/kernel_list.h"
#include "tensor/prepared.h"

namespace millrace {
namespace {

// Variables are looked up once per kernel: they live as long as the session, and destroying one only empties it.
class VariableBase : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(dtype_, init.Attr<DType>("dtype"));
    MR_ASSIGN_OR_RETURN(shape_, init.Attr<PartialShape>("shape"));
    if (init.op.name == "Variable" && shape_.has_rank() && shape_.rank() == 0) shape_ = PartialShape::Unknown();
    MR_ASSIGN_OR_RETURN(container_, init.Attr<std::string>("container"));
    MR_ASSIGN_OR_RETURN(name_, init.Attr<std::string>("shared_name"));
    space_ = IsPlain(dtype_) ? SpaceOf(init.device) : nullptr;
    if (container_.empty()) container_ = ResourceManager::kDefaultContainer;
    // Handles without a shared name all mean the variable named "".
    if (name_.empty() && init.op.name != "VarHandleOp") name_ = init.node_name;
    return absl::OkStatus();
  }
  bool IsExpensive() const override { return false; }
  bool OutputsNeverChange() const override { return true; }

 protected:
  virtual StatusOr<RefPtr<Variable>> Create() { return MakeRef<Variable>(dtype_, shape_); }

  StatusOr<RefPtr<Variable>> Find(KernelContext& ctx) {
    if (Variable* known = known_.load(std::memory_order_acquire)) return RefPtr<Variable>::Share(known);
    MR_ASSIGN_OR_RETURN(
        RefPtr<Variable> v, ctx.resources().LookupOrCreate<Variable>(container_, name_, [&] { return Create(); }));
    if (v->dtype() != dtype_) {
      return Internal("variable '", name_, "' holds ", DTypeName(v->dtype()), "; node '", ctx.node_name(),
                      "' declares it as ", DTypeName(dtype_));
    }
    absl::MutexLock lock(&mu_);
    variable_ = v;
    known_.store(v.get(), std::memory_order_release);
    return v;
  }
  DType dtype_ = DType::kInvalid;
  PartialShape shape_;
  MemorySpace* space_ = nullptr;  // of the value; null: host memory
  std::string container_, name_;

 private:
  absl::Mutex mu_;
  RefPtr<Variable> variable_ ABSL_GUARDED_BY(mu_);
  std::atomic<Variable*> known_{nullptr};  // variable_, once found
};

class VariableKernel : public VariableBase {
 public:
  Status Compute(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(RefPtr<Variable> v, Find(ctx));
    ctx.set_output_ref(0, std::move(v));
    return absl::OkStatus();
  }

 protected:
  // A variable without elements has its value from the start.
  StatusOr<RefPtr<Variable>> Create() override {
    MR_ASSIGN_OR_RETURN(RefPtr<Variable> v, VariableBase::Create());
    if (shape_.num_elements() == 0) {
      MR_ASSIGN_OR_RETURN(const Shape shape, shape_.ToShape());
      MR_ASSIGN_OR_RETURN(Tensor empty, space_ ? MakeTensorIn(*space_, dtype_, shape) : Tensor::Make(dtype_, shape));
      v->Assign(std::move(empty));
    }
    return v;
  }
};

class VarHandleKernel : public VariableBase {
 public:
  Status Compute(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(RefPtr<Variable> v, Find(ctx));
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape()));
    ResourceHandle& h = *out->mutable_data<ResourceHandle>();
    h.device = ctx.device().name();
    h.container = container_;
    h.name = name_;
    h.type_name = "Variable";
    h.resource = std::move(v);
    return absl::OkStatus();
  }
};

Status Uninitialized(const KernelContext& ctx) {
  return FailedPrecondition(
      "Attempting to use uninitialized value: the variable that node '", ctx.node_name(), "' changes has no value yet");
}
Status NoSuchVariable(const KernelContext& ctx) {
  return NotFound("the variable that node '", ctx.node_name(), "' uses does not exist: it has no value yet");
}

// What a variable keeps must not change under it: memory that a client has lent for the step is copied.
StatusOr<Tensor> Kept(const Tensor& value) {
  const Buffer* const buffer = value.buffer();
  if (buffer == nullptr || (buffer->writable() && !IsLent(*buffer))) return value;
  return value.Clone();
}

class AssignKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(validate_, init.Attr<bool>("validate_shape"));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    if (!ctx.has_ref_input(0)) return BadHandle(ctx, 0, "is not a variable");
    Variable& v = ctx.ref_input(0);
    const Tensor& value = ctx.input(1);
    if (validate_) {
      const Tensor now = v.ReadOrEmpty();
      const PartialShape want = now.IsInitialized() ? PartialShape(now.shape()) : v.declared_shape();
      if (!want.IsCompatibleWith(value.shape())) {
        return InvalidArgument("Assign requires shapes of both tensors to match. lhs shape= ", want.ToString(),
                               " rhs shape= ", value.shape().ToString());
      }
    }
    MR_ASSIGN_OR_RETURN(Tensor kept, Kept(value));
    v.Assign(std::move(kept));
    ctx.ForwardRef(0, 0);
    return absl::OkStatus();
  }

 private:
  bool validate_ = true;
};

// Zeros as the first value of a variable, and of no other.
Status AssignZeros(const KernelContext& ctx, Variable& v, const PartialShape& declared) {
  if (v.IsInitialized()) return InvalidArgument("input is already initialized");
  MR_ASSIGN_OR_RETURN(const Shape shape, declared.ToShape());
  MR_ASSIGN_OR_RETURN(Tensor zeros, Tensor::Make(v.dtype(), shape, ctx.device().allocator()));
  std::memset(zeros.mutable_raw(), 0, zeros.TotalBytes());
  v.Assign(std::move(zeros));
  return absl::OkStatus();
}

Status ZeroInitializer(KernelContext& ctx) {
  if (!ctx.has_ref_input(0)) return BadHandle(ctx, 0, "is not a variable");
  ctx.ForwardRef(0, 0);
  return AssignZeros(ctx, ctx.ref_input(0), ctx.ref_input(0).declared_shape());
}

class ZeroVarInitializerKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(dtype_, init.Attr<DType>("dtype"));
    MR_ASSIGN_OR_RETURN(shape_, init.Attr<PartialShape>("shape"));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(RefPtr<Variable> v, ResourceFromInput<Variable>(ctx, 0));
    if (v->dtype() != dtype_) {
      return InvalidArgument("the variable holds ", DTypeName(v->dtype()), ", not ", DTypeName(dtype_));
    }
    ctx.Forward(0, 0);
    return AssignZeros(ctx, *v, shape_);
  }

 private:
  DType dtype_ = DType::kInvalid;
  PartialShape shape_;
};

template <bool kAdd>
Status AddTo(const KernelContext& ctx, Variable& v, const Tensor& by) {
  const InPlaceOp change(kAdd ? "Add" : "Sub", by.dtype());
  if (!change) return Unimplemented("no addition for ", DTypeName(by.dtype()));
  return v.Rewrite([&](const Tensor& before, Tensor* after) -> Status {
    if (before.dtype() != by.dtype() || before.shape() != by.shape()) {
      return InvalidArgument("node '", ctx.node_name(), "' changes a variable of ", DTypeName(before.dtype()),
                             before.shape().ToString(), " by ", DTypeName(by.dtype()), by.shape().ToString());
    }
    char* const to = static_cast<char*>(after->mutable_raw());
    const auto *from = static_cast<const char*>(before.raw()), *change_by = static_cast<const char*>(by.raw());
    const auto bytes = static_cast<int64_t>(DTypeSize(by.dtype()));
    ctx.ParallelFor(by.num_elements(), change.cost(), [&](int64_t begin, int64_t end) {
      const int64_t at = begin * bytes;
      change(to + at, from + at, change_by + at, end - begin);
    });
    return absl::OkStatus();
  });
}

template <bool kAdd>
Status AssignAddRef(KernelContext& ctx) {
  if (!ctx.has_ref_input(0)) return BadHandle(ctx, 0, "is not a variable");
  if (!ctx.ref_input(0).IsInitialized()) return Uninitialized(ctx);
  MR_RETURN_IF_ERROR(AddTo<kAdd>(ctx, ctx.ref_input(0), ctx.input(1)));
  ctx.ForwardRef(0, 0);
  return absl::OkStatus();
}

template <bool kAdd>
Status AssignAddResource(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const RefPtr<Variable> v, ResourceFromInput<Variable>(ctx, 0));
  if (!v->IsInitialized()) return NoSuchVariable(ctx);
  return AddTo<kAdd>(ctx, *v, ctx.input(1));
}

// Graphs of newer releases may say that a value of another shape is an error.
class AssignResourceKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    if (init.HasAttr("validate_shape")) {
      MR_ASSIGN_OR_RETURN(validate_, init.Attr<bool>("validate_shape"));
    }
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(const RefPtr<Variable> v, ResourceFromInput<Variable>(ctx, 0));
    const Tensor& value = ctx.input(1);
    if (v->dtype() != value.dtype()) {
      return InvalidArgument("the variable holds ", DTypeName(v->dtype()), ", the value is ", DTypeName(value.dtype()));
    }
    if (validate_) {
      if (const Tensor now = v->ReadOrEmpty(); now.IsInitialized() && now.shape() != value.shape()) {
        return InvalidArgument("the variable has shape ", now.shape().ToString(), ", the value ",
                               value.shape().ToString(), ", and validate_shape is set");
      }
    }
    MR_ASSIGN_OR_RETURN(Tensor kept, Kept(value));
    v->Assign(std::move(kept));
    return absl::OkStatus();
  }

 private:
  bool validate_ = false;
};

Status ReadResource(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const RefPtr<Variable> v, ResourceFromInput<Variable>(ctx, 0));
  Tensor value = v->ReadOrEmpty();
  if (!value.IsInitialized()) {
    return FailedPrecondition("Could not find the value of the variable that node '", ctx.node_name(),
                              "' reads: it has not been initialised");
  }
  if (value.dtype() != ctx.output_dtype(0)) {
    return InvalidArgument(
        "the variable holds ", DTypeName(value.dtype()), ", it is read as ", DTypeName(ctx.output_dtype(0)));
  }
  ctx.set_output(0, std::move(value));
  return absl::OkStatus();
}

Status OutputBool(KernelContext& ctx, bool b) {
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape()));
  *out->mutable_data<bool>() = b;
  return absl::OkStatus();
}

Status IsInitializedRef(KernelContext& ctx) {
  return OutputBool(ctx, ctx.has_ref_input(0) && ctx.ref_input(0).IsInitialized());
}

Status IsInitializedResource(KernelContext& ctx) {
  StatusOr<RefPtr<Variable>> v = ResourceFromInput<Variable>(ctx, 0);
  return OutputBool(ctx, v.ok() && (*v)->IsInitialized());
}

Status FindResource(KernelContext& ctx) { return ResourceFromInput<Variable>(ctx, 0).status(); }

Status ShapeOfResource(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const RefPtr<Variable> v, ResourceFromInput<Variable>(ctx, 0));
  const Tensor value = v->ReadOrEmpty();
  if (!value.IsInitialized()) return NoSuchVariable(ctx);
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape::Vector(value.rank())));
  for (int i = 0; i < value.rank(); ++i) {
    if (ctx.output_dtype(0) == DType::kInt64) {
      out->mutable_data<int64_t>()[i] = value.dim(i);
    } else if (value.dim(i) > INT32_MAX) {
      return InvalidArgument("dimension ", i, " of ", value.shape().ToString(), " does not fit in int32");
    } else {
      out->mutable_data<int32_t>()[i] = static_cast<int32_t>(value.dim(i));
    }
  }
  return absl::OkStatus();
}

template <typename T>
Status CountOne(Tensor* value, int64_t limit, Tensor* out) {
  MR_ASSIGN_OR_RETURN(const T now, value->ScalarValue<T>());
  if (static_cast<int64_t>(now) >= limit) return OutOfRange("Reached limit of ", limit);
  *value->mutable_data<T>() = static_cast<T>(now + 1);
  *out->mutable_data<T>() = now;
  return absl::OkStatus();
}

class CountUpToKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(limit_, init.Attr<int64_t>("limit"));
    by_handle_ = init.op.name == "ResourceCountUpTo";
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    RefPtr<Variable> held;
    if (by_handle_) {
      MR_ASSIGN_OR_RETURN(held, ResourceFromInput<Variable>(ctx, 0));
      if (!held->IsInitialized()) return NoSuchVariable(ctx);
    } else if (!ctx.has_ref_input(0)) {
      return BadHandle(ctx, 0, "is not a variable");
    }
    Variable& v = by_handle_ ? *held : ctx.ref_input(0);
    if (v.dtype() != ctx.output_dtype(0)) return BadHandle(ctx, 0, "is a variable of another dtype");
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape()));
    return v.Update([&](Tensor* value) -> Status {
      if (!value->shape().IsScalar()) {
        return InvalidArgument("input is not a scalar: ", value->shape().ToString());
      }
      return value->dtype() == DType::kInt64
                 ? CountOne<int64_t>(value, limit_, out)
                 : CountOne<int32_t>(value, limit_, out);
    });
  }

 private:
  int64_t limit_ = 0;
  bool by_handle_ = false;
};

class DestroyResourceKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(ignore_missing_, init.Attr<bool>("ignore_lookup_error"));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    StatusOr<RefPtr<Variable>> v = ResourceFromInput<Variable>(ctx, 0);
    if (v.ok() && (*v)->IsInitialized()) {
      (*v)->Assign(Tensor());
      return absl::OkStatus();
    }
    if (ignore_missing_) return absl::OkStatus();
    return v.ok() ? NoSuchVariable(ctx) : v.status();
  }

 private:
  bool ignore_missing_ = true;
};

// Temporary variables live in the step's own resources.
class TemporaryVariableKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(dtype_, init.Attr<DType>("dtype"));
    MR_ASSIGN_OR_RETURN(const PartialShape shape, init.Attr<PartialShape>("shape"));
    MR_ASSIGN_OR_RETURN(shape_, shape.ToShape());
    MR_ASSIGN_OR_RETURN(name_, init.Attr<std::string>("var_name"));
    if (name_.empty()) name_ = init.node_name;
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    if (!ctx.step().step_resources) return Internal("temporary variables need a step");
    auto v = MakeRef<Variable>(dtype_, PartialShape(shape_));
    MR_ASSIGN_OR_RETURN(Tensor memory, Tensor::Make(dtype_, shape_, ctx.device().allocator()));
    v->Assign(std::move(memory));
    MR_RETURN_IF_ERROR(ctx.step().step_resources->Create<Variable>("tmp", name_, v));
    ctx.set_output_ref(0, std::move(v));
    return absl::OkStatus();
  }

 private:
  DType dtype_ = DType::kInvalid;
  Shape shape_;
  std::string name_;
};

class DestroyTemporaryVariableKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(name_, init.Attr<std::string>("var_name"));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    if (!ctx.has_ref_input(0)) return BadHandle(ctx, 0, "is not a variable");
    if (!ctx.step().step_resources) return Internal("temporary variables need a step");
    MR_ASSIGN_OR_RETURN(Tensor value, ctx.ref_input(0).Read());
    ctx.set_output(0, std::move(value));
    return ctx.step().step_resources->Delete<Variable>("tmp", name_);
  }

 private:
  std::string name_;
};

}  // namespace

void AddVariableKernels(AnyDeviceKernels& r) {
  r.Add<VariableKernel>("Variable");
  r.Add<VariableKernel>("VariableV2");
  r.Add<VarHandleKernel>("VarHandleOp");
  r.Add<AssignKernel>("Assign", {}, ElementCost);
  r.Add<AssignResourceKernel>("AssignVariableOp", {}, ElementCost);
  r.AddFn("ReadVariableOp", {}, ReadResource);
  r.AddFn("IsVariableInitialized", {"is_initialized"}, IsInitializedRef);
  r.AddFn("VarIsInitializedOp", {"is_initialized"}, IsInitializedResource);
  r.AddFn("DisableCopyOnRead", {}, FindResource);
  r.AddFn("VariableShape", {"output"}, ShapeOfResource);
  r.Add<DestroyResourceKernel>("DestroyResourceOp");
}

void RegisterStateKernels(KernelRegistry& r) {
  r.AddFn({.op = "AssignAdd", .types = {{"T", Types("REAL|CPX")}}}, AssignAddRef<true>);
  r.AddFn({.op = "AssignSub", .types = {{"T", Types("REAL|CPX")}}}, AssignAddRef<false>);
  r.AddFn({.op = "AssignAddVariableOp", .types = {{"dtype", Types("REAL|CPX")}}}, AssignAddResource<true>);
  r.AddFn({.op = "AssignSubVariableOp", .types = {{"dtype", Types("REAL|CPX")}}}, AssignAddResource<false>);
  r.Add<CountUpToKernel>({.op = "CountUpTo"});
  r.Add<CountUpToKernel>({.op = "ResourceCountUpTo"});
  r.AddFn({.op = "ZeroInitializer"}, ZeroInitializer);
  r.Add<ZeroVarInitializerKernel>({.op = "ZeroVarInitializer", .types = {{"dtype", Types("REAL")}}});
  r.Add<TemporaryVariableKernel>({.op = "TemporaryVariable"});
  r.Add<DestroyTemporaryVariableKernel>({.op = "DestroyTemporaryVariable"});
}

}  // namespace millrace
