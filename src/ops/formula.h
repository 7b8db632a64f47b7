// SPDX-License-Identifier: Apache-2.0
// Arithmetic in composites, named as the operators of TensorFlow's Python name it: x * y is "mul", x / y "truediv", and
// a number among them the constant "mul/x" or "mul/y" of the other's type. A composite that is written with it has the
// node names of the Python function that it stands for.
//
// Names are counted in the order of the calls: where both arguments of one make nodes, state them one by one.
#pragma once

#include "graph/graph_builder.h"

namespace millrace {

class Formula {
 public:
  struct Operand {
    Operand(Output v) : value(v) {}                             // NOLINT: call sites read like mathematics
    Operand(double n) : value(), number(n), is_number(true) {}  // NOLINT
    Output value;
    double number = 0;
    bool is_number = false;
  };

  explicit Formula(const GraphBuilder& b) : b_(b) {}

  // At least one operand is a value; they broadcast.
  Output Add(Operand x, Operand y) const { return Binary("add", "Add", x, y); }
  Output Sub(Operand x, Operand y) const { return Binary("sub", "Sub", x, y); }
  Output Mul(Operand x, Operand y) const { return Binary("mul", "Mul", x, y); }
  Output Div(Operand x, Operand y) const { return Binary("truediv", "RealDiv", x, y); }
  Output Pow(Operand x, Operand y) const { return Binary("pow", "Pow", x, y); }
  // A function of one or two operands, named as the op.
  Output Call(absl::string_view op, Output x) const { return b_.Op(op, {x}); }
  Output Call(absl::string_view op, Operand x, Operand y) const { return Binary(op, op, x, y); }
  // x itself where it has that type already; the name is counted all the same.
  Output Cast(Output x, DType to) const;

 private:
  Output Binary(absl::string_view name, absl::string_view op, const Operand& x, const Operand& y) const;

  GraphBuilder b_;
};

// The shape of x: a constant where it is known.
Output ShapeOf(const GraphBuilder& b, Output x);

}  // namespace millrace
