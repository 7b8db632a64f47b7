// SPDX-License-Identifier: Apache-2.0
// CPU kernels: several tensors into one along an axis, and one into several.
#include <algorithm>

#include "absl/strings/str_join.h"
#include "base/checked.h"
#include "kernels/cpu/array/array_kernels.h"
#include "kernels/cpu/engine/strided_copy.h"

namespace millrace {
namespace {

// A tensor seen as [outer, size of the axis, inner]; without elements outer and inner are 0.
struct AxisView {
  int64_t outer = 1, size = 1, inner = 1;
};
AxisView ViewAt(const Shape& s, int axis) {
  AxisView v;
  if (s.num_elements() == 0) return {0, s.dim(axis), 0};
  for (int i = 0; i < axis; ++i) v.outer *= s.dim(i);
  v.size = s.dim(axis);
  for (int i = axis + 1; i < s.rank(); ++i) v.inner *= s.dim(i);
  return v;
}

// Copies blocks of `part` elements into rows of `row` elements, beginning at element `offset` of each row.
void PutColumns(KernelContext& ctx, Tensor* out, int64_t offset, int64_t row, const Tensor& in, int64_t outer,
                int64_t part) {
  const CopyDim dims[] = {{outer, row, part}, {part, 1, 1}};
  StridedCopy(&ctx, in.dtype(), ElementAt(out->mutable_raw(), in.dtype(), offset), in.raw(), dims);
}

// Long rows of plain elements; false: nothing was done.
bool JoinInOneSweep(KernelContext& ctx, ArgRange values, int axis, const AxisView& view, Tensor* out) {
  constexpr int64_t kLongRow = 64;  // bytes
  if (!IsPlain(out->dtype()) || view.outer == 1) return false;
  absl::InlinedVector<JoinedPart, 8> parts;
  for (int i = values.begin; i < values.end; ++i) {
    const Tensor& in = ctx.input(i);
    const int64_t bytes = in.dim(axis) * view.inner * static_cast<int64_t>(DTypeSize(in.dtype()));
    if (bytes == 0) continue;
    if (bytes < kLongRow) return false;
    parts.push_back({in.raw(), bytes});
  }
  JoinRows(&ctx, out->mutable_raw(), view.outer, parts);
  return true;
}

Status ConcatInputs(KernelContext& ctx, ArgRange values, const Tensor& axis_tensor) {
  MR_ASSIGN_OR_RETURN(int64_t axis, IntScalarOf(axis_tensor, "concat axis"));
  if (axis_tensor.rank() != 0)
    return InvalidArgument(
        "ConcatOp : axis tensor should be a scalar integer, got shape ", axis_tensor.shape().ToString());
  const Shape& first = ctx.input(values.begin).shape();
  int64_t at;
  if (!NormalizeIndex(axis, first.rank(), &at)) {
    return InvalidArgument("ConcatOp : Expected concatenating dimensions in the range [", -first.rank(), ", ",
                           first.rank(), "), but got ", axis);
  }
  const int d = static_cast<int>(at);
  int64_t total = 0;
  int only = -1;  // the one input with elements, if it is the only one
  int with_elements = 0;
  for (int i = values.begin; i < values.end; ++i) {
    const Shape& s = ctx.input(i).shape();
    if (s.rank() != first.rank()) {
      return InvalidArgument("ConcatOp : Ranks of all input tensors should match: shape[0] = ", first.ToString(),
                             " vs. shape[", i - values.begin, "] = ", s.ToString());
    }
    bool fits = true;
    for (int k = 0; fits && k < s.rank(); ++k) fits = k == d || s.dim(k) == first.dim(k);
    if (!fits) {
      return InvalidArgument("ConcatOp : Dimensions of inputs should match: shape[0] = ", first.ToString(),
                             " vs. shape[", i - values.begin, "] = ", s.ToString());
    }
    if (!CheckedAdd(total, s.dim(d), &total)) return InvalidArgument("the concatenated dimension overflows");
    if (s.num_elements() > 0) {
      ++with_elements;
      only = i;
    }
  }
  MR_ASSIGN_OR_RETURN(Shape shape, first.WithDim(d, total));
  if (with_elements == 1) return ctx.ForwardReshaped(only, 0, shape);
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  if (shape.num_elements() == 0) return absl::OkStatus();
  const AxisView view = ViewAt(shape, d);
  if (JoinInOneSweep(ctx, values, d, view, out)) return absl::OkStatus();
  int64_t offset = 0;
  for (int i = values.begin; i < values.end; ++i) {
    const int64_t part = ctx.input(i).dim(d) * view.inner;
    PutColumns(ctx, out, offset, view.size * view.inner, ctx.input(i), view.outer, part);
    offset += part;
  }
  return absl::OkStatus();
}

// Rows of which each input gives one; the attribute says the shape of all of them.
class ParallelConcatKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(const PartialShape shape, init.Attr<PartialShape>("shape"));
    if (!shape.IsFullyDefined()) return InvalidArgument("Shape ", shape.ToString(), " is not fully defined");
    MR_ASSIGN_OR_RETURN(shape_, shape.ToShape());
    if (shape_.rank() < 1 || shape_.dim(0) != init.num_inputs()) {
      return InvalidArgument(init.num_inputs(), " values do not make a tensor of shape ", shape_.ToString());
    }
    MR_ASSIGN_OR_RETURN(row_, shape_.WithDim(0, 1));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    for (int i = 0; i < ctx.num_inputs(); ++i) {
      if (ctx.input(i).shape() == row_) continue;
      return InvalidArgument(
          "value ", i, " must have shape ", row_.ToString(), ", got ", ctx.input(i).shape().ToString());
    }
    return ConcatInputs(ctx, {0, ctx.num_inputs()}, Tensor::Scalar<int32_t>(0));
  }

 private:
  Shape shape_, row_;
};

Status Concat(KernelContext& ctx) { return ConcatInputs(ctx, {1, ctx.num_inputs()}, ctx.input(0)); }
Status ConcatV2(KernelContext& ctx) {
  return ConcatInputs(ctx, {0, ctx.num_inputs() - 1}, ctx.input(ctx.num_inputs() - 1));
}

template <typename T>
std::string Spaced(const Tensor& sizes) {
  return absl::StrCat("[", absl::StrJoin(sizes.flat<T>(), " "), "]");
}

template <typename T>
Status ConcatOffsetOf(KernelContext& ctx, int64_t axis) {
  int64_t at = 0;
  const Tensor& first = ctx.input(1);
  if (first.rank() != 1) return InvalidArgument("input 0 should be a vector, got shape ", first.shape().ToString());
  if (!NormalizeIndex(axis, first.num_elements(), &at)) {
    return InvalidArgument("Concat dim is out of range: ", axis, " vs. ", first.num_elements());
  }
  T offset = 0;
  for (int i = 1; i < ctx.num_inputs(); ++i) {
    const Tensor& in = ctx.input(i);
    if (!(in.shape() == first.shape())) {
      return InvalidArgument("input ", i - 1, " should contain ", first.num_elements(),
                             " elements, as input 0 does, got ", in.shape().ToString());
    }
    for (int64_t k = 0; k < in.num_elements(); ++k) {
      if (k != at && in.data<T>()[k] != first.data<T>()[k]) {
        return InvalidArgument("All dimensions except ", at, " must match. Input ", i - 1, " has shape ", Spaced<T>(in),
                               " and doesn't match input 0 with shape ", Spaced<T>(first), ".");
      }
    }
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(i - 1, in.shape()));
    std::fill_n(out->mutable_data<T>(), in.num_elements(), T{0});
    out->mutable_data<T>()[at] = offset;
    if (!CheckedAdd(offset, in.data<T>()[at], &offset)) return InvalidArgument("the offsets overflow");
  }
  return absl::OkStatus();
}

Status ConcatOffset(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(int64_t axis, IntScalarOf(ctx.input(0), "concat_dim"));
  if (ctx.input_dtype(1) == DType::kInt64) return ConcatOffsetOf<int64_t>(ctx, axis);
  return ConcatOffsetOf<int32_t>(ctx, axis);
}

class PackKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(axis_, init.Attr<int64_t>("axis"));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    const Shape& part = ctx.input(0).shape();
    int64_t at;
    if (!NormalizeIndex(axis_, part.rank() + 1, &at)) {
      return InvalidArgument("axis = ", axis_, " not in [", -part.rank() - 1, ", ", part.rank() + 1, ")");
    }
    for (int i = 1; i < ctx.num_inputs(); ++i) {
      if (ctx.input(i).shape() == part) continue;
      return InvalidArgument("Shapes of all inputs must match: values[0].shape = ", part.ToString(), " != values[", i,
                             "].shape = ", ctx.input(i).shape().ToString());
    }
    MR_ASSIGN_OR_RETURN(Shape shape, part.WithInserted(static_cast<int>(at), ctx.num_inputs()));
    if (ctx.num_inputs() == 1) return ctx.ForwardReshaped(0, 0, shape);
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    if (shape.num_elements() == 0) return absl::OkStatus();
    const AxisView view = ViewAt(shape, static_cast<int>(at));
    if (part.IsScalar()) return PackScalars(ctx, out);
    for (int i = 0; i < ctx.num_inputs(); ++i) {
      PutColumns(ctx, out, i * view.inner, view.size * view.inner, ctx.input(i), view.outer, view.inner);
    }
    return absl::OkStatus();
  }

 private:
  static Status PackScalars(KernelContext& ctx, Tensor* out) {
    const auto copy = RunFunctions(out->dtype()).copy;
    for (int i = 0; i < ctx.num_inputs(); ++i) {
      copy(ElementAt(out->mutable_raw(), out->dtype(), i), ctx.input(i).raw(), 1);
    }
    return absl::OkStatus();
  }
  int64_t axis_ = 0;
};

// Output o becomes elements [begin, begin + size) along the axis of `in`, as `shape`.
Status SetPart(KernelContext& ctx, int o, const Tensor& in, const AxisView& view, int64_t begin, int64_t size,
               const Shape& shape) {
  if (view.outer == 1) {
    MR_ASSIGN_OR_RETURN(Tensor part, ContiguousPart(ctx, in, begin * view.inner, shape));
    ctx.set_output(o, std::move(part));
    return absl::OkStatus();
  }
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(o, shape));
  if (shape.num_elements() == 0) return absl::OkStatus();
  const int64_t run = size * view.inner;
  const CopyDim dims[] = {{view.outer, run, view.size * view.inner}, {run, 1, 1}};
  StridedCopy(&ctx, in.dtype(), out->mutable_raw(), ElementAt(in.raw(), in.dtype(), begin * view.inner), dims);
  return absl::OkStatus();
}

// Thin parts (several of them share each cache line of the input) are brought together by one transposition into one
// buffer, of which the outputs are views. False when the parts are not of this kind.
StatusOr<bool> SetThinParts(KernelContext& ctx, const Tensor& in, const AxisView& view, int64_t parts,
                            const Shape& shape) {
  const int64_t run = view.size / parts * view.inner;  // of one part, in each of the outer places
  const auto element = static_cast<int64_t>(DTypeSize(in.dtype()));
  const bool thin = run * parts * element <= 256 && view.outer > 1 && parts > 1 && shape.num_elements() > 0;
  constexpr auto kAlignment = static_cast<int64_t>(Allocator::kAlignment);
  if (!thin || !IsPlain(in.dtype()) || kAlignment % element != 0) return false;
  const int64_t unit = kAlignment / element, apart = (shape.num_elements() + unit - 1) / unit * unit;
  MR_ASSIGN_OR_RETURN(Tensor all, ctx.AllocateTemp(in.dtype(), Shape::Vector(parts * apart)));
  const CopyDim dims[] = {{parts, apart, run}, {view.outer, run, parts * run}, {run, 1, 1}};
  StridedCopy(&ctx, in.dtype(), all.mutable_raw(), in.raw(), dims);
  for (int64_t i = 0; i < parts; ++i) {
    MR_ASSIGN_OR_RETURN(Tensor part, all.Rows(i * apart, i * apart + shape.num_elements()));
    MR_ASSIGN_OR_RETURN(part, part.Reshaped(shape));
    ctx.set_output(static_cast<int>(i), std::move(part));
  }
  return true;
}

class UnpackKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(axis_, init.Attr<int64_t>("axis"));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    const Tensor& in = ctx.input(0);
    int64_t at;
    if (!NormalizeIndex(axis_, in.rank(), &at)) {
      return InvalidArgument("axis = ", axis_, " not in [", -in.rank(), ", ", in.rank(), ")");
    }
    if (in.dim(static_cast<int>(at)) != ctx.num_outputs()) {
      return InvalidArgument(
          "Input shape axis ", at, " must equal ", ctx.num_outputs(), ", got shape ", in.shape().ToString());
    }
    if (ctx.num_outputs() == 0) return absl::OkStatus();
    const Shape shape = in.shape().WithoutDim(static_cast<int>(at));
    const AxisView view = ViewAt(in.shape(), static_cast<int>(at));
    MR_ASSIGN_OR_RETURN(bool done, SetThinParts(ctx, in, view, ctx.num_outputs(), shape));
    if (done) return absl::OkStatus();
    for (int i = 0; i < ctx.num_outputs(); ++i) MR_RETURN_IF_ERROR(SetPart(ctx, i, in, view, i, 1, shape));
    return absl::OkStatus();
  }

 private:
  int64_t axis_ = 0;
};

StatusOr<int> SplitAxis(const Tensor& axis_tensor, const Tensor& in) {
  if (axis_tensor.num_elements() != 1) {
    return InvalidArgument("split_dim must have exactly one element, got shape ", axis_tensor.shape().ToString());
  }
  MR_ASSIGN_OR_RETURN(int64_t axis, IntScalarOf(axis_tensor, "split_dim"));
  int64_t at;
  if (!NormalizeIndex(axis, in.rank(), &at)) {
    return InvalidArgument("-input rank(-", in.rank(), ") <= split_dim < input rank (", in.rank(), "), but got ", axis);
  }
  return static_cast<int>(at);
}

Status SplitInto(KernelContext& ctx, const Tensor& in, int axis, absl::Span<const int64_t> sizes) {
  if (sizes.size() == 1) {
    ctx.set_output(0, in);
    return absl::OkStatus();
  }
  const AxisView view = ViewAt(in.shape(), axis);
  int64_t begin = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    MR_ASSIGN_OR_RETURN(Shape shape, in.shape().WithDim(axis, sizes[i]));
    MR_RETURN_IF_ERROR(SetPart(ctx, static_cast<int>(i), in, view, begin, sizes[i], shape));
    begin += sizes[i];
  }
  return absl::OkStatus();
}

Status Split(KernelContext& ctx) {
  const Tensor& in = ctx.input(1);
  MR_ASSIGN_OR_RETURN(int axis, SplitAxis(ctx.input(0), in));
  const int64_t parts = ctx.num_outputs();
  if (parts < 1 || in.dim(axis) % parts != 0) {
    return InvalidArgument("Number of ways to split should evenly divide the split dimension, but got split_dim ", axis,
                           " (size = ", in.dim(axis), ") and num_split ", parts);
  }
  const int64_t size = in.dim(axis) / parts;
  MR_ASSIGN_OR_RETURN(Shape shape, in.shape().WithDim(axis, size));
  MR_ASSIGN_OR_RETURN(bool done, SetThinParts(ctx, in, ViewAt(in.shape(), axis), parts, shape));
  if (done) return absl::OkStatus();
  return SplitInto(ctx, in, axis, Ints(static_cast<size_t>(parts), size));
}

Status SplitV(KernelContext& ctx) {
  const Tensor& in = ctx.input(0);
  MR_ASSIGN_OR_RETURN(Ints sizes, IntVectorOf(ctx.input(1), "size_splits"));
  MR_ASSIGN_OR_RETURN(int axis, SplitAxis(ctx.input(2), in));
  if (static_cast<int>(sizes.size()) != ctx.num_outputs()) {
    return InvalidArgument("size of the split_tensor must be 1-D and have the same elements as outputs got 1 -D and ",
                           sizes.size(), " elements, wanted ", ctx.num_outputs());
  }
  int64_t* open = nullptr;
  int64_t sum = 0;
  for (int64_t& s : sizes) {
    if (s == -1) {
      if (open != nullptr) return InvalidArgument("There can only be one -1 in the input.");
      open = &s;
    } else if (s < 0 || !CheckedAdd(sum, s, &sum)) {
      return InvalidArgument("Split sizes must be >= 0. Got: ", s);
    }
  }
  if (open == nullptr ? sum != in.dim(axis) : sum > in.dim(axis)) {
    return InvalidArgument(
        "Determined shape must either match input shape along split_dim exactly if fully specified, or be less than "
        "the size of the input along split_dim if not fully specified.  Got: ",
        sum, ", wanted the dimension along axis ", axis, ", ", in.dim(axis));
  }
  if (open != nullptr) *open = in.dim(axis) - sum;
  return SplitInto(ctx, in, axis, sizes);
}

}  // namespace

void RegisterArrayJoinKernels(KernelRegistry& r) {
  r.AddFn({.op = "Concat"}, Concat);
  r.AddFn({.op = "ConcatV2"}, ConcatV2);
  r.Add<ParallelConcatKernel>({.op = "ParallelConcat"});
  AddCheapFn(r, "ConcatOffset", ConcatOffset);
  r.Add<PackKernel>({.op = "Pack"});
  r.Add<UnpackKernel>({.op = "Unpack"});
  r.AddFn({.op = "Split"}, Split);
  r.AddFn({.op = "SplitV"}, SplitV);
}

}  // namespace millrace
