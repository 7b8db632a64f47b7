// SPDX-License-Identifier: Apache-2.0
// Where and OneHot.
#include <algorithm>
#include <vector>

#include "base/checked.h"
#include "kernels/cpu/engine/index_arithmetic.h"
#include "kernels/cpu/engine/index_rows.h"
#include "kernels/cpu/index/index_kernels.h"

namespace millrace {
namespace {

// Elements whose bits under `mask` are not all zero: a mask without the sign takes -0.0 for zero.
template <typename U>
int64_t CountSet(const U* p, int64_t n, U mask) {
  int64_t count = 0, i = 0;
  for (; i + 16 <= n; i += 16) {
    unsigned some = 0;
    for (int64_t k = 0; k < 16; ++k) some += (p[i + k] & mask) != 0 ? 1u : 0u;
    count += some;
  }
  for (; i < n; ++i) count += (p[i] & mask) != 0;
  return count;
}

// Odometer over the coordinates of a shape.
class Coordinates {
 public:
  Coordinates(const Shape& shape, int64_t at) : shape_(shape), c_(static_cast<size_t>(shape.rank())) {
    for (int d = shape.rank() - 1; d >= 0; --d) {
      c_[static_cast<size_t>(d)] = at % shape.dim(d);
      at /= shape.dim(d);
    }
  }
  // Advances by n along the last dimension, where n does not leave the row by more than its end.
  int64_t RowLeft() const { return shape_.dim(shape_.rank() - 1) - c_.back(); }
  void Skip(int64_t n) {
    c_.back() += n;
    for (size_t d = c_.size() - 1; d > 0 && c_[d] == shape_.dim(static_cast<int>(d)); --d) {
      c_[d] = 0;
      ++c_[d - 1];
    }
  }
  const std::vector<int64_t>& at() const { return c_; }

 private:
  const Shape& shape_;
  std::vector<int64_t> c_;
};

// Coordinates of the hits of one row: the row's own coordinates, then the column.
void WriteHits(const std::vector<int64_t>& row, const uint32_t* hits, int64_t count, int64_t* out) {
  const size_t rank = row.size();
  const int64_t first = row.back();
  if (rank == 1) {
    for (int64_t h = 0; h < count; ++h) out[h] = first + hits[h];
  } else if (rank == 2) {
    for (int64_t h = 0; h < count; ++h) {
      out[2 * h] = row[0];
      out[2 * h + 1] = first + hits[h];
    }
  } else {
    for (int64_t h = 0; h < count; ++h, out += rank) {
      for (size_t d = 0; d + 1 < rank; ++d) out[d] = row[d];
      out[rank - 1] = first + hits[h];
    }
  }
}

template <typename U>
void WriteWhere(const U* p, U mask, const Shape& shape, int64_t begin, int64_t end, int64_t* out) {
  constexpr int64_t kChunk = 1024;
  uint32_t hits[kChunk];
  Coordinates c(shape, begin);
  while (begin < end) {
    const int64_t n = std::min({end - begin, c.RowLeft(), kChunk});
    const U* const from = p + begin;
    int64_t count = 0, i = 0;
    const auto look = [&](int64_t stop) {
      for (; i < stop; ++i) {
        hits[count] = static_cast<uint32_t>(i);
        count += (from[i] & mask) != 0;
      }
    };
    constexpr int64_t kAtOnce = 16;
    while (i + kAtOnce <= n) {
      U some = 0;
      for (int64_t k = 0; k < kAtOnce; ++k) some = static_cast<U>(some | from[i + k]);
      if ((some & mask) == 0) {
        i += kAtOnce;
      } else {
        look(i + kAtOnce);
      }
    }
    look(n);
    WriteHits(c.at(), hits, count, out);
    out += count * shape.rank();
    begin += n;
    c.Skip(n);
  }
}

constexpr int64_t kBlock = 1 << 16;

template <typename U>
Status WhereBits(KernelContext& ctx, const U* p, const Shape& shape, U mask) {
  const int64_t n = shape.num_elements(), blocks = (n + kBlock - 1) / kBlock;
  std::vector<int64_t> starts(static_cast<size_t>(blocks) + 1);
  ctx.ParallelFor(blocks, kBlock * 0.3, [&](int64_t a, int64_t b) {
    for (int64_t k = a; k < b; ++k) {
      starts[static_cast<size_t>(k) + 1] = CountSet(p + k * kBlock, std::min(kBlock, n - k * kBlock), mask);
    }
  });
  for (size_t k = 1; k < starts.size(); ++k) starts[k] += starts[k - 1];
  MR_ASSIGN_OR_RETURN(Shape out_shape, Shape::Make({starts.back(), shape.rank()}));
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, out_shape));
  int64_t* to = out->mutable_data<int64_t>();
  ctx.ParallelFor(blocks, kBlock * 1.5, [&](int64_t a, int64_t b) {
    for (int64_t k = a; k < b; ++k) {
      WriteWhere(p, mask, shape, k * kBlock, std::min(n, (k + 1) * kBlock),
                 to + starts[static_cast<size_t>(k)] * shape.rank());
    }
  });
  return absl::OkStatus();
}

// Complex numbers become bools first.
template <typename T>
Status WhereComplex(KernelContext& ctx, const Tensor& in) {
  MR_ASSIGN_OR_RETURN(Tensor set, ctx.AllocateTemp(DType::kUInt8, in.shape()));
  uint8_t* to = set.mutable_data<uint8_t>();
  const T* from = in.data<T>();
  for (int64_t i = 0; i < in.num_elements(); ++i) to[i] = from[i] != T{} ? 1 : 0;
  return WhereBits<uint8_t>(ctx, to, in.shape(), 0xff);
}

Status Where(KernelContext& ctx) {
  const Tensor& in = ctx.input(0);
  if (in.rank() < 1) return InvalidArgument("input must have at least one dimension, got a scalar");
  const bool floating = IsFloating(in.dtype());
  if (in.dtype() == DType::kComplex64) return WhereComplex<complex64>(ctx, in);
  if (in.dtype() == DType::kComplex128) return WhereComplex<complex128>(ctx, in);
  switch (DTypeSize(in.dtype())) {
    case 1: return WhereBits<uint8_t>(ctx, in.data<uint8_t>(), in.shape(), 0xff);
    case 2: return WhereBits<uint16_t>(ctx, in.data<uint16_t>(), in.shape(), floating ? 0x7fff : 0xffff);
    case 4: return WhereBits<uint32_t>(ctx, in.data<uint32_t>(), in.shape(), floating ? 0x7fffffff : 0xffffffff);
    default:
      return WhereBits<uint64_t>(ctx, in.data<uint64_t>(), in.shape(), floating ? ~uint64_t{0} >> 1 : ~uint64_t{0});
  }
}

// Rows of `depth` elements: `off`, but `on` where the row's index says. Where rows are short, some at a time, which the
// cache keeps between.
template <typename U, typename I>
void HotRows(KernelContext& ctx, const I* ids, int64_t rows, int64_t depth, U on, const Tensor& off, Tensor* to) {
  constexpr int64_t kShort = 64, kSome = 2048, kMany = 1 << 16;  // elements
  const int64_t at_once = std::max<int64_t>((depth <= kShort ? kSome : kMany) / depth, 1);
  U* const out = to->mutable_data<U>();
  ctx.ParallelFor(rows, 2 + 0.2 * static_cast<double>(depth), [&](int64_t begin, int64_t end) {
    for (int64_t first = begin; first < end; first += at_once) {
      const int64_t last = std::min(first + at_once, end);
      FillElements(to->dtype(), out, first * depth, (last - first) * depth, off.raw());
      for (int64_t r = first; r < last; ++r) {
        const auto index = static_cast<int64_t>(ids[r]);
        if (InRange(index, depth)) out[r * depth + index] = on;
      }
    }
  });
}

// The elements that a hot index lights, as [prefix, depth, suffix].
template <typename U, typename I>
void LightTyped(KernelContext& ctx, const I* ids, int64_t prefix, int64_t depth, int64_t suffix, U on, U* out) {
  ctx.ParallelFor(prefix, static_cast<double>(suffix) * 2, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      for (int64_t s = 0; s < suffix; ++s) {
        const I index = ids[p * suffix + s];
        if (InRange(static_cast<int64_t>(index), depth))
          out[(p * depth + static_cast<int64_t>(index)) * suffix + s] = on;
      }
    }
  });
}

struct Bytes16 {
  uint64_t lo, hi;
};

class OneHotKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(axis_, init.Attr<int64_t>("axis"));
    return absl::OkStatus();
  }

  Status Compute(KernelContext& ctx) override {
    const Tensor& ids = ctx.input(0);
    MR_RETURN_IF_ERROR(RequireScalar("depth", ctx.input(1)));
    MR_RETURN_IF_ERROR(RequireScalar("on_value", ctx.input(2)));
    MR_RETURN_IF_ERROR(RequireScalar("off_value", ctx.input(3)));
    MR_ASSIGN_OR_RETURN(int64_t depth, ctx.input(1).IntScalar());
    if (depth < 0) return InvalidArgument("depth must not be negative, got ", depth);
    if (axis_ < -1 || axis_ > ids.rank()) return InvalidArgument("axis ", axis_, " is not in [-1, ", ids.rank(), "]");
    const int axis = axis_ < 0 ? ids.rank() : static_cast<int>(axis_);
    MR_ASSIGN_OR_RETURN(Shape shape, ids.shape().WithInserted(axis, depth));
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    if (shape.num_elements() == 0) return absl::OkStatus();
    const int64_t prefix = DimProduct(ids.shape(), 0, axis), suffix = DimProduct(ids.shape(), axis, ids.rank());
    if (suffix > 1) {
      ctx.ParallelFor(shape.num_elements(), 0.2, [&](int64_t begin, int64_t end) {
        FillElements(out->dtype(), out->mutable_raw(), begin, end - begin, ctx.input(3).raw());
      });
    }
    VisitTypes<uint8_t, int8_t, int32_t, int64_t>(
        ids.dtype(), [&]<typename I>() { Light<I>(ctx, ids.data<I>(), prefix, depth, suffix, out); });
    return absl::OkStatus();
  }

 private:
  template <typename U, typename I>
  static void LightAs(KernelContext& ctx, const I* ids, int64_t prefix, int64_t depth, int64_t suffix, Tensor* out) {
    const U on = *ctx.input(2).data<U>();
    if (suffix == 1) return HotRows<U, I>(ctx, ids, prefix, depth, on, ctx.input(3), out);
    LightTyped<U, I>(ctx, ids, prefix, depth, suffix, on, out->mutable_data<U>());
  }
  template <typename I>
  static void Light(KernelContext& ctx, const I* ids, int64_t prefix, int64_t depth, int64_t suffix, Tensor* out) {
    switch (out->dtype()) {
      case DType::kString: return LightAs<TString>(ctx, ids, prefix, depth, suffix, out);
      case DType::kResource: return LightAs<ResourceHandle>(ctx, ids, prefix, depth, suffix, out);
      case DType::kVariant: return LightAs<Variant>(ctx, ids, prefix, depth, suffix, out);
      default: break;
    }
    switch (DTypeSize(out->dtype())) {
      case 1: return LightAs<uint8_t>(ctx, ids, prefix, depth, suffix, out);
      case 2: return LightAs<uint16_t>(ctx, ids, prefix, depth, suffix, out);
      case 4: return LightAs<uint32_t>(ctx, ids, prefix, depth, suffix, out);
      case 8: return LightAs<uint64_t>(ctx, ids, prefix, depth, suffix, out);
      default: return LightAs<Bytes16>(ctx, ids, prefix, depth, suffix, out);
    }
  }

  int64_t axis_ = -1;
};

}  // namespace

void RegisterIndexSelectionKernels(KernelRegistry& r) {
  r.AddFn({.op = "Where"}, Where);
  r.Add<OneHotKernel>({.op = "OneHot"});
}

}  // namespace millrace
