// SPDX-License-Identifier: Apache-2.0
// LowerBound, UpperBound, Bucketize, UnravelIndex.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/checked.h"
#include "kernels/cpu/engine/index_arithmetic.h"
#include "kernels/cpu/engine/index_rows.h"
#include "kernels/cpu/index/index_kernels.h"

namespace millrace {
namespace {

// Half types compare as floats.
template <typename T>
Accumulator<T> Wide(T v) {
  return static_cast<Accumulator<T>>(v);
}

// How many of n sorted numbers come before v: those for which `before` is true are the first. Without branches, which
// would be guessed wrongly every other time.
template <typename T, class Fn>
int64_t CountBefore(const T* sorted, int64_t n, Fn before) {
  if (n == 0) return 0;
  const T* at = sorted;
  while (n > 1) {
    const int64_t half = n / 2;
    at += half & -static_cast<int64_t>(before(at[half - 1]));
    n -= half;
  }
  return at - sorted + static_cast<int64_t>(before(*at));
}

template <typename T, typename I, bool kUpper>
void Search(KernelContext& ctx, const T* sorted, int64_t length, const T* values, int64_t per_row, int64_t n, I* out) {
  const double cost = 5 + 2 * std::log2(static_cast<double>(length) + 1);
  ctx.ParallelFor(n, cost, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end;) {
      const T* row = sorted + i / per_row * length;
      for (const int64_t row_end = std::min(end, (i / per_row + 1) * per_row); i < row_end; ++i) {
        const auto v = Wide(values[i]);
        out[i] =
            static_cast<I>(CountBefore(row, length, [v](const T& b) { return kUpper ? !(v < Wide(b)) : Wide(b) < v; }));
      }
    }
  });
}

template <bool kUpper>
Status Bound(KernelContext& ctx) {
  const Tensor& sorted = ctx.input(0);
  const Tensor& values = ctx.input(1);
  if (sorted.rank() != 2) {
    return InvalidArgument("Shape must be rank 2 but is rank ", sorted.rank(), " for `sorted_inputs` argument");
  }
  if (values.rank() != 2) {
    return InvalidArgument("Shape must be rank 2 but is rank ", values.rank(), " for `values` argument");
  }
  if (sorted.dim(0) != values.dim(0)) return InvalidArgument("Leading dim_size of both tensors must match.");
  if (ctx.output_dtype(0) == DType::kInt32 && sorted.dim(1) > std::numeric_limits<int32_t>::max()) {
    return InvalidArgument("trailing dim_size must less than INT_MAX for int32 output type, was ", sorted.dim(1));
  }
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, values.shape()));
  if (values.num_elements() == 0) return absl::OkStatus();
  VisitRealTypes(values.dtype(), [&]<typename T>() {
    VisitTypes<int32_t, int64_t>(out->dtype(), [&]<typename I>() {
      Search<T, I, kUpper>(ctx, sorted.data<T>(), sorted.dim(1), values.data<T>(), values.dim(1), values.num_elements(),
                           out->mutable_data<I>());
    });
  });
  return absl::OkStatus();
}

class BucketizeKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(boundaries_, init.Attr<std::vector<float>>("boundaries"));
    if (!std::is_sorted(boundaries_.begin(), boundaries_.end())) return InvalidArgument("Expected sorted boundaries");
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    const Tensor& in = ctx.input(0);
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.shape()));
    const auto count = static_cast<int64_t>(boundaries_.size());
    const bool few = count <= kFew;
    const double cost = few ? 1 + 0.2 * static_cast<double>(count) : 5 + 2 * std::log2(static_cast<double>(count));
    VisitTypes<float, double, int32_t, int64_t>(in.dtype(), [&]<typename T>() {
      using Common = std::conditional_t<std::is_same_v<T, double>, double, float>;
      const T* x = in.data<T>();
      int32_t* y = out->mutable_data<int32_t>();
      ctx.ParallelFor(in.num_elements(), cost, [&](int64_t begin, int64_t end) {
        Common block[kBlock];
        for (int64_t i = begin; i < end; i += kBlock) {
          const int64_t n = std::min(kBlock, end - i);
          for (int64_t j = 0; j < n; ++j) block[j] = static_cast<Common>(x[i + j]);
          if (few) {
            CountReached(block, n, y + i);
            continue;
          }
          for (int64_t j = 0; j < n; ++j) {
            y[i + j] = static_cast<int32_t>(CountBefore(
                boundaries_.data(), count, [v = block[j]](float bound) { return !(v < static_cast<Common>(bound)); }));
          }
        }
      });
    });
    return absl::OkStatus();
  }

 private:
  static constexpr int64_t kBlock = 256, kFew = 64;  // so few boundaries are all compared, by vectors

  // out[i] = the number of boundaries that v[i] has reached; of a NaN all.
  template <typename T>
  void CountReached(const T* v, int64_t n, int32_t* out) const {
    std::fill(out, out + n, 0);
    for (const float boundary : boundaries_) {
      const T bound = static_cast<T>(boundary);
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) out[i] += v[i] < bound ? 0 : 1;
    }
  }

  std::vector<float> boundaries_;
};

template <typename T>
Status Unravel(KernelContext& ctx) {
  const Tensor& indices = ctx.input(0);
  const Tensor& dims = ctx.input(1);
  const int64_t rank = dims.num_elements(), n = indices.num_elements();
  std::vector<uint64_t> size(static_cast<size_t>(rank));
  T product = 1;
  for (int64_t i = 0; i < rank; ++i) {
    const T d = dims.data<T>()[i];
    if (d == 0) return InvalidArgument("Input dims cannot contain a dim of zero, but dim contains zero at index ", i);
    if (d < 0) return InvalidArgument("Input dims cannot be negative. Got dim = ", d, " at index ", i);
    if (!CheckedMul(product, d, &product)) return InvalidArgument("Input dims product is causing integer overflow");
    size[static_cast<size_t>(i)] = static_cast<uint64_t>(d);
  }
  for (int64_t i = 0; i < n; ++i) {
    const T at = indices.data<T>()[i];
    if (at < 0 || at >= product) return InvalidArgument("index is out of bound as with dims");
  }
  const bool scalar = indices.rank() == 0;
  MR_ASSIGN_OR_RETURN(const Shape matrix, Shape::Make({rank, n}));
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, scalar ? dims.shape() : matrix));
  T* y = out->mutable_data<T>();
  ctx.ParallelFor(n, 5 * static_cast<double>(rank), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      uint64_t rest = static_cast<uint64_t>(indices.data<T>()[i]);
      for (int64_t d = rank - 1; d >= 0; --d) {
        y[d * n + i] = static_cast<T>(rest % size[static_cast<size_t>(d)]);
        rest /= size[static_cast<size_t>(d)];
      }
    }
  });
  return absl::OkStatus();
}

Status UnravelIndex(KernelContext& ctx) {
  const Tensor& indices = ctx.input(0);
  const Tensor& dims = ctx.input(1);
  if (indices.rank() > 1) {
    return InvalidArgument("The indices can only be scalar or vector, got \"", indices.shape().ToString(), "\"");
  }
  if (dims.rank() != 1) return InvalidArgument("The indices can only be 1-D, got \"", dims.shape().ToString(), "\"");
  if (indices.num_elements() == 0) return InvalidArgument("received empty tensor indices");
  return ctx.input_dtype(0) == DType::kInt32 ? Unravel<int32_t>(ctx) : Unravel<int64_t>(ctx);
}

}  // namespace

void RegisterSearchKernels(KernelRegistry& r) {
  r.AddFn({.op = "LowerBound", .types = {{"T", Types("REAL")}}}, Bound<false>);
  r.AddFn({.op = "UpperBound", .types = {{"T", Types("REAL")}}}, Bound<true>);
  r.Add<BucketizeKernel>({.op = "Bucketize", .types = {{"T", Types("FD|IDX")}}});
  r.AddFn({.op = "UnravelIndex"}, UnravelIndex);
}

}  // namespace millrace
