# SPDX-License-Identifier: Apache-2.0
"""tf.nn.rnn_cell: recurrent cells. The arithmetic of the basic ones is the library's composites."""

from __future__ import annotations

import collections
import contextlib
import hashlib
from typing import Any, Callable, List, Optional

from millrace.framework import arguments, dtypes, nest, tensor_shape
from millrace.framework.convert import convert_to_tensor
from millrace.framework.static_values import constant_value
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, name_scope
from millrace.framework.unique_names import snake
from millrace.ops import array_ops, gen_ops, init_ops, math_ops, matrix_ops, nn_ops, random_ops
from millrace.ops.partitions import fixed_size_partitioner
from millrace.ops.tensor_array_ops import TensorArray
from millrace.ops.variable_scope import get_variable, get_variable_scope, variable_scope


class LSTMStateTuple(collections.namedtuple("LSTMStateTuple", ["c", "h"])):
    """The state of an LSTM cell: c and h."""

    __slots__ = ()

    @property
    def dtype(self) -> Any:
        """The type of both."""
        if self.c.dtype != self.h.dtype:
            raise at_user_line(TypeError("Inconsistent internal state: %s vs %s" % (self.c.dtype, self.h.dtype)))
        return self.c.dtype


def _zeros(size: Any, batch_size: Any, dtype: Any) -> Tensor:
    dims = tensor_shape.as_shape(size).as_list()
    batch = constant_value(batch_size) if isinstance(batch_size, Tensor) else batch_size
    if isinstance(batch, tensor_shape.Dimension):
        batch = batch.value
    if batch is not None:
        return array_ops.zeros([int(batch)] + dims, dtype)
    made = array_ops.zeros(array_ops.concat([array_ops.expand_dims(batch_size, 0), convert_to_tensor(dims, dtypes.int32)], 0), dtype)
    made.set_shape([None] + dims)
    return made


class RNNCell:
    """Base of cells: state_size, output_size and call(inputs, state) -> (output, state). Variables are made by get_variable."""

    def __init__(self, trainable: bool = True, name: Optional[str] = None, dtype: Any = None, _reuse: Any = None, **unused: Any) -> None:
        self._reuse, self._name, self._trainable = _reuse, name, trainable
        self._dtype = None if dtype is None else dtypes.as_dtype(dtype)
        self._scope: Any = None
        self._made: Any = set()  # names of variables that make_variables made, until the first call finds them
        self._making = False
        self.built = False

    def __repr__(self) -> str:
        try:
            return "<%s, state %s, output %s>" % (type(self).__name__, self.state_size, self.output_size)
        except (NotImplementedError, AttributeError, ValueError):
            return "<%s>" % type(self).__name__

    @property
    def state_size(self) -> Any:
        """The sizes of the state, in its structure."""
        raise NotImplementedError("Abstract method")

    @property
    def output_size(self) -> Any:
        """The size of the output."""
        raise NotImplementedError("Abstract method")

    dtype = property(lambda self: getattr(self, "_dtype", None), doc="The type of its variables: the first inputs', unless it was given.")

    @property
    def _scope_name(self) -> str:
        if getattr(self, "_name", None):
            return str(self._name)
        return snake(type(self).__name__)

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        if type(self).call is RNNCell.call:
            raise NotImplementedError("A cell needs call(inputs, state)")
        if getattr(self, "_dtype", None) is None:
            first = nest.flatten(inputs)[0]
            self._dtype = first.dtype.base_dtype if isinstance(first, Tensor) else None
        stored = getattr(self, "_scope", None)
        reuse = getattr(self, "_reuse", None)
        if stored is not None and scope is None:
            with variable_scope(stored, reuse=True, auxiliary_name_scope=False), name_scope(stored.original_name_scope or stored.name.split("/")[-1]):
                return self.call(inputs, state)
        with variable_scope(scope if scope is not None else self._scope_name, reuse=reuse) as captured:
            self._scope = captured
            result = self.call(inputs, state)
        self.built = True
        return result

    def call(self, inputs: Any, state: Any) -> Any:
        """(output, next state)."""
        raise NotImplementedError("Abstract method")

    def build(self, unused: Any) -> None:
        """Nothing to do: variables are made when the cell is first called."""

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """A state of zeros."""
        with name_scope(type(self).__name__ + "ZeroState"):
            return nest.pack_sequence_as(self.state_size, [_zeros(s, batch_size, dtype) for s in _flat_sizes(self.state_size)])

    def _variable(self, name: str, shape: Any, dtype: Any, initializer: Any = None, shards: int = 1) -> Any:
        """get_variable, which finds what make_variables made; of several parts along the first axis, the whole."""
        partitioner = fixed_size_partitioner(shards) if shards > 1 else None
        whole = convert_to_tensor if shards > 1 else (lambda variable: variable)
        scope = get_variable_scope()
        full = scope.name + "/" + name
        if self.__dict__.get("_making"):
            self._made.add(full)
        elif full in self.__dict__.get("_made", ()):
            self._made.discard(full)
            with variable_scope(scope, reuse=True, auxiliary_name_scope=False):
                return whole(get_variable(name, shape, dtype, initializer, partitioner=partitioner))
        return whole(get_variable(name, shape, dtype, initializer, partitioner=partitioner))

    @property
    def _own(self) -> Any:
        return self._scope.global_variables() if self._scope is not None else []

    variables = weights = property(lambda self: self._own, doc="Its variables.")
    trainable_variables = trainable_weights = property(
        lambda self: self._scope.trainable_variables() if self._scope is not None else [], doc="Its trainable variables."
    )
    non_trainable_variables = non_trainable_weights = property(lambda self: [v for v in self._own if v not in self.trainable_variables], doc="The others.")
    losses = updates = property(lambda self: [], doc="None.")

    def get_config(self) -> Any:
        """Its arguments."""
        return {}

    def add_variable(self, name: str, shape: Any, dtype: Any = None, initializer: Any = None, **kwargs: Any) -> Any:
        """A variable of the cell."""
        return get_variable(name, shape, dtype, initializer)


class _LayerRNNCell(RNNCell):
    pass


def _flat_sizes(sizes: Any) -> List[Any]:
    return nest.flatten(sizes)


_NAMES = {"tanh": "Tanh", "relu": "Relu", "relu6": "Relu6", "sigmoid": "Sigmoid", "elu": "Elu", "softsign": "Softsign", "identity": "Identity"}


def _here(inputs: Any) -> str:
    """The current name scope, for composites whose nodes join it."""
    return str(inputs.graph.get_name_scope()) + "/"


def _is_parted(cell: Any, state: Any) -> bool:
    """Whether a cell's state comes in parts. Up to TensorFlow 0.10 it was one tensor unless a tuple was asked for, and so it is taken."""
    if not cell._state_is_tuple or not isinstance(state, Tensor):
        return bool(cell._state_is_tuple)
    dims, sizes = state.get_shape(), _flat_sizes(cell.state_size)
    return not (dims.ndims == 2 and all(isinstance(s, int) for s in sizes) and dims[1].value == sum(sizes))


def _library_name(activation: Any) -> Optional[str]:
    """The composites' name of an activation; None for others."""
    if activation is None:
        return "Tanh"
    if activation in (math_ops.tanh, math_ops.sigmoid, nn_ops.relu, nn_ops.relu6, nn_ops.elu, nn_ops.softsign, array_ops.identity):
        return _NAMES[activation.__name__]
    return None


def _depth(inputs: Any) -> int:
    size = inputs.get_shape()[-1].value
    if size is None:
        raise at_user_line(ValueError("Expected inputs.shape[-1] to be known, saw shape: %s" % inputs.get_shape()))
    return int(size)


class BasicRNNCell(RNNCell):
    """activation([inputs, state] kernel + bias)."""

    def __init__(
        self, num_units: int, activation: Any = None, reuse: Any = None, name: Optional[str] = None, dtype: Any = None, input_size: Any = None, **unused: Any
    ) -> None:
        arguments.deprecated(input_size=input_size)
        super().__init__(_reuse=reuse, name=name, dtype=dtype)
        self._num_units, self._activation = int(num_units), activation

    state_size = output_size = property(lambda self: self._num_units, doc="The number of units.")

    def _parameters(self, depth: int, dtype: Any) -> List[Any]:
        return [
            self._variable("kernel", [depth + self._num_units, self._num_units], dtype),
            self._variable("bias", [self._num_units], dtype, init_ops.zeros_initializer()),
        ]

    def call(self, inputs: Any, state: Any) -> Any:
        """(output, next state)."""
        kernel, bias = self._parameters(_depth(inputs), inputs.dtype.base_dtype)
        name = _library_name(self._activation)
        if name is not None:
            made = gen_ops.basic_rnn_cell(inputs, [state], [kernel, bias], self._num_units, activation=name, name=_here(inputs))
            return made[0], made[0]
        output = self._activation(nn_ops.bias_add(matrix_ops.matmul(array_ops.concat([inputs, state], 1), kernel), bias))
        return output, output


class GRUCell(RNNCell):
    """The gated recurrent unit."""

    def __init__(
        self,
        num_units: int,
        activation: Any = None,
        reuse: Any = None,
        kernel_initializer: Any = None,
        bias_initializer: Any = None,
        name: Optional[str] = None,
        dtype: Any = None,
        input_size: Any = None,
        **unused: Any,
    ) -> None:
        arguments.deprecated(input_size=input_size)
        super().__init__(_reuse=reuse, name=name, dtype=dtype)
        self._num_units, self._activation = int(num_units), activation
        self._kernel_initializer, self._bias_initializer = kernel_initializer, bias_initializer

    state_size = output_size = property(lambda self: self._num_units, doc="The number of units.")

    def _parameters(self, depth: int, dtype: Any) -> List[Any]:
        width, n = depth + self._num_units, self._num_units
        with variable_scope("gates", auxiliary_name_scope=False):
            gates = [
                self._variable("kernel", [width, 2 * n], dtype, self._kernel_initializer),
                self._variable("bias", [2 * n], dtype, self._bias_initializer or init_ops.constant_initializer(1.0, dtype)),
            ]
        with variable_scope("candidate", auxiliary_name_scope=False):
            return gates + [
                self._variable("kernel", [width, n], dtype, self._kernel_initializer),
                self._variable("bias", [n], dtype, self._bias_initializer or init_ops.zeros_initializer()),
            ]

    def call(self, inputs: Any, state: Any) -> Any:
        """(output, next state)."""
        parameters = self._parameters(_depth(inputs), inputs.dtype.base_dtype)
        gates, candidate = parameters[:2], parameters[2:]
        name = _library_name(self._activation)
        if name is not None:
            made = gen_ops.gru_cell(inputs, [state], parameters, self._num_units, activation=name, name=_here(inputs))
            return made[0], made[0]
        both = math_ops.sigmoid(nn_ops.bias_add(matrix_ops.matmul(array_ops.concat([inputs, state], 1), gates[0]), gates[1]))
        r, u = array_ops.split(both, 2, 1)
        c = self._activation(nn_ops.bias_add(matrix_ops.matmul(array_ops.concat([inputs, r * state], 1), candidate[0]), candidate[1]))
        output = u * state + (1 - u) * c
        return output, output


class BasicLSTMCell(RNNCell):
    """The LSTM cell without peepholes, clipping or projection."""

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        state_is_tuple: bool = True,
        activation: Any = None,
        reuse: Any = None,
        name: Optional[str] = None,
        dtype: Any = None,
        input_size: Any = None,
        **unused: Any,
    ) -> None:
        arguments.deprecated(input_size=input_size)
        if callable(state_is_tuple) or state_is_tuple is None:  # 0.x: (num_units, forget_bias, input_size, state_is_tuple)
            state_is_tuple = True
        super().__init__(_reuse=reuse, name=name, dtype=dtype)
        self._num_units, self._forget_bias, self._state_is_tuple, self._activation = int(num_units), forget_bias, state_is_tuple, activation

    @property
    def state_size(self) -> Any:
        """The sizes of c and h."""
        return LSTMStateTuple(self._num_units, self._num_units) if self._state_is_tuple else 2 * self._num_units

    output_size = property(lambda self: self._num_units, doc="The number of units.")

    def _parameters(self, depth: int, dtype: Any) -> List[Any]:
        n = self._num_units
        return [self._variable("kernel", [depth + n, 4 * n], dtype), self._variable("bias", [4 * n], dtype, init_ops.zeros_initializer())]

    def call(self, inputs: Any, state: Any) -> Any:
        """(output, next state)."""
        kernel, bias = self._parameters(_depth(inputs), inputs.dtype.base_dtype)
        parted = _is_parted(self, state)
        c, h = state if parted else array_ops.split(state, 2, 1)
        name = _library_name(self._activation)
        if name is not None:
            made = gen_ops.basic_lstm_cell(
                inputs, [c, h], [kernel, bias], self._num_units, forget_bias=float(self._forget_bias), activation=name, name=_here(inputs)
            )
            output, (new_c, new_h) = made[0], made[1]
        else:
            i, j, f, o = array_ops.split(nn_ops.bias_add(matrix_ops.matmul(array_ops.concat([inputs, h], 1), kernel), bias), 4, 1)
            new_c = c * math_ops.sigmoid(f + self._forget_bias) + math_ops.sigmoid(i) * self._activation(j)
            output = new_h = self._activation(new_c) * math_ops.sigmoid(o)
        return output, LSTMStateTuple(new_c, new_h) if parted else array_ops.concat([new_c, new_h], 1)


class LSTMCell(RNNCell):
    """The LSTM cell with peepholes, clipping and projection where wanted."""

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        cell_clip: Any = None,
        initializer: Any = None,
        num_proj: Optional[int] = None,
        proj_clip: Any = None,
        num_unit_shards: Any = None,
        num_proj_shards: Any = None,
        forget_bias: float = 1.0,
        state_is_tuple: bool = True,
        activation: Any = None,
        reuse: Any = None,
        name: Optional[str] = None,
        dtype: Any = None,
        input_size: Any = None,
        **unused: Any,
    ) -> None:
        arguments.deprecated(input_size=input_size)
        super().__init__(_reuse=reuse, name=name, dtype=dtype)
        self._num_units, self._use_peepholes, self._cell_clip, self._initializer = int(num_units), use_peepholes, cell_clip, initializer
        self._num_proj, self._proj_clip, self._forget_bias = num_proj, proj_clip, forget_bias
        self._state_is_tuple, self._activation = state_is_tuple, activation
        self._kernel_shards, self._projection_shards = num_unit_shards or 1, num_proj_shards or 1

    @property
    def state_size(self) -> Any:
        """The sizes of c and h."""
        out = self._num_proj or self._num_units
        return LSTMStateTuple(self._num_units, out) if self._state_is_tuple else self._num_units + out

    output_size = property(lambda self: self._num_proj or self._num_units, doc="The number of units, or of the projection.")

    def _parameters(self, depth: int, dtype: Any) -> List[Any]:
        n, out = self._num_units, self._num_proj or self._num_units
        parameters = [
            self._variable("kernel", [depth + out, 4 * n], dtype, self._initializer, self._kernel_shards),
            self._variable("bias", [4 * n], dtype, init_ops.zeros_initializer()),
        ]
        if self._use_peepholes:
            parameters += [self._variable(w, [n], dtype, self._initializer) for w in ("w_f_diag", "w_i_diag", "w_o_diag")]
        if self._num_proj:
            with variable_scope("projection", auxiliary_name_scope=False):
                parameters.append(self._variable("kernel", [n, self._num_proj], dtype, self._initializer, self._projection_shards))
        return parameters

    def call(self, inputs: Any, state: Any) -> Any:
        """(output, next state)."""
        n, out = self._num_units, self._num_proj or self._num_units
        parameters = self._parameters(_depth(inputs), inputs.dtype.base_dtype)
        parted = _is_parted(self, state)
        c, h = state if parted else array_ops.split(state, [n, out], 1)
        name = _library_name(self._activation)
        if name is None or 0 in (self._cell_clip, self._proj_clip):  # to the composite, a bound of 0 is none
            new_h, new_c = self._by_hand(inputs, c, h, parameters)
            return new_h, LSTMStateTuple(new_c, new_h) if parted else array_ops.concat([new_c, new_h], 1)
        made = gen_ops.lstm_cell(
            inputs,
            [c, h],
            parameters,
            n,
            use_peepholes=bool(self._use_peepholes),
            cell_clip=float(self._cell_clip or 0.0),
            num_proj=self._num_proj or 0,
            proj_clip=float(self._proj_clip or 0.0),
            forget_bias=float(self._forget_bias),
            activation=name,
            name=_here(inputs),
        )
        new_c, new_h = made[1]
        return made[0], LSTMStateTuple(new_c, new_h) if parted else array_ops.concat([new_c, new_h], 1)

    def _by_hand(self, inputs: Any, c: Any, h: Any, parameters: List[Any]) -> Any:
        """(output, c) with an activation or bounds that the library does not know."""
        activation = self._activation or math_ops.tanh
        peepholes = list(parameters[2:5]) if self._use_peepholes else [0.0, 0.0, 0.0]
        sums = nn_ops.bias_add(matrix_ops.matmul(array_ops.concat([inputs, h], 1), parameters[0]), parameters[1])
        i, j, f, o = array_ops.split(sums, 4, 1)
        keep = math_ops.sigmoid(f + self._forget_bias + peepholes[0] * c)
        new_c = keep * c + math_ops.sigmoid(i + peepholes[1] * c) * activation(j)
        if self._cell_clip is not None:
            new_c = math_ops.clip_by_value(new_c, -self._cell_clip, self._cell_clip)
        new_h = math_ops.sigmoid(o + peepholes[2] * new_c) * activation(new_c)
        if self._num_proj:
            new_h = matrix_ops.matmul(new_h, parameters[-1])
            if self._proj_clip is not None:
                new_h = math_ops.clip_by_value(new_h, -self._proj_clip, self._proj_clip)
        return new_h, new_c


class MultiRNNCell(RNNCell):
    """Cells on top of each other."""

    def __init__(self, cells: Any, state_is_tuple: Optional[bool] = None) -> None:
        super().__init__()
        if not cells:
            raise at_user_line(ValueError("Must specify at least one cell for MultiRNNCell."))
        if not isinstance(cells, (list, tuple)):
            raise at_user_line(TypeError("cells must be a list or tuple, but saw: %s." % (cells,)))
        self._cells, self._state_is_tuple = list(cells), state_is_tuple is not False
        self._takes_one_tensor = state_is_tuple is None  # as up to TensorFlow 0.10, where nothing was said

    @property
    def state_size(self) -> Any:
        """The sizes of the cells' states."""
        if self._state_is_tuple:
            return tuple(c.state_size for c in self._cells)
        return sum(c.state_size for c in self._cells)

    output_size = property(lambda self: self._cells[-1].output_size, doc="The size of the last cell's output.")

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """A state of zeros."""
        if not self._state_is_tuple:
            return super().zero_state(batch_size, dtype)
        with name_scope(type(self).__name__ + "ZeroState"):
            return tuple(c.zero_state(batch_size, dtype) for c in self._cells)

    def call(self, inputs: Any, state: Any) -> Any:
        """(output, next state)."""
        states, at = [], 0
        parted = _is_parted(self, state) if self._takes_one_tensor else self._state_is_tuple
        for i, cell in enumerate(self._cells):
            with variable_scope("cell_%d" % i):
                if parted:
                    if not nest.is_sequence(state):
                        raise at_user_line(ValueError("Expected state to be a tuple of length %d, but received: %s" % (len(self._cells), state)))
                    current = state[i]
                else:
                    size = sum(_flat_sizes(cell.state_size))
                    current = array_ops.slice(state, [0, at], [-1, size])
                    at += size
                inputs, new = _call_shared(cell, inputs, current)
                states.append(new)
        return inputs, tuple(states) if parted else array_ops.concat(states, 1)


def make_variables(cell: Any, inputs: Any) -> Any:
    """Makes the variables of the library's own cells before a loop, in the current variable scope, as C++ does; the width of the outputs. None: the
    cell makes its variables when it is called."""
    if not isinstance(inputs, Tensor) or inputs.get_shape().ndims is None or inputs.get_shape()[-1].value is None:
        return None
    return _make_variables(cell, int(inputs.get_shape()[-1].value), inputs.dtype.base_dtype)


def _make_variables(cell: Any, width: int, dtype: Any) -> Any:
    if type(cell) in (DropoutWrapper, ResidualWrapper):
        return _make_variables(cell._cell, width, dtype)
    if type(cell) not in (BasicRNNCell, GRUCell, BasicLSTMCell, LSTMCell, MultiRNNCell) or cell._scope is not None or get_variable_scope().reuse:
        return None
    with variable_scope(cell._scope_name, reuse=cell._reuse, auxiliary_name_scope=False) as scope:
        if scope.reuse:
            return None
        if type(cell) is not MultiRNNCell:
            cell._making = True
            try:
                cell._parameters(width, dtype)
            finally:
                cell._making = False
            return cell.output_size
        for i, inner in enumerate(cell._cells):
            with variable_scope("cell_%d" % i, auxiliary_name_scope=False):
                width = _make_variables(inner, width, dtype)
            if width is None:
                return None
        return width


def _call_shared(cell: Any, inputs: Any, state: Any) -> Any:
    """Calls a cell in this scope; one object used in several places ([cell] * n) has variables of its own in each."""
    scope = get_variable_scope().name
    places = cell.__dict__.setdefault("_places", {})
    cell._scope = places.get(scope)
    result = cell(inputs, state)
    places[scope] = cell._scope
    return result


def _spares_memories(part: Any) -> Any:
    """What of a state is dropped: all but what an LSTM's c holds, and lists."""
    if isinstance(part, LSTMStateTuple):
        return LSTMStateTuple(c=False, h=True)
    return not isinstance(part, TensorArray)


class DropoutWrapper(RNNCell):
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
    ) -> None:
        super().__init__()
        if dropout_state_filter_visitor is not None and not callable(dropout_state_filter_visitor):
            raise at_user_line(TypeError("dropout_state_filter_visitor must be callable"))
        for name, keep in (("input", input_keep_prob), ("state", state_keep_prob), ("output", output_keep_prob)):
            known = keep if isinstance(keep, (int, float)) else constant_value(convert_to_tensor(keep))
            if known is not None and not 0 <= known <= 1:
                raise at_user_line(ValueError("Parameter %s_keep_prob must be between 0 and 1: %s" % (name, known)))
        self._cell, self._input, self._output, self._state, self._seed = cell, input_keep_prob, output_keep_prob, state_keep_prob, seed
        self._filter = dropout_state_filter_visitor or _spares_memories
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
                    random_ops.random_uniform([1] + tensor_shape.as_shape(s).as_list(), seed=self._gen_seed(place, i), dtype=dtype)
                    for i, s in enumerate(_flat_sizes(sizes))
                ]

    state_size = property(lambda self: self._cell.state_size, doc="That of the cell.")
    output_size = property(lambda self: self._cell.output_size, doc="That of the cell.")
    wrapped_cell = property(lambda self: self._cell, doc="The cell.")

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """A state of zeros."""
        with name_scope(type(self).__name__ + "ZeroState"):
            return self._cell.zero_state(batch_size, dtype)

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
        keep = convert_to_tensor(keep, value.dtype.base_dtype)
        made = value / keep * gen_ops.floor(keep + self._noise[place][index])
        made.set_shape(value.get_shape())
        return made

    def _drop_all(self, values: Any, keep: Any, place: str) -> Any:
        return nest.pack_sequence_as(values, [self._drop(v, keep, place, i) for i, v in enumerate(nest.flatten(values))])

    def _drop_state(self, state: Any) -> Any:
        count = iter(range(len(nest.flatten(state))))

        def walk(part: Any, wanted: Any) -> Any:
            answer = self._filter(part) if wanted else False
            if not nest.is_sequence(part):
                index = next(count)
                return self._drop(part, self._state, "state", index) if answer else part
            inner = list(nest._parts(part))
            answers = list(nest._parts(answer)) if nest.is_sequence(answer) else [answer] * len(inner)
            return nest._like(part, [walk(p, a) for p, a in zip(inner, answers)])

        return walk(state, True)

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        if self._on(self._input):
            inputs = self._drop_all(inputs, self._input, "input")
        output, new = _call_shared(self._cell, inputs, state) if scope is None else self._cell(inputs, state, scope)
        if self._on(self._state):
            new = self._drop_state(new)
        if self._on(self._output):
            output = self._drop_all(output, self._output, "output")
        return output, new


class _Wrapper(RNNCell):
    def __init__(self, cell: Any) -> None:
        super().__init__()
        self._cell = cell

    state_size = property(lambda self: self._cell.state_size, doc="That of the cell.")
    output_size = property(lambda self: self._cell.output_size, doc="That of the cell.")

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """A state of zeros."""
        with name_scope(type(self).__name__ + "ZeroState"):
            return self._cell.zero_state(batch_size, dtype)


class ResidualWrapper(_Wrapper):
    """A cell whose inputs are added to its outputs."""

    def __init__(self, cell: Any, residual_fn: Any = None) -> None:
        super().__init__(cell)
        self._residual: Callable[..., Any] = residual_fn or (lambda i, o: nest.map_structure(lambda a, b: a + b, i, o))

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        output, new = self._cell(inputs, state, scope)
        return self._residual(inputs, output), new


class DeviceWrapper(_Wrapper):
    """A cell on a device."""

    def __init__(self, cell: Any, device: Any) -> None:
        super().__init__(cell)
        self._device = device

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


_WEIGHTS_VARIABLE_NAME, _BIAS_VARIABLE_NAME = "kernel", "bias"


class _Linear:
    """[args] kernel + bias: makes the variables, and computes for these or other tensors of the same widths."""

    def __init__(self, args: Any, output_size: int, build_bias: bool, bias_initializer: Any = None, kernel_initializer: Any = None) -> None:
        listed = list(args) if isinstance(args, (list, tuple)) else [] if args is None else [args]
        if not listed:
            raise at_user_line(ValueError("`args` must be specified"))
        shapes = [a.get_shape() for a in listed]
        if any(shape.ndims not in (None, 2) for shape in shapes):
            raise at_user_line(ValueError("linear is expecting 2D arguments: %s" % shapes))
        dtype = listed[0].dtype.base_dtype
        self._kernel = get_variable(_WEIGHTS_VARIABLE_NAME, [sum(_depth(a) for a in listed), output_size], dtype, kernel_initializer)
        self._bias = None
        if build_bias:
            with variable_scope(get_variable_scope(), auxiliary_name_scope=False) as inner:
                inner.set_partitioner(None)
                self._bias = get_variable(_BIAS_VARIABLE_NAME, [output_size], dtype, bias_initializer or init_ops.zeros_initializer(dtype))

    def __call__(self, args: Any) -> Tensor:
        listed = list(args) if isinstance(args, (list, tuple)) else [args]
        product = matrix_ops.matmul(listed[0] if len(listed) == 1 else array_ops.concat(listed, 1), self._kernel)
        return nn_ops.bias_add(product, self._bias) if self._bias is not None else product


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


def _linear(
    args: Any, output_size: int, bias: bool, bias_initializer: Any = None, kernel_initializer: Any = None, scope: Any = None, bias_start: float = 0.0
) -> Tensor:
    """[args] kernel + bias."""
    if isinstance(bias_initializer, (int, float)):
        bias_start, bias_initializer = float(bias_initializer), None
    with contextlib.ExitStack() as inside:
        if scope is not None:
            inside.enter_context(variable_scope(scope))
        return _Linear(args, output_size, bias, bias_initializer or init_ops.constant_initializer(bias_start), kernel_initializer)(args)
