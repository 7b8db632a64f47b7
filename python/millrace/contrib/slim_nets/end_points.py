# SPDX-License-Identifier: Apache-2.0
"""What the networks share."""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional, Tuple

from millrace.contrib.framework import arg_scope
from millrace.contrib.layers import conv2d, convolution2d, dropout, fully_connected, max_pool2d
from millrace.contrib.layers_utils import convert_collection_to_dict
from millrace.ops import array_ops, init_ops
from millrace.ops.variable_scope import variable_scope

OUTPUTS = "_end_points"


def truncated(stddev: float) -> Any:
    """An initializer of weights."""
    return init_ops.truncated_normal_initializer(0.0, stddev)


class Stopped(Exception):
    """The endpoint that was asked for has been reached."""


class EndPoints(Dict[str, Any]):
    """The tensors of a network by name, up to a last one."""

    def __init__(self, last: Optional[str] = None) -> None:
        super().__init__()
        self._last = last

    def note(self, name: str, tensor: Any) -> Any:
        """Keeps a tensor; stops the building where it is the last."""
        self[name] = tensor
        if name == self._last:
            raise Stopped
        return tensor


def build(body: Callable[[EndPoints], None], last: Optional[str]) -> Tuple[Any, EndPoints]:
    """Runs a function that notes end points, up to the last one: (that, all of them)."""
    points = EndPoints(last)
    try:
        body(points)
    except Stopped:
        pass
    else:
        raise ValueError("Unknown final endpoint %s" % last)
    return points[str(last)], points


def fully_convolutional(
    net: Any, num_classes: int, width: Any, size: Any, initializer: Any, is_training: Any, keep_prob: float, normalize: bool, padding: str = "VALID"
) -> Any:
    """The classifier of the early networks: convolutions fc6 to fc8 in place of full connections."""
    first, second = width
    with arg_scope([conv2d], **initializer):
        net = conv2d(net, first, size, padding=padding, scope="fc6")
        net = dropout(net, keep_prob, is_training=is_training, scope="dropout6")
        net = conv2d(net, second, [1, 1], scope="fc7")
        net = dropout(net, keep_prob, is_training=is_training, scope="dropout7")
        last = {"normalizer_fn": None} if normalize else {}
        return conv2d(net, num_classes, [1, 1], activation_fn=None, scope="fc8", **last)


def sequential(body: Callable[..., Any], inputs: Any, scope: Any, default: str, num_classes: int, squeeze: bool) -> Tuple[Any, Any]:
    """A network whose end points are the outputs of its layers: body(inputs) up to the layer fc8."""
    del num_classes  # end points are named alike for any number
    with variable_scope(scope, default, [inputs]) as sc:
        collection = sc.name + OUTPUTS
        with arg_scope([convolution2d, fully_connected, max_pool2d], outputs_collections=collection):
            net = body(inputs)
        points = convert_collection_to_dict(collection)
        if squeeze:
            net = array_ops.squeeze(net, [1, 2], name="fc8/squeezed")
            points[sc.name + "/fc8"] = net
        return net, points
