// SPDX-License-Identifier: Apache-2.0
#include "absl/strings/str_join.h"
#include "kernels/cpu/engine/elementwise_convert.h"
#include "kernels/cpu/rnn/rnn.h"

namespace millrace {

StatusOr<const float*> FloatInput(KernelContext& ctx, int i, Tensor* keep) {
  const Tensor& t = ctx.input(i);
  if (t.dtype() == DType::kFloat) return t.data<float>();
  MR_ASSIGN_OR_RETURN(*keep, ctx.AllocateTemp(DType::kFloat, t.shape()));
  WidenToFloat(t.dtype(), t.raw(), keep->mutable_data<float>(), t.num_elements());
  return keep->data<float>();
}

Status FloatOutput::Allocate(KernelContext& ctx, int o, const Shape& shape) {
  MR_ASSIGN_OR_RETURN(out_, ctx.AllocateOutput(o, shape));
  if (out_->dtype() == DType::kFloat) return absl::OkStatus();
  MR_ASSIGN_OR_RETURN(staged_, ctx.AllocateTemp(DType::kFloat, shape));
  return absl::OkStatus();
}

void FloatOutput::Finish() {
  if (!staged_.IsInitialized()) return;
  NarrowFromFloat(out_->dtype(), staged_.data<float>(), out_->mutable_raw(), out_->num_elements());
}

namespace {

GemmArgs Args(Matrix a, Matrix b, int64_t m, int64_t n, int64_t k, float* c, int64_t ldc, GemmMode mode) {
  GemmArgs g;
  g.m = m;
  g.n = n;
  g.k = k;
  g.a = a.data;
  g.lda = a.stride;
  g.b = b.data;
  g.ldb = b.stride;
  g.b_value = b.value;
  g.c = c;
  g.ldc = ldc;
  g.mode = mode;
  return g;
}

}  // namespace

void Multiply(const KernelContext& ctx, Matrix a, Matrix b, int64_t m, int64_t n, int64_t k, float* c, int64_t ldc,
              GemmMode mode) {
  Gemm(&ctx, DType::kFloat, Args(a, b, m, n, k, c, ldc, mode));
}

void MultiplyTransposedB(const KernelContext& ctx, Matrix a, Matrix b, int64_t m, int64_t n, int64_t k, float* c,
                         int64_t ldc, GemmMode mode) {
  GemmArgs g = Args(a, b, m, n, k, c, ldc, mode);
  g.transpose_b = true;
  Gemm(&ctx, DType::kFloat, g);
}

void MultiplyTransposedA(const KernelContext& ctx, Matrix a, Matrix b, int64_t m, int64_t n, int64_t k, float* c,
                         int64_t ldc, GemmMode mode) {
  GemmArgs g = Args(a, b, m, n, k, c, ldc, mode);
  g.transpose_a = true;
  Gemm(&ctx, DType::kFloat, g);
}

Status CheckRnnSize(int64_t inputs, int64_t units) {
  constexpr int64_t kMax = int64_t{1} << 40;
  if (inputs <= kMax && units <= kMax) return absl::OkStatus();
  return InvalidArgument("a cell of ", units, " units for ", inputs, " inputs is larger than ", kMax);
}

Status WantDims(const KernelContext& ctx, int i, std::initializer_list<int64_t> dims) {
  const Shape& got = ctx.input(i).shape();
  if (got.dims() == absl::Span<const int64_t>(dims.begin(), dims.size())) return absl::OkStatus();
  std::string name = absl::StrCat(i);
  const std::vector<ArgDef>& args = ctx.node().op->inputs;  // none of the family has lists
  if (static_cast<size_t>(i) < args.size()) name = args[static_cast<size_t>(i)].name;
  return InvalidArgument("input '", name, "' has shape ", got.ToString(), ", want [", absl::StrJoin(dims, ","), "]");
}

void RegisterRnnKernels(KernelRegistry& registry) {
  RegisterLstmKernels(registry);
  RegisterGruKernels(registry);
}

}  // namespace millrace
