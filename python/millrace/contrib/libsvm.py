# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.libsvm: lines "label number:value number:value ..."."""

from __future__ import annotations

from typing import Any, Tuple

from millrace.framework import dtypes
from millrace.framework.composite_tensors import SparseTensor
from millrace.framework.convert import convert_to_tensor
from millrace.framework.graph import Tensor, name_scope
from millrace.ops import array_ops, gen_ops, math_ops, string_ops


def decode_libsvm(content: Any, num_features: int, dtype: Any = None, label_dtype: Any = None) -> Tuple[SparseTensor, Tensor]:
    """(features [.., num_features] (float32), labels (int64)) of lines [..]."""
    with name_scope(None, "DecodeLibsvm", [content]):
        content = convert_to_tensor(content, dtype=dtypes.string)
        words = string_ops.string_split(array_ops.reshape(content, [-1]), " ")
        first = math_ops.equal(words.indices[:, 1], 0)
        labels = array_ops.reshape(
            gen_ops.string_to_number(array_ops.boolean_mask(words.values, first), out_type=label_dtype or dtypes.int64), array_ops.shape(content)
        )
        labels.set_shape(content.get_shape())
        others = gen_ops.logical_not(first)
        pairs = string_ops.string_split(array_ops.boolean_mask(words.values, others), ":")
        parts = array_ops.reshape(pairs.values, [-1, 2])
        numbers = gen_ops.string_to_number(parts[:, 0], out_type=dtypes.int64)
        values = gen_ops.string_to_number(parts[:, 1], out_type=dtype or dtypes.float32)
        sizes = array_ops.shape(content, out_type=dtypes.int64)
        rows = array_ops.transpose(gen_ops.unravel_index(array_ops.boolean_mask(words.indices[:, 0], others), sizes))
        indices = array_ops.concat([rows, array_ops.expand_dims(numbers, 1)], 1)
        return SparseTensor(indices, values, array_ops.concat([sizes, [num_features]], 0)), labels
