// SPDX-License-Identifier: Apache-2.0
// Softmax of rows and cross entropy of one row. `out` may be `x`.
#pragma once

#include <cstdint>

namespace millrace {

// T: float or double; n > 0.
template <typename T>
struct SoftmaxRows {
  // `rows` rows of n.
  void (*softmax)(const T* x, int64_t rows, int64_t n, T* out);
  void (*log_softmax)(const T* x, int64_t rows, int64_t n, T* out);
  // Loss of `labels`; *out = softmax - labels. `out` is neither input.
  T (*cross_entropy)(const T* x, const T* labels, int64_t n, T* out);
  // The same where `label` is the one class.
  T (*sparse_cross_entropy)(const T* x, int64_t label, int64_t n, T* out);
};

const SoftmaxRows<float>& FloatSoftmaxRows();
const SoftmaxRows<double>& DoubleSoftmaxRows();

}  // namespace millrace
