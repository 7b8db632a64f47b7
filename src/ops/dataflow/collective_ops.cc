// SPDX-License-Identifier: Apache-2.0
// Ops: values that the members of a group exchange.
#include "base/checked.h"
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

Status RowsOfAll(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(PartialShape shape, c.WithRankAtLeast(0, 1));
  if (!shape.has_rank()) return absl::OkStatus();
  MR_ASSIGN_OR_RETURN(const std::optional<int64_t> members, c.ConstantInt(1));
  std::vector<int64_t> dims(shape.dims().begin(), shape.dims().end());
  if (dims[0] < 0 || !members || *members < 1 || !CheckedMul(dims[0], *members, &dims[0])) dims[0] = -1;
  MR_ASSIGN_OR_RETURN(shape, PartialShape::Make(dims));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

Status FedShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(PartialShape shape, c.InputAsShape(3));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

// The same with group and instance as inputs.
void RegisterWithNumbersAsInputs(OpRegistry& r, const char* group, const char* others) {
  constexpr char kNumbers[] = "group_size:i32, group_key:i32, instance_key:i32";
  constexpr char kTokens[] = ", ordering_token:Nordering_token*res) -> (data:T) | T in HFD|IDX; ";
  constexpr char kOptions[] = "communication_hint:string=\"auto\"; timeout_seconds:float=0";
  constexpr char kOrder[] = "; is_stateless:bool=false; Nordering_token:int>=0=0";
  r.Add(absl::StrCat("CollectiveReduceV2(input:T, ", kNumbers, kTokens, "merge_op in {Min,Max,Mul,Add}; ",
                     "final_op in {Id,Div}; ", kOptions, kOrder, "; max_subdivs_per_device:int=-1 | S"))
      .Doc(absl::StrCat("CollectiveReduce with the numbers of the group as inputs. Its tokens change nothing.", group))
      .Traits({OpTrait::kWaits})
      .Shape(UnchangedShape)
      .NoGradient(others)
      .NoExample(others);
  r.Add(absl::StrCat("CollectiveGatherV2(input:T, ", kNumbers, kTokens, kOptions, kOrder, " | S"))
      .Doc(absl::StrCat("CollectiveGather with the numbers of the group as inputs. Its tokens change nothing.", group))
      .Traits({OpTrait::kWaits})
      .Shape(RowsOfAll)
      .NoGradient(others)
      .NoExample(others);
  r.Add(absl::StrCat(
            "CollectiveBcastSendV2(input:T, ", kNumbers, ") -> (data:T) | T in HFD|IDX|bool; ", kOptions, " | S"))
      .Doc(absl::StrCat("CollectiveBcastSend with the numbers of the group as inputs.", group))
      .Traits({OpTrait::kWaits})
      .Shape(UnchangedShape)
      .NoGradient(others)
      .NoExample(others);
  r.Add(absl::StrCat("CollectiveBcastRecvV2(", kNumbers,
                     ", shape:Tshape) -> (data:T) | T in HFD|IDX|bool; Tshape in IDX=i32; ", kOptions, " | S"))
      .Doc(absl::StrCat("CollectiveBcastRecv with the numbers of the group, and the shape, as inputs.", group))
      .Traits({OpTrait::kWaits})
      .Shape(FedShape)
      .NotDifferentiable("it gets what another member has")
      .NoExample(others);
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
  RegisterWithNumbersAsInputs(r, kGroup, others);
}

}  // namespace millrace
