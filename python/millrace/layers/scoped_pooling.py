# SPDX-License-Identifier: Apache-2.0
"""The pooling layers of tf.layers."""

from __future__ import annotations

from typing import Any, Callable, Optional

from millrace.layers import scoped as layers, utils as layers_utils
from millrace.ops import array_ops, nn_ops


class _Pooling(layers.Layer):
    def __init__(self, op: Any, dimensions: int, pool_size: Any, strides: Any, padding: str, data_format: str, name: Optional[str], **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)
        self._op, self.padding, self.data_format = op, layers_utils.normalize_padding(padding), layers_utils.normalize_data_format(data_format)
        self.pool_size, self.strides = layers._tuple(pool_size, dimensions, "pool_size"), layers._tuple(strides, dimensions, "strides")
        self.input_spec = layers.InputSpec(ndim=dimensions + 2)

    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Computes the output."""
        first = self.data_format == "channels_first"
        size, step = ((1, 1) + v if first else (1,) + v + (1,) for v in (self.pool_size, self.strides))
        names = ("NCDHW", "NDHWC") if len(self.pool_size) == 3 else ("NCHW", "NHWC")
        return self._op(inputs, ksize=size, strides=step, padding=self.padding.upper(), data_format=names[0 if first else 1])


class _Pooling1D(_Pooling):
    def call(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Computes the output."""
        first = self.data_format == "channels_first"
        axis = 3 if first else 2
        size, step = ([1, 1, v[0], 1] if first else [1, v[0], 1, 1] for v in (self.pool_size, self.strides))
        x = array_ops.expand_dims(inputs, axis)
        return array_ops.squeeze(self._op(x, ksize=size, strides=step, padding=self.padding.upper(), data_format="NCHW" if first else "NHWC"), [axis])


def _kind(base: Any, op: Any, dimensions: int, name: str, doc: str) -> Any:
    def __init__(
        self: Any, pool_size: Any, strides: Any, padding: str = "valid", data_format: str = "channels_last", name: Optional[str] = None, **kwargs: Any
    ) -> None:
        base.__init__(self, op, dimensions, pool_size, strides, padding, data_format, name, **kwargs)

    return type(name, (base,), {"__init__": __init__, "__doc__": doc, "__module__": "millrace.layers"})


def _function(kind: Any, doc: str) -> Callable[..., Any]:
    def call(inputs: Any, pool_size: Any, strides: Any, padding: str = "valid", data_format: str = "channels_last", name: Optional[str] = None) -> Any:
        return kind(pool_size, strides, padding, data_format, name)(inputs)

    call.__doc__ = doc
    return call


_LARGEST, _MEAN = "The largest value of each window.", "The mean of each window."
MaxPooling1D: Any = _kind(_Pooling1D, nn_ops.max_pool, 1, "MaxPooling1D", _LARGEST)
MaxPooling2D: Any = _kind(_Pooling, nn_ops.max_pool, 2, "MaxPooling2D", _LARGEST)
MaxPooling3D: Any = _kind(_Pooling, nn_ops.max_pool3d, 3, "MaxPooling3D", _LARGEST)
AveragePooling1D: Any = _kind(_Pooling1D, nn_ops.avg_pool, 1, "AveragePooling1D", _MEAN)
AveragePooling2D: Any = _kind(_Pooling, nn_ops.avg_pool, 2, "AveragePooling2D", _MEAN)
AveragePooling3D: Any = _kind(_Pooling, nn_ops.avg_pool3d, 3, "AveragePooling3D", _MEAN)
max_pooling1d, average_pooling1d = _function(MaxPooling1D, _LARGEST), _function(AveragePooling1D, _MEAN)
max_pooling2d, average_pooling2d = _function(MaxPooling2D, _LARGEST), _function(AveragePooling2D, _MEAN)
max_pooling3d, average_pooling3d = _function(MaxPooling3D, _LARGEST), _function(AveragePooling3D, _MEAN)
