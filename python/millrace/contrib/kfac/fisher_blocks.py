# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.kfac.fisher_blocks: the blocks of a Fisher information, one for the parameters of a layer, and how each is approximated."""

from __future__ import annotations

import enum
from typing import Any, List, Optional

import numpy as np

from millrace.contrib.kfac import fisher_factors, linear_operators, utils
from millrace.framework import nest
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import name_scope
from millrace.ops import array_ops, gen_ops, math_ops, matrix_ops

NORMALIZE_DAMPING_POWER = 1.0
PI_OFF_NAME = "off"
PI_TRACENORM_NAME = "tracenorm"
PI_TYPE = PI_TRACENORM_NAME


def set_global_constants(normalize_damping_power: Optional[float] = None, pi_type: Optional[str] = None) -> None:
    """How damping follows the number of uses of a layer, and whether it is shared out by the factors' traces (tracenorm) or not (off)."""
    global NORMALIZE_DAMPING_POWER, PI_TYPE
    NORMALIZE_DAMPING_POWER = NORMALIZE_DAMPING_POWER if normalize_damping_power is None else normalize_damping_power
    PI_TYPE = PI_TYPE if pi_type is None else pi_type


def normalize_damping(damping: Any, num_replications: Any) -> Any:
    """Damping over so many uses to the power of NORMALIZE_DAMPING_POWER."""
    return damping / num_replications**NORMALIZE_DAMPING_POWER if NORMALIZE_DAMPING_POWER else damping


def compute_pi_tracenorm(left_cov: Any, right_cov: Any) -> Any:
    """The root of the ratio of the mean eigenvalues of two matrices (Martens and Grosse 2015, section 6.3)."""
    (left, left_size), (right, right_size) = map(linear_operators.trace_and_size, (left_cov, right_cov))
    return gen_ops.sqrt(left * right_size / (right * left_size))


def compute_pi_adjusted_damping(left_cov: Any, right_cov: Any, damping: Any) -> Any:
    """The damping of two factors, of which one is given more where its eigenvalues are larger."""
    if PI_TYPE == PI_OFF_NAME:
        return damping, damping
    if PI_TYPE != PI_TRACENORM_NAME:
        raise at_user_line(ValueError("pi_type has to be %s or %s, not %r." % (PI_TRACENORM_NAME, PI_OFF_NAME, PI_TYPE)))
    pi = compute_pi_tracenorm(left_cov, right_cov)
    return damping * pi, damping / pi


class PackagedFunc:
    """A function of nothing with something that tells it from others: func_id, or a tuple, whose functions are called for what they stand for."""

    def __init__(self, func: Any, func_id: Any) -> None:
        self._func, self._func_id = func, utils.ensure_sequence(func_id)

    def __call__(self) -> Any:
        return self._func()

    @property
    def func_id(self) -> Any:
        return tuple(part() if callable(part) else part for part in self._func_id)


def _package_func(func: Any, func_id: Any) -> PackagedFunc:
    return PackagedFunc(func, func_id)


class FisherBlock:
    """The block of some parameters. Subclasses make factors of the gradients of tensors_to_compute_grads, and multiply by powers of the block."""

    def __init__(self, layer_collection: Any) -> None:
        self._layer_collection = layer_collection

    def _missing(self, name: str) -> Exception:
        return NotImplementedError("%s has no %s." % (type(self).__name__, name))

    def instantiate_factors(self, grads_list: Any, damping: Any) -> None:
        """Makes the factors."""
        raise self._missing("instantiate_factors")

    def register_matpower(self, exp: float) -> None:
        """Has a power of the damped block kept."""
        raise self._missing("register_matpower")

    def register_inverse(self) -> None:
        """Has the inverse of the damped block kept."""
        self.register_matpower(-1)

    def register_cholesky(self) -> None:
        """Has the Cholesky factor of the damped block kept."""
        raise self._missing("register_cholesky")

    def register_cholesky_inverse(self) -> None:
        """Has the inverse of the Cholesky factor of the damped block kept."""
        raise self._missing("register_cholesky_inverse")

    def multiply_matpower(self, vector: Any, exp: float) -> Any:
        """A power of the damped block times what is formed as the parameters."""
        raise self._missing("multiply_matpower")

    def multiply_inverse(self, vector: Any) -> Any:
        """The inverse of the damped block times what is formed as the parameters."""
        return self.multiply_matpower(vector, -1)

    def multiply(self, vector: Any) -> Any:
        """The damped block times what is formed as the parameters."""
        return self.multiply_matpower(vector, 1)

    def multiply_cholesky(self, vector: Any, transpose: bool = False) -> Any:
        """The Cholesky factor of the damped block times what is formed as the parameters."""
        raise self._missing("multiply_cholesky")

    def multiply_cholesky_inverse(self, vector: Any, transpose: bool = False) -> Any:
        """The inverse of the Cholesky factor of the damped block times what is formed as the parameters."""
        raise self._missing("multiply_cholesky_inverse")

    def tensors_to_compute_grads(self) -> Any:
        """What gradients are wanted of."""
        raise self._missing("tensors_to_compute_grads")

    @property
    def num_registered_towers(self) -> int:
        raise self._missing("num_registered_towers")

    def _make(self, kind: Any, *args: Any) -> Any:
        return self._layer_collection.make_or_get_factor(kind, args)


class _OfOneFactor(FisherBlock):
    """A block that is a factor."""

    _factor: Any
    _damping_func: Any

    def register_matpower(self, exp: float) -> None:
        self._factor.register_matpower(exp, self._damping_func)

    def register_cholesky(self) -> None:
        self._factor.register_cholesky(self._damping_func)

    def register_cholesky_inverse(self) -> None:
        self._factor.register_cholesky_inverse(self._damping_func)

    def _times(self, matrix: Any, vector: Any, transpose: bool = False) -> Any:
        return utils.column_to_tensors(vector, matrix.matmul(utils.tensors_to_column(vector), adjoint=transpose))

    def multiply_matpower(self, vector: Any, exp: float) -> Any:
        return self._times(self._factor.get_matpower(exp, self._damping_func), vector)

    def multiply_cholesky(self, vector: Any, transpose: bool = False) -> Any:
        return self._times(self._factor.get_cholesky(self._damping_func), vector, transpose)

    def multiply_cholesky_inverse(self, vector: Any, transpose: bool = False) -> Any:
        return self._times(self._factor.get_cholesky_inverse(self._damping_func), vector, transpose)

    def full_fisher_block(self) -> Any:
        """The block as a matrix."""
        return self._factor.get_cov_as_linear_operator().to_dense()


class _OfParameters(_OfOneFactor):
    """A block of any parameters, of their gradients over a whole batch."""

    _kind: Any

    def __init__(self, layer_collection: Any, params: Any) -> None:
        super().__init__(layer_collection)
        self._params = params
        self._batch_sizes: List[Any] = []

    def instantiate_factors(self, grads_list: Any, damping: Any) -> None:
        self._damping_func = _package_func(lambda: damping, (damping,))
        self._factor = self._make(self._kind, grads_list, self._batch_size)

    def tensors_to_compute_grads(self) -> Any:
        return self._params

    def register_additional_tower(self, batch_size: Any) -> None:
        """Another part of the batch."""
        self._batch_sizes.append(batch_size)

    @property
    def num_registered_towers(self) -> int:
        return len(self._batch_sizes)

    @property
    def _batch_size(self) -> Any:
        return math_ops.reduce_sum(self._batch_sizes)


class FullFB(_OfParameters):
    """The full matrix, for few parameters."""

    _kind = fisher_factors.FullFactor


class DiagonalFB(_OfOneFactor):
    """The diagonal."""


class NaiveDiagonalFB(_OfParameters, DiagonalFB):
    """The diagonal, of the gradients over a whole batch."""

    _kind = fisher_factors.NaiveDiagonalFactor


def _by_strategy() -> bool:
    """Whether parts of a batch are joined, rather than each kept on its device."""
    if fisher_factors.TOWER_STRATEGY not in ("concat", "separate"):
        raise at_user_line(ValueError("Global config variable TOWER_STRATEGY must be one of 'concat' or 'separate', not %r." % fisher_factors.TOWER_STRATEGY))
    return fisher_factors.TOWER_STRATEGY == "concat"


class InputOutputMultiTower:
    """What blocks of layers' inputs and outputs share: both are of several parts of a batch."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._inputs: List[Any] = []
        self._outputs: List[Any] = []
        super().__init__(*args, **kwargs)

    def _process_data(self, grads_list: Any) -> Any:
        """(inputs by tower, gradients by source and tower) as factors take them."""
        if _by_strategy():
            return (utils.PartitionedTensor(self._inputs),), tuple((utils.PartitionedTensor(grads),) for grads in grads_list)
        return tuple(self._inputs), tuple(grads_list)

    def tensors_to_compute_grads(self) -> Any:
        """The layer's outputs."""
        return tuple(self._outputs)

    def register_additional_tower(self, inputs: Any, outputs: Any) -> None:
        """Another part of the batch."""
        self._inputs.append(inputs)
        self._outputs.append(outputs)

    @property
    def num_registered_towers(self) -> int:
        return len(self._inputs)


class FullyConnectedDiagonalFB(InputOutputMultiTower, DiagonalFB):
    """The diagonal of a dense layer."""

    def __init__(self, layer_collection: Any, has_bias: bool = False) -> None:
        super().__init__(layer_collection)
        self._has_bias = has_bias

    def instantiate_factors(self, grads_list: Any, damping: Any) -> None:
        inputs, grads_list = self._process_data(grads_list)
        self._factor = self._make(fisher_factors.FullyConnectedDiagonalFactor, inputs, grads_list, self._has_bias)
        self._damping_func = _package_func(lambda: damping, (damping,))


def maybe_tuple(obj: Any) -> Any:
    """A list as a tuple, which can be a key."""
    return tuple(obj) if isinstance(obj, list) else obj


def num_conv_locations(input_shape: Any, strides: Any) -> Any:
    """At how many places a convolution works."""
    return np.prod(input_shape[1:-1]) // (1 if strides is None else np.prod(strides))


class ConvDiagonalFB(InputOutputMultiTower, DiagonalFB):
    """The diagonal of a convolution in two dimensions."""

    def __init__(self, layer_collection: Any, params: Any, strides: Any, padding: Any, data_format: Any = None, dilations: Any = None) -> None:
        self._has_bias = isinstance(params, (list, tuple))
        dilations = [1, 1, 1, 1] if dilations is None else dilations
        self._filter_shape = tuple((params[0] if self._has_bias else params).shape.as_list())
        for what, sizes in (("strides", strides), ("dilations", dilations), ("The sizes of the filter", self._filter_shape)):
            if len(sizes) != 4:
                raise at_user_line(ValueError("%s must contain 4 numbers, not %s." % (what, sizes)))
        if not utils.is_data_format_channel_last(data_format):
            raise at_user_line(ValueError("data_format must be channels-last, not %s." % data_format))
        super().__init__(layer_collection)
        self._strides, self._padding, self._data_format, self._dilations = maybe_tuple(strides), padding, data_format, maybe_tuple(dilations)

    def instantiate_factors(self, grads_list: Any, damping: Any) -> None:
        inputs, grads_list = self._process_data(grads_list)
        places = self._num_locations = num_conv_locations(inputs[0].shape.as_list(), self._strides)
        self._factor = self._make(
            fisher_factors.ConvDiagonalFactor,
            *(inputs, grads_list, self._filter_shape, self._strides, self._padding, self._data_format, self._dilations, self._has_bias),
        )
        self._damping_func = _package_func(lambda: places * normalize_damping(damping, places), (places, "mult", "normalize_damping", damping, places))


class KroneckerProductFB(FisherBlock):
    """A block that is taken for the Kronecker product of a factor of inputs and one of outputs."""

    _input_factor: Any
    _output_factor: Any

    def _setup_damping(self, damping: Any, normalization: Any = None) -> None:
        def both() -> Any:
            share = damping if normalization is None else normalize_damping(damping, normalization)
            factors = self._input_factor.get_cov_as_linear_operator(), self._output_factor.get_cov_as_linear_operator()
            return compute_pi_adjusted_damping(*factors, share**0.5)

        of = (damping,) if normalization is None else ("normalize_damping", damping, normalization)
        key = ("compute_pi_adjusted_damping", "cov", self._input_factor.name, "cov", self._output_factor.name, *of, "power", 0.5)
        self._input_damping_func = _package_func(lambda: both()[0], (*key, "ref", 0))
        self._output_damping_func = _package_func(lambda: both()[1], (*key, "ref", 1))

    def register_matpower(self, exp: float) -> None:
        self._input_factor.register_matpower(exp, self._input_damping_func)
        self._output_factor.register_matpower(exp, self._output_damping_func)

    def register_cholesky(self) -> None:
        self._input_factor.register_cholesky(self._input_damping_func)
        self._output_factor.register_cholesky(self._output_damping_func)

    def register_cholesky_inverse(self) -> None:
        self._input_factor.register_cholesky_inverse(self._input_damping_func)
        self._output_factor.register_cholesky_inverse(self._output_damping_func)

    @property
    def _renorm_coeff(self) -> Any:
        """What the product has to be multiplied by."""
        return 1.0

    def _between(self, left: Any, vector: Any, right: Any, exp: float, transpose_left: bool = False, transpose_right: bool = False) -> Any:
        product = right.matmul_right(utils.layer_params_to_mat2d(vector), adjoint=transpose_right)
        product = left.matmul(product, adjoint=transpose_left)
        if self._renorm_coeff != 1.0:
            product *= math_ops.cast(float(self._renorm_coeff) ** exp, product.dtype)
        return utils.mat2d_to_layer_params(vector, product)

    def multiply_matpower(self, vector: Any, exp: float) -> Any:
        left = self._input_factor.get_matpower(exp, self._input_damping_func)
        return self._between(left, vector, self._output_factor.get_matpower(exp, self._output_damping_func), exp)

    def multiply_cholesky(self, vector: Any, transpose: bool = False) -> Any:
        left, right = self._input_factor.get_cholesky(self._input_damping_func), self._output_factor.get_cholesky(self._output_damping_func)
        return self._between(left, vector, right, 0.5, transpose, not transpose)

    def multiply_cholesky_inverse(self, vector: Any, transpose: bool = False) -> Any:
        left = self._input_factor.get_cholesky_inverse(self._input_damping_func)
        right = self._output_factor.get_cholesky_inverse(self._output_damping_func)
        return self._between(left, vector, right, -0.5, transpose, not transpose)

    def full_fisher_block(self) -> Any:
        """The block as a matrix."""
        matrices = [f.get_cov_as_linear_operator().to_dense() for f in (self._input_factor, self._output_factor)]
        return self._renorm_coeff * utils.kronecker_product(*matrices)


class EmbeddingKFACFB(InputOutputMultiTower, KroneckerProductFB):
    """An embedding."""

    def __init__(self, layer_collection: Any, vocab_size: int) -> None:
        super().__init__(layer_collection)
        self._vocab_size = vocab_size

    def instantiate_factors(self, grads_list: Any, damping: Any) -> None:
        inputs, grads_list = self._process_data(grads_list)
        self._input_factor = self._make(fisher_factors.EmbeddingInputKroneckerFactor, inputs, self._vocab_size)
        self._output_factor = self._make(fisher_factors.FullyConnectedKroneckerFactor, grads_list)
        self._setup_damping(damping)


class FullyConnectedKFACBasicFB(InputOutputMultiTower, KroneckerProductFB):
    """A dense layer (Martens and Grosse 2015)."""

    def __init__(self, layer_collection: Any, has_bias: bool = False) -> None:
        super().__init__(layer_collection)
        self._has_bias = has_bias

    def instantiate_factors(self, grads_list: Any, damping: Any) -> None:
        inputs, grads_list = self._process_data(grads_list)
        self._input_factor = self._make(fisher_factors.FullyConnectedKroneckerFactor, (inputs,), self._has_bias)
        self._output_factor = self._make(fisher_factors.FullyConnectedKroneckerFactor, grads_list)
        self._setup_damping(damping)


class _Convolution(KroneckerProductFB):
    """What blocks of convolutions share (Grosse and Martens 2016)."""

    _num_locations: Any

    def _describe(self, params: Any, padding: Any, strides: Any, dilation_rate: Any, data_format: Any, extract_patches_fn: Any) -> None:
        self._has_bias = isinstance(params, (list, tuple))
        self._filter_shape = tuple((params[0] if self._has_bias else params).shape.as_list())
        self._padding, self._strides, self._dilation_rate = padding, maybe_tuple(strides), maybe_tuple(dilation_rate)
        self._data_format, self._extract_patches_fn = data_format, extract_patches_fn

    def _make_factors(self, inputs: Any, grads_list: Any) -> None:
        self._num_locations = num_conv_locations(inputs[0].shape.as_list(), self._strides)
        self._input_factor = self._make(
            fisher_factors.ConvInputKroneckerFactor,
            *(inputs, self._filter_shape, self._padding, self._strides, self._dilation_rate, self._data_format, self._extract_patches_fn, self._has_bias),
        )
        self._output_factor = self._make(fisher_factors.ConvOutputKroneckerFactor, grads_list)


class ConvKFCBasicFB(InputOutputMultiTower, _Convolution):
    """A convolution."""

    def __init__(
        self,
        layer_collection: Any,
        params: Any,
        padding: Any,
        strides: Any = None,
        dilation_rate: Any = None,
        data_format: Any = None,
        extract_patches_fn: Any = None,
    ) -> None:
        super().__init__(layer_collection)
        self._describe(params, padding, strides, dilation_rate, data_format, extract_patches_fn)

    def instantiate_factors(self, grads_list: Any, damping: Any) -> None:
        self._make_factors(*self._process_data(grads_list))
        self._setup_damping(damping, normalization=self._num_locations)

    @property
    def _renorm_coeff(self) -> Any:
        return self._num_locations


def _rates_of_depthwise(params: Any, strides: Any, rate: Any, data_format: Any) -> Any:
    if isinstance(params, (list, tuple)):
        raise at_user_line(NotImplementedError("Bias not yet supported."))
    if params.shape.ndims != 4:
        raise at_user_line(ValueError("Filter must be 4-D, not of shape %s." % params.shape))
    if len(strides) != 4:
        raise at_user_line(ValueError("strides must account for 4 dimensions, not %s." % (strides,)))
    if rate is not None and len(rate) != 2:
        raise at_user_line(ValueError("rate must only account for spatial dimensions, not %s." % (rate,)))
    if not utils.is_data_format_channel_last(data_format):
        raise at_user_line(ValueError("data_format must be channels-last, not %s." % data_format))
    return None if rate is None else [1, *rate, 1]


class _Depthwise:
    """A depthwise convolution, seen as one whose filter has zeros for other channels."""

    _filter_shape: Any

    def _as_whole(self, params: Any) -> None:
        height, width, channels, multiplier = params.shape.as_list()
        self._filter_shape = (height, width, channels, channels * multiplier)

    def multiply_matpower(self, vector: Any, exp: float) -> Any:
        """A power of the damped block times what is formed as the parameters."""
        product = super().multiply_matpower(depthwise_conv2d_filter_to_conv2d_filter(vector), exp)  # type: ignore[misc]
        return conv2d_filter_to_depthwise_conv2d_filter(product)


class DepthwiseConvDiagonalFB(_Depthwise, ConvDiagonalFB):
    """The diagonal of a depthwise convolution."""

    def __init__(self, layer_collection: Any, params: Any, strides: Any, padding: Any, rate: Any = None, data_format: Any = None) -> None:
        rates = _rates_of_depthwise(params, strides, rate, data_format)
        super().__init__(layer_collection, params, strides, padding, data_format=data_format, dilations=rates)
        self._as_whole(params)


class DepthwiseConvKFCBasicFB(_Depthwise, ConvKFCBasicFB):
    """A depthwise convolution."""

    def __init__(self, layer_collection: Any, params: Any, strides: Any, padding: Any, rate: Any = None, data_format: Any = None) -> None:
        rates = _rates_of_depthwise(params, strides, rate, data_format)
        super().__init__(layer_collection, params, padding, strides, rates, data_format, extract_patches_fn="extract_image_patches")
        self._as_whole(params)


def depthwise_conv2d_filter_to_conv2d_filter(filter: Any, name: Any = None) -> Any:
    """[height, width, channels, multiplier] as [height, width, channels, channels * multiplier] with zeros where channels differ."""
    with name_scope(name, "depthwise_conv2d_filter_to_conv2d_filter", [filter]):
        filter = convert_to_tensor(filter)
        height, width, channels, multiplier = filter.shape.as_list()
        own = array_ops.reshape(matrix_ops.eye(channels, dtype=filter.dtype), [1, 1, channels, channels, 1])
        return array_ops.reshape(array_ops.expand_dims(filter, 3) * own, [height, width, channels, channels * multiplier])


def conv2d_filter_to_depthwise_conv2d_filter(filter: Any, name: Any = None) -> Any:
    """[height, width, channels, multiplier] of what depthwise_conv2d_filter_to_conv2d_filter makes of it."""
    with name_scope(name, "conv2d_filter_to_depthwise_conv2d_filter", [filter]):
        filter = convert_to_tensor(filter)
        height, width, channels, outputs = filter.shape.as_list()
        if outputs % channels:
            raise at_user_line(ValueError("out_channels (%d) must be evenly divisible by in_channels (%d)." % (outputs, channels)))
        parts = array_ops.reshape(filter, [height, width, channels, channels, outputs // channels])
        return array_ops.stack([parts[:, :, i, i, :] for i in range(channels)], axis=2)


class InputOutputMultiTowerMultiUse(InputOutputMultiTower):
    """What blocks of layers that are used several times share: tensors are lists of one for each use, or have uses one behind the other."""

    def __init__(self, num_uses: Optional[int] = None, *args: Any, **kwargs: Any) -> None:
        self._num_uses = num_uses
        super().__init__(*args, **kwargs)

    def _count(self, lists: Any, what: str) -> None:
        for one in lists:
            if self._num_uses not in (None, len(one)):
                raise at_user_line(ValueError("The %s are of %d uses, num_uses or others of %d." % (what, len(one), self._num_uses)))
            self._num_uses = len(one)

    @staticmethod
    def _joined(towers: Any, together: bool) -> Any:
        if together:  # use by use, in each the parts of the batch
            return (utils.PartitionedTensor(nest.flatten(list(zip(*towers)))),)
        return tuple(utils.PartitionedTensor(uses) for uses in towers)

    def _process_data(self, grads_list: Any) -> Any:
        inputs, together = self._inputs, _by_strategy()
        if isinstance(inputs[0], (list, tuple)):
            self._count(inputs, "inputs")
            inputs = self._joined(inputs, together)
        if isinstance(grads_list[0][0], (list, tuple)):
            self._count((grad for grads in grads_list for grad in grads), "outputs")
            grads_list = tuple(self._joined(grads, together) for grads in grads_list)
        if self._num_uses is None:
            raise at_user_line(ValueError("You must supply a value for num_uses where neither inputs nor outputs are lists, which would say it."))
        return maybe_tuple(inputs), maybe_tuple(grads_list)


class FullyConnectedMultiIndepFB(InputOutputMultiTowerMultiUse, KroneckerProductFB):
    """A dense layer that is used several times, whose uses are taken for independent."""

    def __init__(self, layer_collection: Any, has_bias: bool = False, num_uses: Optional[int] = None) -> None:
        super().__init__(num_uses, layer_collection)
        self._has_bias = has_bias

    def instantiate_factors(self, grads_list: Any, damping: Any) -> None:
        inputs, grads_list = self._process_data(grads_list)
        self._input_factor = self._make(fisher_factors.FullyConnectedMultiKF, (inputs,), self._num_uses, self._has_bias)
        self._output_factor = self._make(fisher_factors.FullyConnectedMultiKF, grads_list, self._num_uses)
        self._setup_damping(damping, normalization=self._num_uses)

    @property
    def _renorm_coeff(self) -> Any:
        return float(self._num_uses or 1)


class ConvKFCBasicMultiIndepFB(InputOutputMultiTowerMultiUse, _Convolution):
    """A convolution that is used several times, whose uses are taken for independent."""

    def __init__(
        self,
        layer_collection: Any,
        params: Any,
        padding: Any,
        strides: Any = None,
        dilation_rate: Any = None,
        data_format: Any = None,
        extract_patches_fn: Any = None,
        num_uses: Optional[int] = None,
    ) -> None:
        super().__init__(num_uses, layer_collection)
        self._describe(params, padding, strides, dilation_rate, data_format, extract_patches_fn)

    def instantiate_factors(self, grads_list: Any, damping: Any) -> None:
        self._make_factors(*self._process_data(grads_list))
        self._setup_damping(damping, normalization=self._renorm_coeff)

    @property
    def _renorm_coeff(self) -> Any:
        return self._num_locations * (self._num_uses or 1)


class EmbeddingKFACMultiIndepFB(InputOutputMultiTowerMultiUse, KroneckerProductFB):
    """An embedding that is used several times, whose uses are taken for independent."""

    def __init__(self, layer_collection: Any, vocab_size: int, num_uses: Optional[int] = None) -> None:
        super().__init__(num_uses, layer_collection)
        self._vocab_size = vocab_size

    def instantiate_factors(self, grads_list: Any, damping: Any) -> None:
        inputs, grads_list = self._process_data(grads_list)
        self._input_factor = self._make(fisher_factors.EmbeddingInputKroneckerFactor, inputs, self._vocab_size)
        self._output_factor = self._make(fisher_factors.FullyConnectedMultiKF, grads_list, self._num_uses)
        self._setup_damping(damping, normalization=self._num_uses)

    @property
    def _renorm_coeff(self) -> Any:
        return float(self._num_uses or 1)


class SeriesFBApproximation(enum.IntEnum):
    """What FullyConnectedSeriesFB takes for granted."""

    option1 = 1
    option2 = 2


class FullyConnectedSeriesFB(InputOutputMultiTowerMultiUse, KroneckerProductFB):
    """A dense layer that is used at each step of a series (Martens, Ba and Johnson 2018). option1: moments between a step and the next are
    symmetric; option2: series have no end."""

    def __init__(self, layer_collection: Any, has_bias: bool = False, num_uses: Optional[int] = None, option: Any = SeriesFBApproximation.option2) -> None:
        super().__init__(num_uses, layer_collection)
        self._has_bias, self._option = has_bias, option
        if option not in (1, 2):
            raise at_user_line(ValueError("Unrecognized FullyConnectedSeriesFB approximation: %s." % (option,)))

    @property
    def _num_timesteps(self) -> Any:
        return self._num_uses

    def instantiate_factors(self, grads_list: Any, damping: Any) -> None:
        inputs, grads_list = self._process_data(grads_list)
        self._input_factor = self._make(fisher_factors.FullyConnectedMultiKF, (inputs,), self._num_uses, self._has_bias)
        self._output_factor = self._make(fisher_factors.FullyConnectedMultiKF, grads_list, self._num_uses)
        for factor in (self._input_factor, self._output_factor):
            factor.register_cov_dt1()
        self._setup_damping(damping, normalization=self._num_uses)

    def _inverse_only(self, exp: float) -> None:
        if exp != -1:
            raise at_user_line(NotImplementedError("FullyConnectedSeriesFB only supports inverse multiplications, not the power %s." % exp))

    def register_matpower(self, exp: float) -> None:
        self._inverse_only(exp)
        for factor, damping_func in ((self._input_factor, self._input_damping_func), (self._output_factor, self._output_damping_func)):
            (factor.register_option1quants if self._option == 1 else factor.register_option2quants)(damping_func)

    def multiply_matpower(self, vector: Any, exp: float) -> Any:
        self._inverse_only(exp)
        matrix = array_ops.transpose(utils.layer_params_to_mat2d(vector))
        product = (self._by_option1 if self._option == 1 else self._by_option2)(matrix)
        return utils.mat2d_to_layer_params(vector, array_ops.transpose(product))

    def _by_option1(self, z: Any) -> Any:
        left, psi_left = self._output_factor.get_option1quants(self._output_damping_func)
        right, psi_right = self._input_factor.get_option1quants(self._input_damping_func)
        x, steps = array_ops.expand_dims(psi_left, 1) * psi_right, self._num_uses
        scale = (1 - x) ** 2 / (steps * (1 - x**2) - 2 * x * (1 - x**steps))
        inner = matrix_ops.matmul(left, matrix_ops.matmul(z, right), transpose_a=True) * scale
        return matrix_ops.matmul(left, matrix_ops.matmul(inner, right, transpose_b=True))

    def _by_option2(self, z: Any) -> Any:
        p_left, k_left, mu_left = self._output_factor.get_option2quants(self._output_damping_func)
        p_right, k_right, mu_right = self._input_factor.get_option2quants(self._input_damping_func)
        z = z - matrix_ops.matmul(p_left, matrix_ops.matmul(z, p_right, transpose_b=True))
        inner = matrix_ops.matmul(k_left, matrix_ops.matmul(z, k_right), transpose_a=True)
        scale = 1.0 - array_ops.expand_dims(mu_left, 1) * mu_right
        inner /= scale + math_ops.cast(math_ops.equal(scale, 0.0), scale.dtype)  # where it is 0, 1 does less harm
        z = matrix_ops.matmul(k_left, matrix_ops.matmul(inner, k_right, transpose_b=True))
        z -= matrix_ops.matmul(p_left, matrix_ops.matmul(z, p_right), transpose_a=True)
        return z / math_ops.cast(self._num_uses, z.dtype)  # moments are means over steps, gradients sums
