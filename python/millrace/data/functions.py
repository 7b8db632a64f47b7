# SPDX-License-Identifier: Apache-2.0
"""Functions of Python as functions of the graph that data sets call.

A function is stated in the graph itself, on placeholders; what its results need of it becomes its body, and what that
reads of the rest of the graph is captured: it goes in with each call, with the value that it has when the data set is made.

What a function does beside its results (assertions, prints, assignments) is done in each call too, as in 1.15: the results wait for it,
and what uses one resource uses it in the order in which the program says so."""

from __future__ import annotations

import warnings
from typing import Any, Callable, Dict, List, Set, Tuple

import millrace._core as _core
from millrace.autograph.conversion import tried
from millrace.data import components, structure
from millrace.framework import effects
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Graph, GraphKeys, Tensor, control_dependencies, get_default_graph, name_scope
from millrace.ops import gen_ops

# What a function that takes nothing cannot bring along.
_STATE = {
    "Placeholder",
    "PlaceholderV2",
    "PlaceholderWithDefault",
    "Variable",
    "VariableV2",
    "VarHandleOp",
    "HashTable",
    "HashTableV2",
    "MutableHashTable",
    "MutableHashTableV2",
    "Iterator",
    "IteratorV2",
    "OneShotIterator",
}


def _own(graph: Graph, known: Set[Any]) -> List[Any]:
    """What a function made, but for what functions inside of it made."""
    within: Set[str] = graph.__dict__.setdefault("_operations_of_functions", set())
    made = [operation for operation in graph.get_operations() if operation not in known and operation.name not in within]
    within.update(operation.name for operation in made)
    return made


def _define(graph: Graph, stem: str, inputs: List[Tensor], outputs: List[Tensor], body: List[Any]) -> str:
    functions: Dict[str, Any] = graph.__dict__.setdefault("_data_functions", {})
    name = "%s_%d" % (stem, len(functions))
    definition = _core.to_function(graph, name, inputs, outputs, [], body)
    functions[name] = definition
    _core.add_function(graph, definition)
    return name


def _needed(outputs: List[Tensor], is_inside: Callable[[Any], bool]) -> Tuple[List[Any], List[Tensor]]:
    """The operations inside that the outputs need, and the tensors from outside that these read."""
    seen, body, outside, stack = set(), [], [], []  # type: Any, List[Any], List[Tensor], List[Any]

    def reach(operation: Any) -> None:
        if operation not in seen:
            seen.add(operation)
            stack.append(operation)
            body.append(operation)

    def read(tensor: Tensor) -> None:
        if is_inside(tensor.op):
            reach(tensor.op)
        elif tensor not in outside:
            outside.append(tensor)

    for tensor in outputs:
        read(tensor)
    while stack:
        operation = stack.pop()
        for tensor in operation.inputs:
            read(tensor)
        for control in operation.control_inputs:
            if not is_inside(control):
                raise at_user_line(
                    NotImplementedError("Operation '%s' of a data set's function waits for '%s' outside of it." % (operation.name, control.name))
                )
            reach(control)
    return body, outside


class Function:
    """A function of elements: its name in the graph, what it captures, and what it returns."""

    def __init__(self, function: Callable[..., Any], stem: str, element_spec: Any, convert: Callable[[Any], Any]) -> None:
        graph = get_default_graph()
        with name_scope(stem), control_dependencies(None):
            leaves = [gen_ops.placeholder(t, shape=s, name="argument") for t, s in zip(*components.flat(element_spec))]
            known, tables = set(graph.get_operations()), len(graph.get_collection_ref(GraphKeys.TABLE_INITIALIZERS))
            arguments = structure.pack(element_spec, [components.decoded(*pair) for pair in zip(leaves, structure.flatten(element_spec))])
            with effects.kept(graph):
                made = tried(function, *(arguments if type(arguments) is tuple else (arguments,)))  # a named tuple is one argument
            self.returned = convert(made)
            if len(graph.get_collection_ref(GraphKeys.TABLE_INITIALIZERS)) > tables:
                warnings.warn(
                    "Creating resources inside a function passed to %s() is not supported. Create each resource outside the function, and capture it "
                    "inside the function to use it." % stem.replace("_", ".", 1),
                    stacklevel=4,
                )
            own = _own(graph, known)
            effects.put_in_order(own)
            with control_dependencies(list(effects.to_be_done(own, graph._get_control_flow_context()))):
                results = [gen_ops.identity(components.encoded(r)) for r in structure.flatten(self.returned)]
        placeholders = {leaf.op for leaf in leaves}
        body, outside = _needed(results, lambda operation: operation not in known)
        self.captured = [t for t in outside if t.op not in placeholders]
        for tensor in self.captured:
            if tensor.dtype.name.endswith("_ref"):
                raise at_user_line(
                    NotImplementedError(
                        "A data set's function reads or changes the variable '%s' itself; let it read tf.identity of it, made outside, or make the "
                        "variable with use_resource=True." % tensor.name
                    )
                )
        self.name = _define(graph, stem, [*leaves, *self.captured], results, body)


def with_state(function: Callable[..., Any], stem: str, state: Any, element: Any, convert: Callable[[Any], Any], state_of: Any = None) -> Tuple[Function, Any]:
    """A function of (state, element), of whose results state_of (None: all) are the next state; and what is known of the state in every call:
    of its shapes what no call changes."""
    while True:
        f = Function(function, stem, (state, element), convert)
        after = components.specs_of(state_of(f.returned) if state_of else f.returned)
        if structure.mapped(lambda s: None, after) != structure.mapped(lambda s: None, state) or not components.same_types(after, state):
            raise at_user_line(
                TypeError(
                    "The element types for the new state must match the initial state. Expected %s; got %s."
                    % (components.types_of(state), components.types_of(after))
                )
            )
        pairs = list(zip(structure.flatten(state), structure.flatten(after)))
        common = [components.common(*pair) for pair in pairs]
        if all(str(now) == str(before) for now, (before, _) in zip(common, pairs)):
            return f, state
        state = structure.pack(state, common)


def factory(variant: Tensor) -> str:
    """The function that makes a data set again, with all that it needs."""
    body, _ = _needed([variant], lambda operation: True)
    for operation in body:
        if operation.type in _STATE:
            raise at_user_line(
                ValueError(
                    "Failed to create a one-shot iterator for a dataset. `Dataset.make_one_shot_iterator()` does not support datasets that capture stateful "
                    "objects or what is fed, as this one does with '%s' (%s). `Dataset.make_initializable_iterator()` is more appropriate."
                    % (operation.name, operation.type)
                )
            )
    return _define(variant.graph, "Dataset_factory", [], [variant], body)
