# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.tpu and tf.tpu: what programs for TPUs use of it where they run without one. There is one replica."""

from __future__ import annotations

import contextlib
from typing import Any, Iterator, List, Optional

from millrace import losses, tf_logging
from millrace.contrib.tpu_estimator import ExamplesPerSecondHook as ExamplesPerSecondHook
from millrace.contrib.tpu_estimator import InputPipelineConfig as InputPipelineConfig
from millrace.contrib.tpu_estimator import RunConfig as RunConfig
from millrace.contrib.tpu_estimator import TPUConfig as TPUConfig
from millrace.contrib.tpu_estimator import TPUEstimator as TPUEstimator
from millrace.contrib.tpu_estimator import TPUEstimatorSpec as TPUEstimatorSpec
from millrace.framework import dtypes
from millrace.framework.errors import at_user_line
from millrace.ops import array_ops, math_ops, variable_scope
from millrace.train.optimizer import Optimizer


class TpuContext:
    """What is known of the TPUs that a graph is built for: number_of_shards is None outside of tpu_shard_context."""

    def __init__(self) -> None:
        self.number_of_shards: Optional[int] = None


_context = TpuContext()


def get_tpu_context() -> Any:
    """The TPUs that the graph is built for."""
    return _context


@contextlib.contextmanager
def tpu_shard_context(number_of_shards: int) -> Iterator[None]:
    """Within it get_tpu_context() has a number of replicas."""
    if _context.number_of_shards is not None:
        raise at_user_line(NotImplementedError("tpu_shard_context cannot be nested."))
    _context.number_of_shards = number_of_shards
    try:
        yield
    finally:
        _context.number_of_shards = None


def cross_replica_sum(x: Any, group_assignment: Any = None, name: Optional[str] = None) -> Any:
    """The sum over replicas, of which there is one."""
    del group_assignment  # all of them
    replicas = _context.number_of_shards or 1
    if replicas > 1:
        raise at_user_line(NotImplementedError("cross_replica_sum over %d replicas is not provided: there are no TPUs." % replicas))
    return array_ops.identity(x, name or "CrossReplicaSum")


def _kept_as_float32(getter: Any, *args: Any, **kwargs: Any) -> Any:
    if kwargs["dtype"] != dtypes.bfloat16:
        return getter(*args, **kwargs)
    kwargs["dtype"] = dtypes.float32
    return math_ops.cast(getter(*args, **kwargs), dtypes.bfloat16)


@contextlib.contextmanager
def bfloat16_scope() -> Iterator[Any]:
    """A variable scope whose variables of bfloat16 are kept as float32 and read as bfloat16."""
    with variable_scope.variable_scope("", custom_getter=_kept_as_float32) as scope:
        yield scope


def _checked_groups(groups: Any) -> None:
    if groups and not (isinstance(groups, list) and all(isinstance(group, list) for group in groups)):
        raise at_user_line(ValueError("group_assignment must be a list of list. Got %s" % (groups,)))
    if groups and groups != [[0]]:
        raise at_user_line(ValueError("group_assignment must be a permutation of range(1). Got group_assignment=%s" % (groups,)))


class CrossShardOptimizer(Optimizer):
    """An optimizer whose gradients are those of all replicas: of the one that there is."""

    def __init__(self, opt: Any, reduction: str = losses.Reduction.MEAN, name: str = "CrossShardOptimizer", group_assignment: Optional[List[List[int]]] = None):
        if reduction not in (losses.Reduction.SUM, losses.Reduction.MEAN):
            raise at_user_line(ValueError("Unsupported reduction: %s." % reduction))
        super().__init__(False, name)
        self._opt, self._group_assignment = opt, group_assignment

    def compute_gradients(self, loss: Any, var_list: Any = None, **kwargs: Any) -> Any:  # type: ignore[override]
        """Those of the optimizer."""
        tf_logging.warning("CrossShardOptimizer should be used within a tpu_shard_context, but got unset number_of_shards. Assuming 1.")
        _checked_groups(self._group_assignment)
        return self._opt.compute_gradients(loss, var_list=var_list, **kwargs)

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: Optional[str] = None) -> Any:
        """Changes the variables."""
        return self._opt.apply_gradients(grads_and_vars, global_step, name)

    def get_slot(self, *args: Any, **kwargs: Any) -> Any:
        """What the optimizer keeps for a variable."""
        return self._opt.get_slot(*args, **kwargs)

    def get_slot_names(self, *args: Any, **kwargs: Any) -> Any:
        """The names of what the optimizer keeps."""
        return self._opt.get_slot_names(*args, **kwargs)

    def variables(self) -> Any:
        """The variables of the optimizer."""
        return self._opt.variables()
