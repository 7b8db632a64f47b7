// SPDX-License-Identifier: Apache-2.0
// Ops: summaries for TensorBoard, and messages for people.
#include "graph/gradient.h"
#include "op/shape_context.h"
#include "ops/op_list.h"

namespace millrace {
namespace {

constexpr char kMessage[] = "its output is a message, not a number";

Status TaggedShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.RequireScalar(0));
  return ScalarShape(c);
}

Status ImageSummaryShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape images, c.WithRank(1, 4));
  const int64_t channels = images.dim(3);
  if (channels != -1 && channels != 1 && channels != 3 && channels != 4) {
    return InvalidArgument("images must have 1, 3 or 4 channels, got shape ", images.ToString());
  }
  return TaggedShape(c);
}

Status AudioSummaryShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.WithRankAtLeast(1, 2).status());
  MR_RETURN_IF_ERROR(c.WithRankAtMost(1, 3).status());
  if (c.num_inputs() > 2) MR_RETURN_IF_ERROR(c.RequireScalar(2));
  return TaggedShape(c);
}

Status AssertShape(ShapeContext& c) { return c.RequireScalar(0); }

Status PrintShape(ShapeContext& c) {
  c.set_output(0, c.input(0));
  return absl::OkStatus();
}

Status PrintGrad(GradContext& c) {
  c.set_dx(0, c.dy());
  return c.status();
}

}  // namespace

void RegisterSummaryOps(OpRegistry& r) {
  r.Add("Assert(condition:bool, data:[T]) -> () | T:list(type)>=1; summarize:int=3 | S")
      .Doc(
          "Fails the step with InvalidArgument when the condition is false. The message shows the first `summarize` "
          "elements of each of the data.")
      .Shape(AssertShape)
      .NotDifferentiable("it has no output")
      .Example("bool[]{true}, f32[2]~ | T=[f32]");
  r.Add(
       "Print(input:T, data:[U]) -> (output:T) | T:type; U:list(type)>=0; message:string=\"\"; first_n:int=-1; "
       "summarize:int=3 | S")
      .Doc(
          "The input as it is; on the first first_n runs (all when negative) it writes the message and the first "
          "`summarize` elements of each of the data to stderr.")
      .Shape(PrintShape)
      .Gradient(PrintGrad)
      .Example("f32[2]~, i32[2]# | U=[i32]; first_n=0");
  r.Add("PrintV2(input:str) -> () | output_stream:string=\"stderr\"; end:string=\"\\n\" | S")
      .Doc(
          "Writes a string, and `end` after it, to stderr, stdout, the log (log(info), log(warning), log(error)) or "
          "the end of a file (file://path).")
      .Shape(AssertShape)
      .NotDifferentiable("it has no output")
      .Example("str[]{\"\"} | end=\"\"");
  r.Add("Timestamp() -> (ts:f64) | S")
      .Doc("The time when it runs, in seconds since 1970.")
      .Shape(ScalarShape)
      .NotDifferentiable("it has no input")
      .Example("");
  r.Add("ScalarSummary(tags:str, values:T) -> (summary:str) | T in REAL")
      .Doc("A summary with one number per tag.")
      .Shape(ScalarShape)
      .NotDifferentiable(kMessage)
      .Example("str[2]{\"a\" \"b\"}, f32[2]~");
  r.Add("HistogramSummary(tag:str, values:T) -> (summary:str) | T in REAL=f32")
      .Doc("A summary of how the values are distributed. Values that are not finite are InvalidArgument.")
      .Shape(TaggedShape)
      .NotDifferentiable(kMessage)
      .Example("str[]{\"h\"}, f32[2,3]~");
  r.Add(
       "ImageSummary(tag:str, tensor:T) -> (summary:str) | max_images:int>=1=3; T in HFD|u8=f32; "
       "bad_color:tensor=tensor(u8[4]:255,0,0,255)")
      .Doc(
          "A summary with up to max_images images, as PNG, of a batch [n, height, width, channels] with 1, 3 or 4 "
          "channels. Floats are scaled, image by image, so that the largest becomes 255, or, where some are negative, "
          "so that 0 becomes 128 and the largest magnitude 127 from there. Pixels that are not finite become "
          "bad_color.")
      .Shape(ImageSummaryShape)
      .NotDifferentiable(kMessage)
      .Example("str[]{\"i\"}, f32[2,3,2,1]+");
  constexpr char kAudio[] =
      "A summary with up to max_outputs recordings, as 16-bit WAV, of a batch [n, frames, channels] or [n, frames] of "
      "samples between -1 and 1. ";
  r.Add("AudioSummary(tag:str, tensor:f32) -> (summary:str) | sample_rate:float; max_outputs:int>=1=3 | D15")
      .Doc(absl::StrCat(kAudio, "sample_rate is in hertz."))
      .Shape(AudioSummaryShape)
      .NotDifferentiable(kMessage)
      .Deprecated("AudioSummaryV2 takes the sample rate as an input")
      .Example("str[]{\"a\"}, f32[2,8]/ | sample_rate=8000");
  r.Add("AudioSummaryV2(tag:str, tensor:f32, sample_rate:f32) -> (summary:str) | max_outputs:int>=1=3")
      .Doc(absl::StrCat(kAudio, "sample_rate is a scalar, in hertz."))
      .Shape(AudioSummaryShape)
      .NotDifferentiable(kMessage)
      .Example("str[]{\"a\"}, f32[2,8,2]/, f32[]{8000}");
  r.Add(
       "TensorSummary(tensor:T) -> (summary:str) | T:type; description:string=\"\"; labels:list(string)=[]; "
       "display_name:string=\"\"")
      .Doc(
          "A summary that holds a tensor, under the name of the node. Attributes other than the type are kept for "
          "readers of the graph.")
      .Shape(ScalarShape)
      .NotDifferentiable(kMessage)
      .Example("f32[2,2]~");
  r.Add("TensorSummaryV2(tag:str, tensor:T, serialized_summary_metadata:str) -> (summary:str) | T:type")
      .Doc(
          "A summary that holds a tensor, and an encoded SummaryMetadata that says which plugin of TensorBoard shows "
          "it.")
      .Shape(TaggedShape)
      .NotDifferentiable(kMessage)
      .Example("str[]{\"t\"}, f32[2,2]~, str[]{\"\"}");
  r.Add("MergeSummary(inputs:N*str) -> (summary:str) | N:int>=1")
      .Doc("One summary with the values of all those in the inputs. A tag that occurs twice is InvalidArgument.")
      .Shape(ScalarShape)
      .NotDifferentiable(kMessage)
      .Example("str[2]{\"\" \"\"}");
}

}  // namespace millrace
