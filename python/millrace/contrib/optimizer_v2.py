# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.contrib.optimizer_v2: optimizers of tf.train, which did the same beside distribution strategies, and an RMSProp of its own."""

from __future__ import annotations

from typing import Any, Dict

from millrace.train import rules
from millrace.train.optimizer import Optimizer as OptimizerV2  # noqa: F401
from millrace.train.rules import (  # noqa: F401
    AdadeltaOptimizer,
    AdagradOptimizer,
    AdamOptimizer,
    GradientDescentOptimizer,
    MomentumOptimizer,
)


class RMSPropOptimizer(rules.RMSPropOptimizer):
    """RMSProp whose mean squares begin at epsilon, which steps do not add again."""

    def __init__(
        self,
        learning_rate: Any,
        decay: Any = 0.9,
        momentum: Any = 0.0,
        epsilon: Any = 1e-10,
        use_locking: bool = False,
        centered: bool = False,
        name: str = "RMSProp",
    ) -> None:
        super().__init__(learning_rate, decay, momentum, 0.0, use_locking, centered, name)
        self._first_square = epsilon

    def _slot_values(self) -> Dict[int, float]:
        return {self._slot_names.index("rms"): float(self._call_if_callable(self._first_square))}
