# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.kfac.op_queue: operations of which a session runs one at a time."""

from __future__ import annotations

from typing import Any, List

from millrace.data.dataset import Dataset
from millrace.framework.convert import convert_to_tensor


class OpQueue:
    """Operations in an order by chance, each once before any comes again, also where several processes of a cluster ask."""

    def __init__(self, ops: Any, seed: Any = None) -> None:
        self._by_name = {op.name: op for op in ops}
        names = Dataset.from_tensor_slices(convert_to_tensor(sorted(self._by_name)))
        self._next_name = names.shuffle(len(self._by_name), seed=seed).repeat().make_one_shot_iterator().get_next()

    @property
    def ops(self) -> List[Any]:
        return list(self._by_name.values())

    def next_op(self, sess: Any) -> Any:
        """The operation whose turn it is."""
        return self._by_name[sess.run(self._next_name).decode("ascii")]
