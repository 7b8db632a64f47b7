// SPDX-License-Identifier: Apache-2.0
// A batch of examples as dual coordinate ascent walks over it: the inputs of SdcaOptimizer, checked once, with the
// places of features in the weights looked up.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernel/kernel.h"
#include "kernels/cpu/training/sdca_losses.h"

namespace millrace {

// l1 and l2 of the whole objective.
struct SdcaPenalty {
  double shrinkage = 0;  // l1 / l2
  double l2 = 1;
};
StatusOr<SdcaPenalty> ReadSdcaPenalty(const KernelInit& init);

// The weight that minimises the objective with l1, by the one without.
template <typename T>
T ShrinkWeight(T weight, T by) {
  return std::copysign(std::max(std::abs(weight) - by, T{0}), weight);
}

class SdcaBatch {
 public:
  // Reads inputs and allocates the outputs of the weights' changes, as zeros. The context must outlive the batch.
  static StatusOr<SdcaBatch> Make(KernelContext& ctx, const SdcaLoss& loss);

  int64_t size() const { return static_cast<int64_t>(labels_.size()); }
  float label(int64_t example) const { return labels_[static_cast<size_t>(example)]; }
  float weight(int64_t example) const { return weights_[example]; }
  // |x|^2.
  double squared_norm(int64_t example) const { return squared_norms_[static_cast<size_t>(example)]; }
  // In all groups.
  int64_t num_features(int64_t example) const;

  struct Predictions {
    double before = 0;  // by the weights that came in
    double now = 0;     // by those with `parts` times their changes
  };
  Predictions Predict(int64_t example, const SdcaPenalty& penalty, int64_t parts) const;
  // changes += by * x
  void AddToWeights(int64_t example, double by);

 private:
  struct SparseGroup {
    std::vector<int64_t> begin;     // where each example's features begin; one more at the end
    std::vector<int64_t> places;    // of features, in the weights
    const float* values = nullptr;  // null: ones
    const float* weights = nullptr;
    float* changes = nullptr;

    double value(int64_t k) const { return values ? values[k] : 1; }
  };
  struct DenseGroup {
    const float* values = nullptr;
    int64_t width = 0;
    const float* weights = nullptr;
    float* changes = nullptr;
  };

  Status AddSparse(KernelContext& ctx, int group);
  Status AddDense(KernelContext& ctx, int group);

  std::vector<float> labels_;
  const float* weights_ = nullptr;
  std::vector<double> squared_norms_;
  std::vector<SparseGroup> sparse_;
  std::vector<DenseGroup> dense_;
};

}  // namespace millrace
