# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.training.python_input: what a generator gives, as tensors."""

from __future__ import annotations

import threading
from typing import Any, Callable, Dict, List, Optional

import numpy as np

from millrace.framework import tensor_shape
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, name_scope
from millrace.ops import parsing_ops
from millrace.ops.script_ops import py_func


def _shape_of(key: str, feature: Any) -> tensor_shape.TensorShape:
    if isinstance(feature, parsing_ops.FixedLenFeature):
        return tensor_shape.as_shape(feature.shape)
    if not isinstance(feature, parsing_ops.FixedLenSequenceFeature):
        if isinstance(feature, (parsing_ops.VarLenFeature, parsing_ops.SparseFeature)):
            raise at_user_line(NotImplementedError("%s: python_input gives dense tensors: use FixedLenSequenceFeature." % key))
        raise at_user_line(TypeError("%s: expected a feature, got %r" % (key, feature)))
    if feature.default_value is not None:
        raise at_user_line(ValueError("%s: default_value of FixedLenSequenceFeature is not supported, got %s" % (key, feature.default_value)))
    if not feature.allow_missing:
        raise at_user_line(ValueError("%s: FixedLenSequenceFeature needs allow_missing=True here" % key))
    return tensor_shape.TensorShape([None]).concatenate(tensor_shape.as_shape(feature.shape))


class _Reader:
    """Arrays of what an iterator gives, one dictionary after another."""

    def __init__(self, generator: Callable[[], Any], features: Dict[str, Any]) -> None:
        self._generator, self._features, self._iterator, self._lock = generator, features, None, threading.Lock()
        self.keys = sorted(features)
        self.shapes = {key: _shape_of(key, features[key]) for key in self.keys}

    def _array(self, key: str, given: Dict[str, Any]) -> np.ndarray:
        feature, shape = self._features[key], self.shapes[key]
        wanted = feature.dtype.as_numpy_dtype
        if key in given:
            value = np.asarray(given[key], dtype=wanted)
        elif isinstance(feature, parsing_ops.FixedLenSequenceFeature):
            value = np.empty([size or 0 for size in shape.as_list()], dtype=wanted)
        elif feature.default_value is not None:
            value = np.broadcast_to(np.asarray(feature.default_value, dtype=wanted), [size or 0 for size in shape.as_list()])
        else:
            raise KeyError("generator gives no value of %r, and the feature has no default_value" % key)
        if not shape.is_compatible_with(value.shape):
            raise ValueError("generator gives %r of shape %s, which is incompatible with declared shape %s" % (key, value.shape, shape))
        return value

    def __call__(self) -> List[np.ndarray]:
        with self._lock:
            if self._iterator is None:
                self._iterator = iter(self._generator())  # type: ignore[assignment]
            try:
                given = next(self._iterator)  # type: ignore[call-overload]
            except StopIteration:
                raise StopIteration("Iteration finished") from None
        if not isinstance(given, dict):
            raise TypeError("generator must return dict, got %r" % (given,))
        return [self._array(key, given) for key in self.keys]


def python_input(generator: Callable[[], Any], features: Dict[str, Any], name: Optional[str] = None) -> Dict[str, Tensor]:
    """A tensor for each feature; each step takes the next dictionary that the generator gives.

    generator: a function without arguments that makes an iterator of dictionaries. features: FixedLenFeature, or FixedLenSequenceFeature with
    allow_missing=True, by key. OutOfRangeError of steps when the iterator has ended."""
    if not callable(generator):
        raise at_user_line(TypeError("generator must be callable, but saw: %s" % (generator,)))
    if not isinstance(features, dict):
        raise at_user_line(TypeError("features must be a dict, but saw: %s" % (features,)))
    with name_scope(name, "python_input"):
        reader = _Reader(generator, features)
        made = py_func(reader, [], [features[key].dtype for key in reader.keys], stateful=True)
        for key, tensor in zip(reader.keys, made):
            tensor.set_shape(reader.shapes[key])
        return dict(zip(reader.keys, made))
