// SPDX-License-Identifier: Apache-2.0
#include "tensor/periodic.h"

namespace millrace {

StatusOr<PeriodicSizes> PeriodicSizesOf(const Shape& values, const PartialShape& wanted) {
  if (values.rank() != wanted.rank()) {
    return InvalidArgument("periodic_resample expects the rank of the input tensor, ", values.rank(),
                           ", to be the same as the length of the desired shape, ", wanted.rank(), ".");
  }
  if (values.num_elements() == 0) {
    return InvalidArgument("periodic_resample expects an input with elements, got shape ", values.ToString(), ".");
  }
  PeriodicSizes sizes;
  std::vector<int64_t> dims = wanted.dims();
  int open = 0;
  for (int i = 0; i < values.rank(); ++i) {
    int64_t& size = dims[static_cast<size_t>(i)];
    if (size < 1) {
      if (++open > 1) return InvalidArgument("periodic_resample expects only one index to be marked as adjustable.");
      sizes.free = i;
      size = 1;
    } else if (size < values.dim(i)) {
      return InvalidArgument(
          "periodic_resample expects the size of non-adjustable dimensions be at least as large as size of input "
          "tensor. Dimension ",
          i, " input tensor has size ", values.dim(i), ", desired shape has size ", size, ".");
    }
  }
  if (open == 0) return InvalidArgument("periodic_resample expects at least one index to be marked as adjustable.");
  MR_ASSIGN_OR_RETURN(const Shape others, Shape::Make(dims));
  const int64_t rest = values.num_elements() / others.num_elements();
  if (rest == 0) {
    return InvalidArgument(
        "periodic_resample found that the adjustable dimension, ", sizes.free, ", isn't greater than zero, 0.");
  }
  MR_ASSIGN_OR_RETURN(sizes.shape, others.WithDim(sizes.free, rest));
  return sizes;
}

std::vector<std::vector<int64_t>> PeriodicSizes::PlacesIn(const Shape& values) const {
  std::vector<std::vector<int64_t>> places(static_cast<size_t>(shape.rank()));
  std::vector<int64_t> strides(places.size(), 1);
  for (size_t i = strides.size(); i-- > 1;) strides[i - 1] = strides[i] * values.dim(static_cast<int>(i));
  const int64_t along = strides[static_cast<size_t>(free)];
  int64_t digit = shape.dim(free);
  for (int i = 0; i < shape.rank(); ++i) {
    const size_t k = static_cast<size_t>(i);
    const int64_t times = i == free ? 1 : (shape.dim(i) + values.dim(i) - 1) / values.dim(i);
    for (int64_t s = 0; s < shape.dim(i); ++s) {
      places[k].push_back(s / times * strides[k] + s % times * digit * along);
    }
    digit *= times;
  }
  return places;
}

}  // namespace millrace
