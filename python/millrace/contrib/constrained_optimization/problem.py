# SPDX-License-Identifier: Apache-2.0
"""What is to be made small, and what may not be above 0 meanwhile."""

from __future__ import annotations

import abc
from typing import Any, Optional, Sequence

from millrace.framework.errors import at_user_line


class ConstrainedMinimizationProblem(abc.ABC):
    """Its objective is to be small while none of its constraints is above 0."""

    @property
    @abc.abstractmethod
    def objective(self) -> Any:
        """A scalar."""

    @property
    @abc.abstractmethod
    def constraints(self) -> Any:
        """Numbers of which none is to be above 0."""

    @property
    def proxy_constraints(self) -> Optional[Any]:
        """What has gradients in the place of constraints that have none."""
        return None

    @property
    def pre_train_ops(self) -> Optional[Sequence[Any]]:
        """Operations that run before each step."""
        return None

    @property
    def num_constraints(self) -> int:
        """How many constraints there are."""
        shape = self.constraints.get_shape()
        proxy = shape if self.proxy_constraints is None else self.proxy_constraints.get_shape()
        if not (shape.is_fully_defined() and proxy.is_fully_defined()):
            raise at_user_line(ValueError("constraints and proxy_constraints must have fully-known shapes"))
        if shape != proxy:
            raise at_user_line(ValueError("constraints and proxy_constraints must have the same shape"))
        return int(shape.num_elements())
