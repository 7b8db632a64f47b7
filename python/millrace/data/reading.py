# SPDX-License-Identifier: Apache-2.0
"""Data sets of tables in databases, data sets written to files, and how far an iterator has come in checkpoints."""

from __future__ import annotations

import atexit
import functools
import itertools
import os
import shutil
import sqlite3
import tempfile
from typing import Any, Iterator as Values

import numpy as np

from millrace.data.dataset import Dataset
from millrace.data.generator import from_generator
from millrace.framework import dtypes
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Operation, Tensor, control_dependencies, get_default_graph
from millrace.framework.tensor_shape import TensorShape
from millrace.ops import array_ops, control_flow_ops, gen_ops
from millrace.python_io import TFRecordOptions
from millrace.train.checkpoint_management import get_checkpoint_state
from millrace.train.hooks import CheckpointSaverHook, SessionRunHook
from millrace.train.saveable import SaveableObject, SaveSpec
from millrace.train.saver import Saver


def _rows(source: bytes, query: bytes) -> Values[Any]:
    with sqlite3.connect("file:%s?mode=ro" % source.decode(), uri=True, check_same_thread=False) as connection:
        try:
            yield from connection.execute(query.decode())
        except sqlite3.OperationalError as error:
            if "readonly" in str(error):  # it would have written, and gives no rows
                raise ValueError("The query %r: %s" % (query.decode(), error)) from error
            raise


class SqlDataset(Dataset):
    """The rows that a query of an SQLite file gives, as tuples."""

    def __init__(self, driver_name: Any, data_source_name: Any, query: Any, output_types: Any) -> None:
        types = tuple(dtypes.as_dtype(t) for t in output_types)

        def rows(*given: Any) -> Values[Any]:
            for row in _rows(*(np.asarray(g).item() for g in given)):
                if len(row) != len(types):
                    raise ValueError("The query gives %d columns, output_types has %d" % (len(row), len(types)))
                yield tuple("" if value is None and t == dtypes.string else 0 if value is None else value for value, t in zip(row, types))

        driver = convert_to_tensor(driver_name, dtypes.string)
        known = "The database type is not supported by SqlDataset. The set of supported databases is: {'sqlite'}. Got:"
        with control_dependencies([control_flow_ops.Assert(gen_ops.equal(driver, "sqlite"), [known, driver])]):  # as an iterator is made
            texts = [array_ops.identity(convert_to_tensor(t, dtypes.string)) for t in (data_source_name, query)]
        made = from_generator(Dataset, rows, types, tuple(TensorShape([]) for _ in types), texts)
        super().__init__(made._variant, made.element_spec)


class TFRecordWriter:
    """Writes data sets of strings to record files."""

    def __init__(self, filename: Any, compression_type: Any = None) -> None:
        self._filename = convert_to_tensor(filename, dtypes.string)
        self._compression = compression_type if isinstance(compression_type, Tensor) else TFRecordOptions.get_compression_type_string(compression_type)

    def write(self, dataset: Dataset) -> Operation:
        """An operation that writes all elements of a data set, each a record."""
        if not isinstance(dataset, Dataset):
            raise at_user_line(TypeError("`dataset` must be a `tf.data.Dataset` object."))
        if dataset.output_types != dtypes.string or not dataset.output_shapes.is_compatible_with(TensorShape([])):
            raise at_user_line(
                TypeError(
                    "`dataset` must produce scalar `DT_STRING` tensors whereas it produces shape %s and types %s"
                    % (dataset.output_shapes, dataset.output_types)
                )
            )
        return gen_ops.dataset_to_tf_record(dataset._variant, self._filename, self._compression)  # type: ignore[no-any-return]


_numbers = itertools.count()


@functools.cache
def _folder() -> str:
    """A folder that goes away with the process."""
    made = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, made, True)
    return made


class _Position(SaveableObject):
    """Where an iterator is, as tensors of a checkpoint: what SaveIterator writes into a file. The number of elements given, and the graph of the data set."""

    _NAMES = ["iterator/taken", "iterator/graph"]

    def __init__(self, resource: Any) -> None:
        self._path = os.path.join(_folder(), "%d" % next(_numbers))
        with control_dependencies([gen_ops.save_iterator(resource, self._path)]):
            taken, graph = gen_ops.restore_v2(self._path, self._NAMES, ["", ""], [dtypes.int64, dtypes.string])
        self._types = np.array([dtypes.as_dtype(t).as_datatype_enum for t in resource.op.get_attr("output_types")], np.int32)
        name = resource.op.name
        super().__init__(resource, [SaveSpec(taken, "", name + "-state"), SaveSpec(graph, "", name + "-data_set")], name)

    def restore(self, restored_tensors: Any, restored_shapes: Any) -> Operation:
        """An operation that sets the iterator to where it was."""
        del restored_shapes  # all are scalars
        values = [array_ops.reshape(t, []) for t in restored_tensors]
        with control_dependencies([gen_ops.save_v2(self._path, self._NAMES + ["iterator/types"], [""] * 3, values + [self._types])]):
            return gen_ops.restore_iterator(self.op, self._path)  # type: ignore[no-any-return]


def make_saveable_from_iterator(iterator: Any) -> SaveableObject:
    """What savers take to keep where an iterator is: put it into the collection SAVEABLE_OBJECTS.

    An iterator that has a data set when it is restored keeps it, and begins there behind the elements that were given; one whose initializer has not run gets
    the data set that was saved, if that took no resources (docs/compatibility.md).
    """
    return _Position(iterator._iterator_resource)


class _NamedSaver:
    """A saver whose newest checkpoint stands in a file of its own."""

    saver_def = None

    def __init__(self, saver: Saver, state_file: str) -> None:
        self.saver, self.state_file = saver, state_file

    def save(self, session: Any, path: str, global_step: Any = None) -> Any:
        """Saves."""
        return self.saver.save(session, path, global_step, latest_filename=self.state_file, write_meta_graph=False)


class CheckpointInputPipelineHook(SessionRunHook):
    """Keeps how far the iterators of an estimator's input function have come, beside its checkpoints, and goes on there."""

    def __init__(self, estimator: Any) -> None:
        config = estimator.config
        label = "" if config.num_worker_replicas <= 1 else "_%s_%s" % (config.task_type, config.task_id)
        self._folder, self._every, self._steps, self._name = estimator.model_dir, config.save_checkpoints_secs, config.save_checkpoints_steps, "input" + label
        self._hook: Any = None
        self._saver: Any = None

    def begin(self) -> None:
        """Finds the iterators of the graph."""
        kept = [_Position(op.outputs[0]) for op in get_default_graph().get_operations() if op.type in ("IteratorV2", "OneShotIterator")]
        if not kept:
            raise at_user_line(ValueError("No iterators to save: the input function has to return a data set, or what an iterator gives."))
        self._saver = _NamedSaver(Saver(kept, sharded=False, save_relative_paths=True), "checkpoint_" + self._name)
        self._hook = CheckpointSaverHook(self._folder, self._every, self._steps, self._saver, self._name + ".ckpt")
        self._hook.begin()

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Sets the iterators to where they were, or keeps where they begin."""
        state = get_checkpoint_state(self._folder, self._saver.state_file)
        if state is not None:
            self._saver.saver.restore(session, state.model_checkpoint_path)
        else:
            self._hook.save_now(session)

    def before_run(self, run_context: Any) -> Any:
        """As the hook that saves checkpoints."""
        return self._hook.before_run(run_context)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """As the hook that saves checkpoints."""
        self._hook.after_run(run_context, run_values)

    def end(self, session: Any) -> None:
        """As the hook that saves checkpoints."""
        self._hook.end(session)


__all__ = ["CheckpointInputPipelineHook", "SqlDataset", "TFRecordWriter", "make_saveable_from_iterator"]
