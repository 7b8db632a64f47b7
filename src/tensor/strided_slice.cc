// SPDX-License-Identifier: Apache-2.0
// The user's sparse specification (one entry per written index) becomes a dense one (one entry per dimension of the
// input) plus the recipe of the output: for each output dimension either a dimension of the input or a new axis. Then
// each dense entry is clamped to its dimension as Python does.
#include "tensor/strided_slice.h"

#include <algorithm>
#include <bit>

namespace millrace {
namespace {

struct DenseSpec {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t stride = 1;
  bool from_start = true;  // the begin mask
  bool to_end = true;      // the end mask
  bool shrink = false;
};

constexpr int kNewAxis = -1;

struct Dense {
  absl::InlinedVector<DenseSpec, 6> dims;
  absl::InlinedVector<int, 6> output;  // index of an input dimension, or kNewAxis
};

bool Bit(int64_t mask, int i) { return ((mask >> i) & 1) != 0; }

Status CheckMasks(const StridedSliceMasks& masks) {
  if (std::popcount(static_cast<uint64_t>(masks.ellipsis)) > 1) {
    return InvalidArgument("Multiple ellipses in slice spec not allowed");
  }
  return absl::OkStatus();
}

StatusOr<Dense> Densify(int rank, const int64_t* begin, const int64_t* end, absl::Span<const int64_t> strides,
                        const StridedSliceMasks& masks) {
  const int count = static_cast<int>(strides.size());
  int consuming = 0;  // entries that use up a dimension
  for (int i = 0; i < count; ++i) consuming += !Bit(masks.ellipsis, i) && !Bit(masks.new_axis, i) ? 1 : 0;
  if (consuming > rank) {
    return InvalidArgument("Index out of range using input dim ", rank, "; input has only ", rank, " dims");
  }
  Dense dense;
  auto take_whole = [&](int n) {
    for (int k = 0; k < n; ++k) {
      dense.output.push_back(static_cast<int>(dense.dims.size()));
      dense.dims.emplace_back();
    }
  };
  bool seen_ellipsis = false;
  for (int i = 0; i < count; ++i) {
    if (Bit(masks.ellipsis, i)) {
      take_whole(rank - consuming);
      seen_ellipsis = true;
    } else if (Bit(masks.new_axis, i)) {
      dense.output.push_back(kNewAxis);
    } else {
      DenseSpec d{.stride = strides[static_cast<size_t>(i)],
                  .from_start = Bit(masks.begin, i),
                  .to_end = Bit(masks.end, i),
                  .shrink = Bit(masks.shrink_axis, i)};
      if (begin != nullptr) d.begin = begin[i];
      if (end != nullptr) d.end = end[i];
      if (!d.shrink) dense.output.push_back(static_cast<int>(dense.dims.size()));
      dense.dims.push_back(d);
    }
  }
  if (!seen_ellipsis) take_whole(rank - consuming);
  return dense;
}

// Where a slice that starts (or ends) at `x` does so within a dimension of `size` elements.
int64_t Clamp(int64_t x, int64_t size, int64_t stride) {
  const int64_t low = stride > 0 ? 0 : -1;
  const int64_t high = stride > 0 ? size : size - 1;
  return std::clamp(x < 0 ? x + size : x, low, high);
}

int64_t CountSteps(int64_t interval, int64_t stride) {
  if (interval == 0 || (interval < 0) != (stride < 0)) return 0;
  return interval / stride + (interval % stride != 0 ? 1 : 0);
}

// Fills `out` for dimension `i` of `size` elements (-1 unknown). *whole: all of it, in order.
Status ResolveDim(int i, int64_t size, const DenseSpec& d, bool begin_known, bool end_known, StridedSlice::Dim* out,
                  bool* whole) {
  *whole = false;
  out->stride = d.stride;
  out->shrink = d.shrink;
  if (d.stride == 0) return InvalidArgument("strides[", i, "] must be non-zero");
  if (d.shrink) {
    if (d.stride < 0) return InvalidArgument("only stride 1 allowed on non-range indexing.");
    out->stride = 1;
    out->size = 1;
    if (!begin_known || !end_known || size < 0) return absl::OkStatus();
    const int64_t at = d.begin < 0 ? d.begin + size : d.begin;
    if (at < 0 || at >= size) {
      return InvalidArgument("slice index ", d.begin, " of dimension ", i, " out of bounds.");
    }
    out->begin = at;
    *whole = size == 1;
    return absl::OkStatus();
  }
  if (size < 0) {
    *whole = d.from_start && d.to_end && d.stride == 1;
    return absl::OkStatus();
  }
  if ((!begin_known && !d.from_start) || (!end_known && !d.to_end)) return absl::OkStatus();
  const bool forward = d.stride > 0;
  const int64_t begin = d.from_start ? (forward ? 0 : size - 1) : Clamp(d.begin, size, d.stride);
  const int64_t end = d.to_end ? (forward ? size : -1) : Clamp(d.end, size, d.stride);
  out->begin = begin;
  out->size = CountSteps(end - begin, d.stride);
  *whole = d.stride == 1 && begin == 0 && end == size;
  return absl::OkStatus();
}

}  // namespace

StatusOr<PartialShape> StridedSlice::OutputShape() const {
  return has_rank ? PartialShape::Make(output) : StatusOr<PartialShape>(PartialShape());
}

StatusOr<StridedSlice> ResolveStridedSlice(
    absl::Span<const int64_t> input, std::optional<absl::Span<const int64_t>> begin,
    std::optional<absl::Span<const int64_t>> end, absl::Span<const int64_t> strides, const StridedSliceMasks& masks) {
  if ((begin && begin->size() != strides.size()) || (end && end->size() != strides.size())) {
    return InvalidArgument(
        "Expected begin, end, and strides to be 1D equal size tensors, but got sizes ",
        begin ? begin->size() : strides.size(), ", ", end ? end->size() : strides.size(), ", and ", strides.size(),
        " instead.");
  }
  if (strides.size() > static_cast<size_t>(kMaxStridedSliceSpecs)) {
    return InvalidArgument(
        "begin, end and strides must have at most ", kMaxStridedSliceSpecs, " elements, got ", strides.size());
  }
  MR_RETURN_IF_ERROR(CheckMasks(masks));
  MR_ASSIGN_OR_RETURN(Dense dense, Densify(static_cast<int>(input.size()), begin ? begin->data() : nullptr,
                                           end ? end->data() : nullptr, strides, masks));
  StridedSlice result;
  result.has_rank = true;
  result.dims.resize(dense.dims.size());
  result.identity = true;
  result.known = begin.has_value() && end.has_value();
  for (size_t i = 0; i < dense.dims.size(); ++i) {
    bool whole = false;
    MR_RETURN_IF_ERROR(ResolveDim(
        static_cast<int>(i), input[i], dense.dims[i], begin.has_value(), end.has_value(), &result.dims[i], &whole));
    result.identity = result.identity && whole;
    result.known = result.known && input[i] >= 0;
  }
  for (int from : dense.output) {
    result.output.push_back(from == kNewAxis ? 1 : result.dims[static_cast<size_t>(from)].size);
  }
  return result;
}

StatusOr<StridedSlice> ResolveStridedSlice(
    const PartialShape& input, std::optional<absl::Span<const int64_t>> begin,
    std::optional<absl::Span<const int64_t>> end, absl::Span<const int64_t> strides, const StridedSliceMasks& masks) {
  // An ellipsis, written or implied, fills what is left: with the rank unknown nothing follows for the output.
  if (!input.has_rank()) return StatusOr<StridedSlice>(absl::in_place);
  return ResolveStridedSlice(absl::MakeConstSpan(input.dims()), begin, end, strides, masks);
}

}  // namespace millrace
