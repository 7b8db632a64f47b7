// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/engine/math_reducer.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/engine/elementwise_convert.h"

namespace millrace {
namespace {

// Elements converted to a wider type before they reach the reducer of that type.
class WideningReducer : public Reducer {
 public:
  WideningReducer(const Reducer* wide, DType narrow_type, DType wide_type, bool root, bool extreme)
      : wide_(wide),
        widen_(FindConvert(narrow_type, wide_type)),
        narrow_(FindConvert(wide_type, narrow_type)),
        to_double_(FindConvert(narrow_type, DType::kDouble)),
        from_double_(FindConvert(DType::kDouble, narrow_type)),
        bytes_(static_cast<int64_t>(DTypeSize(narrow_type))),
        root_(root),
        clamp_(extreme && wide_type == DType::kInt64) {
    const int64_t bits = bytes_ * 8 - 1;
    const bool is_signed = narrow_type == DType::kInt8 || narrow_type == DType::kInt16 || narrow_type == DType::kInt32;
    highest_ = bits < 63 ? (int64_t{1} << (is_signed ? bits : bits + 1)) - 1 : std::numeric_limits<int64_t>::max();
    lowest_ = is_signed ? -highest_ - 1 : bits < 63 ? 0 : std::numeric_limits<int64_t>::min();
  }

  int64_t element_bytes() const override { return bytes_; }
  int64_t accumulator_bytes() const override { return wide_->accumulator_bytes(); }
  void Init(void* acc, int64_t n) const override { wide_->Init(acc, n); }
  void Inner(const void* in, int64_t rows, int64_t n, void* acc) const override {
    alignas(64) char tile[kTileBytes];
    const int64_t elements = kTileBytes / wide_->element_bytes();
    const char* p = static_cast<const char*>(in);
    if (n <= elements) {
      const int64_t rows_per_tile = std::max<int64_t>(elements / std::max<int64_t>(n, 1), 1);
      for (int64_t r = 0; r < rows; r += rows_per_tile) {
        const int64_t count = std::min(rows_per_tile, rows - r);
        widen_.Run(p + r * n * bytes_, tile, count * n);
        wide_->Inner(tile, count, n, At(acc, r));
      }
      return;
    }
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t i = 0; i < n; i += elements) {
        const int64_t count = std::min(elements, n - i);
        widen_.Run(p + (r * n + i) * bytes_, tile, count);
        wide_->Inner(tile, 1, count, At(acc, r));
      }
    }
  }
  void Outer(const void* in, int64_t rows, int64_t stride, int64_t columns, void* acc) const override {
    alignas(64) char tile[kTileBytes];
    const char* p = static_cast<const char*>(in);
    const int64_t rows_per_tile = std::max<int64_t>(kTileBytes / (wide_->element_bytes() * columns), 1);
    for (int64_t r = 0; r < rows; r += rows_per_tile) {
      const int64_t count = std::min(rows_per_tile, rows - r);
      if (stride == columns) {
        widen_.Run(p + r * stride * bytes_, tile, count * columns);
      } else {
        for (int64_t i = 0; i < count; ++i) {
          widen_.Run(p + (r + i) * stride * bytes_, tile + i * columns * wide_->element_bytes(), columns);
        }
      }
      wide_->Outer(tile, count, columns, columns, acc);
    }
  }
  void Merge(void* acc, const void* other, int64_t n) const override { wide_->Merge(acc, other, n); }
  void Finish(const void* acc, int64_t n, int64_t count, void* out) const override {
    alignas(64) char tile[kTileBytes];
    const int64_t elements = kTileBytes / static_cast<int64_t>(sizeof(double)) / 2;
    for (int64_t i = 0; i < n; i += elements) {
      const int64_t m = std::min(elements, n - i);
      char* to = static_cast<char*>(out) + i * bytes_;
      wide_->Finish(static_cast<const char*>(acc) + i * accumulator_bytes(), m, count, tile);
      if (clamp_) Clamp(reinterpret_cast<int64_t*>(tile), m);
      narrow_.Run(tile, to, m);
      if (root_) Root(to, m);
    }
  }

 private:
  static constexpr int64_t kTileBytes = 32 << 10;

  void* At(void* acc, int64_t i) const { return static_cast<char*>(acc) + i * accumulator_bytes(); }
  // The extreme of no element is that of the narrow type.
  void Clamp(int64_t* values, int64_t n) const {
    for (int64_t i = 0; i < n; ++i) values[i] = std::clamp(values[i], lowest_, highest_);
  }
  // Square roots of values that have wrapped already, in the narrow type.
  void Root(char* values, int64_t n) const {
    double tile[kConvertTile];
    for (int64_t i = 0; i < n; i += kConvertTile) {
      const int64_t m = std::min(kConvertTile, n - i);
      to_double_.Run(values + i * bytes_, tile, m);
      for (int64_t j = 0; j < m; ++j) tile[j] = tile[j] > 0 ? std::sqrt(tile[j]) : 0;
      from_double_.Run(tile, values + i * bytes_, m);
    }
  }

  const Reducer* wide_;
  ConvertRoute widen_, narrow_, to_double_, from_double_;
  int64_t bytes_;
  bool root_, clamp_;
  int64_t lowest_ = 0, highest_ = 0;
};

const Reducer* FindWide(ReduceKind kind, DType dtype) {
  if (const Reducer* r = FindFloatReducer(kind, dtype)) return r;
  if (const Reducer* r = FindComplexReducer(kind, dtype)) return r;
  return FindIntegerReducer(kind, dtype);
}

}  // namespace

std::shared_ptr<const Reducer> FindReducer(ReduceKind kind, DType dtype) {
  const bool root = kind == ReduceKind::kNorm && IsInteger(dtype);
  if (!root) {
    if (const Reducer* r = FindWide(kind, dtype)) return std::shared_ptr<const Reducer>(std::shared_ptr<void>(), r);
  }
  DType wide = DType::kInvalid;
  if (dtype == DType::kHalf || dtype == DType::kBFloat16) {
    wide = DType::kFloat;
  } else if (IsInteger(dtype)) {
    wide = dtype == DType::kUInt64 ? dtype : DType::kInt64;
  }
  const Reducer* r = wide == DType::kInvalid ? nullptr : FindWide(kind, wide);
  if (!r) return nullptr;
  const bool extreme = kind == ReduceKind::kMax || kind == ReduceKind::kMin;
  return std::make_shared<WideningReducer>(r, dtype, wide, root, extreme);
}

}  // namespace millrace
