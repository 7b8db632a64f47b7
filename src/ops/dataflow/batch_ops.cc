// SPDX-License-Identifier: Apache-2.0
// Ops: batches that several steps fill, and the ways back to each step's rows.
#include "graph/gradient.h"
#include "op/shape_context.h"
#include "ops/op_list.h"

namespace millrace {
namespace {

constexpr char kNoExample[] = "it waits for other steps";
constexpr char kBatching[] =
    "num_batch_threads:int; max_batch_size:int; batch_timeout_micros:int; max_enqueued_batches:int=10; "
    "allowed_batch_sizes:list(int)=[]; container:string=\"\"; shared_name:string=\"\"; batching_queue:string=\"\"; ";

PartialShape OtherRows(const PartialShape& shape) {
  if (!shape.has_rank() || shape.rank() == 0) return PartialShape::Unknown();
  std::vector<int64_t> dims(shape.dims().begin(), shape.dims().end());
  dims[0] = -1;
  return PartialShape::Of(std::move(dims));
}

Status BatchShape(ShapeContext& c) {
  for (int i = 0; i < c.num_inputs(); ++i) {
    MR_RETURN_IF_ERROR(c.WithRankAtLeast(i, 1).status());
    c.set_output(i, OtherRows(c.input(i)));
  }
  c.set_output(c.num_outputs() - 2, PartialShape::Of({-1, 3}));
  c.set_output(c.num_outputs() - 1, PartialShape::Scalar());
  return absl::OkStatus();
}

Status BatchFunctionShape(ShapeContext& c) {
  const ArgRange batched = c.input_arg("in_tensors");
  for (int i = batched.begin; i < batched.end; ++i) MR_RETURN_IF_ERROR(c.WithRankAtLeast(i, 1).status());
  return absl::OkStatus();
}

Status RequireIndex(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.WithRankAtLeast(0, 1).status());
  MR_ASSIGN_OR_RETURN(const PartialShape index, c.WithRank(1, 2));
  return c.MergeDim(index.dim(1), 3, "id, begin and end of batch_index").status();
}

Status UnbatchShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(RequireIndex(c));
  MR_RETURN_IF_ERROR(c.RequireScalar(2));
  c.set_output(0, OtherRows(c.input(0)));
  return absl::OkStatus();
}

Status UnbatchGradShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(RequireIndex(c));
  MR_RETURN_IF_ERROR(c.RequireScalar(3));
  c.set_output(0, OtherRows(c.input(2)));
  return absl::OkStatus();
}

// Each step's gradient is its rows of the batch's.
Status BatchGrad(GradContext& c) {
  MR_ASSIGN_OR_RETURN(const int64_t micros, c.Attr<int64_t>("grad_timeout_micros"));
  const Output index = c.y(c.num_outputs() - 2), id = c.y(c.num_outputs() - 1);
  for (int i = 0; i < c.num_inputs(); ++i) {
    if (!c.has_dy(i)) continue;
    c.set_dx(i, c.b().Op("Unbatch", {c.dy(i), index, id},
                         {{"timeout_micros", micros},
                          {"shared_name", absl::StrCat("batch_gradient_", c.node()->name(), "_", i)}}));
  }
  return c.status();
}

Status UnbatchGrad(GradContext& c) {
  c.set_dx(0, c.b().Op("UnbatchGrad", {c.x(0), c.x(1), c.dy(), c.x(2)},
                       {{"shared_name", absl::StrCat("unbatch_gradient_", c.node()->name())}}));
  return c.status();
}

}  // namespace

void RegisterBatchOps(OpRegistry& r) {
  const auto waiting = {OpTrait::kWaits, OpTrait::kKeepsState, OpTrait::kNeverFolds};
  r.Add(absl::StrCat("Batch(in_tensors:[T]) -> (batched_tensors:[T], batch_index:i64, id:i64) | ", kBatching,
                     "grad_timeout_micros:int; T:list(type)>=1"))
      .Traits(waiting)
      .Doc(
          "Joins the rows of several steps to batches of up to max_batch_size rows. A batch is over when it is full, "
          "or "
          "batch_timeout_micros after its first rows came, and one of num_batch_threads is free; repetitions of its "
          "first row fill it up to one of allowed_batch_sizes, if there are any. One of its steps gets it, and a row "
          "[id, first row, row behind the last] for each of its steps; the others get tensors without rows. Where "
          "max_enqueued_batches wait already it is Unavailable. Nodes of one container, shared_name and batching_queue "
          "fill the same batches.")
      .Shape(BatchShape)
      .Gradient(BatchGrad)
      .NoExample(kNoExample);
  r.Add(absl::StrCat("BatchFunction(in_tensors:[Tin], captured_tensors:[Tcaptured]) -> (out_tensors:[Tout]) | f:func; ",
                     kBatching, "Tin:list(type)>=1; Tcaptured:list(type)>=0; Tout:list(type)>=1"))
      .Traits(waiting)
      .Doc("The step's rows of what `f` returns for a batch, made as Batch makes it, and captured_tensors.")
      .Shape(BatchFunctionShape)
      .NoGradient("the rows that the function gets come from several steps: use Batch and Unbatch")
      .NoExample(kNoExample);
  r.Add(
       "Unbatch(batched_tensor:T, batch_index:i64, id:i64) -> (unbatched_tensor:T) | timeout_micros:int; "
       "container:string=\"\"; shared_name:string=\"\"; T:type")
      .Traits(waiting)
      .Doc(
          "The rows of a batch that are those of the step that Batch gave this id. Waits timeout_micros at most for "
          "the "
          "step which has the batch.")
      .Shape(UnbatchShape)
      .Gradient(UnbatchGrad)
      .NoExample(kNoExample);
  r.Add(
       "UnbatchGrad(original_input:T, batch_index:i64, grad:T, id:i64) -> (batched_grad:T) | container:string=\"\"; "
       "shared_name:string=\"\"; T:type")
      .Traits(waiting)
      .Doc(
          "The gradient of Unbatch: the rows of all steps of a batch, for the one that has it; the others get none. "
          "Waits "
          "ten minutes at most for their gradients; rows that only fill the batch have zeros.")
      .Shape(UnbatchGradShape)
      .NoGradient("it is a gradient itself")
      .NoExample(kNoExample);
}

}  // namespace millrace
