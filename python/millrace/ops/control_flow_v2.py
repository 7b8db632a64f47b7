# SPDX-License-Identifier: Apache-2.0
"""Conditionals and loops that are one operation each, whose branches and bodies are functions: tensorflow.python.ops.cond_v2 and while_v2.

tf.cond and tf.while_loop are these after tf.enable_control_flow_v2."""

from __future__ import annotations

import hashlib
import itertools
from typing import Any, Callable, List, Optional, Sequence, Tuple

import millrace._core as _core
from millrace.framework import dtypes, nest
from millrace.framework.composite_tensors import CompositeTensor
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.func_graph import FuncGraph, func_graph_from_py_func
from millrace.framework.function import _Function
from millrace.framework.function_def_to_graph import function_def_to_graph
from millrace.framework.graph import Graph, Operation, Tensor, get_default_graph, name_scope
from millrace.framework.tensor_shape import TensorShape
from millrace.framework.type_spec import TensorSpec
from millrace.ops import array_ops, control_flow_util, gen_ops
from millrace.ops.composite_parts import check_round, flat, invariants, packed
from millrace.ops.tensor_array_ops import TensorArray

_EXPERIMENTAL_OUTPUT_ALL_INTERMEDIATES_OVERRIDE: Optional[bool] = None  # gradients find what they need in any case


def enable_control_flow_v2() -> None:
    """Lets tf.cond and tf.while_loop make one operation each, which calls functions, from now on. Loops of TensorArrays stay operations of the graph."""
    control_flow_util.ENABLE_CONTROL_FLOW_V2 = True


def disable_control_flow_v2() -> None:
    """Lets tf.cond and tf.while_loop make switches, merges and the other operations of graphs, as at first."""
    control_flow_util.ENABLE_CONTROL_FLOW_V2 = False


def control_flow_v2_enabled() -> bool:
    """Whether enable_control_flow_v2 was called last."""
    return control_flow_util.ENABLE_CONTROL_FLOW_V2


def output_all_intermediates(state: Optional[bool]) -> None:
    """Changes nothing: gradients find what they need of a branch or a body without it."""
    global _EXPERIMENTAL_OUTPUT_ALL_INTERMEDIATES_OVERRIDE
    _EXPERIMENTAL_OUTPUT_ALL_INTERMEDIATES_OVERRIDE = state


def in_defun() -> bool:
    """Whether a function of the program is being built: branches and bodies are none."""
    graph: Any = get_default_graph()
    while isinstance(graph, _PartGraph):
        graph = graph.outer_graph
    return graph.building_function


class _PartGraph(FuncGraph):
    """The body of a branch, or of a part of a loop. Collections are those of the graph around it."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._collections = self._outer._collections


CondBranchFuncGraph = WhileCondFuncGraph = WhileBodyFuncGraph = _PartGraph


class _Part(_Function):
    """A branch, or a part of a loop, as a function."""

    def __init__(self, graph: FuncGraph, inputs: Sequence[Tensor], results: Sequence[Tensor]) -> None:
        self._body, self._types = graph, tuple(t.dtype.base_dtype for t in inputs)
        self._outputs = [t.dtype.base_dtype for t in results]
        self._grad_func = self._python_grad_func = self._shape_func = None
        self.__doc__ = None
        digest = hashlib.sha1(_core.to_function(graph, "f", list(inputs), list(results), [])).hexdigest()
        self.name = "%s_%d" % (graph.name, int(digest[:12], 16))  # equal parts have one name
        self._bytes = _core.to_function(graph, self.name, list(inputs), list(results), [])

    graph = property(lambda self: self._body, doc="Its body, a FuncGraph.")


def _built(scope: str, what: str, fn: Callable[..., Any], specs: Any = (), op_return_value: Any = None) -> FuncGraph:
    """The body of a function that takes and returns tensors."""
    name = scope.replace("/", "_") + what
    keeps = bool(get_default_graph().__dict__.get("_keeps_effects", False))
    return func_graph_from_py_func(name, fn, tuple(specs), {}, func_graph=_PartGraph(name), add_control_dependencies=keeps, op_return_value=op_return_value)


def _captured(graphs: Sequence[FuncGraph], first: int = 0) -> List[Tensor]:
    """What the bodies read from outside, as arguments of each of them; the tensors of the default graph that are given for these."""
    outside: List[Tensor] = []
    for graph in graphs:
        outside += [t for t in graph.extra_inputs if not any(t is known for known in outside)]
    for graph in graphs:
        for tensor in outside:
            graph._capture(tensor)
    return outside


def _here(tensor: Tensor) -> Tensor:
    """What stands for a tensor in the default graph."""
    graph: Any = get_default_graph()
    return tensor if tensor.graph is graph or not isinstance(graph, FuncGraph) else graph.capture(tensor)


def _waits_for(graphs: Sequence[FuncGraph]) -> List[Operation]:
    """The operations outside that those of the bodies wait for."""
    return [op for graph in graphs for op in graph.control_captures]


def _is_stateful(graph: Graph) -> bool:
    return any(op.op_def.is_stateful and op.type != "Placeholder" for op in graph.get_operations())


def _added(parts: Sequence[_Part]) -> List[str]:
    for part in parts:
        part.add_to_graph(get_default_graph())
    return [part.name for part in parts]


# ---- conditionals ----


def cond_v2(pred: Any, true_fn: Callable[[], Any], false_fn: Callable[[], Any], name: Optional[str] = "cond") -> Any:
    """tf.cond as one operation, If, or StatelessIf where no branch has a state.

    Shapes: pred [], or any other with one element; results as the branches have them, what differs unknown.
    Raises: TypeError when pred is a Python bool, or the branches return other structures or types.
    """
    if isinstance(pred, bool):
        raise at_user_line(TypeError("pred must not be a Python bool"))
    with name_scope(name or "cond") as scope:
        pred = _here(convert_to_tensor(pred, name="pred"))
        if pred.shape.ndims != 0:
            pred = array_ops.squeeze(pred)
        made: List[Any] = []
        graphs = [_built(scope, what, _branch(fn, made), op_return_value=pred) for fn, what in ((true_fn, "true"), (false_fn, "false"))]
        _check_same(graphs, made)
        outside = _captured(graphs)
        parts = [_Part(graph, [graph._captured[t] for t in outside], graph.outputs) for graph in graphs]
        shapes = [one.shape.most_specific_compatible_shape(other.shape) for one, other in zip(*(graph.outputs for graph in graphs))]
        call = gen_ops._if if any(map(_is_stateful, graphs)) else gen_ops.stateless_if
        then, otherwise = _added(parts)
        with get_default_graph().control_dependencies(_waits_for(graphs)):
            results = call(pred, [_here(t) for t in outside], parts[0]._outputs, then, otherwise, output_shapes=shapes, name=scope)
        if isinstance(results, Operation):
            return results
        return packed(made[0], _identities(nest.listed(results), shapes, graphs))


def _branch(fn: Callable[[], Any], made: List[Any]) -> Callable[[], Any]:
    """The tensors of what a branch returns, which `made` gets as it is."""

    def leaves() -> List[Any]:
        made.append(fn())
        return [] if made[-1] is None else [v if isinstance(v, Operation) else convert_to_tensor(v) for v in flat(made[-1])]

    return leaves


def _check_same(graphs: Sequence[FuncGraph], made: Sequence[Any]) -> None:
    """Raises TypeError unless both branches return the same structure of the same types."""
    try:
        nest.assert_same_structure(made[0], made[1], expand_composites=True)
        differ = [(a, b) for a, b in zip(*(g.outputs for g in graphs)) if a.dtype.base_dtype != b.dtype.base_dtype]
        detail = "" if not differ else "%s and %s have different types" % differ[0]
    except (ValueError, TypeError) as error:
        detail = str(error)
    if detail:
        raise at_user_line(
            TypeError(
                "true_fn and false_fn arguments to tf.cond must have the same number, type, and overall structure of return values.\n\n"
                "true_fn output: %s\nfalse_fn output: %s\n\nError details:\n%s" % (made[0], made[1], detail)
            )
        )


def _identities(results: Sequence[Tensor], shapes: Sequence[TensorShape], graphs: Sequence[FuncGraph], first: int = 0) -> List[Tensor]:
    """The results of a call with their shapes, each through an operation of its own, whose name no operation of the bodies has: where these are
    put in the place of the call, theirs begin with its name."""
    taken = {op.name for graph in graphs for op in graph.get_operations()}
    names = (name for name in ("Identity%s" % ("_%d" % i if i else "") for i in itertools.count(first)) if name not in taken)
    for result, shape in zip(results, shapes):
        result.set_shape(shape)
    return [array_ops.identity(result, next(names)) for result in results]


def get_func_graphs(op: Operation) -> Tuple[Any, Any]:
    """The bodies of the branches of an If."""
    return _get_graph(op, "then_branch"), _get_graph(op, "else_branch")


# ---- loops ----


def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Any,
    shape_invariants: Any = None,
    parallel_iterations: int = 10,
    maximum_iterations: Any = None,
    name: Optional[str] = None,
    return_same_structure: bool = True,
    back_prop: bool = True,
) -> Any:
    """tf.while_loop as one operation, While, or StatelessWhile where neither function has a state.

    Shapes: cond gives one bool; body as many values as it takes, of their types, and of their shapes unless shape_invariants says.
    Raises: ValueError when a shape or the number of values changes; TypeError when a type does.
    """
    if not isinstance(loop_vars, (list, tuple)):
        loop_vars = [loop_vars]
    leaves = [v if isinstance(v, (TensorArray, CompositeTensor)) else convert_to_tensor(v) for v in nest.flatten(loop_vars)]
    structure = nest.pack_sequence_as(loop_vars, leaves)
    start = [_here(convert_to_tensor(v)) for v in flat(structure)]
    shapes = _shapes(start, invariants(shape_invariants, structure))
    if not back_prop:
        start = [gen_ops.stop_gradient(t) if t.dtype.is_floating else t for t in start]
    count = 0 if maximum_iterations is None else 2  # arguments before those of the program: how many rounds were, and may be
    with name_scope(name or "while") as scope:
        rounds = [_here(convert_to_tensor(v, dtypes.int32)) for v in (0, maximum_iterations)][:count] if count else []
        specs = [TensorSpec(shape, t.dtype.base_dtype, "arg") for t, shape in zip([*rounds, *start], [TensorShape([])] * count + shapes)]
        latest: List[Any] = []
        graphs = [_built(scope, "cond", _condition(cond, structure, count), specs), _built(scope, "body", _step(body, structure, count, latest), specs)]
        _check_round(start, shapes, graphs[1].outputs[count:])
        outside = _captured(graphs)
        arguments = [graph.own_inputs + [graph._captured[t] for t in outside] for graph in graphs]
        parts = [_Part(graphs[0], arguments[0], graphs[0].outputs), _Part(graphs[1], arguments[1], graphs[1].outputs + arguments[1][len(specs) :])]
        call = gen_ops._while if any(map(_is_stateful, graphs)) else gen_ops.stateless_while
        around = [_here(t) for t in outside]
        known = [TensorShape([])] * count + shapes + [t.shape for t in around]
        goes_on, one_round = _added(parts)
        with get_default_graph().control_dependencies(_waits_for(graphs)):
            results = call([*rounds, *start, *around], goes_on, one_round, output_shapes=known, parallel_iterations=parallel_iterations, name=scope)
        results = nest.listed(results)
        values = _identities(results[count : count + len(start)], shapes, graphs, 2)  # TensorFlow counts the rounds too
    last = nest.pack_sequence_as(structure, nest.flatten(packed(latest[0], values)))
    return last if return_same_structure or len(structure) > 1 else nest.flatten(last)[0] if not isinstance(last[0], (list, tuple, dict)) else last[0]


def _shapes(start: Sequence[Tensor], sizes: Any) -> List[TensorShape]:
    """The shapes of a loop's variables: sizes are as of composite_parts.invariants."""
    if sizes is None:
        return [t.shape for t in start]
    return [t.shape if s is None else TensorShape(None if s == -1 else [None if d == -1 else d for d in s]) for t, s in zip(start, sizes)]


def _condition(cond: Callable[..., Any], structure: Any, count: int) -> Callable[..., Any]:
    def condition(*args: Any) -> Any:
        goes_on = convert_to_tensor(cond(*packed(structure, args[count:])))
        if goes_on.shape.ndims != 0:
            goes_on = array_ops.squeeze(goes_on)
        return gen_ops.logical_and(gen_ops.less(args[0], args[1]), goes_on) if count else goes_on

    return condition


def _step(body: Callable[..., Any], structure: Any, count: int, latest: List[Any]) -> Callable[..., Any]:
    def step(*args: Any) -> List[Any]:
        result = body(*packed(structure, args[count:]))
        if len(structure) == 1 and not (isinstance(result, (list, tuple)) and not hasattr(result, "_fields") and len(result) == 1):
            result = [result]
        latest.append(result)
        nest.assert_same_structure(list(structure), list(result), check_types=False)
        wanted = [t.dtype for t in args[count:]]
        leaves = [v if isinstance(v, Tensor) else convert_to_tensor(v, t) for v, t in zip(flat(result), wanted)]
        return [args[0] + 1, args[1], *leaves] if count else leaves

    return step


def _check_round(start: Sequence[Tensor], shapes: Sequence[TensorShape], results: Sequence[Tensor]) -> None:
    """Raises where a variable's type is another after a round, or its shape says less."""
    for before, after in zip(start, results):
        if before.dtype.base_dtype != after.dtype.base_dtype:
            raise at_user_line(
                TypeError(
                    "Loop var %s enters the loop with type %s but has type %s after 1 iteration."
                    % (before.name, before.dtype.base_dtype, after.dtype.base_dtype)
                )
            )
    check_round(start, shapes, results)


def _get_graph(op: Operation, attribute: str) -> Any:
    """The body of a function that an operation names in an attribute."""
    name = op.get_attr(attribute).name
    function = op.graph.__dict__.get("_defined_functions", {}).get(name)
    if function is not None:
        return function._body
    (definition,) = (f for f in op.graph.as_graph_def().library.function if f.signature.name == name)
    return function_def_to_graph(definition)


# ---- what tf.cond and tf.while_loop are with these ----


def _cond_of_program(pred: Any, true_fn: Any, false_fn: Any, name: Optional[str]) -> Any:
    return cond_v2(pred, true_fn, false_fn, name)


control_flow_util.functional.update(cond=_cond_of_program, while_loop=while_loop)
