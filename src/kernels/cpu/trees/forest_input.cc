// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/trees/forest_input.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "base/checked.h"
#include "base/stop_scope.h"

namespace millrace {

StatusOr<ForestInput> ForestInput::Make(const KernelContext& ctx, const ForestInputSpec& spec) {
  ForestInput input;
  MR_RETURN_IF_ERROR(input.TakeDense(ctx.input(ctx.input_arg("input_data").begin), spec));
  MR_RETURN_IF_ERROR(input.TakeSparse(ctx));
  if (input.size_ < 0) return InvalidArgument("there are neither dense nor sparse features");
  return input;
}

Status ForestInput::TakeDense(const Tensor& data, const ForestInputSpec& spec) {
  if (data.num_elements() == 0 && data.rank() != 2) return absl::OkStatus();
  if (data.rank() != 2 || data.dim(1) != spec.dense_features) {
    return InvalidArgument("input_data must be a matrix with ", spec.dense_features,
                           " columns, as input_spec says, got shape ", data.shape().ToString());
  }
  if (data.dim(1) > std::numeric_limits<int32_t>::max()) return InvalidArgument("input_data has too many columns");
  size_ = data.dim(0);
  dense_ = data.dim(1);
  data_ = data.data<float>();
  return absl::OkStatus();
}

Status ForestInput::TakeSparse(const KernelContext& ctx) {
  const int first = ctx.input_arg("sparse_input_indices").begin;
  const Tensor& indices = ctx.input(first);
  const Tensor& values = ctx.input(first + 1);
  const Tensor& shape = ctx.input(first + 2);
  if (shape.num_elements() == 0 && indices.num_elements() == 0 && values.num_elements() == 0) return absl::OkStatus();
  if (shape.rank() != 1 || shape.dim(0) != 2) {
    return InvalidArgument("sparse_input_shape must have two elements, got shape ", shape.shape().ToString());
  }
  if (values.rank() != 1) {
    return InvalidArgument("sparse_input_values must be a vector, got shape ", values.shape().ToString());
  }
  if (indices.rank() != 2 || indices.dim(1) != 2 || indices.dim(0) != values.dim(0)) {
    return InvalidArgument(
        "sparse_input_indices must have shape [", values.dim(0), ", 2], got ", indices.shape().ToString());
  }
  return ReadEntries(indices.data<int64_t>(), values.data<float>(), values.dim(0), shape.data<int64_t>());
}

Status ForestInput::ReadEntries(const int64_t* indices, const float* values, int64_t n, const int64_t* shape) {
  const int64_t rows = shape[0], columns = shape[1];
  if (rows < 0 || columns < 0 || columns > std::numeric_limits<int32_t>::max() - dense_) {
    return InvalidArgument("sparse_input_shape is [", rows, ", ", columns, "], which is not of a matrix of features");
  }
  if (size_ >= 0 && size_ != rows) {
    return InvalidArgument("input_data has ", size_, " examples, but sparse_input_shape says ", rows);
  }
  has_sparse_ = true;
  size_ = rows;
  entries_.reserve(static_cast<size_t>(n));
  StopNowAndThen pause;
  for (int64_t i = 0; i < n; ++i) {
    pause();
    const int64_t row = indices[2 * i], column = indices[2 * i + 1];
    if (!InRange(row, rows) || !InRange(column, columns)) {
      return InvalidArgument(
          "sparse_input_indices[", i, "] is [", row, ", ", column, "], outside of [", rows, ", ", columns, "]");
    }
    entries_.push_back({row, {static_cast<int32_t>(dense_ + column), values[i]}});
  }
  std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.example, a.feature.number) < std::tie(b.example, b.feature.number);
  });
  return absl::OkStatus();
}

Status ForestInput::CheckFeature(int32_t feature) const {
  if (feature < dense_ || (has_sparse_ && feature >= 0)) return absl::OkStatus();
  return InvalidArgument("the tree asks for feature ", feature, ", but there are ", dense_);
}

namespace {

struct ByExample {
  template <typename Entry>
  bool operator()(const Entry& a, int64_t example) const {
    return a.example < example;
  }
  template <typename Entry>
  bool operator()(int64_t example, const Entry& a) const {
    return example < a.example;
  }
};

}  // namespace

float ForestInput::SparseAt(int64_t example, int32_t feature) const {
  const auto at = std::lower_bound(
      entries_.begin(), entries_.end(), std::tie(example, feature),
      [](const Entry& e, const std::tuple<const int64_t&, const int32_t&>& want) {
        return std::tie(e.example, e.feature.number) < want;
      });
  const bool found = at != entries_.end() && at->example == example && at->feature.number == feature;
  return found ? at->feature.value : 0;
}

int64_t ForestInput::NumFeatures(int64_t example) const {
  const auto range = std::equal_range(entries_.begin(), entries_.end(), example, ByExample());
  return dense_ + (range.second - range.first);
}

ForestInput::Feature ForestInput::FeatureOf(int64_t example, int64_t i) const {
  if (i < dense_) return {static_cast<int32_t>(i), data_[example * dense_ + i]};
  return (std::lower_bound(entries_.begin(), entries_.end(), example, ByExample()) + (i - dense_))->feature;
}

}  // namespace millrace
