// SPDX-License-Identifier: Apache-2.0
// Ops: what the runtime itself puts into graphs. Names that begin with '_' are refused in graphs of clients.
#include "op/shape_context.h"
#include "ops/op_list.h"

namespace millrace {
namespace {

constexpr char kTransfer[] = "transfers are added after gradients are taken";

Status NothingKnown(ShapeContext&) { return absl::OkStatus(); }

Status EachLikeItsInput(ShapeContext& c) {
  if (c.num_inputs() != c.num_outputs()) {
    return InvalidArgument(c.num_inputs(), " inputs do not make ", c.num_outputs(), " outputs");
  }
  for (int i = 0; i < c.num_inputs(); ++i) c.set_output(i, c.input(i));
  return absl::OkStatus();
}

void AddSend(OpRegistry& r, absl::string_view name, absl::string_view doc) {
  r.Add(absl::StrCat(name,
                     "(tensor:T) -> () | T:type; tensor_name:string; send_device:string; "
                     "send_device_incarnation:int; recv_device:string; client_terminated:bool=false | S"))
      .Traits({OpTrait::kTransfer})
      .Doc(doc)
      .Shape(NoOutputs)
      .NoGradient(kTransfer)
      .NoExample("it needs a receiver");
}

void AddRecv(OpRegistry& r, absl::string_view name, absl::string_view doc) {
  r.Add(absl::StrCat(name,
                     "() -> (tensor:tensor_type) | tensor_type:type; tensor_name:string; send_device:string; "
                     "send_device_incarnation:int; recv_device:string; client_terminated:bool=false | S"))
      .Traits({OpTrait::kTransfer, OpTrait::kWaits})
      .Doc(doc)
      .Shape(NothingKnown)
      .NoGradient(kTransfer)
      .NoExample("it needs a sender");
}

}  // namespace

void RegisterRuntimeOps(OpRegistry& r) {
  r.Add("NoOp() -> ()")
      .Traits({OpTrait::kDoesNothing})
      .Doc("Does nothing. Control edges to and from it group and order other ops.")
      .Shape(NoOutputs)
      .NotDifferentiable("it has no input")
      .Example("");
  AddSend(r, "_Send", "Hands a tensor to the rendezvous of the step, where the matching _Recv finds it.");
  AddSend(r, "_HostSend", "_Send of a tensor that lies in host memory.");
  AddRecv(r, "_Recv", "Waits for the tensor that the matching _Send hands over.");
  AddRecv(r, "_HostRecv", "_Recv into host memory.");
  r.Add("_CopyToHost(input:T) -> (output:T) | T:type")
      .Traits({OpTrait::kWaits})
      .Doc("A tensor of a device with memory of its own in host memory.")
      .Shape(UnchangedShape)
      .NoGradient(kTransfer)
      .NoExample("graphs of clients do not have it");
  r.Add("_CopyFromHost(input:T) -> (output:T) | T:type")
      .Doc("A tensor of host memory in the memory of the node's device.")
      .Shape(UnchangedShape)
      .NoGradient(kTransfer)
      .NoExample("graphs of clients do not have it");
  r.Add("_HostCast(x:SrcT) -> (y:DstT) | SrcT:type; DstT:type; Truncate:bool=false")
      .Doc("Cast of a tensor that lies in host memory.")
      .Shape(UnchangedShape)
      .NoGradient(kTransfer)
      .NoExample("graphs of clients do not have it");
  r.Add("_ListToArray(input:[Tin]) -> (output:N*T) | Tin:list(type); T:type; N:int>=1")
      .Doc("Tensors given with a type each, which must be one, as a list of one type.")
      .Shape(EachLikeItsInput)
      .NoGradient(kTransfer)
      .NoExample("graphs of clients do not have it");
  r.Add("_ArrayToList(input:N*T) -> (output:[out_types]) | T:type; N:int>=1; out_types:list(type)")
      .Doc("A list of tensors of one type as tensors with a type each.")
      .Shape(EachLikeItsInput)
      .NoGradient(kTransfer)
      .NoExample("graphs of clients do not have it");
  r.Add("DeviceIndex() -> (index:i32) | device_names:list(string) | S")
      .Doc("Which of the types of devices, as \"CPU\", is that of the node's own device; their number when it is none.")
      .Shape(ScalarShape)
      .NotDifferentiable("its result is an index")
      .Example("| device_names=[\"GPU\",\"CPU\"]");
  r.Add("_DeviceIndex(target:str) -> (index:i32) | devices:list(string)")
      .Doc(
          "Which of `devices` the name `target` means, of several the one in the node's own task. InvalidArgument when "
          "it means none.")
      .Shape(ScalarShape)
      .NotDifferentiable("its result is an index")
      .NoExample("graphs of clients do not have it");
  r.Add("_Loop(args:[Tin]) -> (results:[Tout]) | Tin:list(type)>=0; Tout:list(type)>=0 | S")
      .Doc(
          "A while loop that runs as a straight line: first values of its variables and what does not change go in, "
          "what "
          "leaves the loop comes out. The executor makes it from the primitives.")
      .Shape(NothingKnown)
      .NoGradient("gradients are taken of the primitives")
      .NoExample("it needs a loop");
  r.Add("_Arg() -> (output:T) | T:type; index:int>=0 | S")
      .Traits({OpTrait::kArgument})
      .Doc("Argument `index` of the function (or fed partition) that contains it.")
      .Shape(NothingKnown)
      .NotDifferentiable("it has no input")
      .NoExample("it needs a call");
  r.Add("_Retval(input:T) -> () | T:type; index:int>=0 | S")
      .Traits({OpTrait::kResult})
      .Doc("Makes its input result `index` of the function (or fetched partition) that contains it.")
      .Shape(NoOutputs)
      .NoGradient("results have gradients at the call")
      .NoExample("it needs a call");
}

}  // namespace millrace
