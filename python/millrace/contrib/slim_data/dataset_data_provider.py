# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.slim.dataset_data_provider."""

from __future__ import annotations

from typing import Any, Optional

from millrace.contrib.slim_data.data_provider import DataProvider
from millrace.contrib.slim_data.parallel_reader import parallel_read
from millrace.framework.errors import at_user_line


class DatasetDataProvider(DataProvider):
    """The items of a Dataset, read by several readers. `record_key` is the item that says which record it is."""

    def __init__(
        self,
        dataset: Any,
        num_readers: int = 1,
        reader_kwargs: Any = None,
        shuffle: bool = True,
        num_epochs: Optional[int] = None,
        common_queue_capacity: int = 256,
        common_queue_min: int = 128,
        record_key: str = "record_key",
        seed: Optional[int] = None,
        scope: Optional[str] = None,
    ) -> None:
        key, data = parallel_read(
            dataset.data_sources,
            reader_class=dataset.reader,
            num_epochs=num_epochs,
            num_readers=num_readers,
            reader_kwargs=reader_kwargs,
            shuffle=shuffle,
            capacity=common_queue_capacity,
            min_after_dequeue=common_queue_min,
            seed=seed,
            scope=scope,
        )
        names = dataset.decoder.list_items()
        items = dict(zip(names, dataset.decoder.decode(data, names)))
        if record_key in items:
            raise at_user_line(ValueError("The item name used for `record_key` cannot also be used for a dataset item: %s" % record_key))
        items[record_key] = key
        super().__init__(items, dataset.num_samples)
