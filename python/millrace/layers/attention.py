# SPDX-License-Identifier: Apache-2.0
"""Attention of queries over values, by products (Luong) or by sums (Bahdanau)."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

from millrace.framework.errors import at_user_line
from millrace.framework.tensor_shape import TensorShape
from millrace.layers.base import Layer
from millrace.ops import array_ops, gen_ops, math_ops, matrix_ops, nn_ops


class _Attention(Layer):
    """Takes [query, value] or [query, value, key]: [batch, Tq, dim], [batch, Tv, dim] and like the value; masks [batch, Tq] and [batch, Tv] of the
    first two. With causal=True a query sees the values up to its own place. Gives [batch, Tq, dim]."""

    def __init__(self, use_scale: bool, causal: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.use_scale, self.causal, self.supports_masking = use_scale, causal, True
        self.scale: Any = None

    def _scores(self, query: Any, key: Any) -> Any:
        raise NotImplementedError

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
        scores = self._scores(query, key)
        seen: List[Any] = [] if value_mask is None else [array_ops.expand_dims(value_mask, -2)]
        if self.causal:
            shape = array_ops.shape(scores)
            seen.append(gen_ops.matrix_band_part(array_ops.ones(array_ops.stack([1, shape[-2], shape[-1]]), scores.dtype.base_dtype), -1, 0) > 0)
        for one in seen:
            scores = scores - 1e9 * (1 - math_ops.cast(one, scores.dtype.base_dtype))
        made = matrix_ops.matmul(nn_ops.softmax(scores), value)
        return made if query_mask is None else made * math_ops.cast(array_ops.expand_dims(query_mask, -1), made.dtype.base_dtype)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """That of the queries."""
        return mask[0] if mask else None

    def get_config(self) -> Dict[str, Any]:
        """The arguments that make such a layer."""
        return {**super().get_config(), "use_scale": self.use_scale, "causal": self.causal}


class Attention(_Attention):
    """Attention whose scores are products of query and key; with use_scale=True times a number that is trained."""

    def __init__(self, use_scale: bool = False, **kwargs: Any) -> None:
        super().__init__(use_scale, **kwargs)

    def build(self, input_shape: Any) -> None:
        """Makes the number."""
        del input_shape  # it is one in any case
        self.scale = self.add_weight("scale", (), initializer="ones") if self.use_scale else None
        self.built = True

    def _scores(self, query: Any, key: Any) -> Any:
        scores = matrix_ops.matmul(query, key, transpose_b=True)
        return scores if self.scale is None else scores * self.scale


class AdditiveAttention(_Attention):
    """Attention whose scores are sums of tanh(query + key); with use_scale=True each element times a weight."""

    def __init__(self, use_scale: bool = True, **kwargs: Any) -> None:
        super().__init__(use_scale, **kwargs)

    def build(self, input_shape: Any) -> None:
        """Makes the weights."""
        size: Optional[int] = TensorShape(input_shape[1])[-1].value
        self.scale = self.add_weight("scale", [size], initializer="glorot_uniform") if self.use_scale else None
        self.built = True

    def _scores(self, query: Any, key: Any) -> Any:
        each = gen_ops.tanh(array_ops.expand_dims(query, -2) + array_ops.expand_dims(key, -3))
        return math_ops.reduce_sum(each if self.scale is None else each * self.scale, -1)
