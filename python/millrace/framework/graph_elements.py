# SPDX-License-Identifier: Apache-2.0
"""Tensor and Operation, the elements of a graph."""

from __future__ import annotations

import bisect
import copy
import re
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Optional, Tuple

import millrace._core as _core
from millrace.framework import autograph_status, tensor_shape
from millrace.framework.default_session import get_default_session
from millrace.framework.errors import InvalidArgumentError, OutOfRangeError, at_user_line

if TYPE_CHECKING:
    from millrace.framework.object_identity import Reference
    from millrace.framework.graph import Graph


class Tensor(_core.Tensor):
    """An output of an operation: what it will be when a session runs it.

    Tensors have Python's operators, made of ops; `==` compares identity, as tensors are keys of feed dictionaries.
    """

    __array_priority__ = 100

    @property
    def shape(self) -> tensor_shape.TensorShape:
        """What is known of its shape."""
        return self.get_shape()

    def get_shape(self) -> tensor_shape.TensorShape:
        """What is known of its shape."""
        dims = self._dims
        return tensor_shape.TensorShape(None if dims is None else [None if d < 0 else d for d in dims])

    def set_shape(self, shape: Any) -> None:
        """Adds to what is known of its shape. ValueError when that contradicts."""
        self._set_dims(tensor_shape.shape_list(shape))

    @property
    def _shape(self) -> tensor_shape.TensorShape:
        """shape, which programs before 1.5 assigned here."""
        return self.get_shape()

    @_shape.setter
    def _shape(self, shape: Any) -> None:
        raise at_user_line(ValueError("Tensor._shape cannot be assigned, use Tensor.set_shape instead."))

    def _shape_as_list(self) -> Optional[List[Optional[int]]]:
        dims = self._dims
        return None if dims is None else [None if d < 0 else d for d in dims]

    def _shape_tuple(self) -> Optional[Tuple[Optional[int], ...]]:
        dims = self._shape_as_list()
        return None if dims is None else tuple(dims)

    def eval(self, feed_dict: Any = None, session: Any = None) -> Any:
        """Its value, by the default session or the one given."""
        return session_for(self.graph, session).run(self, feed_dict)

    @property
    def _id(self) -> int:
        """A number of its own in the graph, larger than those of operations before."""
        return int(self.op._id) << 32 | int(self.value_index)

    @property
    def _value_index(self) -> int:
        return int(self.value_index)

    # Names inside TensorFlow that programs read.
    _op = property(lambda self: self.op)
    _dtype = property(lambda self: self.dtype)

    def _as_node_def_input(self) -> str:
        """What a NodeDef that reads it says: the output's number where it is not the first."""
        return "%s:%d" % (self.op.name, self.value_index) if self.value_index else str(self.op.name)

    def consumers(self) -> List["Operation"]:
        """The operations that read it, one as often as it does."""
        return [op for op in super().consumers() for t in op.inputs if t is self]

    def experimental_ref(self) -> "Reference":
        """What stands for it in sets and dictionaries."""
        from millrace.framework.object_identity import Reference

        return Reference(self)

    def __iter__(self) -> Iterator["Tensor"]:
        dims = self._dims
        if dims is None or not dims or dims[0] < 0:
            raise at_user_line(
                autograph_status.refusal(
                    "iterating over `tf.Tensor`",
                    "The first dimension of %s is not known, and a 'Tensor' object is not iterable then: use tf.map_fn or tf.while_loop, or tf.unstack(x, num)."
                    % (self,),
                )
            )
        return (self[i] for i in range(dims[0]))

    def __len__(self) -> int:
        raise at_user_line(
            TypeError(
                "object of type 'Tensor' has no len(), which is not well defined for symbolic tensors: use x.get_shape()[0].value or tf.shape(x)[0] (%s)"
                % (self,)
            )
        )

    def __bool__(self) -> bool:
        raise at_user_line(
            autograph_status.refusal(
                "using a `tf.Tensor` as a Python `bool`",
                "Use `if t is not None:` instead of `if t:` to test if a tensor is defined, and use TensorFlow ops such as tf.cond to "
                "execute subgraphs conditioned on the value of a tensor (%s)." % (self,),
            )
        )

    __nonzero__ = __bool__

    def __array__(self, *unused: Any, **unused_keywords: Any) -> Any:
        raise NotImplementedError("Cannot convert a symbolic Tensor (%s) to a numpy array: run it with a session." % self.name)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return self is not other

    def __hash__(self) -> int:
        return id(self)

    def __copy__(self) -> "Tensor":
        return self

    def __deepcopy__(self, memo: Any) -> "Tensor":
        return self

    def __str__(self) -> str:
        return 'Tensor("%s"%s, dtype=%s%s)' % (
            self.name,
            ", shape=%s" % self.get_shape() if self._dims is not None else "",
            self.dtype.name,
            ", device=%s" % self.device if self.device else "",
        )

    def __repr__(self) -> str:
        if self.op.type == "(removed)":
            return "<tf.Tensor '%s' dtype=%s, of a loop or branch that could not be made>" % (self.name, self.dtype.name)
        return "<tf.Tensor '%s' shape=%s dtype=%s>" % (self.name, self.get_shape(), self.dtype.name)

    def _repr_html_(self) -> str:
        import html

        import numpy as np

        known = self._constant_value() if self.op.type == "Const" else None
        value = "" if known is None else "<pre>%s</pre>" % html.escape(np.array2string(np.asarray(known), threshold=50, edgeitems=3))
        return "<code>%s</code> %s %s <small>%s %s</small>%s" % (
            html.escape(self.name),
            self.dtype.name,
            self.get_shape(),
            self.op.type,
            html.escape(self.op._location),
            value,
        )


_VALID_NODE_NAME = re.compile(r"^[A-Za-z0-9.][A-Za-z0-9_.\-/]*$")


class Operation(_core.Operation):
    """A node of a graph. The constructor makes one as a NodeDef says, under that name, whatever scopes the graph is in."""

    def __new__(
        cls,
        node_def: Any,
        g: "Graph",
        inputs: Any = None,
        output_types: Any = None,
        control_inputs: Any = None,
        input_types: Any = None,
        original_op: Optional["Operation"] = None,
        op_def: Any = None,
    ) -> "Operation":
        del output_types, input_types, op_def  # the library finds these out by the type
        if not hasattr(node_def, "attr"):
            raise at_user_line(TypeError("node_def needs to be a NodeDef: %s" % (node_def,)))
        if not _VALID_NODE_NAME.match(node_def.name):
            raise at_user_line(ValueError("'%s' is not a valid node name" % node_def.name))
        if not isinstance(g, _core.Graph):
            raise at_user_line(TypeError("g needs to be a Graph: %s" % (g,)))
        if not isinstance(inputs or [], list):
            raise at_user_line(TypeError("inputs needs to be a list of Tensors: %s" % (inputs,)))
        for given in inputs or ():
            for tensor in given if isinstance(given, (list, tuple)) else (given,):
                if not isinstance(tensor, Tensor):
                    raise at_user_line(TypeError("input needs to be a Tensor: %s" % (tensor,)))
        encoded = {key: value.SerializeToString() for key, value in node_def.attr.items()}
        g._push_control([], True)
        try:
            made = _core.make_node(g, node_def.op, node_def.name + "/", inputs or [], encoded)
        finally:
            g._pop_control()
            g._sync()  # its name is taken
        made._set_device(node_def.device)
        made._add_control_inputs([c.op if isinstance(c, Tensor) else c for c in control_inputs or ()])
        if original_op is not None:
            made._original_op = original_op
        return made

    def __init__(self, *unused: Any, **unused_keywords: Any) -> None:
        """Nothing is left to do."""

    def run(self, feed_dict: Any = None, session: Any = None) -> None:
        """Runs it, by the default session or the one given."""
        session_for(self.graph, session, "execute operation", "run").run(self, feed_dict)

    @property
    def node_def(self) -> Any:
        """Its NodeDef, a copy."""
        from millrace.protos import definitions

        return definitions.NodeDef.FromString(self._node_def())

    @property
    def op_def(self) -> Any:
        """The OpDef of its op, a copy."""
        from millrace.protos import definitions

        return definitions.OpDef.FromString(self.graph._op_def(self.type))

    @property
    def _id(self) -> int:
        """Its number in the order of making, from 1."""
        known = self.graph.__dict__.setdefault("_operation_ids", {})
        if self.name not in known:
            operations = self.graph.get_operations()
            if known and (len(known) > len(operations) or known.get(operations[len(known) - 1].name) != len(known)):
                known.clear()  # a construction was taken back
            for i, operation in enumerate(operations[len(known) :], len(known) + 1):
                known[operation.name] = i
        return known[self.name]

    # Names inside TensorFlow that programs read.
    _inputs = property(lambda self: self.inputs)
    _outputs = property(lambda self: self.outputs)
    _control_inputs = property(lambda self: self.control_inputs)
    _graph = property(lambda self: self.graph)
    _op_def = property(lambda self: self.op_def)

    def _set_device(self, device: Any) -> None:
        """Asks for a device: a name or a DeviceSpec."""
        super()._set_device(device if isinstance(device, str) else device.to_string())

    def _update_input(self, index: int, tensor: Tensor) -> None:
        """Makes it read another tensor of the same graph. InvalidArgumentError when its shape contradicts that of the old one."""
        inputs = self.inputs
        if index >= len(inputs):
            raise at_user_line(
                OutOfRangeError(None, None, "Cannot update edge. Input index [%d] is greater than the number of total inputs [%d]." % (index, len(inputs)))
            )
        old, new = inputs[index].shape, tensor.shape
        if not old.is_compatible_with(new):
            texts = (str(shape).replace(" ", "").replace("(", "[").replace(",)", "]").replace(")", "]") for shape in (new, old))
            raise at_user_line(InvalidArgumentError(None, None, "Cannot update edge, incompatible shapes: %s and %s" % tuple(texts)))
        super()._update_input(index, tensor)

    @property
    def _control_outputs(self) -> List["Operation"]:
        """The operations that wait for it."""
        return [operation for operation in self.graph.get_operations() if self in operation.control_inputs]

    def _add_control_inputs(self, operations: Any) -> None:
        """Makes it wait for operations."""
        for operation in operations:
            self._add_control_input(operation)

    def _stop_waiting_for(self, operations: Any) -> None:
        """Takes operations from those that it waits for."""
        kept = [operation for operation in self.control_inputs if operation not in operations]
        self._remove_all_control_inputs()
        self._add_control_inputs(kept)

    def _get_control_flow_context(self) -> Any:
        """The branch or loop that it lies in (ops.control_flow_contexts), or None."""
        chosen = self.graph.__dict__.get("_chosen_contexts", {})
        if self.name in chosen:
            return chosen[self.name]
        marks = self.graph._flow_marks
        if not marks:
            return None
        place = bisect.bisect_left(marks, (self._id,))  # a shorter tuple comes before those that begin as it does
        context = marks[place - 1][1] if place else None
        return None if context is None else context._owner(self)

    def _set_control_flow_context(self, context: Any) -> None:
        """Makes it tell of another context; where it runs stays as it is."""
        self.graph.__dict__.setdefault("_chosen_contexts", {})[self.name] = context

    @property
    def _input_types(self) -> List[Any]:
        """The types of its inputs; of references where it takes them."""
        return [t.dtype if is_ref else t.dtype.base_dtype for t, is_ref in zip(self.inputs, self._takes_references())]

    @property
    def _input_dtypes(self) -> List[Any]:
        return self._input_types

    def _takes_references(self) -> List[bool]:
        """For each input, whether it is a reference."""
        flags: List[bool] = []
        try:
            arguments = self.op_def.input_arg
        except Exception:  # an op outside of the library
            return [False] * len(self.inputs)
        for argument in arguments:
            count = (
                self.get_attr(argument.number_attr) if argument.number_attr else (len(self.get_attr(argument.type_list_attr)) if argument.type_list_attr else 1)
            )
            flags += [bool(argument.is_ref)] * int(count)
        return flags

    @property
    def traceback_with_start_lines(self) -> List[Tuple[str, int, str, str, int]]:
        """traceback, with the line where the function around it starts: that is not kept, and 1."""
        return [(*entry, 1) for entry in self.traceback]

    def _differentiated(self) -> Optional["Operation"]:
        scopes, ends = self.graph.__dict__.get("_gradient_scopes", ()), [i + 1 for i, c in enumerate(self.name) if c == "/"]
        start = next((end for end in ends if self.name[:end] in scopes), None)
        name, parted, _ = self.name[start:].rpartition("_grad/")
        if start is None or not parted or self.type == "AddN":  # a sum of gradients is that of no operation
            return None
        try:
            return self.graph.get_operation_by_name(name)
        except KeyError:
            return None

    @property
    def _original_op(self) -> Any:
        """The operation that it is the gradient of: what the graph was told (Graph._original_op), or what tf.gradients named it for."""
        told = self.graph.__dict__.get("_originals", {})
        return told[self.name] if self.name in told else self._differentiated()

    @_original_op.setter
    def _original_op(self, op: "Operation") -> None:
        self.graph.__dict__.setdefault("_originals", {})[self.name] = op

    @property
    def _device_assignments(self) -> List[Any]:
        """The device scopes in which it was made, the innermost first, with their places in the program."""
        return [copy.copy(entry) for entry in self.graph._places["device"].of(self._id)]

    @property
    def _colocation_dict(self) -> Dict[str, Any]:
        """The names of the operations with which the scopes around placed it, and the places of these scopes in the program."""
        return {entry.obj: entry.copy_metadata() for entry in self.graph._places["colocation"].of(self._id)}

    def _set_attr(self, name: str, value: Any) -> None:
        """Sets an attribute, to an AttrValue or the bytes of one."""
        super()._set_attr(name, value if isinstance(value, bytes) else value.SerializeToString())

    @property
    def _output_types(self) -> List[int]:
        """The types of its outputs, as numbers."""
        return [t.dtype.as_datatype_enum for t in self.outputs]

    def get_attr(self, name: str) -> Any:
        """The value of an attribute, as Python has it. ValueError when there is none of that name."""
        from millrace.protos import attr_values

        try:
            encoded = self._attr(name)
        except ValueError:
            raise at_user_line(ValueError("Operation '%s' has no attr named '%s'." % (self.name, name))) from None
        return attr_values.to_python(encoded)

    @property
    def traceback(self) -> List[Tuple[str, int, str, str]]:
        """Where the program made it: one entry (file, line, "", "")."""
        file, _, line = self._location.rpartition(":")
        return [(file, int(line), "", "")] if file else []

    def colocation_groups(self) -> List[bytes]:
        """The groups of operations that are placed together with it."""
        from millrace.protos import attr_values

        try:
            encoded = self._attr("_class")
        except ValueError:  # most have none
            groups = []
        else:
            groups = attr_values.to_python(encoded)
        return [g for g in groups if g.startswith(b"loc:@")] or [b"loc:@" + self.name.encode()]

    def values(self) -> Tuple[Tensor, ...]:
        """Its outputs."""
        return tuple(self.outputs)

    def __str__(self) -> str:
        return str(self.node_def)

    def __repr__(self) -> str:
        return "<tf.Operation '%s' type=%s>" % (self.name, self.type)

    def __copy__(self) -> "Operation":
        return self

    def __deepcopy__(self, memo: Any) -> "Operation":
        return self


def session_for(graph: "Graph", session: Any, what: str = "evaluate tensor", method: str = "eval") -> Any:
    """The session that was given, or else the default one. ValueError where there is none, and where it has another graph."""
    told = "Pass an explicit session to `%s(session=sess)`." % method
    whose = "default" if session is None else "given"
    session = get_default_session() if session is None else session
    if session is None:
        message = "Cannot %s using `%s()`: No default session is registered. Use `with sess.as_default()` or pass an explicit session to `%s(session=sess)`"
        raise at_user_line(ValueError(message % (what, method, method)))
    if session.graph is not graph:
        thing = what.split()[-1]
        message = "Cannot use the %s session to %s: the %s's graph is different from the session's graph." % (whose, what, thing)
        raise at_user_line(ValueError(message + (" " + told if whose == "default" else "")))
    return session
