# SPDX-License-Identifier: Apache-2.0
"""The types of layers. A layer takes that of its first inputs; once enable_v2_dtype_behavior was called, it has floatx from the start,
and casts inputs of another floating type, as TensorFlow 2 has it. tensorflow.python.keras.engine.base_layer_utils has these names."""

from __future__ import annotations

from typing import Any, List

from millrace import tf_logging
from millrace.framework import dtypes
from millrace.framework.composite_tensors import SparseTensor
from millrace.framework.graph import Tensor
from millrace.ops import math_ops
from millrace.ops.ragged.tensor import RaggedTensor

V2_DTYPE_BEHAVIOR = False  # programs set it


def enable_v2_dtype_behavior() -> None:
    """Layers that are made from now on have floatx where no dtype is given, and cast their inputs."""
    global V2_DTYPE_BEHAVIOR
    V2_DTYPE_BEHAVIOR = True


def disable_v2_dtype_behavior() -> None:
    """Layers that are made from now on take the type of their inputs."""
    global V2_DTYPE_BEHAVIOR
    V2_DTYPE_BEHAVIOR = False


def v2_dtype_behavior_enabled() -> bool:
    """Whether layers have a type from the start, and cast their inputs."""
    return V2_DTYPE_BEHAVIOR


def cast_inputs(layer: Any, tensors: List[Any]) -> List[Any]:
    """The inputs of a layer that casts, those of floating types in the layer's; one that was told no type says so, once."""
    name = layer._dtype_policy.compute_dtype
    wanted = None if name is None else dtypes.as_dtype(name)
    if wanted is None or not wanted.is_floating:
        return tensors

    def cast(x: Any) -> Any:
        if not isinstance(x, (Tensor, SparseTensor, RaggedTensor)) or not x.dtype.is_floating or x.dtype.base_dtype == wanted:
            return x
        if layer._warns_of_casts:
            layer._warns_of_casts = False
            tf_logging.warn(
                "Layer %s is casting an input tensor from dtype %s to the layer's dtype of %s. The layer has dtype %s because that is floatx, and "
                "no dtype was given: give the layer dtype=%r to keep the input as it is, or autocast=False."
                % (layer.name, x.dtype.base_dtype.name, wanted.name, wanted.name, x.dtype.base_dtype.name)
            )
        return x.with_flat_values(math_ops.cast(x.flat_values, wanted)) if isinstance(x, RaggedTensor) else math_ops.cast(x, wanted)

    return [cast(x) for x in tensors]
