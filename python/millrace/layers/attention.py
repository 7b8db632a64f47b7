# SPDX-License-Identifier: Apache-2.0
"""Attention of queries over values, by products (Luong) or by sums (Bahdanau)."""

from __future__ import annotations

from typing import Any, Dict, Optional

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.tensor_shape import TensorShape
from millrace.layers.base import Layer
from millrace.ops import array_ops, gen_ops, math_ops, matrix_ops, nn_ops


def _lower_triangular_mask(shape: Any) -> Any:
    """True where a place of the last axis is not behind its place of the one before."""
    return gen_ops.matrix_band_part(array_ops.ones(shape, dtypes.int32), -1, 0) > 0


class BaseDenseAttention(Layer):
    """Takes [query, value] or [query, value, key]: [batch, Tq, dim], [batch, Tv, dim] and like the value; masks [batch, Tq] and [batch, Tv] of the
    first two. With causal=True a query sees the values up to its own place. Gives [batch, Tq, dim]."""

    def __init__(self, causal: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.causal, self.supports_masking = causal, True
        self.scale: Any = None

    def _calculate_scores(self, query: Any, key: Any) -> Any:
        """How much each query [batch, Tq, dim] looks at each key [batch, Tv, dim]: [batch, Tq, Tv]."""
        raise NotImplementedError("%s._calculate_scores" % type(self).__name__)

    def _apply_scores(self, scores: Any, value: Any, scores_mask: Any = None) -> Any:
        """The values, weighted by the softmax of scores where the mask is True; where it is so nowhere, all count the same."""
        scores = convert_to_tensor(scores)
        if scores_mask is not None:
            scores = scores - 1e9 * math_ops.cast(gen_ops.logical_not(scores_mask), scores.dtype.base_dtype)
        return matrix_ops.matmul(nn_ops.softmax(scores), value)

    def _check_lists(self, inputs: Any, mask: Any) -> None:
        name = type(self).__name__
        if not isinstance(inputs, list):
            raise at_user_line(ValueError("%s layer must be called on a list of inputs, namely [query, value] or [query, value, key]." % name))
        if len(inputs) not in (2, 3):
            raise at_user_line(
                ValueError(
                    "%s layer accepts inputs list of length 2 or 3, namely [query, value] or [query, value, key]. Given length: %d" % (name, len(inputs))
                )
            )
        if mask is not None and not isinstance(mask, list):
            raise at_user_line(ValueError("%s layer mask must be a list, namely [query_mask, value_mask]." % name))
        # The masks of three inputs come as three, of which that of the keys says no more than that of the values.
        if mask is not None and len(mask) not in (2, len(inputs)):
            raise at_user_line(ValueError("%s layer mask must be a list of length 2, namely [query_mask, value_mask]. Given length: %d" % (name, len(mask))))

    def call(self, inputs: Any, mask: Any = None) -> Any:
        """The values, weighted for each query."""
        self._check_lists(inputs, mask)
        query, value = inputs[:2]
        key = inputs[2] if len(inputs) > 2 else value
        query_mask, value_mask = (mask[0], mask[1]) if mask is not None else (None, None)
        scores = self._calculate_scores(query, key)
        seen = None if value_mask is None else array_ops.expand_dims(math_ops.cast(value_mask, dtypes.bool_), -2)
        if self.causal:
            shape = array_ops.shape(scores)
            before = _lower_triangular_mask(array_ops.stack([1, shape[-2], shape[-1]]))
            seen = before if seen is None else gen_ops.logical_and(seen, before)
        made = self._apply_scores(scores, value, seen)
        return made if query_mask is None else made * math_ops.cast(array_ops.expand_dims(query_mask, -1), made.dtype.base_dtype)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """That of the queries."""
        return mask[0] if mask else None

    def get_config(self) -> Dict[str, Any]:
        """The arguments that make such a layer."""
        return {**super().get_config(), "causal": self.causal}


class Attention(BaseDenseAttention):
    """Attention whose scores are products of query and key; with use_scale=True times a number that is trained."""

    def __init__(self, use_scale: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.use_scale = use_scale

    def build(self, input_shape: Any) -> None:
        """Makes the number."""
        del input_shape  # it is one in any case
        self.scale = self.add_weight("scale", (), initializer="ones") if self.use_scale else None
        self.built = True

    def _calculate_scores(self, query: Any, key: Any) -> Any:
        scores = matrix_ops.matmul(query, key, transpose_b=True)
        return scores if self.scale is None else scores * self.scale

    def get_config(self) -> Dict[str, Any]:
        """The arguments that make such a layer."""
        return {**super().get_config(), "use_scale": self.use_scale}


class AdditiveAttention(BaseDenseAttention):
    """Attention whose scores are sums of tanh(query + key); with use_scale=True each element times a weight."""

    def __init__(self, use_scale: bool = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.use_scale = use_scale

    def build(self, input_shape: Any) -> None:
        """Makes the weights."""
        size: Optional[int] = TensorShape(input_shape[1])[-1].value
        self.scale = self.add_weight("scale", [size], initializer="glorot_uniform") if self.use_scale else None
        self.built = True

    def _calculate_scores(self, query: Any, key: Any) -> Any:
        each = gen_ops.tanh(array_ops.expand_dims(query, -2) + array_ops.expand_dims(key, -3))
        return math_ops.reduce_sum(each if self.scale is None else each * self.scale, -1)

    def get_config(self) -> Dict[str, Any]:
        """The arguments that make such a layer."""
        return {**super().get_config(), "use_scale": self.use_scale}
