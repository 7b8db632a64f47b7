// SPDX-License-Identifier: Apache-2.0
// RaggedRange, RaggedGather, RaggedTensorToSparse: rows of different lengths, one behind the other.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/stop_scope.h"
#include "kernels/cpu/engine/index_arithmetic.h"
#include "kernels/cpu/engine/index_rows.h"
#include "kernels/cpu/index/index_kernels.h"
#include "kernels/cpu/index/ragged_splits.h"

namespace millrace {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max() / 4;  // of rows or values, far above any memory

// The int32 or int64 vector of an output, from int64.
Status SetSplits(KernelContext& ctx, int o, const std::vector<int64_t>& splits) {
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(o, Shape::Vector(static_cast<int64_t>(splits.size()))));
  if (out->dtype() == DType::kInt64) {
    std::copy(splits.begin(), splits.end(), out->mutable_data<int64_t>());
    return absl::OkStatus();
  }
  if (!splits.empty() && splits.back() > std::numeric_limits<int32_t>::max()) {
    return InvalidArgument("splits of int32 cannot say ", splits.back(), ", use int64");
  }
  std::transform(
      splits.begin(), splits.end(), out->mutable_data<int32_t>(), [](int64_t s) { return static_cast<int32_t>(s); });
  return absl::OkStatus();
}

// How many numbers start, start + delta, ... lie before limit.
template <typename T>
StatusOr<int64_t> RangeLength(T start, T limit, T delta) {
  if constexpr (std::is_integral_v<T>) {
    if (delta == 0) return InvalidArgument("Requires delta != 0");
    if (delta > 0 ? start >= limit : start <= limit) return 0;
    const auto low = static_cast<uint64_t>(delta > 0 ? start : limit);
    const auto high = static_cast<uint64_t>(delta > 0 ? limit : start);
    const uint64_t step = delta > 0 ? static_cast<uint64_t>(delta) : 0 - static_cast<uint64_t>(delta);
    const uint64_t n = step == 1 ? high - low : (high - low - 1) / step + 1;
    if (n > static_cast<uint64_t>(kMost)) return InvalidArgument("a range would have ", n, " elements");
    return static_cast<int64_t>(n);
  } else {
    const auto from = static_cast<double>(start), to = static_cast<double>(limit), step = static_cast<double>(delta);
    if (step == 0) return InvalidArgument("Requires delta != 0");
    if (std::isnan(step)) return InvalidArgument("Requires a delta that is a number");
    if (step > 0 ? from >= to : from <= to) return 0;
    // In the type's own arithmetic, which says where the last one is.
    const auto n = std::ceil(std::abs(static_cast<double>(static_cast<T>(static_cast<T>(to - from) / delta))));
    if (!(n <= static_cast<double>(kMost))) return InvalidArgument("a range would have ", n, " elements");
    return static_cast<int64_t>(n);
  }
}

template <typename T, typename Number = std::conditional_t<kIsHalf<T>, float, T>>
Status RaggedRangeOf(KernelContext& ctx) {
  int64_t rows = -1;
  for (int i = 0; i < 3; ++i) {
    const Tensor& t = ctx.input(i);
    static constexpr const char* kNames[] = {"starts", "limits", "deltas"};
    if (t.rank() > 1) {
      return InvalidArgument(kNames[i], " must be a scalar or a vector, got shape ", t.shape().ToString());
    }
    if (t.rank() == 0) continue;
    if (rows >= 0 && rows != t.num_elements()) {
      return InvalidArgument("starts, limits and deltas must have one length, got ", rows, " and ", t.num_elements());
    }
    rows = t.num_elements();
  }
  if (rows < 0) rows = 1;
  const auto at = [&ctx](int i, int64_t row) {
    return static_cast<Number>(ctx.input(i).data<T>()[ctx.input(i).rank() == 0 ? 0 : row]);
  };
  std::vector<int64_t> splits = {0};
  splits.reserve(static_cast<size_t>(rows) + 1);
  StopNowAndThen pause;
  for (int64_t r = 0; r < rows; ++r) {
    pause();
    MR_ASSIGN_OR_RETURN(const int64_t n, RangeLength<Number>(at(0, r), at(1, r), at(2, r)));
    if (n > kMost - splits.back()) return InvalidArgument("the ranges have too many elements together");
    splits.push_back(splits.back() + n);
  }
  MR_RETURN_IF_ERROR(SetSplits(ctx, 0, splits));
  MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({splits.back()}));
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(1, shape));
  T* to = out->mutable_data<T>();
  for (size_t r = 0; r + 1 < splits.size(); ++r) {
    T value = static_cast<T>(at(0, static_cast<int64_t>(r)));
    const T delta = static_cast<T>(at(2, static_cast<int64_t>(r)));
    constexpr int64_t kBetweenPauses = 64;
    for (int64_t i = splits[r]; i < splits[r + 1];) {
      pause();
      for (const int64_t end = std::min(i + kBetweenPauses, splits[r + 1]); i < end; ++i) {
        *to++ = value;
        CombineInto<RowOp::kAdd>(value, delta);
      }
    }
  }
  return absl::OkStatus();
}

Status RaggedRange(KernelContext& ctx) {
  Status status;
  VisitTypes<BFloat16, float, double, int32_t, int64_t>(
      ctx.output_dtype(1), [&]<typename T>() { status = RaggedRangeOf<T>(ctx); });
  return status;
}

// The splits of a ragged tensor, outermost first, each checked against the rows of the next.
StatusOr<std::vector<WideIndices>> NestedSplits(KernelContext& ctx, absl::string_view name, const Tensor& values,
                                                bool all) {
  if (values.rank() < 1) return InvalidArgument("the values of a ragged tensor must not be a scalar");
  const ArgRange range = ctx.input_arg(name);
  std::vector<WideIndices> nested;
  for (int i = range.begin; i < range.end; ++i) {
    MR_RETURN_IF_ERROR(RequireVector(absl::StrCat(name, "[", i - range.begin, "]"), ctx.input(i)));
    MR_ASSIGN_OR_RETURN(WideIndices splits, WideIndices::Make(ctx, ctx.input(i)));
    nested.push_back(std::move(splits));
  }
  for (size_t i = 0; i < nested.size(); ++i) {
    const int64_t below = i + 1 < nested.size() ? std::max<int64_t>(nested[i + 1].size() - 1, 0) : values.dim(0);
    const auto check = all ? CheckSplits : CheckSplitsWithin;
    MR_RETURN_IF_ERROR(check(absl::StrCat(name, "[", i, "]"), nested[i].data(), nested[i].size(), below));
  }
  return nested;
}

// Rows of a ragged tensor: what lies below them is copied level by level, as ranges of the level's rows.
class RaggedGatherKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(out_rank_, init.Attr<int64_t>("OUTPUT_RAGGED_RANK"));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    const Tensor& values = ctx.input(ctx.num_inputs() - 2);
    const Tensor& indices = ctx.input(ctx.num_inputs() - 1);
    MR_ASSIGN_OR_RETURN(
        const std::vector<WideIndices> nested, NestedSplits(ctx, "params_nested_splits", values, /*all=*/false));
    if (out_rank_ != static_cast<int64_t>(nested.size()) + indices.rank() - 1) {
      return InvalidArgument("OUTPUT_RAGGED_RANK must be PARAMS_RAGGED_RANK ", nested.size(), " + indices' rank ",
                             indices.rank(), " - 1, got ", out_rank_);
    }
    MR_RETURN_IF_ERROR(CheckIndices("indices", indices, nested[0].size() - 1));
    int o = 0;
    StopNowAndThen pause;
    for (int d = 0; d + 1 < indices.rank(); ++d, ++o) {
      const int64_t rows = DimProduct(indices.shape(), 0, d + 1);
      std::vector<int64_t> splits;
      splits.reserve(static_cast<size_t>(rows) + 1);
      for (int64_t i = 0; i <= rows; ++i) {
        pause();
        splits.push_back(i * indices.dim(d + 1));
      }
      MR_RETURN_IF_ERROR(SetSplits(ctx, o, splits));
    }
    MR_ASSIGN_OR_RETURN(const WideIndices wide, WideIndices::Make(ctx, indices));
    std::vector<std::pair<int64_t, int64_t>> ranges;  // of rows of the level at hand
    ranges.reserve(static_cast<size_t>(wide.size()));
    for (int64_t i = 0; i < wide.size(); ++i) {
      pause();
      ranges.emplace_back(wide.data()[i], wide.data()[i] + 1);
    }
    for (size_t level = 0; level < nested.size(); ++level) {
      const int64_t* const from = nested[level].data();
      const bool is_one_row = level == 0 && indices.rank() == 0;  // whose values are the result
      MR_ASSIGN_OR_RETURN(const int64_t rows, is_one_row ? 0 : CountOf(ranges));
      std::vector<int64_t> splits = {0};
      splits.reserve(static_cast<size_t>(rows) + 1);  // fails at once where there are too many
      for (auto& [begin, end] : ranges) {
        for (int64_t row = begin; row < end && !is_one_row; ++row) {
          pause();
          const int64_t length = from[row + 1] - from[row];
          if (length > kMost - splits.back()) return InvalidArgument("the rows have too many values together");
          splits.push_back(splits.back() + length);
        }
        begin = from[begin];
        end = from[end];
      }
      if (!is_one_row) MR_RETURN_IF_ERROR(SetSplits(ctx, o++, splits));
    }
    MR_ASSIGN_OR_RETURN(const int64_t count, CountOf(ranges));
    std::vector<int64_t> dims = DimsOf(values.shape(), 0, values.rank());
    dims[0] = count;
    MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(o, shape));
    const int64_t run = DimProduct(values.shape(), 1, values.rank());
    if (run == 0) return absl::OkStatus();
    const RunCopier copier(values.dtype(), run);
    int64_t to = 0;
    for (const auto& [begin, end] : ranges) {
      pause(1 + (end - begin) * run / 16);
      copier.Copy(out->mutable_raw(), to * run, run, values.raw(), begin * run, run, end - begin);
      to += end - begin;
    }
    return absl::OkStatus();
  }

 private:
  static StatusOr<int64_t> CountOf(const std::vector<std::pair<int64_t, int64_t>>& ranges) {
    int64_t count = 0;
    for (const auto& [begin, end] : ranges) {
      if (end - begin > kMost - count) return InvalidArgument("the rows have too many values together");
      count += end - begin;
    }
    return count;
  }

  int64_t out_rank_ = 0;
};

// Each value with its coordinates: [n, rank] of them for values of that many dimensions in all.
Status RaggedToSparse(KernelContext& ctx) {
  const Tensor& values = ctx.input(ctx.num_inputs() - 1);
  MR_ASSIGN_OR_RETURN(
      const std::vector<WideIndices> nested, NestedSplits(ctx, "rt_nested_splits", values, /*all=*/true));
  const int levels = static_cast<int>(nested.size());
  const int rank = levels + values.rank();
  const int64_t run = DimProduct(values.shape(), 1, values.rank());
  MR_ASSIGN_OR_RETURN(const Shape of_indices, Shape::Make({values.num_elements(), rank}));
  MR_ASSIGN_OR_RETURN(Tensor * indices, ctx.AllocateOutput(0, of_indices));
  MR_ASSIGN_OR_RETURN(Tensor * shape, ctx.AllocateOutput(2, Shape::Vector(rank)));
  int64_t* const dims = shape->mutable_data<int64_t>();
  dims[0] = nested[0].size() - 1;
  for (int level = 0; level < levels; ++level) {
    const WideIndices& splits = nested[static_cast<size_t>(level)];
    dims[level + 1] = 0;
    for (int64_t i = 1; i < splits.size(); ++i) {
      dims[level + 1] = std::max(dims[level + 1], splits.data()[i] - splits.data()[i - 1]);
    }
  }
  for (int d = 1; d < values.rank(); ++d) dims[levels + d] = values.dim(d);
  int64_t* to = indices->mutable_data<int64_t>();
  std::vector<int64_t> row(static_cast<size_t>(levels), 0), coordinates(static_cast<size_t>(rank), 0);
  StopNowAndThen pause;
  const int64_t rows = run == 0 ? 0 : values.dim(0);
  for (int64_t i = 0; i < rows; ++i) {
    // From the innermost level up: the row that a value is in, and its place there.
    int64_t at = i;
    for (int level = levels - 1; level >= 0; --level) {
      const int64_t* const splits = nested[static_cast<size_t>(level)].data();
      int64_t& r = row[static_cast<size_t>(level)];
      while (splits[r + 1] <= at) ++r;
      coordinates[static_cast<size_t>(level) + 1] = at - splits[r];
      at = r;
    }
    coordinates[0] = at;
    for (int64_t e = 0; e < run; ++e) {
      pause();
      int64_t rest = e;
      for (int d = rank - 1; d > levels; --d) {
        coordinates[static_cast<size_t>(d)] = rest % dims[d];
        rest /= dims[d];
      }
      to = std::copy(coordinates.begin(), coordinates.end(), to);
    }
  }
  return ctx.ForwardReshaped(ctx.num_inputs() - 1, 1, Shape::Vector(values.num_elements()));
}

}  // namespace

void RegisterRaggedRowKernels(KernelRegistry& r) {
  r.AddFn({.op = "RaggedRange"}, RaggedRange);
  r.Add<RaggedGatherKernel>({.op = "RaggedGather"});
  r.AddFn({.op = "RaggedTensorToSparse"}, RaggedToSparse);
}

}  // namespace millrace
