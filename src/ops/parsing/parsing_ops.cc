// SPDX-License-Identifier: Apache-2.0
// Ops: text and bytes taken apart.
#include "ops/parsing/parsing_ops.h"

#include "graph/gradient.h"
#include "op/shape_context.h"

namespace millrace {
namespace {

constexpr char kStrings[] = "strings have no derivative";

// A field's default: nothing, a scalar, or a vector of one.
Status CsvShape(ShapeContext& c) {
  for (int i = 1; i < c.num_inputs(); ++i) {
    MR_ASSIGN_OR_RETURN(const PartialShape s, c.WithRankAtMost(i, 1));
    if (s.has_rank() && s.rank() == 1 && s.dim(0) > 1) {
      return InvalidArgument(
          "Shape of a default must be a length-0 or length-1 vector, or a scalar, got ", s.ToString());
    }
  }
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, c.input(0));
  return absl::OkStatus();
}

Status PaddedRawShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.RequireScalar(1));
  MR_ASSIGN_OR_RETURN(const auto length, c.ConstantInt(1));
  if (length && *length <= 0) return InvalidArgument("fixed_length must be greater than zero, got ", *length);
  if (!c.input(0).has_rank()) return absl::OkStatus();
  const int64_t unit = static_cast<int64_t>(DTypeSize(c.output_dtype(0)));
  if (length && *length % unit != 0) {
    return InvalidArgument("fixed_length (", *length, ") must be a multiple of the size of out_type (", unit, ")");
  }
  std::vector<int64_t> dims = c.input(0).dims();
  dims.push_back(length ? *length / unit : -1);
  c.set_output(0, PartialShape::Of(std::move(dims)));
  return absl::OkStatus();
}

Status LibsvmShape(ShapeContext& c) {
  const PartialShape& lines = c.input(0);
  const int64_t rank = lines.has_rank() ? lines.rank() + 1 : -1;
  MR_ASSIGN_OR_RETURN(const int64_t num_features, c.Attr<int64_t>("num_features"));
  c.set_output(0, lines);
  c.set_output(1, PartialShape::Of({-1, rank}));
  c.set_output(2, PartialShape::Of({-1}));
  c.set_output(3, PartialShape::Of({rank}));
  if (!lines.has_rank()) return absl::OkStatus();
  std::vector<int64_t> dims = lines.dims();
  dims.push_back(num_features);
  c.set_output_as_shape(3, PartialShape::Of(std::move(dims)));
  return absl::OkStatus();
}

Status ParseTensorShape(ShapeContext& c) { return c.RequireScalar(0); }

}  // namespace

void RegisterParsingOps(OpRegistry& r) {
  RegisterExampleOps(r);
  r.Add(
       "DecodeCSV(records:str, record_defaults:[OUT_TYPE]) -> (output:[OUT_TYPE]) | OUT_TYPE in list "
       "FD|IDX|str>=1; field_delim:string=\",\"; use_quote_delim:bool=true; na_value:string=\"\"; "
       "select_cols:list(int)=[]")
      .Doc(
          "The columns of records in comma-separated form (RFC 4180): fields between delimiters, in quotes if they "
          "hold "
          "some. A field that is empty, or na_value, is its default; without one it is an error. select_cols, "
          "ascending, are the columns wanted.")
      .Shape(CsvShape)
      .NotDifferentiable(kStrings)
      .Example("str[2]{\"1,a\" \"2,\"}, f32[1]{0}, str[1]{\"none\"}")
      .Example("str[]{\"1;x;3\"}, i64[0]#, f64[]{7} | field_delim=\";\"; select_cols=[0,2]");
  r.Add(
       "DecodeLibsvm(input:str) -> (label:label_dtype, feature_indices:i64, feature_values:dtype, feature_shape:i64) | "
       "dtype in FD|IDX=f32; label_dtype in FD|IDX=i64; num_features:int>=1")
      .Doc(
          "Lines \"label place:value place:value ...\", as libsvm reads them: the labels, and the features as a sparse "
          "tensor [lines..., num_features].")
      .Shape(LibsvmShape)
      .NotDifferentiable(kStrings)
      .Example("str[2]{\"1 0:0.5 3:2\" \"-1 1:7\"} | num_features=4");
  r.Add("DecodeCompressed(bytes:str) -> (output:str) | compression_type:string=\"\"")
      .Doc("Strings that ZLIB or GZIP has compressed, expanded.")
      .Shape(UnchangedShape)
      .NotDifferentiable(kStrings)
      .Example("str[2]{\"a\" \"bc\"}");
  r.Add("DecodeJSONExample(json_examples:str) -> (binary_examples:str)")
      .Doc("Example messages in protobuf's JSON form, in binary form.")
      .Shape(UnchangedShape)
      .NotDifferentiable(kStrings)
      .Example("str[1]{\"{features: {feature: {a: {int64List: {value: [1]}}}}}\"}");
  r.Add(
       "DecodePaddedRaw(input_bytes:str, fixed_length:i32) -> (output:out_type) | out_type in HFD|IDX|i8|i16|u8|u16; "
       "little_endian:bool=true")
      .Doc("The first fixed_length bytes of each string as numbers, along a new last dimension; zeros behind its end.")
      .Shape(PaddedRawShape)
      .NotDifferentiable(kStrings)
      .Example("str[2]{\"abcdef\" \"gh\"}, i32[]{4} | out_type=i16");
  r.Add("ParseTensor(serialized:str) -> (output:out_type) | out_type:type")
      .Doc("The tensor in a serialized TensorProto, which must be of type out_type.")
      .Shape(ParseTensorShape)
      .NotDifferentiable(kStrings)
      .NoExample("a message is no text");
  r.Add("SerializeTensor(tensor:T) -> (serialized:str) | T:type")
      .Doc("The tensor as a serialized TensorProto.")
      .Shape(ScalarShape)
      .NotDifferentiable(kStrings)
      .Example("f32[2]{1 2}")
      .Example("str[2]{\"a\" \"\"}");
}

}  // namespace millrace
