# SPDX-License-Identifier: Apache-2.0
"""Xception (Chollet, 2016): convolutions that are separable by depth."""

from __future__ import annotations

import functools
from typing import Any, Optional, Sequence

from millrace.keras.applications import imagenet_utils
from millrace.keras.applications.imagenet_utils import decode_predictions as decode_predictions
from millrace.keras.applications.parts import Files, Request, channel_axis, layers, of_given_layers
from millrace.keras.models import Model

preprocess_input = functools.partial(imagenet_utils.preprocess_input, mode="tf")

_FILES = Files.of(
    "https://github.com/fchollet/deep-learning-models/releases/download/v0.4/",
    "xception",
    "0a58e3b7378bc2990ea3b43d5981f1f6",
    "b0042744bf5b25fce3cb969f33bebb97",
)


def _normed(x: Any, name: Optional[str] = None) -> Any:
    return layers.BatchNormalization(axis=channel_axis(), name=name)(x)


def _rectified(x: Any, name: str) -> Any:
    return layers.Activation("relu", name=name + "_act")(x)


def _separable(x: Any, width: int, name: str) -> Any:
    x = layers.SeparableConv2D(width, 3, padding="same", use_bias=False, name=name)(x)
    return _normed(x, name + "_bn")


def _block(x: Any, widths: Sequence[int], name: str, reduced: bool = True, rectified: bool = True) -> Any:
    """Separable convolutions, each behind its activation (the first only if `rectified`), and what goes past them; `reduced`: to half the size."""
    past = x
    if reduced:
        past = _normed(layers.Conv2D(widths[-1], 1, strides=2, padding="same", use_bias=False)(x))
    for i, width in enumerate(widths, 1):
        step = "%s_sepconv%d" % (name, i)
        x = _separable(_rectified(x, step) if i > 1 or rectified else x, width, step)
    if reduced:
        x = layers.MaxPooling2D(3, strides=2, padding="same", name=name + "_pool")(x)
    return layers.add([x, past])


@of_given_layers
def Xception(
    include_top: bool = True,
    weights: Optional[str] = "imagenet",
    input_tensor: Any = None,
    input_shape: Any = None,
    pooling: Optional[str] = None,
    classes: int = 1000,
) -> Model:
    """Xception."""
    asked = Request(include_top, weights, input_tensor, input_shape, pooling, classes)
    asked.check()
    image = x = asked.image(asked.shape(299, 71))
    for i, (width, stride) in enumerate(((32, 2), (64, 1)), 1):
        name = "block1_conv%d" % i
        x = _rectified(_normed(layers.Conv2D(width, 3, strides=stride, use_bias=False, name=name)(x), name + "_bn"), name)
    for i, width in enumerate((128, 256, 728), 2):
        x = _block(x, (width, width), "block%d" % i, rectified=i > 2)
    for i in range(5, 13):
        x = _block(x, (728, 728, 728), "block%d" % i, reduced=False)
    x = _block(x, (728, 1024), "block13")
    for i, width in enumerate((1536, 2048), 1):
        name = "block14_sepconv%d" % i
        x = _rectified(_separable(x, width, name), name)
    return asked.model(image, asked.classified(x), "xception", _FILES)
