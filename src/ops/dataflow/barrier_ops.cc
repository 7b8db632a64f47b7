// SPDX-License-Identifier: Apache-2.0
// Ops: barriers.
#include "op/shape_context.h"
#include "ops/dataflow/queue_ops.h"

namespace millrace {
namespace {

Status BarrierShape(ShapeContext& c) {
  c.set_output(0, PartialShape::Of({2}));
  return absl::OkStatus();
}

Status InsertShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.WithRank(1, 1).status());
  return c.WithRankAtLeast(2, 1).status();
}

Status TakeShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.RequireScalar(1));
  for (int o = 0; o < 2; ++o) c.set_output(o, PartialShape::Of({-1}));
  return absl::OkStatus();
}

void Declare(OpRegistry& r, const char* schema, const char* doc, ShapeFn shape) {
  r.Add(schema)
      .Traits({OpTrait::kWaits})
      .Doc(doc)
      .Shape(shape)
      .NotDifferentiable("a barrier is state")
      .NoExample("state");
}

}  // namespace

void RegisterBarrierOps(OpRegistry& r) {
  Declare(r,
          "Barrier() -> (handle:&str) | component_types:list(type)>=1; shapes:list(shape)>=0=[]; capacity:int=-1; "
          "container:string=\"\"; shared_name:string=\"\" | S",
          "A store of elements, each under a key, whose components come one by one. An element can be taken once all "
          "of them are there.",
          BarrierShape);
  Declare(
      r, "BarrierInsertMany(handle:&str, keys:str, values:T) -> () | T:type; component_index:int",
      "Gives each key the slice of `values` in its place as the component of that index. A component that a key has "
      "already is an error.",
      InsertShape);
  Declare(r,
          "BarrierTakeMany(handle:&str, num_elements:i32) -> (indices:i64, keys:str, values:[component_types]) | "
          "component_types:list(type)>=1; allow_small_batch:bool=false; wait_for_incomplete:bool=false; "
          "timeout_ms:int=-1",
          "Takes complete elements, those that were begun first before others, and stacks each component; waits until "
          "there are as many. With `allow_small_batch` a closed barrier gives what it has. `indices` tells in which "
          "insertion each was begun.",
          TakeShape);
  Declare(
      r, "BarrierClose(handle:&str) -> () | cancel_pending_enqueues:bool=false",
      "Closes the barrier: no new keys enter; those that are incomplete may be completed, unless they are cancelled.",
      NoOutputs);
  Declare(
      r, "BarrierReadySize(handle:&str) -> (size:i32)", "The number of complete elements in the barrier.", ScalarShape);
  Declare(r, "BarrierIncompleteSize(handle:&str) -> (size:i32)", "The number of incomplete elements in the barrier.",
          ScalarShape);
}

}  // namespace millrace
