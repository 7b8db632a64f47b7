# SPDX-License-Identifier: Apache-2.0
"""Transforms of columns: parsing, batches, sparse and dense columns, rows by a mask, arithmetic."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

import numpy as np

from millrace.contrib.learn.dataframe.series import Series, TensorFlowTransform, Transform, parameter
from millrace.framework.composite_tensors import SparseTensor
from millrace.framework.convert import constant
from millrace.framework.errors import at_user_line
from millrace.ops import array_ops, gen_ops, math_ops, parsing_ops, sparse_ops
from millrace.ops.gather_ops import gather, gather_nd
from millrace.ops.sparse_math_ops import sparse_add
from millrace.train import batching


class _Named(TensorFlowTransform):
    """A transform of one column into one, unless a class says something else; its name is its class's."""

    input_valency = 1
    _output_names: Any = "output"

    @property
    def name(self) -> str:  # type: ignore[override]
        """The name of its class."""
        return type(self).__name__

    def _apply(self, *tensors: Any) -> Any:
        raise NotImplementedError("%s has no _apply" % self.name)

    def _apply_transform(self, input_tensors: List[Any], **kwargs: Any) -> Any:
        del kwargs  # which sources ask for
        return self.return_type(self._apply(*input_tensors))


# ---- batches ----


class Batch(_Named):
    """Batches of batch_size rows of columns that come in other batches, in order."""

    def __init__(self, batch_size: int, output_names: Any, num_threads: int = 1, queue_capacity: Optional[int] = None) -> None:
        self._batch_size, self._output_names, self._num_threads = batch_size, output_names, num_threads
        self._queue_capacity = batch_size * 10 if queue_capacity is None else queue_capacity

    @parameter
    def batch_size(self) -> int:
        """The rows of a batch."""
        return self._batch_size

    @parameter
    def num_threads(self) -> int:
        """How many threads fill the queue."""
        return self._num_threads

    @parameter
    def queue_capacity(self) -> int:
        """How many rows the queue holds."""
        return self._queue_capacity

    @property
    def input_valency(self) -> int:  # type: ignore[override]
        """As many columns as outputs."""
        return len(self.output_names)

    def _batches(self, tensors: List[Any]) -> Any:
        return batching.batch(tensors, batch_size=self._batch_size, num_threads=self._num_threads, capacity=self._queue_capacity, enqueue_many=True)

    def _apply_transform(self, input_tensors: List[Any], **kwargs: Any) -> Any:
        del kwargs  # which sources ask for
        made = self._batches(input_tensors)
        return self.return_type(*(made if isinstance(made, (list, tuple)) else [made]))


class ShuffleBatch(Batch):
    """Batch in a random order, each row chosen among at least min_after_dequeue."""

    def __init__(
        self,
        batch_size: int,
        output_names: Any,
        num_threads: int = 1,
        queue_capacity: Optional[int] = None,
        min_after_dequeue: Optional[int] = None,
        seed: Optional[int] = None,
    ) -> None:
        super().__init__(batch_size, output_names, num_threads, queue_capacity)
        self._min_after_dequeue, self._seed = self._queue_capacity // 4 if min_after_dequeue is None else min_after_dequeue, seed

    @parameter
    def min_after_dequeue(self) -> int:
        """How many rows stay in the queue."""
        return self._min_after_dequeue

    @parameter
    def seed(self) -> Optional[int]:
        """Of the order."""
        return self._seed

    def _batches(self, tensors: List[Any]) -> Any:
        return batching.shuffle_batch(
            tensors,
            batch_size=self._batch_size,
            num_threads=self._num_threads,
            capacity=self._queue_capacity,
            min_after_dequeue=self._min_after_dequeue,
            seed=self._seed,
            enqueue_many=True,
        )


# ---- parsing ----


class CSVParser(_Named):
    """Lines of values between commas as columns of these names. default_values: of fields that are empty, which say the types."""

    def __init__(self, column_names: Any, default_values: Any) -> None:
        self._column_names, self._default_values = tuple(column_names), list(default_values)

    @property
    def _output_names(self) -> Tuple[str, ...]:  # type: ignore[override]
        return self._column_names

    @parameter
    def column_names(self) -> Tuple[str, ...]:
        """The names of the fields in order."""
        return self._column_names

    @parameter
    def default_values(self) -> List[Any]:
        """What empty fields are."""
        return self._default_values

    def _apply_transform(self, input_tensors: List[Any], **kwargs: Any) -> Any:
        del kwargs  # which sources ask for
        defaults = [np.array([v], np.float32) if isinstance(v, float) else [v] for v in self._default_values]
        return self.return_type(*parsing_ops.decode_csv(input_tensors[0], record_defaults=defaults))


class ExampleParser(_Named):
    """Serialized Examples as columns. features: how each is parsed by name, in a dictionary, whose columns are sorted, or as pairs."""

    def __init__(self, features: Any) -> None:
        self._features = sorted(features.items()) if isinstance(features, dict) else list(features)

    @property
    def _output_names(self) -> Tuple[str, ...]:  # type: ignore[override]
        return tuple(name for name, _ in self._features)

    @parameter
    def feature_definitions(self) -> List[Any]:
        """(name, how it is parsed) of each."""
        return self._features

    def _apply_transform(self, input_tensors: List[Any], **kwargs: Any) -> Any:
        del kwargs  # which sources ask for
        parsed = parsing_ops.parse_example(input_tensors[0], dict(self._features))
        return self.return_type(*[parsed[name] for name in self.output_names])


# ---- sparse and dense ----


def _is(tensor: Any, value: Any) -> Any:
    """Where it is the value, which may be NaN."""
    return gen_ops.is_nan(tensor) if isinstance(value, float) and np.isnan(value) else gen_ops.equal(tensor, constant(value, tensor.dtype))


class Sparsify(_Named):
    """A SparseTensor without the elements that are strip_value."""

    def __init__(self, strip_value: Any) -> None:
        self._strip_value = strip_value

    @parameter
    def strip_value(self) -> Any:
        """What is left out."""
        return self._strip_value

    def _apply(self, *tensors: Any) -> Any:
        (dense,) = tensors
        indices = array_ops.where(gen_ops.logical_not(_is(dense, self._strip_value)))
        return SparseTensor(indices, gather_nd(dense, indices), array_ops.shape(dense, out_type=indices.dtype))


class Densify(_Named):
    """A dense tensor with default_value where a SparseTensor has nothing."""

    def __init__(self, default_value: Any) -> None:
        self._default_value = default_value

    @parameter
    def default_value(self) -> Any:
        """What is filled in."""
        return self._default_value

    def _apply(self, *tensors: Any) -> Any:
        (sparse,) = tensors
        return sparse_ops.sparse_to_dense(sparse.indices, sparse.dense_shape, sparse.values, self._default_value, validate_indices=False)


# ---- rows ----


def sparse_boolean_mask(sparse_tensor: Any, mask: Any, name: str = "sparse_boolean_mask") -> SparseTensor:
    """The elements of a SparseTensor in the rows where the mask is true; its shape and the numbers of its rows stay."""
    kept = gather(mask, sparse_tensor.indices[:, 0], name=name)
    return SparseTensor(array_ops.boolean_mask(sparse_tensor.indices, kept), array_ops.boolean_mask(sparse_tensor.values, kept), sparse_tensor.dense_shape)


@Series.register_binary_op("select_rows")
class BooleanMask(_Named):
    """The rows of a column where another, of booleans, is true."""

    input_valency = 2

    def _apply(self, *tensors: Any) -> Any:
        column, mask = tensors
        if isinstance(mask, SparseTensor):
            mask = sparse_ops.sparse_to_dense(mask.indices, mask.dense_shape, mask.values, default_value=False)
        return sparse_boolean_mask(column, mask) if isinstance(column, SparseTensor) else array_ops.boolean_mask(column, mask)


@Series.register_unary_op("hash")
class HashFast(_Named):
    """The numbers of buckets, below num_buckets, that strings fall into, i64."""

    def __init__(self, num_buckets: int) -> None:
        self._num_buckets = num_buckets

    @parameter
    def num_buckets(self) -> int:
        """How many there are."""
        return self._num_buckets

    def _apply(self, *tensors: Any) -> Any:
        (given,) = tensors
        if isinstance(given, SparseTensor):
            return SparseTensor(given.indices, self._apply(given.values), given.dense_shape)
        return gen_ops.string_to_hash_bucket_fast(given, num_buckets=self._num_buckets)


class SplitMask(Transform):
    """True for this proportion of the values of a column of strings: the same for equal strings."""

    input_valency = 1
    _output_names = "output"
    _BUCKETS = 1000000

    def __init__(self, proportion: float) -> None:
        self._proportion = proportion

    @property
    def name(self) -> str:  # type: ignore[override]
        """The name of its class."""
        return "SplitMask"

    @parameter
    def proportion(self) -> float:
        """Of the rows that are true."""
        return self._proportion

    def _produce_output_series(self, input_series: List[Series]) -> Any:
        (hashed,) = HashFast(self._BUCKETS)(input_series)
        return [hashed < int(self._BUCKETS * self._proportion)]


# ---- arithmetic ----


@Series.register_binary_op("__add__")
class Sum(_Named):
    """The sum of two columns, one of which or both may be sparse."""

    name = "sum"  # type: ignore[assignment]
    input_valency = 2

    def _apply(self, *tensors: Any) -> Any:
        left, right = tensors
        sparse = isinstance(left, SparseTensor), isinstance(right, SparseTensor)
        return sparse_add(left, right) if any(sparse) else left + right


@Series.register_binary_op("__sub__")
class Difference(Sum):
    """The difference of two columns, one of which or both may be sparse."""

    name = "difference"  # type: ignore[assignment]

    def _apply(self, *tensors: Any) -> Any:
        left, right = tensors
        minus = SparseTensor(right.indices, gen_ops.neg(right.values), right.dense_shape) if isinstance(right, SparseTensor) else gen_ops.neg(right)
        return super()._apply(left, minus)


UNARY_TRANSFORMS: List[Any] = [
    ("__neg__", gen_ops.neg),
    ("sign", math_ops.sign),
    ("reciprocal", gen_ops.reciprocal),
    ("square", math_ops.square),
    ("round", math_ops.round),
    ("sqrt", math_ops.sqrt),
    ("rsqrt", gen_ops.rsqrt),
    ("exp", gen_ops.exp),
    ("log", gen_ops.log),
    ("ceil", gen_ops.ceil),
    ("floor", gen_ops.floor),
    ("cos", gen_ops.cos),
    ("sin", gen_ops.sin),
    ("lgamma", gen_ops.lgamma),
    ("digamma", gen_ops.digamma),
    ("erf", math_ops.erf),
    ("erfc", gen_ops.erfc),
    ("__invert__", gen_ops.logical_not, bool),
]
BINARY_TRANSFORMS: List[Any] = [
    ("__eq__", gen_ops.equal),
    ("__gt__", gen_ops.greater),
    ("__ge__", gen_ops.greater_equal),
    ("__lt__", gen_ops.less),
    ("__le__", gen_ops.less_equal),
    ("__mul__", math_ops.multiply),
    ("__div__", math_ops.div),
    ("__truediv__", math_ops.truediv),
    ("__floordiv__", math_ops.floordiv),
    ("__mod__", math_ops.mod),
    ("pow", math_ops.pow),
]


def _of_values(operation: Any) -> Any:
    def apply(self: Any, *tensors: Any) -> Any:
        (given,) = tensors
        return SparseTensor(given.indices, operation(given.values), given.dense_shape) if isinstance(given, SparseTensor) else operation(given)

    return apply


def _of_dense(operation: Any, scalar: bool) -> Any:
    def apply(self: Any, *tensors: Any) -> Any:
        if any(isinstance(tensor, SparseTensor) for tensor in tensors):
            raise at_user_line(TypeError("%s does not support SparseTensors" % self.name))
        return operation(*tensors, self._scalar) if scalar else operation(*tensors)

    return apply


def register_unary_op(registered_name: str, operation: Any, ignore_dtype: Any = None) -> None:
    """Makes a function of a tensor a method of columns."""
    del ignore_dtype  # what it is tried with
    made = type(operation.__name__, (_Named,), {"__doc__": "%s of a column." % registered_name, "_apply": _of_values(operation)})
    Series.register_unary_op(registered_name)(made)


class ScalarBinaryTransform(_Named):
    """A function of a column and a number."""

    def __init__(self, scalar: Any) -> None:
        if isinstance(scalar, Series):
            raise at_user_line(ValueError("%s takes a Series and a scalar. It was called with another Series." % type(self).__name__))
        self._scalar = scalar

    @parameter
    def scalar(self) -> Any:
        """The number."""
        return self._scalar


class SeriesBinaryTransform(_Named):
    """A function of two columns."""

    input_valency = 2


def register_binary_op(method_name: str, operation: Any) -> None:
    """Makes a function of two tensors a method of columns, with another column or a number."""
    name, about = operation.__name__, "%s of a column and something else." % method_name
    fields: Dict[str, Any] = {"__doc__": about}
    of_series: Any = type("series_" + name, (SeriesBinaryTransform,), {**fields, "_apply": _of_dense(operation, False)})
    of_scalar: Any = type("scalar_" + name, (ScalarBinaryTransform,), {**fields, "_apply": _of_dense(operation, True)})

    def method(self: Series, other: Any) -> Any:
        return of_series()([self, other])[0] if isinstance(other, Series) else of_scalar(other)([self])[0]

    setattr(Series, method_name, method)


for _unary in UNARY_TRANSFORMS:
    register_unary_op(*_unary)
for _binary in BINARY_TRANSFORMS:
    register_binary_op(*_binary)
