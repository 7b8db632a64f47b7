// SPDX-License-Identifier: Apache-2.0
// What the LSTM kernels for one step and for a sequence share.
#pragma once

#include "kernels/cpu/rnn/rnn.h"
#include "kernels/cpu/rnn/rnn_tiles.h"

namespace millrace {

struct LstmSizes {
  int64_t steps = 1, batch = 0, inputs = 0, units = 0;
  int64_t step_elements() const { return batch * units; }
};

// Which quarter of the columns of w and b serves which gate.
struct GateOrder {
  int i, ci, f, o;
};
inline constexpr GateOrder kOrderIcfo = {0, 1, 2, 3};
inline constexpr GateOrder kOrderIfco = {0, 2, 1, 3};

// Inputs x, cs_prev, h_prev, w, wci, wcf, wco, b as floats; in an op they stand from input `first` on.
struct LstmInputs {
  LstmSizes sizes;
  const float *x = nullptr, *cs_prev = nullptr, *h_prev = nullptr, *w = nullptr;
  const float *wci = nullptr, *wcf = nullptr, *wco = nullptr, *b = nullptr;
  const Tensor* w_value = nullptr;  // the input that w is; null when it was widened
  Tensor keep[8];

  // Checks all shapes. x has rank 3 (steps first) or 2; peephole weights stay null unless they are used.
  Status Read(KernelContext& ctx, int first, int x_rank, bool use_peephole);
};

// Attributes; those that an op lacks stay as they are.
struct LstmAttrs {
  float forget_bias = 0, cell_clip = 0;
  bool use_peephole = false;
  Status Read(const KernelInit& init);
};

// The float matrices that one step writes, [batch, units] each.
struct LstmStepOutputs {
  float *i, *cs, *f, *o, *ci, *co, *h;
};
// `gates` [batch, 4 units] are the products without bias.
void LstmForwardStep(const KernelContext& ctx, const LstmInputs& in, const LstmAttrs& attrs, GateOrder order,
                     const float* gates, const float* cs_prev, const LstmStepOutputs& out);

struct LstmBackwardStep {
  const float *cs_prev, *i, *cs, *f, *o, *ci, *co, *cs_grad, *h_grad;
  const float *cs_carried = nullptr, *h_carried = nullptr;
  float* gates;                                                         // gradients before activation, [batch, 4 units]
  float* cs_prev_grad;                                                  // may be cs_carried
  float *wci_grad = nullptr, *wcf_grad = nullptr, *wco_grad = nullptr;  // [units], added to
};
void LstmGradStep(const KernelContext& ctx, const LstmInputs& in, GateOrder order, const LstmBackwardStep& step);

void RegisterLstmCellKernels(KernelRegistry& registry);
void RegisterLstmSequenceKernels(KernelRegistry& registry);

}  // namespace millrace
