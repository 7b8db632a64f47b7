# SPDX-License-Identifier: Apache-2.0
"""tf.compat.v2.nn.RNNCell...Wrapper: layers around recurrent cells, for tf.keras.layers.RNN. Cells of Keras are built and called as layers are,
those of tf.nn by their own calls."""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional

from millrace.framework import nest
from millrace.framework.graph import device as device_scope, name_scope
from millrace.layers.recurrent import AbstractRNNCell
from millrace.layers.serialization import CLASSES, deserialize
from millrace.ops.rnn_cells import RNNCell
from millrace.ops.rnn_wrappers import _AroundCell, _Dropping


class _Wrapper(_AroundCell, AbstractRNNCell):
    """A layer around a cell, which is a part of it."""

    def __init__(self, cell: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.cell = cell

    _cell = property(lambda self: self.cell)
    state_size = property(lambda self: self.cell.state_size, doc="That of the cell.")
    output_size = property(lambda self: self.cell.output_size, doc="That of the cell.")

    def build(self, input_shape: Any) -> None:
        """Builds the cell."""
        if not self.cell.built:
            self.cell.build(input_shape)
            self.cell.built = True
        self.built = True

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """A state of zeros."""
        with name_scope(type(self).__name__ + "ZeroState"):
            return (self.cell.zero_state if hasattr(self.cell, "zero_state") else super().get_initial_state)(batch_size=batch_size, dtype=dtype)

    def get_initial_state(self, inputs: Any = None, batch_size: Any = None, dtype: Any = None) -> Any:
        """Zeros, or what the cell begins with."""
        own = getattr(self.cell, "get_initial_state", super().get_initial_state)
        return own(inputs=inputs, batch_size=batch_size, dtype=dtype)

    def _computed(self, inputs: Any, state: Any, **kwargs: Any) -> Any:
        """(output, next state) of the cell."""
        return self.cell(inputs, state) if isinstance(self.cell, RNNCell) else self.cell.call(inputs, state, **kwargs)

    def call(self, inputs: Any, state: Any, **kwargs: Any) -> Any:  # type: ignore[override]
        """(output, next state)."""
        return self._computed(inputs, state, **kwargs)

    @classmethod
    def from_config(cls, config: Dict[str, Any], custom_objects: Any = None) -> Any:
        """A layer of what get_config gave. Functions must be those of this program: code out of files is not run."""
        cell = deserialize(dict(config["cell"]), custom_objects=custom_objects)
        return super().from_config({**config, "cell": cell}, custom_objects)


class DropoutWrapper(_Dropping, _Wrapper):
    """A cell with dropout of inputs, outputs and state; variational_recurrent: the same elements in every step and example (Gal and Ghahramani 2016)."""

    def __init__(
        self,
        cell: Any,
        input_keep_prob: Any = 1.0,
        output_keep_prob: Any = 1.0,
        state_keep_prob: Any = 1.0,
        variational_recurrent: bool = False,
        input_size: Any = None,
        dtype: Any = None,
        seed: Optional[int] = None,
        dropout_state_filter_visitor: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(cell, dtype=dtype, **kwargs)
        keep = input_keep_prob, output_keep_prob, state_keep_prob
        self._set_dropout(cell, *keep, variational_recurrent, input_size, dtype, seed, dropout_state_filter_visitor)

    wrapped_cell = property(lambda self: self.cell, doc="The cell.")

    def call(self, inputs: Any, state: Any, **kwargs: Any) -> Any:  # type: ignore[override]
        """(output, next state)."""
        return self._dropped(inputs, lambda x: self._computed(x, state, **kwargs))


class ResidualWrapper(_Wrapper):
    """A cell whose inputs are added to its outputs."""

    _function = ("residual_fn", "_residual_fn", "residual_fn")

    def __init__(self, cell: Any, residual_fn: Any = None, **kwargs: Any) -> None:
        super().__init__(cell, **kwargs)
        self._is_given = residual_fn is not None
        self._residual_fn: Callable[..., Any] = residual_fn or (lambda i, o: nest.map_structure(lambda a, b: a + b, i, o))

    def call(self, inputs: Any, state: Any, **kwargs: Any) -> Any:  # type: ignore[override]
        """(output, next state)."""
        output, new = self._computed(inputs, state, **kwargs)
        return self._residual_fn(inputs, output), new


class DeviceWrapper(_Wrapper):
    """A cell on a device."""

    def __init__(self, cell: Any, device: Any, **kwargs: Any) -> None:
        super().__init__(cell, **kwargs)
        self._device = device

    def get_config(self) -> Dict[str, Any]:
        """Its arguments."""
        return {**super().get_config(), "device": self._device}

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """A state of zeros, on the device."""
        with device_scope(self._device):
            return super().zero_state(batch_size, dtype)

    def call(self, inputs: Any, state: Any, **kwargs: Any) -> Any:  # type: ignore[override]
        """(output, next state)."""
        with device_scope(self._device):
            return self._computed(inputs, state, **kwargs)


CLASSES.update((kind.__name__, kind) for kind in (DropoutWrapper, ResidualWrapper, DeviceWrapper))
