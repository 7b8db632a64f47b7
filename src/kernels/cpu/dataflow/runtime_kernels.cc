// SPDX-License-Identifier: Apache-2.0
// Kernels of what the runtime itself puts into graphs: Send and Recv, and copies between memories.
#include <algorithm>

#include "kernels/cpu/any_device.h"
#include "kernels/cpu/kernel_list.h"

namespace millrace {
namespace {

// The rendezvous key of an edge; within a loop each iteration has its own.
class EdgeKey {
 public:
  Status Init(const KernelInit& init) {
    MR_ASSIGN_OR_RETURN(from_, init.Attr<std::string>("send_device"));
    MR_ASSIGN_OR_RETURN(to_, init.Attr<std::string>("recv_device"));
    MR_ASSIGN_OR_RETURN(name_, init.Attr<std::string>("tensor_name"));
    MR_ASSIGN_OR_RETURN(const int64_t incarnation, init.Attr<int64_t>("send_device_incarnation"));
    incarnation_ = static_cast<uint64_t>(incarnation);
    outside_loops_ = Rendezvous::Key(from_, incarnation_, to_, name_, 0, 0);
    return absl::OkStatus();
  }
  std::string In(const StepContext& step) const {
    if (step.frame == 0 && step.iteration == 0) return outside_loops_;
    return Rendezvous::Key(from_, incarnation_, to_, name_, step.frame, step.iteration);
  }

 private:
  std::string from_, to_, name_, outside_loops_;
  uint64_t incarnation_ = 0;
};

Status NoRendezvous() { return Internal("Send and Recv need a step with a rendezvous"); }

class SendKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    is_remote_ = SpaceOf(init.device) != nullptr;
    return key_.Init(init);
  }
  bool IsExpensive() const override { return false; }
  Status Compute(KernelContext& ctx) override {
    if (!ctx.step().rendezvous) return NoRendezvous();
    if (is_remote_ && !ctx.is_dead(0)) MR_RETURN_IF_ERROR(CheckMayLeaveDevice(ctx.input(0)));
    return ctx.step().rendezvous->Send(key_.In(ctx.step()), ctx.input(0), ctx.is_dead(0));
  }

 private:
  EdgeKey key_;
  bool is_remote_ = false;
};

class RecvKernel : public AsyncKernel {
 public:
  Status Init(const KernelInit& init) override {
    want_ = init.output_type(0);
    return key_.Init(init);
  }
  bool IsExpensive() const override { return false; }
  void ComputeAsync(KernelContext& ctx, DoneCallback done) override {
    if (!ctx.step().rendezvous) return std::move(done)(NoRendezvous());
    ctx.step().rendezvous->RecvAsync(
        key_.In(ctx.step()),
        [&ctx, want = want_, done = std::move(done)](const Status& s, Tensor value, bool is_dead) mutable {
          if (!s.ok() || is_dead) return std::move(done)(s);
          if (value.dtype() != want) {
            return std::move(done)(InvalidArgument("received ", DTypeName(value.dtype()), ", wants ", DTypeName(want)));
          }
          ctx.set_output(0, std::move(value));
          std::move(done)(absl::OkStatus());
        });
  }

 private:
  EdgeKey key_;
  DType want_ = DType::kInvalid;
};

// Waits for what the device has queued, so it is asynchronous.
class CopyToHostKernel final : public AsyncKernel {
 public:
  bool IsExpensive() const override { return false; }
  void ComputeAsync(KernelContext& ctx, DoneCallback done) override {
    CopyToHost(ctx.input(0), [&ctx, done = std::move(done)](StatusOr<Tensor> copy) mutable {
      if (!copy.ok()) return std::move(done)(copy.status());
      if (copy->dtype() == DType::kBool) {  // a device may write other bytes than 0 and 1
        auto* const bytes = static_cast<unsigned char*>(copy->mutable_raw());
        std::transform(bytes, bytes + copy->TotalBytes(), bytes, [](unsigned char b) { return b != 0; });
      }
      ctx.set_output(0, *std::move(copy));
      std::move(done)(absl::OkStatus());
    });
  }
};

class CopyFromHostKernel final : public Kernel {
 public:
  bool IsExpensive() const override { return false; }
  Status Compute(KernelContext& ctx) override {
    MR_ASSIGN_OR_RETURN(Tensor copy, CopyToDevice(ctx, ctx.input(0)));
    ctx.set_output(0, std::move(copy));
    return absl::OkStatus();
  }
};

class RelistKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    if (init.num_inputs() != init.num_outputs()) {
      return InvalidArgument(init.num_inputs(), " inputs do not make ", init.num_outputs(), " outputs");
    }
    for (int i = 0; i < init.num_inputs(); ++i) {
      if (init.input_type(i) == init.output_type(i)) continue;
      return InvalidArgument(
          "input ", i, " is ", DTypeName(init.input_type(i)), ", output is ", DTypeName(init.output_type(i)));
    }
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    for (int i = 0; i < ctx.num_inputs(); ++i) ctx.Forward(i, i);
    return absl::OkStatus();
  }
  bool IsExpensive() const override { return false; }
};

}  // namespace

void AddTransferKernels(AnyDeviceKernels& r) {
  // What travels is in host memory.
  for (const char* op : {"_Send", "_HostSend"}) r.Add<SendKernel>(op, {"tensor"});
  for (const char* op : {"_Recv", "_HostRecv"}) r.Add<RecvKernel>(op, {"tensor"});
  r.Add<CopyToHostKernel>("_CopyToHost", {"output"});
  r.Add<CopyFromHostKernel>("_CopyFromHost", {"input"});
}

void RegisterRuntimeKernels(KernelRegistry& registry) {
  registry.Add<RelistKernel>({.op = "_ListToArray"});
  registry.Add<RelistKernel>({.op = "_ArrayToList"});
}

}  // namespace millrace
