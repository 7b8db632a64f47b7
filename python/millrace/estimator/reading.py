# SPDX-License-Identifier: Apache-2.0
"""What input functions answer: data sets, features, features with labels."""

from __future__ import annotations

from typing import Any, Tuple

from millrace.data.dataset import Dataset
from millrace.framework.errors import at_user_line
from millrace.framework.graph import GraphKeys, add_to_collection


def input_of(made: Any, with_labels: bool = True) -> Tuple[Any, Any]:
    """(features, labels) of what an input function answered. A data set's iterator is initialised where tables are."""
    if isinstance(made, Dataset):
        iterator = made.make_initializable_iterator()
        add_to_collection(GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
        made = iterator.get_next()
    if not isinstance(made, (list, tuple)):
        return made, None
    if with_labels and len(made) != 2:
        raise at_user_line(ValueError("input_fn should return (features, labels) as a len 2 tuple."))
    return made[0], made[1] if with_labels else None
