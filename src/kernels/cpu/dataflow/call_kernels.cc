// SPDX-License-Identifier: Apache-2.0
// Calls that run when they are reached: of functions that call themselves. All others are expanded before a step.
#include "kernels/cpu/dataflow/call_kernels.h"

#include "kernel/kernel.h"
#include "kernel/step_function.h"
#include "kernel/step_threads.h"

namespace millrace {
namespace {

class CallKernel final : public Kernel, public UsesFunctions {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(function_, init.Attr<FuncAttr>("f"));
    MR_ASSIGN_OR_RETURN(arguments_, init.Attr<std::vector<DType>>("Tin"));
    MR_ASSIGN_OR_RETURN(results_, init.Attr<std::vector<DType>>("Tout"));
    return absl::OkStatus();
  }
  void SetFunctions(std::shared_ptr<FunctionSource> functions) override { source_ = std::move(functions); }

  Status Compute(KernelContext& ctx) override {
    if (!source_) return Unimplemented("function '", function_.name, "' cannot be run here");
    CancellationManager& cancellation = *ctx.step().cancellation;
    MR_RETURN_IF_ERROR(cancellation.reason());
    MR_ASSIGN_OR_RETURN(const RefPtr<StepFunction> called, source_->Shared(function_, arguments_, cancellation));
    std::vector<Tensor> arguments, results;
    for (int i = 0; i < static_cast<int>(arguments_.size()); ++i) arguments.push_back(ctx.input(i));
    MR_RETURN_IF_ERROR(called->Run(arguments, {cancellation, StepThreads::Of(ctx.step()), ctx.step().trace}, &results));
    if (results.size() != results_.size()) {
      return InvalidArgument(
          "function '", function_.name, "' returns ", results.size(), " values, wanted ", results_.size());
    }
    for (size_t i = 0; i < results.size(); ++i) {
      if (results[i].dtype() != results_[i]) {
        return InvalidArgument("function '", function_.name, "' returns ", DTypeName(results[i].dtype()), " as value ",
                               i, ", wanted ", DTypeName(results_[i]));
      }
      ctx.set_output(static_cast<int>(i), std::move(results[i]));
    }
    return absl::OkStatus();
  }

 private:
  FuncAttr function_;
  std::vector<DType> arguments_, results_;
  std::shared_ptr<FunctionSource> source_;
};

}  // namespace

void RegisterCallKernels(KernelRegistry& r) { r.Add<CallKernel>({.op = "StatefulPartitionedCall"}); }

}  // namespace millrace
