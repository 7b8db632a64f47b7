# SPDX-License-Identifier: Apache-2.0
"""Groups, assertions, conditionals and loops."""
from __future__ import annotations

import builtins
from typing import Any, List, Optional

import numpy as np

from millrace.framework import dtypes
from millrace.framework.composite_tensors import IndexedSlices
from millrace.framework.convert import constant_value, convert_to_tensor
from millrace.framework.graph import Operation, Tensor, get_default_graph, name_scope
from millrace.ops import array_ops, gen_ops


def no_op(name: Optional[str] = None) -> Operation:
    """An operation that does nothing; for its control inputs."""
    return gen_ops.no_op(name=name)


def _operation_of(value: Any) -> Optional[Operation]:
    if value is None:
        return None
    element = value.op if hasattr(value, "op") else value
    if isinstance(value, Operation):
        return value
    if not isinstance(element, Operation):
        raise TypeError("Expected tensor or operation, got %r" % (value,))
    return element


def group(*inputs: Any, **kwargs: Any) -> Operation:
    """An operation that is done when all its inputs are; None entries count nothing."""
    name = kwargs.pop("name", None)
    if kwargs:
        raise ValueError("Unknown keyword arguments: " + ", ".join(kwargs))
    flat: List[Operation] = []

    def collect(values: Any) -> None:
        for value in values.values() if isinstance(values, dict) else values:
            if isinstance(value, (list, builtins.tuple, dict)):
                collect(value)
            elif value is not None:
                operation = _operation_of(value)
                if operation is not None:
                    flat.append(operation)

    collect(inputs)
    graph = flat[0].graph if flat else get_default_graph()
    with graph.as_default(), name_scope(name, "group_deps") as scope, graph.control_dependencies(flat):
        return no_op(scope)


def with_dependencies(dependencies: Any, output_tensor: Any, name: Optional[str] = None) -> Any:
    """A tensor that is there after other operations are done."""
    with name_scope(name, "control_dependency", [output_tensor]) as scope:
        graph = get_default_graph()
        with graph.colocate_with(output_tensor.op), graph.control_dependencies(list(dependencies)):
            if isinstance(output_tensor, IndexedSlices):
                return IndexedSlices(array_ops.identity(output_tensor.values), output_tensor.indices, output_tensor.dense_shape)
            return array_ops.identity(convert_to_tensor(output_tensor), scope)


def tuple(tensors: Any, name: Optional[str] = None, control_inputs: Any = None) -> List[Any]:  # noqa: A001
    """The tensors, each there only after all of them are done."""
    with name_scope(name, "tuple", [t for t in tensors if isinstance(t, Tensor)]):
        gate = group(*([t.op for t in tensors if t is not None] + list(control_inputs or [])))
        return [None if t is None else with_dependencies([gate], t) for t in tensors]


def Assert(condition: Any, data: Any, summarize: Optional[int] = None, name: Optional[str] = None) -> Operation:  # noqa: N802
    """An operation that fails with `data` unless the condition is true."""
    with name_scope(name, "Assert", [condition] + [d for d in data if isinstance(d, Tensor)]) as scope:
        return gen_ops._assert(condition, [convert_to_tensor(d) for d in data], summarize=3 if summarize is None else summarize, name=scope)


def Print(input_: Any, data: Any, message: Optional[str] = None, first_n: Optional[int] = None, summarize: Optional[int] = None,  # noqa: N802
          name: Optional[str] = None) -> Tensor:
    """The first tensor; prints `data` when it is run."""
    return gen_ops._print(input_, [convert_to_tensor(d) for d in data], message=message or "", first_n=-1 if first_n is None else first_n,
                          summarize=3 if summarize is None else summarize, name=name)


def verify_tensor_all_finite(t: Any, msg: str, name: Optional[str] = None) -> Tensor:
    """The tensor; an error when it has an infinity or NaN."""
    return gen_ops.check_numerics(t, msg, name=name or "VerifyFinite")


def add_check_numerics_ops() -> Operation:
    """An operation that checks every floating-point tensor of the graph for infinities and NaNs."""
    checks = []
    for op in get_default_graph().get_operations():
        for output in op.outputs:
            if output.dtype in (dtypes.float16, dtypes.float32, dtypes.float64):
                with get_default_graph().control_dependencies(checks[-1:]):
                    checks.append(gen_ops.check_numerics(output, op.name + ":%d" % output.value_index))
    return group(*checks)


# ---- conditionals and loops ----

def smart_cond(pred: Any, true_fn: Any, false_fn: Any, name: Optional[str] = None) -> Any:
    """cond; of a condition that is known, the branch alone."""
    if isinstance(pred, (bool, int, np.bool_)):
        return true_fn() if pred else false_fn()
    value = constant_value(pred) if isinstance(pred, Tensor) else None
    if value is not None:
        return true_fn() if value else false_fn()
    return cond(pred, true_fn, false_fn, name=name)


def cond(pred: Any, true_fn: Any = None, false_fn: Any = None, strict: bool = False, name: Optional[str] = None, fn1: Any = None, fn2: Any = None) -> Any:
    """What true_fn or false_fn makes, as the condition says."""
    raise NotImplementedError("tf.cond is not provided yet: use tf.where, or decide in Python before the step.")


def case(pred_fn_pairs: Any, default: Any = None, exclusive: bool = False, strict: bool = False, name: str = "case") -> Any:
    """What the function of the first true condition makes."""
    pairs = list(pred_fn_pairs.items()) if isinstance(pred_fn_pairs, dict) else list(pred_fn_pairs)
    if not pairs:
        raise TypeError("pred_fn_pairs must be a list, tuple, or dict of (condition, function)")

    def after(rest: Any) -> Any:
        if not rest:
            return default
        (pred, fn), later = rest[0], after(rest[1:])
        return fn if later is None else lambda: cond(pred, fn, later)

    return after(pairs)()


def while_loop(cond: Any, body: Any, loop_vars: Any, shape_invariants: Any = None, parallel_iterations: int = 10, back_prop: bool = True,
               swap_memory: bool = False, name: Optional[str] = None, maximum_iterations: Any = None, return_same_structure: bool = False) -> Any:
    """Repeats body while cond is true."""
    raise NotImplementedError("tf.while_loop is not provided yet: unroll the loop in Python.")
