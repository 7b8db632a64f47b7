# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.seq2seq's mechanisms of attention that are layers. A layer is given its memory first, when it is made or by a call with setup_memory=True,
and then called with a query and its last state."""

from __future__ import annotations

from typing import Any, Dict, Optional

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor
from millrace.keras import initializers
from millrace.keras.layers import deserialize
from millrace.layers.base import Layer
from millrace.layers.core import Dense
from millrace.ops import array_ops, gen_ops, init_ops
from millrace.ops.attention import AttentionMechanism, _examples, _within, additive_score, at_first_step, hardmax, monotonic_probabilities, multiplicative_score

__all__ = ["BahdanauAttentionV2", "BahdanauMonotonicAttentionV2", "LuongAttentionV2", "LuongMonotonicAttentionV2"]

_PROBABILITIES = {"softmax": gen_ops.softmax, "hardmax": hardmax}


class _AttentionLayer(AttentionMechanism, Layer):
    """What these layers share. Rows of the memory beyond its lengths, or where its mask says so, are zeros; the mask also keeps alignments away from them."""

    probability_fn: str
    kernel_initializer: Any
    _projects_queries = False  # whether queries have a layer of their own

    def __init__(
        self,
        units: int,
        memory: Any,
        memory_sequence_length: Any,
        name: str,
        dtype: Any,
        settings: Dict[str, Any],
        memory_layer: Any = None,
        query_layer: Any = None,
        **kwargs: Any,
    ) -> None:
        """`settings` become attributes, and stand in the config."""
        for layer, what in ((query_layer, "query_layer"), (memory_layer, "memory_layer")):
            if layer is not None and not isinstance(layer, Layer):
                raise at_user_line(TypeError("%s is not a Layer: %s" % (what, type(layer).__name__)))
        dtype = dtype or dtypes.float32
        super().__init__(name=name, dtype=dtype, **kwargs)
        self.units, self.query_layer = units, query_layer
        if query_layer is None and self._projects_queries:
            self.query_layer = Dense(units, name="query_layer", use_bias=False, dtype=dtype)
        self.memory_layer = memory_layer or Dense(units, name="memory_layer", use_bias=False, dtype=dtype)
        self._setting_names = ("units", *settings)
        for setting, value in settings.items():
            setattr(self, setting, value)
        self.keys = self.values = self.batch_size = self._inside = None
        self._has_weights, self.supports_masking = False, True
        if memory is not None:
            given = memory if memory_sequence_length is None else [memory, convert_to_tensor(memory_sequence_length, dtypes.int32)]
            self.values = Layer.__call__(self, given, setup_memory=True)

    def build(self, input_shape: Any) -> None:
        """Makes the weights of this layer, and of the one for the memory or else for queries."""
        layer = self.memory_layer if self.values is None else self.query_layer
        if layer is not None and not layer.built:
            layer.build(input_shape[0] if isinstance(input_shape, list) else input_shape)
        if not self._has_weights:
            self._make_weights()
        self._has_weights = self.built = True

    def _make_weights(self) -> None:
        """Makes the weights of this layer."""

    def __call__(self, inputs: Any, **kwargs: Any) -> Any:
        if self.values is not None:
            if len(inputs) not in (2, 3):
                raise at_user_line(ValueError("Expect the inputs to have 2 or 3 tensors, got %d" % len(inputs)))
            if len(inputs) == 2:
                inputs = [*inputs, self.values]  # so that a model knows that the layer's memory is among its inputs
        return super().__call__(inputs, **kwargs)

    def call(self, inputs: Any, mask: Any = None, setup_memory: bool = False) -> Any:
        """(alignments, next state) of a query and the last state. Where setup_memory says so, the values of a memory, or of a memory and its lengths."""
        if setup_memory:
            taken, lengths = inputs if isinstance(inputs, list) and len(inputs) == 2 else (inputs, None)
            self._take(taken, lengths, mask)
            self.built = False  # queries have a layer of their own
            return self.values
        if self.values is None:
            raise at_user_line(ValueError("Cannot query the attention before the setup of memory"))
        query, state = inputs[:2]
        score = self._score(query if self.query_layer is None else self.query_layer(query))
        if self._inside is not None:
            score = gen_ops.select_v2(self._inside, score, convert_to_tensor(-float("inf"), score.dtype))
        alignments = self._aligned(score, state)
        return alignments, alignments

    def _take(self, memory: Any, lengths: Any, mask: Any) -> None:
        if self.values is not None:
            raise at_user_line(ValueError("The memory for the attention has already been setup."))
        mask = mask[0] if isinstance(mask, list) else mask
        if lengths is not None and mask is not None:
            raise at_user_line(ValueError("memory_sequence_length and memory_mask cannot be used at same time for attention."))
        memory, self._inside = convert_to_tensor(memory), mask
        inside = mask if lengths is None else _within(memory, lengths)
        if inside is None:
            self.values = array_ops.identity(memory)
        else:
            for _ in range((memory.get_shape().ndims or 3) - 2):
                inside = array_ops.expand_dims(inside, -1)
            self.values = gen_ops.select_v2(inside, memory, array_ops.zeros([], memory.dtype))
            self.values.set_shape(memory.get_shape())
        self.keys = self.memory_layer(self.values)
        self.batch_size = _examples(self.keys)

    def _score(self, query: Any) -> Tensor:
        raise NotImplementedError

    def _aligned(self, score: Tensor, state: Any) -> Tensor:
        return _PROBABILITIES[self.probability_fn](score)

    def _read(self, query: Any, state: Any) -> Any:
        return self([query, state])

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """None: alignments have no mask."""
        return None, None

    def get_config(self) -> Dict[str, Any]:
        """The settings, without the memory."""
        layers = {"query_layer": self.query_layer, "memory_layer": self.memory_layer}
        inner = {name: {"class_name": type(layer).__name__, "config": layer.get_config()} for name, layer in layers.items() if layer is not None}
        own = {name: getattr(self, name) for name in self._setting_names}
        if "kernel_initializer" in own:
            own["kernel_initializer"] = initializers.serialize(self.kernel_initializer)
        return {**super().get_config(), **own, **inner, "memory": None}

    @classmethod
    def from_config(cls, config: Dict[str, Any], custom_objects: Any = None) -> Any:
        """The layer, without a memory."""
        made = {name: deserialize(v, custom_objects) if name in ("query_layer", "memory_layer") else v for name, v in config.items()}
        return cls(**made)


class _Additive(_AttentionLayer):
    normalize: bool
    _projects_queries = True

    def _make_weights(self) -> None:
        super()._make_weights()
        self.attention_v, self.attention_g, self.attention_b = self.add_weight("attention_v", [self.units], initializer=self.kernel_initializer), None, None
        if self.normalize:
            self.attention_g = self.add_weight("attention_g", (), initializer=init_ops.constant_initializer(self.units**-0.5))
            self.attention_b = self.add_weight("attention_b", [self.units], initializer=init_ops.zeros_initializer())

    def _score(self, query: Any) -> Tensor:
        return additive_score(query, self.keys, self.attention_v, self.attention_g, self.attention_b)


class _Multiplicative(_AttentionLayer):
    scale: bool

    def _make_weights(self) -> None:
        super()._make_weights()
        self.attention_g = self.add_weight("attention_g", (), initializer=init_ops.ones_initializer()) if self.scale else None

    def _score(self, query: Any) -> Tensor:
        return multiplicative_score(query, self.keys, self.attention_g)


class _Monotonic(_AttentionLayer):
    """What the monotonic layers add: the first alignments are at the first step, scores have a bias and, in training, noise."""

    sigmoid_noise: float
    sigmoid_noise_seed: Optional[int]
    score_bias_init: float
    mode: str

    def initial_alignments(self, batch_size: Any, dtype: Any) -> Tensor:
        """All at the first step."""
        return at_first_step(self, batch_size, dtype)

    def _make_weights(self) -> None:
        super()._make_weights()
        self.attention_score_bias = self.add_weight("attention_score_bias", (), initializer=init_ops.constant_initializer(self.score_bias_init))

    def _score(self, query: Any) -> Tensor:
        return super()._score(query) + self.attention_score_bias

    def _aligned(self, score: Tensor, state: Any) -> Tensor:
        return monotonic_probabilities(score, state, self.sigmoid_noise, self.sigmoid_noise_seed, self.mode)


def _choice(sigmoid_noise: float, sigmoid_noise_seed: Optional[int], score_bias_init: float, mode: str) -> Dict[str, Any]:
    return {"sigmoid_noise": sigmoid_noise, "sigmoid_noise_seed": sigmoid_noise_seed, "score_bias_init": score_bias_init, "mode": mode}


def _known(probability_fn: Any) -> Any:
    """The name of a probability function. ValueError for others."""
    if probability_fn not in _PROBABILITIES:
        raise at_user_line(ValueError("Invalid probability function: %s, options are %s" % (probability_fn, list(_PROBABILITIES))))
    return probability_fn


class BahdanauAttentionV2(_Additive):
    """Additive attention: v . tanh(keys + query layer(query)), normalised if asked for (Bahdanau et al. 2014, Salimans and Kingma 2016)."""

    def __init__(
        self,
        units: int,
        memory: Any,
        memory_sequence_length: Any = None,
        normalize: bool = False,
        probability_fn: str = "softmax",
        kernel_initializer: Any = "glorot_uniform",
        dtype: Any = None,
        name: str = "BahdanauAttention",
        **kwargs: Any,
    ) -> None:
        settings = {"normalize": normalize, "probability_fn": _known(probability_fn), "kernel_initializer": initializers.get(kernel_initializer)}
        super().__init__(units, memory, memory_sequence_length, name, dtype, settings, **kwargs)


class LuongAttentionV2(_Multiplicative):
    """Multiplicative attention: keys . query, scaled by a weight if asked for (Luong et al. 2015)."""

    def __init__(
        self,
        units: int,
        memory: Any,
        memory_sequence_length: Any = None,
        scale: bool = False,
        probability_fn: str = "softmax",
        dtype: Any = None,
        name: str = "LuongAttention",
        **kwargs: Any,
    ) -> None:
        settings = {"scale": scale, "probability_fn": _known(probability_fn)}
        super().__init__(units, memory, memory_sequence_length, name, dtype, settings, **kwargs)


class BahdanauMonotonicAttentionV2(_Monotonic, _Additive):
    """BahdanauAttentionV2 that only goes on along the memory (Raffel et al. 2017)."""

    def __init__(
        self,
        units: int,
        memory: Any,
        memory_sequence_length: Any = None,
        normalize: bool = False,
        sigmoid_noise: float = 0.0,
        sigmoid_noise_seed: Optional[int] = None,
        score_bias_init: float = 0.0,
        mode: str = "parallel",
        kernel_initializer: Any = "glorot_uniform",
        dtype: Any = None,
        name: str = "BahdanauMonotonicAttention",
        **kwargs: Any,
    ) -> None:
        settings = {"normalize": normalize, "kernel_initializer": initializers.get(kernel_initializer)}
        settings.update(_choice(sigmoid_noise, sigmoid_noise_seed, score_bias_init, mode))
        super().__init__(units, memory, memory_sequence_length, name, dtype, settings, **kwargs)


class LuongMonotonicAttentionV2(_Monotonic, _Multiplicative):
    """LuongAttentionV2 that only goes on along the memory (Raffel et al. 2017)."""

    def __init__(
        self,
        units: int,
        memory: Any,
        memory_sequence_length: Any = None,
        scale: bool = False,
        sigmoid_noise: float = 0.0,
        sigmoid_noise_seed: Optional[int] = None,
        score_bias_init: float = 0.0,
        mode: str = "parallel",
        dtype: Any = None,
        name: str = "LuongMonotonicAttention",
        **kwargs: Any,
    ) -> None:
        settings = {"scale": scale, **_choice(sigmoid_noise, sigmoid_noise_seed, score_bias_init, mode)}
        super().__init__(units, memory, memory_sequence_length, name, dtype, settings, **kwargs)
