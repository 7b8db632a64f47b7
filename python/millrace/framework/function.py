# SPDX-License-Identifier: Apache-2.0
"""tensorflow.python.framework.function: Python functions as functions of graphs, which nodes call."""

from __future__ import annotations

import hashlib
import inspect
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import millrace._core as _core
from millrace.framework import dtypes, errors, nest
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Graph, Tensor, get_default_graph
from millrace.protos import definitions

_gradients: Dict[str, Any] = {}  # the Python gradients by the names of functions


def _argument_names(function: Callable[..., Any], count: Optional[int]) -> Optional[List[str]]:
    """The names of the arguments, or None where any number may be given and count is not known."""
    parameters = inspect.signature(function).parameters.values()
    if any(p.default is not p.empty or p.kind in (p.KEYWORD_ONLY, p.VAR_KEYWORD) for p in parameters):
        raise at_user_line(
            ValueError(
                "Functions with argument defaults or keyword arguments are not supported: %s%s"
                % (getattr(function, "__name__", function), inspect.signature(function))
            )
        )
    named = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    variable = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), None)
    if variable is None:
        return named
    return None if count is None else named + ["%s_%d" % (variable, i) for i in range(count - len(named))]


def _is_guaranteed(op: Any) -> bool:
    """Whether an operation is a GuaranteeConst, or reads nothing but what such operations give."""
    waiting, seen = [op], set()
    while waiting:
        op = waiting.pop()
        if op.type == "GuaranteeConst" or op in seen:
            continue
        if not op.inputs:
            return False
        seen.add(op)
        waiting += [t.op for t in op.inputs]
    return True


class _FunctionGraph(Graph):
    """The body of a function. Tensors of other graphs that its operations read become arguments, and variables are made outside."""

    def __init__(self, outer: Graph, by_value: bool = False, stateful_too: Any = ()) -> None:
        super().__init__()
        self._captures = True
        from millrace.ops.variable_scope import get_variable_scope

        self._outer, self._by_value, self._stateful_too = outer, by_value, stateful_too
        self._auto_cast_variable_read_dtype = outer._auto_cast_variable_read_dtype
        with outer.as_default():
            self._scope = get_variable_scope()
        self._copied: Dict[Any, Any] = {}  # operations from outside
        self._captured: Dict[Any, Tensor] = {}  # the arguments that stand for tensors from outside
        self._inside: Dict[Any, Tensor] = {}  # what the body reads of them
        self.extra_vars: List[Any] = []

    @property
    def building_function(self) -> bool:
        """True: it is the body of a function."""
        return True

    @property
    def outer_graph(self) -> Graph:
        """The graph in which it was made."""
        return self._outer

    @property
    def extra_inputs(self) -> List[Tensor]:
        """The tensors from outside."""
        return list(self._captured)

    @property
    def extra_args(self) -> List[Tensor]:
        """The arguments that stand for them."""
        return list(self._captured.values())

    def _capture(self, tensor: Tensor) -> Tensor:
        """The argument that stands for a tensor from outside; by value: what a copy of its operation gives."""
        if self._by_value:
            return self._copy(tensor.op).outputs[tensor.value_index]
        if tensor not in self._captured:
            with self.as_default(), self.control_dependencies(None), self.name_scope(None):
                made = _placeholder(tensor.dtype.base_dtype, "captured_%d" % len(self._captured))
                _tell_value(made, tensor)
            made.set_shape(tensor.get_shape())
            self._captured[tensor] = self._inside[tensor] = made
            if _is_guaranteed(tensor.op):
                from millrace.ops import gen_ops

                with self.as_default(), self.control_dependencies(None), self.name_scope(None):
                    self._inside[tensor] = gen_ops.guarantee_const(made)
        return self._inside[tensor]

    def _copy(self, op: Any) -> Any:
        if op not in self._copied:
            if op.type in ("Placeholder", "PlaceholderV2"):
                raise at_user_line(ValueError("Cannot capture a placeholder (name:%s, type:%s) by value." % (op.name, op.type)))
            if op not in self._stateful_too and op.op_def.is_stateful:
                raise at_user_line(ValueError("Cannot capture a stateful node (name:%s, type:%s) by value." % (op.name, op.type)))
            inputs = [t if t.graph is self else self._copy(t.op).outputs[t.value_index] for t in op.inputs]
            with self.as_default(), self.control_dependencies(None), self.name_scope(None):
                self._copied[op] = self.create_op(op.type, inputs, name=op.name, attrs=dict(op.node_def.attr))
        return self._copied[op]

    def _variable(self, getter: Callable[..., Any], name: str, **kwargs: Any) -> Any:
        """get_variable of the graph outside, in the variable scope where the function is made."""
        from millrace.ops.variable_scope import _get_default_variable_store

        del getter  # it would make the variable here
        with self._outer.as_default():
            found = self._scope.get_variable(_get_default_variable_store(), name, **{**kwargs, "reuse": kwargs.get("reuse") or None})
            value = found.value() if getattr(found, "_is_resource", False) else found  # of a resource, what is read outside
        return self._used(found, value)

    def _variable_outside(self, name: str, **kwargs: Any) -> Any:
        """get_variable of a scope that was made outside: it knows nothing of the function. The name is whole."""
        from millrace.ops.variable_scope import _true_getter

        with self._outer.as_default():
            make = self._outer._variable_outside if isinstance(self._outer, _FunctionGraph) else _true_getter
            found: Any = make(name, **kwargs)
        return self._used(found, found)

    def _used(self, variable: Any, value: Any) -> Any:
        """What the body has for a variable: of a resource the value that is read outside."""
        if variable not in self.extra_vars:
            self.extra_vars.append(variable)
        return value


def _of_body(what: str) -> List[Any]:
    graph = get_default_graph()
    return getattr(graph, what) if isinstance(graph, _FunctionGraph) else []


def get_extra_vars() -> List[Any]:
    """The variables that the function being made uses."""
    return _of_body("extra_vars")


def get_extra_inputs() -> List[Tensor]:
    """The tensors from outside that the function being made uses."""
    return _of_body("extra_inputs")


def get_extra_args() -> List[Tensor]:
    """The arguments that stand for them."""
    return _of_body("extra_args")


class _Function:
    """A function with the types of its arguments."""

    def __init__(
        self,
        function: Callable[..., Any],
        types: Tuple[dtypes.DType, ...],
        func_name: Optional[str],
        grad_func: Any,
        python_grad_func: Any,
        out_names: Any,
        shape_func: Any,
        capture_by_value: bool,
        noinline: Optional[bool],
        whitelisted_stateful_ops: Any,
        attributes: Dict[str, Any],
        device: Any = None,
    ) -> None:
        from millrace.ops.variable_scope import variable_scope

        self._types, self._grad_func, self._python_grad_func, self._shape_func = types, grad_func, python_grad_func, shape_func
        self.__doc__ = function.__doc__
        self._body: Any = _FunctionGraph(get_default_graph(), capture_by_value, whitelisted_stateful_ops or ())
        with self._body.as_default(), self._body.device(device):
            self._body.seed = get_default_graph().seed
            inputs = [_placeholder(t, n) for t, n in zip(types, _argument_names(function, len(types)) or [])]
            with variable_scope("", custom_getter=self._body._variable):
                made = function(*inputs)
            listed = [] if made is None else nest.listed(made)
            if any(v is None for v in listed):
                raise at_user_line(ValueError("Function can not return None."))
            results = [convert_to_tensor(v) for v in listed]
            results = [t if t.graph is self._body else self._body._capture(t) for t in results]
        inputs += self._body.extra_args
        if out_names and len(out_names) != len(results):
            raise at_user_line(
                errors.InvalidArgumentError(
                    None,
                    None,
                    "output names must be either empty or equal in size to outputs. output names size = %d outputs size = %d: %s, %s"
                    % (len(out_names), len(results), list(out_names), ", ".join(t.name for t in results)),
                )
            )
        self._outputs = [t.dtype.base_dtype for t in results]
        # A function may give an argument back: results are nodes of their own then.
        self.name = func_name or self._hashed(function, inputs, results, out_names)
        self._bytes = _core.to_function(self._body, self.name, inputs, results, list(out_names or ()))
        if noinline is not None:
            attributes = {**attributes, "_noinline": bool(noinline)}
        if attributes or function.__doc__:
            definition = self.definition
            definition.signature.description = inspect.getdoc(function) or ""
            for key, value in attributes.items():
                definition.attr[key].CopyFrom(_attribute(key, value))
            self._bytes = definition.SerializeToString()
        if python_grad_func is not None:
            self._register()

    @classmethod
    def _of_definition(cls, definition: Any, grad_func: Optional["_Function"]) -> "_Function":
        """The function of a FunctionDef."""
        made = cls.__new__(cls)
        made._types = tuple(dtypes.as_dtype(a.type) for a in definition.signature.input_arg)
        made._outputs = [dtypes.as_dtype(a.type) for a in definition.signature.output_arg]
        made._grad_func, made._python_grad_func, made._shape_func = grad_func, None, None
        made.__doc__ = definition.signature.description or None
        made._body = _FunctionGraph(get_default_graph())
        made.name, made._bytes = definition.signature.name, definition.SerializeToString()
        return made

    def _hashed(self, function: Any, inputs: Any, results: Any, out_names: Any) -> str:
        """Equal functions with equal gradients have one name."""
        data = _core.to_function(self._body, "f", inputs, results, list(out_names or ()))
        if self._grad_func is not None or self._python_grad_func is not None:
            data += b"gradient" + (b"" if self._grad_func is None else self._grad_func.name.encode())
        stem = "".join(c if c.isalnum() else "_" for c in getattr(function, "__name__", "function")).strip("_") or "function"
        name = "%s_%s" % (stem, hashlib.sha1(data).hexdigest()[:8])
        while _gradients.get(name, self._python_grad_func) is not self._python_grad_func:
            name += "_1"
        return name

    def _register(self) -> None:
        from millrace.ops.gradients import RegisterGradient

        if self.name not in _gradients:
            RegisterGradient(self.name)(self._python_grad_func)
            _gradients[self.name] = self._python_grad_func
        elif _gradients[self.name] is not self._python_grad_func:
            raise at_user_line(ValueError("A function called %s has another gradient already." % self.name))

    @property
    def definition(self) -> Any:
        """Its FunctionDef."""
        return definitions.FunctionDef.FromString(self._bytes)

    declared_input_types = property(lambda self: self._types, doc="The types of its arguments.")
    captured_inputs = property(lambda self: self._body.extra_inputs, doc="The tensors that it uses beside its arguments.")
    python_grad_func = property(lambda self: self._python_grad_func, doc="Its gradient, where that is a Python function.")
    grad_func_name = property(lambda self: self._grad_func.name if self._grad_func is not None else None, doc="Its gradient, where that is a function.")

    @property
    def stateful_ops(self) -> List[Tuple[str, str]]:
        """The name and the type of each operation in it that has a state."""
        return [(op.name, op.type) for op in self._body.get_operations() if op.op_def.is_stateful]

    def add_to_graph(self, graph: Any) -> None:
        """Puts it, and the functions that it calls, into a graph's library."""
        known = graph.__dict__.setdefault("_defined_functions", {})
        if self.name in known:
            if known[self.name]._bytes != self._bytes or known[self.name].grad_func_name != self.grad_func_name:
                raise errors.InvalidArgumentError(
                    None, None, "Cannot add function '%s' because a different function with the same name already exists." % self.name
                )
            return
        for inner in self._body.__dict__.get("_defined_functions", {}).values():
            inner.add_to_graph(graph)
        gradient = self._grad_func
        if gradient is not None:
            gradient.add_to_graph(graph)
        known[self.name] = self
        _core.add_function(graph, self._bytes, None if gradient is None else gradient._bytes)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """A node that calls it: its result, several in a list, or the operation where it has none."""
        return self._called(args, self.captured_inputs, **kwargs)

    def _called(self, args: Sequence[Any], captured: Sequence[Tensor], **kwargs: Any) -> Any:
        """A call with other tensors in the place of those that it captures."""
        if len(args) != len(self._types):
            raise at_user_line(ValueError("Expected number of arguments: %d, received: %d" % (len(self._types), len(args))))
        graph = get_default_graph()
        name = kwargs.pop("name", None)
        if kwargs.keys() - {"noinline", "compiled", "separate_compiled_gradients"}:
            raise at_user_line(ValueError("Unknown keyword arguments: %s" % sorted(kwargs)))
        self.add_to_graph(graph)
        attrs = {"_noinline": definitions.AttrValue(b=bool(kwargs["noinline"]))} if "noinline" in kwargs else {}
        given = [convert_to_tensor(a, t) for a, t in zip(args, self._types)] + list(captured)
        if isinstance(graph, _FunctionGraph):
            given = [t if t.graph is graph else graph._capture(t) for t in given]
        operation = graph.create_op(self.name, given, name=name, attrs=attrs)
        outputs = list(operation.outputs)
        if self._shape_func is not None:
            for tensor, shape in zip(outputs, self._shape_func(operation)):
                tensor.set_shape(shape)
        if not outputs:
            return operation
        return outputs[0] if len(outputs) == 1 else outputs


def _attribute(name: str, value: Any) -> Any:
    """A number or a text as an attribute of a function."""
    for kind, field in ((bool, "b"), (int, "i"), (float, "f"), (str, "s"), (bytes, "s")):
        if isinstance(value, kind):
            return definitions.AttrValue(**{field: value.encode() if isinstance(value, str) else value})
    raise at_user_line(ValueError("Unsupported attribute type %s of %s" % (type(value).__name__, name)))


def _placeholder(dtype: dtypes.DType, name: str) -> Tensor:
    from millrace.ops import gen_ops

    return gen_ops.placeholder(dtype, name=name)


def _tell_value(argument: Tensor, captured: Tensor) -> None:
    """Lets shapes in the body follow from what stands there for a constant outside."""
    if captured.dtype.base_dtype not in (dtypes.int32, dtypes.int64):
        return
    value = captured._constant_value()
    if value is not None and value.size <= 512:
        from millrace.framework.tensor_util import make_tensor_proto
        from millrace.protos.definitions import AttrValue

        argument.op._set_attr("_captured_value", AttrValue(tensor=make_tensor_proto(value, captured.dtype.base_dtype)))


def _innermost_device() -> Any:
    """What the innermost device scope says, which the body of a function that is stated there gets."""
    stack = get_default_graph()._device_stack
    return stack[-1] if stack else None


class _OverloadedFunction:
    """A function whose arguments have the types that each call gives them."""

    def __init__(self, function: Callable[..., Any], given: Dict[str, Any]) -> None:
        self._function, self._given, self._made = function, given, {}  # type: Callable[..., Any], Dict[str, Any], Dict[Any, _Function]
        self.__doc__ = function.__doc__

    def instantiate(self, input_types: Any) -> _Function:
        """The function for arguments of some types."""
        key = tuple(dtypes.as_dtype(t).base_dtype for t in input_types)
        if key not in self._made:
            names = _argument_names(self._function, len(key)) or []
            if len(names) != len(key):
                raise at_user_line(ValueError("Expected number of arguments: %d, received: %d" % (len(names), len(key))))
            given = dict(self._given)
            if given["func_name"] is not None and self._made:
                given["func_name"] = "%s_%d" % (given["func_name"], len(self._made))
            if isinstance(given["grad_func"], _OverloadedFunction):
                results = _Function(self._function, key, **{**given, "grad_func": None, "python_grad_func": None})._outputs
                given["grad_func"] = given["grad_func"].instantiate([*key, *results])
            self._made[key] = _Function(self._function, key, **given, device=_innermost_device())
        return self._made[key]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """A node that calls it."""
        tensors = [convert_to_tensor(a) for a in args]
        return self.instantiate([t.dtype for t in tensors])(*tensors, **kwargs)


class Defun:
    """Decorator: makes a Python function a function of graphs. `input_types` are the types of its arguments; without them each call's own are taken.
    Arguments that begin with experimental_ become attributes of the function; capture_by_value copies operations with a state only where
    whitelisted_stateful_ops has them.

    Its gradient is that of its ops, or grad_func (a Defun of arguments and gradients of results), or python_grad_func(op, *gradients)."""

    def __init__(
        self,
        *input_types: Any,
        func_name: Optional[str] = None,
        grad_func: Any = None,
        python_grad_func: Any = None,
        out_names: Any = None,
        shape_func: Any = None,
        capture_by_value: bool = False,
        noinline: Optional[bool] = None,
        whitelisted_stateful_ops: Any = None,
        **others: Any,
    ) -> None:
        kept = {key: value for key, value in others.items() if key.startswith("experimental_") or key in ("_implements", "_reference")}
        unknown = others.keys() - kept.keys() - {"compiled", "separate_compiled_gradients"}
        if unknown:
            raise at_user_line(ValueError("Unknown keyword arguments: %s" % sorted(unknown)))
        if grad_func is not None and python_grad_func is not None:
            raise at_user_line(ValueError("Gradient defined twice: give grad_func or python_grad_func."))
        self._types = tuple(dtypes.as_dtype(t) for t in input_types)
        self._given = {
            "func_name": func_name,
            "grad_func": grad_func,
            "python_grad_func": python_grad_func,
            "out_names": out_names,
            "shape_func": shape_func,
            "capture_by_value": capture_by_value,
            "noinline": noinline,
            "whitelisted_stateful_ops": whitelisted_stateful_ops,
            "attributes": kept,
        }

    def __call__(self, function: Callable[..., Any]) -> Any:
        """The function that calls nodes of it."""
        if not callable(function):
            raise at_user_line(ValueError("function %s must be callable" % (function,)))
        names = _argument_names(function, len(self._types) if self._types else None)
        if self._types and names is not None and len(names) != len(self._types):
            raise at_user_line(ValueError("The function must have the same number of arguments as the number of specified input types."))
        if not self._types and (names is None or names):
            return _OverloadedFunction(function, self._given)
        return _DefinedFunction(function, self._types, self._given)


class _DefinedFunction:
    """A function whose types are known: made when it is first used, so that what it calls may come after it."""

    def __init__(self, function: Callable[..., Any], types: Any, given: Dict[str, Any]) -> None:
        self._arguments: Any = (function, types, given)
        self._device = _innermost_device()
        self.__doc__ = function.__doc__
        self._function: Any = None

    def _real(self) -> _Function:
        if self._function is None:
            function, types, given = self._arguments
            if isinstance(given["grad_func"], _DefinedFunction):
                given = {**given, "grad_func": given["grad_func"]._real()}
            self._function = _Function(function, types, **given, device=self._device)
        return self._function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """A node that calls it."""
        return self._real()(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._real(), name)


class Declare:
    """A function by its name, of which the program tells later what it does: how functions call themselves and each other.

    `inputs` and `outputs` are pairs of a name and a type. Calls run when they are reached, and have no gradient."""

    def __init__(self, func_name: str, inputs: Any, outputs: Any) -> None:
        self.name = func_name
        self.declared_input_types = [dtypes.as_dtype(t) for _, t in inputs]
        self._types = [dtypes.as_dtype(t) for _, t in outputs]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """A node that calls it: its result, several in a list, or the operation where it has none."""
        from millrace.ops import gen_ops

        name = kwargs.pop("name", self.name)
        if kwargs:
            raise at_user_line(ValueError("Unknown keyword arguments: %s" % sorted(kwargs)))
        if len(args) != len(self.declared_input_types):
            raise at_user_line(ValueError("Expected number of arguments: %d, received: %d" % (len(self.declared_input_types), len(args))))
        given = [convert_to_tensor(a, t) for a, t in zip(args, self.declared_input_types)]
        made = gen_ops.stateful_partitioned_call(given, Tout=self._types, f=self.name, name=name)
        listed = list(made) if isinstance(made, (list, tuple)) else [made]
        return listed[0] if len(listed) == 1 else listed


# ---- functions of messages ----


def _from_definition(fdef: Any, grad_func: Any = None) -> _Function:
    """The function of a FunctionDef. `grad_func`: its gradient, or None."""
    return _Function._of_definition(fdef, grad_func._real() if isinstance(grad_func, _DefinedFunction) else grad_func)


def from_library(lib: Any) -> List[_Function]:
    """The functions of a FunctionDefLibrary, with their gradients. ValueError where one is missing, or where gradients go round in a circle."""
    definitions_by_name = {f.signature.name: f for f in lib.function}
    gradients = {g.function_name: g.gradient_func for g in lib.gradient}
    for name in [*gradients, *gradients.values()]:
        if name not in definitions_by_name:
            raise at_user_line(ValueError("FunctionDefLibrary missing '%s' FunctionDef" % name))
    made: Dict[str, _Function] = {}

    def make(name: str, below: Tuple[str, ...]) -> _Function:
        if name in below:
            raise at_user_line(ValueError("FunctionDefLibrary contains cyclic gradient functions! %s" % " -> ".join([*below, name])))
        if name not in made:
            gradient = make(gradients[name], (*below, name)) if name in gradients else None
            made[name] = _from_definition(definitions_by_name[name], gradient)
        return made[name]

    return [make(name, ()) for name in definitions_by_name]


_from_library = from_library
