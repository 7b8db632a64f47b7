// SPDX-License-Identifier: Apache-2.0
// IsotonicRegression by pooling of adjacent violators (Ayer et al., 1955): what grows is averaged with what is before.
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/stop_scope.h"
#include "kernels/cpu/math/math_ranking.h"

namespace millrace {
namespace {

// Elements that are equal in the result: how many they are, and their sum.
struct Pool {
  double sum = 0;
  int64_t count = 0;
  double mean() const { return sum / static_cast<double>(count); }
};

template <typename In, typename Out>
void FitRow(const In* x, int64_t n, Out* y, int32_t* segments) {
  std::vector<Pool> pools;
  StopNowAndThen pause;
  for (int64_t i = 0; i < n; ++i) {
    pause();
    pools.push_back({static_cast<double>(x[i]), 1});
    while (pools.size() > 1 && pools[pools.size() - 2].mean() < pools.back().mean()) {
      const Pool last = pools.back();
      pools.pop_back();
      pools.back().sum += last.sum;
      pools.back().count += last.count;
    }
  }
  int32_t segment = 0;
  for (const Pool& pool : pools) {
    for (int64_t k = 0; k < pool.count; ++k) {
      *y++ = static_cast<Out>(pool.mean());
      *segments++ = segment;
    }
    ++segment;
  }
}

template <typename In, typename Out>
Status Fit(KernelContext& ctx) {
  const Tensor& in = ctx.input(0);
  if (in.rank() < 1) return InvalidArgument("input must be at least 1-D, got shape ", in.shape().ToString());
  const int64_t n = in.dim(in.rank() - 1);
  if (n > std::numeric_limits<int32_t>::max()) return InvalidArgument("rows of ", n, " elements are too long");
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, in.shape()));
  MR_ASSIGN_OR_RETURN(Tensor * segments, ctx.AllocateOutput(1, in.shape()));
  if (in.num_elements() == 0) return absl::OkStatus();
  const In* x = in.data<In>();
  Out* y = out->mutable_data<Out>();
  int32_t* s = segments->mutable_data<int32_t>();
  ctx.ParallelFor(in.num_elements() / n, 4.0 * static_cast<double>(n), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) FitRow(x + r * n, n, y + r * n, s + r * n);
  });
  return absl::OkStatus();
}

}  // namespace

void RegisterIsotonicKernels(KernelRegistry& r) {
  const auto add = [&r]<typename In>(DType in) {
    const auto types = [in](DType out) {
      return std::vector<std::pair<std::string, std::vector<DType>>>{{"T", {in}}, {"output_dtype", {out}}};
    };
    r.AddFn({.op = "IsotonicRegression", .types = types(DType::kFloat)}, Fit<In, float>);
    r.AddFn({.op = "IsotonicRegression", .types = types(DType::kDouble)}, Fit<In, double>);
  };
  add.operator()<float>(DType::kFloat);
  add.operator()<double>(DType::kDouble);
  add.operator()<int8_t>(DType::kInt8);
  add.operator()<int16_t>(DType::kInt16);
  add.operator()<int32_t>(DType::kInt32);
  add.operator()<int64_t>(DType::kInt64);
}

}  // namespace millrace
