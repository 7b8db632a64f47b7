// SPDX-License-Identifier: Apache-2.0
// CPU kernels: borders and repetitions.
#include <algorithm>
#include <cstring>

#include "base/checked.h"
#include "kernels/cpu/array/array_kernels.h"
#include "kernels/cpu/elementwise/elementwise_in_place.h"
#include "kernels/cpu/engine/strided_copy.h"

namespace millrace {
namespace {

struct Padding {
  int64_t before = 0;
  int64_t after = 0;
};
using Paddings = absl::InlinedVector<Padding, 8>;

StatusOr<Paddings> ReadPaddings(const Tensor& t, int rank) {
  if (t.rank() != 2 || t.dim(1) != 2) {
    return InvalidArgument("paddings must be a matrix with 2 columns: ", t.shape().ToString());
  }
  if (t.dim(0) != rank) {
    return InvalidArgument(
        "The first dimension of paddings must be the rank of inputs: ", t.shape().ToString(), " for rank ", rank);
  }
  MR_ASSIGN_OR_RETURN(Tensor flat, t.Reshaped(Shape::Vector(t.num_elements())));
  MR_ASSIGN_OR_RETURN(Ints values, IntVectorOf(flat, "paddings"));
  Paddings out;
  for (size_t i = 0; i < values.size(); i += 2) {
    if (values[i] < 0 || values[i + 1] < 0) {
      return InvalidArgument("Paddings must be non-negative: ", values[i], " ", values[i + 1]);
    }
    out.push_back({values[i], values[i + 1]});
  }
  return out;
}

StatusOr<Shape> GrownBy(const Shape& s, const Paddings& paddings) {
  Ints dims;
  for (int i = 0; i < s.rank(); ++i) {
    const Padding& p = paddings[static_cast<size_t>(i)];
    int64_t d = s.dim(i);
    if (!CheckedAdd(d, p.before, &d) || !CheckedAdd(d, p.after, &d)) {
      return InvalidArgument("paddings of dimension ", i, " overflow");
    }
    dims.push_back(d);
  }
  return Shape::Make(absl::MakeConstSpan(dims));
}

// One level of a padded loop nest, in units of whole inner levels.
struct PadLevel {
  int64_t before, size, after;
  int64_t total() const { return before + size + after; }
};
using PadLevels = absl::InlinedVector<PadLevel, 8>;

// Dimensions without padding join the one before them.
PadLevels MergeLevels(const Shape& in, const Paddings& paddings) {
  PadLevels levels;
  for (int i = 0; i < in.rank(); ++i) {
    const Padding& p = paddings[static_cast<size_t>(i)];
    if (!levels.empty() && p.before == 0 && p.after == 0) {
      PadLevel& l = levels.back();
      l = {l.before * in.dim(i), l.size * in.dim(i), l.after * in.dim(i)};
    } else {
      levels.push_back({p.before, in.dim(i), p.after});
    }
  }
  return levels;
}

// Rows of few bytes: calls for each would cost more than to write the borders of all first, and the rows between them.
bool AreNarrow(const PadLevels& levels, DType dtype) {
  constexpr int64_t kNarrow = 64;
  return IsPlain(dtype) && levels.back().total() * static_cast<int64_t>(DTypeSize(dtype)) <= kNarrow;
}
void PadNarrowRows(KernelContext& ctx, const PadLevels& levels, const Tensor& in, const void* value, Tensor* out) {
  FillElements(&ctx, in.dtype(), out->mutable_raw(), value, out->num_elements());
  CopyDims dims;
  int64_t into = 0, to_stride = 1, from_stride = 1;
  for (size_t k = levels.size(); k-- > 0;) {
    dims.insert(dims.begin(), {levels[k].size, to_stride, from_stride});
    into += levels[k].before * to_stride;
    to_stride *= levels[k].total();
    from_stride *= levels[k].size;
  }
  StridedCopy(&ctx, in.dtype(), ElementAt(out->mutable_raw(), in.dtype(), into), in.raw(), dims);
}

// Walks over padded rows.
class PaddedRows {
 public:
  PaddedRows(const PadLevels& levels, int64_t row) : levels_(levels), outer_(levels.size() - 1) {
    index_.resize(outer_);
    for (size_t k = outer_; k-- > 0; row /= levels[k].total()) index_[k] = row % levels[k].total() - levels[k].before;
    int64_t stride = 1;
    for (size_t k = outer_; k-- > 0; stride *= levels[k].size) {
      outside_ += !InRange(index_[k], levels[k].size);
      // Where an index lies outside, what its inner ones say does not count.
      input_ = (InRange(index_[k], levels[k].size) ? input_ : 0) +
               std::clamp<int64_t>(index_[k], 0, levels[k].size) * stride;
    }
  }
  bool inside() const { return outside_ == 0; }
  int64_t input() const { return input_; }  // how many rows of the input lie before
  void Next() {
    input_ += inside() ? 1 : 0;
    for (size_t k = outer_; k-- > 0;) {
      const PadLevel& level = levels_[k];
      if (index_[k] == -1 || index_[k] == level.size - 1) outside_ += index_[k] == -1 ? -1 : 1;
      if (++index_[k] < level.size + level.after) return;
      outside_ += (level.before > 0 ? 1 : 0) - 1;
      index_[k] = -level.before;
    }
  }

 private:
  const PadLevels& levels_;
  size_t outer_;
  absl::InlinedVector<int64_t, 8> index_;  // less what lies before
  int64_t outside_ = 0;                    // so many of the indices
  int64_t input_ = 0;
};

// Rows of the input go to their places; borders are what lies between two of them, and filled at once.
void PadRows(KernelContext& ctx, const PadLevels& levels, const Tensor& in, const void* value, Tensor* out) {
  const DType dtype = in.dtype();
  const RunFns run = RunFunctions(dtype);
  const PadLevel& row = levels.back();
  int64_t rows = 1;
  for (size_t k = 0; k + 1 < levels.size(); ++k) rows *= levels[k].total();
  void* dst = out->mutable_raw();
  const int64_t bytes = static_cast<int64_t>(DTypeSize(dtype));
  alignas(16) char pattern[16] = {};
  const bool has_pattern = IsPlain(dtype) && 16 % bytes == 0;
  for (int64_t i = 0; has_pattern && i < 16; i += bytes) std::memcpy(pattern + i, value, static_cast<size_t>(bytes));
  const double cost = static_cast<double>(row.total() * bytes) * 0.1 + 5.0;
  ctx.ParallelFor(rows, cost, [&](int64_t begin, int64_t end) {
    PaddedRows at(levels, begin);
    int64_t filled = begin * row.total();
    const int64_t all = end * row.total();
    const auto fill = [&](int64_t until) {
      char* to = static_cast<char*>(ElementAt(dst, dtype, filled));
      // A narrow border by one store, which reaches into what is written next.
      if (has_pattern && (until - filled) * bytes <= 16 && (all - filled) * bytes >= 16) {
        std::memcpy(to, pattern, 16);
      } else {
        run.fill(to, value, until - filled);
      }
    };
    for (int64_t r = begin; r < end; ++r, at.Next()) {
      if (!at.inside()) continue;
      const int64_t first = r * row.total() + row.before;
      fill(first);
      run.copy(ElementAt(dst, dtype, first), ElementAt(in.raw(), dtype, at.input() * row.size), row.size);
      filled = first + row.size;
    }
    fill(all);
  });
}

Status PadWith(KernelContext& ctx, const void* value) {
  const Tensor& in = ctx.input(0);
  MR_ASSIGN_OR_RETURN(Paddings paddings, ReadPaddings(ctx.input(1), in.rank()));
  MR_ASSIGN_OR_RETURN(Shape shape, GrownBy(in.shape(), paddings));
  if (shape == in.shape()) return ctx.ForwardReshaped(0, 0, shape);
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  if (shape.num_elements() == 0) return absl::OkStatus();
  const DType dtype = in.dtype();
  if (in.num_elements() == 0) {
    FillElements(&ctx, dtype, out->mutable_raw(), value, shape.num_elements());
    return absl::OkStatus();
  }
  const PadLevels levels = MergeLevels(in.shape(), paddings);
  if (levels.size() > 1) {
    if (AreNarrow(levels, dtype)) {
      PadNarrowRows(ctx, levels, in, value, out);
      return absl::OkStatus();
    }
    PadRows(ctx, levels, in, value, out);
    return absl::OkStatus();
  }
  const PadLevel& row = levels[0];
  void* to = out->mutable_raw();
  FillElements(&ctx, dtype, to, value, row.before);
  CopyElements(&ctx, dtype, ElementAt(to, dtype, row.before), in.raw(), row.size);
  FillElements(&ctx, dtype, ElementAt(to, dtype, row.before + row.size), value, row.after);
  return absl::OkStatus();
}

Status Pad(KernelContext& ctx) {
  if (ctx.output_dtype(0) == DType::kString) {
    const TString empty;
    return PadWith(ctx, &empty);
  }
  if (!IsPlain(ctx.output_dtype(0))) return Unimplemented("Pad of ", DTypeName(ctx.output_dtype(0)));
  alignas(16) const char zero[16] = {};
  return PadWith(ctx, zero);
}

Status PadV2(KernelContext& ctx) {
  const Tensor& value = ctx.input(2);
  if (value.rank() != 0) return InvalidArgument("constant_values must be a scalar. Found: ", value.shape().ToString());
  return PadWith(ctx, value.raw());
}

// REFLECT leaves the border element out of the mirror image.
Status ReadMirrorMode(const KernelInit& init, int64_t* skip) {
  MR_ASSIGN_OR_RETURN(std::string mode, init.Attr<std::string>("mode"));
  *skip = mode == "REFLECT" ? 1 : 0;
  return absl::OkStatus();
}

// Visits the border slabs of dimension `d` of a padded tensor of shape `padded`: outer dimensions within their
// interior, inner ones in full. `visit` gets dims for a copy from mirror image to border (dst the border), and the
// first elements.
void VisitMirror(const Shape& interior, const Shape& padded, const Paddings& paddings, int d, int64_t skip,
                 absl::FunctionRef<void(const CopyDims&, int64_t border, int64_t mirrored)> visit) {
  const auto strides = RowMajorStrides(padded);
  CopyDims dims;
  int64_t base = 0;
  for (int e = 0; e < padded.rank(); ++e) {
    const int64_t stride = strides[static_cast<size_t>(e)];
    if (e < d) base += paddings[static_cast<size_t>(e)].before * stride;
    dims.push_back({e < d ? interior.dim(e) : padded.dim(e), stride, stride});
  }
  const int64_t stride = strides[static_cast<size_t>(d)];
  const Padding& p = paddings[static_cast<size_t>(d)];
  const int64_t end = p.before + interior.dim(d);  // one behind the interior
  CopyDim& along = dims[static_cast<size_t>(d)];
  along.src_stride = -stride;
  along.size = p.before;
  if (p.before > 0) visit(dims, base, base + (2 * p.before - 1 + skip) * stride);
  along.size = p.after;
  if (p.after > 0) visit(dims, base + end * stride, base + (end - 1 - skip) * stride);
}

Status CheckMirrorPaddings(const Shape& interior, const Paddings& paddings, int64_t skip) {
  for (int i = 0; i < interior.rank(); ++i) {
    const Padding& p = paddings[static_cast<size_t>(i)];
    const int64_t most = interior.dim(i) - skip;
    if (p.before > std::max<int64_t>(most, 0) || p.after > std::max<int64_t>(most, 0)) {
      return InvalidArgument("paddings must be no greater than ", most, " in dimension ", i, " of size ",
                             interior.dim(i), ", got ", p.before, " and ", p.after);
    }
  }
  return absl::OkStatus();
}

// The dims of a copy between a dense tensor of shape `interior` and the middle of a padded one; *first is where in the
// padded one it begins.
CopyDims InteriorDims(const Shape& interior, const Shape& padded, const Paddings& paddings, bool to_padded,
                      int64_t* first) {
  const auto outer = RowMajorStrides(padded);
  const auto dense = RowMajorStrides(interior);
  CopyDims dims;
  *first = 0;
  for (int i = 0; i < interior.rank(); ++i) {
    const auto k = static_cast<size_t>(i);
    dims.push_back({interior.dim(i), to_padded ? outer[k] : dense[k], to_padded ? dense[k] : outer[k]});
    *first += paddings[k].before * outer[k];
  }
  return dims;
}

class MirrorPadKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override { return ReadMirrorMode(init, &skip_); }
  Status Compute(KernelContext& ctx) override {
    const Tensor& in = ctx.input(0);
    MR_ASSIGN_OR_RETURN(Paddings paddings, ReadPaddings(ctx.input(1), in.rank()));
    MR_RETURN_IF_ERROR(CheckMirrorPaddings(in.shape(), paddings, skip_));
    MR_ASSIGN_OR_RETURN(Shape shape, GrownBy(in.shape(), paddings));
    if (shape == in.shape()) return ctx.ForwardReshaped(0, 0, shape);
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    if (shape.num_elements() == 0 || in.num_elements() == 0) return absl::OkStatus();
    int64_t first;
    const CopyDims dims = InteriorDims(in.shape(), shape, paddings, true, &first);
    void* to = out->mutable_raw();
    StridedCopy(&ctx, in.dtype(), ElementAt(to, in.dtype(), first), in.raw(), dims);
    for (int d = in.rank() - 1; d >= 0; --d) {
      VisitMirror(in.shape(), shape, paddings, d, skip_, [&](const CopyDims& slab, int64_t border, int64_t mirrored) {
        StridedCopy(&ctx, in.dtype(), ElementAt(to, in.dtype(), border), ElementAt(to, in.dtype(), mirrored), slab);
      });
    }
    return absl::OkStatus();
  }

 private:
  int64_t skip_ = 0;
};

// from[i] is added to into[i] over a loop nest whose strides are dst (from) and src (into); the innermost dimension is
// added as a run when both sides are dense there.
void AddNest(const InPlaceOp& add, DType dtype, void* base, int64_t from, int64_t into, const CopyDims& dims,
             size_t depth) {
  const CopyDim& d = dims[depth];
  if (depth + 1 == dims.size()) {
    if (d.dst_stride == 1 && d.src_stride == 1)
      return add(ElementAt(base, dtype, into), ElementAt(base, dtype, from), d.size);
    for (int64_t i = 0; i < d.size; ++i) {
      add(ElementAt(base, dtype, into + i * d.src_stride), ElementAt(base, dtype, from + i * d.dst_stride), 1);
    }
    return;
  }
  for (int64_t i = 0; i < d.size; ++i) {
    AddNest(add, dtype, base, from + i * d.dst_stride, into + i * d.src_stride, dims, depth + 1);
  }
}

class MirrorPadGradKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override { return ReadMirrorMode(init, &skip_); }
  Status Compute(KernelContext& ctx) override {
    const Tensor& in = ctx.input(0);
    const InPlaceOp add("Add", in.dtype());
    if (!add) return Unimplemented("MirrorPadGrad of ", DTypeName(in.dtype()));
    MR_ASSIGN_OR_RETURN(Paddings paddings, ReadPaddings(ctx.input(1), in.rank()));
    Ints sizes;
    for (int i = 0; i < in.rank(); ++i) {
      const Padding& p = paddings[static_cast<size_t>(i)];
      if (p.before > in.dim(i) || p.after > in.dim(i) - p.before) {
        return InvalidArgument(
            "paddings ", p.before, " and ", p.after, " do not fit dimension ", i, " of size ", in.dim(i));
      }
      sizes.push_back(in.dim(i) - p.before - p.after);
    }
    MR_ASSIGN_OR_RETURN(Shape shape, Shape::Make(absl::MakeConstSpan(sizes)));
    MR_RETURN_IF_ERROR(CheckMirrorPaddings(shape, paddings, skip_));
    if (shape == in.shape()) return ctx.ForwardReshaped(0, 0, shape);
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    if (shape.num_elements() == 0) return absl::OkStatus();
    MR_ASSIGN_OR_RETURN(Tensor folded, in.Clone(ctx.device().allocator()));
    for (int d = 0; d < in.rank(); ++d) {
      VisitMirror(shape, in.shape(), paddings, d, skip_, [&](const CopyDims& slab, int64_t border, int64_t mirrored) {
        AddNest(add, in.dtype(), folded.mutable_raw(), border, mirrored, slab, 0);
      });
    }
    int64_t first;
    const CopyDims dims = InteriorDims(shape, in.shape(), paddings, false, &first);
    StridedCopy(&ctx, in.dtype(), out->mutable_raw(), ElementAt(folded.raw(), in.dtype(), first), dims);
    return absl::OkStatus();
  }

 private:
  int64_t skip_ = 0;
};

StatusOr<Ints> ReadMultiples(const KernelContext& ctx) {
  const int rank = ctx.input(0).rank();
  if (ctx.input(1).rank() != 1) {
    return InvalidArgument("Expected multiples to be 1-D, but got shape ", ctx.input(1).shape().ToString());
  }
  MR_ASSIGN_OR_RETURN(Ints multiples, IntVectorOf(ctx.input(1), "multiples"));
  if (multiples.size() != static_cast<size_t>(rank)) {
    return InvalidArgument(
        "Expected multiples argument to be a vector of length ", rank, " but got length ", multiples.size());
  }
  for (int64_t m : multiples) {
    if (m < 0) return InvalidArgument("Expected multiples >= 0, but got ", m);
  }
  return multiples;
}

Status Tile(KernelContext& ctx) {
  const Tensor& in = ctx.input(0);
  MR_ASSIGN_OR_RETURN(Ints multiples, ReadMultiples(ctx));
  Ints sizes;
  for (int i = 0; i < in.rank(); ++i) {
    int64_t size;
    if (!CheckedMul(in.dim(i), multiples[static_cast<size_t>(i)], &size)) {
      return InvalidArgument("multiples[", i, "] overflows dimension ", in.dim(i));
    }
    sizes.push_back(size);
  }
  MR_ASSIGN_OR_RETURN(Shape shape, Shape::Make(absl::MakeConstSpan(sizes)));
  if (shape == in.shape()) return ctx.ForwardReshaped(0, 0, shape);
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  if (shape.num_elements() == 0) return absl::OkStatus();
  const auto from = RowMajorStrides(in.shape());
  const auto to = RowMajorStrides(shape);
  CopyDims dims;
  for (int i = 0; i < in.rank(); ++i) {
    const auto k = static_cast<size_t>(i);
    dims.push_back({multiples[k], in.dim(i) * to[k], 0});
    dims.push_back({in.dim(i), to[k], from[k]});
  }
  StridedCopy(&ctx, in.dtype(), out->mutable_raw(), in.raw(), dims);
  return absl::OkStatus();
}

// Input rows are added, one repetition after the other, to the output row that they repeat.
Status TileGrad(KernelContext& ctx) {
  const Tensor& in = ctx.input(0);
  const InPlaceOp add("Add", in.dtype());
  if (!add) return Unimplemented("TileGrad of ", DTypeName(in.dtype()));
  MR_ASSIGN_OR_RETURN(Ints multiples, ReadMultiples(ctx));
  Ints sizes;
  for (int i = 0; i < in.rank(); ++i) {
    const int64_t m = multiples[static_cast<size_t>(i)];
    if (m == 0 || in.dim(i) % m != 0)
      return InvalidArgument("multiples[", i, "] = ", m, " does not divide ", in.dim(i));
    sizes.push_back(in.dim(i) / m);
  }
  MR_ASSIGN_OR_RETURN(Shape shape, Shape::Make(absl::MakeConstSpan(sizes)));
  if (shape == in.shape()) return ctx.ForwardReshaped(0, 0, shape);
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  FillElements(&ctx, DType::kUInt8, out->mutable_raw(), "", static_cast<int64_t>(out->TotalBytes()));
  if (shape.num_elements() == 0) return absl::OkStatus();
  const auto to = RowMajorStrides(shape);
  const int last = in.rank() - 1;
  const int64_t run = shape.dim(last);
  const int64_t runs = in.num_elements() / run;
  const DType dtype = in.dtype();
  for (int64_t r = 0; r < runs; ++r) {
    int64_t rest = r / multiples[static_cast<size_t>(last)], at = 0;
    for (int d = last - 1; d >= 0; --d) {
      at += rest % in.dim(d) % shape.dim(d) * to[static_cast<size_t>(d)];
      rest /= in.dim(d);
    }
    add(ElementAt(out->mutable_raw(), dtype, at), ElementAt(in.raw(), dtype, r * run), run);
  }
  return absl::OkStatus();
}

}  // namespace

void RegisterArrayPadKernels(KernelRegistry& r) {
  r.AddFn({.op = "Pad"}, Pad);
  r.AddFn({.op = "PadV2"}, PadV2);
  r.Add<MirrorPadKernel>({.op = "MirrorPad"});
  r.Add<MirrorPadGradKernel>({.op = "MirrorPadGrad", .types = {{"T", Types("REAL|CPX")}}});
  r.AddFn({.op = "Tile"}, Tile);
  r.AddFn({.op = "TileGrad", .types = {{"T", Types("REAL|CPX")}}}, TileGrad);
}

}  // namespace millrace
