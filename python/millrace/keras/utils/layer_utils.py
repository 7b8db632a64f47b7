# SPDX-License-Identifier: Apache-2.0
"""A model as a table."""

from __future__ import annotations

from typing import Any, List, Optional

from millrace.framework.errors import at_user_line
from millrace.keras import backend as K


def count_params(weights: Any) -> int:
    """How many numbers some weights have."""
    return sum(K.count_params(w) for w in {id(w): w for w in weights}.values())


def _calls_within(model: Any, layer: Any) -> List[Any]:
    return [node for node in layer._inbound_nodes if id(node) in getattr(model, "_network_nodes", ())]


def _is_chain(model: Any) -> bool:
    """Whether each layer is called once, by what comes before it alone."""
    if type(model).__name__ == "Sequential" or not model._is_graph_network:
        return True
    calls = [_calls_within(model, layer) for layer in model.layers]
    feeding = {(id(b), i) for nodes in calls for n in nodes for b, i in zip(n.sources, n.source_nodes)}
    ends = [n for nodes in calls for n in nodes if (id(n.outbound_layer), n.outbound_layer._inbound_nodes.index(n)) not in feeding]
    return len(ends) == 1 and all(len(nodes) == 1 and len(nodes[0].sources) <= 1 for nodes in calls)


def print_summary(model: Any, line_length: Optional[int] = None, positions: Any = None, print_fn: Any = None) -> None:
    """Prints the layers of a model: name and class, shape, parameters; what feeds them where that is not the layer before. ValueError before it is built."""
    if not model.built:
        raise at_user_line(
            ValueError(
                "This model has not yet been built. Build the model first by calling `build()` or calling `fit()` with some data, or specify an "
                "`input_shape` argument in the first layer(s) for automatic build."
            )
        )
    show, chain = print_fn or print, _is_chain(model)
    width = line_length or (65 if chain else 98)
    places = list(positions or ([0.45, 0.85, 1.0] if chain else [0.33, 0.55, 0.67, 1.0]))
    places = [int(width * p) for p in places] if places[-1] <= 1 else places

    def row(*fields: Any) -> None:
        line = ""
        for field, place in zip(fields, places):
            line = (line[:-1] + " " if line else "") + str(field)
            line = line[:place].ljust(place)
        show(line)

    show('Model: "%s"' % model.name)
    show("_" * width)
    row("Layer (type)", "Output Shape", "Param #", *([] if chain else ["Connected to"]))
    show("=" * width)
    for layer in model.layers:
        try:
            shape = layer.output_shape if model._is_graph_network else "multiple"
        except AttributeError:
            shape = "multiple"
        fields = ["%s (%s)" % (layer.name, type(layer).__name__), shape, layer.count_params()]
        nodes = [] if chain else _calls_within(model, layer)
        before = ["%s[%d][%d]" % (b.name, i, t) for n in nodes for b, i, t in zip(n.sources, n.source_nodes, n.source_places)]
        row(*fields, *([] if chain else before[:1] or [""]))
        for more in before[1:]:
            row("", "", "", more)
        show(("=" if layer is model.layers[-1] else "_") * width)
    trained, others = count_params(getattr(model, "_collected_trainable_weights", model.trainable_weights)), count_params(model.non_trainable_weights)
    show("Total params: {:,}".format(trained + others))
    show("Trainable params: {:,}".format(trained))
    show("Non-trainable params: {:,}".format(others))
    show("_" * width)
