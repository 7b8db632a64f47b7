// SPDX-License-Identifier: Apache-2.0
// CPU kernels: MutexV2, MutexLock, ConsumeMutexLock. A lock is a variant: the mutex is free again when the last tensor
// that holds it is gone, whether it was consumed, or dropped by a step that failed. Who waits holds no thread.
#include "kernels/cpu/dataflow/queue_kernels.h"
#include "kernels/cpu/engine/waiting_resource.h"

namespace millrace {
namespace {

class Mutex final : public WaitingResource {
 public:
  std::string DebugString() const override { return "Mutex"; }

  // Part of an attempt.
  bool TryLock() {
    if (held_) return false;
    held_ = true;
    return true;
  }
  void Unlock() {
    Call(
        Line::kNone,
        [this](Status*) {
          held_ = false;
          return true;
        },
        nullptr, [](Status) {});
  }

 private:
  bool held_ = false;  // changed by attempts only, which run under the resource's lock
};

class MutexLockValue final : public VariantValue {
 public:
  explicit MutexLockValue(RefPtr<Mutex> mutex) : mutex_(std::move(mutex)) {}
  ~MutexLockValue() override { mutex_->Unlock(); }
  std::string TypeName() const override { return "(anonymous)::Mutex::SharedLockReleaser"; }
  std::string DebugString() const override { return "a lock of a mutex"; }

 private:
  const RefPtr<Mutex> mutex_;
};

class MutexKernel final : public ResourceKernel<Mutex> {
 protected:
  absl::string_view TypeName() const override { return "Mutex"; }
  StatusOr<RefPtr<Mutex>> Make(KernelContext&) override { return MakeRef<Mutex>(); }
  Status Verify(const Mutex&) const override { return absl::OkStatus(); }
  bool IsSharedByNode(const KernelInit&) const override { return true; }
};

class MutexLockKernel final : public CallKernel<Mutex> {
 protected:
  StatusOr<WaitingResource::Attempt> Prepare(KernelContext& ctx, Mutex& mutex) override {
    // Memory first: an attempt that succeeds must not fail after it.
    MR_ASSIGN_OR_RETURN(Tensor out, Tensor::Make(DType::kVariant, Shape()));
    return WaitingResource::Attempt([&ctx, &mutex, out = std::move(out)](Status*) mutable {
      if (!mutex.TryLock()) return false;
      *out.mutable_data<Variant>() = Variant(MakeRef<MutexLockValue>(RefPtr<Mutex>::Share(&mutex)));
      ctx.set_output(0, std::move(out));
      return true;
    });
  }
  WaitingResource::Line line() const override { return WaitingResource::Line::kTake; }
};

Status ConsumeMutexLock(KernelContext& ctx) {
  Tensor lock = ctx.TakeInput(0);
  if (!lock.IsInitialized()) lock = ctx.input(0);
  if (lock.rank() != 0) {
    return InvalidArgument("Expected input to be a scalar, saw shape: ", lock.shape().ToString());
  }
  const Variant& v = *lock.data<Variant>();
  if (v.As<MutexLockValue>() == nullptr) {
    return InvalidArgument("Expected input to contain a SharedLockReleaser object, but saw variant: '",
                           v.empty() ? "" : v.get()->DebugString(), "'");
  }
  if (!v.get()->HasOneRef()) return InvalidArgument("Expected use count of lock to be 1, but saw more");
  return absl::OkStatus();
}

}  // namespace

void RegisterMutexKernels(KernelRegistry& r) {
  r.Add<MutexKernel>({.op = "MutexV2"});
  r.Add<MutexLockKernel>({.op = "MutexLock"});
  r.AddFn({.op = "ConsumeMutexLock"}, ConsumeMutexLock);
}

}  // namespace millrace
