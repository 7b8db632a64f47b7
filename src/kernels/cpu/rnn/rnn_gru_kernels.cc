// SPDX-License-Identifier: Apache-2.0
// GRUBlockCell and its gradient. The concatenations [x, h] of the definition are never made: a product with them is a
// sum of two products, with the upper rows of the weights and with the lower ones.
#include "kernels/cpu/engine/cost.h"
#include "kernels/cpu/rnn/rnn.h"
#include "kernels/cpu/rnn/rnn_tiles.h"

namespace millrace {
namespace {

constexpr double kNanosPerValue = 4;

struct GruSizes {
  int64_t batch = 0, inputs = 0, units = 0;
};

// Inputs 0-5 of both ops: x, h_prev, w_ru, w_c, b_ru, b_c.
StatusOr<GruSizes> CheckGru(const KernelContext& ctx) {
  const Tensor& x = ctx.input(0);
  const Tensor& h = ctx.input(1);
  if (x.rank() != 2) return InvalidArgument("x must be a matrix, got shape ", x.shape().ToString());
  if (h.rank() != 2) return InvalidArgument("h_prev must be a matrix, got shape ", h.shape().ToString());
  const GruSizes s{x.dim(0), x.dim(1), h.dim(1)};
  MR_RETURN_IF_ERROR(CheckRnnSize(s.inputs, s.units));
  MR_RETURN_IF_ERROR(WantDims(ctx, 1, {s.batch, s.units}));
  MR_RETURN_IF_ERROR(WantDims(ctx, 2, {s.inputs + s.units, 2 * s.units}));
  MR_RETURN_IF_ERROR(WantDims(ctx, 3, {s.inputs + s.units, s.units}));
  MR_RETURN_IF_ERROR(WantDims(ctx, 4, {2 * s.units}));
  MR_RETURN_IF_ERROR(WantDims(ctx, 5, {s.units}));
  return s;
}

Status GruCell(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const GruSizes s, CheckGru(ctx));
  const int64_t u = s.units;
  MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({s.batch, u}));
  float* out[4];  // r, u, c, h
  for (int i = 0; i < 4; ++i) {
    MR_ASSIGN_OR_RETURN(Tensor * t, ctx.AllocateOutput(i, shape));
    out[i] = t->mutable_data<float>();
  }
  if (shape.num_elements() == 0) return absl::OkStatus();
  MR_ASSIGN_OR_RETURN(const Shape gates_shape, Shape::Make({s.batch, 3 * u}));
  MR_ASSIGN_OR_RETURN(Tensor gates_memory, ctx.AllocateTemp(DType::kFloat, gates_shape));
  float* const gates = gates_memory.mutable_data<float>();
  float* const reset = gates + s.batch * 2 * u;
  const float *x = ctx.input(0).data<float>(), *h = ctx.input(1).data<float>(), *w_ru = ctx.input(2).data<float>();
  const float *w_c = ctx.input(3).data<float>(), *b_ru = ctx.input(4).data<float>(), *b_c = ctx.input(5).data<float>();
  const RnnRows& rows = RnnRowFunctions();
  const double cost = static_cast<double>(u) * kNanosPerValue;

  Multiply(ctx, {x, s.inputs}, {w_ru, 2 * u, &ctx.input(2)}, s.batch, 2 * u, s.inputs, gates, 2 * u, GemmMode::kSet);
  Multiply(
      ctx, {h, u}, {w_ru + s.inputs * 2 * u, 2 * u, &ctx.input(2)}, s.batch, 2 * u, u, gates, 2 * u, GemmMode::kAdd);
  ctx.ParallelFor(s.batch, cost, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const float* g = gates + i * 2 * u;
      rows.gru_gates({u, g, g + u, b_ru, b_ru + u, h + i * u, out[0] + i * u, out[1] + i * u, reset + i * u});
    }
  });
  float* const c = out[2];
  Multiply(ctx, {x, s.inputs}, {w_c, u, &ctx.input(3)}, s.batch, u, s.inputs, c, u, GemmMode::kSet);
  Multiply(ctx, {reset, u}, {w_c + s.inputs * u, u, &ctx.input(3)}, s.batch, u, u, c, u, GemmMode::kAdd);
  ctx.ParallelFor(s.batch, cost, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      rows.gru_state({u, c + i * u, b_c, out[1] + i * u, h + i * u, c + i * u, out[3] + i * u});
    }
  });
  return absl::OkStatus();
}

Status GruCellGrad(KernelContext& ctx) {
  MR_ASSIGN_OR_RETURN(const GruSizes s, CheckGru(ctx));
  for (int i = 6; i < 10; ++i) MR_RETURN_IF_ERROR(WantDims(ctx, i, {s.batch, s.units}));
  const int64_t u = s.units;
  MR_ASSIGN_OR_RETURN(Tensor * d_x, ctx.AllocateOutput(0, ctx.input(0).shape()));
  MR_ASSIGN_OR_RETURN(Tensor * d_h_prev, ctx.AllocateOutput(1, ctx.input(1).shape()));
  MR_ASSIGN_OR_RETURN(Tensor * d_c_bar, ctx.AllocateOutput(2, ctx.input(1).shape()));
  MR_ASSIGN_OR_RETURN(const Shape both, Shape::Make({s.batch, 2 * u}));
  MR_ASSIGN_OR_RETURN(Tensor * d_gates, ctx.AllocateOutput(3, both));
  MR_ASSIGN_OR_RETURN(Tensor d_reset, ctx.AllocateTemp(DType::kFloat, ctx.input(1).shape()));
  const float *h = ctx.input(1).data<float>(), *w_ru = ctx.input(2).data<float>(), *w_c = ctx.input(3).data<float>();
  const float *r = ctx.input(6).data<float>(), *update = ctx.input(7).data<float>(), *c = ctx.input(8).data<float>();
  const float* dh = ctx.input(9).data<float>();
  float *dx = d_x->mutable_data<float>(), *dhp = d_h_prev->mutable_data<float>(), *dc = d_c_bar->mutable_data<float>();
  float *dg = d_gates->mutable_data<float>(), *dr = d_reset.mutable_data<float>();
  const RnnRows& rows = RnnRowFunctions();
  const double cost = static_cast<double>(u);

  ctx.ParallelFor(s.batch, cost, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t at = i * u;
      rows.gru_grad({u, h + at, update + at, c + at, dh + at, dc + at, dg + 2 * at + u, dhp + at});
    }
  });
  MultiplyTransposedB(ctx, {dc, u}, {w_c, u}, s.batch, s.inputs, u, dx, s.inputs, GemmMode::kSet);
  MultiplyTransposedB(ctx, {dc, u}, {w_c + s.inputs * u, u}, s.batch, u, u, dr, u, GemmMode::kSet);
  ctx.ParallelFor(s.batch, cost, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t at = i * u;
      rows.gru_reset_grad({u, dr + at, h + at, r + at, dg + 2 * at, dhp + at});
    }
  });
  MultiplyTransposedB(ctx, {dg, 2 * u}, {w_ru, 2 * u}, s.batch, s.inputs, 2 * u, dx, s.inputs, GemmMode::kAdd);
  MultiplyTransposedB(ctx, {dg, 2 * u}, {w_ru + s.inputs * 2 * u, 2 * u}, s.batch, u, 2 * u, dhp, u, GemmMode::kAdd);
  return absl::OkStatus();
}

}  // namespace

void RegisterGruKernels(KernelRegistry& registry) {
  const std::vector<DType> types = Types("f32");
  registry.AddFn({.op = "GRUBlockCell", .types = {{"T", types}}, .cost = CellCost}, GruCell);
  registry.AddFn({.op = "GRUBlockCellGrad", .types = {{"T", types}}, .cost = CellCost}, GruCellGrad);
}

}  // namespace millrace
