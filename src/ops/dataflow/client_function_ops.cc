// SPDX-License-Identifier: Apache-2.0
// Ops: calls of functions in the client's language.
#include "ops/dataflow/client_function_ops.h"

#include "op/shape_context.h"

namespace millrace {
namespace {

Status NothingKnown(ShapeContext&) { return absl::OkStatus(); }

void Add(OpRegistry& r, absl::string_view schema, absl::string_view doc) {
  r.Add(schema)
      .Traits({OpTrait::kWaits})
      .Doc(doc)
      .Shape(NothingKnown)
      .NotDifferentiable("nothing is known of the function; a client overrides the gradient of the node")
      .NoExample("it needs a client that has registered a function");
}

}  // namespace

void RegisterClientFunctionOps(OpRegistry& r) {
  Add(r, "PyFunc(input:[Tin]) -> (output:[Tout]) | token:string; Tin:list(type)>=0; Tout:list(type)>=0 | S",
      "Calls the function that the client has registered under `token` with the inputs; what it returns are the "
      "outputs. The "
      "function may have effects, so it runs once a step. The token means nothing in another process.");
  Add(r, "PyFuncStateless(input:[Tin]) -> (output:[Tout]) | token:string; Tin:list(type)>=0; Tout:list(type)>=0",
      "PyFunc of a function that depends on its inputs alone: equal calls may become one, and a call nobody reads "
      "none.");
  Add(r,
      "EagerPyFunc(input:[Tin]) -> (output:[Tout]) | token:string; is_async:bool=false; Tin:list(type)>=0; "
      "Tout:list(type)>=0 | S",
      "PyFunc as tf.py_function makes it. `is_async` is for TensorFlow's own client and changes nothing here.");
}

}  // namespace millrace
