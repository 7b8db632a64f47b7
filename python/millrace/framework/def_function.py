# SPDX-License-Identifier: Apache-2.0
"""tf.function, tf.contrib.eager.defun and tf.compat.v1.wrap_function: Python functions as functions of the graph, one for each kind of arguments.

A call is a node that calls the function. Python's statements on tensors become operations, unless autograph is False (millrace.autograph)."""

from __future__ import annotations

import functools
import hashlib
import inspect
import weakref
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import numpy as np

import millrace._core as _core
from millrace.framework import nest
from millrace.framework.composite_tensors import CompositeTensor
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.func_graph import FuncGraph, func_graph_from_py_func
from millrace.framework.function import _attribute, _Function, _FunctionGraph
from millrace.framework.graph import Operation, Tensor, get_default_graph, outermost_graph
from millrace.framework.type_spec import TensorSpec, TypeSpec, type_spec_from_value
from millrace.protos import definitions


def _is_value(x: Any) -> bool:
    """Whether an argument is one of the graph: others are part of what the function is."""
    return isinstance(x, (Tensor, CompositeTensor, np.ndarray, np.generic))


def _as_value(x: Any) -> Any:
    return convert_to_tensor(x) if isinstance(x, (np.ndarray, np.generic)) else x


def _spec(x: Any, name: Optional[str] = None) -> Any:
    if isinstance(x, Tensor):
        return TensorSpec(x.shape, x.dtype.base_dtype, name)
    return type_spec_from_value(x) if isinstance(x, CompositeTensor) else x


class ConcreteFunction(_Function):
    """A function of tensors of known types. Calls take tensors in the place of its placeholders."""

    _prunes = False  # whether it does what its results need alone

    def __init__(self, func_graph: FuncGraph, attrs: Any = None, arguments: Optional[List[Tensor]] = None, results: Any = None) -> None:
        """Of a part of the graph, where `arguments` and `results`, tensors of it, are given."""
        whole = arguments is None
        self._body, self._arguments = func_graph, list(func_graph.own_inputs if arguments is None else arguments)
        self.structured_outputs = func_graph.structured_outputs if whole else results
        self._given = [t for t in nest.flatten(self.structured_outputs, expand_composites=True) if t is not None]
        self._types = tuple(t.dtype.base_dtype for t in self._arguments)
        self._grad_func = self._python_grad_func = self._shape_func = None
        self.__doc__ = None
        inputs, self._results = [*self._arguments, *func_graph.extra_args], list(self._given)
        if not self._results:  # calls read something that waits for what it does
            with func_graph.as_default(), func_graph.control_dependencies(None), func_graph.control_dependencies(func_graph.control_outputs):
                self._results = [convert_to_tensor(0, name="done")]
        self._outputs = [t.dtype.base_dtype for t in self._results]
        body = None if whole and not self._prunes else _between(inputs, self._results)
        data = _core.to_function(func_graph, "f", inputs, self._results, [], body)
        self.name = "__inference_%s_%s" % (func_graph.name, hashlib.sha1(data).hexdigest()[:8])
        definition = definitions.FunctionDef.FromString(data)
        definition.signature.name = self.name
        for key, value in (attrs or {}).items():
            definition.attr[key].CopyFrom(_attribute(key, value))
        self._bytes = definition.SerializeToString()
        self._is_stateful = any(op.op_def.is_stateful and op.type != "Placeholder" for op in body or func_graph.get_operations())

    graph = property(lambda self: self._body, doc="Its body, a FuncGraph.")
    function_def = property(lambda self: self.definition, doc="Its FunctionDef.")
    inputs = property(lambda self: [*self._arguments, *self._body.extra_args], doc="The placeholders of its body, those of what it captures last.")
    outputs = property(lambda self: list(self._given), doc="The results in its body.")
    structured_input_signature = property(lambda self: self._body.structured_input_signature, doc="(arguments, keyword arguments), of tensors the specs.")
    variables = property(lambda self: self._body.variables, doc="The variables that it reads or changes.")
    trainable_variables = property(lambda self: self._body.trainable_variables, doc="Those that are trained.")
    output_dtypes = property(lambda self: nest.map_structure(lambda t: t.dtype, self.structured_outputs), doc="The types of its results.")
    output_shapes = property(lambda self: nest.map_structure(lambda t: t.shape, self.structured_outputs), doc="The shapes of its results.")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """A node that calls it: results in the structure of the Python function's; the operation where it has none."""
        names = [t.op.name for t in self._arguments]
        given = [x for x in nest.flatten(args, expand_composites=True) if _is_value(x) or not isinstance(x, (str, bytes, type(None)))]
        given += [kwargs.pop(name) for name in names[len(given) :] if name in kwargs]
        if kwargs or len(given) != len(names):
            raise at_user_line(
                TypeError(
                    "The function takes %d tensors, %s, but was given %d%s." % (len(names), names, len(given), " and %s" % sorted(kwargs) if kwargs else "")
                )
            )
        return self._call_flat(given)

    def _call_flat(self, given: Sequence[Any]) -> Any:
        from millrace.ops import gen_ops, variables

        for variable in self.trainable_variables if variables.tapes else ():
            variables.accessed(variable)
        graph = get_default_graph()
        self.add_to_graph(graph)
        tensors = [convert_to_tensor(x, t) for x, t in zip(given, self._types)] + self.captured_inputs
        if isinstance(graph, _FunctionGraph):
            tensors = [t if t.graph is graph else graph._capture(t) for t in tensors]
        call = gen_ops.stateful_partitioned_call if self._is_stateful else gen_ops.partitioned_call
        with graph.control_dependencies(self._body.control_captures):
            results = nest.listed(call(tensors, Tout=self._outputs, f=self.name, name="PartitionedFunctionCall"))
        for result, made in zip(results, self._results):
            result.set_shape(made.shape)
        if not self._given:
            return results[0].op if self.structured_outputs is None else self.structured_outputs
        rest = iter(results)
        flat = [None if t is None else next(rest) for t in nest.flatten(self.structured_outputs, expand_composites=True)]
        return nest.pack_sequence_as(self.structured_outputs, flat, expand_composites=True)


def _between(inputs: List[Tensor], outputs: List[Tensor]) -> List[Operation]:
    """The operations that the outputs need beside the inputs."""
    given, found = set(inputs), {}  # type: Any, Dict[Operation, None]
    stack = [t.op for t in outputs if t not in given]
    while stack:
        op = stack.pop()
        if op not in found:
            found[op] = None
            stack += [t.op for t in op.inputs if t not in given] + list(op.control_inputs)
    return [op for op in found if not (op.type == "Placeholder" and op.outputs[0] in given)]


class Function:
    """A Python function that becomes a function of the graph for each kind of arguments. `creates` says when it may make variables: always
    (defun), or in its first call alone (tf.function)."""

    def __init__(
        self, python_function: Callable[..., Any], name: str, input_signature: Any = None, once: bool = True, attributes: Any = None, autograph: bool = False
    ) -> None:
        functools.update_wrapper(self, python_function, updated=())
        self._autograph = autograph
        self._python_function, self._name, self._once, self._attributes = python_function, name, once, attributes
        self._signature = inspect.signature(python_function)
        if input_signature is not None and not isinstance(input_signature, (list, tuple)):
            raise at_user_line(TypeError("input_signature must be either a tuple or a list, received %s" % type(input_signature)))
        self.input_signature = None if input_signature is None else tuple(input_signature)
        if self.input_signature is not None and any(not isinstance(s, TypeSpec) for s in nest.flatten(self.input_signature)):
            raise at_user_line(
                TypeError("Invalid input_signature %s; input_signature must be a possibly nested sequence of TensorSpec objects." % (input_signature,))
            )
        self._made: Dict[Any, ConcreteFunction] = {}
        self._has_variables = False
        self._bound: Any = weakref.WeakKeyDictionary()

    @property
    def python_function(self) -> Callable[..., Any]:
        """The Python function."""
        return self._python_function

    def __get__(self, instance: Any, owner: Any) -> Any:
        if instance is None:
            return self
        if instance not in self._bound:
            method = self._python_function.__get__(instance, owner)
            held = weakref.ref(instance)

            @functools.wraps(self._python_function)
            def call(*args: Any, **kwargs: Any) -> Any:
                return self._to_run()(held(), *args, **kwargs)

            bound = Function(call, self._name, self.input_signature, self._once, self._attributes)
            bound._signature = inspect.signature(method)
            self._bound[instance] = bound
        return self._bound[instance]

    def _to_run(self) -> Callable[..., Any]:
        """What builds the body of the function as a method."""
        if not self._autograph:
            return self._python_function
        from millrace.autograph.conversion import converted

        return converted(self._python_function)  # type: ignore[no-any-return]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The results of a node that calls the function."""
        arguments, named = self._canonical(args, kwargs)
        concrete = self._concrete(arguments, named)
        return concrete._call_flat([x for x in nest.flatten((arguments, named), expand_composites=True) if isinstance(x, Tensor)])

    def get_concrete_function(self, *args: Any, **kwargs: Any) -> ConcreteFunction:
        """The function for arguments like these: tensors or their specs."""
        if self.input_signature is not None and not args and not kwargs:
            args = self.input_signature
        return self._concrete(*self._canonical(args, kwargs))

    def _canonical(self, args: Any, kwargs: Any) -> Tuple[Tuple[Any, ...], Dict[str, Any]]:
        """(arguments, keyword arguments) with defaults; arrays as tensors."""
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise at_user_line(TypeError("%s() %s" % (self._name, error))) from None
        bound.apply_defaults()
        arguments, named = (nest.map_structure(_as_value, x) for x in (bound.args, bound.kwargs))
        if self.input_signature is not None:
            arguments = self._as_signed(arguments, named)
        return arguments, named

    def _as_signed(self, arguments: Tuple[Any, ...], named: Any) -> Tuple[Any, ...]:
        """Arguments as tensors of the signature; ValueError where they are others."""
        signature: Any = self.input_signature
        signed = arguments[: len(signature)]
        try:
            nest.assert_shallow_structure(signature, signed)
        except (ValueError, TypeError):
            raise at_user_line(ValueError("Structure of Python function inputs does not match input_signature: %s, %s" % (signed, signature))) from None

        def checked(spec: Any, value: Any) -> Any:
            if isinstance(value, TypeSpec):
                return value
            made = value if isinstance(value, CompositeTensor) else convert_to_tensor(value, getattr(spec, "dtype", None))
            if not spec.is_compatible_with(made):
                raise at_user_line(ValueError("Python inputs incompatible with input_signature: inputs: %s, input_signature: %s" % (signed, signature)))
            return made

        return (*nest.map_structure_up_to(signature, checked, signature, signed), *arguments[len(signature) :])

    def _concrete(self, arguments: Tuple[Any, ...], named: Dict[str, Any]) -> ConcreteFunction:
        specs = nest.map_structure(_spec, (arguments, named))
        if self.input_signature is not None:
            specs = ((*self.input_signature, *specs[0][len(self.input_signature) :]), specs[1])
        outer = outermost_graph()
        key = (id(outer), _key(specs))
        if key not in self._made:
            self._made[key] = self._build(specs)
            self._made[key]._outermost = outer  # type: ignore[attr-defined] # keeps its id
        return self._made[key]

    def _build(self, specs: Any) -> ConcreteFunction:
        may_create, made = not (self._once and self._has_variables), []  # type: bool, List[Any]

        def make(next_creator: Any, given: Dict[str, Any]) -> Any:
            if not may_create:
                raise at_user_line(ValueError("tf.function-decorated function tried to create variables on non-first call."))
            made.append(next_creator(**given))
            return made[-1]

        parameters = [p.name for p in self._signature.parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        graph = func_graph_from_py_func(  # type: ignore[misc]
            self._name, self._python_function, *specs, autograph=self._autograph, arg_names=parameters, make_variable=make
        )
        if made:
            self._has_variables = True
            self._kept = [*getattr(self, "_kept", ()), *made]  # variables that nothing else holds
            if self._once:  # again, with the variables that are there: calls after this one do not make them
                return self._build(specs)
        return ConcreteFunction(graph, self._attributes)


def _key(specs: Any) -> Any:
    """What tells kinds of arguments apart."""

    def leaf(x: Any) -> Any:
        if isinstance(x, TensorSpec):
            return "tensor", x.dtype, None if x.shape.ndims is None else tuple(x.shape.as_list())
        if isinstance(x, TypeSpec):
            return "spec", repr(x)
        try:
            hash(x)
        except TypeError:
            return "object", id(x)
        return type(x), x

    def of(x: Any) -> Any:
        if isinstance(x, dict):
            return ("dict", *((k, of(x[k])) for k in sorted(x)))
        return (nest.kind_of(x).__name__, *(of(v) for v in x)) if isinstance(x, (list, tuple)) else leaf(x)

    return of(specs)


def _decorator(once: bool, func: Any, input_signature: Any, autograph: bool, attributes: Any = None) -> Any:
    def made(inner: Any) -> Function:
        name = getattr(inner, "__name__", type(inner).__name__).strip("<>")
        return Function(inner, name, input_signature, once, attributes, autograph)

    return made if func is None else made(func)


def function(
    func: Any = None,
    input_signature: Any = None,
    autograph: bool = True,
    experimental_autograph_options: Any = None,
    experimental_relax_shapes: bool = False,
    experimental_compile: Any = None,
) -> Any:
    """A decorator: calls of the function become calls of a function of the graph.

    Variables, resources, may be made in the first call alone. With `autograph`, Python's statements on tensors become operations; the experimental
    arguments change nothing."""
    del experimental_autograph_options, experimental_relax_shapes, experimental_compile  # how it is built, never what it computes
    return _decorator(True, func, input_signature, autograph)


def defun(
    func: Any = None, input_signature: Any = None, autograph: bool = True, experimental_autograph_options: Any = None, experimental_relax_shapes: bool = False
) -> Any:
    """A decorator as tf.function, of a function that may make variables for each kind of arguments."""
    del experimental_autograph_options, experimental_relax_shapes  # how it is built, never what it computes
    return _decorator(False, func, input_signature, autograph)


def defun_with_attributes(
    func: Any = None,
    input_signature: Any = None,
    attributes: Any = None,
    autograph: bool = True,
    experimental_autograph_options: Any = None,
    experimental_relax_shapes: bool = False,
) -> Any:
    """A decorator as defun; its functions get attributes."""
    del experimental_autograph_options, experimental_relax_shapes  # how it is built, never what it computes
    return _decorator(False, func, input_signature, autograph, attributes)


class WrappedFunction(ConcreteFunction):
    """What wrap_function makes: a function of the graph that was built once."""

    _prunes = True

    def prune(self, feeds: Any, fetches: Any, name: Optional[str] = None) -> ConcreteFunction:
        """The function from some tensors of its graph, as arguments, to others."""
        del name  # equal functions have one name
        graph = self._body
        arguments = [graph.as_graph_element(x) for x in nest.flatten(feeds)]
        return WrappedFunction(graph, None, arguments, nest.map_structure(graph.as_graph_element, fetches))


def wrap_function(fn: Callable[..., Any], signature: Any, name: Optional[str] = None) -> WrappedFunction:
    """A function of the graph that runs the Python function once, for tensors of a signature; its variables are made once too.

    As in a graph, what no result needs is not done."""
    graph = func_graph_from_py_func(str(name or getattr(fn, "__name__", "wrapped")), fn, tuple(signature), {}, add_control_dependencies=False)
    return WrappedFunction(graph)
