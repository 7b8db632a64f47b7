// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/rnn/rnn_tiles.h"

#include <limits>

#include "kernels/cpu/engine/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/rnn/rnn_tiles.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h
#include "kernels/cpu/elementwise/elementwise_math-inl.h"

// In every loop outputs are apart from inputs, or exactly the input of the same name.
HWY_BEFORE_NAMESPACE();
namespace millrace {
namespace HWY_NAMESPACE {
namespace {

template <bool kPeepholes>
void Lstm(const LstmRow& row) {
  const LstmRow r = row;
  const float clip = r.clip > 0 ? r.clip : std::numeric_limits<float>::infinity();
#pragma GCC ivdep
  for (int64_t k = 0; k < r.n; ++k) {
    const float before = r.cs_prev[k];
    float i_in = r.i_in[k] + r.i_bias[k], f_in = r.f_in[k] + r.f_bias[k] + r.forget_bias;
    float o_in = r.o_in[k] + r.o_bias[k];
    if constexpr (kPeepholes) {
      i_in += before * r.wci[k];
      f_in += before * r.wcf[k];
    }
    const float i = Sigmoid(i_in), f = Sigmoid(f_in), ci = Tanh(r.ci_in[k] + r.ci_bias[k]);
    float cs = ci * i + before * f;
    cs = cs > clip ? clip : cs;
    cs = cs < -clip ? -clip : cs;
    if constexpr (kPeepholes) o_in += cs * r.wco[k];
    const float o = Sigmoid(o_in), co = Tanh(cs);
    r.i[k] = i;
    r.cs[k] = cs;
    r.f[k] = f;
    r.o[k] = o;
    r.ci[k] = ci;
    r.co[k] = co;
    r.h[k] = co * o;
  }
}

template <bool kPeepholes, bool kCarried>
void LstmGrad(const LstmGradRow& row) {
  const LstmGradRow r = row;
#pragma GCC ivdep
  for (int64_t k = 0; k < r.n; ++k) {
    const float i = r.i[k], f = r.f[k], o = r.o[k], ci = r.ci[k], co = r.co[k], before = r.cs_prev[k];
    float dh = r.h_grad[k], dcs = r.cs_grad[k];
    if constexpr (kCarried) {
      dh += r.h_carried[k];
      dcs += r.cs_carried[k];
    }
    const float d_o = o * (1.0f - o) * dh * co;
    dcs += (1.0f - co * co) * dh * o;
    if constexpr (kPeepholes) dcs += d_o * r.wco[k];
    const float dci = (1.0f - ci * ci) * dcs * i;
    const float df = f * (1.0f - f) * dcs * before;
    const float di = i * (1.0f - i) * dcs * ci;
    float d_before = dcs * f;
    if constexpr (kPeepholes) {
      d_before += di * r.wci[k] + df * r.wcf[k];
      r.wci_grad[k] += di * before;
      r.wcf_grad[k] += df * before;
      r.wco_grad[k] += d_o * r.cs[k];
    }
    r.di[k] = di;
    r.dci[k] = dci;
    r.df[k] = df;
    r.d_o[k] = d_o;
    r.cs_prev_grad[k] = d_before;
  }
}

void LstmAny(const LstmRow& row) { row.wci ? Lstm<true>(row) : Lstm<false>(row); }
void LstmGradAny(const LstmGradRow& row) {
  if (row.wci) {
    row.h_carried ? LstmGrad<true, true>(row) : LstmGrad<true, false>(row);
  } else {
    row.h_carried ? LstmGrad<false, true>(row) : LstmGrad<false, false>(row);
  }
}

void GruGates(const GruGateRow& row) {
  const GruGateRow g = row;
#pragma GCC ivdep
  for (int64_t k = 0; k < g.n; ++k) {
    const float r = Sigmoid(g.r_in[k] + g.r_bias[k]);
    g.u[k] = Sigmoid(g.u_in[k] + g.u_bias[k]);
    g.r[k] = r;
    g.reset[k] = g.h_prev[k] * r;
  }
}

void GruState(const GruStateRow& row) {
  const GruStateRow g = row;
#pragma GCC ivdep
  for (int64_t k = 0; k < g.n; ++k) {
    const float c = Tanh(g.c_in[k] + g.c_bias[k]), u = g.u[k];
    g.c[k] = c;
    g.h[k] = u * g.h_prev[k] + (1.0f - u) * c;
  }
}

void GruGrad(const GruGradRow& row) {
  const GruGradRow g = row;
#pragma GCC ivdep
  for (int64_t k = 0; k < g.n; ++k) {
    const float u = g.u[k], c = g.c[k], dh = g.dh[k];
    g.d_c_bar[k] = dh * (1.0f - u) * (1.0f - c * c);
    g.d_u_bar[k] = dh * (g.h_prev[k] - c) * u * (1.0f - u);
    g.d_h_prev[k] = dh * u;
  }
}

void GruResetGrad(const GruResetGradRow& row) {
  const GruResetGradRow g = row;
#pragma GCC ivdep
  for (int64_t k = 0; k < g.n; ++k) {
    const float r = g.r[k], d = g.d_reset[k];
    g.d_r_bar[k] = d * g.h_prev[k] * r * (1.0f - r);
    g.d_h_prev[k] += d * r;
  }
}

const RnnRows* Rows() {
  static constexpr RnnRows kRows = {&LstmAny, &LstmGradAny, &GruGates, &GruState, &GruGrad, &GruResetGrad};
  return &kRows;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace millrace
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace millrace {

HWY_EXPORT(Rows);
const RnnRows& RnnRowFunctions() { return *HWY_DYNAMIC_DISPATCH(Rows)(); }

}  // namespace millrace
#endif
