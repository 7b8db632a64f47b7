# SPDX-License-Identifier: Apache-2.0
"""Variables that the models of several devices share: the first device makes them, the others get them in the same order."""

from __future__ import annotations

import re
from typing import Any, Callable, Dict, List, Optional


def _canonicalize_variable_name(name: Optional[str]) -> str:
    """A name without the numbers that names have where they come again; "Variable" of none."""
    return "Variable" if name is None else re.sub(r"_\d+(?=/|$)", "", name)


def make_fn(shared_variable_store: Dict[str, List[Any]], device_id: int) -> Callable[..., Any]:
    """A function for variable_creator_scope: of device 0 it makes variables and keeps them in the store by name, of others it takes them from there."""
    taken: Dict[str, int] = {}

    def create(next_creator: Callable[..., Any], **kwargs: Any) -> Any:
        name = _canonicalize_variable_name(kwargs.get("name"))
        kept = shared_variable_store.setdefault(name, [])
        if device_id == 0:
            kept.append(next_creator(**kwargs))
            return kept[-1]
        taken[name] = taken.get(name, 0) + 1
        return kept[taken[name] - 1]

    return create


def init_var_from_numpy(input_var: Any, numpy_input: Any, session: Any) -> None:
    """Runs a variable's initializer, then gives it an array as its value."""
    session.run(input_var.initializer)
    input_var.load(numpy_input, session)
