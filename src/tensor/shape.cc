// SPDX-License-Identifier: Apache-2.0
#include "tensor/shape.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_join.h"
#include "base/checked.h"

namespace millrace {
namespace {

using Dims = absl::InlinedVector<int64_t, 8>;

std::string ListOf(absl::Span<const int64_t> dims) {
  constexpr size_t kShown = 32;
  if (dims.size() <= kShown) return absl::StrCat("[", absl::StrJoin(dims, ","), "]");
  return absl::StrCat("[", absl::StrJoin(dims.first(kShown), ","), ",...]");
}

Status RankTooHigh(size_t rank) {
  return InvalidArgument("a shape of ", rank, " dimensions; at most ", kMaxRank, " are supported");
}

constexpr int64_t kUnknown = -1;

// Checks what Shape promises of `dims` and gives their product. With `partial`, unknown ones are legal and do not
// count.
Status CheckDims(absl::Span<const int64_t> dims, bool partial, int64_t* product) {
  if (dims.size() > kMaxRank) return RankTooHigh(dims.size());
  int64_t nonzero_product = 1;
  bool has_zero = false;
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t dim = dims[i];
    if (partial && dim == kUnknown) continue;
    if (dim < 0) return InvalidArgument("dimension ", i, " of ", ListOf(dims), " is negative");
    if (dim == 0) {
      has_zero = true;
    } else if (!CheckedMul(nonzero_product, dim, &nonzero_product)) {
      return InvalidArgument("shape ", ListOf(dims), " has more than 2^63 - 1 elements");
    }
  }
  *product = has_zero ? 0 : nonzero_product;
  return absl::OkStatus();
}

}  // namespace

StatusOr<Shape> Shape::Make(absl::Span<const int64_t> dims) {
  int64_t product = 1;
  MR_RETURN_IF_ERROR(CheckDims(dims, false, &product));
  Shape shape;
  shape.rank_ = static_cast<int32_t>(dims.size());
  shape.num_elements_ = product;
  int64_t* out = shape.inline_;
  if (shape.rank_ > kInline) {
    shape.heap_ = std::make_unique<int64_t[]>(dims.size());
    out = shape.heap_.get();
  }
  std::copy(dims.begin(), dims.end(), out);
  return shape;
}

StatusOr<Shape> Shape::Make(absl::Span<const int32_t> dims) {
  if (dims.size() > kMaxRank) return RankTooHigh(dims.size());
  return Make(Dims(dims.begin(), dims.end()));
}

Shape Shape::Vector(int64_t n) {
  Shape shape;
  shape.rank_ = 1;
  shape.inline_[0] = shape.num_elements_ = std::max<int64_t>(n, 0);
  return shape;
}

StatusOr<Shape> Shape::WithDim(int i, int64_t size) const {
  if (!InRange(i, rank_)) return InvalidArgument("no dimension ", i, " in ", ToString());
  Dims changed(dims().begin(), dims().end());
  changed[static_cast<size_t>(i)] = size;
  return Make(changed);
}

StatusOr<Shape> Shape::WithInserted(int i, int64_t size) const {
  if (!InRange(i, rank_ + 1)) return InvalidArgument("cannot insert a dimension at ", i, " into ", ToString());
  Dims changed(dims().begin(), dims().end());
  changed.insert(changed.begin() + i, size);
  return Make(changed);
}

StatusOr<Shape> Shape::Concatenate(const Shape& o) const {
  Dims all(dims().begin(), dims().end());
  all.insert(all.end(), o.dims().begin(), o.dims().end());
  return Make(all);
}

Shape Shape::WithoutDim(int i) const {
  if (!InRange(i, rank_)) return *this;
  Dims changed(dims().begin(), dims().end());
  changed.erase(changed.begin() + i);
  // Fewer dimensions of a valid shape are valid.
  return Make(changed).value_or(Shape());
}

std::string Shape::ToString() const { return absl::StrCat("[", absl::StrJoin(dims(), ","), "]"); }

PartialShape::PartialShape(const Shape& s) : has_rank_(true), dims_(s.dims().begin(), s.dims().end()) {}

PartialShape PartialShape::UnknownOfRank(int rank) {
  if (rank < 0 || rank > kMaxRank) return Unknown();
  return Of(std::vector<int64_t>(static_cast<size_t>(rank), kUnknown));
}

StatusOr<PartialShape> PartialShape::Make(absl::Span<const int64_t> dims) {
  int64_t product;
  MR_RETURN_IF_ERROR(CheckDims(dims, true, &product));
  return Of(std::vector<int64_t>(dims.begin(), dims.end()));
}

PartialShape PartialShape::Of(std::vector<int64_t> dims) {
  PartialShape shape;
  shape.has_rank_ = true;
  shape.dims_ = std::move(dims);
  return shape;
}

bool PartialShape::IsFullyDefined() const {
  return has_rank_ && std::all_of(dims_.begin(), dims_.end(), [](int64_t dim) { return dim >= 0; });
}

int64_t PartialShape::num_elements() const {
  int64_t product;
  return IsFullyDefined() && CheckDims(dims_, false, &product).ok() ? product : -1;
}

StatusOr<Shape> PartialShape::ToShape() const {
  if (!IsFullyDefined()) return InvalidArgument("shape ", ToString(), " is not fully defined");
  return Shape::Make(dims_);
}

bool PartialShape::IsCompatibleWith(const PartialShape& o) const {
  if (!has_rank_ || !o.has_rank_) return true;
  return std::equal(dims_.begin(), dims_.end(), o.dims_.begin(), o.dims_.end(), [](int64_t a, int64_t b) {
    return a < 0 || b < 0 || a == b;
  });
}

StatusOr<PartialShape> PartialShape::Merge(const PartialShape& o) const {
  if (!has_rank_) return o;
  if (!o.has_rank_) return *this;
  if (rank() != o.rank()) {
    return InvalidArgument("Shapes must be equal rank, but are ", rank(), " and ", o.rank(), ". Shapes are ",
                           ToString(), " and ", o.ToString());
  }
  for (int i = 0; i < rank(); ++i) {
    if (has_dim(i) && o.has_dim(i) && dim(i) != o.dim(i)) {
      return InvalidArgument("Dimension ", i, " in both shapes must be equal, but are ", dim(i), " and ", o.dim(i),
                             ". Shapes are ", ToString(), " and ", o.ToString());
    }
  }
  PartialShape merged = *this;
  for (size_t i = 0; i < merged.dims_.size(); ++i) {
    if (merged.dims_[i] < 0) merged.dims_[i] = o.dims_[i];
  }
  return merged;
}

std::string PartialShape::ToString() const {
  if (!has_rank_) return "?";
  const auto append = [](std::string* out, int64_t dim) { absl::StrAppend(out, dim < 0 ? "?" : absl::StrCat(dim)); };
  return absl::StrCat("[", absl::StrJoin(dims_, ",", append), "]");
}

StatusOr<Shape> BroadcastShapes(const Shape& a, const Shape& b) {
  if (a == b) return a;
  const Shape& longer = a.rank() >= b.rank() ? a : b;
  const Shape& shorter = a.rank() >= b.rank() ? b : a;
  const int offset = longer.rank() - shorter.rank();
  Dims dims(longer.dims().begin(), longer.dims().end());
  for (int i = 0; i < shorter.rank(); ++i) {
    int64_t& dim = dims[static_cast<size_t>(i + offset)];
    const int64_t other = shorter.dim(i);
    if (dim == other || other == 1) continue;
    if (dim != 1) return InvalidArgument("Incompatible shapes: ", a.ToString(), " vs. ", b.ToString());
    dim = other;
  }
  return Shape::Make(dims);
}

}  // namespace millrace
