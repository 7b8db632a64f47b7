# SPDX-License-Identifier: Apache-2.0
"""What estimators of clusters share: the start of their clusters, and rows of features."""

from __future__ import annotations

import time
from typing import Any

from millrace import feature_column
from millrace.ops import array_ops
from millrace.train.hooks import SessionRunArgs, SessionRunHook


class InitializeClustersHook(SessionRunHook):
    """Chooses the first clusters on the chief; others wait for it."""

    def __init__(self, init_op: Any, is_initialized: Any, is_chief: bool) -> None:
        self._init_op, self._ready, self._is_chief = init_op, is_initialized, is_chief

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Chooses or waits."""
        while not session.run(self._ready):
            if self._is_chief:
                session.run(self._init_op)
            else:
                time.sleep(1)


class LossRelativeChangeHook(SessionRunHook):
    """Stops when a step changes the loss by less than a part of it."""

    def __init__(self, loss: Any, tolerance: float) -> None:
        self._loss, self._tolerance = loss, tolerance
        self._before: Any = None

    def before_run(self, run_context: Any) -> Any:
        """Asks for the loss."""
        return SessionRunArgs(self._loss)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Compares it with the one before."""
        loss = run_values.results
        if self._before and abs(loss - self._before) / (1 + abs(self._before)) < self._tolerance:
            run_context.request_stop()
        self._before = loss


def one_tensor(features: Any, feature_columns: Any = None) -> Any:
    """Rows of all features: by columns, or beside each other by their names."""
    if not isinstance(features, dict):
        return features
    if feature_columns:
        return feature_column.input_layer(features, feature_columns)
    return array_ops.concat([features[key] for key in sorted(features)], 1)
