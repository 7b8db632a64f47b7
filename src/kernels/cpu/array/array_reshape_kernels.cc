// SPDX-License-Identifier: Apache-2.0
// CPU kernels: other shapes (by sharing the buffer) and other orders of the same elements.
#include <algorithm>
#include <complex>

#include "absl/algorithm/container.h"
#include "absl/strings/str_join.h"
#include "base/checked.h"
#include "kernels/cpu/any_device.h"
#include "kernels/cpu/array/array_kernels.h"
#include "kernels/cpu/engine/strided_copy.h"

namespace millrace {
namespace {

// What a size of -1 stands for. Next to a size of 0 the dimensions of 0 are left out on both sides, so that [0,3] seen
// as [0,-1] stays [0,3]; whether the counts agree is checked on the result.
Status InferSize(const Shape& in, absl::Span<const int64_t> sizes, int64_t* open) {
  int64_t known = 1, count = 1;
  bool zero = false;
  for (int64_t s : sizes) {
    if (s == 0) zero = true;
    if (s > 0 && !CheckedMul(known, s, &known)) return InvalidArgument("the sizes of shape overflow");
  }
  for (int64_t d : in.dims()) {
    if (d == 0 && zero) continue;
    if (!CheckedMul(count, d, &count)) return InvalidArgument("the size in place of -1 overflows");
  }
  *open = count / known;
  return absl::OkStatus();
}

Status Reshape(KernelContext& ctx) {
  const Tensor& in = ctx.input(0);
  if (ctx.input(1).rank() != 1) {
    return InvalidArgument("sizes input must be 1-D, not shape ", ctx.input(1).shape().ToString());
  }
  MR_ASSIGN_OR_RETURN(Ints sizes, IntVectorOf(ctx.input(1), "shape"));
  int64_t* open = nullptr;
  for (int64_t& s : sizes) {
    if (s < -1) return InvalidArgument("Size ", s, " must be non-negative");
    if (s != -1) continue;
    if (open != nullptr) return InvalidArgument("Only one input size may be -1");
    open = &s;
  }
  if (open != nullptr) MR_RETURN_IF_ERROR(InferSize(in.shape(), sizes, open));
  MR_ASSIGN_OR_RETURN(Shape shape, Shape::Make(absl::MakeConstSpan(sizes)));
  if (shape.num_elements() != in.num_elements()) {
    return InvalidArgument("Input to reshape is a tensor with ", in.num_elements(),
                           " values, but the requested shape has ", shape.num_elements(), ": ", shape.ToString());
  }
  return ctx.ForwardReshaped(0, 0, shape);
}

Status ExpandDims(KernelContext& ctx) {
  const Tensor& in = ctx.input(0);
  MR_ASSIGN_OR_RETURN(int64_t dim, IntScalarOf(ctx.input(1), "dim"));
  int64_t at;
  if (!NormalizeIndex(dim, in.rank() + 1, &at)) {
    return InvalidArgument("Tried to expand dim index ", dim, " for tensor with ", in.rank(), " dimensions.");
  }
  MR_ASSIGN_OR_RETURN(Shape shape, in.shape().WithInserted(static_cast<int>(at), 1));
  return ctx.ForwardReshaped(0, 0, shape);
}

class SqueezeKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(axes_, init.Attr<std::vector<int64_t>>("squeeze_dims"));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    const Shape& in = ctx.input(0).shape();
    absl::InlinedVector<bool, 8> drop(static_cast<size_t>(in.rank()), false);
    for (int64_t axis : axes_) {
      int64_t at;
      if (!NormalizeIndex(axis, in.rank(), &at)) {
        return InvalidArgument("Tried to squeeze dim index ", axis, " for tensor with ", in.rank(), " dimensions.");
      }
      if (in.dim(static_cast<int>(at)) != 1) {
        return InvalidArgument(
            "Tried to explicitly squeeze dimension ", at, " but dimension was not 1: ", in.dim(static_cast<int>(at)));
      }
      drop[static_cast<size_t>(at)] = true;
    }
    Ints dims;
    for (int i = 0; i < in.rank(); ++i) {
      if (axes_.empty() ? in.dim(i) != 1 : !drop[static_cast<size_t>(i)]) dims.push_back(in.dim(i));
    }
    MR_ASSIGN_OR_RETURN(Shape shape, Shape::Make(absl::MakeConstSpan(dims)));
    return ctx.ForwardReshaped(0, 0, shape);
  }
  bool IsExpensive() const override { return false; }

 private:
  std::vector<int64_t> axes_;
};

// Input 1 as a permutation of the dimensions of input 0, and the shape that follows.
struct Permutation {
  Ints perm;
  Shape shape;
  bool keeps_order = true;  // dimensions larger than 1 stay in order, so no element moves
};
// The error of a perm that has one dimension twice, and so lacks another.
Status MissingFrom(const Ints& perm, int rank) {
  int64_t missing = 0;
  while (missing < rank && absl::c_linear_search(perm, missing)) ++missing;
  return InvalidArgument(missing, " is missing from {", absl::StrJoin(perm, ","), "}.");
}

StatusOr<Permutation> ReadPermutation(const KernelContext& ctx) {
  const Shape& in = ctx.input(0).shape();
  Permutation p;
  MR_ASSIGN_OR_RETURN(p.perm, IntVectorOf(ctx.input(1), "perm"));
  if (p.perm.size() != static_cast<size_t>(in.rank())) {
    return InvalidArgument(
        "transpose expects a vector of size ", in.rank(), ". But perm is a vector of size ", p.perm.size());
  }
  absl::InlinedVector<bool, 8> seen(p.perm.size(), false);
  Ints dims;
  int64_t last = -1;
  for (int64_t& from : p.perm) {
    if (!NormalizeIndex(from, in.rank(), &from)) {
      return InvalidArgument(from, " is out of range [", -in.rank(), " .. ", in.rank(), ")");
    }
    if (seen[static_cast<size_t>(from)]) return MissingFrom(p.perm, in.rank());
    seen[static_cast<size_t>(from)] = true;
    dims.push_back(in.dim(static_cast<int>(from)));
    if (dims.back() == 1) continue;
    p.keeps_order = p.keeps_order && from > last;
    last = from;
  }
  MR_ASSIGN_OR_RETURN(p.shape, Shape::Make(absl::MakeConstSpan(dims)));
  return p;
}

Status Transpose(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(Permutation p, ReadPermutation(ctx));
  if (p.keeps_order) return ctx.ForwardReshaped(0, 0, p.shape);
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, p.shape));
  TransposeInto(&ctx, ctx.input(0), p.perm, out);
  return absl::OkStatus();
}

// Flips the sign of every second real number.
template <typename Real>
void Conjugate(const KernelContext& ctx, Tensor* t) {
  Real* p = static_cast<Real*>(t->mutable_raw());
  ctx.ParallelFor(t->num_elements(), 0.5, [p](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) p[2 * i + 1] = -p[2 * i + 1];
  });
}

Status ConjugateTranspose(KernelContext& ctx) {
  if (!IsComplex(ctx.output_dtype(0))) return Transpose(ctx);
  MR_ASSIGN_OR_RETURN(Permutation p, ReadPermutation(ctx));
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, p.shape));
  TransposeInto(&ctx, ctx.input(0), p.perm, out);
  if (out->dtype() == DType::kComplex64) {
    Conjugate<float>(ctx, out);
  } else {
    Conjugate<double>(ctx, out);
  }
  return absl::OkStatus();
}

Status ReverseAlong(KernelContext& ctx, const absl::InlinedVector<bool, 8>& reverse) {
  const Tensor& in = ctx.input(0);
  bool moves = false;
  for (int i = 0; i < in.rank(); ++i) moves = moves || (reverse[static_cast<size_t>(i)] && in.dim(i) > 1);
  if (!moves || in.num_elements() == 0) return ctx.ForwardReshaped(0, 0, in.shape());
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.shape()));
  const auto strides = RowMajorStrides(in.shape());
  CopyDims dims;
  int64_t first = 0;
  for (int i = 0; i < in.rank(); ++i) {
    const int64_t stride = strides[static_cast<size_t>(i)];
    const bool flip = reverse[static_cast<size_t>(i)];
    dims.push_back({in.dim(i), stride, flip ? -stride : stride});
    if (flip) first += (in.dim(i) - 1) * stride;
  }
  StridedCopy(&ctx, in.dtype(), out->mutable_raw(), ElementAt(in.raw(), in.dtype(), first), dims);
  return absl::OkStatus();
}

Status Reverse(KernelContext& ctx) {
  const Tensor& flags = ctx.input(1);
  const int rank = ctx.input(0).rank();
  if (rank == 0) return ctx.ForwardReshaped(0, 0, Shape());  // whatever the flags say, as in TensorFlow
  if (flags.rank() != 1 || flags.num_elements() != rank) {
    return InvalidArgument("dims must be a vector of ", rank, " flags, got shape ", flags.shape().ToString());
  }
  const auto all = flags.flat<bool>();
  return ReverseAlong(ctx, absl::InlinedVector<bool, 8>(all.begin(), all.end()));
}

Status ReverseV2(KernelContext& ctx) {
  const int rank = ctx.input(0).rank();
  if (rank == 0) return ctx.ForwardReshaped(0, 0, Shape());
  MR_ASSIGN_OR_RETURN(Ints axes, IntVectorOf(ctx.input(1), "axis"));
  absl::InlinedVector<bool, 8> reverse(static_cast<size_t>(rank), false);
  for (int64_t axis : axes) {
    int64_t at;
    if (!NormalizeIndex(axis, rank, &at)) {
      return InvalidArgument("axis ", axis, " is out of valid range [", -rank, ", ", rank - 1, "]");
    }
    if (reverse[static_cast<size_t>(at)]) return InvalidArgument("axis ", at, " specified more than once.");
    reverse[static_cast<size_t>(at)] = true;
  }
  return ReverseAlong(ctx, reverse);
}

// Total shift of every dimension, in [0, size).
StatusOr<Ints> ReadShifts(const KernelContext& ctx) {
  const Shape& in = ctx.input(0).shape();
  const Tensor& shift = ctx.input(1);
  const Tensor& axis = ctx.input(2);
  if (in.rank() < 1) return InvalidArgument("input must be 1-D or higher");
  if (shift.rank() > 1)
    return InvalidArgument("shift must be a scalar or a 1-D vector. Found: ", shift.shape().ToString());
  if (axis.rank() > 1)
    return InvalidArgument("axis must be a scalar or a 1-D vector. Found: ", axis.shape().ToString());
  if (!(shift.shape() == axis.shape())) return InvalidArgument("shift and axis must have the same size");
  MR_ASSIGN_OR_RETURN(Tensor shift_vector, shift.Reshaped(Shape::Vector(shift.num_elements())));
  MR_ASSIGN_OR_RETURN(Tensor axis_vector, axis.Reshaped(Shape::Vector(axis.num_elements())));
  MR_ASSIGN_OR_RETURN(Ints shifts, IntVectorOf(shift_vector, "shift"));
  MR_ASSIGN_OR_RETURN(Ints axes, IntVectorOf(axis_vector, "axis"));
  Ints total(static_cast<size_t>(in.rank()), 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    int64_t at;
    if (!NormalizeIndex(axes[i], in.rank(), &at)) return InvalidArgument("axis ", axes[i], " is out of range");
    const int64_t size = std::max<int64_t>(in.dim(static_cast<int>(at)), 1);
    int64_t& t = total[static_cast<size_t>(at)];
    t = (t + (shifts[i] % size + size) % size) % size;  // each summand is below size
  }
  return total;
}

// Rows begin at the last dimension that rolls: each is written as two runs, at the place to which its outer index
// rolls.
Status Roll(KernelContext& ctx) {
  const Tensor& in = ctx.input(0);
  MR_ASSIGN_OR_RETURN(Ints shifts, ReadShifts(ctx));
  int last = in.rank() - 1;
  while (last >= 0 && shifts[static_cast<size_t>(last)] == 0) --last;
  if (last < 0 || in.num_elements() == 0) return ctx.ForwardReshaped(0, 0, in.shape());
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.shape()));
  const auto strides = RowMajorStrides(in.shape());
  const int64_t inner = strides[static_cast<size_t>(last)];
  const int64_t row = in.dim(last) * inner;
  const int64_t tail = shifts[static_cast<size_t>(last)] * inner;  // comes to the front
  const DType dtype = in.dtype();
  const auto copy = RunFunctions(dtype).copy;
  char* dst = static_cast<char*>(out->mutable_raw());
  const double cost = static_cast<double>(row) * static_cast<double>(DTypeSize(dtype)) * 0.1 + 5.0 * last;
  ctx.ParallelFor(in.num_elements() / row, cost, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      int64_t rest = r, to = 0;
      for (int d = last - 1; d >= 0; --d) {
        const int64_t size = in.dim(d);
        int64_t index = rest % size + shifts[static_cast<size_t>(d)];
        if (index >= size) index -= size;
        to += index * strides[static_cast<size_t>(d)];
        rest /= size;
      }
      const void* from = ElementAt(in.raw(), dtype, r * row);
      copy(ElementAt(dst, dtype, to + tail), from, row - tail);
      copy(ElementAt(dst, dtype, to), ElementAt(from, dtype, row - tail), tail);
    }
  });
  return absl::OkStatus();
}

}  // namespace

void AddReshapeKernels(AnyDeviceKernels& r) {
  r.AddCheap("Reshape", {"shape"}, Reshape);
  r.AddCheap("ExpandDims", {"dim"}, ExpandDims);
  r.Add<SqueezeKernel>("Squeeze");
}

void RegisterArrayReshapeKernels(KernelRegistry& r) {
  r.AddFn({.op = "Transpose"}, Transpose);
  r.AddFn({.op = "ConjugateTranspose"}, ConjugateTranspose);
  r.AddFn({.op = "Reverse"}, Reverse);
  r.AddFn({.op = "ReverseV2"}, ReverseV2);
  r.AddFn({.op = "Roll"}, Roll);
}

}  // namespace millrace
