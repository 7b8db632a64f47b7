# SPDX-License-Identifier: Apache-2.0
"""AlexNet in one column (Krizhevsky, 2014)."""

from __future__ import annotations

from typing import Any, Tuple

from millrace.contrib.framework import arg_scope
from millrace.contrib.layers import conv2d, fully_connected, l2_regularizer, max_pool2d
from millrace.contrib.slim_nets.end_points import fully_convolutional, sequential, truncated
from millrace.ops import init_ops, nn_ops


def alexnet_v2_arg_scope(weight_decay: float = 0.0005) -> Any:
    """The defaults of the layers."""
    with arg_scope(
        [conv2d, fully_connected],
        activation_fn=nn_ops.relu,
        biases_initializer=init_ops.constant_initializer(0.1),
        weights_regularizer=l2_regularizer(weight_decay),
    ):
        with arg_scope([conv2d], padding="SAME"), arg_scope([max_pool2d], padding="VALID") as made:
            return made


def alexnet_v2(
    inputs: Any, num_classes: int = 1000, is_training: Any = True, dropout_keep_prob: float = 0.5, spatial_squeeze: bool = True, scope: Any = "alexnet_v2"
) -> Tuple[Any, Any]:
    """(logits, end points)."""

    def body(net: Any) -> Any:
        net = conv2d(net, 64, [11, 11], 4, padding="VALID", scope="conv1")
        net = max_pool2d(net, [3, 3], 2, scope="pool1")
        net = conv2d(net, 192, [5, 5], scope="conv2")
        net = max_pool2d(net, [3, 3], 2, scope="pool2")
        for name, width in (("conv3", 384), ("conv4", 384), ("conv5", 256)):
            net = conv2d(net, width, [3, 3], scope=name)
        net = max_pool2d(net, [3, 3], 2, scope="pool5")
        start = {"weights_initializer": truncated(0.005), "biases_initializer": init_ops.constant_initializer(0.1)}
        return fully_convolutional(net, num_classes, (4096, 4096), [5, 5], start, is_training, dropout_keep_prob, True)

    return sequential(body, inputs, scope, "alexnet_v2", num_classes, spatial_squeeze)


setattr(alexnet_v2, "default_image_size", 224)
