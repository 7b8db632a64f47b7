# SPDX-License-Identifier: Apache-2.0
"""Gradients. The walk and the gradients of ops are the library's; here are Python's ways to ask for them."""

from __future__ import annotations

import inspect
import threading
from typing import Any, Callable, Dict, List, Optional

import millrace._core as _core
from millrace import tf_logging
from millrace.framework import dtypes, effects, nest
from millrace.framework.composite_tensors import IndexedSlices
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, get_default_graph, name_scope
from millrace.ops import array_ops, control_flow_ops, functional_ops, gen_ops
from millrace.ops.variables import PartitionedVariable, Variable, global_variables, local_variables


class AggregationMethod:
    """How the gradients of several uses of a tensor are added."""

    ADD_N = 0
    DEFAULT = 0
    EXPERIMENTAL_TREE = 1
    EXPERIMENTAL_ACCUMULATE_N = 2


def _source(x: Any) -> Any:
    """The tensor to differentiate by: of a variable its reference or handle, as every use of it comes from there."""
    if isinstance(x, Variable):
        return x._ref()
    if isinstance(x, IndexedSlices):
        return x.values
    return convert_to_tensor(x)


def _gradient(value: Any) -> Any:
    return IndexedSlices(*value) if isinstance(value, tuple) else value


def gradients(
    ys: Any,
    xs: Any,
    grad_ys: Any = None,
    name: str = "gradients",
    colocate_gradients_with_ops: bool = False,
    gate_gradients: bool = False,
    aggregation_method: Optional[int] = None,
    stop_gradients: Any = None,
    unconnected_gradients: Any = None,
) -> List[Any]:
    """The gradients of the sum of ys with respect to each x: tensors, IndexedSlices, or None (unconnected_gradients: zeros) where ys do not
    depend on it."""
    kind = getattr(unconnected_gradients, "value", unconnected_gradients) or "none"
    if kind not in ("none", "zero"):
        raise at_user_line(ValueError("Unknown value for unconnected_gradients: %r" % (unconnected_gradients,)))
    made = _gradients(ys, xs, grad_ys, name, colocate_gradients_with_ops, gate_gradients, aggregation_method, stop_gradients)
    if kind == "none":
        return made
    return [array_ops.zeros_like(convert_to_tensor(x)) if g is None else g for g, x in zip(made, nest.listed(xs))]


def _gradients(
    ys: Any, xs: Any, grad_ys: Any, name: str, colocate_gradients_with_ops: bool, gate_gradients: bool, aggregation_method: Optional[int], stop_gradients: Any
) -> List[Any]:
    ys, xs = nest.listed(ys), nest.listed(xs)
    flat = [v for x in xs for v in (x._get_variable_list() if isinstance(x, PartitionedVariable) else [x])]
    targets = [y.values if isinstance(y, IndexedSlices) else convert_to_tensor(y) for y in ys]
    incoming = [] if grad_ys is None else nest.listed(grad_ys)
    if incoming and len(incoming) != len(targets):
        raise at_user_line(ValueError("Passed %d grad_ys for %d ys" % (len(incoming), len(targets))))
    for y, given in zip(targets, incoming or [None] * len(targets)):
        if given is None and y.dtype.is_complex:
            raise at_user_line(TypeError("Gradients of complex tensors must set grad_ys (y.dtype = %r)" % y.dtype))
    kept = [i for i, y in enumerate(targets) if y.dtype.is_floating or y.dtype.is_complex or y.dtype.base_dtype in (dtypes.resource, dtypes.variant)]
    if len(kept) < len(targets):
        other = next(y for i, y in enumerate(targets) if i not in kept)
        tf_logging.warn("The dtype of the target tensor must be floating (e.g. tf.float32) when calling tf.gradients, got %r", other.dtype)
        targets, incoming = [targets[i] for i in kept], [incoming[i] for i in kept] if incoming else []
        if not targets:
            return [None] * len(xs)
    graph = targets[0].graph if targets else get_default_graph()
    current = get_default_graph()
    if current.building_function and any(y.graph is current for y in targets):
        graph, targets = current, [y if y.graph is current else current._capture(y) for y in targets]
    sources = [_source(x) for x in flat]
    if graph.building_function:
        sources = [s if s.graph is graph else _within_function(graph, x, s) for x, s in zip(flat, sources)]
    with graph.as_default(), name_scope(name, "gradients", targets) as scope:
        for i, g in enumerate(incoming):
            if g is not None:
                g = (
                    convert_to_tensor(g, name="grad_ys_%d" % i)
                    if isinstance(g, (Tensor, Variable, IndexedSlices))
                    else convert_to_tensor(g, targets[i].dtype.base_dtype, "grad_ys_%d" % i)
                )
                if g.dtype.base_dtype != targets[i].dtype.base_dtype:
                    raise at_user_line(
                        ValueError("Gradient type %s generated for tensor %s of type %s" % (g.dtype.name, targets[i].name, targets[i].dtype.name))
                    )
                incoming[i] = g
        _failed.error = None
        graph.__dict__.setdefault("_gradient_scopes", set()).add(scope)
        effects.settle(graph)
        try:
            made = _core.add_gradients(
                graph,
                scope[:-1],
                targets,
                sources,
                incoming,
                [_source(s) for s in nest.listed(stop_gradients)] if stop_gradients is not None else [],
                bool(colocate_gradients_with_ops),
                aggregation_method == 2,
            )
        except Exception as error:
            if _failed.error is None:
                raise
            raise _failed.error from error
        results = [_gradient(g) for g in made]
        if graph.__dict__.get("_defined_functions"):
            results = _through_functions(graph, scope, targets, flat, results)
        if gate_gradients:
            results = control_flow_ops.tuple(results)
    if len(flat) == len(xs):
        return results
    return _join(xs, results)


def _within_function(graph: Any, x: Any, source: Tensor) -> Tensor:
    """What stands in a function for x, whose tensor lies outside. NotImplementedError where the function reads what is computed from it outside."""
    captured = dict(graph._captured)
    if isinstance(x, Variable) and source not in captured and getattr(x, "_snapshot", None) in captured:
        source = x._snapshot
    seen = set()
    stack = [t for t in captured if t is not source]
    while stack:
        tensor = stack.pop()
        if tensor is source:
            raise at_user_line(
                NotImplementedError(
                    "the gradient in a function by '%s' outside of it, from which other tensors that the function reads are computed: make these "
                    "in the function, or take the gradient outside of it." % source.name
                )
            )
        if tensor not in seen:
            seen.add(tensor)
            outside = getattr(tensor.graph, "_captured", {})
            stack += [t for t, inside in outside.items() if inside is tensor] + list(tensor.op.inputs)
    with graph.as_default():
        return captured[source] if source in captured else gen_ops.placeholder(source.dtype.base_dtype)  # nothing depends on it


def _through_functions(graph: Any, scope: str, ys: List[Tensor], xs: List[Any], found: List[Any]) -> List[Any]:
    """Gradients that are None become those of zeros with respect to what functions between take and do not use, as TensorFlow 1 has it."""
    missing = [i for i, g in enumerate(found) if g is None]
    calls, seen, waiting = [], set(), [y.op for y in ys] if missing else []
    while waiting:
        op = waiting.pop()
        if op in seen:
            continue
        seen.add(op)
        if op.type in graph._defined_functions:
            calls.append(op)
        waiting.extend(t.op for t in op.inputs)
    outputs, ys = [t for op in calls for t in op.outputs if t.dtype.is_floating], [y for y in ys if y.dtype.is_floating]
    if not outputs or not ys:
        return found
    flowing = {t.op for t, g in zip(outputs, _core.add_gradients(graph, scope + "calls", ys, outputs, [], [], False, False)) if g is not None}
    arguments = [t for op in calls if op in flowing for t in op.inputs if t.dtype.is_floating]
    zeros = [array_ops.zeros_like(t) for t in arguments]
    sources = [_source(xs[i]) for i in missing]
    made = _core.add_gradients(graph, scope + "arguments", arguments, sources, zeros, [], False, False) if arguments else []
    for i, g in zip(missing, made):
        found[i] = _gradient(g)
    return found


def _join(xs: List[Any], results: List[Any]) -> List[Any]:
    joined, rest = [], list(results)
    for x in xs:
        if isinstance(x, PartitionedVariable):
            parts, rest = rest[: len(x)], rest[len(x) :]
            joined.append(None if any(p is None for p in parts) else array_ops.concat([convert_to_tensor(p) for p in parts], x._axis))
        else:
            joined.append(rest.pop(0))
    return joined


def hessians(
    ys: Any, xs: Any, name: str = "hessians", colocate_gradients_with_ops: bool = False, gate_gradients: bool = False, aggregation_method: Optional[int] = None
) -> List[Tensor]:
    """The second derivatives of the sum of ys with respect to each x."""
    given: Any = {"colocate_gradients_with_ops": colocate_gradients_with_ops, "gate_gradients": gate_gradients, "aggregation_method": aggregation_method}
    with name_scope(name):
        return [_hessian(ys, x, given) for x in nest.listed(xs)]


def _hessian(ys: Any, x: Any, given: Any) -> Tensor:
    value, first = convert_to_tensor(x), array_ops.reshape(gradients(ys, x, **given)[0], [-1])
    dims = value.get_shape()

    def row(i: Any) -> Tensor:
        return convert_to_tensor(gradients(first[i], x, **given)[0])

    sizes: Any
    if dims.is_fully_defined():
        rows, sizes = array_ops.stack([row(i) for i in range(dims.num_elements() or 0)]), dims.as_list() * 2
    else:
        rows = functional_ops.map_fn(row, gen_ops.range(0, array_ops.size(first), 1), value.dtype.base_dtype)
        sizes = array_ops.concat([array_ops.shape(value)] * 2, 0)
    made = array_ops.reshape(rows, sizes)
    made.set_shape(dims.concatenate(dims))
    return made


def _hessian_vector_product(ys: Any, xs: Any, v: Any) -> List[Any]:
    """The second derivatives of ys by xs times vectors of the shapes of xs."""
    if len(v) != len(xs):
        raise at_user_line(ValueError("xs and v must have the same length."))
    first = gradients(ys, xs)
    products = [gen_ops.mul(g, gen_ops.stop_gradient(part)) for g, part in zip(first, v) if g is not None]
    return gradients(products, xs)


# ---- gradients written in Python ----


_failed = threading.local()  # .error: what a gradient function raised last: the library knows its text alone


def _flows(output: Tensor) -> bool:
    """Whether gradients by an output are handed to functions, which get None for those of integers, strings and flags."""
    kind = output.dtype.base_dtype
    return kind.is_floating or kind.is_complex or kind in (dtypes.resource, dtypes.variant)


def _listed_gradients(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(op: Any, grads: List[Any]) -> List[Any]:
        with op.graph.as_default():
            try:
                result = function(op, *[_gradient(g) if _flows(out) else None for out, g in zip(op.outputs, grads)])
                return [_given(g, op, i) for i, g in enumerate(nest.listed(result))]
            except Exception as error:
                _failed.error = error
                raise

    return call


def _given(gradient: Any, op: Any, i: int) -> Any:
    """A gradient that a function gave by an input of op, as the library takes it, of the input's shape. ValueError where it has another one."""
    if isinstance(gradient, IndexedSlices):
        return gradient.values, gradient.indices, gradient.dense_shape
    if gradient is None:
        return None
    made = convert_to_tensor(gradient)
    if i >= len(op.inputs) or op.inputs[i].dtype.base_dtype == dtypes.resource:
        return made
    shape = op.inputs[i].get_shape()
    if not made.get_shape().is_compatible_with(shape):
        raise ValueError(
            "Incompatible shapes between op input and calculated input gradient.  Forward operation: %s.  Input index: %d. Original input "
            "shape: %s.  Calculated input gradient shape: %s" % (op.name, i, shape, made.get_shape())
        )
    if not made.get_shape().is_fully_defined():
        made.set_shape(shape)
    return made


class RegisterGradient:
    """Decorator: the gradient of an op, or of what gradient_override_map names, is a function of (op, grads...)."""

    def __init__(self, op_type: str) -> None:
        if not isinstance(op_type, str):
            raise at_user_line(TypeError("op_type must be a string"))
        self._op_type = op_type

    def __call__(self, function: Any) -> Any:
        if function is None:
            _core.register_gradient(self._op_type, lambda op, grads: [None] * len(op.inputs))
        else:
            try:
                _core.register_gradient(self._op_type, _listed_gradients(function))
            except Exception as error:
                if "already" in str(error):
                    raise KeyError("Registering two gradient with name '%s'!" % self._op_type) from None
                raise
        _registered[self._op_type] = function
        return function


_registered: Dict[str, Any] = {"PyFunc": None, "PyFuncStateless": None}


def registered_gradient(name: str) -> Any:
    """The function that a program registered for an op, None when it registered that there is no gradient.

    LookupError when nothing was registered here: the library may have a gradient of its own.
    """
    if name not in _registered:
        raise LookupError("No gradient defined for operation '%s'" % name)
    return _registered[name]


def NotDifferentiable(op_type: str) -> None:
    """States that nothing flows back through an op."""
    RegisterGradient(op_type)(None)


NoGradient = NotDifferentiable


def custom_gradient(f: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator: `f(*tensors)` returns (results, a function of their gradients that returns those of the tensors).

    Where the function reads resource variables, the second one takes `variables=` as well, and returns (gradients of the tensors, list of
    gradients of the variables).
    """

    def call(*args: Any, **kwargs: Any) -> Any:
        graph = get_default_graph()
        tensors = [convert_to_tensor(a) for a in args]
        inside = [gen_ops.identity(t) for t in tensors]
        known = len(graph.get_operations())
        results, backward = f(*inside, **kwargs)
        variables = _variables_read(graph, known, {t.op for t in tensors})
        parameters = inspect.signature(backward).parameters.values()
        takes_variables = any(p.name == "variables" or p.kind is p.VAR_KEYWORD for p in parameters)
        if variables and not takes_variables:
            raise at_user_line(
                TypeError("If using @custom_gradient with a function that uses variables, then grad_fn must accept a 'variables' keyword argument.")
            )
        outputs = [convert_to_tensor(r) for r in nest.listed(results)]
        name = "CustomGradient-%d" % len(graph._functions)
        graph._functions[name] = (backward, len(outputs), variables)
        if name not in _custom:
            _custom.add(name)
            RegisterGradient(name)(_custom_gradient_of)
        with graph.gradient_override_map({"IdentityN": name}):
            made = gen_ops.identity_n(outputs + tensors + [v.handle for v in variables])
        made = made[: len(outputs)]
        return made if isinstance(results, (list, tuple)) else made[0]

    return call


_custom: set[str] = set()  # the names that are registered; each graph counts its own from 0


def _variables_read(graph: Any, known: int, given: Any) -> List[Variable]:
    """The variables that the operations made since read. TypeError where one is a reference."""
    made = graph.get_operations()[known:]
    for op in made:
        if op.type in ("Variable", "VariableV2"):
            raise at_user_line(
                TypeError(
                    "All variables used by a function wrapped with @custom_gradient must be `ResourceVariable`s. Ensure that no "
                    "`variable_scope` is created with `use_resource=False`."
                )
            )
    handles = {
        t.op: None for op in made if op.type in ("ReadVariableOp", "ResourceGather") for t in op.inputs if t.op.type == "VarHandleOp" and t.op not in given
    }
    by_op = {v.op: v for v in [*global_variables(), *local_variables()]}
    return [by_op[op] for op in handles if op in by_op]


def _custom_gradient_of(op: Any, *grads: Any) -> List[Any]:
    """What the Python function of a node gives; in a graph that was read from a file, where there is none, what the node's own ops give."""
    entry = op.graph._functions.get(op.get_attr("_gradient_op_type").decode())
    if entry is None:
        return list(grads)
    backward, count, variables = entry
    if not variables:
        return [None] * count + nest.listed(backward(*grads[:count]))
    of_tensors, of_variables = backward(*grads[:count], variables=variables)
    if len(of_variables) != len(variables):
        raise at_user_line(ValueError("Must return gradient for each variable from @custom_gradient grad_fn: %d for %d" % (len(of_variables), len(variables))))
    return [None] * count + nest.listed(of_tensors) + list(of_variables)


def get_gradient_function(op: Any) -> Any:
    """The Python function that a program registered as the gradient of an operation. LookupError where there is none: the library has its own."""
    if not list(op.inputs):
        return None
    try:
        name = op.get_attr("_gradient_op_type").decode()
    except ValueError:
        name = op.type
    return registered_gradient(name)
