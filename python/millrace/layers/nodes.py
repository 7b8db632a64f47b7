# SPDX-License-Identifier: Apache-2.0
"""What a layer takes, and its calls: what goes in, what comes out, and from which layers."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, NamedTuple, Optional

import numpy as np

from millrace.framework import dtypes, nest
from millrace.framework.composite_tensors import CompositeTensor, SparseTensorValue
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Operation
from millrace.framework.tensor_shape import TensorShape


def listed(value: Any) -> List[Any]:
    """As a list."""
    many = isinstance(value, (list, tuple)) and not isinstance(value, SparseTensorValue)
    return [] if value is None else list(value) if many else [value]


def one_or_all(values: Any) -> Any:
    """The value where there is one, else the list."""
    return values[0] if len(values) == 1 else values


def shape_tuple(x: Any) -> Any:
    """The shape of a tensor as a tuple, None for what is not known, and of what is no tensor (a TensorArray in the state of a decoder)."""
    if not hasattr(x, "get_shape"):
        return None
    shape = x.get_shape()
    return None if shape.ndims is None else tuple(shape.as_list())


class InputSpec:
    """What a layer takes."""

    def __init__(
        self,
        dtype: Any = None,
        shape: Any = None,
        ndim: Optional[int] = None,
        max_ndim: Optional[int] = None,
        min_ndim: Optional[int] = None,
        axes: Optional[Dict[int, int]] = None,
    ) -> None:
        self.dtype, self.shape, self.max_ndim, self.min_ndim = dtype, shape, max_ndim, min_ndim
        self.ndim = len(shape) if shape is not None else ndim
        try:
            self.axes = {int(axis): size for axis, size in (axes or {}).items()}
        except (ValueError, TypeError):
            raise at_user_line(TypeError("The keys in axes must be integers.")) from None
        last = (self.ndim if self.ndim is not None else max_ndim or 0) - 1
        too_far = [axis for axis in self.axes if axis > last]
        if too_far and (self.ndim is not None or max_ndim):
            raise at_user_line(ValueError("Axis %d is greater than the maximum allowed value: %d" % (max(too_far), last)))

    def get_config(self) -> Dict[str, Any]:
        """The arguments that make such a one."""
        return {name: getattr(self, name) for name in ("dtype", "shape", "ndim", "max_ndim", "min_ndim", "axes")}

    @classmethod
    def from_config(cls, config: Dict[str, Any]) -> "InputSpec":
        """The one of which these are the arguments."""
        return cls(**config)

    def check(self, x: Any, place: int, layer: str) -> None:
        """ValueError unless a tensor is what the layer takes."""
        start = "Input %d of layer %s is incompatible with the layer: " % (place, layer)
        shape, rank = x.get_shape(), x.get_shape().ndims
        if rank is None and (self.ndim is not None or self.min_ndim is not None or self.max_ndim is not None):
            raise at_user_line(ValueError(start + "its rank is undefined, but the layer requires a defined rank."))
        for wanted, good, what in (
            (self.ndim, rank == self.ndim, "ndim"),
            (self.max_ndim, (rank or 0) <= (self.max_ndim or 0), "max_ndim"),
            (self.min_ndim, (rank or 0) >= (self.min_ndim or 0), "min_ndim"),
        ):
            if wanted is not None and not good:
                raise at_user_line(ValueError("%sexpected %s=%s, found ndim=%s. Full shape received: %s" % (start, what, wanted, rank, shape)))
        if self.dtype is not None and x.dtype.base_dtype != dtypes.as_dtype(self.dtype):
            raise at_user_line(ValueError("%sexpected dtype=%s, found dtype=%s" % (start, dtypes.as_dtype(self.dtype).name, x.dtype.base_dtype.name)))
        sizes = shape.as_list() if rank is not None else []
        for axis, size in self.axes.items():
            if rank is not None and size is not None and sizes[int(axis)] not in (size, None):
                raise at_user_line(
                    ValueError("%sexpected axis %s of input shape to have value %s but received input with shape %s" % (start, axis, size, sizes))
                )
        if self.shape is not None and rank is not None:
            for wanted, size in zip(self.shape, sizes):
                if wanted is not None and size is not None and wanted != size:
                    raise at_user_line(
                        ValueError("Input %d is incompatible with layer %s: expected shape=%s, found shape=%s" % (place, layer, self.shape, sizes))
                    )


def to_tensor_shape(spec: InputSpec) -> TensorShape:
    """What an InputSpec says of the shape; nothing where it says no rank."""
    if spec.ndim is None:
        return TensorShape(None)
    if spec.shape is not None:
        return TensorShape(spec.shape)
    sizes: List[Optional[int]] = [None] * spec.ndim
    for axis, size in spec.axes.items():
        sizes[axis] = size
    return TensorShape(sizes)


class History(NamedTuple):
    """Where a tensor comes from: a layer, which of its calls, which of the outputs."""

    layer: Any
    node_index: int
    tensor_index: int


def with_leaves(function: Callable[[Any], Any], arguments: Any) -> Any:
    """Arguments with a function of what they hold, in lists, tuples and dictionaries too."""
    if isinstance(arguments, dict):
        return {k: with_leaves(function, v) for k, v in arguments.items()}
    if type(arguments) in (list, tuple):
        return type(arguments)(with_leaves(function, v) for v in arguments)
    return function(arguments)


_PLAIN = (bool, int, float, complex, str, bytes, np.generic)


def _is_plain(leaves: List[Any]) -> bool:
    return bool(leaves) and all(isinstance(leaf, _PLAIN) for leaf in leaves)


def is_deep(values: Any) -> bool:
    """Whether values lie in more than one list or tuple. A list of numbers or words is one value."""
    inner = (values.values() if isinstance(values, dict) else values) if nest.is_sequence(values) else ()
    return any(nest.is_sequence(x) and not _is_plain(nest.flatten(x)) for x in inner)


class Places:
    """How values lie in each other: a structure of their numbers."""

    def __init__(self, structure: Any) -> None:
        self.structure = nest.pack_sequence_as(structure, list(range(len(nest.flatten(structure)))))


def each_shape(function: Any, given: Any) -> Any:
    """What a function makes of each shape, in the lists, tuples and dictionaries that they lie in."""
    if isinstance(given, dict):
        return {name: each_shape(function, shape) for name, shape in given.items()}
    if isinstance(given, (list, tuple)) and any(isinstance(part, (list, tuple, dict, TensorShape)) for part in given):
        return type(given)(each_shape(function, shape) for shape in given)
    return function(TensorShape(given))


def arranged(values: List[Any], form: Any) -> Any:
    """Values as a call takes them: a list for True, one for False, a dictionary for a list of names, in each other for Places."""
    if isinstance(form, Places):
        return nest.pack_sequence_as(form.structure, values)
    return dict(zip(form, values)) if isinstance(form, list) else values if form else values[0]


class Node:
    """A call of a layer."""

    def __init__(
        self,
        outbound_layer: Any,
        inbound_layers: List[Any],
        node_indices: List[int],
        tensor_indices: List[int],
        input_tensors: List[Any],
        output_tensors: List[Any],
        arguments: Optional[Dict[str, Any]] = None,
        input_masks: Any = None,
        output_masks: Any = None,
        form: Any = False,
    ) -> None:
        self.outbound_layer, self.sources, self.source_nodes, self.source_places = outbound_layer, inbound_layers, node_indices, tensor_indices
        self.taken, self.made, self.arguments, self.form = input_tensors, output_tensors, dict(arguments or {}), form
        self.input_masks = input_masks or [getattr(x, "_keras_mask", None) for x in input_tensors]
        self.output_masks = output_masks or [getattr(x, "_keras_mask", None) for x in output_tensors]
        self.taken_shapes, self.made_shapes = [shape_tuple(x) for x in input_tensors], [shape_tuple(x) for x in output_tensors]
        for layer in inbound_layers:
            if layer is not None:
                layer._outbound_nodes.append(self)
        outbound_layer._inbound_nodes.append(self)

    def _as_called(self, values: List[Any]) -> Any:
        """What belongs to its inputs, in the form in which they were given: one, a list or a dictionary. Calls of no other layer have lists."""
        return arranged(values, self.form) if self.sources else values

    inbound_layers = property(lambda self: self._as_called(self.sources), doc="The layers that have made the inputs.")
    node_indices = property(lambda self: self._as_called(self.source_nodes), doc="Which of their calls have.")
    tensor_indices = property(lambda self: self._as_called(self.source_places), doc="Which of their outputs the inputs are.")
    input_tensors = property(lambda self: self._as_called(self.taken), doc="The inputs.")
    input_shapes = property(lambda self: self._as_called(self.taken_shapes), doc="The shapes of the inputs.")
    output_tensors = property(lambda self: one_or_all(self.made) if self.sources else self.made, doc="The outputs.")
    output_shapes = property(lambda self: one_or_all(self.made_shapes) if self.sources else self.made_shapes, doc="The shapes of the outputs.")

    @property
    def needed(self) -> List[Any]:
        """The tensors of other layers that it takes: its inputs, and those among the further arguments."""
        found = list(self.taken)
        with_leaves(lambda x: found.append(x) if getattr(x, "_keras_history", None) is not None else None, self.arguments)
        return found

    def get_config(self) -> Dict[str, Any]:
        """The layers that it connects, by name."""
        return {
            "outbound_layer": self.outbound_layer.name if self.outbound_layer else None,
            "inbound_layers": self._as_called([layer.name if layer else None for layer in self.sources]),
            "node_indices": self.node_indices,
            "tensor_indices": self.tensor_indices,
        }


def _makers(x: Any) -> List[Operation]:
    """An operation; the one that makes a tensor, or those that make the parts of a sparse or ragged one."""
    parts = x._components() if isinstance(x, CompositeTensor) else [x]
    made = [part if isinstance(part, Operation) else getattr(part, "op", None) for part in parts]
    return [op for op in made if op is not None]


def reachable_from(sources: List[Any], wanted: List[Any]) -> List[bool]:
    """Of each tensor or operation whether it depends on one of the sources."""
    ends = {op for x in sources for op in _makers(x)}
    known: Dict[Operation, bool] = {}

    def depends(start: Operation) -> bool:
        stack = [start]
        while stack:
            op = stack[-1]
            if op in known:
                stack.pop()
                continue
            if op in ends:
                known[op] = True
                continue
            before = [x.op for x in op.inputs] + list(op.control_inputs)
            waiting = [b for b in before if b not in known and b not in on_path]
            if waiting:
                on_path.add(op)
                stack.extend(waiting)
            else:
                known[op] = any(known.get(b, False) for b in before)
                stack.pop()
        return known[start]

    found = []
    for x in wanted:
        on_path: set[Operation] = set()
        found.append(any(depends(op) for op in _makers(x)))
    return found
