# SPDX-License-Identifier: Apache-2.0
"""Strategies that programs for 1.6 to 1.10 derive (tensorflow.python.training.distribute): what derives from DistributionStrategy states how things are
done in methods of its own, and the context of a replica is that of a tower, which functions' arguments are given to one by one."""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional, Tuple

from millrace.framework import strategy_base
from millrace.framework.errors import at_user_line
from millrace.framework.strategy_base import ReplicaContext, Strategy, StrategyExtended

_Function = Callable[..., Any]
_default_distribution_strategy = strategy_base._get_default_strategy()


class _Extended(StrategyExtended):
    """What libraries ask of a strategy, by the methods of DistributionStrategy."""

    _strategy: Any

    def _call_for_each_replica(self, fn: _Function, args: Any, kwargs: Dict[str, Any]) -> Any:
        return self._strategy._call_for_each_tower(fn, *args, **kwargs)

    def _replica(self) -> ReplicaContext:
        return TowerContext(self._strategy, 0)

    def _create_variable(self, next_creator: _Function, *args: Any, **kwargs: Any) -> Any:
        return self._strategy._create_variable(next_creator, *args, **kwargs)

    def _reduce_to(self, reduce_op: Any, value: Any, destinations: Any) -> Any:
        return self._strategy._reduce(reduce_op.name.lower(), value, destinations)

    def _broadcast_to(self, tensor: Any, destinations: Any) -> Any:
        return self._strategy._broadcast(tensor, destinations)

    def _update(self, var: Any, fn: _Function, args: Any, kwargs: Dict[str, Any], group: bool) -> Any:
        del group  # strategies of towers do
        return self._strategy._update(var, fn, *args, **kwargs)


class DistributionStrategy(Strategy):
    """How a program is spread over devices: one tower, where a class that derives from it does not say otherwise."""

    def __init__(self) -> None:
        super().__init__(_Extended(self))

    # What derived classes state.

    def _call_for_each_tower(self, fn: _Function, *args: Any, **kwargs: Any) -> Any:
        with TowerContext(self, 0):
            return fn(*args, **kwargs)

    def _create_variable(self, next_creator: _Function, *args: Any, **kwargs: Any) -> Any:
        return next_creator(*args, **kwargs)

    def _reduce(self, method_string: str, value: Any, destinations: Any) -> Any:
        del method_string, destinations  # there is one value
        return value

    def _broadcast(self, tensor: Any, destinations: Any) -> Any:
        del destinations  # placement is the program's
        return tensor

    def _update(self, var: Any, fn: _Function, *args: Any, **kwargs: Any) -> Any:
        return fn(var, *args, **kwargs)

    # What programs call.

    def call_for_each_tower(self, fn: _Function, *args: Any, **kwargs: Any) -> Any:
        """What a function gives in each tower. RuntimeError outside of the scope."""
        strategy_base._require_scope(self)
        return self.extended.call_for_each_replica(fn, args, kwargs)


class TowerContext(ReplicaContext):
    """What a tower knows of itself: a context in which this is in that tower."""

    def __init__(self, distribution_strategy: Any, tower_id: Any) -> None:
        super().__init__(distribution_strategy, tower_id)

    tower_id = property(lambda self: self._id, doc="Which of the towers this is, from 0.")

    def merge_call(self, merge_fn: _Function, *args: Any, **kwargs: Any) -> Any:
        """What a function makes of the strategy and the values of all towers: across them."""
        require_tower_context(self)
        with strategy_base._entered(strategy_base._Mode(self._strategy, self._strategy, None)):
            return merge_fn(self._strategy, *args, **kwargs)


_default_tower_context = TowerContext(_default_distribution_strategy, 0)


def get_tower_context() -> Optional[TowerContext]:
    """The tower that this is in; None across towers. Of a strategy whose replicas are no towers: a view of the replica."""
    replica = strategy_base.get_replica_context()
    if replica is None or isinstance(replica, TowerContext):
        return replica
    if replica is strategy_base._get_default_replica_context():
        return _default_tower_context
    return TowerContext(replica.strategy, replica._id)


def get_cross_tower_context() -> Any:
    """The strategy, across towers; None in a tower."""
    return strategy_base.get_cross_replica_context()


def get_distribution_strategy() -> Any:
    """The strategy that holds here: that of programs that choose none, outside of all scopes."""
    return strategy_base.get_strategy()


def has_distribution_strategy() -> bool:
    """Whether this is in the scope of a strategy that the program has chosen."""
    return strategy_base.has_strategy()


def require_tower_context(tower_ctx: TowerContext) -> None:
    """RuntimeError unless this is in that tower."""
    found: Tuple[Any, Any] = (strategy_base.get_replica_context(), get_tower_context())
    if found[0] is None:
        raise at_user_line(RuntimeError("Need to be inside `call_for_each_tower()`"))
    if tower_ctx is not found[0] and tower_ctx.distribution_strategy is not found[1].distribution_strategy:
        raise at_user_line(RuntimeError("Mismatching TowerContext."))
