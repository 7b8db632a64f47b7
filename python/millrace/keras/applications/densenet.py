# SPDX-License-Identifier: Apache-2.0
"""Densely connected networks (Huang and others, 2016)."""

from __future__ import annotations

import functools
from typing import Any, Dict, Optional, Sequence, Tuple

from millrace.keras.applications import imagenet_utils
from millrace.keras.applications.imagenet_utils import decode_predictions as decode_predictions
from millrace.keras.applications.parts import Files, Request, channel_axis, channels, layers, of_given_layers
from millrace.keras.models import Model

preprocess_input = functools.partial(imagenet_utils.preprocess_input, mode="torch")

_ADDRESS = "https://github.com/keras-team/keras-applications/releases/download/densenet/"
_FILES: Dict[Tuple[int, ...], Files] = {
    (6, 12, 24, 16): Files.of(_ADDRESS, "densenet121", "9d60b8095a5708f2dcce2bca79d332c7", "30ee3e1110167f948a6b9946edeeb738"),
    (6, 12, 32, 32): Files.of(_ADDRESS, "densenet169", "d699b8f76981ab1b30698df4c175e90b", "b8c4d4c20dd625c148057b9ff1c1176b"),
    (6, 12, 48, 32): Files.of(_ADDRESS, "densenet201", "1ceb130c1ea1b78c3bf6114dbdfd8807", "c13680b51ded0fb44dff2d8f86ac8bb1"),
}
_GROWTH = 32  # the channels that a layer adds


def _normed(x: Any, bn: str, relu: str) -> Any:
    return layers.Activation("relu", name=relu)(layers.BatchNormalization(axis=channel_axis(), epsilon=1.001e-5, name=bn)(x))


def _dense(x: Any, name: str) -> Any:
    """A layer whose channels come to those before it."""
    added = layers.Conv2D(4 * _GROWTH, 1, use_bias=False, name=name + "_1_conv")(_normed(x, name + "_0_bn", name + "_0_relu"))
    added = layers.Conv2D(_GROWTH, 3, padding="same", use_bias=False, name=name + "_2_conv")(_normed(added, name + "_1_bn", name + "_1_relu"))
    return layers.Concatenate(axis=channel_axis(), name=name + "_concat")([x, added])


def _transition(x: Any, name: str) -> Any:
    """Half the channels at half the size."""
    x = _normed(x, name + "_bn", name + "_relu")
    x = layers.Conv2D(channels(x) // 2, 1, use_bias=False, name=name + "_conv")(x)
    return layers.AveragePooling2D(2, strides=2, name=name + "_pool")(x)


def DenseNet(
    blocks: Sequence[int],
    include_top: bool = True,
    weights: Optional[str] = "imagenet",
    input_tensor: Any = None,
    input_shape: Any = None,
    pooling: Optional[str] = None,
    classes: int = 1000,
) -> Model:
    """A densely connected network. `blocks`: the layers of each of four blocks."""
    asked = Request(include_top, weights, input_tensor, input_shape, pooling, classes)
    asked.check()
    files = _FILES.get(tuple(blocks))
    image = asked.image(asked.shape(224))
    x = layers.ZeroPadding2D(padding=((3, 3), (3, 3)))(image)
    x = _normed(layers.Conv2D(64, 7, strides=2, use_bias=False, name="conv1/conv")(x), "conv1/bn", "conv1/relu")
    x = layers.MaxPooling2D(3, strides=2, name="pool1")(layers.ZeroPadding2D(padding=((1, 1), (1, 1)))(x))
    for i, depth in enumerate(blocks, 2):
        for j in range(1, depth + 1):
            x = _dense(x, "conv%d_block%d" % (i, j))
        if i < len(blocks) + 1:
            x = _transition(x, "pool%d" % i)
    x = _normed(x, "bn", "relu")
    x = asked.classified(x, "fc1000") if include_top else asked.pooled(x, named=True)
    return asked.model(image, x, files.names[0].partition("_")[0] if files else "densenet", files)


@of_given_layers
def DenseNet121(
    include_top: bool = True,
    weights: Optional[str] = "imagenet",
    input_tensor: Any = None,
    input_shape: Any = None,
    pooling: Optional[str] = None,
    classes: int = 1000,
) -> Model:
    """A densely connected network of 121 layers."""
    return DenseNet((6, 12, 24, 16), include_top, weights, input_tensor, input_shape, pooling, classes)


@of_given_layers
def DenseNet169(
    include_top: bool = True,
    weights: Optional[str] = "imagenet",
    input_tensor: Any = None,
    input_shape: Any = None,
    pooling: Optional[str] = None,
    classes: int = 1000,
) -> Model:
    """A densely connected network of 169 layers."""
    return DenseNet((6, 12, 32, 32), include_top, weights, input_tensor, input_shape, pooling, classes)


@of_given_layers
def DenseNet201(
    include_top: bool = True,
    weights: Optional[str] = "imagenet",
    input_tensor: Any = None,
    input_shape: Any = None,
    pooling: Optional[str] = None,
    classes: int = 1000,
) -> Model:
    """A densely connected network of 201 layers."""
    return DenseNet((6, 12, 48, 32), include_top, weights, input_tensor, input_shape, pooling, classes)
