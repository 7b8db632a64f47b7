# SPDX-License-Identifier: Apache-2.0
"""VGG (Simonyan and Zisserman, 2014)."""

from __future__ import annotations

from typing import Any, Optional, Sequence

from millrace.keras.applications.parts import Files, Request, layers, of_given_layers
from millrace.keras.models import Model

_ADDRESS = "https://github.com/fchollet/deep-learning-models/releases/download/v0.1/"
_FILES = {
    "vgg16": Files.of(_ADDRESS, "vgg16", "64373286793e3c8b2b4e3219cbf3544b", "6d6bbae143d832006294945121d1f1fc"),
    "vgg19": Files.of(_ADDRESS, "vgg19", "cbe5617147190e668d6c5d5026f83318", "253f8cb515780f3b799900260a226db6"),
}


def _vgg(name: str, depths: Sequence[int], asked: Request) -> Model:
    """`depths`: the convolutions of each block."""
    asked.check()
    image = x = asked.image(asked.shape(224))
    for block, (depth, width) in enumerate(zip(depths, (64, 128, 256, 512, 512)), 1):
        for i in range(1, depth + 1):
            x = layers.Conv2D(width, 3, activation="relu", padding="same", name="block%d_conv%d" % (block, i))(x)
        x = layers.MaxPooling2D(2, strides=2, name="block%d_pool" % block)(x)
    if asked.include_top:
        x = layers.Flatten(name="flatten")(x)
        for i in (1, 2):
            x = layers.Dense(4096, activation="relu", name="fc%d" % i)(x)
        x = layers.Dense(asked.classes, activation="softmax", name="predictions")(x)
    else:
        x = asked.pooled(x)
    return asked.model(image, x, name, _FILES[name])


@of_given_layers
def VGG16(
    include_top: bool = True,
    weights: Optional[str] = "imagenet",
    input_tensor: Any = None,
    input_shape: Any = None,
    pooling: Optional[str] = None,
    classes: int = 1000,
) -> Model:
    """VGG with 16 layers of weights."""
    return _vgg("vgg16", (2, 2, 3, 3, 3), Request(include_top, weights, input_tensor, input_shape, pooling, classes))


@of_given_layers
def VGG19(
    include_top: bool = True,
    weights: Optional[str] = "imagenet",
    input_tensor: Any = None,
    input_shape: Any = None,
    pooling: Optional[str] = None,
    classes: int = 1000,
) -> Model:
    """VGG with 19 layers of weights."""
    return _vgg("vgg19", (2, 2, 4, 4, 4), Request(include_top, weights, input_tensor, input_shape, pooling, classes))
