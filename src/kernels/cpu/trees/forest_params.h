// SPDX-License-Identifier: Apache-2.0
// How a random forest grows, and what its input looks like: the attributes `params` and `input_spec` of its ops.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "kernel/kernel.h"
#include "wire/forest.h"

namespace millrace {

enum class ForestLeafKind : uint8_t { kDense, kSparse, kMeans };
enum class ForestStatsKind : uint8_t { kDense, kSparse, kMeans, kFixedSize };
enum class ForestFinishKind : uint8_t { kBasic, kHoeffding, kBootstrap };
enum class ForestPruningKind : uint8_t { kNone, kHalf, kQuarter, kTenth, kHoeffding };

// The message, checked: what it says fits together.
struct ForestParams {
  ForestLeafKind leaves = ForestLeafKind::kDense;
  ForestStatsKind stats = ForestStatsKind::kDense;
  ForestFinishKind finish = ForestFinishKind::kBasic;
  ForestPruningKind pruning = ForestPruningKind::kNone;
  int64_t outputs = 1;  // classes, or targets
  wire::ForestSettings settings;

  bool is_regression() const { return stats == ForestStatsKind::kMeans; }
  bool has_dense_leaves() const { return leaves != ForestLeafKind::kSparse; }
};

StatusOr<ForestParams> ParseForestParams(absl::string_view bytes);
// The attribute `params`.
StatusOr<ForestParams> ForestParamsOf(const KernelInit& init);
// InvalidArgument unless trees and statistics of one suit the other.
Status CheckSameForest(const ForestParams& made, const ForestParams& asked);

// ResourceExhausted where so many rows, of a number for each output, are more than the message of a forest may hold.
Status CheckForestNumbers(int64_t rows, const ForestParams& params);

// At a depth of the tree.
float AtDepth(const wire::Box<wire::ForestByDepth>& param, int32_t depth);

// The columns of the input.
struct ForestInputSpec {
  struct Column {
    bool is_categorical = false;
    int64_t size = 0;
  };
  int64_t dense_features = 0;
  std::vector<Column> dense;
  std::vector<Column> sparse;

  // Of one of the dense features, or of one behind them.
  bool IsCategorical(int64_t feature) const;
};

StatusOr<ForestInputSpec> ParseForestInputSpec(absl::string_view text);

}  // namespace millrace
