// SPDX-License-Identifier: Apache-2.0
// Iterators as resources, and what reads elements in a step.
#include <algorithm>

#include "absl/strings/str_split.h"
#include "kernels/cpu/data/dataset.h"
#include "kernels/cpu/data/dataset_graph.h"
#include "kernels/cpu/data/dataset_wait.h"
#include "kernels/cpu/data/iterator_resource.h"
#include "kernels/cpu/dataflow/optional.h"
#include "kernels/cpu/engine/resource_handle.h"
#include "tensor/tensor_proto.h"

namespace millrace {
namespace {

constexpr char kTypeName[] = "tensorflow::data::IteratorResource";

Status SpecFromAttrs(const KernelInit& init, ElementSpec* spec) {
  MR_ASSIGN_OR_RETURN(spec->types, init.Attr<std::vector<DType>>("output_types"));
  MR_ASSIGN_OR_RETURN(spec->shapes, init.Attr<std::vector<PartialShape>>("output_shapes"));
  if (!spec->shapes.empty() && spec->shapes.size() != spec->types.size()) {
    return InvalidArgument(
        "there are ", spec->types.size(), " output_types, but ", spec->shapes.size(), " output_shapes");
  }
  return absl::OkStatus();
}

class IteratorKernel final : public ResourceKernel<IteratorResource> {
 public:
  Status Init(const KernelInit& init) override {
    MR_RETURN_IF_ERROR(SpecFromAttrs(init, &spec_));
    return ResourceKernel::Init(init);
  }

 private:
  absl::string_view TypeName() const override { return kTypeName; }
  StatusOr<RefPtr<IteratorResource>> Make(KernelContext&) override { return MakeRef<IteratorResource>(spec_); }
  Status Verify(const IteratorResource& resource) const override { return CheckSpec(spec_, resource.spec()); }

  ElementSpec spec_;
};

class AnonymousKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override { return SpecFromAttrs(init, &spec_); }
  Status Compute(KernelContext& ctx) override {
    return OutputAnonymous(ctx, kTypeName, MakeRef<IteratorResource>(spec_));
  }

 private:
  ElementSpec spec_;
};

class MakeIteratorKernel final : public AsyncKernel {
 public:
  void ComputeAsync(KernelContext& ctx, DoneCallback done) override {
    ReadOnWaitingThread(ctx, std::move(done), [&ctx](DataContext& data) -> Status {
      MR_ASSIGN_OR_RETURN(const DatasetRef dataset, DatasetOf(ctx.input(0), "dataset"));
      MR_ASSIGN_OR_RETURN(const RefPtr<IteratorResource> iterator, FindResource<IteratorResource>(ctx, 1));
      return iterator->Start(data, dataset);
    });
  }
};

// Makes its iterator in the first step that asks for it, from the data set that a function gives.
class OneShotKernel final : public AsyncKernel, public UsesFunctions {
 public:
  Status Init(const KernelInit& init) override {
    MR_RETURN_IF_ERROR(SpecFromAttrs(init, &spec_));
    MR_ASSIGN_OR_RETURN(name_, ResourceNameOf(init));
    MR_ASSIGN_OR_RETURN(const std::string shared_name, init.Attr<std::string>("shared_name"));
    if (shared_name.empty()) {
      own_.Declare(init);
      name_.name = own_.name();
    }
    return factory_.Init(init, "dataset_factory");
  }
  void SetFunctions(std::shared_ptr<FunctionSource> functions) override {
    absl::MutexLock lock(&mu_);
    if (!iterator_ && !making_) factory_.SetSource(std::move(functions));
  }
  void ComputeAsync(KernelContext& ctx, DoneCallback done) override {
    ReadOnWaitingThread(ctx, std::move(done), [this, &ctx](DataContext& data) -> Status {
      MR_ASSIGN_OR_RETURN(RefPtr<IteratorResource> iterator, Find(ctx, data));
      return OutputHandle(ctx, 0, name_, kTypeName, RefPtr<Resource>(std::move(iterator)));
    });
  }

 private:
  // Made by one step, without the lock, so that the others can end while they wait.
  StatusOr<RefPtr<IteratorResource>> Find(KernelContext& ctx, DataContext& data) {
    const WakeOnCancel wake(data.cancellation, mu_);
    absl::MutexLock lock(&mu_);
    const auto ready = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return !making_ || data.cancellation.IsCancelled(); };
    data.env.Await(mu_, absl::Condition(&ready));
    MR_RETURN_IF_ERROR(data.KeepGoing());
    if (iterator_) return iterator_;
    making_ = true;
    mu_.Unlock();
    StatusOr<RefPtr<IteratorResource>> made = WithoutExceptions([&] { return Make(ctx, data); });
    mu_.Lock();
    making_ = false;
    if (made.ok()) iterator_ = *made;
    return made;
  }

  StatusOr<RefPtr<IteratorResource>> Make(KernelContext& ctx, DataContext& data) {
    MR_ASSIGN_OR_RETURN(const CapturedFunction factory, factory_.Bind(&data.cancellation, {}, {}));
    Element made;
    MR_RETURN_IF_ERROR(factory.Run(data, {}, &made));
    if (made.size() != 1) return InvalidArgument("the dataset_factory of a one-shot iterator must return one value");
    MR_ASSIGN_OR_RETURN(const DatasetRef dataset, DatasetOf(made[0], "what the dataset_factory returns"));
    auto fresh = MakeRef<IteratorResource>(spec_);
    MR_RETURN_IF_ERROR(fresh->Start(data, dataset));
    if (own_.is_declared()) {
      own_.Publish(fresh);
      return fresh;
    }
    return ctx.resources().LookupOrCreate<IteratorResource>(
        name_.container, name_.name, [&]() -> StatusOr<RefPtr<IteratorResource>> { return fresh; });
  }

  ElementSpec spec_;
  ResourceName name_;
  OwnResource own_;
  FunctionAttr factory_;
  absl::Mutex mu_;
  bool making_ ABSL_GUARDED_BY(mu_) = false;
  RefPtr<IteratorResource> iterator_ ABSL_GUARDED_BY(mu_);
};

// The next element, or, as an optional, also that there is none.
class GetNextKernel final : public AsyncKernel {
 public:
  Status Init(const KernelInit& init) override {
    as_optional_ = init.op.name == "IteratorGetNextAsOptional";
    return SpecFromAttrs(init, &spec_);
  }
  void ComputeAsync(KernelContext& ctx, DoneCallback done) override {
    ReadOnWaitingThread(ctx, std::move(done), [this, &ctx](DataContext& data) { return GetNext(ctx, data); });
  }

 private:
  Status GetNext(KernelContext& ctx, DataContext& data) const {
    MR_ASSIGN_OR_RETURN(const RefPtr<IteratorResource> iterator, FindResource<IteratorResource>(ctx, 0));
    Element element;
    MR_ASSIGN_OR_RETURN(const bool found, iterator->Next(data, &element));
    if (!found) return as_optional_ ? OutputOptional(ctx, {}) : OutOfRange("End of sequence");
    if (!as_optional_) return OutputElement(ctx, spec_, std::move(element));
    MR_RETURN_IF_ERROR(CheckElement(spec_, element));
    MR_RETURN_IF_ERROR(OwnMemory(&element));
    return OutputOptional(ctx, std::move(element));
  }

  ElementSpec spec_;
  bool as_optional_ = false;
};

Status Serialize(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const RefPtr<IteratorResource> iterator, FindResource<IteratorResource>(ctx, 0));
  MR_ASSIGN_OR_RETURN(RefPtr<IteratorState> state, iterator->State());
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape()));
  *out->mutable_data<Variant>() = Variant(RefPtr<VariantValue>(std::move(state)));
  return absl::OkStatus();
}

class DeserializeKernel final : public AsyncKernel, public UsesFunctions {
 public:
  void SetFunctions(std::shared_ptr<FunctionSource> functions) override { functions_ = std::move(functions); }
  void ComputeAsync(KernelContext& ctx, DoneCallback done) override {
    ReadOnWaitingThread(ctx, std::move(done), [this, &ctx](DataContext& data) -> Status {
      MR_ASSIGN_OR_RETURN(const RefPtr<IteratorResource> iterator, FindResource<IteratorResource>(ctx, 0));
      const Tensor& t = ctx.input(1);
      const auto* state = t.rank() == 0 ? t.data<Variant>()->As<IteratorState>() : nullptr;
      const auto* encoded = t.rank() == 0 ? t.data<Variant>()->As<EncodedVariant>() : nullptr;
      if (encoded != nullptr) return Start(data, *iterator, encoded->data);
      if (state == nullptr) return InvalidArgument("serialized holds no state of an iterator: ", t.DebugString());
      MR_ASSIGN_OR_RETURN(const DatasetRef dataset, MadeAgain(data, state->dataset(), functions_.get()));
      return iterator->Start(data, dataset, state->taken());
    });
  }

 private:
  Status Start(DataContext& data, IteratorResource& iterator, const wire::VariantTensorDataProto& state) const {
    if (state.type_name != IteratorState::kTypeName || state.tensors.size() != 2) {
      return InvalidArgument("serialized holds no state of an iterator, but ", state.type_name);
    }
    MR_ASSIGN_OR_RETURN(const Tensor taken, TensorFromProto(state.tensors[0]));
    MR_ASSIGN_OR_RETURN(const Tensor bytes, TensorFromProto(state.tensors[1]));
    MR_ASSIGN_OR_RETURN(const int64_t count, taken.IntScalar());
    if (count < 0 || bytes.dtype() != DType::kString || bytes.rank() != 0) {
      return InvalidArgument("serialized holds a state of an iterator that cannot be read");
    }
    wire::GraphDef graph;
    MR_RETURN_IF_ERROR(wire::Decode(bytes.data<TString>()->view(), &graph));
    if (!functions_) return Unimplemented("graphs of data sets cannot be run here");
    MR_ASSIGN_OR_RETURN(const DatasetRef dataset, DatasetFromGraph(data, std::move(graph), *functions_));
    return iterator.Start(data, dataset, count);
  }

  std::shared_ptr<FunctionSource> functions_;
};

class SingleElementKernel final : public AsyncKernel {
 public:
  Status Init(const KernelInit& init) override { return SpecFromAttrs(init, &spec_); }
  void ComputeAsync(KernelContext& ctx, DoneCallback done) override {
    ReadOnWaitingThread(ctx, std::move(done), [this, &ctx](DataContext& data) { return Get(ctx, data); });
  }

 private:
  Status Get(KernelContext& ctx, DataContext& data) const {
    MR_ASSIGN_OR_RETURN(const DatasetRef dataset, DatasetOf(ctx.input(0), "dataset"));
    MR_RETURN_IF_ERROR(CheckAssertions(*dataset));
    MR_ASSIGN_OR_RETURN(const DataIteratorPtr iterator, dataset->MakeIterator(data));
    Element element, second;
    MR_ASSIGN_OR_RETURN(const bool found, iterator->Next(data, &element));
    if (!found) return InvalidArgument("Dataset was empty.");
    MR_ASSIGN_OR_RETURN(const bool more, iterator->Next(data, &second));
    if (more) return InvalidArgument("Dataset had more than one element.");
    return OutputElement(ctx, spec_, std::move(element));
  }

  ElementSpec spec_;
};

constexpr char kHandlePrefix[] = "millrace.iterator";

Status ToStringHandle(KernelContext& ctx) {
  MR_RETURN_IF_ERROR(FindResource<IteratorResource>(ctx, 0).status());
  const ResourceHandle& h = *ctx.input(0).data<ResourceHandle>();
  ctx.set_output(
      0,
      Tensor::Scalar<TString>(TString(absl::StrCat(kHandlePrefix, "\n", h.device, "\n", h.container, "\n", h.name))));
  return absl::OkStatus();
}

class FromStringHandleKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override { return SpecFromAttrs(init, &spec_); }
  Status Compute(KernelContext& ctx) override {
    if (ctx.input(0).rank() != 0) return InvalidArgument("string_handle must be a scalar");
    const std::vector<std::string> parts =
        absl::StrSplit(ctx.input(0).data<TString>()->view(), absl::MaxSplits('\n', 3));
    if (parts.size() != 4 || parts[0] != kHandlePrefix) {
      return InvalidArgument("string_handle is not the handle of an iterator");
    }
    if (parts[1] != ctx.device().name()) {
      return InvalidArgument(
          "Attempted create an iterator on device ", ctx.device().name(), " from handle defined on device ", parts[1]);
    }
    MR_ASSIGN_OR_RETURN(
        RefPtr<IteratorResource> found, FindResourceByName<IteratorResource>(ctx, {parts[2], parts[3]}));
    if (!spec_.types.empty()) MR_RETURN_IF_ERROR(CheckSpec(spec_, found->spec()));
    return OutputHandle(ctx, 0, {parts[2], parts[3]}, kTypeName, RefPtr<Resource>(std::move(found)));
  }

 private:
  ElementSpec spec_;
};

Status PassOn(KernelContext& ctx) {
  MR_RETURN_IF_ERROR(DatasetOf(ctx.input(0), "input_handle").status());
  ctx.Forward(0, 0);
  return absl::OkStatus();
}

}  // namespace

StatusOr<wire::VariantTensorDataProto> IteratorState::Encoded() const {
  wire::VariantTensorDataProto state;
  state.type_name = kTypeName;
  MR_ASSIGN_OR_RETURN(const wire::GraphDef graph, GraphOfDataset(*dataset_));
  for (const Tensor& t : {Tensor::Scalar<int64_t>(taken_), Tensor::Scalar(TString(wire::Encode(graph)))}) {
    MR_ASSIGN_OR_RETURN(wire::TensorProto proto, TensorToProto(t));
    state.tensors.push_back(std::move(proto));
  }
  return state;
}

void RegisterDatasetIteratorKernels(KernelRegistry& r) {
  for (const char* op : {"Iterator", "IteratorV2"}) r.Add<IteratorKernel>({.op = op});
  for (const char* op : {"AnonymousIterator", "AnonymousIteratorV2"}) r.Add<AnonymousKernel>({.op = op});
  r.Add<MakeIteratorKernel>({.op = "MakeIterator"});
  r.Add<OneShotKernel>({.op = "OneShotIterator"});
  for (const char* op : {"IteratorGetNext", "IteratorGetNextSync", "IteratorGetNextAsOptional"}) {
    r.Add<GetNextKernel>({.op = op});
  }
  r.AddFn({.op = "SerializeIterator"}, Serialize);
  r.Add<DeserializeKernel>({.op = "DeserializeIterator"});
  r.Add<SingleElementKernel>({.op = "DatasetToSingleElement"});
  r.AddFn({.op = "IteratorToStringHandle"}, ToStringHandle);
  for (const char* op : {"IteratorFromStringHandle", "IteratorFromStringHandleV2"}) {
    r.Add<FromStringHandleKernel>({.op = op});
  }
  for (const char* op : {"IteratorGetDevice", "ExperimentalIteratorGetDevice"}) {
    r.AddFn({.op = op}, [](KernelContext& ctx) -> Status {
      MR_RETURN_IF_ERROR(FindResource<IteratorResource>(ctx, 0).status());
      ctx.set_output(0, Tensor::Scalar(TString(ctx.device().name())));
      return absl::OkStatus();
    });
  }
  // The iterator goes with its last handle.
  r.AddFn({.op = "DeleteIterator"}, [](KernelContext&) -> Status { return absl::OkStatus(); });
  for (const char* op : {"WrapDatasetVariant", "UnwrapDatasetVariant"}) r.AddFn({.op = op}, PassOn);
}

}  // namespace millrace
