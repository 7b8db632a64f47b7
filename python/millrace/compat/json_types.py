# SPDX-License-Identifier: Apache-2.0
"""tensorflow.python.util.serialization: what json.dump makes of values of TensorFlow and NumPy."""

from __future__ import annotations

import collections.abc
from typing import Any

import numpy as np

from millrace.framework.tensor_shape import Dimension, TensorShape


def get_json_type(obj: Any) -> Any:
    """A value that JSON has for one that it has not: the `default=` of json.dump."""
    if hasattr(obj, "get_config"):
        return {"class_name": type(obj).__name__, "config": obj.get_config()}
    if isinstance(obj, np.ndarray):
        return obj.tolist()
    if isinstance(obj, np.generic):
        return obj.item()
    if callable(obj):
        return obj.__name__
    if isinstance(obj, Dimension):
        return obj.value
    if isinstance(obj, TensorShape):
        return obj.as_list()
    if isinstance(obj, collections.abc.Mapping):
        return dict(obj)
    raise TypeError("Not JSON Serializable:", obj)
