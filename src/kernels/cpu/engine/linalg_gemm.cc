// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/engine/linalg_gemm.h"

#include <dnnl.h>

#include <algorithm>
#include <cstring>

#include "kernels/cpu/engine/linalg_small_simd.h"
#include "kernels/cpu/engine/onednn_scope.h"

// oneDNN exports this product, and tests it, but declares it in no public header; weak, in case one does not have it.
extern "C" __attribute__((weak)) dnnl_status_t dnnl_gemm_bf16bf16f32(
    char transa, char transb, dnnl_dim_t m, dnnl_dim_t n, dnnl_dim_t k, float alpha, const uint16_t* a, dnnl_dim_t lda,
    const uint16_t* b, dnnl_dim_t ldb, float beta, float* c, dnnl_dim_t ldc);

namespace millrace {
namespace {

// Above this inner dimension a product may run with its stack on the heap: 32 is the smallest limit in oneDNN's
// sources; with 2.6 on AVX-512 it was seen from 96 on.
bool HasBorrowedStack(const GemmArgs& g) { return g.k > 32; }

bool FloatGemm(const GemmArgs& g) {
  const onednn::OneThread one_thread;
  const onednn::SignalsHeld signals_held(HasBorrowedStack(g));
  const float alpha = g.mode == GemmMode::kSubtract ? -1.0f : 1.0f;
  const float beta = g.mode == GemmMode::kSet ? 0.0f : 1.0f;
  return dnnl_sgemm(
             g.transpose_a ? 'T' : 'N', g.transpose_b ? 'T' : 'N', g.m, g.n, g.k, alpha, static_cast<const float*>(g.a),
             std::max<int64_t>(g.lda, 1), static_cast<const float*>(g.b), std::max<int64_t>(g.ldb, 1), beta,
             static_cast<float*>(g.c), std::max<int64_t>(g.ldc, 1)) == dnnl_success;
}

bool BFloat16Gemm(const GemmArgs& g) {
  const onednn::OneThread one_thread;
  const onednn::SignalsHeld signals_held(HasBorrowedStack(g));
  const float alpha = g.mode == GemmMode::kSubtract ? -1.0f : 1.0f;
  const float beta = g.mode == GemmMode::kSet ? 0.0f : 1.0f;
  return dnnl_gemm_bf16bf16f32(
             g.transpose_a ? 'T' : 'N', g.transpose_b ? 'T' : 'N', g.m, g.n, g.k, alpha,
             static_cast<const uint16_t*>(g.a), std::max<int64_t>(g.lda, 1), static_cast<const uint16_t*>(g.b),
             std::max<int64_t>(g.ldb, 1), beta, static_cast<float*>(g.c), std::max<int64_t>(g.ldc, 1)) == dnnl_success;
}

// For a oneDNN that refuses, which it does for no valid argument.
void PlainFloatGemm(const GemmArgs& g) {
  const float* a = static_cast<const float*>(g.a);
  const float* b = static_cast<const float*>(g.b);
  float* c = static_cast<float*>(g.c);
  for (int64_t i = 0; i < g.m; ++i) {
    for (int64_t j = 0; j < g.n; ++j) {
      double sum = 0;
      for (int64_t p = 0; p < g.k; ++p) {
        sum += static_cast<double>(a[g.transpose_a ? p * g.lda + i : i * g.lda + p]) *
               static_cast<double>(b[g.transpose_b ? j * g.ldb + p : p * g.ldb + j]);
      }
      float& out = c[i * g.ldc + j];
      const float v = static_cast<float>(sum);
      out = g.mode == GemmMode::kSet ? v : g.mode == GemmMode::kAdd ? out + v : out - v;
    }
  }
}

// Products too small for the cost of a call into a library.
template <typename T>
void TinyGemm(const GemmArgs& g) {
  const T* a = static_cast<const T*>(g.a);
  const T* b = static_cast<const T*>(g.b);
  const int64_t a_row = g.transpose_a ? 1 : g.lda, a_step = g.transpose_a ? g.lda : 1;
  const int64_t b_column = g.transpose_b ? g.ldb : 1, b_step = g.transpose_b ? 1 : g.ldb;
  for (int64_t i = 0; i < g.m; ++i, a += a_row) {
    T* c = static_cast<T*>(g.c) + i * g.ldc;
    for (int64_t j = 0; j < g.n; ++j) {
      T sum = 0;
      for (int64_t p = 0; p < g.k; ++p) sum += a[p * a_step] * b[p * b_step + j * b_column];
      c[j] = g.mode == GemmMode::kSet ? sum : g.mode == GemmMode::kAdd ? c[j] + sum : c[j] - sum;
    }
  }
}

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t RoundUp(int64_t a, int64_t unit) { return CeilDiv(a, unit) * unit; }

const void* At(const void* p, DType dtype, int64_t i) {
  return static_cast<const char*>(p) + i * static_cast<int64_t>(DTypeSize(dtype));
}
void* At(void* p, DType dtype, int64_t i) { return static_cast<char*>(p) + i * static_cast<int64_t>(DTypeSize(dtype)); }

DType ResultType(DType dtype) { return dtype == DType::kBFloat16 ? DType::kFloat : dtype; }

void RunTile(DType dtype, const GemmArgs& g, const GemmTiling& t, int64_t tile) {
  const int64_t row = tile / t.across * t.rows, column = tile % t.across * t.columns;
  GemmArgs part = g;
  part.m = std::min(t.rows, g.m - row);
  part.n = std::min(t.columns, g.n - column);
  part.a = At(g.a, dtype, g.transpose_a ? row : row * g.lda);
  part.b = At(g.b, dtype, g.transpose_b ? column * g.ldb : column);
  part.c = At(g.c, ResultType(dtype), row * g.ldc + column);
  SerialGemm(dtype, part);
}

}  // namespace

GemmTiling TileGemm(int64_t m, int64_t n, int64_t k) {
  // Tiles of 1e8 would occupy more threads, but cost two threads 13 % of a product of 2048 x 2048 x 2048.
  constexpr double kWorthATile = 3e6, kGoodTile = 1e9;
  constexpr double kMostOfATile = 3e9;  // a step that is to stop waits for its tiles
  const double total = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  const double wanted = std::clamp(total / kGoodTile, 8.0, 256.0);
  GemmTiling t;
  t.rows = std::min<int64_t>(m, 512);
  t.columns = std::min<int64_t>(n, 1024);
  for (;;) {
    t.down = CeilDiv(m, t.rows);
    t.across = CeilDiv(n, t.columns);
    t.flops = 2.0 * static_cast<double>(t.rows) * static_cast<double>(t.columns) * static_cast<double>(k);
    const bool enough = static_cast<double>(t.down) * static_cast<double>(t.across) >= wanted;
    if ((enough && t.flops < kMostOfATile) || t.flops < 2 * kWorthATile) return t;
    if (t.rows >= t.columns && t.rows > 16) {
      t.rows = RoundUp(CeilDiv(t.rows, 2), 8);
    } else if (t.columns > 96) {
      t.columns = RoundUp(CeilDiv(t.columns, 2), 48);
    } else {
      return t;
    }
  }
}

bool HasBFloat16Gemm() {
  static const bool has = [] {
    if (!dnnl_gemm_bf16bf16f32) return false;
    const BFloat16 two(2.0f);
    float four = 0;
    GemmArgs g;
    g.m = g.n = g.k = g.lda = g.ldb = g.ldc = 1;
    g.a = g.b = &two;
    g.c = &four;
    return BFloat16Gemm(g) && four == 4.0f;
  }();
  return has;
}

void SerialGemm(DType dtype, const GemmArgs& g) {
  if (g.m == 0 || g.n == 0) return;
  if (g.k == 0) {
    if (g.mode != GemmMode::kSet) return;
    for (int64_t i = 0; i < g.m; ++i) {
      std::memset(At(g.c, ResultType(dtype), i * g.ldc), 0, static_cast<size_t>(g.n) * DTypeSize(ResultType(dtype)));
    }
    return;
  }
  if (dtype == DType::kBFloat16) {
    (void)BFloat16Gemm(g);  // HasBFloat16Gemm has seen it work
    return;
  }
  constexpr int64_t kTiny = 256;
  if (g.m * g.n <= kTiny && g.m * g.n * g.k <= kTiny) {
    switch (dtype) {
      case DType::kFloat: return TinyGemm<float>(g);
      case DType::kDouble: return TinyGemm<double>(g);
      case DType::kInt32: return TinyGemm<uint32_t>(g);
      default: return TinyGemm<uint64_t>(g);
    }
  }
  if (dtype != DType::kFloat) return TiledGemm(dtype, g);
  if (IsSmallGemm(g)) return SmallGemm(g);
  if (!FloatGemm(g)) PlainFloatGemm(g);
}

void BatchGemm(const KernelContext* ctx, DType dtype, const GemmBatch& batch) {
  const GemmArgs& g = batch.args;
  if (batch.count == 0 || g.m == 0 || g.n == 0) return;
  const GemmTiling tiling = TileGemm(g.m, g.n, g.k);
  const int64_t tiles = tiling.down * tiling.across;
  auto run = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t product = i / tiles;
      GemmArgs one = g;
      one.a = At(g.a, dtype, (batch.a_index ? batch.a_index[product] : product) * batch.a_size);
      one.b = At(g.b, dtype, (batch.b_index ? batch.b_index[product] : product) * batch.b_size);
      one.c = At(g.c, ResultType(dtype), product * g.m * g.n);
      RunTile(dtype, one, tiling, i % tiles);
    }
  };
  const int64_t units = batch.count * tiles;
  if (!ctx || units == 1) return run(0, units);
  const double nanos_per_flop = dtype == DType::kFloat ? 0.008 : 0.03;
  ctx->ParallelFor(units, 200 + tiling.flops * nanos_per_flop, run);
}

void Gemm(const KernelContext* ctx, DType dtype, const GemmArgs& args) {
  if (args.m == 0 || args.n == 0) return;
  const GemmTiling tiling = TileGemm(args.m, args.n, args.k);
  const int64_t tiles = tiling.down * tiling.across;
  auto run = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) RunTile(dtype, args, tiling, i);
  };
  if (!ctx || tiles == 1) return run(0, tiles);
  ctx->ParallelFor(tiles, 200 + tiling.flops * (dtype == DType::kFloat ? 0.008 : 0.03), run);
}

}  // namespace millrace
