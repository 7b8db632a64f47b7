// SPDX-License-Identifier: Apache-2.0
// Ops: matrix factorization by weighted alternating least squares (Hu, Koren and Volinsky 2008).
#include "ops/linalg/linalg_ops.h"

namespace millrace {
namespace {

Status MaskedMatmulShape(ShapeContext& c) {
  for (const int matrix : {0, 1, 2}) MR_RETURN_IF_ERROR(c.WithRank(matrix, 2).status());
  for (const int flag : {3, 4}) MR_RETURN_IF_ERROR(c.RequireScalar(flag));
  const PartialShape& mask = c.input(2);
  if (mask.has_rank()) MR_RETURN_IF_ERROR(c.MergeDim(mask.dim(1), 2, "a row and a column").status());
  c.set_output(0, PartialShape::Of({mask.has_rank() ? mask.dim(0) : -1}));
  return absl::OkStatus();
}

Status PartialEquationsShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape factors, c.WithRank(0, 2));
  MR_RETURN_IF_ERROR(c.WithRank(4, 2).status());
  for (const int vector : {1, 3, 5, 6}) MR_RETURN_IF_ERROR(c.WithRank(vector, 1).status());
  for (const int scalar : {2, 7, 8}) MR_RETURN_IF_ERROR(c.RequireScalar(scalar));
  MR_ASSIGN_OR_RETURN(const std::optional<int64_t> rows, c.ConstantInt(7));
  if (rows && *rows < 0) return InvalidArgument("input_block_size must not be negative, got ", *rows);
  const int64_t n = rows.value_or(-1), k = factors.has_rank() ? factors.dim(1) : -1;
  c.set_output(0, PartialShape::Of({n, k, k}));
  c.set_output(1, PartialShape::Of({n, k}));
  return absl::OkStatus();
}

}  // namespace

void RegisterWalsOps(OpRegistry& r) {
  r.Add("MaskedMatmul(a:f32, b:f32, mask_indices:i64, transpose_a:bool, transpose_b:bool) -> (prod_values:f32)")
      .Doc(
          "The elements of the product of two matrices (either may be transposed) that `mask_indices` names by row "
          "and column.")
      .Shape(MaskedMatmulShape)
      .NoGradient("gather rows and columns, and sum their products, for what can be differentiated")
      .Example("f32[2,3]~, f32[3,2]~, i64[3,2]{0 0 1 1 1 0}, bool[]{false}, bool[]{false}");
  r.Add(
       "WALSComputePartialLhsAndRhs(factors:f32, factor_weights:f32, unobserved_weights:f32, input_weights:f32, "
       "input_indices:i64, input_values:f32, entry_weights:f32, input_block_size:i64, input_is_transpose:bool) -> "
       "(partial_lhs:f32, partial_rhs:f32)")
      .Doc(
          "For each row r of a sparse matrix (of a transposed one each column), what its entries x with weight w at "
          "column c add to the normal equations of its factor: the sum of w f f' to the left side, where f is row c of "
          "`factors`, and that of (unobserved_weights + w) x f to the right. Weights are either `entry_weights`, or "
          "input_weights[r] * factor_weights[c]; what is not used is empty.")
      .Shape(PartialEquationsShape)
      .NoGradient("alternating least squares solves for factors, and needs none")
      .Example(
          "f32[3,2]~, f32[0]{}, f32[]{0.5}, f32[0]{}, i64[2,2]{0 2 1 0}, f32[2]~, f32[2]+, i64[]{2}, bool[]{false}");
}

}  // namespace millrace
