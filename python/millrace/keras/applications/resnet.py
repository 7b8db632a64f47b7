# SPDX-License-Identifier: Apache-2.0
"""Residual networks (He and others, 2015)."""

from __future__ import annotations

from typing import Any, Callable, Optional, Sequence

from millrace.keras.applications.imagenet_utils import decode_predictions as decode_predictions
from millrace.keras.applications.imagenet_utils import preprocess_input as preprocess_input
from millrace.keras.applications.parts import Files, Request, channel_axis, layers, of_given_layers
from millrace.keras.models import Model

Stack = Callable[[Any, int, int, str], Any]

_ADDRESS = "https://github.com/keras-team/keras-applications/releases/download/resnet/"
_HASHES = {
    "resnet50": ("2cb95161c43110f7111970584f804107", "4d473c1dd8becc155b73f8504c6f6626"),
    "resnet101": ("f1aeb4b969a6efcfb50fad2f0c20cfc5", "88cf7a10940856eca736dc7b7e228a21"),
    "resnet152": ("100835be76be38e30d865e96f2aaae62", "ee4c566cf9a93f14d82f913c2dc6dd0c"),
    "resnet50v2": ("3ef43a0b657b3be2300d5770ece849e0", "fac2f116257151a9d068a22e544a4917"),
    "resnet101v2": ("6343647c601c52e1368623803854d971", "c0ed64b8031c3730f411d2eb4eea35b5"),
    "resnet152v2": ("a49b44d1979771252814e80f8ec446f9", "ed17cf2e0169df9d443503ef94b23b33"),
}


def normed(x: Any, name: str) -> Any:
    """Normalized over the batch."""
    return layers.BatchNormalization(axis=channel_axis(), epsilon=1.001e-5, name=name)(x)


def rectified(x: Any, name: str) -> Any:
    """Without what is negative."""
    return layers.Activation("relu", name=name)(x)


def _block(x: Any, width: int, stride: int, projected: bool, name: str) -> Any:
    """A bottleneck. `projected`: what goes past it is a convolution."""
    past = x
    if projected:
        past = normed(layers.Conv2D(4 * width, 1, strides=stride, name=name + "_0_conv")(x), name + "_0_bn")
    x = normed(layers.Conv2D(width, 1, strides=stride, name=name + "_1_conv")(x), name + "_1_bn")
    x = layers.Conv2D(width, 3, padding="same", name=name + "_2_conv")(rectified(x, name + "_1_relu"))
    x = rectified(normed(x, name + "_2_bn"), name + "_2_relu")
    x = normed(layers.Conv2D(4 * width, 1, name=name + "_3_conv")(x), name + "_3_bn")
    return rectified(layers.Add(name=name + "_add")([past, x]), name + "_out")


def _stack(x: Any, depth: int, width: int, name: str) -> Any:
    """Blocks of one width, of which the first strides, but for those behind the pooling."""
    for i in range(1, depth + 1):
        x = _block(x, width, 2 if i == 1 and width > 64 else 1, i == 1, "%s_block%d" % (name, i))
    return x


def network(name: str, stack: Stack, depths: Sequence[int], asked: Request, activated: bool = False) -> Model:
    """A residual network. `stack` makes the blocks of a width, `depths` says how many; `activated`: each block begins with its activation."""
    asked.check()
    image = asked.image(asked.shape(224))
    x = layers.ZeroPadding2D(padding=((3, 3), (3, 3)), name="conv1_pad")(image)
    x = layers.Conv2D(64, 7, strides=2, use_bias=True, name="conv1_conv")(x)
    if not activated:
        x = rectified(normed(x, "conv1_bn"), "conv1_relu")
    x = layers.ZeroPadding2D(padding=((1, 1), (1, 1)), name="pool1_pad")(x)
    x = layers.MaxPooling2D(3, strides=2, name="pool1_pool")(x)
    for i, depth in enumerate(depths):
        x = stack(x, depth, 64 << i, "conv%d" % (i + 2))
    if activated:
        x = rectified(normed(x, "post_bn"), "post_relu")
    x = asked.classified(x, "probs") if asked.include_top else asked.pooled(x, named=True)
    return asked.model(image, x, name, Files.of(_ADDRESS, name, *_HASHES[name]))


@of_given_layers
def ResNet50(
    include_top: bool = True,
    weights: Optional[str] = "imagenet",
    input_tensor: Any = None,
    input_shape: Any = None,
    pooling: Optional[str] = None,
    classes: int = 1000,
) -> Model:
    """A residual network of 50 layers."""
    return network("resnet50", _stack, (3, 4, 6, 3), Request(include_top, weights, input_tensor, input_shape, pooling, classes))


@of_given_layers
def ResNet101(
    include_top: bool = True,
    weights: Optional[str] = "imagenet",
    input_tensor: Any = None,
    input_shape: Any = None,
    pooling: Optional[str] = None,
    classes: int = 1000,
) -> Model:
    """A residual network of 101 layers."""
    return network("resnet101", _stack, (3, 4, 23, 3), Request(include_top, weights, input_tensor, input_shape, pooling, classes))


@of_given_layers
def ResNet152(
    include_top: bool = True,
    weights: Optional[str] = "imagenet",
    input_tensor: Any = None,
    input_shape: Any = None,
    pooling: Optional[str] = None,
    classes: int = 1000,
) -> Model:
    """A residual network of 152 layers."""
    return network("resnet152", _stack, (3, 8, 36, 3), Request(include_top, weights, input_tensor, input_shape, pooling, classes))
