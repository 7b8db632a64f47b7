// SPDX-License-Identifier: Apache-2.0
// The parts of the recurrent family, and what they share: matrices of float that stand for inputs and outputs which may
// be half (widened when read, narrowed when stored).
#pragma once

#include "kernels/cpu/engine/linalg_gemm.h"
#include "kernels/cpu/kernel_list.h"

namespace millrace {

void RegisterLstmKernels(KernelRegistry& registry);
void RegisterGruKernels(KernelRegistry& registry);

// Input i as floats: its own memory, or a widened copy that `*keep` holds.
StatusOr<const float*> FloatInput(KernelContext& ctx, int i, Tensor* keep);

// Where to compute output o as floats: its own memory, or memory to narrow from.
class FloatOutput {
 public:
  Status Allocate(KernelContext& ctx, int o, const Shape& shape);
  float* data() { return staged_.IsInitialized() ? staged_.mutable_data<float>() : out_->mutable_data<float>(); }
  int64_t size() const { return out_->num_elements(); }
  void Finish();

 private:
  Tensor* out_ = nullptr;
  Tensor staged_;
};

// c [m, n] = (or +=) a [m, k] op(b); rows of a, b and c lie lda, ldb and ldc apart. `value` is the input that b is a
// part of, if it is one as it stands (GemmArgs).
struct Matrix {
  const float* data;
  int64_t stride;
  const Tensor* value = nullptr;
};
void Multiply(const KernelContext& ctx, Matrix a, Matrix b, int64_t m, int64_t n, int64_t k, float* c, int64_t ldc,
              GemmMode mode);
void MultiplyTransposedB(const KernelContext& ctx, Matrix a, Matrix b, int64_t m, int64_t n, int64_t k, float* c,
                         int64_t ldc, GemmMode mode);
void MultiplyTransposedA(const KernelContext& ctx, Matrix a, Matrix b, int64_t m, int64_t n, int64_t k, float* c,
                         int64_t ldc, GemmMode mode);

// InvalidArgument for sizes whose sums and small multiples could overflow.
Status CheckRnnSize(int64_t inputs, int64_t units);
// InvalidArgument unless input i has just these dimensions.
Status WantDims(const KernelContext& ctx, int i, std::initializer_list<int64_t> dims);

}  // namespace millrace
