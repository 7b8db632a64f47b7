# SPDX-License-Identifier: Apache-2.0
"""MobileNet (Howard and others, 2017)."""

from __future__ import annotations

import functools
import warnings
from typing import Any, Optional, Sequence

from millrace.framework.errors import at_user_line
from millrace.keras import backend as K
from millrace.keras.applications import imagenet_utils
from millrace.keras.applications.imagenet_utils import decode_predictions as decode_predictions
from millrace.keras.applications.parts import Files, Request, channel_axis, layers, of_given_layers
from millrace.keras.models import Model

preprocess_input = functools.partial(imagenet_utils.preprocess_input, mode="tf")
DepthwiseConv2D = layers.DepthwiseConv2D  # as custom objects of files that were written before 1.8

_ADDRESS = "https://github.com/fchollet/deep-learning-models/releases/download/v0.6/"
_ALPHAS = {0.25: "2_5", 0.5: "5_0", 0.75: "7_5", 1.0: "1_0"}  # as files are named
_SIZES = (128, 160, 192, 224)


def relu6(x: Any) -> Any:
    """What is between 0 and 6: the activation that files written before 1.8 name."""
    return K.relu(x, max_value=6)


def usual_size(asked: Request, sizes: Sequence[int]) -> int:
    """The size of the program's images where weights of it were published; 224 otherwise."""
    rows, columns = asked.sizes()
    return int(rows) if rows == columns and rows in sizes else 224


def size_of_weights(asked: Request, shape: Any, sizes: Sequence[int], alpha: float, alphas: Sequence[float]) -> Any:
    """The rows of an image of this shape; with published weights, those of the weights. ValueError where there are none for this alpha."""
    rows, columns = shape[1:] if channel_axis() == 1 else shape[:2]
    if asked.weights == "imagenet":
        if alpha not in alphas:
            text = "%s or `%s`" % (", ".join("`%g`" % a for a in alphas[:-1]), alphas[-1])
            raise at_user_line(ValueError("If imagenet weights are being loaded, alpha can be one of %s only." % text))
        if rows != columns or rows not in sizes:
            warnings.warn("`input_shape` is undefined or non-square, or its size is not in %s. Weights for 224x224 are loaded." % list(sizes), stacklevel=3)
            return 224
    return rows


def _normed(x: Any, name: str) -> Any:
    return layers.ReLU(6.0, name=name + "_relu")(layers.BatchNormalization(axis=channel_axis(), name=name + "_bn")(x))


def _separable(x: Any, number: int, width: int, stride: int, depth_multiplier: int) -> Any:
    """A convolution of each channel by itself, and one of all channels at each place."""
    if stride > 1:
        x = layers.ZeroPadding2D(((0, 1), (0, 1)), name="conv_pad_%d" % number)(x)
    name = "conv_dw_%d" % number
    x = layers.DepthwiseConv2D(3, padding="same" if stride == 1 else "valid", depth_multiplier=depth_multiplier, strides=stride, use_bias=False, name=name)(x)
    name, x = "conv_pw_%d" % number, _normed(x, name)
    return _normed(layers.Conv2D(width, 1, padding="same", use_bias=False, strides=1, name=name)(x), name)


@of_given_layers
def MobileNet(
    input_shape: Any = None,
    alpha: float = 1.0,
    depth_multiplier: int = 1,
    dropout: float = 1e-3,
    include_top: bool = True,
    weights: Optional[str] = "imagenet",
    input_tensor: Any = None,
    pooling: Optional[str] = None,
    classes: int = 1000,
) -> Model:
    """MobileNet. `alpha`: the part of its channels that each layer has."""
    asked = Request(include_top, weights, input_tensor, input_shape, pooling, classes)
    asked.check()
    shape = asked.shape(224 if input_shape is None else usual_size(asked, _SIZES))
    if weights == "imagenet" and depth_multiplier != 1:
        raise at_user_line(ValueError("If imagenet weights are being loaded, depth multiplier must be 1"))
    rows = size_of_weights(asked, shape, _SIZES, alpha, tuple(_ALPHAS))
    image = asked.image(shape)
    x = layers.ZeroPadding2D(padding=((0, 1), (0, 1)), name="conv1_pad")(image)
    x = _normed(layers.Conv2D(int(32 * alpha), 3, padding="valid", use_bias=False, strides=2, name="conv1")(x), "conv1")
    widths = (64, 128, 128, 256, 256, 512, 512, 512, 512, 512, 512, 1024, 1024)
    for i, width in enumerate(widths, 1):
        x = _separable(x, i, int(width * alpha), 2 if i in (2, 4, 6, 12) else 1, depth_multiplier)
    if include_top:
        x = layers.GlobalAveragePooling2D()(x)
        last = int(1024 * alpha)
        x = layers.Reshape((last, 1, 1) if channel_axis() == 1 else (1, 1, last), name="reshape_1")(x)
        x = layers.Dropout(dropout, name="dropout")(x)
        x = layers.Conv2D(classes, 1, padding="same", name="conv_preds")(x)
        x = layers.Reshape((classes,), name="reshape_2")(x)
        x = layers.Activation("softmax", name="act_softmax")(x)
    else:
        x = asked.pooled(x)
    stem = "mobilenet_%s_%s_tf" % (_ALPHAS.get(alpha), rows)
    return asked.model(image, x, "mobilenet_%0.2f_%s" % (alpha, rows), Files(_ADDRESS, (stem + ".h5", stem + "_no_top.h5")))
