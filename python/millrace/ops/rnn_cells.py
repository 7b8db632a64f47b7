# SPDX-License-Identifier: Apache-2.0
"""Recurrent cells, which are layers. The arithmetic of the basic ones is the library's composites."""

from __future__ import annotations

import collections
from typing import Any, Dict, List, Optional

from millrace import tf_logging
from millrace.framework import arguments, dtypes, nest, tensor_shape
from millrace.framework.convert import convert_to_tensor
from millrace.framework.static_values import constant_value
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, get_default_graph, name_scope
from millrace.framework.unique_names import snake
from millrace.keras import activations, initializers
from millrace.layers.nodes import InputSpec
from millrace.layers.scoped import Layer
from millrace.ops import array_ops, gen_ops, init_ops, math_ops, matrix_ops, nn_ops
from millrace.ops.partitions import fixed_size_partitioner
from millrace.ops.rnn_parts import _depth, _zeros
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


class RNNCell(Layer):
    """Base of cells: state_size, output_size and call(inputs, state) -> (output, state). A cell is a layer of tf.layers: build(shape) may make
    variables by add_variable; what call makes by get_variable are its variables too."""

    _scope: Any = None
    _reuse: Any = None
    _given_name: Any = None

    def __init__(self, trainable: bool = True, name: Optional[str] = None, dtype: Any = None, _reuse: Any = None, **kwargs: Any) -> None:
        super().__init__(trainable, name, dtype, _reuse=_reuse, **kwargs)

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

    @property
    def _scope_name(self) -> str:
        return str(self._given_name or snake(type(self).__name__))

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> Any:
        if type(self).call is RNNCell.call:
            raise NotImplementedError("A cell needs call(inputs, state)")
        if self._dtype is None:
            first = nest.flatten(inputs)[0]
            self._dtype = first.dtype.base_dtype if isinstance(first, Tensor) else None
        self._check([x for x in nest.flatten(inputs) if isinstance(x, Tensor)])
        stored = self._scope
        if stored is not None and scope is None:
            with variable_scope(stored, reuse=True, auxiliary_name_scope=False), name_scope(stored.original_name_scope or stored.name.split("/")[-1]):
                return self.call(inputs, state)
        with self._opened(scope) as captured:
            self._scope = captured
            if not self.built:
                self._graph = captured_graph(inputs)
                self._inside = captured
                try:
                    self._build_inside(inputs)
                finally:
                    self._inside = None
            result = self.call(inputs, state)
        self.built = True
        return result

    def _opened(self, scope: Any = None, **options: Any) -> Any:
        """The variable scope of the first call: a given one, or one that no other cell has where it is called; under `reuse` the one of its name."""
        if scope is None and self._reuse:
            scope = self._scope_name
        return variable_scope(scope, self._scope_name, reuse=self._reuse, **options)

    def _build_inside(self, inputs: Any) -> None:
        """Calls a build of a subclass, in the scope of the first call."""
        if type(self).build is not RNNCell.build:
            shapes = nest.map_structure(lambda x: x.get_shape(), inputs)
            self.build(shapes)

    def call(self, inputs: Any, state: Any) -> Any:  # type: ignore[override]
        """(output, next state)."""
        raise NotImplementedError("Abstract method")

    def build(self, inputs_shape: Any) -> None:
        """Makes the variables for inputs of a shape, in the current variable scope; without it the first call does."""
        if self.built or type(self)._parameters is RNNCell._parameters:
            self.built = True
            return
        width = tensor_shape.as_shape(inputs_shape)[-1].value
        if width is None:
            raise at_user_line(ValueError("Expected inputs.shape[-1] to be known, saw shape: %s" % (inputs_shape,)))
        self._dtype = self._dtype or dtypes.float32
        with self._opened() as captured:
            self._scope = captured
            self._parameters(int(width), self._dtype)
        self.built = True

    def _parameters(self, depth: int, dtype: Any) -> List[Any]:
        """Makes, or finds, the variables of one of the library's cells."""
        raise NotImplementedError

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """A state of zeros."""
        with name_scope(type(self).__name__ + "ZeroState"):
            return nest.pack_sequence_as(self.state_size, [_zeros(s, batch_size, dtype) for s in flat_sizes(self.state_size)])

    def get_initial_state(self, inputs: Any = None, batch_size: Any = None, dtype: Any = None) -> Any:
        """A state of zeros for a batch of a size, or for inputs."""
        if inputs is not None:
            inputs = convert_to_tensor(inputs, name="inputs")
            if batch_size is not None and constant_value(convert_to_tensor(batch_size)) not in (None, inputs.get_shape()[0].value):
                raise at_user_line(
                    ValueError("batch size from input tensor is different from the input param: %s and %s" % (inputs.get_shape()[0], batch_size))
                )
            if dtype is not None and inputs.dtype.base_dtype != dtypes.as_dtype(dtype):
                raise at_user_line(ValueError("dtype from input tensor is different from the input param: %s and %s" % (inputs.dtype, dtype)))
            batch_size = inputs.get_shape()[0].value or array_ops.shape(inputs)[0]
            dtype = inputs.dtype.base_dtype
        if batch_size is None or dtype is None:
            raise at_user_line(
                ValueError("batch_size and dtype cannot be None while constructing initial state: batch_size=%s, dtype=%s" % (batch_size, dtype))
            )
        return self.zero_state(batch_size, dtype)

    def _variable(self, name: str, shape: Any, dtype: Any, initializer: Any = None, shards: int = 1, trainable: bool = True) -> Any:
        """get_variable; of several parts along the first axis, the whole."""
        partitioner = fixed_size_partitioner(shards) if shards > 1 else None
        made = get_variable(name, shape, dtype, initializer, trainable=self.trainable and trainable, partitioner=partitioner)
        return convert_to_tensor(made) if shards > 1 else made

    def add_weight(self, name: str, *args: Any, **kwargs: Any) -> Any:  # type: ignore[override]
        """Makes, or finds, a variable of the cell in its variable scope."""
        if self._inside is None and self._scope is not None and get_variable_scope().name.startswith(self._scope.name):  # while it is called
            self._inside = get_variable_scope()
            try:
                return super().add_weight(name, *args, **kwargs)
            finally:
                self._inside = None
        return super().add_weight(name, *args, **kwargs)

    add_variable = add_weight

    def _children_by_name(self) -> Dict[str, Any]:
        """What checkpoints of objects keep beside the attributes: the variables of the library's own cells, by their names in the cell's scope."""
        if self._scope is None or type(self)._parameters is RNNCell._parameters:
            return {}
        start = len(self._scope.name) + 1 if self._scope.name else 0
        return {v.op.name[start:]: v for v in self._scope.global_variables()}

    def _below(self) -> List[Any]:
        """The cells inside."""
        return [c for c in (self.__dict__.get("_cell"), *self.__dict__.get("_cells", ())) if isinstance(c, RNNCell)]

    @property
    def weights(self) -> List[Any]:
        """Its variables, the trained ones first."""
        return [*self.trainable_weights, *self.non_trainable_weights]

    @property
    def trainable_weights(self) -> List[Any]:
        """Those that are trained."""
        if not self.trainable:
            return []
        own = self._scope.trainable_variables() if self._scope is not None else []
        return _each_once([*own, *self.__dict__.get("_trainable_weights", ()), *(v for c in self._below() for v in c.trainable_weights)])

    @property
    def non_trainable_weights(self) -> List[Any]:
        """The others."""
        every = self._scope.global_variables() if self._scope is not None else []
        held = [*every, *self.__dict__.get("_trainable_weights", ()), *self.__dict__.get("_non_trainable_weights", ())]
        trained = set(self.trainable_weights)
        return _each_once([v for v in [*held, *(w for c in self._below() for w in c.weights)] if v not in trained])

    def get_config(self) -> Any:
        """Its arguments."""
        config = super().get_config()
        config["dtype"] = config.get("dtype") and dtypes.as_dtype(config["dtype"]).name
        config.update({name: getattr(self, "_" + name) for name in self._settings})
        if "activation" in config:
            config["activation"] = activations.serialize(config["activation"] or math_ops.tanh)
        config.update({name: initializers.serialize(config[name]) for name in self._settings if name.endswith("initializer")})
        return config

    _settings: Any = ()  # the arguments of a subclass that are kept under their names


def _each_once(variables: List[Any]) -> List[Any]:
    return list(dict.fromkeys(variables))


class _InScope:
    """An attribute of a cell that is a variable of its scope, once it is made; of subclasses that set it, what they set."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, cell: Any, owner: Any = None) -> Any:
        if cell is None:
            return self
        found = cell._children_by_name().get(self._name)
        if found is None:
            raise AttributeError("the cell %r has no variable '%s': it is made by build, or by the first call" % (cell, self._name))
        return found


def captured_graph(inputs: Any) -> Any:
    """The graph of the inputs of a call."""
    first = nest.flatten(inputs)[0]
    return first.graph if isinstance(first, Tensor) else get_default_graph()


class _LayerRNNCell(RNNCell):
    """A cell whose build makes its variables."""


def flat_sizes(sizes: Any) -> List[Any]:
    return nest.flatten(sizes)


_NAMES = {"tanh": "Tanh", "relu": "Relu", "relu6": "Relu6", "sigmoid": "Sigmoid", "elu": "Elu", "softsign": "Softsign", "identity": "Identity"}


def _here(inputs: Any) -> str:
    """The current name scope, for composites whose nodes join it."""
    return str(inputs.graph.get_name_scope()) + "/"


def _is_parted(cell: Any, state: Any) -> bool:
    """Whether a cell's state comes in parts. Up to TensorFlow 0.10 it was one tensor unless a tuple was asked for, and so it is taken."""
    if not cell._state_is_tuple or not isinstance(state, Tensor):
        return bool(cell._state_is_tuple)
    dims, sizes = state.get_shape(), flat_sizes(cell.state_size)
    return not (dims.ndims == 2 and all(isinstance(s, int) for s in sizes) and dims[1].value == sum(sizes))


def _function(activation: Any) -> Any:
    """An activation: a function, or the name of one."""
    return activations.get(activation) if isinstance(activation, str) else activation


def _library_name(activation: Any) -> Optional[str]:
    """The composites' name of an activation; None for others."""
    if activation is None:
        return "Tanh"
    if activation in (math_ops.tanh, math_ops.sigmoid, nn_ops.relu, nn_ops.relu6, nn_ops.elu, nn_ops.softsign, array_ops.identity):
        return _NAMES[activation.__name__]
    return None


class BasicRNNCell(RNNCell):
    """activation([inputs, state] kernel + bias)."""

    _kernel = _InScope("kernel")
    _bias = _InScope("bias")

    input_spec = InputSpec(ndim=2)
    _settings = ("num_units", "activation", "reuse")

    def __init__(
        self, num_units: int, activation: Any = None, reuse: Any = None, name: Optional[str] = None, dtype: Any = None, input_size: Any = None, **kwargs: Any
    ) -> None:
        arguments.deprecated(input_size=input_size)
        super().__init__(_reuse=reuse, name=name, dtype=dtype, **kwargs)
        self._num_units, self._activation = int(num_units), _function(activation)

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

    _gate_kernel = _InScope("gates/kernel")
    _gate_bias = _InScope("gates/bias")
    _candidate_kernel = _InScope("candidate/kernel")
    _candidate_bias = _InScope("candidate/bias")

    input_spec = InputSpec(ndim=2)
    _settings = ("num_units", "kernel_initializer", "bias_initializer", "activation", "reuse")

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
        **kwargs: Any,
    ) -> None:
        arguments.deprecated(input_size=input_size)
        super().__init__(_reuse=reuse, name=name, dtype=dtype, **kwargs)
        self._num_units, self._activation = int(num_units), _function(activation)
        self._kernel_initializer, self._bias_initializer = initializers.get(kernel_initializer), initializers.get(bias_initializer)

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

    _kernel = _InScope("kernel")
    _bias = _InScope("bias")

    input_spec = InputSpec(ndim=2)
    _settings = ("num_units", "forget_bias", "state_is_tuple", "activation", "reuse")

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
        **kwargs: Any,
    ) -> None:
        arguments.deprecated(input_size=input_size)
        if callable(state_is_tuple) or state_is_tuple is None:  # 0.x: (num_units, forget_bias, input_size, state_is_tuple)
            state_is_tuple = True
        super().__init__(_reuse=reuse, name=name, dtype=dtype, **kwargs)
        self._num_units, self._forget_bias, self._state_is_tuple, self._activation = int(num_units), forget_bias, state_is_tuple, _function(activation)

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

    _kernel = _InScope("kernel")
    _bias = _InScope("bias")
    _w_f_diag = _InScope("w_f_diag")
    _w_i_diag = _InScope("w_i_diag")
    _w_o_diag = _InScope("w_o_diag")
    _proj_kernel = _InScope("projection/kernel")

    input_spec = InputSpec(ndim=2)
    _settings = (
        *("num_units", "use_peepholes", "cell_clip", "initializer", "num_proj", "proj_clip", "num_unit_shards", "num_proj_shards"),
        *("forget_bias", "state_is_tuple", "activation", "reuse"),
    )

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
        **kwargs: Any,
    ) -> None:
        arguments.deprecated(input_size=input_size)
        super().__init__(_reuse=reuse, name=name, dtype=dtype, **kwargs)
        self._num_units, self._use_peepholes, self._cell_clip, self._initializer = int(num_units), use_peepholes, cell_clip, initializers.get(initializer)
        self._num_proj, self._proj_clip, self._forget_bias = num_proj, proj_clip, forget_bias
        self._state_is_tuple, self._activation = state_is_tuple, _function(activation)
        self._num_unit_shards, self._num_proj_shards = num_unit_shards, num_proj_shards

    @property
    def state_size(self) -> Any:
        """The sizes of c and h."""
        out = self._num_proj or self._num_units
        return LSTMStateTuple(self._num_units, out) if self._state_is_tuple else self._num_units + out

    output_size = property(lambda self: self._num_proj or self._num_units, doc="The number of units, or of the projection.")

    def _parameters(self, depth: int, dtype: Any) -> List[Any]:
        n, out = self._num_units, self._num_proj or self._num_units
        parameters = [
            self._variable("kernel", [depth + out, 4 * n], dtype, self._initializer, self._num_unit_shards or 1),
            self._variable("bias", [4 * n], dtype, init_ops.zeros_initializer()),
        ]
        if self._use_peepholes:
            parameters += [self._variable(w, [n], dtype, self._initializer) for w in ("w_f_diag", "w_i_diag", "w_o_diag")]
        if self._num_proj:
            with variable_scope("projection", auxiliary_name_scope=False):
                parameters.append(self._variable("kernel", [n, self._num_proj], dtype, self._initializer, self._num_proj_shards or 1))
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
        if len(set(map(id, cells))) < len(cells):
            tf_logging.warning("At least two cells of a MultiRNNCell are one object: they share their weights.")
        self._cells, self._state_is_tuple = list(cells), state_is_tuple is not False
        self._takes_one_tensor = state_is_tuple is None  # as up to TensorFlow 0.10, where nothing was said

    def _children_by_name(self) -> Dict[str, Any]:
        """The cells: cell-0, cell-1 ..."""
        return {"cell-%d" % i: cell for i, cell in enumerate(self._cells)}

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
                    size = sum(flat_sizes(cell.state_size))
                    current = array_ops.slice(state, [0, at], [-1, size])
                    at += size
                inputs, new = call_shared(cell, inputs, current)
                states.append(new)
        return inputs, tuple(states) if parted else array_ops.concat(states, 1)


def call_shared(cell: Any, inputs: Any, state: Any) -> Any:
    """Calls a cell in this scope. One object in several places ([cell] * n) has the same variables there, as in 1.15; where its inputs have
    another width than at the first place, which 1.15 refuses, it has variables of its own, as up to TensorFlow 1.0."""
    dims = convert_to_tensor(nest.flatten(inputs)[0]).get_shape()
    width = dims[-1].value if dims.ndims else None
    places = cell.__dict__.setdefault("_places", {width: getattr(cell, "_scope", None)})
    place = width if width == next(iter(places)) else get_variable_scope().name
    cell._scope = places.get(place)
    result = cell(inputs, state)
    places[place] = cell._scope
    return result
