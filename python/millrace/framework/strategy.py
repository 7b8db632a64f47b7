# SPDX-License-Identifier: Apache-2.0
"""tf.distribute where no strategy is chosen: one replica, whose steps run as they are. Optimizers and layers that ask for the strategy get this one."""

from __future__ import annotations

import contextlib
import enum
from typing import Any, Callable, Iterator, List, Optional, Tuple

from millrace.framework import not_provided
from millrace.framework.errors import at_user_line
from millrace.framework.graph import get_default_graph, device


class ReduceOp(enum.Enum):
    """How values of replicas become one."""

    SUM, MEAN = "SUM", "MEAN"


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


class Strategy:
    """The strategy of programs that choose none."""

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

        reduce_op = reduce_op if isinstance(reduce_op, ReduceOp) else ReduceOp(reduce_op.upper())
        return (math_ops.reduce_mean if reduce_op is ReduceOp.MEAN else math_ops.reduce_sum)(value, axis)

    def experimental_local_results(self, value: Any) -> Tuple[Any, ...]:
        """The values of the replicas."""
        return (value,)

    unwrap = experimental_local_results

    def experimental_distribute_dataset(self, dataset: Any) -> Any:
        """The data set: one replica takes all."""
        return dataset

    def group(self, value: Any, name: Optional[str] = None) -> Any:
        """An operation that runs what makes a value."""
        from millrace.ops import control_flow_ops

        return control_flow_ops.group(value, name=name)


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


class MirroredStrategy(OneDeviceStrategy):
    """A replica on each of several devices: on the one that is named, or this machine's processors. More of them are not provided."""

    def __init__(
        self, devices: Any = None, num_gpus: Optional[int] = None, num_gpus_per_worker: Optional[int] = None, cross_device_ops: Any = None, **of_1_9: Any
    ) -> None:
        del cross_device_ops, of_1_9  # there is nothing to put together
        count = len(devices or ()) or num_gpus or num_gpus_per_worker or 0
        if count > 1:
            raise at_user_line(NotImplementedError("MirroredStrategy on %d devices is not provided: one process trains on all cores of its machine." % count))
        super().__init__(devices[0] if devices else "/device:GPU:0" if count else "/device:CPU:0")


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
_strategy = Strategy()
_replica = ReplicaContext(_strategy)


def get_strategy() -> Strategy:
    """The one whose scope this is in, or the one of programs that choose none."""
    return _strategy


def has_strategy() -> bool:
    """Whether a program has chosen one."""
    return type(_strategy) is not Strategy


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
