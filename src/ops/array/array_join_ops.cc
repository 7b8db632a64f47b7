// SPDX-License-Identifier: Apache-2.0
// Ops: several tensors into one, and one into several, along an axis.
#include "base/checked.h"
#include "ops/array/array_ops.h"

namespace millrace {
namespace {

// What inputs [begin, end) have in common apart from dimension `axis` (negative: counted from the end; nullopt: any).
// Their sizes along it are added up.
StatusOr<PartialShape> JoinedShape(ShapeContext& c, int begin, int end, std::optional<int64_t> axis) {
  int rank = -1;
  for (int i = begin; i < end; ++i) {
    if (!c.input(i).has_rank()) continue;
    if (rank >= 0 && c.input(i).rank() != rank) {
      return InvalidArgument(
          "concat needs inputs of one rank, got ", c.input(begin).ToString(), " and ", c.input(i).ToString());
    }
    rank = c.input(i).rank();
  }
  if (rank < 0) return PartialShape();
  if (rank == 0) return InvalidArgument("Can't concatenate scalars (use tf.stack instead)");
  if (!axis) return PartialShape::UnknownOfRank(rank);
  MR_ASSIGN_OR_RETURN(int at, c.Axis(*axis, rank));
  std::vector<int64_t> dims(static_cast<size_t>(rank), -1);
  int64_t total = 0;
  for (int i = begin; i < end; ++i) {
    for (int d = 0; d < rank; ++d) {
      const int64_t size = c.input(i).has_rank() ? c.input(i).dim(d) : -1;
      if (d == at) {
        if (size < 0 || total < 0) {
          total = -1;
        } else if (!CheckedAdd(total, size, &total)) {
          return InvalidArgument("concatenated dimension ", d, " overflows");
        }
      } else {
        MR_ASSIGN_OR_RETURN(dims[static_cast<size_t>(d)],
                            c.MergeDim(dims[static_cast<size_t>(d)], size, "dimensions of concat inputs"));
      }
    }
  }
  dims[static_cast<size_t>(at)] = total;
  return PartialShape::Make(dims);
}

// A concatenation of integer vectors denotes the concatenation of the shapes that they denote.
void ConcatAsShape(ShapeContext& c, int begin, int end) {
  const DType t = BaseType(c.output_dtype(0));
  if (t != DType::kInt32 && t != DType::kInt64) return;
  std::vector<int64_t> dims;
  for (int i = begin; i < end; ++i) {
    if (c.input(i).rank() != 1) return;
    auto part = c.InputAsShape(i);
    if (!part.ok() || !part->has_rank()) return;
    dims.insert(dims.end(), part->dims().begin(), part->dims().end());
  }
  if (auto all = PartialShape::Make(dims); all.ok()) c.set_output_as_shape(0, *std::move(all));
}

Status ConcatShapeOf(ShapeContext& c, ArgRange values, int axis_input) {
  MR_RETURN_IF_ERROR(c.RequireScalar(axis_input));
  MR_ASSIGN_OR_RETURN(auto axis, c.ConstantInt(axis_input));
  MR_ASSIGN_OR_RETURN(PartialShape out, JoinedShape(c, values.begin, values.end, axis));
  if (axis && out.rank() == 1) ConcatAsShape(c, values.begin, values.end);
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}
Status ConcatShape(ShapeContext& c) { return ConcatShapeOf(c, c.input_arg("values"), 0); }
Status ConcatV2Shape(ShapeContext& c) { return ConcatShapeOf(c, c.input_arg("values"), c.num_inputs() - 1); }

Status ConcatOffsetShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.RequireScalar(0));
  // Shapes of different lengths are an error of the step, as in TensorFlow.
  for (int i = 1; i < c.num_inputs(); ++i) c.set_output(i - 1, c.input(i));
  return absl::OkStatus();
}

// A packed list of integer scalars denotes a shape, of which only some dimensions may be known.
void PackAsShape(ShapeContext& c) {
  const DType t = BaseType(c.output_dtype(0));
  if ((t != DType::kInt32 && t != DType::kInt64) || c.num_inputs() > kMaxRank) return;
  std::vector<int64_t> dims;
  for (int i = 0; i < c.num_inputs(); ++i) {
    if (c.input(i).rank() != 0) return;
    int64_t dim = -1;
    if (c.constant(i) != nullptr) {
      auto v = c.ConstantInt(i);
      if (!v.ok() || !*v || **v < -1) return;
      dim = **v;
    } else if (auto known = c.InputAsShape(i); known.ok() && known->rank() == 1) {
      dim = known->dim(0);  // a scalar that was cut out of a shape
    }
    dims.push_back(dim);
  }
  if (auto all = PartialShape::Make(dims); all.ok()) c.set_output_as_shape(0, *std::move(all));
}

Status ParallelConcatShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(PartialShape shape, c.Attr<PartialShape>("shape"));
  if (!shape.IsFullyDefined() || shape.rank() < 1) {
    return InvalidArgument("shape must be fully defined and no scalar's, got ", shape.ToString());
  }
  MR_RETURN_IF_ERROR(c.MergeDim(shape.dim(0), c.num_inputs(), "the number of values").status());
  std::vector<int64_t> row = shape.dims();
  row[0] = 1;
  for (int i = 0; i < c.num_inputs(); ++i) {
    MR_RETURN_IF_ERROR(c.Merge(c.input(i), PartialShape::Of(row), "each value's shape").status());
  }
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

Status PackShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(int64_t axis, c.Attr<int64_t>("axis"));
  PartialShape all = c.input(0);
  for (int i = 1; i < c.num_inputs(); ++i) {
    MR_ASSIGN_OR_RETURN(all, c.Merge(all, c.input(i), "inputs of Pack"));
  }
  if (!all.has_rank()) return absl::OkStatus();
  MR_ASSIGN_OR_RETURN(int at, c.Axis(axis, all.rank() + 1));
  std::vector<int64_t> dims = all.dims();
  dims.insert(dims.begin() + at, c.num_inputs());
  MR_ASSIGN_OR_RETURN(PartialShape out, PartialShape::Make(dims));
  c.set_output(0, std::move(out));
  if (all.rank() == 0) PackAsShape(c);
  return absl::OkStatus();
}

Status UnpackShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(int64_t axis, c.Attr<int64_t>("axis"));
  const PartialShape& in = c.input(0);
  if (!in.has_rank()) return absl::OkStatus();
  if (in.rank() == 0) return InvalidArgument("a scalar cannot be unpacked");
  MR_ASSIGN_OR_RETURN(int at, c.Axis(axis, in.rank()));
  if (in.has_dim(at) && in.dim(at) != c.num_outputs()) {
    return InvalidArgument("dimension ", at, " of ", in.ToString(), " must be num = ", c.num_outputs());
  }
  std::vector<int64_t> dims = in.dims();
  dims.erase(dims.begin() + at);
  const PartialShape out = PartialShape::Of(std::move(dims));
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, out);
  return absl::OkStatus();
}

Status SplitShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.RequireScalar(0));
  MR_ASSIGN_OR_RETURN(auto axis, c.ConstantInt(0));
  const PartialShape& in = c.input(1);
  if (!in.has_rank()) return absl::OkStatus();
  if (in.rank() == 0) return InvalidArgument("Can't split scalars");
  PartialShape out = PartialShape::UnknownOfRank(in.rank());
  if (axis) {
    MR_ASSIGN_OR_RETURN(int at, c.Axis(*axis, in.rank()));
    std::vector<int64_t> dims = in.dims();
    int64_t& size = dims[static_cast<size_t>(at)];
    if (size >= 0) {
      if (c.num_outputs() == 0 || size % c.num_outputs() != 0) {
        return InvalidArgument("Number of ways to split should evenly divide the split dimension, but dimension ", at,
                               " of size ", size, " does not divide into ", c.num_outputs(), " parts");
      }
      size /= c.num_outputs();
    }
    out = PartialShape::Of(std::move(dims));
  }
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, out);
  return absl::OkStatus();
}

// The sizes with a -1 among them resolved against the dimension, where that is known.
Status ResolveSizes(std::vector<int64_t>* sizes, int64_t dim) {
  int64_t sum = 0;
  int64_t* open = nullptr;
  for (int64_t& s : *sizes) {
    if (s == -1) {
      if (open != nullptr) return InvalidArgument("There can only be one -1 in the input.");
      open = &s;
    } else if (s < 0 || !CheckedAdd(sum, s, &sum)) {
      return InvalidArgument("size_splits has the bad size ", s);
    }
  }
  if (dim < 0) return absl::OkStatus();
  if (open == nullptr ? sum != dim : sum > dim) {
    return InvalidArgument("size_splits sum to ", sum, " but the dimension has size ", dim);
  }
  if (open != nullptr) *open = dim - sum;
  return absl::OkStatus();
}

Status SplitVShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(PartialShape count, c.WithRank(1, 1));
  MR_RETURN_IF_ERROR(c.MergeDim(count.dim(0), c.num_outputs(), "num_split and size_splits").status());
  MR_RETURN_IF_ERROR(c.RequireScalar(2));
  MR_ASSIGN_OR_RETURN(auto axis, c.ConstantInt(2));
  MR_ASSIGN_OR_RETURN(auto sizes, c.ConstantInts(1));
  const PartialShape& in = c.input(0);
  if (!in.has_rank()) return absl::OkStatus();
  if (in.rank() == 0) return InvalidArgument("Can't split scalars");
  int at = -1;
  if (axis) {
    MR_ASSIGN_OR_RETURN(at, c.Axis(*axis, in.rank()));
    if (sizes) MR_RETURN_IF_ERROR(ResolveSizes(&*sizes, in.dim(at)));
  }
  for (int i = 0; i < c.num_outputs(); ++i) {
    std::vector<int64_t> dims = axis ? in.dims() : std::vector<int64_t>(static_cast<size_t>(in.rank()), -1);
    if (axis) {
      int64_t size = sizes ? (*sizes)[static_cast<size_t>(i)] : -1;
      if (!sizes && c.num_outputs() == 1) size = in.dim(at);
      dims[static_cast<size_t>(at)] = size;
    }
    MR_ASSIGN_OR_RETURN(PartialShape out, PartialShape::Make(dims));
    c.set_output(i, std::move(out));
  }
  return absl::OkStatus();
}

// Gradients.

std::vector<Output> Inputs(const GradContext& c, ArgRange r) {
  std::vector<Output> all;
  for (int i = r.begin; i < r.end; ++i) all.push_back(c.x(i));
  return all;
}
std::vector<Output> OutputGradients(const GradContext& c) {
  std::vector<Output> all;
  for (int i = 0; i < c.num_outputs(); ++i) all.push_back(c.dy(i));
  return all;
}

// The size of each value along `axis`, when all are known.
std::optional<std::vector<int64_t>> KnownSizes(const std::vector<Output>& values, int64_t axis) {
  std::vector<int64_t> sizes;
  for (const Output& v : values) {
    int64_t at;
    if (!v.shape().has_rank() || !NormalizeIndex(axis, v.shape().rank(), &at)) return std::nullopt;
    sizes.push_back(v.shape().dim(static_cast<int>(at)));
    if (sizes.back() < 0) return std::nullopt;
  }
  return sizes;
}

// Rows [begin, end) of a sparse gradient whose rows are split among the inputs.
IndexedSlices RowsBetween(const GraphBuilder& b, const IndexedSlices& g, Output begin, Output end, Output shape) {
  const Output inside = b.Op("LogicalAnd", {b.Op("GreaterEqual", {g.indices, begin}), b.Op("Less", {g.indices, end})});
  const Output chosen = b.Reshape(b.Op("Where", {inside}), IntVector(b, DType::kInt32, {-1}));
  const Output zero = IntScalar(b, DType::kInt32, 0);
  return {b.Op("GatherV2", {g.values, chosen, zero}), b.Sub(b.Op("GatherV2", {g.indices, chosen, zero}), begin), shape};
}

// The axis must be known: rows go to the inputs they came from; other axes split every row.
Status SparseConcatGrad(GradContext& c, const IndexedSlices& g, ArgRange range, int64_t axis) {
  const GraphBuilder& b = c.b();
  const std::vector<Output> values = Inputs(c, range);
  const DType index = BaseType(g.indices.dtype());
  if (axis != 0) {
    std::vector<Output> sizes;
    for (const Output& v : values) {
      const Output at = IntVector(b, DType::kInt32, {axis});
      sizes.push_back(b.Op("Slice", {b.Shape(v), at, IntVector(b, DType::kInt32, {1})}));
    }
    Node* split = b.OpNode(
        "SplitV",
        {g.values, b.Op("ConcatV2", {sizes, IntScalar(b, DType::kInt32, 0)}), IntScalar(b, DType::kInt32, axis)},
        {{"num_split", static_cast<int64_t>(values.size())}});
    if (split == nullptr) return c.status();
    for (size_t i = 0; i < values.size(); ++i) {
      c.set_dx(range.begin + static_cast<int>(i),
               IndexedSlices{split->output(static_cast<int>(i)), g.indices, ShapeOf(b, values[i])});
    }
    return c.status();
  }
  Output begin = IntScalar(b, index, 0);
  for (size_t i = 0; i < values.size(); ++i) {
    const Output shape = ShapeOf(b, values[i]);
    const Output rows = b.Op("Slice", {shape, IntVector(b, DType::kInt32, {0}), IntVector(b, DType::kInt32, {1})});
    const Output end = b.Add(begin, b.Cast(b.Reshape(rows, IntVector(b, DType::kInt32, {})), index));
    c.set_dx(range.begin + static_cast<int>(i), RowsBetween(b, g, begin, end, shape));
    begin = end;
  }
  return c.status();
}

Status ConcatGradOf(GradContext& c, ArgRange range, int axis_input) {
  const GraphBuilder& b = c.b();
  const std::vector<Output> values = Inputs(c, range);
  const Output axis = c.x(axis_input);
  const auto known_axis = KnownInts(b, axis);
  if (known_axis && known_axis->size() == 1) {
    int64_t at = (*known_axis)[0];
    const int rank = values[0].shape().rank();
    if (at < 0 && rank > 0) at += rank;
    if (c.raw_dy(0).sparse && at >= 0) return SparseConcatGrad(c, *c.raw_dy(0).sparse, range, at);
    if (auto sizes = KnownSizes(values, at)) {
      Node* split = b.OpNode("SplitV", {c.dy(), IntVector(b, DType::kInt64, *sizes), IntScalar(b, DType::kInt32, at)},
                             {{"num_split", static_cast<int64_t>(values.size())}});
      for (int i = range.begin; split != nullptr && i < range.end; ++i) c.set_dx(i, split->output(i - range.begin));
      return c.status();
    }
  }
  const Output g = c.dy();
  Node* shapes = b.OpNode("ShapeN", {values}, {{"out_type", DType::kInt32}});
  if (shapes == nullptr) return c.status();
  std::vector<Output> shape_list;
  for (int i = 0; i < shapes->num_outputs(); ++i) shape_list.push_back(shapes->output(i));
  Node* offsets = b.OpNode("ConcatOffset", {b.Cast(axis, DType::kInt32), shape_list});
  for (int i = range.begin; offsets != nullptr && i < range.end; ++i) {
    const int k = i - range.begin;
    c.set_dx(i, b.Op("Slice", {g, offsets->output(k), shapes->output(k)}));
  }
  return c.status();
}
Status ConcatGrad(GradContext& c) { return ConcatGradOf(c, c.node()->input_arg("values"), 0); }
Status ConcatV2Grad(GradContext& c) { return ConcatGradOf(c, c.node()->input_arg("values"), c.num_inputs() - 1); }

Output Joined(const GradContext& c, Output axis) {
  if (c.num_outputs() == 1) return c.dy(0);
  return c.b().Op("ConcatV2", {OutputGradients(c), axis});
}
Status SplitGrad(GradContext& c) {
  c.set_dx(1, Joined(c, c.x(0)));
  return c.status();
}
Status SplitVGrad(GradContext& c) {
  c.set_dx(0, Joined(c, c.x(2)));
  return c.status();
}

Status PackGrad(GradContext& c) {
  MR_ASSIGN_OR_RETURN(int64_t axis, c.Attr<int64_t>("axis"));
  Node* parts = c.b().OpNode("Unpack", {c.dy()}, {{"num", static_cast<int64_t>(c.num_inputs())}, {"axis", axis}});
  for (int i = 0; parts != nullptr && i < c.num_inputs(); ++i) c.set_dx(i, parts->output(i));
  return c.status();
}
Status UnpackGrad(GradContext& c) {
  MR_ASSIGN_OR_RETURN(int64_t axis, c.Attr<int64_t>("axis"));
  if (c.num_outputs() > 0) c.set_dx(0, c.b().Op("Pack", {OutputGradients(c)}, {{"axis", axis}}));
  return c.status();
}

}  // namespace

void RegisterArrayJoinOps(OpRegistry& r) {
  r.Add("Concat(concat_dim:i32, values:N*T) -> (output:T) | N:int>=2; T:type")
      .Doc("Joins tensors along an existing dimension. All other dimensions must agree.")
      .Shape(ConcatShape)
      .Gradient(ConcatGrad)
      .Example("i32[]{1}, f32[2,3]~, f32[2,1]~ | N=2");
  r.Add("ConcatV2(values:N*T, axis:Tidx) -> (output:T) | N:int>=2; T:type; Tidx in IDX=i32")
      .Doc("Joins tensors along dimension `axis`, which may be negative. All other dimensions must agree.")
      .Shape(ConcatV2Shape)
      .Gradient(ConcatV2Grad)
      .Example("f32[2,3]~, f32[2,1]~, i32[]{-1} | N=2");
  r.Add("ConcatOffset(concat_dim:i32, shape:N*shape_type) -> (offset:N*shape_type) | N:int>=2; shape_type in IDX=i32")
      .Doc("Where each of several tensors of the given shapes begins within their concatenation.")
      .Shape(ConcatOffsetShape)
      .NotDifferentiable("offsets are integers")
      .Example("i32[]{1}, i32[2]{2 3}, i32[2]{2 1} | N=2");
  r.Add("ParallelConcat(values:N*T) -> (output:T) | N:int>=1; T:type; shape:shape")
      .Doc("The N values, each of one row, one after another; `shape` is the whole's.")
      .Shape(ParallelConcatShape)
      .NoGradient("TensorFlow defines none; use ConcatV2")
      .Example("f32[1,3]~, f32[1,3]~ | N=2; shape=[2,3]");
  r.Add("Pack(values:N*T) -> (output:T) | N:int>=1; T:type; axis:int=0")
      .Doc("Stacks tensors of one shape along a new dimension `axis`.")
      .Shape(PackShape)
      .Gradient(PackGrad)
      .Example("f32[2,3]~, f32[2,3]~ | N=2; axis=1");
  r.Add("Unpack(value:T) -> (output:num*T) | num:int>=0; T:type; axis:int=0")
      .Doc("The `num` slices of a tensor along `axis`, without that dimension.")
      .Shape(UnpackShape)
      .Gradient(UnpackGrad)
      .Example("f32[2,3]~ | num=2");
  r.Add("Split(split_dim:i32, value:T) -> (output:num_split*T) | num_split:int>=1; T:type")
      .Doc("Cuts a tensor into `num_split` equal parts along a dimension.")
      .Shape(SplitShape)
      .Gradient(SplitGrad)
      .Example("i32[]{1}, f32[2,4]~ | num_split=2");
  r.Add(
       "SplitV(value:T, size_splits:Tlen, split_dim:i32) -> (output:num_split*T) | num_split:int>=1; T:type; "
       "Tlen in IDX|i8=i64")
      .Doc("Cuts a tensor into parts of the given sizes along a dimension; one size may be -1 and is what is left.")
      .Shape(SplitVShape)
      .Gradient(SplitVGrad)
      .Example("f32[2,4]~, i32[2]{1 -1}, i32[]{1} | num_split=2");
}

}  // namespace millrace
