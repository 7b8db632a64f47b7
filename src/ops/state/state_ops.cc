// SPDX-License-Identifier: Apache-2.0
// Ops: variables, by reference edge and by resource handle, and their whole-value updates.
#include "graph/gradient.h"
#include "op/shape_context.h"
#include "ops/op_list.h"
#include "ops/state/state_scatter_ops.h"

namespace millrace {
namespace {

constexpr char kIsState[] = "it reads or changes state; gradients flow into the variable, not through its updates";

Status VariableShapeFn(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(PartialShape shape, c.Attr<PartialShape>("shape"));
  // Old graphs wrote [] where they meant "unknown".
  if (c.op().name == "Variable" && shape.has_rank() && shape.rank() == 0) shape = PartialShape::Unknown();
  c.set_output(0, shape);
  return absl::OkStatus();
}

Status VarHandleShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape shape, c.Attr<PartialShape>("shape"));
  MR_ASSIGN_OR_RETURN(const DType dtype, c.Attr<DType>("dtype"));
  c.set_output(0, PartialShape::Scalar());
  c.set_output_handle(0, {dtype, shape});
  return absl::OkStatus();
}

Status AssignShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const bool validate, c.Attr<bool>("validate_shape"));
  if (!validate) {
    c.set_output(0, c.input(1));
    return absl::OkStatus();
  }
  MR_ASSIGN_OR_RETURN(PartialShape merged, c.Merge(c.input(0), c.input(1), "variable and value"));
  c.set_output(0, merged);
  return absl::OkStatus();
}

Status HandleScalar(ShapeContext& c) { return c.RequireScalar(0); }

Status AssignVariableShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.RequireScalar(0));
  if (const auto& h = c.handle(0)) {
    if (h->dtype != DType::kInvalid && h->dtype != c.input_dtype(1)) {
      return InvalidArgument(
          "the variable holds ", DTypeName(h->dtype), ", the value is ", DTypeName(c.input_dtype(1)));
    }
    MR_RETURN_IF_ERROR(c.Merge(h->shape, c.input(1), "variable and value").status());
  }
  return absl::OkStatus();
}

Status ReadVariableShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.RequireScalar(0));
  if (const auto& h = c.handle(0)) {
    MR_ASSIGN_OR_RETURN(const DType dtype, c.Attr<DType>("dtype"));
    if (h->dtype != DType::kInvalid && h->dtype != dtype) {
      return InvalidArgument("the variable holds ", DTypeName(h->dtype), ", it is read as ", DTypeName(dtype));
    }
    c.set_output(0, h->shape);
  }
  return absl::OkStatus();
}

Status VariableShapeShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.RequireScalar(0));
  const auto& h = c.handle(0);
  const PartialShape shape = h ? h->shape : PartialShape::Unknown();
  c.set_output(0, PartialShape::Of({shape.has_rank() ? shape.rank() : -1}));
  c.set_output_as_shape(0, shape);
  return absl::OkStatus();
}

Status TemporaryShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape shape, c.Attr<PartialShape>("shape"));
  c.set_output(0, shape);
  return absl::OkStatus();
}

Status ReadVariableGrad(GradContext& g) {
  if (const Gradient& dy = g.raw_dy(0); dy.sparse) {
    g.set_dx(0, *dy.sparse);
  } else {
    g.set_dx(0, g.dy());
  }
  return g.status();
}

}  // namespace

void RegisterStateOps(OpRegistry& r) {
  RegisterStateScatterOps(r);
  RegisterSessionTensorOps(r);
  r.Add("Variable() -> (ref:&dtype) | shape:shape; dtype:type; container:string=\"\"; shared_name:string=\"\" | S")
      .Traits({OpTrait::kMakesVariable})
      .Doc("A variable of older graphs: like VariableV2, but shape [] means that the shape is not known.")
      .Shape(VariableShapeFn)
      .NotDifferentiable("a variable is a leaf")
      .NoExample("state");
  r.Add("VariableV2() -> (ref:&dtype) | shape:shape; dtype:type; container:string=\"\"; shared_name:string=\"\" | S")
      .Traits({OpTrait::kMakesVariable})
      .Doc(
          "Holds a tensor between steps and returns a reference to it. Nodes with equal container and shared_name (or "
          "node name) share one variable. Reading it before the first Assign is FailedPrecondition.")
      .Shape(VariableShapeFn)
      .NotDifferentiable("a variable is a leaf")
      .NoExample("state");
  r.Add("TemporaryVariable() -> (ref:&dtype) | shape:shape; dtype:type; var_name:string=\"\" | S")
      .Doc("A variable that lives for one step; DestroyTemporaryVariable returns its final value.")
      .Shape(TemporaryShape)
      .NotDifferentiable(kIsState)
      .NoExample("state");
  r.Add("DestroyTemporaryVariable(ref:&T) -> (value:T) | T:type; var_name:string")
      .Doc("Ends the life of the step's temporary variable `var_name` and returns its value.")
      .Shape(UnchangedShape)
      .NoGradient(kIsState)
      .NoExample("state");
  r.Add("IsVariableInitialized(ref:&dtype) -> (is_initialized:bool) | dtype:type | U")
      .Doc("Whether the variable has a value.")
      .Shape(ScalarShape)
      .NotDifferentiable(kIsState)
      .NoExample("state");
  r.Add("Assign(ref:&T, value:T) -> (output_ref:&T) | T:type; validate_shape:bool=true; use_locking:bool=true | U")
      .Doc(
          "Gives the variable a new value and returns its reference. With validate_shape the value must have the "
          "variable's shape; without, the variable takes the value's.")
      .Shape(AssignShape)
      .NotDifferentiable(kIsState)
      .NoExample("state");
  for (const char* sign : {"Add", "Sub"}) {
    const bool add = std::string(sign) == "Add";
    r.Add(absl::StrCat("Assign", sign, "(ref:&T, value:T) -> (output_ref:&T) | T in NUM; use_locking:bool=false"))
        .Doc(add ? "Adds `value`, of the variable's shape, to the variable."
                 : "Subtracts `value`, of the variable's shape, from the variable.")
        .Shape(MergedShape)
        .NotDifferentiable(kIsState)
        .NoExample("state");
    r.Add(absl::StrCat("Assign", sign, "VariableOp(resource:res, value:dtype) -> () | dtype:type | S"))
        .Doc(add ? "Adds `value` to the variable behind the handle."
                 : "Subtracts `value` from the variable behind the handle.")
        .Shape(AssignVariableShape)
        .NotDifferentiable(kIsState)
        .NoExample("state");
  }
  r.Add("CountUpTo(ref:&T) -> (output:T) | limit:int; T in IDX")
      .Doc("Adds one to an integer scalar variable and returns what it was; OutOfRange once it has reached `limit`.")
      .Shape(ScalarShape)
      .NotDifferentiable(kIsState)
      .NoExample("state");
  r.Add("ResourceCountUpTo(resource:res) -> (output:T) | limit:int; T in IDX | S")
      .Doc("CountUpTo for a variable behind a handle.")
      .Shape(ScalarShape)
      .NotDifferentiable(kIsState)
      .NoExample("state");
  r.Add("VarHandleOp() -> (resource:res) | container:string=\"\"; shared_name:string=\"\"; dtype:type; shape:shape | S")
      .Traits({OpTrait::kMakesVariable})
      .Doc("A handle to the variable of this container and shared_name (or node name).")
      .Shape(VarHandleShape)
      .NotDifferentiable("a variable is a leaf")
      .NoExample("state");
  r.Add("ZeroInitializer(ref:&T) -> (output_ref:&T) | T in REAL | U")
      .Doc("Zeros as the first value of a variable whose shape is known; InvalidArgument where it has a value.")
      .Shape(UnchangedShape)
      .NotDifferentiable(kIsState)
      .NoExample("state");
  r.Add("ZeroVarInitializer(var:res) -> (output_var:res) | dtype:type; shape:shape | SU")
      .Doc("ZeroInitializer for a variable behind a handle, which it returns.")
      .Shape(VarHandleShape)
      .NotDifferentiable(kIsState)
      .NoExample("state");
  r.Add("AssignVariableOp(resource:res, value:dtype) -> () | dtype:type | S")
      .Doc("Gives the variable behind the handle a new value.")
      .Shape(AssignVariableShape)
      .NotDifferentiable(kIsState)
      .NoExample("state");
  r.Add("ReadVariableOp(resource:res) -> (value:dtype) | dtype:type | S")
      .Traits({OpTrait::kReadsVariable})
      .Doc("The value of the variable behind the handle. FailedPrecondition before its first assignment.")
      .Shape(ReadVariableShape)
      .Gradient(ReadVariableGrad)
      .NoExample("state");
  r.Add("VarIsInitializedOp(resource:res) -> (is_initialized:bool) | S")
      .Doc("Whether the variable behind the handle has a value.")
      .Shape(ScalarShape)
      .NotDifferentiable(kIsState)
      .NoExample("state");
  r.Add("DisableCopyOnRead(resource:res) -> () | S")
      .Doc(
          "Nothing: TensorFlow 2 asks before it saves a variable that reads may share its buffer, as they always do "
          "here.")
      .Shape(NoOutputs)
      .NotDifferentiable(kIsState)
      .NoExample("state");
  r.Add("VariableShape(input:res) -> (output:out_type) | out_type in IDX=i32 | S")
      .Doc("The shape of the variable behind the handle, as an integer vector.")
      .Shape(VariableShapeShape)
      .NotDifferentiable("a shape is not differentiable")
      .NoExample("state");
  r.Add("DestroyResourceOp(resource:res) -> () | ignore_lookup_error:bool=true | S")
      .Doc("Deletes the resource behind the handle. A missing one is NotFound unless ignore_lookup_error.")
      .Shape(HandleScalar)
      .NotDifferentiable(kIsState)
      .NoExample("state");
}

}  // namespace millrace
