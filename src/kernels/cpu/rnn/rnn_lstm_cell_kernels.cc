// SPDX-License-Identifier: Apache-2.0
// One LSTM step (Hochreiter and Schmidhuber 1997; peepholes: Gers and Schmidhuber 2000) and its gradient.
#include <algorithm>

#include "kernels/cpu/engine/cost.h"
#include "kernels/cpu/rnn/rnn_lstm.h"

namespace millrace {
namespace {

class LstmCellKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override { return attrs_.Read(init); }
  Status Compute(KernelContext& ctx) override {
    LstmInputs in;
    MR_RETURN_IF_ERROR(in.Read(ctx, 0, 2, attrs_.use_peephole));
    const LstmSizes& s = in.sizes;
    FloatOutput out[7];
    for (int i = 0; i < 7; ++i) MR_RETURN_IF_ERROR(out[i].Allocate(ctx, i, ctx.input(1).shape()));
    if (s.step_elements() == 0) return absl::OkStatus();
    const int64_t wide = 4 * s.units;
    MR_ASSIGN_OR_RETURN(const Shape gates_shape, Shape::Make({s.batch, wide}));
    MR_ASSIGN_OR_RETURN(Tensor gates_memory, ctx.AllocateTemp(DType::kFloat, gates_shape));
    float* const gates = gates_memory.mutable_data<float>();
    Multiply(ctx, {in.x, s.inputs}, {in.w, wide, in.w_value}, s.batch, wide, s.inputs, gates, wide, GemmMode::kSet);
    Multiply(ctx, {in.h_prev, s.units}, {in.w + s.inputs * wide, wide, in.w_value}, s.batch, wide, s.units, gates, wide,
             GemmMode::kAdd);
    LstmForwardStep(
        ctx, in, attrs_, kOrderIcfo, gates, in.cs_prev,
        {out[0].data(), out[1].data(), out[2].data(), out[3].data(), out[4].data(), out[5].data(), out[6].data()});
    for (FloatOutput& o : out) o.Finish();
    return absl::OkStatus();
  }

 private:
  LstmAttrs attrs_;
};

class LstmCellGradKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override { return attrs_.Read(init); }
  Status Compute(KernelContext& ctx) override {
    LstmInputs in;
    MR_RETURN_IF_ERROR(in.Read(ctx, 0, 2, attrs_.use_peephole));
    const LstmSizes& s = in.sizes;
    // i, cs, f, o, ci, co, cs_grad, h_grad
    const float* given[8];
    Tensor keep[8];
    for (int i = 0; i < 8; ++i) {
      MR_RETURN_IF_ERROR(WantDims(ctx, 8 + i, {s.batch, s.units}));
      MR_ASSIGN_OR_RETURN(given[i], FloatInput(ctx, 8 + i, &keep[i]));
    }
    FloatOutput cs_prev_grad, gates, peepholes[3];
    MR_RETURN_IF_ERROR(cs_prev_grad.Allocate(ctx, 0, ctx.input(1).shape()));
    MR_ASSIGN_OR_RETURN(const Shape gates_shape, Shape::Make({s.batch, 4 * s.units}));
    MR_RETURN_IF_ERROR(gates.Allocate(ctx, 1, gates_shape));
    for (int i = 0; i < 3; ++i) {
      MR_RETURN_IF_ERROR(peepholes[i].Allocate(ctx, 2 + i, Shape::Vector(s.units)));
      std::fill_n(peepholes[i].data(), s.units, 0.0f);
    }
    if (s.step_elements() > 0) {
      LstmBackwardStep step{in.cs_prev, given[0], given[1], given[2], given[3],     given[4],           given[5],
                            given[6],   given[7], nullptr,  nullptr,  gates.data(), cs_prev_grad.data()};
      step.wci_grad = peepholes[0].data();
      step.wcf_grad = peepholes[1].data();
      step.wco_grad = peepholes[2].data();
      LstmGradStep(ctx, in, kOrderIcfo, step);
    }
    cs_prev_grad.Finish();
    gates.Finish();
    for (FloatOutput& o : peepholes) o.Finish();
    return absl::OkStatus();
  }

 private:
  LstmAttrs attrs_;
};

}  // namespace

void RegisterLstmCellKernels(KernelRegistry& registry) {
  const std::vector<DType> types = Types("f16|f32");
  registry.Add<LstmCellKernel>({.op = "LSTMBlockCell", .types = {{"T", types}}, .cost = CellCost});
  registry.Add<LstmCellGradKernel>({.op = "LSTMBlockCellGrad", .types = {{"T", types}}, .cost = CellCost});
}

}  // namespace millrace
