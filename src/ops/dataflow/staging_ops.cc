// SPDX-License-Identifier: Apache-2.0
// Ops: staging areas.
#include "op/shape_context.h"
#include "ops/dataflow/queue_ops.h"

namespace millrace {
namespace {

Status PeekShape(ShapeContext& c) { return c.RequireScalar(0); }

Status MapShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.RequireScalar(0));
  return c.WithRank(1, 1).status();
}

Status UnstageNoKeyShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.WithRank(0, 1).status());
  c.set_output(0, PartialShape::Scalar());
  return absl::OkStatus();
}

constexpr char kLimits[] = "capacity:int>=0=0; memory_limit:int>=0=0; ";
constexpr char kNames[] = "container:string=\"\"; shared_name:string=\"\" | S";

void Declare(OpRegistry& r, absl::string_view signature, absl::string_view types, absl::string_view doc,
             ShapeFn shape) {
  r.Add(absl::StrCat(signature, " | ", kLimits, types, "; ", kNames))
      .Traits({OpTrait::kWaits})
      .Doc(doc)
      .Shape(shape)
      .NotDifferentiable("a staging area is state")
      .NoExample("state");
}

void RegisterMap(OpRegistry& r, const std::string& order) {
  const char* const any = "dtypes:list(type)";
  const char* const some = "dtypes:list(type)>=1";
  const std::string which = order.empty() ? "one of the keys" : "the smallest key";
  Declare(r, order + "MapStage(key:i64, indices:i32, values:[fake_dtypes]) -> ()",
          "dtypes:list(type); fake_dtypes:list(type)>=1",
          "Puts values under a key, in the places that `indices` gives; others of the key may follow. Waits while the "
          "area is full.",
          MapShape);
  Declare(r, order + "MapPeek(key:i64, indices:i32) -> (values:[dtypes])", some,
          "The values of a key in these places, which stay there; waits until all of the key's values are there.",
          MapShape);
  Declare(r, order + "MapUnstage(key:i64, indices:i32) -> (values:[dtypes])", some,
          "Takes the values of a key in these places; waits until all of the key's values are there.", MapShape);
  Declare(r, order + "MapUnstageNoKey(indices:i32) -> (key:i64, values:[dtypes])", some,
          absl::StrCat("MapUnstage of ", which, ", which is returned; waits while there is none."), UnstageNoKeyShape);
  Declare(r, order + "MapSize() -> (size:i32)", any, "The number of keys whose values are all there.", ScalarShape);
  Declare(r, order + "MapIncompleteSize() -> (size:i32)", any, "The number of keys that lack values.", ScalarShape);
  Declare(r, order + "MapClear() -> ()", any, "Drops everything in the area.", NoOutputs);
}

}  // namespace

void RegisterStagingOps(OpRegistry& r) {
  const char* const some = "dtypes:list(type)>=1";
  Declare(r, "Stage(values:[dtypes]) -> ()", some,
          "Puts values into a staging area, which all nodes with its name share; waits while it is full.", NoOutputs);
  Declare(
      r, "Unstage() -> (values:[dtypes])", some, "Takes the oldest values; waits while there are none.", UnknownShape);
  Declare(
      r, "StagePeek(index:i32) -> (values:[dtypes])", some,
      "The values in that place, counted from the oldest, which stay there; waits until there are as many.", PeekShape);
  Declare(r, "StageSize() -> (size:i32)", "dtypes:list(type)", "The number of elements in the area.", ScalarShape);
  Declare(r, "StageClear() -> ()", "dtypes:list(type)", "Drops everything in the area.", NoOutputs);
  RegisterMap(r, "");
  RegisterMap(r, "Ordered");
}

}  // namespace millrace
