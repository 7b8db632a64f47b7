# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.slim.dataset."""

from __future__ import annotations

from typing import Any


class Dataset:
    """Where the records of a data set are, how they are read, and what they mean."""

    def __init__(self, data_sources: Any, reader: Any, decoder: Any, num_samples: Any, items_to_descriptions: Any, **kwargs: Any) -> None:
        self.__dict__.update(
            kwargs, data_sources=data_sources, reader=reader, decoder=decoder, num_samples=num_samples, items_to_descriptions=items_to_descriptions
        )
