// SPDX-License-Identifier: Apache-2.0
// Pooling of images whose channels come first, a plane (one channel of one image) at a time, where it lies.
#pragma once

#include <cstdint>

namespace millrace {

// The windows of a plane along one axis.
struct PlaneAxis {
  int64_t in = 0, out = 0, kernel = 0, stride = 0, pad = 0;
  int64_t begin(int64_t o) const { return o * stride > pad ? o * stride - pad : 0; }
  int64_t end(int64_t o) const { return o * stride - pad + kernel < in ? o * stride - pad + kernel : in; }
};

// `line` has room for as many values as a row of the plane. Largest values (NaN is larger than any number), or means.
template <typename T>
void MaxOfPlane(const PlaneAxis& rows, const PlaneAxis& columns, const T* in, T* line, T* out);
template <typename T>
void MeanOfPlane(const PlaneAxis& rows, const PlaneAxis& columns, const T* in, T* line, T* out);

}  // namespace millrace
