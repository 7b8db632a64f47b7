// SPDX-License-Identifier: Apache-2.0
// CPU kernels of what the runtime itself puts into graphs: Send and Recv.
#include "kernels/cpu/kernel_list.h"

namespace millrace {
namespace {

Status KeyFromAttrs(const KernelInit& init, std::string* key) {
  MR_ASSIGN_OR_RETURN(const std::string from, init.Attr<std::string>("send_device"));
  MR_ASSIGN_OR_RETURN(const std::string to, init.Attr<std::string>("recv_device"));
  MR_ASSIGN_OR_RETURN(const std::string name, init.Attr<std::string>("tensor_name"));
  MR_ASSIGN_OR_RETURN(const int64_t incarnation, init.Attr<int64_t>("send_device_incarnation"));
  *key = Rendezvous::Key(from, static_cast<uint64_t>(incarnation), to, name, 0, 0);
  return absl::OkStatus();
}

Status NoRendezvous() { return Internal("Send and Recv need a step with a rendezvous"); }

class SendKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override { return KeyFromAttrs(init, &key_); }
  bool IsExpensive() const override { return false; }
  Status Compute(KernelContext& ctx) override {
    if (!ctx.step().rendezvous) return NoRendezvous();
    return ctx.step().rendezvous->Send(key_, ctx.input(0), false);
  }

 private:
  std::string key_;
};

class RecvKernel : public AsyncKernel {
 public:
  Status Init(const KernelInit& init) override {
    want_ = init.output_type(0);
    return KeyFromAttrs(init, &key_);
  }
  bool IsExpensive() const override { return false; }
  void ComputeAsync(KernelContext& ctx, DoneCallback done) override {
    if (!ctx.step().rendezvous) return std::move(done)(NoRendezvous());
    ctx.step().rendezvous->RecvAsync(
        key_, [&ctx, want = want_, done = std::move(done)](const Status& s, Tensor value, bool) mutable {
          if (!s.ok()) return std::move(done)(s);
          if (value.dtype() != want) {
            return std::move(done)(InvalidArgument("received ", DTypeName(value.dtype()), ", wants ", DTypeName(want)));
          }
          ctx.set_output(0, std::move(value));
          std::move(done)(absl::OkStatus());
        });
  }

 private:
  std::string key_;
  DType want_ = DType::kInvalid;
};

}  // namespace

void RegisterRuntimeKernels(KernelRegistry& registry) {
  registry.Add<SendKernel>({.op = "_Send"});
  registry.Add<SendKernel>({.op = "_HostSend"});
  registry.Add<RecvKernel>({.op = "_Recv"});
  registry.Add<RecvKernel>({.op = "_HostRecv"});
}

}  // namespace millrace
