# SPDX-License-Identifier: Apache-2.0
"""tf.data: pipelines of elements, and iterators over them."""

import importlib
from typing import Any, List

from millrace.data.dataset import Dataset
from millrace.data.iterators import Iterator
from millrace.data.legacy import get_output_classes, get_output_shapes, get_output_types, make_initializable_iterator, make_one_shot_iterator
from millrace.data.readers import FixedLengthRecordDataset, TextLineDataset, TFRecordDataset
from millrace.framework import not_provided as _not_provided

__all__ = [
    "Dataset",
    "Iterator",
    "FixedLengthRecordDataset",
    "TFRecordDataset",
    "TextLineDataset",
    "get_output_classes",
    "get_output_shapes",
    "get_output_types",
    "make_initializable_iterator",
    "make_one_shot_iterator",
]


AUTOTUNE = -1
INFINITE_CARDINALITY, UNKNOWN_CARDINALITY = -1, -2


def _later(name: str) -> Any:
    if name == "Options":
        return importlib.import_module("millrace.data.options").Options
    if name == "DatasetSpec":
        return importlib.import_module("millrace.framework.type_spec").DatasetSpec
    if name == "experimental":
        return importlib.import_module("millrace.data.experimental")
    raise AttributeError("module 'millrace.data' has no attribute %r" % name)


__getattr__ = _not_provided.getter("data", _later)


def __dir__() -> List[str]:
    return [*__all__, "experimental"]
