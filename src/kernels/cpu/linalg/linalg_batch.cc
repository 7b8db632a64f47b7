// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/linalg/linalg_batch.h"

namespace millrace {
namespace {

StatusOr<Shape> BatchOf(const Shape& s) { return Shape::Make(s.dims().first(static_cast<size_t>(s.rank() - 2))); }

// For each element of `to`, in order, the element of `from` that broadcasting puts there.
std::vector<int64_t> IndexOf(const Shape& from, const Shape& to) {
  std::vector<int64_t> index(1, 0);
  int64_t stride = 1;
  // From the innermost axis out: what is there already is repeated for each value of the next axis.
  for (int i = to.rank() - 1; i >= 0; --i) {
    const int j = i - (to.rank() - from.rank());
    const int64_t size = j >= 0 ? from.dim(j) : 1;
    const int64_t step = size == 1 ? 0 : stride;
    const size_t inner = index.size();
    index.resize(inner * static_cast<size_t>(to.dim(i)));
    for (size_t k = inner; k < index.size(); ++k) index[k] = index[k - inner] + step;
    stride *= size;
  }
  return index;
}

}  // namespace

Status BatchBroadcast::Init(const Shape& x, const Shape& y) {
  MR_ASSIGN_OR_RETURN(x_batch_, BatchOf(x));
  MR_ASSIGN_OR_RETURN(y_batch_, BatchOf(y));
  MR_ASSIGN_OR_RETURN(batch_, BroadcastShapes(x_batch_, y_batch_));
  x_count_ = x_batch_.num_elements();
  y_count_ = y_batch_.num_elements();
  return absl::OkStatus();
}

void BatchBroadcast::MakeIndices() {
  if (count() == 0) return;
  if (x_count_ != count()) x_index_ = IndexOf(x_batch_, batch_);
  if (y_count_ != count()) y_index_ = IndexOf(y_batch_, batch_);
}

StatusOr<Shape> BatchBroadcast::ResultShape(int64_t rows, int64_t columns) const {
  MR_ASSIGN_OR_RETURN(const Shape s, batch_.WithInserted(batch_.rank(), rows));
  return s.WithInserted(s.rank(), columns);
}

}  // namespace millrace
