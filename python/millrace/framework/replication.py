# SPDX-License-Identifier: Apache-2.0
"""Names for how copies of a variable are kept alike. There is one replica: all of these mean the variable itself."""

from __future__ import annotations

import enum
from typing import Any, Optional

from millrace.framework.errors import at_user_line


class VariableSynchronization(enum.Enum):
    """When copies of a variable are brought together."""

    AUTO, NONE, ON_WRITE, ON_READ = 0, 1, 2, 3


class VariableAggregation(enum.Enum):
    """How values of copies become one."""

    NONE, SUM, MEAN, ONLY_FIRST_REPLICA = 0, 1, 2, 3
    ONLY_FIRST_TOWER = ONLY_FIRST_REPLICA  # its name in 1.11

    def __hash__(self) -> int:
        return hash(self.value)


class UnconnectedGradients(enum.Enum):
    """What the gradient is of what nothing depends on: None, or zeros."""

    NONE, ZERO = "none", "zero"


def trainable(given: Optional[bool], synchronization: Any, aggregation: Any) -> Optional[bool]:
    """Whether a variable of these is trained: one that is brought together when it is read is not unless that is said. ValueError for values that are none."""
    if synchronization is not None and not isinstance(synchronization, VariableSynchronization):
        raise at_user_line(ValueError("Invalid variable synchronization mode: %r" % (synchronization,)))
    if aggregation is not None and not isinstance(aggregation, VariableAggregation):
        raise at_user_line(ValueError("Invalid variable aggregation mode: %r" % (aggregation,)))
    return False if given is None and synchronization is VariableSynchronization.ON_READ else given


def trainable_of_layer(given: Optional[bool], synchronization: Any, aggregation: Any) -> bool:
    """Whether a variable that a layer makes is trained: unless it is brought together when it is read; ValueError where it is to be both."""
    made = trainable(given, synchronization, aggregation)
    if made and synchronization is VariableSynchronization.ON_READ:
        raise at_user_line(
            ValueError(
                "Synchronization value can be set to VariableSynchronization.ON_READ only for non-trainable variables. You have specified trainable=True and "
                "synchronization=VariableSynchronization.ON_READ."
            )
        )
    return True if made is None else made
