// SPDX-License-Identifier: Apache-2.0
// Ops: calls of functions, and conditionals and loops made of functions. None of these has a kernel: before a step, and
// for its gradient, a call becomes the nodes of the bodies (graph/inline_calls.h).
#include "graph/gradient.h"
#include "op/shape_context.h"
#include "ops/op_list.h"

namespace millrace {
namespace {

constexpr char kNeedsFunctions[] = "it needs functions, which tests of calls bring";

// What the attribute output_shapes says; unknown where it says nothing.
Status ShapesFromAttr(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const std::vector<PartialShape> shapes, c.Attr<std::vector<PartialShape>>("output_shapes"));
  if (shapes.empty()) return absl::OkStatus();
  if (static_cast<int>(shapes.size()) != c.num_outputs()) {
    return InvalidArgument("output_shapes has ", shapes.size(), " shapes for ", c.num_outputs(), " outputs");
  }
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, shapes[static_cast<size_t>(i)]);
  return absl::OkStatus();
}

Status CaseShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.RequireScalar(0));
  return ShapesFromAttr(c);
}

// A handle stays what it is.
void KeepHandles(ShapeContext& c, int first_input) {
  for (int i = 0; i < c.num_outputs(); ++i) {
    const auto& handle = c.handle(first_input + i);
    if (handle && c.output_dtype(i) == DType::kResource) c.set_output_handle(i, *handle);
  }
}

Status WhileShape(ShapeContext& c) {
  KeepHandles(c, 0);
  return ShapesFromAttr(c);
}

Status ForShape(ShapeContext& c) {
  for (int i : {0, 1, 2}) MR_RETURN_IF_ERROR(c.RequireScalar(i));
  if (c.num_inputs() == c.num_outputs() + 3) KeepHandles(c, 3);
  return absl::OkStatus();
}

Status RemoteShape(ShapeContext& c) { return c.RequireScalar(0); }

// A gradient has the shape of the input that it belongs to.
Status GradientShape(ShapeContext& c) {
  if (c.num_outputs() > c.num_inputs()) {
    return InvalidArgument(
        "it has ", c.num_outputs(), " outputs, one for each argument, but only ", c.num_inputs(), " inputs");
  }
  for (int i = 0; i < c.num_outputs(); ++i) {
    if (c.output_dtype(i) != BaseType(c.input_dtype(i))) {
      return InvalidArgument(
          "output ", i, " is ", DTypeName(c.output_dtype(i)), ", the argument ", DTypeName(c.input_dtype(i)));
    }
    if (c.output_dtype(i) != DType::kResource && c.output_dtype(i) != DType::kVariant) c.set_output(i, c.input(i));
  }
  return absl::OkStatus();
}

Status FakeParamShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(PartialShape shape, c.Attr<PartialShape>("shape"));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

Status HasValueShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.RequireScalar(0));
  return ScalarShape(c);
}

Status GetValueShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.RequireScalar(0));
  return ShapesFromAttr(c);
}

Status FromValueGrad(GradContext& c) {
  AttrMap attrs;
  std::vector<DType> types;
  std::vector<PartialShape> shapes;
  for (int i = 0; i < c.num_inputs(); ++i) {
    types.push_back(BaseType(c.x(i).dtype()));
    shapes.push_back(c.x(i).shape());
  }
  attrs.emplace("output_types", types);
  attrs.emplace("output_shapes", shapes);
  Node* values = c.b().OpNode("OptionalGetValue", {c.dy()}, std::move(attrs));
  if (values == nullptr) return c.status();
  for (int i = 0; i < c.num_inputs(); ++i) c.set_dx(i, values->output(i));
  return c.status();
}

Status GetValueGrad(GradContext& c) {
  std::vector<Output> dys;
  for (int i = 0; i < c.num_outputs(); ++i) dys.push_back(c.dy(i));
  c.set_dx(0, c.b().Op("OptionalFromValue", {dys}));
  return c.status();
}

void RegisterOptionalOps(OpRegistry& r) {
  constexpr char kVariant[] = "it takes or gives a variant";
  r.Add("OptionalNone() -> (optional:var)")
      .Doc("An optional without a value: what a branch returns in place of what it does not compute.")
      .Shape(ScalarShape)
      .NotDifferentiable("it has no input")
      .NoExample(kVariant);
  r.Add("OptionalFromValue(components:[Toutput_types]) -> (optional:var) | Toutput_types:list(type)>=1")
      .Doc("An optional whose value is the list `components`.")
      .Shape(ScalarShape)
      .Gradient(FromValueGrad)
      .NoExample(kVariant);
  r.Add("OptionalHasValue(optional:var) -> (has_value:bool)")
      .Doc("Whether an optional has a value.")
      .Shape(HasValueShape)
      .NotDifferentiable("its output is bool")
      .NoExample(kVariant);
  r.Add(
       "OptionalGetValue(optional:var) -> (components:[output_types]) | output_types:list(type)>=1; "
       "output_shapes:list(shape)>=1")
      .Doc("The value of an optional. InvalidArgument when it has none, or one of other types or shapes.")
      .Shape(GetValueShape)
      .Gradient(GetValueGrad)
      .NoExample(kVariant);
}

void AddCall(OpRegistry& r, absl::string_view schema, absl::string_view doc, ShapeFn shape) {
  r.Add(schema).Doc(doc).Shape(shape).StructuralGradient().NoExample(kNeedsFunctions);
}

}  // namespace

void RegisterFunctionalOps(OpRegistry& r) {
  for (const bool stateful : {false, true}) {
    const absl::string_view s = stateful ? " | S" : "";
    AddCall(r,
            absl::StrCat(stateful ? "Stateful" : "", "PartitionedCall(args:[Tin]) -> (output:[Tout]) | ",
                         "Tin:list(type)>=0; Tout:list(type)>=0; f:func; config:string=\"\"; ",
                         "config_proto:string=\"\"; executor_type:string=\"\"", s),
            "What the function `f` returns for `args`. The devices of the body's nodes count; config and executor_type "
            "are ignored.",
            UnknownShape);
    AddCall(r,
            absl::StrCat(stateful ? "" : "Stateless", "If(cond:Tcond, input:[Tin]) -> (output:[Tout]) | Tcond:type; ",
                         "Tin:list(type)>=0; Tout:list(type)>=0; then_branch:func; else_branch:func; ",
                         "output_shapes:list(shape)=[]", s),
            "What then_branch returns for `input` when `cond` is true, else what else_branch does. A scalar that is no "
            "bool counts as true unless it is 0 or empty, any other tensor when it has elements.",
            ShapesFromAttr);
    AddCall(
        r,
        absl::StrCat(stateful ? "" : "Stateless", "Case(branch_index:i32, input:[Tin]) -> (output:[Tout]) | ",
                     "Tin:list(type)>=0; Tout:list(type)>=0; branches:list(func)>=1; output_shapes:list(shape)=[]", s),
        "What the function at place branch_index of `branches` returns for `input`; the last one where there is no "
        "such place.",
        CaseShape);
    AddCall(r,
            absl::StrCat(stateful ? "" : "Stateless", "While(input:[T]) -> (output:[T]) | T:list(type)>=0; cond:func; ",
                         "body:func; output_shapes:list(shape)=[]; parallel_iterations:int=10", s),
            "Replaces `input` by what `body` returns for it as long as `cond` says true of it.", WhileShape);
  }
  AddCall(r, "For(start:i32, limit:i32, delta:i32, input:[T]) -> (output:[T]) | T:list(type)>=0; body:func",
          "Replaces `input` by what `body` returns for i and `input`, for i = start, start + delta, ... before limit. "
          "InvalidArgument when delta is 0 or leads away from limit.",
          ForShape);
  AddCall(
      r, "RemoteCall(target:str, args:[Tin]) -> (output:[Tout]) | Tin:list(type)>=1; Tout:list(type)>=1; f:func | S",
      "What `f` returns for `args`, computed on the device `target`. Where it is no constant, the devices of host "
      "memory are tried for its name when it runs.",
      RemoteShape);
  AddCall(r, "SymbolicGradient(input:[Tin]) -> (output:[Tout]) | Tin:list(type)>=1; Tout:list(type)>=1; f:func",
          "The gradients of the function `f` by its arguments. `input` holds the arguments, then the gradients of what "
          "`f` returns; zeros where nothing flows.",
          GradientShape);
  RegisterOptionalOps(r);
  r.Add("FakeParam() -> (output:dtype) | dtype:type; shape:shape")
      .Doc(
          "Stands for a value that nobody reads, in the branch of a conditional that does not compute it. Unknown "
          "dimensions count 0.")
      .Shape(FakeParamShape)
      .NotDifferentiable("it has no input")
      .Example("| dtype=f32; shape=[2,3]");
  r.Add("ToBool(input:T) -> (output:bool) | T:type")
      .Doc("Whether a scalar is neither 0 nor false nor the empty string, or whether another tensor has elements.")
      .Shape(ScalarShape)
      .NotDifferentiable("its output is bool")
      .Example("f32[]{0.5}")
      .Example("f32[0]{}")
      .Example("i32[2]{0 0}")
      .Example("str[]{\"\"}");
}

}  // namespace millrace
