# SPDX-License-Identifier: Apache-2.0
"""Inception-ResNet v2 (Szegedy and others, 2016)."""

from __future__ import annotations

import functools
from typing import Any, Dict, Optional, Tuple

from millrace.keras import backend as K
from millrace.keras.applications import imagenet_utils
from millrace.keras.applications.imagenet_utils import decode_predictions as decode_predictions
from millrace.keras.applications.inception_v3 import Step, branch, mixed, pooled_branch, stem
from millrace.keras.applications.parts import Files, Request, channel_axis, channels, layers, of_given_layers
from millrace.keras.models import Model

preprocess_input = functools.partial(imagenet_utils.preprocess_input, mode="tf")

_FILES = Files.of(
    "https://github.com/fchollet/deep-learning-models/releases/download/v0.7/",
    "inception_resnet_v2",
    "e693bd0210a403b3192acc6073ad2e96",
    "d19885ff4a710c122648d3b5c3b684e4",
)
_BRANCHES: Dict[str, Tuple[Tuple[Step, ...], ...]] = {
    "block35": (((32, 1),), ((32, 1), (32, 3)), ((32, 1), (48, 3), (64, 3))),
    "block17": (((192, 1),), ((128, 1), (160, (1, 7)), (192, (7, 1)))),
    "block8": (((192, 1),), ((192, 1), (224, (1, 3)), (256, (3, 1)))),
}


def _sum(inputs: Any, scale: float) -> Any:
    return inputs[0] + inputs[1] * scale


def _residual(x: Any, kind: str, number: int, scale: float, rectified: bool = True) -> Any:
    """Branches whose sum, scaled, comes to what they are given."""
    name = "%s_%d" % (kind, number)
    together = mixed([branch(x, *steps) for steps in _BRANCHES[kind]], name + "_mixed")
    change = layers.Conv2D(channels(x), 1, padding="same", name=name + "_conv")(together)
    x = layers.Lambda(_sum, output_shape=K.int_shape(x)[1:], arguments={"scale": scale}, name=name)([x, change])
    return layers.Activation("relu", name=name + "_ac")(x) if rectified else x


@of_given_layers
def InceptionResNetV2(
    include_top: bool = True,
    weights: Optional[str] = "imagenet",
    input_tensor: Any = None,
    input_shape: Any = None,
    pooling: Optional[str] = None,
    classes: int = 1000,
) -> Model:
    """Inception-ResNet v2."""
    asked = Request(include_top, weights, input_tensor, input_shape, pooling, classes)
    asked.check()
    image = asked.image(asked.shape(299, 75))
    x = stem(image)
    x = mixed([branch(x, (96, 1)), branch(x, (48, 1), (64, 5)), branch(x, (64, 1), (96, 3), (96, 3)), pooled_branch(x, 64)], "mixed_5b")
    for i in range(1, 11):
        x = _residual(x, "block35", i, 0.17)
    parts = [branch(x, (384, 3), reduced=True), branch(x, (256, 1), (256, 3), (384, 3), reduced=True)]
    x = mixed([*parts, layers.MaxPooling2D(3, strides=2)(x)], "mixed_6a")
    for i in range(1, 21):
        x = _residual(x, "block17", i, 0.1)
    parts = [branch(x, (256, 1), (width, 3), reduced=True) for width in (384, 288)]
    parts.append(branch(x, (256, 1), (288, 3), (320, 3), reduced=True))
    x = mixed([*parts, layers.MaxPooling2D(3, strides=2)(x)], "mixed_7a")
    for i in range(1, 10):
        x = _residual(x, "block8", i, 0.2)
    x = _residual(x, "block8", 10, 1.0, rectified=False)
    x = layers.Conv2D(1536, 1, padding="same", use_bias=False, name="conv_7b")(x)
    x = layers.BatchNormalization(axis=channel_axis(), scale=False, name="conv_7b_bn")(x)
    x = layers.Activation("relu", name="conv_7b_ac")(x)
    return asked.model(image, asked.classified(x), "inception_resnet_v2", _FILES)
