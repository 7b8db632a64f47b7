# SPDX-License-Identifier: Apache-2.0
"""What both kinds of residual networks share."""

from __future__ import annotations

import collections
from typing import Any

from millrace.contrib.framework import add_arg_scope, arg_scope
from millrace.contrib.layers import batch_norm, conv2d, l2_regularizer, max_pool2d, variance_scaling_initializer
from millrace.contrib.layers_utils import collect_named_outputs
from millrace.framework.errors import at_user_line
from millrace.framework.graph import GraphKeys
from millrace.ops import array_ops, nn_ops
from millrace.ops.variable_scope import variable_scope

Block = collections.namedtuple("Block", ["scope", "unit_fn", "args"])
Block.__doc__ = "Units in a row: a name, the function of a unit, and its arguments for each (a dict, or depth, inner depth and stride)."


def subsample(inputs: Any, factor: int, scope: Any = None) -> Any:
    """Every factor-th row and column."""
    return inputs if factor == 1 else max_pool2d(inputs, [1, 1], stride=factor, scope=scope)


def conv2d_same(inputs: Any, num_outputs: int, kernel_size: int, stride: int, rate: int = 1, scope: Any = None) -> Any:
    """A convolution that pads alike whatever the height and width are."""
    if stride == 1:
        return conv2d(inputs, num_outputs, kernel_size, stride=1, rate=rate, padding="SAME", scope=scope)
    padding = kernel_size + (kernel_size - 1) * (rate - 1) - 1
    before = padding // 2
    inputs = array_ops.pad(inputs, [[0, 0], [before, padding - before], [before, padding - before], [0, 0]])
    return conv2d(inputs, num_outputs, kernel_size, stride=stride, rate=rate, padding="VALID", scope=scope)


def _arguments(unit: Any) -> Any:
    if isinstance(unit, dict):
        return unit
    depth, bottleneck, stride = unit
    return {"depth": depth, "depth_bottleneck": bottleneck, "stride": stride}


@add_arg_scope
def stack_blocks_dense(net: Any, blocks: Any, output_stride: Any = None, store_non_strided_activations: bool = False, outputs_collections: Any = None) -> Any:
    """Blocks in a row. From where the output would be smaller than 1 / output_stride, units have holes in place of strides."""
    if store_non_strided_activations:
        raise at_user_line(NotImplementedError("store_non_strided_activations is not provided: leave it out."))
    current, rate = 1, 1
    for block in blocks:
        with variable_scope(block.scope, "block", [net]) as sc:
            for i, unit in enumerate(block.args, 1):
                if output_stride is not None and current > output_stride:
                    raise at_user_line(ValueError("The target output_stride cannot be reached."))
                arguments = _arguments(unit)
                with variable_scope("unit_%d" % i, values=[net]):
                    if output_stride is not None and current == output_stride:
                        net = block.unit_fn(net, rate=rate, **{**arguments, "stride": 1})
                        rate *= arguments.get("stride", 1)
                    else:
                        net = block.unit_fn(net, rate=1, **arguments)
                        current *= arguments.get("stride", 1)
            net = collect_named_outputs(outputs_collections, sc.name, net)
    if output_stride is not None and current != output_stride:
        raise at_user_line(ValueError("The target output_stride cannot be reached."))
    return net


def resnet_arg_scope(
    weight_decay: Any = 0.0001,
    batch_norm_decay: float = 0.997,
    batch_norm_epsilon: float = 1e-5,
    batch_norm_scale: bool = True,
    activation_fn: Any = nn_ops.relu,
    use_batch_norm: bool = True,
    is_training: Any = None,
) -> Any:
    """The defaults of the layers. (Up to 1.1 the first argument was is_training, as it still may be.)"""
    if isinstance(weight_decay, bool):
        weight_decay, is_training = 0.0001, weight_decay
    normalization = {"decay": batch_norm_decay, "epsilon": batch_norm_epsilon, "scale": batch_norm_scale, "updates_collections": GraphKeys.UPDATE_OPS}
    if is_training is not None:
        normalization["is_training"] = is_training
    with arg_scope(
        [conv2d],
        weights_regularizer=l2_regularizer(weight_decay),
        weights_initializer=variance_scaling_initializer(),
        activation_fn=activation_fn,
        normalizer_fn=batch_norm if use_batch_norm else None,
        normalizer_params=normalization,
    ):
        with arg_scope([batch_norm], **normalization), arg_scope([max_pool2d], padding="SAME") as made:
            return made
