# SPDX-License-Identifier: Apache-2.0
"""Tables of columns that become tensors when they are run."""

from __future__ import annotations

import csv
import itertools
from typing import Any, Dict, FrozenSet, Iterator, List, Optional

import numpy as np

from millrace.contrib.learn.dataframe import sources, transforms
from millrace.contrib.learn.dataframe.series import Series
from millrace.framework import dtypes, errors
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Graph
from millrace.framework.session import Session
from millrace.gfile import GFile, Glob
from millrace.ops import parsing_ops
from millrace.ops.control_flow_ops import group
from millrace.ops.lookup_ops import tables_initializer
from millrace.ops.readers import TFRecordReader
from millrace.ops.variables import global_variables_initializer, local_variables_initializer
from millrace.train.coordinator import Coordinator
from millrace.train.queue_runner import start_queue_runners


class DataFrame:
    """Columns (Series) by name."""

    def __init__(self) -> None:
        self._columns: Dict[str, Series] = {}

    def columns(self) -> FrozenSet[str]:
        """The names."""
        return frozenset(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def assign(self, **kwargs: Any) -> None:
        """Adds columns by name, or puts them in place of others."""
        for name, series in kwargs.items():
            if not isinstance(series, Series):
                raise at_user_line(TypeError("a column must be a Series, got %r as %s" % (series, name)))
            self._columns[name] = series

    def _with(self, columns: Dict[str, Series]) -> Any:
        made = type(self)()
        made._columns.update(columns)
        return made

    def select_columns(self, keys: Any) -> Any:
        """A table of these columns. KeyError when one is not there."""
        return self._with({key: self[key] for key in keys})

    def exclude_columns(self, exclude_keys: Any) -> Any:
        """A table of all columns but these."""
        return self._with({key: series for key, series in self._columns.items() if key not in exclude_keys})

    def __getitem__(self, key: Any) -> Any:
        """A column by its name, or a list of them."""
        return self._columns[key] if isinstance(key, str) else [self._columns[each] for each in key]

    def __setitem__(self, key: Any, value: Any) -> None:
        keys, values = ([key], [value]) if isinstance(key, str) else (list(key), list(value))
        if len(keys) != len(values):
            raise at_user_line(ValueError("%d names for %d columns" % (len(keys), len(values))))
        self.assign(**dict(zip(keys, values)))

    def __delitem__(self, key: Any) -> None:
        for each in [key] if isinstance(key, str) else key:
            del self._columns[each]

    def build(self, **kwargs: Any) -> Dict[str, Any]:
        """The tensors of all columns by name, in the graph that is the default. num_epochs: how often sources give their data."""
        cache: Dict[str, Any] = {}
        return {name: series.build(cache, **kwargs) for name, series in self._columns.items()}


def _expand_file_names(filepatterns: Any) -> List[str]:
    patterns = [filepatterns] if isinstance(filepatterns, str) else list(filepatterns)
    names = [name for pattern in patterns for name in sorted(Glob(pattern))]
    if not names:
        raise at_user_line(ValueError("there are no files %s" % patterns))
    return names


def _default_of(spec: Any) -> Any:
    """What an empty field of a column is: the default of a dense one, for a sparse one what is left out afterwards."""
    if isinstance(spec, parsing_ops.FixedLenFeature):
        return spec.default_value
    kind = dtypes.as_dtype(spec.dtype)
    return "" if kind == dtypes.string else np.nan


class TensorFlowDataFrame(DataFrame):
    """A table whose columns come from files or memory, which can be run."""

    def run(
        self,
        num_batches: Optional[int] = None,
        graph: Optional[Graph] = None,
        session: Any = None,
        start_queues: bool = True,
        initialize_variables: bool = True,
        **kwargs: Any,
    ) -> Iterator[Dict[str, Any]]:
        """Dictionaries of arrays, a batch each: num_batches, or until the sources end. kwargs: as build takes them."""
        graph = Graph() if graph is None else graph
        with graph.as_default():
            sess = Session(graph=graph) if session is None else session
            built, coord = self.build(**kwargs), Coordinator()
            if initialize_variables:
                sess.run(group(local_variables_initializer(), global_variables_initializer(), tables_initializer()))
            threads = start_queue_runners(sess, coord=coord) if start_queues else []
        try:
            for _ in itertools.count() if num_batches is None else range(num_batches):
                yield sess.run(built)
        except errors.OutOfRangeError:
            pass
        finally:
            coord.request_stop()
            coord.join(threads)
            if session is None:
                sess.close()

    def run_one_batch(self) -> Dict[str, Any]:
        """One batch."""
        return next(iter(self.run(num_batches=1)))

    def run_one_epoch(self) -> Dict[str, Any]:
        """All whole batches of one pass over the data, joined."""
        batches = list(self.run(num_epochs=1))
        return {name: np.concatenate([batch[name] for batch in batches]) for name in self._columns}

    def materialize_to_memory(self, batch_size: int) -> "TensorFlowDataFrame":
        """A table of the data of one pass, which are in memory."""
        data = self.run_one_epoch()
        data.pop("index", None)
        return TensorFlowDataFrame.from_ordereddict(data, batch_size=batch_size)

    def select_rows(self, boolean_series: Any) -> "TensorFlowDataFrame":
        """A table of the rows where a column of booleans is true."""
        made: TensorFlowDataFrame = self._with({name: series.select_rows(boolean_series) for name, series in self._columns.items()})  # type: ignore[attr-defined]
        return made

    def split(self, index_series: Any, proportion: float, batch_size: Optional[int] = None) -> Any:
        """Two tables: of this proportion of the rows, chosen by the hash of a column of strings or its name, and of the others. batch_size: of new batches."""
        (mask,) = transforms.SplitMask(proportion)([self[index_series] if isinstance(index_series, str) else index_series])
        parts = [self.select_rows(mask), self.select_rows(~mask)]
        return parts if batch_size is None else [part.batch(batch_size) for part in parts]

    def split_fast(self, index_series: Any, proportion: float, batch_size: int, base_batch_size: int = 1000) -> Any:
        """split of a table in memory, whose parts are in memory too."""
        parts = self.split(index_series, proportion, base_batch_size)
        return [part.materialize_to_memory(batch_size) for part in parts]

    def batch(
        self,
        batch_size: int,
        shuffle: bool = False,
        num_threads: int = 1,
        queue_capacity: Optional[int] = None,
        min_after_dequeue: Optional[int] = None,
        seed: Optional[int] = None,
    ) -> "TensorFlowDataFrame":
        """A table of the same rows in batches of another size."""
        names = sorted(self._columns)
        if shuffle:
            batcher: Any = transforms.ShuffleBatch(batch_size, names, num_threads, queue_capacity, min_after_dequeue, seed)
        else:
            batcher = transforms.Batch(batch_size, names, num_threads, queue_capacity)
        made: TensorFlowDataFrame = self._with(dict(zip(names, batcher(self[names]))))
        return made

    # ---- tables of files ----

    @classmethod
    def _of_csv(cls, filepatterns: Any, get_defaults: Any, has_header: bool, column_names: Any, **kwargs: Any) -> "TensorFlowDataFrame":
        names = _expand_file_names(filepatterns)
        if column_names is None:
            if not has_header:
                raise at_user_line(ValueError("column_names are needed where files have no header"))
            with GFile(names[0]) as file:
                column_names = next(csv.reader([file.readline()]))
        if "index" in column_names:
            raise at_user_line(ValueError("'index' is reserved and can not be used for a column name."))
        source = sources.TextFileSource(names, reader_kwargs={"skip_header_lines": 1 if has_header else 0}, **kwargs)()
        made = cls()
        made.assign(index=source.index, **transforms.CSVParser(column_names, get_defaults(column_names))([source.value])._asdict())
        return made

    @classmethod
    def from_csv(
        cls, filepatterns: Any, default_values: Any, has_header: bool = True, column_names: Any = None, num_threads: int = 1, **kwargs: Any
    ) -> "TensorFlowDataFrame":
        """The fields of files, and keys as `index`. default_values: a list in the order of the fields. kwargs: enqueue_size, batch_size=32,
        queue_capacity, min_after_dequeue, shuffle=True, seed."""
        return cls._of_csv(filepatterns, lambda names: default_values, has_header, column_names, num_threads=num_threads, **_source_arguments(kwargs))

    @classmethod
    def from_csv_with_feature_spec(
        cls, filepatterns: Any, feature_spec: Dict[str, Any], has_header: bool = True, column_names: Any = None, num_threads: int = 1, **kwargs: Any
    ) -> "TensorFlowDataFrame":
        """from_csv of columns that are FixedLenFeature, or VarLenFeature, which are sparse: without the fields that are empty."""

        def defaults(names: List[str]) -> List[Any]:
            return [_default_of(feature_spec[name]) for name in names]

        made = cls._of_csv(filepatterns, defaults, has_header, column_names, num_threads=num_threads, **_source_arguments(kwargs))
        for name, spec in feature_spec.items():
            if isinstance(spec, parsing_ops.VarLenFeature):
                made[name] = transforms.Sparsify(_default_of(spec))([made[name]])[0]
        return made

    @classmethod
    def from_examples(cls, filepatterns: Any, features: Any, reader_cls: Any = TFRecordReader, num_threads: int = 1, **kwargs: Any) -> "TensorFlowDataFrame":
        """The features of Examples in files, and keys as `index`. kwargs: as those of from_csv."""
        if "index" in dict(features):
            raise at_user_line(ValueError("'index' is reserved and can not be used for a feature name."))
        source = sources.ReaderSource(reader_cls, _expand_file_names(filepatterns), num_threads=num_threads, **_source_arguments(kwargs))()
        made = cls()
        made.assign(index=source.index, **transforms.ExampleParser(features)([source.value])._asdict())
        return made

    # ---- tables in memory ----

    @classmethod
    def _of_memory(cls, kind: Any, data: Any, data_name: str, kwargs: Dict[str, Any]) -> "TensorFlowDataFrame":
        made = cls()
        made.assign(**kind(data, data_name=data_name, **{"shuffle": True, **kwargs})()._asdict())
        return made

    @classmethod
    def from_pandas(cls, pandas_dataframe: Any, data_name: str = "pandas_data", **kwargs: Any) -> "TensorFlowDataFrame":
        """The columns of a pandas table, and its index. kwargs: num_threads, enqueue_size, batch_size, queue_capacity, min_after_dequeue, shuffle=True, seed."""
        return cls._of_memory(sources.PandasSource, pandas_dataframe, data_name, kwargs)

    @classmethod
    def from_numpy(cls, numpy_array: Any, data_name: str = "numpy_data", **kwargs: Any) -> "TensorFlowDataFrame":
        """The rows of an array, as `value`, and their numbers, as `index`. kwargs: as those of from_pandas."""
        return cls._of_memory(sources.NumpySource, numpy_array, data_name, kwargs)

    @classmethod
    def from_ordereddict(cls, ordered_dict_of_arrays: Any, data_name: str = "numpy_data", **kwargs: Any) -> "TensorFlowDataFrame":
        """The rows of arrays by name, and their numbers, as `index`. kwargs: as those of from_pandas."""
        return cls._of_memory(sources.OrderedDictNumpySource, ordered_dict_of_arrays, data_name, kwargs)


def _source_arguments(given: Dict[str, Any]) -> Dict[str, Any]:
    return {"batch_size": 32, "shuffle": True, "enqueue_size": None, **given}
