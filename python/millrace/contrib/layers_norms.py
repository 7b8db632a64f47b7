# SPDX-License-Identifier: Apache-2.0
"""Normalisations of tf.contrib.layers that keep no averages."""

from __future__ import annotations

from typing import Any, Optional, Sequence, Tuple

import numpy as np

from millrace.contrib.framework import add_arg_scope, model_variable
from millrace.contrib.layers_utils import collect_named_outputs, get_variable_collections
from millrace.framework import dtypes, numpy_cast
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import GraphKeys, add_to_collection
from millrace.ops import array_ops, gen_ops, init_ops, matrix_ops, nn_ops
from millrace.ops.gradients import custom_gradient
from millrace.ops.variable_scope import get_variable, variable_scope


def _parameters(inputs: Any, shape: Any, center: bool, scale: bool, initializers: Any, collections: Any, trainable: bool) -> Tuple[Any, Any]:
    """(beta, gamma), None where it is not wanted."""

    def make(name: str, initializer: Any) -> Any:
        return model_variable(
            name,
            shape,
            inputs.dtype.base_dtype,
            initializers.get(name, initializer),
            trainable=trainable,
            collections=get_variable_collections(collections, name),
        )

    return make("beta", init_ops.zeros_initializer()) if center else None, make("gamma", init_ops.ones_initializer()) if scale else None


def _known(inputs: Any) -> Any:
    shape = inputs.get_shape()
    if shape.ndims is None:
        raise at_user_line(ValueError("Inputs %s has undefined rank." % inputs.name))
    return shape


@add_arg_scope
def layer_norm(
    inputs: Any,
    center: bool = True,
    scale: bool = True,
    activation_fn: Any = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    begin_norm_axis: int = 1,
    begin_params_axis: int = -1,
    scope: Any = None,
) -> Any:
    """Normalisation of each example over its elements."""
    with variable_scope(scope, "LayerNorm", [inputs], reuse=reuse) as sc:
        inputs = convert_to_tensor(inputs)
        shape = _known(inputs)
        first = begin_norm_axis if begin_norm_axis >= 0 else shape.ndims + begin_norm_axis
        if begin_params_axis >= shape.ndims or not 0 <= first < shape.ndims:
            raise at_user_line(
                ValueError("begin_params_axis (%d) and begin_norm_axis (%d) must be < rank(inputs) (%d)" % (begin_params_axis, begin_norm_axis, shape.ndims))
            )
        sizes = shape[begin_params_axis:]
        if not sizes.is_fully_defined():
            raise at_user_line(ValueError("Inputs %s: shape(inputs)[%s:] is not fully defined: %s" % (inputs.name, begin_params_axis, shape)))
        beta, gamma = _parameters(inputs, sizes, center, scale, {}, variables_collections, trainable)
        mean, variance = nn_ops.moments(inputs, list(range(first, shape.ndims)), keep_dims=True)
        epsilon = 1e-3 if inputs.dtype.base_dtype == dtypes.float16 else 1e-12  # half precision has no 1e-12
        outputs = nn_ops.batch_normalization(inputs, mean, variance, beta, gamma, epsilon)
        outputs.set_shape(shape)
        return collect_named_outputs(outputs_collections, sc.name, activation_fn(outputs) if activation_fn is not None else outputs)


@add_arg_scope
def instance_norm(
    inputs: Any,
    center: bool = True,
    scale: bool = True,
    epsilon: float = 1e-6,
    activation_fn: Any = None,
    param_initializers: Any = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    data_format: str = "NHWC",
    scope: Optional[Any] = None,
) -> Any:
    """Normalisation of each channel of each example over its places (Ulyanov and others 2016)."""
    inputs = convert_to_tensor(inputs)
    shape = _known(inputs)
    if data_format not in ("NHWC", "NCHW"):
        raise at_user_line(ValueError("data_format has to be either NCHW or NHWC. Got %r" % (data_format,)))
    with variable_scope(scope, "InstanceNorm", [inputs], reuse=reuse) as sc:
        axis = 1 if data_format == "NCHW" else shape.ndims - 1
        size = shape[axis].value
        if size is None:
            raise at_user_line(ValueError("Inputs %s has undefined channels dimension %s." % (inputs.name, shape)))
        beta, gamma = _parameters(inputs, [size], center, scale, param_initializers or {}, variables_collections, trainable)
        if data_format == "NCHW":
            spread = [1, size] + [1] * (shape.ndims - 2)
            beta, gamma = (v if v is None else array_ops.reshape(v, spread) for v in (beta, gamma))
        mean, variance = nn_ops.moments(inputs, [i for i in range(1, shape.ndims) if i != axis], keep_dims=True)
        outputs = nn_ops.batch_normalization(inputs, mean, variance, beta, gamma, epsilon, name="instancenorm")
        return collect_named_outputs(outputs_collections, sc.name, activation_fn(outputs) if activation_fn is not None else outputs)


@add_arg_scope
def group_norm(
    inputs: Any,
    groups: int = 32,
    channels_axis: int = -1,
    reduction_axes: Sequence[int] = (-3, -2),
    center: bool = True,
    scale: bool = True,
    epsilon: float = 1e-6,
    activation_fn: Any = None,
    param_initializers: Any = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
    mean_close_to_zero: bool = False,
) -> Any:
    """Normalisation over groups of channels, and the axes given beside them, of each example (Wu and He 2018)."""
    inputs = convert_to_tensor(inputs)
    shape = _known(inputs)
    ndims = shape.ndims
    axes = [a + ndims if a < 0 else a for a in reduction_axes]
    if channels_axis >= ndims or any(a >= ndims for a in axes):
        raise at_user_line(ValueError("Axis is out of bounds."))
    axis = channels_axis % ndims
    channels = shape[axis].value
    if channels is None:
        raise at_user_line(ValueError("Inputs %s has undefined channel dimension: %d." % (inputs.name, axis)))
    for a in axes:
        if shape[a].value is None:
            raise at_user_line(ValueError("Inputs %s has undefined dimensions %d." % (inputs.name, a)))
        if a == axis:
            raise at_user_line(ValueError("reduction_axis must be mutually exclusive with channels_axis"))
    if groups > channels:
        raise at_user_line(ValueError("Invalid groups %d for %d channels." % (groups, channels)))
    if channels % groups:
        raise at_user_line(ValueError("%d channels is not commensurate with %d groups." % (channels, groups)))
    with variable_scope(scope, "GroupNorm", [inputs], reuse=reuse) as sc:
        sizes, split = array_ops.shape(inputs), [groups, channels // groups]
        wide = array_ops.reshape(inputs, array_ops.concat([sizes[:axis], split, sizes[axis + 1 :]], 0))
        wide.set_shape(shape[:axis].concatenate(split).concatenate(shape[axis + 1 :]))
        parameters = _parameters(inputs, [channels], center, scale, param_initializers or {}, variables_collections, trainable)
        spread = [1] * axis + split + [1] * (ndims - axis - 1)
        beta, gamma = (v if v is None else array_ops.reshape(v, spread) for v in parameters)
        over = [axis + 1, *(a + 1 if a > axis else a for a in axes)]
        if mean_close_to_zero:
            counts, sums, squares, _ = nn_ops.sufficient_statistics(wide, over, keep_dims=True)
            mean, variance = nn_ops.normalize_moments(counts, sums, squares, None)
        else:
            mean, variance = nn_ops.moments(wide, over, keep_dims=True)
        normed = nn_ops.batch_normalization(wide, mean, variance, beta, gamma, epsilon)
        outputs = array_ops.reshape(normed, sizes)
        outputs.set_shape(shape)
        return collect_named_outputs(outputs_collections, sc.name, activation_fn(outputs) if activation_fn is not None else outputs)


@custom_gradient
def _at_least(value: Any, bound: Any) -> Any:
    """max(value, bound), whose gradient also passes where it would raise the value."""

    def gradient(dy: Any) -> Any:
        passes = gen_ops.logical_or(gen_ops.greater_equal(value, bound), gen_ops.less(dy, array_ops.zeros_like(dy)))
        return array_ops.where(passes, dy, array_ops.zeros_like(dy)), None

    return gen_ops.maximum(value, bound), gradient


def gdn(
    inputs: Any,
    inverse: bool = False,
    beta_min: float = 1e-6,
    gamma_init: float = 0.1,
    reparam_offset: float = 2**-18,
    data_format: str = "channels_last",
    activity_regularizer: Any = None,
    trainable: bool = True,
    name: Optional[str] = None,
    reuse: Any = None,
) -> Any:
    """Each channel divided by (or, for the inverse, times) the root of beta plus the squares of all channels times gamma (Balle and others, 2015)."""
    if data_format not in ("channels_last", "channels_first"):
        raise at_user_line(ValueError("Unknown data format: %s" % (data_format,)))
    inputs = convert_to_tensor(inputs)
    shape, last = inputs.get_shape(), data_format == "channels_last"
    if shape.ndims not in (3, 4, 5):
        raise at_user_line(ValueError("gdn takes inputs of rank 3, 4 or 5, got %s" % shape))
    channels = shape[-1 if last else 1].value
    if channels is None:
        raise at_user_line(ValueError("The channel dimension of the inputs to `GDN` must be defined, got %s" % shape))
    pedestal = reparam_offset**2
    with variable_scope(name, "gdn", [inputs], reuse=reuse):
        dtype = inputs.dtype.base_dtype

        def parameter(of: str, sizes: Any, first: Any, smallest: float) -> Any:
            made = get_variable(
                "reparam_" + of, sizes, dtype, lambda *_, **__: array_ops.identity(numpy_cast.cast(np.sqrt(first + pedestal), dtype)), trainable=trainable
            )
            return gen_ops.square(_at_least(made, convert_to_tensor(smallest, dtype))) - pedestal

        beta = parameter("beta", [channels], np.ones(channels), (beta_min + pedestal) ** 0.5)
        gamma = parameter("gamma", [channels, channels], gamma_init * np.eye(channels), reparam_offset)
        order = [0, *range(2, shape.ndims), 1]
        squares = gen_ops.square(inputs if last else array_ops.transpose(inputs, order))
        norm = matrix_ops.tensordot(squares, gamma, [[shape.ndims - 1], [0]]) + beta
        norm = norm if last else array_ops.transpose(norm, [0, shape.ndims - 1, *range(1, shape.ndims - 1)])
        outputs = inputs * (gen_ops.sqrt(norm) if inverse else gen_ops.rsqrt(norm))
        outputs.set_shape(shape)
        if activity_regularizer is not None:
            add_to_collection(GraphKeys.REGULARIZATION_LOSSES, activity_regularizer(outputs))
        return outputs
