# SPDX-License-Identifier: Apache-2.0
"""Inception v3 (Szegedy and others, 2015)."""

from __future__ import annotations

import functools
from typing import Any, Optional, Sequence, Tuple, Union

from millrace.keras.applications import imagenet_utils
from millrace.keras.applications.imagenet_utils import decode_predictions as decode_predictions
from millrace.keras.applications.parts import Files, Request, channel_axis, layers, of_given_layers
from millrace.keras.models import Model

preprocess_input = functools.partial(imagenet_utils.preprocess_input, mode="tf")

_FILES = Files.of(
    "https://github.com/fchollet/deep-learning-models/releases/download/v0.5/",
    "inception_v3",
    "9a0d58056eeedaa3f26cb7ebd46da564",
    "bcbd6486424b2319ff4ef7d526e38f63",
)
Kernel = Union[int, Tuple[int, int]]
Step = Tuple[int, Kernel]  # the channels and the kernel of a convolution


def convolved(x: Any, width: int, kernel: Kernel, stride: int = 1, padding: str = "same") -> Any:
    """A convolution, normalized and rectified."""
    x = layers.Conv2D(width, kernel, strides=stride, padding=padding, use_bias=False)(x)
    x = layers.BatchNormalization(axis=channel_axis(), scale=False)(x)
    return layers.Activation("relu")(x)


def branch(x: Any, *steps: Step, reduced: bool = False) -> Any:
    """Convolutions one after the other; `reduced`: the last one to half the size."""
    for i, (width, kernel) in enumerate(steps, 1):
        last = reduced and i == len(steps)
        x = convolved(x, width, kernel, 2 if last else 1, "valid" if last else "same")
    return x


def pooled_branch(x: Any, width: int) -> Any:
    """Averages and a convolution."""
    return convolved(layers.AveragePooling2D(3, strides=1, padding="same")(x), width, 1)


def stem(image: Any) -> Any:
    """From the image to 192 channels."""
    x = convolved(image, 32, 3, 2, "valid")
    x = convolved(convolved(x, 32, 3, padding="valid"), 64, 3)
    x = layers.MaxPooling2D(3, strides=2)(x)
    x = convolved(convolved(x, 80, 1, padding="valid"), 192, 3, padding="valid")
    return layers.MaxPooling2D(3, strides=2)(x)


def mixed(branches: Sequence[Any], name: Optional[str] = None) -> Any:
    """The channels of all branches."""
    return layers.concatenate(list(branches), axis=channel_axis(), name=name)


def _wide(x: Any, width: int, name: str) -> Any:
    """Rows and columns of seven apart. `width`: the channels on the way."""
    across, down = (1, 7), (7, 1)
    return mixed(
        [
            branch(x, (192, 1)),
            branch(x, (width, 1), (width, across), (192, down)),
            branch(x, (width, 1), (width, down), (width, across), (width, down), (192, across)),
            pooled_branch(x, 192),
        ],
        name,
    )


def _parted(x: Any, name: Optional[str]) -> Any:
    """Rows and columns of three, beside each other."""
    return mixed([convolved(x, 384, (1, 3)), convolved(x, 384, (3, 1))], name)


@of_given_layers
def InceptionV3(
    include_top: bool = True,
    weights: Optional[str] = "imagenet",
    input_tensor: Any = None,
    input_shape: Any = None,
    pooling: Optional[str] = None,
    classes: int = 1000,
) -> Model:
    """Inception v3."""
    asked = Request(include_top, weights, input_tensor, input_shape, pooling, classes)
    asked.check()
    image = asked.image(asked.shape(299, 75))
    x = stem(image)
    for i, width in enumerate((32, 64, 64)):
        x = mixed([branch(x, (64, 1)), branch(x, (48, 1), (64, 5)), branch(x, (64, 1), (96, 3), (96, 3)), pooled_branch(x, width)], "mixed%d" % i)
    parts = [branch(x, (384, 3), reduced=True), branch(x, (64, 1), (96, 3), (96, 3), reduced=True), layers.MaxPooling2D(3, strides=2)(x)]
    x = mixed(parts, "mixed3")
    for i, width in enumerate((128, 160, 160, 192), 4):
        x = _wide(x, width, "mixed%d" % i)
    parts = [branch(x, (192, 1), (320, 3), reduced=True), branch(x, (192, 1), (192, (1, 7)), (192, (7, 1)), (192, 3), reduced=True)]
    x = mixed([*parts, layers.MaxPooling2D(3, strides=2)(x)], "mixed8")
    for i in range(2):
        alone = branch(x, (320, 1))
        short = _parted(branch(x, (384, 1)), "mixed9_%d" % i)
        long = _parted(branch(x, (448, 1), (384, 3)), None)
        x = mixed([alone, short, long, pooled_branch(x, 192)], "mixed%d" % (9 + i))
    return asked.model(image, asked.classified(x), "inception_v3", _FILES)
