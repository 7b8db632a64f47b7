# SPDX-License-Identifier: Apache-2.0
"""Which of the models of a training, or which mixture of them, is the best that holds the constraints. SciPy is needed."""

from __future__ import annotations

import importlib
from typing import Any, Optional, Tuple

import numpy as np

from millrace.framework.errors import at_user_line


def _checked(objective_vector: Any, constraints_matrix: Any) -> Tuple[int, int]:
    constraints, candidates = np.shape(constraints_matrix)
    if np.shape(objective_vector) != (candidates,):
        raise at_user_line(
            ValueError(
                "objective_vector must have shape (n,), and constraints_matrix (m, n), for n candidates and m constraints: got %s and %s"
                % (np.shape(objective_vector), np.shape(constraints_matrix))
            )
        )
    return constraints, candidates


def _scipy(module: str) -> Any:
    try:
        return importlib.import_module("scipy." + module)
    except ImportError:
        raise at_user_line(ImportError("finding the best candidates needs SciPy: pip install scipy")) from None


def _mixture(objective_vector: Any, constraints_matrix: Any, violation: float) -> Optional[Any]:
    """The mixture of the least objective whose constraints are at most the violation, if there is one: a linear program."""
    optimize = _scipy("optimize")

    constraints, candidates = np.shape(constraints_matrix)
    made = optimize.linprog(
        objective_vector, A_ub=constraints_matrix, b_ub=np.full(constraints, violation), A_eq=np.ones((1, candidates)), b_eq=[1.0], bounds=(0, None)
    )
    return made.x if made.success else None


def find_best_candidate_distribution(objective_vector: Any, constraints_matrix: Any, epsilon: float = 0.0) -> Any:
    """How often each candidate is to be used: the least objective of mixtures that violate no constraint, or as little as can be, up to epsilon.

    objective_vector [n] has the candidates' objectives, constraints_matrix [m, n] their constraints."""
    if epsilon < 0.0:
        raise at_user_line(ValueError("epsilon must be nonnegative"))
    _checked(objective_vector, constraints_matrix)
    made = _mixture(objective_vector, constraints_matrix, 0.0)
    if made is not None:
        return made
    low, high = 0.0, float(np.min(np.amax(constraints_matrix, axis=0)))  # one candidate alone violates no more than that
    made = _mixture(objective_vector, constraints_matrix, high)
    while True:
        middle = (low + high) / 2
        if middle - low <= epsilon or high - middle <= epsilon:
            return made
        better = _mixture(objective_vector, constraints_matrix, middle)
        if better is None:
            low = middle
        else:
            made, high = better, middle


def find_best_candidate_index(objective_vector: Any, constraints_matrix: Any, rank_objectives: bool = False) -> int:
    """The candidate whose worst rank among the others, by each constraint's violation and, where it counts, by the objective, is the least; of
    several the one with the least objective."""
    stats = _scipy("stats")

    _checked(objective_vector, constraints_matrix)
    rows = list(np.maximum(0.0, constraints_matrix)) + ([objective_vector] if rank_objectives else [])
    worst = np.max([stats.rankdata(row, method="min") for row in rows], axis=0)
    objectives = np.asarray(objective_vector)
    alike = np.flatnonzero(worst == worst.min())
    return int(alike[objectives[alike] == objectives[alike].min()][-1])
