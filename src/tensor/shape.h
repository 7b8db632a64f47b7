// SPDX-License-Identifier: Apache-2.0
// Shape: the dimensions of a tensor. PartialShape: what is known of them before a step.
//
// Both are values. A Shape always has rank <= kMaxRank, dimensions >= 0 and a product of the dimensions other than 0
// that fits in int64, so the product of any of its dimensions does too: the factories check this and there is no other
// way to make one, so no later code needs to.
#pragma once

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "base/status.h"

namespace millrace {

inline constexpr int kMaxRank = 254;

class Shape {
 public:
  Shape() = default;  // a scalar
  Shape(const Shape& o) { CopyFrom(o); }
  Shape(Shape&& o) noexcept { MoveFrom(o); }
  Shape& operator=(const Shape& o) {
    if (this != &o) CopyFrom(o);
    return *this;
  }
  Shape& operator=(Shape&& o) noexcept {
    if (this != &o) MoveFrom(o);
    return *this;
  }
  ~Shape() = default;

  // InvalidArgument on a negative dimension, an overflowing product or too high a rank.
  static StatusOr<Shape> Make(absl::Span<const int64_t> dims);
  static StatusOr<Shape> Make(absl::Span<const int32_t> dims);
  static StatusOr<Shape> Make(std::initializer_list<int64_t> dims) {
    return Make(absl::Span<const int64_t>(dims.begin(), dims.size()));
  }
  // n >= 0 must hold already (a size that exists in memory, for instance); negative becomes 0.
  static Shape Vector(int64_t n);

  int rank() const { return rank_; }
  int64_t dim(int i) const { return data()[i]; }  // 0 <= i < rank
  absl::Span<const int64_t> dims() const { return {data(), static_cast<size_t>(rank_)}; }
  int64_t num_elements() const { return num_elements_; }
  bool IsScalar() const { return rank_ == 0; }

  // These return a changed copy, checked like Make.
  StatusOr<Shape> WithDim(int i, int64_t size) const;
  StatusOr<Shape> WithInserted(int i, int64_t size) const;  // 0 <= i <= rank
  StatusOr<Shape> Concatenate(const Shape& o) const;
  Shape WithoutDim(int i) const;  // 0 <= i < rank

  bool operator==(const Shape& o) const {
    if (rank_ != o.rank_ || num_elements_ != o.num_elements_) return false;
    const int64_t* mine = data();
    const int64_t* other = o.data();
    for (int i = 0; i < rank_; ++i) {
      if (mine[i] != other[i]) return false;
    }
    return true;
  }
  std::string ToString() const;  // [2,3]

 private:
  static constexpr int kInline = 4;
  const int64_t* data() const { return rank_ <= kInline ? inline_ : heap_.get(); }
  void CopyFrom(const Shape& o) {
    rank_ = o.rank_;
    num_elements_ = o.num_elements_;
    if (rank_ <= kInline) {
      std::memcpy(inline_, o.inline_, sizeof(inline_));
    } else {
      heap_ = std::make_unique<int64_t[]>(static_cast<size_t>(rank_));
      std::memcpy(heap_.get(), o.heap_.get(), static_cast<size_t>(rank_) * sizeof(int64_t));
    }
  }
  void MoveFrom(Shape& o) {
    rank_ = o.rank_;
    num_elements_ = o.num_elements_;
    std::memcpy(inline_, o.inline_, sizeof(inline_));
    heap_ = std::move(o.heap_);
    if (rank_ > kInline) {
      o.rank_ = 0;
      o.num_elements_ = 1;
    }
  }

  int32_t rank_ = 0;
  int64_t num_elements_ = 1;
  int64_t inline_[kInline] = {0, 0, 0, 0};
  std::unique_ptr<int64_t[]> heap_;
};

// Unknown rank, or a list of dimensions of which some are unknown (-1).
class PartialShape {
 public:
  PartialShape() = default;      // unknown rank
  PartialShape(const Shape& s);  // NOLINT: every Shape is a PartialShape

  static PartialShape Unknown() { return {}; }
  static PartialShape UnknownOfRank(int rank);
  static PartialShape Scalar() { return UnknownOfRank(0); }
  // Dimensions below -1, or too high a rank, or an overflowing product of the known ones: InvalidArgument.
  static StatusOr<PartialShape> Make(absl::Span<const int64_t> dims);
  // For shape functions, whose dimensions are already valid (each >= -1).
  static PartialShape Of(std::vector<int64_t> dims);

  bool has_rank() const { return has_rank_; }
  int rank() const { return has_rank_ ? static_cast<int>(dims_.size()) : -1; }
  // -1 too where there is no such dimension, or the rank is unknown.
  int64_t dim(int i) const {
    const size_t k = static_cast<size_t>(i);
    return k < dims_.size() ? dims_[k] : -1;
  }
  bool has_dim(int i) const { return dim(i) >= 0; }
  const std::vector<int64_t>& dims() const { return dims_; }
  bool IsFullyDefined() const;
  int64_t num_elements() const;  // -1 when unknown

  StatusOr<Shape> ToShape() const;
  // Same rank and no dimension known to differ.
  bool IsCompatibleWith(const PartialShape& o) const;
  // What both say; InvalidArgument when they contradict.
  StatusOr<PartialShape> Merge(const PartialShape& o) const;
  bool operator==(const PartialShape&) const = default;
  std::string ToString() const;  // ?, [2,?]

 private:
  bool has_rank_ = false;
  std::vector<int64_t> dims_;
};

// NumPy broadcasting of two shapes; InvalidArgument when they do not fit.
StatusOr<Shape> BroadcastShapes(const Shape& a, const Shape& b);

}  // namespace millrace
