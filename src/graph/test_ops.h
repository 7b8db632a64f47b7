// SPDX-License-Identifier: Apache-2.0
// A few ops for the tests of this folder: it does not know src/ops.
#pragma once

#include "graph/graph_builder.h"

namespace millrace {

inline Status TestMatMulShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(PartialShape a, c.WithRank(0, 2));
  MR_ASSIGN_OR_RETURN(PartialShape b, c.WithRank(1, 2));
  MR_RETURN_IF_ERROR(c.MergeDim(a.dim(1), b.dim(0), "inner dimension").status());
  c.set_output(0, PartialShape::Of({a.dim(0), b.dim(1)}));
  return absl::OkStatus();
}
inline Status TestConstShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(Tensor t, c.Attr<Tensor>("value"));
  c.set_output(0, t.shape());
  return absl::OkStatus();
}
inline Status TestPlaceholderShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(PartialShape s, c.Attr<PartialShape>("shape"));
  c.set_output(0, s);
  return absl::OkStatus();
}
inline Status TestVectorOfRank(ShapeContext& c) {
  c.set_output(0, PartialShape::Of({c.input(0).rank()}));
  return absl::OkStatus();
}
inline Status TestReshapeShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(PartialShape s, c.InputAsShape(1));
  c.set_output(0, s);
  return absl::OkStatus();
}
inline Status TestPackShape(ShapeContext& c) {
  c.set_output(0, PartialShape::Of({c.num_inputs()}));
  return absl::OkStatus();
}
inline Status TestSliceShape(ShapeContext& c) {
  MR_ASSIGN_OR_RETURN(int64_t shrink, c.Attr<int64_t>("shrink_axis_mask"));
  c.set_output(0, PartialShape::UnknownOfRank(shrink ? 0 : 1));
  return absl::OkStatus();
}

// Ops with their real schemas.
inline const OpRegistry& TestOps() {
  static const OpRegistry* registry = [] {
    auto* r = new OpRegistry;
    r->Add("Const() -> (output:dtype) | value:tensor; dtype:type").Traits({OpTrait::kConstant}).Shape(TestConstShape);
    r->Add("Placeholder() -> (output:dtype) | dtype:type; shape:shape=?")
        .Traits({OpTrait::kPlaceholder})
        .Shape(TestPlaceholderShape);
    r->Add("NoOp() -> ()");
    r->Add("Identity(input:T) -> (output:T) | T:type").Traits({OpTrait::kPassesOn}).Shape(UnchangedShape);
    r->Add("AddV2(x:T, y:T) -> (z:T) | T in FC|IDX|i8|i16|u8 | C").Shape(BroadcastShape);
    r->Add("Mul(x:T, y:T) -> (z:T) | T in FC|IDX | C").Shape(BroadcastShape);
    r->Add("AddN(inputs:N*T) -> (sum:T) | N:int>=1; T in NUM|var | CA").Shape(MergedShape);
    r->Add("MatMul(a:T, b:T) -> (product:T) | transpose_a:bool=false; transpose_b:bool=false; T in FC|IDX")
        .Shape(TestMatMulShape);
    r->Add("Shape(input:T) -> (output:out_type) | T:type; out_type in IDX=i32").Shape(TestVectorOfRank);
    r->Add("Reshape(tensor:T, shape:Tshape) -> (output:T) | T:type; Tshape in IDX=i32").Shape(TestReshapeShape);
    r->Add("Pack(values:N*T) -> (output:T) | N:int>=1; T:type; axis:int=0").Shape(TestPackShape);
    r->Add("ConcatV2(values:N*T, axis:Tidx) -> (output:T) | N:int>=2; T:type; Tidx in IDX=i32");
    r->Add(
         "StridedSlice(input:T, begin:Index, end:Index, strides:Index) -> (output:T) | T:type; Index in IDX; "
         "begin_mask:int=0; end_mask:int=0; ellipsis_mask:int=0; new_axis_mask:int=0; shrink_axis_mask:int=0")
        .Shape(TestSliceShape);
    r->Add("Cast(x:SrcT) -> (y:DstT) | SrcT:type; DstT:type; Truncate:bool=false").Shape(UnchangedShape);
    r->Add("IdentityN(input:[T]) -> (output:[T]) | T:list(type)>=1");
    r->Add("TwoLists(a:[A], b:[B]) -> () | A:list(type)>=0; B:list(type)>=0");
    r->Add(
        "VariableV2() -> (ref:&dtype) | shape:shape; dtype:type; container:string=\"\"; shared_name:string=\"\" | S");
    r->Add("Assign(ref:&T, value:T) -> (output_ref:&T) | T:type; validate_shape:bool=true; use_locking:bool=true | U");
    r->Add("Split(split_dim:i32, value:T) -> (output:num_split*T) | num_split:int>=1; T:type");
    r->Add(
         "Enter(data:T) -> (output:T) | T:type; frame_name:string; is_constant:bool=false; parallel_iterations:int=10")
        .Shape(UnchangedShape);
    r->Add("Exit(data:T) -> (output:T) | T:type").Shape(UnchangedShape);
    r->Add("Merge(inputs:N*T) -> (output:T, value_index:i32) | T:type; N:int>=1");
    r->Add("NextIteration(data:T) -> (output:T) | T:type").Shape(UnchangedShape);
    r->Add("Switch(data:T, pred:bool) -> (output_false:T, output_true:T) | T:type").Shape(UnchangedShape);
    r->Add("LoopCond(input:bool) -> (output:bool)");
    r->Add("Less(x:T, y:T) -> (z:bool) | T in REAL").Shape(BroadcastShape);
    r->Add("Old(x:f32) -> (y:f32) | D9->New");
    r->Add("Effect(x:f32) -> () | S");
    r->Add("ToBool(input:T) -> (output:bool) | T:type");
    r->Add("_DeviceIndex(target:str) -> (index:i32) | devices:list(string)");
    r->Add("Greater(x:T, y:T) -> (z:bool) | T in REAL").Shape(BroadcastShape);
    r->Add("GreaterEqual(x:T, y:T) -> (z:bool) | T in REAL").Shape(BroadcastShape);
    r->Add("SelectV2(condition:bool, t:T, e:T) -> (output:T) | T:type");
    r->Add("Sub(x:T, y:T) -> (z:T) | T in NUM").Shape(BroadcastShape);
    r->Add("Sign(x:T) -> (y:T) | T in NUM").Shape(UnchangedShape);
    r->Add("FloorDiv(x:T, y:T) -> (z:T) | T in NUM").Shape(BroadcastShape);
    r->Add("Assert(condition:bool, data:[T]) -> () | T:list(type)>=1; summarize:int=3 | S");
    r->Add("PartitionedCall(args:[Tin]) -> (output:[Tout]) | Tin:list(type)>=0; Tout:list(type)>=0; f:func");
    r->Add(
        "StatefulPartitionedCall(args:[Tin]) -> (output:[Tout]) | Tin:list(type)>=0; Tout:list(type)>=0; f:func | S");
    r->Add("RemoteCall(target:str, args:[Tin]) -> (output:[Tout]) | Tin:list(type)>=1; Tout:list(type)>=1; f:func | S");
    r->Add(
        "If(cond:Tcond, input:[Tin]) -> (output:[Tout]) | Tcond:type; Tin:list(type)>=0; Tout:list(type)>=0; "
        "then_branch:func; else_branch:func | S");
    r->Add(
        "Case(branch_index:i32, input:[Tin]) -> (output:[Tout]) | Tin:list(type)>=0; Tout:list(type)>=0; "
        "branches:list(func)>=1 | S");
    r->Add("While(input:[T]) -> (output:[T]) | T:list(type)>=0; cond:func; body:func; parallel_iterations:int=10 | S");
    r->Add("For(start:i32, limit:i32, delta:i32, input:[T]) -> (output:[T]) | T:list(type)>=0; body:func");
    r->Add("SymbolicGradient(input:[Tin]) -> (output:[Tout]) | Tin:list(type)>=1; Tout:list(type)>=1; f:func");
    return r;
  }();
  return *registry;
}

inline Output TestInput(const GraphBuilder& b, const char* name, DType dtype, PartialShape shape = {}) {
  return b.WithName(name).Op("Placeholder", {}, {{"dtype", dtype}, {"shape", std::move(shape)}});
}

}  // namespace millrace
