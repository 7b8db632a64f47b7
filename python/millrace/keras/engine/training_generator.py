# SPDX-License-Identifier: Apache-2.0
"""Batches of what a model is given, one after the other."""

from __future__ import annotations

from typing import Any, Iterator, Optional, Tuple

import numpy as np

from millrace.framework import nest
from millrace.framework.errors import at_user_line
from millrace.keras.engine.training_streams import is_data_set, is_stream


def convert_to_generator_like(
    data: Any, batch_size: Optional[int] = None, steps_per_epoch: Optional[int] = None, epochs: int = 1, shuffle: bool = False
) -> Tuple[Any, Optional[int]]:
    """(what gives batches, how many make an epoch): generators, Sequences and iterators as they are, an iterator of a data set, and arrays (inputs, targets,
    weights; those that are None are left out) cut into batches, in a new order for each of the epochs where `shuffle` says so."""
    if is_stream(data):
        if is_data_set(data):
            return data.make_one_shot_iterator(), steps_per_epoch
        return data, len(data) if steps_per_epoch is None and hasattr(data, "__len__") else steps_per_epoch
    if isinstance(data, tuple):
        data = tuple(part for part in data if any(leaf is not None for leaf in nest.flatten(part)))
    count = int(nest.flatten(data)[0].shape[0])
    if batch_size is None:
        raise at_user_line(ValueError("When passing input data as arrays, do not specify `steps_per_epoch`/`steps` argument. Please use `batch_size` instead."))
    size = batch_size

    def batches() -> Iterator[Any]:
        order = np.arange(count)
        for _ in range(epochs):
            if shuffle:
                np.random.shuffle(order)
            for start in range(0, count, size):
                at = order[start : start + size]
                yield nest.map_structure(lambda array, rows=at: None if array is None else array[rows], data)

    return batches(), -(-count // size)
