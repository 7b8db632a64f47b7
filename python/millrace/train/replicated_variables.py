# SPDX-License-Identifier: Apache-2.0
"""Variables with a copy for each replica, as strategies that a program derives make them: copies that are kept the same, and copies of their own that
are put together when they are read."""

from __future__ import annotations

import functools
import weakref
from typing import Any, Callable, Dict, List, Optional, Sequence

from millrace.framework.cross_device_ops import ReduceOp
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Operation, Tensor, device
from millrace.framework.replicated_values import DistributedDelegate, DistributedValues, Mirrored
from millrace.framework.replication import VariableAggregation
from millrace.framework.strategy_base import get_replica_context
from millrace.ops import array_ops, control_flow_ops, gen_ops, math_ops
from millrace.ops.variables import Variable
from millrace.train.saveable import ResourceVariableSaveable, SaveableObject, SaveSpec

_NO_AGGREGATION = (
    "You must specify an aggregation method to update a %s in Replica Context. You can do so by passing an explicit value for argument `aggregation` to "
    "tf.Variable(..), e.g. `tf.Variable(..., aggregation=tf.VariableAggregation.SUM)`; or update it across replicas, within `merge_call`."
)


class _Updated:
    """A variable whose updates `_apply` makes."""

    _distribute_strategy: Any

    distribute_strategy = property(lambda self: self._distribute_strategy, doc="The strategy that made it.")

    def _in_its_replica(self) -> bool:
        replica = get_replica_context()
        return replica is not None and replica.strategy is self._distribute_strategy

    def _apply(self, method: str, value: Any, use_locking: bool, name: Optional[str], read_value: bool) -> Any:
        raise NotImplementedError

    def assign(self, value: Any, use_locking: bool = False, name: Optional[str] = None, read_value: bool = True) -> Any:
        """An operation that sets it: all copies, or in a replica what its kind says."""
        return self._apply("assign", value, use_locking, name, read_value)

    def assign_add(self, delta: Any, use_locking: bool = False, name: Optional[str] = None, read_value: bool = True) -> Any:
        """An operation that adds to it."""
        return self._apply("assign_add", delta, use_locking, name, read_value)

    def assign_sub(self, delta: Any, use_locking: bool = False, name: Optional[str] = None, read_value: bool = True) -> Any:
        """An operation that subtracts from it."""
        return self._apply("assign_sub", delta, use_locking, name, read_value)


class DistributedVariable(_Updated, Variable, DistributedDelegate):
    """A variable with a copy on each device of a map. Where nothing else is said it is the first copy."""

    _by_creators = False

    def __init__(self, strategy: Any, device_map: Any, values: Sequence[Any], logical_device: Optional[int] = None) -> None:
        DistributedDelegate.__init__(self, device_map, values, logical_device)
        self.__dict__ = {**vars(values[0]), **vars(self), "_distribute_strategy": strategy}
        self.__dict__.pop("_distributed_container", None)
        for copy in values:
            copy.__dict__["_distributed_container"] = weakref.ref(self)

    initializer = property(lambda self: control_flow_ops.group([v.initializer for v in self._values]), doc="The operation that initializes all copies.")

    @property
    def handle(self) -> Any:
        """The handle of the copy of the replica that this is in."""
        replica = get_replica_context()
        if replica is None:
            raise at_user_line(ValueError("`handle` is not available outside the replica context or a `tf.distribute.Strategy.update()` call."))
        return self.get().handle

    def is_initialized(self, name: Optional[str] = None) -> Tensor:
        """Whether all copies have a value."""
        done = self._values[0].is_initialized()
        for copy in self._values[1:-1]:
            done = gen_ops.logical_and(done, copy.is_initialized())
        return done if len(self._values) == 1 else gen_ops.logical_and(done, self._values[-1].is_initialized(), name=name)

    def value(self) -> Any:
        """The value of the copy of the replica that this is in."""
        return self.get().value()

    def read_value(self) -> Any:
        """A new tensor of that value."""
        return array_ops.identity(self.get().read_value())

    def eval(self, session: Any = None) -> Any:
        """The value of the first copy in a session."""
        return self._values[0].eval(session)

    def load(self, value: Any, session: Any = None) -> None:
        """Sets all copies in a session."""
        for copy in self._values:
            copy.load(value, session)

    def _on_all(self, method: str, value: Any, read_value: bool, **kwargs: Any) -> Any:
        """The update of each copy by a value, or by its replica's."""
        made = []
        for number, copy in enumerate(self._values):
            with device(copy.device or None):
                own = value.values[number] if isinstance(value, DistributedValues) else value
                made.append(getattr(copy, method)(own, read_value=read_value and len(self._values) == 1, **kwargs))
        return made[0] if len(made) == 1 else control_flow_ops.group(*made)

    __repr__ = __str__ = DistributedValues.__repr__


def _merged(strategy: Any, value: Any, aggregation: VariableAggregation, where: Any) -> Any:
    """The values of replicas as the one that a variable with an aggregation is set to."""
    if aggregation is VariableAggregation.ONLY_FIRST_REPLICA:
        return strategy.experimental_local_results(value)[0]
    return strategy.extended.reduce_to(ReduceOp.of(aggregation.name), value, where)


class MirroredVariable(DistributedVariable, Mirrored):
    """A variable whose copies are the same: replicas set it to the sum, the mean or the first of their values, by its aggregation."""

    def __init__(self, strategy: Any, device_map: Any, values: Sequence[Any], aggregation: VariableAggregation, logical_device: Optional[int] = None) -> None:
        super().__init__(strategy, device_map, values, logical_device)
        self._aggregation = aggregation

    def _apply(self, method: str, value: Any, use_locking: bool, name: Optional[str], read_value: bool) -> Any:
        update = functools.partial(self._on_all, method, read_value=read_value, use_locking=use_locking, name=name)
        if not self._in_its_replica():
            return update(value)
        if self._aggregation is VariableAggregation.NONE:
            raise at_user_line(ValueError(_NO_AGGREGATION % type(self).__name__))
        replica: Any = get_replica_context()
        return replica.merge_call(lambda strategy, given: update(_merged(strategy, given, self._aggregation, self)), (value,))

    def _gather_saveables_for_checkpoint(self) -> Dict[str, Callable[..., SaveableObject]]:
        return {"VARIABLE_VALUE": lambda name="": _MirroredSaveable(self, name)}


class _MirroredSaveable(ResourceVariableSaveable):
    """The first copy of a variable, by which all are restored."""

    def __init__(self, variable: MirroredVariable, name: str) -> None:
        self._all = [ResourceVariableSaveable(copy, "", name) for copy in variable.values]
        super().__init__(variable.primary, "", name)

    def restore(self, restored_tensors: List[Tensor], restored_shapes: Any) -> Operation:
        return control_flow_ops.group([copy.restore(restored_tensors, restored_shapes) for copy in self._all])  # type: ignore[return-value]


class SyncOnReadVariable(DistributedVariable):
    """A variable whose copies are each replica's own: across replicas it is read as their sum, their mean or the first, by its aggregation."""

    def __init__(self, strategy: Any, device_map: Any, values: Sequence[Any], aggregation: VariableAggregation, logical_device: Optional[int] = None) -> None:
        super().__init__(strategy, device_map, values, logical_device)
        self._aggregation = aggregation

    def _get_cross_replica(self) -> Any:
        if self._aggregation is VariableAggregation.ONLY_FIRST_REPLICA:
            return self.primary
        if self._aggregation is VariableAggregation.NONE:
            raise at_user_line(ValueError("Could not convert from VariableAggregation.NONE to `tf.distribute.ReduceOp` type"))
        total = math_ops.add_n([copy.read_value() for copy in self._values])
        return total if self._aggregation is VariableAggregation.SUM else total / len(self._values)  # a mean of whole numbers is none, as in 1.15

    def _together(self) -> Any:
        return array_ops.identity(math_ops.cast(self._get_cross_replica(), self.dtype))

    def _share(self, value: Any) -> Any:
        """What each copy is set to, for all of them to be a value together."""
        if self._aggregation is not VariableAggregation.SUM:
            return value
        return math_ops.cast(math_ops.cast(value, self.dtype) / len(self._values), self.dtype)

    def _read(self) -> Any:
        found = self.get()
        return found if isinstance(found, Tensor) else found.value()

    def value(self) -> Any:
        """The value of this replica's copy; across replicas the aggregated one."""
        return self._read()

    def read_value(self) -> Any:
        """A new tensor of that value."""
        return array_ops.identity(self._read())

    def _ref(self) -> Any:
        return self.value()  # which of several references is no question that has an answer

    def _apply(self, method: str, value: Any, use_locking: bool, name: Optional[str], read_value: bool) -> Any:
        if get_replica_context() is not None:
            return getattr(self.get(), method)(value, use_locking, name, read_value)
        if self._aggregation is VariableAggregation.SUM and method != "assign":
            raise at_user_line(
                ValueError(
                    "SyncOnReadVariable does not support `%s` in cross-replica context when aggregation is set to `tf.VariableAggregation.SUM`." % method
                )
            )
        return self._on_all(method, self._share(value), False, use_locking=use_locking, name=name)

    def _gather_saveables_for_checkpoint(self) -> Dict[str, Callable[..., SaveableObject]]:
        return {"VARIABLE_VALUE": lambda name="": _SyncOnReadSaveable(self, name)}


class _SyncOnReadSaveable(SaveableObject):
    """What the copies of a variable are together, of which each gets its share again."""

    def __init__(self, variable: SyncOnReadVariable, name: str) -> None:
        self._variable = variable
        spec = SaveSpec(variable._together, "", name, dtype=variable.dtype, device=variable.primary.device)
        super().__init__(variable, [spec], name)

    def restore(self, restored_tensors: List[Tensor], restored_shapes: Any) -> Operation:
        value = restored_tensors[0] if restored_shapes is None else array_ops.reshape(restored_tensors[0], restored_shapes[0])
        share = self._variable._share(value)
        return control_flow_ops.group([copy.assign(share, read_value=False) for copy in self._variable.values])  # type: ignore[return-value]


class AggregatingVariable(_Updated, Variable):
    """A variable that replicas share, and set to the sum, the mean or the first of their values."""

    _by_creators = False
    _v: Any

    def __init__(self, strategy: Any, v: Any, aggregation: VariableAggregation) -> None:
        self.__dict__ = {**vars(v), "_distribute_strategy": strategy, "_aggregation": aggregation, "_v": v}
        v.__dict__["_distributed_container"] = weakref.ref(self)

    def get(self) -> Any:
        """The variable."""
        return self._v

    def _apply(self, method: str, value: Any, use_locking: bool, name: Optional[str], read_value: bool) -> Any:
        args = use_locking, name, read_value
        if not self._in_its_replica():
            return getattr(self._v, method)(value, *args)
        if self._aggregation is VariableAggregation.NONE:
            raise at_user_line(ValueError(_NO_AGGREGATION % type(self).__name__))
        replica: Any = get_replica_context()
        return replica.merge_call(lambda strategy, given: getattr(self._v, method)(_merged(strategy, given, self._aggregation, self._v), *args), (value,))
