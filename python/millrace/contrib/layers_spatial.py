# SPDX-License-Identifier: Apache-2.0
"""Layers of tf.contrib.layers that few models have: of places, of norms, and those of its first versions."""

from __future__ import annotations

import functools
from typing import Any, Optional

from millrace.contrib.framework import add_arg_scope, model_variable
from millrace.contrib.layers_utils import collect_named_outputs, get_variable_collections, last_dimension, two_element_tuple
from millrace.framework import dtypes
from millrace.framework.composite_tensors import SparseTensor
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import GraphKeys, Tensor, add_to_collections, name_scope
from millrace.ops import array_ops, gen_ops, init_ops, math_ops, matrix_ops, nn_ops
from millrace.ops.gradients import custom_gradient
from millrace.ops.sparse_math_ops import sparse_reshape
from millrace.ops.variable_scope import get_variable, variable_scope

_XAVIER = init_ops.VarianceScaling(1.0, "fan_avg", "uniform")


@add_arg_scope
def convolution2d_in_plane(
    inputs: Any,
    kernel_size: Any,
    stride: Any = 1,
    padding: str = "SAME",
    activation_fn: Any = nn_ops.relu,
    normalizer_fn: Any = None,
    normalizer_params: Any = None,
    weights_initializer: Any = _XAVIER,
    weights_regularizer: Any = None,
    biases_initializer: Any = init_ops.zeros_initializer(),
    biases_regularizer: Any = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
) -> Any:
    """Every channel convolved with the same filter."""
    with variable_scope(scope, "ConvInPlane", [inputs], reuse=reuse) as sc:
        inputs = convert_to_tensor(inputs)
        channels = last_dimension(inputs.get_shape(), 4)

        def make(name: str, shape: Any, initializer: Any, regularizer: Any) -> Any:
            return model_variable(
                name, shape, inputs.dtype.base_dtype, initializer, regularizer, trainable, collections=get_variable_collections(variables_collections, name)
            )

        weights = make("weights", list(two_element_tuple(kernel_size)) + [1, 1], weights_initializer, weights_regularizer)
        outputs = nn_ops.depthwise_conv2d(inputs, gen_ops.tile(weights, [1, 1, channels, 1]), [1, *two_element_tuple(stride), 1], padding)
        if normalizer_fn is not None:
            outputs = normalizer_fn(outputs, **(normalizer_params or {}))
        elif biases_initializer is not None:
            outputs = nn_ops.bias_add(outputs, make("biases", [channels], biases_initializer, biases_regularizer))
        return collect_named_outputs(outputs_collections, sc.name, activation_fn(outputs) if activation_fn is not None else outputs)


conv2d_in_plane = convolution2d_in_plane


@add_arg_scope
def spatial_softmax(
    features: Any, temperature: Any = None, name: Optional[str] = None, variables_collections: Any = None, trainable: bool = True, data_format: str = "NHWC"
) -> Tensor:
    """Where each channel is large on the average: places [batch, 2 * channels] from -1 to 1 (Levine and others 2016)."""
    if data_format not in ("NHWC", "NCHW"):
        raise at_user_line(ValueError("data_format has to be either NCHW or NHWC. Got %r" % (data_format,)))
    features = convert_to_tensor(features)
    channels = features.get_shape()[1 if data_format == "NCHW" else 3].value
    if channels is None:
        raise at_user_line(ValueError("The num_channels dimension of the inputs to `spatial_softmax` should be defined. Found `None`."))
    if data_format == "NHWC":
        features = array_ops.transpose(features, [0, 3, 1, 2])
    with variable_scope(name, "spatial_softmax", [features]):
        height, width = array_ops.shape(features)[2], array_ops.shape(features)[3]
        places = array_ops.meshgrid(gen_ops.lin_space(-1.0, 1.0, height), gen_ops.lin_space(-1.0, 1.0, width), indexing="ij")
        if temperature is None:
            temperature = model_variable(
                "temperature",
                [],
                initializer=init_ops.ones_initializer(),
                trainable=trainable,
                collections=get_variable_collections(variables_collections, "temperature"),
            )
        share = nn_ops.softmax(array_ops.reshape(features, array_ops.stack([-1, height * width])) / temperature)
        means = [math_ops.reduce_sum(array_ops.reshape(place, [-1]) * share, [1], True) for place in places]
        made = array_ops.reshape(array_ops.concat(means, 1), [-1, 2 * channels])
        made.set_shape([features.get_shape()[0], 2 * channels])
        return made


def poincare_normalize(x: Any, axis: Any = 1, epsilon: float = 1e-5, name: Optional[str] = None) -> Tensor:
    """Moved into the ball of radius 1 - epsilon where it lies outside (Nickel and Kiela 2017)."""
    with name_scope(name, "poincare_normalize", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        scale = gen_ops.rsqrt(math_ops.reduce_sum(gen_ops.square(x), axis, True))
        return gen_ops.mul(x, gen_ops.minimum((1.0 - epsilon) * scale, 1.0), name=scope)


def scale_gradient(inputs: Any, gradient_multiplier: Any) -> Any:
    """The inputs, whose gradient is multiplied."""

    @custom_gradient
    def scaled(x: Any) -> Any:
        return array_ops.identity(x), lambda gradient: gradient * gradient_multiplier

    return scaled(inputs)


def _flattened(inputs: Any, new_rank: int) -> Any:
    if isinstance(inputs, SparseTensor):
        rank = inputs.dense_shape.get_shape()[0].value
        if rank is None or rank < new_rank:
            raise at_user_line(ValueError("Inputs has rank less than new_rank: %s must have rank at least %s, got %s" % (inputs, new_rank, rank)))
        sizes = inputs.dense_shape
        return sparse_reshape(inputs, array_ops.concat([sizes[: new_rank - 1], [math_ops.reduce_prod(sizes[new_rank - 1 :])]], 0))
    inputs = convert_to_tensor(inputs)
    known = inputs.get_shape()
    if known.ndims is not None and known.ndims < new_rank:
        raise at_user_line(ValueError("inputs has rank less than new_rank: %s must have rank at least %s" % (inputs, new_rank)))
    outputs = array_ops.reshape(inputs, array_ops.concat([array_ops.shape(inputs)[: new_rank - 1], [-1]], 0))
    if known.ndims is not None:
        outputs.set_shape(known[: new_rank - 1].concatenate([known[new_rank - 1 :].num_elements()]))
    return outputs


@add_arg_scope
def _inner_flatten(inputs: Any, new_rank: int, output_collections: Any = None, scope: Any = None) -> Any:
    """The last dimensions as one, so that new_rank are left."""
    with name_scope(scope, "InnerFlatten") as sc:
        return collect_named_outputs(output_collections, sc, _flattened(inputs, new_rank))


@add_arg_scope
def legacy_fully_connected(
    x: Any,
    num_output_units: int,
    activation_fn: Any = None,
    weight_init: Any = _XAVIER,
    bias_init: Any = init_ops.zeros_initializer(),
    name: Optional[str] = None,
    weight_collections: Any = (GraphKeys.WEIGHTS,),
    bias_collections: Any = (GraphKeys.BIASES,),
    output_collections: Any = (GraphKeys.ACTIVATIONS,),
    trainable: bool = True,
    weight_regularizer: Any = None,
    bias_regularizer: Any = None,
) -> Any:
    """activation(x weights + bias) along the last dimension, with the arguments and variables of 0.x."""
    with variable_scope(name, "fully_connected", [x]):
        x = convert_to_tensor(x)
        shape = x.get_shape()
        if shape.ndims is None:
            raise at_user_line(ValueError("dims of x must be known but is None"))
        if shape.ndims < 2:
            raise at_user_line(ValueError("rank of x must be at least 2 not: %d" % shape.ndims))
        width = shape[-1].value
        if width is None:
            raise at_user_line(ValueError("last dimension of x must be known but is None"))

        def make(of: str, sizes: Any, initializer: Any, collections: Any, regularizer: Any) -> Any:
            return get_variable(
                of, sizes, x.dtype.base_dtype, initializer, regularizer, trainable, list(dict.fromkeys([*(collections or ()), GraphKeys.GLOBAL_VARIABLES]))
            )

        weights = make("weights", [width, num_output_units], weight_init, weight_collections, weight_regularizer)
        y = matrix_ops.matmul(x if shape.ndims == 2 else array_ops.reshape(x, [-1, width]), weights)
        if bias_init is not None:
            y = nn_ops.bias_add(y, make("bias", [num_output_units], bias_init, bias_collections, bias_regularizer))
        if shape.ndims > 2:
            y = array_ops.reshape(y, array_ops.concat([array_ops.shape(x)[:-1], [num_output_units]], 0))
            y.set_shape(shape[:-1].concatenate([num_output_units]))
        y = activation_fn(y) if activation_fn is not None else y
        add_to_collections(list(output_collections or ()), y)
        return y


legacy_linear = functools.partial(legacy_fully_connected, activation_fn=None)
legacy_relu = functools.partial(legacy_fully_connected, activation_fn=nn_ops.relu)


@add_arg_scope
def images_to_sequence(inputs: Any, data_format: str = "NHWC", outputs_collections: Any = None, scope: Any = None) -> Tensor:
    """The columns of images, for a recurrent network along their width: [width, batch * height, depth]."""
    if data_format not in ("NCHW", "NHWC"):
        raise at_user_line(ValueError("data_format has to be either NCHW or NHWC."))
    with name_scope(scope, "ImagesToSequence", [inputs]) as sc:
        inputs = convert_to_tensor(inputs)
        columns = array_ops.transpose(inputs, [3, 0, 2, 1] if data_format == "NCHW" else [2, 0, 1, 3])
        width, batch, height, depth = columns.get_shape().as_list()
        sizes = array_ops.shape(columns)
        made = array_ops.reshape(columns, array_ops.stack([sizes[0], sizes[1] * sizes[2], sizes[3]]))
        made.set_shape([width, None if batch is None or height is None else batch * height, depth])
        return collect_named_outputs(outputs_collections, sc, made)


@add_arg_scope
def sequence_to_images(inputs: Any, height: Any, output_data_format: str = "channels_last", outputs_collections: Any = None, scope: Any = None) -> Tensor:
    """Images of a height of what images_to_sequence made of them."""
    with name_scope(scope, "SequenceToImages", [inputs]) as sc:
        inputs = convert_to_tensor(inputs)
        width, rows, depth = inputs.get_shape().as_list()
        parted = array_ops.reshape(inputs, [width, -1 if rows is None else rows // height, height, depth])
        order = [1, 3, 2, 0] if output_data_format == "channels_first" else [1, 2, 0, 3]
        return collect_named_outputs(outputs_collections, sc, array_ops.transpose(parted, order))


@add_arg_scope
def dense_to_sparse(tensor: Any, eos_token: Any = 0, outputs_collections: Any = None, scope: Any = None) -> SparseTensor:
    """A sparse tensor of the elements that are no eos_token."""
    with variable_scope(scope, "dense_to_sparse", [tensor]) as sc:
        tensor = convert_to_tensor(tensor)
        places = array_ops.where(gen_ops.not_equal(tensor, math_ops.cast(eos_token, tensor.dtype)))
        made = SparseTensor(places, gen_ops.gather_nd(tensor, places), array_ops.shape(tensor, out_type=dtypes.int64))
        return collect_named_outputs(outputs_collections, sc.name, made)
