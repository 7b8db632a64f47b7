// SPDX-License-Identifier: Apache-2.0
// CPU kernels: numbers and sizes of dimensions in another order of them, and the n-th smallest element.
#include <algorithm>
#include <bit>

#include "kernels/cpu/engine/index_arithmetic.h"
#include "kernels/cpu/engine/index_rows.h"
#include "kernels/cpu/nn/nn_pool.h"

namespace millrace {
namespace {

class FormatKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(from_, init.Attr<std::string>("src_format"));
    MR_ASSIGN_OR_RETURN(to_, init.Attr<std::string>("dst_format"));
    if (from_.size() != 4 && from_.size() != 5) {
      return InvalidArgument("Source format must be of length 4 or 5, received src_format = ", from_);
    }
    if (to_.size() != 4 && to_.size() != 5) {
      return InvalidArgument("Destination format must be of length 4 or 5, received dst_format = ", to_);
    }
    std::string a = from_, b = to_;
    std::sort(a.begin(), a.end());
    std::sort(b.begin(), b.end());
    if (a != b || std::adjacent_find(a.begin(), a.end()) != a.end()) {
      return InvalidArgument("Destination and source format must determine a permutation, got ", from_, " and ", to_);
    }
    return absl::OkStatus();
  }

 protected:
  std::string from_, to_;
};

class DimMapKernel final : public FormatKernel {
 public:
  Status Compute(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, ctx.input(0).shape()));
    const auto rank = static_cast<int64_t>(from_.size());
    Status status;
    VisitTypes<int32_t, int64_t>(out->dtype(), [&]<typename T>() {
      for (int64_t i = 0; i < out->num_elements() && status.ok(); ++i) {
        int64_t d = ctx.input(0).data<T>()[i];
        if (!NormalizeIndex(d, rank, &d)) {
          status = InvalidArgument("x[", i, "] = ", d, " is not in [", -rank, ", ", rank, ")");
        } else {
          out->mutable_data<T>()[i] = static_cast<T>(to_.find(from_[static_cast<size_t>(d)]));
        }
      }
    });
    return status;
  }
};

class VecPermuteKernel final : public FormatKernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    if (x.rank() != 1 && x.rank() != 2) {
      return InvalidArgument("input must be a vector or 2D tensor, but got shape ", x.shape().ToString());
    }
    std::string from = from_, to = to_;
    if (x.dim(0) == static_cast<int64_t>(from.size()) - 2) {  // of the spatial dimensions alone
      const auto spatial = [](char c) { return c == 'H' || c == 'W' || c == 'D'; };
      std::erase_if(from, [&](char c) { return !spatial(c); });
      std::erase_if(to, [&](char c) { return !spatial(c); });
    }
    if (x.dim(0) != static_cast<int64_t>(from.size()) || (x.rank() == 2 && x.dim(1) != 2)) {
      return InvalidArgument("input must have ", from_.size(), " or ", from_.size() - 2,
                             " rows, and two columns if any, got shape ", x.shape().ToString());
    }
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, x.shape()));
    const RunCopier copier(x.dtype(), x.rank() == 2 ? 2 : 1);
    const int64_t row = x.rank() == 2 ? 2 : 1;
    for (size_t i = 0; i < to.size(); ++i) {
      copier.CopyOne(
          out->mutable_raw(), static_cast<int64_t>(i) * row, x.raw(), static_cast<int64_t>(from.find(to[i])) * row);
    }
    return absl::OkStatus();
  }
};

class NthElementKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(reverse_, init.Attr<bool>("reverse"));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    const Tensor& in = ctx.input(0);
    if (ctx.input(1).rank() != 0)
      return InvalidArgument("N must be scalar, got shape ", ctx.input(1).shape().ToString());
    int64_t n = *ctx.input(1).data<int32_t>();
    if (n < 0) return InvalidArgument("Need n >= 0, got ", n);
    if (in.rank() < 1) return InvalidArgument("Input must be >= 1-D, got shape []");
    const int64_t columns = in.dim(in.rank() - 1);
    if (columns <= n) return InvalidArgument("Input must have at least n+1 columns: ", n + 1, ", got ", columns);
    if (reverse_) n = columns - 1 - n;
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.shape().WithoutDim(in.rank() - 1)));
    const bool known = VisitRealTypes(in.dtype(), [&]<typename T>() {
      constexpr double kNanosPerElement = 4;
      const double cost = kNanosPerElement * static_cast<double>(columns);
      ctx.ParallelFor(out->num_elements(), cost, [&](int64_t begin, int64_t end) {
        std::vector<Accumulator<T>> row;
        for (int64_t r = begin; r < end; ++r) {
          out->mutable_data<T>()[r] = static_cast<T>(Nth(in.data<T>() + r * columns, columns, n, &row));
        }
      });
    });
    return known ? absl::OkStatus() : Unimplemented("no elements of ", DTypeName(in.dtype()));
  }

 private:
  template <typename T>
  static bool Before(T a, T b) {  // NaN is the largest
    if constexpr (std::is_floating_point_v<T>) {
      if (b != b) return a == a;
    }
    return a < b;
  }
  // Ascending as Before: the highest bits of a float as an ordered number.
  static constexpr int kBucketBits = 11;
  static size_t Bucket(float v) {
    const uint32_t bits = std::bit_cast<uint32_t>(v);
    if (v != v) return (size_t{1} << kBucketBits) - 1;
    const uint32_t ordered = bits ^ (bits >> 31 != 0 ? ~uint32_t{0} : uint32_t{1} << 31);
    return ordered >> (32 - kBucketBits);
  }
  // The element of rank n of a row. Of floats all but those with the highest bits of that one are counted away.
  template <typename T>
  static Accumulator<T> Nth(const T* from, int64_t columns, int64_t n, std::vector<Accumulator<T>>* rest) {
    using A = Accumulator<T>;
    constexpr int64_t kWorthBuckets = 1000;
    rest->clear();
    if (std::is_same_v<A, float> && columns >= kWorthBuckets) {
      uint32_t count[1 << kBucketBits] = {};
      for (int64_t k = 0; k < columns; ++k) ++count[Bucket(static_cast<float>(static_cast<A>(from[k])))];
      size_t bucket = 0;
      for (; n >= int64_t{count[bucket]}; ++bucket) n -= count[bucket];
      rest->resize(static_cast<size_t>(columns));
      size_t kept = 0;
      for (int64_t k = 0; k < columns; ++k) {
        const A v = static_cast<A>(from[k]);
        (*rest)[kept] = v;
        kept += Bucket(static_cast<float>(v)) == bucket;
      }
      rest->resize(kept);
    } else {
      rest->reserve(static_cast<size_t>(columns));
      for (int64_t k = 0; k < columns; ++k) rest->push_back(static_cast<A>(from[k]));
    }
    std::nth_element(rest->begin(), rest->begin() + n, rest->end(), Before<A>);
    return (*rest)[static_cast<size_t>(n)];
  }
  bool reverse_ = false;
};

}  // namespace

void RegisterFormatKernels(KernelRegistry& r) {
  r.Add<DimMapKernel>({.op = "DataFormatDimMap"});
  r.Add<VecPermuteKernel>({.op = "DataFormatVecPermute"});
  r.Add<NthElementKernel>({.op = "NthElement"});
}

}  // namespace millrace
