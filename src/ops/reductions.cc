// SPDX-License-Identifier: Apache-2.0
#include "ops/reductions.h"

#include <numeric>

namespace millrace {

Output AllAxes(const GraphBuilder& b, Output x) { return AxesFrom(b, 0, x); }

Output AxesFrom(const GraphBuilder& b, int first, Output x) {
  if (x && x.shape().has_rank()) {
    std::vector<int32_t> axes(static_cast<size_t>(std::max(x.shape().rank() - first, 0)));
    std::iota(axes.begin(), axes.end(), first);
    return b.Const(Tensor::Vector<int32_t>(axes));
  }
  const Output rank = b.Op("Rank", {x});
  const GraphBuilder range = b.Scope("range");
  const Output start = range.WithName("start").Scalar<int32_t>(first), delta = range.WithName("delta").Scalar(1);
  return range.WithName("/").Op("Range", {start, rank, delta});
}

}  // namespace millrace
