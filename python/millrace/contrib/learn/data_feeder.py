# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.learn's feeders: batches of arrays, tables or iterators as values for placeholders.

x and y are arrays or dicts of arrays. y of n_classes > 1 goes out as rows of zeros with a 1 for the class (for each class, where a row of y
has several).
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

import numpy as np

from millrace import tf_logging
from millrace.contrib.learn.learn_io import extract_dask_data, extract_dask_labels, extract_pandas_data, extract_pandas_labels, extract_pandas_matrix
from millrace.framework import dtypes
from millrace.framework.errors import at_user_line
from millrace.ops import array_ops


def _each(function: Callable[..., Any], value: Any, *more: Any) -> Any:
    """What a function gives for a value, or for each of a dict's, with the values of the same keys of other dicts (None where they have none)."""
    if not isinstance(value, dict):
        return function(value, *more)
    return {k: function(v, *(m.get(k) if isinstance(m, dict) else m for m in more)) for k, v in value.items()}


def _first(value: Any) -> Any:
    return next(iter(value.values())) if isinstance(value, dict) else value


def _checked_batch_size(batch_size: Optional[int]) -> None:
    if batch_size is not None and batch_size <= 0:
        raise at_user_line(ValueError("Invalid batch_size %d." % batch_size))


def _shapes(x_shape: Any, y_shape: Any, n_classes: Any, batch_size: Optional[int]) -> Tuple[Any, Any, int]:
    """(the shapes of a batch's inputs and outputs, its size: all rows where none is given)."""
    if isinstance(y_shape, dict) and n_classes is not None and not isinstance(n_classes, dict):
        raise at_user_line(ValueError("n_classes must be a dict, as y is one"))
    _checked_batch_size(batch_size)
    size = int(_first(x_shape)[0]) if batch_size is None else batch_size

    def output(shape: Any, classes: Optional[int]) -> List[int]:
        rest = list(shape[1:])
        rest = rest[1:] if rest[:1] == [1] else rest
        return [size, *rest, *([classes] if classes is not None and classes > 1 else [])]

    inputs = _each(lambda shape: [size, *(shape[1:] if len(shape) > 1 else [1])], x_shape)
    return inputs, None if y_shape is None else _each(output, y_shape, n_classes), size


def check_array(array: Any, dtype: Any) -> Any:
    """An array or a list as an array of a type; anything else as it is."""
    return np.asarray(array, dtype) if isinstance(array, (np.ndarray, list)) else array


def _check_dtype(dtype: Any) -> Any:
    if dtypes.as_dtype(dtype) == dtypes.float64:
        tf_logging.warning("float64 is not supported by many models, consider casting to float32.")
    return dtype


def _access(data: Any, rows: Any) -> Any:
    return data.iloc[rows] if hasattr(data, "iloc") else data[rows]


def _marked(out: np.ndarray, row: int, value: Any, n_classes: Optional[int]) -> None:
    """Puts a value into a row, or marks its classes there."""
    if n_classes is None or n_classes <= 1:
        out[row] = value[0] if isinstance(value, list) and out.ndim == 1 else value
    elif out.ndim == 2:
        out[row, int(value)] = 1
    else:
        for place, one in enumerate(value):
            out[row, place, one] = 1


class DataFeeder:
    """Batches of arrays, in the order of a permutation anew for each epoch unless shuffle is false; StopIteration behind `epochs`."""

    def __init__(
        self, x: Any, y: Any, n_classes: Any, batch_size: Optional[int] = None, shuffle: bool = True, random_state: Any = None, epochs: Optional[int] = None
    ) -> None:
        y = np.array(y) if isinstance(y, list) else y
        self._x = _each(lambda part: check_array(part, part.dtype), x)
        self._y = None if y is None else _each(lambda part: check_array(part, part.dtype), y)
        if n_classes is not None and y is not None and not isinstance(y, dict):
            self._y = check_array(y, np.int64 if n_classes > 1 else np.float32)
        self.n_classes, self.max_epochs = n_classes, epochs
        x_shape, y_shape = (None if part is None else _each(lambda array: tuple(array.shape), part) for part in (self._x, self._y))
        self.input_shape, self.output_shape, self._batch_size = _shapes(x_shape, y_shape, n_classes, batch_size)
        self._input_dtype: Any = _each(lambda part: _check_dtype(part.dtype), self._x)
        types = None if self._y is None else _each(lambda part: _check_dtype(part.dtype), self._y)
        if isinstance(types, dict) and n_classes is not None:
            types.update((key, np.float32) for key in n_classes if key in types)
        self._output_dtype: Any = np.float32 if types is None else types
        self._shuffle = shuffle
        self.random_state = np.random.RandomState(42) if random_state is None else random_state
        self._count = int(_first(self._x).shape[0])
        self.indices, self.offset, self.epoch = self._order(), 0, 0
        self._epoch_placeholder: Any = None
        self._input_placeholder: Any = None
        self._output_placeholder: Any = None

    x = property(lambda self: self._x, doc="The inputs.")
    y = property(lambda self: self._y, doc="The outputs, or None.")
    shuffle = property(lambda self: self._shuffle, doc="Whether the order is by chance.")
    input_dtype = property(lambda self: self._input_dtype, doc="The types of the inputs.")
    output_dtype = property(lambda self: self._output_dtype, doc="The types of the outputs.")
    batch_size = property(lambda self: self._batch_size, doc="How many rows a batch has.")

    def _order(self) -> np.ndarray:
        return self.random_state.permutation(self._count) if self._shuffle else np.arange(self._count)

    def make_epoch_variable(self) -> Any:
        """A placeholder for the number of the epoch."""
        self._epoch_placeholder = array_ops.placeholder(dtypes.int32, [1], name="epoch")
        return self._epoch_placeholder

    def input_builder(self) -> Any:
        """Placeholders for (inputs, outputs)."""

        def placeholders(shapes: Any, types: Any, name: str) -> Any:
            if shapes is None:
                return None
            named = {k: "%s_%s" % (name, k) for k in shapes} if isinstance(shapes, dict) else name
            return _each(lambda shape, dtype, n: array_ops.placeholder(dtypes.as_dtype(dtype), [None, *shape[1:]], name=n), shapes, types, named)

        self.set_placeholders(placeholders(self.input_shape, self._input_dtype, "input"), placeholders(self.output_shape, self._output_dtype, "output"))
        return self._input_placeholder, self._output_placeholder

    def set_placeholders(self, input_placeholder: Any, output_placeholder: Any) -> None:
        """Placeholders of the program's own."""
        self._input_placeholder, self._output_placeholder = input_placeholder, output_placeholder

    def get_feed_params(self) -> Dict[str, int]:
        """How far it has come."""
        return {"epoch": self.epoch, "offset": self.offset, "batch_size": self._batch_size}

    @staticmethod
    def _fed(placeholders: Any, values: Any) -> Dict[str, Any]:
        return {placeholders[k].name: values[k] for k in values} if isinstance(values, dict) else {placeholders.name: values}

    def get_feed_dict_fn(self) -> Callable[[], Dict[str, Any]]:
        """A function that gives the next batch, by the names of placeholders."""

        def rows_of(data: Any, rows: np.ndarray) -> Any:
            return np.array(_access(data, rows)).reshape(len(rows), 1) if len(data.shape) == 1 else _access(data, rows)

        def labels_of(rows: np.ndarray, data: Any, shape: Any, dtype: Any, n_classes: Optional[int]) -> np.ndarray:
            out = np.zeros([len(rows), *shape[1:]], dtype)
            for row, index in enumerate(rows):
                _marked(out, row, _access(data, index), n_classes)
            return out

        def feed() -> Dict[str, Any]:
            if self.max_epochs is not None and self.epoch + 1 > self.max_epochs:
                raise StopIteration
            fed: Dict[str, Any] = {} if self._epoch_placeholder is None else {self._epoch_placeholder.name: [self.epoch]}
            rows = self.indices[self.offset : self.offset + self._batch_size]
            fed.update(self._fed(self._input_placeholder, _each(lambda part: rows_of(part, rows), self._x)))
            self.offset += self._batch_size
            if self.offset >= self._count:
                self.indices, self.offset, self.epoch = self._order(), 0, self.epoch + 1
            if self._output_placeholder is not None:
                labels = _each(functools.partial(labels_of, rows), self._y, self.output_shape, self._output_dtype, self.n_classes)
                fed.update(self._fed(self._output_placeholder, labels))
            return fed

        return feed


class StreamingDataFeeder(DataFeeder):
    """Batches of what iterators give, example by example; the last one may be smaller."""

    def __init__(self, x: Any, y: Any, n_classes: Any, batch_size: Optional[int]) -> None:
        firsts = []
        for source in (x, y):
            firsts.append(None if source is None else next(source))
        self._x = itertools.chain([firsts[0]], x)
        self._y = None if y is None else itertools.chain([firsts[1]], y)
        self.n_classes = n_classes
        self._epoch_placeholder = self._input_placeholder = self._output_placeholder = None

        def shape_of(one: Any) -> List[int]:
            return [1, *np.shape(one[0] if isinstance(one, list) else one)]

        def dtype_of(one: Any) -> Any:
            return dtype_of(one[0]) if isinstance(one, list) else one.dtype if isinstance(one, np.ndarray) else _check_dtype(np.dtype(type(one)))

        y_shape = None if y is None else _each(shape_of, firsts[1])
        self.input_shape, self.output_shape, self._batch_size = _shapes(_each(shape_of, firsts[0]), y_shape, n_classes, batch_size)
        self._input_dtype = _each(lambda one: _check_dtype(one.dtype), firsts[0])
        if n_classes is not None and not isinstance(firsts[1], dict) and n_classes > 0:
            self._output_dtype = np.float32
        else:
            self._output_dtype = None if y is None else _each(dtype_of, firsts[1])

    def get_feed_params(self) -> Dict[str, int]:
        """The size of batches."""
        return {"batch_size": self._batch_size}

    def get_feed_dict_fn(self) -> Callable[[], Dict[str, Any]]:
        """A function that gives the next batch, by the names of placeholders; StopIteration at the end."""

        def stacked(examples: List[Any], shapes: Any, types: Any, n_classes: Any) -> Any:
            def made(shape: Any, dtype: Any, classes: Optional[int], key: Any) -> np.ndarray:
                out = np.zeros([len(examples), *shape[1:]], dtype)
                for row, example in enumerate(examples):
                    _marked(out, row, example if key is None else example[key], classes)
                return out

            return _each(made, shapes, types, n_classes, {k: k for k in shapes} if isinstance(shapes, dict) else None)

        def feed() -> Dict[str, Any]:
            inputs = list(itertools.islice(self._x, self._batch_size))
            if not inputs:
                raise StopIteration
            fed = self._fed(self._input_placeholder, stacked(inputs, self.input_shape, self._input_dtype, None))
            if self._y is not None:
                outputs = list(itertools.islice(self._y, len(inputs)))
                fed.update(self._fed(self._output_placeholder, stacked(outputs, self.output_shape, self._output_dtype, self.n_classes)))
            return fed

        return feed


def _is_iterator(x: Any) -> bool:
    return hasattr(x, "__next__")


def setup_train_data_feeder(x: Any, y: Any, n_classes: Any, batch_size: Optional[int] = None, shuffle: bool = True, epochs: Optional[int] = None) -> DataFeeder:
    """The feeder for such data: of arrays, tables (Dask's are read first) or iterators."""
    x = extract_pandas_data(extract_dask_data(x))
    y = None if y is None else extract_pandas_labels(extract_dask_labels(y))
    if _is_iterator(x):
        if y is not None and not _is_iterator(y):
            raise at_user_line(ValueError("Both x and y should be iterators for streaming learning to work."))
        return StreamingDataFeeder(x, y, n_classes, batch_size)
    return DataFeeder(x, y, n_classes, batch_size, shuffle=shuffle, epochs=epochs)


def _together(examples: List[Any]) -> Any:
    if isinstance(examples[0], dict):
        return {key: np.atleast_2d(np.array([example[key] for example in examples])) for key in examples[0]}
    return np.atleast_2d(np.array(examples))


def _batches(x: Iterator[Any], batch_size: Optional[int]) -> Iterator[Any]:
    _checked_batch_size(batch_size)
    examples = list(itertools.islice(x, batch_size))
    while examples:
        yield _together(examples)
        examples = list(itertools.islice(x, batch_size))


def setup_predict_data_feeder(x: Any, batch_size: Optional[int] = None) -> Any:
    """Batches of arrays, tables or iterators, one after the other."""
    x = extract_pandas_data(extract_dask_data(x))
    if _is_iterator(x):
        return _batches(x, batch_size)
    _checked_batch_size(batch_size)
    x = np.reshape(x, (-1, 1)) if len(x.shape) == 1 else x
    size = batch_size or len(x)
    return [x[i * size : (i + 1) * size] for i in range(math.ceil(len(x) / size))] if batch_size is not None else [x]


def setup_processor_data_feeder(x: Any) -> Any:
    """The values of a table; anything else as it is."""
    return extract_pandas_matrix(x)
