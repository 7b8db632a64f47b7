// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/engine/math_reduce_plan.h"

#include "base/checked.h"

namespace millrace {
namespace {

StatusOr<std::vector<bool>> ReducedAxes(const Shape& in, const Tensor& axes) {
  MR_ASSIGN_OR_RETURN(const std::vector<int64_t> values, axes.IntValues());
  std::vector<bool> reduced(static_cast<size_t>(in.rank()));
  for (const int64_t axis : values) {
    int64_t i = 0;
    if (!NormalizeIndex(axis, in.rank(), &i)) {
      return InvalidArgument("Invalid reduction dimension (", axis, " for input with ", in.rank(), " dimension(s)");
    }
    if (reduced[static_cast<size_t>(i)]) {
      return InvalidArgument("Invalid reduction arguments: Axes contains duplicate dimension: ", i);
    }
    reduced[static_cast<size_t>(i)] = true;
  }
  return reduced;
}

struct Axis {
  int64_t size;
  bool reduced;
};

}  // namespace

void LoopNest::Push(int64_t size, int64_t stride) {
  sizes.push_back(size);
  strides.push_back(stride);
  count *= size;
}

int64_t LoopNest::Offset(int64_t index) const {
  int64_t offset = 0;
  for (size_t i = sizes.size(); i-- > 0;) {
    const int64_t rest = index / sizes[i];
    offset += (index - rest * sizes[i]) * strides[i];
    index = rest;
  }
  return offset;
}

Status PlanReduction(const Shape& in, const Tensor& axes, bool keep_dims, ReducePlan* out) {
  MR_ASSIGN_OR_RETURN(const std::vector<bool> reduced, ReducedAxes(in, axes));
  ReducePlan& plan = *out;
  absl::InlinedVector<int64_t, 8> result;
  absl::InlinedVector<Axis, 8> merged;
  for (int i = 0; i < in.rank(); ++i) {
    const bool r = reduced[static_cast<size_t>(i)];
    const int64_t size = in.dim(i);
    if (!r || keep_dims) result.push_back(r ? 1 : size);
    if (r) plan.reduced_elements *= size;
    if (size == 1) continue;
    if (!merged.empty() && merged.back().reduced == r) {
      merged.back().size *= size;
    } else {
      merged.push_back({size, r});
    }
  }
  MR_ASSIGN_OR_RETURN(plan.result, Shape::Make(absl::MakeConstSpan(result)));
  if (merged.empty()) return absl::OkStatus();
  plan.inner = merged.back().size;
  plan.inner_reduced = merged.back().reduced;
  std::vector<int64_t> strides(merged.size(), 1);
  for (size_t i = merged.size() - 1; i-- > 0;) strides[i] = strides[i + 1] * merged[i + 1].size;
  for (size_t i = 0; i + 1 < merged.size(); ++i) {
    (merged[i].reduced ? plan.reduced : plan.kept).Push(merged[i].size, strides[i]);
  }
  return absl::OkStatus();
}

}  // namespace millrace
