# SPDX-License-Identifier: Apache-2.0
"""Inception v3 (Szegedy and others, 2015)."""

from __future__ import annotations

from typing import Any, Tuple

from millrace.contrib.framework import arg_scope
from millrace.contrib.layers import avg_pool2d, conv2d, max_pool2d, softmax
from millrace.contrib.slim_nets.end_points import EndPoints, build, truncated
from millrace.contrib.slim_nets.inception_parts import Step, Widths, arguments, avg_pool, classifier, kernel_within, max_pool, module, whole
from millrace.framework.graph import GraphKeys
from millrace.ops import array_ops
from millrace.ops.variable_scope import variable_scope


def inception_v3_arg_scope(
    weight_decay: float = 0.00004,
    stddev: float = 0.1,
    batch_norm_var_collection: str = "moving_vars",
    batch_norm_decay: float = 0.9997,
    batch_norm_epsilon: float = 0.001,
    updates_collections: Any = GraphKeys.UPDATE_OPS,
    use_batch_norm: bool = True,
) -> Any:
    """The defaults of the layers."""
    return arguments(
        weight_decay,
        use_batch_norm,
        batch_norm_decay,
        batch_norm_epsilon,
        batch_norm_var_collection,
        stddev,
        batch_norm_updates_collections=updates_collections,
    )


def _pooled(width: int) -> Any:
    return [avg_pool("AvgPool_0a_3x3"), Step("Conv2d_0b_1x1", width)]


def _at_35(net: Any, name: str, widths: Widths, pool: int) -> Any:
    """Where the image is 35x35."""
    # One module has its own names in the published checkpoint.
    first, second = ("Conv2d_0b_1x1", "Conv_1_0c_5x5") if name == "Mixed_5c" else ("Conv2d_0a_1x1", "Conv2d_0b_5x5")
    return module(
        net,
        name,
        widths,
        [
            [Step("Conv2d_0a_1x1", 64)],
            [Step(first, 48), Step(second, 64, (5, 5))],
            [Step("Conv2d_0a_1x1", 64), Step("Conv2d_0b_3x3", 96, (3, 3)), Step("Conv2d_0c_3x3", 96, (3, 3))],
            _pooled(pool),
        ],
    )


def _at_17(net: Any, name: str, widths: Widths, inner: int) -> Any:
    """Where it is 17x17: filters of 7x7 are a row and a column."""
    return module(
        net,
        name,
        widths,
        [
            [Step("Conv2d_0a_1x1", 192)],
            [Step("Conv2d_0a_1x1", inner), Step("Conv2d_0b_1x7", inner, (1, 7)), Step("Conv2d_0c_7x1", 192, (7, 1))],
            [
                Step("Conv2d_0a_1x1", inner),
                Step("Conv2d_0b_7x1", inner, (7, 1)),
                Step("Conv2d_0c_1x7", inner, (1, 7)),
                Step("Conv2d_0d_7x1", inner, (7, 1)),
                Step("Conv2d_0e_1x7", 192, (1, 7)),
            ],
            _pooled(192),
        ],
    )


def _at_8(net: Any, name: str, widths: Widths, column: str) -> Any:
    """Where it is 8x8: rows and columns side by side."""
    return module(
        net,
        name,
        widths,
        [
            [Step("Conv2d_0a_1x1", 320)],
            [Step("Conv2d_0a_1x1", 384), (Step("Conv2d_0b_1x3", 384, (1, 3)), Step(column, 384, (3, 1)))],
            [Step("Conv2d_0a_1x1", 448), Step("Conv2d_0b_3x3", 384, (3, 3)), (Step("Conv2d_0c_1x3", 384, (1, 3)), Step("Conv2d_0d_3x1", 384, (3, 1)))],
            _pooled(192),
        ],
    )


def _to_17(net: Any, name: str, widths: Widths) -> Any:
    return module(
        net,
        name,
        widths,
        [
            [Step("Conv2d_1a_1x1", 384, (3, 3), 2, padding="VALID")],
            [Step("Conv2d_0a_1x1", 64), Step("Conv2d_0b_3x3", 96, (3, 3)), Step("Conv2d_1a_1x1", 96, (3, 3), 2, padding="VALID")],
            [max_pool("MaxPool_1a_3x3", 2, "VALID")],
        ],
    )


def _to_8(net: Any, name: str, widths: Widths) -> Any:
    return module(
        net,
        name,
        widths,
        [
            [Step("Conv2d_0a_1x1", 192), Step("Conv2d_1a_3x3", 320, (3, 3), 2, padding="VALID")],
            [
                Step("Conv2d_0a_1x1", 192),
                Step("Conv2d_0b_1x7", 192, (1, 7)),
                Step("Conv2d_0c_7x1", 192, (7, 1)),
                Step("Conv2d_1a_3x3", 192, (3, 3), 2, padding="VALID"),
            ],
            [max_pool("MaxPool_1a_3x3", 2, "VALID")],
        ],
    )


def _body(net: Any, points: EndPoints, widths: Widths) -> None:
    with arg_scope([conv2d, max_pool2d, avg_pool2d], stride=1, padding="VALID"):
        net = points.note("Conv2d_1a_3x3", conv2d(net, widths(32), [3, 3], stride=2, scope="Conv2d_1a_3x3"))
        net = points.note("Conv2d_2a_3x3", conv2d(net, widths(32), [3, 3], scope="Conv2d_2a_3x3"))
        net = points.note("Conv2d_2b_3x3", conv2d(net, widths(64), [3, 3], padding="SAME", scope="Conv2d_2b_3x3"))
        net = points.note("MaxPool_3a_3x3", max_pool2d(net, [3, 3], stride=2, scope="MaxPool_3a_3x3"))
        net = points.note("Conv2d_3b_1x1", conv2d(net, widths(80), [1, 1], scope="Conv2d_3b_1x1"))
        net = points.note("Conv2d_4a_3x3", conv2d(net, widths(192), [3, 3], scope="Conv2d_4a_3x3"))
        net = points.note("MaxPool_5a_3x3", max_pool2d(net, [3, 3], stride=2, scope="MaxPool_5a_3x3"))
    for name, pool in (("Mixed_5b", 32), ("Mixed_5c", 64), ("Mixed_5d", 64)):
        net = points.note(name, _at_35(net, name, widths, pool))
    net = points.note("Mixed_6a", _to_17(net, "Mixed_6a", widths))
    for name, inner in (("Mixed_6b", 128), ("Mixed_6c", 160), ("Mixed_6d", 160), ("Mixed_6e", 192)):
        net = points.note(name, _at_17(net, name, widths, inner))
    net = points.note("Mixed_7a", _to_8(net, "Mixed_7a", widths))
    for name, column in (("Mixed_7b", "Conv2d_0b_3x1"), ("Mixed_7c", "Conv2d_0c_3x1")):
        net = points.note(name, _at_8(net, name, widths, column))


def inception_v3_base(
    inputs: Any, final_endpoint: str = "Mixed_7c", min_depth: int = 16, depth_multiplier: float = 1.0, scope: Any = None
) -> Tuple[Any, EndPoints]:
    """The network without its classifiers: (the last end point, all of them)."""
    widths = Widths(depth_multiplier, min_depth)
    with variable_scope(scope, "InceptionV3", [inputs]), arg_scope([conv2d, max_pool2d, avg_pool2d], stride=1, padding="SAME"):
        return build(lambda points: _body(inputs, points, widths), final_endpoint)


def _second_classifier(points: EndPoints, widths: Widths, num_classes: int, squeeze: bool) -> None:
    with variable_scope("AuxLogits"), arg_scope([conv2d, avg_pool2d], stride=1, padding="SAME"):
        net = avg_pool2d(points["Mixed_6e"], [5, 5], stride=3, padding="VALID", scope="AvgPool_1a_5x5")
        net = conv2d(net, widths(128), [1, 1], scope="Conv2d_1b_1x1")
        kernel = kernel_within(net, (5, 5))
        net = conv2d(net, widths(768), kernel, weights_initializer=truncated(0.01), padding="VALID", scope="Conv2d_2a_%dx%d" % tuple(kernel))
        net = conv2d(net, num_classes, [1, 1], activation_fn=None, normalizer_fn=None, weights_initializer=truncated(0.001), scope="Conv2d_2b_1x1")
        points["AuxLogits"] = array_ops.squeeze(net, [1, 2], name="SpatialSqueeze") if squeeze else net


def inception_v3(
    inputs: Any,
    num_classes: int = 1000,
    is_training: Any = True,
    dropout_keep_prob: float = 0.8,
    min_depth: int = 16,
    depth_multiplier: float = 1.0,
    prediction_fn: Any = softmax,
    spatial_squeeze: bool = True,
    reuse: Any = None,
    scope: Any = "InceptionV3",
    create_aux_logits: bool = True,
) -> Tuple[Any, EndPoints]:
    """(logits, end points); the second classifier's logits are the end point AuxLogits."""

    def base(x: Any, sc: Any) -> Any:
        return inception_v3_base(x, min_depth=min_depth, depth_multiplier=depth_multiplier, scope=sc)

    def head(net: Any, points: EndPoints) -> Any:
        if create_aux_logits:
            _second_classifier(points, Widths(depth_multiplier, min_depth), num_classes, spatial_squeeze)
        return classifier(net, points, (8, 8), ("AvgPool_1a", "Dropout_1b", "Conv2d_1c_1x1"), num_classes, dropout_keep_prob, spatial_squeeze)

    return whole(inputs, base, head, is_training, prediction_fn, reuse, scope, "InceptionV3")


setattr(inception_v3, "default_image_size", 299)
