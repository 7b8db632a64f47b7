# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.input_pipeline: strings of a list in turn, with the place in a variable."""

from __future__ import annotations

import random
from typing import Any, List, Optional

from millrace.framework import dtypes
from millrace.framework.convert import constant
from millrace.framework.graph import Tensor, colocate_with, control_dependencies, name_scope
from millrace.ops import array_ops, math_ops
from millrace.ops.variable_scope import get_variable, variable_scope
from millrace.ops.variables import assign


def obtain_next(string_list_tensor: Any, counter: Any) -> Tensor:
    """Counts on, and the string at that place of the list, after whose end comes its beginning."""
    with name_scope(None, "ObtainNext", [string_list_tensor]):
        count = array_ops.size(string_list_tensor, out_type=dtypes.int64)
        return array_ops.gather(array_ops.reshape(string_list_tensor, [-1]), assign(counter, math_ops.mod(counter + 1, count)))


def _in_turn(string_list: List[Any], shuffle: bool, seed: Optional[int], num_epochs: Optional[int]) -> List[Any]:
    order, made = random.Random(seed or None), []
    for _ in range(num_epochs or 1):
        made += order.sample(string_list, len(string_list)) if shuffle else list(string_list)
    return made


def seek_next(string_list: List[Any], shuffle: bool = False, seed: Optional[int] = None, num_epochs: Optional[int] = None) -> Tensor:
    """The next string of a list in each step, in an order by chance with shuffle; OutOfRangeError after num_epochs times the list."""
    strings = _in_turn(string_list, shuffle, seed, num_epochs)
    with variable_scope("obtain_next"):
        counter = get_variable("obtain_next_counter", initializer=constant(-1, dtype=dtypes.int64), dtype=dtypes.int64, trainable=False)
        with colocate_with(counter):
            listed = get_variable("obtain_next_expanded_list", initializer=constant(strings), dtype=dtypes.string, trainable=False)
        if not num_epochs:
            return obtain_next(listed, counter)
        zero = constant(0, dtype=dtypes.int64)
        taken = get_variable("obtain_next_filename_counter", initializer=zero, dtype=dtypes.int64, trainable=False)
        with control_dependencies([taken.count_up_to(len(strings))]):
            return obtain_next(listed, counter)
