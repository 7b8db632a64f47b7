// SPDX-License-Identifier: Apache-2.0
// Quantized numbers: integers of a type T that stand for evenly spaced floats between two ends. A bit pattern of T's
// lowest value is the lower end, its highest the upper one.
//
// The formulas, with their roundings to float, are TensorFlow's, so that results are the same bit by bit.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "base/checked.h"
#include "kernel/kernel.h"
#include "kernels/cpu/engine/index_arithmetic.h"

namespace millrace {

struct FloatRange {
  float min = 0, max = 0;
  bool operator==(const FloatRange&) const = default;
};

template <typename T>
inline constexpr int64_t kLowestOf = std::numeric_limits<T>::lowest();
template <typename T>
inline constexpr int64_t kHighestOf = std::numeric_limits<T>::max();
template <typename T>
inline constexpr double kStepsOf = static_cast<double>(uint64_t{1} << (sizeof(T) * 8));

// The one float in input i; InvalidArgument otherwise.
StatusOr<float> ScalarFloat(const KernelContext& ctx, int i, absl::string_view name);
// Inputs i and i + 1 as a range.
StatusOr<FloatRange> ReadRange(const KernelContext& ctx, int i);
// Sets outputs o and o + 1.
Status OutputRange(KernelContext& ctx, int o, FloatRange range);

// Calls fn.template operator()<T>() for the C++ type that holds a quantized dtype.
template <typename F>
bool VisitQuantized(DType dtype, F&& fn) {
  switch (dtype) {
    case DType::kQInt8: fn.template operator()<int8_t>(); return true;
    case DType::kQUInt8: fn.template operator()<uint8_t>(); return true;
    case DType::kQInt16: fn.template operator()<int16_t>(); return true;
    case DType::kQUInt16: fn.template operator()<uint16_t>(); return true;
    case DType::kQInt32: fn.template operator()<int32_t>(); return true;
    default: return false;
  }
}

// Integers as floats, the lower end moved to a multiple of the step.
template <typename T>
class ToFloat {
 public:
  explicit ToFloat(FloatRange r) : degenerate_(r.min == r.max), low_(r.min) {
    if (degenerate_) return;
    const double adjust = kStepsOf<T> / (kStepsOf<T> - 1);
    step_ = static_cast<double>((r.max - r.min)) * adjust / kStepsOf<T>;
    const double narrow = static_cast<double>(static_cast<float>(step_));
    first_ = std::round(static_cast<double>(r.min) / narrow) * narrow;
  }
  float operator()(T v) const {
    if (degenerate_) return low_;
    return static_cast<float>(first_ + static_cast<double>(static_cast<int64_t>(v) - kLowestOf<T>) * step_);
  }

 private:
  bool degenerate_;
  float low_;
  double step_ = 0, first_ = 0;
};

// Floats as integers, not kept within those of T.
template <typename T>
int64_t UnclampedQuantized(float v, FloatRange r) {
  if (r.min == r.max) return kLowestOf<T>;
  const double adjust = kStepsOf<T> / (kStepsOf<T> - 1);
  const double per_unit = kStepsOf<T> / (static_cast<double>(r.max - r.min) * adjust);
  const double steps =
      std::round(static_cast<double>(v) * per_unit) - std::round(static_cast<double>(r.min) * per_unit);
  int64_t q = SaturatingCast<int64_t>(steps);
  return CheckedAdd(q, kLowestOf<T>, &q) ? q : kLowestOf<T>;
}
template <typename T>
T Quantized(float v, FloatRange r) {
  return static_cast<T>(std::clamp(UnclampedQuantized<T>(v, r), kLowestOf<T>, kHighestOf<T>));
}

// The same in float arithmetic, for whole tensors.
template <typename T>
class FloatToSteps {
 public:
  explicit FloatToSteps(FloatRange r) {
    scale_ = r.max == r.min ? 0 : static_cast<float>((kStepsOf<T> - 1) / static_cast<double>(r.max - r.min));
    offset_ = (r.max == r.min ? r.min : std::round(r.min * scale_)) - static_cast<float>(kLowestOf<T>);
    low_ = std::max(static_cast<float>(kLowestOf<T>), -2.147483648e+09F);
    high_ = std::min(static_cast<float>(kHighestOf<T>), 2.147483520e+09F);
  }
  T operator()(float v) const {
    const float q = std::round(v * scale_) - offset_;
    return static_cast<T>(SaturatingCast<int32_t>(std::min(std::max(q, low_), high_)));
  }
  float scale() const { return scale_; }
  float offset() const { return offset_; }
  float low() const { return low_; }
  float high() const { return high_; }

 private:
  float scale_, offset_, low_, high_;
};
template <typename T>
class StepsToFloat {
 public:
  explicit StepsToFloat(FloatRange r) {
    scale_ = static_cast<float>(static_cast<double>(r.max - r.min) / (kStepsOf<T> - 1));
    const float first = r.max == r.min ? r.min : std::round(r.min / scale_) * scale_;
    first_ = first - static_cast<float>(kLowestOf<T>) * scale_;
  }
  float operator()(T v) const { return first_ + static_cast<float>(v) * scale_; }
  float scale() const { return scale_; }
  float first() const { return first_; }

 private:
  float scale_, first_;
};

// The float that one step of T stands for.
template <typename T>
float OneStep(FloatRange r) {
  return (r.max - r.min) / static_cast<float>(kHighestOf<T> - kLowestOf<T>);
}
// The range of products as int32.
template <typename A, typename B>
FloatRange ProductRange(FloatRange a, FloatRange b) {
  const float step = OneStep<A>(a) * OneStep<B>(b);
  return {step * static_cast<float>(kLowestOf<int32_t>), step * static_cast<float>(kHighestOf<int32_t>)};
}
// A symmetric range for sums as int32, 2^headroom times as wide as the larger operand's.
inline FloatRange SumRange(FloatRange a, FloatRange b, int headroom) {
  const float most = std::max(a.max, std::max(-a.min, std::max(b.max, -b.min))) * static_cast<float>(1 << headroom);
  return {-most, most};
}

}  // namespace millrace
