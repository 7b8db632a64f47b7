# SPDX-License-Identifier: Apache-2.0
"""map_fn, foldl, foldr and scan: functions of the elements along the first axis."""

from __future__ import annotations

from typing import Any, List, Optional

import millrace._core as _core
from millrace.framework import dtypes, nest
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, get_default_graph
from millrace.ops.control_flow_contexts import WhileContext

from millrace.ops import gen_ops
from millrace.ops.gen_ops import symbolic_gradient as _symbolic_gradient  # noqa: F401 - TensorFlow's name

__all__ = ["map_fn", "foldl", "foldr", "scan"]


def remote_call(target: Any, args: Any, Tout: Any, f: Any, name: Optional[str] = None) -> Any:
    """What a function (a Defun, or its name) returns for `args`, computed on the device `target`."""
    if not isinstance(f, str):
        f.add_to_graph(get_default_graph())
        f = f.name
    return gen_ops.remote_call(target, args, Tout, f, name=name)


def _tensors(structure: Any) -> List[Any]:
    return [convert_to_tensor(v) for v in nest.flatten(structure)]


def _elements(structure: Any) -> List[Any]:
    """The tensors whose rows a function is called with. ValueError for one that has none."""
    made = _tensors(structure)
    for t in made:
        if t.get_shape().ndims == 0:
            raise at_user_line(ValueError("elems must be a 1+ dimensional Tensor, not a scalar: %s must have at least one dimension." % (t,)))
    return made


def _called(fn: Any, structures: Any, made: List[Any], wanted: Any = None, types: Any = None) -> Any:
    """fn with the leaves in the structures that it takes; the leaves of what it returns, which has the structure `wanted`."""

    def build(values: List[Any]) -> List[Any]:
        with WhileContext():
            return call(values)

    def call(values: List[Any]) -> List[Any]:
        rest, arguments = list(values), []
        for structure in structures:
            count = len(nest.flatten(structure))
            arguments.append(nest.pack_sequence_as(structure, rest[:count]))
            rest = rest[count:]
        result = fn(*arguments)
        made[:] = [result]
        if types is None:
            return _tensors(result)
        nest.assert_same_structure(wanted, result)
        return [v if isinstance(v, Tensor) else convert_to_tensor(v, t) for v, t in zip(nest.flatten(result), types)]

    return build


def map_fn(
    fn: Any,
    elems: Any,
    dtype: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    name: Optional[str] = None,
) -> Any:
    """fn of each element, stacked. `dtype` gives the structure and the types of what fn returns where they are not its argument's."""
    if not callable(fn):
        raise at_user_line(TypeError("fn must be callable."))
    elements = _elements(elems)
    types = [] if dtype is None else [dtypes.dtype_number(t) for t in nest.flatten(dtype)]
    del infer_shape  # results of one shape are stacked in any case
    made: List[Any] = []
    graph = elements[0].graph
    structure = dtype if dtype is not None else elems
    values = _core.map_fn(
        graph,
        graph.unique_name(name or "map"),
        elements,
        types,
        _called(fn, [elems], made, structure, types or [e.dtype.base_dtype for e in elements]),
        parallel_iterations,
        not back_prop,
        swap_memory,
    )
    return nest.pack_sequence_as(structure, values)


def vectorized_map(fn: Any, elems: Any) -> Any:
    """fn of each element, stacked, in the structure of what fn returns. It is called once more, on the first element, which tells its types."""
    if not callable(fn):
        raise at_user_line(TypeError("fn must be callable."))
    with get_default_graph().name_scope("vectorized_map"):
        rows = _tensors(elems)

        def at(i: Any) -> Any:  # by gathering: fn may take gradients with respect to what the elements were made of
            return fn(nest.pack_sequence_as(elems, [gen_ops.gather_v2(row, i, 0) for row in rows]))

        made = at(0)
        types = nest.pack_sequence_as(made, [convert_to_tensor(m).dtype.base_dtype for m in nest.flatten(made)])
        count = gen_ops.shape_n(rows[:1])[0][0]
        return map_fn(at, gen_ops.range(0, count, 1), types)


def _folded(
    kind: str, fn: Any, elems: Any, initializer: Any, parallel_iterations: int, back_prop: bool, swap_memory: bool, name: Optional[str], reverse: bool = False
) -> Any:
    if not callable(fn):
        raise at_user_line(TypeError("fn must be callable."))
    elements = _elements(elems)
    first = [] if initializer is None else _tensors(initializer)
    accumulator = elems if initializer is None else initializer
    graph = elements[0].graph
    values = _core.fold(
        graph,
        kind,
        graph.unique_name(name or kind),
        elements,
        first,
        _called(fn, [accumulator, elems], [], accumulator, [t.dtype.base_dtype for t in first or elements]),
        parallel_iterations,
        not back_prop,
        swap_memory,
        reverse,
    )
    return nest.pack_sequence_as(accumulator, values)


def foldl(
    fn: Any, elems: Any, initializer: Any = None, parallel_iterations: int = 10, back_prop: bool = True, swap_memory: bool = False, name: Optional[str] = None
) -> Any:
    """fn(accumulator, element) from the first element to the last; the last accumulator."""
    return _folded("foldl", fn, elems, initializer, parallel_iterations, back_prop, swap_memory, name)


def foldr(
    fn: Any, elems: Any, initializer: Any = None, parallel_iterations: int = 10, back_prop: bool = True, swap_memory: bool = False, name: Optional[str] = None
) -> Any:
    """fn(accumulator, element) from the last element to the first; the last accumulator."""
    return _folded("foldr", fn, elems, initializer, parallel_iterations, back_prop, swap_memory, name)


def scan(
    fn: Any,
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    reverse: bool = False,
    name: Optional[str] = None,
) -> Any:
    """fn(accumulator, element) from the first element to the last; all accumulators, stacked."""
    del infer_shape  # accumulators of one shape are stacked in any case
    return _folded("scan", fn, elems, initializer, parallel_iterations, back_prop, swap_memory, name, reverse)
