# SPDX-License-Identifier: Apache-2.0
"""Residual networks whose activations come first (He and others, 2016)."""

from __future__ import annotations

import functools
from typing import Any, Optional

from millrace.keras.applications import imagenet_utils
from millrace.keras.applications.imagenet_utils import decode_predictions as decode_predictions
from millrace.keras.applications.parts import Request, layers, of_given_layers
from millrace.keras.applications.resnet import network, normed, rectified
from millrace.keras.models import Model

preprocess_input = functools.partial(imagenet_utils.preprocess_input, mode="tf")


def _block(x: Any, width: int, stride: int, projected: bool, name: str) -> Any:
    """A bottleneck, normed and rectified before it."""
    begun = rectified(normed(x, name + "_preact_bn"), name + "_preact_relu")
    if projected:
        past = layers.Conv2D(4 * width, 1, strides=stride, name=name + "_0_conv")(begun)
    else:
        past = layers.MaxPooling2D(1, strides=stride)(x) if stride > 1 else x
    x = layers.Conv2D(width, 1, strides=1, use_bias=False, name=name + "_1_conv")(begun)
    x = rectified(normed(x, name + "_1_bn"), name + "_1_relu")
    x = layers.ZeroPadding2D(padding=((1, 1), (1, 1)), name=name + "_2_pad")(x)
    x = layers.Conv2D(width, 3, strides=stride, use_bias=False, name=name + "_2_conv")(x)
    x = rectified(normed(x, name + "_2_bn"), name + "_2_relu")
    x = layers.Conv2D(4 * width, 1, name=name + "_3_conv")(x)
    return layers.Add(name=name + "_out")([past, x])


def _stack(x: Any, depth: int, width: int, name: str) -> Any:
    """Blocks of one width, of which the last strides, but for the widest."""
    for i in range(1, depth + 1):
        x = _block(x, width, 2 if i == depth and width < 512 else 1, i == 1, "%s_block%d" % (name, i))
    return x


@of_given_layers
def ResNet50V2(
    include_top: bool = True,
    weights: Optional[str] = "imagenet",
    input_tensor: Any = None,
    input_shape: Any = None,
    pooling: Optional[str] = None,
    classes: int = 1000,
) -> Model:
    """A residual network of 50 layers whose activations come first."""
    return network("resnet50v2", _stack, (3, 4, 6, 3), Request(include_top, weights, input_tensor, input_shape, pooling, classes), activated=True)


@of_given_layers
def ResNet101V2(
    include_top: bool = True,
    weights: Optional[str] = "imagenet",
    input_tensor: Any = None,
    input_shape: Any = None,
    pooling: Optional[str] = None,
    classes: int = 1000,
) -> Model:
    """A residual network of 101 layers whose activations come first."""
    return network("resnet101v2", _stack, (3, 4, 23, 3), Request(include_top, weights, input_tensor, input_shape, pooling, classes), activated=True)


@of_given_layers
def ResNet152V2(
    include_top: bool = True,
    weights: Optional[str] = "imagenet",
    input_tensor: Any = None,
    input_shape: Any = None,
    pooling: Optional[str] = None,
    classes: int = 1000,
) -> Model:
    """A residual network of 152 layers whose activations come first."""
    return network("resnet152v2", _stack, (3, 8, 36, 3), Request(include_top, weights, input_tensor, input_shape, pooling, classes), activated=True)
