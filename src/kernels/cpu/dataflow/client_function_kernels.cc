// SPDX-License-Identifier: Apache-2.0
// Kernels: functions of the client's language. A step that is cancelled does not wait for a function that runs: what it
// returns later is dropped.
#include "kernels/cpu/dataflow/client_function_kernels.h"

#include <atomic>

#include "base/limited_env.h"
#include "kernel/cancellation.h"
#include "kernel/client_function.h"
#include "kernel/device_env.h"
#include "kernel/kernel.h"

namespace millrace {
namespace {

// One call. Shared by the thread that runs it and the step's cancellation: whoever is first ends the node.
class ClientCall {
 public:
  ClientCall(KernelContext& ctx, const std::string& token, std::shared_ptr<ClientFunction> function,
             AsyncKernel::DoneCallback done)
      : ctx_(ctx),
        cancellation_(ctx.step().cancellation),
        token_(token),
        function_(std::move(function)),
        done_(std::move(done)) {
    for (int i = 0; i < ctx.num_inputs(); ++i) {
      inputs_.push_back(ctx.TakeInput(i));
      if (!inputs_.back().IsInitialized()) inputs_.back() = ctx.input(i);
    }
    for (int o = 0; o < ctx.num_outputs(); ++o) types_.push_back(ctx.output_dtype(o));
  }

  static void Start(std::shared_ptr<ClientCall> call) {
    if (call->cancellation_) {
      call->registration_ = call->cancellation_->Register([call] { call->Cancel(); });
      if (call->registration_ == CancellationManager::kInvalid) call->Cancel();
      if (call->ended_.load()) return;
    }
    const Status s = EnvOf(call->ctx_.device()).StartThread([call] { call->Run(); });
    if (!s.ok()) call->End(s, {});
  }

 private:
  void Run() {
    std::vector<Tensor> outputs;
    Status s = function_->Call(inputs_, types_.size(), &outputs);
    inputs_.clear();
    if (s.ok()) s = Check(outputs);
    End(s, std::move(outputs));
  }

  Status Check(const std::vector<Tensor>& outputs) const {
    if (outputs.size() != types_.size()) {
      return InvalidArgument(
          token_, " returns ", outputs.size(), " values, but expects to see ", types_.size(), " values.");
    }
    for (size_t i = 0; i < types_.size(); ++i) {
      if (!outputs[i].IsInitialized()) return Internal(token_, " gave output ", i, " no value");
      if (outputs[i].dtype() == types_[i]) continue;
      return InvalidArgument(i, "-th value returned by ", token_, " is ", DTypeName(outputs[i].dtype()),
                             ", but expects ", DTypeName(types_[i]));
    }
    return absl::OkStatus();
  }

  void Cancel() {
    if (!ended_.exchange(true)) Deliver(cancellation_->reason(), {});
  }

  // The step, and its cancellation with it, lives until Deliver.
  void End(const Status& s, std::vector<Tensor> outputs) {
    if (ended_.exchange(true)) return;
    if (cancellation_) cancellation_->Deregister(registration_);
    Deliver(s, std::move(outputs));
  }

  void Deliver(const Status& s, std::vector<Tensor> outputs) {
    for (size_t o = 0; s.ok() && o < outputs.size(); ++o) ctx_.set_output(static_cast<int>(o), std::move(outputs[o]));
    AsyncKernel::DoneCallback done = std::move(done_);
    std::move(done)(s);
  }

  KernelContext& ctx_;  // valid until the node has ended
  CancellationManager* const cancellation_;
  const std::string token_;
  const std::shared_ptr<ClientFunction> function_;
  AsyncKernel::DoneCallback done_;
  std::vector<Tensor> inputs_;
  std::vector<DType> types_;
  CancellationManager::Token registration_ = CancellationManager::kInvalid;
  std::atomic<bool> ended_{false};
};

class ClientFunctionKernel : public AsyncKernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(token_, init.Attr<std::string>("token"));
    return CheckMayCallClientFunctions(EnvOf(init.device));
  }
  void ComputeAsync(KernelContext& ctx, DoneCallback done) override {
    std::shared_ptr<ClientFunction> function = FindClientFunction(token_);
    if (!function) {
      return std::move(done)(InvalidArgument(
          "callback ", token_, " is not found: node '", ctx.node_name(),
          "' calls a function of a client, which registers it when it builds the graph; it is "
          "in no GraphDef, and gone when that graph is gone. This is ",
          ctx.device().name(),
          ": a node that names no task runs on the cluster's first; tf.device names the client's"));
    }
    ClientCall::Start(std::make_shared<ClientCall>(ctx, token_, std::move(function), std::move(done)));
  }

 private:
  std::string token_;
};

}  // namespace

void RegisterClientFunctionKernels(KernelRegistry& registry) {
  for (const char* op : {"PyFunc", "PyFuncStateless", "EagerPyFunc"}) registry.Add<ClientFunctionKernel>({.op = op});
}

}  // namespace millrace
