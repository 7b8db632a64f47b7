// SPDX-License-Identifier: Apache-2.0
#include "io/tensor_slice.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "base/checked.h"

namespace millrace {
namespace {

using Extent = TensorSlice::Extent;

StatusOr<Extent> ParseExtent(absl::string_view part) {
  Extent e;
  if (part == "-") return e;
  const std::vector<absl::string_view> numbers = absl::StrSplit(part, ',');
  if (numbers.size() != 2 || !absl::SimpleAtoi(numbers[0], &e.start) || !absl::SimpleAtoi(numbers[1], &e.length) ||
      e.start < 0 || e.length <= 0) {
    return InvalidArgument("bad slice \"", part, "\": expected - or start,length with start >= 0 and length > 0");
  }
  return e;
}

// The common range of two resolved extents; an empty one has length 0.
Extent Common(const Extent& a, const Extent& b) {
  const int64_t start = std::max(a.start, b.start);
  const int64_t end = std::min(a.start + a.length, b.start + b.length);
  return {start, std::max<int64_t>(end - start, 0)};
}

}  // namespace

TensorSlice TensorSlice::Full(int rank) {
  TensorSlice s;
  s.extents_.resize(static_cast<size_t>(std::max(rank, 0)));
  return s;
}

StatusOr<TensorSlice> TensorSlice::Parse(absl::string_view text) {
  TensorSlice s;
  if (text.empty()) return s;
  for (absl::string_view part : absl::StrSplit(text, ':')) {
    MR_ASSIGN_OR_RETURN(const Extent e, ParseExtent(part));
    s.extents_.push_back(e);
  }
  return s;
}

StatusOr<TensorSlice> TensorSlice::FromProto(const wire::TensorSliceProto& proto) {
  TensorSlice s;
  for (const wire::TensorSliceExtent& p : proto.extent) {
    Extent e;
    int64_t end = 0;
    if (p.kind == wire::TensorSliceExtent::Kind::kLength) {
      e = {p.start, p.length};
      if (e.start < 0 || e.length <= 0 || !CheckedAdd(e.start, e.length, &end)) {
        return InvalidArgument("bad slice: start ", e.start, " length ", e.length);
      }
    } else if (p.start != 0) {
      return InvalidArgument("bad slice: start ", p.start, " without length");
    }
    s.extents_.push_back(e);
  }
  return s;
}

wire::TensorSliceProto TensorSlice::ToProto() const {
  wire::TensorSliceProto proto;
  for (const Extent& e : extents_) {
    wire::TensorSliceExtent& p = proto.extent.emplace_back();
    if (e.length == kAll) continue;
    p.start = e.start;
    p.length = e.length;
    p.kind = wire::TensorSliceExtent::Kind::kLength;
  }
  return proto;
}

std::string TensorSlice::ToString() const {
  std::string text;
  for (const Extent& e : extents_) {
    if (!text.empty()) text += ':';
    e.length == kAll ? text += '-' : text += absl::StrCat(e.start, ",", e.length);
  }
  return text;
}

StatusOr<std::vector<Extent>> TensorSlice::Resolve(const Shape& full) const {
  if (rank() != full.rank()) {
    return InvalidArgument(
        "slice ", ToString(), " has ", rank(), " dimensions, the tensor has shape ", full.ToString());
  }
  std::vector<Extent> box = extents_;
  for (int d = 0; d < rank(); ++d) {
    Extent& e = box[static_cast<size_t>(d)];
    if (e.length == kAll) {
      e = {0, full.dim(d)};
    } else if (e.start > full.dim(d) || e.length > full.dim(d) - e.start) {
      return Internal("slice ", ToString(), " goes past dimension ", d, " of shape ", full.ToString());
    }
  }
  return box;
}

StatusOr<Shape> TensorSlice::SliceShape(const Shape& full) const {
  MR_ASSIGN_OR_RETURN(const std::vector<Extent> box, Resolve(full));
  std::vector<int64_t> dims;
  for (const Extent& e : box) dims.push_back(e.length);
  return Shape::Make(dims);
}

bool TensorSlice::Covers(const Shape& full) const {
  if (rank() != full.rank()) return false;
  for (int d = 0; d < rank(); ++d) {
    if (extent(d).length != kAll && (extent(d).start != 0 || extent(d).length != full.dim(d))) return false;
  }
  return true;
}

StatusOr<ShapeAndSlice> ParseShapeAndSlice(absl::string_view text) {
  std::vector<absl::string_view> items = absl::StrSplit(text, ' ', absl::SkipEmpty());
  if (items.size() < 2) return InvalidArgument("bad shape and slice \"", text, "\": expected dimensions and a slice");
  const absl::string_view slice = items.back();
  items.pop_back();
  std::vector<int64_t> dims;
  for (absl::string_view item : items) {
    int64_t size = 0;
    if (!absl::SimpleAtoi(item, &size) || size < 0) {
      return InvalidArgument("bad dimension \"", item, "\" in shape and slice \"", text, "\"");
    }
    dims.push_back(size);
  }
  ShapeAndSlice result;
  MR_ASSIGN_OR_RETURN(result.full, Shape::Make(dims));
  MR_ASSIGN_OR_RETURN(result.slice, TensorSlice::Parse(slice));
  MR_ASSIGN_OR_RETURN(result.part, result.slice.SliceShape(result.full));
  return result;
}

int64_t CommonElements(const std::vector<Extent>& a, const std::vector<Extent>& b) {
  int64_t n = 1;
  for (size_t d = 0; d < a.size(); ++d) n *= Common(a[d], b[d]).length;
  return n;
}

void CopyCommonPart(const Tensor& source, const std::vector<Extent>& from, Tensor* target,
                    const std::vector<Extent>& to, std::vector<bool>* done) {
  if (CommonElements(from, to) == 0) return;
  const size_t rank = from.size();
  // The last dimensions that are common in full, and the one before them, are one contiguous run.
  size_t outer = rank;
  int64_t run = 1;
  for (bool whole = true; outer > 0 && whole;) {
    --outer;
    const int64_t length = Common(from[outer], to[outer]).length;
    run *= length;
    whole = length == from[outer].length && length == to[outer].length;
  }
  std::vector<int64_t> from_stride(rank, 1), to_stride(rank, 1);
  for (size_t d = rank; d-- > 1;) {
    from_stride[d - 1] = from_stride[d] * from[d].length;
    to_stride[d - 1] = to_stride[d] * to[d].length;
  }
  int64_t from_at = 0, to_at = 0;
  for (size_t d = 0; d < rank; ++d) {
    const int64_t start = Common(from[d], to[d]).start;
    from_at += (start - from[d].start) * from_stride[d];
    to_at += (start - to[d].start) * to_stride[d];
  }
  const size_t element = DTypeSize(source.dtype());
  std::vector<int64_t> at(outer, 0);
  while (true) {
    if (source.dtype() == DType::kString) {
      std::copy_n(source.data<TString>() + from_at, run, target->mutable_data<TString>() + to_at);
    } else {
      std::memcpy(static_cast<char*>(target->mutable_raw()) + static_cast<size_t>(to_at) * element,
                  static_cast<const char*>(source.raw()) + static_cast<size_t>(from_at) * element,
                  static_cast<size_t>(run) * element);
    }
    std::fill_n(done->begin() + to_at, run, true);
    size_t d = outer;
    for (; d > 0; --d) {  // the next index of the outer dimensions
      const int64_t length = Common(from[d - 1], to[d - 1]).length;
      from_at += from_stride[d - 1];
      to_at += to_stride[d - 1];
      if (++at[d - 1] < length) break;
      from_at -= length * from_stride[d - 1];
      to_at -= length * to_stride[d - 1];
      at[d - 1] = 0;
    }
    if (d == 0) return;
  }
}

}  // namespace millrace
