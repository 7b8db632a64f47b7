# SPDX-License-Identifier: Apache-2.0
"""MobileNet v2 (Sandler and others, 2018)."""

from __future__ import annotations

import functools
from typing import Any, Optional

from millrace.keras.applications import imagenet_utils
from millrace.keras.applications.imagenet_utils import decode_predictions as decode_predictions
from millrace.keras.applications.mobilenet import size_of_weights, usual_size
from millrace.keras.applications.parts import KERNELS, Files, Request, channel_axis, channels, layers, of_given_layers, padded_evenly
from millrace.keras.models import Model

preprocess_input = functools.partial(imagenet_utils.preprocess_input, mode="tf")

_ADDRESS = "https://github.com/JonathanCMitchell/mobilenet_v2_keras/releases/download/v1.1/"
_ALPHAS = (0.35, 0.50, 0.75, 1.0, 1.3, 1.4)
_SIZES = (96, 128, 160, 192, 224)
# What each group of blocks widens to, its channels, how many there are, and the stride of the first.
_GROUPS = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))


def _by_eight(width: float) -> int:
    """The next number of channels that 8 divides, never less than nine tenths."""
    near = max(8, int(width + 4) // 8 * 8)
    return near + 8 if near < 0.9 * width else near


def _normed(x: Any, name: str) -> Any:
    return layers.BatchNormalization(axis=channel_axis(), epsilon=1e-3, momentum=0.999, name=name)(x)


def _rectified(x: Any, name: str) -> Any:
    return layers.ReLU(6.0, name=name)(x)


def _block(x: Any, number: int, expansion: int, width: int, stride: int) -> Any:
    """A residual of which the middle is wide: channel by channel there."""
    past, before = x, channels(x)
    name = "block_%d_" % number if number else "expanded_conv_"
    if number:
        x = layers.Conv2D(expansion * before, kernel_size=1, padding="same", use_bias=False, name=name + "expand")(x)
        x = _rectified(_normed(x, name + "expand_BN"), name + "expand_relu")
    if stride == 2:
        x = padded_evenly(x, 3, name + "pad")
    x = layers.DepthwiseConv2D(kernel_size=3, strides=stride, use_bias=False, padding="same" if stride == 1 else "valid", name=name + "depthwise")(x)
    x = _rectified(_normed(x, name + "depthwise_BN"), name + "depthwise_relu")
    x = _normed(layers.Conv2D(width, kernel_size=1, padding="same", use_bias=False, name=name + "project")(x), name + "project_BN")
    return layers.Add(name=name + "add")([past, x]) if before == width and stride == 1 else x


@of_given_layers
def MobileNetV2(
    input_shape: Any = None,
    alpha: float = 1.0,
    include_top: bool = True,
    weights: Optional[str] = "imagenet",
    input_tensor: Any = None,
    pooling: Optional[str] = None,
    classes: int = 1000,
) -> Model:
    """MobileNet v2. `alpha`: the part of its channels that each layer has."""
    asked = Request(include_top, weights, input_tensor, input_shape, pooling, classes)
    asked.check()
    shape = asked.shape(usual_size(asked, _SIZES))
    rows = size_of_weights(asked, shape, _SIZES, alpha, _ALPHAS)
    image = asked.image(shape)
    x = padded_evenly(image, 3, "Conv1_pad")
    x = layers.Conv2D(_by_eight(32 * alpha), kernel_size=3, strides=2, padding="valid", use_bias=False, name="Conv1")(x)
    x = _rectified(_normed(x, "bn_Conv1"), "Conv1_relu")
    number = 0
    for expansion, width, count, stride in _GROUPS:
        for i in range(count):
            x = _block(x, number, expansion, _by_eight(int(width * alpha)), stride if i == 0 else 1)
            number += 1
    x = layers.Conv2D(_by_eight(1280 * alpha) if alpha > 1.0 else 1280, kernel_size=1, use_bias=False, name="Conv_1")(x)
    x = asked.classified(_rectified(_normed(x, "Conv_1_bn"), "out_relu"), "Logits", pool=None)
    stem = "mobilenet_v2%s_%s_%s" % (KERNELS, alpha, rows)
    return asked.model(image, x, "mobilenetv2_%0.2f_%s" % (alpha, rows), Files(_ADDRESS, (stem + ".h5", stem + "_no_top.h5")))
