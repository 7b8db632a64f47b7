# SPDX-License-Identifier: Apache-2.0
"""Functions of tf.data that take a data set, for programs of TensorFlow 1.13 and later."""

from __future__ import annotations

from typing import Any, Optional

from millrace.data.dataset import Dataset
from millrace.data.iterators import Iterator


def make_one_shot_iterator(dataset: Dataset) -> Iterator:
    """An iterator over a data set that needs no initializer."""
    return dataset.make_one_shot_iterator()


def make_initializable_iterator(dataset: Dataset, shared_name: Optional[str] = None) -> Iterator:
    """An iterator over a data set, whose `initializer` has to run first."""
    return dataset.make_initializable_iterator(shared_name)


def get_output_types(dataset_or_iterator: Any) -> Any:
    """The types of an element's components."""
    return dataset_or_iterator.output_types


def get_output_shapes(dataset_or_iterator: Any) -> Any:
    """The shapes of an element's components."""
    return dataset_or_iterator.output_shapes


def get_output_classes(dataset_or_iterator: Any) -> Any:
    """tf.Tensor for each component."""
    return dataset_or_iterator.output_classes
