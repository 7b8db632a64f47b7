// SPDX-License-Identifier: Apache-2.0
// C code may throw (it may be C++) and may run `done` twice; neither may bring the process down.
#include "capi/plugin/plugin_kernel.h"

#include <algorithm>

#include "base/current_thread.h"
#include "base/hash_map.h"
#include "base/stop_scope.h"
#include "base/this_world.h"
#include "capi/internal.h"
#include "capi/plugin/foreign.h"

struct TF_AsyncOpKernelDoneCallback {
  TF_AsyncOpKernelDoneCallback(millrace::KernelContext& ctx, const millrace::ArgMemory* memory,
                               millrace::AsyncKernel::DoneCallback callback)
      : context(ctx, memory, /*asynchronous=*/true), done(std::move(callback)) {}
  TF_OpKernelContext context;
  millrace::AsyncKernel::DoneCallback done;
};

namespace millrace::capi {
namespace {

// The calls that have not ended. Only what is in here is ever dereferenced.
struct LiveCalls {
  absl::Mutex mu;
  HashSet<TF_AsyncOpKernelDoneCallback*> calls ABSL_GUARDED_BY(mu);
};
LiveCalls& Live() {
  static auto* const live = new LiveCalls;
  return *live;
}

void EndHook(TF_OpKernelContext& c) {
  if (!c.hook) return;
  const CancellationManager::Token token = c.hook->End();
  CancellationManager* cancellation = c.ctx.step().cancellation;
  // A manager that has been cancelled has forgotten its callbacks; this may be one of them.
  if (token == CancellationManager::kInvalid || cancellation == nullptr || cancellation->IsCancelled()) return;
  cancellation->Deregister(token);
}

void EndCall(TF_AsyncOpKernelDoneCallback* call, Status thrown) {
  {
    LiveCalls& live = Live();
    absl::MutexLock lock(&live.mu);
    if (live.calls.erase(call) == 0) return;
  }
  const std::unique_ptr<TF_AsyncOpKernelDoneCallback> owned(call);
  EndHook(call->context);
  call->context.failure.Update(thrown);
  Status s;
  try {
    s = call->context.Finish();
  } catch (...) {
    s = StatusFromException();
  }
  std::move(call->done)(std::move(s));
}

Status CheckHostMemory(const PluginKernelFunctions& f, const OpDef& op) {
  for (const std::string& arg : f.host_memory) {
    const auto named = [&](const ArgDef& a) { return a.name == arg; };
    if (std::any_of(op.inputs.begin(), op.inputs.end(), named)) continue;
    if (std::any_of(op.outputs.begin(), op.outputs.end(), named)) continue;
    return InvalidArgument("HostMemory args '", arg, "' not found in OpDef: ", op.name);
  }
  return absl::OkStatus();
}

// One kernel's state, freed with it.
class State {
 public:
  explicit State(std::shared_ptr<const PluginKernelFunctions> functions) : f_(std::move(functions)) {}
  ~State() {
    if (!made_ || f_->destroy == nullptr) return;
    CallForeign([&] { f_->destroy(state_); }).IgnoreError();  // nobody is left to be told
  }
  Status Make(const KernelInit& init) {
    MR_RETURN_IF_ERROR(CheckHostMemory(*f_, init.op));
    if (SpaceOf(init.device) != nullptr) {
      memory_ = std::make_unique<ArgMemory>(MemoryOf(init.op, init.attrs, init.signature, init.device.type()));
    }
    TF_OpKernelConstruction construction{init, {}};
    made_ = true;
    construction.failure.Update(CallForeign([&] {
      if (f_->create != nullptr) state_ = f_->create(&construction);
    }));
    return construction.failure.Get();
  }
  const PluginKernelFunctions& functions() const { return *f_; }
  const ArgMemory* memory() const { return memory_.get(); }
  void* get() const { return state_; }

 private:
  const std::shared_ptr<const PluginKernelFunctions> f_;
  std::unique_ptr<const ArgMemory> memory_;
  void* state_ = nullptr;
  bool made_ = false;
};

class PluginKernel : public Kernel {
 public:
  explicit PluginKernel(std::shared_ptr<const PluginKernelFunctions> f) : state_(std::move(f)) {}
  Status Init(const KernelInit& init) override { return state_.Make(init); }
  Status Compute(KernelContext& ctx) override {
    TF_OpKernelContext context(ctx, state_.memory(), /*asynchronous=*/false);
    MR_RETURN_IF_ERROR(CallForeign([&] { state_.functions().compute(state_.get(), &context); }));
    if (context.stopped) throw WorkStopped();
    return context.Finish();
  }

 private:
  State state_;
};

class AsyncPluginKernel : public AsyncKernel {
 public:
  explicit AsyncPluginKernel(std::shared_ptr<const PluginKernelFunctions> f) : state_(std::move(f)) {}
  Status Init(const KernelInit& init) override { return state_.Make(init); }
  void ComputeAsync(KernelContext& ctx, DoneCallback done) override {
    auto* call = new TF_AsyncOpKernelDoneCallback(ctx, state_.memory(), std::move(done));
    {
      LiveCalls& live = Live();
      absl::MutexLock lock(&live.mu);
      live.calls.insert(call);
    }
    const Status thrown = CallForeign([&] { state_.functions().compute_async(state_.get(), &call->context, call); });
    if (!thrown.ok()) EndCall(call, thrown);
  }

 private:
  State state_;
};

}  // namespace

void CancelHook::Run() {
  {
    absl::MutexLock lock(&mu_);
    if (ended_) return;
    running_ = true;
    runner_ = CurrentThread();
  }
  CallForeign([&] { callback_(data_); }).IgnoreError();  // the kernel still has to end its operation
  absl::MutexLock lock(&mu_);
  running_ = false;
}

void CancelHook::SetToken(CancellationManager::Token token) {
  absl::MutexLock lock(&mu_);
  token_ = token;
}

CancellationManager::Token CancelHook::End() {
  absl::MutexLock lock(&mu_);
  ended_ = true;
  if (running_ && runner_ == CurrentThread()) return CancellationManager::kInvalid;
  AwaitInThisWorld(mu_, absl::Condition(+[](bool* running) { return !*running; }, &running_));
  return token_;
}

KernelFactory MakePluginKernelFactory(std::shared_ptr<const PluginKernelFunctions> functions) {
  if (functions->compute_async != nullptr) {
    return [functions] { return std::make_unique<AsyncPluginKernel>(functions); };
  }
  return [functions] { return std::make_unique<PluginKernel>(functions); };
}

}  // namespace millrace::capi

millrace::Status TF_OpKernelContext::Finish() {
  MR_RETURN_IF_ERROR(failure.Get());
  for (int o = 0; o < ctx.num_outputs(); ++o) {
    millrace::Tensor* out = ctx.mutable_output(o);
    if (!out->IsInitialized()) continue;  // the executor says so
    if (out->dtype() != ctx.output_dtype(o)) {
      return millrace::Internal("Output ", o, " of type ", millrace::DTypeName(out->dtype()),
                                " does not match declared output type ", millrace::DTypeName(ctx.output_dtype(o)));
    }
    if (SpaceOf(*out) != nullptr) continue;  // the copy to the host makes bools proper
    const bool strings = out->dtype() == millrace::DType::kString;
    if (!strings && out->dtype() != millrace::DType::kBool) continue;
    const TF_Tensor view{*out, nullptr, strings};
    MR_ASSIGN_OR_RETURN(millrace::Tensor proper, millrace::capi::FeedValue(&view));
    *out = std::move(proper);
  }
  return absl::OkStatus();
}

extern "C" void TF_RunAsyncOpKernelDoneCallback(TF_AsyncOpKernelDoneCallback* done) {
  if (done == nullptr) return;
  try {
    millrace::capi::EndCall(done, absl::OkStatus());
  } catch (...) {  // the step's own code does not throw
  }
}
