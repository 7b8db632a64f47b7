# SPDX-License-Identifier: Apache-2.0
"""What a layer is made of: its variables, losses and updates, and those of the layers that it holds as attributes, in lists and dictionaries too."""

from __future__ import annotations

from typing import Any, Dict, List

from millrace.layers.nodes import listed, reachable_from
from millrace.module import Submodules, inside
from millrace.ops.variables import Variable

_NEIGHBOURS = ("_inbound_nodes", "_outbound_nodes", "_input_layers", "_output_layers", "_added_metrics", "_first_values")


def _each_once(values: List[Any]) -> List[Any]:
    return list({id(v): v for v in values}.values())


class Parts(Submodules):
    """Variables, losses and updates of a layer and of its parts."""

    _trainable = True
    stateful = False
    _is_metric = False  # metrics are layers too, and no parts of those that hold them

    def _init_parts(self) -> None:
        self._trainable_weights: List[Any] = []
        self._non_trainable_weights: List[Any] = []
        self._losses: List[Any] = []
        self._updates: List[Any] = []
        self._conditions: Dict[int, Any] = {}  # by id of a loss or update: the inputs that it is for

    @property
    def trainable(self) -> bool:
        """Whether it is trained; setting it sets all layers that it is made of."""
        return self._trainable

    @trainable.setter
    def trainable(self, value: bool) -> None:
        for part in (self, *self.submodules):
            if isinstance(part, Parts) and not part._is_metric:
                part._trainable = value

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
        return [*self._losses, *self._of_parts("losses")]

    @property
    def updates(self) -> List[Any]:
        """What is to be run with each training step: nothing for a layer that is not trained."""
        return [*self._updates, *self._of_parts("updates")] if self.trainable or self.stateful else []

    def _all(self, field: str) -> List[Any]:
        """Its losses or updates, of all its calls."""
        return list(getattr(self, field))

    def _note(self, kept: List[Any], values: Any, inputs: Any) -> List[Any]:
        new = [v for v in listed(values) if v is not None]
        kept.extend(new)
        condition = None if inputs is None else tuple(id(x) for x in listed(inputs))
        for v in new:
            self._conditions[id(v)] = condition
        return new

    def add_loss(self, losses: Any, inputs: Any = None) -> None:
        """Adds losses, or what functions without arguments give; those that depend on inputs are only for the calls with these."""
        self._note(self._losses, [loss() if callable(loss) else loss for loss in listed(losses)], inputs)

    def add_update(self, updates: Any, inputs: Any = None) -> None:
        """Adds operations that are to be run with each training step; with inputs only for the calls with these."""
        self._note(self._updates, updates, inputs)

    def _of(self, field: str, inputs: Any) -> List[Any]:
        """The losses or updates that were added for some inputs or depend on them; for None those that were added for none."""
        own = getattr(self, "_" + field)
        free = [v for part in self._parts() for v in getattr(part, "get_%s_for" % field)(None)]
        if inputs is None:
            return [v for v in own if self._conditions.get(id(v)) is None] + free
        condition = tuple(id(x) for x in listed(inputs))
        own = [v for v in own if self._conditions.get(id(v)) is not None]
        conditional = own + [v for v in self._of_parts(field) if not any(v is f for f in free)]
        depends = reachable_from(listed(inputs), conditional)
        return [v for v, d in zip(conditional, depends) if d or self._conditions.get(id(v)) == condition]

    def get_losses_for(self, inputs: Any) -> List[Any]:
        """The losses added for some inputs; for None those that depend on none."""
        return self._of("losses", inputs)

    def get_updates_for(self, inputs: Any) -> List[Any]:
        """The updates added for some inputs; for None those that depend on none."""
        return self._of("updates", inputs)

    # ---- weights ----

    def _own(self, trainable: bool) -> List[Any]:
        """The variables that it has made, and those among its attributes."""
        known = {id(v) for v in (*self._trainable_weights, *self._non_trainable_weights)}
        others = [v for v in self._attributes(Variable) if id(v) not in known and v.trainable == trainable]
        return [*(self._trainable_weights if trainable else self._non_trainable_weights), *others]

    @property
    def trainable_weights(self) -> List[Any]:
        """The variables that are trained."""
        return _each_once([*self._own(True), *self._of_parts("trainable_weights")]) if self.trainable else []

    @property
    def non_trainable_weights(self) -> List[Any]:
        """The other variables."""
        if self.trainable:
            return _each_once([*self._own(False), *self._of_parts("non_trainable_weights")])
        return _each_once([*self._own(True), *self._own(False), *self._of_parts("weights")])

    @property
    def weights(self) -> List[Any]:
        """All variables, the trained ones first."""
        return self.trainable_weights + self.non_trainable_weights

    variables = property(lambda self: self.weights, doc="All variables, the trained ones first.")
    trainable_variables = property(lambda self: self.trainable_weights, doc="The variables that are trained.")
    non_trainable_variables = property(lambda self: self.non_trainable_weights, doc="The other variables.")
