// SPDX-License-Identifier: Apache-2.0
// CPU kernels: staging areas, in a line and by key. The ops of one area have no handle: they find it by their names,
// and the first to come makes it.
#include "kernels/cpu/dataflow/staging.h"

namespace millrace {
namespace {

template <typename Area>
class AreaKernel : public AsyncKernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(name_, ResourceNameOf(init));
    MR_ASSIGN_OR_RETURN(limits_.capacity, init.Attr<int64_t>("capacity"));
    MR_ASSIGN_OR_RETURN(limits_.bytes, init.Attr<int64_t>("memory_limit"));
    MR_ASSIGN_OR_RETURN(types_, init.Attr<std::vector<DType>>("dtypes"));
    return absl::OkStatus();
  }
  void ComputeAsync(KernelContext& ctx, DoneCallback done) final {
    StatusOr<RefPtr<Area>> area = ctx.resources().LookupOrCreate<Area>(
        name_.container, name_.name,
        [this]() -> StatusOr<RefPtr<Area>> { return MakeRef<Area>(name_.name, limits_, types_); });
    if (!area.ok()) return std::move(done)(area.status());
    StatusOr<WaitingResource::Attempt> attempt = Prepare(ctx, *area);
    if (!attempt.ok()) return std::move(done)(attempt.status());
    (*area)->Call(line(), *std::move(attempt), ctx.step().cancellation, std::move(done));
  }
  bool IsExpensive() const final { return false; }

 protected:
  virtual StatusOr<WaitingResource::Attempt> Prepare(KernelContext& ctx, const RefPtr<Area>& area) = 0;
  virtual WaitingResource::Line line() const { return WaitingResource::Line::kNone; }
  const std::vector<DType>& types() const { return types_; }

 private:
  ResourceName name_;
  StagingLimits limits_;
  std::vector<DType> types_;
};

// Inputs from `first` on, as the area may keep them.
StatusOr<std::vector<Tensor>> Values(const KernelContext& ctx, int first) {
  std::vector<Tensor> values;
  for (int i = first; i < ctx.num_inputs(); ++i) {
    values.push_back(ctx.input(i));
    MR_RETURN_IF_ERROR(KeepBeyondStep(&values.back()));
  }
  return values;
}

// Whether these values may be the outputs from `first` on.
Status CheckOutputs(const KernelContext& ctx, int first, const std::vector<const Tensor*>& values) {
  if (ctx.num_outputs() - first != static_cast<int>(values.size())) {
    return InvalidArgument("the area holds ", values.size(), " values an element, node '", ctx.node_name(), "' takes ",
                           ctx.num_outputs() - first);
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const DType want = ctx.output_dtype(first + static_cast<int>(i));
    if (values[i]->dtype() == want) continue;
    return InvalidArgument("value ", i, " in the area is ", DTypeName(values[i]->dtype()), ", node '", ctx.node_name(),
                           "' takes ", DTypeName(want));
  }
  return absl::OkStatus();
}

// ---- In a line ----

class StageKernel final : public AreaKernel<StagingArea> {
  WaitingResource::Line line() const override { return WaitingResource::Line::kPut; }
  StatusOr<WaitingResource::Attempt> Prepare(KernelContext& ctx, const RefPtr<StagingArea>& area) override {
    MR_ASSIGN_OR_RETURN(std::vector<Tensor> values, Values(ctx, 0));
    MR_RETURN_IF_ERROR(area->CheckFits(values));
    return WaitingResource::Attempt([area, values = std::move(values)](Status*) mutable {
      return area->TryPut(values);
    });
  }
};

template <bool kPeek>
class UnstageKernel final : public AreaKernel<StagingArea> {
  WaitingResource::Line line() const override {
    return kPeek ? WaitingResource::Line::kNone : WaitingResource::Line::kTake;
  }
  StatusOr<WaitingResource::Attempt> Prepare(KernelContext& ctx, const RefPtr<StagingArea>& area) override {
    int64_t index = 0;
    if (kPeek) {
      MR_ASSIGN_OR_RETURN(index, ctx.input(0).IntScalar());
      if (index < 0) return InvalidArgument("StagePeek of element ", index, ", want 0 or more");
    }
    return WaitingResource::Attempt([&ctx, area, index](Status* s) {
      const std::vector<Tensor>* found = area->At(index);
      if (found == nullptr) return false;
      std::vector<const Tensor*> values;
      for (const Tensor& t : *found) values.push_back(&t);
      *s = CheckOutputs(ctx, 0, values);
      if (!s->ok()) return true;
      for (size_t i = 0; i < values.size(); ++i) ctx.set_output(static_cast<int>(i), *values[i]);
      if (!kPeek) area->PopFront();
      return true;
    });
  }
};

template <typename Area>
class ClearKernel final : public AreaKernel<Area> {
  StatusOr<WaitingResource::Attempt> Prepare(KernelContext&, const RefPtr<Area>& area) override {
    return WaitingResource::Attempt([area](Status*) {
      area->Clear();
      return true;
    });
  }
};

template <typename Area, bool kIncomplete>
class SizeKernel final : public AreaKernel<Area> {
  StatusOr<WaitingResource::Attempt> Prepare(KernelContext& ctx, const RefPtr<Area>& area) override {
    return WaitingResource::Attempt([&ctx, area](Status* s) {
      if constexpr (kIncomplete) {
        *s = OutputSize(ctx, 0, area->IncompleteSize());
      } else {
        *s = OutputSize(ctx, 0, area->Size());
      }
      return true;
    });
  }
};

// ---- By key ----

StatusOr<int64_t> KeyOf(const KernelContext& ctx) {
  if (!ctx.input(0).shape().IsScalar()) {
    return InvalidArgument("key must be an int64 scalar, got shape: ", ctx.input(0).shape().ToString());
  }
  return ctx.input(0).IntScalar();
}

class MapStageKernel final : public AreaKernel<StagingMap> {
  StatusOr<WaitingResource::Attempt> Prepare(KernelContext& ctx, const RefPtr<StagingMap>& map) override {
    MR_ASSIGN_OR_RETURN(const int64_t key, KeyOf(ctx));
    MR_ASSIGN_OR_RETURN(std::vector<int64_t> indices, map->Indices(ctx.input(1)));
    MR_ASSIGN_OR_RETURN(std::vector<Tensor> values, Values(ctx, 2));
    if (values.size() != indices.size()) {
      return InvalidArgument("there are ", indices.size(), " indices, but ", values.size(), " values");
    }
    MR_RETURN_IF_ERROR(map->CheckFits(values));
    return WaitingResource::Attempt(
        [map, key, indices = std::move(indices), values = std::move(values)](Status* s) mutable {
          return map->TryPut(key, indices, values, s);
        });
  }
};

enum class Access { kPeek, kTake, kTakeAny };

template <Access kAccess>
class MapUnstageKernel final : public AreaKernel<StagingMap> {
  static constexpr int kFirst = kAccess == Access::kTakeAny ? 1 : 0;  // output; the input of the indices is 1 - kFirst

  StatusOr<WaitingResource::Attempt> Prepare(KernelContext& ctx, const RefPtr<StagingMap>& map) override {
    int64_t key = 0;
    if (kAccess != Access::kTakeAny) {
      MR_ASSIGN_OR_RETURN(key, KeyOf(ctx));
    }
    MR_ASSIGN_OR_RETURN(std::vector<int64_t> indices, map->Indices(ctx.input(1 - kFirst)));
    return WaitingResource::Attempt([&ctx, map, key, indices = std::move(indices)](Status* s) mutable {
      if (kAccess == Access::kTakeAny ? !map->FirstKey(&key) : !map->Has(key)) return false;
      std::vector<const Tensor*> values;
      *s = map->Find(key, indices, &values);
      if (s->ok()) *s = CheckOutputs(ctx, kFirst, values);
      if (!s->ok()) return true;
      for (size_t i = 0; i < values.size(); ++i) ctx.set_output(kFirst + static_cast<int>(i), *values[i]);
      if (kAccess == Access::kTakeAny) ctx.set_output(0, Tensor::Scalar(key));
      if (kAccess != Access::kPeek) map->Remove(key, indices);
      return true;
    });
  }
};

}  // namespace

void RegisterStagingKernels(KernelRegistry& r) {
  r.Add<StageKernel>({.op = "Stage"});
  r.Add<UnstageKernel<false>>({.op = "Unstage"});
  r.Add<UnstageKernel<true>>({.op = "StagePeek"});
  r.Add<SizeKernel<StagingArea, false>>({.op = "StageSize"});
  r.Add<ClearKernel<StagingArea>>({.op = "StageClear"});
  for (const char* order : {"", "Ordered"}) {
    const auto op = [order](const char* name) { return KernelSpec{.op = absl::StrCat(order, name)}; };
    r.Add<MapStageKernel>(op("MapStage"));
    r.Add<MapUnstageKernel<Access::kPeek>>(op("MapPeek"));
    r.Add<MapUnstageKernel<Access::kTake>>(op("MapUnstage"));
    r.Add<MapUnstageKernel<Access::kTakeAny>>(op("MapUnstageNoKey"));
    r.Add<SizeKernel<StagingMap, false>>(op("MapSize"));
    r.Add<SizeKernel<StagingMap, true>>(op("MapIncompleteSize"));
    r.Add<ClearKernel<StagingMap>>(op("MapClear"));
  }
}

}  // namespace millrace
