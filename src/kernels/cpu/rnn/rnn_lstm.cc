// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/rnn/rnn_lstm.h"

#include <algorithm>

namespace millrace {

Status LstmInputs::Read(KernelContext& ctx, int first, int x_rank, bool use_peephole) {
  const Tensor& xt = ctx.input(first);
  const Tensor& cs = ctx.input(first + 1);
  if (xt.rank() != x_rank) return InvalidArgument("x must have rank ", x_rank, ", got shape ", xt.shape().ToString());
  if (cs.rank() != 2) return InvalidArgument("cs_prev must be a matrix, got shape ", cs.shape().ToString());
  sizes.steps = x_rank == 3 ? xt.dim(0) : 1;
  sizes.batch = xt.dim(x_rank - 2);
  sizes.inputs = xt.dim(x_rank - 1);
  sizes.units = cs.dim(1);
  MR_RETURN_IF_ERROR(CheckRnnSize(sizes.inputs, sizes.units));
  const int64_t units = sizes.units;
  MR_RETURN_IF_ERROR(WantDims(ctx, first + 1, {sizes.batch, units}));
  MR_RETURN_IF_ERROR(WantDims(ctx, first + 2, {sizes.batch, units}));
  MR_RETURN_IF_ERROR(WantDims(ctx, first + 3, {sizes.inputs + units, 4 * units}));
  for (int i = 4; i < 7; ++i) {
    // Peepholes that are not used may be empty vectors.
    const Shape& peephole = ctx.input(first + i).shape();
    if (!use_peephole && peephole.rank() == 1) continue;
    MR_RETURN_IF_ERROR(WantDims(ctx, first + i, {units}));
  }
  MR_RETURN_IF_ERROR(WantDims(ctx, first + 7, {4 * units}));
  const float** const wanted[] = {&x, &cs_prev, &h_prev, &w, &wci, &wcf, &wco, &b};
  for (int i = 0; i < 8; ++i) {
    if (!use_peephole && i >= 4 && i < 7) continue;
    MR_ASSIGN_OR_RETURN(*wanted[i], FloatInput(ctx, first + i, &keep[i]));
  }
  if (w == ctx.input(first + 3).raw()) w_value = &ctx.input(first + 3);
  return absl::OkStatus();
}

Status LstmAttrs::Read(const KernelInit& init) {
  if (init.HasAttr("forget_bias")) {
    MR_ASSIGN_OR_RETURN(forget_bias, init.Attr<float>("forget_bias"));
  }
  if (init.HasAttr("cell_clip")) {
    MR_ASSIGN_OR_RETURN(cell_clip, init.Attr<float>("cell_clip"));
  }
  MR_ASSIGN_OR_RETURN(use_peephole, init.Attr<bool>("use_peephole"));
  return absl::OkStatus();
}

void LstmForwardStep(const KernelContext& ctx, const LstmInputs& in, const LstmAttrs& attrs, GateOrder order,
                     const float* gates, const float* cs_prev, const LstmStepOutputs& out) {
  const int64_t units = in.sizes.units;
  const RnnRows& rows = RnnRowFunctions();
  ctx.ParallelFor(in.sizes.batch, static_cast<double>(units) * 5, [&](int64_t begin, int64_t end) {
    LstmRow r;
    r.n = units;
    r.i_bias = in.b + order.i * units;
    r.ci_bias = in.b + order.ci * units;
    r.f_bias = in.b + order.f * units;
    r.o_bias = in.b + order.o * units;
    r.wci = in.wci;
    r.wcf = in.wcf;
    r.wco = in.wco;
    r.forget_bias = attrs.forget_bias;
    r.clip = attrs.cell_clip;
    for (int64_t row = begin; row < end; ++row) {
      const float* const g = gates + row * 4 * units;
      const int64_t at = row * units;
      r.i_in = g + order.i * units;
      r.ci_in = g + order.ci * units;
      r.f_in = g + order.f * units;
      r.o_in = g + order.o * units;
      r.cs_prev = cs_prev + at;
      r.i = out.i + at;
      r.cs = out.cs + at;
      r.f = out.f + at;
      r.o = out.o + at;
      r.ci = out.ci + at;
      r.co = out.co + at;
      r.h = out.h + at;
      rows.lstm(r);
    }
  });
}

namespace {

// Units [begin, end) of one row.
void GradRow(const LstmInputs& in, GateOrder order, const LstmBackwardStep& step, int64_t row, int64_t begin,
             int64_t end) {
  const int64_t units = in.sizes.units, at = row * units + begin;
  float* const g = step.gates + row * 4 * units + begin;
  LstmGradRow r;
  r.n = end - begin;
  r.cs_prev = step.cs_prev + at;
  r.i = step.i + at;
  r.cs = step.cs + at;
  r.f = step.f + at;
  r.o = step.o + at;
  r.ci = step.ci + at;
  r.co = step.co + at;
  r.cs_grad = step.cs_grad + at;
  r.h_grad = step.h_grad + at;
  r.cs_carried = step.h_carried ? step.cs_carried + at : nullptr;
  r.h_carried = step.h_carried ? step.h_carried + at : nullptr;
  r.wci = in.wci ? in.wci + begin : nullptr;
  r.wcf = in.wci ? in.wcf + begin : nullptr;
  r.wco = in.wci ? in.wco + begin : nullptr;
  r.di = g + order.i * units;
  r.dci = g + order.ci * units;
  r.df = g + order.f * units;
  r.d_o = g + order.o * units;
  r.cs_prev_grad = step.cs_prev_grad + at;
  r.wci_grad = in.wci ? step.wci_grad + begin : nullptr;
  r.wcf_grad = in.wci ? step.wcf_grad + begin : nullptr;
  r.wco_grad = in.wci ? step.wco_grad + begin : nullptr;
  RnnRowFunctions().lstm_grad(r);
}

}  // namespace

void LstmGradStep(const KernelContext& ctx, const LstmInputs& in, GateOrder order, const LstmBackwardStep& step) {
  const int64_t units = in.sizes.units, batch = in.sizes.batch;
  if (!in.wci) {
    ctx.ParallelFor(batch, static_cast<double>(units) * 2, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) GradRow(in, order, step, row, 0, units);
    });
    return;
  }
  // All rows add to the gradients of the peephole weights: each thread takes units of its own.
  constexpr int64_t kBlock = 128;
  ctx.ParallelFor(
      (units + kBlock - 1) / kBlock, static_cast<double>(kBlock * batch) * 2, [&](int64_t begin, int64_t end) {
        for (int64_t block = begin; block < end; ++block) {
          const int64_t first = block * kBlock, last = std::min(first + kBlock, units);
          for (int64_t row = 0; row < batch; ++row) GradRow(in, order, step, row, first, last);
        }
      });
}

void RegisterLstmKernels(KernelRegistry& registry) {
  RegisterLstmCellKernels(registry);
  RegisterLstmSequenceKernels(registry);
}

}  // namespace millrace
