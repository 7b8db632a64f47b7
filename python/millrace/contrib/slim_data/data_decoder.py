# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.slim.data_decoder."""

from __future__ import annotations

import abc
from typing import Any, List, Sequence


class DataDecoder(abc.ABC):
    """Makes tensors, called items, of a record."""

    @abc.abstractmethod
    def decode(self, data: Any, items: Sequence[str]) -> List[Any]:
        """The items of those names."""

    @abc.abstractmethod
    def list_items(self) -> List[str]:
        """The names of the items."""
