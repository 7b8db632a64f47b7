# SPDX-License-Identifier: Apache-2.0
"""tf.distribute: strategies of one replica, whose steps run as they are, and the one of programs that choose none. Optimizers and layers that ask for the
strategy get it. More replicas are not provided: those of several tasks are tf.train.SyncReplicasOptimizer's."""

from __future__ import annotations

import contextlib
import enum
import json
import os
from typing import Any, Callable, Iterator, List, Optional, Tuple

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
from millrace.framework.errors import at_user_line
from millrace.framework.graph import get_default_graph, device


class StrategyExtended:
    """What optimizers do with variables: all of it on the one that there is."""

    def __init__(self, strategy: "Strategy") -> None:
        self._strategy = strategy

    def call_for_each_replica(self, fn: Callable[..., Any], args: Any = (), kwargs: Any = None) -> Any:
        """Calls a function, once."""
        return fn(*args, **(kwargs or {}))

    def update(self, var: Any, fn: Callable[..., Any], args: Any = (), kwargs: Any = None, group: bool = True) -> Any:
        """What a function makes of a variable."""
        del group  # there is one result
        return fn(var, *args, **(kwargs or {}))

    def update_non_slot(self, colocate_with: Any, fn: Callable[..., Any], args: Any = (), kwargs: Any = None, group: bool = True) -> Any:
        """What a function makes, beside a variable."""
        del group  # there is one result
        del colocate_with  # placement is the program's
        return fn(*args, **(kwargs or {}))

    def reduce_to(self, reduce_op: Any, value: Any, destinations: Any) -> Any:
        """The value: of one replica it is the sum and the mean."""
        del reduce_op  # there is one value
        del destinations  # placement is the program's
        return value

    def batch_reduce_to(self, reduce_op: Any, value_destination_pairs: Any) -> List[Any]:
        """The values."""
        return [self.reduce_to(reduce_op, value, where) for value, where in value_destination_pairs]

    def broadcast_to(self, tensor: Any, destinations: Any) -> Any:
        """The tensor."""
        del destinations  # placement is the program's
        return tensor

    def colocate_vars_with(self, colocate_with_variable: Any) -> Any:
        """A context in which variables are made on the device of another."""
        return device(colocate_with_variable.device)

    def variable_created_in_scope(self, v: Any) -> bool:
        """Whether a variable is the strategy's: of the graph that is the default now."""
        return bool(v.graph is get_default_graph())

    def value_container(self, value: Any) -> Any:
        """The variable itself."""
        return value

    def non_slot_devices(self, var_list: Any) -> Any:
        """Where what optimizers keep beside slots goes: with the first variable by name."""
        return min(var_list, key=lambda x: x.name)

    read_var = value_container


class InputIterator:
    """The elements of a data set, for the replica."""

    def __init__(self, dataset: Any) -> None:
        self._iterator = dataset.make_initializable_iterator()

    def initialize(self) -> List[Any]:
        """The operations that begin it."""
        return [self._iterator.initializer]

    initializer = property(initialize, doc="The operations that begin it.")

    def get_next(self) -> Any:
        """The next element."""
        return self._iterator.get_next()


class Strategy:
    """Base: one replica, where operations lie where they do without a strategy."""

    num_replicas_in_sync = 1

    def __init__(self) -> None:
        self.extended = StrategyExtended(self)

    @contextlib.contextmanager
    def scope(self) -> Iterator["Strategy"]:
        """A context that changes nothing."""
        yield self

    def experimental_run_v2(self, fn: Callable[..., Any], args: Any = (), kwargs: Any = None) -> Any:
        """Calls a function, once."""
        return self.extended.call_for_each_replica(fn, args, kwargs)

    def experimental_run(self, fn: Callable[..., Any], input_iterator: Any = None) -> Any:
        """Calls a function, once, with what an iterator gives if there is one."""
        return self.experimental_run_v2(fn, () if input_iterator is None else (input_iterator.get_next(),))

    def reduce(self, reduce_op: Any, value: Any, axis: Optional[int] = None) -> Any:
        """The value, or its sum or mean along an axis."""
        if axis is None:
            return value
        from millrace.ops import math_ops

        return (math_ops.reduce_mean if ReduceOp.of(reduce_op) is ReduceOp.MEAN else math_ops.reduce_sum)(value, axis)

    def experimental_local_results(self, value: Any) -> Tuple[Any, ...]:
        """The values of the replicas."""
        return (value,)

    unwrap = experimental_local_results

    def experimental_distribute_dataset(self, dataset: Any) -> Any:
        """The data set: one replica takes all."""
        return dataset

    def experimental_distribute_datasets_from_function(self, dataset_fn: Callable[[InputContext], Any]) -> Any:
        """The data set that a function makes for the only pipeline."""
        return dataset_fn(InputContext())

    def experimental_make_numpy_dataset(self, numpy_input: Any, session: Any = None) -> Any:
        """A data set of the rows of arrays."""
        del session  # the arrays are the graph's: there is nothing to run first
        return names.find("data").Dataset.from_tensor_slices(numpy_input)

    def make_dataset_iterator(self, dataset: Any) -> InputIterator:
        """The elements of a data set, from when `initialize` has run."""
        return InputIterator(dataset)

    def make_input_fn_iterator(
        self, input_fn: Callable[[InputContext], Any], replication_mode: InputReplicationMode = InputReplicationMode.PER_WORKER
    ) -> InputIterator:
        """The elements of the data set that a function makes for the only pipeline, from when `initialize` has run."""
        if replication_mode is not InputReplicationMode.PER_WORKER:
            raise at_user_line(ValueError("Input replication mode not supported: %s" % (replication_mode,)))
        return self.make_dataset_iterator(input_fn(InputContext()))

    def configure(self, session_config: Any = None, cluster_spec: Any = None, task_type: Optional[str] = None, task_id: Optional[int] = None) -> None:
        """Nothing: sessions are as they are asked for, and there are no other tasks. NotImplementedError for a cluster of several."""
        del session_config, task_type, task_id  # of a strategy within one process
        _refuse_tasks(type(self).__name__, cluster_spec.as_dict() if hasattr(cluster_spec, "as_dict") else cluster_spec)

    def update_config_proto(self, config_proto: Any) -> Any:
        """The settings as they are."""
        return config_proto

    def colocate_vars_with(self, colocate_with_variable: Any) -> Any:
        """A context in which variables are made on the device of another."""
        return self.extended.colocate_vars_with(colocate_with_variable)

    def group(self, value: Any, name: Optional[str] = None) -> Any:
        """An operation that runs what makes a value."""
        from millrace.ops import control_flow_ops

        return control_flow_ops.group(value, name=name)


class _DefaultDistributionStrategy(Strategy):
    """The strategy of programs that choose none."""


class OneDeviceStrategy(Strategy):
    """One replica, on a device."""

    def __init__(self, device: str) -> None:
        super().__init__()
        self._device = device

    @contextlib.contextmanager
    def scope(self) -> Iterator[Strategy]:
        """A context whose operations go to the device, where nothing else is said."""
        global _strategy, _replica
        around, _strategy, _replica = (_strategy, _replica), self, ReplicaContext(self)
        try:
            with device(self._device):
                yield self
        finally:
            _strategy, _replica = around


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
        super().__init__(_only("CentralStorageStrategy", compute_devices))
        self._parameters = parameter_device or self._device

    @contextlib.contextmanager
    def scope(self) -> Iterator[Strategy]:
        """A context whose variables go to the one device and whose other operations go to the other, where nothing else is said."""

        def where(operation: Any) -> str:
            return self._parameters if operation.type in ("Variable", "VariableV2", "VarHandleOp") else self._device

        with super().scope(), device(where):
            yield self


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


class ReplicaContext:
    """What a replica knows of itself."""

    num_replicas_in_sync = 1
    replica_id_in_sync_group = 0
    devices = ("",)

    def __init__(self, strategy: Strategy) -> None:
        self.strategy = strategy

    def merge_call(self, merge_fn: Callable[..., Any], args: Any = (), kwargs: Any = None) -> Any:
        """What a function makes of the strategy and the values of all replicas."""
        global _merging
        around, _merging = _merging, True
        try:
            return merge_fn(self.strategy, *args, **(kwargs or {}))
        finally:
            _merging = around

    def all_reduce(self, reduce_op: Any, value: Any) -> Any:
        """The value: of one replica it is the sum and the mean."""
        del reduce_op  # there is one value
        return value


_merging = False
_chosen: Any = None  # the scope of experimental_set_strategy
_default: Strategy = _DefaultDistributionStrategy()
_strategy = _default
_replica = ReplicaContext(_strategy)


def _get_default_strategy() -> Strategy:
    """The one of programs that choose none."""
    return _default


def get_strategy() -> Strategy:
    """The one whose scope this is in, or the one of programs that choose none."""
    return _strategy


def has_strategy() -> bool:
    """Whether a program has chosen one."""
    return _strategy is not _default


def experimental_set_strategy(strategy: Optional[Strategy]) -> None:
    """Enters the scope of a strategy for the rest of the program, or until the next call; None leaves it."""
    global _chosen
    if _chosen is not None:
        _chosen.__exit__(None, None, None)
    _chosen = strategy.scope() if strategy is not None else None
    if _chosen is not None:
        _chosen.__enter__()


def in_cross_replica_context() -> bool:
    """Whether this is within merge_call."""
    return _merging


def get_replica_context() -> Optional[ReplicaContext]:
    """The one replica; None within merge_call."""
    return None if _merging else _replica


def get_cross_replica_context() -> Optional[Strategy]:
    """The strategy within merge_call, else None."""
    return _strategy if _merging else None


def increment_var(v: Any, amount: Any = 1) -> Any:
    """An operation that adds to a variable, as programs for 1.8 count steps."""
    return v.assign_add(amount)


def get_loss_reduction() -> ReduceOp:
    """How losses of replicas are to be reduced: they are added."""
    return ReduceOp.SUM


__getattr__ = not_provided.getter("distribute")
