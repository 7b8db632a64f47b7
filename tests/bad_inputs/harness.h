// SPDX-License-Identifier: Apache-2.0
// Graphs that must be refused: how to write one, and what refusing means.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "tensor/dtype.h"
#include "wire/graph.h"

namespace millrace::bad_inputs {

using Attrs = std::vector<std::pair<std::string, wire::AttrValue>>;
using Codes = std::vector<absl::StatusCode>;
using Dims = std::vector<int64_t>;

wire::AttrValue Type(DType t);
wire::AttrValue TypeNumber(int32_t t);
wire::AttrValue Int(int64_t i);
wire::AttrValue Ints(std::vector<int64_t> v);
wire::AttrValue Float(float f);
wire::AttrValue Bool(bool b);
wire::AttrValue Str(std::string s);
wire::AttrValue ShapeOf(const Dims& dims);
wire::AttrValue TensorOf(wire::TensorProto t);
wire::AttrValue Func(std::string name);

wire::TensorProto Values(DType t, const Dims& dims);

// Writes a GraphDef. The node under test is called "bad"; a node called "init" runs first, and must succeed.
class GraphMaker {
 public:
  // Constants. The last value fills what is left of the shape; without values it is zero.
  GraphMaker& F32(const std::string& name, const Dims& dims, std::vector<float> v = {});
  GraphMaker& I32(const std::string& name, const Dims& dims, std::vector<int32_t> v = {});
  GraphMaker& I64(const std::string& name, const Dims& dims, std::vector<int64_t> v = {});
  GraphMaker& Bools(const std::string& name, const Dims& dims, std::vector<bool> v = {});
  GraphMaker& Strings(const std::string& name, const Dims& dims, std::vector<std::string> v = {});
  GraphMaker& Const(const std::string& name, DType t, wire::TensorProto value);
  // Type attributes that follow from constants among the inputs may be left out.
  GraphMaker& Op(const std::string& name, const std::string& op, std::vector<std::string> inputs = {},
                 Attrs attrs = {});
  // Exactly these fields.
  GraphMaker& Raw(const std::string& name, const std::string& op, std::vector<std::string> inputs = {},
                  const Attrs& attrs = {}, const std::string& device = "");
  // A function of one float argument "x" and one float result "y", whose body calls the op `callee` on it.
  GraphMaker& CallingFunction(const std::string& name, const std::string& callee, int times = 1);

  const wire::GraphDef& def() const { return def_; }
  wire::GraphDef& def() { return def_; }

 private:
  wire::GraphDef def_;
};

enum class How {
  kConstants,  // as written: shape functions and constant folding see the values
  kFed,        // the constants become placeholders of unknown shape, so only kernels see them
  kBoth,
};

inline const Codes kInvalid = {absl::StatusCode::kInvalidArgument};
inline const Codes kOk = {absl::StatusCode::kOk};
// Legal, but maybe more than the machine has.
inline const Codes kTooLarge = {absl::StatusCode::kInvalidArgument, absl::StatusCode::kResourceExhausted};

// For cases about ops that not every build has.
bool HasOp(const std::string& name);

// Imports the graph and runs "bad". The status is one of `codes`, within a second of CPU time and 256 MiB of memory,
// and afterwards the same session runs a good step on the same graph.
void Check(const GraphMaker& g, const Codes& codes = kInvalid, How how = How::kBoth);
// "bad" never ends by itself: its deadline, 300 ms, does it.
void CheckEndless(const GraphMaker& g);
// Runs steps of `one`, so many times, and steps of `other` beside them. The status of each is one of `codes`.
void CheckAtOnce(const GraphMaker& g, const std::string& one, const std::string& other, int times, const Codes& codes);
// The same for an encoded GraphDef.
void CheckBytes(const std::string& bytes, const Codes& codes = kInvalid);

}  // namespace millrace::bad_inputs
