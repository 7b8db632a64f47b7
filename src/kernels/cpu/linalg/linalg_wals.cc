// SPDX-License-Identifier: Apache-2.0
// CPU kernels: what weighted alternating least squares takes from sparse matrices. Entries are taken in the order of
// the rows that they belong to, a row by one thread.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/stop_scope.h"
#include "kernels/cpu/linalg/linalg.h"

namespace millrace {
namespace {

Status CheckRank(const KernelContext& ctx, int input, int rank, const char* what) {
  const Shape& shape = ctx.input(input).shape();
  const std::string& name = ctx.node().op->inputs[static_cast<size_t>(input)].name;
  if (shape.rank() == rank) return absl::OkStatus();
  return InvalidArgument("Input ", name, " should be a ", what, ", got shape ", shape.ToString());
}
Status CheckScalar(const KernelContext& ctx, int input) { return CheckRank(ctx, input, 0, "scalar"); }
Status CheckVector(const KernelContext& ctx, int input) { return CheckRank(ctx, input, 1, "vector"); }
Status CheckMatrix(const KernelContext& ctx, int input) { return CheckRank(ctx, input, 2, "matrix"); }

// `entries` numbers of rows and columns; each row below `rows`, each column below `columns`.
Status CheckEntries(const Tensor& entries, int64_t rows, int64_t columns, const char* name) {
  if (entries.dim(1) != 2) return InvalidArgument(name, " should have shape [?, 2], got ", entries.shape().ToString());
  const int64_t* at = entries.data<int64_t>();
  StopNowAndThen pause;
  for (int64_t i = 0; i < entries.dim(0); ++i) {
    pause();
    for (const int64_t k : {0, 1}) {
      const int64_t limit = k == 0 ? rows : columns;
      if (at[2 * i + k] >= 0 && at[2 * i + k] < limit) continue;
      return InvalidArgument("In ", name, "[", i, ", :], the ", k == 0 ? "row" : "column", " index ", at[2 * i + k],
                             " is out of bounds [0, ", limit, ").");
    }
  }
  return absl::OkStatus();
}

// ---- MaskedMatmul ----

// Element (i, k) of a matrix is at data[i * step + k * inner].
struct Rows {
  const float* data;
  int64_t count, length, step, inner;

  static Rows Of(const Tensor& t, bool are_columns) {
    const int64_t m = t.dim(0), n = t.dim(1);
    return are_columns ? Rows{t.data<float>(), n, m, 1, n} : Rows{t.data<float>(), m, n, n, 1};
  }
};

Status MaskedMatmul(KernelContext& ctx) {
  for (const int matrix : {0, 1, 2}) MR_RETURN_IF_ERROR(CheckMatrix(ctx, matrix));
  for (const int flag : {3, 4}) MR_RETURN_IF_ERROR(CheckScalar(ctx, flag));
  const Tensor& mask = ctx.input(2);
  const Rows a = Rows::Of(ctx.input(0), *ctx.input(3).data<bool>());
  const Rows b = Rows::Of(ctx.input(1), !*ctx.input(4).data<bool>());
  if (a.length != b.length) {
    return InvalidArgument("Matrix shapes are incompatible: a has shape ", ctx.input(0).shape().ToString(),
                           ", while b has shape ", ctx.input(1).shape().ToString(), ".");
  }
  MR_RETURN_IF_ERROR(CheckEntries(mask, a.count, b.count, "mask_indices"));
  MR_ASSIGN_OR_RETURN(Tensor * out, ctx.AllocateOutput(0, Shape::Vector(mask.dim(0))));
  const int64_t* at = mask.data<int64_t>();
  float* to = out->mutable_data<float>();
  ctx.ParallelFor(mask.dim(0), 10 + static_cast<double>(a.length), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const float* x = a.data + at[2 * i] * a.step;
      const float* y = b.data + at[2 * i + 1] * b.step;
      double sum = 0;
      for (int64_t k = 0; k < a.length; ++k) sum += double{x[k * a.inner]} * y[k * b.inner];
      to[i] = static_cast<float>(sum);
    }
  });
  return absl::OkStatus();
}

// ---- WALSComputePartialLhsAndRhs ----

enum EquationInput {
  kFactors,
  kFactorWeights,
  kUnobservedWeight,
  kInputWeights,
  kIndices,
  kValues,
  kEntryWeights,
  kBlockSize,
  kIsTranspose
};

// The sparse matrix, as if it were not transposed.
struct Entries {
  const int64_t* indices;
  bool transposed;
  const float* values;
  const float* weights;  // of entries; null: those of rows and columns
  const float* row_weights;
  const float* column_weights;

  int64_t row(int64_t i) const { return indices[2 * i + (transposed ? 1 : 0)]; }
  int64_t column(int64_t i) const { return indices[2 * i + (transposed ? 0 : 1)]; }
  float weight(int64_t i) const { return weights ? weights[i] : row_weights[row(i)] * column_weights[column(i)]; }
};

Status CheckEquationInputs(const KernelContext& ctx) {
  for (const int matrix : {kFactors, kIndices}) MR_RETURN_IF_ERROR(CheckMatrix(ctx, matrix));
  for (const int vector : {kFactorWeights, kInputWeights, kValues, kEntryWeights}) {
    MR_RETURN_IF_ERROR(CheckVector(ctx, vector));
  }
  for (const int scalar : {kUnobservedWeight, kBlockSize, kIsTranspose}) MR_RETURN_IF_ERROR(CheckScalar(ctx, scalar));
  const auto length = [&](int input) { return ctx.input(input).dim(0); };
  const int64_t rows = *ctx.input(kBlockSize).data<int64_t>();
  if (rows < 0) return InvalidArgument("input_block_size must not be negative, got ", rows);
  if (length(kIndices) != length(kValues)) {
    return InvalidArgument("Input input_values' length should match the first dimension of Input input_indices, got ",
                           length(kValues), " and ", length(kIndices));
  }
  const bool by_entry =
      length(kEntryWeights) == length(kIndices) && length(kInputWeights) == 0 && length(kFactorWeights) == 0;
  const bool by_row =
      length(kInputWeights) > 0 && length(kFactorWeights) == length(kFactors) && length(kEntryWeights) == 0;
  if (!by_entry && !by_row) {
    return InvalidArgument(
        "To specify the weights for observed entries, either (1) entry_weights must be set or (2) input_weights and "
        "factor_weights must be set, but not both.");
  }
  const int64_t weighted_rows = by_row ? std::min(rows, length(kInputWeights)) : rows;
  const bool transposed = *ctx.input(kIsTranspose).data<bool>();
  return transposed ? CheckEntries(ctx.input(kIndices), length(kFactors), weighted_rows, "input_indices")
                    : CheckEntries(ctx.input(kIndices), weighted_rows, length(kFactors), "input_indices");
}

// What the entries [begin, end) of `order`, which are of one row, add to its equations of k unknowns.
void AddRow(const Entries& entries, absl::Span<const int64_t> order, const float* factors, int64_t k, float unobserved,
            float* left, float* right) {
  StopNowAndThen pause;
  for (const int64_t i : order) {
    pause();
    const float weight = entries.weight(i), scale = entries.values[i] * (unobserved + weight);
    const float* f = factors + entries.column(i) * k;
    for (int64_t r = 0; r < k; ++r) {
      pause(k / 16);
      right[r] += scale * f[r];
      const float by = weight * f[r];
      for (int64_t c = 0; c < k; ++c) left[r * k + c] += by * f[c];
    }
  }
}

Status PartialEquations(KernelContext& ctx) {
  MR_RETURN_IF_ERROR(CheckEquationInputs(ctx));
  const auto floats = [&](int input) { return ctx.input(input).data<float>(); };
  const int64_t n = ctx.input(kIndices).dim(0), k = ctx.input(kFactors).dim(1);
  const int64_t rows = *ctx.input(kBlockSize).data<int64_t>();
  const Entries entries{
      .indices = ctx.input(kIndices).data<int64_t>(),
      .transposed = *ctx.input(kIsTranspose).data<bool>(),
      .values = floats(kValues),
      .weights = ctx.input(kInputWeights).dim(0) == 0 ? floats(kEntryWeights) : nullptr,
      .row_weights = floats(kInputWeights),
      .column_weights = floats(kFactorWeights)};
  StopNowAndThen pause;
  for (int64_t i = 0; i < n; ++i) {
    pause();
    if (!(entries.weight(i) >= 0)) return InvalidArgument("weights must not be negative, got ", entries.weight(i));
  }
  MR_ASSIGN_OR_RETURN(const Shape left_shape, Shape::Make({rows, k, k}));
  MR_ASSIGN_OR_RETURN(const Shape right_shape, Shape::Make({rows, k}));
  MR_ASSIGN_OR_RETURN(Tensor * left, ctx.AllocateOutput(0, left_shape));
  MR_ASSIGN_OR_RETURN(Tensor * right, ctx.AllocateOutput(1, right_shape));
  std::fill_n(left->mutable_data<float>(), left->num_elements(), 0.0f);
  std::fill_n(right->mutable_data<float>(), right->num_elements(), 0.0f);

  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) {
    pause();
    return entries.row(i) < entries.row(j);
  });
  std::vector<size_t> starts;  // of rows, in `order`
  for (size_t p = 0; p < order.size(); ++p) {
    if (p == 0 || entries.row(order[p]) != entries.row(order[p - 1])) starts.push_back(p);
  }
  starts.push_back(order.size());
  const double entries_of_row = static_cast<double>(n) / std::max<double>(1, static_cast<double>(starts.size() - 1));
  const double cost = entries_of_row * static_cast<double>(k) * (1 + 0.3 * static_cast<double>(k));
  ctx.ParallelFor(std::ssize(starts) - 1, cost, [&](int64_t begin, int64_t end) {
    for (auto s = static_cast<size_t>(begin); s < static_cast<size_t>(end); ++s) {
      const int64_t row = entries.row(order[starts[s]]);
      AddRow(entries, absl::MakeConstSpan(order).subspan(starts[s], starts[s + 1] - starts[s]), floats(kFactors), k,
             *floats(kUnobservedWeight), left->mutable_data<float>() + row * k * k,
             right->mutable_data<float>() + row * k);
    }
  });
  return absl::OkStatus();
}

// A product of rows for each entry, which has two numbers.
OpCost MaskedMatmulCost(const CostContext& node) {
  if (node.inputs.size() < 3) return ElementCost(node);
  const PartialShape& a = node.inputs[0].shape;
  const double length =
      a.has_rank() && a.rank() == 2
          ? EstimateElements(PartialShape::Of({std::max(a.dim(0), a.dim(1))}))
          : kAssumedDimension;
  return CostOf(node.inputs[2].elements() * length, node);
}

// A square of unknowns for each entry.
OpCost EquationsCost(const CostContext& node) {
  if (node.inputs.size() <= kValues) return ElementCost(node);
  const PartialShape& factors = node.inputs[kFactors].shape;
  const double unknowns =
      factors.has_rank() && factors.rank() == 2
          ? EstimateElements(PartialShape::Of({factors.dim(1)}))
          : kAssumedDimension;
  return CostOf(2 * node.inputs[kValues].elements() * unknowns * unknowns, node);
}

}  // namespace

void RegisterWalsKernels(KernelRegistry& registry) {
  registry.AddFn({.op = "MaskedMatmul", .cost = MaskedMatmulCost}, MaskedMatmul);
  registry.AddFn({.op = "WALSComputePartialLhsAndRhs", .cost = EquationsCost}, PartialEquations);
}

}  // namespace millrace
