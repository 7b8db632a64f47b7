// SPDX-License-Identifier: Apache-2.0
// Ops: lists of tensors as values. A list is a variant scalar; an op that changes one returns the changed list.
#include "graph/gradient.h"
#include "op/shape_context.h"
#include "ops/op_list.h"

namespace millrace {
namespace {

constexpr char kNotDiff[] = "it says something about a list, or makes one of nothing";
constexpr char kHandle[] = "needs a list as input";

// Only a vector, or the scalar -1 for unknown rank, is a shape.
StatusOr<PartialShape> ShapeInput(ShapeContext& c, int i) {
  if (c.input(i).rank() == 0) return PartialShape::Unknown();
  MR_RETURN_IF_ERROR(c.WithRank(i, 1).status());
  return c.InputAsShape(i);
}

// What input `list` says about its elements, and what the node says at input i.
StatusOr<PartialShape> ElementShape(ShapeContext& c, int list, int i) {
  MR_ASSIGN_OR_RETURN(PartialShape shape, ShapeInput(c, i));
  if (!c.handle(list)) return shape;
  return c.Merge(shape, c.handle(list)->shape, "element_shape and the elements of the list");
}

StatusOr<PartialShape> Prepended(int64_t size, const PartialShape& element) {
  if (!element.has_rank()) return PartialShape::Unknown();
  std::vector<int64_t> dims = element.dims();
  dims.insert(dims.begin(), size);
  return PartialShape::Make(dims);
}

Status NewList(ShapeContext& c, int shape_input) {
  MR_ASSIGN_OR_RETURN(const DType dtype, c.Attr<DType>("element_dtype"));
  MR_ASSIGN_OR_RETURN(PartialShape shape, ShapeInput(c, shape_input));
  c.set_output(0, PartialShape::Scalar());
  c.set_output_handle(0, {dtype, std::move(shape)});
  return absl::OkStatus();
}
Status EmptyShape(ShapeContext& c) { return NewList(c, 0); }
Status FromTensorShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.WithRankAtLeast(0, 1).status());
  return NewList(c, 1);
}
Status ScatterShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.WithRankAtLeast(0, 1).status());
  return NewList(c, 2);
}
Status SplitShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.WithRank(2, 1).status());
  MR_RETURN_IF_ERROR(FromTensorShape(c));
  if (!c.input(0).has_rank()) return absl::OkStatus();
  std::vector<int64_t> part = c.input(0).dims();
  part[0] = -1;
  return c.Merge(PartialShape::Of(std::move(part)), c.output_handles()[0]->shape, "a part of tensor and element_shape")
      .status();
}

// Output 0 is the list of input 0, changed.
Status SameListShape(ShapeContext& c) {
  c.set_output(0, c.input(0));
  if (c.handle(0)) c.set_output_handle(0, *c.handle(0));
  return absl::OkStatus();
}

Status ConcatListsShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(SameListShape(c));
  if (!c.handle(0) || !c.handle(1)) return absl::OkStatus();
  return c.Merge(c.handle(0)->shape, c.handle(1)->shape, "elements of input_a and input_b").status();
}

Status PopBackShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(SameListShape(c));
  c.set_output(1, ElementShape(c, 0, 1).value_or(PartialShape::Unknown()));  // the step finds contradictions
  return absl::OkStatus();
}

Status GetItemShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(PartialShape item, ElementShape(c, 0, 2));
  c.set_output(0, std::move(item));
  return absl::OkStatus();
}

Status StackShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const int64_t size, c.Attr<int64_t>("num_elements"));
  MR_ASSIGN_OR_RETURN(const PartialShape item, ElementShape(c, 0, 1));
  MR_ASSIGN_OR_RETURN(PartialShape out, Prepended(size < 0 ? -1 : size, item));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

Status GatherShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape item, ElementShape(c, 0, 2));
  MR_ASSIGN_OR_RETURN(PartialShape out, Prepended(c.input(1).num_elements(), item));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

Status ConcatShape(ShapeContext& c) {
  PartialShape shape;
  if (c.num_inputs() > 1) {
    MR_ASSIGN_OR_RETURN(shape, ElementShape(c, 0, 1));
  } else {
    MR_ASSIGN_OR_RETURN(shape, c.Attr<PartialShape>("element_shape"));
  }
  if (shape.rank() > 0) {
    std::vector<int64_t> dims = shape.dims();
    dims[0] = -1;
    c.set_output(0, PartialShape::Of(std::move(dims)));
  }
  c.set_output(1, PartialShape::UnknownOfRank(1));
  return absl::OkStatus();
}

Status ElementShapeShape(ShapeContext& c) {
  if (!c.handle(0) || !c.handle(0)->shape.has_rank()) return absl::OkStatus();
  c.set_output(0, PartialShape::Of({c.handle(0)->shape.rank()}));
  c.set_output_as_shape(0, c.handle(0)->shape);
  return absl::OkStatus();
}

// The shape of the elements of a list, as an op reads it.
Output ElementShapeOf(const GradContext& c, Output list) {
  return c.b().Op("TensorListElementShape", {list}, {{"shape_type", DType::kInt32}});
}

// The shape of `x` without its first dimension.
Output RowShape(const GradContext& c, Output x) {
  return c.b().Op("Slice", {c.b().Shape(x), c.b().Vector<int32_t>({1}), c.b().Vector<int32_t>({-1})});
}

Output LengthOf(const GradContext& c, Output list) { return c.b().Op("TensorListLength", {list}); }

Output EmptyLike(const GradContext& c, Output list, DType dtype) {
  return c.b().Op("EmptyTensorList", {ElementShapeOf(c, list), c.b().Scalar<int32_t>(-1)}, {{"element_dtype", dtype}});
}

Status PushBackGrad(GradContext& c) {
  Node* pop =
      c.b().OpNode("TensorListPopBack", {c.dy(), c.b().Shape(c.x(1))}, {{"element_dtype", BaseType(c.x(1).dtype())}});
  if (!pop) return c.status();
  c.set_dx(0, pop->output(0));
  c.set_dx(1, pop->output(1));
  return c.status();
}

Status PopBackGrad(GradContext& c) {
  const DType dtype = BaseType(c.y(1).dtype());
  // Without a gradient of the rest, the list that the element is pushed on has zeros in its place.
  const Output list = c.has_dy(0) ? c.dy(0) : c.b().ZerosLike(c.y(0));
  c.set_dx(0, c.b().Op("TensorListPushBack", {list, c.dy(1)}, {{"element_dtype", dtype}}));
  return c.status();
}

Status StackGrad(GradContext& c) {
  c.set_dx(0, c.b().Op("TensorListFromTensor", {c.dy(), RowShape(c, c.dy())}));
  return c.status();
}

Status FromTensorGrad(GradContext& c) {
  const Output list = c.has_dy(0) ? c.dy() : EmptyLike(c, c.y(0), BaseType(c.x(0).dtype()));
  const PartialShape& s = c.x(0).shape();
  c.set_dx(0, c.b().Op("TensorListStack", {list, RowShape(c, c.x(0))},
                       {{"element_dtype", BaseType(c.x(0).dtype())}, {"num_elements", s.has_rank() ? s.dim(0) : -1}}));
  return c.status();
}

Status GetItemGrad(GradContext& c) {
  const Output zeros = c.b().Op("TensorListReserve", {ElementShapeOf(c, c.x(0)), LengthOf(c, c.x(0))},
                                {{"element_dtype", BaseType(c.y(0).dtype())}});
  c.set_dx(0, c.b().Op("TensorListSetItem", {zeros, c.x(1), c.dy()}));
  return c.status();
}

Status SetItemGrad(GradContext& c) {
  const Output item = c.x(2);
  c.set_dx(0, c.b().Op("TensorListSetItem", {c.dy(), c.x(1), c.b().ZerosLike(item)}));
  c.set_dx(2, c.b().Op("TensorListGetItem", {c.dy(), c.x(1), c.b().Shape(item)},
                       {{"element_dtype", BaseType(item.dtype())}}));
  return c.status();
}

Status ResizeGrad(GradContext& c) {
  c.set_dx(0, c.b().Op("TensorListResize", {c.dy(), LengthOf(c, c.x(0))}));
  return c.status();
}

Status GatherGrad(GradContext& c) {
  c.set_dx(0, c.b().Op("TensorListScatterV2", {c.dy(), c.x(1), RowShape(c, c.dy()), LengthOf(c, c.x(0))}));
  return c.status();
}

// The rows of a gradient list that a tensor input was spread over.
Output GatheredRows(const GradContext& c, Output list, Output indices, Output tensor) {
  return c.b().Op(
      "TensorListGather", {list, indices, RowShape(c, tensor)}, {{"element_dtype", BaseType(tensor.dtype())}});
}

Status ScatterGrad(GradContext& c) {
  c.set_dx(0, GatheredRows(c, c.dy(), c.x(1), c.x(0)));
  return c.status();
}

Status ScatterIntoGrad(GradContext& c) {
  c.set_dx(1, GatheredRows(c, c.dy(), c.x(2), c.x(1)));
  c.set_dx(0, c.b().Op("TensorListScatterIntoExistingList", {c.dy(), c.b().ZerosLike(c.x(1)), c.x(2)}));
  return c.status();
}

Status ConcatGrad(GradContext& c) {
  if (!c.has_dy(0)) return absl::OkStatus();
  c.set_dx(0, c.b().Op("TensorListSplit", {c.dy(), ElementShapeOf(c, c.x(0)), c.y(1)}));
  return c.status();
}

Status SplitGrad(GradContext& c) {
  const Output shape = c.b().Op(
      "ConcatV2", {std::vector<Output>{c.b().Vector<int32_t>({-1}), RowShape(c, c.x(0))}, c.b().Scalar<int32_t>(0)});
  c.set_dx(0, c.b().Op("TensorListConcatV2", {c.dy(), shape, c.x(2)}, {{"element_dtype", BaseType(c.x(0).dtype())}}));
  return c.status();
}

void AddElementOps(OpRegistry& r) {
  r.Add("TensorListPushBack(input_handle:var, tensor:element_dtype) -> (output_handle:var) | element_dtype:type")
      .Doc("The list with `tensor` after its last element.")
      .Shape(SameListShape)
      .Gradient(PushBackGrad)
      .NoExample(kHandle);
  r.Add(
       "TensorListPopBack(input_handle:var, element_shape:i32) -> (output_handle:var, tensor:element_dtype) | "
       "element_dtype:type")
      .Doc("The list without its last element, and that element. An empty list is an error.")
      .Shape(PopBackShape)
      .Gradient(PopBackGrad)
      .NoExample(kHandle);
  r.Add(
       "TensorListGetItem(input_handle:var, index:i32, element_shape:i32) -> (item:element_dtype) | element_dtype:type")
      .Doc(
          "The element at `index`. One that was never set reads as zeros of the shape that the list and "
          "`element_shape` say together.")
      .Shape(GetItemShape)
      .Gradient(GetItemGrad)
      .NoExample(kHandle);
  r.Add(
       "TensorListSetItem(input_handle:var, index:i32, item:element_dtype) -> (output_handle:var) | element_dtype:type")
      .Doc("The list with `item` in place of the element at `index`.")
      .Shape(SameListShape)
      .Gradient(SetItemGrad)
      .NoExample(kHandle);
}

void AddListOps(OpRegistry& r) {
  r.Add(
       "EmptyTensorList(element_shape:shape_type, max_num_elements:i32) -> (handle:var) | element_dtype:type; "
       "shape_type in IDX")
      .Doc(
          "A list without elements, for tensors of one dtype whose shapes all agree with `element_shape` (-1: "
          "unknown). It takes at most `max_num_elements` of them unless that is -1.")
      .Shape(EmptyShape)
      .NotDifferentiable(kNotDiff)
      .NoExample("its result is a variant");
  r.Add(
       "TensorListReserve(element_shape:shape_type, num_elements:i32) -> (handle:var) | element_dtype:type; "
       "shape_type in IDX")
      .Doc("A list of `num_elements` elements that are not set yet.")
      .Shape(EmptyShape)
      .NotDifferentiable(kNotDiff)
      .NoExample("its result is a variant");
  r.Add("TensorListLength(input_handle:var) -> (length:i32)")
      .Doc("The number of elements of a list.")
      .Shape(ScalarShape)
      .NotDifferentiable(kNotDiff)
      .NoExample(kHandle);
  r.Add("TensorListElementShape(input_handle:var) -> (element_shape:shape_type) | shape_type in IDX")
      .Doc(
          "The shape of all elements as far as the list fixes it, with -1 for an unknown dimension; a scalar -1 when "
          "the rank is unknown.")
      .Shape(ElementShapeShape)
      .NotDifferentiable(kNotDiff)
      .NoExample(kHandle);
  r.Add("TensorListResize(input_handle:var, size:i32) -> (output_handle:var) | S")
      .Doc("The first `size` elements of a list; elements that are not set follow where it is shorter.")
      .Shape(SameListShape)
      .Gradient(ResizeGrad)
      .NoExample(kHandle);
  r.Add("TensorListConcatLists(input_a:var, input_b:var) -> (output:var) | element_dtype:type")
      .Doc("For each pair of lists, one with the elements of the first and then those of the second.")
      .Shape(ConcatListsShape)
      .NotDifferentiable("the lists cannot be told apart in the result")
      .NoExample(kHandle);
  r.Add("TensorListPushBackBatch(input_handles:var, tensor:element_dtype) -> (output_handles:var) | element_dtype:type")
      .Doc("A tensor of lists, each with its row of `tensor` after its last element.")
      .Shape(SameListShape)
      .NotDifferentiable("gradients of batches of lists are not defined")
      .NoExample(kHandle);
}

void AddTensorOps(OpRegistry& r) {
  r.Add(
       "TensorListFromTensor(tensor:element_dtype, element_shape:shape_type) -> (output_handle:var) | "
       "element_dtype:type; shape_type in IDX")
      .Doc("The rows of a tensor as a list.")
      .Shape(FromTensorShape)
      .Gradient(FromTensorGrad)
      .NoExample("its result is a variant");
  r.Add(
       "TensorListStack(input_handle:var, element_shape:i32) -> (tensor:element_dtype) | element_dtype:type; "
       "num_elements:int=-1")
      .Doc(
          "All elements of a list, of one shape, along a new first dimension. With num_elements the list must have so "
          "many.")
      .Shape(StackShape)
      .Gradient(StackGrad)
      .NoExample(kHandle);
  r.Add(
       "TensorListGather(input_handle:var, indices:i32, element_shape:i32) -> (values:element_dtype) | "
       "element_dtype:type")
      .Doc("The elements at `indices`, along a new first dimension.")
      .Shape(GatherShape)
      .Gradient(GatherGrad)
      .NoExample(kHandle);
  r.Add(
       "TensorListScatter(tensor:element_dtype, indices:i32, element_shape:shape_type) -> (output_handle:var) | "
       "element_dtype:type; shape_type in IDX")
      .Doc("A list whose element at indices[i] is row i of the tensor; it is as long as the largest index needs.")
      .Shape(ScatterShape)
      .Gradient(ScatterGrad)
      .NoExample("its result is a variant");
  r.Add(
       "TensorListScatterV2(tensor:element_dtype, indices:i32, element_shape:shape_type, num_elements:i32) -> "
       "(output_handle:var) | element_dtype:type; shape_type in IDX")
      .Doc(
          "A list of `num_elements` (-1: as many as the largest index needs) whose element at indices[i] is row i of "
          "the tensor.")
      .Shape(ScatterShape)
      .Gradient(ScatterGrad)
      .NoExample("its result is a variant");
  r.Add(
       "TensorListScatterIntoExistingList(input_handle:var, tensor:element_dtype, indices:i32) -> (output_handle:var) "
       "| element_dtype:type")
      .Doc(
          "The list with row i of the tensor as its element at indices[i]; it grows where an index lies beyond its "
          "end.")
      .Shape(SameListShape)
      .Gradient(ScatterIntoGrad)
      .NoExample(kHandle);
  r.Add(
       "TensorListConcat(input_handle:var) -> (tensor:element_dtype, lengths:i64) | element_dtype:type; "
       "element_shape:shape=?")
      .Doc("All elements joined along their first dimension, in which they may differ, and their sizes in it.")
      .Shape(ConcatShape)
      .Gradient(ConcatGrad)
      .NoExample(kHandle);
  r.Add(
       "TensorListConcatV2(input_handle:var, element_shape:shape_type, leading_dims:i64) -> (tensor:element_dtype, "
       "lengths:i64) | element_dtype:type; shape_type in IDX")
      .Doc(
          "All elements joined along their first dimension, and their sizes in it. An element i that was never set is "
          "zeros with leading_dims[i] rows.")
      .Shape(ConcatShape)
      .Gradient(ConcatGrad)
      .NoExample(kHandle);
  r.Add(
       "TensorListSplit(tensor:element_dtype, element_shape:shape_type, lengths:i64) -> (output_handle:var) | "
       "element_dtype:type; shape_type in IDX")
      .Doc("A list of the pieces of a tensor that have these lengths along its first dimension.")
      .Shape(SplitShape)
      .Gradient(SplitGrad)
      .NoExample("its result is a variant");
}

}  // namespace

void RegisterTensorListOps(OpRegistry& r) {
  AddListOps(r);
  AddElementOps(r);
  AddTensorOps(r);
}

}  // namespace millrace
