// SPDX-License-Identifier: Apache-2.0
// Ops: where values enter a graph, pass through unchanged, or are asked about their shape.
#include "ops/array/array_ops.h"

namespace millrace {
namespace {

Status ConstShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(Tensor value, c.Attr<Tensor>("value"));
  if (value.dtype() != c.output_dtype(0)) {
    return InvalidArgument("value is ", DTypeName(value.dtype()), " but dtype is ", DTypeName(c.output_dtype(0)));
  }
  c.set_output(0, value.shape());
  return absl::OkStatus();
}

Status ShapeFromAttr(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(PartialShape shape, c.Attr<PartialShape>("shape"));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

Status DefaultedShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(PartialShape shape, c.Attr<PartialShape>("shape"));
  MR_RETURN_IF_ERROR(c.Merge(c.input(0), shape, "default value and shape").status());
  c.set_output(0, std::move(shape));  // a fed value need not be as precise as the default
  return absl::OkStatus();
}

Status EnsuredShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(PartialShape shape, c.Attr<PartialShape>("shape"));
  MR_ASSIGN_OR_RETURN(PartialShape merged, c.Merge(c.input(0), shape, "input and shape"));
  c.set_output(0, std::move(merged));
  return absl::OkStatus();
}

// Everything that is known of an input holds for the output with the same index.
Status PassedThrough(ShapeContext& c) {
  for (int i = 0; i < c.num_outputs() && i < c.num_inputs(); ++i) {
    c.set_output(i, c.input(i));
    if (c.handle(i)) c.set_output_handle(i, *c.handle(i));
    const DType t = BaseType(c.input_dtype(i));
    if ((t == DType::kInt32 || t == DType::kInt64) && c.input(i).rank() == 1) {
      if (auto value = c.InputAsShape(i); value.ok()) c.set_output_as_shape(i, *std::move(value));
    }
  }
  return absl::OkStatus();
}

Status ShapesOfInputs(ShapeContext& c) {
  for (int i = 0; i < c.num_outputs() && i < c.num_inputs(); ++i) {
    c.set_output(i, PartialShape::Of({c.input(i).rank()}));
    if (c.input(i).has_rank()) c.set_output_as_shape(i, c.input(i));
  }
  return absl::OkStatus();
}

Status VectorDenotesShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(PartialShape shape, c.InputAsShape(0));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

Status BitcastShape(ShapeContext& c) {
  const size_t from = DTypeSize(BaseType(c.input_dtype(0)));
  const size_t to = DTypeSize(c.output_dtype(0));
  const PartialShape& in = c.input(0);
  if (!in.has_rank() || from == 0 || to == 0) return absl::OkStatus();
  std::vector<int64_t> dims = in.dims();
  if (from < to) {
    const int64_t ratio = static_cast<int64_t>(to / from);
    if (dims.empty() || (dims.back() >= 0 && dims.back() != ratio)) {
      return InvalidArgument("Cannot bitcast due to shape ", in.ToString(), " from ", DTypeName(c.input_dtype(0)),
                             " to ", DTypeName(c.output_dtype(0)), ": the last dimension must be ", ratio);
    }
    dims.pop_back();
  } else if (from > to) {
    dims.push_back(static_cast<int64_t>(from / to));
  }
  MR_ASSIGN_OR_RETURN(PartialShape out, PartialShape::Make(dims));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

Status IdentityGrad(GradContext& c) {
  for (int i = 0; i < c.num_inputs() && i < c.num_outputs(); ++i) {
    if (!c.has_dy(i)) continue;
    const Gradient& g = c.raw_dy(i);
    if (g.sparse) {
      c.set_dx(i, *g.sparse);
    } else {
      c.set_dx(i, g.dense);
    }
  }
  return c.status();
}

Status PreventGradientGrad(GradContext& c) {
  MR_ASSIGN_OR_RETURN(std::string reason, c.Attr<std::string>("message"));
  return InvalidArgument("Gradient explicitly disabled. Reason: ", reason);
}

Status CheckNumericsGrad(GradContext& c) {
  MR_ASSIGN_OR_RETURN(std::string message, c.Attr<std::string>("message"));
  c.set_dx(0, c.b().Op(c.node()->op_name(), {c.dy()},
                       {{"message", AttrValue(absl::StrCat("In the gradient of a checked tensor: ", message))}}));
  return c.status();
}

void RegisterSources(OpRegistry& r) {
  r.Add("Const() -> (output:dtype) | value:tensor; dtype:type")
      .Traits({OpTrait::kConstant})
      .Doc("A fixed tensor. The value is stored once in the graph and shared by every step that reads it.")
      .Shape(ConstShape)
      .NotDifferentiable("it has no input")
      .NoExample("its value is an attribute; every other example is fed through it");
  r.Add("Placeholder() -> (output:dtype) | dtype:type; shape:shape=?")
      .Traits({OpTrait::kPlaceholder})
      .Doc("A value that the caller must feed. `shape` is what may be assumed of it; running it unfed is an error.")
      .Shape(ShapeFromAttr)
      .NotDifferentiable("it has no input")
      .NoExample("it must be fed");
  r.Add("PlaceholderV2() -> (output:dtype) | dtype:type; shape:shape | D23")
      .Traits({OpTrait::kPlaceholder})
      .Doc("Placeholder with a required shape attribute.")
      .Deprecated("Placeholder behaves the same")
      .Shape(ShapeFromAttr)
      .NotDifferentiable("it has no input")
      .NoExample("it must be fed");
  r.Add("PlaceholderWithDefault(input:dtype) -> (output:dtype) | dtype:type; shape:shape")
      .Traits({OpTrait::kPlaceholder, OpTrait::kNeverFolds})
      .Doc("Passes `input` through unless the caller feeds the output with another value of the given shape.")
      .Shape(DefaultedShape)
      .Gradient(IdentityGrad)
      .Example("f32[2,3]~ | shape=[2,3]");
  r.Add("Empty(shape:i32) -> (output:dtype) | dtype:type; init:bool=false | S")
      .Doc("A new tensor of the given shape. Its elements are zero (or empty strings) with `init`, else unspecified.")
      .Shape(VectorDenotesShape)
      .NotDifferentiable("its value does not depend on the input")
      .Example("i32[2]{2 3} | dtype=f32; init=true");
}

void RegisterIdentities(OpRegistry& r) {
  r.Add("Identity(input:T) -> (output:T) | T:type")
      .Traits({OpTrait::kPassesOn})
      .Doc("The input itself, without a copy.")
      .Shape(PassedThrough)
      .Gradient(IdentityGrad)
      .Example("f32[2,3]~");
  r.Add("IdentityN(input:[T]) -> (output:[T]) | T:list(type)>=1")
      .Doc("Its inputs, each without a copy. Useful as one place for the gradients of several tensors.")
      .Shape(PassedThrough)
      .Gradient(IdentityGrad)
      .Example("f32[2,3]~, f64[2]~");
  r.Add("RefIdentity(input:&T) -> (output:&T) | T:type | U")
      .Doc("Passes a reference to a variable on.")
      .Shape(PassedThrough)
      .Gradient(IdentityGrad)
      .NoExample("it needs a variable");
  r.Add("Snapshot(input:T) -> (output:T) | T:type")
      .Doc("The value of the input at this moment. Tensors are values here, so no copy is needed.")
      .Shape(PassedThrough)
      .NoGradient("TensorFlow defines none; use Identity")
      .Example("f32[2,3]~");
  r.Add("StopGradient(input:T) -> (output:T) | T:type")
      .Doc("The input itself, which counts as a constant when gradients are taken.")
      .Shape(PassedThrough)
      .NotDifferentiable("that is its purpose")
      .Example("f32[2,3]~");
  r.Add("PreventGradient(input:T) -> (output:T) | T:type; message:string=\"\"")
      .Traits({OpTrait::kNeverFolds})
      .Doc("The input itself; taking a gradient through it is an error that shows `message`.")
      .Shape(PassedThrough)
      .Gradient(PreventGradientGrad)
      .Example("!f32[2,3]~ | message=\"no\"");
  r.Add("EnsureShape(input:T) -> (output:T) | shape:shape; T:type")
      .Traits({OpTrait::kChecks})
      .Doc("The input itself, after a check that its shape fits `shape`; what follows may rely on it.")
      .Shape(EnsuredShape)
      .Gradient(IdentityGrad)
      .Example("f32[2,3]~ | shape=[2,-1]");
  r.Add("CheckNumerics(tensor:T) -> (output:T) | T in FLT; message:string | S")
      .Traits({OpTrait::kChecks, OpTrait::kNeverFolds})
      .Doc("The input itself; an error that begins with `message` when an element is NaN or infinite.")
      .Shape(PassedThrough)
      .Gradient(CheckNumericsGrad)
      .Example("f32[2,3]~ | message=\"values\"");
  r.Add("CheckNumericsV2(tensor:T) -> (output:T) | T in FLT; message:string | S")
      .Traits({OpTrait::kChecks, OpTrait::kNeverFolds})
      .Doc("CheckNumerics that tells positive and negative infinity apart.")
      .Shape(PassedThrough)
      .Gradient(CheckNumericsGrad)
      .Example("f32[2,3]~ | message=\"values\"");
  r.Add("Bitcast(input:T) -> (output:type) | T in NUM|qi16|qu16; type in NUM|qi16|qu16")
      .Doc("The same bytes read as another type. A narrower type adds an innermost dimension, a wider one consumes it.")
      .Shape(BitcastShape)
      .NoGradient("reading bytes as another type is not a smooth function")
      .Example("f32[2,3]~ | type=i32")
      .Example("u8[2,4]# | type=i32");
}

void RegisterSpecialIdentities(OpRegistry& r) {
  r.Add("HostConst() -> (output:dtype) | value:tensor; dtype:type")
      .Doc("Const, in the memory of the host on every device.")
      .Shape(ConstShape)
      .NotDifferentiable("it has no input")
      .NoExample("its value is an attribute");
  r.Add("ImmutableConst() -> (tensor:dtype) | dtype:type; shape:shape; memory_region_name:string")
      .Doc("A tensor that is the first bytes of a file, which is read once.")
      .Shape(ShapeFromAttr)
      .NotDifferentiable("it has no input")
      .NoExample("it reads a file");
  r.Add("GuaranteeConst(input:T) -> (output:T) | T:type | S")
      .Doc("The input itself, of which the program promises that it never changes.")
      .Shape(PassedThrough)
      .NoGradient("TensorFlow defines none; use Identity")
      .Example("f32[2,3]~");
  r.Add("DeepCopy(x:T) -> (y:T) | T:type | S")
      .Doc("A copy of the input. Tensors are values here, so the copy is made by whoever changes one of the two.")
      .Shape(PassedThrough)
      .NoGradient("TensorFlow defines none; use Identity")
      .Example("f32[2,3]~");
  r.Add("DebugGradientIdentity(input:T) -> (output:T) | T:type | U")
      .Doc("The input itself: a place for a debugger to look at gradients.")
      .Shape(PassedThrough)
      .NoGradient("debuggers define their own; use Identity")
      .Example("f32[2,3]~");
  r.Add("DebugGradientRefIdentity(input:&T) -> (output:&T) | T:type | U")
      .Doc("DebugGradientIdentity for a reference to a variable.")
      .Shape(PassedThrough)
      .NoGradient("debuggers define their own; use RefIdentity")
      .NoExample("it needs a variable");
}

void RegisterShapeQuestions(OpRegistry& r) {
  r.Add("Shape(input:T) -> (output:out_type) | T:type; out_type in IDX=i32")
      .Doc("The shape of the input as a vector.")
      .Traits({OpTrait::kReadsShape})
      .Shape(ShapesOfInputs)
      .NotDifferentiable("shapes are integers")
      .Example("f32[2,3]~");
  r.Add("ShapeN(input:N*T) -> (output:N*out_type) | N:int>=1; T:type; out_type in IDX=i32")
      .Doc("The shapes of several tensors, each as a vector.")
      .Shape(ShapesOfInputs)
      .NotDifferentiable("shapes are integers")
      .Example("f32[2,3]~, f32[4]~ | N=2");
  r.Add("Size(input:T) -> (output:out_type) | T:type; out_type in IDX=i32")
      .Doc("The number of elements of the input.")
      .Traits({OpTrait::kReadsShape})
      .Shape(ScalarShape)
      .NotDifferentiable("sizes are integers")
      .Example("f32[2,3]~");
  r.Add("Rank(input:T) -> (output:i32) | T:type")
      .Doc("The number of dimensions of the input.")
      .Traits({OpTrait::kReadsShape})
      .Shape(ScalarShape)
      .NotDifferentiable("ranks are integers")
      .Example("f32[2,3]~");
  r.Add("ZerosLike(x:T) -> (y:T) | T:type")
      .Doc("Zeros (false, empty strings) in the shape of `x`.")
      .Shape(UnchangedShape)
      .NotDifferentiable("the value does not depend on x")
      .Example("f32[2,3]~");
  r.Add("OnesLike(x:T) -> (y:T) | T in FC|INT|bool")
      .Doc("Ones (true) in the shape of `x`.")
      .Shape(UnchangedShape)
      .NotDifferentiable("the value does not depend on x")
      .Example("f32[2,3]~");
}

}  // namespace

void RegisterArraySourceOps(OpRegistry& registry) {
  RegisterSources(registry);
  RegisterIdentities(registry);
  RegisterSpecialIdentities(registry);
  RegisterShapeQuestions(registry);
}

}  // namespace millrace
