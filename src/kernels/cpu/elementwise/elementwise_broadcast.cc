// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/elementwise/elementwise_broadcast.h"

#include <algorithm>

namespace millrace {

BroadcastPlan::BroadcastPlan(std::initializer_list<const Shape*> operands, const Shape& out) {
  const int count = static_cast<int>(std::min<size_t>(operands.size(), kMaxOperands));
  const Shape* const* shapes = operands.begin();
  int64_t step[kMaxOperands] = {1, 1, 1};  // elements of the operand inside the dimensions seen
  unsigned last_moving = 0;
  for (int d = out.rank() - 1; d >= 0; --d) {
    const int64_t size = out.dim(d);
    if (size == 1) continue;
    unsigned moving = 0;
    for (int i = 0; i < count; ++i) {
      const int own = d - (out.rank() - shapes[i]->rank());
      if (own >= 0 && shapes[i]->dim(own) == size) moving |= 1u << i;
    }
    if (!dims_.empty() && moving == last_moving) {
      dims_.back().size *= size;
    } else {
      Dim dim{size, {0, 0, 0}};
      for (int i = 0; i < count; ++i) dim.stride[i] = ((moving >> i) & 1) ? step[i] : 0;
      dims_.push_back(dim);
      last_moving = moving;
    }
    for (int i = 0; i < count; ++i) {
      if ((moving >> i) & 1) step[i] *= size;
    }
  }
  for (size_t d = 1; d < dims_.size(); ++d) rows_ *= dims_[d].size;
}

BroadcastPlan::Cursor::Cursor(const BroadcastPlan& plan, int64_t position, size_t first) : plan_(plan), first_(first) {
  for (size_t d = first; d < plan.dims_.size(); ++d) {
    const Dim& dim = plan.dims_[d];
    const int64_t at = dim.size > 0 ? position % dim.size : 0;
    position = dim.size > 0 ? position / dim.size : 0;
    index_.push_back(at);
    for (int i = 0; i < kMaxOperands; ++i) offset_[i] += at * dim.stride[i];
  }
}

void BroadcastPlan::Cursor::Next() {
  for (size_t d = 0; d < index_.size(); ++d) {
    const Dim& dim = plan_.dims_[first_ + d];
    for (int i = 0; i < kMaxOperands; ++i) offset_[i] += dim.stride[i];
    if (++index_[d] < dim.size) return;
    for (int i = 0; i < kMaxOperands; ++i) offset_[i] -= dim.stride[i] * dim.size;
    index_[d] = 0;
  }
}

}  // namespace millrace
