# SPDX-License-Identifier: Apache-2.0
"""A residual network around its blocks."""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Optional, Sequence, Tuple

from millrace.contrib.framework import arg_scope
from millrace.contrib.layers import batch_norm, conv2d
from millrace.contrib.layers_utils import convert_collection_to_dict
from millrace.contrib.slim_nets import resnet_utils
from millrace.framework.errors import at_user_line
from millrace.ops import array_ops, math_ops, nn_ops
from millrace.ops.variable_scope import variable_scope


def make_block(scope: str, unit: Any, base_depth: int, num_units: int, stride: int) -> Any:
    """A block of units of 4 base_depth channels; the last one has the stride."""
    units = [{"depth": base_depth * 4, "depth_bottleneck": base_depth, "stride": 1 if i < num_units - 1 else stride} for i in range(num_units)]
    return resnet_utils.Block(scope, unit, units)


def build(
    inputs: Any,
    blocks: Any,
    num_classes: Any,
    is_training: Any,
    global_pool: bool,
    output_stride: Any,
    root: Optional[Callable[[Any], Any]],
    after: Callable[[Any], Any],
    squeeze: bool,
    reuse: Any,
    scope: Any,
    default: str,
    unit: Any,
) -> Tuple[Any, Any]:
    """Root, blocks, pooling and classifier: (what they give, end points)."""
    with variable_scope(scope, default, [inputs], reuse=reuse) as sc, contextlib.ExitStack() as stack:
        collection = sc.name + "_end_points"
        stack.enter_context(arg_scope([conv2d, unit, resnet_utils.stack_blocks_dense], outputs_collections=collection))
        if is_training is not None:
            stack.enter_context(arg_scope([batch_norm], is_training=is_training))
        net = inputs
        if root is not None:
            if output_stride is not None:
                if output_stride % 4 != 0:
                    raise at_user_line(ValueError("The output_stride needs to be a multiple of 4."))
                output_stride //= 4
            net = root(net)
        net = after(resnet_utils.stack_blocks_dense(net, blocks, output_stride))
        if global_pool:
            net = math_ops.reduce_mean(net, [1, 2], name="pool5", keepdims=True)
        if num_classes:
            net = conv2d(net, num_classes, [1, 1], activation_fn=None, normalizer_fn=None, scope="logits")
            if squeeze:
                net = array_ops.squeeze(net, [1, 2], name="SpatialSqueeze")
        points = convert_collection_to_dict(collection)
        if num_classes:
            points["predictions"] = nn_ops.softmax(net, name="predictions")
        return net, points


def network_of(model: Any, block: Any, name: str, counts: Sequence[int]) -> Any:
    """The function that builds a model of blocks with so many units each."""

    def network(
        inputs: Any,
        num_classes: Any = None,
        is_training: Any = None,
        global_pool: bool = True,
        output_stride: Any = None,
        reuse: Any = None,
        scope: Any = name,
        spatial_squeeze: bool = False,
    ) -> Tuple[Any, Any]:
        blocks = [block("block%d" % i, 32 << i, count, stride) for i, (count, stride) in enumerate(zip(counts, (2, 2, 2, 1)), 1)]
        return model(inputs, blocks, num_classes, is_training, global_pool, output_stride, True, reuse, scope, spatial_squeeze)

    network.__name__, network.__doc__ = name, "The network of %d layers." % (3 * sum(counts) + 2)
    setattr(network, "default_image_size", 224)
    return network
