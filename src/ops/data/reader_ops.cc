// SPDX-License-Identifier: Apache-2.0
// Ops: readers, which take names of files from a queue and give records.
#include "ops/data/reader_ops.h"

#include "op/shape_context.h"

namespace millrace {
namespace {

constexpr char kIsState[] = "a reader is state";
constexpr char kNoExample[] = "it needs a reader";
constexpr char kNames[] = "container:string=\"\"; shared_name:string=\"\"";

// A handle is {container, name}, or a resource.
Status ReaderShape(ShapeContext& c) {
  c.set_output(0, BaseType(c.output_dtype(0)) == DType::kString ? PartialShape::Of({2}) : PartialShape::Scalar());
  return absl::OkStatus();
}

Status CheckHandle(ShapeContext& c, int i) {
  if (BaseType(c.input_dtype(i)) == DType::kResource) return c.RequireScalar(i);
  MR_ASSIGN_OR_RETURN(const PartialShape handle, c.WithRank(i, 1));
  return c.MergeDim(handle.dim(0), 2, "parts of a handle").status();
}

Status HandleOnly(ShapeContext& c) {
  MR_RETURN_IF_ERROR(CheckHandle(c, 0));
  return ScalarShape(c);
}

Status ReadShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(CheckHandle(c, 1));
  return HandleOnly(c);
}

Status ReadUpToShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(CheckHandle(c, 0));
  MR_RETURN_IF_ERROR(CheckHandle(c, 1));
  MR_RETURN_IF_ERROR(c.RequireScalar(2));
  for (int i = 0; i < 2; ++i) c.set_output(i, PartialShape::Of({-1}));
  return absl::OkStatus();
}

Status RestoreShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(CheckHandle(c, 0));
  return c.RequireScalar(1);
}

Status RecordInputShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const int64_t batch, c.Attr<int64_t>("batch_size"));
  if (batch < 1) return InvalidArgument("batch_size must be positive, got ", batch);
  c.set_output(0, PartialShape::Of({batch}));
  return absl::OkStatus();
}

struct Version {
  const char* suffix;
  const char* handle;
  const char* flags;
};

void AddReaders(OpRegistry& r, const Version& v) {
  const bool second = v.suffix[0] != '\0';
  const auto add = [&](const char* name, const std::string& attrs, int deprecated) {
    OpDeclaration op = r.Add(absl::StrCat(name, v.suffix, "() -> (reader_handle:", v.handle, ") | ", attrs, " | S",
                                          second || deprecated == 0 ? "" : absl::StrCat(" D", deprecated)));
    if (!second && deprecated != 0) op.Deprecated(absl::StrCat("Use ", name, "V2"));
    op.Shape(ReaderShape).NotDifferentiable(kIsState).NoExample("state");
    return op;
  };
  add("WholeFileReader", kNames, 0).Doc("Gives each file as one record: the key is its name, the value its contents.");
  add("TextLineReader", absl::StrCat("skip_header_lines:int=0; ", kNames), 26)
      .Doc(
          "Gives the lines of text files, without the line feed (and a carriage return before it). Keys are "
          "\"file:line\", counted from 1. The first skip_header_lines lines of each file are passed over.");
  add("FixedLengthRecordReader",
      absl::StrCat("header_bytes:int=0; record_bytes:int; footer_bytes:int=0; hop_bytes:int=0; ", kNames,
                   second ? "; encoding:string=\"\"" : ""),
      26)
      .Doc(
          "Gives records of record_bytes bytes, each hop_bytes after the one before (0: at its end), between a header "
          "and "
          "a footer of each file. Keys are \"file:number\", counted from 0.");
  add("TFRecordReader", absl::StrCat(kNames, "; compression_type:string=\"\""), 26)
      .Doc(
          "Gives the records of record files, which may be compressed as a whole (ZLIB, GZIP). Keys are "
          "\"file:offset\".");
  add("IdentityReader", kNames, 26).Doc("Gives the names themselves, as keys and values.");
}

void AddAccess(OpRegistry& r, const Version& v) {
  const std::string reader = absl::StrCat("(reader_handle:", v.handle);
  const std::string both = absl::StrCat(reader, ", queue_handle:", v.handle);
  const auto add = [&](const char* name, const std::string& rest, ShapeFn shape) {
    return r.Add(absl::StrCat(name, v.suffix, rest, v.flags))
        .Traits({OpTrait::kWaits})
        .Shape(shape)
        .NotDifferentiable(kIsState)
        .NoExample(kNoExample);
  };
  add("ReaderRead", absl::StrCat(both, ") -> (key:str, value:str)"), ReadShape)
      .Doc(
          "The next record. Where the reader has no file, or has come to its end, it takes a name from the queue and "
          "waits if there is none.");
  add("ReaderReadUpTo", absl::StrCat(both, ", num_records:i64) -> (keys:str, values:str)"), ReadUpToShape)
      .Doc("Up to num_records records of one file; fewer at its end, one at least.");
  add("ReaderNumRecordsProduced", absl::StrCat(reader, ") -> (records_produced:i64)"), HandleOnly)
      .Doc("How many records the reader has given.");
  add("ReaderNumWorkUnitsCompleted", absl::StrCat(reader, ") -> (units_completed:i64)"), HandleOnly)
      .Doc("How many files the reader has read to their ends.");
  add("ReaderSerializeState", absl::StrCat(reader, ") -> (state:str)"), HandleOnly)
      .Doc("What the reader has done so far, for ReaderRestoreState. Only an IdentityReader supports it.");
  add("ReaderRestoreState", absl::StrCat(reader, ", state:str) -> ()"), RestoreShape)
      .Doc("Sets the reader back to a state that ReaderSerializeState gave. Only an IdentityReader supports it.");
  add("ReaderReset", absl::StrCat(reader, ") -> ()"), HandleOnly)
      .Doc("Makes the reader as it was at first, without a file and with all counts at 0.");
}

}  // namespace

void RegisterReaderOps(OpRegistry& r) {
  for (const Version& v : {Version{"", "&str", ""}, Version{"V2", "res", " | S"}}) {
    AddReaders(r, v);
    AddAccess(r, v);
  }
  r.Add(
       "RecordInput() -> (records:str) | file_pattern:string; file_random_seed:int=301; "
       "file_shuffle_shift_ratio:float=0; file_buffer_size:int=10000; file_parallelism:int=16; batch_size:int=32; "
       "compression_type:string=\"\" | S")
      .Doc(
          "batch_size records of the record files that match a pattern, drawn by chance out of a buffer of "
          "file_buffer_size records, without end: each record is given once an epoch. file_shuffle_shift_ratio moves "
          "the "
          "place in the shuffled list of files at which an epoch begins; file_parallelism has no effect.")
      .Shape(RecordInputShape)
      .NotDifferentiable(kIsState)
      .NoExample("it reads files");
  r.Add(absl::StrCat("LMDBReader() -> (reader_handle:&str) | ", kNames, " | S"))
      .Doc("Would give the pairs of LMDB databases. It has no kernel that reads them: each step answers UNIMPLEMENTED.")
      .Shape(ReaderShape)
      .NotDifferentiable(kIsState)
      .NoExample("it is not implemented");
}

}  // namespace millrace
