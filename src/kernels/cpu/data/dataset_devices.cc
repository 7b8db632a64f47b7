// SPDX-License-Identifier: Apache-2.0
// Iterators that deal their elements to several devices, the first to the first device and so on in turn. Whoever asks
// for an element reads as far as its own; what is for others waits for them, up to max_buffer_size each.
#include <deque>

#include "absl/strings/str_split.h"
#include "kernels/cpu/data/dataset.h"
#include "kernels/cpu/data/dataset_wait.h"
#include "kernels/cpu/engine/resource_handle.h"

namespace millrace {
namespace {

constexpr char kTypeName[] = "tensorflow::data::MultiDeviceIterator";
constexpr char kHandlePrefix[] = "millrace.multi_device_iterator";

// One pass over a data set.
class Deal {
 public:
  Deal(DataIteratorPtr iterator, size_t shards, size_t room, int64_t incarnation)
      : incarnation_(incarnation), room_(room), iterator_(std::move(iterator)), dealt_(shards) {}
  int64_t incarnation() const { return incarnation_; }

  StatusOr<bool> Next(DataContext& ctx, size_t shard, Element* element) {
    const WakeOnCancel wake(ctx.cancellation, mu_);
    absl::MutexLock lock(&mu_);
    std::deque<StatusOr<Element>>& own = dealt_[shard];
    while (own.empty() && !ended_) {
      const auto ready = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
        return ctx.cancellation.IsCancelled() || !own.empty() || ended_ ||
               (!busy_ && (turn_ == shard || dealt_[turn_].size() < room_));
      };
      ctx.env.Await(mu_, absl::Condition(&ready));
      MR_RETURN_IF_ERROR(ctx.KeepGoing());
      if (own.empty() && !ended_) ReadOne(ctx);
    }
    if (own.empty()) return false;
    StatusOr<Element> next = std::move(own.front());
    own.pop_front();
    MR_RETURN_IF_ERROR(next.status());
    *element = *std::move(next);
    return true;
  }

 private:
  // Without the lock while it reads. An error goes to the shard whose turn it is.
  void ReadOne(DataContext& ctx) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    busy_ = true;
    mu_.Unlock();
    Element element;
    const StatusOr<bool> found = WithoutExceptions([&] { return iterator_->Next(ctx, &element); });
    mu_.Lock();
    busy_ = false;
    if (found.ok() && !*found) {
      ended_ = true;
      return;
    }
    dealt_[turn_].push_back(found.ok() ? StatusOr<Element>(std::move(element)) : found.status());
    turn_ = (turn_ + 1) % dealt_.size();
  }

  const int64_t incarnation_;
  const size_t room_;
  absl::Mutex mu_;
  const DataIteratorPtr iterator_;  // of whoever has set `busy_`
  std::vector<std::deque<StatusOr<Element>>> dealt_ ABSL_GUARDED_BY(mu_);
  size_t turn_ ABSL_GUARDED_BY(mu_) = 0;
  bool busy_ ABSL_GUARDED_BY(mu_) = false;
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
};

class MultiDeviceIterator final : public Resource {
 public:
  MultiDeviceIterator(ElementSpec spec, std::vector<std::string> devices)
      : spec_(std::move(spec)), devices_(std::move(devices)) {}
  const ElementSpec& spec() const { return spec_; }
  const std::vector<std::string>& devices() const { return devices_; }
  std::string DebugString() const override { return "an iterator of several devices"; }

  // Begins a pass over the data set, and gives its number.
  StatusOr<int64_t> Start(DataContext& ctx, const DatasetRef& dataset, int64_t room) {
    MR_RETURN_IF_ERROR(CheckSpec(spec_, dataset->spec()));
    MR_ASSIGN_OR_RETURN(DataIteratorPtr iterator, dataset->MakeIterator(ctx));
    absl::MutexLock lock(&mu_);
    ++started_;
    deal_ = std::make_shared<Deal>(std::move(iterator), devices_.size(), static_cast<size_t>(room), started_);
    return started_;
  }
  StatusOr<bool> Next(DataContext& ctx, int64_t shard, int64_t incarnation, Element* element) {
    if (shard < 0 || shard >= static_cast<int64_t>(devices_.size())) {
      return InvalidArgument("shard_num is ", shard, ", there are ", devices_.size(), " devices");
    }
    std::shared_ptr<Deal> deal;
    {
      absl::MutexLock lock(&mu_);
      deal = deal_;
    }
    if (!deal) return FailedPrecondition("the iterator has not been initialized");
    if (deal->incarnation() != incarnation) {
      return InvalidArgument("Invalid incarnation id. Provided: ", incarnation, "; Expected: ", deal->incarnation());
    }
    return deal->Next(ctx, static_cast<size_t>(shard), element);
  }

 private:
  const ElementSpec spec_;
  const std::vector<std::string> devices_;
  absl::Mutex mu_;
  int64_t started_ ABSL_GUARDED_BY(mu_) = 0;
  std::shared_ptr<Deal> deal_ ABSL_GUARDED_BY(mu_);
};

struct Declared {
  ElementSpec spec;
  std::vector<std::string> devices;

  Status Init(const KernelInit& init) {
    MR_ASSIGN_OR_RETURN(spec.types, init.Attr<std::vector<DType>>("output_types"));
    MR_ASSIGN_OR_RETURN(spec.shapes, init.Attr<std::vector<PartialShape>>("output_shapes"));
    MR_ASSIGN_OR_RETURN(devices, init.Attr<std::vector<std::string>>("devices"));
    return absl::OkStatus();
  }
  RefPtr<MultiDeviceIterator> Make() const { return MakeRef<MultiDeviceIterator>(spec, devices); }
};

class NamedKernel final : public ResourceKernel<MultiDeviceIterator> {
 public:
  Status Init(const KernelInit& init) override {
    MR_RETURN_IF_ERROR(declared_.Init(init));
    return ResourceKernel::Init(init);
  }

 private:
  absl::string_view TypeName() const override { return kTypeName; }
  StatusOr<RefPtr<MultiDeviceIterator>> Make(KernelContext&) override { return declared_.Make(); }
  Status Verify(const MultiDeviceIterator& resource) const override {
    MR_RETURN_IF_ERROR(CheckSpec(declared_.spec, resource.spec()));
    if (declared_.devices == resource.devices()) return absl::OkStatus();
    return InvalidArgument("the shared iterator deals to ", resource.devices().size(), " other devices");
  }
  Declared declared_;
};

class AnonymousKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override { return declared_.Init(init); }
  Status Compute(KernelContext& ctx) override { return OutputAnonymous(ctx, kTypeName, declared_.Make()); }

 private:
  Declared declared_;
};

class InitKernel final : public AsyncKernel {
 public:
  void ComputeAsync(KernelContext& ctx, DoneCallback done) override {
    ReadOnWaitingThread(ctx, std::move(done), [&ctx](DataContext& data) -> Status {
      MR_ASSIGN_OR_RETURN(const DatasetRef dataset, DatasetOf(ctx.input(0), "dataset"));
      MR_ASSIGN_OR_RETURN(const RefPtr<MultiDeviceIterator> iterator, FindResource<MultiDeviceIterator>(ctx, 1));
      MR_ASSIGN_OR_RETURN(const int64_t room, ScalarInput(ctx, 2, "max_buffer_size"));
      if (room < 1) return InvalidArgument("max_buffer_size must be greater than zero, got ", room);
      MR_ASSIGN_OR_RETURN(const int64_t incarnation, iterator->Start(data, dataset, room));
      ctx.set_output(0, Tensor::Scalar<int64_t>(incarnation));
      return absl::OkStatus();
    });
  }
};

class NextKernel final : public AsyncKernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(spec_.types, init.Attr<std::vector<DType>>("output_types"));
    MR_ASSIGN_OR_RETURN(spec_.shapes, init.Attr<std::vector<PartialShape>>("output_shapes"));
    return absl::OkStatus();
  }
  void ComputeAsync(KernelContext& ctx, DoneCallback done) override {
    ReadOnWaitingThread(ctx, std::move(done), [this, &ctx](DataContext& data) -> Status {
      MR_ASSIGN_OR_RETURN(const RefPtr<MultiDeviceIterator> iterator, FindResource<MultiDeviceIterator>(ctx, 0));
      MR_ASSIGN_OR_RETURN(const int64_t shard, ScalarInput(ctx, 1, "shard_num"));
      MR_ASSIGN_OR_RETURN(const int64_t incarnation, ScalarInput(ctx, 2, "incarnation_id"));
      Element element;
      MR_ASSIGN_OR_RETURN(const bool found, iterator->Next(data, shard, incarnation, &element));
      if (!found) return OutOfRange("End of sequence");
      return OutputElement(ctx, spec_, std::move(element));
    });
  }

 private:
  ElementSpec spec_;
};

Status ToStringHandle(KernelContext& ctx) {
  MR_RETURN_IF_ERROR(FindResource<MultiDeviceIterator>(ctx, 0).status());
  const ResourceHandle& h = *ctx.input(0).data<ResourceHandle>();
  ctx.set_output(0, Tensor::Scalar<TString>(TString(absl::StrCat(kHandlePrefix, "\n", h.container, "\n", h.name))));
  return absl::OkStatus();
}

class FromStringHandleKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(spec_.types, init.Attr<std::vector<DType>>("output_types"));
    MR_ASSIGN_OR_RETURN(spec_.shapes, init.Attr<std::vector<PartialShape>>("output_shapes"));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    if (ctx.input(0).rank() != 0) return InvalidArgument("string_handle must be a scalar");
    const std::vector<std::string> parts =
        absl::StrSplit(ctx.input(0).data<TString>()->view(), absl::MaxSplits('\n', 2));
    if (parts.size() != 3 || parts[0] != kHandlePrefix) {
      return InvalidArgument("string_handle is not the handle of an iterator of several devices");
    }
    MR_ASSIGN_OR_RETURN(
        RefPtr<MultiDeviceIterator> found, FindResourceByName<MultiDeviceIterator>(ctx, {parts[1], parts[2]}));
    if (!spec_.types.empty()) MR_RETURN_IF_ERROR(CheckSpec(spec_, found->spec()));
    return OutputHandle(ctx, 0, {parts[1], parts[2]}, kTypeName, RefPtr<Resource>(std::move(found)));
  }

 private:
  ElementSpec spec_;
};

}  // namespace

void RegisterDatasetDeviceKernels(KernelRegistry& r) {
  r.Add<NamedKernel>({.op = "MultiDeviceIterator"});
  r.Add<AnonymousKernel>({.op = "AnonymousMultiDeviceIterator"});
  r.Add<InitKernel>({.op = "MultiDeviceIteratorInit"});
  r.Add<NextKernel>({.op = "MultiDeviceIteratorGetNextFromShard"});
  r.AddFn({.op = "MultiDeviceIteratorToStringHandle"}, ToStringHandle);
  r.Add<FromStringHandleKernel>({.op = "MultiDeviceIteratorFromStringHandle"});
  // The iterator goes with its last handle.
  r.AddFn({.op = "DeleteMultiDeviceIterator"}, [](KernelContext&) -> Status { return absl::OkStatus(); });
}

}  // namespace millrace
