# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.seq2seq: mechanisms of attention, and the cell that reads a memory by them."""

from __future__ import annotations

import collections
from typing import Any, Callable, List, Optional

import numpy as np

from millrace.framework import dtypes, nest, tensor_shape
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, name_scope
from millrace.layers.scoped import Dense
from millrace.ops import array_ops, functional_ops, gen_ops, init_ops, math_ops, matrix_ops, random_ops
from millrace.ops.rnn_cells import RNNCell
from millrace.ops.rnn_parts import _zeros
from millrace.ops.tensor_array_ops import TensorArray
from millrace.ops.variable_scope import get_variable, variable_scope

__all__ = [
    "AttentionMechanism",
    "AttentionWrapper",
    "AttentionWrapperState",
    "BahdanauAttention",
    "BahdanauMonotonicAttention",
    "LuongAttention",
    "LuongMonotonicAttention",
    "hardmax",
    "monotonic_attention",
    "safe_cumprod",
]


class AttentionMechanism:
    """Base of mechanisms: values, keys, alignments_size and state_size, and mechanism(query, state) -> (alignments, next state)."""

    keys: Any

    def _read(self, query: Any, state: Any) -> Any:
        return self(query, state=state)  # type: ignore[operator]  # what derives from it has this

    @property
    def alignments_size(self) -> Any:
        """The number of steps of the memory."""
        known = self.keys.get_shape()[1].value
        return known if known is not None else array_ops.shape(self.keys)[1]

    state_size = property(lambda self: self.alignments_size, doc="That of the alignments.")

    def initial_alignments(self, batch_size: Any, dtype: Any) -> Tensor:
        """Zeros."""
        made = array_ops.zeros(array_ops.stack([batch_size, self.alignments_size]), dtype)
        made.set_shape(self.keys.get_shape()[:2])
        return made

    def initial_state(self, batch_size: Any, dtype: Any) -> Tensor:
        """The initial alignments."""
        return self.initial_alignments(batch_size, dtype)


def _examples(keys: Any) -> Any:
    known = keys.get_shape()[0].value
    return known if known is not None else array_ops.shape(keys)[0]


def _within(memory: Tensor, lengths: Any) -> Tensor:
    return gen_ops.less(gen_ops.range(0, array_ops.shape(memory)[1], 1), array_ops.expand_dims(gen_ops.cast(convert_to_tensor(lengths), dtypes.int32), 1))


class _Mechanism(AttentionMechanism):
    def __init__(
        self,
        num_units: int,
        memory: Any,
        lengths: Any,
        probability_fn: Optional[Callable[..., Any]],
        mask: Any,
        query_layer: Any,
        name: str,
        dtype: Any = None,
        custom_key_value_fn: Optional[Callable[..., Any]] = None,
    ) -> None:
        """custom_key_value_fn(keys, values) gives the keys and values in their place."""
        with name_scope(name, "AttentionMechanismInit"):
            memory = convert_to_tensor(memory)
            self._lengths, self._query_layer = lengths, query_layer
            self._mask = -float("inf") if mask is None else mask
            self._probability = probability_fn or gen_ops.softmax
            if lengths is None:
                self._values, self._inside = memory, None
            else:
                self._inside = _within(memory, lengths)
                kept = gen_ops.select_v2(self._reach(memory.get_shape().ndims), memory, array_ops.zeros([], memory.dtype))
                kept.set_shape(memory.get_shape())
                self._values = kept
            self._memory_layer = Dense(num_units, name="memory_layer", use_bias=False, dtype=dtype or memory.dtype)
            self._keys = self._memory_layer(self._values)
            if custom_key_value_fn is not None:
                self._keys, self._values = custom_key_value_fn(self._keys, self._values)
            self._num_units = num_units

    def _reach(self, ndims: Any) -> Tensor:
        inside: Any = self._inside
        for _ in range((ndims or 3) - 2):
            inside = array_ops.expand_dims(inside, -1)
        return inside

    memory_layer = property(lambda self: self._memory_layer, doc="The layer that makes the keys.")
    query_layer = property(lambda self: self._query_layer, doc="The layer that makes queries comparable with the keys, or None.")
    values = property(lambda self: self._values, doc="The memory, zero beyond the lengths.")
    keys = property(lambda self: self._keys, doc="What queries are compared with.")  # type: ignore[assignment]

    @property
    def batch_size(self) -> Any:
        """The number of examples."""
        return _examples(self._keys)

    def _aligned(self, score: Tensor, previous: Any) -> Any:
        if self._inside is not None:
            masked = gen_ops.select_v2(self._inside, score, convert_to_tensor(self._mask, score.dtype))
            masked.set_shape(score.get_shape())
            score = masked
        alignments = self._probability(score, previous) if self._looks_back else self._probability(score)
        return alignments, alignments

    _looks_back = False  # whether the probabilities depend on the last alignments


def additive_score(query: Any, keys: Any, v: Any, g: Any = None, b: Any = None) -> Tensor:
    """v . tanh(keys + query) of queries [batch, units] and keys [batch, steps, units]; where there is g, of the length g and with the bias b."""
    features = array_ops.expand_dims(query, 1) + keys
    if g is not None:
        features, v = features + b, g * v * gen_ops.rsqrt(math_ops.reduce_sum(gen_ops.square(v)))
    return math_ops.reduce_sum(v * gen_ops.tanh(features), [2])


def multiplicative_score(query: Any, keys: Any, g: Any = None) -> Tensor:
    """keys . query of queries [batch, units] and keys [batch, steps, units], times g where there is one. ValueError where units differ."""
    depth, units = query.get_shape()[-1].value, keys.get_shape()[-1].value
    if depth != units:
        raise at_user_line(
            ValueError(
                "Incompatible or unknown inner dimensions between query and keys. Query (%s) has units: %s. Keys (%s) have units: "
                "%s. Perhaps you need to set num_units to the keys' dimension (%s)?" % (query, depth, keys, units, units)
            )
        )
    score = array_ops.squeeze(matrix_ops.matmul(array_ops.expand_dims(query, 1), keys, transpose_b=True), [1])
    return score if g is None else g * score


class BahdanauAttention(_Mechanism):
    """Additive attention: v . tanh(keys + query layer(query)), normalised if asked for (Bahdanau et al. 2014, Salimans and Kingma 2016)."""

    def __init__(
        self,
        num_units: int,
        memory: Any,
        memory_sequence_length: Any = None,
        normalize: bool = False,
        probability_fn: Any = None,
        score_mask_value: Any = None,
        dtype: Any = None,
        custom_key_value_fn: Any = None,
        name: str = "BahdanauAttention",
    ) -> None:
        query_layer = Dense(num_units, name="query_layer", use_bias=False, dtype=dtype or dtypes.float32)
        super().__init__(num_units, memory, memory_sequence_length, probability_fn, score_mask_value, query_layer, name, dtype, custom_key_value_fn)
        self._normalize = normalize

    def _score(self, query: Any) -> Tensor:
        processed, dtype, units = self._query_layer(query), query.dtype.base_dtype, self._num_units
        v, g, b = get_variable("attention_v", [units], dtype), None, None
        if self._normalize:
            g = get_variable("attention_g", [], dtype, init_ops.constant_initializer(units**-0.5, dtype))
            b = get_variable("attention_b", [units], dtype, init_ops.zeros_initializer())
        return additive_score(processed, self._keys, v, g, b)

    def __call__(self, query: Any, state: Any) -> Any:
        with variable_scope(None, "bahdanau_attention", [query]):
            return self._aligned(self._score(query), state)


class LuongAttention(_Mechanism):
    """Multiplicative attention: keys . query, scaled by a variable if asked for (Luong et al. 2015)."""

    def __init__(
        self,
        num_units: int,
        memory: Any,
        memory_sequence_length: Any = None,
        scale: bool = False,
        probability_fn: Any = None,
        score_mask_value: Any = None,
        dtype: Any = None,
        custom_key_value_fn: Any = None,
        name: str = "LuongAttention",
    ) -> None:
        super().__init__(num_units, memory, memory_sequence_length, probability_fn, score_mask_value, None, name, dtype, custom_key_value_fn)
        self._scale = scale

    def _score(self, query: Any) -> Tensor:
        g = get_variable("attention_g", [], query.dtype.base_dtype, init_ops.ones_initializer()) if self._scale else None
        return multiplicative_score(query, self._keys, g)

    def __call__(self, query: Any, state: Any) -> Any:
        with variable_scope(None, "luong_attention", [query]):
            return self._aligned(self._score(query), state)


def safe_cumprod(x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: Optional[str] = None) -> Tensor:
    """Cumulative products of values from 0 to 1, by logarithms, so that gradients stay finite."""
    with name_scope(name, "SafeCumprod", [x]):
        x = convert_to_tensor(x, name="x")
        tiny = float(np.finfo(x.dtype.as_numpy_dtype).tiny)
        return gen_ops.exp(gen_ops.cumsum(gen_ops.log(math_ops.clip_by_value(x, tiny, 1.0)), axis, exclusive=exclusive, reverse=reverse))


def monotonic_attention(p_choose_i: Any, previous_attention: Any, mode: str) -> Tensor:
    """How likely each step of the memory is chosen by one that goes on from where it was last, and stops at step i with probability p_choose_i
    [batch, steps] (Raffel et al. 2017). `mode`: 'recursive' (exact), 'parallel' (by cumulative sums, less exact), 'hard' (the probabilities are 0 or
    1, the last attention is one-hot)."""
    p, previous = convert_to_tensor(p_choose_i, name="p_choose_i"), convert_to_tensor(previous_attention, name="previous_attention")
    if mode == "recursive":
        passed = gen_ops.transpose(array_ops.concat([array_ops.ones_like(p[:, :1]), 1 - p[:, :-1]], 1), [1, 0])
        arrives = functional_ops.scan(
            lambda held, now: now[0] * held + now[1], (passed, gen_ops.transpose(previous, [1, 0])), array_ops.zeros_like(previous[:, 0])
        )
        made = p * gen_ops.transpose(arrives, [1, 0])
    elif mode == "parallel":
        passed = safe_cumprod(1 - p, axis=1, exclusive=True)
        made = p * passed * gen_ops.cumsum(previous / math_ops.clip_by_value(passed, 1e-10, 1.0), 1)
    elif mode == "hard":
        beyond = p * gen_ops.cumsum(previous, 1)
        made = beyond * gen_ops.cumprod(1 - beyond, 1, exclusive=True)
    else:
        raise at_user_line(ValueError("mode must be 'recursive', 'parallel', or 'hard'."))
    made.set_shape(p.get_shape().merge_with(previous.get_shape()))
    return made


def at_first_step(mechanism: Any, batch_size: Any, dtype: Any) -> Tensor:
    """Alignments [batch, steps] that are all at the first step of a mechanism's memory."""
    firsts = array_ops.zeros(array_ops.stack([batch_size]), dtypes.int32)
    made = array_ops.one_hot(firsts, mechanism.alignments_size, dtype=dtype)
    made.set_shape(mechanism.keys.get_shape()[:2])
    return made


def monotonic_probabilities(score: Tensor, previous: Tensor, noise: float, seed: Optional[int], mode: str) -> Tensor:
    """monotonic_attention by scores, to which noise is added, of where it was last."""
    if noise > 0:
        score = score + noise * random_ops.random_normal(array_ops.shape(score), dtype=score.dtype, seed=seed)
    p = gen_ops.cast(gen_ops.greater(score, 0.0), score.dtype) if mode == "hard" else gen_ops.sigmoid(score)
    return monotonic_attention(p, previous, mode)


class _Monotonic(_Mechanism):
    """What the monotonic mechanisms add: the first alignments are at the first step, scores have a bias and, in training, noise."""

    _looks_back = True
    _scope_name = ""

    def _set(self, noise: float, noise_seed: Optional[int], bias: float, mode: str) -> None:
        self._noise, self._noise_seed, self._bias, self._mode = noise, noise_seed, bias, mode
        self._probability = self._chosen

    def _chosen(self, score: Tensor, previous: Tensor) -> Tensor:
        return monotonic_probabilities(score, previous, self._noise, self._noise_seed, self._mode)

    def initial_alignments(self, batch_size: Any, dtype: Any) -> Tensor:
        """All at the first step."""
        return at_first_step(self, batch_size, dtype)

    def __call__(self, query: Any, state: Any) -> Any:
        with variable_scope(None, self._scope_name, [query]):
            dtype = query.dtype.base_dtype
            score = self._score(query)  # type: ignore[attr-defined]
            return self._aligned(score + get_variable("attention_score_bias", [], dtype, init_ops.constant_initializer(self._bias, dtype)), state)


class BahdanauMonotonicAttention(_Monotonic, BahdanauAttention):
    """BahdanauAttention that only goes on along the memory (Raffel et al. 2017)."""

    _scope_name = "bahdanau_monotonic_attention"

    def __init__(
        self,
        num_units: int,
        memory: Any,
        memory_sequence_length: Any = None,
        normalize: bool = False,
        score_mask_value: Any = None,
        sigmoid_noise: float = 0.0,
        sigmoid_noise_seed: Optional[int] = None,
        score_bias_init: float = 0.0,
        mode: str = "parallel",
        dtype: Any = None,
        name: str = "BahdanauMonotonicAttention",
        custom_key_value_fn: Any = None,
    ) -> None:
        BahdanauAttention.__init__(self, num_units, memory, memory_sequence_length, normalize, None, score_mask_value, dtype, custom_key_value_fn, name)
        self._set(sigmoid_noise, sigmoid_noise_seed, score_bias_init, mode)


class LuongMonotonicAttention(_Monotonic, LuongAttention):
    """LuongAttention that only goes on along the memory (Raffel et al. 2017)."""

    _scope_name = "luong_monotonic_attention"

    def __init__(
        self,
        num_units: int,
        memory: Any,
        memory_sequence_length: Any = None,
        scale: bool = False,
        score_mask_value: Any = None,
        sigmoid_noise: float = 0.0,
        sigmoid_noise_seed: Optional[int] = None,
        score_bias_init: float = 0.0,
        mode: str = "parallel",
        dtype: Any = None,
        name: str = "LuongMonotonicAttention",
        custom_key_value_fn: Any = None,
    ) -> None:
        LuongAttention.__init__(self, num_units, memory, memory_sequence_length, scale, None, score_mask_value, dtype, custom_key_value_fn, name)
        self._set(sigmoid_noise, sigmoid_noise_seed, score_bias_init, mode)


class AttentionWrapperState(
    collections.namedtuple("AttentionWrapperState", ["cell_state", "attention", "time", "alignments", "alignment_history", "attention_state"])
):
    """The state of an AttentionWrapper."""

    def clone(self, **kwargs: Any) -> "AttentionWrapperState":
        """The same with other parts, whose static shapes become those of what they replace."""

        def shaped(old: Any, new: Any) -> Any:
            if isinstance(old, Tensor) and isinstance(new, Tensor):
                new.set_shape(old.get_shape())
            return new

        return super()._replace(
            **{k: nest.map_structure(shaped, getattr(self, k), v) if nest.is_sequence(v) else shaped(getattr(self, k), v) for k, v in kwargs.items()}
        )


def hardmax(logits: Any, name: Optional[str] = None) -> Tensor:
    """One where the largest of the last dimension is, zero elsewhere."""
    with name_scope(name, "Hardmax", [logits]):
        logits = convert_to_tensor(logits)
        return array_ops.one_hot(math_ops.argmax(logits, -1), array_ops.shape(logits)[-1], dtype=logits.dtype)


def _attend(mechanism: Any, cell_output: Any, attention_state: Any, attention_layer: Any) -> Any:
    alignments, next_state = mechanism._read(cell_output, attention_state)
    context = array_ops.squeeze(matrix_ops.matmul(array_ops.expand_dims(alignments, 1), mechanism.values), [1])
    if attention_layer is None:
        return context, alignments, next_state
    return attention_layer(array_ops.concat([cell_output, context], 1)), alignments, next_state


class AttentionWrapper(RNNCell):
    """A cell that reads a memory: its input is joined by what it read last, its output asks, a layer joins output and context."""

    def __init__(
        self,
        cell: Any,
        attention_mechanism: Any,
        attention_layer_size: Any = None,
        alignment_history: bool = False,
        cell_input_fn: Any = None,
        output_attention: bool = True,
        initial_cell_state: Any = None,
        name: Optional[str] = None,
        attention_layer: Any = None,
        attention_fn: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(name=name, dtype=dtype)
        self._is_multi = isinstance(attention_mechanism, (list, tuple))
        self._mechanisms = list(attention_mechanism) if self._is_multi else [attention_mechanism]
        for mechanism in self._mechanisms:
            if not isinstance(mechanism, AttentionMechanism):
                raise at_user_line(TypeError("attention_mechanism must contain only instances of AttentionMechanism, saw type: %s" % type(mechanism).__name__))
        if attention_layer_size is not None and attention_layer is not None:
            raise at_user_line(ValueError("Only one of attention_layer_size and attention_layer should be set"))
        self._cell, self._history, self._output_attention = cell, alignment_history, output_attention
        self._input_fn = cell_input_fn or (lambda inputs, attention: array_ops.concat([inputs, attention], -1))
        self._attention_fn, self._initial_cell_state = attention_fn or _attend, initial_cell_state
        self._attention_layers, sizes = self._layers_and_sizes(attention_layer_size, attention_layer)
        self._attention_size = sum(sizes)

    def _layers_and_sizes(self, size: Any, layer: Any) -> Any:
        count = len(self._mechanisms)
        if size is not None:
            sizes = list(size) if isinstance(size, (list, tuple)) else [size]
            if len(sizes) != count:
                raise at_user_line(
                    ValueError(
                        "If provided, attention_layer_size must contain exactly one integer per attention_mechanism, saw: %d vs %d" % (len(sizes), count)
                    )
                )
            return [Dense(s, name="attention_layer", use_bias=False, dtype=self._dtype) for s in sizes], sizes
        if layer is not None:
            layers = list(layer) if isinstance(layer, (list, tuple)) else [layer]
            if len(layers) != count:
                raise at_user_line(
                    ValueError("If provided, attention_layer must contain exactly one layer per attention_mechanism, saw: %d vs %d" % (len(layers), count))
                )
            return layers, [self._size_behind(one, m) for one, m in zip(layers, self._mechanisms)]
        return None, [m.values.get_shape()[-1].value for m in self._mechanisms]

    def _size_behind(self, layer: Any, mechanism: Any) -> Any:
        depth = tensor_shape.TensorShape([None, self._cell.output_size + mechanism.values.get_shape()[-1].value])
        return layer.compute_output_shape(depth)[-1].value

    def _one_or_all(self, values: Any) -> Any:
        return tuple(values) if self._is_multi else values[0]

    @property
    def output_size(self) -> Any:
        """The size of what was read, or of the cell's output."""
        return self._attention_size if self._output_attention else self._cell.output_size

    @property
    def state_size(self) -> Any:
        """The sizes of an AttentionWrapperState."""
        return AttentionWrapperState(
            self._cell.state_size,
            self._attention_size,
            tensor_shape.TensorShape([]),
            self._one_or_all([m.alignments_size for m in self._mechanisms]),
            self._one_or_all([m.alignments_size if self._history else () for m in self._mechanisms]),
            self._one_or_all([m.state_size for m in self._mechanisms]),
        )

    def zero_state(self, batch_size: Any, dtype: Any) -> AttentionWrapperState:
        """Zeros, or the initial_cell_state for the cell."""

        with name_scope(type(self).__name__ + "ZeroState"):
            cell_state = self._initial_cell_state
            if cell_state is None:
                cell_state = self._cell.get_initial_state(batch_size=batch_size, dtype=dtype)
            cell_state = nest.map_structure(lambda s: array_ops.identity(s, name="checked_cell_state"), cell_state)
            alignments = [m.initial_alignments(batch_size, dtype) for m in self._mechanisms]
            history = [TensorArray(dtype, 0, dynamic_size=True, element_shape=a.get_shape()) if self._history else () for a in alignments]
            return AttentionWrapperState(
                cell_state,
                _zeros(self._attention_size, batch_size, dtype),
                convert_to_tensor(0, dtypes.int32),
                self._one_or_all(alignments),
                self._one_or_all(history),
                self._one_or_all([m.initial_state(batch_size, dtype) for m in self._mechanisms]),
            )

    def call(self, inputs: Any, state: Any) -> Any:
        """(what was read or the cell's output, next state)."""
        if not isinstance(state, AttentionWrapperState):
            raise at_user_line(TypeError("Expected state to be instance of AttentionWrapperState. Received type %s instead." % type(state).__name__))
        output, cell_state = self._cell(self._input_fn(inputs, state.attention), state.cell_state)
        before = state.attention_state if self._is_multi else [state.attention_state]
        history = list(state.alignment_history) if self._is_multi else [state.alignment_history]
        read: List[Any] = []
        alignments: List[Any] = []
        after: List[Any] = []
        for i, mechanism in enumerate(self._mechanisms):
            made = self._attention_fn(mechanism, output, before[i], self._attention_layers[i] if self._attention_layers else None)
            for values, value in zip((read, alignments, after), made):
                values.append(value)
            if self._history:
                history[i] = history[i].write(state.time, made[1])
        attention = read[0] if len(read) == 1 else array_ops.concat(read, 1)
        following = AttentionWrapperState(
            cell_state, attention, state.time + 1, self._one_or_all(alignments), self._one_or_all(history), self._one_or_all(after)
        )
        return (attention if self._output_attention else output), following
