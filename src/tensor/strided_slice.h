// SPDX-License-Identifier: Apache-2.0
// What x[begin:end:stride, ..., newaxis, i] selects: the masks of StridedSlice resolved against a shape. Shape
// functions and kernels use the same rules, so a graph that passes the one does not surprise the other.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "base/status.h"
#include "tensor/shape.h"

namespace millrace {

// Bit i speaks of element i of begin, end and strides.
struct StridedSliceMasks {
  int64_t begin = 0;        // start at the natural end instead of begin[i]
  int64_t end = 0;          // run to the natural end instead of end[i]
  int64_t ellipsis = 0;     // at most one bit: as many whole dimensions as are left
  int64_t new_axis = 0;     // a dimension of size 1 that the input does not have
  int64_t shrink_axis = 0;  // the single index begin[i]; the dimension goes
};

// Slice i of the input's dimension i is begin[i], begin[i] + stride[i], ..., size[i] elements in all.
struct StridedSlice {
  struct Dim {
    int64_t begin = 0;
    int64_t stride = 1;
    int64_t size = -1;  // -1: not known
    bool shrink = false;
  };
  absl::InlinedVector<Dim, 6> dims;        // one per dimension of the input, when its rank is known
  bool has_rank = false;                   // of the output
  absl::InlinedVector<int64_t, 6> output;  // its dimensions, after new_axis and shrink_axis; -1 where not known
  bool identity = false;                   // everything, in order (the output may still have another shape)
  bool known = false;                      // all of `dims` is known

  StatusOr<PartialShape> OutputShape() const;
  StatusOr<Shape> KnownOutputShape() const { return Shape::Make(absl::MakeConstSpan(output)); }
};

inline constexpr int kMaxStridedSliceSpecs = 31;  // the masks have this many bits

// `begin` and `end` may be unknown, `strides` may not. InvalidArgument: different lengths, more than
// kMaxStridedSliceSpecs, a stride of zero, several ellipses, more indices than dimensions, a single index out of range.
// `input` holds the dimensions, -1 where one is not known.
StatusOr<StridedSlice> ResolveStridedSlice(
    absl::Span<const int64_t> input, std::optional<absl::Span<const int64_t>> begin,
    std::optional<absl::Span<const int64_t>> end, absl::Span<const int64_t> strides, const StridedSliceMasks& masks);
// The same for a shape of which the rank may be unknown; then nothing follows for the output.
StatusOr<StridedSlice> ResolveStridedSlice(
    const PartialShape& input, std::optional<absl::Span<const int64_t>> begin,
    std::optional<absl::Span<const int64_t>> end, absl::Span<const int64_t> strides, const StridedSliceMasks& masks);

}  // namespace millrace
