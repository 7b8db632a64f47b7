# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.factorization.WALSMatrixFactorization: an estimator of a WALSModel."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Optional

import millrace as tf
from millrace import tf_logging
from millrace.contrib.factorization_wals import WALSModel
from millrace.contrib.learn.estimators import Estimator
from millrace.contrib.learn.keys import ModeKeys
from millrace.contrib.learn.model_fn import ModelFnOps
from millrace.framework.errors import at_user_line
from millrace.train.global_step import get_global_step
from millrace.train.hooks import SessionRunArgs, SessionRunHook


class _SweepHook(SessionRunHook):
    """Trains rows and columns in turns: a turn ends when all of them have come, and the operations that prepare the next run before it."""

    def __init__(
        self,
        is_row_sweep_var: Any,
        is_sweep_done_var: Any,
        init_op: Any,
        row_prep_ops: Any,
        col_prep_ops: Any,
        row_train_op: Any,
        col_train_op: Any,
        switch_op: Any,
    ) -> None:
        self._is_row, self._is_done, self._init_op, self._switch_op = is_row_sweep_var, is_sweep_done_var, init_op, switch_op
        self._prepare = {True: list(row_prep_ops), False: list(col_prep_ops)}
        self._train = {True: row_train_op, False: col_train_op}
        self._has_begun = False

    def before_run(self, run_context: Any) -> SessionRunArgs:
        """Prepares a turn where one begins, and asks for a step of it."""
        session = run_context.session
        begins = bool(session.run(self._is_done))
        if not self._has_begun:
            session.run(self._init_op)
        if begins:
            session.run(self._switch_op)
        is_row = bool(session.run(self._is_row))
        if begins or not self._has_begun:
            tf_logging.info("Next sweep: %s.", "rows" if is_row else "columns")
            for op in self._prepare[is_row]:
                session.run(op)
        self._has_begun = True
        return SessionRunArgs([self._train[is_row]])


class _IncrementGlobalStepHook(SessionRunHook):
    """Counts steps."""

    def __init__(self) -> None:
        step = get_global_step()
        self._count = None if step is None else tf.assign_add(step, 1, name="global_step_incr").op

    def before_run(self, run_context: Any) -> None:
        """One more."""
        if self._count is not None:
            run_context.session.run(self._count)


class _StopAtSweepHook(SessionRunHook):
    """Ends training after a turn, by the tensor COMPLETED_SWEEPS."""

    def __init__(self, last_sweep: int) -> None:
        self._last = last_sweep

    def begin(self) -> None:
        """Looks for the tensor."""
        name = WALSMatrixFactorization.COMPLETED_SWEEPS
        try:
            self._completed = tf.get_default_graph().get_tensor_by_name(name + ":0")
        except KeyError:
            raise at_user_line(RuntimeError("%s counter should be created to use StopAtSweepHook." % name)) from None

    def before_run(self, run_context: Any) -> SessionRunArgs:
        """Asks for the number of turns."""
        del run_context  # it is after the step that counts
        return SessionRunArgs(self._completed)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Stops when there were enough."""
        if run_values.results >= self._last:
            run_context.request_stop()


def _state(value: Any, name: str) -> Any:
    return tf.Variable(value, trainable=False, name=name)


def _train(model: WALSModel, input_rows: Any, input_cols: Any, params: Dict[str, Any]) -> ModelFnOps:
    is_row, is_done = _state(True, "is_row_sweep"), _state(False, "is_sweep_done")
    completed = _state(0, WALSMatrixFactorization.COMPLETED_SWEEPS)
    loss, error = _state(0.0, WALSMatrixFactorization.LOSS), _state(0.0, WALSMatrixFactorization.RWSE)
    for name, value in (("loss", loss), ("root_weighted_squared_error", error), ("completed_sweeps", completed)):
        tf.summary.scalar(name, value)

    def turn(batch: Any, count: int, update: Any, name: str) -> Any:
        """(marks all as not trained, a step)."""
        seen = _state(tf.fill([count], False), "processed_%s" % name)
        _, update_op, unregularized, regularization, total = update(batch)
        here = batch.indices[:, 0]
        with tf.control_dependencies([update_op, loss.assign(unregularized + regularization), error.assign(tf.sqrt(unregularized / total))]):
            marked = tf.scatter_update(seen, here, tf.ones_like(here, tf.bool), name="update_processed_%s_indices" % name)
        with tf.control_dependencies([marked]):
            all_seen = tf.reduce_all(seen)
            step = tf.group(is_done.assign(all_seen), completed.assign_add(tf.cast(all_seen, tf.int32)), name="%s_sweep_train_op" % name)
        return seen.initializer, step

    reset_rows, row_step = turn(input_rows, params["num_rows"], lambda x: model.update_row_factors(x, False), "rows")
    reset_cols, col_step = turn(input_cols, params["num_cols"], lambda x: model.update_col_factors(x, True), "cols")
    switch = tf.group(is_row.assign(tf.logical_not(is_row)), reset_rows, reset_cols, name="sweep_switch_op")
    of_rows = [model.row_update_prep_gramian_op, model.initialize_row_update_op]
    of_cols = [model.col_update_prep_gramian_op, model.initialize_col_update_op]
    hooks: List[Any] = [_SweepHook(is_row, is_done, model.worker_init, of_rows, of_cols, row_step, col_step, switch), _IncrementGlobalStepHook()]
    if params["max_sweeps"] is not None:
        hooks.append(_StopAtSweepHook(params["max_sweeps"]))
    return ModelFnOps(ModeKeys.TRAIN, {}, loss, tf.no_op(), {}, training_hooks=hooks)


def _loss(made: Any) -> Any:
    return made[2] + made[3]


def _model_fn(features: Dict[str, Any], labels: Any, mode: str, params: Dict[str, Any]) -> ModelFnOps:
    names = WALSMatrixFactorization
    if labels is not None:
        raise at_user_line(ValueError("WALSMatrixFactorization has no labels: input_fn must give (features, None)."))
    trains = mode == ModeKeys.TRAIN
    model = WALSModel(
        params["num_rows"],
        params["num_cols"],
        params["embedding_dimension"],
        params["unobserved_weight"],
        params["regularization_coeff"],
        params["row_init"],
        params["col_init"],
        params["num_row_shards"],
        params["num_col_shards"],
        params["row_weights"],
        params["col_weights"],
        trains and params["use_factors_weights_cache_for_training"],
        trains and params["use_gramian_cache_for_training"],
    )
    rows, cols = features[names.INPUT_ROWS], features[names.INPUT_COLS]
    if trains:
        return _train(model, rows, cols, params)
    if mode == ModeKeys.INFER:
        weights = features.get(names.PROJECTION_WEIGHTS)
        made = tf.cond(
            features[names.PROJECT_ROW], lambda: model.project_row_factors(rows, False, weights), lambda: model.project_col_factors(cols, True, weights)
        )
        return ModelFnOps(mode, {names.PROJECTION_RESULT: made}, train_op=tf.no_op())
    loss = tf.cond(features[names.PROJECT_ROW], lambda: _loss(model.update_row_factors(rows, False)), lambda: _loss(model.update_col_factors(cols, True)))
    return ModelFnOps(mode, {}, loss, tf.no_op())


class WALSMatrixFactorization(Estimator):
    """Trains a WALSModel in turns of rows and columns, each of which ends when all of them have come.

    input_fn gives ({INPUT_ROWS: a SparseTensor of some rows of the matrix, INPUT_COLS: one of some columns, transposed}, None); to predict or evaluate
    also PROJECT_ROW, whether rows or columns are meant, and PROJECTION_WEIGHTS if they have weights."""

    INPUT_ROWS, INPUT_COLS, PROJECT_ROW = "input_rows", "input_cols", "project_row"
    PROJECTION_WEIGHTS, PROJECTION_RESULT = "projection_weights", "projection"
    COMPLETED_SWEEPS, LOSS, RWSE = "completed_sweeps", "WALS_loss", "WALS_RWSE"

    def __init__(
        self,
        num_rows: int,
        num_cols: int,
        embedding_dimension: int,
        unobserved_weight: float = 0.1,
        regularization_coeff: Optional[float] = None,
        row_init: Any = "random",
        col_init: Any = "random",
        num_row_shards: int = 1,
        num_col_shards: int = 1,
        row_weights: Any = 1,
        col_weights: Any = 1,
        use_factors_weights_cache_for_training: bool = True,
        use_gramian_cache_for_training: bool = True,
        max_sweeps: Optional[int] = None,
        model_dir: Optional[str] = None,
        config: Any = None,
    ) -> None:
        if config is not None and config.num_worker_replicas > 1:
            raise at_user_line(ValueError("WALSMatrixFactorization must be run on a single worker replica."))
        params = {
            "num_rows": num_rows,
            "num_cols": num_cols,
            "embedding_dimension": embedding_dimension,
            "unobserved_weight": unobserved_weight,
            "regularization_coeff": regularization_coeff,
            "row_init": row_init,
            "col_init": col_init,
            "num_row_shards": num_row_shards,
            "num_col_shards": num_col_shards,
            "row_weights": row_weights,
            "col_weights": col_weights,
            "use_factors_weights_cache_for_training": use_factors_weights_cache_for_training,
            "use_gramian_cache_for_training": use_gramian_cache_for_training,
            "max_sweeps": max_sweeps,
        }
        self._row_names = ["row_factors_shard_%d" % i for i in range(num_row_shards)]
        self._col_names = ["col_factors_shard_%d" % i for i in range(num_col_shards)]
        super().__init__(_model_fn, model_dir, config, params)

    def get_row_factors(self) -> List[Any]:
        """The factors of rows in the newest checkpoint, shard by shard."""
        return [self.get_variable_value(name) for name in self._row_names]

    def get_col_factors(self) -> List[Any]:
        """Those of columns."""
        return [self.get_variable_value(name) for name in self._col_names]

    def get_projections(self, input_fn: Any) -> Iterator[Any]:
        """The factors that the rows or columns of an input would have, one after the other."""
        return (made[self.PROJECTION_RESULT] for made in self.predict(input_fn=input_fn))
