// SPDX-License-Identifier: Apache-2.0
// CPU kernels of sparse tensors.
#include <algorithm>
#include <complex>
#include <numeric>

#include "absl/strings/str_join.h"
#include "base/stop_scope.h"
#include "kernel/kernel_registry.h"
#include "kernels/cpu/engine/index_arithmetic.h"
#include "kernels/cpu/engine/index_rows.h"
#include "kernels/cpu/engine/row_ranges.h"
#include "kernels/cpu/engine/strided_copy.h"
#include "kernels/cpu/kernel_list.h"
#include "kernels/cpu/sparse/sparse.h"
#include "kernels/cpu/sparse/sparse_map.h"

namespace millrace {
namespace {

// InvalidArgument unless inputs first, first + 1, first + 2 are indices [n, rank], values [n] and a shape [rank].
Status CheckSparse(const KernelContext& ctx, int first, absl::string_view name) {
  const Shape &indices = ctx.input(first).shape(), &values = ctx.input(first + 1).shape(),
              &shape = ctx.input(first + 2).shape();
  if (indices.rank() == 2 && values.rank() == 1 && shape.rank() == 1 && indices.dim(0) == values.dim(0) &&
      indices.dim(1) == shape.dim(0)) {
    return absl::OkStatus();
  }
  return InvalidArgument(name, " needs indices [n, rank], values [n] and a shape [rank], got ", indices.ToString(),
                         ", ", values.ToString(), " and ", shape.ToString());
}

// "[1,10]": row i of a matrix of indices.
StatusOr<std::string> RowText(const Tensor& matrix, int64_t i) {
  MR_ASSIGN_OR_RETURN(const std::vector<int64_t> all, matrix.IntValues());
  const auto depth = static_cast<size_t>(matrix.dim(1));
  return absl::StrCat(
      "[", absl::StrJoin(absl::MakeConstSpan(all).subspan(static_cast<size_t>(i) * depth, depth), ","), "]");
}

// What is wrong with the first row that lies outside of `shape`; `otherwise` where none does.
Status OutOfBounds(const Tensor& matrix, const Shape& shape, const Status& otherwise) {
  MR_ASSIGN_OR_RETURN(const std::vector<int64_t> all, matrix.IntValues());
  for (size_t i = 0; i < all.size(); ++i) {
    const auto depth = static_cast<size_t>(matrix.dim(1));
    if (InRange(all[i], shape.dim(static_cast<int>(i % depth)))) continue;
    MR_ASSIGN_OR_RETURN(const std::string row, RowText(matrix, static_cast<int64_t>(i / depth)));
    return InvalidArgument(
        "indices[", i / depth, "] = ", row, " is out of bounds: need 0 <= index < ", shape.ToString());
  }
  return otherwise;
}

class SparseToDenseKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(validate_, init.Attr<bool>("validate_indices"));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    const Tensor &indices = ctx.input(0), &values = ctx.input(2), &fill = ctx.input(3);
    if (indices.rank() > 2)
      return InvalidArgument("indices must be a matrix, a vector or a scalar, got shape ", indices.shape().ToString());
    if (ctx.input(1).rank() != 1) {
      return InvalidArgument("output_shape should be a vector, got shape ", ctx.input(1).shape().ToString());
    }
    if (fill.rank() != 0) {
      return InvalidArgument("default_value should be a scalar, got shape ", fill.shape().ToString());
    }
    const int64_t n = indices.rank() == 0 ? 1 : indices.dim(0), depth = indices.rank() == 2 ? indices.dim(1) : 1;
    if (depth != ctx.input(1).dim(0)) {
      return InvalidArgument(
          "output_shape has ", ctx.input(1).dim(0), " elements, but the indices have ", depth, " columns");
    }
    if (values.rank() > 1 || (values.rank() == 1 && values.dim(0) != n)) {
      return InvalidArgument(
          "sparse_values has incorrect shape ", values.shape().ToString(), ", should be [] or [", n, "]");
    }
    MR_ASSIGN_OR_RETURN(const std::vector<int64_t> dims, ctx.input(1).IntValues());
    MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
    MR_ASSIGN_OR_RETURN(const Shape matrix, Shape::Make({n, depth}));
    MR_ASSIGN_OR_RETURN(const Tensor coordinates, indices.Reshaped(matrix));
    auto places = SliceNumbers(ctx, coordinates, shape);
    if (!places.ok()) return OutOfBounds(coordinates, shape, places.status());
    const int64_t* at = places->data<int64_t>();
    for (int64_t i = 1; validate_ && i < n; ++i) {
      if (at[i] <= at[i - 1]) {
        MR_ASSIGN_OR_RETURN(const std::string row, RowText(coordinates, i));
        return InvalidArgument("indices[", i, "] = ", row, " is ", at[i] == at[i - 1] ? "repeated" : "out of order",
                               "; sort and merge them, or pass validate_indices=False");
      }
    }
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    FillElements(out->dtype(), out->mutable_raw(), 0, shape.num_elements(), fill.raw());
    RunCopier(out->dtype(), 1).Scatter(out->mutable_raw(), at, values.raw(), values.rank() == 0 ? 0 : 1, n);
    return absl::OkStatus();
  }

 private:
  bool validate_ = true;
};

// Entries of a sparse tensor by the sequence that they belong to.
struct Sequences {
  std::vector<int64_t> group;  // of each entry, the flat number in `shape`
  std::vector<int64_t> order;  // the entries, sorted by group
};

// Indices must lie in `shape`; along the sequences they only give the order.
StatusOr<Sequences> SequencesOf(const KernelContext& ctx, int first, const Shape& shape) {
  const Tensor& indices = ctx.input(first);
  const int64_t n = indices.dim(0), rank = indices.dim(1);
  const int64_t* p = indices.data<int64_t>();
  Sequences s;
  s.group.resize(static_cast<size_t>(n));
  StopNowAndThen pause;
  const std::vector<int64_t> limits(shape.dims().begin(), shape.dims().end());
  constexpr int64_t kBetweenPauses = 1024;
  for (int64_t i = 0; i < n;) {
    StopIfAsked();
    for (const int64_t end = std::min(i + kBetweenPauses, n); i < end; ++i) {
      int64_t flat = 0;
      for (int64_t d = 0; d + 1 < rank; ++d) {
        const int64_t v = p[i * rank + d], limit = limits[static_cast<size_t>(d)];
        if (!InRange(v, limit)) return IndexOutOfRange("indices", indices.shape(), i * rank + d, v, limit);
        flat = flat * limit + v;
      }
      s.group[static_cast<size_t>(i)] = flat;
    }
  }
  s.order.resize(s.group.size());
  std::iota(s.order.begin(), s.order.end(), int64_t{0});
  if (!std::is_sorted(s.group.begin(), s.group.end())) {
    std::stable_sort(s.order.begin(), s.order.end(), [&](int64_t a, int64_t b) {
      pause();
      return s.group[static_cast<size_t>(a)] < s.group[static_cast<size_t>(b)];
    });
  }
  return s;
}

// What of an element is compared.
template <typename T>
auto SymbolOf(const T& v) {
  if constexpr (std::is_same_v<T, TString>) {
    return v.view();
  } else if constexpr (kIsHalf<T>) {
    return static_cast<float>(v);
  } else if constexpr (std::is_same_v<T, bool>) {
    return static_cast<uint8_t>(v);
  } else {
    return v;
  }
}

// `row` is memory to use.
template <typename S>
int64_t Levenshtein(absl::Span<const S> x, absl::Span<const S> y, std::vector<int64_t>& row) {
  for (; !x.empty() && !y.empty() && x.front() == y.front(); y.remove_prefix(1)) x.remove_prefix(1);
  for (; !x.empty() && !y.empty() && x.back() == y.back(); y.remove_suffix(1)) x.remove_suffix(1);
  row.resize(y.size() + 1);
  std::iota(row.begin(), row.end(), int64_t{0});
  StopNowAndThen pause;
  constexpr size_t kBlock = 256;
  for (const S& v : x) {
    int64_t diagonal = row[0], left = ++row[0];
    for (size_t begin = 0; begin < y.size(); begin += kBlock) {
      pause();
      const size_t end = std::min(y.size(), begin + kBlock);
      for (size_t j = begin; j < end; ++j) {
        const int64_t above = row[j + 1];
        left = std::min(diagonal + (v == y[j] ? 0 : 1), std::min(left, above) + 1);
        diagonal = above;
        row[j + 1] = left;
      }
    }
  }
  return row[y.size()];
}

class EditDistanceKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(normalize_, init.Attr<bool>("normalize"));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    MR_RETURN_IF_ERROR(CheckSparse(ctx, 0, "the hypothesis"));
    MR_RETURN_IF_ERROR(CheckSparse(ctx, 3, "the truth"));
    const int64_t rank = ctx.input(2).dim(0);
    if (rank < 1 || rank != ctx.input(5).dim(0)) {
      return InvalidArgument(
          "hypothesis and truth must have one rank, at least 1, got ", rank, " and ", ctx.input(5).dim(0));
    }
    std::vector<int64_t> dims;
    for (int64_t d = 0; d + 1 < rank; ++d)
      dims.push_back(std::max(ctx.input(2).data<int64_t>()[d], ctx.input(5).data<int64_t>()[d]));
    MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
    MR_ASSIGN_OR_RETURN(const Sequences hypothesis, SequencesOf(ctx, 0, shape));
    MR_ASSIGN_OR_RETURN(const Sequences truth, SequencesOf(ctx, 3, shape));
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    const bool known =
        VisitTypes<float, double, Half, BFloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t,
                   uint64_t, bool, complex64, complex128, TString>(ctx.input(1).dtype(), [&]<typename T>() {
          Compare<T>(ctx.input(1).data<T>(), hypothesis, ctx.input(4).data<T>(), truth, out->mutable_flat<float>());
        });
    return known ? absl::OkStatus()
                 : Unimplemented("values of type ", DTypeName(ctx.input(1).dtype()), " cannot be compared");
  }

 private:
  static absl::Span<const int64_t> Next(const Sequences& s, size_t* from, int64_t group) {
    const size_t begin = *from;
    while (*from < s.order.size() && s.group[static_cast<size_t>(s.order[*from])] == group) ++*from;
    return absl::MakeConstSpan(s.order).subspan(begin, *from - begin);
  }
  template <typename T>
  void Compare(const T* x, const Sequences& hypothesis, const T* y, const Sequences& truth,
               absl::Span<float> out) const {
    using Symbol = decltype(SymbolOf(*x));
    const auto take = [](const T* v, absl::Span<const int64_t> places, std::vector<Symbol>* symbols) {
      symbols->clear();
      for (const int64_t at : places) symbols->push_back(SymbolOf(v[at]));
    };
    std::vector<Symbol> xs, ys;
    std::vector<int64_t> row;
    size_t h = 0, t = 0;
    for (size_t g = 0; g < out.size(); ++g) {
      take(x, Next(hypothesis, &h, static_cast<int64_t>(g)), &xs);
      take(y, Next(truth, &t, static_cast<int64_t>(g)), &ys);
      const auto distance = static_cast<float>(Levenshtein(absl::MakeConstSpan(xs), absl::MakeConstSpan(ys), row));
      out[g] = !normalize_ || distance == 0 ? distance : distance / static_cast<float>(ys.size());
    }
  }
  bool normalize_ = true;
};

template <typename T>
T ConjugateOf(T v) {
  if constexpr (kIsComplexType<T>) return std::conj(v);
  return v;
}

class SparseMatMulKernel final : public Kernel {
 public:
  Status Init(const KernelInit& init) override {
    MR_ASSIGN_OR_RETURN(adjoint_a_, init.Attr<bool>("adjoint_a"));
    MR_ASSIGN_OR_RETURN(adjoint_b_, init.Attr<bool>("adjoint_b"));
    return absl::OkStatus();
  }
  Status Compute(KernelContext& ctx) override {
    MR_RETURN_IF_ERROR(CheckSparse(ctx, 0, "a"));
    const Tensor& b = ctx.input(3);
    if (ctx.input(2).dim(0) != 2) return InvalidArgument("a must be a matrix, got rank ", ctx.input(2).dim(0));
    if (b.rank() != 2) return InvalidArgument("b must be a matrix, got shape ", b.shape().ToString());
    const int64_t* dims = ctx.input(2).data<int64_t>();
    MR_ASSIGN_OR_RETURN(const Shape a_shape, Shape::Make({dims[0], dims[1]}));
    const int64_t m = a_shape.dim(adjoint_a_ ? 1 : 0), inner = a_shape.dim(adjoint_a_ ? 0 : 1);
    const int64_t n = b.dim(adjoint_b_ ? 0 : 1);
    if (inner != b.dim(adjoint_b_ ? 1 : 0)) {
      return InvalidArgument("inner dimensions differ: a", adjoint_a_ ? " (adjoint)" : "", " is ", a_shape.ToString(),
                             ", b", adjoint_b_ ? " (adjoint)" : "", " is ", b.shape().ToString());
    }
    MR_ASSIGN_OR_RETURN(const WideIndices indices, WideIndices::Make(ctx, ctx.input(0)));
    MR_RETURN_IF_ERROR(CheckPlaces(indices.data(), indices.size(), ctx.input(0).shape(), a_shape, adjoint_a_));
    MR_ASSIGN_OR_RETURN(const Shape shape, Shape::Make({m, n}));
    MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, shape));
    Status status;
    const bool known = VisitTypes<float, double, Half, BFloat16, int32_t, int64_t, complex64, complex128>(
        b.dtype(), [&]<typename T>() { status = Multiply<T>(ctx, indices.data(), *out); });
    return known ? status : Unimplemented("no sparse product of ", DTypeName(b.dtype()));
  }

 private:
  static Status CheckPlaces(const int64_t* places, int64_t n, const Shape& shape, const Shape& matrix, bool adjoint) {
    const auto rows = static_cast<uint64_t>(matrix.dim(0)), columns = static_cast<uint64_t>(matrix.dim(1));
    bool outside = false;  // negative numbers are large ones
    for (int64_t i = 0; i < n; i += 2) {
      outside |= (static_cast<uint64_t>(places[i]) >= rows) | (static_cast<uint64_t>(places[i + 1]) >= columns);
    }
    for (int64_t i = 0; outside && i < n; ++i) {
      const int64_t limit = matrix.dim(static_cast<int>(i & 1));
      if (InRange(places[i], limit)) continue;
      const int64_t row = i / 2;
      return InvalidArgument(((i & 1) != 0) != adjoint ? "k (" : "m (", places[i], ") from index[", row, ",", i & 1,
                             "] out of bounds (>=", limit, "): a_indices of shape ", shape.ToString());
    }
    return absl::OkStatus();
  }

  template <typename T>
  using SumOf = Accumulator<T>;

  // to[j] += v * from[j] for j < kCount: a fixed length, which becomes vector code.
  template <int kCount, typename Sum, typename T>
  static void AddSome(Sum v, const T* __restrict from, Sum* __restrict to) {
    for (int j = 0; j < kCount; ++j) {
      if constexpr (std::is_integral_v<T>) {
        to[j] = Combine<RowOp::kAdd>(to[j], Combine<RowOp::kMul>(v, from[j]));
      } else {
        to[j] += v * static_cast<Sum>(from[j]);
      }
    }
  }
  template <typename Sum, typename T>
  static void AddProduct(Sum v, const T* from, int64_t n, Sum* to) {
    for (; n >= 16; n -= 16, from += 16, to += 16) AddSome<16>(v, from, to);
    if (n & 8) AddSome<8>(v, from, to), from += 8, to += 8;
    if (n & 4) AddSome<4>(v, from, to), from += 4, to += 4;
    if (n & 2) AddSome<2>(v, from, to), from += 2, to += 2;
    if (n & 1) AddSome<1>(v, from, to);
  }

  // One product: the places of entries and which of a place's two numbers is the row, values, rows of n numbers.
  template <typename T>
  struct Product {
    const int64_t* indices;
    int of_row;
    const T* values;
    const T* dense;
    int64_t n;
    SumOf<T>* sums;

    int64_t row(int64_t i) const { return indices[2 * i + of_row]; }
    const T* from(int64_t i) const { return dense + indices[2 * i + 1 - of_row] * n; }
    SumOf<T> value(int64_t i) const { return static_cast<SumOf<T>>(of_row == 1 ? ConjugateOf(values[i]) : values[i]); }
  };

  // Asks for the rows of an entry that comes soon: one of them may lie anywhere. Inline by force: a function that does
  // no more than ask is one without effect, calls of which are left out.
  template <typename T>
  [[gnu::always_inline]] static void Prefetch(const Product<T>& p, const RangeEntries& some, int64_t k, int64_t end) {
    constexpr int64_t kAhead = 12;
    if (k + kAhead >= end) return;
    const int64_t i = some.at(k + kAhead);
    __builtin_prefetch(p.from(i));
    __builtin_prefetch(p.sums + p.row(i) * p.n, 1);
  }

  template <typename T>
  static void AddEntries(const Product<T>& p, const RangeEntries& some, int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      Prefetch(p, some, k, end);
      const int64_t i = some.at(k);
      AddProduct(p.value(i), p.from(i), p.n, p.sums + p.row(i) * p.n);
    }
  }
  // Narrow rows: their sums stay in registers while entries of one row follow each other. Asking for them takes longer
  // than waiting.
  template <int kWidth, typename T>
  static void AddNarrow(const Product<T>& p, const RangeEntries& some, int64_t begin, int64_t end) {
    SumOf<T> row[kWidth] = {};
    SumOf<T>* to = nullptr;
    for (int64_t k = begin; k < end; ++k) {
      const int64_t i = some.at(k);
      SumOf<T>* const next = p.sums + p.row(i) * kWidth;
      if (next != to) {
        if (to != nullptr) std::copy(row, row + kWidth, to);
        to = next;
        std::copy(to, to + kWidth, row);
      }
      AddSome<kWidth>(p.value(i), p.from(i), row);
    }
    if (to != nullptr) std::copy(row, row + kWidth, to);
  }
  // The same where hardly two entries of one row follow each other, as in an adjoint product.
  template <int kWidth, typename T>
  static void AddScattered(const Product<T>& p, const RangeEntries& some, int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      const int64_t i = some.at(k);
      AddSome<kWidth>(p.value(i), p.from(i), p.sums + p.row(i) * kWidth);
    }
  }
  template <typename T>
  using AddFn = void (*)(const Product<T>&, const RangeEntries&, int64_t begin, int64_t end);
  template <typename T>
  static AddFn<T> AdderFor(int64_t n, bool scattered) {
    static constexpr AddFn<T> kScattered[] = {
        AddScattered<1, T>, AddScattered<2, T>, AddScattered<3, T>, AddScattered<4, T>,
        AddScattered<5, T>, AddScattered<6, T>, AddScattered<7, T>, AddScattered<8, T>};
    if (scattered && n >= 1 && n <= 8) return kScattered[n - 1];
    static constexpr AddFn<T> kNarrow[] = {
        AddNarrow<1, T>, AddNarrow<2, T>, AddNarrow<3, T>, AddNarrow<4, T>,
        AddNarrow<5, T>, AddNarrow<6, T>, AddNarrow<7, T>, AddNarrow<8, T>};
    return n >= 1 && n <= 8 ? kNarrow[n - 1] : AddEntries<T>;
  }

  // Threads take ranges of output rows: each output element is summed in the order of the entries.
  template <typename T>
  Status Multiply(KernelContext& ctx, const int64_t* indices, Tensor& out) const {
    using Sum = SumOf<T>;
    const Tensor& b = ctx.input(3);
    const int64_t entries = ctx.input(1).num_elements(), m = out.dim(0), n = out.dim(1);
    const T* values = ctx.input(1).data<T>();
    const T* dense = b.data<T>();
    Tensor turned;
    if (adjoint_b_) {
      MR_ASSIGN_OR_RETURN(turned, ctx.AllocateTemp(b.dtype(), b.shape()));
      T* to = turned.mutable_data<T>();
      const CopyDim dims[] = {{b.dim(1), n, 1}, {n, 1, b.dim(1)}};
      StridedCopy(&ctx, b.dtype(), to, dense, dims);
      if constexpr (kIsComplexType<T>) std::transform(to, to + b.num_elements(), to, ConjugateOf<T>);
      dense = to;
    }
    Tensor wide;
    if constexpr (!std::is_same_v<Sum, T>) {
      MR_ASSIGN_OR_RETURN(wide, ctx.AllocateTemp(DTypeOf<Sum>::value, out.shape()));
    }
    Sum* sums = std::is_same_v<Sum, T> ? out.mutable_data<Sum>() : wide.mutable_data<Sum>();
    std::fill(sums, sums + m * n, Sum{});
    const Product<T> product{indices, adjoint_a_ ? 1 : 0, values, dense, n, sums};
    const AddFn<T> add = AdderFor<T>(n, adjoint_a_);
    const auto multiply = [&](const RangeEntries& some) {
      const int64_t stretch = std::max<int64_t>(1, (1 << 16) / (n + 1));
      for (int64_t begin = 0; begin < some.n; begin += stretch) {
        StopIfAsked();
        add(product, some, begin, std::min(some.n, begin + stretch));
      }
    };
    const double cost = 3 + 0.2 * static_cast<double>(n);  // of an entry
    constexpr double kWorthSorting = 200e3;
    const int threads = ThreadsOf(ctx);
    if (threads == 1 || static_cast<double>(entries) * cost < kWorthSorting || entries > RowRanges::kMostEntries) {
      multiply(RangeEntries{nullptr, 0, entries});
    } else {
      MR_ASSIGN_OR_RETURN(
          const RowRanges ranges,
          RowRanges::Make(ctx, indices + product.of_row, 2, entries, m, n * static_cast<int64_t>(sizeof(T))));
      const double per_range = cost * static_cast<double>(entries) / static_cast<double>(ranges.size());
      ctx.ParallelFor(ranges.size(), per_range, [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) multiply(ranges[r]);
      });
    }
    if constexpr (!std::is_same_v<Sum, T>) {
      for (int64_t i = 0; i < m * n; ++i) out.mutable_data<T>()[i] = T(sums[i]);
    }
    return absl::OkStatus();
  }

  bool adjoint_a_ = false, adjoint_b_ = false;
};

Status Reorder(KernelContext& ctx) {
  MR_RETURN_IF_ERROR(CheckSparse(ctx, 0, "the input"));
  const Tensor& indices = ctx.input(0);
  const SparseArg s{.values = &ctx.input(1), .indices = &indices, .n = indices.dim(0), .rank = indices.dim(1)};
  if (InRowMajorOrder(s, s.rank)) {
    ctx.Forward(0, 0);
    ctx.Forward(1, 1);
    return absl::OkStatus();
  }
  const std::vector<int64_t> order = RowMajorOrder(s, s.rank);
  MR_ASSIGN_OR_RETURN(Tensor * places, ctx.AllocateOutput(0, indices.shape()));
  int64_t* to = places->mutable_data<int64_t>();
  for (const int64_t i : order) to = std::copy(s.at(i), s.at(i) + s.rank, to);
  return GatherValues(ctx, 1, *s.values, order);
}

}  // namespace

void RegisterSparseKernels(KernelRegistry& registry) {
  RegisterSparseMapKernels(registry);
  RegisterSparseMathKernels(registry);
  RegisterSparseDenseKernels(registry);
  RegisterSparseReduceKernels(registry);
  RegisterSparseLayoutKernels(registry);
  RegisterSparseFillKernels(registry);
  RegisterSparseSerialKernels(registry);
  RegisterSparseSetKernels(registry);
  RegisterSparseCrossKernels(registry);
  registry.Add<SparseToDenseKernel>({.op = "SparseToDense"});
  registry.Add<EditDistanceKernel>({.op = "EditDistance"});
  registry.Add<SparseMatMulKernel>({.op = "SparseTensorDenseMatMul", .types = {{"T", Types("FC|i32|i64")}}});
  registry.AddFn({.op = "SparseReorder"}, Reorder);
}

}  // namespace millrace
