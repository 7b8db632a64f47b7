# SPDX-License-Identifier: Apache-2.0
"""VGG (Simonyan and Zisserman, 2014): stacks of 3x3 convolutions."""

from __future__ import annotations

from typing import Any, Sequence, Tuple

from millrace.contrib.framework import arg_scope
from millrace.contrib.layers import conv2d, fully_connected, l2_regularizer, max_pool2d, repeat
from millrace.contrib.slim_nets.end_points import fully_convolutional, sequential
from millrace.ops import init_ops, nn_ops


def vgg_arg_scope(weight_decay: float = 0.0005) -> Any:
    """The defaults of the layers."""
    with arg_scope(
        [conv2d, fully_connected], activation_fn=nn_ops.relu, weights_regularizer=l2_regularizer(weight_decay), biases_initializer=init_ops.zeros_initializer()
    ):
        with arg_scope([conv2d], padding="SAME") as made:
            return made


def _vgg(
    inputs: Any, counts: Sequence[int], scope: Any, default: str, num_classes: int, is_training: Any, keep_prob: float, squeeze: bool, padding: str
) -> Tuple[Any, Any]:
    def body(net: Any) -> Any:
        for i, (count, width) in enumerate(zip(counts, (64, 128, 256, 512, 512)), 1):
            net = repeat(net, count, conv2d, width, [3, 3], scope="conv%d" % i)
            net = max_pool2d(net, [2, 2], scope="pool%d" % i)
        return fully_convolutional(net, num_classes, (4096, 4096), [7, 7], {}, is_training, keep_prob, False, padding)

    return sequential(body, inputs, scope, default, num_classes, squeeze)


def vgg_a(
    inputs: Any,
    num_classes: int = 1000,
    is_training: Any = True,
    dropout_keep_prob: float = 0.5,
    spatial_squeeze: bool = True,
    scope: Any = "vgg_a",
    fc_conv_padding: str = "VALID",
) -> Tuple[Any, Any]:
    """The net with 11 layers of weights: (logits, end points)."""
    return _vgg(inputs, (1, 1, 2, 2, 2), scope, "vgg_a", num_classes, is_training, dropout_keep_prob, spatial_squeeze, fc_conv_padding)


def vgg_16(
    inputs: Any,
    num_classes: int = 1000,
    is_training: Any = True,
    dropout_keep_prob: float = 0.5,
    spatial_squeeze: bool = True,
    scope: Any = "vgg_16",
    fc_conv_padding: str = "VALID",
) -> Tuple[Any, Any]:
    """The net with 16 layers of weights: (logits, end points)."""
    return _vgg(inputs, (2, 2, 3, 3, 3), scope, "vgg_16", num_classes, is_training, dropout_keep_prob, spatial_squeeze, fc_conv_padding)


def vgg_19(
    inputs: Any,
    num_classes: int = 1000,
    is_training: Any = True,
    dropout_keep_prob: float = 0.5,
    spatial_squeeze: bool = True,
    scope: Any = "vgg_19",
    fc_conv_padding: str = "VALID",
) -> Tuple[Any, Any]:
    """The net with 19 layers of weights: (logits, end points)."""
    return _vgg(inputs, (2, 2, 4, 4, 4), scope, "vgg_19", num_classes, is_training, dropout_keep_prob, spatial_squeeze, fc_conv_padding)


for _net in (vgg_a, vgg_16, vgg_19):
    setattr(_net, "default_image_size", 224)
vgg_d, vgg_e = vgg_16, vgg_19
