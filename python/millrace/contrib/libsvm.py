# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.libsvm: lines "label number:value number:value ..."."""

from __future__ import annotations

from typing import Any, Tuple

from millrace.framework import dtypes
from millrace.framework.composite_tensors import SparseTensor
from millrace.framework.graph import Tensor
from millrace.ops import gen_ops


def decode_libsvm(content: Any, num_features: int, dtype: Any = None, label_dtype: Any = None) -> Tuple[SparseTensor, Tensor]:
    """(features [.., num_features] (float32), labels (int64)) of lines [..]."""
    labels, indices, values, shape = gen_ops.decode_libsvm(
        content, num_features=num_features, dtype=dtype or dtypes.float32, label_dtype=label_dtype or dtypes.int64
    )
    return SparseTensor(indices, values, shape), labels
