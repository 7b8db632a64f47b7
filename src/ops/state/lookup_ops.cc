// SPDX-License-Identifier: Apache-2.0
// Ops: lookup tables, which map keys to values and live in the session's containers.
#include "ops/state/lookup_ops.h"

#include "op/shape_context.h"

namespace millrace {
namespace {

constexpr char kIsState[] = "a table is state";
constexpr char kNoExample[] = "it needs a table";
constexpr char kNames[] = "container:string=\"\"; shared_name:string=\"\"; use_node_name_sharing:bool=false; ";

// A handle is {container, name}, or a resource.
Status TableShape(ShapeContext& c) {
  c.set_output(0, BaseType(c.output_dtype(0)) == DType::kString ? PartialShape::Of({2}) : PartialShape::Scalar());
  return absl::OkStatus();
}

Status RequireHandle(ShapeContext& c) {
  if (BaseType(c.input_dtype(0)) == DType::kResource) return c.RequireScalar(0);
  MR_ASSIGN_OR_RETURN(const PartialShape handle, c.WithRank(0, 1));
  return c.MergeDim(handle.dim(0), 2, "parts of a table's handle").status();
}

Status DenseTableShape(ShapeContext& c) {
  for (int i = 0; i < c.num_inputs(); ++i) MR_RETURN_IF_ERROR(c.WithRankAtMost(i, 1).status());
  if (c.num_inputs() > 1) MR_RETURN_IF_ERROR(c.Merge(c.input(0), c.input(1), "empty and deleted key").status());
  return TableShape(c);
}

Status InitializeShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(RequireHandle(c));
  MR_ASSIGN_OR_RETURN(const PartialShape keys, c.WithRank(1, 1));
  return c.Merge(keys, c.input(2), "keys and values").status();
}

Status FromFileShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(RequireHandle(c));
  return c.RequireScalar(1);
}

Status SizeShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(RequireHandle(c));
  return ScalarShape(c);
}

struct Version {
  const char* suffix;
  const char* handle;
  const char* flags;
};

void AddTables(OpRegistry& r, const Version& v) {
  const std::string out = absl::StrCat(") -> (table_handle:", v.handle, ") | ", kNames);
  const auto add = [&](const char* name, const char* inputs, const char* attrs) {
    return r.Add(absl::StrCat(name, v.suffix, "(", inputs, out, attrs, " | S"));
  };
  add("HashTable", "", "key_dtype:type; value_dtype:type")
      .Doc(
          "A table from scalar keys to scalar values that is written once, by an initializer op, and then only read. "
          "Nodes with equal container and shared_name share it.")
      .Shape(TableShape)
      .NotDifferentiable(kIsState)
      .NoExample("state");
  add("MutableHashTable", "", "key_dtype:type; value_dtype:type")
      .Doc("An empty table from scalar keys to scalar values, to which pairs can be added at any time.")
      .Shape(TableShape)
      .NotDifferentiable(kIsState)
      .NoExample("state");
  add("MutableHashTableOfTensors", "", "key_dtype:type; value_dtype:type; value_shape:shape=[]")
      .Doc("An empty table from scalar keys to vectors of shape value_shape, to which pairs can be added at any time.")
      .Shape(TableShape)
      .NotDifferentiable(kIsState)
      .NoExample("state");
  const bool has_deleted = v.suffix[0] != '\0';
  add("MutableDenseHashTable", has_deleted ? "empty_key:key_dtype, deleted_key:key_dtype" : "empty_key:key_dtype",
      "key_dtype:type; value_dtype:type; value_shape:shape=[]; initial_num_buckets:int=131072; "
      "max_load_factor:float=0.8")
      .Doc(has_deleted
               ? "An empty table that keeps its keys (scalars or vectors) and values in one array of buckets, a power "
                 "of "
                 "two of them, which is doubled when more than max_load_factor of it would be in use. empty_key and "
                 "deleted_key mark buckets without a pair, so they cannot be keys."
               : "An empty table that keeps its keys (scalars or vectors) and values in one array of buckets, a power "
                 "of "
                 "two of them, which is doubled when more than max_load_factor of it would be in use. empty_key marks "
                 "buckets without a pair, so it cannot be a key.")
      .Shape(DenseTableShape)
      .NotDifferentiable(kIsState)
      .NoExample("state");
}

void AddInitializers(OpRegistry& r, const Version& v) {
  const std::string table = absl::StrCat("(table_handle:", v.handle, ", ");
  r.Add(absl::StrCat(
            "InitializeTable", v.suffix, table, "keys:Tkey, values:Tval) -> () | Tkey:type; Tval:type", v.flags))
      .Doc(
          "Writes the pairs of a HashTable. A second time is accepted, and changes nothing, if there are as many pairs "
          "as the table has.")
      .Shape(InitializeShape)
      .NotDifferentiable(kIsState)
      .NoExample(kNoExample);
  r.Add(absl::StrCat("InitializeTableFromTextFile", v.suffix, table,
                     "filename:str) -> () | key_index:int>=-2; value_index:int>=-2; vocab_size:int>=-1=-1; "
                     "delimiter:string=\"\t\"",
                     v.flags))
      .Doc(
          "Writes the pairs of a HashTable, one per line of a text file. key_index and value_index number the columns "
          "between delimiters from 0; -1 is the number of the line, -2 the whole line. vocab_size limits the lines "
          "that are read, and so many must be there.")
      .Shape(FromFileShape)
      .NotDifferentiable(kIsState)
      .NoExample(kNoExample);
}

void AddAccess(OpRegistry& r, const Version& v) {
  const std::string table = absl::StrCat("(table_handle:", v.handle);
  r.Add(absl::StrCat("LookupTableFind", v.suffix, table,
                     ", keys:Tin, default_value:Tout) -> (values:Tout) | Tin:type; Tout:type", v.flags))
      .Doc("The values of keys, a tensor of them; default_value where the table has no such key.")
      .Shape(RequireHandle)
      .NotDifferentiable(kIsState)
      .NoExample(kNoExample);
  r.Add(absl::StrCat(
            "LookupTableInsert", v.suffix, table, ", keys:Tin, values:Tout) -> () | Tin:type; Tout:type", v.flags))
      .Doc("Adds pairs to a table that can change; a key that it has gets the new value.")
      .Shape(RequireHandle)
      .NotDifferentiable(kIsState)
      .NoExample(kNoExample);
  r.Add(absl::StrCat(
            "LookupTableImport", v.suffix, table, ", keys:Tin, values:Tout) -> () | Tin:type; Tout:type", v.flags))
      .Doc("Replaces all pairs of the table by these.")
      .Shape(RequireHandle)
      .NotDifferentiable(kIsState)
      .NoExample(kNoExample);
  r.Add(absl::StrCat("LookupTableExport", v.suffix, table,
                     ") -> (keys:Tkeys, values:Tvalues) | Tkeys:type; Tvalues:type", v.flags))
      .Doc(
          "All pairs of the table, in the order in which the keys came; of a dense table, all buckets, those without a "
          "pair too.")
      .Shape(RequireHandle)
      .NotDifferentiable(kIsState)
      .NoExample(kNoExample);
  r.Add(absl::StrCat("LookupTableSize", v.suffix, table, ") -> (size:i64)", v.flags))
      .Doc("The number of pairs in the table.")
      .Shape(SizeShape)
      .NotDifferentiable(kIsState)
      .NoExample(kNoExample);
}

}  // namespace

void RegisterLookupOps(OpRegistry& r) {
  for (const Version& v : {Version{"", "&str", ""}, Version{"V2", "res", " | S"}}) {
    AddTables(r, v);
    AddInitializers(r, v);
    AddAccess(r, v);
  }
  r.Add("LookupTableRemoveV2(table_handle:res, keys:Tin) -> () | Tin:type | S")
      .Doc("Takes pairs out of a table that can change; keys that it does not have are passed over.")
      .Shape(RequireHandle)
      .NotDifferentiable(kIsState)
      .NoExample(kNoExample);
}

}  // namespace millrace
