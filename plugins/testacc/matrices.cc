// SPDX-License-Identifier: Apache-2.0
// Products, biases, and what is done to the rows of a matrix.
#include <algorithm>
#include <cmath>

#include "kernel.h"

namespace testacc {
namespace {

template <typename T>
class MatMul {
 public:
  explicit MatMul(const Attrs& attrs) : a_turned_(attrs.Bool("transpose_a")), b_turned_(attrs.Bool("transpose_b")) {}
  void Run(Context& c) const {
    const Value a = c.Input(0), b = c.Input(1);
    Require(a.rank() == 2 && b.rank() == 2, "the inputs must be matrices");
    const int64_t rows = a.dims[a_turned_], inner = a.dims[!a_turned_], columns = b.dims[!b_turned_];
    if (inner != b.dims[b_turned_]) {
      Invalid("Matrix size-incompatible: In[0]: " + Text(a.dims) + ", In[1]: " + Text(b.dims));
    }
    const Value y = c.Output(0, {rows, columns});
    const int64_t a_row = a_turned_ ? 1 : inner, a_step = a_turned_ ? rows : 1;
    const int64_t b_column = b_turned_ ? inner : 1, b_step = b_turned_ ? 1 : columns;
    c.Queue([=] {
      for (int64_t i = 0; i < rows; ++i) {
        T* const out = y.as<T>() + i * columns;
        std::fill_n(out, columns, T(0));
        for (int64_t k = 0; k < inner; ++k) {
          const T x = a.as<T>()[i * a_row + k * a_step];
          const T* const from = b.as<T>() + k * b_step;
          for (int64_t j = 0; j < columns; ++j) out[j] += x * from[j * b_column];
        }
      }
    });
  }

 private:
  const bool a_turned_, b_turned_;
};

void RequireChannelsLast(const Attrs& attrs) {
  const std::string format = attrs.String("data_format");
  if (format != "NHWC") throw Failed{TF_UNIMPLEMENTED, "data_format '" + format + "': this device has NHWC only"};
}

class BiasAdd {
 public:
  explicit BiasAdd(const Attrs& attrs) { RequireChannelsLast(attrs); }
  void Run(Context& c) const {
    const Value x = c.Input(0), bias = c.Input(1);
    Require(x.rank() >= 2 && bias.rank() == 1 && bias.size == x.dims.back(), "the bias must have one value a channel");
    const Value y = c.Output(0, x.dims);
    c.Queue([=] {
      for (int64_t i = 0; i < x.size; ++i) y.as<float>()[i] = x.as<float>()[i] + bias.as<float>()[i % bias.size];
    });
  }
};

class BiasAddGrad {
 public:
  explicit BiasAddGrad(const Attrs& attrs) { RequireChannelsLast(attrs); }
  void Run(Context& c) const {
    const Value dy = c.Input(0);
    Require(dy.rank() >= 2, "the gradient must have a dimension of channels");
    const Value y = c.Output(0, {dy.dims.back()});
    c.Queue([=] {
      std::fill_n(y.as<float>(), y.size, 0.0f);
      for (int64_t i = 0; i < dy.size; ++i) y.as<float>()[i % y.size] += dy.as<float>()[i];
    });
  }
};

// log(sum(exp(x - max))) and the maximum of a row.
struct Normalizer {
  float max = -INFINITY, log_sum = 0;
  Normalizer(const float* x, int64_t n) {
    for (int64_t j = 0; j < n; ++j) max = std::max(max, x[j]);
    float sum = 0;
    for (int64_t j = 0; j < n; ++j) sum += std::exp(x[j] - max);
    log_sum = std::log(sum);
  }
};

template <bool kLog>
void Softmax(Context& c) {
  const Value x = c.Input(0);
  Require(x.rank() >= 1, "logits must have at least one dimension");
  const Value y = c.Output(0, x.dims);
  const int64_t n = x.dims.back();
  c.Queue([=] {
    for (int64_t row = 0; row < x.size; row += n) {
      const float* const from = x.as<float>() + row;
      const Normalizer of(from, n);
      for (int64_t j = 0; j < n; ++j) {
        const float log = from[j] - of.max - of.log_sum;
        y.as<float>()[row + j] = kLog ? log : std::exp(log);
      }
    }
  });
}

void SoftmaxCrossEntropy(Context& c) {
  const Value x = c.Input(0), labels = c.Input(1);
  Require(x.rank() == 2 && x.dims == labels.dims, "logits and labels must be matrices of one shape");
  const Value loss = c.Output(0, {x.dims[0]}), backprop = c.Output(1, x.dims);
  const int64_t n = x.dims[1];
  c.Queue([=] {
    for (int64_t i = 0; i < x.dims[0]; ++i) {
      const float* const from = x.as<float>() + i * n;
      const float* const label = labels.as<float>() + i * n;
      const Normalizer of(from, n);
      float sum = 0;
      for (int64_t j = 0; j < n; ++j) {
        const float log = from[j] - of.max - of.log_sum;
        sum -= label[j] * log;
        backprop.as<float>()[i * n + j] = std::exp(log) - label[j];
      }
      loss.as<float>()[i] = sum;
    }
  });
}

// What a label means is known when the device has it: a wrong one fails late.
template <typename L>
void SparseSoftmaxCrossEntropy(Context& c) {
  const Value x = c.Input(0), labels = c.Input(1);
  Require(x.rank() == 2 && labels.rank() == 1 && labels.size == x.dims[0], "logits must have a row for each label");
  const Value loss = c.Output(0, {x.dims[0]}), backprop = c.Output(1, x.dims);
  const int64_t n = x.dims[1];
  c.Queue([=] {
    for (int64_t i = 0; i < x.dims[0]; ++i) {
      const float* const from = x.as<float>() + i * n;
      const auto label = static_cast<int64_t>(labels.as<L>()[i]);
      if (label < 0 || label >= n) {
        Invalid("Received a label value of " + std::to_string(label) + " which is outside the valid range of [0, " +
                std::to_string(n) + ")");
      }
      const Normalizer of(from, n);
      for (int64_t j = 0; j < n; ++j) {
        backprop.as<float>()[i * n + j] = std::exp(from[j] - of.max - of.log_sum) - (j == label ? 1.0f : 0.0f);
      }
      loss.as<float>()[i] = of.log_sum + of.max - from[label];
    }
  });
}

}  // namespace

void RegisterMatrices(TF_Status* s) {
  AddClass<MatMul<float>>({"MatMul", {{"T", TF_FLOAT}}}, s);
  AddClass<MatMul<double>>({"MatMul", {{"T", TF_DOUBLE}}}, s);
  AddClass<BiasAdd>({"BiasAdd", {{"T", TF_FLOAT}}}, s);
  AddClass<BiasAddGrad>({"BiasAddGrad", {{"T", TF_FLOAT}}}, s);
  AddFn<Softmax<false>>({"Softmax", {{"T", TF_FLOAT}}}, s);
  AddFn<Softmax<true>>({"LogSoftmax", {{"T", TF_FLOAT}}}, s);
  AddFn<SoftmaxCrossEntropy>({"SoftmaxCrossEntropyWithLogits", {{"T", TF_FLOAT}}}, s);
  AddFn<SparseSoftmaxCrossEntropy<int32_t>>(
      {"SparseSoftmaxCrossEntropyWithLogits", {{"T", TF_FLOAT}, {"Tlabels", TF_INT32}}}, s);
  AddFn<SparseSoftmaxCrossEntropy<int64_t>>(
      {"SparseSoftmaxCrossEntropyWithLogits", {{"T", TF_FLOAT}, {"Tlabels", TF_INT64}}}, s);
}

}  // namespace testacc
