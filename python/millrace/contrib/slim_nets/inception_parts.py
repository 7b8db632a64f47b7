# SPDX-License-Identifier: Apache-2.0
"""What the inception networks are made of: modules of branches side by side, and classifiers."""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Optional, Sequence, Tuple

from millrace.contrib.framework import arg_scope
from millrace.contrib.layers import avg_pool2d, batch_norm, conv2d, dropout, fully_connected, l2_regularizer, max_pool2d, variance_scaling_initializer
from millrace.contrib.slim_nets.end_points import EndPoints, truncated
from millrace.framework.errors import at_user_line
from millrace.framework.graph import GraphKeys
from millrace.ops import array_ops, nn_ops
from millrace.ops.variable_scope import variable_scope


class Widths:
    """Channels scaled by a multiplier, but never below a least number."""

    def __init__(self, multiplier: float, least: int) -> None:
        if multiplier <= 0:
            raise at_user_line(ValueError("depth_multiplier is not greater than zero."))
        self._multiplier, self._least = multiplier, least

    def __call__(self, width: int) -> int:
        return max(int(width * self._multiplier), self._least)


class Step:
    """A convolution or pooling of a branch."""

    def __init__(
        self, scope: str, width: int = 0, size: Any = (1, 1), stride: int = 1, stddev: Optional[float] = None, padding: str = "SAME", pool: Any = None
    ) -> None:
        self.scope, self.width, self.size, self.stride, self.stddev, self.padding, self.pool = scope, width, list(size), stride, stddev, padding, pool

    def __call__(self, net: Any, widths: Widths) -> Any:
        if self.pool is not None:
            return self.pool(net, self.size, stride=self.stride, padding=self.padding, scope=self.scope)
        start = {} if self.stddev is None else {"weights_initializer": truncated(self.stddev)}
        return conv2d(net, widths(self.width), self.size, stride=self.stride, padding=self.padding, scope=self.scope, **start)


def max_pool(scope: str, stride: int = 1, padding: str = "SAME") -> Step:
    """A 3x3 maximum."""
    return Step(scope, size=(3, 3), stride=stride, padding=padding, pool=max_pool2d)


def avg_pool(scope: str) -> Step:
    """A 3x3 mean."""
    return Step(scope, size=(3, 3), pool=avg_pool2d)


def module(net: Any, scope: str, widths: Widths, branches: Sequence[Sequence[Any]]) -> Any:
    """Branches side by side, joined along the channels. Steps in a tuple are side by side within their branch."""
    with variable_scope(scope):
        made = []
        for i, steps in enumerate(branches):
            with variable_scope("Branch_%d" % i):
                branch = net
                for step in steps:
                    branch = array_ops.concat([s(branch, widths) for s in step], 3) if isinstance(step, tuple) else step(branch, widths)
                made.append(branch)
        return array_ops.concat(made, 3)


def kernel_within(net: Any, size: Sequence[int]) -> Any:
    """A kernel that is no larger than the image, where its size is known."""
    shape = net.get_shape().as_list()
    return list(size) if shape[1] is None or shape[2] is None else [min(shape[1], size[0]), min(shape[2], size[1])]


def arguments(
    weight_decay: float = 0.00004,
    use_batch_norm: bool = True,
    batch_norm_decay: float = 0.9997,
    batch_norm_epsilon: float = 0.001,
    batch_norm_var_collection: str = "moving_vars",
    stddev: Optional[float] = None,
    activation_fn: Any = nn_ops.relu,
    batch_norm_updates_collections: Any = GraphKeys.UPDATE_OPS,
) -> Any:
    """The defaults of the layers."""
    kept = {"beta": None, "gamma": None, "moving_mean": [batch_norm_var_collection], "moving_variance": [batch_norm_var_collection]}
    normalization = {
        "decay": batch_norm_decay,
        "epsilon": batch_norm_epsilon,
        "updates_collections": batch_norm_updates_collections,
        "variables_collections": kept,
    }
    start = variance_scaling_initializer() if stddev is None else truncated(stddev)
    with arg_scope([conv2d, fully_connected], weights_regularizer=l2_regularizer(weight_decay)):
        with arg_scope(
            [conv2d],
            weights_initializer=start,
            activation_fn=activation_fn,
            normalizer_fn=batch_norm if use_batch_norm else None,
            normalizer_params=normalization if use_batch_norm else {},
        ) as made:
            return made


def whole(
    inputs: Any,
    base: Callable[[Any, Any], Tuple[Any, EndPoints]],
    head: Callable[[Any, EndPoints], Any],
    is_training: Any,
    prediction_fn: Any,
    reuse: Any,
    scope: Any,
    default: str,
) -> Tuple[Any, EndPoints]:
    """A network with its classifier: (logits, end points)."""
    with variable_scope(scope, default, [inputs], reuse=reuse) as sc, contextlib.ExitStack() as stack:
        stack.enter_context(arg_scope([batch_norm, dropout], is_training=is_training))
        net, points = base(inputs, sc)
        logits = head(net, points)
        points["Logits"] = logits
        if "Predictions" not in points:
            points["Predictions"] = prediction_fn(logits, scope="Predictions")
        return logits, points


def classifier(
    net: Any, points: EndPoints, size: Sequence[int], names: Sequence[str], num_classes: int, keep_prob: float, squeeze: bool, prediction_fn: Any = None
) -> Any:
    """Mean over the image, dropout and a convolution to the classes; with prediction_fn also the predictions, in the same scope."""
    pool, drop, convolution = names
    with variable_scope("Logits"):
        kernel = kernel_within(net, size)
        net = avg_pool2d(net, kernel, stride=1, padding="VALID", scope="%s_%dx%d" % (pool, kernel[0], kernel[1]))
        net = dropout(net, keep_prob=keep_prob, scope=drop)
        points["PreLogits"] = net
        logits = conv2d(net, num_classes, [1, 1], activation_fn=None, normalizer_fn=None, scope=convolution)
        if squeeze:
            logits = array_ops.squeeze(logits, [1, 2], name="SpatialSqueeze")
        if prediction_fn is not None:
            points["Predictions"] = prediction_fn(logits, scope="Predictions")
        return logits
