# SPDX-License-Identifier: Apache-2.0
"""Groups, assertions, conditionals and loops."""
from __future__ import annotations

import builtins
from typing import Any, List, Optional

import numpy as np

import millrace._core as _core
from millrace.framework import dtypes, nest
from millrace.framework.composite_tensors import IndexedSlices, SparseTensor
from millrace.framework.convert import convert_to_tensor
from millrace.framework.static_values import constant_value
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Operation, Tensor, get_default_graph, name_scope
from millrace.framework.tensor_shape import shape_list
from millrace.ops import array_ops, gen_ops
from millrace.ops.tensor_array_ops import TensorArray


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
        raise at_user_line(TypeError("Expected tensor or operation, got %r" % (value,)))
    return element


def group(*inputs: Any, **kwargs: Any) -> Operation:
    """An operation that is done when all its inputs are; None entries count nothing."""
    name = kwargs.pop("name", None)
    if kwargs:
        raise at_user_line(ValueError("Unknown keyword arguments: " + ", ".join(kwargs)))
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
        if not isinstance(output_tensor, IndexedSlices):
            output_tensor = convert_to_tensor(output_tensor)
        with graph.colocate_with(output_tensor.op), graph.control_dependencies(list(dependencies)):
            if isinstance(output_tensor, IndexedSlices):
                return IndexedSlices(array_ops.identity(output_tensor.values), output_tensor.indices, output_tensor.dense_shape)
            return array_ops.identity(convert_to_tensor(output_tensor), scope)


def tuple(tensors: Any, name: Optional[str] = None, control_inputs: Any = None) -> List[Any]:
    """The tensors, each there only after all of them are done."""
    with name_scope(name, "tuple", [t for t in tensors if isinstance(t, Tensor)]):
        gate = group(*([t.op for t in tensors if t is not None] + list(control_inputs or [])))
        return [None if t is None else with_dependencies([gate], t) for t in tensors]


def Assert(condition: Any, data: Any, summarize: Optional[int] = None, name: Optional[str] = None) -> Operation:
    """An operation that fails with `data` unless the condition is true."""
    with name_scope(name, "Assert", [condition] + [d for d in data if isinstance(d, Tensor)]) as scope:
        return gen_ops._assert(condition, [convert_to_tensor(d) for d in data], summarize=3 if summarize is None else summarize, name=scope)


def Print(input_: Any, data: Any, message: Optional[str] = None, first_n: Optional[int] = None, summarize: Optional[int] = None,
          name: Optional[str] = None) -> Tensor:
    """The first tensor; prints `data` when it is run."""
    return gen_ops._print(input_, [convert_to_tensor(d) for d in data], message=message or "", first_n=-1 if first_n is None else first_n,
                          summarize=3 if summarize is None else summarize, name=name)


def verify_tensor_all_finite(t: Any, msg: str, name: Optional[str] = None) -> Tensor:
    """The tensor; an error when it has an infinity or NaN."""
    return gen_ops.check_numerics(t, msg, name=name or "VerifyFinite")


def add_check_numerics_ops() -> Operation:
    """An operation that checks every floating-point tensor of the graph for infinities and NaNs."""
    checks: List[Tensor] = []
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


def cond(pred: Any, true_fn: Any = None, false_fn: Any = None, strict: bool = False, name: Optional[str] = None, fn1: Any = None,
         fn2: Any = None) -> Any:
    """What true_fn or false_fn makes, as the condition says; both must make the same structure."""
    true_fn, false_fn = (fn1 if true_fn is None else true_fn), (fn2 if false_fn is None else false_fn)
    for fn, what in ((true_fn, "true_fn"), (false_fn, "false_fn")):
        if not callable(fn):
            raise at_user_line(TypeError("%s must be callable." % what))
    if isinstance(pred, bool):
        raise at_user_line(TypeError("pred must not be a Python bool"))
    pred = convert_to_tensor(pred, name="pred")
    made: List[Any] = []

    def branch(fn: Any) -> Any:
        def build(unused: Any) -> List[Any]:
            result = fn()
            if result is None:
                result = no_op()
            made.append(result)
            return [v if isinstance(v, Operation) else _leaf(v) for v in _flat(result)]
        return build

    values = _core.cond(pred.graph, pred.graph.unique_name(name or "cond"), pred, branch(true_fn), branch(false_fn))
    first, second = made[0], made[1]
    if len(_flat(first)) != len(_flat(second)):
        raise at_user_line(ValueError("true_fn and false_fn must return the same number of outputs: %r and %r" % (first, second)))
    structure = first
    if isinstance(structure, (list, builtins.tuple)) and len(structure) == 1 and not strict and not hasattr(structure, "_fields"):
        return _packed(structure, values)[0]
    return _packed(structure, values)


def _flat(value: Any) -> List[Any]:
    """The tensors of a structure; of TensorArrays, SparseTensors and IndexedSlices those that they are made of."""
    leaves: List[Any] = []
    for leaf in nest.flatten(value):
        leaves.extend(_pieces(leaf))
    return leaves


def _pieces(leaf: Any) -> List[Any]:
    if isinstance(leaf, TensorArray):
        return [leaf.flow]
    if isinstance(leaf, SparseTensor):
        return [leaf.indices, leaf.values, leaf.dense_shape]
    if isinstance(leaf, IndexedSlices):
        return [leaf.values, leaf.indices] + ([leaf.dense_shape] if leaf.dense_shape is not None else [])
    return [leaf]


def _leaf(value: Any) -> Any:
    return convert_to_tensor(value)


def _packed(structure: Any, tensors: Any) -> Any:
    """The structure with other tensors."""
    rest = list(tensors)
    leaves: List[Any] = []
    for leaf in nest.flatten(structure):
        count = len(_pieces(leaf))
        taken, rest = rest[:count], rest[count:]
        if isinstance(leaf, TensorArray):
            leaves.append(leaf._with_flow(taken[0]))
        elif isinstance(leaf, SparseTensor):
            leaves.append(SparseTensor(*taken))
        elif isinstance(leaf, IndexedSlices):
            leaves.append(IndexedSlices(*taken))
        else:
            leaves.append(taken[0])
    return nest.pack_sequence_as(structure, leaves)


def _pairs(pred_fn_pairs: Any, exclusive: bool) -> List[Any]:
    """(condition, function) of each. TypeError where they are something else."""
    if not isinstance(pred_fn_pairs, (list, builtins.tuple, dict)):
        raise at_user_line(TypeError("fns must be a list, tuple, or dict"))
    pairs = list(pred_fn_pairs.items()) if isinstance(pred_fn_pairs, dict) else list(pred_fn_pairs)
    if isinstance(pred_fn_pairs, dict) and not exclusive:
        pairs.sort(key=lambda pair: pair[0].name)
    if not pairs:
        raise at_user_line(TypeError("pred_fn_pairs must be a list, tuple, or dict of (condition, function)"))
    for pair in pairs:
        if not isinstance(pair, builtins.tuple):
            raise at_user_line(TypeError("Each entry in pred_fn_pairs must be a tuple"))
        if len(pair) != 2:
            raise at_user_line(ValueError("Each tuple in pred_fn_pairs must have length 2"))
        if getattr(pair[0], "dtype", None) not in (dtypes.bool_, np.bool_) and not isinstance(pair[0], bool):
            raise at_user_line(TypeError("pred must be of type bool: %s" % (getattr(pair[0], "name", pair[0]),)))
        if not callable(pair[1]):
            raise at_user_line(TypeError("fn for pred %s must be callable." % (getattr(pair[0], "name", pair[0]),)))
    return pairs


def case(pred_fn_pairs: Any, default: Any = None, exclusive: bool = False, strict: bool = False, name: str = "case") -> Any:
    """What the function of the first true condition makes. Where none is true that is what `default` makes; without one the step fails.

    exclusive: the step fails when more than one condition is true.
    """
    pairs = _pairs(pred_fn_pairs, exclusive)
    if default is not None and not callable(default):
        raise at_user_line(TypeError("default must be callable."))
    with name_scope(name, "case", [pred for pred, _ in pairs]):
        preds = [convert_to_tensor(pred, dtypes.bool_) for pred, _ in pairs]
        listed = ", ".join(pred.name for pred in preds)
        every = array_ops.stack(preds)
        checks: List[Operation] = []
        if default is None:
            text = "None of the conditions evaluated as True. Conditions: (%s), Values:" % listed
            checks.append(Assert(gen_ops.any(every, [0]), [text, every], summarize=len(preds), name="assert_true"))
        if exclusive:
            text = "More than one condition evaluated as True but exclusive=True. Conditions: (%s), Values:" % listed
            count = gen_ops.sum(gen_ops.cast(every, dtypes.int32), [0])
            checks.append(Assert(gen_ops.less(count, 2), [text, every], summarize=len(preds), name="assert_one"))
        if checks:
            with get_default_graph().control_dependencies(checks):
                preds = [array_ops.identity(pred) for pred in preds]
        functions = [fn for _, fn in pairs]
        if default is None:  # the last one is true when no other is
            default, preds, functions = functions[-1], preds[:-1], functions[:-1]
            if not preds:
                with get_default_graph().control_dependencies(checks):
                    return _after(checks, default())

        def from_number(i: int) -> Any:
            if i == len(preds):
                return default()
            return cond(preds[i], functions[i], lambda: from_number(i + 1), strict=strict)

        return from_number(0)


def _after(operations: List[Operation], value: Any) -> Any:
    """The tensors of a structure, there only after some operations."""
    leaves = [with_dependencies(operations, v) for v in _flat(value)]
    return _packed(value, leaves)


def while_loop(cond: Any, body: Any, loop_vars: Any, shape_invariants: Any = None, parallel_iterations: int = 10, back_prop: bool = True,
               swap_memory: bool = False, name: Optional[str] = None, maximum_iterations: Any = None, return_same_structure: bool = False) -> Any:
    """Repeats body while cond is true; the last values of the variables. Shapes stay as they begin unless shape_invariants says."""
    if not callable(cond) or not callable(body):
        raise at_user_line(TypeError("cond and body must be callable."))
    if not loop_vars:
        raise at_user_line(ValueError("No loop variables provided"))
    if parallel_iterations < 1:
        raise at_user_line(TypeError("parallel_iterations must be a positive integer."))
    if not isinstance(loop_vars, (list, builtins.tuple)):
        loop_vars = [loop_vars]
    structure = nest.pack_sequence_as(loop_vars, [v if _is_composite(v) else convert_to_tensor(v) for v in nest.flatten(loop_vars)])
    start = [v if isinstance(v, Tensor) else convert_to_tensor(v) for v in _flat(structure)]
    latest: List[Any] = [structure]

    def condition(values: List[Any]) -> List[Any]:
        return [convert_to_tensor(cond(*_packed(structure, values)))]

    def step(values: List[Any]) -> List[Any]:
        given = _packed(structure, values)
        result = body(*given)
        if len(structure) == 1 and not (isinstance(result, (list, builtins.tuple)) and not hasattr(result, "_fields") and len(result) == 1):
            result = [result]
        flat = _flat(result)
        if len(flat) != len(start):
            raise at_user_line(ValueError("body must return the same number of elements as loop_vars: the loop has %d, and the body returned %d"
                                          % (len(start), len(flat))))
        latest[0] = result
        return [convert_to_tensor(v, start[i].dtype.base_dtype if not isinstance(v, Tensor) else None) for i, v in enumerate(flat)]

    graph = start[0].graph if start else get_default_graph()
    scope = graph.unique_name(name or "while")
    limit = None if maximum_iterations is None else convert_to_tensor(maximum_iterations)
    values = _core.while_loop(graph, scope, start, condition, step, parallel_iterations, not back_prop, bool(swap_memory), limit,
                              _invariants(shape_invariants, structure))
    packed = _packed(latest[0] if len(_flat(latest[0])) == len(values) and _same_kind(latest[0], structure) else structure, values)
    if len(packed) == 1 and not return_same_structure:
        return packed[0]
    return packed


def _same_kind(first: Any, second: Any) -> bool:
    try:
        nest.assert_same_structure(first, second, check_types=False)
    except ValueError:
        return False
    return isinstance(first, type(second))


def _is_composite(value: Any) -> bool:
    return isinstance(value, (TensorArray, SparseTensor, IndexedSlices))


def _invariants(shapes: Any, structure: Any) -> Any:
    if shapes is None:
        return None
    leaves = nest.flatten(structure)
    given = nest.flatten_up_to(structure, shapes)
    made: List[Any] = []
    for leaf, shape in zip(leaves, given):
        if _is_composite(leaf):
            made.extend([None] * len(_pieces(leaf)))
            continue
        dims = shape_list(shape)
        made.append(-1 if dims is None else dims)
    return made


def switch(data: Any, pred: Any, dtype: Any = None, name: Optional[str] = None) -> Any:
    """(output when pred is false, output when it is true): one of them is dead, and so is what depends on it, up to a merge."""
    return gen_ops.switch(convert_to_tensor(data, dtype), pred, name=name)


def merge(inputs: Any, name: Optional[str] = None) -> Any:
    """(the input that is not dead, its number)."""
    return gen_ops.merge([convert_to_tensor(i) for i in inputs], name=name)


def set_shapes_for_outputs(op: Any) -> None:
    """Nothing to do: shapes are inferred when an operation is made."""
