// SPDX-License-Identifier: Apache-2.0
// Ops: arrays of tensors that live for one step, in the three versions that differ in their handle: a reference to a
// string, a string, a resource. The flow, a float without meaning of its own, orders the operations on an array.
#include "graph/gradient.h"
#include "op/shape_context.h"
#include "ops/op_list.h"

namespace millrace {
namespace {

constexpr char kIsState[] = "gradients flow through what is written and read, not through the array";

// What is known of the array's elements.
PartialShape ElementOf(ShapeContext& c) { return c.handle(0) ? c.handle(0)->shape : PartialShape::Unknown(); }

StatusOr<PartialShape> Prepended(int64_t size, const PartialShape& element) {
  if (!element.has_rank()) return PartialShape::Unknown();
  std::vector<int64_t> dims = element.dims();
  dims.insert(dims.begin(), size);
  return PartialShape::Make(dims);
}

// The handle, and the flow where there is one.
void SetHandleOutputs(ShapeContext& c) {
  c.set_output(0, BaseType(c.output_dtype(0)) == DType::kString ? PartialShape::Of({2}) : PartialShape::Scalar());
  if (c.num_outputs() > 1) c.set_output(1, PartialShape::Scalar());
}

Status ArrayShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.RequireScalar(0));
  SetHandleOutputs(c);
  if (c.output_dtype(0) != DType::kResource) return absl::OkStatus();
  MR_ASSIGN_OR_RETURN(const DType dtype, c.Attr<DType>("dtype"));
  MR_ASSIGN_OR_RETURN(const PartialShape shape, c.Attr<PartialShape>("element_shape"));
  c.set_output_handle(0, {dtype, shape});
  return absl::OkStatus();
}

Status GradShape(ShapeContext& c) {
  SetHandleOutputs(c);
  if (c.handle(0)) c.set_output_handle(0, *c.handle(0));
  return absl::OkStatus();
}

Status GradWithShapeShape(ShapeContext& c) {
  SetHandleOutputs(c);
  if (!c.handle(0)) return absl::OkStatus();
  MR_ASSIGN_OR_RETURN(const PartialShape first, c.InputAsShape(2));
  PartialShape element = ElementOf(c);
  if (first.has_rank() && element.has_rank()) {
    std::vector<int64_t> dims = first.dims();
    dims.insert(dims.end(), element.dims().begin(), element.dims().end());
    MR_ASSIGN_OR_RETURN(element, PartialShape::Make(dims));
  } else {
    element = PartialShape::Unknown();
  }
  c.set_output_handle(0, {c.handle(0)->dtype, element});
  return absl::OkStatus();
}

// The flow that an operation passes on.
Status FlowShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.RequireScalar(c.num_inputs() - 1));
  c.set_output(0, PartialShape::Scalar());
  return absl::OkStatus();
}
Status WriteShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.RequireScalar(1));
  return FlowShape(c);
}

Status ReadShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(c.RequireScalar(1));
  MR_RETURN_IF_ERROR(c.RequireScalar(2));
  c.set_output(0, ElementOf(c));
  return absl::OkStatus();
}

Status GatherShape(ShapeContext& c) {
  const bool has_indices = c.num_inputs() == 3;
  int64_t count = -1;
  if (has_indices) {
    MR_ASSIGN_OR_RETURN(const PartialShape indices, c.WithRank(1, 1));
    count = indices.dim(0);
  }
  MR_ASSIGN_OR_RETURN(PartialShape element, c.Attr<PartialShape>("element_shape"));
  // The array's own shape may be narrower, or contradict: then the step says so.
  if (auto both = element.Merge(ElementOf(c)); both.ok()) element = *std::move(both);
  MR_ASSIGN_OR_RETURN(PartialShape out, Prepended(count, element));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

Status ConcatShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(const PartialShape rest, c.Attr<PartialShape>("element_shape_except0"));
  MR_ASSIGN_OR_RETURN(PartialShape out, Prepended(-1, rest));
  c.set_output(0, std::move(out));
  c.set_output(1, PartialShape::UnknownOfRank(1));
  return absl::OkStatus();
}

// The op of the same version as the node: its name is `stem` + "" / "V2" / "V3".
std::string SameVersion(const GradContext& c, absl::string_view stem) {
  const std::string& name = c.node()->op_name();
  const bool versioned = name.size() > 2 && name[name.size() - 2] == 'V';
  return absl::StrCat(stem, versioned ? name.substr(name.size() - 2) : "");
}

// All gradients of one computation meet in one gradient array; those of another must not. The scope of the computation
// tells them apart: that of this node's gradient without the node's own part.
std::string SourceOf(const GradContext& c) {
  const std::string own = absl::StrCat("/", c.node()->name(), "_grad");
  const std::string& scope = c.b().scope();
  const size_t at = scope.rfind(own);
  return at == std::string::npos ? scope : scope.substr(0, at);
}

// The gradient array of the node's array. `flow` orders it behind what must have happened.
Output GradientArray(const GradContext& c, Output flow) {
  return c.b().Op(SameVersion(c, "TensorArrayGrad"), {c.x(0), flow}, {{"source", SourceOf(c)}});
}

Status ReadGrad(GradContext& c) {
  const Output flow = c.x(2);
  c.set_dx(2, c.b().Op(SameVersion(c, "TensorArrayWrite"), {GradientArray(c, flow), c.x(1), c.dy(), flow}));
  return c.status();
}

Status WriteGrad(GradContext& c) {
  const Output flow = c.dy();
  c.set_dx(2, c.b().Op(SameVersion(c, "TensorArrayRead"), {GradientArray(c, flow), c.x(1), flow},
                       {{"dtype", BaseType(c.x(2).dtype())}}));
  c.set_dx(3, flow);
  return c.status();
}

Status GatherGrad(GradContext& c) {
  const Output flow = c.x(2);
  c.set_dx(2, c.b().Op(SameVersion(c, "TensorArrayScatter"), {GradientArray(c, flow), c.x(1), c.dy(), flow}));
  return c.status();
}

Status ScatterGrad(GradContext& c) {
  const Output flow = c.dy();
  c.set_dx(2, c.b().Op(SameVersion(c, "TensorArrayGather"), {GradientArray(c, flow), c.x(1), flow},
                       {{"dtype", BaseType(c.x(2).dtype())}}));
  c.set_dx(3, flow);
  return c.status();
}

Status ConcatGrad(GradContext& c) {
  const Output flow = c.x(1);
  if (!c.has_dy(0)) return absl::OkStatus();
  c.set_dx(1, c.b().Op(SameVersion(c, "TensorArraySplit"), {GradientArray(c, flow), c.dy(), c.y(1), flow}));
  return c.status();
}

Status SplitGrad(GradContext& c) {
  const Output flow = c.dy();
  c.set_dx(1, c.b().Op(SameVersion(c, "TensorArrayConcat"), {GradientArray(c, flow), flow},
                       {{"dtype", BaseType(c.x(1).dtype())}}));
  c.set_dx(3, flow);
  return c.status();
}

Status PackGrad(GradContext& c) {
  const Output flow = c.x(1);
  c.set_dx(1, c.b().Op("TensorArrayUnpack", {GradientArray(c, flow), c.dy(), flow}));
  return c.status();
}

Status UnpackGrad(GradContext& c) {
  const Output flow = c.dy();
  c.set_dx(1, c.b().Op("TensorArrayPack", {GradientArray(c, flow), flow}, {{"dtype", BaseType(c.x(1).dtype())}}));
  c.set_dx(2, flow);
  return c.status();
}

constexpr char kAttrs[] = "dtype:type; element_shape:shape=?; dynamic_size:bool=false; clear_after_read:bool=true; ";
constexpr char kArrayDoc[] =
    "A new array of `size` tensors of one dtype, which lives until the step ends. Every element is written once; with "
    "clear_after_read reading it takes it out; with dynamic_size writing beyond the end makes the array longer.";
constexpr char kGradDoc[] =
    "The array of gradients that belongs to an array and to `source`; made at the first call. Writing one of its "
    "elements again adds to it, and an element that was never written reads as zeros.";

struct Version {
  const char* suffix;
  const char* handle;
  const char* flags;  // of the ops that use an array
};

std::string Flags(const Version& v, const char* when) {
  const std::string flags = absl::StrCat(v.flags, when);
  return flags.empty() ? "" : absl::StrCat(" | ", flags);
}

void AddUses(OpRegistry& r, const Version& v, const char* dn, const char* dn_scatter, const char* dn_concat) {
  const std::string h = absl::StrCat("(handle:", v.handle);
  r.Add(absl::StrCat("TensorArrayWrite", v.suffix, h, ", index:i32, value:T, flow_in:f32) -> (flow_out:f32) | T:type",
                     Flags(v, dn)))
      .Traits({OpTrait::kKeepsState})
      .Doc("Makes `value` the element at `index`, which must not have been written before.")
      .Shape(WriteShape)
      .Gradient(WriteGrad)
      .NoExample("state");
  r.Add(absl::StrCat(
            "TensorArrayRead", v.suffix, h, ", index:i32, flow_in:f32) -> (value:dtype) | dtype:type", Flags(v, dn)))
      .Traits({OpTrait::kKeepsState})
      .Doc("The element at `index`, without a copy. One that was never written reads as zeros when its shape is known.")
      .Shape(ReadShape)
      .Gradient(ReadGrad)
      .NoExample("state");
  r.Add(absl::StrCat("TensorArrayGather", v.suffix, h,
                     ", indices:i32, flow_in:f32) -> (value:dtype) | dtype:type; element_shape:shape=?", Flags(v, dn)))
      .Traits({OpTrait::kKeepsState})
      .Doc("Reads the elements at `indices`, which must have one shape, and packs them along a new first dimension.")
      .Shape(GatherShape)
      .Gradient(GatherGrad)
      .NoExample("state");
  r.Add(absl::StrCat("TensorArrayScatter", v.suffix, h,
                     ", indices:i32, value:T, flow_in:f32) -> (flow_out:f32) | T:type", Flags(v, dn_scatter)))
      .Traits({OpTrait::kKeepsState})
      .Doc("Writes row i of `value` as the element at indices[i].")
      .Shape(FlowShape)
      .Gradient(ScatterGrad)
      .NoExample("state");
  r.Add(absl::StrCat("TensorArrayConcat", v.suffix, h,
                     ", flow_in:f32) -> (value:dtype, lengths:i64) | dtype:type; element_shape_except0:shape=?",
                     Flags(v, dn_concat)))
      .Traits({OpTrait::kKeepsState})
      .Doc(
          "Reads all elements and joins them along their first dimension, in which they may differ; `lengths` has "
          "their sizes in it.")
      .Shape(ConcatShape)
      .Gradient(ConcatGrad)
      .NoExample("state");
  r.Add(absl::StrCat("TensorArraySplit", v.suffix, h, ", value:T, lengths:i64, flow_in:f32) -> (flow_out:f32) | T:type",
                     Flags(v, dn)))
      .Traits({OpTrait::kKeepsState})
      .Doc("Cuts `value` along its first dimension into pieces of these lengths and writes them as the elements.")
      .Shape(FlowShape)
      .Gradient(SplitGrad)
      .NoExample("state");
  r.Add(absl::StrCat("TensorArraySize", v.suffix, h, ", flow_in:f32) -> (size:i32)", Flags(v, dn)))
      .Traits({OpTrait::kKeepsState})
      .Doc("How many elements the array has.")
      .Shape(ScalarShape)
      .NotDifferentiable(kIsState)
      .NoExample("state");
  r.Add(absl::StrCat("TensorArrayClose", v.suffix, h, ") -> ()", Flags(v, dn)))
      .Traits({OpTrait::kKeepsState})
      .Doc("Frees what the array holds; using it later in the step is an error.")
      .Shape(NoOutputs)
      .NotDifferentiable(kIsState)
      .NoExample("state");
}

void AddArrays(OpRegistry& r) {
  for (const auto& [schema, doc] : std::vector<std::pair<std::string, const char*>>{
           {"TensorArray(size:i32) -> (handle:&str) | dtype:type; dynamic_size:bool=false; clear_after_read:bool=true; "
            "tensor_array_name:string=\"\"; element_shape:shape=? | S D16",
            kArrayDoc},
           {absl::StrCat("TensorArrayV2(size:i32) -> (handle:str) | ", kAttrs, "tensor_array_name:string=\"\" | S D26"),
            kArrayDoc},
           {absl::StrCat("TensorArrayV3(size:i32) -> (handle:res, flow:f32) | ", kAttrs,
                         "identical_element_shapes:bool=false; tensor_array_name:string=\"\" | S"),
            kArrayDoc}}) {
    r.Add(schema).Doc(doc).Shape(ArrayShape).NotDifferentiable(kIsState).NoExample("state");
  }
  for (const char* schema :
       {"TensorArrayGrad(handle:str, flow_in:f32) -> (grad_handle:&str) | source:string | S D16",
        "TensorArrayGradV2(handle:str, flow_in:f32) -> (grad_handle:str) | source:string | S D26",
        "TensorArrayGradV3(handle:res, flow_in:f32) -> (grad_handle:res, flow_out:f32) | "
        "source:string | S"}) {
    r.Add(schema).Doc(kGradDoc).Shape(GradShape).NotDifferentiable(kIsState).NoExample("state");
  }
  r.Add(
       "TensorArrayGradWithShape(handle:res, flow_in:f32, shape_to_prepend:i32) -> (grad_handle:res, flow_out:f32) | "
       "source:string | S")
      .Traits({OpTrait::kKeepsState})
      .Doc("TensorArrayGradV3 whose elements have `shape_to_prepend` before the shapes of the array's elements.")
      .Shape(GradWithShapeShape)
      .NotDifferentiable(kIsState)
      .NoExample("state");
}

}  // namespace

void RegisterTensorArrayOps(OpRegistry& r) {
  AddArrays(r);
  AddUses(r, {"", "&str", ""}, "D16", "D19", "D16");
  AddUses(r, {"V2", "str", ""}, "D26", "D26", "");
  AddUses(r, {"V3", "res", "S"}, "", "", "");
  r.Add("TensorArrayPack(handle:&str, flow_in:f32) -> (value:dtype) | dtype:type; element_shape:shape=? | D16")
      .Traits({OpTrait::kKeepsState})
      .Doc("Reads all elements, which must have one shape, and packs them along a new first dimension.")
      .Shape(GatherShape)
      .Gradient(PackGrad)
      .NoExample("state");
  r.Add("TensorArrayUnpack(handle:&str, value:T, flow_in:f32) -> (flow_out:f32) | T:type | D20")
      .Traits({OpTrait::kKeepsState})
      .Doc("Writes the rows of `value` as the elements.")
      .Shape(FlowShape)
      .Gradient(UnpackGrad)
      .NoExample("state");
}

}  // namespace millrace
