// SPDX-License-Identifier: Apache-2.0
#include <cstddef>

#include "kernels/cpu/nn/nn_conv_epilogue.h"

#include "kernels/cpu/engine/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/nn/nn_conv_epilogue_simd.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace millrace {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Of one vector: `c` counts channels, `i` elements of the output.
template <class D>
HWY_INLINE void FinishVector(D d, const ConvEpilogue& e, size_t c, size_t i, const float* from, float* output) {
  auto v = hn::LoadU(d, from);
  if (e.bias != nullptr) v = hn::Add(v, hn::LoadU(d, e.bias + c));
  if (e.factor != nullptr) {
    v = hn::MulAdd(hn::Sub(v, hn::LoadU(d, e.mean + c)), hn::LoadU(d, e.factor + c), hn::LoadU(d, e.offset + c));
  }
  if (e.residual != nullptr) v = hn::Add(v, hn::LoadU(d, e.residual + i));
  if (e.activation != ConvActivation::kNone) v = hn::IfThenZeroElse(hn::Lt(v, hn::Zero(d)), v);  // NaN stays
  if (e.activation == ConvActivation::kRelu6) {
    const auto six = hn::Set(d, 6.0f);
    v = hn::IfThenElse(hn::Gt(v, six), six, v);
  }
  hn::StoreU(v, d, output + i);
}

void FinishConvT(const ConvEpilogue& given, const ConvBlock& b, float* output) {
  const ConvEpilogue e = given;  // so that a store into the output cannot change it
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  const size_t lanes = hn::Lanes(d), n = static_cast<size_t>(b.num_channels);
  const auto first = static_cast<size_t>(b.first_channel);
  for (int64_t p = 0; p < b.num_pixels; ++p) {
    const float* from = b.from + p * b.stride;
    const auto at = static_cast<size_t>((b.first_pixel + p) * e.channels) + first;
    size_t c = 0;
    for (; c + lanes <= n; c += lanes) FinishVector(d, e, first + c, at + c, from + c, output);
    for (; c < n; ++c) FinishVector(one, e, first + c, at + c, from + c, output);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace millrace
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace millrace {

HWY_EXPORT(FinishConvT);

void FinishConv(const ConvEpilogue& epilogue, const ConvBlock& block, float* output) {
  HWY_DYNAMIC_DISPATCH(FinishConvT)(epilogue, block, output);
}

}  // namespace millrace
#endif
