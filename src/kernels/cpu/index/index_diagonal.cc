// SPDX-License-Identifier: Apache-2.0
// Diag, DiagPart, MatrixDiag, MatrixDiagPart, MatrixSetDiag, MatrixBandPart: strided copies by element size.
#include <algorithm>
#include <cstring>

#include "base/checked.h"
#include "kernels/cpu/engine/index_rows.h"
#include "kernels/cpu/index/index_kernels.h"

namespace millrace {
namespace {

Status Diag(KernelContext& ctx) {
  const Tensor& in = ctx.input(0);
  if (in.rank() < 1) return InvalidArgument("diagonal must have at least one dimension, got a scalar");
  MR_ASSIGN_OR_RETURN(Shape shape, in.shape().Concatenate(in.shape()));
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  const int64_t n = in.num_elements();
  ZeroElements(out->dtype(), out->mutable_raw(), 0, out->num_elements());
  RunCopier(in.dtype(), 1).Copy(out->mutable_raw(), 0, n + 1, in.raw(), 0, 1, n);
  return absl::OkStatus();
}

Status DiagPart(KernelContext& ctx) {
  const Tensor& in = ctx.input(0);
  const int half = in.rank() / 2;
  bool fits = in.rank() % 2 == 0;  // a scalar is its own diagonal
  for (int i = 0; fits && i < half; ++i) fits = in.dim(i) == in.dim(half + i);
  if (!fits) {
    return InvalidArgument(
        "the second half of the dimensions must repeat the first, got shape ", in.shape().ToString());
  }
  MR_ASSIGN_OR_RETURN(Shape shape, Shape::Make(DimsOf(in.shape(), 0, half)));
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  const int64_t n = shape.num_elements();
  RunCopier(in.dtype(), 1).Copy(out->mutable_raw(), 0, 1, in.raw(), 0, n + 1, n);
  return absl::OkStatus();
}

Status MatrixDiag(KernelContext& ctx) {
  const Tensor& in = ctx.input(0);
  if (in.rank() < 1) return InvalidArgument("input must be at least 1-dim, received shape: []");
  const int64_t n = in.dim(in.rank() - 1);
  MR_ASSIGN_OR_RETURN(Shape shape, in.shape().WithInserted(in.rank(), n));
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  if (shape.num_elements() == 0) return absl::OkStatus();
  const RunCopier copier(in.dtype(), 1);
  ctx.ParallelFor(in.num_elements() / n, static_cast<double>(n * n) * 0.5, [&](int64_t begin, int64_t end) {
    ZeroElements(out->dtype(), out->mutable_raw(), begin * n * n, (end - begin) * n * n);
    for (int64_t i = begin; i < end; ++i) copier.Copy(out->mutable_raw(), i * n * n, n + 1, in.raw(), i * n, 1, n);
  });
  return absl::OkStatus();
}

struct Matrices {
  int64_t count = 0, rows = 0, cols = 0;
  int64_t diagonal() const { return std::min(rows, cols); }
};
Status MatricesOf(const Tensor& t, Matrices* m) {
  if (t.rank() < 2) return InvalidArgument("input must be at least 2-dim, received shape: ", t.shape().ToString());
  m->rows = t.dim(t.rank() - 2);
  m->cols = t.dim(t.rank() - 1);
  m->count = DimProduct(t.shape(), 0, t.rank() - 2);
  return absl::OkStatus();
}
StatusOr<Shape> DiagonalShape(const Tensor& t, const Matrices& m) {
  std::vector<int64_t> dims = DimsOf(t.shape(), 0, t.rank() - 2);
  dims.push_back(m.diagonal());
  return Shape::Make(dims);
}

Status MatrixDiagPart(KernelContext& ctx) {
  const Tensor& in = ctx.input(0);
  Matrices m;
  MR_RETURN_IF_ERROR(MatricesOf(in, &m));
  MR_ASSIGN_OR_RETURN(Shape shape, DiagonalShape(in, m));
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  if (shape.num_elements() == 0) return absl::OkStatus();
  const int64_t n = m.diagonal();
  const RunCopier copier(in.dtype(), 1);
  ctx.ParallelFor(m.count, static_cast<double>(n) * 2, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      copier.Copy(out->mutable_raw(), i * n, 1, in.raw(), i * m.rows * m.cols, m.cols + 1, n);
    }
  });
  return absl::OkStatus();
}

// Input 0 as an output that may be written.
StatusOr<Tensor> Writable(KernelContext& ctx) {
  Tensor out = ctx.TakeInput(0);
  if (out.IsInitialized()) return out;
  const Tensor& in = ctx.input(0);
  if (!IsPlain(in.dtype())) return in.Clone(ctx.device().allocator());
  MR_ASSIGN_OR_RETURN(out, ctx.AllocateTemp(in.dtype(), in.shape()));
  constexpr double kNanosPerByte = 0.1;
  const auto size = static_cast<int64_t>(DTypeSize(in.dtype()));
  ctx.ParallelFor(in.num_elements(), kNanosPerByte * static_cast<double>(size), [&](int64_t begin, int64_t end) {
    std::memcpy(static_cast<char*>(out.mutable_raw()) + begin * size, static_cast<const char*>(in.raw()) + begin * size,
                static_cast<size_t>((end - begin) * size));
  });
  return out;
}

Status MatrixSetDiag(KernelContext& ctx) {
  Matrices m;
  MR_RETURN_IF_ERROR(MatricesOf(ctx.input(0), &m));
  MR_ASSIGN_OR_RETURN(Shape want, DiagonalShape(ctx.input(0), m));
  const Tensor& diagonal = ctx.input(1);
  if (!(diagonal.shape() == want)) {
    return InvalidArgument("diagonal must have shape ", want.ToString(), " for input of shape ",
                           ctx.input(0).shape().ToString(), ", got ", diagonal.shape().ToString());
  }
  MR_ASSIGN_OR_RETURN(Tensor out, Writable(ctx));
  const int64_t n = m.diagonal();
  const RunCopier copier(out.dtype(), 1);
  if (n > 0) {
    for (int64_t i = 0; i < m.count; ++i) {
      copier.Copy(out.mutable_raw(), i * m.rows * m.cols, m.cols + 1, diagonal.raw(), i * n, 1, n);
    }
  }
  ctx.set_output(0, std::move(out));
  return absl::OkStatus();
}

StatusOr<int64_t> BandWidth(const Tensor& t, absl::string_view name, int64_t size) {
  MR_RETURN_IF_ERROR(RequireScalar(name, t));
  MR_ASSIGN_OR_RETURN(int64_t v, t.IntScalar());
  if (v > size) return InvalidArgument(name, " = ", v, " must be negative or at most ", size);
  return v < 0 ? size : v;
}

Status MatrixBandPart(KernelContext& ctx) {
  Matrices m;
  MR_RETURN_IF_ERROR(MatricesOf(ctx.input(0), &m));
  MR_ASSIGN_OR_RETURN(int64_t lower, BandWidth(ctx.input(1), "num_lower", m.rows));
  MR_ASSIGN_OR_RETURN(int64_t upper, BandWidth(ctx.input(2), "num_upper", m.cols));
  Tensor out = ctx.TakeInput(0);
  const Tensor& in = ctx.input(0);
  const bool copies = !out.IsInitialized();
  if (copies) {
    MR_ASSIGN_OR_RETURN(out, ctx.AllocateTemp(in.dtype(), in.shape()));
  }
  const DType dtype = out.dtype();
  void* p = out.mutable_raw();
  const RunCopier copier(dtype, 1);
  if (out.num_elements() > 0) {
    ctx.ParallelFor(m.count * m.rows, static_cast<double>(m.cols) * 0.3, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const int64_t row = r % m.rows, at = r * m.cols;
        const int64_t lo = std::clamp<int64_t>(row - lower, 0, m.cols);
        const int64_t hi = std::clamp<int64_t>(row + upper + 1, lo, m.cols);
        ZeroElements(dtype, p, at, lo);
        if (copies) copier.Copy(p, at + lo, 1, in.raw(), at + lo, 1, hi - lo);
        ZeroElements(dtype, p, at + hi, m.cols - hi);
      }
    });
  }
  ctx.set_output(0, std::move(out));
  return absl::OkStatus();
}

}  // namespace

void RegisterDiagonalKernels(KernelRegistry& r) {
  r.AddFn({.op = "Diag"}, Diag);
  r.AddFn({.op = "DiagPart"}, DiagPart);
  const std::vector<DType> plain = Types("NUM|QNT|bool");
  for (const char* prefix : {"", "Batch"}) {
    const auto add = [&](absl::string_view op, KernelRegistry::Fn fn) {
      r.AddFn({.op = absl::StrCat(prefix, op), .types = {{"T", plain}}}, fn);
    };
    add("MatrixDiag", MatrixDiag);
    add("MatrixDiagPart", MatrixDiagPart);
    add("MatrixSetDiag", MatrixSetDiag);
    add("MatrixBandPart", MatrixBandPart);
  }
}

}  // namespace millrace
