# SPDX-License-Identifier: Apache-2.0
"""tensorflow.python.framework.func_graph and auto_control_deps: graphs that become functions."""

from __future__ import annotations

import contextlib
import functools
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence

from millrace.framework import dtypes, effects, nest
from millrace.framework.composite_tensors import CompositeTensor
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.function import _FunctionGraph
from millrace.framework.graph import Operation, Tensor, control_dependencies, get_default_graph, get_name_scope, outermost_graph
from millrace.framework.tensor_shape import TensorShape
from millrace.framework.type_spec import TensorSpec, TypeSpec

WHITELIST_COLLECTIONS: List[str] = []  # of the graph outside that the body shares


class FuncGraph(_FunctionGraph):
    """A graph that is the body of a function. Tensors from outside that operations read become arguments behind its own ones."""

    def __init__(self, name: str, collections: Any = None, capture_by_value: Optional[bool] = None) -> None:
        super().__init__(get_default_graph(), bool(capture_by_value))
        self.name = name
        self.own_inputs: List[Tensor] = []
        self.outputs: List[Any] = []
        self.structured_input_signature: Any = None
        self.structured_outputs: Any = None
        self.control_outputs: List[Operation] = []
        self.control_captures: List[Operation] = []  # those outside that operations in it wait for: the call waits for them
        self.variables: Any = ()
        for key, values in (collections or {}).items():
            self._collections[key] = values

    @property
    def inputs(self) -> List[Tensor]:
        """Its own arguments, and those that stand for what it reads from outside."""
        return [*self.own_inputs, *self.extra_args]

    @inputs.setter
    def inputs(self, inputs: Sequence[Tensor]) -> None:
        captured = self.extra_args
        self.own_inputs = [t for t in inputs if not any(t is c for c in captured)]

    @property
    def captures(self) -> Dict[Tensor, Tensor]:
        """{tensor from outside: the argument that stands for it}."""
        return dict(self._captured)

    external_captures = property(lambda self: self.extra_inputs, doc="The tensors from outside.")
    internal_captures = property(lambda self: self.extra_args, doc="The arguments that stand for them.")

    def control_dependencies(self, control_inputs: Any) -> Any:
        """As of any graph. What shall wait for an operation from outside lets the call wait for it."""
        inside: Any = None if control_inputs is None else []
        for given in control_inputs or ():
            op = given if isinstance(given, Operation) else getattr(given, "op", None)
            if not isinstance(op, Operation) or op.graph is self:
                inside.append(given)
            elif not any(op is known for known in self.control_captures):
                self.control_captures.append(op)
        return super().control_dependencies(inside)

    def _used(self, variable: Any, value: Any) -> Any:
        del value  # the body reads, and changes, the variable itself
        return variable

    def capture(self, tensor: Any, name: Optional[str] = None) -> Tensor:
        """The argument that stands for a tensor from outside; its own tensors are what they are."""
        del name  # arguments are named by their number
        tensor = convert_to_tensor(tensor)
        return tensor if tensor.graph is self else self._capture(tensor)

    @property
    def trainable_variables(self) -> List[Any]:
        """Those of its variables that are trained."""
        return [v for v in self.variables if v.trainable]


class AutomaticControlDependencies:
    """A context in which what operations do is done when a value that mark_as_return gave is read, in the order of the program."""

    def __init__(self) -> None:
        self._returned: List[Tensor] = []
        self.ops_which_must_run: List[Operation] = []

    def mark_as_return(self, tensor: Any) -> Any:
        """A value that waits for what is done within the context."""
        from millrace.ops import array_ops

        made = array_ops.identity(tensor)
        self._returned += [t for t in nest.flatten(made, expand_composites=True) if isinstance(t, Tensor)]
        return made

    def __enter__(self) -> "AutomaticControlDependencies":
        self._graph = get_default_graph()
        self._since = self._graph.version
        self._kept = effects.kept(self._graph)
        self._kept.__enter__()
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._kept.__exit__(None, None, None)
        if kind is not None or get_default_graph() is not self._graph:
            return
        made = self._graph.get_operations()[self._since :]
        effects.put_in_order(made)
        wanted = effects.to_be_done(made, self._graph._get_control_flow_context())
        self.ops_which_must_run = [op for op in made if op in wanted]
        for tensor in self._returned:
            tensor.op._add_control_inputs([op for op in self.ops_which_must_run if op is not tensor.op])


def automatic_control_dependencies(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose results wait for all that it does, in the order of the program."""

    @functools.wraps(f)
    def call(*args: Any, **kwargs: Any) -> Any:
        with AutomaticControlDependencies() as deps:
            results = f(*args, **kwargs)
            leaves = [deps.mark_as_return(convert_to_tensor(x)) for x in nest.flatten(results)]
            return nest.pack_sequence_as(results, leaves)

    return call


@contextlib.contextmanager
def _variables_outside(graph: FuncGraph, make: Callable[..., Any]) -> Iterator[None]:
    """A context in which variables, resources, are made in the graph outside by make(next_creator, arguments)."""
    from millrace.ops.variable_scope import variable_scope
    from millrace.ops.variables import variable_creator_scope

    def creator(next_creator: Any, **kwargs: Any) -> Any:
        outer, scope = outermost_graph(), get_name_scope()  # names begin with the scope in the function, not with that of the call
        with outer.as_default(), outer.control_dependencies(None), outer.name_scope(scope + "/" if scope else None):
            return make(next_creator, {key: True if key == "use_resource" else value for key, value in kwargs.items()})

    def of_store(getter: Any, name: str, **kwargs: Any) -> Any:
        del getter  # it looks into the store of the body
        from millrace.ops.variable_scope import _get_default_variable_store

        outer = outermost_graph()

        def get() -> Any:
            with outer.as_default():
                store = _get_default_variable_store()
                return graph._scope.get_variable(store, name, **{**kwargs, "reuse": kwargs.get("reuse") or None, "use_resource": True})

        return make(lambda **unused: get(), {"name": name})

    with variable_creator_scope(creator), variable_scope("", custom_getter=of_store, use_resource=True):
        yield


def _argument(graph: FuncGraph, spec: Any, name: str) -> Any:
    """A tensor, or one of components, that stands for an argument."""
    from millrace.ops import array_ops

    def placeholder(dtype: Any, shape: Any) -> Tensor:
        made = array_ops.placeholder(dtypes.as_dtype(dtype), TensorShape(shape), name=name)
        graph.own_inputs.append(made)
        return made

    if isinstance(spec, TensorSpec):
        return placeholder(spec.dtype, spec.shape)
    return spec._from_components(nest.map_structure(lambda part: placeholder(part.dtype, part.shape), spec._component_specs))


def func_graph_from_py_func(
    name: str,
    python_func: Callable[..., Any],
    args: Any,
    kwargs: Any,
    signature: Any = None,
    func_graph: Optional[FuncGraph] = None,
    autograph: bool = False,
    autograph_options: Any = None,
    add_control_dependencies: bool = True,
    arg_names: Any = None,
    op_return_value: Any = None,
    collections: Any = None,
    capture_by_value: Optional[bool] = None,
    override_flat_arg_shapes: Any = None,
    make_variable: Any = None,
) -> FuncGraph:
    """The body of a Python function of arguments: tensors and their specs become placeholders, other values are what they are.

    `make_variable(next_creator, arguments)` makes its variables, in the graph outside. With `autograph`, Python's statements on tensors become
    operations."""
    del autograph_options, override_flat_arg_shapes  # nothing can be chosen, and specs say the shapes
    if autograph:
        from millrace.autograph.conversion import converted

        python_func = converted(python_func)
    graph = func_graph or FuncGraph(name, collections, capture_by_value)
    args, kwargs = tuple(args if signature is None else signature), dict(kwargs or {})
    made_variables: List[Any] = []

    def record(next_creator: Any, given: Dict[str, Any]) -> Any:
        variable = (make_variable or (lambda create, arguments: create(**arguments)))(next_creator, given)
        if not any(variable is v for v in made_variables):
            made_variables.append(variable)
        return variable

    def placed(value: Any, hint: str) -> Any:
        if isinstance(value, TypeSpec):
            return _argument(graph, value, getattr(value, "name", None) or hint)
        if isinstance(value, Tensor):
            return _argument(graph, TensorSpec(value.shape, value.dtype.base_dtype), hint)
        return value

    def result(value: Any) -> Any:
        if isinstance(value, Operation):
            with control_dependencies([value]):
                return deps.mark_as_return(convert_to_tensor(0 if op_return_value is None else op_return_value))
        if value is None:
            return None
        try:
            value = value if isinstance(value, CompositeTensor) else convert_to_tensor(value)
        except (ValueError, TypeError):
            raise at_user_line(
                TypeError(
                    "To be compatible with tf.contrib.eager.defun, Python functions must return zero or more Tensors; in compilation of %s, found return "
                    "value of type %s, which is not a Tensor." % (getattr(python_func, "__name__", python_func), type(value))
                )
            ) from None
        return deps.mark_as_return(nest.map_structure(_of(graph), value, expand_composites=True)) if add_control_dependencies else _of(graph)(value)

    with graph.as_default():
        graph.seed = graph._outer.seed
        names = list(arg_names or [])
        names += ["arg%d" % i for i in range(len(names), len(args))]
        given = [nest.map_structure(lambda x, n=n: placed(x, n), a) for a, n in zip(args, names)]
        named = {key: nest.map_structure(lambda x, n=key: placed(x, n), value) for key, value in sorted(kwargs.items())}
        graph.structured_input_signature = (args, kwargs)
        deps: Any = AutomaticControlDependencies()
        with deps if add_control_dependencies else contextlib.nullcontext(), _variables_outside(graph, record):
            results = python_func(*given, **named)
            graph.structured_outputs = nest.map_structure(result, results)
    graph.control_outputs = deps.ops_which_must_run
    graph.outputs = [t for t in nest.flatten(graph.structured_outputs, expand_composites=True) if t is not None]
    read = {id(t) for t in graph.extra_inputs}
    known = graph.outer_graph.get_collection("variables") + graph.outer_graph.get_collection("local_variables")
    graph.variables = tuple(made_variables + [v for v in known if id(getattr(v, "handle", None)) in read and not any(v is m for m in made_variables)])
    return graph


def _of(graph: FuncGraph) -> Callable[[Any], Any]:
    """A function that gives a tensor as one of the graph's own."""
    return lambda tensor: tensor if not isinstance(tensor, Tensor) or tensor.graph is graph else graph._capture(tensor)
