// SPDX-License-Identifier: Apache-2.0
// Reducers: the arithmetic of one reduction over one element type, on runs of memory. Accumulators are wider than the
// elements where that keeps sums accurate. Stateless and shared.
#pragma once

#include <cstdint>
#include <memory>

#include "tensor/dtype.h"

namespace millrace {

enum class ReduceKind : uint8_t { kSum, kMean, kProd, kMax, kMin, kNorm, kAll, kAny };

inline constexpr int64_t kReduceTile = 1024;            // most accumulators per call of Outer
inline constexpr int64_t kReduceAccumulatorBytes = 16;  // at most, each

class Reducer {
 public:
  virtual ~Reducer() = default;
  virtual int64_t element_bytes() const = 0;
  virtual int64_t accumulator_bytes() const = 0;
  virtual void Init(void* acc, int64_t n) const = 0;
  // acc[r] takes the n elements from in + r * n on, for each of `rows` rows.
  virtual void Inner(const void* in, int64_t rows, int64_t n, void* acc) const = 0;
  // acc[j] takes in[r * stride + j] for each of `rows` rows; columns <= kReduceTile.
  virtual void Outer(const void* in, int64_t rows, int64_t stride, int64_t columns, void* acc) const = 0;
  virtual void Merge(void* acc, const void* other, int64_t n) const = 0;
  // `count` elements went into each accumulator.
  virtual void Finish(const void* acc, int64_t n, int64_t count, void* out) const = 0;
};

// For the wide types of the tile files: f32, f64, i64, u64, c64, c128, and those worth a loop of their own. Null
// otherwise.
const Reducer* FindFloatReducer(ReduceKind kind, DType dtype);
const Reducer* FindIntegerReducer(ReduceKind kind, DType dtype);
const Reducer* FindComplexReducer(ReduceKind kind, DType dtype);

// Any type; narrow ones are widened tile by tile. Null when the kind does not apply to the type.
std::shared_ptr<const Reducer> FindReducer(ReduceKind kind, DType dtype);

}  // namespace millrace
