// SPDX-License-Identifier: Apache-2.0
// Kernels: constants, placeholders, identities and questions about shapes. None of them copies.
#include <cstring>
#include <limits>

#include "absl/synchronization/mutex.h"
#include "base/env.h"
#include "kernel/device_env.h"
#include "kernels/cpu/any_device.h"
#include "kernels/cpu/array/array_kernels.h"
#include "kernels/cpu/engine/strided_copy.h"

namespace millrace {
namespace {

// Keeps its share of the buffer, so no consumer ever finds itself the only holder and writes into it.
class ConstKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(value_, init.Attr<Tensor>("value"));
    is_remote_ = SpaceOf(init.device) != nullptr && IsPlain(value_.dtype()) && init.op.name != "HostConst";
    if (value_.dtype() == init.output_type(0)) return absl::OkStatus();
    return InvalidArgument(
        "constant '", init.node_name, "' holds ", DTypeName(value_.dtype()), ", not ", DTypeName(init.output_type(0)));
  }
  Status Compute(KernelContext& ctx) override {
    if (is_remote_) return GiveRemote(ctx);
    ctx.set_output(0, value_);
    return absl::OkStatus();
  }
  bool IsExpensive() const override { return false; }
  bool OutputsNeverChange() const override { return true; }

 private:
  // Copied to the device once.
  Status GiveRemote(KernelContext& ctx) {
    absl::MutexLock lock(&mu_);
    if (!remote_.IsInitialized()) {
      MR_ASSIGN_OR_RETURN(remote_, CopyToDevice(ctx, value_));
    }
    ctx.set_output(0, remote_);
    return absl::OkStatus();
  }

  Tensor value_;
  bool is_remote_ = false;
  absl::Mutex mu_;
  Tensor remote_ ABSL_GUARDED_BY(mu_);
};

// The first bytes of a file, which are read once.
class ImmutableConstKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(path_, init.Attr<std::string>("memory_region_name"));
    MR_ASSIGN_OR_RETURN(const PartialShape shape, init.Attr<PartialShape>("shape"));
    MR_ASSIGN_OR_RETURN(shape_, shape.ToShape());
    dtype_ = init.output_type(0);
    if (!IsPlain(dtype_)) return InvalidArgument(DTypeName(dtype_), " is not supported for ImmutableConst");
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    absl::MutexLock lock(&mu_);
    if (!value_.IsInitialized()) {
      MR_ASSIGN_OR_RETURN(const std::string bytes, EnvOf(ctx.device()).ReadFile(path_));
      const size_t size = DTypeSize(dtype_);
      if (bytes.size() / size < static_cast<size_t>(shape_.num_elements())) {
        return ResourceExhausted(
            "file '", path_, "' has ", bytes.size(), " bytes, too few for ", DTypeName(dtype_), shape_.ToString());
      }
      MR_ASSIGN_OR_RETURN(Tensor value, Tensor::Make(dtype_, shape_));
      if (value.TotalBytes() > 0) std::memcpy(value.mutable_raw(), bytes.data(), value.TotalBytes());
      value_ = std::move(value);
    }
    ctx.set_output(0, value_);
    return absl::OkStatus();
  }

 private:
  std::string path_;
  Shape shape_;
  DType dtype_ = DType::kInvalid;
  absl::Mutex mu_;
  Tensor value_ ABSL_GUARDED_BY(mu_);
};

// Runs only when nobody fed its output.
class PlaceholderKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(PartialShape shape, init.Attr<PartialShape>("shape"));
    message_ = absl::StrCat("You must feed a value for placeholder tensor '", init.node_name, "' with dtype ",
                            DTypeName(init.output_type(0)));
    if (shape.has_rank()) absl::StrAppend(&message_, " and shape ", shape.ToString());
    return absl::OkStatus();
  }
  Status Compute(KernelContext&) override { return InvalidArgument(message_); }
  bool IsExpensive() const override { return false; }

 private:
  std::string message_;
};

Status PassThrough(KernelContext& ctx) {
  for (int i = 0; i < ctx.num_outputs(); ++i) ctx.Forward(i, i);
  return absl::OkStatus();
}

Status PassRef(KernelContext& ctx) {
  ctx.ForwardRef(0, 0);
  return absl::OkStatus();
}

Status DoNothing(KernelContext&) { return absl::OkStatus(); }

class EnsureShapeKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(want_, init.Attr<PartialShape>("shape"));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    const Tensor& in = ctx.input(0);
    if (!want_.IsCompatibleWith(in.shape())) {
      return InvalidArgument("Shape of tensor ", ctx.node_name(), " ", in.shape().ToString(),
                             " is not compatible with expected shape ", want_.ToString(), ".");
    }
    ctx.set_output(0, in);
    return absl::OkStatus();
  }
  bool IsExpensive() const override { return false; }

 private:
  PartialShape want_;
};

Status Bitcast(KernelContext& ctx) {
  const Tensor& in = ctx.input(0);
  const int64_t from = static_cast<int64_t>(DTypeSize(in.dtype()));
  const int64_t to = static_cast<int64_t>(DTypeSize(ctx.output_dtype(0)));
  Shape shape = in.shape();
  if (from < to) {
    const int64_t ratio = to / from;
    if (in.rank() == 0 || in.dim(in.rank() - 1) != ratio) {
      return InvalidArgument("Cannot bitcast from ", DTypeName(in.dtype()), " to ", DTypeName(ctx.output_dtype(0)),
                             ": the last dimension of ", in.shape().ToString(), " must be ", ratio);
    }
    shape = shape.WithoutDim(in.rank() - 1);
  } else if (from > to) {
    MR_ASSIGN_OR_RETURN(shape, shape.WithInserted(in.rank(), from / to));
  }
  const bool aligned = reinterpret_cast<uintptr_t>(in.raw()) % static_cast<uintptr_t>(to) == 0;
  if (aligned && in.buffer() != nullptr) {
    const auto offset =
        static_cast<size_t>(static_cast<const char*>(in.raw()) - static_cast<const char*>(in.buffer()->data()));
    MR_ASSIGN_OR_RETURN(
        Tensor out, Tensor::FromBuffer(ctx.output_dtype(0), shape, RefPtr<Buffer>::Share(in.buffer()), offset));
    ctx.set_output(0, std::move(out));
    return absl::OkStatus();
  }
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  CopyElements(&ctx, DType::kUInt8, out->mutable_raw(), in.raw(), static_cast<int64_t>(in.TotalBytes()));
  return absl::OkStatus();
}

// Writes `values` as an int32 or int64 output of the given shape.
Status SetInts(KernelContext& ctx, int o, const Shape& shape, absl::Span<const int64_t> values) {
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(o, shape));
  for (size_t i = 0; i < values.size(); ++i) {
    if (out->dtype() == DType::kInt64) {
      out->mutable_data<int64_t>()[i] = values[i];
    } else if (values[i] <= std::numeric_limits<int32_t>::max()) {
      out->mutable_data<int32_t>()[i] = static_cast<int32_t>(values[i]);
    } else {
      return InvalidArgument("a size of ", values[i], " does not fit in int32; ask for int64 with out_type");
    }
  }
  return absl::OkStatus();
}

Status ShapeN(KernelContext& ctx) {
  for (int i = 0; i < ctx.num_outputs(); ++i) {
    const Shape& s = ctx.input(i).shape();
    MR_RETURN_IF_ERROR(SetInts(ctx, i, Shape::Vector(s.rank()), s.dims()));
  }
  return absl::OkStatus();
}
Status Size(KernelContext& ctx) { return SetInts(ctx, 0, Shape(), {ctx.input(0).num_elements()}); }
Status Rank(KernelContext& ctx) { return SetInts(ctx, 0, Shape(), {ctx.input(0).rank()}); }

}  // namespace

void AddSourceKernels(AnyDeviceKernels& r) {
  r.Add<ConstKernel>("Const");
  r.Add<ConstKernel>("HostConst", {"output"});
  r.Add<PlaceholderKernel>("Placeholder");
  r.Add<PlaceholderKernel>("PlaceholderV2");
  for (const char* op : {"Identity", "IdentityN", "Snapshot", "StopGradient", "PreventGradient",
                         "PlaceholderWithDefault", "GuaranteeConst", "DeepCopy", "DebugGradientIdentity"}) {
    r.AddCheap(op, {}, PassThrough);
  }
  r.AddCheap("RefIdentity", {}, PassRef);
  r.AddCheap("DebugGradientRefIdentity", {}, PassRef);
  r.AddCheap("NoOp", {}, DoNothing);
  r.Add<EnsureShapeKernel>("EnsureShape");
  r.AddCheap("Shape", {"output"}, ShapeN);
  r.AddCheap("ShapeN", {"output"}, ShapeN);
  r.AddCheap("Size", {"output"}, Size);
  r.AddCheap("Rank", {"output"}, Rank);
}

void RegisterArraySourceKernels(KernelRegistry& r) {
  r.Add<ImmutableConstKernel>({.op = "ImmutableConst"});
  AddCheapFn(r, "Bitcast", Bitcast);
}

}  // namespace millrace
