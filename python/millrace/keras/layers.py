# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.keras.layers: those that have no state between steps."""
from __future__ import annotations

from typing import Any, Callable, List, Optional

import numpy as np

from millrace.framework import dtypes
from millrace.framework.errors import at_user_line
from millrace.keras import backend as K
from millrace.keras.engine import Input, InputLayer, Layer, activation, initializer, listed  # noqa: F401
from millrace.layers import _tuple
from millrace.ops import array_ops, gen_ops, math_ops, matrix_ops, nn_ops, random_ops


class Dense(Layer):
    """activation(inputs kernel + bias)."""

    def __init__(self, units: int, activation: Any = None, use_bias: bool = True, kernel_initializer: Any = "glorot_uniform", bias_initializer: Any = "zeros",
                 kernel_regularizer: Any = None, bias_regularizer: Any = None, activity_regularizer: Any = None, kernel_constraint: Any = None,
                 bias_constraint: Any = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.units, self.activation, self.use_bias = int(units), _activation(activation), use_bias
        self._kernel, self._bias = (kernel_initializer, kernel_regularizer, kernel_constraint), (bias_initializer, bias_regularizer, bias_constraint)

    def build(self, input_shape: Any) -> None:
        """Makes kernel and bias."""
        size = input_shape[-1].value
        if size is None:
            raise at_user_line(ValueError("The last dimension of the inputs to `Dense` should be defined. Found `None`."))
        self.kernel = self.add_weight("kernel", [size, self.units], None, *self._kernel[:2], True, self._kernel[2])  # type: ignore[call-arg]
        self.bias = self.add_weight("bias", [self.units], None, *self._bias[:2], True, self._bias[2]) if self.use_bias else None

    def call(self, inputs: Any, **kwargs: Any) -> Any:
        """Computes the outputs."""
        made = K.dot(inputs, self.kernel)
        return self.activation(nn_ops.bias_add(made, self.bias) if self.bias is not None else made)


_activation = activation


class Activation(Layer):
    """An activation alone."""

    def __init__(self, activation: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.activation = _activation(activation)

    def call(self, inputs: Any, **kwargs: Any) -> Any:
        """Computes the outputs."""
        return self.activation(inputs)


def _simple(name: str, doc: str, function: Callable[..., Any], **defaults: Any) -> Any:
    """A layer without weights: function(inputs, **settings)."""
    names = list(defaults)

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        given = {**defaults, **dict(zip(names, args)), **{k: kwargs.pop(k) for k in names if k in kwargs}}
        Layer.__init__(self, **kwargs)
        self._settings = given

    def call(self: Any, inputs: Any, **kwargs: Any) -> Any:
        return function(inputs, **self._settings)
    return type(name, (Layer,), {"__init__": __init__, "call": call, "__doc__": doc, "__module__": __name__})


def _reshaped(x: Any, target_shape: Any) -> Any:
    return array_ops.reshape(x, [-1 if x.get_shape()[0].value is None else x.get_shape()[0].value, *target_shape])


def _padded(x: Any, padding: Any, data_format: Any) -> Any:
    pads = [(padding, padding)] * 2 if isinstance(padding, int) else [(p, p) if isinstance(p, int) else tuple(p) for p in padding]
    first = (data_format or K.image_data_format()) == "channels_first"
    return array_ops.pad(x, [(0, 0), (0, 0), *pads] if first else [(0, 0), *pads, (0, 0)])


def _cropped(x: Any, cropping: Any) -> Any:
    cuts = [(cropping, cropping)] * 2 if isinstance(cropping, int) else [(p, p) if isinstance(p, int) else tuple(p) for p in cropping]
    (a, b), (c, d) = cuts
    return x[:, a:-b if b else None, c:-d if d else None]


def _upsampled(x: Any, size: Any, data_format: Any) -> Any:
    h, w = _tuple(size, 2, "size")
    axes = (2, 3) if (data_format or K.image_data_format()) == "channels_first" else (1, 2)
    for axis, count in zip(axes, (h, w)):
        shape = x.get_shape().as_list()
        spread = array_ops.tile(array_ops.expand_dims(x, axis + 1), [count if i == axis + 1 else 1 for i in range(len(shape) + 1)])
        dynamic = array_ops.shape(x)
        sizes = [(s if s is not None else dynamic[i]) * (count if i == axis else 1) for i, s in enumerate(shape)]
        x = array_ops.reshape(spread, array_ops.stack(sizes) if any(s is None for s in shape) else sizes)
        x.set_shape([s * count if i == axis and s is not None else s for i, s in enumerate(shape)])
    return x


def _noise(x: Any, stddev: float) -> Any:
    return K.in_train_phase(lambda: x + random_ops.random_normal(array_ops.shape(x), 0.0, stddev), lambda: array_ops.identity(x))


def _dropped(x: Any, rate: float, noise_shape: Any, seed: Any) -> Any:
    if not 0 < rate < 1:
        return x
    return K.in_train_phase(lambda: nn_ops.dropout(x, 1 - rate, noise_shape, seed), lambda: array_ops.identity(x))


def _channel_dropped(x: Any, rate: float) -> Any:
    size = array_ops.shape(x)
    return _dropped(x, rate, array_ops.stack([size[0], *[1] * (K.ndim(x) - 2), size[K.ndim(x) - 1]]), None)


Dropout = _simple("Dropout", "While training, elements set to zero.", _dropped, rate=0.5, noise_shape=None, seed=None)
SpatialDropout1D = _simple("SpatialDropout1D", "While training, channels set to zero.", _channel_dropped, rate=0.5)
SpatialDropout2D = _simple("SpatialDropout2D", "While training, channels set to zero.", _channel_dropped, rate=0.5)
GaussianNoise = _simple("GaussianNoise", "While training, noise added.", _noise, stddev=0.1)
Flatten = _simple("Flatten", "[batch, ...] as [batch, elements].", lambda x, data_format: K.batch_flatten(x), data_format=None)
Reshape = _simple("Reshape", "Another shape of each example.", _reshaped, target_shape=())
Permute = _simple("Permute", "Axes of each example in another order, counted from 1.", lambda x, dims: array_ops.transpose(x, [0, *dims]), dims=())
RepeatVector = _simple("RepeatVector", "Each vector n times.", lambda x, n: array_ops.tile(array_ops.expand_dims(x, 1), [1, n, 1]), n=1)
LeakyReLU = _simple("LeakyReLU", "max(alpha x, x).", lambda x, alpha: nn_ops.leaky_relu(x, alpha), alpha=0.3)
ELU = _simple("ELU", "x, or alpha (exp(x) - 1) below zero.", lambda x, alpha: array_ops.where(gen_ops.greater(x, 0.0), x, alpha * (gen_ops.exp(x) - 1)), alpha=1.0)
ReLU = _simple("ReLU", "max(x, 0), up to a largest value.", lambda x, max_value: nn_ops.relu(x) if max_value is None else K.clip(x, 0.0, max_value), max_value=None)
Softmax = _simple("Softmax", "softmax over an axis.", lambda x, axis: nn_ops.softmax(x, axis), axis=-1)
ZeroPadding2D = _simple("ZeroPadding2D", "Zeros around images.", _padded, padding=1, data_format=None)
Cropping2D = _simple("Cropping2D", "Images without their borders.", _cropped, cropping=((0, 0), (0, 0)))
UpSampling2D = _simple("UpSampling2D", "Each row and column several times.", _upsampled, size=(2, 2), data_format=None)
UpSampling1D = _simple("UpSampling1D", "Each step several times.", lambda x, size: array_ops.squeeze(_upsampled(array_ops.expand_dims(x, 2), (size, 1), "channels_last"), [2]),
                       size=2)
GlobalAveragePooling1D = _simple("GlobalAveragePooling1D", "The means over the steps.", lambda x: math_ops.reduce_mean(x, [1]))
GlobalMaxPooling1D = _simple("GlobalMaxPooling1D", "The largest values over the steps.", lambda x: math_ops.reduce_max(x, [1]))
GlobalAveragePooling2D = _simple("GlobalAveragePooling2D", "The means over images.", lambda x, data_format: math_ops.reduce_mean(
    x, [2, 3] if data_format == "channels_first" else [1, 2]), data_format=None)
GlobalMaxPooling2D = _simple("GlobalMaxPooling2D", "The largest values over images.", lambda x, data_format: math_ops.reduce_max(
    x, [2, 3] if data_format == "channels_first" else [1, 2]), data_format=None)


def _pooled(op: str, dimensions: int) -> Any:
    def pool(x: Any, pool_size: Any, strides: Any, padding: str, data_format: Any) -> Any:
        first = (data_format or K.image_data_format()) == "channels_first" and dimensions > 1
        size = _tuple(pool_size, dimensions, "pool_size")
        step = size if strides is None else _tuple(strides, dimensions, "strides")
        return nn_ops.pool(x, size, op, padding.upper(), strides=list(step), data_format=[None, "NCHW", "NCDHW"][dimensions - 1] if first else None)  # type: ignore[attr-defined]
    return pool


MaxPooling1D, AveragePooling1D, MaxPooling2D, AveragePooling2D, MaxPooling3D, AveragePooling3D = (
    _simple("%sPooling%dD" % (name, n), "%s of windows." % name, _pooled(op, n), pool_size=2, strides=None, padding="valid", data_format=None)
    for n in (1, 2, 3) for name, op in (("Max", "MAX"), ("Average", "AVG")))
MaxPool1D, AvgPool1D, MaxPool2D, AvgPool2D, MaxPool3D, AvgPool3D = MaxPooling1D, AveragePooling1D, MaxPooling2D, AveragePooling2D, MaxPooling3D, AveragePooling3D


class Lambda(Layer):
    """A function as a layer."""

    def __init__(self, function: Callable[..., Any], output_shape: Any = None, mask: Any = None, arguments: Any = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.function, self.arguments = function, dict(arguments or {})

    def call(self, inputs: Any, **kwargs: Any) -> Any:
        """Computes the outputs."""
        return self.function(inputs, **self.arguments)


class _Conv(Layer):
    rank, transposed = 2, False

    def __init__(self, filters: int, kernel_size: Any, strides: Any = 1, padding: str = "valid", data_format: Optional[str] = None, dilation_rate: Any = 1,
                 activation: Any = None, use_bias: bool = True, kernel_initializer: Any = "glorot_uniform", bias_initializer: Any = "zeros",
                 kernel_regularizer: Any = None, bias_regularizer: Any = None, activity_regularizer: Any = None, kernel_constraint: Any = None,
                 bias_constraint: Any = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.filters, self.kernel_size, self.strides = int(filters), _tuple(kernel_size, self.rank, "kernel_size"), _tuple(strides, self.rank, "strides")
        self.padding, self.dilation_rate, self.activation, self.use_bias = padding, _tuple(dilation_rate, self.rank, "dilation_rate"), _activation(activation), use_bias
        self.first = (data_format or K.image_data_format()) == "channels_first"
        self._kernel, self._bias = (kernel_initializer, kernel_regularizer, kernel_constraint), (bias_initializer, bias_regularizer, bias_constraint)

    def build(self, input_shape: Any) -> None:
        """Makes kernel and bias."""
        channels = input_shape[1 if self.first else -1].value
        pair = [self.filters, channels] if self.transposed else [channels, self.filters]
        self.kernel = self.add_weight("kernel", [*self.kernel_size, *pair], None, *self._kernel[:2], True, self._kernel[2])
        self.bias = self.add_weight("bias", [self.filters], None, *self._bias[:2], True, self._bias[2]) if self.use_bias else None

    def call(self, inputs: Any, **kwargs: Any) -> Any:
        """Computes the outputs."""
        if self.padding == "causal":
            inputs = array_ops.pad(inputs, [[0, 0], [(self.kernel_size[0] - 1) * self.dilation_rate[0], 0], [0, 0]])
        made = self._computed(inputs, "VALID" if self.padding == "causal" else self.padding.upper())
        if self.bias is not None:
            made = made + array_ops.reshape(self.bias, [-1] + [1] * self.rank) if self.first else nn_ops.bias_add(made, self.bias)
        return self.activation(made)

    def _computed(self, x: Any, padding: str) -> Any:
        names = ("NCW", "NCHW", "NCDHW")
        return nn_ops.convolution(x, self.kernel, padding, list(self.strides), list(self.dilation_rate),  # type: ignore[attr-defined]
                                  data_format=names[self.rank - 1] if self.first else None)


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

    transposed = True

    def _computed(self, x: Any, padding: str) -> Any:
        static, dynamic = x.get_shape().as_list(), array_ops.shape(x)
        at = 2 if self.first else 1
        known: List[Any] = [static[at + i] and (static[at + i] * s if padding == "SAME" else (static[at + i] - 1) * s + max(k, s))
                            for i, (k, s) in enumerate(zip(self.kernel_size, self.strides))]
        sizes = [v if v is not None else (dynamic[at + i] * s if padding == "SAME" else (dynamic[at + i] - 1) * s + max(k, s))
                 for i, (v, k, s) in enumerate(zip(known, self.kernel_size, self.strides))]
        full = [dynamic[0], self.filters, *sizes] if self.first else [dynamic[0], *sizes, self.filters]
        step = [1, 1, *self.strides] if self.first else [1, *self.strides, 1]
        made = nn_ops.conv2d_transpose(x, self.kernel, array_ops.stack(full), step, padding, "NCHW" if self.first else "NHWC")
        made.set_shape([static[0], self.filters, *known] if self.first else [static[0], *known, self.filters])
        return made


Convolution1D, Convolution2D, Convolution3D, Deconvolution2D, Conv2DTransposed = Conv1D, Conv2D, Conv3D, Conv2DTranspose, Conv2DTranspose


class BatchNormalization(Layer):
    """Normalisation by the statistics of the batch while training, by their moving averages otherwise."""

    def __init__(self, axis: int = -1, momentum: float = 0.99, epsilon: float = 1e-3, center: bool = True, scale: bool = True, beta_initializer: Any = "zeros",
                 gamma_initializer: Any = "ones", moving_mean_initializer: Any = "zeros", moving_variance_initializer: Any = "ones",
                 beta_regularizer: Any = None, gamma_regularizer: Any = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.axis, self.momentum, self.epsilon, self.center, self.scale = axis, momentum, epsilon, center, scale
        self._starts = (gamma_initializer, beta_initializer, moving_mean_initializer, moving_variance_initializer)
        self._penalties = (gamma_regularizer, beta_regularizer)

    def build(self, input_shape: Any) -> None:
        """Makes scale, offset and averages."""
        size = [input_shape[self.axis].value]
        self.gamma = self.add_weight("gamma", size, None, self._starts[0], self._penalties[0]) if self.scale else None
        self.beta = self.add_weight("beta", size, None, self._starts[1], self._penalties[1]) if self.center else None
        self.moving_mean = self.add_weight("moving_mean", size, None, self._starts[2], trainable=False)
        self.moving_variance = self.add_weight("moving_variance", size, None, self._starts[3], trainable=False)

    def call(self, inputs: Any, training: Any = None, **kwargs: Any) -> Any:
        """Computes the outputs."""
        axis = self.axis % K.ndim(inputs)
        others = [i for i in range(K.ndim(inputs)) if i != axis]
        shape = [1 if i != axis else inputs.get_shape()[axis].value for i in range(K.ndim(inputs))]
        mean, variance = nn_ops.moments(inputs, others)
        used = [K.in_train_phase(lambda b=b: array_ops.identity(b), lambda a=a: array_ops.identity(a.value()), training)  # type: ignore[misc]
                for b, a in ((mean, self.moving_mean), (variance, self.moving_variance))]
        if training is not False:
            for average, value in ((self.moving_mean, mean), (self.moving_variance, variance)):
                self.add_update(average.assign_sub((average - value) * (1 - self.momentum)))
        wide = [None if v is None else array_ops.reshape(v, shape) for v in (*used, self.beta, self.gamma)]
        return nn_ops.batch_normalization(inputs, wide[0], wide[1], wide[2], wide[3], self.epsilon)


class Embedding(Layer):
    """The rows of a table at numbers."""

    def __init__(self, input_dim: int, output_dim: int, embeddings_initializer: Any = "uniform", embeddings_regularizer: Any = None,
                 activity_regularizer: Any = None, embeddings_constraint: Any = None, mask_zero: bool = False, input_length: Any = None, **kwargs: Any) -> None:
        if mask_zero:
            raise at_user_line(NotImplementedError("mask_zero is not provided: leave it out, or use tf.sequence_mask."))
        if "input_shape" not in kwargs and "batch_input_shape" not in kwargs:
            kwargs["input_shape"] = (None,) if input_length is None else tuple(listed(input_length))
        super().__init__(**kwargs)
        self.input_dim, self.output_dim = input_dim, output_dim
        self._table = (embeddings_initializer, embeddings_regularizer, embeddings_constraint)

    def build(self, input_shape: Any) -> None:
        """Makes the table."""
        self.embeddings = self.add_weight("embeddings", [self.input_dim, self.output_dim], None, *self._table[:2], True, self._table[2])

    def call(self, inputs: Any, **kwargs: Any) -> Any:
        """Computes the outputs."""
        return nn_ops.embedding_lookup(self.embeddings, math_ops.cast(inputs, dtypes.int32))


# ---- several inputs ----

def _merging(name: str, doc: str, function: Callable[..., Any], **defaults: Any) -> Any:
    made = _simple(name, doc, function, **defaults)

    def call(inputs: Any, **kwargs: Any) -> Any:
        return made(**{k: kwargs.pop(k) for k in list(defaults) if k in kwargs}, **kwargs)(inputs)
    call.__doc__ = doc
    return made, call


def _folded(op: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    def fold(tensors: Any) -> Any:
        made = tensors[0]
        for t in tensors[1:]:
            made = op(made, t)
        return made
    return fold


def _inner(tensors: Any, axes: Any, normalize: bool) -> Any:
    x, y = tensors
    a, b = (axes, axes) if isinstance(axes, int) else axes
    if normalize:
        x, y = nn_ops.l2_normalize(x, a), nn_ops.l2_normalize(y, b)
    if K.ndim(x) == 2 and K.ndim(y) == 2:
        return math_ops.reduce_sum(x * y, 1, keepdims=True)
    x = x if a % K.ndim(x) == K.ndim(x) - 1 else array_ops.transpose(x, [0, 2, 1])
    y = y if b % K.ndim(y) == 1 else array_ops.transpose(y, [0, 2, 1])
    return matrix_ops.matmul(x, y)


Add, add = _merging("Add", "The sum of tensors.", _folded(lambda a, b: a + b))
Subtract, subtract = _merging("Subtract", "The difference of two tensors.", _folded(lambda a, b: a - b))
Multiply, multiply = _merging("Multiply", "The product of tensors.", _folded(lambda a, b: a * b))
Average, average = _merging("Average", "The mean of tensors.", lambda tensors: _folded(lambda a, b: a + b)(tensors) / np.float32(len(tensors)))
Maximum, maximum = _merging("Maximum", "The largest of tensors.", _folded(math_ops.maximum))
Minimum, minimum = _merging("Minimum", "The smallest of tensors.", _folded(math_ops.minimum))
Concatenate, concatenate = _merging("Concatenate", "Tensors joined.", lambda tensors, axis: K.concatenate(tensors, axis), axis=-1)
Dot, dot = _merging("Dot", "The inner product of tensors.", _inner, axes=1, normalize=False)

from millrace.keras.recurrent import GRU, LSTM, RNN, Bidirectional, SimpleRNN, TimeDistributed  # noqa: E402,F401
