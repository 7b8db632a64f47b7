// SPDX-License-Identifier: Apache-2.0
// CPU kernels: sparse tensors joined, taken apart and reshaped.
#include <algorithm>
#include <limits>

#include "absl/strings/str_join.h"
#include "base/checked.h"
#include "kernels/cpu/engine/index_arithmetic.h"
#include "kernels/cpu/engine/index_deal.h"
#include "kernels/cpu/engine/index_rows.h"
#include "kernels/cpu/sparse/sparse.h"

namespace millrace {
namespace {

class ConcatKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(axis_, init.Attr<int64_t>("concat_dim"));
    return absl::OkStatus();
  }

  Status Compute(KernelContext& ctx) override {
    const int count = ctx.num_inputs() / 3;
    std::vector<SparseArg> parts;
    for (int i = 0; i < count; ++i) {
      MR_ASSIGN_OR_RETURN(const SparseArg part, SparseArgOf(ctx, i, count + i, 2 * count + i, "an input"));
      parts.push_back(part);
    }
    const int64_t rank = parts[0].rank;
    int64_t axis = 0;
    if (!NormalizeIndex(axis_, rank, &axis)) {
      return InvalidArgument("Concat dimension must be in range [", -rank, ", ", rank, "), got ", axis_);
    }
    std::vector<int64_t> dims(parts[0].dims(), parts[0].dims() + rank);
    std::vector<int64_t> offsets;
    int64_t n = 0;
    dims[static_cast<size_t>(axis)] = 0;
    for (const SparseArg& part : parts) {
      MR_RETURN_IF_ERROR(CheckFits(part, dims, axis));
      offsets.push_back(dims[static_cast<size_t>(axis)]);
      int64_t& length = dims[static_cast<size_t>(axis)];
      if (!CheckedAdd(length, part.dims()[axis], &length)) return InvalidArgument("the joined dimension overflows");
      n += part.n;
    }
    MR_RETURN_IF_ERROR(Shape::Make(dims).status());
    MR_RETURN_IF_ERROR(SetVector(ctx, 2, dims));
    return Join(ctx, parts, offsets, axis, n);
  }

 private:
  static Status CheckFits(const SparseArg& part, const std::vector<int64_t>& dims, int64_t axis) {
    const int64_t rank = static_cast<int64_t>(dims.size());
    if (part.rank != rank) return InvalidArgument("Ranks of all inputs must match: ", rank, " and ", part.rank);
    MR_RETURN_IF_ERROR(DenseShapeOf(part).status());
    for (int64_t d = 0; d < rank; ++d) {
      if (d != axis && part.dims()[d] != dims[static_cast<size_t>(d)]) {
        return InvalidArgument("Input shapes must match but along the joined dimension: dimension ", d, " is ",
                               dims[static_cast<size_t>(d)], " and ", part.dims()[d]);
      }
    }
    return CheckInside(part, "indices");
  }

  static Status Join(KernelContext& ctx, const std::vector<SparseArg>& parts, const std::vector<int64_t>& offsets,
                     int64_t axis, int64_t n) {
    const int64_t rank = parts[0].rank;
    MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({n, rank}));
    MR_ASSIGN_OR_RETURN(Tensor moved, ctx.AllocateTemp(DType::kInt64, shape));
    MR_ASSIGN_OR_RETURN(Tensor joined, ctx.AllocateTemp(parts[0].values->dtype(), Shape::Vector(n)));
    int64_t* to = moved.mutable_data<int64_t>();
    int64_t at = 0;
    for (size_t p = 0; p < parts.size(); ++p) {
      const SparseArg& part = parts[p];
      if (part.n == 0) continue;
      for (int64_t i = 0; i < part.n; ++i, to += rank) {
        std::copy(part.at(i), part.at(i) + rank, to);
        to[axis] += offsets[p];
      }
      RunCopier(joined.dtype(), part.n).CopyOne(joined.mutable_raw(), at, part.values->raw(), 0);
      at += part.n;
    }
    const SparseArg all{.values = &joined, .shape = parts[0].shape, .indices = &moved, .n = n, .rank = rank};
    const std::vector<int64_t> order = RowMajorOrder(all, rank);
    MR_ASSIGN_OR_RETURN(Tensor * indices, ctx.AllocateOutput(0, shape));
    int64_t* out = indices->mutable_data<int64_t>();
    for (const int64_t i : order) out = std::copy(all.at(i), all.at(i) + rank, out);
    return GatherValues(ctx, 1, joined, order);
  }

  int64_t axis_ = 0;
};

// new_shape with its -1, if there is one, made what it must be.
StatusOr<std::vector<int64_t>> FullShape(const Tensor& from, const Tensor& wanted, int64_t elements) {
  std::vector<int64_t> dims(wanted.data<int64_t>(), wanted.data<int64_t>() + wanted.num_elements());
  int64_t known = 1;
  int64_t* unknown = nullptr;
  for (int64_t& d : dims) {
    if (d == -1) {
      if (unknown != nullptr) {
        return InvalidArgument(
            "only one output dimension may be -1, not both ", unknown - dims.data(), " and ", &d - dims.data());
      }
      unknown = &d;
      continue;
    }
    if (d < 0) return InvalidArgument("a dimension must not be negative, got ", d);
    if (!CheckedMul(known, d, &known)) return InvalidArgument("the number of elements of the new shape overflows");
  }
  if (unknown != nullptr) {
    if (known == 0) {
      return InvalidArgument("reshape cannot infer the missing size unless all the sizes given are non-zero");
    }
    *unknown = elements / known;
    known *= *unknown;
  }
  if (known != elements) {
    const auto listed = [](const int64_t* d, int64_t n) {
      return absl::StrCat("[", absl::StrJoin(absl::MakeConstSpan(d, static_cast<size_t>(n)), ","), "]");
    };
    return InvalidArgument(
        "Input to reshape is a ", unknown != nullptr ? "SparseTensor" : "tensor", " with ", elements,
        " dense values, but the requested shape ", unknown != nullptr ? "requires a multiple of " : "has ",
        unknown != nullptr ? known / std::max<int64_t>(*unknown, 1) : known,
        ". input_shape=", listed(from.data<int64_t>(), from.num_elements()),
        " output_shape=", listed(dims.data(), static_cast<int64_t>(dims.size())));
  }
  return dims;
}

Status Reshape(KernelContext& ctx) {
  const Tensor &indices = ctx.input(0), &shape = ctx.input(1), &wanted = ctx.input(2);
  if (indices.rank() != 2 || shape.rank() != 1 || wanted.rank() != 1 || indices.dim(1) != shape.dim(0)) {
    return InvalidArgument("needs indices [n, rank], a shape [rank] and a new shape, got ", indices.shape().ToString(),
                           ", ", shape.shape().ToString(), " and ", wanted.shape().ToString());
  }
  const SparseArg from{.shape = &shape, .indices = &indices, .n = indices.dim(0), .rank = indices.dim(1)};
  MR_ASSIGN_OR_RETURN(const Shape dense, DenseShapeOf(from));
  MR_ASSIGN_OR_RETURN(const std::vector<int64_t> dims, FullShape(shape, wanted, dense.num_elements()));
  if (from.n > 0 && dense.num_elements() == 0) {
    return InvalidArgument("a tensor of shape ", dense.ToString(), " has no elements, got ", from.n);
  }
  MR_RETURN_IF_ERROR(SetVector(ctx, 1, dims));
  if (std::equal(dims.begin(), dims.end(), dense.dims().begin(), dense.dims().end())) {
    ctx.Forward(0, 0);
    return absl::OkStatus();
  }
  const int64_t rank = static_cast<int64_t>(dims.size());
  MR_ASSIGN_OR_RETURN(const Shape made, Shape::Make({from.n, rank}));
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, made));
  // An index outside of the shape is another one's in row-major order, as in TensorFlow.
  const bool narrow = dense.num_elements() <= std::numeric_limits<uint32_t>::max() && CheckInside(from, "").ok();
  const auto convert = [&]<typename U>(U, int64_t begin, int64_t end) {
    const std::vector<U> old_dims(from.dims(), from.dims() + from.rank), new_dims(dims.begin(), dims.end());
    const int64_t* at = from.at(begin);
    int64_t* to = out->mutable_data<int64_t>() + begin * rank;
    for (int64_t i = begin; i < end; ++i, at += from.rank, to += rank) {
      U flat = 0;
      for (size_t d = 0; d < old_dims.size(); ++d) flat = flat * old_dims[d] + static_cast<U>(at[d]);
      for (size_t d = new_dims.size() - 1; d > 0; --d) {
        const U rest = flat / new_dims[d];  // not by 0: there is an element
        to[d] = static_cast<int64_t>(flat - rest * new_dims[d]);
        flat = rest;
      }
      to[0] = static_cast<int64_t>(flat);
    }
  };
  if (rank == 0) return absl::OkStatus();
  ctx.ParallelFor(from.n, 3.0 * static_cast<double>(rank), [&](int64_t begin, int64_t end) {
    narrow ? convert(uint32_t{}, begin, end) : convert(uint64_t{}, begin, end);
  });
  return absl::OkStatus();
}

Status Slice(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const SparseArg s, SparseArgOf(ctx, 0, "the input"));
  MR_RETURN_IF_ERROR(DenseShapeOf(s).status());
  for (int i = 3; i <= 4; ++i) {
    if (ctx.input(i).rank() != 1 || ctx.input(i).dim(0) != s.rank) {
      return InvalidArgument(
          "start and size must be as long as the shape, ", s.rank, ", got ", ctx.input(i).shape().ToString());
    }
  }
  const int64_t *start = ctx.input(3).data<int64_t>(), *size = ctx.input(4).data<int64_t>();
  std::vector<int64_t> dims, ends;
  for (int64_t d = 0; d < s.rank; ++d) {
    if (size[d] < 0) return InvalidArgument("Expected a non-negative size, got ", size[d]);
    // Where start is below 0, as where the tensor ends, the block is cut by what comes.
    int64_t end = 0, left = 0;
    if (!CheckedAdd(start[d], size[d], &end)) end = start[d] < 0 ? start[d] : s.dims()[d];
    if (!CheckedSub(s.dims()[d], start[d], &left)) left = size[d];
    ends.push_back(end);
    dims.push_back(std::max(int64_t{0}, std::min(size[d], left)));
  }
  std::vector<int64_t> kept;
  for (int64_t i = 0; i < s.n; ++i) {
    bool inside = true;
    for (int64_t d = 0; inside && d < s.rank; ++d) {
      inside = s.at(i)[d] >= start[d] && s.at(i)[d] < ends[static_cast<size_t>(d)];
    }
    if (inside) kept.push_back(i);
  }
  MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({static_cast<int64_t>(kept.size()), s.rank}));
  MR_ASSIGN_OR_RETURN(Tensor * indices, ctx.AllocateOutput(0, shape));
  int64_t* to = indices->mutable_data<int64_t>();
  for (const int64_t i : kept) {
    for (int64_t d = 0; d < s.rank; ++d) *to++ = s.at(i)[d] - start[d];  // in [0, size)
  }
  MR_RETURN_IF_ERROR(SetVector(ctx, 2, dims));
  return GatherValues(ctx, 1, *s.values, kept);
}

Status SliceGrad(KernelContext& ctx) {
  const Tensor &grad = ctx.input(0), &input = ctx.input(1), &start = ctx.input(2), &output = ctx.input(3);
  if (grad.rank() != 1 || input.rank() != 2 || start.rank() != 1 || output.rank() != 2 ||
      input.dim(1) != output.dim(1) || start.dim(0) != input.dim(1) || grad.dim(0) != output.dim(0)) {
    return InvalidArgument(
        "needs gradients [m], indices [n, rank], a start [rank] and indices [m, rank], got ", grad.shape().ToString(),
        ", ", input.shape().ToString(), ", ", start.shape().ToString(), " and ", output.shape().ToString());
  }
  const int64_t n = input.dim(0), m = output.dim(0), rank = input.dim(1);
  const int64_t *from = input.data<int64_t>(), *to = output.data<int64_t>(), *begin = start.data<int64_t>();
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape::Vector(n)));
  int64_t j = 0;
  const bool known = VisitNumberTypes(out->dtype(), [&]<typename T>() {
    const T* const grads = grad.data<T>();
    T* const all = out->mutable_data<T>();
    int64_t i = 0;
    for (; i < n && j < m; ++i, from += rank) {
      bool same = true;
      for (int64_t d = 0; same && d < rank; ++d) {  // no sum that overflows is undefined
        same = static_cast<uint64_t>(to[d]) + static_cast<uint64_t>(begin[d]) == static_cast<uint64_t>(from[d]);
      }
      all[i] = same ? grads[j] : T();
      j += same;
      to += same ? rank : 0;
    }
    std::fill(all + i, all + n, T());
  });
  if (!known) return Unimplemented("no gradient of ", DTypeName(out->dtype()));
  if (j != m) return Internal("Elements of backprop_val_grad aren't all propagated: ", j, " of ", m);
  return absl::OkStatus();
}

Status Split(KernelContext& ctx) {
  MR_RETURN_IF_ERROR(RequireScalar("split_dim", ctx.input(0)));
  MR_ASSIGN_OR_RETURN(const SparseArg s, SparseArgOf(ctx, 1, "the input"));
  MR_RETURN_IF_ERROR(DenseShapeOf(s).status());
  int64_t axis = 0;
  if (!NormalizeIndex(*ctx.input(0).data<int64_t>(), s.rank, &axis)) {
    return InvalidArgument("split_dim must be in [", -s.rank, ", ", s.rank, "), got ", *ctx.input(0).data<int64_t>());
  }
  const int64_t count = ctx.num_outputs() / 3, length = s.dims()[axis];
  if (count > length) {
    return InvalidArgument("num_split must be at most the size of dimension ", axis, ", ", length, ", got ", count);
  }
  MR_RETURN_IF_ERROR(CheckInside(s, "indices"));
  const int64_t least = length / count, longer = length % count;
  const auto begin_of = [&](int64_t part) { return part * least + std::min(part, longer); };
  const int64_t border = longer * (least + 1), rank = s.rank;
  const auto part_at = [=](int64_t v) { return v < border ? v / (least + 1) : longer + (v - border) / least; };
  std::vector<int32_t> known;  // of each place along the axis, where they are few beside the elements
  if (length <= s.n) {
    for (int64_t v = 0; v < length; ++v) known.push_back(static_cast<int32_t>(part_at(v)));
  }
  Deal deal(ctx, s.n, count, 2.0, [&](int64_t i) {
    const int64_t v = s.at(i)[axis];
    return known.empty() ? part_at(v) : int64_t{known[static_cast<size_t>(v)]};
  });
  std::vector<int64_t*> indices;
  std::vector<void*> values;
  const int parts = static_cast<int>(count);
  for (int p = 0; p < parts; ++p) {
    MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({deal.size(p), rank}));
    MR_ASSIGN_OR_RETURN(Tensor * own_indices, ctx.AllocateOutput(p, shape));
    MR_ASSIGN_OR_RETURN(Tensor * own_values, ctx.AllocateOutput(parts + p, Shape::Vector(deal.size(p))));
    indices.push_back(own_indices->mutable_data<int64_t>());
    values.push_back(own_values->mutable_raw());
    std::vector<int64_t> dims(s.dims(), s.dims() + rank);
    dims[static_cast<size_t>(axis)] = least + (p < longer ? 1 : 0);
    MR_RETURN_IF_ERROR(SetVector(ctx, 2 * parts + p, dims));
  }
  const RunCopier copier(s.values->dtype(), 1);
  deal.Run(ctx, copier.cost() + static_cast<double>(rank), [&](int64_t i, int64_t part, int64_t place) {
    const int64_t* const from = s.at(i);
    int64_t* const to = indices[static_cast<size_t>(part)] + place * rank;
    for (int64_t d = 0; d < rank; ++d) to[d] = from[d];
    to[axis] -= begin_of(part);
    copier.CopyOne(values[static_cast<size_t>(part)], place, s.values->raw(), i);
  });
  return absl::OkStatus();
}

}  // namespace

void RegisterSparseLayoutKernels(KernelRegistry& registry) {
  registry.Add<ConcatKernel>({.op = "SparseConcat"});
  registry.AddFn({.op = "SparseReshape"}, Reshape);
  registry.AddFn({.op = "SparseSlice"}, Slice);
  registry.AddFn({.op = "SparseSliceGrad", .types = {{"T", Types("REAL|c64|c128")}}}, SliceGrad);
  registry.AddFn({.op = "SparseSplit"}, Split);
}

}  // namespace millrace
