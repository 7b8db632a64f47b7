# SPDX-License-Identifier: Apache-2.0
"""A model as a table."""

from __future__ import annotations

from typing import Any, List, Optional

from millrace.keras import backend as K


def count_params(weights: Any) -> int:
    """How many numbers some weights have."""
    return sum(K.count_params(w) for w in {id(w): w for w in weights}.values())


def print_summary(model: Any, line_length: Optional[int] = None, positions: Any = None, print_fn: Any = None) -> None:
    """Prints the layers of a model: name and class, shape, parameters; what feeds them where that is not the layer before."""
    show = print_fn or print
    nodes: Any = getattr(model, "_network_nodes", set())
    branched = any(
        len([n for n in layer._inbound_nodes if id(n) in nodes]) > 1 or any(len(n.inbound_layers) > 1 for n in layer._inbound_nodes if id(n) in nodes)
        for layer in model.layers
    )
    width = line_length or (98 if branched else 65)
    places = [int(width * p) if p <= 1 else int(p) for p in positions or ([0.33, 0.55, 0.67, 1.0] if branched else [0.45, 0.85, 1.0])]

    def row(fields: List[str]) -> None:
        line = ""
        for field, place in zip(fields, places):
            line = (line + field)[: place - 1].ljust(place)
        show(line.rstrip())

    show("_" * width)
    row(["Layer (type)", "Output Shape", "Param #", "Connected to"][: len(places)])
    show("=" * width)
    for layer in model.layers:
        try:
            shape = str(layer.output_shape)
        except AttributeError:
            shape = "multiple"
        fields = ["%s (%s)" % (layer.name, type(layer).__name__), shape, str(layer.count_params() if layer.built else 0)]
        if branched:
            before = [
                "%s[%d][%d]" % (b.name, i, t)
                for n in layer._inbound_nodes
                if id(n) in nodes
                for b, i, t in zip(n.inbound_layers, n.node_indices, n.tensor_indices)
            ]
            row([*fields, before[0] if before else ""])
            for more in before[1:]:
                row(["", "", "", more])
        else:
            row(fields)
    trained, total = count_params(model.trainable_weights), count_params(model.weights)
    show(
        "%s\nTotal params: %s\nTrainable params: %s\nNon-trainable params: %s\n%s"
        % ("=" * width, *(format(n, ",") for n in (total, trained, total - trained)), "_" * width)
    )
