// SPDX-License-Identifier: Apache-2.0
// CPU kernels: tensor arrays, one element at a time.
#include "kernels/cpu/dataflow/tensor_array_kernels.h"

#include "kernels/cpu/array/array_kernels.h"
#include "kernels/cpu/dataflow/tensor_array.h"
#include "kernels/cpu/kernel_list.h"

namespace millrace {
namespace {

class TensorArrayKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(options_.dtype, init.Attr<DType>("dtype"));
    MR_ASSIGN_OR_RETURN(options_.element_shape, init.Attr<PartialShape>("element_shape"));
    MR_ASSIGN_OR_RETURN(options_.dynamic_size, init.Attr<bool>("dynamic_size"));
    MR_ASSIGN_OR_RETURN(options_.clear_after_read, init.Attr<bool>("clear_after_read"));
    if (init.HasAttr("identical_element_shapes")) {
      MR_ASSIGN_OR_RETURN(options_.identical_element_shapes, init.Attr<bool>("identical_element_shapes"));
    }
    MR_ASSIGN_OR_RETURN(name_, init.Attr<std::string>("tensor_array_name"));
    if (name_.empty()) name_ = init.node_name;
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    if (!ctx.input(0).shape().IsScalar()) {
      return InvalidArgument("TensorArray size must be scalar, but had shape: ", ctx.input(0).shape().ToString());
    }
    MR_ASSIGN_OR_RETURN(const int64_t size, ctx.input(0).IntScalar());
    MR_ASSIGN_OR_RETURN(RefPtr<TensorArray> array, TensorArray::Make(UniqueStepName(name_), options_, size));
    MR_RETURN_IF_ERROR(AddToStep(ctx.step(), TensorArray::kContainer, array));
    MR_RETURN_IF_ERROR(OutputStepHandle(ctx, 0, TensorArray::kContainer, std::move(array)));
    if (ctx.num_outputs() == 1) return absl::OkStatus();
    MR_ASSIGN_OR_RETURN(Tensor * flow, ctx.AllocateOutput(1, Shape()));
    *flow->mutable_data<float>() = 0;
    return absl::OkStatus();
  }
  bool IsExpensive() const override { return false; }

 private:
  TensorArray::Options options_;
  std::string name_;
};

class TensorArrayGradKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(source_, init.Attr<std::string>("source"));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    TensorArray* array;
    MR_RETURN_IF_ERROR(FindStepObject(ctx, 0, &array));
    Shape prepend;
    if (ctx.num_inputs() > 2) {
      MR_ASSIGN_OR_RETURN(prepend, ShapeOf(ctx.input(2), "shape_to_prepend"));
    }
    MR_ASSIGN_OR_RETURN(RefPtr<TensorArray> gradient, array->Gradient(source_, prepend, ctx.step()));
    MR_RETURN_IF_ERROR(OutputStepHandle(ctx, 0, TensorArray::kContainer, std::move(gradient)));
    if (ctx.num_outputs() > 1) ctx.set_output(1, ctx.input(1));
    return absl::OkStatus();
  }
  bool IsExpensive() const override { return false; }

 private:
  std::string source_;
};

StatusOr<int64_t> IndexFrom(const KernelContext& ctx, int i) {
  if (!ctx.input(i).shape().IsScalar()) {
    return InvalidArgument("TensorArray index must be scalar, but had shape: ", ctx.input(i).shape().ToString());
  }
  return ctx.input(i).IntScalar();
}

Status WriteElement(KernelContext& ctx) {
  TensorArray* array;
  MR_RETURN_IF_ERROR(FindStepObject(ctx, 0, &array));
  MR_ASSIGN_OR_RETURN(const int64_t index, IndexFrom(ctx, 1));
  MR_RETURN_IF_ERROR(array->Write(index, ctx.input(2)));
  ctx.set_output(0, ctx.input(3));
  return absl::OkStatus();
}

Status ReadElement(KernelContext& ctx) {
  TensorArray* array;
  MR_RETURN_IF_ERROR(FindStepObject(ctx, 0, &array));
  MR_ASSIGN_OR_RETURN(const int64_t index, IndexFrom(ctx, 1));
  MR_RETURN_IF_ERROR(CheckElementType(ctx, *array, ctx.output_dtype(0)));
  return array->Read(index, ctx.device().allocator(), ctx.mutable_output(0));
}

Status ArraySize(KernelContext& ctx) {
  TensorArray* array;
  MR_RETURN_IF_ERROR(FindStepObject(ctx, 0, &array));
  MR_ASSIGN_OR_RETURN(const int64_t size, array->Size());
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape()));
  *out->mutable_data<int32_t>() = static_cast<int32_t>(size);
  return absl::OkStatus();
}

Status CloseArray(KernelContext& ctx) {
  TensorArray* array;
  MR_RETURN_IF_ERROR(FindStepObject(ctx, 0, &array));
  array->Close();
  return absl::OkStatus();
}

}  // namespace

Status CheckElementType(const KernelContext& ctx, const TensorArray& array, DType wanted) {
  if (array.dtype() == wanted) return absl::OkStatus();
  return InvalidArgument("TensorArray dtype is ", DTypeName(array.dtype()), " but Op requested dtype ",
                         DTypeName(wanted), " at node '", ctx.node_name(), "'");
}

void RegisterTensorArrayKernels(KernelRegistry& r) {
  for (const char* version : {"", "V2", "V3"}) {
    r.Add<TensorArrayKernel>({.op = absl::StrCat("TensorArray", version)});
    r.Add<TensorArrayGradKernel>({.op = absl::StrCat("TensorArrayGrad", version)});
    AddCheapFn(r, absl::StrCat("TensorArrayWrite", version), WriteElement);
    AddCheapFn(r, absl::StrCat("TensorArrayRead", version), ReadElement);
    AddCheapFn(r, absl::StrCat("TensorArraySize", version), ArraySize);
    AddCheapFn(r, absl::StrCat("TensorArrayClose", version), CloseArray);
  }
  r.Add<TensorArrayGradKernel>({.op = "TensorArrayGradWithShape"});
  RegisterTensorArrayManyKernels(r);
}

}  // namespace millrace
