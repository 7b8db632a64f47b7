# SPDX-License-Identifier: Apache-2.0
"""What the parts of tf.contrib.kfac share: vectors of many tensors, inverses, patches of images, what a graph's ends stand on."""

from __future__ import annotations

import functools
from typing import Any, Dict, Iterable, List, Set

import numpy as np

from millrace.contrib import tpu
from millrace.framework import dtypes, tensor_shape
from millrace.framework.composite_tensors import IndexedSlices
from millrace.framework.convert import convert_to_tensor, register_tensor_conversion_function
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Operation, Tensor, control_dependencies, name_scope
from millrace.ops import array_ops, block_ops, control_flow_ops, gen_ops, linalg_ops, math_ops, matrix_ops, random_ops, window_ops
from millrace.ops.gradients import gradients
from millrace.ops.resource_variables import ResourceVariable
from millrace.ops.variables import Variable

POSDEF_INV_METHOD = "cholesky"
POSDEF_EIG_METHOD = "self_adjoint"


def set_global_constants(posdef_inv_method: Any = None) -> None:
    """Chooses how positive matrices are inverted: cholesky, matrix_inverse or eig."""
    global POSDEF_INV_METHOD
    POSDEF_INV_METHOD = POSDEF_INV_METHOD if posdef_inv_method is None else posdef_inv_method


class SequenceDict:
    """A dict that is asked for, and told, several keys at once too."""

    def __init__(self, iterable: Any = None) -> None:
        self._dict: Dict[Any, Any] = dict(iterable or ())

    def __getitem__(self, key_or_keys: Any) -> Any:
        if isinstance(key_or_keys, (list, tuple)):
            return [self[key] for key in key_or_keys]
        return self._dict[key_or_keys]

    def __setitem__(self, key_or_keys: Any, val_or_vals: Any) -> None:
        if isinstance(key_or_keys, (list, tuple)):
            for key, value in zip(key_or_keys, val_or_vals):
                self[key] = value
        else:
            self._dict[key_or_keys] = val_or_vals

    def items(self) -> List[Any]:
        return list(self._dict.items())


def ensure_sequence(obj: Any) -> Any:
    """A list or tuple as it is, anything else as a tuple of one."""
    return obj if isinstance(obj, (list, tuple)) else (obj,)


def tensors_to_column(tensors: Any) -> Tensor:
    """All numbers of a tensor, or of several, as one column."""
    if isinstance(tensors, (list, tuple)):
        return array_ops.concat([tensors_to_column(t) for t in tensors], 0)
    return array_ops.reshape(tensors, [-1, 1])


def column_to_tensors(tensors_template: Any, colvec: Any) -> Any:
    """What tensors_to_column was given, of the numbers of a column."""
    if not isinstance(tensors_template, (list, tuple)):
        return array_ops.reshape(colvec, tensors_template.shape)
    made, at = [], 0
    for like in tensors_template:
        size = like.shape.num_elements()
        made.append(array_ops.reshape(colvec[at : at + size], like.shape))
        at += size
    return tuple(made)


def kronecker_product(mat1: Any, mat2: Any) -> Tensor:
    """The matrix of the products of each number of one with the other matrix."""
    (rows, columns), (more_rows, more_columns) = mat1.get_shape().as_list(), mat2.get_shape().as_list()
    products = array_ops.reshape(mat1, [rows, 1, columns, 1]) * array_ops.reshape(mat2, [1, more_rows, 1, more_columns])
    return array_ops.reshape(products, [rows * more_rows, columns * more_columns])


def layer_params_to_mat2d(vector: Any) -> Any:
    """What is formed as a layer's weights (and bias) as a matrix with a column for each output; the bias is its last row."""
    if isinstance(vector, (list, tuple)):
        weights, bias = vector
        return array_ops.concat([layer_params_to_mat2d(weights), array_ops.reshape(bias, [1, -1])], 0)
    if isinstance(vector, IndexedSlices):
        return vector
    return array_ops.reshape(vector, [-1, vector.shape.as_list()[-1]])


def mat2d_to_layer_params(vector_template: Any, mat2d: Any) -> Any:
    """What layer_params_to_mat2d was given, of such a matrix."""
    if isinstance(vector_template, (list, tuple)):
        return array_ops.reshape(mat2d[:-1], vector_template[0].shape), mat2d[-1]
    if isinstance(vector_template, IndexedSlices):
        if not isinstance(mat2d, IndexedSlices):
            raise at_user_line(TypeError("Of a template of IndexedSlices the matrix has to be IndexedSlices too, not %r." % (mat2d,)))
        return mat2d
    return array_ops.reshape(mat2d, vector_template.shape)


def _damped(tensor: Any, damping: Any) -> Any:
    return tensor + math_ops.cast(damping, tensor.dtype) * _identity(tensor)


def _identity(tensor: Any) -> Tensor:
    return matrix_ops.eye(tensor.shape.as_list()[0], dtype=tensor.dtype.base_dtype)


def posdef_inv(tensor: Any, damping: Any) -> Tensor:
    """The inverse of tensor + damping * identity, by the method that set_global_constants chose."""
    return posdef_inv_functions[POSDEF_INV_METHOD](tensor, _identity(tensor), math_ops.cast(damping, tensor.dtype))


def posdef_inv_matrix_inverse(tensor: Any, identity: Any, damping: Any) -> Tensor:
    """The inverse of tensor + damping * identity by elimination."""
    return gen_ops.matrix_inverse(tensor + damping * identity)


def posdef_inv_cholesky(tensor: Any, identity: Any, damping: Any) -> Tensor:
    """The inverse of tensor + damping * identity by its Cholesky factor."""
    return linalg_ops.cholesky_solve(gen_ops.cholesky(tensor + damping * identity), identity)


def posdef_inv_eig(tensor: Any, identity: Any, damping: Any) -> Tensor:
    """The inverse of tensor + damping * identity by its eigenvalues."""
    values, vectors = linalg_ops.self_adjoint_eig(tensor + damping * identity)
    return matrix_ops.matmul(vectors / values, vectors, transpose_b=True)


posdef_inv_functions = {"matrix_inverse": posdef_inv_matrix_inverse, "cholesky": posdef_inv_cholesky, "eig": posdef_inv_eig}
posdef_inv_funcs = posdef_inv_functions


def cholesky(tensor: Any, damping: Any) -> Tensor:
    """The Cholesky factor of tensor + damping * identity."""
    return gen_ops.cholesky(_damped(tensor, damping))


def posdef_eig(mat: Any) -> Any:
    """(eigenvalues, eigenvectors) of a positive matrix."""
    return posdef_eig_functions[POSDEF_EIG_METHOD](mat)


def posdef_eig_svd(mat: Any) -> Any:
    """Singular values and the vectors on the left."""
    values, vectors, _ = linalg_ops.svd(mat)
    return values, vectors


def posdef_eig_self_adjoint(mat: Any) -> Any:
    """Eigenvalues without their signs, and eigenvectors."""
    values, vectors = linalg_ops.self_adjoint_eig(mat)
    return math_ops.abs(values), vectors


posdef_eig_functions = {"self_adjoint": posdef_eig_self_adjoint, "svd": posdef_eig_svd}


class SubGraph:
    """All tensors and operations that some outputs stand on."""

    def __init__(self, outputs: Any) -> None:
        self._members: Set[Any] = set()
        left = list(outputs)
        while left:
            node = left.pop()
            if node not in self._members:
                self._members.add(node)
                if isinstance(node, Operation):
                    left.extend(node.inputs)
                elif isinstance(node, Tensor):
                    left.append(node.op)

    def is_member(self, node: Any) -> bool:
        """Whether the outputs stand on a tensor or operation."""
        return node in self._members

    def variable_uses(self, var: Any) -> int:
        """How many of the operations read a variable."""
        if isinstance(var, ResourceVariable):
            read = var.handle
        elif isinstance(var, Variable):
            read = var.value()
        else:
            raise at_user_line(ValueError("%s does not appear to be a variable." % (var,)))
        return len(self._members.intersection(read.consumers()))

    def filter_list(self, node_list: Iterable[Any]) -> List[Any]:
        """Those of a list that the outputs stand on."""
        return [node for node in node_list if node in self._members]


def generate_random_signs(shape: Any, dtype: Any = dtypes.float32) -> Tensor:
    """1 and -1 by chance."""
    return 2 * math_ops.cast(random_ops.random_uniform(shape, maxval=2, dtype=dtypes.int32), dtype) - 1


def fwd_gradients(ys: Any, xs: Any, grad_xs: Any = None, stop_gradients: Any = None) -> List[Any]:
    """What ys change by when xs change by grad_xs: gradients from front to back, by two from back to front."""
    incoming = [array_ops.zeros_like(y) + float("nan") for y in ys]
    back = gradients(ys, xs, grad_ys=incoming, stop_gradients=stop_gradients)
    both_ways = [array_ops.zeros_like(x) if g is None else convert_to_tensor(g) for x, g in zip(xs, back)]
    return gradients(both_ways, incoming, grad_ys=grad_xs)


def on_tpu() -> bool:
    """Whether a computation for several TPU cores is being built."""
    return tpu.get_tpu_context().number_of_shards is not None


def cross_replica_mean(tensor: Any, name: Any = None) -> Any:
    """The mean of a tensor over the cores of a TPU."""
    with name_scope(name, "cross_replica_mean", [tensor]):
        shards = tpu.get_tpu_context().number_of_shards
        if shards is None:
            raise at_user_line(ValueError("Cannot take cross_replica_mean() outside of TPU Context."))
        return tensor if shards == 1 else tpu.cross_replica_sum(tensor / shards)


def batch_execute(global_step: Any, thunks: Any, batch_size: int, name: Any = None) -> List[Any]:
    """An operation for each function; in a step batch_size of them run what their function makes, in turn."""

    def running(thunk: Any) -> Any:
        with control_dependencies([thunk()]):
            return control_flow_ops.no_op()

    with name_scope(name, "batch_execute"):
        count, first = len(thunks), global_step * batch_size + batch_size - 1
        turns = [gen_ops.less(math_ops.mod(first - i, count), batch_size) for i in range(count)]
        return [control_flow_ops.cond(turn, functools.partial(running, thunk), control_flow_ops.no_op) for turn, thunk in zip(turns, thunks)]


def is_data_format_channel_last(data_format: Any) -> bool:
    """Whether channels are the last dimension."""
    return data_format is None or data_format.endswith("C")


def extract_convolution_patches(
    inputs: Any, filter_shape: Any, padding: Any, strides: Any = None, dilation_rate: Any = None, name: Any = None, data_format: Any = None
) -> Tensor:
    """What tf.nn.convolution multiplies with its filter at each place: [batch, places.., filter's sizes.., channels]."""
    if not is_data_format_channel_last(data_format):
        raise at_user_line(ValueError("Channel must be last dimension, not as in data_format %s." % data_format))
    with name_scope(name, "extract_convolution_patches", [inputs]):
        sizes, channels = list(filter_shape[:-2]), inputs.shape.as_list()[-1]
        if channels != filter_shape[-2]:
            raise at_user_line(ValueError("inputs have %s channels, filter_shape %s." % (channels, filter_shape[-2])))
        numbers = int(np.prod(sizes)) * channels
        picking = array_ops.reshape(matrix_ops.eye(numbers), [*sizes, channels, numbers])
        picked = window_ops.convolution(inputs, picking, padding=padding, strides=strides, dilation_rate=dilation_rate)
        return array_ops.reshape(picked, [inputs.shape.as_list()[0] or -1, *picked.shape.as_list()[1:-1], *sizes, channels])


def extract_pointwise_conv2d_patches(inputs: Any, filter_shape: Any, name: Any = None, data_format: Any = None) -> Tensor:
    """The patches of a filter that sees one place at a time."""
    if inputs.shape.ndims != 4:
        raise at_user_line(ValueError("inputs must have 4 dims, not %s." % inputs.shape.ndims))
    if len(filter_shape) != 4 or tuple(filter_shape[:2]) != (1, 1):
        raise at_user_line(ValueError("filter_shape must be [1, 1, channels, outputs], not %s." % (filter_shape,)))
    if not is_data_format_channel_last(data_format):
        raise at_user_line(ValueError("Channel must be last dimension, not as in data_format %s." % data_format))
    with name_scope(name, "extract_pointwise_conv2d_patches", [inputs]):
        batch, height, width, _ = inputs.shape.as_list()
        patches = block_ops.extract_image_patches(inputs, [1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 1, 1], "VALID")
        return array_ops.reshape(patches, [batch, height, width, *filter_shape[:3]])


def _rows_by_number(matrix: Any) -> None:
    if matrix.indices.shape.ndims != 1 or matrix.values.shape.ndims != 2:
        raise at_user_line(ValueError("The IndexedSlices must be rows of a matrix. Found: %s." % (matrix,)))


def matmul_sparse_dense(A: Any, B: Any, name: Any = None, transpose_a: bool = False, transpose_b: bool = False) -> IndexedSlices:
    """Rows by number times a matrix: again rows by number."""
    with name_scope(name, "matmul_sparse_dense", [A, B]):
        _rows_by_number(A)
        if B.shape.ndims != 2:
            raise at_user_line(ValueError("B must be a matrix, not of %s dimensions." % B.shape.ndims))
        values = matrix_ops.matmul(A.values, B, transpose_a=transpose_a, transpose_b=transpose_b)
        return IndexedSlices(values, A.indices, dense_shape=array_ops.stack([A.dense_shape[0], values.shape[1].value]))


def matmul_diag_sparse(A_diag: Any, B: Any, name: Any = None) -> IndexedSlices:
    """The diagonal matrix of a vector times rows by number: again rows by number."""
    with name_scope(name, "matmul_diag_sparse", [A_diag, B]):
        A_diag = convert_to_tensor(A_diag)
        if A_diag.shape.ndims != 1:
            raise at_user_line(ValueError("A_diag must be a rank-1 Tensor, not of %s dimensions." % A_diag.shape.ndims))
        _rows_by_number(B)
        return IndexedSlices(array_ops.expand_dims(array_ops.gather(A_diag, B.indices), 1) * B.values, B.indices, dense_shape=B.dense_shape)


class PartitionedTensor:
    """Tensors that count as one, joined along their first dimension where that is needed."""

    def __init__(self, tensors: Any) -> None:
        if not tensors:
            raise at_user_line(ValueError("tensors must be a list of 1+ Tensors."))
        for what, found in (("dtype", [t.dtype for t in tensors]), ("shape without the first dimension", [t.shape[1:] for t in tensors])):
            if any(one != found[0] for one in found):
                raise at_user_line(ValueError("All tensors must have the same %s: %s." % (what, ", ".join(map(str, found)))))
        self.tensors = tensors
        self._joined: Dict[Any, Any] = {}  # by the device that joins them

    @property
    def shape(self) -> Any:
        rows = sum((t.shape[0] for t in self.tensors), tensor_shape.Dimension(0))
        return tensor_shape.TensorShape([rows]).concatenate(self.tensors[0].shape[1:])

    def get_shape(self) -> Any:
        return self.shape

    @property
    def dtype(self) -> Any:
        return self.tensors[0].dtype

    @property
    def device(self) -> Any:
        """The device of all of them; None where they are not on one."""
        devices = {t.device for t in self.tensors}
        return devices.pop() if len(devices) == 1 else None

    def __str__(self) -> str:
        return "PartitionedTensor([%s, ...], dtype=%s, shape=%s)" % (self.tensors[0].name, self.dtype.name, tuple(self.shape.as_list()))

    def __hash__(self) -> int:
        return hash(tuple(self.tensors))

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, PartitionedTensor) and self.tensors == other.tensors

    def __ne__(self, other: Any) -> bool:
        return not self == other

    def __getitem__(self, key: Any) -> Any:
        return self.as_tensor()[key]

    def as_tensor(self, dtype: Any = None, name: Any = None, as_ref: bool = False) -> Tensor:
        """The tensors joined."""
        if as_ref or dtype not in (None, self.dtype):
            raise at_user_line(TypeError("A PartitionedTensor of %s cannot become a %s%s." % (self.dtype.name, "reference to " if as_ref else "", dtype)))
        with name_scope(name, "PartitionedTensor.as_tensor", self.tensors):
            joined = array_ops.concat(self.tensors, 0)
            return self._joined.setdefault(joined.device, joined)


register_tensor_conversion_function(PartitionedTensor, lambda value, dtype=None, name=None, as_ref=False: value.as_tensor(dtype, name, as_ref))
