# SPDX-License-Identifier: Apache-2.0
"""OpDefLibrary: operations by the names of their types, as the wrappers of user libraries of 1.x made them."""

from __future__ import annotations

from typing import Any, Optional

from millrace.framework.errors import NotFoundError, at_user_line
from millrace.framework.graph import Graph
from millrace.framework.load_library import op_function
from millrace.ops import raw_ops
from millrace.protos import definitions


class OpDefLibrary:
    """Makes operations of any type that is registered."""

    def add_op_list(self, op_list: Any) -> None:
        """Nothing: types are those that are registered."""
        del op_list  # every type of the library is known

    add_op = add_op_list

    def apply_op(self, op_type_name: str, name: Optional[str] = None, **keywords: Any) -> Any:
        """The outputs of a new operation; inputs and attributes by their names."""
        if op_type_name in dir(raw_ops):
            return getattr(raw_ops, op_type_name)(name=name, **keywords)
        try:
            encoded = Graph()._op_def(op_type_name)
        except NotFoundError:
            raise at_user_line(RuntimeError("Unrecognized Op name " + op_type_name)) from None
        return op_function(definitions.OpDef.FromString(encoded))(name=name, **keywords)


_op_def_lib = OpDefLibrary()
apply_op = _op_def_lib.apply_op
