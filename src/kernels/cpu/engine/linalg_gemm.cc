// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/engine/linalg_gemm.h"

#include <dnnl.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"

#include "kernels/cpu/engine/index_arithmetic.h"
#include "kernels/cpu/engine/linalg_small_simd.h"
#include "kernels/cpu/engine/linalg_thin_simd.h"
#include "kernels/cpu/engine/onednn_scope.h"
#include "kernels/cpu/engine/strided_block.h"
#include "tensor/prepared.h"

// oneDNN exports this product, and tests it, but declares it in no public header; weak, in case one does not have it.
extern "C" __attribute__((weak)) dnnl_status_t dnnl_gemm_bf16bf16f32(
    char transa, char transb, dnnl_dim_t m, dnnl_dim_t n, dnnl_dim_t k, float alpha, const uint16_t* a, dnnl_dim_t lda,
    const uint16_t* b, dnnl_dim_t ldb, float beta, float* c, dnnl_dim_t ldc);

// Likewise: products whose right factor was packed before. Transposed factors are packed wrongly by some versions.
namespace dnnl::impl::cpu {
__attribute__((weak)) dnnl_status_t sgemm_pack_get_size(
    const char* identifier, const char* transa, const char* transb, const dnnl_dim_t* m, const dnnl_dim_t* n,
    const dnnl_dim_t* k, const dnnl_dim_t* lda, const dnnl_dim_t* ldb, size_t* size, bool* pack);
__attribute__((weak)) dnnl_status_t
sgemm_pack(const char* identifier, const char* transa, const char* transb, const dnnl_dim_t* m, const dnnl_dim_t* n,
           const dnnl_dim_t* k, const dnnl_dim_t* lda, const dnnl_dim_t* ldb, const float* src, float* dst);
__attribute__((weak)) dnnl_status_t sgemm_compute(
    const char* transa, const char* transb, const dnnl_dim_t* m, const dnnl_dim_t* n, const dnnl_dim_t* k,
    const float* a, const dnnl_dim_t* lda, const float* b, const dnnl_dim_t* ldb, const float* beta, float* c,
    const dnnl_dim_t* ldc);
}  // namespace dnnl::impl::cpu

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

// Rows of a transposed right factor that are a multiple of a KB apart share few sets of the cache, and oneDNN reads it
// by columns: copying the factor then takes as long as half of the product. Turned here first, by squares. False where
// that is of no use, or there is no memory for it.
bool TurnedFloatGemm(GemmArgs g) {
  constexpr int64_t kApart = 256, kLeast = 16, kLeastSum = 128;
  if (!g.transpose_b || g.ldb % kApart != 0 || g.m < 2 || g.n < kLeast || g.k < kLeastSum) return false;
  const int64_t ld = g.n % kApart == 0 ? g.n + kLeast : g.n;
  auto memory = AllocateBuffer(HostAllocator(), static_cast<size_t>(g.k * ld) * sizeof(float));
  if (!memory.ok()) return false;
  constexpr int64_t kSize = sizeof(float);
  strided::Block block;
  block.rows = g.k;
  block.dst_row = ld * kSize;
  block.src_row = kSize;
  block.n = g.n;
  block.dst_stride = kSize;
  block.src_stride = g.ldb * kSize;
  strided::TransposeFunction(kSize)(static_cast<char*>((*memory)->data()), static_cast<const char*>(g.b), block);
  g.b = (*memory)->data();
  g.ldb = ld;
  g.transpose_b = false;
  return FloatGemm(g);
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

// What tile `tile` of a product computes.
GemmArgs TileOf(DType dtype, const GemmArgs& g, const GemmTiling& t, int64_t tile) {
  const int64_t row = tile / t.across * t.rows, column = tile % t.across * t.columns;
  GemmArgs part = g;
  part.m = std::min(t.rows, g.m - row);
  part.n = std::min(t.columns, g.n - column);
  part.a = At(g.a, dtype, g.transpose_a ? row : row * g.lda);
  part.b = At(g.b, dtype, g.transpose_b ? column * g.ldb : column);
  part.c = At(g.c, ResultType(dtype), row * g.ldc + column);
  return part;
}

void RunTile(DType dtype, const GemmArgs& g, const GemmTiling& t, int64_t tile) {
  SerialGemm(dtype, TileOf(dtype, g, t, tile));
}

void Finish(const GemmArgs& g, const GemmTiling& t, int64_t tile, const Epilogue& epilogue, float* finished) {
  const int64_t row = tile / t.across * t.rows, column = tile % t.across * t.columns;
  const float* const from = static_cast<const float*>(g.c) + row * g.ldc + column;
  ApplyEpilogue(
      epilogue, {from, g.ldc, row, std::min(t.rows, g.m - row), column, std::min(t.columns, g.n - column)}, finished);
}

bool IsTinyGemm(const GemmArgs& g) {
  constexpr int64_t kTiny = 256;
  return g.m * g.n <= kTiny && g.m * g.n * g.k <= kTiny;
}

// The right factor of a product in oneDNN's packed form, tile by tile, kept beside the input that it belongs to. Tiles
// must have the same number of rows, on which the form depends too. Sums are those of FloatGemm, bit for bit.
class PackedFactor {
 public:
  PackedFactor(const KernelContext* ctx, DType dtype, const GemmArgs& g, const GemmTiling& t) : g_(g), tiling_(t) {
    if (ctx == nullptr || g.b_value == nullptr || dtype != DType::kFloat || !MayPack(g, t)) return;
    const int64_t last = t.across - 1, last_columns = g.n - last * t.columns;
    size_t last_bytes = 0;
    if (!Measure(t.columns, &tile_bytes_) || !Measure(last_columns, &last_bytes)) return;
    const auto offset = static_cast<const char*>(g.b) - static_cast<const char*>(g.b_value->raw());
    const std::string form = absl::StrCat("right factor ", g.m, " ", g.n, " ", g.k, " ", g.ldb, " ", offset);
    const size_t bytes = tile_bytes_ * static_cast<size_t>(last) + last_bytes;
    kept_ = PreparedForms::Of(*g.b_value, form, bytes, ctx->device().allocator(), [&](void* to) {
      const onednn::OneThread one_thread;
      for (int64_t i = 0; i < t.across; ++i) {
        const int64_t n = i < last ? t.columns : last_columns;
        const float* const from = static_cast<const float*>(g.b) + i * t.columns;
        char* const tile = static_cast<char*>(to) + static_cast<size_t>(i) * tile_bytes_;
        if (dnnl::impl::cpu::sgemm_pack("A", "N", "N", &n, &t.rows, &g.k, &g.ldb, &g.lda, from,
                                        reinterpret_cast<float*>(tile)) != dnnl_success) {
          return Internal("oneDNN cannot pack a matrix");
        }
      }
      return absl::OkStatus();
    });
  }

  // False when tile `i` is left to RunTile.
  bool RunTile(int64_t i) const {
    if (!kept_) return false;
    const GemmArgs g = TileOf(DType::kFloat, g_, tiling_, i);
    const onednn::OneThread one_thread;
    const onednn::SignalsHeld signals_held(HasBorrowedStack(g));
    const float beta = g.mode == GemmMode::kSet ? 0.0f : 1.0f;
    const char* const tile =
        static_cast<const char*>(kept_->data()) + static_cast<size_t>(i % tiling_.across) * tile_bytes_;
    return dnnl::impl::cpu::sgemm_compute(
               "P", "N", &g.n, &g.m, &g.k, reinterpret_cast<const float*>(tile), &g.ldb, static_cast<const float*>(g.a),
               &g.lda, &beta, static_cast<float*>(g.c), &g.ldc) == dnnl_success;
  }

 private:
  static bool MayPack(const GemmArgs& g, const GemmTiling& t) {
    // With more rows the packing that is saved is little beside the product; with one it is read once as it is.
    constexpr int64_t kMostRows = 256;
    constexpr double kWorthALook = 1e6;  // multiplications and additions
    if (!dnnl::impl::cpu::sgemm_pack_get_size || !dnnl::impl::cpu::sgemm_pack || !dnnl::impl::cpu::sgemm_compute) {
      return false;
    }
    if (g.transpose_a || g.transpose_b || g.mode == GemmMode::kSubtract || g.m % t.rows != 0) return false;
    const double work = 2.0 * static_cast<double>(g.m) * static_cast<double>(g.n) * static_cast<double>(g.k);
    return g.m <= kMostRows && work >= kWorthALook;
  }

  // The bytes of a packed tile; false for products that are not oneDNN's, or that it computes as fast without.
  bool Measure(int64_t n, size_t* bytes) const {
    constexpr int64_t kLeastRows = 2, kLeastColumns = 16;  // fewer are a product by a vector
    GemmArgs tile = g_;
    tile.m = tiling_.rows;
    tile.n = n;
    if (tile.m < kLeastRows || n < kLeastColumns || IsTinyGemm(tile) || IsSmallGemm(DType::kFloat, tile)) return false;
    const onednn::OneThread one_thread;
    bool pays = false;
    if (dnnl::impl::cpu::sgemm_pack_get_size("A", "N", "N", &n, &tile.m, &g_.k, &g_.ldb, &g_.lda, bytes, &pays) !=
        dnnl_success) {
      return false;
    }
    *bytes = (*bytes + 63) / 64 * 64;
    return pays;
  }

  const GemmArgs& g_;
  const GemmTiling& tiling_;
  size_t tile_bytes_ = 0;
  RefPtr<Buffer> kept_;
};

// A product whose sums are long: parts of them, as many as the shape says, are made side by side and then added up.
// False where there is no memory for that.
bool SplitSums(const KernelContext* ctx, DType dtype, const GemmArgs& g) {
  constexpr int64_t kLeast = 4096, kLonger = 8, kPart = 1024, kMostParts = 16, kMostNumbers = 1 << 16;
  if (g.k < kLeast || g.k / kLonger < std::max(g.m, g.n) || g.m * g.n > kMostNumbers) return false;
  if (dtype == DType::kBFloat16) return false;
  const bool thin = IsThinSum(dtype, g);
  const int64_t parts = std::min(kMostParts, g.k / kPart), part = RoundUp(CeilDiv(g.k, parts), 8), numbers = g.m * g.n;
  auto memory = AllocateBuffer(HostAllocator(), static_cast<size_t>(parts * numbers) * DTypeSize(dtype));
  if (!memory.ok()) return false;
  const auto run = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      GemmArgs one = g;
      const int64_t first = i * part;
      one.k = std::clamp<int64_t>(g.k - first, 0, part);
      one.a = At(g.a, dtype, g.transpose_a ? first * g.lda : first);
      one.b = At(g.b, dtype, g.transpose_b ? first : first * g.ldb);
      one.c = At((*memory)->data(), dtype, i * numbers);
      one.ldc = g.n;
      one.mode = GemmMode::kSet;
      thin ? ThinGemm(dtype, one) : SerialGemm(dtype, one);
    }
  };
  const double flops = 2.0 * static_cast<double>(numbers) * static_cast<double>(part);
  if (ctx) {
    ctx->ParallelFor(parts, 200 + flops * (dtype == DType::kFloat ? 0.02 : 0.03), run);
  } else {
    run(0, parts);
  }
  VisitTypes<float, double, int32_t, int64_t>(dtype, [&]<typename T>() {
    using Sum = std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>, std::type_identity<T>>::type;
    const Sum* const sums = static_cast<const Sum*>((*memory)->data());
    for (int64_t row = 0; row < g.m; ++row) {
      Sum* const c = static_cast<Sum*>(g.c) + row * g.ldc;
      for (int64_t column = 0; column < g.n; ++column) {
        Sum sum = 0;
        for (int64_t i = 0; i < parts; ++i) sum += sums[i * numbers + row * g.n + column];
        c[column] = g.mode == GemmMode::kSet ? sum : g.mode == GemmMode::kAdd ? c[column] + sum : c[column] - sum;
      }
    }
  });
  return true;
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
  if (m == 1) {  // the matrix is read from memory: long stretches of its rows
    t.columns = std::min<int64_t>(n, 2048);
    t.down = 1;
    t.across = CeilDiv(n, t.columns);
    t.flops = 2.0 * static_cast<double>(t.columns) * static_cast<double>(k);
    if (t.flops < kMostOfATile) return t;
  }
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
  if (IsSmallGemm(dtype, g)) return SmallGemm(dtype, g);
  if (IsThinGemm(dtype, g)) return ThinGemm(dtype, g);
  if (IsTinyGemm(g)) {
    switch (dtype) {
      case DType::kFloat: return TinyGemm<float>(g);
      case DType::kDouble: return TinyGemm<double>(g);
      case DType::kInt32: return TinyGemm<uint32_t>(g);
      default: return TinyGemm<uint64_t>(g);
    }
  }
  if (dtype != DType::kFloat) return TiledGemm(dtype, g);
  if (!TurnedFloatGemm(g) && !FloatGemm(g)) PlainFloatGemm(g);
}

void BatchGemm(const KernelContext* ctx, DType dtype, const GemmBatch& batch) {
  const GemmArgs& g = batch.args;
  if (batch.count == 0 || g.m == 0 || g.n == 0) return;
  if (batch.count == 1 && !batch.a_index && !batch.b_index) return Gemm(ctx, dtype, g);
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

void Gemm(const KernelContext* ctx, DType dtype, const GemmArgs& args, const Epilogue* epilogue, float* finished) {
  if (args.m == 0 || args.n == 0) return;
  if (epilogue == nullptr && SplitSums(ctx, dtype, args)) return;
  const GemmTiling tiling = TileGemm(args.m, args.n, args.k);
  const int64_t tiles = tiling.down * tiling.across;
  const PackedFactor packed(ctx, dtype, args, tiling);
  auto run = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if (!packed.RunTile(i)) RunTile(dtype, args, tiling, i);
      if (epilogue != nullptr) Finish(args, tiling, i, *epilogue, finished);
    }
  };
  if (!ctx || tiles == 1) return run(0, tiles);
  ctx->ParallelFor(tiles, 200 + tiling.flops * (dtype == DType::kFloat ? 0.008 : 0.03), run);
}

}  // namespace millrace
