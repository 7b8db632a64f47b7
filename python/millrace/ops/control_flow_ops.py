# SPDX-License-Identifier: Apache-2.0
"""Groups, assertions, conditionals and loops."""

from __future__ import annotations

import builtins
import contextlib
from typing import Any, Callable, Dict, List, Optional

import numpy as np

import millrace._core as _core
from millrace.framework import dtypes, effects, nest
from millrace.framework.composite_tensors import IndexedSlices, SparseTensor
from millrace.framework.convert import convert_to_tensor
from millrace.framework.static_values import folded_value
from millrace.framework.errors import at_user_line
from millrace.framework.graph import GraphKeys, Operation, Tensor, get_default_graph, name_scope
from millrace.ops import array_ops, control_flow_util, gen_ops
from millrace.ops.composite_parts import (
    check_round,
    check_starts,
    flat as _flat,
    invariants as _invariants,
    is_composite as _is_composite,
    packed as _packed,
    pieces as _pieces,
    row_numbers,
)
from millrace.ops.dialects import given
from millrace.ops.tensor_array_ops import TensorArray
from millrace.ops.control_flow_contexts import BuiltBranches, CondContext, ControlFlowContext, WhileContext  # noqa: F401


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
    by_device: Dict[str, List[Operation]] = {}
    for operation in flat:
        by_device.setdefault(operation.device, []).append(operation)

    def after(operations: List[Operation], device: str, name: Optional[str] = None) -> Operation:
        with graph.control_dependencies(operations), graph.device(device) if device else contextlib.nullcontext():
            return no_op(name)

    with graph.as_default(), name_scope(name, "group_deps") as scope:
        if len(by_device) < 2:
            return after(flat, flat[0].device if flat else "", scope)
        gates = [after(by_device[device], device) for device in sorted(by_device)]  # one for each device, so that one signal crosses
        return after(gates, "", scope)


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
    with name_scope(name, "Assert", [condition] + [d for d in data if isinstance(d, Tensor)]):
        for d in data:
            convert_to_tensor(d)  # what is no tensor TensorFlow states twice
        return gen_ops._assert(condition, data, summarize=3 if summarize is None else summarize, name="Assert")


def Print(
    input_: Any, data: Any, message: Optional[str] = None, first_n: Optional[int] = None, summarize: Optional[int] = None, name: Optional[str] = None
) -> Tensor:
    """The first tensor; prints `data` when it is run."""
    return gen_ops._print(
        input_,
        [convert_to_tensor(d) for d in data],
        message=message or "",
        first_n=-1 if first_n is None else first_n,
        summarize=3 if summarize is None else summarize,
        name=name,
    )


def verify_tensor_all_finite(t: Any = None, msg: Optional[str] = None, name: Optional[str] = None, x: Any = None, message: Optional[str] = None) -> Tensor:
    """The tensor; an error with a message when it has an infinity or NaN."""
    t, msg = given("verify_tensor_all_finite", t=t, x=x), given("verify_tensor_all_finite", msg=msg, message=message)
    return gen_ops.check_numerics(t, msg, name=name or "VerifyFinite")


def add_check_numerics_ops() -> Operation:
    """An operation that checks every floating-point tensor of the graph for infinities and NaNs."""
    checks: List[Tensor] = []
    for op in get_default_graph().get_operations():
        if op.type in ("Switch", "RefSwitch", "Merge", "RefMerge", "Enter", "RefEnter"):
            raise at_user_line(
                ValueError("`tf.add_check_numerics_ops() is not compatible with TensorFlow control flow operations such as `tf.cond()` or `tf.while_loop()`.")
            )
        for output in op.outputs:
            if output.dtype in (dtypes.float16, dtypes.float32, dtypes.float64):
                with get_default_graph().control_dependencies(checks[-1:]):
                    checks.append(gen_ops.check_numerics(output, op.name + ":%d" % output.value_index))
    return group(*checks)


# ---- conditionals and loops ----


def smart_constant_value(pred: Any) -> Any:
    """What a condition is, where that is known: a bool, 0, 1, or a tensor whose value is; else None."""
    if isinstance(pred, Tensor):
        return folded_value(pred)
    if isinstance(pred, (bool, int, np.bool_)) and pred in (0, 1):
        return bool(pred)
    if hasattr(pred, "_as_graph_element"):  # a variable
        return None
    raise at_user_line(TypeError("`pred` must be a Tensor, or a Python bool, or 1 or 0. Found instead: %s" % type(pred)))


def smart_cond(pred: Any, true_fn: Any = None, false_fn: Any = None, name: Optional[str] = None) -> Any:
    """cond; of a condition that is known, the branch alone."""
    for fn, what in ((true_fn, "true_fn"), (false_fn, "false_fn")):
        if not callable(fn):
            raise at_user_line(TypeError("`%s` must be callable." % what))
    value = smart_constant_value(pred)
    return cond(pred, true_fn, false_fn, name=name) if value is None else true_fn() if value else false_fn()


def smart_case(pred_fn_pairs: Any, default: Any = None, exclusive: bool = False, name: str = "smart_case") -> Any:
    """case; of conditions that are known, those that hold alone. Behind one that is known to hold no other counts."""
    open_pairs: List[Any] = []
    for pred, fn in pred_fn_pairs.items() if isinstance(pred_fn_pairs, dict) else pred_fn_pairs:
        value = smart_constant_value(pred)
        if value is None:
            open_pairs.append((pred, fn))
        elif value:
            default = fn
            break
    if open_pairs or default is None:
        return case(open_pairs, default, exclusive, name=name)
    return default()


def cond(pred: Any, true_fn: Any = None, false_fn: Any = None, strict: bool = False, name: Optional[str] = None, fn1: Any = None, fn2: Any = None) -> Any:
    """What true_fn or false_fn makes, as the condition says; both must make the same structure.

    Shapes: pred [] of bool; the shapes of both branches, where they differ unknown.
    Raises: TypeError when a branch is no function or pred a Python bool; ValueError when the structures or types differ.
    """
    for new, old, what in ((true_fn, fn1, "true_fn"), (false_fn, fn2, "false_fn")):
        if new is not None and old is not None:
            raise at_user_line(TypeError("cond(): %s and %s may not be set simultaneously." % (what, "fn1" if what == "true_fn" else "fn2")))
    true_fn, false_fn = (fn1 if true_fn is None else true_fn), (fn2 if false_fn is None else false_fn)
    for fn, what in ((true_fn, "true_fn"), (false_fn, "false_fn")):
        if not callable(fn):
            raise at_user_line(TypeError("%s must be callable." % what))
    if isinstance(pred, bool):
        raise at_user_line(TypeError("pred must not be a Python bool"))
    if control_flow_util.ENABLE_CONTROL_FLOW_V2:
        return control_flow_util.functional["cond"](pred, true_fn, false_fn, name)
    pred = _within(get_default_graph(), convert_to_tensor(pred, name="pred"))
    made: List[Any] = []
    contexts = BuiltBranches(pred.graph)

    def branch(fn: Any, what: str) -> Any:
        def build(unused: Any) -> List[Any]:
            contexts.begin()
            return _behind_summaries(leaves)

        def leaves() -> List[Any]:
            since = pred.graph.version
            result = fn()
            if result is None:
                raise at_user_line(ValueError("%s must have a return value." % what))
            if not strict and isinstance(result, (list, builtins.tuple)) and len(result) == 1:
                result = result[0]
            made.append(result)
            found = [v if isinstance(v, Operation) else _within(pred.graph, convert_to_tensor(v)) for v in _flat(result)]
            for i in row_numbers(result):
                found[i] = gen_ops.cast(found[i], dtypes.int64) if found[i].dtype.base_dtype == dtypes.int32 else found[i]
            if len(made) == 2:
                _check_same_results(*made)
            return effects.waiting(found, pred.graph, since)

        return build

    try:
        values = _core.cond(pred.graph, pred.graph.unique_name(name or "cond"), pred, branch(true_fn, "true_fn"), branch(false_fn, "false_fn"))
    except BaseException:
        contexts.undo()
        raise
    contexts.end(values)
    return _packed(made[0], values)


def _behind_summaries(build: Callable[[], List[Any]]) -> List[Any]:
    """What is built for a branch or a loop's body, behind the events that it writes: nothing outside of it could run those."""
    written = get_default_graph().get_collection_ref(GraphKeys._SUMMARY_COLLECTION)
    before = len(written)
    values = build()
    inside = written[before:]
    del written[before:]
    return effects.behind(values, [tensor.op for tensor in inside])


def _within(graph: Any, tensor: Tensor) -> Tensor:
    """What stands for a tensor in a graph: where that is the body of a function, the argument for one from outside."""
    return graph._capture(tensor) if tensor.graph is not graph and getattr(graph, "_captures", False) else tensor


def _check_same_results(first: Any, second: Any) -> None:
    """Raises unless two branches return the same structure of the same kinds and types."""
    try:
        nest.assert_same_structure(first, second)
    except TypeError as error:
        raise at_user_line(TypeError("Incompatible return types of true_fn and false_fn: %s" % error)) from None
    except ValueError as error:
        raise at_user_line(ValueError("Incompatible return values of true_fn and false_fn: %s" % error)) from None
    for one, other in zip(nest.flatten(first), nest.flatten(second)):
        kinds = [type(v) if _is_composite(v) else None for v in (one, other)]
        if kinds[0] is not kinds[1] or len(_pieces(one)) != len(_pieces(other)):
            raise at_user_line(TypeError("true_fn and false_fn must return the same kinds of values: %r and %r" % (one, other)))


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
            checks.append(Assert(gen_ops.any(every, [0]), ["Input error:", text, every], summarize=len(preds), name="assert_true"))
        if exclusive:
            text = "More than one condition evaluated as True but exclusive=True. Conditions: (%s), Values:" % listed
            count = gen_ops.sum(gen_ops.cast(every, dtypes.int32), [0])
            checks.append(Assert(gen_ops.less(count, 2), ["Input error:", text, every], summarize=len(preds), name="assert_one"))
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


def while_loop(
    cond: Any,
    body: Any,
    loop_vars: Any,
    shape_invariants: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: Optional[str] = None,
    maximum_iterations: Any = None,
    return_same_structure: bool = False,
) -> Any:
    """Repeats body while cond is true; the last values of the variables. Shapes stay as they begin unless shape_invariants says.

    Shapes: cond gives [] of bool; body gives as many values as it takes, of their types.
    Raises: ValueError when a shape or the number of values changes; TypeError when cond or body is no function.
    """
    for fn, what in ((cond, "cond"), (body, "body")):
        if not callable(fn):
            raise at_user_line(TypeError("%s must be callable." % what))
    if not loop_vars:
        raise at_user_line(ValueError("No loop variables provided"))
    if parallel_iterations < 1:
        raise at_user_line(TypeError("parallel_iterations must be a positive integer."))
    if not isinstance(loop_vars, (list, builtins.tuple)):
        loop_vars = [loop_vars]
    if control_flow_util.ENABLE_CONTROL_FLOW_V2 and not any(isinstance(v, TensorArray) for v in nest.flatten(loop_vars)):
        return control_flow_util.functional["while_loop"](
            cond, body, loop_vars, shape_invariants, parallel_iterations, maximum_iterations, name, return_same_structure, back_prop
        )
    with name_scope(name, "while", nest.flatten(loop_vars)) as scope:
        limit = None if maximum_iterations is None else convert_to_tensor(maximum_iterations, name="maximum_iterations")
        structure = nest.pack_sequence_as(loop_vars, [v if _is_composite(v) else convert_to_tensor(v) for v in nest.flatten(loop_vars)])
    start = [_within(get_default_graph(), convert_to_tensor(v)) for v in _flat(structure)]
    latest: List[Any] = [structure]
    sizes = _invariants(shape_invariants, structure)
    check_starts(start, sizes)

    graph = start[0].graph if start else get_default_graph()
    with graph.as_default():
        context = WhileContext(limit, parallel_iterations, back_prop, bool(swap_memory))

    def condition(values: List[Any]) -> List[Any]:
        context._condition_begins(values)
        goes_on = _within(graph, convert_to_tensor(cond(*_packed(structure, values))))
        if goes_on.dtype.base_dtype != dtypes.bool_:
            raise at_user_line(TypeError("the condition of a loop must be bool, got %s from %s" % (goes_on.dtype.name, goes_on.name)))
        return [goes_on]

    def step(values: List[Any]) -> List[Any]:
        context._body_begins(values)
        return _behind_summaries(lambda: next_values(values))

    def next_values(values: List[Any]) -> List[Any]:
        since = graph.version
        given = _packed(structure, values)
        result = body(*given)
        as_list = isinstance(result, (list, builtins.tuple)) and not hasattr(result, "_fields") and len(result) == 1
        if not nest.is_sequence_or_composite(result) or len(structure) == 1 and not as_list:
            result = [result]
        flat = _flat(result)
        if any(v is None for v in flat):
            raise at_user_line(ValueError("None values not supported."))
        nest.assert_same_structure(list(given), list(result), expand_composites=True)
        latest[0] = result
        tensors = [convert_to_tensor(v, start[i].dtype.base_dtype if not isinstance(v, Tensor) else None) for i, v in enumerate(flat)]
        check_round(start, [v.shape for v in values], tensors, [t.shape for t in start])
        return effects.waiting([_within(graph, tensor) for tensor in tensors], graph, since)

    around = graph._get_control_flow_context()
    graph._set_control_flow_context(context)
    try:
        values = _core.while_loop(graph, scope[:-1], start, condition, step, parallel_iterations, not back_prop, bool(swap_memory), limit, sizes)
    finally:
        graph._set_control_flow_context(around)
    context._loop_exits = values
    if around is None:
        graph.add_to_collection(GraphKeys.WHILE_CONTEXT, context)
    packed = _packed(latest[0] if len(_flat(latest[0])) == len(values) and _same_form(latest[0], structure) else structure, values)
    if not return_same_structure and (len(values) == 1 if maximum_iterations is None else len(structure) == 1):
        return packed[0]  # with a bound, one structure comes back as itself
    return packed


def _same_form(first: Any, second: Any) -> bool:
    try:
        nest.assert_same_structure(first, second, check_types=False)
    except ValueError:
        return False
    return True


def _mapped(op: Any, data: Any, name: Optional[str]) -> Any:
    """op(tensor, name) of a tensor, or of the parts of IndexedSlices or a SparseTensor."""
    if isinstance(data, (IndexedSlices, SparseTensor)):
        parts = {p: getattr(data, p) for p in ("values", "indices", "dense_shape")}
        return type(data)(**{p: None if t is None else op(t, name if p == "values" else p) for p, t in parts.items()})
    return op(data._ref() if hasattr(data, "_ref") and not isinstance(data, Tensor) else convert_to_tensor(data), name)


def _is_reference(data: Any) -> bool:
    return isinstance(data, Tensor) and data.dtype._is_ref_dtype


def _Identity(data: Any, name: Optional[str] = None) -> Any:
    return _mapped(lambda t, n: (gen_ops.ref_identity if _is_reference(t) else gen_ops.identity)(t, name=n), data, name)


def _Enter(
    data: Any,
    frame_name: str,
    is_constant: bool = False,
    parallel_iterations: int = 10,
    use_ref: bool = True,
    use_input_shape: bool = True,
    name: Optional[str] = None,
) -> Any:
    del use_input_shape  # of TensorFlow's own shape inference
    return _mapped(
        lambda t, n: (gen_ops.ref_enter if use_ref and _is_reference(t) else gen_ops.enter)(
            t, frame_name, is_constant=is_constant, parallel_iterations=parallel_iterations, name=n
        ),
        data,
        name,
    )


def exit(data: Any, name: Optional[str] = None) -> Any:
    """The value behind a loop of what lies in it."""
    return _mapped(lambda t, n: (gen_ops.ref_exit if _is_reference(t) else gen_ops.exit)(t, name=n), data, name)


def _NextIteration(data: Any, name: Optional[str] = None) -> Any:
    return _mapped(lambda t, n: (gen_ops.ref_next_iteration if _is_reference(t) else gen_ops.next_iteration)(t, name=n), data, name)


def _SwitchRefOrTensor(data: Any, pred: Any, name: str = "Switch") -> Any:
    return gen_ops.ref_switch(data, pred, name=name) if _is_reference(data) else switch(data, pred, name=name)


def switch(data: Any, pred: Any, dtype: Any = None, name: Optional[str] = None) -> Any:
    """(output when pred is false, output when it is true): one of them is dead, and so is what depends on it, up to a merge."""
    if not isinstance(data, IndexedSlices):
        return gen_ops.switch(convert_to_tensor(data, dtype), pred, name=name)
    with name_scope(name, "Switch", [data.values]) as scope:
        parts = [gen_ops.switch(data.values, pred, name=scope), gen_ops.switch(data.indices, pred, name="indices")]
        if data.dense_shape is not None:
            parts.append(gen_ops.switch(data.dense_shape, pred, name="dense_shape"))
    return IndexedSlices(*[p[0] for p in parts]), IndexedSlices(*[p[1] for p in parts])


def merge(inputs: Any, name: Optional[str] = None) -> Any:
    """(the input that is not dead, its number)."""
    if any(i is None for i in inputs):
        raise at_user_line(ValueError("At least one of the merge inputs is None: %s" % inputs))
    if not any(isinstance(i, (IndexedSlices, SparseTensor)) for i in inputs):
        return gen_ops.merge([convert_to_tensor(i) for i in inputs], name=name)
    kind = type(inputs[0])
    if not all(isinstance(i, kind) and len(_pieces(i)) == len(_pieces(inputs[0])) for i in inputs):
        raise at_user_line(TypeError("the inputs of merge must be of one kind: %s" % (inputs,)))
    with name_scope(name, "Merge") as scope:
        number = None
        merged = {}
        for part in ("values", "indices", "dense_shape"):
            given = [getattr(i, part) for i in inputs]
            if given[0] is None:
                continue
            if part == "indices" and any(t.dtype == dtypes.int64 for t in given):
                given = [gen_ops.cast(t, dtypes.int64) if t.dtype != dtypes.int64 else t for t in given]
            merged[part], chosen = gen_ops.merge(given, name=scope if part == "values" else part)
            number = chosen if number is None else number
    return kind(**merged), number


def set_shapes_for_outputs(op: Any) -> None:
    """Nothing to do: shapes are inferred when an operation is made."""
