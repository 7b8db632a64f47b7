// SPDX-License-Identifier: Apache-2.0
// Ops: strings as text: regular expressions, encodings, words.
#include "ops/text/text_ops.h"

#include "op/shape_context.h"

namespace millrace {
namespace {

constexpr char kStrings[] = "strings have no gradient";

Status PatternShape(ShapeContext& c) {
  for (int i = 1; i < c.num_inputs(); ++i) MR_RETURN_IF_ERROR(c.RequireScalar(i));
  return UnchangedShape(c);
}

Status DecodeShape(ShapeContext& c) {
  const int64_t n = c.input(0).num_elements();
  c.set_output(0, PartialShape::Of({n < 0 ? -1 : n + 1}));
  for (int i = 1; i < c.num_outputs(); ++i) c.set_output(i, PartialShape::Of({-1}));
  return absl::OkStatus();
}

// One row fewer than there are ends of rows.
Status EncodeShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape splits, c.WithRank(1, 1));
  if (splits.dim(0) == 0) return InvalidArgument("input_splits must hold at least one value");
  c.set_output(0, PartialShape::Of({splits.dim(0) < 0 ? -1 : splits.dim(0) - 1}));
  return absl::OkStatus();
}

Status NgramsShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.WithRank(0, 1).status());
  MR_ASSIGN_OR_RETURN(const PartialShape splits, c.WithRank(1, 1));
  c.set_output(0, PartialShape::Of({-1}));
  c.set_output(1, splits);
  return absl::OkStatus();
}

Status SegmentJoinShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.RequireScalar(2));
  const PartialShape &in = c.input(0), &ids = c.input(1);
  if (!in.has_rank() || !ids.has_rank()) return absl::OkStatus();
  if (ids.rank() == 0 || ids.rank() > in.rank()) {
    return InvalidArgument(
        "segment_ids of shape ", ids.ToString(), " must be a prefix of inputs of shape ", in.ToString());
  }
  for (int i = 0; i < ids.rank(); ++i) MR_RETURN_IF_ERROR(c.MergeDim(ids.dim(i), in.dim(i), "segment_ids").status());
  MR_ASSIGN_OR_RETURN(const std::optional<int64_t> segments, c.ConstantInt(2));
  if (segments && *segments < 0) return InvalidArgument("num_segments must be >= 0, got ", *segments);
  std::vector<int64_t> dims = {segments.value_or(-1)};
  for (int i = ids.rank(); i < in.rank(); ++i) dims.push_back(in.dim(i));
  c.set_output(0, PartialShape::Of(std::move(dims)));
  return absl::OkStatus();
}

void AddPatterns(OpRegistry& r) {
  r.Add("RegexFullMatch(input:str, pattern:str) -> (output:bool)")
      .Doc("Whether the whole of each string matches a regular expression of RE2's syntax.")
      .Shape(PatternShape)
      .NotDifferentiable(kStrings)
      .Example("str[3]{\"abc\" \"ab\" \"\"}, str[]{\"a.*c\"}");
  r.Add("StaticRegexFullMatch(input:str) -> (output:bool) | pattern:string")
      .Doc("RegexFullMatch with a pattern that is an attribute.")
      .Shape(PatternShape)
      .NotDifferentiable(kStrings)
      .Example("str[2]{\"abc\" \"ab\"} | pattern=\"[a-c]+\"");
  r.Add("RegexReplace(input:str, pattern:str, rewrite:str) -> (output:str) | replace_global:bool=true")
      .Doc(
          "Each string with the matches of a regular expression, or the first of them, replaced. In the rewrite \\0 is "
          "the "
          "match and \\1 to \\9 are its groups.")
      .Shape(PatternShape)
      .NotDifferentiable(kStrings)
      .Example("str[2]{\"banana\" \"\"}, str[]{\"a(n)?\"}, str[]{\"<>\"}");
  r.Add("StaticRegexReplace(input:str) -> (output:str) | pattern:string; rewrite:string; replace_global:bool=true")
      .Doc("RegexReplace with a pattern and a rewrite that are attributes.")
      .Shape(PatternShape)
      .NotDifferentiable(kStrings)
      .Example("str[1]{\"banana\"} | pattern=\"an\"; rewrite=\"o\"; replace_global=false");
}

void AddEncodings(OpRegistry& r) {
  const std::string faults =
      "errors in {strict,replace,ignore}=\"replace\"; replacement_char:int=65533; "
      "replace_control_characters:bool=false";
  const std::string decode = absl::StrCat(" | input_encoding:string; ", faults, "; Tsplits in IDX=i64");
  r.Add(absl::StrCat("UnicodeDecode(input:str) -> (row_splits:Tsplits, char_values:i32)", decode))
      .Doc(
          "The characters of strings, one row per string. What is no character is an error, is replaced or is left "
          "out; "
          "control characters can be treated like it.")
      .Shape(DecodeShape)
      .NotDifferentiable(kStrings)
      .Example("str[2]{\"ab\" \"c\"} | input_encoding=\"UTF-8\"");
  r.Add(absl::StrCat(
            "UnicodeDecodeWithOffsets(input:str) -> (row_splits:Tsplits, char_values:i32, char_to_byte_starts:i64)",
            decode))
      .Doc("UnicodeDecode, and the byte at which each character begins.")
      .Shape(DecodeShape)
      .NotDifferentiable(kStrings)
      .Example("str[2]{\"ab\" \"c\"} | input_encoding=\"UTF-8\"");
  r.Add(
       "UnicodeEncode(input_values:i32, input_splits:Tsplits) -> (output:str) | errors in "
       "{ignore,replace,strict}=\"replace\"; output_encoding in {UTF-8,UTF-16-BE,UTF-32-BE}; "
       "replacement_char:int=65533; "
       "Tsplits in IDX=i64")
      .Doc("Strings of the characters in rows.")
      .Shape(EncodeShape)
      .NotDifferentiable(kStrings)
      .Example("i32[3]{97 98 99}, i64[3]{0 2 3} | output_encoding=\"UTF-8\"");
  r.Add(absl::StrCat("UnicodeTranscode(input:str) -> (output:str) | input_encoding:string; output_encoding in "
                     "{UTF-8,UTF-16-BE,UTF-32-BE}; ",
                     faults))
      .Doc("Strings in another encoding. See UnicodeDecode for what is no character.")
      .Shape(UnchangedShape)
      .NotDifferentiable(kStrings)
      .Example("str[2]{\"ab\" \"c\"} | input_encoding=\"UTF-8\"; output_encoding=\"UTF-16-BE\"");
}

void AddCharacters(OpRegistry& r) {
  r.Add("StringLower(input:str) -> (output:str) | encoding:string=\"\"")
      .Doc("Strings in small letters: ASCII's only, or with encoding \"utf-8\" Unicode's.")
      .Shape(UnchangedShape)
      .NotDifferentiable(kStrings)
      .Example("str[2]{\"AbC\" \"\"}")
      .Example("str[1]{\"\xc3\x84\"} | encoding=\"utf-8\"");
  r.Add("StringUpper(input:str) -> (output:str) | encoding:string=\"\"")
      .Doc("Strings in capitals: ASCII's only, or with encoding \"utf-8\" Unicode's.")
      .Shape(UnchangedShape)
      .NotDifferentiable(kStrings)
      .Example("str[2]{\"aBc\" \"\"}")
      .Example("str[1]{\"\xc3\xa4\"} | encoding=\"utf-8\"");
  r.Add("StringStrip(input:str) -> (output:str)")
      .Doc("Strings without the white space of ASCII at both ends.")
      .Shape(UnchangedShape)
      .NotDifferentiable(kStrings)
      .Example("str[2]{\"  a b \" \"\"}");
  r.Add(
       "StringFormat(inputs:[T]) -> (output:str) | T:list(type)>=0; template:string=\"%s\"; placeholder:string=\"%s\"; "
       "summarize:int=3")
      .Doc(
          "The template with its placeholders replaced by tensors as text: the first and last `summarize` elements of "
          "each dimension (-1: all).")
      .Shape(ScalarShape)
      .NotDifferentiable(kStrings)
      .Example("f32[2,3]~, str[]{\"a\"} | T=[f32,str]; template=\"x %s y %s\"");
  r.Add("UnicodeScript(input:i32) -> (output:i32)")
      .Doc("The script of each character, as ICU's UScriptCode numbers them; -1 for what is no code point.")
      .Shape(UnchangedShape)
      .NotDifferentiable("characters have no derivative")
      .Example("i32[3]{97 945 -1}");
}

}  // namespace

void RegisterTextOps(OpRegistry& r) {
  AddPatterns(r);
  AddEncodings(r);
  AddCharacters(r);
  r.Add(
       "StringNGrams(data:str, data_splits:Tsplits) -> (ngrams:str, ngrams_splits:Tsplits) | separator:string; "
       "ngram_widths:list(int)>=0; left_pad:string; right_pad:string; pad_width:int; preserve_short_sequences:bool; "
       "Tsplits in IDX=i64")
      .Doc(
          "Runs of words of each row, of each width in ngram_widths, joined. Rows are padded on both sides by "
          "pad_width "
          "words (-1: as many as a run can use). With preserve_short_sequences a row that is too short is one run.")
      .Shape(NgramsShape)
      .NotDifferentiable(kStrings)
      .Example(
          "str[4]{\"a\" \"b\" \"c\" \"d\"}, i64[3]{0 3 4} | separator=\" \"; ngram_widths=[2]; left_pad=\"<\"; "
          "right_pad=\">\"; pad_width=-1; preserve_short_sequences=false");
  r.Add(
       "UnsortedSegmentJoin(inputs:str, segment_ids:Tindices, num_segments:Tnumsegments) -> (output:str) | "
       "separator:string=\"\"; Tindices in IDX; Tnumsegments in IDX=i32")
      .Doc("The strings of each segment joined in their order; segments that have none are empty.")
      .Shape(SegmentJoinShape)
      .NotDifferentiable(kStrings)
      .Example("str[3]{\"a\" \"b\" \"c\"}, i32[3]{1 0 1}, i32[]{2} | separator=\"-\"");
}

}  // namespace millrace
