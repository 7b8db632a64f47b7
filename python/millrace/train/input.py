# SPDX-License-Identifier: Apache-2.0
"""What decides how much input there is."""
from __future__ import annotations

from typing import Any, Optional

from millrace.framework import dtypes
from millrace.framework.convert import constant, convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import GraphKeys, Tensor, control_dependencies, name_scope
from millrace.ops import array_ops, gen_ops
from millrace.ops.variables import Variable


def match_filenames_once(pattern: Any, name: Optional[str] = None) -> Variable:
    """A local variable with the files that match a pattern, or one of several, when it is initialised."""
    with name_scope(name, "matching_filenames", [pattern]) as scope:
        return Variable(gen_ops.matching_files(pattern), trainable=False, name=scope, validate_shape=False, collections=[GraphKeys.LOCAL_VARIABLES])


def limit_epochs(tensor: Any, num_epochs: Optional[int] = None, name: Optional[str] = None) -> Tensor:
    """The tensor, num_epochs times; then OutOfRangeError. The local variable `epochs` counts."""
    tensor = convert_to_tensor(tensor)
    if num_epochs is None:
        return tensor
    if num_epochs <= 0:
        raise at_user_line(ValueError("num_epochs must be > 0 not %d." % num_epochs))
    with name_scope(name, "limit_epochs", [tensor]) as scope:
        counter = Variable(constant(0, dtypes.int64), name="epochs", trainable=False, collections=[GraphKeys.LOCAL_VARIABLES])
        with control_dependencies([counter.count_up_to(num_epochs)]):
            return array_ops.identity(tensor, name=scope)
