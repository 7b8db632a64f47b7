# SPDX-License-Identifier: Apache-2.0
"""Recurrent cells around others: dropout, residues, devices, projections."""

from __future__ import annotations

import hashlib
import marshal
import types
from typing import Any, Callable, Dict, Optional

from millrace.framework import arguments, nest, tensor_shape
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, name_scope
from millrace.framework.static_values import constant_value
from millrace.ops import array_ops, gen_ops, init_ops, nn_ops, random_ops
from millrace.ops.rnn_cells import LSTMStateTuple, RNNCell, call_shared, flat_sizes
from millrace.ops.rnn_parts import _linear
from millrace.ops.tensor_array_ops import TensorArray
from millrace.ops.variable_scope import get_variable, get_variable_scope


def _spares_memories(part: Any) -> Any:
    """What of a state is dropped: all but what an LSTM's c holds, and lists."""
    if isinstance(part, LSTMStateTuple):
        return LSTMStateTuple(c=False, h=True)
    return not isinstance(part, TensorArray)


_KNOWN: Dict[str, Callable[..., Any]] = {}  # functions of this program, by what settings have of them


def _settings_of(name: str, function: Any) -> Dict[str, Any]:
    """A function as settings: its code, defaults and closure, or the name of what is no function of Python."""
    if isinstance(function, types.FunctionType):
        code = marshal.dumps(function.__code__).decode("raw_unicode_escape")
        closure = tuple(c.cell_contents for c in function.__closure__) if function.__closure__ else None
        value, kind = (code, function.__defaults__, closure), "lambda"
    else:
        code = value = function.__name__  # type: ignore[assignment]
        kind = "function"
    _KNOWN[code] = function
    return {name: value, name + "_type": kind, name + "_module": function.__module__}


class _AroundCell:
    """A cell around another one, which checkpoints know as `cell`."""

    _cell: Any
    _function = ("", "", "")  # an argument that is a function, where it is kept, and its name in settings

    def _children_by_name(self) -> Dict[str, Any]:
        return {"cell": self._cell}

    def get_config(self) -> Dict[str, Any]:
        """Its arguments; the cell as the name of its class and its own."""
        config: Dict[str, Any] = super().get_config()  # type: ignore[misc]
        config["cell"] = {"class_name": type(self._cell).__name__, "config": self._cell.get_config()}
        _, kept, name = self._function
        return {**config, **_settings_of(name, getattr(self, kept))} if getattr(self, "_is_given", False) else config

    @classmethod
    def from_config(cls, config: Dict[str, Any], custom_objects: Any = None) -> Any:
        """A cell of what get_config gave, with a cell in the place of `cell`. Functions must be those of this program: code out of files is not run."""
        del custom_objects  # cells are given
        config = dict(config)
        if isinstance(config.get("cell"), dict):
            raise at_user_line(
                ValueError("RNNCellWrapper cannot reconstruct the wrapped cell. Please overwrite the cell in the config with a RNNCell instance.")
            )
        argument, _, name = cls._function
        if name in config:
            value = config.pop(name)
            for more in ("_type", "_module"):
                config.pop(name + more, None)
            config[argument] = _KNOWN.get(value if isinstance(value, str) else value[0])
            if config[argument] is None:
                raise at_user_line(ValueError("The %s of %s is not known to this program: code out of files is not run." % (argument, cls.__name__)))
        return cls(**config)


class _Dropping(_AroundCell):
    """A cell with dropout of inputs, outputs and state."""

    _function = ("dropout_state_filter_visitor", "_dropout_state_filter", "dropout_fn")

    def _set_dropout(
        self,
        cell: Any,
        input_keep_prob: Any,
        output_keep_prob: Any,
        state_keep_prob: Any,
        variational_recurrent: bool,
        input_size: Any,
        dtype: Any,
        seed: Optional[int],
        dropout_state_filter_visitor: Any,
    ) -> None:
        if dropout_state_filter_visitor is not None and not callable(dropout_state_filter_visitor):
            raise at_user_line(TypeError("dropout_state_filter_visitor must be callable"))
        with name_scope("DropoutWrapperInit"):
            for name, keep in (("input", input_keep_prob), ("state", state_keep_prob), ("output", output_keep_prob)):
                known = constant_value(convert_to_tensor(keep))
                if known is not None and not 0 <= known <= 1:
                    raise at_user_line(ValueError("Parameter %s_keep_prob must be between 0 and 1: %s" % (name, known)))
        self._input_keep_prob, self._output_keep_prob, self._state_keep_prob, self._seed = input_keep_prob, output_keep_prob, state_keep_prob, seed
        self._settings_given = {"variational_recurrent": variational_recurrent, "input_size": input_size, "seed": seed}
        self._dropout_state_filter, self._is_given = dropout_state_filter_visitor or _spares_memories, dropout_state_filter_visitor is not None
        self._noise: Any = {}
        if not variational_recurrent:
            return
        if dtype is None:
            raise at_user_line(ValueError("When variational_recurrent=True, dtype must be provided"))
        if self._on(input_keep_prob) and input_size is None:
            raise at_user_line(ValueError("When variational_recurrent=True and input_keep_prob < 1.0 or is unknown, input_size must be provided"))
        for place, keep, sizes in (
            ("input", input_keep_prob, input_size),
            ("state", state_keep_prob, cell.state_size),
            ("output", output_keep_prob, cell.output_size),
        ):
            if self._on(keep):
                self._noise[place] = [
                    random_ops.random_uniform(array_ops.concat([[1], tensor_shape.as_shape(s).as_list()], 0), seed=self._gen_seed(place, i), dtype=dtype)
                    for i, s in enumerate(flat_sizes(sizes))
                ]

    def get_config(self) -> Dict[str, Any]:
        """Its arguments."""
        keep = {"input_keep_prob": self._input_keep_prob, "output_keep_prob": self._output_keep_prob, "state_keep_prob": self._state_keep_prob}
        return {**super().get_config(), **keep, **self._settings_given}

    @staticmethod
    def _on(keep: Any) -> bool:
        return isinstance(keep, Tensor) or not isinstance(keep, (int, float)) or keep < 1

    def _gen_seed(self, place: str, index: int) -> Optional[int]:
        """A seed for each place, so that no two drop alike."""
        if self._seed is None:
            return None
        text = (str(self._seed) + "%s_%d" % (place, index)).encode("utf-8")
        return int(hashlib.md5(text).hexdigest()[:8], 16) & 0x7FFFFFFF

    def _drop(self, value: Any, keep: Any, place: str, index: int) -> Any:
        if not self._noise:
            return nn_ops.dropout(value, keep, seed=self._gen_seed(place, index))
        kept = gen_ops.floor(keep + self._noise[place][index])
        made = gen_ops.real_div(value, keep, name="div") * kept
        made.set_shape(value.get_shape())
        return made

    def _drop_all(self, values: Any, keep: Any, place: str) -> Any:
        return nest.pack_sequence_as(values, [self._drop(v, keep, place, i) for i, v in enumerate(nest.flatten(values))])

    def _drop_state(self, state: Any) -> Any:
        count = iter(range(len(nest.flatten(state))))

        def walk(part: Any, wanted: Any) -> Any:
            answer = self._dropout_state_filter(part) if wanted else False
            if not nest.is_sequence(part):
                index = next(count)
                return self._drop(part, self._state_keep_prob, "state", index) if answer else part
            inner = list(nest._parts(part))
            answers = list(nest._parts(answer)) if nest.is_sequence(answer) else [answer] * len(inner)
            return nest._like(part, [walk(p, a) for p, a in zip(inner, answers)])

        return walk(state, True)

    def _dropped(self, inputs: Any, compute: Callable[[Any], Any]) -> Any:
        """(output, next state) that a function computes of inputs, with dropout of all three."""
        if self._on(self._input_keep_prob):
            inputs = self._drop_all(inputs, self._input_keep_prob, "input")
        output, new = compute(inputs)
        if self._on(self._state_keep_prob):
            new = self._drop_state(new)
        if self._on(self._output_keep_prob):
            output = self._drop_all(output, self._output_keep_prob, "output")
        return output, new


class DropoutWrapper(_Dropping, RNNCell):
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
        super().__init__(dtype=dtype, **kwargs)
        self._cell = cell
        keep = input_keep_prob, output_keep_prob, state_keep_prob
        self._set_dropout(cell, *keep, variational_recurrent, input_size, dtype, seed, dropout_state_filter_visitor)

    state_size = property(lambda self: self._cell.state_size, doc="That of the cell.")
    output_size = property(lambda self: self._cell.output_size, doc="That of the cell.")
    cell = property(lambda self: self._cell, doc="The cell.")

    wrapped_cell = property(lambda self: self._cell, doc="The cell.")

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """A state of zeros."""
        with name_scope(type(self).__name__ + "ZeroState"):
            return self._cell.zero_state(batch_size, dtype)

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        return self._dropped(inputs, lambda x: call_shared(self._cell, x, state) if scope is None else self._cell(x, state, scope))


class _Wrapper(RNNCell):
    def __init__(self, cell: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._cell = cell

    state_size = property(lambda self: self._cell.state_size, doc="That of the cell.")
    output_size = property(lambda self: self._cell.output_size, doc="That of the cell.")

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """A state of zeros."""
        with name_scope(type(self).__name__ + "ZeroState"):
            return self._cell.zero_state(batch_size, dtype)


class ResidualWrapper(_AroundCell, _Wrapper):
    """A cell whose inputs are added to its outputs."""

    _function = ("residual_fn", "_residual_fn", "residual_fn")
    cell = property(lambda self: self._cell, doc="The cell.")

    def __init__(self, cell: Any, residual_fn: Any = None, **kwargs: Any) -> None:
        super().__init__(cell, **kwargs)
        self._is_given = residual_fn is not None
        self._residual_fn: Callable[..., Any] = residual_fn or (lambda i, o: nest.map_structure(lambda a, b: a + b, i, o))

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        output, new = self._cell(inputs, state, scope)
        return self._residual_fn(inputs, output), new


class DeviceWrapper(_AroundCell, _Wrapper):
    """A cell on a device."""

    cell = property(lambda self: self._cell, doc="The cell.")

    def __init__(self, cell: Any, device: Any, **kwargs: Any) -> None:
        super().__init__(cell, **kwargs)
        self._device = device

    def get_config(self) -> Dict[str, Any]:
        """Its arguments."""
        return {**super().get_config(), "device": self._device}

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        from millrace.framework.graph import device

        with device(self._device):
            return self._cell(inputs, state, scope)


class OutputProjectionWrapper(_Wrapper):
    """A cell with a linear layer on its outputs."""

    def __init__(self, cell: Any, output_size: int, activation: Any = None, reuse: Any = None) -> None:
        super().__init__(cell)
        self._reuse = reuse
        self._size, self._activation = output_size, activation

    output_size = property(lambda self: self._size, doc="The size of the projection.")

    def call(self, inputs: Any, state: Any) -> Any:
        """(output, next state)."""
        output, new = self._cell(inputs, state)
        projected = _linear(output, self._size, True)
        return self._activation(projected) if self._activation else projected, new


class InputProjectionWrapper(_Wrapper):
    """A cell with a linear layer on its inputs."""

    def __init__(self, cell: Any, num_proj: int, activation: Any = None, input_size: Any = None, reuse: Any = None) -> None:
        arguments.deprecated(input_size=input_size)
        super().__init__(cell)
        self._reuse = reuse
        self._size, self._activation = num_proj, activation

    def call(self, inputs: Any, state: Any) -> Any:
        """(output, next state)."""
        projected = _linear(inputs, self._size, True)
        return self._cell(self._activation(projected) if self._activation else projected, state)


class EmbeddingWrapper(_Wrapper):
    """A cell whose inputs are numbers of rows of a table."""

    def __init__(self, cell: Any, embedding_classes: int, embedding_size: int, initializer: Any = None, reuse: Any = None) -> None:
        super().__init__(cell)
        self._reuse = reuse
        self._classes, self._size, self._initializer = embedding_classes, embedding_size, initializer

    def call(self, inputs: Any, state: Any) -> Any:
        """(output, next state)."""
        initializer = self._initializer or get_variable_scope().initializer or init_ops.random_uniform_initializer(-(3**0.5), 3**0.5)
        dtype = nest.flatten(state)[0].dtype.base_dtype
        table = get_variable("embedding", [self._classes, self._size], dtype, initializer)
        return self._cell(nn_ops.embedding_lookup(table, array_ops.reshape(inputs, [-1])), state)


class _SlimRNNCell(RNNCell):
    """A function (inputs, state, scope) -> (output, state) as a cell; called with None for both it says the sizes."""

    def __init__(self, cell_fn: Any) -> None:
        super().__init__()
        if not callable(cell_fn):
            raise at_user_line(TypeError("cell_fn %s needs to be callable" % (cell_fn,)))
        self._function, self._name = cell_fn, getattr(getattr(cell_fn, "func", cell_fn), "__name__", None)
        output, state = cell_fn(None, None)
        self._sizes = nest.map_structure(lambda part: part.get_shape()[-1].value, (output, state))

    output_size = property(lambda self: self._sizes[0], doc="The size of the output.")
    state_size = property(lambda self: self._sizes[1], doc="The sizes of the state.")

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        return self._function(inputs, state, scope=scope or self._name)
