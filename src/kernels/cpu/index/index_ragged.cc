// SPDX-License-Identifier: Apache-2.0
// RaggedTensorToTensor: rows of different lengths side by side, filled up with a default.
#include <algorithm>
#include <string>
#include <vector>

#include "base/stop_scope.h"
#include "kernels/cpu/engine/index_rows.h"
#include "kernels/cpu/index/index_kernels.h"

namespace millrace {
namespace {

// How the values of one dimension are dealt to the rows of the dimension before.
struct Partition {
  std::string name;  // for messages
  bool is_splits = false;
  const int64_t* data = nullptr;
  int64_t size = 0;

  int64_t num_values() const { return is_splits ? data[size - 1] : size; }

  // Rows are those of the dimension before.
  Status Check(int64_t rows) const {
    if (is_splits) {
      if (size != rows + 1) return InvalidArgument(name, " has ", size, " splits for ", rows, " rows, wanted one more");
      if (data[0] != 0) return InvalidArgument(name, " must begin with 0, got ", data[0]);
    }
    for (int64_t i = 0; i < size; ++i) {
      if (i > 0 && data[i] < data[i - 1]) {
        return InvalidArgument(name, " must not decrease, got ", data[i], " behind ", data[i - 1]);
      }
      if (!is_splits && (data[i] < 0 || data[i] >= rows)) {
        return InvalidArgument(name, "[", i, "] = ", data[i], " is no row of ", rows);
      }
    }
    return absl::OkStatus();
  }
  // visit(row, column) for each value in order.
  template <typename Visit>
  void ForEach(Visit visit) const {
    StopNowAndThen pause;
    int64_t row = 0, column = 0;
    for (int64_t i = 0; i < num_values(); ++i, ++column) {
      pause();
      const int64_t before = row;
      if (is_splits) {
        while (data[row + 1] <= i) ++row;
      } else {
        row = data[i];
      }
      if (row != before) column = 0;
      visit(row, column);
    }
  }
  // Splits say it themselves: they may be of more values than any tensor has.
  int64_t Width() const {
    int64_t width = 0;
    for (int64_t i = 1; is_splits && i < size; ++i) width = std::max(width, data[i] - data[i - 1]);
    if (is_splits) return width;
    ForEach([&width](int64_t, int64_t column) { width = std::max(width, column + 1); });
    return width;
  }
};

class RaggedToTensorKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(types_, init.Attr<std::vector<std::string>>("row_partition_types"));
    MR_ASSIGN_OR_RETURN(const int64_t n, init.Attr<int64_t>("num_row_partition_tensors"));
    if (static_cast<int64_t>(types_.size()) != n) {
      return InvalidArgument("row_partition_types has ", types_.size(), " elements for ", n, " row partitions");
    }
    for (size_t i = 0; i < types_.size(); ++i) {
      const std::string& t = types_[i];
      const bool fits =
          t == "ROW_SPLITS" || (t == "VALUE_ROWIDS" && i > 0) || (t == "FIRST_DIM_SIZE" && i == 0 && n > 1);
      if (!fits) return InvalidArgument("row_partition_types[", i, "] cannot be '", t, "' of ", n);
    }
    return absl::OkStatus();
  }

  Status Compute(KernelContext& ctx) override {
    const Tensor& values = ctx.input(1);
    if (values.rank() < 1) return InvalidArgument("values must not be a scalar");
    std::vector<WideIndices> wide;
    std::vector<Partition> partitions;
    int64_t rows = 0;
    for (size_t i = 0; i < types_.size(); ++i) {
      const Tensor& t = ctx.input(static_cast<int>(3 + i));
      const std::string name = absl::StrCat("row_partition_tensors[", i, "]");
      if (types_[i] == "FIRST_DIM_SIZE") {
        MR_RETURN_IF_ERROR(RequireScalar(name, t));
        MR_ASSIGN_OR_RETURN(rows, t.IntScalar());
        if (rows < 0) return InvalidArgument(name, " must not be negative, got ", rows);
        continue;
      }
      MR_RETURN_IF_ERROR(RequireVector(name, t));
      MR_ASSIGN_OR_RETURN(WideIndices w, WideIndices::Make(ctx, t));
      wide.push_back(std::move(w));
      const bool is_splits = types_[i] == "ROW_SPLITS";
      if (is_splits && wide.back().size() == 0) return InvalidArgument(name, " must not be empty");
      if (i == 0) rows = wide.back().size() - 1;
      partitions.push_back({name, is_splits, wide.back().data(), wide.back().size()});
    }
    int64_t num_values = rows;
    for (const Partition& p : partitions) {
      MR_RETURN_IF_ERROR(p.Check(num_values));
      num_values = p.num_values();
    }
    if (num_values != values.dim(0)) {
      return InvalidArgument("the row partitions are of ", num_values, " values, got ", values.dim(0));
    }
    MR_ASSIGN_OR_RETURN(const Shape shape, OutputShape(ctx.input(0), values, rows, partitions));
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    const int64_t run = values.dim(0) == 0 ? RunOf(values) : values.num_elements() / values.dim(0);
    MR_RETURN_IF_ERROR(Fill(ctx.input(2), values, run, out));
    if (run == 0) return absl::OkStatus();

    // Where each value of the dimension at hand goes, counted in elements of it; -1: it is cut off. The rows of the
    // first dimension, which a scalar counts, go where they are.
    Tensor at;
    for (size_t p = 0; p < partitions.size(); ++p) {
      MR_ASSIGN_OR_RETURN(Tensor next, ctx.AllocateTemp(DType::kInt64, Shape::Vector(partitions[p].num_values())));
      const int64_t width = shape.dim(static_cast<int>(p) + 1), kept = shape.dim(0);
      const int64_t* from = p == 0 ? nullptr : at.data<int64_t>();
      int64_t* to = next.mutable_data<int64_t>();
      partitions[p].ForEach([&](int64_t row, int64_t column) {
        const int64_t to_row = from != nullptr ? from[row] : row < kept ? row : -1;
        *to++ = to_row < 0 || column >= width ? -1 : to_row * width + column;
      });
      at = std::move(next);
    }
    const RunCopier copier(values.dtype(), run);
    const int64_t* to = at.data<int64_t>();
    ctx.ParallelFor(num_values, copier.cost(), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        if (to[i] >= 0) copier.CopyOne(out->mutable_raw(), to[i] * run, values.raw(), i * run);
      }
    });
    return absl::OkStatus();
  }

 private:
  static int64_t RunOf(const Tensor& values) {
    int64_t run = 1;
    for (int d = 1; d < values.rank(); ++d) run *= values.dim(d);
    return run;
  }

  // What is not asked for is as large as it must be.
  static StatusOr<Shape> OutputShape(const Tensor& wanted, const Tensor& values, int64_t rows,
                                     const std::vector<Partition>& partitions) {
    std::vector<int64_t> dims = {rows};
    for (const Partition& p : partitions) dims.push_back(p.Width());
    for (int d = 1; d < values.rank(); ++d) dims.push_back(values.dim(d));
    const auto element = [&wanted](int64_t i) {
      return wanted.dtype() == DType::kInt32 ? int64_t{wanted.data<int32_t>()[i]} : wanted.data<int64_t>()[i];
    };
    if (wanted.rank() == 0) {
      if (element(0) != -1) return InvalidArgument("shape must be -1 or a vector, got ", element(0));
      return Shape::Make(dims);
    }
    MR_RETURN_IF_ERROR(RequireVector("shape", wanted));
    if (wanted.num_elements() != static_cast<int64_t>(dims.size())) {
      return InvalidArgument("shape has ", wanted.num_elements(), " dimensions, the values have ", dims.size());
    }
    for (size_t i = 0; i < dims.size(); ++i) {
      const int64_t want = element(static_cast<int64_t>(i));
      if (want < -1) return InvalidArgument("shape[", i, "] must be -1 or a size, got ", want);
      if (want == -1) continue;
      if (i > partitions.size() && want != dims[i]) {
        return InvalidArgument("shape[", i, "] is ", want, ", the values have ", dims[i]);
      }
      dims[i] = want;
    }
    return Shape::Make(dims);
  }

  // The default, broadcast to the shape of a value.
  static Status Fill(const Tensor& value, const Tensor& values, int64_t run, Tensor* out) {
    if (value.num_elements() == 1 && value.rank() < values.rank()) {
      FillElements(out->dtype(), out->mutable_raw(), 0, out->num_elements(), value.raw());
      return absl::OkStatus();
    }
    const int behind = values.rank() - value.rank();  // of its dimension 0
    bool fits = behind >= 1;
    for (int d = 0; fits && d < value.rank(); ++d) fits = value.dim(d) == 1 || value.dim(d) == values.dim(behind + d);
    if (!fits) {
      return InvalidArgument("default_value of shape ", value.shape().ToString(),
                             " does not broadcast to one value of ", values.shape().ToString());
    }
    const RunCopier copier(out->dtype(), 1);
    StopNowAndThen pause;
    for (int64_t e = 0; e < out->num_elements(); ++e) {
      pause();
      int64_t rest = e % run, from = 0, stride = 1;
      for (int d = value.rank() - 1; d >= 0; --d) {
        const int64_t size = values.dim(behind + d);
        if (value.dim(d) > 1) from += rest % size * stride;
        rest /= size, stride *= value.dim(d);
      }
      copier.CopyOne(out->mutable_raw(), e, value.raw(), from);
    }
    return absl::OkStatus();
  }

  std::vector<std::string> types_;
};

}  // namespace

void RegisterRaggedKernels(KernelRegistry& r) { r.Add<RaggedToTensorKernel>({.op = "RaggedTensorToTensor"}); }

}  // namespace millrace
