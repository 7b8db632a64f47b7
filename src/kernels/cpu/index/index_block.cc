// SPDX-License-Identifier: Apache-2.0
// SpaceToBatch*, BatchToSpace*, SpaceToDepth, DepthToSpace, ExtractImagePatches.
//
// The "big" side of a space <-> batch move has full spatial dimensions, the "small" side has one batch entry per block
// offset: small[offset * batch + b, pos..., :] = big[b, pos * block + offset - edge..., :]. For each offset the
// positions that fall inside `big` are a box, and offsets that are neighbours have the same one up to two times in each
// dimension: a strided copy moves the boxes of all offsets of such a group.
#include <algorithm>
#include <limits>
#include <utility>

#include "absl/algorithm/container.h"
#include "base/checked.h"
#include "kernels/cpu/engine/index_rows.h"
#include "kernels/cpu/engine/strided_copy.h"
#include "kernels/cpu/index/index_kernels.h"

namespace millrace {
namespace {

using Dims = std::vector<int64_t>;

constexpr int64_t kItemBytes = 16;  // up to here the strided copy takes a run for one number

struct BlockMove {
  Dims block, edge;  // edge: padding or crop before
  Dims big, small;   // spatial sizes
  int64_t batch = 1, depth = 1;
  size_t m() const { return block.size(); }
};

// Neighbouring offsets in one dimension, for which positions [lo, hi) of `small` lie inside `big`.
struct OffsetGroup {
  int64_t first = 0, count = 0;
  int64_t lo = 0, hi = 0;
};

std::vector<OffsetGroup> OffsetGroups(const BlockMove& v, size_t d) {
  std::vector<OffsetGroup> groups;
  for (int64_t offset = 0; offset < v.block[d]; ++offset) {
    const int64_t shift = v.edge[d] - offset;
    const int64_t reach = v.big[d] + shift;  // p * block < reach
    const int64_t hi = std::min(reach > 0 ? (reach - 1) / v.block[d] + 1 : 0, v.small[d]);
    const int64_t lo = std::min(shift > 0 ? (shift + v.block[d] - 1) / v.block[d] : 0, hi);
    if (groups.empty() || groups.back().lo != lo || groups.back().hi != hi) groups.push_back({offset, 0, lo, hi});
    ++groups.back().count;
  }
  return groups;
}

// Elements that one step in a dimension is apart.
struct BlockStrides {
  explicit BlockStrides(const BlockMove& v)
      : big(v.m()), small(v.m()), offset(v.m()), big_batch(v.depth), small_batch(v.depth) {
    for (size_t d = v.m(); d-- > 0;) {
      big[d] = big_batch;
      small[d] = small_batch;
      big_batch *= v.big[d];
      small_batch *= v.small[d];
    }
    int64_t entries = v.batch * small_batch;
    for (size_t d = v.m(); d-- > 0;) {
      offset[d] = entries;
      entries *= v.block[d];
    }
  }
  Dims big, small, offset;  // offset: in `small`, of the offset in a dimension
  int64_t big_batch, small_batch;
};

struct Range {
  int64_t begin, end;
};

// The elements of `small` at positions `ranges` for the offsets of `groups`, beside those of `big`.
struct BlockBox {
  CopyDims dims;  // dst: small, src: big
  int64_t small_at = 0, big_at = 0;
};
BlockBox BoxOf(const BlockMove& v, const BlockStrides& strides, const std::vector<OffsetGroup>& groups,
               const std::vector<Range>& ranges, bool offsets_inside) {
  BlockBox box;
  box.dims.push_back({v.batch, strides.small_batch, strides.big_batch});
  for (size_t d = 0; d < v.m(); ++d) {
    const OffsetGroup& g = groups[d];
    const Range& r = ranges[d];
    box.small_at += r.begin * strides.small[d] + g.first * strides.offset[d];
    box.big_at += (r.begin * v.block[d] + g.first - v.edge[d]) * strides.big[d];
    const CopyDim at = {r.end - r.begin, strides.small[d], v.block[d] * strides.big[d]};
    const CopyDim offset = {g.count, strides.offset[d], strides.big[d]};
    const bool inside = offsets_inside || d + 1 < v.m();
    box.dims.push_back(inside ? at : offset);
    box.dims.push_back(inside ? offset : at);
  }
  box.dims.push_back({v.depth, 1, 1});
  return box;
}

// Zeroes what has no place in `big`: in each dimension what lies beside the box, within those before it.
void ZeroBeside(KernelContext& ctx, const BlockMove& v, const BlockStrides& strides,
                const std::vector<OffsetGroup>& groups, Tensor* small) {
  static constexpr char kZero[16] = {};
  std::vector<Range> ranges;
  for (size_t d = 0; d < v.m(); ++d) ranges.push_back({0, v.small[d]});
  for (size_t d = 0; d < v.m(); ++d) {
    for (const Range beside : {Range{0, groups[d].lo}, Range{groups[d].hi, v.small[d]}}) {
      if (beside.begin == beside.end) continue;
      ranges[d] = beside;
      BlockBox box = BoxOf(v, strides, groups, ranges, false);
      for (CopyDim& dim : box.dims) dim.src_stride = 0;
      StridedCopy(&ctx, small->dtype(), ElementAt(small->mutable_raw(), small->dtype(), box.small_at), kZero, box.dims);
    }
    ranges[d] = {groups[d].lo, groups[d].hi};
  }
}

struct BlockArgs {
  Dims block;
  Dims edges;  // 2 per block dimension
};

Status ReadBlockArgs(const Tensor& block, const Tensor& edges, BlockArgs* args) {
  MR_RETURN_IF_ERROR(RequireVector("block_shape", block));
  MR_ASSIGN_OR_RETURN(args->block, block.IntValues());
  if (edges.rank() != 2 || edges.dim(0) != block.dim(0) || edges.dim(1) != 2) {
    return InvalidArgument("paddings or crops must have shape [", block.dim(0), ",2], got ", edges.shape().ToString());
  }
  MR_ASSIGN_OR_RETURN(args->edges, edges.IntValues());
  return absl::OkStatus();
}

// Shapes, checks and the geometry of the move; *out is the output's shape.
Status PlanMove(const Shape& in, const BlockArgs& args, bool to_batch, BlockMove* v, Shape* out) {
  const size_t m = args.block.size();
  if (static_cast<size_t>(in.rank()) < m + 1) {
    return InvalidArgument("input of shape ", in.ToString(), " has too few dimensions for ", m, " block dimensions");
  }
  v->block = args.block;
  Dims dims = DimsOf(in, 0, in.rank());
  int64_t volume = 1;
  for (size_t d = 0; d < m; ++d) {
    const int64_t bs = args.block[d], before = args.edges[2 * d], after = args.edges[2 * d + 1];
    if (bs < 1) return InvalidArgument("block_shape[", d, "] = ", bs, " must be at least 1");
    if (before < 0 || after < 0)
      return InvalidArgument("paddings and crops must not be negative, got ", before, ", ", after);
    if (!CheckedMul(volume, bs, &volume)) return InvalidArgument("the block volume does not fit in 64 bits");
    int64_t full, result;
    const int64_t size = in.dim(static_cast<int>(d) + 1);
    if (to_batch) {
      if (!CheckedAdd(size, before, &full) || !CheckedAdd(full, after, &full) || full % bs != 0) {
        return InvalidArgument("padded size of dimension ", d + 1, ", ", size, " + ", before, " + ", after,
                               ", is not divisible by block size ", bs);
      }
      result = full / bs;
    } else if (!CheckedMul(size, bs, &full) || !CheckedSub(full, before, &result) ||
               !CheckedSub(result, after, &result) || result < 0) {
      return InvalidArgument(
          "cannot crop ", before, " and ", after, " from dimension ", d + 1, " of ", size, " * ", bs);
    }
    v->edge.push_back(before);
    v->big.push_back(to_batch ? size : result);
    v->small.push_back(to_batch ? result : size);
    dims[d + 1] = result;
  }
  if (to_batch) {
    v->batch = in.dim(0);
    if (!CheckedMul(v->batch, volume, &dims[0])) return InvalidArgument("the batch does not fit in 64 bits");
  } else {
    if (in.dim(0) % volume != 0) {
      return InvalidArgument("batch ", in.dim(0), " is not divisible by the block volume ", volume);
    }
    v->batch = dims[0] = in.dim(0) / volume;
  }
  v->depth = DimProduct(in, static_cast<int>(m) + 1, in.rank());
  MR_ASSIGN_OR_RETURN(*out, Shape::Make(dims));
  return absl::OkStatus();
}

Status MoveBlocks(KernelContext& ctx, const BlockArgs& args, bool to_batch) {
  const Tensor& in = ctx.input(0);
  BlockMove v;
  Shape shape;
  MR_RETURN_IF_ERROR(PlanMove(in.shape(), args, to_batch, &v, &shape));
  if (v.m() == 0) return ctx.ForwardReshaped(0, 0, shape);
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  if (shape.num_elements() == 0) return absl::OkStatus();
  const DType dtype = in.dtype();
  const BlockStrides strides(v);
  std::vector<std::vector<OffsetGroup>> choices;
  for (size_t d = 0; d < v.m(); ++d) choices.push_back(OffsetGroups(v, d));
  std::vector<size_t> chosen(v.m());
  // Long runs are best read in order; those as short as a number are copied fast where the innermost steps in the
  // output are to neighbours.
  constexpr int64_t kLongBytes = 256;
  const int64_t run = v.depth * static_cast<int64_t>(DTypeSize(dtype));
  const bool offsets_inside = to_batch ? run >= kLongBytes : run <= kItemBytes;
  for (bool more = true; more;) {
    std::vector<OffsetGroup> groups;
    std::vector<Range> inside;
    for (size_t d = 0; d < v.m(); ++d) {
      groups.push_back(choices[d][chosen[d]]);
      inside.push_back({groups[d].lo, groups[d].hi});
    }
    if (to_batch && IsPlain(dtype)) ZeroBeside(ctx, v, strides, groups, out);  // others are empty from the start
    BlockBox box = BoxOf(v, strides, groups, inside, offsets_inside);
    if (!to_batch) {
      std::swap(box.small_at, box.big_at);
      for (CopyDim& dim : box.dims) std::swap(dim.dst_stride, dim.src_stride);
    }
    const bool empty = absl::c_any_of(box.dims, [](const CopyDim& dim) { return dim.size == 0; });
    if (!empty) {
      StridedCopy(&ctx, dtype, ElementAt(out->mutable_raw(), dtype, box.small_at),
                  ElementAt(in.raw(), dtype, box.big_at), box.dims);
    }
    more = false;
    for (size_t d = v.m(); d-- > 0 && !more;) {
      more = ++chosen[d] < choices[d].size();
      if (!more) chosen[d] = 0;
    }
  }
  return absl::OkStatus();
}

template <bool kToBatch>
class SquareBlockKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(block_size_, init.Attr<int64_t>("block_size"));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    if (ctx.input(0).rank() != 4)
      return InvalidArgument("input must have rank 4, got ", ctx.input(0).shape().ToString());
    BlockArgs args;
    MR_RETURN_IF_ERROR(ReadBlockArgs(Tensor::Vector<int64_t>({block_size_, block_size_}), ctx.input(1), &args));
    return MoveBlocks(ctx, args, kToBatch);
  }

 private:
  int64_t block_size_ = 0;
};

template <bool kToBatch>
Status NdBlockKernel(KernelContext& ctx) {
  BlockArgs args;
  MR_RETURN_IF_ERROR(ReadBlockArgs(ctx.input(1), ctx.input(2), &args));
  return MoveBlocks(ctx, args, kToBatch);
}

template <bool kToDepth>
class DepthKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(block_, init.Attr<int64_t>("block_size"));
    MR_ASSIGN_OR_RETURN(std::string format, init.Attr<std::string>("data_format"));
    if (format == "NCHW_VECT_C") return InvalidArgument("data_format NCHW_VECT_C is not supported on CPU");
    channels_last_ = format == "NHWC";
    if (block_ < 2 || block_ > (int64_t{1} << 30)) return InvalidArgument("block_size ", block_, " is out of range");
    return absl::OkStatus();
  }

  Status Compute(KernelContext& ctx) override {
    const Tensor& in = ctx.input(0);
    if (in.rank() != 4) return InvalidArgument("input must have rank 4, got ", in.shape().ToString());
    const int h = channels_last_ ? 1 : 2, c = channels_last_ ? 3 : 1;
    const int64_t area = block_ * block_;
    Dims dims = DimsOf(in.shape(), 0, 4);
    auto at = [&](int i) -> int64_t& { return dims[static_cast<size_t>(i)]; };
    if (kToDepth ? at(h) % block_ != 0 || at(h + 1) % block_ != 0 : at(c) % area != 0) {
      return InvalidArgument("input of shape ", in.shape().ToString(), " does not divide into blocks of ", block_);
    }
    bool fits = true;
    if (kToDepth) {
      at(h) /= block_, at(h + 1) /= block_;
      fits = CheckedMul(at(c), area, &at(c));
    } else {
      fits = CheckedMul(at(h), block_, &at(h)) && CheckedMul(at(h + 1), block_, &at(h + 1));
      at(c) /= area;
    }
    if (!fits) return InvalidArgument("the output does not fit in 64 bits");
    MR_ASSIGN_OR_RETURN(Shape shape, Shape::Make(dims));
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    if (shape.num_elements() == 0) return absl::OkStatus();
    const Shape& image = kToDepth ? in.shape() : shape;  // full resolution
    CopyDims moved =
        channels_last_ ? ChannelsLast(image, in.dtype()) : ChannelsFirst(image);  // dst: blocks, src: image
    if (!kToDepth) {
      for (CopyDim& d : moved) std::swap(d.dst_stride, d.src_stride);
    }
    StridedCopy(&ctx, in.dtype(), out->mutable_raw(), in.raw(), moved);
    return absl::OkStatus();
  }

 private:
  CopyDims ChannelsLast(const Shape& image, DType dtype) const {
    const int64_t run = block_ * image.dim(3), row = image.dim(2) * image.dim(3);
    const CopyDim down = {block_, run, row}, across = {image.dim(2) / block_, run * block_, run};
    const bool single = run * static_cast<int64_t>(DTypeSize(dtype)) <= kItemBytes;
    CopyDims dims = {{image.dim(0) * image.dim(1) / block_, row * block_, row * block_}};
    dims.push_back(kToDepth && single ? across : down);  // inside are neighbours in the output, as above
    dims.push_back(kToDepth && single ? down : across);
    dims.push_back({run, 1, 1});
    return dims;
  }

  // The channels of the blocks are row in a block, column in a block, channel of the image.
  CopyDims ChannelsFirst(const Shape& image) const {
    const int64_t depth = image.dim(1), width = image.dim(3), plane = image.dim(2) * width;
    const int64_t bw = width / block_, small = plane / (block_ * block_);
    CopyDims dims = {
        {image.dim(0), depth * plane, depth * plane},
        {depth, small, plane},
        {image.dim(2) / block_, bw, block_ * width},
        {block_, block_ * depth * small, width}};
    const CopyDim column = {block_, depth * small, 1}, across = {bw, 1, block_};
    dims.push_back(kToDepth ? column : across);
    dims.push_back(kToDepth ? across : column);
    return dims;
  }

  int64_t block_ = 2;
  bool channels_last_ = true;
};

class PatchesKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(ksize_, init.Attr<Dims>("ksizes"));
    MR_ASSIGN_OR_RETURN(stride_, init.Attr<Dims>("strides"));
    MR_ASSIGN_OR_RETURN(rate_, init.Attr<Dims>("rates"));
    const StatusOr<std::string> padding = init.Attr<std::string>("padding");
    MR_RETURN_IF_ERROR(padding.status());
    same_ = *padding == "SAME";
    for (const Dims* d : {&ksize_, &stride_, &rate_}) {
      if (d->size() != 4) return InvalidArgument("ksizes, strides and rates must have 4 elements, got ", d->size());
      if ((*d)[0] != 1 || (*d)[3] != 1) return Unimplemented("patches across batch or depth are not supported");
      for (int64_t v : {(*d)[1], (*d)[2]}) {
        if (v < 1 || v > std::numeric_limits<int32_t>::max()) {
          return InvalidArgument("ksizes, strides and rates must lie in [1, 2^31), got ", v);
        }
      }
    }
    return absl::OkStatus();
  }

  Status Compute(KernelContext& ctx) override {
    const Tensor& in = ctx.input(0);
    if (in.rank() != 4) return InvalidArgument("images must have rank 4, got ", in.shape().ToString());
    int64_t size[2], before[2];
    for (int i = 0; i < 2; ++i) {
      const size_t d = static_cast<size_t>(i) + 1;
      const int64_t reach = (ksize_[d] - 1) * rate_[d] + 1, have = in.dim(i + 1);
      const int64_t span = same_ ? have : have - reach + 1;
      // An image that is too small by less than two strides has no patch; a smaller one is taken for a mistake.
      if (span - 1 + 2 * stride_[d] <= 0)
        return InvalidArgument("a patch reaches over ", reach, " pixels, the image has ", have);
      size[i] = span <= 0 ? 0 : (span - 1) / stride_[d] + 1;
      before[i] = same_ ? std::max<int64_t>((size[i] - 1) * stride_[d] + reach - have, 0) / 2 : 0;
    }
    int64_t depth;
    if (!CheckedMul(ksize_[1] * ksize_[2], in.dim(3), &depth)) return InvalidArgument("patches do not fit in 64 bits");
    MR_ASSIGN_OR_RETURN(Shape shape, Shape::Make({in.dim(0), size[0], size[1], depth}));
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    if (shape.num_elements() == 0) return absl::OkStatus();
    const RunCopier copier(in.dtype(), in.dim(3));
    ctx.ParallelFor(
        shape.dim(0) * size[0], 0.5 * static_cast<double>(size[1] * depth), [&](int64_t begin, int64_t end) {
          for (int64_t r = begin; r < end; ++r) PatchRow(in, copier, r / size[0], r % size[0], size[1], before, r, out);
        });
    return absl::OkStatus();
  }

 private:
  // Row y of the patches of image b, which is row `r` of the output.
  void PatchRow(const Tensor& in, const RunCopier& copier, int64_t b, int64_t y, int64_t count, const int64_t* before,
                int64_t r, Tensor* out) const {
    const int64_t height = in.dim(1), width = in.dim(2), c = in.dim(3);
    const int64_t patch = ksize_[1] * ksize_[2] * c;
    if (same_) ZeroElements(in.dtype(), out->mutable_raw(), r * count * patch, count * patch);
    for (int64_t ky = 0; ky < ksize_[1]; ++ky) {
      const int64_t sy = y * stride_[1] + ky * rate_[1] - before[0];
      if (!InRange(sy, height)) continue;
      for (int64_t kx = 0; kx < ksize_[2]; ++kx) {
        // Patches x with 0 <= x * stride + shift < width.
        const int64_t shift = kx * rate_[2] - before[1], stride = stride_[2];
        const int64_t lo = shift < 0 ? (-shift + stride - 1) / stride : 0;
        const int64_t hi = width > shift ? std::min(count, (width - shift - 1) / stride + 1) : 0;
        if (lo >= hi) continue;
        copier.Copy(out->mutable_raw(), (r * count + lo) * patch + (ky * ksize_[2] + kx) * c, patch, in.raw(),
                    ((b * height + sy) * width + lo * stride + shift) * c, stride * c, hi - lo);
      }
    }
  }

  Dims ksize_, stride_, rate_;
  bool same_ = false;
};

}  // namespace

void RegisterBlockKernels(KernelRegistry& r) {
  r.Add<SquareBlockKernel<true>>({.op = "SpaceToBatch"});
  r.Add<SquareBlockKernel<false>>({.op = "BatchToSpace"});
  r.AddFn({.op = "SpaceToBatchND"}, NdBlockKernel<true>);
  r.AddFn({.op = "BatchToSpaceND"}, NdBlockKernel<false>);
  r.Add<DepthKernel<true>>({.op = "SpaceToDepth"});
  r.Add<DepthKernel<false>>({.op = "DepthToSpace"});
  r.Add<PatchesKernel>({.op = "ExtractImagePatches"});
}

}  // namespace millrace
