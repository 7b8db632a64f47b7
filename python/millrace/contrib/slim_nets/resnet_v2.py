# SPDX-License-Identifier: Apache-2.0
"""Residual networks with what normalises before the convolutions (He and others, 2016)."""

from __future__ import annotations

import functools
from typing import Any, Tuple

from millrace.contrib.framework import add_arg_scope, arg_scope
from millrace.contrib.layers import batch_norm, conv2d, max_pool2d
from millrace.contrib.layers_utils import collect_named_outputs, last_dimension
from millrace.contrib.slim_nets import resnet_utils
from millrace.contrib.slim_nets.resnet_utils import resnet_arg_scope  # noqa: F401
from millrace.contrib.slim_nets.resnet_whole import build, make_block, network_of
from millrace.ops import nn_ops
from millrace.ops.variable_scope import variable_scope


@add_arg_scope
def bottleneck(inputs: Any, depth: int, depth_bottleneck: int, stride: int, rate: int = 1, outputs_collections: Any = None, scope: Any = None) -> Any:
    """A unit: normalisation, then 1x1, 3x3 and 1x1 convolutions beside a shortcut."""
    with variable_scope(scope, "bottleneck_v2", [inputs]) as sc:
        before = batch_norm(inputs, activation_fn=nn_ops.relu, scope="preact")
        if last_dimension(inputs.get_shape(), 4) == depth:
            shortcut = resnet_utils.subsample(inputs, stride, "shortcut")
        else:
            shortcut = conv2d(before, depth, [1, 1], stride=stride, normalizer_fn=None, activation_fn=None, scope="shortcut")
        net = conv2d(before, depth_bottleneck, [1, 1], stride=1, scope="conv1")
        net = resnet_utils.conv2d_same(net, depth_bottleneck, 3, stride, rate, scope="conv2")
        net = conv2d(net, depth, [1, 1], stride=1, normalizer_fn=None, activation_fn=None, scope="conv3")
        return collect_named_outputs(outputs_collections, sc.name, shortcut + net)


def _root(inputs: Any) -> Any:
    with arg_scope([conv2d], activation_fn=None, normalizer_fn=None):
        net = resnet_utils.conv2d_same(inputs, 64, 7, stride=2, scope="conv1")
    return max_pool2d(net, [3, 3], stride=2, scope="pool1")


def resnet_v2_block(scope: str, base_depth: int, num_units: int, stride: int) -> Any:
    """A block of units; the last one has the stride."""
    return make_block(scope, bottleneck, base_depth, num_units, stride)


def resnet_v2(
    inputs: Any,
    blocks: Any,
    num_classes: Any = None,
    is_training: Any = None,
    global_pool: bool = True,
    output_stride: Any = None,
    include_root_block: bool = True,
    reuse: Any = None,
    scope: Any = None,
    spatial_squeeze: bool = False,
) -> Tuple[Any, Any]:
    """(logits [batch, 1, 1, classes], end points); without num_classes features."""
    return build(
        inputs,
        blocks,
        num_classes,
        is_training,
        global_pool,
        output_stride,
        _root if include_root_block else None,
        lambda net: batch_norm(net, activation_fn=nn_ops.relu, scope="postnorm"),
        spatial_squeeze,
        reuse,
        scope,
        "resnet_v2",
        bottleneck,
    )


_of = functools.partial(network_of, resnet_v2, resnet_v2_block)
resnet_v2_50, resnet_v2_101 = _of("resnet_v2_50", (3, 4, 6, 3)), _of("resnet_v2_101", (3, 4, 23, 3))
resnet_v2_152, resnet_v2_200 = _of("resnet_v2_152", (3, 8, 36, 3)), _of("resnet_v2_200", (3, 24, 36, 3))
setattr(resnet_v2, "default_image_size", 224)
