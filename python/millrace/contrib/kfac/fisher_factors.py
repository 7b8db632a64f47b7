# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.kfac.fisher_factors: moving averages of second moments, of which the blocks of a Fisher information are made."""

from __future__ import annotations

import contextlib
from typing import Any, Dict, Iterator, List, Optional, Tuple

import numpy as np

from millrace.contrib.kfac import linear_operators, utils
from millrace.framework import dtypes, nest
from millrace.framework.composite_tensors import IndexedSlices
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, device, name_scope
from millrace.ops import array_ops, block_ops, control_flow_ops, gen_ops, init_ops, linalg_ops, math_ops, matrix_ops, random_ops
from millrace.ops.variable_scope import get_variable, variable_scope
from millrace.ops.variables import Variable
from millrace.train.moving_averages import assign_moving_average

INIT_COVARIANCES_AT_ZERO = False
ZERO_DEBIAS = False
INIT_INVERSES_AT_ZERO = False
EIGENVALUE_DECOMPOSITION_THRESHOLD = 2  # so many inverses are worth one decomposition
EIGENVALUE_CLIPPING_THRESHOLD = 0.0
_MAX_NUM_OUTER_PRODUCTS_PER_COV_ROW = 1
_SUB_SAMPLE_OUTER_PRODUCTS = False
_INPUTS_TO_EXTRACT_PATCHES_FACTOR = 0.5
_SUB_SAMPLE_INPUTS = False
TOWER_STRATEGY = "concat"


def set_global_constants(
    init_covariances_at_zero: Optional[bool] = None,
    zero_debias: Optional[bool] = None,
    eigenvalue_decomposition_threshold: Optional[int] = None,
    eigenvalue_clipping_threshold: Optional[float] = None,
    tower_strategy: Optional[str] = None,
    init_inverses_at_zero: Optional[bool] = None,
    max_num_outer_products_per_cov_row: Optional[float] = None,
    sub_sample_outer_products: Optional[bool] = None,
    inputs_to_extract_patches_factor: Optional[float] = None,
    sub_sample_inputs: Optional[bool] = None,
) -> None:
    """Sets what all factors go by; None leaves a setting as it is. init_covariances_at_zero, zero_debias and init_inverses_at_zero are False
    until they are set, as in TensorFlow 1.4 to 1.9; 1.10 has them True."""
    given = dict(locals())
    for name, value in given.items():
        if value is not None:
            own = "_" + name.upper() if name in _PRIVATE else name.upper()
            globals()[own] = value


_PRIVATE = ("max_num_outer_products_per_cov_row", "sub_sample_outer_products", "inputs_to_extract_patches_factor", "sub_sample_inputs")


def _start(at_zero: bool, shape: Any, dtype: Any) -> Tensor:
    return array_ops.zeros(shape, dtype) if at_zero else matrix_ops.eye(int(shape[0]), dtype=dtype)


def inverse_initializer(shape: Any, dtype: Any, partition_info: Any = None) -> Tensor:
    """What inverses are before they are first computed."""
    del partition_info  # they are in one piece
    return _start(INIT_INVERSES_AT_ZERO, shape, dtype)


def covariance_initializer(shape: Any, dtype: Any, partition_info: Any = None) -> Tensor:
    """What averages of matrices begin with."""
    del partition_info  # they are in one piece
    return _start(INIT_COVARIANCES_AT_ZERO, shape, dtype)


def diagonal_covariance_initializer(shape: Any, dtype: Any, partition_info: Any = None) -> Tensor:
    """What averages of diagonals begin with."""
    del partition_info  # they are in one piece
    return array_ops.zeros(shape, dtype) if INIT_COVARIANCES_AT_ZERO else array_ops.ones(shape, dtype)


@contextlib.contextmanager
def place_on_device(where: Any) -> Iterator[None]:
    """On a device, where one is named."""
    if where:
        with device(where):
            yield
    else:
        yield


def compute_cov(tensor: Any, tensor_right: Any = None, normalizer: Any = None) -> Tensor:
    """The mean over the rows (or their sum / normalizer) of the products of a row with itself, or with that of tensor_right."""
    tensor = convert_to_tensor(tensor)
    count = math_ops.cast(array_ops.shape(tensor)[0] if normalizer is None else normalizer, tensor.dtype)
    if tensor_right is not None:
        return matrix_ops.matmul(tensor, tensor_right, transpose_a=True) / count
    cov = matrix_ops.matmul(tensor, tensor, transpose_a=True) / count
    return (cov + array_ops.transpose(cov)) / math_ops.cast(2.0, cov.dtype)


def append_homog(tensor: Any) -> Tensor:
    """A 1 behind the last dimension, for a bias."""
    tensor = convert_to_tensor(tensor)
    ones = array_ops.ones(array_ops.concat([array_ops.shape(tensor)[:-1], [1]], 0), dtype=tensor.dtype)
    return array_ops.concat([tensor, ones], tensor.shape.ndims - 1)


def scope_string_from_params(params: Any) -> str:
    """A name for a variable scope, of tensors, numbers, strings and lists of them."""
    return "_".join(_named(p) for p in utils.ensure_sequence(params))


def _named(param: Any) -> str:
    if isinstance(param, (list, tuple)):
        return "-".join(map(str, param)) if all(isinstance(p, int) for p in param) else scope_string_from_name(param)
    if param is None or isinstance(param, (str, int, bool)):
        return str(param)
    if isinstance(param, (Tensor, Variable)):
        return scope_string_from_name(param)
    if isinstance(param, utils.PartitionedTensor):
        return scope_string_from_name(param.tensors)
    raise at_user_line(ValueError("Encountered an unsupported param type %s." % type(param)))


def scope_string_from_name(tensor: Any) -> str:
    """The name of a tensor, or those of several, without slashes."""
    if isinstance(tensor, (list, tuple)):
        return "__".join(scope_string_from_name(t) for t in tensor)
    return tensor.name.split(":")[0].replace("/", "_")


def scalar_or_tensor_to_string(val: Any) -> str:
    """A number as Python writes it, a tensor by its name."""
    if isinstance(val, np.generic):
        val = val.item()  # which has no name of a type around it
    return repr(val) if np.isscalar(val) else scope_string_from_name(val)


def list_to_string(lst: Any) -> str:
    """Strings, numbers and tensors in a row."""
    return "_".join(value if isinstance(value, str) else scalar_or_tensor_to_string(value) for value in lst)


def graph_func_to_id(func: Any) -> Any:
    """What says which damping a function computes."""
    return func.func_id


def graph_func_to_string(func: Any) -> str:
    """The same as a string."""
    return list_to_string(func.func_id)


def _subsample_for_cov_computation(array: Any, name: Any = None) -> Any:
    """As many rows by chance as the second moments have rows (times a setting)."""
    with name_scope(name, "subsample", [array]):
        array = convert_to_tensor(array)
        if array.shape.ndims != 2:
            raise at_user_line(ValueError("Input param array must be a matrix, not of shape %s." % array.shape))
        rows, columns = array.shape.as_list()
        if rows is None:
            raise at_user_line(ValueError("Unable to get batch_size from input param array."))
        most = int(_MAX_NUM_OUTER_PRODUCTS_PER_COV_ROW * columns)
        return array if rows <= most else _random_tensor_gather(array, most)


def _random_tensor_gather(array: Any, max_size: int) -> Any:
    return array_ops.gather(array, random_ops.random_shuffle(math_ops.range(0, array.shape.as_list()[0]))[:max_size])


class FisherFactor:
    """A moving average of second moments over mini-batches, in a variable of its own. Subclasses say which variable scope, shape and dtype it has,
    how many sources (gradients) and towers (parts of a batch) are added, and compute the moments of one of each."""

    _var_scope: Any
    _cov_shape: Any
    _num_sources: Any
    _num_towers: Any
    _dtype: Any
    _cov_initializer = staticmethod(covariance_initializer)

    def __init__(self) -> None:
        self._cov: Any = None

    @property
    def name(self) -> Any:
        return self._var_scope

    def instantiate_cov_variables(self) -> None:
        """Makes the variable of the average."""
        if self._cov is not None:
            raise at_user_line(ValueError("The variables of %s are made already." % self.name))
        self._cov = self._variable("cov", self._cov_initializer, self._cov_shape)

    def _variable(self, name: str, initializer: Any, shape: Any) -> Any:
        with variable_scope(self._var_scope):
            return get_variable(name, initializer=initializer, shape=shape, trainable=False, dtype=self._dtype)

    def _compute_new_cov(self, source: int, tower: int) -> Any:
        raise NotImplementedError("%s has no _compute_new_cov." % type(self).__name__)

    def make_covariance_update_op(self, ema_decay: Any) -> Any:
        """Adds the moments of this step to the average."""
        return self._averaged(self._cov, self._compute_new_cov, ema_decay)

    def _averaged(self, average: Any, compute: Any, ema_decay: Any) -> Any:
        moments = []
        for source in range(self._num_sources):
            for tower in range(self._num_towers):
                with place_on_device(self._get_data_device(tower) if TOWER_STRATEGY == "separate" else None):
                    moments.append(compute(source, tower))
        now = math_ops.add_n(moments) / float(self._num_towers)
        return assign_moving_average(average, utils.cross_replica_mean(now) if utils.on_tpu() else now, ema_decay, zero_debias=ZERO_DEBIAS)

    def _get_data_device(self, tower: int) -> Any:
        raise NotImplementedError("%s has no _get_data_device." % type(self).__name__)

    def instantiate_inv_variables(self) -> None:
        """Makes the variables of what was registered."""
        raise NotImplementedError("%s has no instantiate_inv_variables." % type(self).__name__)

    def make_inverse_update_ops(self) -> List[Any]:
        """Operations that compute anew what was registered."""
        raise NotImplementedError("%s has no make_inverse_update_ops." % type(self).__name__)

    def get_cov(self) -> Any:
        """The variable of the average."""
        return self._cov

    def get_cov_var(self) -> Any:
        """The variable of the average."""
        return self._cov

    def get_cov_as_linear_operator(self) -> Any:
        """The average as a linear operator."""
        raise NotImplementedError("%s has no get_cov_as_linear_operator." % type(self).__name__)

    def register_matpower(self, exp: float, damping_func: Any) -> None:
        """Has a power of the damped average kept in a variable."""
        raise NotImplementedError("%s has no register_matpower." % type(self).__name__)

    def get_matpower(self, exp: float, damping_func: Any) -> Any:
        """A power of the damped average as a linear operator."""
        raise NotImplementedError("%s has no get_matpower." % type(self).__name__)

    def left_multiply_matpower(self, x: Any, exp: float, damping_func: Any) -> Any:
        """A power of the damped average times x."""
        return self.get_matpower(exp, damping_func).matmul(x)

    def right_multiply_matpower(self, x: Any, exp: float, damping_func: Any) -> Any:
        """x times a power of the damped average."""
        return self.get_matpower(exp, damping_func).matmul_right(x)


class DenseSquareMatrixFactor(FisherFactor):
    """A factor that is a full matrix; its powers and Cholesky factors are kept in variables, which make_inverse_update_ops computes anew."""

    def __init__(self) -> None:
        super().__init__()
        self._dampings: Dict[Any, Any] = {}
        self._kept: Dict[Tuple[Any, ...], Any] = {}  # what was registered, with its variable once that is made
        self._eigendecomp: Any = None

    def get_cov_as_linear_operator(self) -> Any:
        return linear_operators.LinearOperatorFullMatrix(self._cov, is_self_adjoint=True, is_square=True)

    @property
    def _matpower_by_exp_and_damping(self) -> Dict[Any, Any]:
        return {key[1:]: variable for key, variable in self._kept.items() if key[0] == "matpower"}

    def _register(self, damping_func: Any, *what: Any) -> None:
        key = graph_func_to_id(damping_func)
        self._dampings.setdefault(key, damping_func)
        self._kept.setdefault((*what, key), None)

    def register_inverse(self, damping_func: Any) -> None:
        """Has the inverse of the damped average kept in a variable."""
        self.register_matpower(-1, damping_func)

    def register_matpower(self, exp: float, damping_func: Any) -> None:
        if exp != 1:  # which needs no variable
            self._register(damping_func, "matpower", exp)

    def register_cholesky(self, damping_func: Any) -> None:
        """Has the Cholesky factor of the damped average kept in a variable."""
        self._register(damping_func, "cholesky")

    def register_cholesky_inverse(self, damping_func: Any) -> None:
        """Has the inverse of the Cholesky factor of the damped average kept in a variable."""
        self._register(damping_func, "cholesky_inverse")

    def instantiate_inv_variables(self) -> None:
        for key in self._kept:
            what = key[0] + ("_exp" + scalar_or_tensor_to_string(key[1]) if key[0] == "matpower" else "")
            self._kept[key] = self._variable("%s_damp%s" % (what, graph_func_to_string(self._dampings[key[-1]])), inverse_initializer, self._cov_shape)

    def make_inverse_update_ops(self) -> List[Any]:
        damping = {key: math_ops.cast(func(), self._dtype) for key, func in self._dampings.items()}
        powers = self._matpower_by_exp_and_damping
        inverses = sum(exp == -1 for exp, _ in powers)
        made: List[Any] = []
        if self._eigendecomp or inverses < len(powers) or inverses >= EIGENVALUE_DECOMPOSITION_THRESHOLD:
            values, vectors = self.get_eigendecomp()
            for (exp, key), variable in powers.items():
                made.append(variable.assign(matrix_ops.matmul(vectors * (values + damping[key]) ** exp, vectors, transpose_b=True)))
            made = [control_flow_ops.group(*made)]
        else:
            made = [variable.assign(utils.posdef_inv(self._cov, damping[key])) for (_, key), variable in powers.items()]
        for key in dict.fromkeys(key[-1] for key in self._kept if key[0] != "matpower"):
            factor, updates = utils.cholesky(self._cov, damping[key]), []
            if ("cholesky", key) in self._kept:
                updates.append(self._kept["cholesky", key].assign(factor))
            if ("cholesky_inverse", key) in self._kept:
                identity = matrix_ops.eye(factor.shape.as_list()[0], dtype=factor.dtype)
                updates.append(self._kept["cholesky_inverse", key].assign(gen_ops.matrix_triangular_solve(factor, identity)))
            made.append(control_flow_ops.group(*updates))
        self._eigendecomp = None  # a later call may be at another place of the graph
        return made

    def get_eigendecomp(self) -> Any:
        """(eigenvalues, eigenvectors) of the average; values are at least EIGENVALUE_CLIPPING_THRESHOLD."""
        if not self._eigendecomp:
            values, vectors = linalg_ops.self_adjoint_eig(self._cov)
            self._eigendecomp = gen_ops.maximum(values, EIGENVALUE_CLIPPING_THRESHOLD), vectors
        return self._eigendecomp

    def get_inverse(self, damping_func: Any) -> Any:
        """The inverse of the damped average as a linear operator."""
        return self.get_matpower(-1, damping_func)

    def get_matpower(self, exp: float, damping_func: Any) -> Any:
        if exp == 1:
            identity = matrix_ops.eye(self._cov.shape.as_list()[0], dtype=self._dtype)
            matrix = self._cov + math_ops.cast(damping_func(), self._dtype) * identity
        else:
            matrix = self._kept["matpower", exp, graph_func_to_id(damping_func)]
        return linear_operators.LinearOperatorFullMatrix(matrix, is_self_adjoint=True, is_square=True)

    def get_cholesky(self, damping_func: Any) -> Any:
        """The Cholesky factor of the damped average as a linear operator."""
        return linear_operators.LinearOperatorFullMatrix(self._kept["cholesky", graph_func_to_id(damping_func)], is_square=True)

    def get_cholesky_inverse(self, damping_func: Any) -> Any:
        """The inverse of the Cholesky factor of the damped average as a linear operator."""
        return linear_operators.LinearOperatorFullMatrix(self._kept["cholesky_inverse", graph_func_to_id(damping_func)], is_square=True)

    def left_multiply_matpower(self, x: Any, exp: float, damping_func: Any) -> Any:
        if isinstance(x, IndexedSlices) or x.shape.ndims != 2:
            raise at_user_line(ValueError("A full factor multiplies matrices, not %s." % (x,)))
        return super().left_multiply_matpower(x, exp, damping_func)


InverseProvidingFactor = DenseSquareMatrixFactor


class FullFactor(DenseSquareMatrixFactor):
    """The second moments of all gradients of some parameters: the square of their sum over the batch, over its size."""

    def __init__(self, params_grads: Any, batch_size: Any) -> None:
        super().__init__()
        self._batch_size = batch_size
        self._params_grads = tuple(utils.ensure_sequence(g) for g in params_grads)
        self._var_scope = "ff_full_" + scope_string_from_params([self._params_grads, self._batch_size])
        self._num_sources, self._num_towers, self._dtype = len(self._params_grads), 1, self._params_grads[0][0].dtype

    @property
    def _cov_shape(self) -> Any:  # type: ignore[override]
        size = sum(g.shape.num_elements() for g in self._params_grads[0])
        return [size, size]

    def _compute_new_cov(self, source: int, tower: int) -> Any:
        flat = utils.tensors_to_column(self._params_grads[source])
        return flat * array_ops.transpose(flat) / math_ops.cast(self._batch_size, flat.dtype)

    def _get_data_device(self, tower: int) -> Any:
        return None


class DiagonalFactor(FisherFactor):
    """A factor that is a diagonal matrix, whose powers are computed when they are asked for."""

    _cov_initializer = staticmethod(diagonal_covariance_initializer)

    def instantiate_inv_variables(self) -> None:
        """There are none."""

    def make_inverse_update_ops(self) -> List[Any]:
        return []

    def register_matpower(self, exp: float, damping_func: Any) -> None:
        """Nothing is kept."""

    def register_cholesky(self, damping_func: Any) -> None:
        """Nothing is kept."""

    def register_cholesky_inverse(self, damping_func: Any) -> None:
        """Nothing is kept."""

    def get_cov_as_linear_operator(self) -> Any:
        return linear_operators.LinearOperatorDiag(self._as_vector(), is_self_adjoint=True, is_square=True)

    def _as_vector(self) -> Any:
        return array_ops.reshape(self._cov, [-1])

    def get_matpower(self, exp: float, damping_func: Any) -> Any:
        power = (self._as_vector() + math_ops.cast(damping_func(), self._dtype)) ** exp
        return linear_operators.LinearOperatorDiag(power, is_non_singular=True, is_self_adjoint=True, is_positive_definite=True, is_square=True)

    def get_cholesky(self, damping_func: Any) -> Any:
        """The root of the damped average as a linear operator."""
        return self.get_matpower(0.5, damping_func)

    def get_cholesky_inverse(self, damping_func: Any) -> Any:
        """1 over the root of the damped average as a linear operator."""
        return self.get_matpower(-0.5, damping_func)

    def left_multiply_matpower(self, x: Any, exp: float, damping_func: Any) -> Any:
        operator = self.get_matpower(exp, damping_func)
        if isinstance(x, IndexedSlices):
            return operator.matmul(x)
        if not x.shape.is_compatible_with(self._cov.shape):
            raise at_user_line(ValueError("x (%s) and cov (%s) must have same shape." % (x.shape, self._cov.shape)))
        return array_ops.reshape(operator.diag, self._cov.shape) * x

    def right_multiply_matpower(self, x: Any, exp: float, damping_func: Any) -> Any:
        raise at_user_line(NotImplementedError("A diagonal factor multiplies x (%s) only from the left." % (x,)))


class NaiveDiagonalFactor(DiagonalFactor):
    """The squares of the gradients of some parameters, summed over the batch, over its size."""

    def __init__(self, params_grads: Any, batch_size: Any) -> None:
        super().__init__()
        self._batch_size = batch_size
        self._params_grads = tuple(utils.ensure_sequence(g) for g in params_grads)
        self._var_scope = "ff_naivediag_" + scope_string_from_params([self._params_grads, self._batch_size])
        self._num_sources, self._num_towers, self._dtype = len(self._params_grads), 1, self._params_grads[0][0].dtype

    @property
    def _cov_shape(self) -> Any:  # type: ignore[override]
        return [sum(g.shape.num_elements() for g in self._params_grads[0]), 1]

    def _compute_new_cov(self, source: int, tower: int) -> Any:
        flat = utils.tensors_to_column(self._params_grads[source])
        return gen_ops.square(flat) / math_ops.cast(self._batch_size, flat.dtype)

    def _get_data_device(self, tower: int) -> Any:
        return None


class EmbeddingInputKroneckerFactor(DiagonalFactor):
    """How often each row of an embedding is asked for in an example: the second moments of vectors with a single 1."""

    def __init__(self, input_ids: Any, vocab_size: int, dtype: Any = None) -> None:
        super().__init__()
        self._input_ids, self._vocab_size = input_ids, vocab_size
        self._var_scope = "ff_diag_embedding_" + scope_string_from_params(input_ids)
        self._cov_shape, self._num_sources, self._num_towers = [vocab_size], 1, len(input_ids)
        self._dtype = dtype or dtypes.float32

    def _compute_new_cov(self, source: int, tower: int) -> Any:
        ids = self._input_ids[tower]
        if ids.shape.ndims > 2:
            raise at_user_line(ValueError("Input to embeddings must have rank <= 2. Found rank %d." % ids.shape.ndims))
        counts = math_ops.reduce_sum(array_ops.one_hot(array_ops.reshape(ids, [-1]), self._vocab_size), axis=0)
        return counts / math_ops.cast(array_ops.shape(ids)[0], counts.dtype)

    def _get_data_device(self, tower: int) -> Any:
        return self._input_ids[tower].device


class _OfInputsAndOutputs(DiagonalFactor):
    """A diagonal of a layer's inputs and the gradients of its outputs."""

    def __init__(self, prefix: str, inputs: Any, outputs_grads: Any, dtype: Any) -> None:
        super().__init__()
        self._inputs, self._outputs_grads, self._dtype = inputs, outputs_grads, dtype
        self._var_scope = prefix + scope_string_from_params(tuple(inputs) + tuple(nest.flatten(outputs_grads)))
        self._num_sources, self._num_towers = len(outputs_grads), len(inputs)

    def _get_data_device(self, tower: int) -> Any:
        return self._inputs[tower].device


class FullyConnectedDiagonalFactor(_OfInputsAndOutputs):
    """The squares of the gradients of a dense layer's weights, example by example: squared inputs times squared gradients of outputs."""

    def __init__(self, inputs: Any, outputs_grads: Any, has_bias: bool = False) -> None:
        super().__init__("ff_diagfc_", inputs, outputs_grads, outputs_grads[0][0].dtype)
        self._has_bias = has_bias
        self._squared_inputs: List[Any] = []

    @property
    def _cov_shape(self) -> Any:  # type: ignore[override]
        return [self._inputs[0].shape[1] + self._has_bias, self._outputs_grads[0][0].shape[1]]

    def make_covariance_update_op(self, ema_decay: Any) -> Any:
        self._squared_inputs = []
        for tower, inputs in enumerate(self._inputs):
            with place_on_device(self._get_data_device(tower)):
                self._squared_inputs.append(gen_ops.square(append_homog(inputs) if self._has_bias else convert_to_tensor(inputs)))
        return super().make_covariance_update_op(ema_decay)

    def _compute_new_cov(self, source: int, tower: int) -> Any:
        squares = self._squared_inputs[tower]
        products = matrix_ops.matmul(squares, gen_ops.square(convert_to_tensor(self._outputs_grads[source][tower])), transpose_a=True)
        return products / math_ops.cast(array_ops.shape(squares)[0], products.dtype)


class ConvDiagonalFactor(_OfInputsAndOutputs):
    """The squares of the gradients of a convolution's filter, example by example."""

    def __init__(
        self,
        inputs: Any,
        outputs_grads: Any,
        filter_shape: Any,
        strides: Any,
        padding: Any,
        data_format: Any = None,
        dilations: Any = None,
        has_bias: bool = False,
    ) -> None:
        if not utils.is_data_format_channel_last(data_format):
            raise at_user_line(ValueError("Channel must be last, not as in data_format %s." % data_format))
        for what, tensors, channels in [("inputs", inputs, filter_shape[-2])] + [("outputs", grads, filter_shape[-1]) for grads in outputs_grads]:
            for t in tensors:
                if t.shape.ndims != 4:
                    raise at_user_line(ValueError("%s must be a list of 4-D Tensors, not of shape %s." % (what, t.shape)))
                if t.shape.as_list()[-1] != channels:
                    raise at_user_line(ValueError("%s have %s channels, filter_shape %s." % (what, t.shape.as_list()[-1], channels)))
        for what, numbers in (("strides", strides), ("dilations", dilations or [1, 1, 1, 1])):
            if len(numbers) != 4:
                raise at_user_line(ValueError("%s must be length-4 list of ints, not %s." % (what, numbers)))
        super().__init__("ff_convdiag_", inputs, outputs_grads, inputs[0].dtype)
        self._filter_shape, self._strides, self._padding, self._has_bias = filter_shape, strides, padding, has_bias
        self._dilations = tuple(dilations or (1, 1, 1, 1))
        self._patches: List[Any] = []

    @property
    def _cov_shape(self) -> Any:  # type: ignore[override]
        height, width, channels, outputs = self._filter_shape
        return [height * width * channels + self._has_bias, outputs]

    def make_covariance_update_op(self, ema_decay: Any) -> Any:
        self._patches = []
        for tower, inputs in enumerate(self._inputs):
            with place_on_device(self._get_data_device(tower)):
                patches = block_ops.extract_image_patches(
                    convert_to_tensor(inputs), [1, *self._filter_shape[:2], 1], self._strides, self._dilations, self._padding
                )
                self._patches.append(append_homog(patches) if self._has_bias else patches)
        return super().make_covariance_update_op(ema_decay)

    def _compute_new_cov(self, source: int, tower: int) -> Any:
        patches, grads = self._patches[tower], convert_to_tensor(self._outputs_grads[source][tower])
        each = matrix_ops.einsum("bijk,bijl->bkl", patches, grads)
        moments = math_ops.reduce_sum(gen_ops.square(each), axis=0)
        return moments / math_ops.cast(array_ops.shape(patches)[0], moments.dtype)


class FullyConnectedKroneckerFactor(DenseSquareMatrixFactor):
    """The second moments of a dense layer's inputs, or of the gradients of its outputs."""

    _prefix = "ff_fckron_"

    def __init__(self, tensors: Any, has_bias: bool = False) -> None:
        super().__init__()
        self._tensors, self._has_bias = tensors, has_bias
        self._num_sources, self._num_towers, self._dtype = len(tensors), len(tensors[0]), tensors[0][0].dtype
        self._var_scope = self._prefix + scope_string_from_params((*nest.flatten(tensors), *self._also_named()))

    def _also_named(self) -> Tuple[Any, ...]:
        return (self._has_bias,)

    @property
    def _cov_shape(self) -> Any:  # type: ignore[override]
        size = self._tensors[0][0].shape[1] + self._has_bias
        return [size, size]

    def _rows(self, source: int, tower: int) -> Any:
        tensor = convert_to_tensor(self._tensors[source][tower])
        return append_homog(tensor) if self._has_bias else tensor

    def _compute_new_cov(self, source: int, tower: int) -> Any:
        return compute_cov(self._rows(source, tower))

    def _get_data_device(self, tower: int) -> Any:
        return self._tensors[0][tower].device


class ConvInputKroneckerFactor(DenseSquareMatrixFactor):
    """The second moments of the patches of a convolution's inputs."""

    def __init__(
        self,
        inputs: Any,
        filter_shape: Any,
        padding: Any,
        strides: Any = None,
        dilation_rate: Any = None,
        data_format: Any = None,
        extract_patches_fn: Any = None,
        has_bias: bool = False,
        sub_sample_inputs: Optional[bool] = None,
        sub_sample_patches: Optional[bool] = None,
    ) -> None:
        super().__init__()
        self._inputs, self._filter_shape, self._padding, self._strides = inputs, filter_shape, padding, strides
        self._dilation_rate, self._data_format, self._extract_patches_fn, self._has_bias = dilation_rate, data_format, extract_patches_fn, has_bias
        self._sub_sample_inputs = _SUB_SAMPLE_INPUTS if sub_sample_inputs is None else sub_sample_inputs
        self._sub_sample_patches = _SUB_SAMPLE_OUTER_PRODUCTS if sub_sample_patches is None else sub_sample_patches
        self._num_sources, self._num_towers, self._dtype = 1, len(inputs), inputs[0].dtype
        self._var_scope = "ff_convinkron_" + scope_string_from_params((*inputs, filter_shape, strides, padding, dilation_rate, data_format, has_bias))

    @property
    def _cov_shape(self) -> Any:  # type: ignore[override]
        size = int(np.prod(self._filter_shape[:-1])) + self._has_bias
        return [size, size]

    def _patches_of(self, inputs: Any) -> Any:
        how = self._extract_patches_fn
        if how in (None, "extract_convolution_patches"):
            return utils.extract_convolution_patches(
                inputs, self._filter_shape, self._padding, strides=self._strides, dilation_rate=self._dilation_rate, data_format=self._data_format
            )
        if how == "extract_image_patches":
            sizes, rates = [1, *self._filter_shape[:-2], 1], self._dilation_rate or [1, 1, 1, 1]
            if inputs.shape.ndims != 4 or len(sizes) != 4 or len(self._strides) != 4 or len(rates) != 4 or rates[0] != 1 or rates[3] != 1:
                raise at_user_line(
                    ValueError(
                        "extract_image_patches takes inputs of 4 dimensions, with 4 strides and 4 rates: not %s, %s, %s." % (inputs, self._strides, rates)
                    )
                )
            return block_ops.extract_image_patches(inputs, sizes, self._strides, rates, self._padding)
        if how == "extract_pointwise_conv2d_patches":
            if self._strides is not None and list(self._strides) != [1, 1, 1, 1]:
                raise at_user_line(ValueError("extract_pointwise_conv2d_patches takes strides of 1, not %s." % (self._strides,)))
            return utils.extract_pointwise_conv2d_patches(inputs, self._filter_shape)
        raise at_user_line(NotImplementedError("There is no way %r to extract patches." % (how,)))

    def _compute_new_cov(self, source: int, tower: int) -> Any:
        inputs = convert_to_tensor(self._inputs[tower])
        if self._sub_sample_inputs:
            examples = inputs.shape.as_list()[0]
            if examples is None:
                raise at_user_line(ValueError("Unable to get the number of examples of %s, of which some are drawn by chance." % inputs))
            inputs = _random_tensor_gather(inputs, int(examples * _INPUTS_TO_EXTRACT_PATCHES_FACTOR))
        flat = array_ops.reshape(self._patches_of(inputs), [-1, int(np.prod(self._filter_shape[:-1]))])
        if self._sub_sample_patches:
            flat = _subsample_for_cov_computation(flat)
        return compute_cov(append_homog(flat) if self._has_bias else flat)

    def _get_data_device(self, tower: int) -> Any:
        return self._inputs[tower].device


class ConvOutputKroneckerFactor(DenseSquareMatrixFactor):
    """The second moments of the gradients of a convolution's outputs, over examples and places."""

    def __init__(self, outputs_grads: Any, data_format: Any = None) -> None:
        if not utils.is_data_format_channel_last(data_format):
            raise at_user_line(ValueError("Channel must be last, not as in data_format %s." % data_format))
        super().__init__()
        self._outputs_grads, self._out_channels = outputs_grads, outputs_grads[0][0].shape.as_list()[-1]
        self._num_sources, self._num_towers, self._dtype = len(outputs_grads), len(outputs_grads[0]), outputs_grads[0][0].dtype
        self._cov_shape = [self._out_channels, self._out_channels]
        self._var_scope = "ff_convoutkron_" + scope_string_from_params(nest.flatten(outputs_grads))

    def _compute_new_cov(self, source: int, tower: int) -> Any:
        return compute_cov(array_ops.reshape(convert_to_tensor(self._outputs_grads[source][tower]), [-1, self._out_channels]))

    def _get_data_device(self, tower: int) -> Any:
        return self._outputs_grads[0][tower].device


class FullyConnectedMultiKF(FullyConnectedKroneckerFactor):
    """The factor of a dense layer that is used num_uses times, whose tensors [num_uses * batch, n] have one use behind the other; with it, where that was
    registered, the moments between a use and the next (Martens, Ba and Johnson 2018)."""

    _prefix = "ff_fc_multi_"

    def __init__(self, tensors: Any, num_uses: Optional[int] = None, has_bias: bool = False) -> None:
        self._num_uses = num_uses
        super().__init__(tensors, has_bias=has_bias)
        self._cov_dt1: Any = None
        self._make_cov_dt1 = False
        self._options: Dict[Tuple[int, Any], Any] = {}  # by option and damping

    @property
    def _num_timesteps(self) -> Any:
        return self._num_uses

    def _also_named(self) -> Tuple[Any, ...]:
        return (self._num_uses, self._has_bias)

    def make_covariance_update_op(self, ema_decay: Any) -> Any:
        update = super().make_covariance_update_op(ema_decay)
        if self._cov_dt1 is None:
            return update
        return control_flow_ops.group(update, self._averaged(self._cov_dt1, self._compute_new_cov_dt1, ema_decay))

    def _compute_new_cov_dt1(self, source: int, tower: int) -> Any:
        rows = self._rows(source, tower)
        total = array_ops.shape(rows)[0]
        batch = total // self._num_uses
        return compute_cov(rows[batch:, :], tensor_right=rows[:-batch, :], normalizer=total)

    @property
    def _vec_shape(self) -> Any:
        return self._cov_shape[:1]

    def get_option1quants(self, damping_func: Any) -> Any:
        """(L, psi) for the first approximation."""
        return self._options[1, graph_func_to_id(damping_func)]

    def get_option2quants(self, damping_func: Any) -> Any:
        """(P, K, mu) for the second approximation."""
        return self._options[2, graph_func_to_id(damping_func)]

    def get_cov_dt1(self) -> Any:
        """The average of the moments between a use and the next."""
        if self._cov_dt1 is None:
            raise at_user_line(ValueError("The moments between uses were not registered with %s." % self.name))
        return self._cov_dt1

    def register_cov_dt1(self) -> None:
        """Has the moments between a use and the next kept."""
        self._make_cov_dt1 = True

    def instantiate_cov_variables(self) -> None:
        super().instantiate_cov_variables()
        if self._make_cov_dt1:
            self._cov_dt1 = self._variable("cov_dt1", init_ops.zeros_initializer(), self._cov_shape)

    def _register_option(self, option: int, damping_func: Any) -> None:
        key = graph_func_to_id(damping_func)
        self._dampings.setdefault(key, damping_func)
        self._options.setdefault((option, key), None)

    def register_option1quants(self, damping_func: Any) -> None:
        """Has what the first approximation needs kept in variables."""
        self._register_option(1, damping_func)

    def register_option2quants(self, damping_func: Any) -> None:
        """Has what the second approximation needs kept in variables."""
        self._register_option(2, damping_func)

    def instantiate_inv_variables(self) -> None:
        super().instantiate_inv_variables()
        for option, key in sorted(self._options, key=lambda k: k[0]):
            damping = graph_func_to_string(self._dampings[key])
            matrices = [
                self._variable("%s_damp%s" % (name, damping), inverse_initializer, self._cov_shape) for name in (["Lmat"] if option == 1 else ["Lmat", "Kmat"])
            ]
            vector = self._variable("%s_damp%s" % ("psi" if option == 1 else "mu", damping), init_ops.ones_initializer(), self._vec_shape)
            self._options[option, key] = (*matrices, vector)

    def make_inverse_update_ops(self) -> List[Any]:
        made: List[Any] = []
        if self._options:
            values, vectors = self.get_eigendecomp()
            for (option, key), variables in sorted(self._options.items(), key=lambda item: item[0][0]):
                root = matrix_ops.matmul(vectors * (values + self._dampings[key]()) ** -0.5, vectors, transpose_b=True)
                quantities = (_option1 if option == 1 else _option2)((root + array_ops.transpose(root)) / 2.0, self.get_cov_dt1())
                made += [variable.assign(value) for variable, value in zip(variables, quantities)]
        return [control_flow_ops.group(*made, *super().make_inverse_update_ops())]


def _option1(root: Any, next_cov: Any) -> Any:
    """(L, psi): the moments between uses, taken as symmetric, are Psi = U diag(psi) U' where C is the identity, and L = C^-1/2 U."""
    symmetric = (next_cov + array_ops.transpose(next_cov)) / 2.0
    psi, basis = utils.posdef_eig(matrix_ops.matmul(matrix_ops.matmul(root, symmetric), root))
    return matrix_ops.matmul(root, basis), psi


def _option2(root: Any, next_cov: Any) -> Any:
    """(P, K, mu): P = C1' C^-1; mu, at most 1, and E are the eigenvalues and eigenvectors of Psi' Psi, and K = C^-1/2 E."""
    half = matrix_ops.matmul(root, next_cov)
    roots, _, basis = linalg_ops.svd(matrix_ops.matmul(half, root))
    product = matrix_ops.matmul(half, root, transpose_a=True)
    return product, matrix_ops.matmul(root, basis), gen_ops.minimum(gen_ops.square(roots), 1.0)
