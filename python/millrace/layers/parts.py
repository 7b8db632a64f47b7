# SPDX-License-Identifier: Apache-2.0
"""What a layer is made of: its variables, losses and updates, and those of the layers that it holds as attributes, in lists and dictionaries too."""

from __future__ import annotations

import contextlib
import threading
from typing import Any, Dict, Iterator, List, Optional, Set

from millrace.framework import dtypes, nest
from millrace.framework.convert import convert_to_tensor
from millrace.framework.graph import Operation, Tensor
from millrace.keras.backend_settings import floatx
from millrace.layers.nodes import listed, reachable_from
from millrace.module import Submodules, inside
from millrace.ops.variables import Variable
from millrace.structures import has_weights

_NEIGHBOURS = (
    "_inbound_nodes",
    "_outbound_nodes",
    "_input_layers",
    "_output_layers",
    "_added_metrics",
    "_first_values",
    "_collected_trainable_weights",
    "_named_weights",
)


def _each_once(values: List[Any]) -> List[Any]:
    return list({id(v): v for v in values}.values())


def _as_update(update: Any) -> Any:
    """An operation, or what a function makes; values that are none, pairs as well, are tensors, which change nothing (as in 1.15)."""
    if isinstance(update, Operation):
        return update
    if hasattr(update, "op"):
        return update.op
    return _as_update(update()) if callable(update) else convert_to_tensor(update)


class _Calls(threading.local):
    """What there is to know of the layers that are being called."""

    inside = False  # whether one is
    training: Any = None  # what the innermost was told
    inputs: Optional[List[Any]] = None  # those of the innermost

    @contextlib.contextmanager
    def with_inputs(self, inputs: List[Any]) -> Iterator[None]:
        """While a network calls a layer again."""
        around, self.inputs = self.inputs, inputs
        try:
            yield
        finally:
            self.inputs = around

    @contextlib.contextmanager
    def enter(self, layer: Any, inputs: Any, build_graph: bool, training: Any) -> Iterator[None]:
        """As if a layer were called with some inputs."""
        del layer, build_graph  # it is the inputs that updates go by, and there is always a graph
        around = self.inside, self.training, self.inputs
        self.inside, self.training, self.inputs = True, training, nest.flatten(inputs)
        try:
            yield
        finally:
            self.inside, self.training, self.inputs = around


calls = _Calls()


def call_context() -> _Calls:
    """What there is to know of the layers that are being called."""
    return calls


class Parts(Submodules):
    """Variables, losses and updates of a layer and of its parts."""

    _trainable = True
    stateful = False
    _is_metric = False  # metrics are layers too, and no parts of those that hold them

    def _init_parts(self) -> None:
        self._trainable_weights: List[Any] = []
        self._non_trainable_weights: List[Any] = []
        self._named_weights: Dict[str, Any] = {}  # what checkpoints know them by
        self._losses: List[Any] = []
        self._penalties: List[Any] = []  # functions that give losses of weights, called when they are first asked for, as in TensorFlow
        self._updates: List[Any] = []  # operations
        self._free: Set[int] = set()  # the ids of losses and updates that are for all models, whatever their inputs

    @property
    def trainable(self) -> bool:
        """Whether it is trained; setting it sets all layers that it is made of."""
        return self._trainable

    @trainable.setter
    def trainable(self, value: bool) -> None:
        for part in (self, *self.submodules):
            if isinstance(part, Parts) and not part._is_metric:
                part._trainable = value

    def _wraps(self, name: str) -> bool:
        return not name.startswith("_") and super()._wraps(name)

    def _attributes(self, kind: type) -> List[Any]:
        """Its attributes of a kind, and those in lists and dictionaries, in the order in which it got them."""
        held = [x for name, value in vars(self).items() if name not in _NEIGHBOURS for x in inside(value)]
        return _each_once([x for x in held if isinstance(x, kind)])

    def _parts(self) -> List[Any]:
        """The layers that it holds."""
        return [x for x in self._attributes(Parts) if not x._is_metric]

    def _of_parts(self, name: str) -> List[Any]:
        return [v for part in self._parts() for v in getattr(part, name)]

    # ---- losses and updates ----

    @property
    def losses(self) -> List[Any]:
        """What it and its parts add to the loss."""
        while self._penalties:
            self._note_losses(self._penalties.pop(0), None)
        return [*self._losses, *self._of_parts("losses")]

    @property
    def updates(self) -> List[Any]:
        """What is to be run with each training step: nothing for a layer that is not trained."""
        return [*self._updates, *self._of_parts("updates")] if self.trainable or self.stateful else []

    def add_loss(self, losses: Any, inputs: Any = None) -> None:
        """Adds losses, or what functions without arguments give. Those given with inputs are only for models on whose inputs they depend."""
        self._note_losses(losses, inputs)

    def _note_losses(self, losses: Any, inputs: Any) -> List[Any]:
        new = [loss() if callable(loss) else loss for loss in listed(losses)]
        new = [loss if isinstance(loss, Tensor) else convert_to_tensor(loss, dtypes.as_dtype(floatx())) for loss in new if loss is not None]
        self._losses += new
        if inputs is None:
            self._free.update(id(loss) for loss in new)
        return new

    def add_update(self, updates: Any, inputs: Any = None) -> None:
        """Adds operations, or functions that make them, that are to be run with each training step. Those that depend on the layer's inputs are
        for models with these; the graph tells which ones do, whatever `inputs` are given."""
        del inputs  # as in 1.15
        self._note_updates(updates)

    def _note_updates(self, updates: Any) -> List[Any]:
        new = [_as_update(u) for u in (updates if isinstance(updates, list) else [updates])]
        inputs = calls.inputs
        if inputs is None:
            inputs = [t for node in getattr(self, "_inbound_nodes", ()) for t in node.taken]
        self._updates += new
        self._free.update(id(u) for u, depends in zip(new, reachable_from([x for x in inputs if hasattr(x, "op")], new)) if not depends)
        return new

    def _all_free(self) -> Set[int]:
        return self._free.union(*(part._all_free() for part in self._parts()))

    def _for(self, inputs: Any, found: List[Any]) -> List[Any]:
        free = self._all_free()
        if inputs is None:
            return [v for v in found if id(v) in free]
        found = [v for v in found if id(v) not in free]
        return [v for v, depends in zip(found, reachable_from(nest.flatten(inputs), found)) if depends]

    def get_losses_for(self, inputs: Any) -> List[Any]:
        """The losses added with inputs that depend on these; for None those that were added with none."""
        return self._for(inputs, self.losses)

    def get_updates_for(self, inputs: Any) -> List[Any]:
        """The updates that depend on some inputs; for None those that depend on none."""
        return self._for(inputs, self.updates)

    # ---- weights ----

    def _own(self, trainable: bool) -> List[Any]:
        """The variables that it has made, those among its attributes, and those of attributes that are no layers (templates)."""
        known = {id(v) for v in (*self._trainable_weights, *self._non_trainable_weights)}
        others = [v for v in self._attributes(Variable) if id(v) not in known and v.trainable == trainable]
        for holder in self._attributes(object):
            if has_weights(holder) and not isinstance(holder, Parts):
                others += [v for v in (holder.trainable_weights if trainable else holder.non_trainable_weights) if id(v) not in known]
        return _each_once([*(self._trainable_weights if trainable else self._non_trainable_weights), *others])

    @property
    def trainable_weights(self) -> List[Any]:
        """The variables that are trained."""
        return [*self._own(True), *self._of_parts("trainable_weights")] if self.trainable else []

    @property
    def non_trainable_weights(self) -> List[Any]:
        """The other variables."""
        if self.trainable:
            return [*self._own(False), *self._of_parts("non_trainable_weights")]
        return [*self._own(True), *self._own(False), *self._of_parts("weights")]

    @property
    def weights(self) -> List[Any]:
        """All variables, the trained ones first."""
        return self.trainable_weights + self.non_trainable_weights

    @property
    def constraints(self) -> Dict[Any, Any]:
        """{variable: the constraint that it has}, as Keras of 1.2 has it; or what has been set in its place."""
        set_here = self.__dict__.get("_set_constraints")
        return {v: v.constraint for v in self.weights if v.constraint is not None} if set_here is None else set_here

    @constraints.setter
    def constraints(self, value: Any) -> None:
        self.__dict__["_set_constraints"] = value

    variables = property(lambda self: self.weights, doc="All variables, the trained ones first.")
    trainable_variables = property(lambda self: self.trainable_weights, doc="The variables that are trained.")
    non_trainable_variables = property(lambda self: self.non_trainable_weights, doc="The other variables.")
