// SPDX-License-Identifier: Apache-2.0
// Ops: parts of a tensor, and their gradients.
#include "ops/array/array_ops.h"
#include "tensor/strided_slice.h"

namespace millrace {
namespace {

// One dimension of Slice; -1 stands for what is not known. `size` is as written: -1 means up to the end.
StatusOr<int64_t> SlicedDim(int i, int64_t dim, std::optional<int64_t> begin, int64_t size) {
  if (begin && dim >= 0 && (*begin < 0 || *begin > dim)) {
    return InvalidArgument("Expected begin[", i, "] in [0, ", dim, "], but got ", *begin);
  }
  if (size < -1) return InvalidArgument("Expected size[", i, "] >= -1, but got ", size);
  if (size == -1) return dim >= 0 && begin ? dim - *begin : -1;
  if (dim >= 0 && size > dim - begin.value_or(0)) {
    return InvalidArgument("Expected size[", i, "] in [0, ", dim - begin.value_or(0), "], but got ", size);
  }
  return size;
}

// When the input denotes a shape, so does the part of it that was cut out.
void PartAsShape(ShapeContext& c, int64_t begin, int64_t stride, int64_t size) {
  const DType t = BaseType(c.input_dtype(0));
  if (t != DType::kInt32 && t != DType::kInt64) return;
  auto whole = c.InputAsShape(0);
  if (!whole.ok() || !whole->has_rank()) return;
  std::vector<int64_t> dims;
  for (int64_t i = 0; i < size; ++i) {
    const int64_t at = begin + i * stride;
    if (at < 0 || at >= whole->rank()) return;
    dims.push_back(whole->dim(static_cast<int>(at)));
  }
  c.set_output_as_shape(0, PartialShape::Of(std::move(dims)));
}

Status SliceShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(PartialShape begin_shape, c.WithRank(1, 1));
  MR_ASSIGN_OR_RETURN(PartialShape size_shape, c.WithRank(2, 1));
  MR_ASSIGN_OR_RETURN(int64_t rank, c.MergeDim(begin_shape.dim(0), size_shape.dim(0), "begin and size of Slice"));
  MR_ASSIGN_OR_RETURN(rank, c.MergeDim(rank, c.input(0).rank(), "rank of the input of Slice"));
  if (rank < 0) return absl::OkStatus();
  if (rank > kMaxRank) return InvalidArgument("rank ", rank, " exceeds the limit of ", kMaxRank);
  MR_ASSIGN_OR_RETURN(auto begin, c.ConstantInts(1));
  MR_ASSIGN_OR_RETURN(auto size, c.ConstantInts(2));
  const PartialShape in = c.input(0).has_rank() ? c.input(0) : PartialShape::UnknownOfRank(static_cast<int>(rank));
  std::vector<int64_t> dims(static_cast<size_t>(rank), -1);
  if (size) {
    for (int i = 0; i < in.rank(); ++i) {
      const auto k = static_cast<size_t>(i);
      MR_ASSIGN_OR_RETURN(
          dims[k], SlicedDim(i, in.dim(i), begin ? std::optional((*begin)[k]) : std::nullopt, (*size)[k]));
    }
  } else if (auto partial = c.InputAsShape(2); partial.ok() && partial->rank() == rank) {
    dims = partial->dims();
  }
  if (begin && rank == 1 && dims[0] >= 0) PartAsShape(c, (*begin)[0], 1, dims[0]);
  MR_ASSIGN_OR_RETURN(PartialShape out, PartialShape::Make(dims));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

StatusOr<StridedSliceMasks> MasksOf(const ShapeContext& c) {
  StridedSliceMasks m;
  MR_ASSIGN_OR_RETURN(m.begin, c.Attr<int64_t>("begin_mask"));
  MR_ASSIGN_OR_RETURN(m.end, c.Attr<int64_t>("end_mask"));
  MR_ASSIGN_OR_RETURN(m.ellipsis, c.Attr<int64_t>("ellipsis_mask"));
  MR_ASSIGN_OR_RETURN(m.new_axis, c.Attr<int64_t>("new_axis_mask"));
  MR_ASSIGN_OR_RETURN(m.shrink_axis, c.Attr<int64_t>("shrink_axis_mask"));
  return m;
}

// The slice that inputs 1 (begin), 2 (end) and 3 (strides) describe of `of`; nullopt while the strides are unknown.
StatusOr<std::optional<StridedSlice>> SliceOf(ShapeContext& c, const PartialShape& of) {
  int64_t count = -1;
  for (int i = 1; i <= 3; ++i) {
    MR_ASSIGN_OR_RETURN(PartialShape spec, c.WithRank(i, 1));
    MR_ASSIGN_OR_RETURN(count, c.MergeDim(count, spec.dim(0), "begin, end and strides"));
  }
  MR_ASSIGN_OR_RETURN(auto begin, c.ConstantInts(1));
  MR_ASSIGN_OR_RETURN(auto end, c.ConstantInts(2));
  MR_ASSIGN_OR_RETURN(auto strides, c.ConstantInts(3));
  if (!strides) return std::optional<StridedSlice>();
  MR_ASSIGN_OR_RETURN(StridedSliceMasks masks, MasksOf(c));
  using Ints = std::optional<absl::Span<const int64_t>>;
  MR_ASSIGN_OR_RETURN(
      StridedSlice slice,
      ResolveStridedSlice(of, begin ? Ints(*begin) : Ints(), end ? Ints(*end) : Ints(), *strides, masks));
  return std::optional<StridedSlice>(std::move(slice));
}

Status StridedSliceShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(std::optional<StridedSlice> slice, SliceOf(c, c.input(0)));
  if (!slice) return absl::OkStatus();
  if (slice->known && slice->dims.size() == 1 && slice->output.size() <= 1) {
    PartAsShape(c, slice->dims[0].begin, slice->dims[0].stride, slice->dims[0].size);
  }
  MR_ASSIGN_OR_RETURN(PartialShape out, slice->OutputShape());
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

Status StridedSliceGradShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(PartialShape shape, c.InputAsShape(0));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

Status StridedSliceAssignShape(ShapeContext& c) {
  c.set_output(0, c.input(0));
  return absl::OkStatus();
}

Status SliceGrad(GradContext& c) {
  const GraphBuilder& b = c.b();
  const DType index = BaseType(c.x(1).dtype());
  const Output before = c.x(1);
  const PartialShape& whole = c.x(0).shape();
  const PartialShape& part = c.y().shape();
  const auto begin = KnownInts(b, before);
  if (begin && whole.IsFullyDefined() && part.IsFullyDefined() && whole.rank() == part.rank() &&
      static_cast<int>(begin->size()) == whole.rank()) {
    std::vector<int64_t> paddings;
    for (int i = 0; i < whole.rank(); ++i) {
      paddings.push_back((*begin)[static_cast<size_t>(i)]);
      paddings.push_back(whole.dim(i) - part.dim(i) - paddings.back());
    }
    const Output matrix = b.Reshape(IntVector(b, index, paddings), IntVector(b, DType::kInt32, {whole.rank(), 2}));
    c.set_dx(0, b.Op("Pad", {c.dy(), matrix}));
    return c.status();
  }
  const Output after = b.Sub(b.Sub(ShapeOf(b, c.x(0), index), ShapeOf(b, c.y(), index)), before);
  const Output paddings = b.Op("Pack", {std::vector<Output>{before, after}}, {{"axis", 1}});
  c.set_dx(0, b.Op("Pad", {c.dy(), paddings}));
  return c.status();
}

StatusOr<AttrMap> MaskAttrs(const GradContext& c) {
  AttrMap attrs;
  for (const char* name : {"begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"}) {
    MR_ASSIGN_OR_RETURN(int64_t mask, c.Attr<int64_t>(name));
    attrs.emplace(name, mask);
  }
  return attrs;
}

Status StridedSliceGradient(GradContext& c) {
  MR_ASSIGN_OR_RETURN(AttrMap attrs, MaskAttrs(c));
  const Output shape = ShapeOf(c.b(), c.x(0), BaseType(c.x(1).dtype()));
  Node* dx =
      c.b().OpNode("StridedSliceGrad", std::vector<Arg>{shape, c.x(1), c.x(2), c.x(3), c.dy()}, std::move(attrs));
  if (dx != nullptr) c.set_dx(0, dx->output(0));
  return c.status();
}

Status StridedSliceGradGradient(GradContext& c) {
  MR_ASSIGN_OR_RETURN(AttrMap attrs, MaskAttrs(c));
  Node* dx = c.b().OpNode("StridedSlice", std::vector<Arg>{c.dy(), c.x(1), c.x(2), c.x(3)}, std::move(attrs));
  if (dx != nullptr) c.set_dx(4, dx->output(0));
  return c.status();
}

// What was replaced gets nothing; the value gets its place, summed where it was repeated.
Status StridedSliceUpdateGradient(GradContext& c) {
  MR_ASSIGN_OR_RETURN(AttrMap attrs, MaskAttrs(c));
  const GraphBuilder& b = c.b();
  const std::vector<Arg> at = {c.x(1), c.x(2), c.x(3)};
  std::vector<Arg> update = {c.dy(), at[0], at[1], at[2], b.ZerosLike(c.x(4))};
  std::vector<Arg> part = {c.dy(), at[0], at[1], at[2]};
  Node* dx = b.OpNode("TensorStridedSliceUpdate", std::move(update), attrs);
  Node* dv = b.OpNode("StridedSlice", std::move(part), std::move(attrs));
  if (dx == nullptr || dv == nullptr) return c.status();
  c.set_dx(0, dx->output(0));
  c.set_dx(4, SumToShapeOf(b, dv->output(0), c.x(4)));
  return c.status();
}

}  // namespace

void RegisterArraySliceOps(OpRegistry& r) {
  r.Add("Slice(input:T, begin:Index, size:Index) -> (output:T) | T:type; Index in IDX")
      .Doc("The box of a tensor that starts at `begin` and has the given sizes; a size of -1 reaches to the end.")
      .Shape(SliceShape)
      .Gradient(SliceGrad)
      .Example("f32[3,4]~, i32[2]{1 0}, i32[2]{2 -1}");
  r.Add(
       "StridedSlice(input:T, begin:Index, end:Index, strides:Index) -> (output:T) | T:type; Index in IDX; "
       "begin_mask:int=0; end_mask:int=0; ellipsis_mask:int=0; new_axis_mask:int=0; shrink_axis_mask:int=0")
      .Doc(
          "What x[begin:end:stride, ...] selects in Python. Bit i of a mask speaks of entry i: start or end where the "
          "dimension does, stand for as many dimensions as are left, insert a dimension of size 1, or pick one index.")
      .Shape(StridedSliceShape)
      .Gradient(StridedSliceGradient)
      .Example("f32[4,5]~, i32[2]{3 1}, i32[2]{0 5}, i32[2]{-1 2}")
      .Example("f32[4,5]~, i32[2]{1 0}, i32[2]{2 0}, i32[2]{1 1} | shrink_axis_mask=1; end_mask=2");
  r.Add(
       "StridedSliceGrad(shape:Index, begin:Index, end:Index, strides:Index, dy:T) -> (output:T) | T:type; "
       "Index in IDX; begin_mask:int=0; end_mask:int=0; ellipsis_mask:int=0; new_axis_mask:int=0; "
       "shrink_axis_mask:int=0")
      .Doc("Zeros of the given shape with `dy` in the place that StridedSlice with the same arguments selects.")
      .Shape(StridedSliceGradShape)
      .Gradient(StridedSliceGradGradient)
      .Example("i32[2]{4 5}, i32[2]{3 1}, i32[2]{0 5}, i32[2]{-1 2}, f32[3,2]~");
  r.Add(
       "StridedSliceAssign(ref:&T, begin:Index, end:Index, strides:Index, value:T) -> (output_ref:&T) | T:type; "
       "Index in IDX; begin_mask:int=0; end_mask:int=0; ellipsis_mask:int=0; new_axis_mask:int=0; "
       "shrink_axis_mask:int=0")
      .Doc("Overwrites the part of a variable that StridedSlice with the same arguments selects.")
      .Shape(StridedSliceAssignShape)
      .NoGradient("assignments are not differentiated")
      .NoExample("it needs a variable");
  r.Add(
       "ResourceStridedSliceAssign(ref:res, begin:Index, end:Index, strides:Index, value:T) -> () | T:type; "
       "Index in IDX; begin_mask:int=0; end_mask:int=0; ellipsis_mask:int=0; new_axis_mask:int=0; "
       "shrink_axis_mask:int=0 | S")
      .Doc("Overwrites the part of a variable that StridedSlice with the same arguments selects.")
      .Shape(NoOutputs)
      .NoGradient("assignments are not differentiated")
      .NoExample("it needs a variable");
  r.Add(
       "TensorStridedSliceUpdate(input:T, begin:Index, end:Index, strides:Index, value:T) -> (output:T) | T:type; "
       "Index in IDX; begin_mask:int=0; end_mask:int=0; ellipsis_mask:int=0; new_axis_mask:int=0; "
       "shrink_axis_mask:int=0")
      .Doc("The input with the part that StridedSlice with the same arguments selects replaced.")
      .Shape(StridedSliceAssignShape)
      .Gradient(StridedSliceUpdateGradient)
      .Example("f32[4,5]~, i32[2]{3 1}, i32[2]{0 5}, i32[2]{-1 2}, f32[3,2]~");
}

}  // namespace millrace
