// SPDX-License-Identifier: Apache-2.0
// OpDef: everything that is true of an op on every device. It is declared once, in src/ops/<family>.cc, by
//
//   registry.Add("AddV2(x:T, y:T) -> (z:T) | T in FC|IDX|i8|i16|u8 | CA")
//       .Doc("Element-wise sum with NumPy broadcasting.")
//       .Shape(BroadcastShape)
//       .Gradient(AddGrad)
//       .Example("f32[2,3]~, f32[3]~");
//
// Schema notation:  Name(inputs) -> (outputs) | attrs | flags
//   arg    name:T attr-typed | name:f32 fixed | name:&T reference | name:N*T list of N | name:[Ts] list typed by attr
//   attr   name:kind[>=min][=default] | name in SET[=default] (type attr, SET joined by |) | name in {A,B}[="A"]
//   (string)
//          kinds int float bool string type shape tensor func list(...); separated by ';'
//          shape default '?' unknown rank, '[]' scalar; list default '[1,1]'
//   flags  S stateful, C commutative, A aggregate, U accepts an uninitialised reference, Dn deprecated from version n
//   types  f16 bf16 f32 f64 i8 i16 i32 i64 u8 u16 u32 u64 bool str c64 c128 qi8 qu8 qi16 qu16 qi32 res var
//   sets   NUM REAL INT FLT HFD FD CPX FC IDX QNT, as in the schema list's head
#pragma once

#include <string>
#include <vector>

#include "op/attr.h"

namespace millrace {

class ShapeContext;
class GradContext;
using ShapeFn = Status (*)(ShapeContext&);
using GradientFn = Status (*)(GradContext&);

struct ArgDef {
  std::string name;
  DType type = DType::kInvalid;  // fixed type, or kInvalid
  std::string type_attr;         // else the name of the attribute that holds it
  std::string number_attr;       // non-empty: a list of this many
  std::string type_list_attr;    // non-empty: a list with these types
  bool is_ref = false;
};

struct AttrDef {
  std::string name;
  AttrKind kind = AttrKind::kInt;
  bool is_list = false;
  bool has_default = false;
  AttrValue default_value;
  bool has_minimum = false;
  int64_t minimum = 0;                       // of the value, or of a list's length
  std::vector<DType> allowed_types;          // empty: all
  std::vector<std::string> allowed_strings;  // empty: all
};

// What AddGradients does at an op of this type.
enum class GradientKind : uint8_t {
  kUndecided,          // the registry test fails on it
  kFunction,           // gradient_fn
  kNotDifferentiable,  // the gradient is silently none (a comparison, a shape)
  kStructural,         // the backward walk looks at the conditional or loop that the op belongs to
  kMissing,            // asking for it is an error that gives the reason
};

struct OpDef {
  std::string name;
  std::vector<ArgDef> inputs;
  std::vector<ArgDef> outputs;
  std::vector<AttrDef> attrs;
  bool stateful = false;
  bool commutative = false;
  bool aggregate = false;
  bool allows_uninitialized_input = false;
  int deprecation_version = 0;  // 0: not deprecated
  std::string deprecation_reason;

  std::string doc;
  ShapeFn shape_fn = nullptr;
  GradientKind gradient_kind = GradientKind::kUndecided;
  GradientFn gradient_fn = nullptr;
  std::string gradient_reason;        // for kNotDifferentiable and kMissing
  std::vector<std::string> examples;  // see op/example.h
  std::string no_example_reason;
  std::string schema;  // the notation it was declared with

  const AttrDef* FindAttr(absl::string_view attr_name) const;
};

// Input or output types of a node: references carry DType + 100. The position of each arg in the flat list comes along.
struct ArgRange {
  int begin = 0;
  int end = 0;
};
struct NodeSignature {
  std::vector<DType> input_types;
  std::vector<DType> output_types;
  std::vector<ArgRange> input_args;   // one per OpDef::inputs
  std::vector<ArgRange> output_args;  // one per OpDef::outputs
};
// InvalidArgument when an attribute is missing or too large. The total of list lengths is limited to kMaxArgs before
// anything is expanded.
inline constexpr int64_t kMaxArgs = 1 << 20;
StatusOr<NodeSignature> ResolveSignature(const OpDef& op, const AttrMap& attrs);

// Adds defaults, checks kinds, allowed values and minima. Attributes that the op does not declare: names starting with
// '_' pass; others are reported in *unknown (kept by import, refused by construction).
Status CompleteAttrs(const OpDef& op, AttrMap* attrs, std::vector<std::string>* unknown);

StatusOr<OpDef> ParseSchema(absl::string_view schema);
// One type set, as in schemas: "f32|f64", "NUM|bool".
StatusOr<std::vector<DType>> ParseTypeSet(absl::string_view text);
// For registrations with literals: the set, or empty when the text is wrong (the registry test finds it).
std::vector<DType> Types(absl::string_view text);

StatusOr<wire::OpDef> OpDefToProto(const OpDef& op);
StatusOr<OpDef> OpDefFromProto(const wire::OpDef& proto);  // an op library's entry, or a function's signature

}  // namespace millrace
