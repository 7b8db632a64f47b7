// SPDX-License-Identifier: Apache-2.0
// Ops: tensors that a session keeps between steps.
#include "op/shape_context.h"
#include "ops/state/state_scatter_ops.h"

namespace millrace {
namespace {

Status TensorShape(ShapeContext& c) { return c.RequireScalar(0); }

}  // namespace

void RegisterSessionTensorOps(OpRegistry& r) {
  const char* state = "handles name what a session keeps";
  r.Add("GetSessionHandle(value:T) -> (handle:str) | T:type | S")
      .Doc("Keeps a tensor in the session, and gives the handle under which later steps find it.")
      .Shape(ScalarShape)
      .NotDifferentiable(state)
      .Example("f32[2]~");
  r.Add("GetSessionHandleV2(value:T) -> (handle:res) | T:type | S")
      .Doc("GetSessionHandle with a resource for a handle; its name is the other's string.")
      .Shape(ScalarShape)
      .NotDifferentiable(state)
      .Example("f32[2]~");
  r.Add("GetSessionTensor(handle:str) -> (value:dtype) | dtype:type | S")
      .Doc("The tensor that the session keeps under a handle. InvalidArgument when there is none.")
      .Shape(TensorShape)
      .NotDifferentiable(state)
      .NoExample("it needs a handle of an earlier step");
  r.Add("DeleteSessionTensor(handle:str) -> () | S")
      .Doc("Drops the tensor that the session keeps under a handle.")
      .Shape(TensorShape)
      .NotDifferentiable(state)
      .NoExample("it needs a handle of an earlier step");
}

}  // namespace millrace
