// SPDX-License-Identifier: Apache-2.0
// CPU kernels: queues.
#include "kernels/cpu/dataflow/queue_kernels.h"

#include "absl/strings/strip.h"
#include "kernel/device_env.h"
#include "kernels/cpu/dataflow/queue.h"
#include "kernels/cpu/engine/resource_handle.h"

namespace millrace {
namespace {

class QueueKernel final : public ResourceKernel<Queue> {
 public:
  Status Init(const KernelInit& init) override {
    MR_RETURN_IF_ERROR(ResourceKernel::Init(init));
    kind_ = std::string(absl::StripSuffix(init.op.name, "V2"));
    options_.name = name().name;
    MR_ASSIGN_OR_RETURN(options_.types, init.Attr<std::vector<DType>>("component_types"));
    MR_ASSIGN_OR_RETURN(options_.shapes, init.Attr<std::vector<PartialShape>>("shapes"));
    MR_ASSIGN_OR_RETURN(options_.capacity, init.Attr<int64_t>("capacity"));
    if (kind_ == "RandomShuffleQueue") {
      MR_ASSIGN_OR_RETURN(min_after_dequeue_, init.Attr<int64_t>("min_after_dequeue"));
      MR_ASSIGN_OR_RETURN(options_.seeds[0], init.Attr<int64_t>("seed"));
      MR_ASSIGN_OR_RETURN(options_.seeds[1], init.Attr<int64_t>("seed2"));
    }
    return absl::OkStatus();
  }

 private:
  absl::string_view TypeName() const override { return kind_; }
  StatusOr<RefPtr<Queue>> Make(KernelContext& ctx) override {
    Env& env = EnvOf(ctx.device());
    const bool unseeded = options_.seeds == std::array<int64_t, 2>{0, 0};
    return Declared(unseeded ? Philox(env.Random64(), env.Random64()) : Seeded());
  }
  Status Verify(const Queue& queue) const override {
    MR_ASSIGN_OR_RETURN(const RefPtr<Queue> declared, Declared(Seeded()));
    return queue.Matches(*declared);
  }
  StatusOr<RefPtr<Queue>> Declared(const Philox& random) const {
    if (kind_ == "FIFOQueue") return NewFifoQueue(options_);
    if (kind_ == "PaddingFIFOQueue") return NewPaddingFifoQueue(options_);
    if (kind_ == "PriorityQueue") return NewPriorityQueue(options_);
    return NewRandomShuffleQueue(options_, min_after_dequeue_, random);
  }
  Philox Seeded() const {
    return Philox(static_cast<uint64_t>(options_.seeds[0]), static_cast<uint64_t>(options_.seeds[1]));
  }

  std::string kind_;
  Queue::Options options_;
  int64_t min_after_dequeue_ = 0;
};

// A handle of the first form for a queue that has one of the second.
Status FakeQueue(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(RefPtr<Queue> queue, FindResource<Queue>(ctx, 0));
  const ResourceHandle& h = *ctx.input(0).data<ResourceHandle>();
  const ResourceName name{h.container, h.name};
  const std::string kind = queue->options().kind;
  return OutputHandle(ctx, 0, name, kind, std::move(queue));
}

Status IsClosed(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const RefPtr<Queue> queue, FindResource<Queue>(ctx, 0));
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape()));
  *out->mutable_data<bool>() = queue->IsClosed();
  return absl::OkStatus();
}

Status Size(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const RefPtr<Queue> queue, FindResource<Queue>(ctx, 0));
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape()));
  *out->mutable_data<int32_t>() = static_cast<int32_t>(queue->Size());  // a capacity fits
  return absl::OkStatus();
}

// What waits at a queue.
class QueueAccessKernel : public AsyncKernel {
 public:
  Status Init(const KernelInit& init) override {
    if (init.HasAttr("timeout_ms")) {
      MR_ASSIGN_OR_RETURN(const int64_t timeout, init.Attr<int64_t>("timeout_ms"));
      if (timeout != -1) return InvalidArgument("Timeout not supported yet: timeout_ms is ", timeout, ", want -1");
    }
    return absl::OkStatus();
  }
  void ComputeAsync(KernelContext& ctx, DoneCallback done) final {
    StatusOr<RefPtr<Queue>> queue = FindResource<Queue>(ctx, 0);
    if (!queue.ok()) return std::move(done)(queue.status());
    Access(ctx, **queue, std::move(done));
  }
  bool IsExpensive() const final { return false; }

 protected:
  virtual void Access(KernelContext& ctx, Queue& queue, DoneCallback done) = 0;
};

template <bool kMany>
class EnqueueKernel final : public QueueAccessKernel {
  void Access(KernelContext& ctx, Queue& queue, DoneCallback done) override {
    Queue::Element element;
    for (int i = 1; i < ctx.num_inputs(); ++i) element.push_back(ctx.input(i));
    if (kMany) {
      queue.EnqueueMany(std::move(element), ctx.step().cancellation, std::move(done));
    } else {
      queue.Enqueue(std::move(element), ctx.step().cancellation, std::move(done));
    }
  }
};

Status CheckOutputTypes(const KernelContext& ctx, const Queue& queue) {
  const std::vector<DType>& types = queue.types();
  bool same = types.size() == static_cast<size_t>(ctx.num_outputs());
  for (size_t c = 0; same && c < types.size(); ++c) same = types[c] == ctx.output_dtype(static_cast<int>(c));
  if (same) return absl::OkStatus();
  std::string have, want;
  for (int o = 0; o < ctx.num_outputs(); ++o) absl::StrAppend(&have, o ? ", " : "", DTypeName(ctx.output_dtype(o)));
  for (DType t : types) absl::StrAppend(&want, want.empty() ? "" : ", ", DTypeName(t));
  return InvalidArgument(
      "Signature mismatch, have: ", have, " expected: ", want, " (the components of ", queue.DebugString(), ")");
}

// Outputs what was dequeued.
Queue::ElementCallback Deliver(KernelContext& ctx, AsyncKernel::DoneCallback done) {
  return [&ctx, done = std::move(done)](Status s, Queue::Element element) mutable {
    for (size_t c = 0; c < element.size(); ++c) ctx.set_output(static_cast<int>(c), std::move(element[c]));
    std::move(done)(std::move(s));
  };
}

class DequeueKernel final : public QueueAccessKernel {
  void Access(KernelContext& ctx, Queue& queue, DoneCallback done) override {
    if (Status s = CheckOutputTypes(ctx, queue); !s.ok()) return std::move(done)(std::move(s));
    queue.Dequeue(ctx.step().cancellation, Deliver(ctx, std::move(done)));
  }
};

template <bool kUpTo>
class DequeueManyKernel final : public QueueAccessKernel {
  void Access(KernelContext& ctx, Queue& queue, DoneCallback done) override {
    Status s = CheckOutputTypes(ctx, queue);
    if (!s.ok()) return std::move(done)(std::move(s));
    const StatusOr<int64_t> n = ctx.input(1).IntScalar();
    if (!n.ok()) return std::move(done)(n.status());
    if (*n < 0) {
      return std::move(done)(
          InvalidArgument(kUpTo ? "DequeueUpToOp" : "DequeueManyOp", " requested ", *n, " < 0 elements"));
    }
    queue.DequeueMany(*n, kUpTo, ctx.step().cancellation, Deliver(ctx, std::move(done)));
  }
};

class CloseKernel final : public QueueAccessKernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(cancel_pending_enqueues_, init.Attr<bool>("cancel_pending_enqueues"));
    return absl::OkStatus();
  }

 private:
  void Access(KernelContext& ctx, Queue& queue, DoneCallback done) override {
    queue.Close(cancel_pending_enqueues_, ctx.step().cancellation, std::move(done));
  }
  bool cancel_pending_enqueues_ = false;
};

}  // namespace

void RegisterQueueKernels(KernelRegistry& r) {
  r.AddFn({.op = "FakeQueue"}, FakeQueue);
  for (const char* version : {"", "V2"}) {
    const auto op = [version](const char* name) { return KernelSpec{.op = absl::StrCat(name, version)}; };
    for (const char* kind : {"FIFOQueue", "PaddingFIFOQueue", "RandomShuffleQueue", "PriorityQueue"}) {
      r.Add<QueueKernel>(op(kind));
    }
    r.Add<EnqueueKernel<false>>(op("QueueEnqueue"));
    r.Add<EnqueueKernel<true>>(op("QueueEnqueueMany"));
    r.Add<DequeueKernel>(op("QueueDequeue"));
    r.Add<DequeueManyKernel<false>>(op("QueueDequeueMany"));
    r.Add<DequeueManyKernel<true>>(op("QueueDequeueUpTo"));
    r.Add<CloseKernel>(op("QueueClose"));
    r.AddFn(op("QueueIsClosed"), IsClosed);
    r.AddFn(op("QueueSize"), Size);
  }
  RegisterBarrierKernels(r);
  RegisterStagingKernels(r);
  RegisterAccumulatorKernels(r);
  RegisterMutexKernels(r);
  RegisterCollectiveKernels(r);
}

}  // namespace millrace
