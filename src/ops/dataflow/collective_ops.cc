// SPDX-License-Identifier: Apache-2.0
// Ops: values that the members of a group exchange.
#include "op/op_trait.h"
#include "op/shape_context.h"
#include "ops/dataflow/queue_ops.h"

namespace millrace {
namespace {

Status DeclaredShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(PartialShape shape, c.Attr<PartialShape>("shape"));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

}  // namespace

void RegisterCollectiveOps(OpRegistry& r) {
  const char* others = "a group exchanges with others";
  constexpr char kAttrs[] = "T in HFD|IDX; group_size:int; group_key:int; instance_key:int";
  constexpr char kGroup[] =
      " The members of a group are devices, of one process or of a cluster, that name the same group_key and "
      "group_size; what they do together has one instance_key. They wait for each other, for timeout_seconds (0: ten "
      "minutes).";
  r.Add(absl::StrCat("CollectiveReduce(input:T) -> (data:T) | ", kAttrs,
                     "; merge_op in {Min,Max,Mul,Add}; final_op in {Id,Div}; subdiv_offsets:list(int); "
                     "+wait_for:list(int)=[]; +communication_hint:string=\"auto\"; +timeout_seconds:float=0 | S"))
      .Doc(absl::StrCat(
          "The values of all members, combined in the order of their names; with final_op Div divided by their number. "
          "subdiv_offsets, wait_for and communication_hint change nothing.",
          kGroup))
      .Traits({OpTrait::kWaits})
      .Shape(UnchangedShape)
      .NoGradient(others)
      .NoExample(others);
  r.Add(absl::StrCat("CollectiveGather(input:T) -> (data:T) | ", kAttrs,
                     "; shape:shape; communication_hint:string=\"auto\"; +timeout_seconds:float=0 | S"))
      .Doc(absl::StrCat(
          "The values of all members, which have one shape, one after the other along dimension 0.", kGroup))
      .Traits({OpTrait::kWaits})
      .Shape(DeclaredShape)
      .NoGradient(others)
      .NoExample(others);
  r.Add(absl::StrCat("CollectiveBcastSend(input:T) -> (data:T) | ", kAttrs,
                     "; shape:shape; +communication_hint:string=\"auto\"; +timeout_seconds:float=0 | S"))
      .Doc(absl::StrCat("Gives its input to all members.", kGroup))
      .Traits({OpTrait::kWaits})
      .Shape(DeclaredShape)
      .NoGradient(others)
      .NoExample(others);
  r.Add(absl::StrCat("CollectiveBcastRecv() -> (data:T) | ", kAttrs,
                     "; shape:shape; +communication_hint:string=\"auto\"; +timeout_seconds:float=0 | S"))
      .Doc(absl::StrCat("What another member gives by CollectiveBcastSend.", kGroup))
      .Traits({OpTrait::kWaits})
      .Shape(DeclaredShape)
      .NotDifferentiable("it has no input")
      .NoExample(others);
}

}  // namespace millrace
