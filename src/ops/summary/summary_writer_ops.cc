// SPDX-License-Identifier: Apache-2.0
// Ops: writers of event files, which live in the session's containers, and what gives them events.
#include "op/shape_context.h"
#include "ops/op_list.h"

namespace millrace {
namespace {

constexpr char kIsState[] = "an event is written, not a number";
constexpr char kNoExample[] = "it needs a writer";

Status RequireScalars(ShapeContext& c, std::initializer_list<int> inputs) {
  for (const int i : inputs) MR_RETURN_IF_ERROR(c.RequireScalar(i));
  return absl::OkStatus();
}

Status AllScalarsShape(ShapeContext& c) {
  for (int i = 0; i < c.num_inputs(); ++i) MR_RETURN_IF_ERROR(c.RequireScalar(i));
  return absl::OkStatus();
}

Status WriteTensorShape(ShapeContext& c) { return RequireScalars(c, {0, 1, 3, 4}); }
Status WriteRawShape(ShapeContext& c) { return RequireScalars(c, {0, 1}); }
Status WriteTaggedShape(ShapeContext& c) { return RequireScalars(c, {0, 1, 2}); }

Status WriteImageShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.WithRank(3, 4).status());
  MR_RETURN_IF_ERROR(c.WithRank(4, 1).status());
  return WriteTaggedShape(c);
}

Status WriteAudioShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.WithRankAtLeast(3, 2).status());
  MR_RETURN_IF_ERROR(c.WithRankAtMost(3, 3).status());
  MR_RETURN_IF_ERROR(c.RequireScalar(4));
  return WriteTaggedShape(c);
}

struct Declared {
  const char* schema;
  const char* doc;
  ShapeFn shape;
};

}  // namespace

void RegisterEventOps(OpRegistry& r) {
  for (const Declared& op : {
           Declared{"SummaryWriter() -> (writer:res) | shared_name:string=\"\"; container:string=\"\" | S",
                    "The handle of a summary writer, which CreateSummaryFileWriter gives a file. Nodes with equal "
                    "container and shared_name mean the same one.",
                    ScalarShape},
           Declared{"CreateSummaryFileWriter(writer:res, logdir:str, max_queue:i32, flush_millis:i32, "
                    "filename_suffix:str) -> () | S",
                    "Makes an event file in the folder logdir, and the folder, unless the writer has a file. Events "
                    "go to it when more than max_queue of them wait, and with the first that comes flush_millis after "
                    "the last time.",
                    AllScalarsShape},
           Declared{"CreateSummaryDbWriter(writer:res, db_uri:str, experiment_name:str, run_name:str, user_name:str) "
                    "-> () | S",
                    "Unimplemented: summaries are not written to databases.", AllScalarsShape},
           Declared{
               "FlushSummaryWriter(writer:res) -> () | S", "Writes the events that wait to the file.", AllScalarsShape},
           Declared{"CloseSummaryWriter(writer:res) -> () | S",
                    "Writes the events that wait, and ends the writer and its file. CreateSummaryFileWriter can make "
                    "another.",
                    AllScalarsShape},
           Declared{"WriteSummary(writer:res, step:i64, tensor:T, tag:str, summary_metadata:str) -> () | T:type | S",
                    "An event with a tensor, and an encoded SummaryMetadata, or an empty string, that says which "
                    "plugin of TensorBoard shows it.",
                    WriteTensorShape},
           Declared{"WriteRawProtoSummary(writer:res, step:i64, tensor:str) -> () | S",
                    "An event with the values of all encoded summaries in `tensor`.", WriteRawShape},
           Declared{"ImportEvent(writer:res, event:str) -> () | S", "The event that is encoded in a scalar.",
                    AllScalarsShape},
           Declared{"WriteScalarSummary(writer:res, step:i64, tag:str, value:T) -> () | T in REAL | S",
                    "An event with one number.", WriteTaggedShape},
           Declared{"WriteHistogramSummary(writer:res, step:i64, tag:str, values:T) -> () | T in REAL=f32 | S",
                    "An event that says how the values are distributed, as HistogramSummary.", WriteTaggedShape},
           Declared{"WriteImageSummary(writer:res, step:i64, tag:str, tensor:T, bad_color:u8) -> () | "
                    "max_images:int>=1=3; T in u8|f32|f16=f32 | S",
                    "An event with up to max_images images, as ImageSummary.", WriteImageShape},
           Declared{"WriteAudioSummary(writer:res, step:i64, tag:str, tensor:f32, sample_rate:f32) -> () | "
                    "max_outputs:int>=1=3 | S",
                    "An event with up to max_outputs recordings, as AudioSummaryV2.", WriteAudioShape},
           Declared{"WriteGraphSummary(writer:res, step:i64, tensor:str) -> () | S",
                    "An event with an encoded GraphDef.", AllScalarsShape},
       }) {
    r.Add(op.schema).Doc(op.doc).Shape(op.shape).NotDifferentiable(kIsState).NoExample(kNoExample);
  }
}

}  // namespace millrace
