// SPDX-License-Identifier: Apache-2.0
// MatrixDiagV2/V3, MatrixDiagPartV2/V3, MatrixSetDiagV2/V3: bands of diagonals.
//
// A band [lower, upper] of rows x cols matrices is kept compactly, one row for each diagonal from the upper one down,
// as long as the longest. A shorter diagonal stands at the left or the right of its row; what is left is padding.
#include <algorithm>

#include "kernels/cpu/engine/index_rows.h"
#include "kernels/cpu/index/index_kernels.h"

namespace millrace {
namespace {

struct Band {
  int64_t lower = 0, upper = 0;
  int64_t rows = 0, cols = 0;
  bool right_upper = false, right_lower = false;  // where short diagonals above and below the main one stand

  int64_t count() const { return upper - lower + 1; }
  // The longest diagonal is the one closest to the corner.
  int64_t Longest() const { return std::min(rows + std::min<int64_t>(upper, 0), cols - std::max<int64_t>(lower, 0)); }
  int64_t Length(int64_t d) const { return std::min(rows + std::min<int64_t>(d, 0), cols - std::max<int64_t>(d, 0)); }
  // Of the first element of diagonal d, in its matrix and in its row.
  int64_t InMatrix(int64_t d) const { return d >= 0 ? d : -d * cols; }
  int64_t InRow(int64_t d, int64_t longest) const {
    return (d >= 0 ? right_upper : right_lower) ? longest - Length(d) : 0;
  }
};

class BandKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    if (!init.HasAttr("align")) return absl::OkStatus();
    MR_ASSIGN_OR_RETURN(const std::string align, init.Attr<std::string>("align"));
    right_upper_ = align == "RIGHT_LEFT" || align == "RIGHT_RIGHT";
    right_lower_ = align == "LEFT_RIGHT" || align == "RIGHT_RIGHT";
    return absl::OkStatus();
  }

 protected:
  StatusOr<Band> ReadBand(const Tensor& k) const {
    Band band;
    if (k.rank() > 1) {
      return InvalidArgument("diag_index must be a scalar or vector, received shape: ", k.shape().ToString());
    }
    if (k.num_elements() == 0) return InvalidArgument("Expected diag_index to have at least 1 element");
    if (k.num_elements() > 2) {
      return InvalidArgument(
          "diag_index must have only one or two elements, received ", k.num_elements(), " elements.");
    }
    band.lower = k.data<int32_t>()[0];
    band.upper = k.data<int32_t>()[k.num_elements() - 1];
    if (band.lower > band.upper) {
      return InvalidArgument(
          "lower_diag_index must not be larger than upper_diag_index: ", band.lower, " > ", band.upper);
    }
    band.right_upper = right_upper_;
    band.right_lower = right_lower_;
    return band;
  }
  // With the size of the matrices of `t`, which the band must lie in.
  Status ReadMatrices(const Tensor& t, Band* band) const {
    if (t.rank() < 2) return InvalidArgument("input must be at least 2-dim, received shape: ", t.shape().ToString());
    band->rows = t.dim(t.rank() - 2);
    band->cols = t.dim(t.rank() - 1);
    const auto inside = [&](int64_t d) { return d == 0 || (-band->rows < d && d < band->cols); };
    for (const auto& [name, d] : {std::pair("lower", band->lower), std::pair("upper", band->upper)}) {
      if (inside(d)) continue;
      return InvalidArgument(
          name, "_diag_index is out of bound: ", d, ". It must be between ", -band->rows, " and ", band->cols);
    }
    return absl::OkStatus();
  }
  static Status RequirePadding(const Tensor& t) {
    if (t.rank() == 0) return absl::OkStatus();
    return InvalidArgument("Padding must be scalar, received shape: ", t.shape().ToString());
  }
  // The shape of the compact form.
  static StatusOr<Shape> CompactShape(const Shape& matrices, const Band& band) {
    std::vector<int64_t> dims = DimsOf(matrices, 0, matrices.rank() - 2);
    if (band.count() > 1) dims.push_back(band.count());
    dims.push_back(band.Longest());
    return Shape::Make(dims);
  }

 private:
  bool right_upper_ = false, right_lower_ = false;
};

class BandPartKernel final : public BandKernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Tensor& in = ctx.input(0);
    MR_ASSIGN_OR_RETURN(Band band, ReadBand(ctx.input(1)));
    MR_RETURN_IF_ERROR(ReadMatrices(in, &band));
    MR_RETURN_IF_ERROR(RequirePadding(ctx.input(2)));
    MR_ASSIGN_OR_RETURN(const Shape shape, CompactShape(in.shape(), band));
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    if (shape.num_elements() == 0) return absl::OkStatus();
    const int64_t longest = band.Longest(), count = band.count();
    const RunCopier copier(in.dtype(), 1);
    ctx.ParallelFor(shape.num_elements() / longest, static_cast<double>(longest) * 2, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t d = band.upper - i % count, length = band.Length(d), at = i * longest;
        const int64_t first = at + band.InRow(d, longest), matrix = i / count * band.rows * band.cols;
        FillElements(out->dtype(), out->mutable_raw(), at, first - at, ctx.input(2).raw());
        copier.Copy(out->mutable_raw(), first, 1, in.raw(), matrix + band.InMatrix(d), band.cols + 1, length);
        FillElements(
            out->dtype(), out->mutable_raw(), first + length, at + longest - first - length, ctx.input(2).raw());
      }
    });
    return absl::OkStatus();
  }
};

// Copies the compact form at `from` into `count` matrices.
void WriteBand(KernelContext& ctx, const Band& band, const Tensor& from, int64_t count, Tensor* out) {
  const int64_t longest = band.Longest(), diagonals = band.count(), size = band.rows * band.cols;
  const RunCopier copier(out->dtype(), 1);
  ctx.ParallelFor(count, static_cast<double>(longest * diagonals) * 2, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t d = band.lower; d <= band.upper; ++d) {
        if (band.Length(d) <= 0) continue;  // outside of the matrix
        const int64_t row = (i * diagonals + band.upper - d) * longest;
        copier.Copy(out->mutable_raw(), i * size + band.InMatrix(d), band.cols + 1, from.raw(),
                    row + band.InRow(d, longest), 1, band.Length(d));
      }
    }
  });
}

class BandDiagKernel final : public BandKernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Tensor& diagonal = ctx.input(0);
    if (diagonal.rank() < 1) return InvalidArgument("diagonal must be at least 1-dim, received shape: []");
    MR_ASSIGN_OR_RETURN(Band band, ReadBand(ctx.input(1)));
    MR_RETURN_IF_ERROR(ReadSize(ctx.input(2), "num_rows", &band.rows));
    MR_RETURN_IF_ERROR(ReadSize(ctx.input(3), "num_cols", &band.cols));
    MR_RETURN_IF_ERROR(RequirePadding(ctx.input(4)));
    MR_RETURN_IF_ERROR(FitSize(diagonal, &band));
    std::vector<int64_t> dims = DimsOf(diagonal.shape(), 0, diagonal.rank() - (band.count() > 1 ? 2 : 1));
    dims.insert(dims.end(), {band.rows, band.cols});
    MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    if (shape.num_elements() == 0) return absl::OkStatus();
    ctx.ParallelFor(shape.num_elements(), 0.3, [&](int64_t begin, int64_t end) {
      FillElements(out->dtype(), out->mutable_raw(), begin, end - begin, ctx.input(4).raw());
    });
    WriteBand(ctx, band, diagonal, shape.num_elements() / (band.rows * band.cols), out);
    return absl::OkStatus();
  }

 private:
  static Status ReadSize(const Tensor& t, const char* name, int64_t* size) {
    if (t.rank() != 0) return InvalidArgument(name, " must be a scalar");
    *size = *t.data<int32_t>();
    return absl::OkStatus();
  }
  // Sizes that were not given (-1) are the least that hold the diagonals.
  static Status FitSize(const Tensor& diagonal, Band* band) {
    if (band->count() > 1 && (diagonal.rank() < 2 || diagonal.dim(diagonal.rank() - 2) != band->count())) {
      return InvalidArgument(
          "The number of diagonals provided in the input does not match the lower_diag_index and upper_diag_index "
          "range.");
    }
    const int64_t longest = diagonal.dim(diagonal.rank() - 1);
    const int64_t least_rows = longest - std::min<int64_t>(band->upper, 0);
    const int64_t least_cols = longest + std::max<int64_t>(band->lower, 0);
    if (band->rows == -1 && band->cols == -1) {
      band->rows = band->cols = std::max(least_rows, least_cols);
    } else if (band->rows == -1) {
      band->rows = least_rows;
    } else if (band->cols == -1) {
      band->cols = least_cols;
    }
    if (band->rows < least_rows) return InvalidArgument("The number of rows is too small.");
    if (band->cols < least_cols) return InvalidArgument("The number of columns is too small.");
    if (band->rows != least_rows && band->cols != least_cols) {
      return InvalidArgument(
          "The number of rows or columns is not consistent with the specified d_lower, d_upper, and diagonal.");
    }
    return absl::OkStatus();
  }
};

class SetBandKernel final : public BandKernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Tensor& diagonal = ctx.input(1);
    MR_ASSIGN_OR_RETURN(Band band, ReadBand(ctx.input(2)));
    MR_RETURN_IF_ERROR(ReadMatrices(ctx.input(0), &band));
    MR_ASSIGN_OR_RETURN(const Shape want, CompactShape(ctx.input(0).shape(), band));
    if (!(diagonal.shape() == want)) {
      return InvalidArgument(
          "diagonal must have shape ", want.ToString(), " for diagonals ", band.lower, " to ", band.upper,
          " of an input of shape ", ctx.input(0).shape().ToString(), ", got ", diagonal.shape().ToString());
    }
    Tensor out = ctx.TakeInput(0);
    if (!out.IsInitialized()) {
      MR_ASSIGN_OR_RETURN(out, ctx.input(0).Clone(ctx.device().allocator()));
    }
    if (out.num_elements() > 0) WriteBand(ctx, band, diagonal, out.num_elements() / (band.rows * band.cols), &out);
    ctx.set_output(0, std::move(out));
    return absl::OkStatus();
  }
};

}  // namespace

void RegisterBandKernels(KernelRegistry& r) {
  const std::vector<DType> plain = Types("NUM|QNT|bool");
  for (const char* version : {"V2", "V3"}) {
    r.Add<BandDiagKernel>({.op = absl::StrCat("MatrixDiag", version), .types = {{"T", plain}}});
    r.Add<BandPartKernel>({.op = absl::StrCat("MatrixDiagPart", version), .types = {{"T", plain}}});
    r.Add<SetBandKernel>({.op = absl::StrCat("MatrixSetDiag", version), .types = {{"T", plain}}});
  }
}

}  // namespace millrace
