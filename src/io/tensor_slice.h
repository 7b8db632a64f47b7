// SPDX-License-Identifier: Apache-2.0
// Parts of tensors in checkpoints: per dimension all, or a range. A variable that is partitioned over devices is stored
// under its whole name and shape, one part a piece.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "tensor/tensor.h"
#include "wire/checkpoint.h"

namespace millrace {

class TensorSlice {
 public:
  struct Extent {
    int64_t start = 0;
    int64_t length = kAll;
    bool operator==(const Extent&) const = default;
  };
  static constexpr int64_t kAll = -1;

  static TensorSlice Full(int rank);
  // "0,10:-"; InvalidArgument unless every part is '-' or start,length with start >= 0 and length > 0.
  static StatusOr<TensorSlice> Parse(absl::string_view text);
  static StatusOr<TensorSlice> FromProto(const wire::TensorSliceProto& proto);
  wire::TensorSliceProto ToProto() const;
  std::string ToString() const;

  int rank() const { return static_cast<int>(extents_.size()); }
  const Extent& extent(int d) const { return extents_[static_cast<size_t>(d)]; }
  bool operator==(const TensorSlice&) const = default;

  // The range in numbers for a tensor of shape `full`; the ranks must agree (InvalidArgument) and the range must lie
  // inside (Internal: the code that TensorFlow answers with).
  StatusOr<std::vector<Extent>> Resolve(const Shape& full) const;
  StatusOr<Shape> SliceShape(const Shape& full) const;
  // All of a tensor of shape `full`, however it is written.
  bool Covers(const Shape& full) const;

 private:
  std::vector<Extent> extents_;
};

// An element of the input `shape_and_slices` that is not empty: "d0 d1 s0:s1".
struct ShapeAndSlice {
  Shape full;
  TensorSlice slice;
  Shape part;  // shape of the slice
};
StatusOr<ShapeAndSlice> ParseShapeAndSlice(absl::string_view text);

// The key of a part in a table: ordered by name, then by extents.
std::string SliceKey(absl::string_view name, const TensorSlice& slice);

// Copies what the box `from` of `source` (a tensor of the box's shape) and the box `to` of `target` have in common.
// Both boxes lie in one larger tensor; dtypes and ranks agree. Bytes of `done`, one an element of target, become 1.
void CopyCommonPart(const Tensor& source, const std::vector<TensorSlice::Extent>& from, Tensor* target,
                    const std::vector<TensorSlice::Extent>& to, std::vector<bool>* done);
// Number of elements that the boxes have in common.
int64_t CommonElements(const std::vector<TensorSlice::Extent>& a, const std::vector<TensorSlice::Extent>& b);

}  // namespace millrace
