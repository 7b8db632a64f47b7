# SPDX-License-Identifier: Apache-2.0
"""Neural-network ops: activations, convolution, pooling, normalisation, look-ups, losses of logits."""

from __future__ import annotations

from typing import Any, Optional

import numpy as np

from millrace.framework import dtypes, tensor_shape
from millrace.framework.convert import convert_to_tensor
from millrace.framework.static_values import constant_value
from millrace.framework.errors import InvalidArgumentError, at_user_line
from millrace.framework.graph import Tensor, colocate_with, control_dependencies, name_scope
from millrace.ops import array_ops, check_ops, gen_ops, math_ops, matrix_ops
from millrace.ops.conv_ops import *  # noqa: F403
from millrace.ops.dialects import either, given
from millrace.ops.moments import *  # noqa: F403
from millrace.ops.variables import PartitionedVariable
from millrace.ops.window_ops import *  # noqa: F403
from millrace.ops.window_ops import conv1d  # noqa: F401


# ---- activations ----


def relu(features: Any, name: Optional[str] = None) -> Tensor:
    """max(x, 0) of each element."""
    return gen_ops.relu(features, name=name)


def relu6(features: Any, name: Optional[str] = None) -> Tensor:
    """min(max(x, 0), 6)."""
    return gen_ops.relu6(features, name=name)


def elu(features: Any, name: Optional[str] = None) -> Tensor:
    """x, or exp(x) - 1 below zero."""
    return gen_ops.elu(features, name=name)


def selu(features: Any, name: Optional[str] = None) -> Tensor:
    """The scaled elu that keeps mean and variance."""
    return gen_ops.selu(features, name=name)


def softplus(features: Any, name: Optional[str] = None) -> Tensor:
    """log(1 + exp(x))."""
    return gen_ops.softplus(features, name=name)


def softsign(features: Any, name: Optional[str] = None) -> Tensor:
    """x / (1 + |x|)."""
    return gen_ops.softsign(features, name=name)


def leaky_relu(features: Any, alpha: float = 0.2, name: Optional[str] = None) -> Tensor:
    """x, or alpha x below zero."""
    if isinstance(alpha, Tensor):
        features = convert_to_tensor(features)
        return gen_ops.maximum(alpha * features, features, name=name)
    return gen_ops.leaky_relu(math_ops.cast(features, dtypes.float32) if _is_integer(features) else features, alpha=alpha, name=name)


def _is_integer(x: Any) -> bool:
    return isinstance(x, Tensor) and x.dtype.is_integer


def crelu(features: Any, name: Optional[str] = None, axis: int = -1) -> Tensor:
    """relu of x and of -x, joined."""
    x = convert_to_tensor(features)
    return gen_ops.relu(array_ops.concat([x, -x], axis), name=name)


def swish(features: Any) -> Tensor:
    """x sigmoid(x)."""
    x = convert_to_tensor(features)
    return x * gen_ops.sigmoid(x)


def softmax(logits: Any, axis: Any = None, name: Optional[str] = None, dim: Any = None) -> Tensor:
    """exp(x), scaled so that it sums to one along an axis (the last one unless given)."""
    axis, name = (None, axis) if isinstance(axis, str) else (axis, name)  # the second place was the name in 0.x
    return _along_last(logits, gen_ops.softmax, either("axis", axis, "dim", dim, -1), name)


def log_softmax(logits: Any, axis: Any = None, name: Optional[str] = None, dim: Any = None) -> Tensor:
    """The logarithm of softmax."""
    axis, name = (None, axis) if isinstance(axis, str) else (axis, name)  # the second place was the name in 0.x
    return _along_last(logits, gen_ops.log_softmax, either("axis", axis, "dim", dim, -1), name)


def _along_last(logits: Any, op: Any, axis: Any, name: Optional[str]) -> Tensor:
    logits = convert_to_tensor(logits)
    ndims = logits.get_shape().ndims
    if isinstance(axis, str):
        raise at_user_line(TypeError("axis must be an integer, got %r" % axis))
    if isinstance(axis, Tensor):
        known = constant_value(axis)
        if known is None:
            return _along_axis_of_the_step(logits, op, axis, name)
        axis = int(known)
    if axis == -1 or ndims is not None and axis == ndims - 1:
        return op(logits, name=name)
    if ndims is None:
        return _along_axis_of_the_step(logits, op, convert_to_tensor(axis), name)
    if not -ndims <= axis < ndims:
        raise at_user_line(InvalidArgumentError(None, None, "dim (%d) is out of the input's %d dimensions" % (axis, ndims)))
    order = list(range(ndims))
    order[axis], order[-1] = order[-1], order[axis]
    return array_ops.transpose(op(array_ops.transpose(logits, order)), order, name or "softmax")


def _along_axis_of_the_step(logits: Tensor, op: Any, axis: Tensor, name: Optional[str]) -> Tensor:
    rank = array_ops.rank(logits)
    axis, places = math_ops.cast(axis, dtypes.int32), math_ops.range(rank)
    axis = array_ops.gather(places, array_ops.where(axis < 0, axis + rank, axis))  # where it is out of range, the step fails
    at_axis, at_end = (math_ops.cast(gen_ops.equal(places, i), dtypes.int32) for i in (axis, rank - 1))
    order = places + (at_axis - at_end) * (rank - 1 - axis)  # the two in each other's place
    return array_ops.transpose(op(array_ops.transpose(logits, order)), order, name or "softmax")


# ---- losses of logits ----


def softmax_cross_entropy_with_logits(
    _sentinel: Any = None, labels: Any = None, logits: Any = None, dim: int = -1, name: Optional[str] = None, axis: Any = None, targets: Any = None
) -> Tensor:
    """The cross entropy of class probabilities; nothing flows back into the labels. By position: logits, labels (0.x).

    Shapes: labels and logits [b..., classes] -> [b...].
    Raises: ValueError when their shapes differ.
    """
    if _sentinel is not None and isinstance(logits, int):  # 0.12: (logits, labels, dim, name)
        dim, name, logits = logits, name if dim == -1 else dim, None  # type: ignore[assignment]
    logits, name = _third_is_name(_sentinel, logits, name)
    logits, labels = _logits_and_labels(_sentinel, labels, logits, targets)
    with name_scope(name, "softmax_cross_entropy_with_logits_sg", [logits, labels]) as scope:
        fixed = gen_ops.stop_gradient(labels, name="labels_stop_gradient")
        return _softmax_cross_entropy(fixed, logits, either("axis", axis, "dim", None if dim == -1 else dim, -1), scope)


def softmax_cross_entropy_with_logits_v2(labels: Any, logits: Any, axis: Any = None, name: Optional[str] = None, dim: Any = None) -> Tensor:
    """The cross entropy of class probabilities; gradients flow back into both."""
    logits, labels = _logits_and_labels(None, labels, logits, None)
    return _softmax_cross_entropy(labels, logits, either("axis", axis, "dim", dim, -1), name)


def _third_is_name(first: Any, logits: Any, name: Optional[str]) -> Any:
    """(logits, name): by position the third argument was the name in 0.x."""
    return (None, logits) if first is not None and isinstance(logits, str) else (logits, name)


def _logits_and_labels(first: Any, labels: Any, logits: Any, targets: Any) -> Any:
    if targets is not None:
        labels = targets
    if first is not None:
        # (logits, labels) by position: the second place is the one called `labels`.
        if logits is not None:
            raise at_user_line(ValueError("Both positional and named logits were given: use labels=..., logits=..."))
        logits = first
    if labels is None or logits is None:
        raise at_user_line(ValueError("Both labels and logits must be provided."))
    return logits, labels


def _softmax_cross_entropy(labels: Any, logits: Any, axis: int, name: Optional[str]) -> Tensor:
    with name_scope(name, "softmax_cross_entropy_with_logits", [logits, labels]) as scope:
        logits = convert_to_tensor(logits, name="logits")
        labels = convert_to_tensor(labels, logits.dtype.base_dtype, "labels") if not isinstance(labels, Tensor) else labels
        given, ndims = logits.dtype.base_dtype, logits.get_shape().ndims
        logits = math_ops.cast(logits, dtypes.float32) if given in (dtypes.float16, dtypes.bfloat16) else logits
        labels = math_ops.cast(labels, logits.dtype.base_dtype)
        if ndims is not None and not -ndims <= axis < ndims:
            raise at_user_line(ValueError("axis = %d is out of the %d dimensions of the logits" % (axis, ndims)))
        rank = array_ops.rank(logits)
        if axis != -1:
            moved = [_with_axis_last(x, axis % ndims if ndims is not None else axis, rank) for x in (logits, labels)]
            logits, labels = (logits, labels) if ndims is not None and axis % ndims == ndims - 1 else moved
        shape = array_ops.shape(logits)
        rows = (_as_rows(logits), _as_rows(labels))
        plain = ndims == 2 and labels.get_shape().ndims in (None, 2)  # rows already: TensorFlow's nodes are there, and nobody reads them
        loss = gen_ops.softmax_cross_entropy_with_logits(logits if plain else rows[0], labels if plain else rows[1], name=scope).loss
        result = array_ops.reshape(loss, array_ops.slice(shape, [0], [gen_ops.sub(rank, 1)]))
        result = loss if plain else result
        if ndims is not None:
            result.set_shape(logits.get_shape()[:-1])
        return math_ops.cast(result, given)


def _with_axis_last(x: Tensor, axis: Any, rank: Tensor) -> Tensor:
    """x with an axis behind all others."""
    axis = rank + axis if axis < 0 else axis
    return array_ops.transpose(x, array_ops.concat([math_ops.range(axis), math_ops.range(axis + 1, rank), [axis]], 0))


def _as_rows(x: Tensor) -> Tensor:
    """A matrix whose rows are those of the last axis."""
    rank, static = array_ops.rank(x), x.get_shape()
    last = array_ops.slice(array_ops.shape(x), [gen_ops.sub(rank, 1)], [1])
    made = array_ops.reshape(x, array_ops.concat([[-1], last], 0))
    if static.ndims is not None:
        made.set_shape([None, static[-1].value])
    return made


def sparse_softmax_cross_entropy_with_logits(_sentinel: Any = None, labels: Any = None, logits: Any = None, name: Optional[str] = None) -> Tensor:
    """The cross entropy of class numbers. By position: logits, labels (0.x).

    Shapes: labels [b...] of integers, logits [b..., classes] -> [b...].
    Raises: ValueError when the ranks do not fit; InvalidArgumentError in the step when a label is not in [0, classes).
    """
    logits, name = _third_is_name(_sentinel, logits, name)
    logits, labels = _logits_and_labels(_sentinel, labels, logits, None)
    with name_scope(name, "SparseSoftmaxCrossEntropyWithLogits", [labels, logits]):
        labels, logits = convert_to_tensor(labels), convert_to_tensor(logits)
        if logits.get_shape().ndims == 0:
            raise at_user_line(ValueError("Logits cannot be scalars - received shape %s." % logits.get_shape()))
        if labels.get_shape().ndims is not None and logits.get_shape().ndims is not None and labels.get_shape().ndims != logits.get_shape().ndims - 1:
            raise at_user_line(
                ValueError(
                    "sparse_softmax_cross_entropy_with_logits: Rank mismatch: Rank of labels (received %s) should equal rank of "
                    "logits minus 1 (received %s); the shapes are %s and %s"
                    % (labels.get_shape().ndims, logits.get_shape().ndims, labels.get_shape(), logits.get_shape())
                )
            )
        before = logits.get_shape()[:-1]
        if labels.get_shape().is_fully_defined() and before.is_fully_defined() and labels.get_shape() != before:
            raise at_user_line(
                ValueError(
                    "Shape mismatch: The shape of labels (received %s) should equal the shape of logits except for the last dimension (received %s)."
                    % (labels.get_shape(), logits.get_shape())
                )
            )
        if not labels.dtype.is_integer:
            raise at_user_line(TypeError("sparse_softmax_cross_entropy_with_logits: labels must be integers, got %s" % labels.dtype.name))
        given = logits.dtype.base_dtype
        logits = math_ops.cast(logits, dtypes.float32) if given in (dtypes.float16, dtypes.bfloat16) else logits
        sizes = array_ops.shape(labels)
        if logits.get_shape().ndims == 2:
            return math_ops.cast(gen_ops.sparse_softmax_cross_entropy_with_logits(logits, labels).loss, given)
        static = labels.get_shape()
        checks = []
        if not (static.is_fully_defined() and before.is_fully_defined()):
            checks.append(check_ops.assert_equal(array_ops.shape(labels), array_ops.shape(logits)[:-1]))
        with control_dependencies(checks):
            classes = array_ops.shape(logits)[array_ops.rank(logits) - 1]
            rows = array_ops.reshape(logits, [-1, classes])
            loss = gen_ops.sparse_softmax_cross_entropy_with_logits(rows, array_ops.reshape(labels, [-1])).loss
            result = array_ops.reshape(loss, sizes)
            result.set_shape(static)
            return math_ops.cast(result, given)


def sigmoid_cross_entropy_with_logits(_sentinel: Any = None, labels: Any = None, logits: Any = None, name: Optional[str] = None, targets: Any = None) -> Tensor:
    """The cross entropy of independent probabilities. By position: logits, labels (0.x)."""
    logits, name = _third_is_name(_sentinel, logits, name)
    logits, labels = _logits_and_labels(_sentinel, labels, logits, targets)
    with name_scope(name, "logistic_loss", [logits, labels]) as scope:
        logits = convert_to_tensor(logits, name="logits")
        labels = convert_to_tensor(labels, logits.dtype.base_dtype if not isinstance(labels, Tensor) else None, "labels")
        try:
            labels.get_shape().merge_with(logits.get_shape())
        except ValueError:
            raise at_user_line(
                ValueError(
                    "sigmoid_cross_entropy_with_logits: logits and labels must have the same shape (%s vs %s)" % (logits.get_shape(), labels.get_shape())
                )
            ) from None
        return gen_ops.sigmoid_cross_entropy_with_logits(logits, labels, name=scope)


def weighted_cross_entropy_with_logits(
    labels: Any = None, logits: Any = None, pos_weight: Any = None, name: Optional[str] = None, targets: Any = None
) -> Tensor:
    """sigmoid_cross_entropy_with_logits in which errors on positives count pos_weight times."""
    targets = given("weighted_cross_entropy_with_logits", labels=labels, targets=targets)
    if logits is None or pos_weight is None:
        raise at_user_line(TypeError("weighted_cross_entropy_with_logits() needs logits and pos_weight"))
    with name_scope(name, "logistic_loss", [logits, targets]) as scope:
        logits = convert_to_tensor(logits)
        targets = convert_to_tensor(targets, logits.dtype.base_dtype)
        if not logits.get_shape().is_compatible_with(targets.get_shape()):
            raise at_user_line(ValueError("logits and targets must have the same shape (%s vs %s)" % (logits.get_shape(), targets.get_shape())))
        weight = 1 + (pos_weight - 1) * targets
        return gen_ops.add((1 - targets) * logits, weight * (gen_ops.log1p(gen_ops.exp(-math_ops.abs(logits))) + gen_ops.relu(-logits)), name=scope)


def l2_loss(t: Any, name: Optional[str] = None) -> Tensor:
    """Half the sum of squares."""
    return gen_ops.l2_loss(t, name=name)


def log_poisson_loss(targets: Any, log_input: Any, compute_full_loss: bool = False, name: Optional[str] = None) -> Tensor:
    """The negative log likelihood of counts under a Poisson distribution."""
    log_input, targets = convert_to_tensor(log_input), convert_to_tensor(targets)
    result = gen_ops.exp(log_input) - log_input * targets
    if compute_full_loss:
        stirling = targets * gen_ops.log(targets) - targets + 0.5 * gen_ops.log(2 * np.pi * targets)
        zeros = array_ops.zeros_like(targets)
        inside = gen_ops.logical_and(gen_ops.greater_equal(targets, zeros), gen_ops.less_equal(targets, array_ops.ones_like(targets)))
        result += gen_ops.select(inside, zeros, stirling)
    return array_ops.identity(result, name)


# ---- linear layers ----


def bias_add(value: Any, bias: Any, data_format: Optional[str] = None, name: Optional[str] = None) -> Tensor:
    """A vector added along the channels.

    Shapes: value [b, ..., channels] (or [b, channels, ...] with data_format NCHW), bias [channels] -> the shape of value.
    Raises: ValueError when the sizes differ or the bias is no vector.
    """
    if data_format is not None and not (data_format.startswith("NC") or data_format.startswith("N") and data_format.endswith("C")):
        raise at_user_line(ValueError("data_format must be of the form N...C or NC..., got %r" % (data_format,)))
    layout = "NCHW" if data_format and data_format.startswith("NC") and data_format[-1] != "C" else "NHWC"
    return gen_ops.bias_add(value, bias, data_format=layout, name="BiasAdd" if name is None else name)


def xw_plus_b(x: Any, weights: Any, biases: Any, name: Optional[str] = None) -> Tensor:
    """x weights + biases."""
    with name_scope(name, "xw_plus_b", [x, weights, biases]) as scope:
        return bias_add(matrix_ops.matmul(x, weights), biases, name=scope)


def relu_layer(x: Any, weights: Any, biases: Any, name: Optional[str] = None) -> Tensor:
    """relu(x weights + biases)."""
    with name_scope(name, "relu_layer", [x, weights, biases]) as scope:
        return gen_ops.relu(bias_add(matrix_ops.matmul(x, weights), biases), name=scope)


def dropout(x: Any, keep_prob: Any = None, noise_shape: Any = None, seed: Optional[int] = None, name: Optional[str] = None, rate: Any = None) -> Tensor:
    """Elements set to zero with probability rate (1 - keep_prob), others scaled up. The nodes of the composite Dropout, which has no tensors of rates and shapes."""
    if rate is not None and keep_prob is not None:
        raise at_user_line(ValueError("Cannot specify both 'keep_prob' and 'rate'"))
    if rate is None and keep_prob is None:
        raise at_user_line(ValueError("keep_prob must be given"))
    if rate is None:
        rate = 1 - (convert_to_tensor(keep_prob) if isinstance(keep_prob, (list, tuple)) else keep_prob)
    with name_scope(name, "dropout", [x]):
        x = convert_to_tensor(x, name="x")
        if not x.dtype.is_floating:
            raise at_user_line(ValueError("x has to be a floating point tensor since it's going to be scaled. Got a %s tensor instead." % x.dtype.name))
        if isinstance(rate, (int, float, np.floating)) and not isinstance(rate, bool):
            if not 0 <= rate < 1:
                shown = "rate must be a scalar tensor or a float in the range [0, 1), got %g" % rate
                raise at_user_line(
                    ValueError(shown if keep_prob is None else "keep_prob must be a scalar tensor or a float in the range (0, 1], got %g" % keep_prob)
                )
            if rate == 0:
                return x
            rate = min(float(rate), _BELOW_ONE.get(x.dtype.base_dtype.name, 1.0))
        rate = convert_to_tensor(rate, x.dtype.base_dtype, "rate")
        rate.get_shape().assert_is_compatible_with([])
        if constant_value(rate) == 0:
            return x
        from millrace.ops import random_ops

        drawn = random_ops.random_uniform(_noise_shape(x, noise_shape), dtype=x.dtype, seed=seed)
        scale = 1 / (1 - rate)
        kept = gen_ops.greater_equal(drawn, rate)
        result = gen_ops.mul(gen_ops.mul(x, scale, name="mul"), math_ops.cast(kept, x.dtype.base_dtype), name="mul")
        result.set_shape(x.get_shape())
        return result


_BELOW_ONE = {"bfloat16": 1 - 2.0**-8, "float16": 1 - 2.0**-11, "float32": 1 - 2.0**-24, "float64": 1 - 2.0**-53}  # the largest number that is


def _noise_shape(x: Tensor, given: Any) -> Any:
    """The shape of what dropout draws: that of x, or one in which None stands for a size of x."""
    if given is None:
        return array_ops.shape(x)
    if isinstance(given, Tensor):
        return given
    sizes = [d.value if isinstance(d, tensor_shape.Dimension) else d for d in (given.as_list() if isinstance(given, tensor_shape.TensorShape) else given)]
    known = x.get_shape()
    if known.ndims == len(sizes):
        sizes = [known[i].value if d is None else d for i, d in enumerate(sizes)]
    return [array_ops.shape(x)[i] if d is None else d for i, d in enumerate(sizes)]


# ---- normalisation ----


def batch_normalization(x: Any, mean: Any, variance: Any, offset: Any, scale: Any, variance_epsilon: float, name: Optional[str] = None) -> Tensor:
    """(x - mean) / sqrt(variance + epsilon) scale + offset."""
    with name_scope(name, "batchnorm", [x, mean, variance, scale, offset]):
        factor = gen_ops.rsqrt(convert_to_tensor(variance) + variance_epsilon)
        if scale is not None:
            factor = factor * scale
        x = convert_to_tensor(x)  # narrow ones may have wide moments
        scaled = x * math_ops.cast(factor, x.dtype)
        shift = offset - mean * factor if offset is not None else -mean * factor
        return scaled + math_ops.cast(shift, x.dtype)


def fused_batch_norm(
    x: Any,
    scale: Any,
    offset: Any,
    mean: Any = None,
    variance: Any = None,
    epsilon: float = 0.001,
    data_format: str = "NHWC",
    is_training: bool = True,
    name: Optional[str] = None,
) -> Any:
    """(y, mean, variance): batch normalisation of images, or of volumes, over all but the channels. Scales of narrow images are float32."""
    if is_training and (mean is not None or variance is not None):
        raise at_user_line(ValueError("Both 'mean' and 'variance' must be None if is_training is True."))
    x = convert_to_tensor(x, name="input")
    plain = x.dtype.base_dtype == dtypes.float32 and len(data_format) == 4
    made = (gen_ops.fused_batch_norm if plain else gen_ops.fused_batch_norm_v3)(
        x,
        convert_to_tensor(scale, dtypes.float32, name="scale"),
        convert_to_tensor(offset, dtypes.float32, name="offset"),
        convert_to_tensor([] if mean is None else mean, dtypes.float32),
        convert_to_tensor([] if variance is None else variance, dtypes.float32),
        epsilon=max(epsilon, 1.001e-5),
        data_format=data_format,
        is_training=is_training,
        name=name,
    )
    return made[0], made[1], made[2]


def batch_norm_with_global_normalization(
    t: Any = None,
    m: Any = None,
    v: Any = None,
    beta: Any = None,
    gamma: Any = None,
    variance_epsilon: Any = None,
    scale_after_normalization: Optional[bool] = None,
    name: Optional[str] = None,
    input: Any = None,
    mean: Any = None,
    variance: Any = None,
) -> Tensor:
    """Batch normalisation with the arguments of the old op."""
    t, m, v = (
        given("batch_norm_with_global_normalization", **names) for names in ({"t": t, "input": input}, {"m": m, "mean": mean}, {"v": v, "variance": variance})
    )
    return batch_normalization(t, m, v, beta, gamma if scale_after_normalization else None, variance_epsilon, name)


def lrn(input: Any, depth_radius: int = 5, bias: float = 1.0, alpha: float = 1.0, beta: float = 0.5, name: Optional[str] = None) -> Tensor:
    """Local response normalisation over neighbouring channels."""
    return gen_ops.lrn(input, depth_radius=depth_radius, bias=bias, alpha=alpha, beta=beta, name=name)


local_response_normalization = lrn


def l2_normalize(x: Any, axis: Any = None, epsilon: float = 1e-12, name: Optional[str] = None, dim: Any = None) -> Tensor:
    """Scaled to norm one along axes."""
    axis = either("axis", axis, "dim", dim)
    with name_scope(name, "l2_normalize", [x]) as scope:
        x = convert_to_tensor(x)
        return gen_ops.mul(x, gen_ops.rsqrt(gen_ops.maximum(math_ops.reduce_sum(gen_ops.square(x), axis, True), epsilon)), name=scope)


def zero_fraction(value: Any, name: Optional[str] = None) -> Tensor:
    """The fraction of elements that are zero."""
    with name_scope(name, "zero_fraction", [value]):
        x = convert_to_tensor(value)
        return math_ops.reduce_mean(math_ops.cast(gen_ops.equal(x, math_ops.cast(0, x.dtype.base_dtype)), dtypes.float32))


# ---- ranking ----


def top_k(input: Any, k: Any = 1, sorted: bool = True, name: Optional[str] = None) -> Any:
    """(values, indices) of the k largest elements of the last axis."""
    return gen_ops.top_kv2(input, k, sorted=sorted, name=name)


def in_top_k(predictions: Any, targets: Any, k: Any, name: Optional[str] = None) -> Tensor:
    """Whether each target is among the k largest predictions."""
    if isinstance(k, Tensor):
        return gen_ops.in_top_kv2(predictions, targets, k, name=name)
    return gen_ops.in_top_k(predictions, targets, k, name=name)


# ---- look-ups ----


def embedding_lookup(
    params: Any, ids: Any, partition_strategy: str = "mod", name: Optional[str] = None, validate_indices: bool = True, max_norm: Any = None
) -> Tensor:
    """The rows of tables at ids. Several tables, or the parts of a variable, are one, split by `partition_strategy` (mod or div).

    Shapes: params [rows, d...], ids [i...] -> [i..., d...].
    Raises: InvalidArgumentError in the step when an id is no row; ValueError when there is no table.
    """
    del validate_indices  # an id that is no row is an error in any case
    if isinstance(params, PartitionedVariable):
        params = list(params)
    if not isinstance(params, (list, tuple)):
        params = [params]
    if not params:
        raise at_user_line(ValueError("Need at least one param"))
    with name_scope(name, "embedding_lookup", [ids]) as scope:
        if len(params) == 1:
            table = params[0] if hasattr(params[0], "graph") else convert_to_tensor(params[0], name="params_0")
            ids = convert_to_tensor(ids, name="ids")
            with colocate_with(table):
                rows = array_ops.gather(table, ids, name=scope)
                if max_norm is not None:
                    rows = _clip_rows(rows, ids, max_norm)
            return array_ops.identity(rows)  # which may lie elsewhere
        ids = convert_to_tensor(ids, name="ids")
        tables = [p if hasattr(p, "graph") else convert_to_tensor(p) for p in params]
        flat = array_ops.reshape(ids, [-1])
        count = len(tables)
        positions = gen_ops.range(0, array_ops.size(flat), 1)
        if partition_strategy == "mod":
            table, row = gen_ops.floor_mod(flat, count), gen_ops.floor_div(flat, count)
        elif partition_strategy == "div":
            total = _rows_of_all(tables, flat.dtype)
            each, extras = (total // count, total % count) if isinstance(total, int) else (gen_ops.floor_div(total, count), gen_ops.floor_mod(total, count))
            table = gen_ops.maximum(gen_ops.floor_div(flat, each + 1), gen_ops.floor_div(flat - extras, each))
            in_first = gen_ops.less(table, math_ops.cast(extras, flat.dtype))
            row = gen_ops.select(in_first, gen_ops.floor_mod(flat, each + 1), gen_ops.floor_mod(flat - extras, each))
        else:
            raise at_user_line(ValueError("Unrecognized partition strategy: " + partition_strategy))
        table = math_ops.cast(table, dtypes.int32)
        rows_of = gen_ops.dynamic_partition(row, table, count)
        places = gen_ops.dynamic_partition(positions, table, count)
        parts = []
        for one, wanted in zip(tables, rows_of):
            with colocate_with(one):  # rows travel from the table's task, not the table
                parts.append(array_ops.gather(one, wanted))
        joined = gen_ops.parallel_dynamic_stitch(places, parts, name=scope)
        tail = tables[0].get_shape()[1:]
        if tail.is_fully_defined():
            sizes: Any = tail.as_list()
        else:
            with colocate_with(tables[0]):
                sizes = array_ops.shape(tables[0])[1:]
        result = array_ops.reshape(joined, array_ops.concat([array_ops.shape(ids), sizes], 0))
        result.set_shape(ids.get_shape().concatenate(tail))
        return result if max_norm is None else _clip_rows(result, ids, max_norm)


def _rows_of_all(tables: Any, dtype: Any) -> Any:
    """How many rows tables have together: a number where all are known, else a tensor, of what each table's task counts."""
    sizes = [t.get_shape()[0].value if t.get_shape().ndims is not None else None for t in tables]
    if None not in sizes:
        return sum(sizes)
    counted = []
    for size, table in zip(sizes, tables):
        if size is None:
            with colocate_with(table):
                size = array_ops.shape(table)[0]
        counted.append(math_ops.cast(size, dtype))
    return gen_ops.add_n(counted)


def _clip_rows(rows: Tensor, ids: Any, max_norm: Any) -> Tensor:
    ndims, first = rows.get_shape().ndims, convert_to_tensor(ids).get_shape().ndims
    if ndims is None or first is None:
        return math_ops.clip_by_norm(rows, max_norm, gen_ops.range(array_ops.rank(ids), array_ops.rank(rows), 1))
    return math_ops.clip_by_norm(rows, max_norm, list(range(first, ndims)))


def summable(rows: Tensor) -> Tensor:
    """Rows in a type in which many add up: halves as float32."""
    return math_ops.cast(rows, dtypes.float32) if rows.dtype.base_dtype in (dtypes.float16, dtypes.bfloat16) else rows


def embedding_lookup_sparse(
    params: Any, sp_ids: Any, sp_weights: Any, partition_strategy: str = "mod", name: Optional[str] = None, combiner: Optional[str] = None, max_norm: Any = None
) -> Tensor:
    """For each row of sparse ids, the sum, mean or sqrtn of the rows that they name; of halves in float32."""
    combiner = combiner or "mean"
    if combiner not in ("mean", "sqrtn", "sum"):
        raise at_user_line(ValueError("combiner must be one of 'mean', 'sqrtn' or 'sum'"))
    with name_scope(name, "embedding_lookup_sparse", [sp_ids.values]) as scope:
        segments = math_ops.cast(sp_ids.indices[:, 0], dtypes.int32)
        different, places = gen_ops.unique(sp_ids.values)  # each row is read once, and its gradient is one row
        rows = summable(embedding_lookup(params, different, partition_strategy, max_norm=max_norm))
        if sp_weights is None:
            op = {"sum": gen_ops.sparse_segment_sum, "mean": gen_ops.sparse_segment_mean, "sqrtn": gen_ops.sparse_segment_sqrt_n}[combiner]
            return op(rows, places, segments, name=scope)
        rows = array_ops.gather(rows, places)
        weights = math_ops.cast(sp_weights.values, rows.dtype.base_dtype)
        ones = gen_ops.fill(array_ops.expand_dims(array_ops.rank(rows) - 1, 0), 1)
        spread = array_ops.reshape(weights, array_ops.concat([array_ops.shape(weights), ones], 0))
        ndims = rows.get_shape().ndims
        if ndims is not None:
            spread.set_shape([weights.get_shape()[0].value] + [1] * (ndims - 1))
        if combiner == "sum":
            return gen_ops.segment_sum(rows * spread, segments, name=scope)
        total = gen_ops.segment_sum(rows * spread, segments)
        if combiner == "mean":
            return gen_ops.real_div(total, gen_ops.segment_sum(spread, segments), name=scope)
        return gen_ops.real_div(total, gen_ops.sqrt(gen_ops.segment_sum(gen_ops.pow(spread, 2), segments)), name=scope)
