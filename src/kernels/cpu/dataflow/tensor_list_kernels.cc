// SPDX-License-Identifier: Apache-2.0
// CPU kernels: tensor lists, one element at a time, and whole lists.
#include "kernels/cpu/array/array_kernels.h"
#include "kernels/cpu/dataflow/tensor_list.h"
#include "kernels/cpu/engine/strided_copy.h"
#include "kernels/cpu/kernel_list.h"

namespace millrace {
namespace {

StatusOr<int64_t> ScalarFrom(const KernelContext& ctx, int i, const char* what) {
  if (!ctx.input(i).shape().IsScalar()) {
    return InvalidArgument(what, " must be a scalar, got shape: ", ctx.input(i).shape().ToString());
  }
  return ctx.input(i).IntScalar();
}

class NewListKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(dtype_, init.Attr<DType>("element_dtype"));
    reserves_ = init.op.name == "TensorListReserve";
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(PartialShape shape, ElementShapeFrom(ctx.input(0)));
    MR_ASSIGN_OR_RETURN(const int64_t n, ScalarFrom(ctx, 1, reserves_ ? "num_elements" : "max_num_elements"));
    auto list = MakeRef<TensorList>(dtype_, std::move(shape), reserves_ ? -1 : n);
    if (reserves_) {
      if (n < 0) return InvalidArgument("The num_elements to reserve must be a non negative number, but got ", n);
      MR_RETURN_IF_ERROR(list->Resize(n));
    }
    return OutputList(ctx, 0, std::move(list));
  }
  bool IsExpensive() const override { return false; }

 private:
  DType dtype_ = DType::kInvalid;
  bool reserves_ = false;
};

Status PushBack(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(TensorList * list, TakeList(ctx, 0, 0));
  return list->PushBack(ctx.input(1));
}

// What stands for an element that was never set.
//
// The shapes of the other elements count where `infers`.
StatusOr<Tensor> ZerosFor(KernelContext& ctx, const TensorList& list, const Tensor& node_shape, bool infers) {
  MR_ASSIGN_OR_RETURN(PartialShape shape, ElementShapeFrom(node_shape));
  MR_ASSIGN_OR_RETURN(shape, MergeShapes(shape, list.shape()));
  const int64_t n = infers && !shape.IsFullyDefined() ? list.size() : 0;
  MR_ASSIGN_OR_RETURN(
      const Shape known,
      CommonShape(
          n, [&](int64_t i) -> const Tensor& { return list[i]; }, shape,
          "Trying to read an uninitialized tensor but element_shape is not fully defined"));
  return ZeroTensor(ctx, list.dtype(), known);
}

Status PopBack(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const TensorList* before, ListFromInput(ctx, 0, ctx.output_dtype(1)));
  if (before->size() == 0) return InvalidArgument("Trying to pop from an empty list.");
  if (!(*before)[before->size() - 1].IsInitialized()) {
    MR_ASSIGN_OR_RETURN(Tensor zeros, ZerosFor(ctx, *before, ctx.input(1), false));
    ctx.set_output(1, std::move(zeros));
  }
  MR_ASSIGN_OR_RETURN(TensorList * list, TakeList(ctx, 0, 0));
  Tensor last = list->PopBack();
  if (last.IsInitialized()) ctx.set_output(1, std::move(last));
  return absl::OkStatus();
}

Status GetItem(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const TensorList* list, ListFromInput(ctx, 0, ctx.output_dtype(0)));
  MR_ASSIGN_OR_RETURN(const int64_t index, ctx.input(1).IntScalar());
  if (index < 0 || index >= list->size()) {
    return InvalidArgument("Trying to access element ", index, " in a list with ", list->size(), " elements.");
  }
  Tensor item = (*list)[index];
  if (!item.IsInitialized()) {
    MR_ASSIGN_OR_RETURN(item, ZerosFor(ctx, *list, ctx.input(2), true));
  }
  ctx.set_output(0, std::move(item));
  return absl::OkStatus();
}

class SetItemKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    // Newer graphs say here what older ones said with a Resize.
    constexpr char kGrows[] = "resize_if_index_out_of_bounds";
    if (!init.HasAttr(kGrows)) return absl::OkStatus();
    MR_ASSIGN_OR_RETURN(grows_, init.Attr<bool>(kGrows));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(const int64_t index, ScalarFrom(ctx, 1, "index"));
    MR_ASSIGN_OR_RETURN(TensorList * list, TakeList(ctx, 0, 0));
    if (grows_ && index >= list->size()) MR_RETURN_IF_ERROR(list->Resize(index + 1));
    return list->Set(index, ctx.input(2));
  }
  bool IsExpensive() const override { return false; }

 private:
  bool grows_ = false;
};

Status Length(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const TensorList* list, ListFromInput(ctx, 0));
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape()));
  *out->mutable_data<int32_t>() = static_cast<int32_t>(list->size());
  return absl::OkStatus();
}

Status Resize(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const int64_t size, ScalarFrom(ctx, 1, "size"));
  if (size < 0) return InvalidArgument("TensorListSlice expects size to be non-negative. Got: ", size);
  MR_ASSIGN_OR_RETURN(TensorList * list, TakeList(ctx, 0, 0));
  return list->Resize(size);
}

template <typename T>
Status WriteDims(absl::Span<const int64_t> dims, Tensor* out) {
  for (size_t i = 0; i < dims.size(); ++i) {
    if (static_cast<int64_t>(static_cast<T>(dims[i])) != dims[i]) {
      return InvalidArgument("dimension ", dims[i], " does not fit in ", DTypeName(out->dtype()));
    }
    out->mutable_data<T>()[i] = static_cast<T>(dims[i]);
  }
  return absl::OkStatus();
}

Status ElementShape(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const TensorList* list, ListFromInput(ctx, 0));
  const PartialShape& shape = list->shape();
  const std::vector<int64_t> dims = shape.has_rank() ? shape.dims() : std::vector<int64_t>{-1};
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape.has_rank() ? Shape::Vector(shape.rank()) : Shape()));
  return ctx.output_dtype(0) == DType::kInt64 ? WriteDims<int64_t>(dims, out) : WriteDims<int32_t>(dims, out);
}

class ConcatListsKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(dtype_, init.Attr<DType>("element_dtype"));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    const Tensor &a = ctx.input(0), &b = ctx.input(1);
    if (!(a.shape() == b.shape())) {
      return InvalidArgument("input_a and input_b must have the same TensorShape. Got: ", a.shape().ToString(), " vs. ",
                             b.shape().ToString());
    }
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, a.shape()));
    for (int64_t i = 0; i < a.num_elements(); ++i) {
      MR_ASSIGN_OR_RETURN(out->mutable_data<Variant>()[i], Join(i, a.data<Variant>()[i], b.data<Variant>()[i]));
    }
    return absl::OkStatus();
  }

 private:
  StatusOr<Variant> Join(int64_t i, const Variant& a, const Variant& b) const {
    const TensorList *first = ListIn(a), *second = ListIn(b);
    if (first == nullptr || second == nullptr) return InvalidArgument("an element of the inputs is not a list");
    if (first->dtype() != dtype_ || second->dtype() != dtype_) {
      return InvalidArgument("Invalid data types; op elements ", DTypeName(dtype_), " but list elements ",
                             DTypeName(first->dtype()), " and ", DTypeName(second->dtype()));
    }
    if (!(first->shape() == second->shape())) {
      return InvalidArgument("input_a and input_b TensorList element shapes are not identical at index ", i, ": ",
                             first->shape().ToString(), " vs. ", second->shape().ToString());
    }
    auto joined = MakeRef<TensorList>(*first);
    for (int64_t k = 0; k < second->size(); ++k) {
      if ((*second)[k].IsInitialized()) {
        MR_RETURN_IF_ERROR(joined->PushBack((*second)[k]));
      } else {
        MR_RETURN_IF_ERROR(joined->Resize(joined->size() + 1));
      }
    }
    return Variant(RefPtr<VariantValue>(std::move(joined)));
  }

  DType dtype_ = DType::kInvalid;
};

// The lists in `input_handles` get the rows of `tensor`.
Status PushBackBatch(KernelContext& ctx) {
  const Tensor &handles = ctx.input(0), &values = ctx.input(1);
  const int rank = handles.rank();
  if (values.rank() < rank || values.shape().dims().subspan(0, static_cast<size_t>(rank)) != handles.shape().dims()) {
    return InvalidArgument("Invalid shape: tensor ", values.shape().ToString(),
                           " must begin with the shape of input_handles, ", handles.shape().ToString());
  }
  MR_ASSIGN_OR_RETURN(const Shape row, Shape::Make(values.shape().dims().subspan(static_cast<size_t>(rank))));
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, handles.shape()));
  for (int64_t i = 0; i < handles.num_elements(); ++i) {
    const TensorList* list = ListIn(handles.data<Variant>()[i]);
    if (list == nullptr) return InvalidArgument("element ", i, " of input_handles is not a list");
    if (!list->shape().IsCompatibleWith(row)) {
      return InvalidArgument("Tried to append a tensor with incompatible shape to a list at index ", i,
                             ". Op element shape: ", row.ToString(), " list shape: ", list->shape().ToString());
    }
    MR_ASSIGN_OR_RETURN(Tensor value, ContiguousPart(ctx, values, i * row.num_elements(), row));
    auto longer = MakeRef<TensorList>(*list);
    MR_RETURN_IF_ERROR(longer->PushBack(std::move(value)));
    out->mutable_data<Variant>()[i] = Variant(RefPtr<VariantValue>(std::move(longer)));
  }
  return absl::OkStatus();
}

}  // namespace

void RegisterTensorListKernels(KernelRegistry& r) {
  r.Add<NewListKernel>({.op = "EmptyTensorList"});
  r.Add<NewListKernel>({.op = "TensorListReserve"});
  AddCheapFn(r, "TensorListPushBack", PushBack);
  AddCheapFn(r, "TensorListPopBack", PopBack);
  AddCheapFn(r, "TensorListGetItem", GetItem);
  r.Add<SetItemKernel>({.op = "TensorListSetItem"});
  AddCheapFn(r, "TensorListLength", Length);
  AddCheapFn(r, "TensorListResize", Resize);
  AddCheapFn(r, "TensorListElementShape", ElementShape);
  r.Add<ConcatListsKernel>({.op = "TensorListConcatLists"});
  r.AddFn({.op = "TensorListPushBackBatch"}, PushBackBatch);
  RegisterTensorListManyKernels(r);
  RegisterTensorListArithmeticKernels(r);
}

}  // namespace millrace
