// SPDX-License-Identifier: Apache-2.0
// Ops: tensors made of Example and SequenceExample messages. A sparse feature is three outputs (indices, values,
// shape), a dense one is one.
#include "graph/gradient.h"
#include "op/shape_context.h"
#include "ops/parsing/parsing_ops.h"

namespace millrace {
namespace {

constexpr char kStrings[] = "strings have no derivative";

PartialShape Joined(const std::vector<int64_t>& lead, const PartialShape& rest) {
  if (!rest.has_rank()) return PartialShape();
  std::vector<int64_t> dims = lead;
  dims.insert(dims.end(), rest.dims().begin(), rest.dims().end());
  return PartialShape::Of(std::move(dims));
}

// Outputs of sparse features, with `rank` numbers an index.
void SetSparse(ShapeContext& c, const char* indices, const char* values, const char* shapes, int64_t rank) {
  const ArgRange i = c.output_arg(indices), v = c.output_arg(values), s = c.output_arg(shapes);
  for (int k = i.begin; k < i.end; ++k) c.set_output(k, PartialShape::Of({-1, rank}));
  for (int k = v.begin; k < v.end; ++k) c.set_output(k, PartialShape::Of({-1}));
  for (int k = s.begin; k < s.end; ++k) c.set_output(k, PartialShape::Of({rank}));
}

Status SetDense(ShapeContext& c, const char* values, const char* attr, const std::vector<int64_t>& lead) {
  MR_ASSIGN_OR_RETURN(const auto shapes, c.Attr<std::vector<PartialShape>>(attr));
  const ArgRange range = c.output_arg(values);
  if (shapes.size() != static_cast<size_t>(range.end - range.begin)) {
    return InvalidArgument(attr, " has ", shapes.size(), " shapes for ", range.end - range.begin, " outputs");
  }
  for (int k = range.begin; k < range.end; ++k) {
    c.set_output(k, Joined(lead, shapes[static_cast<size_t>(k - range.begin)]));
  }
  return absl::OkStatus();
}

// Keys that are inputs.
Status RequireScalars(ShapeContext& c, const char* arg) {
  const ArgRange range = c.input_arg(arg);
  for (int i = range.begin; i < range.end; ++i) MR_RETURN_IF_ERROR(c.RequireScalar(i));
  return absl::OkStatus();
}

Status ParseExampleShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape serialized, c.WithRank(0, 1));
  MR_RETURN_IF_ERROR(c.WithRank(1, 1).status());
  MR_RETURN_IF_ERROR(RequireScalars(c, "sparse_keys"));
  MR_RETURN_IF_ERROR(RequireScalars(c, "dense_keys"));
  SetSparse(c, "sparse_indices", "sparse_values", "sparse_shapes", 2);
  return SetDense(c, "dense_values", "dense_shapes", {serialized.has_rank() ? serialized.dim(0) : -1});
}

Status ParseExampleV2Shape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape serialized, c.WithRankAtMost(0, 1));
  for (const char* keys : {"sparse_keys", "dense_keys", "ragged_keys"}) {
    MR_RETURN_IF_ERROR(c.WithRank(c.input_arg(keys).begin, 1).status());
  }
  if (!serialized.has_rank()) return absl::OkStatus();
  const bool batch = serialized.rank() == 1;
  SetSparse(c, "sparse_indices", "sparse_values", "sparse_shapes", batch ? 2 : 1);
  const ArgRange values = c.output_arg("ragged_values"), splits = c.output_arg("ragged_row_splits");
  const int64_t rows = !batch ? -1 : serialized.dim(0);
  for (int k = values.begin; k < values.end; ++k) c.set_output(k, PartialShape::Of({-1}));
  for (int k = splits.begin; k < splits.end; ++k) {
    c.set_output(k, PartialShape::Of({!batch ? 0 : rows < 0 ? -1 : rows + 1}));
  }
  return SetDense(c, "dense_values", "dense_shapes", batch ? std::vector<int64_t>{rows} : std::vector<int64_t>{});
}

Status ParseSingleExampleShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.RequireScalar(0));
  SetSparse(c, "sparse_indices", "sparse_values", "sparse_shapes", 1);
  return SetDense(c, "dense_values", "dense_shapes", {});
}

Status SetContext(ShapeContext& c, bool batch, int64_t count) {
  SetSparse(c, "context_sparse_indices", "context_sparse_values", "context_sparse_shapes", batch ? 2 : 1);
  std::vector<int64_t> lead;
  if (batch) lead.push_back(count);
  return SetDense(c, "context_dense_values", "context_dense_shapes", lead);
}

Status ParseSequenceShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape serialized, c.WithRankAtMost(0, 1));
  if (!serialized.has_rank()) return absl::OkStatus();
  const bool batch = serialized.rank() == 1;
  const int64_t count = batch ? serialized.dim(0) : 1;
  MR_RETURN_IF_ERROR(SetContext(c, batch, count));
  SetSparse(
      c, "feature_list_sparse_indices", "feature_list_sparse_values", "feature_list_sparse_shapes", batch ? 3 : 2);
  const std::vector<int64_t> lead = batch ? std::vector<int64_t>{count, -1} : std::vector<int64_t>{-1};
  MR_RETURN_IF_ERROR(SetDense(c, "feature_list_dense_values", "feature_list_dense_shapes", lead));
  const ArgRange lengths = c.output_arg("feature_list_dense_lengths");
  for (int k = lengths.begin; k < lengths.end; ++k) c.set_output(k, serialized);
  return absl::OkStatus();
}

Status ParseSingleSequenceShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.RequireScalar(0));
  MR_RETURN_IF_ERROR(c.WithRank(1, 1).status());
  for (const char* keys : {"context_sparse_keys", "context_dense_keys", "feature_list_sparse_keys",
                           "feature_list_dense_keys", "debug_name"}) {
    MR_RETURN_IF_ERROR(RequireScalars(c, keys));
  }
  MR_RETURN_IF_ERROR(SetContext(c, false, 1));
  SetSparse(c, "feature_list_sparse_indices", "feature_list_sparse_values", "feature_list_sparse_shapes", 2);
  return SetDense(c, "feature_list_dense_values", "feature_list_dense_shapes", {-1});
}

}  // namespace

void RegisterExampleOps(OpRegistry& r) {
  r.Add(
       "ParseExample(serialized:str, names:str, sparse_keys:Nsparse*str, dense_keys:Ndense*str, "
       "dense_defaults:[Tdense]) "
       "-> (sparse_indices:Nsparse*i64, sparse_values:[sparse_types], sparse_shapes:Nsparse*i64, "
       "dense_values:[Tdense]) "
       "| Nsparse:int>=0; Ndense:int>=0; sparse_types in list f32|i64|str>=0; Tdense in list f32|i64|str>=0; "
       "dense_shapes:list(shape)>=0")
      .Doc(
          "Features of a batch of serialized Example messages. A dense feature has as many values as its shape says in "
          "each example, or is absent and has a default; where the first dimension of the shape is unknown, it may "
          "vary, "
          "and its default pads. A sparse feature may have any number of values. `names` are for error messages.")
      .Shape(ParseExampleShape)
      .NotDifferentiable(kStrings)
      .Example(
          "str[2]{\"\" \"\"}, str[0]{}, str[]{\"s\"}, str[]{\"d\"}, f32[2]{1 2} | Nsparse=1; Ndense=1; "
          "sparse_types=[i64]; "
          "Tdense=[f32]; dense_shapes=[[2]]");
  r.Add(
       "ParseExampleV2(serialized:str, names:str, sparse_keys:str, dense_keys:str, ragged_keys:str, "
       "dense_defaults:[Tdense]) -> (sparse_indices:num_sparse*i64, sparse_values:[sparse_types], "
       "sparse_shapes:num_sparse*i64, dense_values:[Tdense], ragged_values:[ragged_value_types], "
       "ragged_row_splits:[ragged_split_types]) | Tdense in list f32|i64|str>=0; num_sparse:int>=0; "
       "sparse_types in list f32|i64|str>=0; ragged_value_types in list f32|i64|str>=0; "
       "ragged_split_types in list IDX>=0; dense_shapes:list(shape)>=0")
      .Doc(
          "ParseExample whose keys are vectors, with ragged features: the values of all examples, and where those of "
          "each begin. `serialized` may be a single example: then outputs have no batch dimension, nothing is padded, "
          "and there are no row splits.")
      .Shape(ParseExampleV2Shape)
      .NotDifferentiable(kStrings)
      .Example(
          "str[2]{\"\" \"\"}, str[0]{}, str[1]{\"s\"}, str[1]{\"d\"}, str[1]{\"r\"}, f32[2]{1 2} | num_sparse=1; "
          "sparse_types=[i64]; Tdense=[f32]; dense_shapes=[[2]]; ragged_value_types=[str]; ragged_split_types=[i32]")
      .Example(
          "str[]{\"\"}, str[0]{}, str[0]{}, str[0]{}, str[1]{\"r\"} | num_sparse=0; sparse_types=[]; Tdense=[]; "
          "dense_shapes=[]; ragged_value_types=[f32]; ragged_split_types=[i64]");
  r.Add(
       "ParseSingleExample(serialized:str, dense_defaults:[Tdense]) -> (sparse_indices:num_sparse*i64, "
       "sparse_values:[sparse_types], sparse_shapes:num_sparse*i64, dense_values:[Tdense]) | num_sparse:int>=0; "
       "sparse_keys:list(string)>=0; dense_keys:list(string)>=0; sparse_types in list f32|i64|str>=0; "
       "Tdense in list f32|i64|str>=0; dense_shapes:list(shape)>=0")
      .Doc("ParseExample for one serialized Example: outputs have no batch dimension, and nothing is padded.")
      .Shape(ParseSingleExampleShape)
      .NotDifferentiable(kStrings)
      .Example(
          "str[]{\"\"}, f32[2]{1 2} | num_sparse=1; sparse_keys=[\"s\"]; dense_keys=[\"d\"]; sparse_types=[i64]; "
          "Tdense=[f32]; dense_shapes=[[2]]");
  constexpr char kSequenceAttrs[] =
      "Ncontext_sparse:int>=0=0; Ncontext_dense:int>=0=0; Nfeature_list_sparse:int>=0=0; Nfeature_list_dense:int>=0=0; "
      "context_sparse_types in list f32|i64|str>=0=[]; Tcontext_dense in list f32|i64|str>=0=[]; "
      "feature_list_dense_types in list f32|i64|str>=0=[]; context_dense_shapes:list(shape)>=0=[]; "
      "feature_list_sparse_types in list f32|i64|str>=0=[]; feature_list_dense_shapes:list(shape)>=0=[]";
  constexpr char kSequenceOutputs[] =
      "context_sparse_indices:Ncontext_sparse*i64, context_sparse_values:[context_sparse_types], "
      "context_sparse_shapes:Ncontext_sparse*i64, context_dense_values:[Tcontext_dense], "
      "feature_list_sparse_indices:Nfeature_list_sparse*i64, feature_list_sparse_values:[feature_list_sparse_types], "
      "feature_list_sparse_shapes:Nfeature_list_sparse*i64, feature_list_dense_values:[feature_list_dense_types]";
  r.Add(absl::StrCat(
            "ParseSequenceExample(serialized:str, debug_name:str, context_dense_defaults:[Tcontext_dense]) -> (",
            kSequenceOutputs,
            ", feature_list_dense_lengths:Nfeature_list_dense*i64) | "
            "feature_list_dense_missing_assumed_empty:list(string)>=0; context_sparse_keys:list(string)>=0; "
            "context_dense_keys:list(string)>=0; feature_list_sparse_keys:list(string)>=0; "
            "feature_list_dense_keys:list(string)>=0; ",
            kSequenceAttrs))
      .Doc(
          "Features of a batch of serialized SequenceExample messages: those of the context as in ParseExample, and "
          "lists of them, one for each step. A dense list is padded with zeros to the longest one, and its lengths are "
          "an output; it may be absent only if feature_list_dense_missing_assumed_empty names it.")
      .Shape(ParseSequenceShape)
      .NotDifferentiable(kStrings)
      .Example(
          "str[2]{\"\" \"\"}, str[0]{}, f32[2]{1 2} | feature_list_dense_missing_assumed_empty=[\"l\"]; "
          "context_sparse_keys=[]; context_dense_keys=[\"d\"]; feature_list_sparse_keys=[\"s\"]; "
          "feature_list_dense_keys=[\"l\"]; Ncontext_dense=1; Nfeature_list_sparse=1; Nfeature_list_dense=1; "
          "feature_list_sparse_types=[str]; feature_list_dense_types=[i64]; context_dense_shapes=[[2]]; "
          "feature_list_dense_shapes=[[3]]");
  r.Add(absl::StrCat(
            "ParseSingleSequenceExample(serialized:str, feature_list_dense_missing_assumed_empty:str, "
            "context_sparse_keys:Ncontext_sparse*str, context_dense_keys:Ncontext_dense*str, "
            "feature_list_sparse_keys:Nfeature_list_sparse*str, feature_list_dense_keys:Nfeature_list_dense*str, "
            "context_dense_defaults:[Tcontext_dense], debug_name:str) -> (",
            kSequenceOutputs, ") | ", kSequenceAttrs))
      .Doc("ParseSequenceExample for one serialized SequenceExample: outputs have no batch dimension.")
      .Shape(ParseSingleSequenceShape)
      .NotDifferentiable(kStrings)
      .Example(
          "str[]{\"\"}, str[1]{\"l\"}, str[]{\"d\"}, str[]{\"l\"}, f32[2]{1 2}, str[]{\"\"} | Ncontext_sparse=0; "
          "Ncontext_dense=1; Nfeature_list_sparse=0; Nfeature_list_dense=1; feature_list_dense_types=[i64]; "
          "context_dense_shapes=[[2]]; "
          "feature_list_dense_shapes=[[3]]");
}

}  // namespace millrace
