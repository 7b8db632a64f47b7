// SPDX-License-Identifier: Apache-2.0
// Ops: gathering by index, and scattering into fresh tensors.
#include <limits>

#include "ops/array/array_ops.h"
#include "ops/index/index_ops.h"

namespace millrace {
namespace {

Status GatherShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(PartialShape out, GatherShapeOf(c.input(0), c.input(1), 0, 0));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

Status GatherV2Shape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.RequireScalar(2));
  MR_ASSIGN_OR_RETURN(std::optional<int64_t> axis, c.ConstantInt(2));
  MR_ASSIGN_OR_RETURN(int64_t batch_dims, c.Attr<int64_t>("batch_dims"));
  constexpr int64_t kMost = std::numeric_limits<int>::max() - 1;
  if (axis && *axis >= -kMost && *axis < kMost) {
    MR_RETURN_IF_ERROR(c.WithRankAtLeast(0, static_cast<int>(*axis < 0 ? -*axis : *axis + 1)).status());
  }
  MR_ASSIGN_OR_RETURN(PartialShape out, GatherShapeOf(c.input(0), c.input(1), axis, batch_dims));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

Status GatherTreeShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(PartialShape steps, c.WithRank(0, 3));
  MR_ASSIGN_OR_RETURN(const PartialShape parents, c.WithRank(1, 3));
  MR_ASSIGN_OR_RETURN(steps, c.Merge(steps, parents, "step_ids and parent_ids"));
  MR_ASSIGN_OR_RETURN(const PartialShape lengths, c.WithRank(2, 1));
  MR_RETURN_IF_ERROR(c.MergeDim(steps.dim(1), lengths.dim(0), "a length for each example").status());
  MR_RETURN_IF_ERROR(c.RequireScalar(3));
  c.set_output(0, std::move(steps));
  return absl::OkStatus();
}

Status GatherNdShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(PartialShape out, GatherNdShapeOf(c.input(0), c.input(1)));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

// `target` takes updates (input u) at indices (input i).
Status CheckUpdates(ShapeContext& c, const PartialShape& target, int i, int u) {
  if (c.input(i).has_rank() && c.input(i).rank() < 1) {
    return InvalidArgument("indices must have at least one dimension");
  }
  return CheckSliceUpdates(target, c.input(i), c.input(u));
}

Status ScatterNdShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.WithRank(2, 1).status());
  MR_ASSIGN_OR_RETURN(PartialShape out, c.InputAsShape(2));
  MR_RETURN_IF_ERROR(CheckUpdates(c, out, 0, 1));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

Status TensorScatterShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.WithRankAtLeast(0, 1).status());
  MR_RETURN_IF_ERROR(CheckUpdates(c, c.input(0), 1, 2));
  c.set_output(0, c.input(0));
  return absl::OkStatus();
}

// The shape, or where it is not known what finds it where the table is: only the shape travels.
Output ShapeOfTable(const GraphBuilder& b, Output table, DType dtype = DType::kInt32) {
  return ShapeOf(b.ColocateWith(table.node), table, dtype);
}

Status GatherGrad(GradContext& g) {
  const GraphBuilder& b = g.b();
  g.set_dx(0, RowSlices(b, g.dy(), g.x(1), ShapeOfTable(b, g.x(0))));
  return g.status();
}

// Product of the elements of an integer vector.
Output ProductOf(const GraphBuilder& b, Output v) {
  return b.Op("Prod", {v, b.Vector<int32_t>({0})}, {{"keep_dims", false}});
}
Output Vec(const GraphBuilder& b, Output scalar) { return b.Reshape(scalar, b.Vector<int32_t>({1})); }
Output Join(const GraphBuilder& b, std::vector<Output> v) {
  return b.Op("ConcatV2", {std::move(v), b.Scalar<int32_t>(0)});
}

// params [B, O, L, I], indices [B, N], gradient [B, O, N, I], where each letter stands for a group of dimensions: the
// gradient is brought to [B*N, O*I], summed by the ids batch*L + index, and brought back.
Output DenseGatherGrad(const GraphBuilder& b, Output dy, Output params, Output indices, Output axis, Output batch) {
  const DType i64 = DType::kInt64;
  Output pshape = ShapeOfTable(b, params, i64);
  Output ishape = b.Shape(indices, i64);
  Output zero = b.Vector<int64_t>({0});
  Output axis1 = Vec(b, axis), batch1 = Vec(b, batch);
  auto slice = [&](Output v, Output begin, Output size) { return b.Op("Slice", {v, begin, size}); };
  Output rest = b.Vector<int64_t>({-1});
  Output nb = Vec(b, ProductOf(b, slice(pshape, zero, batch1)));
  Output no = Vec(b, ProductOf(b, slice(pshape, batch1, b.Sub(axis1, batch1))));
  Output nl = slice(pshape, axis1, b.Vector<int64_t>({1}));
  Output ni = Vec(b, ProductOf(b, slice(pshape, b.Add(axis1, b.Vector<int64_t>({1})), rest)));
  Output nn = Vec(b, ProductOf(b, slice(ishape, batch1, rest)));
  Output swap = b.Vector<int32_t>({0, 2, 1, 3});
  Output rows = b.Op("Transpose", {b.Reshape(dy, Join(b, {nb, no, nn, ni})), swap});
  rows = b.Reshape(rows, Join(b, {b.Mul(nb, nn), b.Mul(no, ni)}));
  Output ids = b.Reshape(b.Cast(indices, i64), Join(b, {nb, nn}));
  Output count = b.Reshape(nb, b.Const(Tensor::Vector<int32_t>({})));
  Output offsets = b.Op("Range", {b.Scalar<int64_t>(0), count, b.Scalar<int64_t>(1)});
  ids = b.Add(ids, b.Op("ExpandDims", {b.Mul(offsets, nl), b.Scalar<int32_t>(1)}));
  ids = b.Reshape(ids, rest);
  Output total = b.Reshape(b.Mul(nb, nl), b.Const(Tensor::Vector<int32_t>({})));
  Output sum = b.Op("UnsortedSegmentSum", {rows, ids, total});
  sum = b.Op("Transpose", {b.Reshape(sum, Join(b, {nb, nl, no, ni})), swap});
  return b.Reshape(sum, pshape);
}

Status GatherV2Grad(GradContext& g) {
  const GraphBuilder& b = g.b();
  MR_ASSIGN_OR_RETURN(int64_t batch_dims, g.Attr<int64_t>("batch_dims"));
  const Tensor* axis = b.graph().ConstantValue(g.x(2));
  if (axis && batch_dims == 0) {
    MR_ASSIGN_OR_RETURN(int64_t a, axis->IntScalar());
    if (a == 0 || (g.x(0).shape().has_rank() && a == -g.x(0).shape().rank())) {
      g.set_dx(0, RowSlices(b, g.dy(), g.x(1), ShapeOfTable(b, g.x(0))));
      return g.status();
    }
  }
  auto count_from_end = [&](Output v, Output of) {
    return b.Op("FloorMod", {v, b.Cast(b.Op("Rank", {of}), DType::kInt64)});
  };
  Output wide_axis = count_from_end(b.Cast(g.x(2), DType::kInt64), g.x(0));
  Output batch = b.Scalar<int64_t>(batch_dims);
  if (batch_dims < 0) batch = count_from_end(batch, g.x(1));
  g.set_dx(0, DenseGatherGrad(b, g.dy(), g.x(0), g.x(1), wide_axis, batch));
  return g.status();
}

Status GatherNdGrad(GradContext& g) {
  const GraphBuilder& b = g.b();
  Output shape = ShapeOf(b, g.x(0), g.x(1).dtype());
  const PartialShape& s = g.x(1).shape();
  if (s.rank() == 2 && s.dim(1) == 1) {
    Output ids = b.Op("Squeeze", {g.x(1)}, {{"squeeze_dims", std::vector<int64_t>{1}}});
    g.set_dx(0, IndexedSlices{g.dy(), ids, shape});
  } else if (s.has_rank() && s.rank() > 1) {
    g.set_dx(0, b.Op("ScatterNd", {g.x(1), g.dy(), shape}));
  } else {  // ScatterNd takes a vector for many indices of one axis, not for one index
    const Output first = b.Scalar<int32_t>(0);
    g.set_dx(0, b.Op("ScatterNd", {b.Op("ExpandDims", {g.x(1), first}), b.Op("ExpandDims", {g.dy(), first}), shape}));
  }
  return g.status();
}

Status ScatterNdGrad(GradContext& g) {
  g.set_dx(1, g.b().Op("GatherNd", {g.dy(), g.x(0)}));
  return g.status();
}

Status TensorScatterAddGrad(GradContext& g) {
  g.set_dx(0, g.b().Identity(g.dy()));
  g.set_dx(2, g.b().Op("GatherNd", {g.dy(), g.x(1)}));
  return g.status();
}
Status TensorScatterSubGrad(GradContext& g) {
  g.set_dx(0, g.b().Identity(g.dy()));
  g.set_dx(2, g.b().Neg(g.b().Op("GatherNd", {g.dy(), g.x(1)})));
  return g.status();
}
// Elements and updates that tie share the gradient.
Status TensorScatterExtremeGrad(GradContext& g) {
  const GraphBuilder& b = g.b();
  const DType dtype = g.dy().dtype();
  const Output indices = g.x(1), shape = b.Cast(b.Shape(g.x(0)), indices.dtype());
  const Output kept = b.Cast(b.Op("Equal", {g.x(0), g.y()}), dtype);
  const Output taken = b.Cast(b.Op("Equal", {g.x(2), b.Op("GatherNd", {g.y(), indices})}), dtype);
  const Output share = b.Div(g.dy(), b.Add(kept, b.Op("ScatterNd", {indices, taken, shape})));
  g.set_dx(0, b.Mul(share, kept));
  g.set_dx(2, b.Mul(b.Op("GatherNd", {share, indices}), taken));
  return g.status();
}
Status TensorScatterUpdateGrad(GradContext& g) {
  g.set_dx(0, g.b().Op("TensorScatterUpdate", {g.dy(), g.x(1), g.b().ZerosLike(g.x(2))}));
  g.set_dx(2, g.b().Op("GatherNd", {g.dy(), g.x(1)}));
  return g.status();
}

Status InplaceShape(ShapeContext& c) {
  const PartialShape &x = c.input(0), &v = c.input(2);
  MR_ASSIGN_OR_RETURN(const PartialShape rows, c.WithRank(1, 1));
  if (x.has_rank() && v.has_rank()) {
    if (x.rank() != v.rank()) return InvalidArgument("x ", x.ToString(), " and v ", v.ToString(), " differ in rank");
    for (int d = 1; d < x.rank(); ++d) MR_RETURN_IF_ERROR(c.MergeDim(x.dim(d), v.dim(d), "x and v").status());
    if (v.rank() > 0) MR_RETURN_IF_ERROR(c.MergeDim(rows.dim(0), v.dim(0), "i and v").status());
  }
  c.set_output(0, x);
  return absl::OkStatus();
}

void AddInplaceOps(OpRegistry& r) {
  const char* no_gradient = "TensorFlow defines none; use TensorScatterAdd and its like";
  const auto add = [&](absl::string_view name, absl::string_view doc) {
    r.Add(absl::StrCat(name, "(x:T, i:i32, v:T) -> (y:T) | T:type"))
        .Doc(absl::StrCat(doc, " Row numbers wrap round. `x` itself does not change."))
        .Shape(InplaceShape)
        .NoGradient(no_gradient)
        .Example("f32[3,2]~, i32[2]{0 2}, f32[2,2]~");
  };
  add("InplaceUpdate", "`x` with the rows that `i` names replaced by those of `v`.");
  add("InplaceAdd", "`x` with the rows of `v` added to those that `i` names.");
  add("InplaceSub", "`x` with the rows of `v` subtracted from those that `i` names.");
}

}  // namespace

void RegisterGatherOps(OpRegistry& registry) {
  AddInplaceOps(registry);
  registry
      .Add(
          "Gather(params:Tparams, indices:Tindices) -> (output:Tparams) | validate_indices:bool=true; Tparams:type; "
          "Tindices in IDX")
      .Doc(
          "Rows of `params`: output[i..., :] = params[indices[i...], :]. Every index must lie in [0, rows). The "
          "gradient stays sparse, so that training touches only the rows that were read.")
      .Shape(GatherShape)
      .Gradient(GatherGrad)
      .Example("f32[5,3]~, i32[2,2]{1 4 0 1}")
      .Example("f64[4]~, i64[]{2}");
  registry
      .Add(
          "GatherV2(params:Tparams, indices:Tindices, axis:Taxis) -> (output:Tparams) | batch_dims:int=0; "
          "Tparams:type; Tindices in IDX; Taxis in IDX")
      .Doc(
          "Slices of `params` along dimension `axis`, in the order of `indices`. The first `batch_dims` dimensions of "
          "both are walked together: each batch entry has its own indices.")
      .Shape(GatherV2Shape)
      .Gradient(GatherV2Grad)
      .Example("f32[5,3]~, i32[3]{1 4 1}, !i32[]{0}")
      .Example("f32[2,3,4]~, i64[2]{3 0}, !i32[]{-1}")
      .Example("f32[2,3,4]~, i32[2,2]{2 0 1 1}, !i32[]{1} | batch_dims=1");
  registry.Add("GatherNd(params:Tparams, indices:Tindices) -> (output:Tparams) | Tparams:type; Tindices in IDX")
      .Doc(
          "Elements or slices of `params`: the last dimension of `indices` holds coordinates into its leading "
          "dimensions.")
      .Shape(GatherNdShape)
      .Gradient(GatherNdGrad)
      .Example("f32[3,4]~, i32[2,2]{0 1 2 3}")
      .Example("f32[3,4]~, i64[2]{2 0}")
      .Example("f32[3,4]~, i64[2,1]{2 0}");
  registry.Add("ScatterNd(indices:Tindices, updates:T, shape:Tindices) -> (output:T) | T:type; Tindices in IDX")
      .Doc(
          "A tensor of the given shape, zero except at the coordinates in the last dimension of `indices`, where the "
          "updates are. Updates to the same place add up, in index order.")
      .Shape(ScatterNdShape)
      .Gradient(ScatterNdGrad)
      .Example("i32[3,1]{1 0 1}, f32[3,2]~, i32[2]{4 2}");
  registry.Add("GatherTree(step_ids:T, parent_ids:T, max_sequence_lengths:i32, end_token:T) -> (beams:T) | T in i32")
      .Doc(
          "The hypotheses of a beam search: step_ids [time, batch, beams] that end in each beam of the last step (of "
          "max_sequence_lengths [batch] steps), followed back by parent_ids. Behind their first end_token, and behind "
          "the last step, are end_tokens.")
      .Shape(GatherTreeShape)
      .NotDifferentiable("its values are indices")
      .Example("i32[3,1,2]{1 2 3 4 5 6}, i32[3,1,2]{0 0 1 0 1 1}, i32[1]{3}, i32[]{9}");
  registry.Add("TensorScatterAdd(tensor:T, indices:Tindices, updates:T) -> (output:T) | T:type; Tindices in IDX")
      .Doc("`tensor` with the updates added at the coordinates in the last dimension of `indices`.")
      .Shape(TensorScatterShape)
      .Gradient(TensorScatterAddGrad)
      .Example("f32[4,2]~, i32[3,1]{1 0 1}, f32[3,2]~");
  registry
      .Add(
          "ScatterNdNonAliasingAdd(input:T, indices:Tindices, updates:T) -> (output:T) | T in NUM|qi16|qu16|bool; "
          "Tindices in IDX")
      .Doc("TensorScatterAdd under its older name.")
      .Shape(TensorScatterShape)
      .Gradient(TensorScatterAddGrad)
      .Example("f32[4,2]~, i32[3,1]{1 0 1}, f32[3,2]~");
  registry.Add("TensorScatterSub(tensor:T, indices:Tindices, updates:T) -> (output:T) | T:type; Tindices in IDX")
      .Doc("`tensor` with the updates subtracted at the coordinates in the last dimension of `indices`.")
      .Shape(TensorScatterShape)
      .Gradient(TensorScatterSubGrad)
      .Example("f32[4,2]~, i32[2,2]{1 0 3 1}, f32[2]~");
  for (const auto& [name, which] : {std::pair{"Max", "larger"}, std::pair{"Min", "smaller"}}) {
    registry
        .Add(absl::StrCat(
            "TensorScatter", name, "(tensor:T, indices:Tindices, updates:T) -> (output:T) | T:type; Tindices in IDX"))
        .Doc(absl::StrCat("`tensor`, at the coordinates in the last dimension of `indices` the ", which,
                          " of its elements and the updates."))
        .Shape(TensorScatterShape)
        .Gradient(TensorScatterExtremeGrad)
        .Example("f32[4,2]~, i32[3,1]{1 0 1}, f32[3,2]~");
  }
  registry.Add("TensorScatterUpdate(tensor:T, indices:Tindices, updates:T) -> (output:T) | T:type; Tindices in IDX")
      .Doc(
          "`tensor` with the updates written at the coordinates in the last dimension of `indices`; of several updates "
          "to one place the last stays.")
      .Shape(TensorScatterShape)
      .Gradient(TensorScatterUpdateGrad)
      .Example("f32[4,2]~, i32[2,1]{3 0}, f32[2,2]~");
}

}  // namespace millrace
