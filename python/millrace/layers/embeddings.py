# SPDX-License-Identifier: Apache-2.0
"""Rows of a table at numbers."""

from __future__ import annotations

from typing import Any, Tuple

from millrace.framework import dtypes
from millrace.framework.errors import at_user_line
from millrace.framework.tensor_shape import TensorShape
from millrace.keras import backend as K
from millrace.layers.settings import SettingsLayer
from millrace.layers.nodes import listed
from millrace.ops import gen_ops, math_ops, nn_ops


class Embedding(SettingsLayer):
    """The rows of a table at numbers."""

    settings: Tuple[str, ...] = (
        "input_dim",
        "output_dim",
        "embeddings_initializer",
        "embeddings_regularizer",
        "activity_regularizer",
        "embeddings_constraint",
        "mask_zero",
        "input_length",
    )

    def __init__(
        self,
        input_dim: int,
        output_dim: int,
        embeddings_initializer: Any = "uniform",
        embeddings_regularizer: Any = None,
        activity_regularizer: Any = None,
        embeddings_constraint: Any = None,
        mask_zero: bool = False,
        input_length: Any = None,
        **kwargs: Any,
    ) -> None:
        if "input_shape" not in kwargs and "batch_input_shape" not in kwargs:
            kwargs["input_shape"] = (None,) if input_length is None else tuple(listed(input_length))
        dtype = kwargs.pop("dtype", None)
        super().__init__(activity_regularizer=activity_regularizer, dtype=dtype or K.floatx(), autocast=False, **kwargs)
        self.input_dim, self.output_dim, self.mask_zero, self.input_length = input_dim, output_dim, mask_zero, input_length
        self.supports_masking = mask_zero
        self._set(embeddings_initializer=embeddings_initializer, embeddings_regularizer=embeddings_regularizer, embeddings_constraint=embeddings_constraint)

    def build(self, input_shape: Any) -> None:
        """Makes the table."""
        del input_shape  # it changes nothing
        self.embeddings = self.add_weight(
            "embeddings", [self.input_dim, self.output_dim], None, self.embeddings_initializer, self.embeddings_regularizer, True, self.embeddings_constraint
        )
        self.built = True

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """Which numbers are not 0."""
        return gen_ops.not_equal(inputs, math_ops.cast(0, inputs.dtype.base_dtype)) if self.mask_zero else None

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The shape of the outputs."""
        given = TensorShape(input_shape).as_list()
        if self.input_length is None:
            return TensorShape([*given, self.output_dim])
        lengths = listed(self.input_length)
        if len(lengths) != len(given) - 1 or any(a is not None and b is not None and a != b for a, b in zip(lengths, given[1:])):
            raise at_user_line(ValueError('"input_length" is %s, but received input has shape %s' % (self.input_length, input_shape)))
        return TensorShape([given[0], *(b if a is None else a for a, b in zip(lengths, given[1:])), self.output_dim])

    def call(self, inputs: Any) -> Any:
        """Computes the outputs."""
        if inputs.dtype.base_dtype not in (dtypes.int32, dtypes.int64):
            inputs = math_ops.cast(inputs, dtypes.int32)
        return nn_ops.embedding_lookup(self.embeddings, inputs)


__all__ = ["Embedding"]
