# SPDX-License-Identifier: Apache-2.0
"""Layers that are told their variables by data, before training: their state is gathered from all batches."""

from __future__ import annotations

import json
from typing import Any, Dict, Iterator, List, NamedTuple, Optional

import numpy as np

from millrace.data import cardinality
from millrace.data.dataset import Dataset
from millrace.framework import dtypes
from millrace.framework.errors import OutOfRangeError, at_user_line
from millrace.keras import backend as K
from millrace.layers.base import Layer
from millrace.ops import array_ops


class Combiner:
    """What gathers state from batches, and puts what several have gathered together. What has been gathered is an accumulator, of a kind of its own."""

    def __repr__(self) -> str:
        return "<%s>" % type(self).__name__

    def compute(self, batch_values: Any, accumulator: Any = None) -> Any:
        """An accumulator of a batch, and of what was gathered before."""
        raise NotImplementedError("%s.compute" % type(self).__name__)

    def merge(self, accumulators: List[Any]) -> Any:
        """Several accumulators as one, whatever their order."""
        raise NotImplementedError("%s.merge" % type(self).__name__)

    def extract(self, accumulator: Any) -> Dict[str, Any]:
        """The values of the layer's variables, by name."""
        raise NotImplementedError("%s.extract" % type(self).__name__)

    def restore(self, output: Dict[str, Any]) -> Any:
        """The accumulator whose values these are."""
        raise NotImplementedError("%s.restore" % type(self).__name__)

    def serialize(self, accumulator: Any) -> bytes:
        """An accumulator as bytes."""
        raise NotImplementedError("%s.serialize" % type(self).__name__)

    def deserialize(self, encoded_accumulator: bytes) -> Any:
        """The accumulator of bytes."""
        raise NotImplementedError("%s.deserialize" % type(self).__name__)


class PreprocessingLayer(Layer):
    """Base of layers that adapt to data."""

    def adapt(self, data: Any, reset_state: bool = True) -> None:
        """Sets the variables by a data set or an array."""
        raise NotImplementedError("%s.adapt" % type(self).__name__)


class CombinerPreprocessingLayer(PreprocessingLayer):
    """Base of layers whose state a Combiner gathers; `build` makes variables for it by `_add_state_variable`."""

    def __init__(self, combiner: Combiner, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._combiner = combiner
        self.state_variables: Dict[str, Any] = {}

    def _add_state_variable(self, name: str, shape: Any, dtype: Any, initializer: Any = None, **kwargs: Any) -> Any:
        made = self.add_weight(name, shape, dtype, initializer, trainable=False, **kwargs)
        self.state_variables[name] = made
        return made

    def _restore_updates(self) -> Dict[str, Any]:
        """The values of the variables."""
        return dict(zip(self.state_variables, K.batch_get_value(list(self.state_variables.values()))))

    def _set_state_variables(self, updates: Dict[str, Any]) -> None:
        if not self.built:
            raise at_user_line(RuntimeError("_set_state_variables() must be called after build()."))
        K.batch_set_value([(self.state_variables[name], value) for name, value in updates.items()])

    @staticmethod
    def _batches(data: Any) -> Iterator[Any]:
        """An array as one batch; the elements of a data set."""
        if isinstance(data, np.ndarray):
            yield data
            return
        if not isinstance(data, Dataset):
            raise at_user_line(ValueError("adapt() requires a Dataset or a Numpy array as input, got %s" % type(data)))
        session = K.get_session()
        if session.run(cardinality.count_of(data._variant.op)) == cardinality.INFINITE:
            raise at_user_line(
                ValueError(
                    'The dataset passed to "adapt()" has an infinite number of elements. Please use dataset.take(...) to make the number of elements finite.'
                )
            )
        iterator = data.make_initializable_iterator()
        following = iterator.get_next()
        session.run(iterator.initializer)
        while True:
            try:
                batch = session.run(following)
            except OutOfRangeError:
                return
            yield batch

    def adapt(self, data: Any, reset_state: bool = True) -> None:
        """Sets the variables by a data set or an array; with reset_state=False by what they were set by before as well."""
        accumulator = None if reset_state else self._combiner.restore(self._restore_updates())
        for batch in self._batches(data):
            if not self.built:
                self.build(getattr(batch, "shape", None))
                self.built = True
            accumulator = self._combiner.compute(batch, accumulator)
        self._set_state_variables(self._combiner.extract(accumulator))


class _Moments(NamedTuple):
    count: Any
    mean: Any
    variance: Any


class _NormalizingCombiner(Combiner):
    """Counts, means and variances along all axes but some."""

    def __init__(self, axis: Any) -> None:
        self.axis = axis

    def _create_accumulator(self, count: Any, mean: Any, variance: Any) -> _Moments:
        return _Moments(np.array(count), np.nan_to_num(mean), np.nan_to_num(variance))

    def compute(self, batch_values: Any, accumulator: Optional[_Moments] = None) -> _Moments:
        """The moments of a batch, and of what was gathered before."""
        kept = {i % batch_values.ndim for i in (self.axis if isinstance(self.axis, (list, tuple)) else [self.axis])}
        along = tuple(i for i in range(batch_values.ndim) if i not in kept)
        count = np.prod([batch_values.shape[i] for i in along], dtype=np.int32)
        mean, variance = np.mean(batch_values, along, np.float64), np.var(batch_values, along, np.float64)
        made = self._create_accumulator(count, mean, variance)
        return made if accumulator is None else self.merge([accumulator, made])

    def merge(self, accumulators: List[_Moments]) -> _Moments:
        """The moments of all."""
        count = np.sum([a.count for a in accumulators])
        mean = np.add.reduce([a.mean * a.count for a in accumulators]) / count
        variance = np.add.reduce([a.count * (a.variance + np.square(a.mean - mean)) for a in accumulators]) / count
        return self._create_accumulator(count, mean, variance)

    def extract(self, accumulator: _Moments) -> Dict[str, Any]:
        """count, mean and variance."""
        return accumulator._asdict()

    def restore(self, output: Dict[str, Any]) -> _Moments:
        """The moments; RuntimeError where there are some of no examples."""
        if output["count"] == 0 and (np.any(output["mean"]) or np.any(output["variance"])):
            raise at_user_line(
                RuntimeError(
                    "The mean and/or variance of a Normalization preprocessing layer were set without also setting 'count'. If 'count' is not also set, "
                    "'adapt' cannot be called unless the 'reset_state' arg is True."
                )
            )
        return self._create_accumulator(**output)

    def serialize(self, accumulator: _Moments) -> bytes:
        """As JSON."""
        return json.dumps({name: value.tolist() for name, value in accumulator._asdict().items()}).encode()

    def deserialize(self, encoded_accumulator: bytes) -> _Moments:
        """The moments of JSON."""
        return self._create_accumulator(**{name: np.array(value) for name, value in json.loads(encoded_accumulator).items()})


class Normalization(CombinerPreprocessingLayer):
    """(inputs - mean) / variance, by the moments of the data that it adapts to: those of each place along `axis`."""

    _NormalizingCombiner = _NormalizingCombiner

    def __init__(self, axis: Any = -1, dtype: Any = None, **kwargs: Any) -> None:
        super().__init__(_NormalizingCombiner(axis), dtype=dtype or K.floatx(), **kwargs)
        if axis == 0:
            raise at_user_line(ValueError("The argument 'axis' may not be 0."))
        self.axis = axis

    def build(self, input_shape: Any) -> None:
        """Makes the variables."""
        axes = self.axis if isinstance(self.axis, (list, tuple)) else [self.axis]
        kept, self._wide = [int(input_shape[i]) for i in axes], [1] * len(input_shape)
        for i, size in zip(axes, kept):
            self._wide[i] = size
        self.mean = self._add_state_variable("mean", kept, K.floatx(), "zeros")
        self.variance = self._add_state_variable("variance", kept, K.floatx(), "zeros")
        self.count = self._add_state_variable("count", (), dtypes.int32, "zeros")
        super().build(input_shape)

    def call(self, inputs: Any) -> Any:
        """Computes the outputs."""
        return (inputs - array_ops.reshape(self.mean, self._wide)) / array_ops.reshape(self.variance, self._wide)

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The shape of the inputs."""
        return input_shape

    def compute_output_signature(self, input_signature: Any) -> Any:
        """That of the inputs."""
        return input_signature

    def set_weights(self, weights: Any) -> None:
        """Sets mean and variance, and their count: 0 where there are only two."""
        super().set_weights([*weights, np.array(0)] if len(weights) == 2 else weights)

    def get_config(self) -> Dict[str, Any]:
        """The arguments that make such a layer."""
        return {**super().get_config(), "axis": self.axis}
