// SPDX-License-Identifier: Apache-2.0
// The attributes of an op as Python gives them, set on the description of a node.
#pragma once

#include "core.h"

namespace millrace::python {

struct AttrSpec {
  std::string name;
  char kind = 'i';  // s i f b t h(shape) n(tensor) u(func)
  bool is_list = false;
  // Of a type with a default: a tuple of it, then of all types that are allowed. Else invalid.
  nb::object types;
};

// At most 80 characters of repr(value).
std::string ShortRepr(nb::handle value);
[[noreturn]] void RaiseTypeError(const std::string& message);  // with the user's line
int TypeNumber(nb::handle dtype);
// Whether it is what tf.Defun makes, of which a graph has a definition when it is asked to take one.
bool IsFunctionObject(nb::handle value);

// Sets attribute `a` of the op `op`. None: the default, or what the inputs determine. TypeError when it is of another
// kind.
void SetAttr(TF_OperationDescription* desc, const std::string& op, const AttrSpec& a, nb::handle value);

}  // namespace millrace::python
