// SPDX-License-Identifier: Apache-2.0
// Ops: moving blocks between space, batch and depth, and image patches.
#include <limits>

#include "base/checked.h"
#include "ops/index/index_ops.h"
#include "tensor/periodic.h"
#include "tensor/window.h"

namespace millrace {
namespace {

using Dims = std::vector<int64_t>;

// Checks one spatial dimension and gives its size after the move; -1 when unknown.
StatusOr<int64_t> SpaceToBatchDim(int64_t size, int64_t block, int64_t before, int64_t after) {
  if (block < 1) return InvalidArgument("block size must be at least 1, got ", block);
  if (before < 0 || after < 0) return InvalidArgument("paddings must not be negative, got ", before, ", ", after);
  if (size < 0) return -1;
  int64_t padded;
  if (!CheckedAdd(size, before, &padded) || !CheckedAdd(padded, after, &padded)) {
    return InvalidArgument("padded size of ", size, " does not fit in 64 bits");
  }
  if (padded % block != 0) return InvalidArgument("padded size ", padded, " is not divisible by block size ", block);
  return padded / block;
}

StatusOr<int64_t> BatchToSpaceDim(int64_t size, int64_t block, int64_t before, int64_t after) {
  if (block < 1) return InvalidArgument("block size must be at least 1, got ", block);
  if (before < 0 || after < 0) return InvalidArgument("crops must not be negative, got ", before, ", ", after);
  if (size < 0) return -1;
  int64_t full, cropped;
  if (!CheckedMul(size, block, &full)) return InvalidArgument(size, " blocks of ", block, " do not fit in 64 bits");
  if (!CheckedSub(full, before, &cropped) || !CheckedSub(cropped, after, &cropped) || cropped < 0) {
    return InvalidArgument("cannot crop ", before, " and ", after, " from size ", full);
  }
  return cropped;
}

// Spatial dimensions 1..m of input 0; `block` and `edges` (m pairs) may be unknown.
Status BlockShape(ShapeContext& c, const PartialShape& in, int m, const std::optional<Dims>& block,
                  const std::optional<Dims>& edges, bool to_batch) {
  Dims out = in.dims();
  if (!block) {
    out[0] = -1;
    for (int i = 0; i < m; ++i) out[static_cast<size_t>(i) + 1] = -1;
    c.set_output(0, PartialShape::Of(std::move(out)));
    return absl::OkStatus();
  }
  int64_t volume = 1;
  for (int i = 0; i < m; ++i) {
    const size_t k = static_cast<size_t>(i);
    const int64_t bs = (*block)[k];
    if (bs < 1) return InvalidArgument("block size must be at least 1, got ", bs);
    if (!CheckedMul(volume, bs, &volume)) return InvalidArgument("the block volume does not fit in 64 bits");
    if (!edges) {
      out[k + 1] = -1;
      continue;
    }
    const int64_t before = (*edges)[2 * k], after = (*edges)[2 * k + 1];
    MR_ASSIGN_OR_RETURN(out[k + 1], to_batch ? SpaceToBatchDim(in.dim(i + 1), bs, before, after)
                                             : BatchToSpaceDim(in.dim(i + 1), bs, before, after));
  }
  if (in.has_dim(0)) {
    if (to_batch) {
      if (!CheckedMul(in.dim(0), volume, &out[0])) return InvalidArgument("the batch does not fit in 64 bits");
    } else {
      if (in.dim(0) % volume != 0) {
        return InvalidArgument("batch ", in.dim(0), " is not divisible by the block volume ", volume);
      }
      out[0] = in.dim(0) / volume;
    }
  }
  MR_ASSIGN_OR_RETURN(PartialShape shape, PartialShape::Make(out));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

template <bool kToBatch>
Status SquareBlockShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(PartialShape in, c.WithRank(0, 4));
  MR_ASSIGN_OR_RETURN(PartialShape pairs, PartialShape::Make(Dims{2, 2}));
  MR_RETURN_IF_ERROR(c.Merge(c.input(1), pairs, kToBatch ? "the shape of paddings" : "the shape of crops").status());
  MR_ASSIGN_OR_RETURN(int64_t block, c.Attr<int64_t>("block_size"));
  MR_ASSIGN_OR_RETURN(std::optional<Dims> edges, c.ConstantInts(1));
  return BlockShape(c, in, 2, Dims{block, block}, edges, kToBatch);
}

template <bool kToBatch>
Status NdBlockShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(PartialShape block_shape, c.WithRank(1, 1));
  MR_ASSIGN_OR_RETURN(PartialShape edge_shape, c.WithRank(2, 2));
  MR_ASSIGN_OR_RETURN(PartialShape pairs,
                      c.Merge(edge_shape, PartialShape::Of({block_shape.dim(0), 2}), "the pairs per block dimension"));
  const int64_t m = pairs.dim(0);
  if (m < 0) return absl::OkStatus();
  if (m >= kMaxRank) return InvalidArgument("block_shape has ", m, " dimensions, which is too many");
  MR_ASSIGN_OR_RETURN(PartialShape in, c.WithRankAtLeast(0, static_cast<int>(m) + 1));
  if (!in.has_rank()) return absl::OkStatus();
  MR_ASSIGN_OR_RETURN(std::optional<Dims> block, c.ConstantInts(1));
  MR_ASSIGN_OR_RETURN(std::optional<Dims> edges, c.ConstantInts(2));
  return BlockShape(c, in, static_cast<int>(m), block, edges, kToBatch);
}

template <bool kToDepth>
Status DepthShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(std::string format, c.Attr<std::string>("data_format"));
  MR_ASSIGN_OR_RETURN(int64_t block, c.Attr<int64_t>("block_size"));
  if (format == "NCHW_VECT_C") return absl::OkStatus();
  MR_ASSIGN_OR_RETURN(PartialShape in, c.WithRank(0, 4));
  const bool nhwc = format == "NHWC";
  const size_t h = nhwc ? 1 : 2, depth = nhwc ? 3 : 1;
  Dims out = in.dims();
  int64_t area;
  if (!CheckedMul(block, block, &area)) return InvalidArgument("block_size ", block, " is too large");
  auto scale = [](int64_t d, int64_t by, bool up, int64_t* result) -> Status {
    *result = -1;
    if (d < 0) return absl::OkStatus();
    if (up)
      return CheckedMul(d, by, result) ? absl::OkStatus()
                                       : InvalidArgument("dimension ", d, " times ", by, " overflows");
    if (d % by != 0) return InvalidArgument("dimension ", d, " is not divisible by ", by);
    *result = d / by;
    return absl::OkStatus();
  };
  MR_RETURN_IF_ERROR(scale(out[h], block, !kToDepth, &out[h]));
  MR_RETURN_IF_ERROR(scale(out[h + 1], block, !kToDepth, &out[h + 1]));
  MR_RETURN_IF_ERROR(scale(out[depth], area, kToDepth, &out[depth]));
  c.set_output(0, PartialShape::Of(std::move(out)));
  return absl::OkStatus();
}

Status PatchesShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(PartialShape in, c.WithRank(0, 4));
  MR_ASSIGN_OR_RETURN(Dims ksizes, c.Attr<Dims>("ksizes"));
  MR_ASSIGN_OR_RETURN(Dims strides, c.Attr<Dims>("strides"));
  MR_ASSIGN_OR_RETURN(Dims rates, c.Attr<Dims>("rates"));
  MR_ASSIGN_OR_RETURN(std::string padding, c.Attr<std::string>("padding"));
  for (const Dims* d : {&ksizes, &strides, &rates}) {
    if (d->size() != 4) return InvalidArgument("ksizes, strides and rates must have 4 elements, got ", d->size());
    if ((*d)[0] != 1 || (*d)[3] != 1) return Unimplemented("patches across batch or depth are not supported");
    for (int64_t v : {(*d)[1], (*d)[2]}) {
      if (v < 1 || v > std::numeric_limits<int32_t>::max()) {
        return InvalidArgument("ksizes, strides and rates must lie in [1, 2^31), got ", v);
      }
    }
  }
  Dims out = in.dims();
  for (size_t i : {1u, 2u}) {
    const int64_t reach = (ksizes[i] - 1) * rates[i];
    if (out[i] < 0) continue;
    const int64_t span = padding == "SAME" ? out[i] : out[i] - reach;
    if (span - 1 + 2 * strides[i] <= 0)
      return InvalidArgument("a patch reaches over ", reach + 1, " pixels, the image has ", out[i]);
    out[i] = span <= 0 ? 0 : (span - 1) / strides[i] + 1;
  }
  if (out[3] >= 0 && !CheckedMul(out[3], ksizes[1] * ksizes[2], &out[3]))
    return InvalidArgument("patches do not fit in 64 bits");
  c.set_output(0, PartialShape::Of(std::move(out)));
  return absl::OkStatus();
}

Status SpaceToBatchGrad(GradContext& g) {
  MR_ASSIGN_OR_RETURN(int64_t block, g.Attr<int64_t>("block_size"));
  g.set_dx(0, g.b().Op("BatchToSpace", {g.dy(), g.x(1)}, {{"block_size", block}}));
  return g.status();
}
Status BatchToSpaceGrad(GradContext& g) {
  MR_ASSIGN_OR_RETURN(int64_t block, g.Attr<int64_t>("block_size"));
  g.set_dx(0, g.b().Op("SpaceToBatch", {g.dy(), g.x(1)}, {{"block_size", block}}));
  return g.status();
}
Status SpaceToBatchNdGrad(GradContext& g) {
  g.set_dx(0, g.b().Op("BatchToSpaceND", {g.dy(), g.x(1), g.x(2)}));
  return g.status();
}
Status BatchToSpaceNdGrad(GradContext& g) {
  g.set_dx(0, g.b().Op("SpaceToBatchND", {g.dy(), g.x(1), g.x(2)}));
  return g.status();
}

Status DepthGrad(GradContext& g, const char* op) {
  MR_ASSIGN_OR_RETURN(int64_t block, g.Attr<int64_t>("block_size"));
  MR_ASSIGN_OR_RETURN(std::string format, g.Attr<std::string>("data_format"));
  if (format == "NCHW_VECT_C") return InvalidArgument("there is no gradient for data_format NCHW_VECT_C");
  g.set_dx(0, g.b().Op(op, {g.dy()}, {{"block_size", block}, {"data_format", format}}));
  return g.status();
}
Status SpaceToDepthGrad(GradContext& g) { return DepthGrad(g, "DepthToSpace"); }
Status DepthToSpaceGrad(GradContext& g) { return DepthGrad(g, "SpaceToDepth"); }

// The patches of an image that holds 1, 2, 3, ... say which pixel each patch element came from (0: the padding), so the
// gradient is a sum by these numbers.
// Images of pixel numbers, cut into patches, tell where each value came from.
Status PatchesGrad(GradContext& g) {
  const GraphBuilder& b = g.b();
  const DType i64 = DType::kInt64;
  AttrMap attrs;
  for (const char* name : {"ksizes", "strides", "rates", "padding"}) {
    const auto given = g.node()->attrs().find(name);
    if (given != g.node()->attrs().end()) attrs.emplace(name, given->second);
  }
  const bool volumes = g.node()->op_name() == "ExtractVolumePatches";
  const int64_t spatial = volumes ? 3 : 2;
  Output shape = b.Shape(g.x(0), i64);
  Output one = b.Vector<int64_t>({1}), rest = b.Vector<int64_t>({-1}), no_dims = b.Const(Tensor::Vector<int32_t>({}));
  Output axis = b.Scalar<int32_t>(0);
  Output hw = VectorSlice(b, shape, 1, spatial);
  Output pixels = b.Op("Prod", {hw, b.Vector<int32_t>({0})}, {{"keep_dims", false}});
  Output numbers = b.Op("Range", {b.Scalar<int64_t>(1), b.Add(pixels, b.Scalar<int64_t>(1)), b.Scalar<int64_t>(1)});
  Output image = b.Reshape(numbers, b.Op("ConcatV2", {std::vector<Output>{one, hw, one}, axis}));
  Node* patches = b.OpNode(g.node()->op_name(), std::vector<Arg>{image}, attrs);
  if (!patches) return g.status();
  Output ids = b.Sub(b.Reshape(patches->output(0), rest), b.Scalar<int64_t>(1));
  Output batch = VectorSlice(b, shape, 0, 1), depth = VectorSlice(b, shape, spatial + 1, 1);
  Output count = b.Shape(ids, i64);
  Output swap = b.Vector<int32_t>({1, 0, 2});
  Output rows = b.Reshape(g.dy(), b.Op("ConcatV2", {std::vector<Output>{batch, count, depth}, axis}));
  rows = b.Op("Transpose", {rows, swap});
  Output sum = b.Op("UnsortedSegmentSum", {rows, ids, b.Reshape(pixels, no_dims)});
  g.set_dx(0, b.Reshape(b.Op("Transpose", {sum, swap}), shape));
  return g.status();
}

Status VolumePatchesShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape in, c.WithRank(0, 5));
  MR_ASSIGN_OR_RETURN(const Dims ksizes, c.Attr<Dims>("ksizes"));
  MR_ASSIGN_OR_RETURN(const Dims strides, c.Attr<Dims>("strides"));
  MR_ASSIGN_OR_RETURN(const std::string text, c.Attr<std::string>("padding"));
  MR_ASSIGN_OR_RETURN(const Padding padding, ParsePadding(text));
  for (const Dims* d : {&ksizes, &strides}) {
    if (d->size() != 5) return InvalidArgument("ksizes and strides must have 5 elements, got ", d->size());
    if ((*d)[0] != 1 || (*d)[4] != 1) return Unimplemented("patches across batch or depth are not supported");
  }
  Dims out = {in.dim(0), -1, -1, -1, in.dim(4)};
  for (size_t i = 1; i < 4; ++i) {
    if (out[4] >= 0 && !CheckedMul(out[4], ksizes[i], &out[4])) return InvalidArgument("patches do not fit in 64 bits");
    if (!in.has_dim(static_cast<int>(i))) continue;
    MR_ASSIGN_OR_RETURN(
        const WindowExtent e, ComputeWindow(in.dim(static_cast<int>(i)), ksizes[i], strides[i], 1, padding));
    out[i] = e.output;
  }
  c.set_output(0, PartialShape::Of(std::move(out)));
  return absl::OkStatus();
}

// What the step refuses has an unknown shape: TensorFlow's clients look for its error there.
Status PeriodicResampleShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape wanted, c.Attr<PartialShape>("shape"));
  if (!c.input(0).IsFullyDefined()) {
    std::vector<int64_t> dims = wanted.dims();
    for (int64_t& size : dims) size = size < 1 ? -1 : size;
    if (wanted.has_rank()) c.set_output(0, PartialShape::Of(std::move(dims)));
    return absl::OkStatus();
  }
  MR_ASSIGN_OR_RETURN(const Shape values, c.input(0).ToShape());
  const StatusOr<PeriodicSizes> sizes = PeriodicSizesOf(values, wanted);
  if (sizes.ok()) c.set_output(0, PartialShape(sizes->shape));
  return absl::OkStatus();
}

Status PeriodicResampleGradShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape original, c.Attr<PartialShape>("original_shape"));
  c.set_output(0, original);
  return absl::OkStatus();
}

// The places of all numbers go the same way as they: each gradient then goes back to its own.
Status PeriodicResampleGrad(GradContext& g) {
  const GraphBuilder& b = g.b();
  MR_ASSIGN_OR_RETURN(const PartialShape wanted, g.Attr<PartialShape>("shape"));
  const Output shape = b.Shape(g.x(0)), size = b.Op("Size", {g.x(0)}, {{"out_type", DType::kInt64}});
  const Output numbers = b.Op("Range", {b.Scalar<int64_t>(0), size, b.Scalar<int64_t>(1)});
  const Output places = b.Op("PeriodicResample", {b.Reshape(numbers, shape)}, {{"shape", wanted}});
  g.set_dx(0, b.Reshape(b.Op("UnsortedSegmentSum", {g.dy(), places, size}), shape));
  return g.status();
}

}  // namespace

void RegisterBlockOps(OpRegistry& registry) {
  registry
      .Add("SpaceToBatch(input:T, paddings:Tpaddings) -> (output:T) | T:type; Tpaddings in IDX=i32; block_size:int>=2")
      .Doc(
          "Pads height and width with zeros, then moves each position within a block of block_size x block_size pixels "
          "to a batch entry of its own.")
      .Shape(SquareBlockShape<true>)
      .Gradient(SpaceToBatchGrad)
      .Example("f32[1,2,3,2]~, i32[2,2]{1 1 0 1} | block_size=2");
  registry.Add("BatchToSpace(input:T, crops:Tidx) -> (output:T) | T:type; block_size:int>=2; Tidx in IDX=i32")
      .Doc("Undoes SpaceToBatch: weaves block_size^2 batch entries into blocks of pixels, then crops the borders.")
      .Shape(SquareBlockShape<false>)
      .Gradient(BatchToSpaceGrad)
      .Example("f32[4,2,2,2]~, i32[2,2]{1 1 0 1} | block_size=2");
  registry
      .Add(
          "SpaceToBatchND(input:T, block_shape:Tblock_shape, paddings:Tpaddings) -> (output:T) | T:type; "
          "Tblock_shape in IDX=i32; Tpaddings in IDX=i32")
      .Doc(
          "Pads the spatial dimensions with zeros, then moves each position within a block to a batch entry of its "
          "own. `block_shape` gives one block size per spatial dimension.")
      .Shape(NdBlockShape<true>)
      .Gradient(SpaceToBatchNdGrad)
      .Example("f32[1,3,4,2]~, i32[2]{2 3}, i32[2,2]{1 0 1 1}");
  registry
      .Add(
          "BatchToSpaceND(input:T, block_shape:Tblock_shape, crops:Tcrops) -> (output:T) | T:type; "
          "Tblock_shape in IDX=i32; Tcrops in IDX=i32")
      .Doc("Undoes SpaceToBatchND: weaves batch entries into blocks of the spatial dimensions, then crops the borders.")
      .Shape(NdBlockShape<false>)
      .Gradient(BatchToSpaceNdGrad)
      .Example("f32[6,2,2,2]~, i32[2]{2 3}, i32[2,2]{1 0 1 1}");
  registry
      .Add(
          "SpaceToDepth(input:T) -> (output:T) | T:type; block_size:int>=2; data_format in "
          "{NHWC,NCHW,NCHW_VECT_C}=\"NHWC\"")
      .Doc("Moves blocks of block_size x block_size pixels into the depth dimension.")
      .Shape(DepthShape<true>)
      .Gradient(SpaceToDepthGrad)
      .Example("f32[2,2,4,3]~ | block_size=2");
  registry
      .Add(
          "DepthToSpace(input:T) -> (output:T) | T:type; block_size:int>=2; data_format in "
          "{NHWC,NCHW,NCHW_VECT_C}=\"NHWC\"")
      .Doc("Spreads groups of block_size^2 depth entries over blocks of pixels.")
      .Shape(DepthShape<false>)
      .Gradient(DepthToSpaceGrad)
      .Example("f32[2,1,2,8]~ | block_size=2");
  registry
      .Add(
          "ExtractImagePatches(images:T) -> (patches:T) | ksizes:list(int)>=4; strides:list(int)>=4; "
          "rates:list(int)>=4; T in REAL|CPX; padding in {SAME,VALID}")
      .Doc(
          "The patches of ksizes pixels, `rates` apart from each other, at every `strides`-th place of the images, "
          "each laid out in the depth dimension. SAME pads with zeros.")
      .Shape(PatchesShape)
      .Gradient(PatchesGrad)
      .Example("f32[1,4,5,2]~ | ksizes=[1,2,3,1]; strides=[1,2,2,1]; rates=[1,1,1,1]; padding=\"SAME\"")
      .Example("f32[2,5,5,1]~ | ksizes=[1,2,2,1]; strides=[1,1,1,1]; rates=[1,2,2,1]; padding=\"VALID\"");
  registry
      .Add(
          "ExtractVolumePatches(input:T) -> (patches:T) | ksizes:list(int)>=5; strides:list(int)>=5; T in REAL; "
          "padding in {SAME,VALID}")
      .Doc(
          "The patches of ksizes cells at every `strides`-th place of volumes, each laid out in the depth dimension. "
          "SAME "
          "pads with zeros.")
      .Shape(VolumePatchesShape)
      .Gradient(PatchesGrad)
      .Example("f32[1,3,4,3,2]~ | ksizes=[1,2,2,3,1]; strides=[1,1,2,1,1]; padding=\"SAME\"")
      .Example("f32[2,3,3,3,1]~ | ksizes=[1,2,2,2,1]; strides=[1,1,1,1,1]; padding=\"VALID\"");
  registry.Add("PeriodicResample(values:T) -> (output:T) | T in NUM; shape:shape")
      .Doc(
          "The numbers of one dimension, that which `shape` leaves open, laid out along the others, which grow to the "
          "sizes that it gives: a finer image out of channels (Shi and others 2016).")
      .Shape(PeriodicResampleShape)
      .Gradient(PeriodicResampleGrad)
      .Example("f32[3,4]~ | shape=[6,?]")
      .Example("f32[2,2,4]~ | shape=[4,4,?]");
  registry
      .Add("PeriodicResampleOpGrad(grad:T) -> (grad_values:T) | T in NUM; original_shape:shape; desired_shape:shape")
      .Doc("The gradient of PeriodicResample: each number's at its place, 0 where none was taken from.")
      .Shape(PeriodicResampleGradShape)
      .NoGradient("the gradient of a gradient: take PeriodicResample itself")
      .Example("f32[6,2]~ | original_shape=[3,4]; desired_shape=[6,?]");
}

}  // namespace millrace
