# SPDX-License-Identifier: Apache-2.0
"""Strategies as programs for 1.8 to 1.11 call them, where a replica is a tower: arguments follow a function one by one, and reductions are "sum" and "mean"."""

from __future__ import annotations

from typing import Any, Callable, Iterable, List, Sequence, Tuple

from millrace.ops import array_ops

_Function = Callable[..., Any]


class TowerDataset:
    """A data set dealt out to the towers, or the elements of it: `get_next` reads them by an iterator that needs no initializer."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset
        self._iterator: Any = None

    def make_one_shot_iterator(self) -> Any:
        """An iterator that begins by itself."""
        return self._dataset.make_one_shot_iterator()

    def make_initializable_iterator(self) -> Any:
        """An iterator that begins when its initializer has run."""
        return self._dataset.make_initializable_iterator()

    def get_next(self) -> Any:
        """The next element."""
        self._iterator = self._iterator or self.make_one_shot_iterator()
        return self._iterator.get_next()


class Mapped(List[Any]):
    """What `map` has made of several values, which `reduce` adds, or takes the mean of."""


class OfTowers:
    """These names for a strategy of one replica, whose `extended` says how."""

    extended: Any

    num_towers = property(lambda self: self.extended._num_replicas_in_sync, doc="How many towers there are.")
    is_single_tower = property(lambda self: self.num_towers == 1, doc="Whether there is one tower.")
    worker_devices = property(lambda self: self.extended.worker_devices, doc="The devices of the towers.")
    parameter_devices = property(lambda self: self.extended.parameter_devices, doc="The devices of variables.")
    worker_device_index = property(lambda self: 0, doc="The tower's place among the devices, for call_for_each_tower.")
    between_graph = property(lambda self: self.extended.experimental_between_graph, doc="Whether each task makes a graph.")
    should_init = property(lambda self: self.extended.experimental_should_init, doc="Whether this task initializes variables.")
    should_checkpoint = property(lambda self: self.extended.should_checkpoint, doc="Whether this task writes checkpoints.")
    should_save_summary = property(lambda self: self.extended.should_save_summary, doc="Whether this task writes summaries.")
    require_static_shapes = property(lambda self: self.extended.experimental_require_static_shapes, doc="Whether shapes must be known.")

    def call_for_each_tower(self, fn: _Function, *args: Any, **kwargs: Any) -> Any:
        """Calls a function in each tower; `run_concurrently` changes nothing."""
        kwargs.pop("run_concurrently", None)
        return self.extended.call_for_each_replica(fn, args, kwargs)

    def update(self, var: Any, fn: _Function, *args: Any, **kwargs: Any) -> Any:
        """What a function makes of a variable, where the variable is."""
        return self.extended.update(var, fn, args, kwargs, group=kwargs.pop("grouped", True))

    def update_non_slot(self, colocate_with: Any, fn: _Function, *args: Any, **kwargs: Any) -> Any:
        """What a function makes, beside a variable."""
        return self.extended.update_non_slot(colocate_with, fn, args, kwargs, group=kwargs.pop("grouped", True))

    def map(self, map_over: Iterable[Any], fn: _Function, *args: Any, **kwargs: Any) -> List[Any]:
        """What a function makes of each value, for `reduce` of the list."""
        with self.extended._across():
            return Mapped(fn(value, *args, **kwargs) for value in map_over)

    def fetch(self, val: Any, destination: Any = None, fn: _Function = lambda x: x) -> Any:
        """A function of the value of a variable or of a tensor, to be read by a step."""
        del destination  # there is one device
        return fn(array_ops.identity(val))

    def broadcast(self, tensor: Any, destinations: Any = None) -> Any:
        """A tensor, in all towers."""
        return self.extended.broadcast_to(tensor, destinations)

    def batch_reduce(self, method_string: Any, value_destination_pairs: Sequence[Tuple[Any, Any]]) -> List[Any]:
        """The sums or means of several values."""
        return self.extended.batch_reduce_to(method_string, value_destination_pairs)  # type: ignore[no-any-return]

    def read_var(self, v: Any) -> Any:
        """A tensor of a variable's value."""
        return self.extended.read_var(v)

    def non_slot_devices(self, var_list: Any) -> Any:
        """Where what optimizers keep beside slots goes."""
        return self.extended.non_slot_devices(var_list)

    def value_container(self, value: Any) -> Any:
        """The variable that a value is of."""
        return self.extended.value_container(value)

    def distribute_dataset(self, dataset: Any) -> TowerDataset:
        """A data set, or what a function of no arguments gives, dealt out to the towers."""
        return TowerDataset(dataset if hasattr(dataset, "make_one_shot_iterator") else dataset())
