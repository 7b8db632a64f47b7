# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.contrib.layers: layers as functions, with regularizers, normalizers and argument scopes."""

from __future__ import annotations

import functools
import math
from typing import Any, Callable, Optional

from millrace import names as _names
from millrace.framework import not_provided as _not_provided
from millrace.layers import scoped as _layers
from millrace.layers.utils import normalize_tuple
from millrace.contrib import layers_utils
from millrace.contrib import layers_utils as utils
from millrace.contrib.layers_encoders import bow_encoder, embed_sequence, embedding_lookup_unique  # noqa: F401
from millrace.contrib.layers_memory import recompute_grad  # noqa: F401
from millrace.contrib.layers_reversible import RevBlock, rev_block  # noqa: F401
from millrace.contrib.layers_norms import gdn, group_norm, instance_norm, layer_norm  # noqa: F401
from millrace.contrib.layers_regularizers import (  # noqa: F401
    apply_regularization,
    l1_l2_regularizer,
    l1_regularizer,
    l2_regularizer,
    sum_regularizer,
)
from millrace.contrib.layers_summaries import (  # noqa: F401
    summarize_activation,
    summarize_activations,
    summarize_biases,
    summarize_collection,
    summarize_tensor,
    summarize_tensors,
    summarize_variables,
    summarize_weights,
)
from millrace.contrib.layers_spatial import (  # noqa: F401
    dense_to_sparse,
    images_to_sequence,
    sequence_to_images,
    _inner_flatten,
    conv2d_in_plane,
    convolution2d_in_plane,
    legacy_fully_connected,
    legacy_linear,
    legacy_relu,
    poincare_normalize,
    scale_gradient,
    spatial_softmax,
)
from millrace.contrib.layers_scattered import (  # noqa: F401
    _sampled_scattered_embedding_lookup,
    _sampled_scattered_embedding_lookup_sparse,
    embedding_lookup_sparse_with_distributed_aggregation,
    scattered_embedding_lookup,
    scattered_embedding_lookup_sparse,
)
from millrace.contrib.layers_sparse import SPARSE_FEATURE_CROSS_DEFAULT_HASH_KEY, dense_to_sparse_tensor  # noqa: F401
from millrace.contrib.layers_targets import binary_svm_target, multi_class_target, regression_target  # noqa: F401
from millrace.contrib.layers_training import OPTIMIZER_CLS_NAMES, OPTIMIZER_SUMMARIES, adaptive_clipping_fn, optimize_loss  # noqa: F401
from millrace.contrib.layers_embedding import safe_embedding_lookup_sparse  # noqa: F401
from millrace.contrib.feature_columns import (  # noqa: F401
    bucketized_column,
    check_feature_columns,
    create_feature_spec_for_parsing,
    crossed_column,
    embedding_column,
    infer_real_valued_columns,
    input_from_feature_columns,
    joint_weighted_sum_from_feature_columns,
    make_place_holder_tensors_for_base_features,
    one_hot_column,
    parse_feature_columns_from_examples,
    parse_feature_columns_from_sequence_examples,
    real_valued_column,
    scattered_embedding_column,
    sequence_input_from_feature_columns,
    shared_embedding_columns,
    sparse_column_with_hash_bucket,
    sparse_column_with_integerized_feature,
    sparse_column_with_keys,
    sparse_column_with_vocabulary_file,
    transform_features,
    weighted_sparse_column,
    weighted_sum_from_feature_columns,
)
from millrace.contrib.framework import add_arg_scope, arg_scope_of, model_variable
from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import GraphKeys, add_to_collection, add_to_collections, control_dependencies, get_collection, name_scope
from millrace.framework.graph import device as device_scope
from millrace.framework.unique_names import snake
from millrace.ops import array_ops, control_flow_ops, gen_ops, init_ops, math_ops, nn_ops, random_ops
from millrace.ops.variable_scope import get_variable, get_variable_scope, variable_scope
from millrace.ops.variables import PartitionedVariable, assign, assign_sub


# What arguments were called up to 0.8, when layers had no activation unless they were given one.
_FIRST_NAMES = {
    "num_output_channels": "num_outputs",
    "num_output_units": "num_outputs",
    "weight_init": "weights_initializer",
    "bias_init": "biases_initializer",
    "weight_regularizer": "weights_regularizer",
    "bias_regularizer": "biases_regularizer",
    "output_collections": "outputs_collections",
    "name": "scope",
}


def _with_first_names(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not _FIRST_NAMES.keys().isdisjoint(kwargs):
            first = "num_output_channels" in kwargs or "num_output_units" in kwargs
            kwargs = {_FIRST_NAMES.get(key, key): value for key, value in kwargs.items()}
            if first:
                kwargs.setdefault("activation_fn", None)
        return function(*args, **kwargs)

    return call


# ---- initializers ----


def xavier_initializer(uniform: bool = True, seed: Optional[int] = None, dtype: Any = dtypes.float32) -> Any:
    """Glorot and Bengio's initializer."""
    return variance_scaling_initializer(1.0, "FAN_AVG", uniform, seed, dtype)


xavier_initializer_conv2d = xavier_initializer


def variance_scaling_initializer(
    factor: float = 2.0, mode: str = "FAN_IN", uniform: bool = False, seed: Optional[int] = None, dtype: Any = dtypes.float32
) -> Any:
    """An initializer scaled by the number of inputs or outputs."""
    if not dtypes.as_dtype(dtype).is_floating:
        raise at_user_line(TypeError("Cannot create initializer for non-floating point type %s." % dtypes.as_dtype(dtype).name))
    if mode not in ("FAN_IN", "FAN_OUT", "FAN_AVG"):
        raise at_user_line(TypeError("Unknown mode %s: it has to be FAN_IN, FAN_OUT or FAN_AVG" % mode))
    return _Scaling(factor, mode.lower(), "uniform" if uniform else "truncated_normal", seed, dtype)


class _Scaling(init_ops.VarianceScaling):
    """Of a part of a variable, the part's own numbers count."""

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
        if dtype is not None and not dtypes.as_dtype(dtype).is_floating:
            raise at_user_line(TypeError("Cannot create initializer for non-floating point type %s." % dtypes.as_dtype(dtype).name))
        if self.distribution == "uniform":
            return super().__call__(shape, dtype)
        fan_in, fan_out = init_ops._compute_fans(shape)
        count = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2.0}[self.mode]
        stddev = math.sqrt(1.3 * self.scale / count)  # what truncation takes away, as TensorFlow rounds it here
        return random_ops.truncated_normal(shape, 0.0, stddev, dtype or self.dtype, self.seed)


# ---- layers ----


def _collect(outputs: Any, collections: Any, scope: Optional[str] = None) -> Any:
    """Into collections, under the name of the scope that the layer has opened."""
    return layers_utils.collect_named_outputs(collections, scope or get_variable_scope().name, outputs) if collections else outputs


def _normalized(outputs: Any, normalizer_fn: Any, normalizer_params: Any, activation_fn: Any) -> Any:
    if normalizer_fn is not None:
        outputs = normalizer_fn(outputs, **(normalizer_params or {}))
    return activation_fn(outputs) if activation_fn is not None else outputs


def _channels(data_format: str, allowed: Any = ("NHWC", "NCHW")) -> str:
    """Where the channels are, as tf.layers calls it; refuses other formats than those allowed."""
    if data_format not in allowed:
        raise at_user_line(ValueError("data_format has to be either %s. Got %r" % (" or ".join(sorted(allowed)), data_format)))
    return "channels_first" if data_format.startswith("NC") else "channels_last"


def _variables_of(layer: Any, collections: Any) -> None:
    for v in (part for w in layer.weights for part in (w if isinstance(w, PartitionedVariable) else [w])):
        if v not in get_collection(GraphKeys.MODEL_VARIABLES):
            add_to_collection(GraphKeys.MODEL_VARIABLES, v)
        info = v._get_save_slice_info()
        name = (info.full_name if info is not None else v.op.name).rsplit("/", 1)[-1]
        kind = "weights" if name.endswith("weights") else name
        chosen = collections.get(kind) if isinstance(collections, dict) else collections
        if chosen:
            add_to_collections(chosen, v)


_NAMES = {"kernel": "weights", "bias": "biases", "depthwise_kernel": "depthwise_weights", "pointwise_kernel": "pointwise_weights"}


def _renamed(getter: Any, name: str, *args: Any, **kwargs: Any) -> Any:
    scope, slash, last = name.rpartition("/")
    name = scope + slash + _NAMES.get(last, last)
    with device_scope(arg_scope_of(model_variable).get("device") or ""):
        return getter(name, *args, **kwargs)


@add_arg_scope
@_with_first_names
def fully_connected(
    inputs: Any,
    num_outputs: int,
    activation_fn: Any = nn_ops.relu,
    normalizer_fn: Any = None,
    normalizer_params: Any = None,
    weights_initializer: Any = xavier_initializer(),
    weights_regularizer: Any = None,
    biases_initializer: Any = init_ops.zeros_initializer(),
    biases_regularizer: Any = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
) -> Any:
    """activation(inputs weights + biases)."""
    if not isinstance(num_outputs, int) and not hasattr(num_outputs, "__index__"):
        raise at_user_line(ValueError("num_outputs should be int or long, got %s." % (num_outputs,)))
    with variable_scope(scope, "fully_connected", [inputs], reuse=reuse, custom_getter=_renamed) as sc:
        layer = _layers.Dense(
            int(num_outputs),
            use_bias=normalizer_fn is None and biases_initializer is not None,
            kernel_initializer=weights_initializer,
            bias_initializer=biases_initializer,
            kernel_regularizer=weights_regularizer,
            bias_regularizer=biases_regularizer,
            trainable=trainable,
            name=sc.name,
            _scope=sc,
            _reuse=reuse,
        )
        outputs = layer(convert_to_tensor(inputs))
        _variables_of(layer, variables_collections)
        return _collect(_normalized(outputs, normalizer_fn, normalizer_params, activation_fn), outputs_collections)


linear, relu, relu6, elu = (functools.partial(fully_connected, activation_fn=f) for f in (None, nn_ops.relu, nn_ops.relu6, nn_ops.elu))


def _check_rank(inputs: Any, ranks: Any) -> None:
    """ValueError for images of a rank that is known and none of those."""
    rank = inputs.get_shape().ndims
    if ranks and rank is not None and rank not in ranks:
        raise at_user_line(ValueError("Convolution expects input with rank %d, got %d" % (ranks[0], rank)))


def _convolve(
    inputs: Any,
    num_outputs: int,
    kernel_size: Any,
    stride: Any = 1,
    padding: str = "SAME",
    data_format: Any = None,
    rate: Any = 1,
    activation_fn: Any = nn_ops.relu,
    normalizer_fn: Any = None,
    normalizer_params: Any = None,
    weights_initializer: Any = xavier_initializer(),
    weights_regularizer: Any = None,
    biases_initializer: Any = init_ops.zeros_initializer(),
    biases_regularizer: Any = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
    conv_dims: Optional[int] = None,
) -> Any:
    """A convolution along one, two or three dimensions, as the rank of the inputs says, or along conv_dims dimensions and no others."""
    if data_format not in (None, "NWC", "NCW", "NHWC", "NCHW", "NDHWC", "NCDHW"):
        raise at_user_line(ValueError("Invalid data_format: %r" % (data_format,)))
    inputs = convert_to_tensor(inputs)
    _check_rank(inputs, () if conv_dims is None else (conv_dims + 2,))
    kind = {3: _layers.Conv1D, 5: _layers.Conv3D}.get(inputs.get_shape().ndims, _layers.Conv2D)
    with variable_scope(scope, "Conv", [inputs], reuse=reuse, custom_getter=_renamed) as sc:
        layer = kind(
            num_outputs,
            kernel_size,
            stride,
            padding,
            "channels_first" if str(data_format).startswith("NC") else "channels_last",
            rate,
            use_bias=normalizer_fn is None and biases_initializer is not None,
            kernel_initializer=weights_initializer,
            bias_initializer=biases_initializer,
            kernel_regularizer=weights_regularizer,
            bias_regularizer=biases_regularizer,
            trainable=trainable,
            name=sc.name,
            _scope=sc,
            _reuse=reuse,
        )
        outputs = layer(inputs)
        _variables_of(layer, variables_collections)
        return _collect(_normalized(outputs, normalizer_fn, normalizer_params, activation_fn), outputs_collections)


def _convolution(name: str, dimensions: Optional[int] = None) -> Any:
    """The layer under a name, which scopes of arguments know it by, for images of so many dimensions. That for two takes sequences as well, as it
    did before 1.5, whose programs expect it."""
    ranks = () if dimensions is None else {2: (4, 3)}.get(dimensions, (dimensions + 2,))

    @functools.wraps(_convolve)
    def call(inputs: Any, *args: Any, **kwargs: Any) -> Any:
        inputs = convert_to_tensor(inputs)
        _check_rank(inputs, ranks)
        return _convolve(inputs, *args, **kwargs)

    call.__name__ = call.__qualname__ = name
    return add_arg_scope(_with_first_names(call))


@add_arg_scope
def maxout(inputs: Any, num_units: int, axis: int = -1, scope: Any = None, name: Optional[str] = None) -> Any:
    """The largest of each group of features along an axis, so that num_units are left. `name`, as up to 1.4, is another word for `scope`."""
    with variable_scope(name if scope is None else scope, "MaxOut", [inputs]):
        return _layers.MaxOut(num_units, axis).call(convert_to_tensor(inputs))


convolution = _convolution("convolution")
conv1d = convolution1d = _convolution("convolution1d", 1)
conv2d = convolution2d = _convolution("convolution2d", 2)
conv3d = convolution3d = _convolution("convolution3d", 3)


def _transposed(name: str, kind: Any, default: str, formats: Any, doc: str) -> Any:
    def function(
        inputs: Any,
        num_outputs: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: str = "SAME",
        data_format: str = formats[0],
        activation_fn: Any = nn_ops.relu,
        normalizer_fn: Any = None,
        normalizer_params: Any = None,
        weights_initializer: Any = xavier_initializer(),
        weights_regularizer: Any = None,
        biases_initializer: Any = init_ops.zeros_initializer(),
        biases_regularizer: Any = None,
        reuse: Any = None,
        variables_collections: Any = None,
        outputs_collections: Any = None,
        trainable: bool = True,
        scope: Any = None,
    ) -> Any:
        with variable_scope(scope, default, [inputs], reuse=reuse, custom_getter=_renamed) as sc:
            layer = kind(
                num_outputs,
                kernel_size,
                stride,
                padding,
                _channels(data_format, formats),
                use_bias=normalizer_fn is None and biases_initializer is not None,
                kernel_initializer=weights_initializer,
                bias_initializer=biases_initializer,
                kernel_regularizer=weights_regularizer,
                bias_regularizer=biases_regularizer,
                trainable=trainable,
                name=sc.name,
                _scope=sc,
                _reuse=reuse,
            )
            outputs = layer(convert_to_tensor(inputs))
            _variables_of(layer, variables_collections)
            return _collect(_normalized(outputs, normalizer_fn, normalizer_params, activation_fn), outputs_collections)

    function.__name__, function.__qualname__, function.__doc__ = name, name, doc
    return add_arg_scope(function)


convolution2d_transpose = conv2d_transpose = _transposed(
    "convolution2d_transpose", _layers.Conv2DTranspose, "Conv2d_transpose", ("NHWC", "NCHW"), "The transpose of a convolution of images."
)
convolution3d_transpose = conv3d_transpose = _transposed(
    "convolution3d_transpose", _layers.Conv3DTranspose, "Conv3d_transpose", ("NDHWC", "NCDHW"), "The transpose of a convolution of volumes."
)


@add_arg_scope
def separable_convolution2d(
    inputs: Any,
    num_outputs: Any,
    kernel_size: Any,
    depth_multiplier: int = 1,
    stride: Any = 1,
    padding: str = "SAME",
    data_format: str = "NHWC",
    rate: Any = 1,
    activation_fn: Any = nn_ops.relu,
    normalizer_fn: Any = None,
    normalizer_params: Any = None,
    weights_initializer: Any = xavier_initializer(),
    pointwise_initializer: Any = None,
    weights_regularizer: Any = None,
    biases_initializer: Any = init_ops.zeros_initializer(),
    biases_regularizer: Any = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
) -> Any:
    """A convolution of each channel alone, then (unless num_outputs is None) a 1x1 convolution."""
    with variable_scope(scope, "SeparableConv2d", [inputs], reuse=reuse, custom_getter=_renamed) as sc:
        inputs = convert_to_tensor(inputs)
        use_bias = normalizer_fn is None and biases_initializer is not None
        if num_outputs is not None:
            layer = _layers.SeparableConv2D(
                num_outputs,
                kernel_size,
                stride,
                padding,
                _channels(data_format),
                dilation_rate=rate,
                depth_multiplier=depth_multiplier,
                use_bias=use_bias,
                depthwise_initializer=weights_initializer,
                pointwise_initializer=weights_initializer if pointwise_initializer is None else pointwise_initializer,
                depthwise_regularizer=weights_regularizer,
                pointwise_regularizer=weights_regularizer,
                bias_initializer=biases_initializer,
                trainable=trainable,
                name=sc.name,
                _scope=sc,
                _reuse=reuse,
            )
            outputs = layer(inputs)
            _variables_of(layer, variables_collections)
        else:
            size = normalize_tuple(kernel_size, 2, "kernel_size")
            step = normalize_tuple(stride, 2, "stride")
            first = _channels(data_format) == "channels_first"
            channels = inputs.get_shape()[1 if first else -1].value
            weights = model_variable(
                "depthwise_weights", size + (channels, depth_multiplier), inputs.dtype.base_dtype, weights_initializer, weights_regularizer, trainable
            )
            outputs = nn_ops.depthwise_conv2d(
                inputs, weights, (1, 1) + step if first else (1,) + step + (1,), padding, list(normalize_tuple(rate, 2, "rate")), data_format=data_format
            )
            if use_bias:
                biases = model_variable("biases", [channels * depth_multiplier], inputs.dtype.base_dtype, biases_initializer, biases_regularizer, trainable)
                outputs = nn_ops.bias_add(outputs, biases, data_format=data_format)
        return _collect(_normalized(outputs, normalizer_fn, normalizer_params, activation_fn), outputs_collections)


separable_conv2d = separable_convolution2d


@add_arg_scope
def batch_norm(
    inputs: Any,
    decay: float = 0.999,
    center: bool = True,
    scale: bool = False,
    epsilon: float = 0.001,
    activation_fn: Any = None,
    param_initializers: Any = None,
    param_regularizers: Any = None,
    updates_collections: Any = GraphKeys.UPDATE_OPS,
    is_training: Any = True,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    batch_weights: Any = None,
    fused: Any = None,
    data_format: str = "NHWC",
    zero_debias_moving_mean: bool = False,
    scope: Any = None,
    renorm: bool = False,
    renorm_clipping: Any = None,
    renorm_decay: float = 0.99,
    adjustment: Any = None,
) -> Any:
    """Normalisation by the statistics of the batch while training, by their moving averages otherwise."""
    if batch_weights is not None:
        raise NotImplementedError("batch_norm with batch_weights is not provided: leave it out.")
    if renorm and zero_debias_moving_mean:
        raise at_user_line(ValueError("renorm is not supported with batch_weights, updates_collections or zero_debias_moving_mean"))
    initializers, regularizers = param_initializers or {}, param_regularizers or {}
    inputs = convert_to_tensor(inputs)
    channels = inputs.get_shape()[1 if _channels(data_format) == "channels_first" else -1] if inputs.get_shape().ndims else None
    if channels is not None and channels.value is None:
        raise at_user_line(ValueError("Inputs %s has undefined channels dimension" % inputs.name))
    with variable_scope(scope, "BatchNorm", [inputs], reuse=reuse, custom_getter=_renamed) as sc:
        layer = _Normalization(
            axis=1 if _channels(data_format) == "channels_first" else -1,
            momentum=decay,
            epsilon=epsilon,
            center=center,
            scale=scale,
            beta_initializer=initializers.get("beta", init_ops.zeros_initializer()),
            gamma_initializer=initializers.get("gamma", init_ops.ones_initializer()),
            moving_mean_initializer=initializers.get("moving_mean", init_ops.zeros_initializer()),
            moving_variance_initializer=initializers.get("moving_variance", init_ops.ones_initializer()),
            beta_regularizer=regularizers.get("beta"),
            gamma_regularizer=regularizers.get("gamma"),
            fused=fused,
            renorm=renorm,
            renorm_clipping=renorm_clipping,
            renorm_momentum=renorm_decay,
            adjustment=adjustment,
            trainable=trainable,
            name=sc.name,
            _scope=sc,
            _reuse=reuse,
        )
        flat = fused is not False and not renorm and adjustment is None and inputs.get_shape().ndims == 2
        layer.collection, layer.zero_debias = updates_collections, zero_debias_moving_mean
        layer.stateful = flat or zero_debias_moving_mean or updates_collections != GraphKeys.UPDATE_OPS
        if flat:  # as an image of one pixel: the variance is that of a sample
            size = inputs.get_shape()[1].value
            image = [-1, size, 1, 1] if layer.axis == 1 else [-1, 1, 1, size]
            outputs = array_ops.reshape(layer(array_ops.reshape(inputs, image), training=is_training), array_ops.shape(inputs))
            outputs.set_shape(inputs.get_shape())
        else:
            outputs = layer(inputs, training=is_training)
        _variables_of(layer, variables_collections)
        if updates_collections is None and layer.updates:
            outputs = control_flow_ops.with_dependencies(layer.updates, outputs)
        return _collect(activation_fn(outputs) if activation_fn is not None else outputs, outputs_collections)


class _Normalization(_layers.BatchNormalization):
    """Its updates go to a collection of the caller's choice. What 1.15 does not leave to the layer of tf.layers is `stateful`: averages move though
    it is not trained, updates are values, and the offset comes before the scale."""

    collection: Any = GraphKeys.UPDATE_OPS
    zero_debias = False

    def _add_scale_and_offset(self, shape: Any, dtype: Any) -> None:
        for add in (self._add_offset, self._add_scale) if self.stateful else (self._add_scale, self._add_offset):
            add(shape, dtype)

    def _share_kept(self, training: Any) -> Any:
        return None if self.stateful else super()._share_kept(training)

    def _update_averages(self, inputs: Any, training: Any, mean: Any, variance: Any, kept: Any = None) -> None:
        if not self.zero_debias or training is False:
            super()._update_averages(inputs, training, mean, variance, kept)
            return
        now = 1.0 if isinstance(training, (bool, int)) else math_ops.cast(training, self.moving_mean.dtype.base_dtype)  # 0: nothing changes
        for average, value in ((self.moving_mean, mean), (self.moving_variance, variance)):
            rate, value = now * (1.0 - self.momentum), math_ops.cast(value, average.dtype.base_dtype)
            with name_scope("AssignMovingAvg") as scope:
                if average is self.moving_mean:
                    self.add_update(assign(average, self._debiased(average, value, rate, now), name=scope))
                else:
                    self.add_update(assign_sub(average, (average - value) * rate, name=scope))

    def _debiased(self, average: Any, value: Any, rate: Any, now: Any) -> Any:
        """The average of values alone: what it began with does not count."""
        dtype = average.dtype.base_dtype
        make = get_variable if self.fused else model_variable  # as in TensorFlow
        with variable_scope(average.op.name):
            biased, steps = (
                make(name, shape=shape, dtype=dtype, initializer=init_ops.zeros_initializer(), trainable=False)
                for name, shape in (("biased", average.get_shape()), ("local_step", []))
            )
        with control_dependencies([biased.assign_sub((biased - value) * rate), steps.assign_add(now)]):
            count = steps.read_value()
            share, began = 1.0 - gen_ops.pow(math_ops.cast(self.momentum, dtype), count), math_ops.cast(gen_ops.greater(count, 0.0), dtype)
            return gen_ops.div_no_nan(biased.read_value(), share) * began + average.read_value() * (1.0 - began)

    def add_update(self, updates: Any, inputs: Any = None) -> None:
        """Adds operations that are to be run with each training step."""
        del inputs  # the graph tells
        for update in self._note_updates(updates) if self.trainable or self.stateful else ():
            if self.collection is not None:
                add_to_collections(self.collection, update.outputs[0] if self.stateful and getattr(update, "outputs", None) else update)


@add_arg_scope
def bias_add(
    inputs: Any,
    activation_fn: Any = None,
    initializer: Any = init_ops.zeros_initializer(),
    regularizer: Any = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    data_format: str = "NHWC",
    scope: Any = None,
) -> Any:
    """A bias added along the channels."""
    with variable_scope(scope, "BiasAdd", [inputs], reuse=reuse):
        inputs = convert_to_tensor(inputs)
        size = inputs.get_shape()[1 if _channels(data_format) == "channels_first" else -1].value
        biases = model_variable(
            "biases",
            [size],
            inputs.dtype.base_dtype,
            initializer,
            regularizer,
            trainable,
            collections=utils.get_variable_collections(variables_collections, "biases"),
        )
        outputs = nn_ops.bias_add(inputs, biases, data_format=data_format)
        return _collect(activation_fn(outputs) if activation_fn is not None else outputs, outputs_collections)


def _pool(op: Any, default: str, dimensions: int = 2) -> Any:
    names = ("NHWC", "NCHW") if dimensions == 2 else ("NDHWC", "NCDHW")

    def pool(
        inputs: Any,
        kernel_size: Any,
        stride: Any = 2,
        padding: str = "VALID",
        data_format: Optional[str] = None,
        outputs_collections: Any = None,
        scope: Any = None,
    ) -> Any:
        with name_scope(scope, default, [inputs]) as sc:
            size, step = normalize_tuple(kernel_size, dimensions, "kernel_size"), normalize_tuple(stride, dimensions, "stride")
            first = data_format is not None and _channels(data_format, names) == "channels_first"
            given, layout, turned = convert_to_tensor(inputs), data_format or names[0], first and dimensions == 3
            if turned:  # TensorFlow's processors pool volumes with channels last only
                given, layout, first = array_ops.transpose(given, [0, 2, 3, 4, 1]), names[0], False
            outputs = op(given, (1, 1) + size if first else (1,) + size + (1,), (1, 1) + step if first else (1,) + step + (1,), padding.upper(), layout)
            return _collect(array_ops.transpose(outputs, [0, 4, 1, 2, 3]) if turned else outputs, outputs_collections, sc)

    pool.__name__ = pool.__qualname__ = snake(default)
    pool.__doc__ = "Pooling of images or volumes."
    return add_arg_scope(pool)


max_pool2d, avg_pool2d = _pool(nn_ops.max_pool, "MaxPool2D"), _pool(nn_ops.avg_pool, "AvgPool2D")
max_pool3d, avg_pool3d = _pool(nn_ops.max_pool3d, "MaxPool3D", 3), _pool(nn_ops.avg_pool3d, "AvgPool3D", 3)


@add_arg_scope
def pool(
    inputs: Any,
    kernel_size: Any,
    pooling_type: str,
    padding: str = "VALID",
    data_format: Optional[str] = None,
    dilation_rate: Any = 1,
    stride: Any = 1,
    outputs_collections: Any = None,
    scope: Any = None,
) -> Any:
    """Pooling of one, two or three dimensions, as the rank of the inputs says."""
    with name_scope(scope, "%s_pool" % pooling_type.lower(), [inputs]) as sc:
        inputs = convert_to_tensor(inputs)
        dimensions = inputs.get_shape().ndims - 2
        outputs = nn_ops.pool(
            inputs, normalize_tuple(kernel_size, dimensions, "kernel_size"), pooling_type, padding, dilation_rate, stride, data_format=data_format, name=sc
        )
        return _collect(outputs, outputs_collections, sc)


@add_arg_scope
def dropout(
    inputs: Any,
    keep_prob: Any = 0.5,
    noise_shape: Any = None,
    is_training: Any = True,
    outputs_collections: Any = None,
    scope: Any = None,
    seed: Optional[int] = None,
) -> Any:
    """While training, elements kept with probability keep_prob and scaled up."""
    with name_scope(scope, "Dropout", [inputs]) as sc:
        outputs = control_flow_ops.smart_cond(is_training, lambda: nn_ops.dropout(inputs, keep_prob, noise_shape, seed), lambda: array_ops.identity(inputs))
        return _collect(outputs, outputs_collections, sc)


@add_arg_scope
def flatten(inputs: Any, outputs_collections: Any = None, scope: Any = None) -> Any:
    """[batch, ...] as [batch, elements]."""
    with name_scope(scope, "Flatten", [inputs]) as sc:
        return _collect(_layers.flatten(convert_to_tensor(inputs)), outputs_collections, sc)


@add_arg_scope
def one_hot_encoding(labels: Any, num_classes: int, on_value: float = 1.0, off_value: float = 0.0, outputs_collections: Any = None, scope: Any = None) -> Any:
    """Class numbers as rows with a single one."""
    with name_scope(scope, "OneHotEncoding", [labels]) as sc:
        return _collect(array_ops.one_hot(labels, num_classes, on_value, off_value), outputs_collections, sc)


@add_arg_scope
def softmax(logits: Any, scope: Any = None) -> Any:
    """softmax over the last axis."""
    logits = convert_to_tensor(logits)
    with variable_scope(scope, "softmax", [logits]):
        utils.last_dimension(logits.get_shape(), 2)
        return nn_ops.softmax(logits)


@add_arg_scope
def unit_norm(inputs: Any, dim: int, epsilon: float = 1e-7, scope: Any = None) -> Any:
    """Scaled to norm one along an axis."""
    inputs = convert_to_tensor(inputs)
    with variable_scope(scope, "UnitNorm", [inputs]):
        ndims = inputs.get_shape().ndims
        if ndims is None:
            raise at_user_line(ValueError("The input rank must be known."))
        if not 0 <= dim < ndims:
            raise at_user_line(ValueError("dim must be positive but smaller than the input rank, got %d of %d" % (dim, ndims)))
        return inputs / gen_ops.sqrt(epsilon + math_ops.reduce_sum(gen_ops.square(inputs), dim, True))


def _prefix(scope: Optional[str], layer: Any, default: str) -> str:
    """What the scopes of repeated layers begin with: the scope that was given, or the name of the layer."""
    return str(scope or getattr(layer, "__name__", None) or getattr(getattr(layer, "func", None), "__name__", default)).rsplit("/", 1)[-1]


def stack(inputs: Any, layer: Any, stack_args: Any, **kwargs: Any) -> Any:
    """A layer several times, with other arguments each time."""
    scope = kwargs.pop("scope", None)
    if not isinstance(stack_args, (list, tuple)):
        raise at_user_line(ValueError("stack_args need to be a list or tuple"))
    with variable_scope(scope, "Stack", [inputs]):
        for i, args in enumerate(stack_args):
            inputs = layer(inputs, *(args if isinstance(args, (list, tuple)) else [args]), scope="%s_%d" % (_prefix(scope, layer, "stack"), i + 1), **kwargs)
    return inputs


def repeat(inputs: Any, repetitions: int, layer: Any, *args: Any, **kwargs: Any) -> Any:
    """A layer several times, with the same arguments."""
    scope = kwargs.pop("scope", None)
    with variable_scope(scope, "Repeat", [inputs]):
        for i in range(repetitions):
            inputs = layer(inputs, *args, scope="%s_%d" % (_prefix(scope, layer, "repeat"), i + 1), **kwargs)
    return inputs


def _later(name: str) -> Any:
    if "contrib.layers." + name in _names.TABLE:
        return _names.find("contrib.layers." + name)
    raise AttributeError("module 'millrace.contrib.layers' has no attribute %r" % name)


__getattr__ = _not_provided.getter("contrib.layers", _later)
