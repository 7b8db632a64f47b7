// SPDX-License-Identifier: Apache-2.0
// Ops: strings and files read whole.
#include "ops/text/string_ops.h"

#include "base/checked.h"
#include "graph/gradient.h"
#include "op/shape_context.h"

namespace millrace {
namespace {

constexpr char kStrings[] = "strings have no derivative";

Status DecodeRawShape(ShapeContext& c) {
  const PartialShape& in = c.input(0);
  if (!in.has_rank()) return absl::OkStatus();
  std::vector<int64_t> dims = in.dims();
  dims.push_back(-1);
  c.set_output(0, PartialShape::Of(std::move(dims)));
  return absl::OkStatus();
}

Status ReduceJoinShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.WithRankAtMost(1, 1).status());
  MR_ASSIGN_OR_RETURN(const bool keep, c.Attr<bool>("keep_dims"));
  MR_ASSIGN_OR_RETURN(const auto axes, c.ConstantInts(1));
  const PartialShape& in = c.input(0);
  if (!axes || !in.has_rank()) return absl::OkStatus();
  std::vector<bool> joined(static_cast<size_t>(in.rank()));
  for (const int64_t a : *axes) {
    int64_t axis = 0;
    if (!NormalizeIndex(a, in.rank(), &axis)) {
      return InvalidArgument("Invalid reduction dimension ", a, " for an input of rank ", in.rank());
    }
    if (joined[static_cast<size_t>(axis)]) return InvalidArgument("Duplicate reduction dimension ", axis);
    joined[static_cast<size_t>(axis)] = true;
  }
  std::vector<int64_t> dims;
  for (int i = 0; i < in.rank(); ++i) {
    if (!joined[static_cast<size_t>(i)]) {
      dims.push_back(in.dim(i));
    } else if (keep) {
      dims.push_back(1);
    }
  }
  c.set_output(0, PartialShape::Of(std::move(dims)));
  return absl::OkStatus();
}

Status SplitShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.WithRank(0, 1).status());
  MR_RETURN_IF_ERROR(c.RequireScalar(1));
  c.set_output(0, PartialShape::Of({-1, 2}));
  c.set_output(1, PartialShape::Of({-1}));
  c.set_output(2, PartialShape::Of({2}));
  return absl::OkStatus();
}

Status SubstrShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.Merge(c.input(1), c.input(2), "pos and len").status());
  bool incompatible = false;
  const PartialShape out = BroadcastPartial(c.input(0), c.input(1), &incompatible);
  if (incompatible)
    return InvalidArgument("input ", c.input(0).ToString(), " and pos ", c.input(1).ToString(), " do not fit");
  c.set_output(0, out);
  return absl::OkStatus();
}

Status FileShape(ShapeContext& c) {
  for (int i = 0; i < c.num_inputs(); ++i) MR_RETURN_IF_ERROR(c.RequireScalar(i));
  return ScalarShape(c);
}

Status FingerprintShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape data, c.WithRankAtLeast(0, 1));
  MR_RETURN_IF_ERROR(c.RequireScalar(1));
  c.set_output(0, PartialShape::Of({data.dim(0), 8}));
  return absl::OkStatus();
}

}  // namespace

void RegisterStringOps(OpRegistry& r) {
  r.Add(
       "DecodeRaw(bytes:str) -> (output:out_type) | out_type in HFD|CPX|IDX|i8|i16|u8|u16|bool; "
       "little_endian:bool=true")
      .Doc("The bytes of each string as numbers, along a new last dimension. All strings must have one length.")
      .Shape(DecodeRawShape)
      .NotDifferentiable(kStrings)
      .Example("str[2]{\"abcd\" \"efgh\"} | out_type=i16");
  r.Add(
       "AsString(input:T) -> (output:str) | T in CPX|FD|IDX|i8|i16|u8|u16|u32|u64|bool|str; precision:int=-1; "
       "scientific:bool=false; shortest:bool=false; width:int=-1; fill:string=\"\"")
      .Doc(
          "Numbers as C's printf writes them: %d, %f, with `scientific` %e, with `shortest` %g; with this precision, "
          "at least this wide, filled on the left with spaces, or as the flag `fill` (0, +, -, space) says.")
      .Shape(UnchangedShape)
      .NotDifferentiable(kStrings)
      .Example("f32[2]~ | precision=2")
      .Example("i32[2]{7 -1} | width=4; fill=\"0\"");
  r.Add("StringToNumber(string_tensor:str) -> (output:out_type) | out_type in FD|IDX=f32")
      .Doc("The number that each string spells; spaces around it are allowed. InvalidArgument where there is none.")
      .Shape(UnchangedShape)
      .NotDifferentiable(kStrings)
      .Example("str[2]{\"1.5\" \" -2e3 \"}");
  r.Add("StringSplitV2(input:str, sep:str) -> (indices:i64, values:str, shape:i64) | maxsplit:int=-1")
      .Doc(
          "The parts of each string between separators, as a sparse matrix: a row for a string. The separator counts "
          "as "
          "a whole; where it is empty, runs of white space separate. `maxsplit` above 0 ends after that many parts, "
          "and "
          "what is left is one part more; 0 leaves each string whole.")
      .Shape(SplitShape)
      .NotDifferentiable(kStrings)
      .Example("str[2]{\"a<>b<>\" \"\"}, str[]{\"<>\"}")
      .Example("str[1]{\" a  b c\"}, str[]{\"\"} | maxsplit=1");
  r.Add("StringToHashBucket(string_tensor:str) -> (output:i64) | num_buckets:int>=1")
      .Doc("A bucket for each string, by MurmurHash64A. StringToHashBucketFast spreads strings better.")
      .Shape(UnchangedShape)
      .NotDifferentiable(kStrings)
      .Example("str[2]{\"hello\" \"\"} | num_buckets=10");
  r.Add("Fingerprint(data:T, method:str) -> (fingerprint:u8) | T:type")
      .Doc(
          "A fingerprint of 8 bytes of each row: FarmHash's Fingerprint64 of its bytes, of several strings that of "
          "their fingerprints. The method is \"farmhash64\".")
      .Shape(FingerprintShape)
      .NotDifferentiable("fingerprints have no derivative")
      .Example("f32[2,3]~, str[]{\"farmhash64\"}")
      .Example("str[2]{\"a\" \"b\"}, str[]{\"farmhash64\"}");
  r.Add("StringToHashBucketFast(input:str) -> (output:i64) | num_buckets:int>=1")
      .Doc("A bucket for each string, by FarmHash's Fingerprint64, which never changes.")
      .Shape(UnchangedShape)
      .NotDifferentiable(kStrings)
      .Example("str[2]{\"hello\" \"\"} | num_buckets=10");
  r.Add("StringToHashBucketStrong(input:str) -> (output:i64) | num_buckets:int>=1; key:list(int)")
      .Doc(
          "A bucket for each string, by SipHash with a key of two numbers: without it nobody can make strings collide.")
      .Shape(UnchangedShape)
      .NotDifferentiable(kStrings)
      .Example("str[2]{\"hello\" \"\"} | num_buckets=10; key=[1,2]");
  r.Add("ReduceJoin(inputs:str, reduction_indices:i32) -> (output:str) | keep_dims:bool=false; separator:string=\"\"")
      .Doc("The strings along the given dimensions joined, the first given one running fastest.")
      .Shape(ReduceJoinShape)
      .NotDifferentiable(kStrings)
      .Example("str[2,2]{\"a\" \"b\" \"c\" \"d\"}, i32[1]{1} | separator=\"-\"");
  r.Add("StringSplit(input:str, delimiter:str) -> (indices:i64, values:str, shape:i64) | skip_empty:bool=true")
      .Doc(
          "The parts of each string between delimiters as a sparse matrix. Each character of `delimiter` delimits; "
          "without any, every byte is a part.")
      .Shape(SplitShape)
      .NotDifferentiable(kStrings)
      .Example("str[2]{\"a b\" \"c\"}, str[]{\" \"}");
  r.Add("Substr(input:str, pos:T, len:T) -> (output:str) | T in IDX; unit in {BYTE,UTF8_CHAR}=\"BYTE\"")
      .Doc(
          "The part of each string from pos on (counted from the end when negative), at most len long. The shapes of "
          "input and pos are broadcast.")
      .Shape(SubstrShape)
      .NotDifferentiable(kStrings)
      .Example("str[2]{\"hello\" \"world\"}, i32[]{1}, i32[]{3}");
  r.Add("StringLength(input:str) -> (output:i32) | unit in {BYTE,UTF8_CHAR}=\"BYTE\"")
      .Doc("The number of bytes, or of characters, of each string.")
      .Shape(UnchangedShape)
      .NotDifferentiable(kStrings)
      .Example("str[2]{\"hello\" \"\"}");
  r.Add("EncodeBase64(input:str) -> (output:str) | pad:bool=false")
      .Doc("Base64 for the web (RFC 4648, section 5).")
      .Shape(UnchangedShape)
      .NotDifferentiable(kStrings)
      .Example("str[2]{\"abc\" \"d\"} | pad=true");
  r.Add("DecodeBase64(input:str) -> (output:str)")
      .Doc("What EncodeBase64 was given, with or without padding.")
      .Shape(UnchangedShape)
      .NotDifferentiable(kStrings)
      .Example("str[2]{\"YWJj\" \"ZA\"}");
  r.Add("ReadFile(filename:str) -> (contents:str)")
      .Doc("The contents of a file.")
      .Shape(FileShape)
      .NotDifferentiable(kStrings)
      .NoExample("it needs a file");
  r.Add("MatchingFiles(pattern:str) -> (filenames:str)")
      .Doc("The files that match one of the patterns (* ? [a-z] within a folder's name or a file's), sorted.")
      .Shape([](ShapeContext& c) -> Status {
        MR_RETURN_IF_ERROR(c.WithRankAtMost(0, 1).status());
        c.set_output(0, PartialShape::Of({-1}));
        return absl::OkStatus();
      })
      .NotDifferentiable(kStrings)
      .NoExample("it looks for files");
  r.Add("WriteFile(filename:str, contents:str) -> () | S")
      .Doc("Writes a file, and makes the directories above it.")
      .Shape([](ShapeContext& c) -> Status {
        MR_RETURN_IF_ERROR(c.RequireScalar(0));
        return c.RequireScalar(1);
      })
      .NotDifferentiable("it has no output")
      .NoExample("it writes a file");
}

}  // namespace millrace
