# SPDX-License-Identifier: Apache-2.0
"""Steps of training that a strategy runs, and small models that tests train by them, as tensorflow.python.distribute.step_fn and single_loss_example have
them: one weight, and a bias if wanted, that learn to give 1."""

from __future__ import annotations

from typing import Any, Callable, List, Tuple

from millrace.data.dataset import Dataset
from millrace.framework.convert import constant
from millrace.framework.graph import GraphKeys, control_dependencies, get_collection
from millrace.layers.scoped import BatchNormalization, Dense
from millrace.ops import array_ops, math_ops
from millrace.train.optimizer import Optimizer


class Step:
    """A step of training by a strategy: `initialize` gives what is to run first."""

    def __init__(self, distribution: Any) -> None:
        self._distribution = distribution

    distribution = property(lambda self: self._distribution, doc="The strategy.")

    def initialize(self) -> List[Any]:
        """The operations that are to run first: none."""
        return []

    def __call__(self) -> Any:
        """An operation that does the step."""
        raise NotImplementedError("must be implemented in descendants")


class StandardInputStep(Step):
    """One that reads what a function of no arguments gives: a data set."""

    def __init__(self, dataset_fn: Callable[[], Any], distribution: Any) -> None:
        super().__init__(distribution)
        self._iterator = self._read(dataset_fn)

    def _read(self, dataset_fn: Callable[[], Any]) -> Any:
        return self._distribution.make_input_fn_iterator(lambda _: dataset_fn())

    def initialize(self) -> List[Any]:
        """The operations that begin the data set."""
        return self._iterator.initialize()  # type: ignore[no-any-return]


class StandardSingleLossStep(StandardInputStep):
    """One that makes loss_fn(context, inputs) smaller by an optimizer, several times."""

    def __init__(self, dataset_fn: Callable[[], Any], loss_fn: Callable[..., Any], optimizer: Any, distribution: Any, iterations_per_step: int = 1) -> None:
        super().__init__(dataset_fn, distribution)
        self._loss_fn, self._optimizer, self._iterations_per_step = loss_fn, optimizer, iterations_per_step

    def __call__(self) -> Any:
        def minimized(context: Any, inputs: Any) -> Any:
            return self._optimizer.minimize(self._loss_fn(context, inputs))

        def step(context: Any, inputs: Any) -> Any:
            return self.distribution.group(self.distribution.extended.call_for_each_replica(minimized, args=(context, inputs)))

        with self.distribution.scope():
            return self.distribution.extended.experimental_run_steps_on_iterator(step, self._iterator, self._iterations_per_step).run_op


def ones() -> Any:
    """A data set of [[1.0]] over and over."""
    return Dataset.from_tensors([[1.0]]).repeat()


def away_from_one(layer: Any, x: Any) -> Any:
    """The square of what a layer lacks to 1."""
    y = array_ops.reshape(layer(x), []) - constant(1.0)
    return y * y


def single_loss_example(
    optimizer_fn: Callable[[], Any], distribution: Any, use_bias: bool = False, iterations_per_step: int = 1, step: Any = None
) -> Tuple[Any, Any]:
    """(a step, of the class `step` if there is one; the layer that it trains)."""
    layer = Dense(1, use_bias=use_bias)
    return (step or StandardSingleLossStep)(ones, lambda _, x: away_from_one(layer, x), optimizer_fn(), distribution, iterations_per_step), layer


def minimize_loss_example(optimizer: Any, use_bias: bool = False, use_callable_loss: bool = True) -> Tuple[Any, Any, Any]:
    """(a function of inputs that trains, one that gives the data set, the layer)."""
    layer = Dense(1, use_bias=use_bias)

    def model_fn(x: Any) -> Any:
        def loss() -> Any:
            return away_from_one(layer, x)

        if not isinstance(optimizer, Optimizer):  # of Keras, which are told the variables
            return optimizer.minimize(loss, lambda: layer.trainable_variables)
        return optimizer.minimize(loss if use_callable_loss else loss())

    return model_fn, ones, layer


def batchnorm_example(
    optimizer_fn: Callable[[], Any], batch_per_epoch: int = 1, momentum: float = 0.9, renorm: bool = False, update_ops_in_replica_mode: bool = False
) -> Tuple[Any, Any, Any]:
    """(a function of inputs that trains a layer of batch normalization, one that gives `batch_per_epoch` batches over and over, the layer)."""
    optimizer, layer = optimizer_fn(), BatchNormalization(renorm=renorm, momentum=momentum, fused=False)

    def dataset_fn() -> Any:
        rows = [[[float(8 * j + i + 100 * b) for i in range(8)] for j in range(16)] for b in range(batch_per_epoch)]
        return Dataset.from_tensor_slices(rows).repeat()

    def model_fn(x: Any) -> Any:
        def loss() -> Any:
            return math_ops.reduce_mean(math_ops.reduce_sum(layer(x, training=True)) - constant(1.0))

        if not isinstance(optimizer, Optimizer):
            return optimizer.minimize(loss, lambda: layer.trainable_variables)
        if not update_ops_in_replica_mode:
            return optimizer.minimize(loss)
        value = loss()
        with control_dependencies(get_collection(GraphKeys.UPDATE_OPS)):
            return optimizer.minimize(value)

    return model_fn, dataset_fn, layer
