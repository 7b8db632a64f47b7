# SPDX-License-Identifier: Apache-2.0
"""tensorflow.python.ops.parallel_for: what a function gives for 0, 1, 2 ..., stacked; Jacobians.

TensorFlow's pfor rewrites the function for all iterations at once. Here both run a loop whose iterations run beside each other, with the same
results: the kernels that they call use all cores either way.
"""

from __future__ import annotations

import functools
import inspect
from typing import Any, Callable, Dict, Iterator, List, Optional

from millrace.framework import dtypes, nest
from millrace.framework.composite_tensors import SparseTensor
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Operation, Tensor, control_dependencies, name_scope
from millrace.framework.static_values import constant_value
from millrace.framework.tensor_shape import TensorShape
from millrace.ops import array_ops, check_ops, control_flow_ops, gen_ops, gradients, math_ops
from millrace.ops.functional_ops import vectorized_map  # noqa: F401
from millrace.ops.tensor_array_ops import TensorArray


def for_loop(loop_fn: Callable[..., Any], loop_fn_dtypes: Any, iters: Any, parallel_iterations: Optional[int] = None) -> Any:
    """What loop_fn gives for 0 ... iters - 1, stacked, in the structure of loop_fn_dtypes; None for an output that is None."""
    found = _looped(loop_fn, nest.flatten(loop_fn_dtypes), iters, parallel_iterations)
    return nest.pack_sequence_as(loop_fn_dtypes, [None if array is None else array.stack() for array in found])


def _looped(loop_fn: Callable[..., Any], kinds: List[Any], iters: Any, parallel_iterations: Optional[int]) -> List[Any]:
    """The arrays that the iterations write to."""
    absent: List[bool] = []

    def body(i: Any, arrays: Any) -> Any:
        made = nest.flatten(loop_fn(i))
        if len(made) != len(kinds):
            raise at_user_line(
                ValueError("Number of expected outputs, %d, does not match the number of actual outputs, %d, from loop_fn" % (len(kinds), len(made)))
            )
        absent[:] = [value is None for value in made]
        return i + 1, [array if value is None else array.write(i, convert_to_tensor(value)) for array, value in zip(arrays, made)]

    arrays = [TensorArray(dtypes.as_dtype(kind).base_dtype, size=iters, infer_shape=False) for kind in kinds]
    options: Dict[str, Any] = {} if parallel_iterations is None else {"parallel_iterations": parallel_iterations}
    start = convert_to_tensor(0, dtypes.int32)
    _, arrays = control_flow_ops.while_loop(lambda i, _: gen_ops.less(i, iters), body, (start, arrays), **options)
    return [None if none else array for array, none in zip(arrays, absent)]


class PForConfig:
    """What a loop_fn with an argument `pfor_config` is given: reductions over the values of all iterations."""

    def __init__(self) -> None:
        self._known: List[Any] = []  # what the reductions gave, in the order in which they are called
        self._calls = 0
        self._asked: Any = None  # (fn, values of this iteration) of the first one that is not known

    def _start(self) -> None:
        self._calls, self._asked = 0, None

    def reduce(self, fn: Callable[..., Any], *args: Any) -> Any:
        """fn of the stacked values that args have in all iterations."""
        self._calls += 1
        if self._calls <= len(self._known):
            return self._known[self._calls - 1]
        values = [convert_to_tensor(a) for a in args]
        self._asked = self._asked or (fn, values)
        return fn(*[array_ops.expand_dims(v, 0) for v in values])  # of its kind, until it is known

    def reduce_concat(self, x: Any) -> Any:
        """The values of all iterations, stacked."""
        return self.reduce(lambda y: y, x)

    def reduce_mean(self, x: Any) -> Any:
        """Their mean."""
        return self.reduce(lambda y: math_ops.reduce_mean(y, axis=0), x)

    def reduce_sum(self, x: Any) -> Any:
        """Their sum."""
        return self.reduce(lambda y: math_ops.reduce_sum(y, axis=0), x)


def _takes_config(loop_fn: Any) -> bool:
    if isinstance(loop_fn, functools.partial):
        return "pfor_config" in inspect.signature(loop_fn.func).parameters and "pfor_config" not in loop_fn.keywords
    if not callable(loop_fn):
        raise at_user_line(ValueError("loop_fn object did not have a __call__ method"))
    return "pfor_config" in inspect.signature(loop_fn).parameters


def pfor(loop_fn: Callable[..., Any], iters: Any, parallel_iterations: Optional[int] = None) -> Any:
    """What loop_fn gives for 0 ... iters - 1, stacked, in the structure that it gives: tensors, sparse tensors (with a dimension more), None,
    and operations, which run in all iterations. It is called once more than it runs, which tells the types."""
    if parallel_iterations is not None and parallel_iterations < 1:
        raise at_user_line(ValueError("parallel_iterations must be None or a positive integer"))
    if parallel_iterations == 1:
        raise at_user_line(ValueError("Found parallel_iterations == 1. Use for_loop instead."))
    config = PForConfig() if _takes_config(loop_fn) else None

    def call(i: Any) -> Any:
        if config is None:
            return loop_fn(i)
        config._start()
        return loop_fn(i, pfor_config=config)

    iters = math_ops.cast(convert_to_tensor(iters), dtypes.int32)
    with name_scope(None, "loop_body"):
        made = call(array_ops.placeholder(dtypes.int32, []))
    while config is not None and config._asked is not None:
        fn, values = config._asked

        def asked(i: Any) -> List[Any]:
            call(i)
            return config._asked[1]

        config._known.append(fn(*for_loop(asked, [v.dtype for v in values], iters, parallel_iterations)))
        made = call(array_ops.placeholder(dtypes.int32, []))
    leaves = nest.flatten(made)
    kinds = [kind for leaf in leaves for kind in _part_types(leaf)]
    if not kinds:
        return made
    with name_scope(None, "pfor"):
        found = _looped(lambda i: [p for leaf in nest.flatten(call(i)) for p in _parts(leaf, i)], kinds, iters, parallel_iterations)
        arrays = iter(found)
        return nest.pack_sequence_as(made, [_whole(leaf, arrays, iters) for leaf in leaves])


def _part_types(leaf: Any) -> List[Any]:
    if leaf is None:
        return []
    if isinstance(leaf, Operation):
        return [dtypes.bool_]
    if isinstance(leaf, SparseTensor):
        return [dtypes.int64, leaf.dtype, dtypes.int64]
    return [convert_to_tensor(leaf).dtype.base_dtype]


def _parts(leaf: Any, i: Any) -> List[Any]:
    """What an iteration writes of one output."""
    if leaf is None:
        return []
    if isinstance(leaf, Operation):
        with control_dependencies([leaf]):
            return [array_ops.identity(convert_to_tensor(True))]
    if isinstance(leaf, SparseTensor):
        row = array_ops.fill(array_ops.stack([array_ops.shape(leaf.indices)[0], 1]), math_ops.cast(i, dtypes.int64))
        return [array_ops.concat([row, leaf.indices], 1), leaf.values, leaf.dense_shape]
    return [leaf]


def _whole(leaf: Any, arrays: Iterator[Any], iters: Any) -> Any:
    if leaf is None:
        return None
    if isinstance(leaf, SparseTensor):
        indices, values, sizes = next(arrays).concat(), next(arrays).concat(), next(arrays).stack()
        count = array_ops.reshape(math_ops.cast(iters, dtypes.int64), [1])
        return SparseTensor(indices, values, array_ops.concat([count, math_ops.reduce_max(sizes, 0)], 0))
    made = next(arrays).stack()
    if isinstance(leaf, Operation):
        return made.op
    count = constant_value(iters)
    made.set_shape(TensorShape([None if count is None else int(count)]).concatenate(convert_to_tensor(leaf).get_shape()))
    return made


# ---- Jacobians ----


def jacobian(output: Any, inputs: Any, use_pfor: bool = True, parallel_iterations: Optional[int] = None) -> Any:
    """The derivatives of each element of output by each of inputs: output's shape followed by the input's; None where nothing depends."""
    flat = nest.flatten(inputs)
    shape, known = array_ops.shape(output), output.get_shape()
    rows = array_ops.reshape(output, [-1])
    count = rows.get_shape()[0].value

    def row(i: Any) -> Any:
        return gradients.gradients(array_ops.gather(rows, i), flat)

    count = array_ops.shape(rows)[0] if count is None else count
    made = _stacked(row, [output.dtype] * len(flat), count, use_pfor, parallel_iterations, _behind_loops(output, flat))
    found = []
    for value, given in zip(made, flat):
        if value is not None:
            value = array_ops.reshape(value, array_ops.concat([shape, array_ops.shape(value)[1:]], 0))
            value.set_shape(known.concatenate(given.get_shape()))
        found.append(value)
    return nest.pack_sequence_as(inputs, found)


def batch_jacobian(output: Any, inp: Any, use_pfor: bool = True, parallel_iterations: Optional[int] = None) -> Any:
    """The derivatives of output[b] by inp[b] for each b: [b, output's other dimensions, inp's other dimensions]."""
    known = output.get_shape()
    if not known[0].is_compatible_with(inp.get_shape()[0]):
        raise at_user_line(ValueError("Need first dimension of output shape (%s) and inp shape (%s) to match." % (known, inp.get_shape())))
    shape, inner = array_ops.shape(output), array_ops.shape(inp)
    batch = known[0].value if known[0].value is not None else shape[0]
    width = (
        known.num_elements() // batch
        if known.is_fully_defined() and known[0].value
        else gen_ops.floor_div(array_ops.size(output), gen_ops.maximum(shape[0], 1))
    )
    check = check_ops.assert_equal(shape[0], inner[0])
    with control_dependencies([check] if check is not None else []):
        rows = array_ops.reshape(output, array_ops.stack([batch, width]))

    def row(i: Any) -> Any:
        return gradients.gradients(array_ops.gather(rows, i, axis=1), inp)[0]

    made = _stacked(row, output.dtype, width, use_pfor, parallel_iterations, _behind_loops(output, [inp]))
    if made is None:
        return None
    made = array_ops.transpose(array_ops.reshape(made, array_ops.stack([width, batch, -1])), [1, 0, 2])
    made = array_ops.reshape(made, array_ops.concat([shape, inner[1:]], 0))
    made.set_shape(known.concatenate(inp.get_shape()[1:]))
    return made


def _behind_loops(output: Tensor, inputs: List[Any]) -> int:
    """How many operations lie between the inputs and the output; 0 where no loop does. The gradient of a loop can be taken in no other loop."""
    readers: Dict[Operation, List[Operation]] = {}  # by what they read
    seen, stack = {output.op}, [output.op]
    while stack:
        op = stack.pop()
        for source in {t.op for t in op.inputs}:
            readers.setdefault(source, []).append(op)
            if source not in seen:
                seen.add(source)
                stack.append(source)
    stack = [convert_to_tensor(x).op for x in inputs] + [op for op in seen if op.type.startswith("StackPop")]  # what a loop has kept for its gradient
    seen = set(stack)
    while stack:
        for op in readers.get(stack.pop(), ()):
            if op not in seen:
                seen.add(op)
                stack.append(op)
    return len(seen) if any(op.type in ("Exit", "RefExit") for op in seen) else 0


_MOST_OPERATIONS = 10_000  # rows times operations: their gradients are some times as many, which takes seconds


def _stacked(row: Any, kinds: Any, count: Any, use_pfor: bool, parallel_iterations: Optional[int], behind_loops: int) -> Any:
    """The rows of a Jacobian. Behind loops each has gradients of its own."""
    if behind_loops:
        if not isinstance(count, int) or count * behind_loops > _MOST_OPERATIONS:
            told = "%d times %d operations" % (count, behind_loops) if isinstance(count, int) else "an unknown number of times %d operations" % behind_loops
            raise at_user_line(
                NotImplementedError(
                    "The Jacobian of what a loop makes needs gradients of its own for each row, here %s, and at most %d are taken: state the "
                    "shape, use tf.gradients of the elements that matter, or a loop in Python (tf.nn.static_rnn)." % (told, _MOST_OPERATIONS)
                )
            )
        columns = list(zip(*[nest.listed(row(i)) for i in range(count)]))
        made = [None if column[0] is None else array_ops.stack([convert_to_tensor(value) for value in column]) for column in columns]
        return made if isinstance(kinds, list) else made[0]
    if use_pfor:
        return pfor(row, count, parallel_iterations)
    return for_loop(row, kinds, count, parallel_iterations)
