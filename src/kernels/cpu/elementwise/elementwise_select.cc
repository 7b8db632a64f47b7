// SPDX-License-Identifier: Apache-2.0
// Select (condition of the same shape, a scalar, or one per row) and SelectV2 (all three broadcast).
#include <algorithm>
#include <type_traits>

#include "kernels/cpu/elementwise/elementwise.h"
#include "kernels/cpu/elementwise/elementwise_broadcast.h"
#include "kernels/cpu/elementwise/elementwise_objects.h"

namespace millrace {
namespace {

// Elements i * step of each operand; steps are 0 or 1. Any byte but 0 is true. `out` may be t or e.
using SelectRun = void (*)(const void* c, const void* t, const void* e, void* out, int64_t n, int cs, int ts, int es);

template <typename E, int TStep, int EStep>
void RunMoving(const uint8_t* c, const E* t, const E* e, E* out, int64_t n) {
  if constexpr (std::is_integral_v<E>) {
    const E t0 = *t, e0 = *e;
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      const E mask = static_cast<E>(-static_cast<E>(c[i] != 0));
      out[i] = static_cast<E>(((TStep ? t[i] : t0) & mask) | ((EStep ? e[i] : e0) & static_cast<E>(~mask)));
    }
  } else {
    for (int64_t i = 0; i < n; ++i) out[i] = c[i] != 0 ? t[i * TStep] : e[i * EStep];
  }
}

template <typename E>
void Run(const void* c_in, const void* t_in, const void* e_in, void* out_in, int64_t n, int cs, int ts, int es) {
  const uint8_t* c = static_cast<const uint8_t*>(c_in);
  const E* t = static_cast<const E*>(t_in);
  const E* e = static_cast<const E*>(e_in);
  E* out = static_cast<E*>(out_in);
  if (cs == 0) {
    const E* from = *c != 0 ? t : e;
    const bool moves = (*c != 0 ? ts : es) != 0;
    if (!moves) {
      std::fill_n(out, n, E(*from));
    } else if (from != out) {
      std::copy_n(from, n, out);
    }
    return;
  }
  if (n == 0) return;
  if (ts != 0) return es != 0 ? RunMoving<E, 1, 1>(c, t, e, out, n) : RunMoving<E, 1, 0>(c, t, e, out, n);
  return es != 0 ? RunMoving<E, 0, 1>(c, t, e, out, n) : RunMoving<E, 0, 0>(c, t, e, out, n);
}

SelectRun RunFor(DType t) {
  return DispatchElement(t, []<typename E>() -> SelectRun { return &Run<E>; });
}

class SelectKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    type_ = BaseType(init.input_type(1));
    size_ = static_cast<int64_t>(DTypeSize(type_));
    run_ = RunFor(type_);
    broadcasts_ = init.op.name == "SelectV2";
    return absl::OkStatus();
  }

  Status Compute(KernelContext& ctx) override {
    const Shape& c = ctx.input(0).shape();
    const Shape& t = ctx.input(1).shape();
    const Shape& e = ctx.input(2).shape();
    if (t == e && (c == t || c.IsScalar())) {
      MR_ASSIGN_OR_RETURN(Tensor * out, Output(ctx, {1, 2}, t));
      Flat(ctx, *out, c.IsScalar() && !t.IsScalar() ? 0 : 1);
      return absl::OkStatus();
    }
    return broadcasts_ ? Broadcast(ctx) : Rows(ctx);
  }
  bool IsExpensive() const override { return false; }

 private:
  StatusOr<Tensor*> Output(KernelContext& ctx, std::initializer_list<int> candidates, const Shape& shape) const {
    return IsPlain(type_) ? ctx.ForwardOrAllocate(candidates, 0, shape) : ctx.AllocateOutput(0, shape);
  }

  void Flat(KernelContext& ctx, Tensor& out, int cs) const {
    const int64_t n = out.num_elements();
    const char* c = ctx.input(0).data<char>();
    const char* t = ctx.input(1).data<char>();
    const char* e = ctx.input(2).data<char>();
    char* o = out.mutable_data<char>();
    const int64_t blocks = (n + kElementwiseBlock - 1) / kElementwiseBlock;
    if (blocks <= 1) return n == 0 ? void() : run_(c, t, e, o, n, cs, 1, 1);
    ctx.ParallelFor(blocks, kElementwiseBlock * (IsPlain(type_) ? 1 : 20), [&](int64_t begin, int64_t end) {
      const int64_t first = begin * kElementwiseBlock;
      run_(c + first * cs, t + first * size_, e + first * size_, o + first * size_,
           std::min(n, end * kElementwiseBlock) - first, cs, 1, 1);
    });
  }

  // A vector of conditions, one per row of dimension 0.
  Status Rows(KernelContext& ctx) const {
    const Shape& c = ctx.input(0).shape();
    const Shape& t = ctx.input(1).shape();
    if (!(t == ctx.input(2).shape())) {
      return InvalidArgument(
          "Select: 't' and 'e' must have the same shape, got ", t.ToString(), " and ", ctx.input(2).shape().ToString());
    }
    if (c.rank() != 1 || t.rank() < 1 || c.dim(0) != t.dim(0)) {
      return InvalidArgument("Select: 'condition' must be a scalar, a vector of the first dimension, or of the shape ",
                             t.ToString(), ", got ", c.ToString());
    }
    MR_ASSIGN_OR_RETURN(Tensor * out, Output(ctx, {1, 2}, t));
    if (t.num_elements() == 0) return absl::OkStatus();
    const int64_t inner = t.num_elements() / t.dim(0);
    const int64_t bytes = inner * size_;
    const char* cond = ctx.input(0).data<char>();
    const char* then = ctx.input(1).data<char>();
    const char* other = ctx.input(2).data<char>();
    char* o = out->mutable_data<char>();
    ctx.ParallelFor(t.dim(0), static_cast<double>(inner), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        run_(cond + i, then + i * bytes, other + i * bytes, o + i * bytes, inner, 0, 1, 1);
      }
    });
    return absl::OkStatus();
  }

  Status Broadcast(KernelContext& ctx) const {
    const Shape& c = ctx.input(0).shape();
    const Shape& t = ctx.input(1).shape();
    const Shape& e = ctx.input(2).shape();
    auto values = BroadcastShapes(t, e);
    StatusOr<Shape> shape = values.ok() ? BroadcastShapes(c, *values) : values.status();
    if (!shape.ok()) {
      return InvalidArgument(
          "condition ", c.ToString(), ", then ", t.ToString(), ", and else ", e.ToString(), " must be broadcastable");
    }
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, *shape));
    if (shape->num_elements() == 0) return absl::OkStatus();
    const BroadcastPlan plan({&c, &t, &e}, *shape);
    const char* pc = ctx.input(0).data<char>();
    const char* pt = ctx.input(1).data<char>();
    const char* pe = ctx.input(2).data<char>();
    char* o = out->mutable_data<char>();
    // A row may be all there is: beside a tensor, a number.
    const int64_t inner = plan.inner(), blocks = (inner + kElementwiseBlock - 1) / kElementwiseBlock;
    const double cost = static_cast<double>(std::min(inner, kElementwiseBlock)) * (IsPlain(type_) ? 1 : 20) + 5;
    ctx.ParallelFor(plan.rows() * blocks, cost, [&](int64_t begin, int64_t end) {
      BroadcastPlan::Cursor row(plan, begin / blocks);
      for (int64_t i = begin; i < end; ++i) {
        const int64_t first = i % blocks * kElementwiseBlock, n = std::min(kElementwiseBlock, inner - first);
        const auto from = [&](int k) { return row.offset(k) + (plan.Moves(k) ? first : 0); };
        run_(pc + from(0), pt + from(1) * size_, pe + from(2) * size_, o + (i / blocks * inner + first) * size_, n,
             plan.Moves(0), plan.Moves(1), plan.Moves(2));
        if ((i + 1) % blocks == 0) row.Next();
      }
    });
    return absl::OkStatus();
  }

  DType type_ = DType::kInvalid;
  int64_t size_ = 0;
  SelectRun run_ = nullptr;
  bool broadcasts_ = false;
};

}  // namespace

void RegisterSelectKernels(KernelRegistry& r) {
  r.Add<SelectKernel>({.op = "Select"});
  r.Add<SelectKernel>({.op = "SelectV2"});
}

}  // namespace millrace
