// SPDX-License-Identifier: Apache-2.0
// The arithmetic between the matrix products of recurrent cells, one row (one example of the batch) at a time, each in
// one pass. Compiled once per instruction set.
#pragma once

#include <cstdint>

namespace millrace {

// Gates come as products without their bias; results are activated. Peephole weights are null without peepholes. A clip
// that is not positive does not clip.
struct LstmRow {
  int64_t n = 0;
  const float *i_in, *ci_in, *f_in, *o_in;
  const float *i_bias, *ci_bias, *f_bias, *o_bias;
  const float* cs_prev;
  const float *wci, *wcf, *wco;
  float forget_bias, clip;
  float *i, *cs, *f, *o, *ci, *co, *h;
};

struct LstmGradRow {
  int64_t n = 0;
  const float *cs_prev, *i, *cs, *f, *o, *ci, *co;
  const float *cs_grad, *h_grad;        // from the outputs of this step
  const float *cs_carried, *h_carried;  // from the step after this one; null: none
  const float *wci, *wcf, *wco;
  float *di, *dci, *df, *d_o;             // of the gates before activation
  float* cs_prev_grad;                    // may be cs_carried
  float *wci_grad, *wcf_grad, *wco_grad;  // added to; null without peepholes
};

// r, u = sigmoid(in + bias); reset = h_prev * r.
struct GruGateRow {
  int64_t n = 0;
  const float *r_in, *u_in, *r_bias, *u_bias, *h_prev;
  float *r, *u, *reset;
};
// c = tanh(in + bias); h = u h_prev + (1 - u) c. `in` may be c.
struct GruStateRow {
  int64_t n = 0;
  const float *c_in, *c_bias, *u, *h_prev;
  float *c, *h;
};
// Gradients before activation of the candidate and of the update gate, and what reaches h_prev directly.
struct GruGradRow {
  int64_t n = 0;
  const float *h_prev, *u, *c, *dh;
  float *d_c_bar, *d_u_bar, *d_h_prev;
};
// From the gradient of `reset`: that of the reset gate before activation, and its share of h_prev's (added).
struct GruResetGradRow {
  int64_t n = 0;
  const float *d_reset, *h_prev, *r;
  float *d_r_bar, *d_h_prev;
};

struct RnnRows {
  void (*lstm)(const LstmRow& row);
  void (*lstm_grad)(const LstmGradRow& row);
  void (*gru_gates)(const GruGateRow& row);
  void (*gru_state)(const GruStateRow& row);
  void (*gru_grad)(const GruGradRow& row);
  void (*gru_reset_grad)(const GruResetGradRow& row);
};
const RnnRows& RnnRowFunctions();

}  // namespace millrace
