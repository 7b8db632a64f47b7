// SPDX-License-Identifier: Apache-2.0
// How often values occur: Bincount, DenseBincount, RaggedBincount, SparseBincount into bins, and the
// *CountSparseOutput ops, which list the values that there are.
#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/stop_scope.h"
#include "kernels/cpu/engine/index_arithmetic.h"
#include "kernels/cpu/engine/index_rows.h"
#include "kernels/cpu/index/index_kernels.h"
#include "kernels/cpu/index/ragged_splits.h"

namespace millrace {
namespace {

// What some values add to the bins.
template <bool kWeighted, typename T, typename Index>
void CountSome(const Index* values, const T* weights, int64_t n, Index size, T* bins) {
  for (int64_t i = 0; i < n; ++i) {
    if (values[i] < size) CombineInto<RowOp::kAdd>(bins[values[i]], kWeighted ? weights[i] : T{1});
  }
}
template <typename T, typename Index>
void CountRow(const Index* values, const T* weights, int64_t n, Index size, bool once, T* bins) {
  constexpr int64_t kBlock = 4096;
  for (int64_t i = 0; i < n; i += kBlock) {
    StopIfAsked();
    const int64_t m = std::min(kBlock, n - i);
    if (once) {
      for (int64_t k = i; k < i + m; ++k) {
        if (values[k] < size) bins[values[k]] = T{1};
      }
    } else if (weights == nullptr) {
      CountSome<false, T, Index>(values + i, nullptr, m, size, bins);
    } else {
      CountSome<true, T, Index>(values + i, weights + i, m, size, bins);
    }
  }
}

// One long row: parts of it, cut by its length alone, count for themselves.
template <typename T, typename Index>
Status CountInParts(KernelContext& ctx, const Index* values, const T* weights, int64_t n, Index size, T* bins) {
  constexpr int64_t kPart = 128 << 10, kMostParts = 64;
  const int64_t bin_count = int64_t{size};
  const int64_t parts = std::clamp<int64_t>(n / (8 * bin_count + 1), 1, std::min(n / kPart + 1, kMostParts));
  const int64_t part = (n + parts - 1) / parts;
  MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({parts - 1, bin_count}));
  MR_ASSIGN_OR_RETURN(Tensor others, ctx.AllocateTemp(DTypeOf<T>::value, shape));
  ZeroElements(others.dtype(), others.mutable_raw(), 0, others.num_elements());
  T* const rest = parts > 1 ? others.mutable_data<T>() : nullptr;
  ctx.ParallelFor(parts, 1.5 * static_cast<double>(part), [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      const int64_t first = p * part, count = std::min(part, n - first);
      CountRow<T, Index>(values + first, weights == nullptr ? nullptr : weights + first, count, size, /*once=*/false,
                         p == 0 ? bins : rest + (p - 1) * bin_count);
    }
  });
  for (int64_t p = 0; p + 1 < parts; ++p) {
    for (int64_t k = 0; k < bin_count; ++k) CombineInto<RowOp::kAdd>(bins[k], rest[p * bin_count + k]);
  }
  return absl::OkStatus();
}

Status RequireNoNegatives(const std::string& name, const Tensor& values) {
  Status status;
  VisitTypes<int32_t, int64_t>(values.dtype(), [&]<typename Index>() {
    const Index* const all = values.data<Index>();
    const int64_t n = values.num_elements();
    const int64_t at = std::find_if(all, all + n, [](Index v) { return v < 0; }) - all;
    if (at < n) status = InvalidArgument(name, " must not be negative, got ", all[at], " as element ", at);
  });
  return status;
}

// Values and what each of them counts: 1, or its weight.
Status CheckCounted(const std::string& name, const Tensor& values, const Tensor& weights) {
  if (weights.num_elements() > 0 && !(weights.shape() == values.shape())) {
    return InvalidArgument(
        "weights have shape ", weights.shape().ToString(), ", what is counted has ", values.shape().ToString());
  }
  return RequireNoNegatives(name, values);
}

// The row that each element of a sparse tensor stands in: its first coordinate, or 0 of a vector.
struct SparseRows {
  int64_t rows = 1;
  bool is_matrix = false;
  const int64_t* indices = nullptr;
  int64_t rank = 1;
  int64_t operator()(int64_t i) const { return is_matrix ? indices[i * rank] : 0; }
};
StatusOr<SparseRows> RowsOfSparse(const Tensor& indices, const Tensor& values, const Tensor& dense_shape) {
  MR_RETURN_IF_ERROR(RequireVector("values", values));
  MR_RETURN_IF_ERROR(RequireVector("dense_shape", dense_shape));
  const int64_t rank = dense_shape.num_elements();
  if (rank == 0) return InvalidArgument("dense_shape must have at least one dimension");
  if (indices.rank() != 2 || indices.dim(0) != values.num_elements() || indices.dim(1) != rank) {
    return InvalidArgument("indices have shape ", indices.shape().ToString(), ", want [", values.num_elements(), ",",
                           rank, "] for these values and dense_shape");
  }
  const int64_t* const dims = dense_shape.data<int64_t>();
  const int64_t* const at = indices.data<int64_t>();
  for (int64_t d = 0; d < rank; ++d) {
    if (dims[d] < 0) return InvalidArgument("dense_shape[", d, "] must not be negative, got ", dims[d]);
  }
  StopNowAndThen pause;
  for (int64_t i = 0; i < values.num_elements(); ++i) {
    for (int64_t d = 0; d < rank; ++d) {
      pause();
      const int64_t index = at[i * rank + d];
      if (InRange(index, dims[d])) continue;
      return InvalidArgument("indices[", i, ",", d, "] = ", index, " is not in [0, ", dims[d], ")");
    }
  }
  return SparseRows{rank > 1 ? dims[0] : 1, rank > 1, at, rank};
}

StatusOr<int64_t> NumberOfBins(const Tensor& size) {
  MR_RETURN_IF_ERROR(RequireScalar("size", size));
  MR_ASSIGN_OR_RETURN(const int64_t bins, size.IntScalar());
  if (bins < 0) return InvalidArgument("size must not be negative, got ", bins);
  return bins;
}

// Zeroes, one row of bins for each row, or one alone.
StatusOr<Tensor*> EmptyBins(KernelContext& ctx, bool is_matrix, int64_t rows, int64_t size) {
  MR_ASSIGN_OR_RETURN(const Shape shape, is_matrix ? Shape::Make({rows, size}) : Shape::Make({size}));
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
  ZeroElements(out->dtype(), out->mutable_raw(), 0, out->num_elements());
  return out;
}

// Calls f.template operator()<T, Index>() for the types of what is counted and of its sums.
template <typename F>
void VisitCounts(DType sums, DType values, F&& f) {
  VisitTypes<int32_t, int64_t, float, double>(sums, [&]<typename T>() {
    VisitTypes<int32_t, int64_t>(values, [&]<typename Index>() { f.template operator()<T, Index>(); });
  });
}

// With binary_output a value counts once, however often it occurs.
class CountingKernel : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(once_, init.Attr<bool>("binary_output"));
    return absl::OkStatus();
  }

 protected:
  bool once_ = false;
};

// Bincount counts all values as one row, DenseBincount those of a matrix by rows; with binary_output bins are 0 or 1.
class BincountKernel final : public CountingKernel {
 public:
  Status Init(const KernelInit& init) override {
    values_name_ = init.op.inputs[0].name;
    by_rows_ = init.op.name == "DenseBincount";
    return by_rows_ ? CountingKernel::Init(init) : absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    const Tensor& values = ctx.input(0);
    const Tensor& weights = ctx.input(2);
    MR_ASSIGN_OR_RETURN(const int64_t size, NumberOfBins(ctx.input(1)));
    if (by_rows_ && values.rank() > 2) {
      return InvalidArgument("input must be at most a matrix, got shape ", values.shape().ToString());
    }
    MR_RETURN_IF_ERROR(CheckCounted(values_name_, values, weights));
    const bool weighted = weights.num_elements() > 0;
    const bool matrix = by_rows_ && values.rank() == 2;
    const int64_t rows = matrix ? values.dim(0) : 1, length = matrix ? values.dim(1) : values.num_elements();
    MR_ASSIGN_OR_RETURN(Tensor * out, EmptyBins(ctx, matrix, rows, size));
    Status status;
    VisitCounts(out->dtype(), values.dtype(), [&]<typename T, typename Index>() {
      if (!matrix && !once_) {
        status = CountInParts<T, Index>(ctx, values.data<Index>(), weighted ? weights.data<T>() : nullptr, length,
                                        static_cast<Index>(size), out->mutable_data<T>());
        return;
      }
      ctx.ParallelFor(rows, static_cast<double>(length) * 2, [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
          CountRow<T, Index>(values.data<Index>() + r * length, weighted ? weights.data<T>() + r * length : nullptr,
                             length, static_cast<Index>(size), once_, out->mutable_data<T>() + r * size);
        }
      });
    });
    return status;
  }

 private:
  std::string values_name_;
  bool by_rows_ = false;
};

class RaggedBincountKernel final : public CountingKernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Tensor& values = ctx.input(1);
    const Tensor& weights = ctx.input(3);
    MR_ASSIGN_OR_RETURN(const int64_t size, NumberOfBins(ctx.input(2)));
    MR_RETURN_IF_ERROR(CheckCounted("values", values, weights));
    MR_ASSIGN_OR_RETURN(const WideIndices splits, WideIndices::Make(ctx, ctx.input(0)));
    MR_RETURN_IF_ERROR(RequireVector("splits", ctx.input(0)));
    MR_RETURN_IF_ERROR(CheckSplits("splits", splits.data(), splits.size(), values.num_elements()));
    const int64_t rows = splits.size() - 1;
    MR_ASSIGN_OR_RETURN(Tensor * out, EmptyBins(ctx, /*is_matrix=*/true, rows, size));
    const double mean = static_cast<double>(values.num_elements()) / static_cast<double>(std::max<int64_t>(rows, 1));
    VisitCounts(out->dtype(), values.dtype(), [&]<typename T, typename Index>() {
      ctx.ParallelFor(rows, 2 * mean, [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
          const int64_t first = splits.data()[r];
          CountRow<T, Index>(
              values.data<Index>() + first, weights.num_elements() > 0 ? weights.data<T>() + first : nullptr,
              splits.data()[r + 1] - first, static_cast<Index>(size), once_, out->mutable_data<T>() + r * size);
        }
      });
    });
    return absl::OkStatus();
  }
};

class SparseBincountKernel final : public CountingKernel {
 public:
  Status Compute(KernelContext& ctx) override {
    const Tensor& values = ctx.input(1);
    const Tensor& weights = ctx.input(4);
    MR_ASSIGN_OR_RETURN(const int64_t size, NumberOfBins(ctx.input(3)));
    MR_RETURN_IF_ERROR(CheckCounted("values", values, weights));
    MR_ASSIGN_OR_RETURN(const SparseRows row_of, RowsOfSparse(ctx.input(0), values, ctx.input(2)));
    MR_ASSIGN_OR_RETURN(Tensor * out, EmptyBins(ctx, row_of.is_matrix, row_of.rows, size));
    VisitCounts(out->dtype(), values.dtype(), [&]<typename T, typename Index>() {
      const Index* const value = values.data<Index>();
      const T* const weight = weights.num_elements() > 0 ? weights.data<T>() : nullptr;
      StopNowAndThen pause;
      for (int64_t i = 0; i < values.num_elements(); ++i) {
        pause();
        if (value[i] >= size) continue;
        T& bin = out->mutable_data<T>()[row_of(i) * size + value[i]];
        if (once_) {
          bin = T{1};
        } else {
          CombineInto<RowOp::kAdd>(bin, weight == nullptr ? T{1} : weight[i]);
        }
      }
    });
    return absl::OkStatus();
  }
};

// The values of each row that occur, and how often, as a sparse tensor [rows, largest value + 1] (or [largest + 1] of a
// vector). The values are dense, sparse or ragged.
class CountToSparseKernel final : public CountingKernel {
 public:
  Status Init(const KernelInit& init) override {
    form_ = init.op.name == "DenseCountSparseOutput" ? Form::kDense
            : init.op.name == "SparseCountSparseOutput"
                ? Form::kSparse
                : Form::kRagged;
    MR_ASSIGN_OR_RETURN(least_, init.Attr<int64_t>("minlength"));
    MR_ASSIGN_OR_RETURN(most_, init.Attr<int64_t>("maxlength"));
    return CountingKernel::Init(init);
  }
  Status Compute(KernelContext& ctx) override {
    const Tensor& values = ctx.input(form_ == Form::kDense ? 0 : 1);
    const Tensor& weights = ctx.input(ctx.num_inputs() - 1);
    MR_RETURN_IF_ERROR(CheckCounted("values", values, weights));
    if (form_ == Form::kDense) {
      if (values.rank() < 1 || values.rank() > 2) {
        return InvalidArgument("values must be a vector or a matrix, got shape ", values.shape().ToString());
      }
      const bool is_matrix = values.rank() == 2;
      const int64_t length = std::max<int64_t>(is_matrix ? values.dim(1) : values.num_elements(), 1);
      return Count(
          ctx, values, weights, is_matrix, is_matrix ? values.dim(0) : 1, [length](int64_t i) { return i / length; });
    }
    if (form_ == Form::kSparse) {
      MR_ASSIGN_OR_RETURN(const SparseRows row_of, RowsOfSparse(ctx.input(0), values, ctx.input(2)));
      return Count(ctx, values, weights, row_of.is_matrix, row_of.rows, row_of);
    }
    const Tensor& splits = ctx.input(0);
    MR_RETURN_IF_ERROR(RequireVector("splits", splits));
    const int64_t* const ends = splits.data<int64_t>();
    MR_RETURN_IF_ERROR(CheckSplits("splits", ends, splits.num_elements(), values.num_elements()));
    return Count(ctx, values, weights, /*is_matrix=*/true, splits.num_elements() - 1, [ends, &splits](int64_t i) {
      return std::upper_bound(ends, ends + splits.num_elements(), i) - ends - 1;
    });
  }

 private:
  enum class Form : uint8_t { kDense, kSparse, kRagged };

  struct Element {
    int64_t row, value, at;
  };

  // By row, then value, then `at`, by which they come sorted.
  static void SortByPlace(std::vector<Element>& elements, int64_t rows, int64_t width) {
    StopNowAndThen pause;
    int64_t places = 0;
    if (!CheckedMul(rows, width, &places) || places > 4 * std::ssize(elements)) {
      std::sort(elements.begin(), elements.end(), [&pause](const Element& a, const Element& b) {
        pause();
        return a.row != b.row ? a.row < b.row : a.value != b.value ? a.value < b.value : a.at < b.at;
      });
      return;
    }
    const auto place = [width](const Element& e) { return static_cast<size_t>(e.row * width + e.value); };
    std::vector<size_t> ends(static_cast<size_t>(places) + 1, 0);  // of what has been put there
    for (const Element& e : elements) {
      pause();
      ++ends[place(e) + 1];
    }
    std::partial_sum(ends.begin(), ends.end(), ends.begin());
    std::vector<Element> sorted(elements.size());
    for (const Element& e : elements) {
      pause();
      sorted[ends[place(e)]++] = e;
    }
    elements.swap(sorted);
  }

  template <typename RowOf>
  Status Count(KernelContext& ctx, const Tensor& values, const Tensor& weights, bool is_matrix, int64_t rows,
               RowOf row_of) const {
    MR_ASSIGN_OR_RETURN(const WideIndices wide, WideIndices::Make(ctx, values));
    const int64_t* const all = wide.data();
    std::vector<Element> elements;
    elements.reserve(static_cast<size_t>(wide.size()));
    StopNowAndThen pause;
    int64_t largest = 0;
    for (int64_t i = 0; i < wide.size(); ++i) {
      pause();
      if (most_ >= 0 && all[i] >= most_) continue;
      elements.push_back({row_of(i), all[i], i});
      largest = std::max(largest, all[i]);
    }
    if (most_ < 0 && largest == std::numeric_limits<int64_t>::max()) {
      return InvalidArgument("values must be less than ", largest, " where no maxlength is given");
    }
    SortByPlace(elements, rows, largest + 1);
    int64_t found = 0;
    for (size_t i = 0; i < elements.size(); ++i) found += IsNew(elements.data(), i);
    const int64_t rank = is_matrix ? 2 : 1;
    MR_ASSIGN_OR_RETURN(const Shape of_indices, Shape::Make({found, rank}));
    MR_ASSIGN_OR_RETURN(Tensor * indices, ctx.AllocateOutput(0, of_indices));
    MR_ASSIGN_OR_RETURN(Tensor * counts, ctx.AllocateOutput(1, Shape::Vector(found)));
    MR_ASSIGN_OR_RETURN(Tensor * shape, ctx.AllocateOutput(2, Shape::Vector(rank)));
    int64_t* const dims = shape->mutable_data<int64_t>();
    if (is_matrix) dims[0] = rows;
    dims[rank - 1] = most_ >= 0 ? most_ : std::max(largest + 1, least_);
    VisitTypes<int32_t, int64_t, float, double>(counts->dtype(), [&]<typename T>() {
      const T* const weight = weights.num_elements() > 0 && !once_ ? weights.data<T>() : nullptr;
      T *next = counts->mutable_data<T>(), *count = nullptr;
      int64_t* index = indices->mutable_data<int64_t>();
      for (size_t i = 0; i < elements.size(); ++i) {
        pause();
        const Element& e = elements[i];
        if (IsNew(elements.data(), i)) {
          if (is_matrix) *index++ = e.row;
          *index++ = e.value;
          count = next++;
          *count = T{0};
        }
        if (once_) {
          *count = T{1};
        } else {
          CombineInto<RowOp::kAdd>(*count, weight == nullptr ? T{1} : weight[e.at]);
        }
      }
    });
    return absl::OkStatus();
  }
  static bool IsNew(const Element* elements, size_t i) {
    return i == 0 || elements[i].row != elements[i - 1].row || elements[i].value != elements[i - 1].value;
  }

  Form form_ = Form::kDense;
  int64_t least_ = -1, most_ = -1;
};

}  // namespace

void RegisterCountingKernels(KernelRegistry& r) {
  r.Add<BincountKernel>({.op = "Bincount"});
  r.Add<BincountKernel>({.op = "DenseBincount"});
  r.Add<RaggedBincountKernel>({.op = "RaggedBincount"});
  r.Add<SparseBincountKernel>({.op = "SparseBincount"});
  for (const char* op : {"DenseCountSparseOutput", "SparseCountSparseOutput", "RaggedCountSparseOutput"}) {
    r.Add<CountToSparseKernel>({.op = op});
  }
}

}  // namespace millrace
