// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/linalg/linalg_products.h"

#include "kernels/cpu/engine/linalg_complex_simd.h"
#include "kernels/cpu/engine/linalg_gemm.h"
#include "kernels/cpu/engine/linalg_pairs.h"
#include "kernels/cpu/engine/strided_copy.h"
#include "kernels/cpu/math/math_convert.h"

namespace millrace {
namespace {

// Product by product.
GemmBatch EachOf(const Products& p) {
  GemmBatch batch;
  GemmArgs& g = batch.args;
  g.m = p.m;
  g.n = p.n;
  g.k = p.k;
  g.a = p.x;
  g.b = p.y;
  g.c = p.result;
  g.transpose_a = p.transpose_x;
  g.transpose_b = p.transpose_y;
  g.lda = p.transpose_x ? p.m : p.k;
  g.ldb = p.transpose_y ? p.k : p.n;
  g.ldc = p.n;
  if (p.m == 1 && p.n == 1) {  // numbers that follow each other, however they are seen
    g.transpose_a = false;
    g.transpose_b = true;
    g.lda = g.ldb = p.k;
  }
  g.b_value = p.y_value;
  batch.count = p.count;
  batch.a_size = p.m * p.k;
  batch.b_size = p.k * p.n;
  batch.a_index = p.x_index;
  batch.b_index = p.y_index;
  return batch;
}

GemmBatch BatchOf(const Products& p) {
  GemmBatch batch = EachOf(p);
  GemmArgs& g = batch.args;
  // One right factor for all: the left ones are one tall matrix.
  if (p.y_count == 1 && p.count > 1 && !p.transpose_x && !p.x_index) {
    g.m *= p.count;
    batch.count = 1;
    batch.b_index = nullptr;
  }
  return batch;
}

StatusOr<Tensor> Temp(KernelContext& ctx, DType dtype, int64_t n) { return ctx.AllocateTemp(dtype, Shape::Vector(n)); }

// Sums of no more terms are so little work that results should be converted while the cache has them.
constexpr int64_t kShortSums = 8;
constexpr int64_t kConverted = 8192;  // results at a time

// One product, a few rows at a time.
void MultiplyRows(KernelContext& ctx, DType narrow, DType wide, const GemmArgs& g, void* out) {
  const ConvertRoute to_narrow = FindConvert(wide, narrow);
  const auto wide_size = static_cast<int64_t>(DTypeSize(wide)), narrow_size = static_cast<int64_t>(DTypeSize(narrow));
  const int64_t rows = std::clamp<int64_t>(kConverted / g.n, 1, g.m);
  const double cost = 50 + 0.1 * static_cast<double>(rows * g.n * (g.k + 4));
  ctx.ParallelFor((g.m + rows - 1) / rows, cost, [&](int64_t begin, int64_t end) {
    alignas(64) char results[kConverted * 4];
    for (int64_t row = begin * rows; row < std::min(g.m, end * rows); row += rows) {
      GemmArgs part = g;
      part.m = std::min(rows, g.m - row);
      part.a = static_cast<const char*>(g.a) + (g.transpose_a ? row : row * g.lda) * wide_size;
      part.c = results;
      SerialGemm(wide, part);
      to_narrow.Run(results, static_cast<char*>(out) + row * g.n * narrow_size, part.m * g.n);
    }
  });
}

constexpr int64_t kSmall = 4096;  // numbers of a factor or a product

// Small products one after the other: the first cache has what is widened until it is used.
void MultiplyEach(KernelContext& ctx, DType narrow, DType wide, const Products& p) {
  const ConvertRoute to_wide = FindConvert(narrow, wide), to_narrow = FindConvert(wide, narrow);
  const GemmBatch batch = EachOf(p);
  const auto size = static_cast<int64_t>(DTypeSize(narrow));
  const bool by_pairs = narrow == DType::kBFloat16 && IsPairGemm(batch.args);
  const double cost = 50 + 0.03 * static_cast<double>(p.m * p.n * p.k) + 0.1 * static_cast<double>(p.m * p.n);
  ctx.ParallelFor(p.count, cost, [&](int64_t begin, int64_t end) {
    alignas(64) char x[kSmall * 4], y[kSmall * 4], result[kSmall * 4];
    GemmArgs one = batch.args;
    one.a = x;
    one.b = y;
    one.c = result;
    one.b_value = nullptr;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t x_at = (p.x_index ? p.x_index[i] : i) * batch.a_size;
      const int64_t y_at = (p.y_index ? p.y_index[i] : i) * batch.b_size;
      if (by_pairs) {
        one.a = static_cast<const char*>(p.x) + x_at * size;
        one.b = static_cast<const char*>(p.y) + y_at * size;
        one.c = static_cast<char*>(p.result) + i * p.m * p.n * size;
        PairGemm(one);
        continue;
      }
      to_wide.Run(static_cast<const char*>(p.x) + x_at * size, x, batch.a_size);
      to_wide.Run(static_cast<const char*>(p.y) + y_at * size, y, batch.b_size);
      SerialGemm(wide, one);
      to_narrow.Run(result, static_cast<char*>(p.result) + i * p.m * p.n * size, p.m * p.n);
    }
  });
}

Status Widened(KernelContext& ctx, DType narrow, DType wide, const Products& p) {
  if (p.count > 1 && p.y_count == p.count && std::max({p.m * p.k, p.k * p.n, p.m * p.n}) <= kSmall) {
    MultiplyEach(ctx, narrow, wide, p);
    return absl::OkStatus();
  }
  const int64_t x_size = p.x_count * p.m * p.k, y_size = p.y_count * p.k * p.n, size = p.count * p.m * p.n;
  MR_ASSIGN_OR_RETURN(Tensor x, Temp(ctx, wide, x_size));
  MR_ASSIGN_OR_RETURN(Tensor y, Temp(ctx, wide, y_size));
  ConvertElements(ctx, narrow, wide, p.x, x.mutable_raw(), x_size);
  ConvertElements(ctx, narrow, wide, p.y, y.mutable_raw(), y_size);
  Products q = p;
  q.x = x.raw();
  q.y = y.raw();
  q.y_value = nullptr;
  Tensor turned;
  if (p.transpose_y && p.count == 1 && p.k <= kShortSums && p.k > 1) {  // once, not for each of the parts below
    MR_ASSIGN_OR_RETURN(turned, Temp(ctx, wide, y_size));
    StridedCopy(&ctx, wide, turned.mutable_raw(), y.raw(), {{p.k, p.n, 1}, {p.n, 1, p.k}});
    q.y = turned.raw();
    q.transpose_y = false;
  }
  if (const GemmBatch batch = BatchOf(q);
      batch.count == 1 && !batch.a_index && !batch.b_index && p.k <= kShortSums && p.n <= kConverted) {
    MultiplyRows(ctx, narrow, wide, batch.args, p.result);
    return absl::OkStatus();
  }
  MR_ASSIGN_OR_RETURN(Tensor result, Temp(ctx, wide, size));
  q.result = result.mutable_raw();
  BatchGemm(&ctx, wide, BatchOf(q));
  ConvertElements(ctx, wide, narrow, result.raw(), p.result, size);
  return absl::OkStatus();
}

// Products so small, or with sums so short, that a call of oneDNN's costs more than to widen the factors.
bool IsFasterInFloat(const Products& p) {
  constexpr int64_t kMostWork = 64 * 64 * 16;
  return p.k <= kShortSums || p.m * p.n * p.k <= kMostWork;
}

Status BFloat16s(KernelContext& ctx, const Products& p) {
  const int64_t size = p.count * p.m * p.n;
  MR_ASSIGN_OR_RETURN(Tensor result, Temp(ctx, DType::kFloat, size));
  Products q = p;
  q.result = result.mutable_raw();
  BatchGemm(&ctx, DType::kBFloat16, BatchOf(q));
  ConvertElements(ctx, DType::kFloat, DType::kBFloat16, result.raw(), p.result, size);
  return absl::OkStatus();
}

// Real and imaginary parts as two runs of n in `out`.
template <typename T>
void Separate(const KernelContext& ctx, const void* in_raw, int64_t n, bool conjugate, T* out) {
  const T* in = static_cast<const T*>(in_raw);
  const T sign = conjugate ? T(-1) : T(1);
  ctx.ParallelFor(n, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) out[i] = in[2 * i];
    for (int64_t i = begin; i < end; ++i) out[n + i] = sign * in[2 * i + 1];
  });
}

// A right factor so small that taking the parts apart would cost as much as the work.
bool IsSmallComplex(const Products& p) { return p.n * p.k <= 32 * 32; }

template <typename T>
Status SmallComplex(KernelContext& ctx, const Products& p) {
  constexpr int64_t kRows = 64;  // at a time
  using C = std::complex<T>;
  const GemmBatch batch = EachOf(p);
  const GemmArgs& g = batch.args;
  const auto *x = static_cast<const C*>(p.x), *y = static_cast<const C*>(p.y);
  auto* const result = static_cast<C*>(p.result);
  const int64_t parts = (p.m + kRows - 1) / kRows;
  const double cost = 20 + 0.3 * static_cast<double>(std::min(p.m, kRows) * p.n * p.k);
  ctx.ParallelFor(p.count * parts, cost, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) {
      const int64_t i = part / parts, row = part % parts * kRows;
      GemmArgs one = g;
      one.m = std::min(kRows, p.m - row);
      one.a = x + (p.x_index ? p.x_index[i] : i) * batch.a_size + (g.transpose_a ? row : row * g.lda);
      one.b = y + (p.y_index ? p.y_index[i] : i) * batch.b_size;
      one.c = result + i * p.m * p.n + row * p.n;
      ComplexGemm(DTypeOf<C>::value, one, p.conjugate_x, p.conjugate_y);
    }
  });
  return absl::OkStatus();
}

template <typename T>
Status Complex(KernelContext& ctx, const Products& p) {
  if (IsSmallComplex(p)) return SmallComplex<T>(ctx, p);
  constexpr DType kReal = DTypeOf<T>::value;
  const int64_t x_size = p.x_count * p.m * p.k, y_size = p.y_count * p.k * p.n, size = p.count * p.m * p.n;
  MR_ASSIGN_OR_RETURN(Tensor x, Temp(ctx, kReal, 2 * x_size));
  MR_ASSIGN_OR_RETURN(Tensor y, Temp(ctx, kReal, 2 * y_size));
  MR_ASSIGN_OR_RETURN(Tensor result, Temp(ctx, kReal, 2 * size));
  Separate(ctx, p.x, x_size, p.conjugate_x, x.mutable_data<T>());
  Separate(ctx, p.y, y_size, p.conjugate_y, y.mutable_data<T>());
  auto multiply = [&](int x_part, int y_part, int part, GemmMode mode) {
    Products q = p;
    q.x = x.data<T>() + x_part * x_size;
    q.y = y.data<T>() + y_part * y_size;
    q.y_value = nullptr;
    q.result = result.mutable_data<T>() + part * size;
    GemmBatch batch = BatchOf(q);
    batch.args.mode = mode;
    BatchGemm(&ctx, kReal, batch);
  };
  multiply(0, 0, 0, GemmMode::kSet);
  multiply(1, 1, 0, GemmMode::kSubtract);
  multiply(0, 1, 1, GemmMode::kSet);
  multiply(1, 0, 1, GemmMode::kAdd);
  const T* parts = result.data<T>();
  T* out = static_cast<T*>(p.result);
  ctx.ParallelFor(size, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      out[2 * i] = parts[i];
      out[2 * i + 1] = parts[size + i];
    }
  });
  return absl::OkStatus();
}

}  // namespace

void MultiplyFloats(KernelContext& ctx, const Products& p, const Epilogue& epilogue, float* finished) {
  Gemm(&ctx, DType::kFloat, BatchOf(p).args, &epilogue, finished);
}

Status MultiplyMatrices(KernelContext& ctx, DType dtype, const Products& p) {
  if (p.count == 0 || p.m == 0 || p.n == 0) return absl::OkStatus();
  switch (dtype) {
    case DType::kFloat:
    case DType::kDouble:
    case DType::kInt32:
    case DType::kInt64: BatchGemm(&ctx, dtype, BatchOf(p)); return absl::OkStatus();
    case DType::kBFloat16:
      if (HasBFloat16Gemm() && !IsFasterInFloat(p)) return BFloat16s(ctx, p);
      return Widened(ctx, dtype, DType::kFloat, p);
    case DType::kHalf: return Widened(ctx, dtype, DType::kFloat, p);
    case DType::kInt16: return Widened(ctx, dtype, DType::kInt32, p);
    case DType::kComplex64: return Complex<float>(ctx, p);
    case DType::kComplex128: return Complex<double>(ctx, p);
    default: return Unimplemented("no matrix product of ", DTypeName(dtype));
  }
}

}  // namespace millrace
