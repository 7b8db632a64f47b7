// SPDX-License-Identifier: Apache-2.0
#include <cstddef>

#include "kernels/cpu/engine/epilogue.h"

#include "kernels/cpu/engine/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/engine/epilogue_simd.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace millrace {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// `Vectors` vectors of channels, `first` the first channel, at all pixels of the block: what belongs to channels stays
// in registers, and each question is asked once a pixel.
template <int Vectors, class D>
HWY_INLINE void FinishChannels(D d, const Epilogue& e, const EpilogueBlock& b, size_t first, float* output) {
  using V = hn::Vec<D>;
  const size_t lanes = hn::Lanes(d), channel = static_cast<size_t>(b.first_channel) + first;
  const auto load = [&](const float* values, V* to) HWY_ATTR {
    for (size_t i = 0; i < Vectors; ++i)
      to[i] = values != nullptr ? hn::LoadU(d, values + channel + i * lanes) : hn::Zero(d);
  };
  V bias[Vectors], mean[Vectors], factor[Vectors], offset[Vectors], row[Vectors];
  load(e.bias, bias);
  load(e.mean, mean);
  load(e.factor, factor);
  load(e.offset, offset);
  load(e.row, row);
  const bool has_bias = e.bias != nullptr, has_norm = e.factor != nullptr, has_row = e.row != nullptr;
  const bool has_activation = e.activation != Activation::kNone, is_bounded = e.activation == Activation::kRelu6;
  const auto six = hn::Set(d, 6.0f);
  for (int64_t p = 0; p < b.num_pixels; ++p) {
    const float* const from = b.from + p * b.stride + first;
    const size_t at = static_cast<size_t>((b.first_pixel + p) * e.channels) + channel;
    V v[Vectors];
#pragma GCC unroll 4
    for (size_t i = 0; i < Vectors; ++i) v[i] = hn::LoadU(d, from + i * lanes);
    if (has_bias) {
#pragma GCC unroll 4
      for (size_t i = 0; i < Vectors; ++i) v[i] = hn::Add(v[i], bias[i]);
    }
    if (has_norm) {
#pragma GCC unroll 4
      for (size_t i = 0; i < Vectors; ++i) v[i] = hn::MulAdd(hn::Sub(v[i], mean[i]), factor[i], offset[i]);
    }
    if (has_row) {
#pragma GCC unroll 4
      for (size_t i = 0; i < Vectors; ++i) v[i] = hn::Add(v[i], row[i]);
    }
    if (e.residual != nullptr) {
#pragma GCC unroll 4
      for (size_t i = 0; i < Vectors; ++i) v[i] = hn::Add(v[i], hn::LoadU(d, e.residual + at + i * lanes));
    }
    if (has_activation) {
#pragma GCC unroll 4
      for (size_t i = 0; i < Vectors; ++i) v[i] = hn::IfThenZeroElse(hn::Lt(v[i], hn::Zero(d)), v[i]);  // NaN stays
    }
    if (is_bounded) {
#pragma GCC unroll 4
      for (size_t i = 0; i < Vectors; ++i) v[i] = hn::IfThenElse(hn::Gt(v[i], six), six, v[i]);
    }
#pragma GCC unroll 4
    for (size_t i = 0; i < Vectors; ++i) hn::StoreU(v[i], d, output + at + i * lanes);
  }
}

void Apply(const Epilogue& given, const EpilogueBlock& b, float* output) {
  const Epilogue e = given;  // so that a store into the output cannot change it
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  const size_t lanes = hn::Lanes(d), n = static_cast<size_t>(b.num_channels);
  size_t c = 0;
  for (; c + 4 * lanes <= n; c += 4 * lanes) FinishChannels<4>(d, e, b, c, output);
  for (; c + lanes <= n; c += lanes) FinishChannels<1>(d, e, b, c, output);
  for (; c < n; ++c) FinishChannels<1>(one, e, b, c, output);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace millrace
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace millrace {

HWY_EXPORT(Apply);

void ApplyEpilogue(const Epilogue& epilogue, const EpilogueBlock& block, float* output) {
  HWY_DYNAMIC_DISPATCH(Apply)(epilogue, block, output);
}

}  // namespace millrace
#endif
