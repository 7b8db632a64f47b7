// SPDX-License-Identifier: Apache-2.0
// Ops: updates and reads of parts of variables, for reference and resource variables alike.
#include "ops/state/state_scatter_ops.h"

#include "ops/index/index_ops.h"

namespace millrace {
namespace {

PartialShape HandleValueShape(const ShapeContext& c) {
  return c.handle(0) ? c.handle(0)->shape : PartialShape::Unknown();
}

// updates = indices.shape + variable.shape[1:], or a scalar for all of them.
Status CheckRowUpdates(ShapeContext& c, const PartialShape& variable) {
  const PartialShape& indices = c.input(1);
  const PartialShape& updates = c.input(2);
  if (variable.has_rank() && variable.rank() < 1)
    return InvalidArgument("the variable must have at least one dimension");
  if (!variable.has_rank() || !indices.has_rank() || updates.rank() == 0) return absl::OkStatus();
  return c
      .Merge(updates, JoinDims({indices.dims(), DimRange(variable, 1, variable.rank())}), "the shape of the updates")
      .status();
}

Status CheckNdUpdates(ShapeContext& c, const PartialShape& variable) {
  return CheckSliceUpdates(variable, c.input(1), c.input(2));
}

Status RefScatterShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(CheckRowUpdates(c, c.input(0)));
  c.set_output(0, c.input(0));
  return absl::OkStatus();
}
Status RefScatterNdShape(ShapeContext& c) {
  MR_RETURN_IF_ERROR(CheckNdUpdates(c, c.input(0)));
  c.set_output(0, c.input(0));
  return absl::OkStatus();
}
Status ResourceScatterShape(ShapeContext& c) { return CheckRowUpdates(c, HandleValueShape(c)); }
Status ResourceScatterNdShape(ShapeContext& c) { return CheckNdUpdates(c, HandleValueShape(c)); }

Status ResourceGatherShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(int64_t batch_dims, c.Attr<int64_t>("batch_dims"));
  MR_ASSIGN_OR_RETURN(PartialShape out, GatherShapeOf(HandleValueShape(c), c.input(1), batch_dims, batch_dims));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}
Status ResourceGatherNdShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(PartialShape out, GatherNdShapeOf(HandleValueShape(c), c.input(1)));
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

Status ResourceGatherGrad(GradContext& g) {
  const GraphBuilder& b = g.b();
  MR_ASSIGN_OR_RETURN(int64_t batch_dims, g.Attr<int64_t>("batch_dims"));
  if (batch_dims != 0)
    return Unimplemented("the gradient of ResourceGather with batch_dims ", batch_dims, " is not defined");
  Output shape = b.Op("VariableShape", {g.x(0)}, {{"out_type", DType::kInt32}});
  g.set_dx(0, RowSlices(b, g.dy(), g.x(1), shape));
  return g.status();
}

Status ResourceGatherNdGrad(GradContext& g) {
  const GraphBuilder& b = g.b();
  Output shape = b.Op("VariableShape", {g.x(0)}, {{"out_type", g.x(1).dtype()}});
  const PartialShape& s = g.x(1).shape();
  if (s.rank() == 2 && s.dim(1) == 1) {
    Output ids = b.Op("Squeeze", {g.x(1)}, {{"squeeze_dims", std::vector<int64_t>{1}}});
    g.set_dx(0, IndexedSlices{g.dy(), ids, shape});
  } else {
    g.set_dx(0, b.Op("ScatterNd", {g.x(1), g.dy(), shape}));
  }
  return g.status();
}

constexpr char kNeedsVariable[] = "it needs a variable; the state tests cover it";
constexpr char kAssignment[] = "gradients do not flow through assignments";

struct RowUpdate {
  const char* name;  // of the part after "Scatter"
  const char* verb;
  const char* ref_types;
  bool locking;             // default of use_locking
  bool differentiable_gap;  // the gradient is an error rather than none
};
constexpr RowUpdate kRowUpdates[] = {
    {"Update", "Overwrites the rows", "T:type", true, true},
    {"Add", "Adds to the rows", "T in NUM", false, false},
    {"Sub", "Subtracts from the rows", "T in NUM", false, false},
    {"Mul", "Multiplies the rows", "T in NUM", false, false},
    {"Div", "Divides the rows", "T in NUM", false, false},
    {"Min", "Takes the element-wise minimum of the updates and the rows", "T in FLT|IDX", false, true},
    {"Max", "Takes the element-wise maximum of the updates and the rows", "T in FLT|IDX", false, true},
};

void AddRowUpdates(OpRegistry& registry) {
  for (const RowUpdate& u : kRowUpdates) {
    const std::string what = absl::StrCat(
        u.verb,
        " of a variable that `indices` names. `updates` has one row per index, or is "
        "one number for all. Indices that repeat are applied in order; an index "
        "outside the variable fails before anything is written.");
    OpDeclaration ref = registry.Add(absl::StrCat(
        "Scatter", u.name, "(ref:&T, indices:Tindices, updates:T) -> (output_ref:&T) | ", u.ref_types,
        "; Tindices in IDX; use_locking:bool=", u.locking ? "true" : "false"));
    ref.Doc(absl::StrCat(what, " Returns the reference.")).Shape(RefScatterShape).NoExample(kNeedsVariable);
    if (u.differentiable_gap) {
      ref.NoGradient(kAssignment);
    } else {
      ref.NotDifferentiable(kAssignment);
    }
    registry
        .Add(absl::StrCat("ResourceScatter", u.name, "(resource:res, indices:Tindices, updates:dtype) -> () | ",
                          u.ref_types[1] == ':' ? "dtype:type" : "dtype in NUM", "; Tindices in IDX | S"))
        .Doc(what)
        .Shape(ResourceScatterShape)
        .NotDifferentiable(kAssignment)
        .NoExample(kNeedsVariable);
  }
}

struct NdUpdate {
  const char* name;
  const char* verb;
  const char* ref_types;
  bool locking;
};
constexpr NdUpdate kNdUpdates[] = {
    {"Update", "Overwrites", "T:type", true},
    {"Add", "Adds to", "T in NUM", false},
    {"Sub", "Subtracts from", "T in NUM", false},
    {"Max", "Raises to the updates, where these are larger,", "T in NUM", false},
    {"Min", "Lowers to the updates, where these are smaller,", "T in NUM", false},
};

void AddNdUpdates(OpRegistry& registry) {
  for (const NdUpdate& u : kNdUpdates) {
    const std::string what = absl::StrCat(
        u.verb,
        " the elements or slices of a variable at the coordinates in the last dimension of `indices`. "
        "Coordinates that repeat are applied in order; one outside the variable fails before anything is "
        "written.");
    registry
        .Add(absl::StrCat("ScatterNd", u.name, "(ref:&T, indices:Tindices, updates:T) -> (output_ref:&T) | ",
                          u.ref_types, "; Tindices in IDX; use_locking:bool=", u.locking ? "true" : "false"))
        .Doc(absl::StrCat(what, " Returns the reference."))
        .Shape(RefScatterNdShape)
        .NotDifferentiable(kAssignment)
        .NoExample(kNeedsVariable);
    registry
        .Add(absl::StrCat("ResourceScatterNd", u.name,
                          "(ref:res, indices:Tindices, updates:T) -> () | T:type; Tindices in IDX; "
                          "use_locking:bool=true | S"))
        .Doc(what)
        .Shape(ResourceScatterNdShape)
        .NotDifferentiable(kAssignment)
        .NoExample(kNeedsVariable);
  }
}

}  // namespace

void RegisterStateScatterOps(OpRegistry& registry) {
  AddRowUpdates(registry);
  AddNdUpdates(registry);
  registry
      .Add(
          "ResourceGather(resource:res, indices:Tindices) -> (output:dtype) | batch_dims:int=0; "
          "validate_indices:bool=true; dtype:type; Tindices in IDX | S")
      .Doc("Rows of a variable, without reading the rest of it. The gradient stays sparse.")
      .Shape(ResourceGatherShape)
      .Gradient(ResourceGatherGrad)
      .NoExample(kNeedsVariable);
  registry.Add("ResourceGatherNd(resource:res, indices:Tindices) -> (output:dtype) | dtype:type; Tindices in IDX | S")
      .Doc("Elements or slices of a variable at the coordinates in the last dimension of `indices`.")
      .Shape(ResourceGatherNdShape)
      .Gradient(ResourceGatherNdGrad)
      .NoExample(kNeedsVariable);
}

}  // namespace millrace
