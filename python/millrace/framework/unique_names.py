# SPDX-License-Identifier: Apache-2.0
"""Names of layers, cells and their like: made of the name of the class, and each used once in a graph."""

from __future__ import annotations

import re

from millrace.framework.graph import get_default_graph


def snake(name: str) -> str:
    """snake_case of CamelCase."""
    made = re.sub("([a-z])([A-Z])", r"\1_\2", re.sub("(.)([A-Z][a-z0-9]+)", r"\1_\2", name)).lower()
    return "private" + made if made.startswith("_") else made


def unique_name(stem: str, first: int = 0) -> str:
    """stem, stem_1 and so on, in the default graph; `first` is 1 where the first one has its number too."""
    names = get_default_graph().__dict__.setdefault("_keras", {"phase": None, "names": {}})["names"]
    count = names.get(stem, 0)
    names[stem] = count + 1
    return "%s_%d" % (stem, count + first) if count + first else stem
