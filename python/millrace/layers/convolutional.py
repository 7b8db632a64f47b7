# SPDX-License-Identifier: Apache-2.0
"""Convolutions."""

from __future__ import annotations

from typing import Any, List, Optional, Tuple

from millrace import tf_logging
from millrace.framework.errors import at_user_line
from millrace.framework.graph import get_default_graph
from millrace.framework.tensor_shape import TensorShape
from millrace.keras import backend as K
from millrace.keras.backend_windows import layout, transposed_sizes
from millrace.layers.settings import InputSpec, SettingsLayer
from millrace.layers.utils import convert_data_format, normalize_tuple
from millrace.ops import array_ops, nn_ops, window_ops

_KERNEL = (
    "filters",
    "kernel_size",
    "strides",
    "padding",
    "data_format",
    "dilation_rate",
    "activation",
    "use_bias",
    "kernel_initializer",
    "bias_initializer",
    "kernel_regularizer",
    "bias_regularizer",
    "activity_regularizer",
    "kernel_constraint",
    "bias_constraint",
)


_NAMES = {1: "conv1d", 2: "Conv2D", 3: "Conv3D"}  # of the operation of a convolution, by its places


class _Conv(SettingsLayer):
    """What convolutions have in common."""

    settings: Tuple[str, ...] = _KERNEL
    rank = 2
    _has_rates = True
    _rates: Any = None  # the constant that TensorFlow makes of dilation_rate

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: Optional[str] = None,
        dilation_rate: Any = 1,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(activity_regularizer=activity_regularizer, **kwargs)
        self.filters = None if filters is None else int(filters)
        self.kernel_size, self.strides = normalize_tuple(kernel_size, self.rank, "kernel_size"), normalize_tuple(strides, self.rank, "strides")
        self.padding, self.dilation_rate = padding.lower(), normalize_tuple(dilation_rate, self.rank, "dilation_rate")
        if self.padding not in ("valid", "same", "causal") or self.padding == "causal" and self.rank != 1:
            raise at_user_line(ValueError('The `padding` argument must be one of "valid", "same" (or "causal" for Conv1D). Received: %s' % padding))
        self.data_format, self.use_bias = "channels_last" if data_format is None and self.rank == 1 else layout(data_format), use_bias
        self._set(
            activation=activation,
            kernel_initializer=kernel_initializer,
            bias_initializer=bias_initializer,
            kernel_regularizer=kernel_regularizer,
            bias_regularizer=bias_regularizer,
            kernel_constraint=kernel_constraint,
            bias_constraint=bias_constraint,
        )
        self.input_spec = InputSpec(ndim=self.rank + 2)
        self.bias: Any = None

    @property
    def _first(self) -> bool:
        return bool(self.data_format == "channels_first")

    def _channels(self, input_shape: Any) -> int:
        size = TensorShape(input_shape)[1 if self._first else -1].value
        if size is None:
            raise at_user_line(ValueError("The channel dimension of the inputs should be defined. Found `None`."))
        self.input_spec = InputSpec(ndim=self.rank + 2, axes={1 if self._first else -1: size})
        return int(size)

    def _kernel_shape(self, channels: int) -> List[int]:
        return [*self.kernel_size, channels, self.filters]

    def build(self, input_shape: Any) -> None:
        """Makes kernel and bias."""
        self.kernel = self.add_weight(
            "kernel", self._kernel_shape(self._channels(input_shape)), None, self.kernel_initializer, self.kernel_regularizer, True, self.kernel_constraint
        )
        self._make_bias()
        self._rates = window_ops.rates_of_graph(self.dilation_rate) if self._has_rates else None
        self.built = True

    def _make_bias(self) -> None:
        if self.use_bias:
            self.bias = self.add_weight("bias", [self.filters], None, self.bias_initializer, self.bias_regularizer, True, self.bias_constraint)

    def call(self, inputs: Any) -> Any:
        """Computes the outputs."""
        made = self._computed(inputs)
        return self.activation(nn_ops.bias_add(made, self.bias, data_format="NCHW" if self._first else "NHWC") if self.bias is not None else made)

    def _padded(self, x: Any) -> Tuple[Any, str]:
        """(the inputs, how to pad them): causal convolutions of sequences see zeros before them."""
        if self.padding != "causal":
            return x, self.padding.upper()
        before = [(self.kernel_size[0] - 1) * self.dilation_rate[0], 0]
        return array_ops.pad(x, [[0, 0], [0, 0], before] if self._first else [[0, 0], before, [0, 0]]), "VALID"

    def _along(self, sizes: Any) -> List[int]:
        """Sizes for all axes, of those for places."""
        return [1, 1, *sizes] if self._first else [1, *sizes, 1]

    def _kernel_of_call(self) -> Any:
        """The kernel that calls use."""
        return self.kernel

    def _computed(self, x: Any) -> Any:
        x, padding = self._padded(x)
        there = self._rates if self._rates is not None and self._rates.graph is get_default_graph() else None
        return window_ops.convolved(x, self._kernel_of_call(), padding, self.strides, self.dilation_rate, self._first, _NAMES[self.rank], there)


class Conv1D(_Conv):
    """A convolution of sequences."""

    rank = 1


class Conv2D(_Conv):
    """A convolution of images."""


class Conv3D(_Conv):
    """A convolution of volumes."""

    rank = 3


class Conv2DTranspose(_Conv):
    """The transpose of a convolution of images."""

    settings: Tuple[str, ...] = (*_KERNEL, "output_padding")
    _has_rates = False

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        output_padding: Any = None,
        data_format: Any = None,
        dilation_rate: Any = 1,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            filters,
            kernel_size,
            strides,
            padding,
            data_format,
            dilation_rate,
            activation,
            use_bias,
            kernel_initializer,
            bias_initializer,
            kernel_regularizer,
            bias_regularizer,
            activity_regularizer,
            kernel_constraint,
            bias_constraint,
            **kwargs,
        )
        self.output_padding = None if output_padding is None else normalize_tuple(output_padding, self.rank, "output_padding")
        if any(more >= stride for more, stride in zip(self.output_padding or (), self.strides)):
            raise at_user_line(ValueError("Stride %s must be greater than output padding %s" % (self.strides, self.output_padding)))

    def _kernel_shape(self, channels: int) -> List[int]:
        return [*self.kernel_size, self.filters, channels]

    def _computed(self, x: Any) -> Any:
        sizes, known = transposed_sizes(x, self.kernel_size, self.strides, self.padding, self._first, self.output_padding, self.dilation_rate)
        static = x.get_shape()[0].value
        full = array_ops.stack([sizes[0], self.filters, *sizes[1:]] if self._first else [*sizes, self.filters])
        if self.rank == 2:
            full[0]  # which TensorFlow states, and nobody reads
        made = (nn_ops.conv2d_transpose if self.rank == 2 else nn_ops.conv3d_transpose)(
            x,
            self.kernel,
            full,
            self._along(self.strides),
            self.padding.upper(),
            convert_data_format(self.data_format, self.rank + 2),
            dilations=self._along(self.dilation_rate),
        )
        made.set_shape([static, self.filters, *known] if self._first else [static, *known, self.filters])
        return made


class Conv3DTranspose(Conv2DTranspose):
    """The transpose of a convolution of volumes."""

    settings: Tuple[str, ...] = tuple(n for n in Conv2DTranspose.settings if n != "dilation_rate")
    rank = 3

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        output_padding: Any = None,
        data_format: Any = None,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            filters,
            kernel_size,
            strides,
            padding,
            output_padding,
            data_format,
            1,
            activation,
            use_bias,
            kernel_initializer,
            bias_initializer,
            kernel_regularizer,
            bias_regularizer,
            activity_regularizer,
            kernel_constraint,
            bias_constraint,
            **kwargs,
        )


class DepthwiseConv2D(_Conv):
    """A convolution of each channel alone."""

    settings: Tuple[str, ...] = (
        "kernel_size",
        "strides",
        "padding",
        "depth_multiplier",
        "data_format",
        "dilation_rate",
        "activation",
        "use_bias",
        "depthwise_initializer",
        "bias_initializer",
        "depthwise_regularizer",
        "bias_regularizer",
        "activity_regularizer",
        "depthwise_constraint",
        "bias_constraint",
    )

    def __init__(
        self,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        depth_multiplier: int = 1,
        data_format: Any = None,
        activation: Any = None,
        use_bias: bool = True,
        depthwise_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        depthwise_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        depthwise_constraint: Any = None,
        bias_constraint: Any = None,
        **kwargs: Any,
    ) -> None:
        for name in ("kernel_initializer", "kernel_regularizer", "kernel_constraint"):  # 1.15 takes them, and uses none
            if kwargs.pop(name, None) is not None:
                tf_logging.warn("DepthwiseConv2D: %s counts for nothing; use depthwise_%s." % (name, name[7:]))
        super().__init__(
            None,  # type: ignore[arg-type]
            kernel_size,
            strides,
            padding,
            data_format,
            kwargs.pop("dilation_rate", 1),
            activation,
            use_bias,
            "zeros",
            bias_initializer,
            None,
            bias_regularizer,
            activity_regularizer,
            None,
            bias_constraint,
            **kwargs,
        )
        self._set(depthwise_initializer=depthwise_initializer, depthwise_regularizer=depthwise_regularizer, depthwise_constraint=depthwise_constraint)
        self.depth_multiplier = depth_multiplier

    def build(self, input_shape: Any) -> None:
        """Makes kernel and bias."""
        channels = self._channels(input_shape)
        self.depthwise_kernel = self.add_weight(
            "depthwise_kernel",
            [*self.kernel_size, channels, self.depth_multiplier],
            None,
            self.depthwise_initializer,
            self.depthwise_regularizer,
            True,
            self.depthwise_constraint,
        )
        self.filters = channels * self.depth_multiplier
        self._make_bias()
        self.built = True

    def _computed(self, x: Any) -> Any:
        return K.depthwise_conv2d(x, self.depthwise_kernel, self.strides, self.padding, self.data_format, self.dilation_rate)


_UNUSED = ("kernel_initializer", "kernel_regularizer", "kernel_constraint")  # configs of 1.15 have them, and no kernel is theirs


class SeparableConv2D(_Conv):
    """A convolution of each channel alone, then a 1x1 convolution."""

    settings: Tuple[str, ...] = (
        "filters",
        "kernel_size",
        "strides",
        "padding",
        "data_format",
        "dilation_rate",
        "depth_multiplier",
        "activation",
        "use_bias",
        "depthwise_initializer",
        "pointwise_initializer",
        "bias_initializer",
        "depthwise_regularizer",
        "pointwise_regularizer",
        "bias_regularizer",
        "activity_regularizer",
        "depthwise_constraint",
        "pointwise_constraint",
        "bias_constraint",
        *_UNUSED,
    )

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: Any = None,
        dilation_rate: Any = 1,
        depth_multiplier: int = 1,
        activation: Any = None,
        use_bias: bool = True,
        depthwise_initializer: Any = "glorot_uniform",
        pointwise_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        depthwise_regularizer: Any = None,
        pointwise_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        depthwise_constraint: Any = None,
        pointwise_constraint: Any = None,
        bias_constraint: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            filters,
            kernel_size,
            strides,
            padding,
            data_format,
            dilation_rate,
            activation,
            use_bias,
            bias_initializer=bias_initializer,
            bias_regularizer=bias_regularizer,
            activity_regularizer=activity_regularizer,
            bias_constraint=bias_constraint,
            **kwargs,
        )
        self._set(
            depthwise_initializer=depthwise_initializer,
            depthwise_regularizer=depthwise_regularizer,
            depthwise_constraint=depthwise_constraint,
            pointwise_initializer=pointwise_initializer,
            pointwise_regularizer=pointwise_regularizer,
            pointwise_constraint=pointwise_constraint,
        )
        self.depth_multiplier = depth_multiplier

    def build(self, input_shape: Any) -> None:
        """Makes kernels and bias."""
        channels = self._channels(input_shape)
        self.depthwise_kernel = self.add_weight(
            "depthwise_kernel",
            [*self.kernel_size, channels, self.depth_multiplier],
            None,
            self.depthwise_initializer,
            self.depthwise_regularizer,
            True,
            self.depthwise_constraint,
        )
        self.pointwise_kernel = self.add_weight(
            "pointwise_kernel",
            [1] * self.rank + [channels * self.depth_multiplier, self.filters],
            None,
            self.pointwise_initializer,
            self.pointwise_regularizer,
            True,
            self.pointwise_constraint,
        )
        self._make_bias()
        self.built = True

    def _computed(self, x: Any) -> Any:
        x, padding = self._padded(x)
        depthwise, pointwise, strides, rate, axis = self.depthwise_kernel, self.pointwise_kernel, self.strides, self.dilation_rate, 2 if self._first else 1
        if self.rank == 1:  # sequences as images of one row
            x, depthwise, pointwise = array_ops.expand_dims(x, axis), array_ops.expand_dims(depthwise, 0), array_ops.expand_dims(pointwise, 0)
            strides, rate = strides * 2, (1, *rate)
        layout_of_op = "NCHW" if self._first else "NHWC"
        made = nn_ops.separable_conv2d(x, depthwise, pointwise, self._along(strides), padding, list(rate), data_format=layout_of_op)
        return array_ops.squeeze(made, [axis]) if self.rank == 1 else made


class SeparableConv1D(SeparableConv2D):
    """A convolution of each channel of sequences alone, then a convolution of length 1."""

    rank = 1


Convolution1D, Convolution2D, Convolution3D, SeparableConvolution2D = Conv1D, Conv2D, Conv3D, SeparableConv2D
Deconvolution2D = Deconv2D = Convolution2DTranspose = Conv2DTranspose
Deconvolution3D = Deconv3D = Convolution3DTranspose = Conv3DTranspose
Convolution1D, SeparableConvolution1D = Conv1D, SeparableConv1D

from millrace.layers.shaping import (  # noqa: E402, F401
    Cropping1D,
    Cropping2D,
    Cropping3D,
    UpSampling1D,
    UpSampling2D,
    UpSampling3D,
    ZeroPadding1D,
    ZeroPadding2D,
    ZeroPadding3D,
)
