# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.slim.data_provider."""

from __future__ import annotations

from typing import Any, Dict, List, Sequence

from millrace.framework.errors import at_user_line


class DataProvider:
    """Tensors by the names of items; another element of the data in each step."""

    def __init__(self, items_to_tensors: Dict[str, Any], num_samples: Any) -> None:
        self._items, self._num_samples = items_to_tensors, num_samples

    def get(self, items: Sequence[str]) -> List[Any]:
        """The tensors of some items."""
        if not isinstance(items, (list, tuple)):
            raise at_user_line(ValueError("items must be a list or tuple"))
        for item in items:
            if item not in self._items:
                raise at_user_line(ValueError("Item [%s] is invalid. Valid entries include: %s" % (item, self.list_items())))
        return [self._items[item] for item in items]

    def list_items(self) -> List[str]:
        """The names of the items."""
        return list(self._items)

    def num_samples(self) -> Any:
        """How many elements the data set has."""
        return self._num_samples
