# SPDX-License-Identifier: Apache-2.0
# mypy: implicit-reexport
"""tf.contrib.constrained_optimization: objectives that are made small while constraints hold, by players of a game (Cotter, Jiang and Sridharan 2019)."""

from millrace.contrib.constrained_optimization.candidates import find_best_candidate_distribution, find_best_candidate_index
from millrace.contrib.constrained_optimization.optimizers import (
    AdditiveExternalRegretOptimizer,
    AdditiveSwapRegretOptimizer,
    ConstrainedOptimizer,
    MultiplicativeSwapRegretOptimizer,
)
from millrace.contrib.constrained_optimization.problem import ConstrainedMinimizationProblem
