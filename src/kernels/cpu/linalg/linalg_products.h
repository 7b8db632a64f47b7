// SPDX-License-Identifier: Apache-2.0
// Products of stacks of matrices of any number type, from those that linalg_gemm.h has: 16-bit types are widened first,
// and a complex product is four real ones.
#pragma once

#include "kernel/kernel.h"
#include "kernels/cpu/engine/epilogue.h"

namespace millrace {

// result[i] = op(x[x_index[i]]) op(y[y_index[i]]); matrices lie one after another. Null index: 0, 1, 2, ...
struct Products {
  const void* x = nullptr;
  const void* y = nullptr;
  void* result = nullptr;
  int64_t x_count = 1, y_count = 1, count = 1;  // matrices in each
  const int64_t* x_index = nullptr;
  const int64_t* y_index = nullptr;
  int64_t m = 0, n = 0, k = 0;  // op(x) is m x k, op(y) k x n
  bool transpose_x = false, transpose_y = false;
  bool conjugate_x = false, conjugate_y = false;
  const Tensor* y_value = nullptr;  // the input that y is, if it is one: see GemmArgs
};

// f16 bf16 f32 f64 i16 i32 i64 c64 c128.
Status MultiplyMatrices(KernelContext& ctx, DType dtype, const Products& p);

// One product of f32, finished by the epilogue into `finished`, which may be the result.
void MultiplyFloats(KernelContext& ctx, const Products& p, const Epilogue& epilogue, float* finished);

}  // namespace millrace
