// SPDX-License-Identifier: Apache-2.0
// CPU kernels: sums of gradients and hessians by node, feature and dimension, for tf.contrib.boosted_trees.
#include <algorithm>
#include <map>
#include <tuple>

#include "base/checked.h"
#include "base/stop_scope.h"
#include "kernels/cpu/trees/gbdt_kernels.h"

namespace millrace {
namespace {

struct Key {
  int32_t partition = 0;
  int64_t dimension = 0;
  int64_t feature = 0;

  bool operator<(const Key& b) const {
    return std::tie(partition, dimension, feature) < std::tie(b.partition, b.dimension, b.feature);
  }
};
using Sums = std::map<Key, std::vector<float>>;  // gradients, then hessians

struct SlotShapes {
  Shape gradient;
  Shape hessian;

  int64_t numbers() const { return gradient.num_elements() + hessian.num_elements(); }
};

// Four tensors of one batch: partition ids [n], feature ids [n, 2] (features and their dimensions), gradients and
// hessians [n, ...].
struct Batch {
  const Tensor* partitions;
  const Tensor* features;
  const Tensor* gradients;
  const Tensor* hessians;

  int64_t size() const { return partitions->num_elements(); }
  Status Check(const SlotShapes& slot) const {
    if (partitions->rank() != 1) {
      return InvalidArgument("partition_ids must be a vector, got shape ", partitions->shape().ToString());
    }
    const bool is_empty = size() == 0 && features->num_elements() == 0;
    if (!is_empty && (features->rank() != 2 || features->dim(0) != size() || features->dim(1) != 2)) {
      return InvalidArgument("feature_ids must have shape [", size(), ", 2], got ", features->shape().ToString());
    }
    MR_RETURN_IF_ERROR(CheckSums("gradients", *gradients, slot.gradient));
    return CheckSums("hessians", *hessians, slot.hessian);
  }
  // Gives the sums that this changes, of those of `before`.
  void AddTo(const SlotShapes& slot, const Sums& before, Sums* changed) const {
    const int64_t g = slot.gradient.num_elements(), h = slot.hessian.num_elements();
    const auto* partition = partitions->data<int32_t>();
    const auto* feature = features->data<int64_t>();
    const auto* gradient = gradients->data<float>();
    const auto* hessian = hessians->data<float>();
    StopNowAndThen pause;
    for (int64_t i = 0; i < size(); ++i) {
      pause(1 + g + h);
      const Key key = {partition[i], feature[2 * i + 1], feature[2 * i]};
      const auto [at, is_new] = changed->try_emplace(key);
      std::vector<float>& sum = at->second;
      if (is_new) {
        const auto old = before.find(key);
        if (old != before.end()) sum = old->second;
        sum.resize(static_cast<size_t>(g + h));
      }
      for (int64_t k = 0; k < g; ++k) sum[static_cast<size_t>(k)] += gradient[i * g + k];
      for (int64_t k = 0; k < h; ++k) sum[static_cast<size_t>(g + k)] += hessian[i * h + k];
    }
  }

 private:
  Status CheckSums(const char* name, const Tensor& t, const Shape& slot) const {
    if (size() == 0 && t.num_elements() == 0) return absl::OkStatus();
    MR_ASSIGN_OR_RETURN(const Shape want, Shape::Vector(size()).Concatenate(slot));
    if (t.shape() == want) return absl::OkStatus();
    return InvalidArgument(name, " must have shape ", want.ToString(), ", got ", t.shape().ToString());
  }
};

Batch BatchOf(const KernelContext& ctx, int first, int step) {
  return {&ctx.input(first), &ctx.input(first + step), &ctx.input(first + 2 * step), &ctx.input(first + 3 * step)};
}

// Sets outputs `first` and those behind it.
Status Output(KernelContext& ctx, int first, const SlotShapes& slot, const Sums& sums) {
  const auto n = std::ssize(sums);
  MR_ASSIGN_OR_RETURN(const Shape gradients, Shape::Vector(n).Concatenate(slot.gradient));
  MR_ASSIGN_OR_RETURN(const Shape hessians, Shape::Vector(n).Concatenate(slot.hessian));
  MR_ASSIGN_OR_RETURN(Tensor * partition, ctx.AllocateOutput(first, Shape::Vector(n)));
  MR_ASSIGN_OR_RETURN(const Shape ids, Shape::Make({n, 2}));
  MR_ASSIGN_OR_RETURN(Tensor * feature, ctx.AllocateOutput(first + 1, ids));
  MR_ASSIGN_OR_RETURN(Tensor * gradient, ctx.AllocateOutput(first + 2, gradients));
  MR_ASSIGN_OR_RETURN(Tensor * hessian, ctx.AllocateOutput(first + 3, hessians));
  auto* p = partition->mutable_data<int32_t>();
  auto* f = feature->mutable_data<int64_t>();
  auto* g = gradient->mutable_data<float>();
  auto* h = hessian->mutable_data<float>();
  const int64_t width = slot.gradient.num_elements();
  StopNowAndThen pause;
  for (const auto& [key, sum] : sums) {
    pause(1 + std::ssize(sum));
    *p++ = key.partition;
    *f++ = key.feature;
    *f++ = key.dimension;
    g = std::copy_n(sum.begin(), width, g);
    h = std::copy(sum.begin() + width, sum.end(), h);
  }
  return absl::OkStatus();
}

struct AccumulatorState {
  int64_t stamp = 0;
  int64_t num_updates = 0;
  Sums sums;
};

class Accumulator : public Resource {
 public:
  Accumulator(SlotShapes slot, int64_t stamp) : slot_(std::move(slot)) { state_.stamp = stamp; }
  std::string DebugString() const override { return "StatsAccumulator"; }
  const SlotShapes& slot() const { return slot_; }

  template <typename Fn>
  auto With(Fn fn) {
    absl::MutexLock lock(&mu_);
    return fn(state_);
  }

 private:
  const SlotShapes slot_;
  absl::Mutex mu_;
  AccumulatorState state_ ABSL_GUARDED_BY(mu_);
};

// Of one number each, and of tensors: handles of one are none of the other.
class ScalarAccumulator final : public Accumulator {
 public:
  static constexpr char kTypeName[] = "StatsAccumulatorScalarResource";
  using Accumulator::Accumulator;
};
class TensorAccumulator final : public Accumulator {
 public:
  static constexpr char kTypeName[] = "StatsAccumulatorTensorResource";
  using Accumulator::Accumulator;
};

Status CreateScalar(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const int64_t stamp, TreeInput(ctx, "stamp_token").Int());
  return MakeTreeResource(ctx, MakeRef<ScalarAccumulator>(SlotShapes(), stamp));
}

StatusOr<Shape> ShapeIn(const KernelContext& ctx, const char* name) {
  const TreeInput input(ctx, name);
  MR_RETURN_IF_ERROR(input.CheckRank(1));
  const auto dims = input[0].flat<int64_t>();
  return Shape::Make(std::vector<int64_t>(dims.begin(), dims.end()));
}

Status CreateTensor(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const int64_t stamp, TreeInput(ctx, "stamp_token").Int());
  SlotShapes slot;
  MR_ASSIGN_OR_RETURN(slot.gradient, ShapeIn(ctx, "per_slot_gradient_shape"));
  MR_ASSIGN_OR_RETURN(slot.hessian, ShapeIn(ctx, "per_slot_hessian_shape"));
  return MakeTreeResource(ctx, MakeRef<TensorAccumulator>(std::move(slot), stamp));
}

// Sums of another stamp are late, and passed over.
template <typename T>
Status Add(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const int64_t stamp, TreeInput(ctx, "stamp_token").Int());
  const ArgRange handles = ctx.input_arg("stats_accumulator_handles"), first = ctx.input_arg("partition_ids");
  const int n = handles.end - handles.begin;
  std::vector<RefPtr<T>> accumulators;
  for (int i = 0; i < n; ++i) {
    MR_ASSIGN_OR_RETURN(RefPtr<T> found, FindResource<T>(ctx, handles.begin + i));
    MR_RETURN_IF_ERROR(BatchOf(ctx, first.begin + i, n).Check(found->slot()));
    accumulators.push_back(std::move(found));
  }
  const StopAllowed as_each_changes_as_a_whole;
  for (int i = 0; i < n; ++i) {
    T& accumulator = *accumulators[static_cast<size_t>(i)];
    accumulator.With([&](AccumulatorState& state) {
      if (state.stamp != stamp) return;
      Sums changed;
      BatchOf(ctx, first.begin + i, n).AddTo(accumulator.slot(), state.sums, &changed);
      CountUp(&state.num_updates);
      state.sums.merge(changed);
      for (auto& [key, sum] : changed) state.sums.find(key)->second.swap(sum);  // those that were there
    });
  }
  return absl::OkStatus();
}

template <typename T>
Status Flush(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const RefPtr<T> accumulator, FindResource<T>(ctx, 0));
  MR_ASSIGN_OR_RETURN(const int64_t stamp, TreeInput(ctx, "stamp_token").Int());
  MR_ASSIGN_OR_RETURN(const int64_t next, TreeInput(ctx, "next_stamp_token").Int());
  AccumulatorState taken;
  const Status status = accumulator->With([&](AccumulatorState& state) -> Status {
    MR_RETURN_IF_ERROR(CheckStamp(state.stamp, stamp));
    taken = std::move(state);
    state = AccumulatorState();
    state.stamp = next;
    return absl::OkStatus();
  });
  MR_RETURN_IF_ERROR(status);
  MR_ASSIGN_OR_RETURN(Tensor * updates, ctx.AllocateOutput(0, Shape()));
  *updates->mutable_data<int64_t>() = taken.num_updates;
  return Output(ctx, 1, accumulator->slot(), taken.sums);
}

template <typename T>
Status Serialize(KernelContext& ctx) {
  const StopAllowed as_it_only_reads;
  MR_ASSIGN_OR_RETURN(const RefPtr<T> accumulator, FindResource<T>(ctx, 0));
  MR_ASSIGN_OR_RETURN(Tensor * stamp, ctx.AllocateOutput(0, Shape()));
  MR_ASSIGN_OR_RETURN(Tensor * updates, ctx.AllocateOutput(1, Shape()));
  return accumulator->With([&](AccumulatorState& state) -> Status {
    *stamp->mutable_data<int64_t>() = state.stamp;
    *updates->mutable_data<int64_t>() = state.num_updates;
    return Output(ctx, 2, accumulator->slot(), state.sums);
  });
}

template <typename T>
Status Deserialize(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const RefPtr<T> accumulator, FindResource<T>(ctx, 0));
  const StopAllowed until_it_is_read;
  AccumulatorState read;
  MR_ASSIGN_OR_RETURN(read.stamp, TreeInput(ctx, "stamp_token").Int());
  MR_ASSIGN_OR_RETURN(read.num_updates, TreeInput(ctx, "num_updates").Int());
  const Batch batch = BatchOf(ctx, ctx.input_arg("partition_ids").begin, 1);
  MR_RETURN_IF_ERROR(batch.Check(accumulator->slot()));
  batch.AddTo(accumulator->slot(), {}, &read.sums);
  accumulator->With([&](AccumulatorState& state) { std::swap(state, read); });
  return absl::OkStatus();
}

// Rows of one node, feature and dimension become one. Slots are what gradients and hessians have behind their rows.
Status MakeSummary(KernelContext& ctx) {
  const Batch batch = BatchOf(ctx, 0, 1);
  SlotShapes slot;
  for (const auto& [from, to] :
       {std::pair(batch.gradients, &slot.gradient), std::pair(batch.hessians, &slot.hessian)}) {
    if (from->rank() < 1) return InvalidArgument("gradients and hessians must have rows, got a scalar");
    std::vector<int64_t> dims;
    for (int d = 1; d < from->rank(); ++d) dims.push_back(from->dim(d));
    MR_ASSIGN_OR_RETURN(*to, Shape::Make(dims));
  }
  MR_RETURN_IF_ERROR(batch.Check(slot));
  Sums sums;
  batch.AddTo(slot, {}, &sums);
  return Output(ctx, 0, slot, sums);
}

template <typename T>
void Register(KernelRegistry& r, const std::string& kind, Status (*create)(KernelContext&)) {
  r.Add<TreeHandleKernel<T>>({.op = absl::StrCat("StatsAccumulator", kind, "ResourceHandleOp")});
  r.AddFn({.op = absl::StrCat("StatsAccumulator", kind, "IsInitialized")}, TreeResourceExists<T>);
  r.AddFn({.op = absl::StrCat("CreateStatsAccumulator", kind)}, create);
  r.AddFn({.op = absl::StrCat("StatsAccumulator", kind, "Add")}, Add<T>);
  r.AddFn({.op = absl::StrCat("StatsAccumulator", kind, "Flush")}, Flush<T>);
  r.AddFn({.op = absl::StrCat("StatsAccumulator", kind, "Serialize")}, Serialize<T>);
  r.AddFn({.op = absl::StrCat("StatsAccumulator", kind, "Deserialize")}, Deserialize<T>);
  r.AddFn({.op = absl::StrCat("StatsAccumulator", kind, "MakeSummary")}, MakeSummary);
}

}  // namespace

Status CheckStamp(int64_t have, int64_t given) {
  if (have != given) return InvalidArgument("Invalid stamp token: got ", given, ", have ", have);
  return absl::OkStatus();
}

void RegisterGbdtStatsKernels(KernelRegistry& r) {
  Register<ScalarAccumulator>(r, "Scalar", CreateScalar);
  Register<TensorAccumulator>(r, "Tensor", CreateTensor);
}

}  // namespace millrace
