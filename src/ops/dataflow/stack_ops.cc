// SPDX-License-Identifier: Apache-2.0
// Ops: stacks that live for one step.
#include "graph/gradient.h"
#include "op/shape_context.h"
#include "ops/op_list.h"

namespace millrace {
namespace {

constexpr char kIsState[] = "a stack is state of a step";

// A handle is {container, name}, or a resource.
Status StackShape(ShapeContext& c) {
  if (c.num_inputs() > 0) MR_RETURN_IF_ERROR(c.RequireScalar(0));
  c.set_output(0, BaseType(c.output_dtype(0)) == DType::kString ? PartialShape::Of({2}) : PartialShape::Scalar());
  return absl::OkStatus();
}

Status PushShape(ShapeContext& c) {
  c.set_output(0, c.input(1));
  if (c.handle(1)) c.set_output_handle(0, *c.handle(1));
  return absl::OkStatus();
}

}  // namespace

void RegisterStackOps(OpRegistry& r) {
  r.Add("Stack() -> (handle:&str) | elem_type:type; stack_name:string=\"\" | S")
      .Doc("A new, empty stack of tensors of one dtype; it lives until the step ends.")
      .Shape(StackShape)
      .NotDifferentiable(kIsState)
      .NoExample("state");
  r.Add("StackV2(max_size:i32) -> (handle:res) | elem_type:type; stack_name:string=\"\" | S")
      .Doc(
          "A new, empty stack of tensors of one dtype that holds at most `max_size` of them (zero or less: any); "
          "it lives until the step ends.")
      .Shape(StackShape)
      .NotDifferentiable(kIsState)
      .NoExample("state");
  struct Version {
    const char* suffix;
    const char* handle;
    const char* flags;
  };
  for (const Version& v : {Version{"", "&str", ""}, Version{"V2", "res", " | S"}}) {
    r.Add(absl::StrCat("StackPush", v.suffix, "(handle:", v.handle,
                       ", elem:T) -> (output:T) | T:type; swap_memory:bool=false", v.flags))
        .Doc(
            "Puts `elem` on top of the stack and returns it. No copy is made. `swap_memory` allows the stack to keep "
            "it in another memory than the device's.")
        .Shape(PushShape)
        .NotDifferentiable(kIsState)
        .NoExample("state");
    r.Add(absl::StrCat("StackPop", v.suffix, "(handle:", v.handle, ") -> (elem:elem_type) | elem_type:type", v.flags))
        .Doc("Takes the top off the stack and returns it. An empty stack is an error.")
        .Shape(UnknownShape)
        .NotDifferentiable(kIsState)
        .NoExample("state");
    r.Add(absl::StrCat("StackClose", v.suffix, "(handle:", v.handle, ") -> ()", v.flags))
        .Doc("Frees what the stack holds; using it later in the step is an error.")
        .Shape(NoOutputs)
        .NotDifferentiable(kIsState)
        .NoExample("state");
  }
}

}  // namespace millrace
