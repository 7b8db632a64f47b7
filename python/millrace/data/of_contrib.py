# SPDX-License-Identifier: Apache-2.0
"""Methods that the data sets of tf.contrib.data had in 1.2 to 1.4, and that became functions for Dataset.apply."""

from __future__ import annotations

from typing import Any, Callable

from millrace import names


def _made(dataset: Any, transformation: str, *args: Any) -> Any:
    return dataset.apply(getattr(names.find("contrib.data"), transformation)(*args))


class OfContrib:
    """These methods."""

    def group_by_window(self, key_func: Callable[..., Any], reduce_func: Callable[..., Any], window_size: Any) -> Any:
        """tf.contrib.data.group_by_window of it."""
        return _made(self, "group_by_window", key_func, reduce_func, window_size)

    def dense_to_sparse_batch(self, batch_size: Any, row_shape: Any) -> Any:
        """tf.contrib.data.dense_to_sparse_batch of it, whose elements are (indices, values, dense_shape)."""
        return _made(self, "dense_to_sparse_batch", batch_size, row_shape).map(lambda batch: (batch.indices, batch.values, batch.dense_shape))

    def ignore_errors(self) -> Any:
        """tf.contrib.data.ignore_errors of it."""
        return _made(self, "ignore_errors")
