# SPDX-License-Identifier: Apache-2.0
"""Functions of Python as functions of the graph that data sets call.

A function is stated in the graph itself, on placeholders; what its results need of it becomes its body, and what that
reads of the rest of the graph is captured: it goes in with each call, with the value that it has when the data set is made.

What a function does beside its results (assertions, prints, assignments) is done in each call too, as in 1.15: the results wait for it,
and what uses one resource uses it in the order in which the program says so. In branches and loops of the function that is what their
results need."""

from __future__ import annotations

import re
from typing import Any, Callable, Dict, List, Set, Tuple

import millrace._core as _core
from millrace.data import components, structure
from millrace.framework import dtypes
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


# Stateful ops that do nothing that anyone could see later: numbers are drawn, values read and handles made where they are needed.
_WITHOUT_EFFECT = re.compile(
    "Random|Multinomial|ParameterizedTruncatedNormal|TruncatedNormal|Placeholder|ReadVariableOp|ResourceGather|VariableShape|VarIsInitializedOp"
    "|LookupTableFind|LookupTableSize|LookupTableExport|TensorArray|Stack|.*Handle(Op)?$|(Mutable)?(Dense)?HashTable|Variable|Iterator|.*Dataset"
)
_stateful: Dict[str, bool] = {}  # by type


def _has_effect(operation: Any) -> bool:
    kind = operation.type
    if kind not in _stateful:
        _stateful[kind] = not _WITHOUT_EFFECT.match(kind) and operation.op_def.is_stateful
    return _stateful[kind]


def _effects(made: List[Any]) -> Set[Any]:
    """Which operations of a function are to be done in each call; those that use one resource then wait for each other."""
    context = get_default_graph()._get_control_flow_context()
    effects = {operation for operation in made if _has_effect(operation)}
    if effects:
        effects.difference_update(_initializers(get_default_graph()))
    outer = {operation for operation in made if operation._get_control_flow_context() is context} if effects else set()
    changed = {tensor for operation in effects & outer for tensor in operation.inputs if tensor.dtype.base_dtype == dtypes.resource}
    latest: Dict[Tensor, Any] = {}
    for operation in made if changed else ():
        for tensor in operation.inputs:
            if tensor in changed and operation in outer:
                if latest.get(tensor, operation) is not operation:
                    operation._add_control_input(latest[tensor])
                latest[tensor] = operation
    return effects & outer | _ends(made, effects - outer, outer)


def _initializers(graph: Graph) -> List[Any]:
    """What gives variables and tables of the graph their first values: that is for a step of its own."""
    variables = graph.get_collection(GraphKeys.GLOBAL_VARIABLES) + graph.get_collection(GraphKeys.LOCAL_VARIABLES)
    return [variable.initializer for variable in variables] + graph.get_collection(GraphKeys.TABLE_INITIALIZERS)


def _own(graph: Graph, known: Set[Any]) -> List[Any]:
    """What a function made, but for what functions inside of it made."""
    within: Set[str] = graph.__dict__.setdefault("_operations_of_functions", set())
    made = [operation for operation in graph.get_operations() if operation not in known and operation.name not in within]
    within.update(operation.name for operation in made)
    return made


def _ends(made: List[Any], inside: Set[Any], outer: Set[Any]) -> Set[Any]:
    """The operations around branches and loops that give on what operations inside of them do."""
    found = set(inside)
    for operation in made if inside else ():  # none comes before what it needs, but for what comes from the round before
        if not found.isdisjoint([tensor.op for tensor in operation.inputs if tensor.op not in outer] + list(operation.control_inputs)):
            found.add(operation)
    return found & outer


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
            known = set(graph.get_operations())
            arguments = structure.pack(element_spec, [components.decoded(*pair) for pair in zip(leaves, structure.flatten(element_spec))])
            made = function(*arguments) if type(arguments) is tuple else function(arguments)  # a named tuple is one argument
            self.returned = convert(made)
            with control_dependencies(list(_effects(_own(graph, known)))):
                results = [gen_ops.identity(components.encoded(r)) for r in structure.flatten(self.returned)]
        placeholders = {leaf.op for leaf in leaves}
        body, outside = _needed(results, lambda operation: operation not in known)
        self.captured = [t for t in outside if t.op not in placeholders]
        for tensor in self.captured:
            if tensor.dtype.name.endswith("_ref"):
                raise at_user_line(
                    NotImplementedError("A data set's function reads the variable '%s' itself; let it read tf.identity of it, made outside." % tensor.name)
                )
        self.name = _define(graph, stem, [*leaves, *self.captured], results, body)


def factory(variant: Tensor) -> str:
    """The function that makes a data set again, with all that it needs."""
    body, _ = _needed([variant], lambda operation: True)
    for operation in body:
        if operation.type in _STATE:
            raise at_user_line(
                ValueError(
                    "Failed to create a one-shot iterator for a dataset. `Dataset.make_initializable_iterator()` is more appropriate: the dataset needs '%s' (%s), "
                    "which is state or is fed." % (operation.name, operation.type)
                )
            )
    return _define(variant.graph, "Dataset_factory", [], [variant], body)
