// SPDX-License-Identifier: Apache-2.0
// Kernel of CumulativeLogsumexp: for each place the largest term so far and the sum of the others relative to it.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/checked.h"
#include "base/stop_scope.h"
#include "kernels/cpu/engine/index_arithmetic.h"
#include "kernels/cpu/math/math.h"

namespace millrace {
namespace {

struct Scan {
  int64_t outer = 1, axis = 1, inner = 1;
  bool exclusive = false, reverse = false;
};

// log(exp(a) + exp(b)).
double LogAddExp(double a, double b) {
  const double most = std::max(a, b), least = std::min(a, b);
  if (std::isnan(a) || std::isnan(b)) return a + b;
  return std::isinf(most) ? most : most + std::log1p(std::exp(least - most));
}

template <typename T>
void Run(const KernelContext& ctx, const Scan& s, const T* in, T* out) {
  ctx.ParallelFor(s.outer * s.inner, 30.0 * static_cast<double>(s.axis), [&](int64_t begin, int64_t end) {
    StopNowAndThen pause;
    for (int64_t line = begin; line < end; ++line) {
      const int64_t start = line / s.inner * s.axis * s.inner + line % s.inner;
      double sum = -std::numeric_limits<double>::infinity();
      for (int64_t i = 0; i < s.axis; ++i) {
        pause();
        const int64_t at = start + (s.reverse ? s.axis - 1 - i : i) * s.inner;
        const double next = LogAddExp(sum, static_cast<double>(static_cast<Accumulator<T>>(in[at])));
        out[at] = static_cast<T>(static_cast<Accumulator<T>>(s.exclusive ? sum : next));
        sum = next;
      }
    }
  });
}

class LogsumexpKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(exclusive_, init.Attr<bool>("exclusive"));
    MR_ASSIGN_OR_RETURN(reverse_, init.Attr<bool>("reverse"));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    const Shape shape = ctx.input(0).shape();
    if (ctx.input(1).rank() != 0) {
      return InvalidArgument("ScanOp: axis must be a scalar, not ", ctx.input(1).shape().ToString());
    }
    MR_ASSIGN_OR_RETURN(const int64_t axis, ctx.input(1).IntScalar());
    int64_t at = 0;
    if (!NormalizeIndex(axis, shape.rank(), &at)) {
      return InvalidArgument(
          "ScanOp: Expected scan axis in the range [", -shape.rank(), ", ", shape.rank(), "), but got ", axis);
    }
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    if (shape.num_elements() == 0) return absl::OkStatus();
    Scan s{.exclusive = exclusive_, .reverse = reverse_};
    for (int i = 0; i < shape.rank(); ++i) (i < at ? s.outer : i == at ? s.axis : s.inner) *= shape.dim(i);
    VisitTypes<Half, BFloat16, float, double>(
        ctx.input_dtype(0), [&]<typename T>() { Run<T>(ctx, s, ctx.input(0).data<T>(), out->mutable_data<T>()); });
    return absl::OkStatus();
  }

 private:
  bool exclusive_ = false, reverse_ = false;
};

}  // namespace

void RegisterLogsumexpKernels(KernelRegistry& r) {
  r.Add<LogsumexpKernel>({.op = "CumulativeLogsumexp", .types = {{"T", Types("FLT")}}});
}

}  // namespace millrace
