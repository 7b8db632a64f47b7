// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "wire/graph.h"

namespace millrace::wire {

// A graph with fields of every kind, for tests.
inline GraphDef SampleGraph() {
  GraphDef graph;
  NodeDef& node = graph.node.emplace_back();
  node.name = "n";
  node.op = "Op";
  node.input = {"a", "b:1", "^c"};
  node.device = "/cpu:0";
  AttrValue& list = node.attr["list"];
  list.kind = AttrValue::Kind::kList;
  AttrListValue& values = list.list.Ensure();
  values.s = {"", std::string("\0\"\n\xff", 4)};
  values.i = {-1, 300};
  values.f = {0.1f, 1e30f};
  values.b = {false, true};
  values.type = {1, 77};
  values.shape.emplace_back().unknown_rank = true;
  values.func.emplace_back().name = "f";
  AttrValue& shape = node.attr["shape"];
  shape.kind = AttrValue::Kind::kShape;
  shape.shape.Ensure().dim.resize(2);
  shape.shape->dim[0].size = -1;
  AttrValue& type = node.attr["T"];
  type.kind = AttrValue::Kind::kType;
  type.type = 1;
  AttrValue& tensor = node.attr["value"];
  tensor.kind = AttrValue::Kind::kTensor;
  tensor.tensor.Ensure().dtype = 2;
  tensor.tensor->tensor_shape.Ensure();
  tensor.tensor->double_val = {0.5, -2};
  tensor.tensor->resource_handle_val.emplace_back().hash_code = UINT64_MAX;
  tensor.tensor->variant_val.emplace_back().tensors.emplace_back().half_val = {1};
  node.attr["flag"].kind = AttrValue::Kind::kB;
  graph.node.emplace_back();
  FunctionDef& function = graph.library.Ensure().function.emplace_back();
  function.signature.Ensure().name = "F";
  function.ret["y"] = "n:z:0";
  function.arg_attr[3].attr["k"];
  graph.version = 3;
  graph.versions.Ensure().producer = 22;
  return graph;
}

}  // namespace millrace::wire
