# SPDX-License-Identifier: Apache-2.0
"""Pictures of models, drawn by Graphviz."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
from typing import Any, Dict, List, Optional, Tuple

from millrace.framework.errors import at_user_line
from millrace.keras.engine.network import Network
from millrace.layers.wrappers import Wrapper


class Dot:
    """A picture in Graphviz's language, which its program `dot` draws."""

    def __init__(self, lines: List[str]) -> None:
        self._text = "digraph G {\n%s\n}\n" % "\n".join(lines)

    def to_string(self) -> str:
        """The text."""
        return self._text

    __str__ = to_string

    def create(self, prog: str = "dot", format: str = "ps") -> bytes:
        """The picture in a format such as "png" or "svg". ImportError where Graphviz is not installed."""
        if format in ("dot", "raw"):
            return self._text.encode()
        if shutil.which(prog) is None:
            raise at_user_line(
                ImportError("Drawing a model needs Graphviz: the program %s is not on the path. Without it a file that ends with .dot can be written." % prog)
            )
        return subprocess.run([prog, "-T" + format], input=self._text.encode(), stdout=subprocess.PIPE, check=True).stdout

    def write(self, path: str, prog: str = "dot", format: str = "raw") -> bool:
        """Writes the picture to a file."""
        drawn = self.create(prog, format)
        with open(path, "wb") as file:
            file.write(drawn)
        return True


def _quoted(text: str) -> str:
    return '"%s"' % text.replace("\\", "\\\\").replace('"', '\\"').replace("\\\\n", "\\n")


def _shown(shape: Any) -> str:
    return str(shape).replace("None", "?")


def _shapes(layer: Any) -> Tuple[str, str]:
    found = []
    for name in ("input_shape", "output_shape"):
        try:
            found.append(_shown(getattr(layer, name)))
        except AttributeError:
            found.append("?")
    return found[0], found[1]


class _Drawing:
    """The lines of a model: a node for each layer, an arrow for each layer whose outputs another takes."""

    def __init__(self, show_shapes: bool, show_layer_names: bool, expand_nested: bool) -> None:
        self._shapes, self._names, self._expand = show_shapes, show_layer_names, expand_nested
        self.nodes: List[str] = []
        self.arrows: Dict[str, None] = {}
        self._ends: Dict[int, Tuple[int, int]] = {}  # of models that are drawn inside: their first and last nodes

    def _label(self, layer: Any) -> str:
        name, kind = layer.name, type(layer).__name__
        if isinstance(layer, Wrapper) and id(layer.layer) not in self._ends:
            name, kind = "%s(%s)" % (name, layer.layer.name), "%s(%s)" % (kind, type(layer.layer).__name__)
        label = "%s: %s" % (name, kind) if self._names else kind
        return "%s\n|{input:|output:}|{{%s}|{%s}}" % ((label, *_shapes(layer))) if self._shapes else label

    def _within(self, model: Any) -> None:
        self.nodes += ["subgraph %s {" % _quoted("cluster_" + model.name), "style=dashed; labeljust=l; label=%s;" % _quoted(model.name)]
        self.add(model)
        self.nodes.append("}")
        self._ends[id(model)] = id(model.layers[0]), id(model.layers[-1])

    def _first(self, layer: Any) -> int:
        return self._first(_with_id(layer, self._ends[id(layer)][0])) if id(layer) in self._ends else id(layer)

    def _last(self, layer: Any) -> int:
        inner = layer.layer if isinstance(layer, Wrapper) else layer
        return self._last(_with_id(inner, self._ends[id(inner)][1])) if id(inner) in self._ends else id(layer)

    def _arrow(self, start: int, end: int) -> None:
        self.arrows["%d -> %d;" % (start, end)] = None

    def add(self, model: Any) -> None:
        """Draws a model."""
        if not model._has_config:
            self.nodes.append("%d [label=%s];" % (id(model), _quoted(model.name)))
            return
        for layer in model.layers:
            inner = layer.layer if isinstance(layer, Wrapper) else layer
            if self._expand and isinstance(inner, Network) and id(inner) not in self._ends and inner._has_config:
                self._within(inner)
            if id(layer) not in self._ends:
                self.nodes.append("%d [label=%s];" % (id(layer), _quoted(self._label(layer).replace("\n", "\\n"))))
                if inner is not layer and id(inner) in self._ends:
                    self._arrow(id(layer), self._first(inner))
        for layer in model.layers:
            for node in (n for n in layer._inbound_nodes if id(n) in model._network_nodes):
                for before in (b for b in node.sources if b is not None):
                    self._arrow(self._last(before), self._first(layer))


def _with_id(model: Any, number: int) -> Any:
    return next(layer for layer in model.layers if id(layer) == number)


def model_to_dot(model: Any, show_shapes: bool = False, show_layer_names: bool = True, rankdir: str = "TB", expand_nested: bool = False, dpi: int = 96) -> Dot:
    """A model's layers for Graphviz: `rankdir` says which way arrows point ("TB", "LR"); with expand_nested models inside are drawn as clusters."""
    if model._has_config and not model.built:
        model.build()
    drawing = _Drawing(show_shapes, show_layer_names, expand_nested)
    drawing.add(model)
    return Dot(["rankdir=%s; concentrate=true; dpi=%d;" % (rankdir, dpi), "node [shape=record];", *drawing.nodes, *drawing.arrows])


def plot_model(
    model: Any,
    to_file: str = "model.png",
    show_shapes: bool = False,
    show_layer_names: bool = True,
    rankdir: str = "TB",
    expand_nested: bool = False,
    dpi: int = 96,
) -> Optional[Any]:
    """Draws a model to a file, of the kind that its name ends with; in a notebook the picture."""
    kind = os.path.splitext(to_file)[1][1:] or "png"
    model_to_dot(model, show_shapes, show_layer_names, rankdir, expand_nested, dpi).write(to_file, format=kind)
    try:
        display = importlib.import_module("IPython.display")
    except ImportError:
        return None
    return display.Image(filename=to_file)
