# SPDX-License-Identifier: Apache-2.0
"""Tensors as if they had few bits, over ranges that are given, seen last, or averaged."""

from __future__ import annotations

from typing import Any, Callable, List, Optional, Tuple

from millrace.framework.errors import at_user_line
from millrace.framework.graph import GraphKeys, Tensor, control_dependencies, name_scope
from millrace.framework.replication import VariableAggregation
from millrace.ops import gen_ops, init_ops, math_ops, quantization_ops
from millrace.ops.resource_variables import ResourceVariable
from millrace.ops.variable_scope import get_variable, variable_scope
from millrace.ops.variables import assign
from millrace.train.moving_averages import assign_moving_average


def FixedQuantize(inputs: Any, init_min: float = -6.0, init_max: float = 6.0, scope: Optional[str] = None) -> Tensor:
    """Over a range that is given."""
    with name_scope(scope, "FixedQuantize", [inputs]):
        return quantization_ops.fake_quant_with_min_max_args(inputs, min=init_min, max=init_max)


def _bound(name: str, shape: List[Any], first: float, collection: Optional[str]) -> Any:
    collections = [GraphKeys.GLOBAL_VARIABLES] + ([collection] if collection else [])
    start = init_ops.constant_initializer(first)
    return get_variable(name, shape, initializer=start, collections=collections, trainable=False, aggregation=VariableAggregation.MEAN)


def _seen(inputs: Any, per_channel: bool, num_bits: int, narrow_range: bool, symmetric: bool) -> Tuple[Tensor, Tensor]:
    """The range of what comes in: with 0 in it, or as far on both sides of it as the numbers of the bits reach."""
    rank = inputs.get_shape().ndims
    axes = list(range(rank - 1)) if per_channel else None
    low = inputs if axes == [] else math_ops.reduce_min(inputs, axis=axes, name="BatchMin")
    high = inputs if axes == [] else math_ops.reduce_max(inputs, axis=axes, name="BatchMax")
    if not symmetric:
        return math_ops.minimum(low, 0.0), math_ops.maximum(high, 0.0)
    ratio = -1.0 if narrow_range else -((1 << num_bits) - 2) / (1 << num_bits)
    return math_ops.minimum(low, high / ratio), math_ops.maximum(high, low * ratio)


def _value(bound: Any, updated: Any) -> Any:
    """The value of a bound, behind its update if there is one."""
    if updated is None or not isinstance(bound, ResourceVariable):
        return bound if updated is None else updated
    with control_dependencies([updated]):
        return gen_ops.read_variable_op(bound.handle, bound.dtype)


def _quantized(
    inputs: Any,
    per_channel: bool,
    first: Tuple[float, float],
    vars_collection: Optional[str],
    name_prefix: str,
    reuse: Any,
    update: Optional[Callable[[Any, Any, str], Any]],
    num_bits: int,
    narrow_range: bool,
    symmetric: bool,
) -> Tensor:
    """Over a range that is kept in variables, and updated by what comes in if there is a function for it."""
    with variable_scope(None, name_prefix, [inputs], reuse=reuse) as scope:
        scope.set_partitioner(None)
        shape = inputs.get_shape()
        if per_channel and shape.ndims not in (1, 2, 4):
            raise at_user_line(ValueError("Expected 1D, 2D or 4D input, was: %s in scope: %s" % (shape, name_prefix)))
        sizes = [shape[-1].value] if per_channel else []
        bounds = [_bound(name, sizes, value, vars_collection) for name, value in zip(("min", "max"), first)]
        updated: List[Any] = [None, None]
        if update is not None:
            seen = _seen(inputs, per_channel, num_bits, narrow_range, symmetric)
            updated = [update(bound, value, name) for bound, value, name in zip(bounds, seen, ("AssignMin", "AssignMax"))]
        quantize = quantization_ops.fake_quant_with_min_max_vars_per_channel if per_channel else quantization_ops.fake_quant_with_min_max_vars
        with name_scope("FakeQuantWithMinMaxVarsPerChannel" if per_channel else "FakeQuantWithMinMaxVars") as name:
            low, high = (_value(bound, new) for bound, new in zip(bounds, updated))
            return quantize(inputs, low, high, num_bits=num_bits, narrow_range=narrow_range, name=name)


def LastValueQuantize(
    inputs: Any,
    per_channel: bool = False,
    init_min: float = -6.0,
    init_max: float = 6.0,
    vars_collection: Optional[str] = None,
    name_prefix: str = "LastValueQuant",
    reuse: Any = None,
    is_training: bool = True,
    num_bits: int = 8,
    narrow_range: bool = False,
    symmetric: bool = False,
) -> Tensor:
    """Over the range of the last step that trained."""

    def last(bound: Any, value: Any, name: str) -> Any:
        return assign(bound, value, name=name + "Last")

    update = last if is_training else None
    return _quantized(inputs, per_channel, (init_min, init_max), vars_collection, name_prefix, reuse, update, num_bits, narrow_range, symmetric)


def MovingAvgQuantize(
    inputs: Any,
    per_channel: bool = False,
    init_min: float = -6.0,
    init_max: float = 6.0,
    ema_decay: float = 0.999,
    vars_collection: Optional[str] = GraphKeys.MOVING_AVERAGE_VARIABLES,
    name_prefix: str = "MovingAvgQuantize",
    reuse: Any = None,
    is_training: bool = True,
    num_bits: int = 8,
    narrow_range: bool = False,
    symmetric: bool = False,
) -> Tensor:
    """Over the average of the ranges of steps that trained."""

    def averaged(bound: Any, value: Any, name: str) -> Any:
        return assign_moving_average(bound, value, ema_decay, name=name + "Ema")

    update = averaged if is_training else None
    return _quantized(inputs, per_channel, (init_min, init_max), vars_collection, name_prefix, reuse, update, num_bits, narrow_range, symmetric)
