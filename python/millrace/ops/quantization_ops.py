# SPDX-License-Identifier: Apache-2.0
"""Quantized numbers, and floats rounded as if they were."""

from __future__ import annotations

from typing import Any, Optional, Tuple

from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.graph import Tensor
from millrace.ops import gen_ops

__all__ = [
    "dequantize",
    "fake_quant_with_min_max_args",
    "fake_quant_with_min_max_args_gradient",
    "fake_quant_with_min_max_vars",
    "fake_quant_with_min_max_vars_gradient",
    "fake_quant_with_min_max_vars_per_channel",
    "fake_quant_with_min_max_vars_per_channel_gradient",
    "quantize",
    "quantize_v2",
    "quantized_concat",
]


def fake_quant_with_min_max_args(
    inputs: Any, min: float = -6, max: float = 6, num_bits: int = 8, narrow_range: bool = False, name: Optional[str] = None
) -> Tensor:
    """Inputs rounded to the steps of a fixed range."""
    return gen_ops.fake_quant_with_min_max_args(inputs, min=min, max=max, num_bits=num_bits, narrow_range=narrow_range, name=name)


def fake_quant_with_min_max_args_gradient(
    gradients: Any, inputs: Any, min: float = -6, max: float = 6, num_bits: int = 8, narrow_range: bool = False, name: Optional[str] = None
) -> Tensor:
    """Gradients where the inputs lie in a fixed range."""
    return gen_ops.fake_quant_with_min_max_args_gradient(gradients, inputs, min=min, max=max, num_bits=num_bits, narrow_range=narrow_range, name=name)


def fake_quant_with_min_max_vars(inputs: Any, min: Any, max: Any, num_bits: int = 8, narrow_range: bool = False, name: Optional[str] = None) -> Tensor:
    """Inputs rounded to the steps of a range."""
    return gen_ops.fake_quant_with_min_max_vars(inputs, min, max, num_bits=num_bits, narrow_range=narrow_range, name=name)


def fake_quant_with_min_max_vars_gradient(
    gradients: Any, inputs: Any, min: Any, max: Any, num_bits: int = 8, narrow_range: bool = False, name: Optional[str] = None
) -> Any:
    """Gradients by the inputs, and by the ends of their range."""
    return gen_ops.fake_quant_with_min_max_vars_gradient(gradients, inputs, min, max, num_bits=num_bits, narrow_range=narrow_range, name=name)


def fake_quant_with_min_max_vars_per_channel(
    inputs: Any, min: Any, max: Any, num_bits: int = 8, narrow_range: bool = False, name: Optional[str] = None
) -> Tensor:
    """Inputs rounded to the steps of a range for each channel."""
    return gen_ops.fake_quant_with_min_max_vars_per_channel(inputs, min, max, num_bits=num_bits, narrow_range=narrow_range, name=name)


def fake_quant_with_min_max_vars_per_channel_gradient(
    gradients: Any, inputs: Any, min: Any, max: Any, num_bits: int = 8, narrow_range: bool = False, name: Optional[str] = None
) -> Any:
    """Gradients by the inputs, and by the ends of the range of each channel."""
    return gen_ops.fake_quant_with_min_max_vars_per_channel_gradient(gradients, inputs, min, max, num_bits=num_bits, narrow_range=narrow_range, name=name)


def quantize_v2(
    input: Any, min_range: Any, max_range: Any, T: Any, mode: str = "MIN_COMBINED", name: Optional[str] = None, round_mode: str = "HALF_AWAY_FROM_ZERO"
) -> Any:
    """Floats as integers that lie evenly in a range, and the range's ends."""
    return gen_ops.quantize_v2(convert_to_tensor(input, dtypes.float32), min_range, max_range, T=T, mode=mode, round_mode=round_mode, name=name)


def quantize(
    input: Any, min_range: Any, max_range: Any, T: Any, mode: str = "MIN_COMBINED", round_mode: str = "HALF_AWAY_FROM_ZERO", name: Optional[str] = None
) -> Any:
    """Floats as integers that lie evenly in a range, and the range's ends."""
    return quantize_v2(input, min_range, max_range, T, mode=mode, round_mode=round_mode, name=name)


def dequantize(input: Any, min_range: Any, max_range: Any, mode: str = "MIN_COMBINED", name: Optional[str] = None) -> Tensor:
    """The floats that quantized numbers stand for."""
    return gen_ops.dequantize(input, min_range, max_range, mode=mode, name=name)


def quantized_concat(concat_dim: Any, values: Any, input_mins: Any, input_maxes: Any, name: Optional[str] = None) -> Tuple[Tensor, Tensor, Tensor]:
    """Quantized tensors one after another, in a range that holds all of theirs."""
    return gen_ops.quantized_concat(concat_dim, values, input_mins, input_maxes, name=name)


def quantize_and_dequantize(
    input: Any,
    input_min: Any,
    input_max: Any,
    signed_input: bool = True,
    num_bits: int = 8,
    range_given: bool = False,
    round_mode: str = "HALF_TO_EVEN",
    name: Optional[str] = None,
    narrow_range: bool = False,
) -> Tensor:
    """Inputs rounded to what integers of some bits can tell apart."""
    input = convert_to_tensor(input)
    return gen_ops.quantize_and_dequantize_v2(
        input,
        convert_to_tensor(input_min, input.dtype),
        convert_to_tensor(input_max, input.dtype),
        signed_input=signed_input,
        num_bits=num_bits,
        range_given=range_given,
        round_mode=round_mode,
        narrow_range=narrow_range,
        name=name,
    )
