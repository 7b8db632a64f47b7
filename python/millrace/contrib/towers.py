# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.contrib.distribute beyond tf.distribute: names of 1.8 to 1.11, sessions that run a step over and over, and the strategies, optimizers and small models
that tests of those releases combine (tensorflow.contrib.distribute.python.combinations, .single_loss_example)."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Tuple

from millrace.contrib import optimizer_v2
from millrace.framework.errors import at_user_line
from millrace.framework.strategy import (  # noqa: F401
    CrossDeviceOps as CrossTowerOps,
    MultiWorkerMirroredStrategy as CollectiveAllReduceStrategy,
    ReplicaContext as TowerContext,
    Strategy as DistributionStrategy,
    get_cross_replica_context as get_cross_tower_context,
    get_replica_context as get_tower_context,
    get_strategy as get_distribution_strategy,
    has_strategy as has_distribution_strategy,
)
from millrace.layers.scoped import Dense
from millrace.ops.variables import global_variables_initializer
from millrace.testing import loss_steps
from millrace.testing.combinations import NamedObject, combine
from millrace.testing.strategies import mirrored_strategy_with_gpu_and_cpu, mirrored_strategy_with_two_gpus, one_device_strategy
from millrace.train import AdamOptimizer, GradientDescentOptimizer

_Function = Callable[..., Any]


class Monitor:
    """Runs a step over and over in a session, which also initializes the variables. ValueError without a session."""

    def __init__(self, step_callable: Any, session: Any = None) -> None:
        if session is None:
            raise at_user_line(ValueError("Should provide a `session` in Graph mode."))
        initialize = step_callable.initialize() if hasattr(step_callable, "initialize") else []
        self._run_step = session.make_callable(step_callable())
        session.run([global_variables_initializer(), *initialize])

    def run_steps(self, num_steps: Optional[int] = None) -> None:
        """Runs so many steps; None for steps without an end."""
        done = 0
        while num_steps is None or done < num_steps:
            self._run_step()
            done += 1


# ---- small models ----


class StandardSingleLossStep(loss_steps.StandardSingleLossStep):
    """A step that makes loss_fn(context, inputs) smaller by an optimizer, several times; its data set begins by itself."""

    def _read(self, dataset_fn: _Function) -> Any:
        return self._distribution.distribute_dataset(dataset_fn).make_one_shot_iterator()

    def initialize(self) -> List[Any]:
        """Nothing is to run first."""
        return []


def single_loss_example(optimizer_fn: _Function, distribution: Any, use_bias: bool = False) -> Tuple[Any, Any]:
    """(a step, the layer that it trains)."""
    return loss_steps.single_loss_example(optimizer_fn, distribution, use_bias, step=StandardSingleLossStep)


def minimize_loss_example(
    optimizer_fn: _Function, use_bias: bool = False, use_callable_loss: bool = True, create_optimizer_inside_model_fn: bool = False
) -> Tuple[Any, Any, Any]:
    """(a function of inputs that trains, a data set, the layer)."""
    if create_optimizer_inside_model_fn:
        layer = Dense(1, use_bias=use_bias)
        return lambda x: optimizer_fn().minimize(lambda: loss_steps.away_from_one(layer, x)), loss_steps.ones(), layer
    model_fn, dataset_fn, layer = loss_steps.minimize_loss_example(optimizer_fn(), use_bias, use_callable_loss)
    return model_fn, dataset_fn(), layer


def batchnorm_example(optimizer_fn: _Function, batch_per_epoch: int = 1, momentum: float = 0.9, renorm: bool = False) -> Tuple[Any, Any, Any]:
    """(a function of inputs that trains a layer of batch normalization, a data set of so many batches over and over, the layer)."""
    model_fn, dataset_fn, layer = loss_steps.batchnorm_example(optimizer_fn, batch_per_epoch, momentum, renorm)
    return model_fn, dataset_fn(), layer


# ---- what tests combine ----

gradient_descent_optimizer_v1_fn = NamedObject("GradientDescentV1", lambda: GradientDescentOptimizer(0.2))
adam_optimizer_v1_fn = NamedObject("AdamV1", lambda: AdamOptimizer(0.2, epsilon=1))
gradient_descent_optimizer_v2_fn = NamedObject("GradientDescentV2", lambda: optimizer_v2.GradientDescentOptimizer(0.2))
adam_optimizer_v2_fn = NamedObject("AdamV2", lambda: optimizer_v2.AdamOptimizer(0.2, epsilon=1))
_STRATEGIES = [one_device_strategy, mirrored_strategy_with_gpu_and_cpu, mirrored_strategy_with_two_gpus]


def distributions_and_v1_optimizers() -> List[Dict[str, Any]]:
    """Strategies with optimizers of tf.train."""
    return combine(distribution=_STRATEGIES, optimizer_fn=[gradient_descent_optimizer_v1_fn, adam_optimizer_v1_fn])


def distributions_and_v2_optimizers() -> List[Dict[str, Any]]:
    """Strategies with optimizers of tf.contrib.optimizer_v2."""
    return combine(distribution=_STRATEGIES, optimizer_fn=[gradient_descent_optimizer_v2_fn, adam_optimizer_v2_fn])
