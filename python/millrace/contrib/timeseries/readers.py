# SPDX-License-Identifier: Apache-2.0
"""Where series come from: arrays, CSV files, files of records. A reader gives them again and again, in order."""

from __future__ import annotations

import abc
from typing import Any, Dict, Optional, Sequence, Tuple

import numpy as np

from millrace.contrib.timeseries.continuing import canonicalize_numpy_data
from millrace.contrib.timeseries.feature_keys import TrainEvalFeatures
from millrace.estimator.inputs import numpy_input_fn
from millrace.framework import dtypes
from millrace.framework.convert import constant, convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import GraphKeys, Tensor, control_dependencies
from millrace.ops import array_ops, gen_ops, parsing_ops, state_ops
from millrace.ops.control_flow_ops import cond, while_loop
from millrace.ops.readers import TextLineReader, TFRecordReader
from millrace.ops.tensor_array_ops import TensorArray
from millrace.ops.variables import Variable
from millrace.train.input import string_input_producer


class TimeSeriesReader(abc.ABC):
    """The base of readers."""

    def check_dataset_size(self, minimum_dataset_size: int) -> None:
        """Raises a ValueError where it is known that there are fewer records."""
        del minimum_dataset_size  # how long files are is not known

    @abc.abstractmethod
    def read(self) -> Dict[str, Tensor]:
        """Some records, the next ones in each step: tensors [records, ...] by features' names."""

    @abc.abstractmethod
    def read_full(self) -> Dict[str, Tensor]:
        """All records, in each step: tensors [records, ...] by features' names."""


class NumpyReader(TimeSeriesReader):
    """Reads arrays."""

    def __init__(self, data: Dict[str, Any], read_num_records_hint: int = 4096) -> None:
        """Times [length], values [length] or [length, features], and other features [length, ...], by their names."""
        self._features = canonicalize_numpy_data(data, require_single_batch=True)
        self._records_at_once = read_num_records_hint

    def check_dataset_size(self, minimum_dataset_size: int) -> None:
        """ValueError where the arrays are shorter."""
        size = self._features[TrainEvalFeatures.TIMES].shape[1]
        if size < minimum_dataset_size:
            raise at_user_line(
                ValueError(
                    "A TimeSeriesInputFn is configured to create windows of size %d, but only %d records were available in the dataset. Either decrease "
                    "the window size or provide more records." % (minimum_dataset_size, size)
                )
            )

    def read(self) -> Dict[str, Tensor]:
        """The next read_num_records_hint records."""
        series = {name: np.squeeze(value, 0) for name, value in self._features.items()}
        return numpy_input_fn(series, batch_size=self._records_at_once, num_epochs=None, shuffle=False)()

    def read_full(self) -> Dict[str, Tensor]:
        """All records."""
        whole = numpy_input_fn(self._features, batch_size=1, num_epochs=None, shuffle=False)()
        return {name: array_ops.squeeze(value, 0) for name, value in whole.items()}


class ReaderBaseTimeSeriesParser(TimeSeriesReader):
    """The base of readers of files, whose records _process_records makes features of."""

    def __init__(self, filenames: Any, read_num_records_hint: int = 4096) -> None:
        self._filenames, self._records_at_once = filenames, read_num_records_hint

    @abc.abstractmethod
    def _get_reader(self) -> Any:
        """What reads the files: a ReaderBase."""

    @abc.abstractmethod
    def _process_records(self, lines: Tensor) -> Dict[str, Tensor]:
        """Features of records, a vector of strings."""

    def _files(self, epochs: int) -> Tuple[Any, Variable]:
        """A queue of the files' names, and how often they have all been put into it since it was set to 0. At `epochs` it ends with OutOfRangeError:
        files without records would be read for ever otherwise."""
        counter = Variable(constant(0, dtypes.int64), name="epoch_limiter", trainable=False, collections=[GraphKeys.LOCAL_VARIABLES])
        count = cond(state_ops.is_variable_initialized(counter), lambda: counter.count_up_to(epochs), lambda: constant(0, dtypes.int64))
        names = array_ops.reshape(convert_to_tensor(self._filenames), [-1])
        with control_dependencies([count]):
            names = array_ops.identity(names)
        return string_input_producer(names, shuffle=False, capacity=1), counter

    def read(self) -> Dict[str, Tensor]:
        """The next records of a file, read_num_records_hint of them at most."""
        files, counter = self._files(self._records_at_once)
        with control_dependencies([state_ops.assign(counter, 0)]):
            _, records = self._get_reader().read_up_to(files, self._records_at_once)
        return self._process_records(records)

    def read_full(self) -> Dict[str, Tensor]:
        """All records of all files: until the key of the first comes back."""
        reader = self._get_reader()
        files, counter = self._files(2)
        with control_dependencies([state_ops.assign(counter, 0)]):
            first_key, first = reader.read_up_to(files, 1)

        def keep_and_read(_key: Tensor, value: Tensor, count: Tensor, kept: TensorArray) -> Any:
            key, following = reader.read_up_to(files, 1)
            key.set_shape([1])
            following.set_shape([1])
            return key, following, count + 1, kept.write(count, value)

        kept = TensorArray(dtypes.string, size=0, dynamic_size=True)
        more = lambda key, *_: gen_ops.not_equal(key[0], first_key[0])
        records = while_loop(more, keep_and_read, [constant([""]), first, constant(0), kept])[3].concat()
        with control_dependencies([records]):
            anew = reader.reset()
        with control_dependencies([anew]):
            return self._process_records(array_ops.identity(records))


def _check_columns(names: Any) -> None:
    for name in (TrainEvalFeatures.TIMES, TrainEvalFeatures.VALUES):
        if name not in names:
            raise at_user_line(ValueError("'%s' is a required column." % name))


class CSVReader(ReaderBaseTimeSeriesParser):
    """Reads files of numbers between commas."""

    def __init__(
        self,
        filenames: Any,
        column_names: Sequence[str] = (TrainEvalFeatures.TIMES, TrainEvalFeatures.VALUES),
        column_dtypes: Optional[Sequence[Any]] = None,
        skip_header_lines: Optional[int] = None,
        read_num_records_hint: int = 4096,
    ) -> None:
        """column_names has a name for each column, TIMES just once; columns of the same name are one feature [records, columns]. Without
        column_dtypes times are of int64, and all else is float32."""
        _check_columns(column_names)
        if column_dtypes is not None and len(column_dtypes) != len(column_names):
            raise at_user_line(
                ValueError(
                    "If specified, the length of column_dtypes must match the length of column_names (got column_dtypes=%s and column_names=%s)."
                    % (column_dtypes, column_names)
                )
            )
        if list(column_names).count(TrainEvalFeatures.TIMES) != 1:
            raise at_user_line(ValueError("Got more than one times column ('%s'), but exactly one is required." % TrainEvalFeatures.TIMES))
        self._column_names, self._column_dtypes, self._skip_header_lines = column_names, column_dtypes, skip_header_lines
        super().__init__(filenames, read_num_records_hint)

    def _get_reader(self) -> TextLineReader:
        return TextLineReader(skip_header_lines=self._skip_header_lines)

    def _process_records(self, lines: Tensor) -> Dict[str, Tensor]:
        given = self._column_dtypes or [dtypes.int64 if name == TrainEvalFeatures.TIMES else None for name in self._column_names]
        columns = parsing_ops.decode_csv(lines, [[] if dtype is None else [array_ops.zeros([], dtype)] for dtype in given])
        gathered: Dict[str, Any] = {}
        for name, column in zip(self._column_names, columns):
            gathered.setdefault(name, []).append(column)
        return {name: array_ops.stack(parts, axis=1) if name != TrainEvalFeatures.TIMES else parts[0] for name, parts in gathered.items()}


class TFExampleReader(ReaderBaseTimeSeriesParser):
    """Reads files of records, each an Example."""

    def __init__(self, filenames: Any, features: Dict[str, Any]) -> None:
        """`features` says how to parse them, as tf.parse_example is told: TIMES as a number of int64, VALUES as [features]."""
        _check_columns(features)
        self._features = features
        super().__init__(filenames)

    def _get_reader(self) -> TFRecordReader:
        return TFRecordReader()

    def _process_records(self, lines: Tensor) -> Dict[str, Tensor]:
        return parsing_ops.parse_example(serialized=lines, features=self._features)
