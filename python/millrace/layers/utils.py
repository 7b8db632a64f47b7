# SPDX-License-Identifier: Apache-2.0
"""tensorflow.python.layers.utils: arguments of layers in one form, and the sizes that convolutions give."""

from __future__ import annotations

from typing import Any, Optional, Set, Tuple

from millrace.framework.errors import at_user_line
from millrace.ops.control_flow_ops import smart_cond, smart_constant_value  # noqa: F401
from millrace.ops.variables import Variable


def constant_value(pred: Any) -> Any:
    """The value of a predicate where it is known before a step, else None: that of a variable never is. TypeError for what is none."""
    return None if isinstance(pred, Variable) else smart_constant_value(pred)


def get_reachable_from_inputs(inputs: Any, targets: Any = None) -> Set[Any]:
    """The tensors that are computed from inputs, and these; no more are looked for once all targets are found."""
    found = set(inputs)
    missing = None if targets is None else set(targets) - found
    variables = [t for x in inputs if isinstance(x, Variable) for t in x.op.outputs]
    found.update(variables)
    waiting = [*(x for x in inputs if not isinstance(x, Variable)), *variables]
    while waiting and (missing is None or missing):
        for op in waiting.pop(0).consumers():
            fresh = [y for y in op.outputs if y not in found]
            found.update(fresh)
            waiting.extend(fresh)
            if missing is not None:
                missing.difference_update(fresh)
    return found


def normalize_tuple(value: Any, n: int, name: str) -> Tuple[int, ...]:
    """A number, or n of them, as a tuple of n."""
    if isinstance(value, int):
        return (value,) * n
    made = tuple(value) if hasattr(value, "__iter__") else ()
    if len(made) != n or not all(hasattr(v, "__index__") for v in made):
        raise at_user_line(ValueError("The `%s` argument must be a tuple of %d integers. Received: %s" % (name, n, value)))
    return tuple(int(v) for v in made)


def normalize_data_format(value: str) -> str:
    """channels_first or channels_last."""
    if value.lower() not in ("channels_first", "channels_last"):
        raise at_user_line(ValueError('The `data_format` argument must be one of "channels_first", "channels_last". Received: %s' % value))
    return value.lower()


def normalize_padding(value: str) -> str:
    """same or valid."""
    if value.lower() not in ("valid", "same"):
        raise at_user_line(ValueError('The `padding` argument must be one of "valid", "same". Received: %s' % value))
    return value.lower()


def convert_data_format(data_format: str, ndim: int) -> str:
    """The name that ops have for a data format."""
    names = {3: ("NWC", "NCW"), 4: ("NHWC", "NCHW"), 5: ("NDHWC", "NCDHW")}
    if ndim not in names or data_format not in ("channels_last", "channels_first"):
        what = ("Invalid data_format:", data_format) if ndim in names else ("Input rank not supported:", ndim)
        raise at_user_line(ValueError(*what))
    return names[ndim][data_format == "channels_first"]


def conv_output_length(input_length: Optional[int], filter_size: int, padding: str, stride: int, dilation: int = 1) -> Optional[int]:
    """How long a convolution's output is."""
    if input_length is None:
        return None
    covered = filter_size + (filter_size - 1) * (dilation - 1)
    length = {"same": input_length, "causal": input_length, "valid": input_length - covered + 1, "full": input_length + covered - 1}[padding]
    return (length + stride - 1) // stride


def conv_input_length(output_length: Optional[int], filter_size: int, padding: str, stride: int) -> Optional[int]:
    """How long an input has to be for an output."""
    if output_length is None:
        return None
    return (output_length - 1) * stride - 2 * {"same": filter_size // 2, "valid": 0, "full": filter_size - 1}[padding] + filter_size


def deconv_output_length(input_length: Optional[int], filter_size: int, padding: str, stride: int) -> Optional[int]:
    """How long a transposed convolution's output is."""
    if input_length is None:
        return None
    return input_length * stride + {"same": 0, "valid": max(filter_size - stride, 0), "full": -(stride + filter_size - 2)}[padding]
