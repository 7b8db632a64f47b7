// SPDX-License-Identifier: Apache-2.0
// Kernels of Sum, Mean, Prod, Max, Min, EuclideanNorm, All, Any.
#include <memory>

#include "kernels/cpu/engine/math_reduce.h"
#include "kernels/cpu/math/math.h"

namespace millrace {
namespace {

template <ReduceKind kKind>
class ReductionKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(keep_dims_, init.Attr<bool>("keep_dims"));
    reducer_ = FindReducer(kKind, init.input_type(0));
    return reducer_ ? absl::OkStatus() : Unimplemented("no reduction of ", DTypeName(init.input_type(0)));
  }
  Status Compute(KernelContext& ctx) override {
    const Tensor& in = ctx.input(0);
    ReducePlan plan;
    MR_RETURN_IF_ERROR(PlanReduction(in.shape(), ctx.input(1), keep_dims_, &plan));
    // Nothing is combined: for all kinds but the norm, the input is the result.
    if (plan.result.num_elements() == in.num_elements() && kKind != ReduceKind::kNorm) {
      return ctx.ForwardReshaped(0, 0, plan.result);
    }
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, plan.result));
    return Reduce(ctx, *reducer_, plan, in, out);
  }

 private:
  bool keep_dims_ = false;
  std::shared_ptr<const Reducer> reducer_;
};

template <ReduceKind kKind>
void Add(KernelRegistry& registry, const char* op, const char* types) {
  registry.Add<ReductionKernel<kKind>>({.op = op, .types = {{"T", Types(types)}}});
}

}  // namespace

void RegisterReductionKernels(KernelRegistry& registry) {
  Add<ReduceKind::kSum>(registry, "Sum", "REAL|CPX");
  Add<ReduceKind::kMean>(registry, "Mean", "REAL|CPX");
  Add<ReduceKind::kProd>(registry, "Prod", "REAL|CPX");
  Add<ReduceKind::kNorm>(registry, "EuclideanNorm", "REAL|CPX");
  Add<ReduceKind::kMax>(registry, "Max", "REAL");
  Add<ReduceKind::kMin>(registry, "Min", "REAL");
  registry.Add<ReductionKernel<ReduceKind::kAll>>({.op = "All"});
  registry.Add<ReductionKernel<ReduceKind::kAny>>({.op = "Any"});
}

}  // namespace millrace
