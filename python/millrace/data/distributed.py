# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tensorflow.python.distribute.input_lib: data sets and functions as a strategy deals them out. It has one replica here, whose elements are theirs."""

from __future__ import annotations

from typing import Any, Callable, List, Optional

from millrace.data.dataset import Dataset
from millrace.data.iterators import Iterator
from millrace.framework.errors import at_user_line
from millrace.framework.graph import device
from millrace.framework.replica_inputs import InputWorkers as InputWorkers
from millrace.framework.strategy_base import MultiStepContext as MultiStepContext, iterator_of


def _require_one(input_workers: InputWorkers) -> None:
    """NotImplementedError for several pipelines, or several devices that one feeds."""
    if input_workers.num_workers != 1 or len(input_workers.compute_devices_for_worker(0)) != 1:
        raise at_user_line(NotImplementedError("several input pipelines or devices are not provided: a strategy has one replica."))


class DistributedIteratorV1:
    """What reads the elements of a strategy's input, from when what `initialize` gives has run."""

    def __init__(self, iterator: Any) -> None:
        self._iterator = iterator

    element_spec = property(lambda self: self._iterator.element_spec, doc="The type spec of each component of an element.")
    output_types = property(lambda self: self._iterator.output_types, doc="The types of an element's components.")
    output_shapes = property(lambda self: self._iterator.output_shapes, doc="The shapes of an element's components.")
    output_classes = property(lambda self: self._iterator.output_classes, doc="The classes of an element's components.")

    def initialize(self) -> List[Any]:
        """The operations that begin it."""
        return [self._iterator.initializer] if isinstance(self._iterator, Iterator) else self._iterator.initialize()  # type: ignore[no-any-return]

    initializer = property(initialize, doc="The operations that begin it.")

    def get_next(self, name: Optional[str] = None) -> Any:
        """The next element."""
        return self._iterator.get_next(name) if isinstance(self._iterator, Iterator) else self._iterator.get_next()


class DatasetIterator(DistributedIteratorV1):
    """The elements of a data set. NotImplementedError for several pipelines or devices."""

    def __init__(self, dataset: Dataset, input_workers: InputWorkers, strategy: Any, split_batch_by: Optional[int] = None, input_context: Any = None) -> None:
        super().__init__(DistributedDatasetV1(dataset, input_workers, strategy, split_batch_by, input_context).make_initializable_iterator()._iterator)


class InputFunctionIterator(DistributedIteratorV1):
    """The elements of what a function gives for the pipeline that there is. NotImplementedError for several: a strategy has one replica."""

    def __init__(self, input_fn: Callable[[Any], Any], input_workers: InputWorkers, input_contexts: List[Any], strategy: Any) -> None:
        del strategy  # it has one replica
        if input_workers.num_workers != len(input_contexts):
            raise at_user_line(
                ValueError("Number of input workers (%d) is not same as number of input_contexts (%d)" % (input_workers.num_workers, len(input_contexts)))
            )
        _require_one(input_workers)
        with device(input_workers.worker_devices[0] or None):
            super().__init__(iterator_of(input_fn(input_contexts[0])))


class DistributedDataset(Dataset):
    """A data set as a strategy deals it out, read on the device of its pipeline. A batch is not split: `split_batch_by` is 1 if it is said.
    NotImplementedError for several pipelines or devices."""

    def __init__(self, dataset: Dataset, input_workers: InputWorkers, strategy: Any, split_batch_by: Optional[int] = None, input_context: Any = None) -> None:
        del strategy, input_context  # there is one replica
        _require_one(input_workers)
        if split_batch_by not in (None, 1):
            raise at_user_line(NotImplementedError("split_batch_by=%r is not provided: a strategy has one replica." % (split_batch_by,)))
        vars(self).update(vars(dataset))
        self._reading = input_workers.worker_devices[0]


class DistributedDatasetV1(DistributedDataset):
    """One that programs of 1.x read by iterators."""

    def make_one_shot_iterator(self) -> Any:
        """The elements, without an initialization. The data set must need no state: neither placeholders nor variables."""
        with device(self._reading or None):
            return super().make_one_shot_iterator()

    def make_initializable_iterator(self, shared_name: Optional[str] = None) -> Any:
        """The elements, from when what `initialize` gives has run."""
        with device(self._reading or None):
            return DistributedIteratorV1(super().make_initializable_iterator(shared_name))


def get_distributed_dataset(
    dataset: Dataset, input_workers: InputWorkers, strategy: Any, split_batch_by: Optional[int] = None, input_context: Any = None
) -> Any:
    """A data set as the strategy deals it out."""
    return DistributedDatasetV1(dataset, input_workers, strategy, split_batch_by, input_context)
