# SPDX-License-Identifier: Apache-2.0
"""Inception v1, GoogLeNet (Szegedy and others, 2014), with batch normalisation."""

from __future__ import annotations

from typing import Any, Dict, Tuple

from millrace.contrib.framework import arg_scope
from millrace.contrib.layers import conv2d, fully_connected, max_pool2d, softmax
from millrace.contrib.slim_nets.end_points import EndPoints, build, truncated
from millrace.contrib.slim_nets.inception_parts import Step, Widths, arguments, classifier, max_pool, module, whole
from millrace.ops.variable_scope import variable_scope

inception_v1_arg_scope = arguments

# Widths of each module: 1x1, 1x1 then 3x3, 1x1 then 3x3, and 1x1 after pooling.
_MODULES: Dict[str, Any] = {
    "Mixed_3b": (64, 96, 128, 16, 32, 32),
    "Mixed_3c": (128, 128, 192, 32, 96, 64),
    "MaxPool_4a_3x3": 3,
    "Mixed_4b": (192, 96, 208, 16, 48, 64),
    "Mixed_4c": (160, 112, 224, 24, 64, 64),
    "Mixed_4d": (128, 128, 256, 24, 64, 64),
    "Mixed_4e": (112, 144, 288, 32, 64, 64),
    "Mixed_4f": (256, 160, 320, 32, 128, 128),
    "MaxPool_5a_2x2": 2,
    "Mixed_5b": (256, 160, 320, 32, 128, 128),
    "Mixed_5c": (384, 192, 384, 48, 128, 128),
}


def _body(net: Any, points: EndPoints) -> None:
    widths = Widths(1.0, 1)
    net = points.note("Conv2d_1a_7x7", conv2d(net, 64, [7, 7], stride=2, scope="Conv2d_1a_7x7"))
    net = points.note("MaxPool_2a_3x3", max_pool2d(net, [3, 3], stride=2, scope="MaxPool_2a_3x3"))
    net = points.note("Conv2d_2b_1x1", conv2d(net, 64, [1, 1], scope="Conv2d_2b_1x1"))
    net = points.note("Conv2d_2c_3x3", conv2d(net, 192, [3, 3], scope="Conv2d_2c_3x3"))
    net = points.note("MaxPool_3a_3x3", max_pool2d(net, [3, 3], stride=2, scope="MaxPool_3a_3x3"))
    for name, given in _MODULES.items():
        if isinstance(given, int):
            net = points.note(name, max_pool2d(net, [given, given], stride=2, scope=name))
            continue
        a, b, c, d, e, f = given
        last = "Conv2d_0a_3x3" if name == "Mixed_5b" else "Conv2d_0b_3x3"  # so it is called in the published checkpoint
        net = points.note(
            name,
            module(
                net,
                name,
                widths,
                [
                    [Step("Conv2d_0a_1x1", a)],
                    [Step("Conv2d_0a_1x1", b), Step("Conv2d_0b_3x3", c, (3, 3))],
                    [Step("Conv2d_0a_1x1", d), Step(last, e, (3, 3))],
                    [max_pool("MaxPool_0a_3x3"), Step("Conv2d_0b_1x1", f)],
                ],
            ),
        )


def inception_v1_base(inputs: Any, final_endpoint: str = "Mixed_5c", scope: Any = "InceptionV1") -> Tuple[Any, EndPoints]:
    """The network without its classifier: (the last end point, all of them)."""
    with variable_scope(scope, "InceptionV1", [inputs]):
        with arg_scope([conv2d, fully_connected], weights_initializer=truncated(0.01)), arg_scope([conv2d, max_pool2d], stride=1, padding="SAME"):
            return build(lambda points: _body(inputs, points), final_endpoint)


def inception_v1(
    inputs: Any,
    num_classes: int = 1000,
    is_training: Any = True,
    dropout_keep_prob: float = 0.8,
    prediction_fn: Any = softmax,
    spatial_squeeze: bool = True,
    reuse: Any = None,
    scope: Any = "InceptionV1",
) -> Tuple[Any, EndPoints]:
    """(logits, end points)."""

    def head(net: Any, points: EndPoints) -> Any:
        return classifier(net, points, (7, 7), ("AvgPool_0a", "Dropout_0b", "Conv2d_0c_1x1"), num_classes, dropout_keep_prob, spatial_squeeze, prediction_fn)

    return whole(inputs, lambda x, sc: inception_v1_base(x, scope=sc), head, is_training, prediction_fn, reuse, scope, "InceptionV1")


setattr(inception_v1, "default_image_size", 224)
