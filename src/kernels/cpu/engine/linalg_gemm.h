// SPDX-License-Identifier: Apache-2.0
// Products of row-major matrices: C = op(A) op(B), added to or subtracted from C where asked.
//
// How a product is cut into tiles depends on its shape only, so results do not depend on the number of threads.
#pragma once

#include <cstdint>

#include "kernel/kernel.h"
#include "kernels/cpu/engine/epilogue.h"

namespace millrace {

enum class GemmMode : uint8_t { kSet, kAdd, kSubtract };

// op(A) is m x k, op(B) k x n; `lda` is the distance of A's rows in memory, in elements, before the transposition.
struct GemmArgs {
  int64_t m = 0, n = 0, k = 0;
  const void* a = nullptr;
  int64_t lda = 0;
  bool transpose_a = false;
  const void* b = nullptr;
  int64_t ldb = 0;
  bool transpose_b = false;
  void* c = nullptr;
  int64_t ldc = 0;
  GemmMode mode = GemmMode::kSet;
  // The input that `b` points into, if it is one as it stands: a packed form of B may be kept beside it.
  const Tensor* b_value = nullptr;
};

// Whether bfloat16 is one of the types below; its results are float.
bool HasBFloat16Gemm();

// float, double, int32, int64 and perhaps bfloat16, on the calling thread.
void SerialGemm(DType dtype, const GemmArgs& args);

// The same on the threads of `ctx` (null: this one). Of float products that are not added to C: each tile, when it is
// there, is finished by the epilogue (null: none) into `finished`, whose rows are not padded; its channels are the
// columns.
void Gemm(const KernelContext* ctx, DType dtype, const GemmArgs& args, const Epilogue* epilogue = nullptr,
          float* finished = nullptr);

// `count` products of the same shape; product i takes matrix a_index[i] of A (at a_index[i] * a_size elements),
// likewise of B, into the i-th m * n elements of C, whose rows are not padded.
struct GemmBatch {
  GemmArgs args;
  int64_t count = 1;
  int64_t a_size = 0, b_size = 0;
  const int64_t* a_index = nullptr;  // null: 0, 1, 2, ...
  const int64_t* b_index = nullptr;
};
void BatchGemm(const KernelContext* ctx, DType dtype, const GemmBatch& batch);

// How a product is cut: into tiles of at most 512 x 1024, and smaller ones while there are few of them for the work and
// each is still worth a thread. Units are those of the inner kernels, so that a cut costs them nothing.
struct GemmTiling {
  int64_t rows = 0, columns = 0;  // of a tile
  int64_t down = 0, across = 0;   // number of tiles
  double flops = 0;               // per tile
};
GemmTiling TileGemm(int64_t m, int64_t n, int64_t k);

// Not float: double, int32, int64 (linalg_tiles_gemm.cc).
void TiledGemm(DType dtype, const GemmArgs& args);

}  // namespace millrace
