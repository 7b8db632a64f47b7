# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""Layers whose settings are listed once: set by name, and given back by get_config."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Tuple

from millrace.keras import activations, constraints, initializers, regularizers
from millrace.layers.base import Layer
from millrace.layers.nodes import InputSpec  # noqa: F401


def _module(name: str) -> Any:
    for end, module in (("initializer", initializers), ("regularizer", regularizers), ("constraint", constraints), ("activation", activations)):
        if name.endswith(end):
            return module
    return None


class SettingsLayer(Layer):
    """A layer with the attributes that `settings` names; those of initializers and the like are understood by name."""

    settings: Tuple[str, ...] = ()

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...  # those of `settings`

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            module = _module(name)
            setattr(self, name, value if module is None else module.get(value))

    def get_config(self) -> Dict[str, Any]:
        """The arguments that make such a layer."""
        config = super().get_config()
        for name in self.settings:
            module, value = _module(name), getattr(self, name)
            config[name] = value if module is None or value is None else module.serialize(value)
        return config
