// SPDX-License-Identifier: Apache-2.0
// The features of a batch of examples, dense ones first, then sparse ones; and questions about one of them.
#pragma once

#include <vector>

#include "kernel/kernel.h"
#include "kernels/cpu/trees/forest_params.h"

namespace millrace {

class ForestInput {
 public:
  ForestInput() = default;
  // Dense features, which outlive this.
  ForestInput(const float* data, int64_t examples, int64_t features) : size_(examples), dense_(features), data_(data) {}
  // Inputs input_data, sparse_input_indices, sparse_input_values and sparse_input_shape.
  static StatusOr<ForestInput> Make(const KernelContext& ctx, const ForestInputSpec& spec);

  int64_t size() const { return size_; }
  // InvalidArgument where no example can have this feature.
  Status CheckFeature(int32_t feature) const;
  // 0 where the example does not have it.
  float At(int64_t example, int32_t feature) const {
    return feature < dense_ ? data_[example * dense_ + feature] : SparseAt(example, feature);
  }

  struct Feature {
    int32_t number = 0;
    float value = 0;
  };
  // The features that an example has: all dense ones, and what it has of the sparse ones.
  int64_t NumFeatures(int64_t example) const;
  Feature FeatureOf(int64_t example, int64_t i) const;

 private:
  struct Entry {
    int64_t example;
    Feature feature;
  };
  Status TakeDense(const Tensor& data, const ForestInputSpec& spec);
  Status TakeSparse(const KernelContext& ctx);
  Status ReadEntries(const int64_t* indices, const float* values, int64_t n, const int64_t* shape);
  float SparseAt(int64_t example, int32_t feature) const;

  int64_t size_ = -1;  // not known
  int64_t dense_ = 0;
  const float* data_ = nullptr;
  bool has_sparse_ = false;
  std::vector<Entry> entries_;  // in the order of examples, then features
};

}  // namespace millrace
