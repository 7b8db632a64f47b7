// SPDX-License-Identifier: Apache-2.0
// Softmax and cross entropy of rows. `out` may be `x`.
#pragma once

#include <cstdint>

namespace millrace {

// Short rows are computed this many together, and those that are left one by one, by other sums. So that results do not
// depend on who computes which rows, these are cut at multiples only.
constexpr int64_t kRowsTogether = 16;
constexpr int64_t kLongestTogether = 64;  // numbers of a row; longer ones are taken one by one

// T: float or double; n > 0.
template <typename T>
struct SoftmaxRows {
  // `rows` rows of n.
  void (*softmax)(const T* x, int64_t rows, int64_t n, T* out);
  void (*log_softmax)(const T* x, int64_t rows, int64_t n, T* out);
  // loss: of `labels`, a number a row; *out = softmax - labels.
  void (*cross_entropy)(const T* x, const T* labels, int64_t rows, int64_t n, T* loss, T* out);
  // The same where a row's label is its one class.
  void (*sparse_cross_entropy)(const T* x, const int64_t* labels, int64_t rows, int64_t n, T* loss, T* out);
};

const SoftmaxRows<float>& FloatSoftmaxRows();
const SoftmaxRows<double>& DoubleSoftmaxRows();

}  // namespace millrace
