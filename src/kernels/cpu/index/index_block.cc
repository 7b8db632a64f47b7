// SPDX-License-Identifier: Apache-2.0
// SpaceToBatch*, BatchToSpace*, SpaceToDepth, DepthToSpace, ExtractImagePatches.
//
// The "big" side of a space <-> batch move has full spatial dimensions, the "small" side has one batch entry per block
// offset: small[offset * batch + b, pos..., :] = big[b, pos * block + offset - edge..., :]. For each offset the
// positions that fall inside `big` are a box; the box is walked row by row.
#include <algorithm>
#include <cstring>
#include <limits>

#include "base/checked.h"
#include "kernels/cpu/engine/index_rows.h"
#include "kernels/cpu/index/index_kernels.h"

namespace millrace {
namespace {

using Dims = std::vector<int64_t>;

struct BlockMove {
  Dims block, edge;  // edge: padding or crop before
  Dims big, small;   // spatial sizes
  int64_t batch = 1, depth = 1;
  size_t m() const { return block.size(); }
};

// Positions p in [*lo, *hi) of dimension d of `small` have p * block + offset - edge inside `big`.
void ValidPositions(const BlockMove& v, size_t d, int64_t offset, int64_t* lo, int64_t* hi) {
  const int64_t shift = v.edge[d] - offset;
  *lo = shift > 0 ? (shift + v.block[d] - 1) / v.block[d] : 0;
  const int64_t reach = v.big[d] + shift;  // p * block < reach
  *hi = reach > 0 ? (reach - 1) / v.block[d] + 1 : 0;
  *hi = std::min(*hi, v.small[d]);
  *lo = std::min(*lo, *hi);
}

// Moves one small batch entry: `each(small_at, big_at, n, big_stride)` for every row of n positions, in elements.
template <typename F>
void WalkEntry(const BlockMove& v, int64_t entry, const F& each) {
  const size_t m = v.m();
  int64_t offset_number = entry / v.batch;
  const int64_t b = entry % v.batch;
  Dims lo(m), hi(m), offset(m);
  for (size_t d = m; d-- > 0;) {
    offset[d] = offset_number % v.block[d];
    offset_number /= v.block[d];
    ValidPositions(v, d, offset[d], &lo[d], &hi[d]);
    if (lo[d] >= hi[d]) return;
  }
  Dims p = lo;
  const size_t last = m - 1;
  for (;;) {
    int64_t small_at = entry, big_at = b;
    for (size_t d = 0; d < m; ++d) {
      small_at = small_at * v.small[d] + p[d];
      big_at = big_at * v.big[d] + p[d] * v.block[d] + offset[d] - v.edge[d];
    }
    each(small_at * v.depth, big_at * v.depth, hi[last] - lo[last], v.block[last] * v.depth);
    size_t d = last;
    while (d > 0) {
      --d;
      if (++p[d] < hi[d]) break;
      p[d] = lo[d];
      if (d == 0) return;
    }
    if (last == 0) return;
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
  const int64_t entries = to_batch ? shape.dim(0) : in.dim(0);
  int64_t slab = v.depth;
  for (int64_t s : v.small) slab *= s;
  const RunCopier copier(in.dtype(), v.depth);
  ctx.ParallelFor(entries, static_cast<double>(slab) * 0.5 + 50, [&](int64_t begin, int64_t end) {
    if (to_batch) ZeroElements(in.dtype(), out->mutable_raw(), begin * slab, (end - begin) * slab);
    for (int64_t e = begin; e < end; ++e) {
      WalkEntry(v, e, [&](int64_t small_at, int64_t big_at, int64_t n, int64_t stride) {
        if (to_batch) {
          copier.Copy(out->mutable_raw(), small_at, v.depth, in.raw(), big_at, stride, n);
        } else {
          copier.Copy(out->mutable_raw(), big_at, stride, in.raw(), small_at, v.depth, n);
        }
      });
    }
  });
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

// Rows of pixels of an image and of its blocked form, NHWC: within a row of blocks, the pixels of one block row are
// contiguous in the blocked form.
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
    if (channels_last_) {
      ChannelsLast(ctx, in, image, out);
    } else {
      ChannelsFirst(ctx, in, image, out);
    }
    return absl::OkStatus();
  }

 private:
  void ChannelsLast(KernelContext& ctx, const Tensor& in, const Shape& image, Tensor* out) const {
    const int64_t rows = image.dim(0) * image.dim(1), blocks = image.dim(2) / block_, depth = image.dim(3);
    const int64_t run = block_ * depth, row = image.dim(2) * depth;
    const RunCopier copier(in.dtype(), run);
    ctx.ParallelFor(rows, copier.cost() * static_cast<double>(blocks) + 10, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const int64_t image_at = r * row;
        const int64_t blocked_at = r / block_ * block_ * row + r % block_ * run;
        if (kToDepth) {
          copier.Copy(out->mutable_raw(), blocked_at, run * block_, in.raw(), image_at, run, blocks);
        } else {
          copier.Copy(out->mutable_raw(), image_at, run, in.raw(), blocked_at, run * block_, blocks);
        }
      }
    });
  }

  void ChannelsFirst(KernelContext& ctx, const Tensor& in, const Shape& image, Tensor* out) const {
    const int64_t depth = image.dim(1), height = image.dim(2), width = image.dim(3);
    const int64_t bh = height / block_, bw = width / block_;
    const RunCopier copier(in.dtype(), 1);
    ctx.ParallelFor(
        image.dim(0) * depth * height, copier.cost() * static_cast<double>(width), [&](int64_t b, int64_t e) {
          for (int64_t r = b; r < e; ++r) {
            const int64_t y = r % height, channel = r / height % depth, n = r / height / depth;
            for (int64_t x = 0; x < block_; ++x) {
              const int64_t plane = (n * block_ * block_ + y % block_ * block_ + x) * depth + channel;
              const int64_t blocked_at = (plane * bh + y / block_) * bw;
              if (kToDepth) {
                copier.Copy(out->mutable_raw(), blocked_at, 1, in.raw(), r * width + x, block_, bw);
              } else {
                copier.Copy(out->mutable_raw(), r * width + x, block_, in.raw(), blocked_at, 1, bw);
              }
            }
          }
        });
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
