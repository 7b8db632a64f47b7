# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.contrib.optimizer_v2: optimizers of tf.train, which did the same beside distribution strategies."""

from millrace.train.optimizer import Optimizer as OptimizerV2  # noqa: F401
from millrace.train.rules import (  # noqa: F401
    AdadeltaOptimizer,
    AdagradOptimizer,
    AdamOptimizer,
    GradientDescentOptimizer,
    MomentumOptimizer,
)
