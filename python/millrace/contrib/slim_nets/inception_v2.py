# SPDX-License-Identifier: Apache-2.0
"""Inception v2 (Ioffe and Szegedy, 2015)."""

from __future__ import annotations

from typing import Any, Tuple

from millrace.contrib.framework import arg_scope
from millrace.contrib.layers import avg_pool2d, conv2d, max_pool2d, separable_conv2d, softmax
from millrace.contrib.slim_nets.end_points import EndPoints, build, truncated
from millrace.contrib.slim_nets.inception_parts import Step, Widths, arguments, avg_pool, classifier, max_pool, module, whole
from millrace.ops.variable_scope import variable_scope

inception_v2_arg_scope = arguments

# Widths: 1x1; 1x1 then 3x3; 1x1 then 3x3 twice; 1x1 after pooling. Where the image shrinks there is no first and no last branch.
_MODULES = {
    "Mixed_3b": ((64,), (64, 64), (64, 96, 96), (32,)),
    "Mixed_3c": ((64,), (64, 96), (64, 96, 96), (64,)),
    "Mixed_4a": ((128, 160), (64, 96, 96)),
    "Mixed_4b": ((224,), (64, 96), (96, 128, 128), (128,)),
    "Mixed_4c": ((192,), (96, 128), (96, 128, 128), (128,)),
    "Mixed_4d": ((160,), (128, 160), (128, 160, 160), (96,)),
    "Mixed_4e": ((96,), (128, 192), (160, 192, 192), (96,)),
    "Mixed_5a": ((128, 192), (192, 256, 256)),
    "Mixed_5b": ((352,), (192, 320), (160, 224, 224), (128,)),
    "Mixed_5c": ((352,), (192, 320), (192, 224, 224), (128,)),
}


def _mixed(net: Any, name: str, widths: Widths, given: Any) -> Any:
    first = 0.1 if name == "Mixed_3c" else 0.09
    if len(given) == 2:
        (a, b), (c, d, e) = given
        return module(
            net,
            name,
            widths,
            [
                [Step("Conv2d_0a_1x1", a, stddev=0.09), Step("Conv2d_1a_3x3", b, (3, 3), 2)],
                [Step("Conv2d_0a_1x1", c, stddev=0.09), Step("Conv2d_0b_3x3", d, (3, 3)), Step("Conv2d_1a_3x3", e, (3, 3), 2)],
                [max_pool("MaxPool_1a_3x3", 2)],
            ],
        )
    (a,), (b, c), (d, e, f), (g,) = given
    pool = max_pool("MaxPool_0a_3x3") if name == "Mixed_5c" else avg_pool("AvgPool_0a_3x3")
    return module(
        net,
        name,
        widths,
        [
            [Step("Conv2d_0a_1x1", a)],
            [Step("Conv2d_0a_1x1", b, stddev=0.09), Step("Conv2d_0b_3x3", c, (3, 3))],
            [Step("Conv2d_0a_1x1", d, stddev=0.09), Step("Conv2d_0b_3x3", e, (3, 3)), Step("Conv2d_0c_3x3", f, (3, 3))],
            [pool, Step("Conv2d_0b_1x1", g, stddev=first)],
        ],
    )


def _body(net: Any, points: EndPoints, widths: Widths, final: str) -> None:
    channels = net.get_shape()[3].value
    net = points.note(
        "Conv2d_1a_7x7",
        separable_conv2d(
            net, widths(64), [7, 7], depth_multiplier=min(int(widths(64) / channels), 8), stride=2, weights_initializer=truncated(1.0), scope="Conv2d_1a_7x7"
        ),
    )
    net = points.note("MaxPool_2a_3x3", max_pool2d(net, [3, 3], stride=2, scope="MaxPool_2a_3x3"))
    net = points.note("Conv2d_2b_1x1", conv2d(net, widths(64), [1, 1], weights_initializer=truncated(0.1), scope="Conv2d_2b_1x1"))
    net = points.note("Conv2d_2c_3x3", conv2d(net, widths(192), [3, 3], scope="Conv2d_2c_3x3"))
    net = points.note("MaxPool_3a_3x3", max_pool2d(net, [3, 3], stride=2, scope="MaxPool_3a_3x3"))
    for name, given in _MODULES.items():
        net = points.note(name, _mixed(net, name, widths, given))


def inception_v2_base(
    inputs: Any, final_endpoint: str = "Mixed_5c", min_depth: int = 16, depth_multiplier: float = 1.0, scope: Any = None
) -> Tuple[Any, EndPoints]:
    """The network without its classifier: (the last end point, all of them)."""
    widths = Widths(depth_multiplier, min_depth)
    with variable_scope(scope, "InceptionV2", [inputs]):
        with arg_scope([conv2d, max_pool2d, avg_pool2d, separable_conv2d], stride=1, padding="SAME"):
            return build(lambda points: _body(inputs, points, widths, final_endpoint), final_endpoint)


def inception_v2(
    inputs: Any,
    num_classes: int = 1000,
    is_training: Any = True,
    dropout_keep_prob: float = 0.8,
    min_depth: int = 16,
    depth_multiplier: float = 1.0,
    prediction_fn: Any = softmax,
    spatial_squeeze: bool = True,
    reuse: Any = None,
    scope: Any = "InceptionV2",
) -> Tuple[Any, EndPoints]:
    """(logits, end points)."""

    def base(x: Any, sc: Any) -> Any:
        return inception_v2_base(x, min_depth=min_depth, depth_multiplier=depth_multiplier, scope=sc)

    def head(net: Any, points: EndPoints) -> Any:
        return classifier(net, points, (7, 7), ("AvgPool_1a", "Dropout_1b", "Conv2d_1c_1x1"), num_classes, dropout_keep_prob, spatial_squeeze)

    return whole(inputs, base, head, is_training, prediction_fn, reuse, scope, "InceptionV2")


setattr(inception_v2, "default_image_size", 224)
