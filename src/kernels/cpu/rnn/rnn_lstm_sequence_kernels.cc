// SPDX-License-Identifier: Apache-2.0
// A layer of LSTM cells over a whole sequence, and its gradient. What does not depend on the step before is done for
// all steps in one product: x W on the way forward; on the way back, where every step has left the gradients of its
// gates, those of x, W and b. In between stands one product per step, with the lower rows of W.
#include <algorithm>
#include <cstring>

#include "kernels/cpu/engine/cost.h"
#include "kernels/cpu/nn/nn_simd.h"
#include "kernels/cpu/rnn/rnn_lstm.h"

namespace millrace {
namespace {

StatusOr<int64_t> StepsToRun(const KernelContext& ctx, int64_t steps) {
  MR_ASSIGN_OR_RETURN(const int64_t wanted, ctx.input(0).IntScalar());
  if (wanted < 0 || wanted > steps) {
    return InvalidArgument("seq_len_max is ", wanted, ", want one in [0, ", steps, "], the number of steps of x");
  }
  return wanted;
}

// Products with a transposed second factor run at half the speed of others, so over many steps it pays to transpose.
constexpr int64_t kWorthTransposing = 4;

// out [columns, rows] = a [rows, columns] transposed.
void Transpose(const KernelContext& ctx, const float* a, int64_t rows, int64_t columns, float* out) {
  constexpr int64_t kBlock = 16;
  ctx.ParallelFor((rows + kBlock - 1) / kBlock, static_cast<double>(columns * kBlock), [&](int64_t begin, int64_t end) {
    const int64_t last = std::min(end * kBlock, rows);
    for (int64_t i = begin * kBlock; i < last; i += kBlock) {
      for (int64_t j = 0; j < columns; j += kBlock) {
        for (int64_t c = j; c < std::min(j + kBlock, columns); ++c) {
          for (int64_t r = i; r < std::min(i + kBlock, last); ++r) out[c * rows + r] = a[r * columns + c];
        }
      }
    }
  });
}

template <GateOrder kOrder>
class BlockLstmKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override { return attrs_.Read(init); }
  Status Compute(KernelContext& ctx) override {
    LstmInputs in;
    MR_RETURN_IF_ERROR(in.Read(ctx, 1, 3, attrs_.use_peephole));
    const LstmSizes& s = in.sizes;
    MR_ASSIGN_OR_RETURN(const int64_t steps, StepsToRun(ctx, s.steps));
    MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({s.steps, s.batch, s.units}));
    FloatOutput out[7];
    for (int i = 0; i < 7; ++i) {
      MR_RETURN_IF_ERROR(out[i].Allocate(ctx, i, shape));
      const int64_t done = steps * s.step_elements();
      std::fill_n(out[i].data() + done, out[i].size() - done, 0.0f);
    }
    if (steps * s.step_elements() > 0) MR_RETURN_IF_ERROR(Run(ctx, in, steps, out));
    for (FloatOutput& o : out) o.Finish();
    return absl::OkStatus();
  }

 private:
  Status Run(KernelContext& ctx, const LstmInputs& in, int64_t steps, FloatOutput* out) const {
    const LstmSizes& s = in.sizes;
    const int64_t wide = 4 * s.units, step_size = s.step_elements();
    MR_ASSIGN_OR_RETURN(const Shape gates_shape, Shape::Make({steps, s.batch, wide}));
    MR_ASSIGN_OR_RETURN(Tensor memory, ctx.AllocateTemp(DType::kFloat, gates_shape));
    float* const gates = memory.mutable_data<float>();
    Multiply(
        ctx, {in.x, s.inputs}, {in.w, wide, in.w_value}, steps * s.batch, wide, s.inputs, gates, wide, GemmMode::kSet);
    const Matrix recurrent{in.w + s.inputs * wide, wide, in.w_value};
    for (int64_t t = 0; t < steps; ++t) {
      const float* h = t == 0 ? in.h_prev : out[6].data() + (t - 1) * step_size;
      const float* cs = t == 0 ? in.cs_prev : out[1].data() + (t - 1) * step_size;
      float* const g = gates + t * s.batch * wide;
      Multiply(ctx, {h, s.units}, recurrent, s.batch, wide, s.units, g, wide, GemmMode::kAdd);
      float* to[7];
      for (int i = 0; i < 7; ++i) to[i] = out[i].data() + t * step_size;
      LstmForwardStep(ctx, in, attrs_, kOrder, g, cs, {to[0], to[1], to[2], to[3], to[4], to[5], to[6]});
    }
    return absl::OkStatus();
  }

  LstmAttrs attrs_;
};

template <GateOrder kOrder>
class BlockLstmGradKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override { return attrs_.Read(init); }
  Status Compute(KernelContext& ctx) override {
    Work w;
    MR_RETURN_IF_ERROR(w.in.Read(ctx, 1, 3, attrs_.use_peephole));
    const LstmSizes& s = w.in.sizes;
    MR_ASSIGN_OR_RETURN(w.steps, StepsToRun(ctx, s.steps));
    // i, cs, f, o, ci, co, h, cs_grad, h_grad
    Tensor keep[9];
    for (int i = 0; i < 9; ++i) {
      MR_RETURN_IF_ERROR(WantDims(ctx, 9 + i, {s.steps, s.batch, s.units}));
      MR_ASSIGN_OR_RETURN(w.given[i], FloatInput(ctx, 9 + i, &keep[i]));
    }
    for (int i = 0; i < 8; ++i) {
      MR_RETURN_IF_ERROR(w.out[i].Allocate(ctx, i, ctx.input(1 + i).shape()));
      std::fill_n(w.out[i].data(), w.out[i].size(), 0.0f);
    }
    if (w.steps * s.step_elements() > 0) {
      MR_ASSIGN_OR_RETURN(const Shape gates_shape, Shape::Make({w.steps, s.batch, 4 * s.units}));
      MR_ASSIGN_OR_RETURN(Tensor memory, ctx.AllocateTemp(DType::kFloat, gates_shape));
      MR_RETURN_IF_ERROR(WalkBack(ctx, w, memory.mutable_data<float>()));
      MultiplyAll(ctx, w, memory.data<float>());
    }
    for (FloatOutput& o : w.out) o.Finish();
    return absl::OkStatus();
  }

 private:
  enum Result { kX, kCsPrev, kHPrev, kW, kWci, kWcf, kWco, kB };
  struct Work {
    LstmInputs in;
    int64_t steps = 0;
    const float* given[9];
    FloatOutput out[8];
  };

  // Fills the gradients of all gates; leaves those of cs_prev and h_prev, and of the peephole weights.
  static Status WalkBack(KernelContext& ctx, Work& w, float* gates) {
    const LstmSizes& s = w.in.sizes;
    const int64_t wide = 4 * s.units, size = s.step_elements();
    const Matrix recurrent{w.in.w + s.inputs * wide, wide};
    Tensor transposed;
    if (w.steps >= kWorthTransposing) {
      MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({wide, s.units}));
      MR_ASSIGN_OR_RETURN(transposed, ctx.AllocateTemp(DType::kFloat, shape));
      Transpose(ctx, recurrent.data, s.units, wide, transposed.mutable_data<float>());
    }
    float *const cs_carried = w.out[kCsPrev].data(), *const h_carried = w.out[kHPrev].data();
    for (int64_t t = w.steps; t-- > 0;) {
      const int64_t at = t * size;
      const float* const* v = w.given;
      LstmBackwardStep step{
          t == 0 ? w.in.cs_prev : v[1] + at - size,
          v[0] + at,
          v[1] + at,
          v[2] + at,
          v[3] + at,
          v[4] + at,
          v[5] + at,
          v[7] + at,
          v[8] + at,
          cs_carried,
          t + 1 == w.steps ? nullptr : h_carried,
          gates + t * s.batch * wide,
          cs_carried};
      step.wci_grad = w.out[kWci].data();
      step.wcf_grad = w.out[kWcf].data();
      step.wco_grad = w.out[kWco].data();
      LstmGradStep(ctx, w.in, kOrder, step);
      if (transposed.IsInitialized()) {
        Multiply(ctx, {step.gates, wide}, {transposed.data<float>(), s.units}, s.batch, s.units, wide, h_carried,
                 s.units, GemmMode::kSet);
      } else {
        MultiplyTransposedB(
            ctx, {step.gates, wide}, recurrent, s.batch, s.units, wide, h_carried, s.units, GemmMode::kSet);
      }
    }
    return absl::OkStatus();
  }

  static void MultiplyAll(const KernelContext& ctx, Work& w, const float* gates) {
    const LstmSizes& s = w.in.sizes;
    const int64_t wide = 4 * s.units, rows = w.steps * s.batch;
    MultiplyTransposedB(
        ctx, {gates, wide}, {w.in.w, wide}, rows, s.inputs, wide, w.out[kX].data(), s.inputs, GemmMode::kSet);
    float* const w_grad = w.out[kW].data();
    MultiplyTransposedA(ctx, {w.in.x, s.inputs}, {gates, wide}, s.inputs, wide, rows, w_grad, wide, GemmMode::kSet);
    float* const lower = w_grad + s.inputs * wide;
    MultiplyTransposedA(
        ctx, {w.in.h_prev, s.units}, {gates, wide}, s.units, wide, s.batch, lower, wide, GemmMode::kSet);
    if (rows > s.batch) {
      MultiplyTransposedA(ctx, {w.given[6], s.units}, {gates + s.batch * wide, wide}, s.units, wide, rows - s.batch,
                          lower, wide, GemmMode::kAdd);
    }
    AddRows(gates, static_cast<size_t>(rows), static_cast<size_t>(wide), w.out[kB].data());
  }

  LstmAttrs attrs_;
};

}  // namespace

void RegisterLstmSequenceKernels(KernelRegistry& registry) {
  const std::vector<DType> types = Types("f16|f32");
  registry.Add<BlockLstmKernel<kOrderIcfo>>({.op = "BlockLSTM", .types = {{"T", types}}, .cost = CellCost});
  registry.Add<BlockLstmKernel<kOrderIfco>>({.op = "BlockLSTMV2", .types = {{"T", types}}, .cost = CellCost});
  registry.Add<BlockLstmGradKernel<kOrderIcfo>>({.op = "BlockLSTMGrad", .types = {{"T", types}}, .cost = CellCost});
  registry.Add<BlockLstmGradKernel<kOrderIfco>>({.op = "BlockLSTMGradV2", .types = {{"T", types}}, .cost = CellCost});
}

}  // namespace millrace
