// SPDX-License-Identifier: Apache-2.0
// Kernels of InTopK; the list of ranking kernels.
#include "kernels/cpu/math/math_ranking.h"

#include <algorithm>
#include <cmath>

#include "base/checked.h"
#include "kernels/cpu/math/math.h"

namespace millrace {
namespace {

// Fewer than k predictions above that of the target, and all that were looked at finite.
bool TargetInTopK(const float* row, int64_t classes, int64_t target, int64_t k) {
  if (!InRange(target, classes) || !std::isfinite(row[target])) return false;
  int64_t above = 0;
  for (int64_t i = 0; i < classes; ++i) {
    if (!std::isfinite(row[i])) return false;
    if (row[i] > row[target] && ++above > k) break;
  }
  return above < k;
}

Status ComputeInTopK(KernelContext& ctx, int64_t k) {
  const Tensor& predictions = ctx.input(0);
  const Tensor& targets = ctx.input(1);
  if (predictions.rank() != 2) {
    return InvalidArgument("predictions must be 2-dimensional, got ", predictions.shape().ToString());
  }
  if (targets.rank() != 1) return InvalidArgument("targets must be 1-dimensional, got ", targets.shape().ToString());
  if (predictions.dim(0) != targets.dim(0)) {
    return InvalidArgument(
        "First dimension of predictions ", predictions.dim(0), " must match length of targets ", targets.dim(0));
  }
  MR_ASSIGN_OR_RETURN(const std::vector<int64_t> classes, targets.IntValues());
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, targets.shape()));
  const int64_t n = predictions.dim(1);
  const float* rows = predictions.data<float>();
  bool* result = out->mutable_data<bool>();
  ctx.ParallelFor(targets.dim(0), 5 + static_cast<double>(n), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      result[i] = TargetInTopK(rows + i * n, n, classes[static_cast<size_t>(i)], k);
    }
  });
  return absl::OkStatus();
}

class InTopKKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(k_, init.Attr<int64_t>("k"));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override { return ComputeInTopK(ctx, k_); }

 private:
  int64_t k_ = 0;
};

Status InTopKV2(KernelContext& ctx) {
  if (ctx.input(2).rank() != 0) return InvalidArgument("k must be 0-D, got shape ", ctx.input(2).shape().ToString());
  MR_ASSIGN_OR_RETURN(const int64_t k, ctx.input(2).IntScalar());
  return ComputeInTopK(ctx, k);
}

}  // namespace

void RegisterInTopKKernels(KernelRegistry& registry) {
  registry.Add<InTopKKernel>({.op = "InTopK"});
  registry.AddFn({.op = "InTopKV2"}, &InTopKV2);
}

void RegisterRankingKernels(KernelRegistry& registry) {
  RegisterArgKernels(registry);
  RegisterTopKKernels(registry);
  RegisterIsotonicKernels(registry);
  RegisterInTopKKernels(registry);
}

}  // namespace millrace
