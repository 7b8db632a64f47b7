// SPDX-License-Identifier: Apache-2.0
// Kernels whose functions are C, and what stands behind the contexts that these functions see.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/inlined_vector.h"
#include "absl/synchronization/mutex.h"
#include "kernel/cancellation.h"
#include "kernel/device_memory.h"
#include "millrace/c_api_kernels.h"

struct TF_KernelBuilder;

namespace millrace::capi {

// Keeps the first failure. May be used concurrently.
class FirstFailure {
 public:
  void Update(const Status& s) {
    absl::MutexLock lock(&mu_);
    status_.Update(s);
  }
  Status Get() const {
    absl::MutexLock lock(&mu_);
    return status_;
  }

 private:
  mutable absl::Mutex mu_;
  Status status_ ABSL_GUARDED_BY(mu_);
};

// What a kernel wants to be called when its step is cancelled. Shared with the step's cancellation, which may outlive
// the operation.
class CancelHook {
 public:
  CancelHook(void (*callback)(void*), void* data) : callback_(callback), data_(data) {}
  void Run();
  void SetToken(CancellationManager::Token token);
  // After it the callback does not run, and is not running but on this thread. The token to take the hook back with;
  // kInvalid while it runs on this thread.
  CancellationManager::Token End();

 private:
  void (*const callback_)(void*);
  void* const data_;
  absl::Mutex mu_;
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
  bool running_ ABSL_GUARDED_BY(mu_) = false;
  uint32_t runner_ ABSL_GUARDED_BY(mu_) = 0;
  CancellationManager::Token token_ ABSL_GUARDED_BY(mu_) = CancellationManager::kInvalid;
};

struct PluginKernelFunctions {
  std::string name;  // for messages
  void* (*create)(TF_OpKernelConstruction*) = nullptr;
  void (*compute)(void*, TF_OpKernelContext*) = nullptr;
  void (*compute_async)(void*, TF_OpKernelContext*, TF_AsyncOpKernelDoneCallback*) = nullptr;
  void (*destroy)(void*) = nullptr;
  std::vector<std::string> host_memory;  // arguments
};

// Synchronous or asynchronous, as `functions` say.
KernelFactory MakePluginKernelFactory(std::shared_ptr<const PluginKernelFunctions> functions);

}  // namespace millrace::capi

struct TF_OpKernelConstruction {
  const millrace::KernelInit& init;
  millrace::capi::FirstFailure failure;
};

struct TF_OpKernelContext {
  // `arg_memory`: null where the device works on host memory.
  TF_OpKernelContext(millrace::KernelContext& context, const millrace::ArgMemory* arg_memory, bool asynchronous)
      : ctx(context), memory(arg_memory), is_async(asynchronous) {}
  ~TF_OpKernelContext() { UnlockVariables(); }
  TF_OpKernelContext(const TF_OpKernelContext&) = delete;
  TF_OpKernelContext& operator=(const TF_OpKernelContext&) = delete;

  // The failure, or that of an output of the wrong type or with malformed strings; makes bools of other bytes than 0
  // and 1 proper.
  millrace::Status Finish();

  bool IsOnHost(const std::vector<bool> millrace::ArgMemory::* args, int i) const {
    return memory == nullptr || (memory->*args)[static_cast<size_t>(i)];
  }
  bool IsInputOnHost(int i) const { return IsOnHost(&millrace::ArgMemory::host_inputs, i); }
  bool IsOutputOnHost(int o) const { return IsOnHost(&millrace::ArgMemory::host_outputs, o); }
  void UnlockVariables();

  millrace::KernelContext& ctx;
  const millrace::ArgMemory* const memory;
  const bool is_async;
  millrace::capi::FirstFailure failure;
  bool stopped = false;                                   // a ParallelFor was left
  absl::InlinedVector<std::pair<int, int>, 2> forwarded;  // input, output that has its memory now
  std::shared_ptr<millrace::capi::CancelHook> hook;       // of an asynchronous kernel
  std::vector<millrace::RefPtr<millrace::Variable>> locked;
};
