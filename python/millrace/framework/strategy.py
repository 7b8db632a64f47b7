# SPDX-License-Identifier: Apache-2.0
"""tf.distribute: strategies of one replica, whose steps run as they are. More replicas are not provided: those of several tasks are tf.train.SyncReplicasOptimizer's."""

from __future__ import annotations

import enum
import json
import os
from typing import Any, Callable, Optional

from millrace import names
from millrace.framework import not_provided
from millrace.framework.cross_device_ops import (
    AllReduceCrossDeviceOps as AllReduceCrossDeviceOps,
    CrossDeviceOps as CrossDeviceOps,
    HierarchicalCopyAllReduce as HierarchicalCopyAllReduce,
    InputContext as InputContext,
    InputReplicationMode as InputReplicationMode,
    NcclAllReduce as NcclAllReduce,
    ReduceOp as ReduceOp,
    ReductionToOneDevice as ReductionToOneDevice,
)
from millrace.framework.device_names import resolve
from millrace.framework.errors import at_user_line
from millrace.framework.replica_inputs import InputWorkers
from millrace.framework.replicated_values import SingleDeviceMap
from millrace.framework.strategy_base import (
    InputIterator as InputIterator,
    ReplicaContext as ReplicaContext,
    Strategy as Strategy,
    StrategyExtended as StrategyExtended,
    _DefaultDistributionStrategy as _DefaultDistributionStrategy,
    _get_default_replica_context as _get_default_replica_context,
    _get_default_strategy as _get_default_strategy,
    experimental_set_strategy as experimental_set_strategy,
    get_cross_replica_context as get_cross_replica_context,
    get_replica_context as get_replica_context,
    get_strategy as get_strategy,
    has_strategy as has_strategy,
    in_cross_replica_context as in_cross_replica_context,
    require_replica_context as require_replica_context,
)
from millrace.ops import array_ops

StrategyV1 = Strategy
StrategyExtendedV1 = StrategyExtendedV2 = StrategyExtended


class OneDeviceExtended(StrategyExtended):
    """One replica, on a device."""

    def __init__(self, container_strategy: Strategy, where: Any, worker: str, parameters: str) -> None:
        super().__init__(container_strategy)
        self._default_device = where
        self._worker, self._parameters = worker, parameters

    worker_devices = property(lambda self: (self._worker,), doc="The device of the replica.")
    parameter_devices = property(lambda self: (self._parameters,), doc="The device of variables.")

    def read_var(self, v: Any) -> Any:
        """A tensor of a variable's value."""
        return array_ops.identity(v)

    def non_slot_devices(self, var_list: Any) -> Any:
        """The device."""
        del var_list  # all are there
        return self._parameters

    def _experimental_distribute_dataset(self, dataset: Any) -> Any:
        workers = InputWorkers(SingleDeviceMap(self._worker))
        return names.find("python.distribute.input_lib").get_distributed_dataset(dataset, workers, self._strategy)

    def _experimental_distribute_datasets_from_function(self, dataset_fn: Callable[[InputContext], Any]) -> Any:
        return self._experimental_distribute_dataset(dataset_fn(InputContext()))

    def _configure(self, session_config: Any = None, cluster_spec: Any = None, task_type: Optional[str] = None, task_id: Optional[int] = None) -> None:
        del session_config, task_type, task_id  # of a strategy within one process
        _refuse_tasks(type(self._strategy).__name__, cluster_spec.as_dict() if hasattr(cluster_spec, "as_dict") else cluster_spec)


class OneDeviceStrategy(Strategy):
    """One replica, on a device."""

    def __init__(self, device: str) -> None:
        where = resolve(device)
        super().__init__(OneDeviceExtended(self, where, where, where))


def _refuse_tasks(who: str, cluster: Any) -> None:
    """NotImplementedError for {job: addresses} of more than one task that trains."""
    count = sum(len(tasks) for job, tasks in (cluster or {}).items() if job != "evaluator")
    if count > 1:
        raise at_user_line(
            NotImplementedError(
                "%s over %d tasks is not provided: use tf.train.Server, tf.train.replica_device_setter and tf.train.SyncReplicasOptimizer." % (who, count)
            )
        )


def _only(who: str, devices: Any) -> str:
    """The one device of a list, or this machine's processors."""
    devices = [devices] if isinstance(devices, str) else list(devices or ())
    if len(devices) > 1:
        raise at_user_line(NotImplementedError("%s on %d devices is not provided: one process trains on all cores of its machine." % (who, len(devices))))
    return devices[0] if devices else "/device:CPU:0"


class MirroredStrategy(OneDeviceStrategy):
    """A replica on each of several devices: on the one that is named, or this machine's processors. More of them are not provided."""

    def __init__(
        self, devices: Any = None, num_gpus: Optional[int] = None, num_gpus_per_worker: Optional[int] = None, cross_device_ops: Any = None, **of_1_9: Any
    ) -> None:
        del of_1_9  # there is nothing to put together
        if not isinstance(cross_device_ops, (CrossDeviceOps, type(None))):
            raise at_user_line(ValueError("cross_device_ops must be a tf.distribute.CrossDeviceOps, got %r" % (cross_device_ops,)))
        super().__init__(_only("MirroredStrategy", devices or ["/device:GPU:%d" % i for i in range(num_gpus or num_gpus_per_worker or 0)]))


class CentralStorageStrategy(OneDeviceStrategy):
    """Variables on one device, and a replica on each of several: on the one that is named, or this machine's processors."""

    def __init__(self, compute_devices: Any = None, parameter_device: Optional[str] = None) -> None:
        worker = resolve(_only("CentralStorageStrategy", compute_devices))
        parameters = resolve(parameter_device) if parameter_device else worker

        def where(operation: Any) -> str:
            return parameters if operation.type in ("Variable", "VariableV2", "VarHandleOp") else worker

        Strategy.__init__(self, OneDeviceExtended(self, where, worker, parameters))


class CollectiveCommunication(enum.Enum):
    """What tasks would reduce by."""

    AUTO, RING, NCCL = "AUTO", "RING", "NCCL"


class _OfTasks(OneDeviceStrategy):
    """That of a cluster of one task, by what a resolver says or else TF_CONFIG."""

    def _begin(self, cluster_resolver: Any) -> None:
        if cluster_resolver is not None:
            cluster = cluster_resolver.cluster_spec().as_dict()
        else:
            text = os.environ.get("TF_CONFIG") or "{}"
            try:
                cluster = json.loads(text).get("cluster")
            except (ValueError, AttributeError):
                raise at_user_line(ValueError("TF_CONFIG must be a JSON object, got: %s" % text)) from None
        _refuse_tasks(type(self).__name__, cluster)
        super().__init__("/device:CPU:0")


class MultiWorkerMirroredStrategy(_OfTasks):
    """A replica in each task of a cluster, if that is one. More tasks are not provided."""

    def __init__(self, communication: CollectiveCommunication = CollectiveCommunication.AUTO, cluster_resolver: Any = None) -> None:
        if not isinstance(communication, CollectiveCommunication):
            raise at_user_line(ValueError("communication must be a tf.distribute.experimental.CollectiveCommunication, got %r" % (communication,)))
        self._begin(cluster_resolver)


class ParameterServerStrategy(_OfTasks):
    """Variables on the tasks of one job and replicas on those of another, if there is one task. More are not provided."""

    def __init__(self, cluster_resolver: Any = None) -> None:
        self._begin(cluster_resolver)


class TPUStrategy(Strategy):
    """A replica on each core of a TPU. There are none."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        del args, kwargs  # of whatever TPU
        raise at_user_line(NotImplementedError("TPUStrategy is not provided: there are no TPUs. Use tf.distribute.OneDeviceStrategy."))


def increment_var(v: Any, amount: Any = 1) -> Any:
    """An operation that adds to a variable, as programs for 1.8 count steps."""
    return v.assign_add(amount)


def get_loss_reduction() -> ReduceOp:
    """How losses of replicas are to be reduced: they are added."""
    return ReduceOp.SUM


__getattr__ = not_provided.getter("distribute")
