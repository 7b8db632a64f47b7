# SPDX-License-Identifier: Apache-2.0
"""The largest or mean values of windows, or of everything."""

from __future__ import annotations

from typing import Any, Tuple

from millrace.framework.errors import at_user_line
from millrace.keras import backend as K
from millrace.keras.backend_windows import layout
from millrace.layers.settings import InputSpec, SettingsLayer
from millrace.layers.utils import normalize_tuple
from millrace.ops import array_ops, math_ops


class _Pooling(SettingsLayer):
    settings: Tuple[str, ...] = ("pool_size", "strides", "padding", "data_format")
    rank, mode = 2, "max"

    def __init__(self, pool_size: Any = 2, strides: Any = None, padding: str = "valid", data_format: Any = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.data_format = layout(data_format) if self.rank > 1 or data_format is not None else "channels_last"
        self.pool_size = normalize_tuple(pool_size, self.rank, "pool_size")
        self.strides = self.pool_size if strides is None else normalize_tuple(strides, self.rank, "strides")
        self.padding = padding.lower()
        if self.padding not in ("valid", "same"):
            raise at_user_line(ValueError('The `padding` argument must be one of "valid", "same". Received: %s' % padding))
        self.input_spec = InputSpec(ndim=self.rank + 2)

    def call(self, inputs: Any) -> Any:
        """Computes the outputs."""
        op = {1: K.pool1d, 2: K.pool2d, 3: K.pool3d}[self.rank]
        return op(inputs, self.pool_size, self.strides, self.padding, self.data_format, self.mode)


class _GlobalPooling(SettingsLayer):
    settings: Tuple[str, ...] = ("data_format",)
    rank, mode = 2, "max"

    def __init__(self, data_format: Any = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.data_format = layout(data_format) if self.rank > 1 or data_format is not None else "channels_last"
        self.input_spec = InputSpec(ndim=self.rank + 2)

    def call(self, inputs: Any) -> Any:
        """Computes the outputs."""
        start = 2 if self.data_format == "channels_first" else 1
        return (math_ops.reduce_max if self.mode == "max" else math_ops.reduce_mean)(inputs, list(range(start, start + self.rank)))


def _kind(base: Any, name: str, rank: int, mode: str) -> Any:
    doc = "The %s values of %s." % ("largest" if mode == "max" else "mean", "windows" if base is _Pooling else "all steps or places")
    return type(name, (base,), {"rank": rank, "mode": mode, "__doc__": doc, "__module__": __name__})


MaxPooling1D, MaxPooling2D, MaxPooling3D = (_kind(_Pooling, "MaxPooling%dD" % n, n, "max") for n in (1, 2, 3))
AveragePooling1D, AveragePooling2D, AveragePooling3D = (_kind(_Pooling, "AveragePooling%dD" % n, n, "avg") for n in (1, 2, 3))
GlobalMaxPooling1D, GlobalMaxPooling2D, GlobalMaxPooling3D = (_kind(_GlobalPooling, "GlobalMaxPooling%dD" % n, n, "max") for n in (1, 2, 3))
GlobalAveragePooling2D, GlobalAveragePooling3D = (_kind(_GlobalPooling, "GlobalAveragePooling%dD" % n, n, "avg") for n in (2, 3))


class GlobalAveragePooling1D(_GlobalPooling):
    """The mean values of all steps, of those that a mask leaves."""

    rank, mode, supports_masking = 1, "avg", True

    def call(self, inputs: Any, mask: Any = None) -> Any:
        """Computes the outputs."""
        if mask is None:
            return super().call(inputs)
        axis = 2 if self.data_format == "channels_first" else 1
        weights = array_ops.expand_dims(math_ops.cast(mask, inputs.dtype.base_dtype), 3 - axis)
        return math_ops.reduce_sum(inputs * weights, axis) / math_ops.reduce_sum(weights, axis)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """None: no steps are left."""
        return None


MaxPool1D, MaxPool2D, MaxPool3D, AvgPool1D, AvgPool2D, AvgPool3D = (
    MaxPooling1D,
    MaxPooling2D,
    MaxPooling3D,
    AveragePooling1D,
    AveragePooling2D,
    AveragePooling3D,
)
GlobalMaxPool1D, GlobalMaxPool2D, GlobalMaxPool3D = GlobalMaxPooling1D, GlobalMaxPooling2D, GlobalMaxPooling3D
GlobalAvgPool1D, GlobalAvgPool2D, GlobalAvgPool3D = GlobalAveragePooling1D, GlobalAveragePooling2D, GlobalAveragePooling3D
