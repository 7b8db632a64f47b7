// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/trees/tree_kernels.h"

#include <cmath>

#include "kernels/cpu/kernel_list.h"
#include "kernels/cpu/trees/gbdt_kernels.h"

namespace millrace {

std::string TreeInput::Name(int i) const { return size() == 1 ? name_ : absl::StrCat(name_, "[", i, "]"); }

Status TreeInput::CheckRank(int rank) const {
  for (int i = 0; i < size(); ++i) {
    if ((*this)[i].rank() == rank) continue;
    return InvalidArgument(Name(i), " must have rank ", rank, ", got shape ", (*this)[i].shape().ToString());
  }
  return absl::OkStatus();
}

Status TreeInput::CheckDim(int d, int64_t want) const {
  for (int i = 0; i < size(); ++i) {
    if ((*this)[i].dim(d) == want) continue;
    return InvalidArgument(
        Name(i), " must have size ", want, " in dimension ", d, ", got shape ", (*this)[i].shape().ToString());
  }
  return absl::OkStatus();
}

Status TreeInput::CheckNumbers() const {
  for (int i = 0; i < size(); ++i) {
    const float* v = (*this)[i].data<float>();
    for (int64_t k = 0; k < (*this)[i].num_elements(); ++k) {
      if (std::isnan(v[k])) return InvalidArgument(Name(i), " must hold numbers, got NaN at ", k);
    }
  }
  return absl::OkStatus();
}

StatusOr<float> TreeInput::Float() const {
  MR_RETURN_IF_ERROR(CheckRank(0));
  MR_RETURN_IF_ERROR(CheckNumbers());
  return *(*this)[0].data<float>();
}

StatusOr<int64_t> TreeInput::Int() const {
  MR_RETURN_IF_ERROR(CheckRank(0));
  return (*this)[0].IntScalar();
}

void RegisterTreeKernels(KernelRegistry& registry) {
  RegisterTreeEnsembleKernels(registry);
  RegisterTreeGrowthKernels(registry);
  RegisterTreePredictionKernels(registry);
  RegisterTreeStatsKernels(registry);
  RegisterTreeSplitKernels(registry);
  RegisterTreeQuantileKernels(registry);
  RegisterForestKernels(registry);
  RegisterGbdtStatsKernels(registry);
  RegisterGbdtQuantileKernels(registry);
  RegisterGbdtSplitKernels(registry);
  RegisterGbdtModelKernels(registry);
  RegisterGbdtGrowthKernels(registry);
}

}  // namespace millrace
