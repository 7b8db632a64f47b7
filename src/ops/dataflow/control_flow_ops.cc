// SPDX-License-Identifier: Apache-2.0
// Ops: what decides what runs, and how often (white paper 4.4). The executor gives them their meaning; shapes and
// declarations are here.
#include "absl/strings/str_replace.h"
#include "op/shape_context.h"
#include "ops/op_list.h"

namespace millrace {
namespace {

constexpr char kNotAlone[] = "it needs a conditional or a loop around it";

// `name` and its reference form, whose arguments are references.
void AddBoth(OpRegistry& r, absl::string_view name, absl::string_view schema, absl::string_view doc,
             absl::string_view flags, ShapeFn shape, absl::string_view example) {
  for (const bool ref : {false, true}) {
    OpDeclaration d = r.Add(
        absl::StrCat(ref ? "Ref" : "", name, absl::StrReplaceAll(schema, {{"@", ref ? "&" : ""}}), ref ? flags : ""));
    d.Doc(ref ? absl::StrCat(name, " for references to variables. ", doc) : std::string(doc)).Shape(shape);
    d.StructuralGradient();
    if (ref || example.empty()) {
      d.NoExample(ref ? "state" : kNotAlone);
    } else {
      d.Example(example);
    }
  }
}

Status SwitchShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.RequireScalar(1));
  for (int o : {0, 1}) {
    c.set_output(o, c.input(0));
    if (c.handle(0)) c.set_output_handle(o, *c.handle(0));
  }
  return absl::OkStatus();
}

// What all inputs have in common. The back edge of a loop is not known when the Merge is added, so a caller that knows
// better says so afterwards.
Status MergeShape(ShapeContext& c) {
  PartialShape common = c.input(0);
  for (int i = 1; i < c.num_inputs() && common.has_rank(); ++i) {
    const PartialShape& other = c.input(i);
    if (!other.has_rank() || other.rank() != common.rank()) {
      common = PartialShape::Unknown();
      break;
    }
    std::vector<int64_t> dims(static_cast<size_t>(common.rank()), -1);
    for (int d = 0; d < common.rank(); ++d) {
      if (common.dim(d) == other.dim(d)) dims[static_cast<size_t>(d)] = common.dim(d);
    }
    MR_ASSIGN_OR_RETURN(common, PartialShape::Make(dims));
  }
  c.set_output(0, common);
  if (c.handle(0)) c.set_output_handle(0, *c.handle(0));
  c.set_output(1, PartialShape::Scalar());
  return absl::OkStatus();
}

Status SameWithHandle(ShapeContext& c) {
  c.set_output(0, c.input(0));
  if (c.handle(0)) c.set_output_handle(0, *c.handle(0));
  return absl::OkStatus();
}

Status RefSelectShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.RequireScalar(0));
  PartialShape common = c.input(1);
  for (int i = 2; i < c.num_inputs(); ++i) {
    if (!c.input(i).IsFullyDefined() || !common.IsFullyDefined() || !(c.input(i) == common)) {
      common = PartialShape::Unknown();
    }
  }
  c.set_output(0, common);
  return absl::OkStatus();
}

}  // namespace

void RegisterControlFlowOps(OpRegistry& r) {
  AddBoth(
      r, "Switch", "(data:@T, pred:bool) -> (output_false:@T, output_true:@T) | T:type",
      "Passes `data` to output_true when the scalar `pred` is true, else to output_false. The other output is dead: "
      "what needs it does not run.",
      " | U", SwitchShape, "");
  AddBoth(r, "Merge", "(inputs:N*@T) -> (output:@T, value_index:i32) | T:type; N:int>=1",
          "Passes on the first of its inputs that is live, and the index of it. Dead only when all inputs are.", "",
          MergeShape, "f32[3]{1 2 3}");
  AddBoth(
      r, "Enter",
      "(data:@T) -> (output:@T) | T:type; frame_name:string; is_constant:bool=false; parallel_iterations:int=10",
      "Makes `data` available in the loop (frame) called frame_name: in its first iteration, or with is_constant in "
      "every one. At most parallel_iterations iterations of the frame are under way at once.",
      "", SameWithHandle, "");
  AddBoth(r, "Exit", "(data:@T) -> (output:@T) | T:type",
          "Makes its input available outside of the loop that it is in.", "", SameWithHandle, "");
  AddBoth(r, "NextIteration", "(data:@T) -> (output:@T) | T:type",
          "Makes its input available in the next iteration of the loop that it is in.", "", SameWithHandle, "");
  r.Add("LoopCond(input:bool) -> (output:bool)")
      .Doc("Passes on the scalar that says whether a loop goes on; marks it for the runtime.")
      .Shape([](ShapeContext& c) {
        MR_RETURN_IF_ERROR(c.RequireScalar(0));
        c.set_output(0, PartialShape::Scalar());
        return absl::OkStatus();
      })
      .StructuralGradient()
      .Example("bool[]{true}");
  r.Add("ControlTrigger() -> ()")
      .Doc("Like NoOp, but runs even when the ops that it waits for are dead.")
      .Shape(NoOutputs)
      .NotDifferentiable("it has no input")
      .Example("");
  r.Add("RefSelect(index:i32, inputs:N*&T) -> (output:&T) | T:type; N:int>=1")
      .Doc("The reference among `inputs` whose position is the scalar `index`; InvalidArgument when there is none.")
      .Shape(RefSelectShape)
      .NoGradient("which variable it names is only known in the step")
      .NoExample("state");
  r.Add("Abort() -> () | error_msg:string=\"\"; exit_without_error:bool=false")
      .Traits({OpTrait::kChecks})
      .Doc(
          "Ends the step with Aborted and the message `error_msg`. The process goes on: a graph cannot end it. With "
          "exit_without_error nothing happens.")
      .Shape(NoOutputs)
      .NotDifferentiable("it has no input")
      .NoExample("it fails");
}

}  // namespace millrace
