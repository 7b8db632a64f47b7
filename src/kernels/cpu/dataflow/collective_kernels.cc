// SPDX-License-Identifier: Apache-2.0
// CPU kernels: collectives. What they do is done elsewhere (kernel/collective.h); here is the arithmetic.
#include "kernel/collective.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "kernels/cpu/array/array_kernels.h"
#include "kernels/cpu/dataflow/queue_kernels.h"
#include "tensor/half.h"

namespace millrace {
namespace {

constexpr absl::Duration kDefaultTimeout = absl::Minutes(10);

// Arithmetic of halves is that of floats, rounded.
template <typename T>
struct Computed {
  using type = T;
};
template <>
struct Computed<Half> {
  using type = float;
};

template <typename T, typename Op>
void Merge(void* into, const void* left, const void* right, int64_t n) {
  auto* out = static_cast<T*>(into);
  const auto* a = static_cast<const T*>(left);
  const auto* b = static_cast<const T*>(right);
  using C = typename Computed<T>::type;
  for (int64_t i = 0; i < n; ++i) out[i] = static_cast<T>(Op()(static_cast<C>(a[i]), static_cast<C>(b[i])));
}
// Integers overflow as they do in other kernels: modulo 2^bits.
struct Add {
  template <typename C>
  C operator()(C a, C b) const {
    if constexpr (std::is_integral_v<C>) {
      using U = std::make_unsigned_t<C>;
      return static_cast<C>(static_cast<U>(a) + static_cast<U>(b));
    } else {
      return a + b;
    }
  }
};
struct Mul {
  template <typename C>
  C operator()(C a, C b) const {
    if constexpr (std::is_integral_v<C>) {
      using U = std::make_unsigned_t<C>;
      return static_cast<C>(static_cast<U>(a) * static_cast<U>(b));
    } else {
      return a * b;
    }
  }
};
// A value that is no number stays.
struct Min {
  template <typename C>
  C operator()(C a, C b) const {
    return a < b || a != a ? a : b;
  }
};
struct Max {
  template <typename C>
  C operator()(C a, C b) const {
    return a > b || a != a ? a : b;
  }
};

template <typename T>
void Divide(void* values, int64_t n, int64_t group_size) {
  using C = typename Computed<T>::type;
  auto* v = static_cast<T*>(values);
  for (int64_t i = 0; i < n; ++i) v[i] = static_cast<T>(static_cast<C>(v[i]) / static_cast<C>(group_size));
}

template <typename T>
void SetArithmetic(const std::string& merge_op, const std::string& final_op, CollectiveCall* call) {
  call->merge =
      merge_op == "Add"   ? Merge<T, Add>
      : merge_op == "Mul" ? Merge<T, Mul>
      : merge_op == "Min" ? Merge<T, Min>
                          : Merge<T, Max>;
  call->finish = final_op == "Div" ? Divide<T> : nullptr;
}

class CollectiveKernel final : public AsyncKernel, public CollectiveUser {
 public:
  Status Init(const KernelInit& init) override {
    call_.device = init.device.name();
    call_.allocator = &init.device.allocator();
    MR_ASSIGN_OR_RETURN(call_.dtype, init.Attr<DType>("T"));
    receives_ = absl::StartsWith(init.op.name, "CollectiveBcastRecv");
    has_numbers_as_inputs_ = !init.HasAttr("group_size");
    if (!has_numbers_as_inputs_) {
      MR_ASSIGN_OR_RETURN(call_.group_size, init.Attr<int64_t>("group_size"));
      MR_ASSIGN_OR_RETURN(call_.group_key, init.Attr<int64_t>("group_key"));
      MR_ASSIGN_OR_RETURN(call_.instance_key, init.Attr<int64_t>("instance_key"));
      MR_RETURN_IF_ERROR(CheckSize(call_.group_size));
    }
    MR_ASSIGN_OR_RETURN(const float seconds, init.Attr<float>("timeout_seconds"));
    if (!(seconds >= 0 && seconds < 1e9f)) {
      return InvalidArgument("timeout_seconds must be in [0, 1e9), got ", seconds);
    }
    call_.timeout = seconds == 0 ? kDefaultTimeout : absl::Seconds(seconds);
    if (init.HasAttr("shape")) {
      MR_ASSIGN_OR_RETURN(call_.wanted, init.Attr<PartialShape>("shape"));
    }
    if (init.HasAttr("merge_op")) return InitReduction(init);
    const bool gathers = absl::StartsWith(init.op.name, "CollectiveGather");
    call_.kind = gathers ? CollectiveKind::kGather : CollectiveKind::kBroadcast;
    return absl::OkStatus();
  }

  void SetExecutor(std::shared_ptr<CollectiveExecutor> executor, uint64_t session) override {
    executor_ = std::move(executor);
    call_.session = session;
  }

  void ComputeAsync(KernelContext& ctx, DoneCallback done) override {
    CollectiveCall call = call_;
    if (has_numbers_as_inputs_) {
      if (Status s = ReadNumbers(ctx, &call); !s.ok()) return std::move(done)(std::move(s));
    }
    if (call.group_size == 1) return std::move(done)(Alone(ctx, call.wanted));
    if (!executor_) {
      return std::move(done)(
          Unimplemented("a group of ", call.group_size, " members within a function that a kernel calls"));
    }
    call.step = ctx.step().step_id;
    call.iteration = ctx.step().iteration;
    call.cancellation = ctx.step().cancellation;
    if (!receives_) call.input = ctx.input(0);
    executor_->Run(std::move(call), [&ctx, done = std::move(done)](StatusOr<Tensor> result) mutable {
      if (result.ok()) ctx.set_output(0, *std::move(result));
      std::move(done)(result.status());
    });
  }

 private:
  Status CheckSize(int64_t group_size) const {
    if (group_size < 1) return InvalidArgument("group_size must be positive, got ", group_size);
    if (receives_ && group_size == 1) return InvalidArgument("a group of one member has nobody who sends to it");
    return absl::OkStatus();
  }

  Status ReadNumbers(KernelContext& ctx, CollectiveCall* call) const {
    const int first = receives_ ? 0 : 1;
    MR_ASSIGN_OR_RETURN(call->group_size, ctx.input(first).ScalarValue<int32_t>());
    MR_ASSIGN_OR_RETURN(call->group_key, ctx.input(first + 1).ScalarValue<int32_t>());
    MR_ASSIGN_OR_RETURN(call->instance_key, ctx.input(first + 2).ScalarValue<int32_t>());
    MR_RETURN_IF_ERROR(CheckSize(call->group_size));
    if (!receives_) return absl::OkStatus();
    MR_ASSIGN_OR_RETURN(const Shape shape, ShapeOf(ctx.input(3), "shape"));
    call->wanted = PartialShape(shape);
    return absl::OkStatus();
  }

  Status InitReduction(const KernelInit& init) {
    MR_ASSIGN_OR_RETURN(const std::string merge_op, init.Attr<std::string>("merge_op"));
    MR_ASSIGN_OR_RETURN(const std::string final_op, init.Attr<std::string>("final_op"));
    call_.kind = CollectiveKind::kReduce;
    call_.combination = absl::StrCat(merge_op, ", ", final_op);
    switch (call_.dtype) {
      case DType::kHalf: SetArithmetic<Half>(merge_op, final_op, &call_); break;
      case DType::kFloat: SetArithmetic<float>(merge_op, final_op, &call_); break;
      case DType::kDouble: SetArithmetic<double>(merge_op, final_op, &call_); break;
      case DType::kInt32: SetArithmetic<int32_t>(merge_op, final_op, &call_); break;
      case DType::kInt64: SetArithmetic<int64_t>(merge_op, final_op, &call_); break;
      default: return Unimplemented("a reduction of ", DTypeName(call_.dtype), " values");
    }
    return absl::OkStatus();
  }

  // What a group of one makes of its only value is that value.
  static Status Alone(KernelContext& ctx, const PartialShape& wanted) {
    if (!wanted.IsCompatibleWith(ctx.input(0).shape())) {
      return InvalidArgument(
          "shape is ", wanted.ToString(), ", the value of the only member ", ctx.input(0).shape().ToString());
    }
    ctx.Forward(0, 0);
    return absl::OkStatus();
  }

  CollectiveCall call_;  // what all steps have in common
  bool receives_ = false, has_numbers_as_inputs_ = false;
  std::shared_ptr<CollectiveExecutor> executor_;
};

}  // namespace

void RegisterCollectiveKernels(KernelRegistry& r) {
  for (const char* op :
       {"CollectiveReduce", "CollectiveGather", "CollectiveBcastSend", "CollectiveBcastRecv", "CollectiveReduceV2",
        "CollectiveGatherV2", "CollectiveBcastSendV2", "CollectiveBcastRecvV2"}) {
    r.Add<CollectiveKernel>({.op = op});
  }
}

}  // namespace millrace
