// SPDX-License-Identifier: Apache-2.0
// Ops: sets along the last dimension of tensors; crosses of features.
#include "ops/sparse/sparse_input.h"

namespace millrace {
namespace {

constexpr char kResult[] =
    " -> (result_indices:i64, result_values:T, result_shape:i64) | set_operation:string; "
    "validate_indices:bool=true; T in IDX|i8|i16|u8|u16|str";
constexpr char kDoc[] =
    "a-b, b-a, intersection or union of the sets that the rows along the last dimension of two tensors are; the other "
    "dimensions must agree. Each row of the result is sorted and has nothing twice; ";
constexpr char kFirst[] = "i64[3,2]{0 0 0 1 1 0}, i32[3]{3 1 2}, i64[2]{2 2}";
constexpr char kSecond[] = "i64[2,2]{0 0 1 2}, i32[2]{1 5}, i64[2]{2 3}";

StatusOr<int64_t> RankOf(ShapeContext& c, int input, bool dense) {
  if (dense) {
    MR_ASSIGN_OR_RETURN(const PartialShape shape, c.WithRankAtLeast(input, 2));
    return shape.has_rank() ? shape.rank() : int64_t{-1};
  }
  MR_ASSIGN_OR_RETURN(const auto size, SparseInput(c, input));
  return size.second;
}

template <bool first_dense, bool second_dense>
Status OperationShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const int64_t a, RankOf(c, 0, first_dense));
  MR_ASSIGN_OR_RETURN(const int64_t b, RankOf(c, first_dense ? 1 : 3, second_dense));
  MR_ASSIGN_OR_RETURN(const int64_t rank, c.MergeDim(a, b, "both have one rank"));
  SetSparseOutput(c, 0, -1, rank);
  return absl::OkStatus();
}

Status SizeShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(SparseInput(c, 0).status());
  return UnknownShape(c);
}

Status CrossShape(ShapeContext& c) {
  SetSparseOutput(c, 0, -1, 2);
  return absl::OkStatus();
}

void DeclareOperation(OpRegistry& r, absl::string_view inputs, absl::string_view which, ShapeFn shape,
                      absl::string_view example) {
  r.Add(absl::StrCat(inputs, kResult))
      .Doc(absl::StrCat(kDoc, which))
      .Shape(shape)
      .NotDifferentiable("sets are of integers or strings")
      .Example(absl::StrCat(example, " | set_operation=\"union\""));
}

}  // namespace

void RegisterSparseSetOps(OpRegistry& r) {
  DeclareOperation(r, "DenseToDenseSetOperation(set1:T, set2:T)", "both are dense.", OperationShape<true, true>,
                   "i32[2,2]{3 1 2 2}, i32[2,3]{1 5 1 2 0 7}");
  DeclareOperation(r, "DenseToSparseSetOperation(set1:T, set2_indices:i64, set2_values:T, set2_shape:i64)",
                   "the second is sparse.", OperationShape<true, false>, absl::StrCat("i32[2,2]{3 1 2 2}, ", kSecond));
  DeclareOperation(
      r,
      "SparseToSparseSetOperation(set1_indices:i64, set1_values:T, set1_shape:i64, set2_indices:i64, "
      "set2_values:T, set2_shape:i64)",
      "both are sparse.", OperationShape<false, false>, absl::StrCat(kFirst, ", ", kSecond));
  r.Add(
       "SetSize(set_indices:i64, set_values:T, set_shape:i64) -> (size:i32) | validate_indices:bool=true; T in "
       "IDX|i8|i16|u8|u16|str")
      .Doc("How many different values each row along the last dimension of a sparse tensor has.")
      .Shape(SizeShape)
      .NotDifferentiable("it counts")
      .Example(kFirst);
  r.Add(
       "SparseCross(indices:N*i64, values:[sparse_types], shapes:N*i64, dense_inputs:[dense_types]) -> "
       "(output_indices:i64, output_values:out_type, output_shape:i64) | N:int>=0; hashed_output:bool; "
       "num_buckets:int>=0; hash_key:int; sparse_types in list i64|str>=0; dense_types in list i64|str>=0; out_type in "
       "i64|str; internal_type in i64|str")
      .Doc(
          "For each row, every choice of one feature from each column, sparse ones first: joined by \"_X_\", or with "
          "hashed_output as the chained fingerprint, modulo num_buckets where that is not 0.")
      .Shape(CrossShape)
      .NotDifferentiable("features are integers or strings")
      .Example(
          "i64[2,2]{0 0 1 0}, i64[2]{3 4}, i64[2]{2 1}, i64[2,1]{5 6} | N=1; hashed_output=true; num_buckets=0; "
          "hash_key=7; sparse_types=[i64]; dense_types=[i64]; out_type=i64; internal_type=i64");
  for (const bool has_key : {false, true}) {
    r.Add(absl::StrCat(
              "SparseFeatureCross", has_key ? "V2" : "",
              "(indices:N*i64, values:[sparse_types], shapes:N*i64, dense:[dense_types]) -> "
              "(output_indices:i64, output_values:out_type, output_shape:i64) | N:int>=0; hashed_output:bool; "
              "num_buckets:int>=0; ",
              has_key ? "hash_key:int; " : "",
              "sparse_types in list i64|str>=0; dense_types in list i64|str>=0; out_type in i64|str; "
              "internal_type in i64|str"))
        .Doc(has_key ? "SparseCross as tf.contrib.layers had it."
                     : "SparseFeatureCrossV2 whose numbers are hashes that are chained in another way, without a key.")
        .Shape(CrossShape)
        .NotDifferentiable("features are integers or strings")
        .Example(absl::StrCat(
            "i64[2,2]{0 0 1 0}, i64[2]{3 4}, i64[2]{2 1}, i64[2,1]{5 6} | N=1; hashed_output=true; num_buckets=0; ",
            has_key ? "hash_key=7; " : "", "sparse_types=[i64]; dense_types=[i64]; out_type=i64; internal_type=i64"));
  }
}

}  // namespace millrace
