// SPDX-License-Identifier: Apache-2.0
// Ops: checkpoints, and the strings that name them.
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "op/shape_context.h"
#include "ops/op_list.h"

namespace millrace {
namespace {

constexpr char kStrings[] = "strings have no gradient";

// Prefix, then names and slices of `n` tensors.
Status CheckNames(ShapeContext& c, int64_t n) {
  MR_RETURN_IF_ERROR(c.RequireScalar(0));
  for (int i = 1; i <= 2; ++i) {
    MR_ASSIGN_OR_RETURN(const PartialShape names, c.WithRank(i, 1));
    MR_RETURN_IF_ERROR(c.MergeDim(names.dim(0), n, "number of tensors").status());
  }
  return absl::OkStatus();
}

Status SaveShape(ShapeContext& c) { return CheckNames(c, c.num_inputs() - 3); }

// The shape of the part that "3 4 0,1:-" names; unknown where all of a tensor is read. What cannot be read is for the
// step to say.
PartialShape PartOf(absl::string_view shape_and_slice) {
  const std::pair<absl::string_view, absl::string_view> cut =
      absl::StrContains(shape_and_slice, ' ')
          ? std::make_pair(shape_and_slice.substr(0, shape_and_slice.rfind(' ')),
                           shape_and_slice.substr(shape_and_slice.rfind(' ') + 1))
          : std::make_pair(absl::string_view(), absl::string_view());
  const std::vector<absl::string_view> sizes = absl::StrSplit(cut.first, ' ', absl::SkipEmpty());
  const std::vector<absl::string_view> parts = absl::StrSplit(cut.second, ':', absl::SkipEmpty());
  if (sizes.empty() || sizes.size() != parts.size()) return PartialShape::Unknown();
  std::vector<int64_t> dims(sizes.size());
  for (size_t i = 0; i < sizes.size(); ++i) {
    const absl::string_view length = parts[i] == "-" ? sizes[i] : parts[i].substr(parts[i].find(',') + 1);
    if (!absl::SimpleAtoi(length, &dims[i]) || dims[i] < 0) return PartialShape::Unknown();
  }
  return PartialShape::Of(std::move(dims));
}

Status RestoreShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(CheckNames(c, c.num_outputs()));
  const Tensor* slices = c.constant(2);
  if (slices == nullptr || slices->dtype() != DType::kString) return UnknownShape(c);
  for (int i = 0; i < c.num_outputs() && i < slices->num_elements(); ++i) {
    c.set_output(i, PartOf(slices->data<TString>()[i].view()));
  }
  return absl::OkStatus();
}

// A name, then names of n tensors, and as many slices.
Status SaveV1Shape(ShapeContext& c) {
  const bool slices = c.op().name == "SaveSlices";
  MR_RETURN_IF_ERROR(c.RequireScalar(0));
  for (int i = 1; i <= (slices ? 2 : 1); ++i) {
    MR_ASSIGN_OR_RETURN(const PartialShape names, c.WithRank(i, 1));
    MR_RETURN_IF_ERROR(c.MergeDim(names.dim(0), c.num_inputs() - (slices ? 3 : 2), "number of tensors").status());
  }
  return absl::OkStatus();
}

Status RestoreV1Shape(ShapeContext& c) {
  for (int i = 0; i < c.num_inputs(); ++i) MR_RETURN_IF_ERROR(c.RequireScalar(i));
  const Tensor* slice = c.num_inputs() > 2 ? c.constant(2) : nullptr;
  if (slice == nullptr || slice->dtype() != DType::kString || slice->rank() != 0) return UnknownShape(c);
  c.set_output(0, PartOf(slice->data<TString>()->view()));
  return absl::OkStatus();
}

Status FilespecShape(ShapeContext& c) {
  for (int i = 0; i < 2; ++i) MR_RETURN_IF_ERROR(c.RequireScalar(i));
  return ScalarShape(c);
}

Status MergeCheckpointsShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.WithRank(0, 1).status());
  return c.RequireScalar(1);
}

Status ShardedFilenameShape(ShapeContext& c) {
  for (int i = 0; i < 3; ++i) MR_RETURN_IF_ERROR(c.RequireScalar(i));
  return ScalarShape(c);
}

Status StringJoinShape(ShapeContext& c) {
  PartialShape joined;
  bool all_scalars = true;
  for (int i = 0; i < c.num_inputs(); ++i) {
    if (c.input(i).has_rank() && c.input(i).rank() == 0) continue;
    all_scalars = false;
    // A shape that is not known may be a scalar: it says nothing.
    if (!c.input(i).has_rank()) continue;
    MR_ASSIGN_OR_RETURN(joined, c.Merge(joined, c.input(i), "joined strings"));
  }
  c.set_output(0, all_scalars ? PartialShape::Scalar() : joined);
  return absl::OkStatus();
}

Status VocabularyShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.RequireScalar(0));
  MR_RETURN_IF_ERROR(c.RequireScalar(1));
  MR_ASSIGN_OR_RETURN(const int64_t lines, c.Attr<int64_t>("num_new_vocab"));
  c.set_output(0, PartialShape::Of({lines}));
  c.set_output(1, PartialShape::Scalar());
  return absl::OkStatus();
}

Status RemappedShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.RequireScalar(1));
  MR_ASSIGN_OR_RETURN(const int64_t rows, c.Attr<int64_t>("num_rows"));
  MR_ASSIGN_OR_RETURN(const int64_t columns, c.Attr<int64_t>("num_cols"));
  c.set_output(0, PartialShape::Of({rows, columns}));
  return absl::OkStatus();
}

}  // namespace

void RegisterIoOps(OpRegistry& r) {
  r.Add("SaveV2(prefix:str, tensor_names:str, shape_and_slices:str, tensors:[dtypes]) -> () | dtypes:list(type)>=1 | S")
      .Doc(
          "Writes tensors to the V2 checkpoint `prefix`, under their names. An element of shape_and_slices that is not "
          "empty says that the tensor is a part of a larger one: \"4 5 0,2:-\" are rows 0 and 1 of a 4 x 5 matrix. The "
          "checkpoint appears as a whole and survives a power loss once the op has run.")
      .Shape(SaveShape)
      .NotDifferentiable("it has no output")
      .NoExample("it writes files");
  r.Add(
       "RestoreV2(prefix:str, tensor_names:str, shape_and_slices:str) -> (tensors:[dtypes]) | dtypes:list(type)>=1 | S")
      .Doc(
          "Reads tensors, or the parts that shape_and_slices names, from the checkpoint `prefix`, of format V2 or V1. "
          "Their dtypes must be those stored.")
      .Shape(RestoreShape)
      .NotDifferentiable("its values come from a file")
      .NoExample("it reads files");
  r.Add("Save(filename:str, tensor_names:str, data:[T]) -> () | T:list(type)>=1 | S")
      .Doc("Writes tensors to one checkpoint file of format V1, under their names. The file appears as a whole.")
      .Shape(SaveV1Shape)
      .NotDifferentiable("it has no output")
      .NoExample("it writes files");
  r.Add("SaveSlices(filename:str, tensor_names:str, shapes_and_slices:str, data:[T]) -> () | T:list(type)>=1 | S")
      .Doc("Like Save; tensors may be parts of larger ones, as in SaveV2.")
      .Shape(SaveV1Shape)
      .NotDifferentiable("it has no output")
      .NoExample("it writes files");
  r.Add("Restore(file_pattern:str, tensor_name:str) -> (tensor:dt) | dt:type; preferred_shard:int=-1 | S")
      .Doc(
          "Reads one tensor from a checkpoint: a file, or those that the pattern matches. preferred_shard has no "
          "effect.")
      .Shape(RestoreV1Shape)
      .NotDifferentiable("its values come from a file")
      .NoExample("it reads files");
  r.Add(
       "RestoreSlice(file_pattern:str, tensor_name:str, shape_and_slice:str) -> (tensor:dt) | dt:type; "
       "preferred_shard:int=-1 | S")
      .Doc("Reads a part of a tensor from a checkpoint. See Restore and SaveV2.")
      .Shape(RestoreV1Shape)
      .NotDifferentiable("its values come from a file")
      .NoExample("it reads files");
  r.Add(
       "GenerateVocabRemapping(new_vocab_file:str, old_vocab_file:str) -> (remapping:i64, num_present:i32) | "
       "new_vocab_offset:int>=0; num_new_vocab:int>=0; old_vocab_size:int>=-1=-1")
      .Doc(
          "For num_new_vocab lines of a file, from the line new_vocab_offset on, the numbers of the same lines in an "
          "older file, of which the first old_vocab_size count (-1: all); -1 for lines that it lacks. And how many it "
          "has.")
      .Shape(VocabularyShape)
      .NotDifferentiable(kStrings)
      .NoExample("it reads files");
  r.Add(
       "LoadAndRemapMatrix(ckpt_path:str, old_tensor_name:str, row_remapping:i64, col_remapping:i64, "
       "initializing_values:f32) -> (output_matrix:f32) | num_rows:int>=0; num_cols:int>=1; "
       "max_rows_in_memory:int=-1 | S")
      .Doc(
          "A matrix of a checkpoint with other rows and columns: row i is the old row row_remapping[i], and so for "
          "columns, unless col_remapping is empty. Where one is -1, elements are initializing_values in their order. "
          "Up to max_rows_in_memory old rows are read at once (-1: all).")
      .Shape(RemappedShape)
      .NotDifferentiable("its values come from a file")
      .NoExample("it reads files");
  r.Add("ShardedFilespec(basename:str, num_shards:i32) -> (filename:str)")
      .Doc("The pattern of the names of all num_shards shards: base, five question marks, then the number.")
      .Shape(FilespecShape)
      .NotDifferentiable(kStrings)
      .Example("str[]{\"a/b\"}, i32[]{12}");
  r.Add("MergeV2Checkpoints(checkpoint_prefixes:str, destination_prefix:str) -> () | delete_old_dirs:bool=true | S")
      .Doc(
          "Makes one V2 checkpoint of several by moving their data files and merging their indexes; the folders that "
          "become empty by this are deleted if wanted.")
      .Shape(MergeCheckpointsShape)
      .NotDifferentiable("it has no output")
      .NoExample("it moves files");
  r.Add("ShardedFilename(basename:str, shard:i32, num_shards:i32) -> (filename:str)")
      .Doc("The name of shard number `shard` of `num_shards`: base-00003-of-00012.")
      .Shape(ShardedFilenameShape)
      .NotDifferentiable(kStrings)
      .Example("str[]{\"a/b\"}, i32[]{3}, i32[]{12}");
  r.Add("StringJoin(inputs:N*str) -> (output:str) | N:int>=1; separator:string=\"\"")
      .Doc(
          "Joins strings element by element, with the separator between them. Scalars are joined with every element of "
          "the others, which must have one shape.")
      .Shape(StringJoinShape)
      .NotDifferentiable(kStrings)
      .Example("str[2]{\"a\" \"b\"}, str[]{\"-\"}, str[2]{\"c\" \"d\"} | separator=\"+\"");
}

}  // namespace millrace
