// SPDX-License-Identifier: Apache-2.0
// Kernels of what the runtime itself puts into graphs: Send and Recv, and copies between memories.
#include <algorithm>

#include "absl/strings/str_join.h"
#include "kernel/edge_key.h"
#include "kernels/cpu/any_device.h"
#include "kernels/cpu/kernel_list.h"

namespace millrace {
namespace {

// The rendezvous keys of an edge; within a loop each iteration has its own.
class EdgeKeys {
 public:
  Status Init(const KernelInit& init) {
    MR_ASSIGN_OR_RETURN(edge_, init.Attr<int64_t>(kEdgeAttr));
    outside_loops_ = EdgeKey{edge_}.ToString();
    return absl::OkStatus();
  }
  std::string In(const StepContext& step) const {
    if (step.frame == 0 && step.iteration == 0) return outside_loops_;
    return EdgeKey{edge_, step.frame, step.iteration}.ToString();
  }

 private:
  int64_t edge_ = 0;
  std::string outside_loops_;
};

Status NoRendezvous() { return Internal("Send and Recv need a step with a rendezvous"); }

class SendKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    is_remote_ = SpaceOf(init.device) != nullptr;
    return keys_.Init(init);
  }
  bool IsExpensive() const override { return false; }
  Status Compute(KernelContext& ctx) override {
    if (!ctx.step().rendezvous) return NoRendezvous();
    if (is_remote_ && !ctx.is_dead(0)) MR_RETURN_IF_ERROR(CheckMayLeaveDevice(ctx.input(0)));
    return ctx.step().rendezvous->Send(keys_.In(ctx.step()), ctx.input(0), ctx.is_dead(0));
  }

 private:
  EdgeKeys keys_;
  bool is_remote_ = false;
};

class RecvKernel : public AsyncKernel {
 public:
  Status Init(const KernelInit& init) override {
    want_ = init.output_type(0);
    return keys_.Init(init);
  }
  bool IsExpensive() const override { return false; }
  void ComputeAsync(KernelContext& ctx, DoneCallback done) override {
    if (!ctx.step().rendezvous) return std::move(done)(NoRendezvous());
    ctx.step().rendezvous->RecvAsync(
        keys_.In(ctx.step()),
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
  EdgeKeys keys_;
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

class DeviceTypeIndexKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(types_, init.Attr<std::vector<std::string>>("device_names"));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    const auto found = std::find(types_.begin(), types_.end(), ctx.device().parsed_name().type);
    ctx.set_output(0, Tensor::Scalar(static_cast<int32_t>(found - types_.begin())));
    return absl::OkStatus();
  }
  bool IsExpensive() const override { return false; }

 private:
  std::vector<std::string> types_;
};

class DeviceIndexKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(names_, init.Attr<std::vector<std::string>>("devices"));
    for (const std::string& name : names_) {
      MR_ASSIGN_OR_RETURN(DeviceName parsed, DeviceName::Parse(name));
      devices_.push_back(std::move(parsed));
    }
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    if (ctx.input(0).num_elements() != 1) {
      return InvalidArgument("the target of a remote call is ", ctx.input(0).shape().ToString(), ", not one string");
    }
    const std::string target = ctx.input(0).data<TString>()->str();
    MR_ASSIGN_OR_RETURN(const DeviceName wanted, DeviceName::Parse(target));
    const DeviceName& here = ctx.device().parsed_name();
    const auto find = [&](const DeviceName& within) {
      return std::find_if(devices_.begin(), devices_.end(), [&](const DeviceName& d) {
        return wanted.Matches(d) && within.Matches(d);
      });
    };
    auto found = find({.job = here.job, .replica = here.replica, .task = here.task});
    if (found == devices_.end()) found = find({});
    if (found == devices_.end()) {
      return InvalidArgument(
          "the target '", target, "' of a remote call names none of the devices ", absl::StrJoin(names_, ", "));
    }
    ctx.set_output(0, Tensor::Scalar(static_cast<int32_t>(found - devices_.begin())));
    return absl::OkStatus();
  }
  bool IsExpensive() const override { return false; }

 private:
  std::vector<std::string> names_;
  std::vector<DeviceName> devices_;
};

}  // namespace

void AddTransferKernels(AnyDeviceKernels& r) {
  // What travels is in host memory.
  for (const char* op : {"_Send", "_HostSend"}) r.Add<SendKernel>(op, {"tensor"});
  for (const char* op : {"_Recv", "_HostRecv"}) r.Add<RecvKernel>(op, {"tensor"});
  r.Add<CopyToHostKernel>("_CopyToHost", {"output"}, ElementCost);
  r.Add<CopyFromHostKernel>("_CopyFromHost", {"input"}, ElementCost);
}

void RegisterRuntimeKernels(KernelRegistry& registry) {
  registry.Add<DeviceTypeIndexKernel>({.op = "DeviceIndex"});
  registry.Add<DeviceIndexKernel>({.op = "_DeviceIndex"});
  registry.Add<RelistKernel>({.op = "_ListToArray"});
  registry.Add<RelistKernel>({.op = "_ArrayToList"});
}

}  // namespace millrace
