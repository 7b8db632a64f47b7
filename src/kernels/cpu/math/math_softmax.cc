// SPDX-License-Identifier: Apache-2.0
// Kernels of Softmax, LogSoftmax and the cross entropies: rows in parallel, f32 and f64; 16-bit floats are widened as a
// whole.
#include <algorithm>
#include <type_traits>

#include "base/checked.h"
#include "kernels/cpu/math/math.h"
#include "kernels/cpu/math/math_convert.h"
#include "kernels/cpu/math/math_softmax_rows.h"

namespace millrace {
namespace {

template <typename T>
const SoftmaxRows<T>& RowsOf() {
  if constexpr (std::is_same_v<T, float>) {
    return FloatSoftmaxRows();
  } else {
    return DoubleSoftmaxRows();
  }
}

bool IsNarrow(DType t) { return t == DType::kHalf || t == DType::kBFloat16; }

// `t` itself, or its values as float.
StatusOr<Tensor> AsWide(KernelContext& ctx, const Tensor& t) {
  if (!IsNarrow(t.dtype())) return t;
  MR_ASSIGN_OR_RETURN(Tensor wide, ctx.AllocateTemp(DType::kFloat, t.shape()));
  ConvertElements(ctx, t.dtype(), DType::kFloat, t.raw(), wide.mutable_raw(), t.num_elements());
  return wide;
}

// Output o, to be written through data(); Finish stores it where the output type is narrow. Allocated before inputs are
// copied: a copy would keep their buffers from being taken over.
class WideOutput {
 public:
  Status Allocate(KernelContext& ctx, int o, const Shape& shape, std::initializer_list<int> forward = {}) {
    MR_ASSIGN_OR_RETURN(out_, ctx.ForwardOrAllocate(forward, o, shape));
    if (!IsNarrow(out_->dtype())) return absl::OkStatus();
    MR_ASSIGN_OR_RETURN(wide_, ctx.AllocateTemp(DType::kFloat, shape));
    return absl::OkStatus();
  }
  void* data() { return wide_.IsInitialized() ? wide_.mutable_raw() : out_->mutable_raw(); }
  void Finish(KernelContext& ctx) {
    if (!wide_.IsInitialized()) return;
    ConvertElements(ctx, DType::kFloat, out_->dtype(), wide_.raw(), out_->mutable_raw(), out_->num_elements());
  }

 private:
  Tensor* out_ = nullptr;
  Tensor wide_;
};

double CostOfRow(int64_t n) { return 20 + 0.6 * static_cast<double>(n); }

// fn(begin, end) over rows of n.
template <typename Fn>
void ForRows(const KernelContext& ctx, int64_t rows, int64_t n, const Fn& fn) {
  const int64_t units = (rows + kRowsTogether - 1) / kRowsTogether;
  ctx.ParallelFor(units, CostOfRow(n) * kRowsTogether, [&](int64_t begin, int64_t end) {
    fn(begin * kRowsTogether, std::min(rows, end * kRowsTogether));
  });
}

template <bool kLog>
class SoftmaxKernel : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Shape shape = ctx.input(0).shape();
    if (shape.rank() < 1) return InvalidArgument("logits must have >= 1 dimension, got ", shape.ToString());
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.ForwardOrAllocate({0}, 0, shape));
    const Tensor& x = ctx.input(0);
    if (shape.num_elements() == 0) return absl::OkStatus();
    const int64_t n = shape.dim(shape.rank() - 1), rows = shape.num_elements() / n;
    if (IsNarrow(x.dtype())) {
      const auto softmax = kLog ? FloatSoftmaxRows().log_softmax : FloatSoftmaxRows().softmax;
      const int64_t together = n > kLongestTogether ? 1 : kRowsTogether;
      return ForWideRows(ctx, x.dtype(), x.raw(), out->mutable_raw(), rows, n, together, CostOfRow(n),
                         [&](float* values, int64_t count) { softmax(values, count, n, values); });
    }
    if (x.dtype() == DType::kDouble) {
      Run<double>(ctx, x, out->mutable_raw());
    } else {
      Run<float>(ctx, x, out->mutable_raw());
    }
    return absl::OkStatus();
  }

 private:
  template <typename T>
  static void Run(KernelContext& ctx, const Tensor& x, void* out_raw) {
    const int64_t n = x.dim(x.rank() - 1);
    const T* in = x.data<T>();
    T* out = static_cast<T*>(out_raw);
    const auto rows = kLog ? RowsOf<T>().log_softmax : RowsOf<T>().softmax;
    ForRows(ctx, x.num_elements() / n, n,
            [&](int64_t begin, int64_t end) { rows(in + begin * n, end - begin, n, out + begin * n); });
  }
};

// A matrix whose rows and columns may be repeated.
template <typename T>
class BroadcastRows {
 public:
  BroadcastRows(const Tensor& t, const Shape& to) : data_(t.data<T>()), shape_(to), row_stride_(0), column_stride_(0) {
    const int64_t rows = t.rank() == 2 ? t.dim(0) : 1, columns = t.rank() >= 1 ? t.dim(t.rank() - 1) : 1;
    if (rows > 1) row_stride_ = columns;
    if (columns > 1) column_stride_ = 1;
  }
  // Row r; `buffer` holds it when a column is repeated.
  const T* Row(int64_t r, T* buffer) const {
    const T* row = data_ + r * row_stride_;
    if (column_stride_ == 1 || shape_.dim(1) == 1) return row;
    std::fill(buffer, buffer + shape_.dim(1), *row);
    return buffer;
  }
  bool repeats_columns() const { return column_stride_ == 0 && shape_.dim(1) > 1; }
  bool repeats_rows() const { return row_stride_ == 0 && shape_.dim(0) > 1; }

 private:
  const T* data_;
  const Shape& shape_;
  int64_t row_stride_, column_stride_;
};

class CrossEntropyKernel : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Tensor& features = ctx.input(0);
    const Tensor& labels = ctx.input(1);
    auto both = BroadcastShapes(features.shape(), labels.shape());
    if (!both.ok()) {
      return InvalidArgument("logits and labels must be broadcastable: logits_size=", features.shape().ToString(),
                             " labels_size=", labels.shape().ToString());
    }
    if (both->rank() != 2) {
      return InvalidArgument(
          "logits and labels must be either 2-dimensional, or broadcasted to be 2-dimensional, got ", both->ToString());
    }
    MR_ASSIGN_OR_RETURN(const Tensor x, AsWide(ctx, features));
    MR_ASSIGN_OR_RETURN(const Tensor y, AsWide(ctx, labels));
    WideOutput loss, backprop;
    MR_RETURN_IF_ERROR(loss.Allocate(ctx, 0, Shape::Vector(both->dim(0))));
    MR_RETURN_IF_ERROR(backprop.Allocate(ctx, 1, *both));
    if (x.dtype() == DType::kDouble) {
      MR_RETURN_IF_ERROR(Run<double>(ctx, x, y, *both, loss.data(), backprop.data()));
    } else {
      MR_RETURN_IF_ERROR(Run<float>(ctx, x, y, *both, loss.data(), backprop.data()));
    }
    loss.Finish(ctx);
    backprop.Finish(ctx);
    return absl::OkStatus();
  }

 private:
  template <typename T>
  static Status Run(KernelContext& ctx, const Tensor& x, const Tensor& y, const Shape& shape, void* loss_raw,
                    void* backprop_raw) {
    T* loss = static_cast<T*>(loss_raw);
    T* backprop = static_cast<T*>(backprop_raw);
    const int64_t rows = shape.dim(0), n = shape.dim(1);
    if (rows == 0 || n == 0) {
      std::fill(loss, loss + rows, T(0));
      return absl::OkStatus();
    }
    const BroadcastRows<T> logits(x, shape), labels(y, shape);
    // Repeated columns are written out once per row: rare, so on this thread.
    if (logits.repeats_columns() || labels.repeats_columns()) {
      MR_ASSIGN_OR_RETURN(Tensor buffer, ctx.AllocateTemp(DTypeOf<T>::value, Shape::Vector(2 * n)));
      T* spare = buffer.mutable_data<T>();
      for (int64_t r = 0; r < rows; ++r) {
        RowsOf<T>().cross_entropy(logits.Row(r, spare), labels.Row(r, spare + n), 1, n, loss + r, backprop + r * n);
      }
      return absl::OkStatus();
    }
    const int64_t at_once = logits.repeats_rows() || labels.repeats_rows() ? 1 : rows;
    ForRows(ctx, rows, n, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; r += at_once) {
        RowsOf<T>().cross_entropy(
            logits.Row(r, nullptr), labels.Row(r, nullptr), std::min(at_once, end - r), n, loss + r, backprop + r * n);
      }
    });
    return absl::OkStatus();
  }
};

class SparseCrossEntropyKernel : public Kernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Tensor& features = ctx.input(0);
    const Tensor& labels = ctx.input(1);
    if (features.rank() != 2) {
      return InvalidArgument("logits must be 2-D, but got shape ", features.shape().ToString());
    }
    if (labels.rank() != 1) return InvalidArgument("labels must be 1-D, but got shape ", labels.shape().ToString());
    if (features.dim(0) != labels.dim(0)) {
      return InvalidArgument("logits and labels must have the same first dimension, got logits shape ",
                             features.shape().ToString(), " and labels shape ", labels.shape().ToString());
    }
    if (features.dim(1) == 0) {
      return InvalidArgument("Must have at least one class, but got logits shape ", features.shape().ToString());
    }
    MR_ASSIGN_OR_RETURN(const std::vector<int64_t> classes, labels.IntValues());
    MR_RETURN_IF_ERROR(CheckLabels(classes, features.dim(1)));
    const Shape shape = features.shape();
    WideOutput loss, backprop;
    MR_RETURN_IF_ERROR(loss.Allocate(ctx, 0, Shape::Vector(shape.dim(0))));
    MR_RETURN_IF_ERROR(backprop.Allocate(ctx, 1, shape, {0}));
    MR_ASSIGN_OR_RETURN(const Tensor x, AsWide(ctx, features));
    if (x.dtype() == DType::kDouble) {
      Run<double>(ctx, x, classes, loss.data(), backprop.data());
    } else {
      Run<float>(ctx, x, classes, loss.data(), backprop.data());
    }
    loss.Finish(ctx);
    backprop.Finish(ctx);
    return absl::OkStatus();
  }

 private:
  static Status CheckLabels(const std::vector<int64_t>& classes, int64_t n) {
    for (const int64_t label : classes) {
      if (InRange(label, n)) continue;
      std::string values;
      for (size_t i = 0; i < std::min<size_t>(classes.size(), 64); ++i) absl::StrAppend(&values, " ", classes[i]);
      return InvalidArgument("Received a label value of ", label, " which is outside the valid range of [0, ", n,
                             ").  Label values:", values, classes.size() > 64 ? " ..." : "");
    }
    return absl::OkStatus();
  }

  template <typename T>
  static void Run(KernelContext& ctx, const Tensor& x, const std::vector<int64_t>& classes, void* loss_raw,
                  void* backprop_raw) {
    const int64_t n = x.dim(1);
    const T* in = x.data<T>();
    T* loss = static_cast<T*>(loss_raw);
    T* backprop = static_cast<T*>(backprop_raw);
    ForRows(ctx, x.dim(0), n, [&](int64_t begin, int64_t end) {
      RowsOf<T>().sparse_cross_entropy(
          in + begin * n, classes.data() + begin, end - begin, n, loss + begin, backprop + begin * n);
    });
  }
};

}  // namespace

void RegisterSoftmaxKernels(KernelRegistry& registry) {
  const std::vector<DType> types = Types("FLT");
  registry.Add<SoftmaxKernel<false>>({.op = "Softmax", .types = {{"T", types}}, .cost = CostlyElementCost});
  registry.Add<SoftmaxKernel<true>>({.op = "LogSoftmax", .types = {{"T", types}}, .cost = CostlyElementCost});
  registry.Add<CrossEntropyKernel>(
      {.op = "SoftmaxCrossEntropyWithLogits", .types = {{"T", types}}, .cost = CostlyElementCost});
  registry.Add<SparseCrossEntropyKernel>(
      {.op = "SparseSoftmaxCrossEntropyWithLogits", .types = {{"T", types}}, .cost = CostlyElementCost});
}

}  // namespace millrace
