# SPDX-License-Identifier: Apache-2.0
"""NASNet-A (Zoph and others, 2017): cells that were found by search."""

from __future__ import annotations

import functools
import warnings
from typing import Any, Callable, List, Optional, Tuple

from millrace.framework.errors import at_user_line
from millrace.keras import backend as K
from millrace.keras.applications import imagenet_utils
from millrace.keras.applications.imagenet_utils import decode_predictions as decode_predictions
from millrace.keras.applications.parts import Files, Request, channels, layers, of_given_layers, padded_evenly
from millrace.keras.models import Model

preprocess_input = functools.partial(imagenet_utils.preprocess_input, mode="tf")

_ADDRESS = "https://github.com/titu1994/Keras-NASNet/releases/download/v1.2/"
_FILES = {
    224: Files(
        _ADDRESS,
        ("nasnet_mobile.h5", "nasnet_mobile_no_top.h5"),
        ("020fb642bf7360b370c678b08e0adf61", "1ed92395b5b598bdda52abe5c0dbfd63"),
        ("NASNet-mobile.h5", "NASNet-mobile-no-top.h5"),
    ),
    331: Files(
        _ADDRESS,
        ("nasnet_large.h5", "nasnet_large_no_top.h5"),
        ("11577c9a518f0070763c2b964a382f17", "d81d89dc07e6e56530c4e77faddd61b5"),
        ("NASNet-large.h5", "NASNet-large-no-top.h5"),
    ),
}


def _convolved(x: Any, width: int, kernel: int, name: str, stride: int = 1, padding: str = "same") -> Any:
    return layers.Conv2D(width, kernel, strides=stride, padding=padding, use_bias=False, name=name, kernel_initializer="he_normal")(x)


def _normed(x: Any, name: str) -> Any:
    return layers.BatchNormalization(axis=-1, momentum=0.9997, epsilon=1e-3, name=name)(x)


def _separable(x: Any, width: int, kernel: int, name: str, stride: int = 1) -> Any:
    """Two separable convolutions, each behind its activation; the first strides."""
    for i in (1, 2):
        x = layers.Activation("relu")(x)
        padding = "same"
        if stride == 2 and i == 1:
            x, padding = padded_evenly(x, kernel, "separable_conv_1_pad_" + name), "valid"
        x = layers.SeparableConv2D(
            width,
            kernel,
            strides=stride if i == 1 else 1,
            padding=padding,
            use_bias=False,
            name="separable_conv_%d_%s" % (i, name),
            kernel_initializer="he_normal",
        )(x)
        x = _normed(x, "separable_conv_%d_bn_%s" % (i, name))
    return x


def _fitted(past: Any, x: Any, width: int, name: str) -> Any:
    """What the cell before gave, with the size of x and a number of channels."""
    if past is None:
        return x
    if K.int_shape(past)[2] != K.int_shape(x)[2]:  # halved twice, one place apart
        past = layers.Activation("relu", name="adjust_relu_1_" + name)(past)
        halves = []
        for i in (1, 2):
            half = past
            if i == 2:
                half = layers.Cropping2D(cropping=((1, 0), (1, 0)))(layers.ZeroPadding2D(padding=((0, 1), (0, 1)))(past))
            half = layers.AveragePooling2D(1, strides=2, padding="valid", name="adjust_avg_pool_%d_%s" % (i, name))(half)
            halves.append(_convolved(half, width // 2, 1, "adjust_conv_%d_%s" % (i, name)))
        return _normed(layers.concatenate(halves, axis=-1), "adjust_bn_" + name)
    if channels(past) != width:
        return _normed(_convolved(layers.Activation("relu")(past), width, 1, "adjust_conv_projection_" + name), "adjust_bn_" + name)
    return past


def _begun(x: Any, width: int, kind: str, name: str) -> Any:
    return _normed(_convolved(layers.Activation("relu")(x), width, 1, "%s_conv_1_%s" % (kind, name)), "%s_bn_1_%s" % (kind, name))


def _normal(x: Any, past: Any, width: int, name: str) -> Tuple[Any, Any]:
    """A cell that keeps the size: what it gives, and what the next one has as its past."""

    def part(side: str, number: int) -> str:
        return "normal_%s%d_%s" % (side, number, name)

    def averages(values: Any, side: str, number: int) -> Any:
        return layers.AveragePooling2D(3, strides=1, padding="same", name=part(side, number))(values)

    past = _fitted(past, x, width, name)
    h = _begun(x, width, "normal", name)
    sums = []
    pairs: List[Tuple[int, Callable[[], Any], Callable[[], Any]]] = [
        (1, lambda: _separable(h, width, 5, part("left", 1)), lambda: _separable(past, width, 3, part("right", 1))),
        (2, lambda: _separable(past, width, 5, part("left", 2)), lambda: _separable(past, width, 3, part("right", 2))),
        (3, lambda: averages(h, "left", 3), lambda: past),
        (4, lambda: averages(past, "left", 4), lambda: averages(past, "right", 4)),
        (5, lambda: _separable(h, width, 3, part("left", 5)), lambda: h),
    ]
    for number, left, right in pairs:
        sums.append(layers.add([left(), right()], name="normal_add_%d_%s" % (number, name)))
    return layers.concatenate([past, *sums], axis=-1, name="normal_concat_" + name), x


def _reduction(x: Any, past: Any, width: int, name: str) -> Tuple[Any, Any]:
    """A cell that halves the size: what it gives, and what the next one has as its past."""

    def part(side: str, number: int) -> str:
        return "reduction_%s%d_%s" % (side, number, name)

    past = _fitted(past, x, width, name)
    h = _begun(x, width, "reduction", name)
    padded = padded_evenly(h, 3, "reduction_pad_1_" + name)
    first = layers.add([_separable(h, width, 5, part("left", 1), 2), _separable(past, width, 7, part("right", 1), 2)], name="reduction_add_1_" + name)
    highest = layers.MaxPooling2D(3, strides=2, padding="valid", name=part("left", 2))(padded)
    second = layers.add([highest, _separable(past, width, 7, part("right", 2), 2)], name="reduction_add_2_" + name)
    mean = layers.AveragePooling2D(3, strides=2, padding="valid", name=part("left", 3))(padded)
    third = layers.add([mean, _separable(past, width, 5, part("right", 3), 2)], name="reduction_add3_" + name)
    fourth = layers.add([second, layers.AveragePooling2D(3, strides=1, padding="same", name=part("left", 4))(first)])
    wide = _separable(first, width, 3, part("left", 4))
    fifth = layers.add([wide, layers.MaxPooling2D(3, strides=2, padding="valid", name=part("right", 5))(padded)], name="reduction_add4_" + name)
    return layers.concatenate([second, third, fourth, fifth], axis=-1, name="reduction_concat_" + name), x


def NASNet(
    input_shape: Any = None,
    penultimate_filters: int = 4032,
    num_blocks: int = 6,
    stem_block_filters: int = 96,
    skip_reduction: bool = True,
    filter_multiplier: int = 2,
    include_top: bool = True,
    weights: Optional[str] = None,
    input_tensor: Any = None,
    pooling: Optional[str] = None,
    classes: int = 1000,
    default_size: Optional[int] = None,
) -> Model:
    """NASNet-A of any size. `num_blocks`: the cells between two reductions; `filter_multiplier`: what a reduction multiplies channels with."""
    asked = Request(include_top, weights, input_tensor, input_shape, pooling, classes)
    asked.check()
    if weights == "imagenet" and input_shape is not None and None in tuple(input_shape):
        raise at_user_line(
            ValueError(
                "When specifying the input shape of a NASNet and loading `ImageNet` weights, the input_shape argument must be static, got %s" % (input_shape,)
            )
        )
    size, times = default_size or 331, filter_multiplier
    if weights == "imagenet" and size not in _FILES:
        raise at_user_line(ValueError("ImageNet weights can only be loaded with NASNetLarge or NASNetMobile"))
    if penultimate_filters % (24 * times**2) != 0:
        raise at_user_line(
            ValueError(
                "For NASNet-A models, the `penultimate_filters` must be a multiple of 24 * (`filter_multiplier` ** 2). Current value: %d" % penultimate_filters
            )
        )
    before = K.image_data_format()
    if before != "channels_last":
        warnings.warn("NASNet has its channels last, whatever K.image_data_format() is: give its images so.", stacklevel=2)
    K.set_image_data_format("channels_last")
    try:
        image = asked.image(asked.shape(size, flat=True))
        x = _normed(_convolved(image, stem_block_filters, 3, "stem_conv1", 2, "valid"), "stem_bn1")
        width, past = penultimate_filters // 24, None
        x, past = _reduction(x, past, width // times**2, "stem_1")
        x, past = _reduction(x, past, width // times, "stem_2")
        for group in range(3):
            if group:
                x, reduced = _reduction(x, past, width * times**group, "reduce_%d" % (group * num_blocks))
                past = past if skip_reduction else reduced
            for i in range(num_blocks):
                x, past = _normal(x, past, width * times**group, "%d" % (group * num_blocks + i + (1 if group else 0)))
        x = asked.classified(layers.Activation("relu")(x), pool=None)
        return asked.model(image, x, "NASNet", _FILES.get(size))
    finally:
        K.set_image_data_format(before)


@of_given_layers
def NASNetLarge(
    input_shape: Any = None,
    include_top: bool = True,
    weights: Optional[str] = "imagenet",
    input_tensor: Any = None,
    pooling: Optional[str] = None,
    classes: int = 1000,
) -> Model:
    """NASNet-A with 4032 channels at its end, for images of 331x331."""
    return NASNet(input_shape, 4032, 6, 96, True, 2, include_top, weights, input_tensor, pooling, classes, 331)


@of_given_layers
def NASNetMobile(
    input_shape: Any = None,
    include_top: bool = True,
    weights: Optional[str] = "imagenet",
    input_tensor: Any = None,
    pooling: Optional[str] = None,
    classes: int = 1000,
) -> Model:
    """NASNet-A with 1056 channels at its end, for images of 224x224."""
    return NASNet(input_shape, 1056, 4, 32, False, 2, include_top, weights, input_tensor, pooling, classes, 224)
