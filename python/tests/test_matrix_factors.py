# SPDX-License-Identifier: Apache-2.0
"""Weighted alternating least squares: each update against NumPy's least squares, and the estimator's turns."""

import numpy as np
import pytest

import millrace as tf

F = tf.contrib.factorization
RNG = np.random.RandomState(4)
MATRIX = (RNG.randn(6, 5) * (RNG.rand(6, 5) < 0.7)).astype(np.float32)
MATRIX[:, 0], MATRIX[0] = 1.0, 2.0  # nothing is empty
ROWS, COLS = RNG.randn(6, 2).astype(np.float32), RNG.randn(5, 2).astype(np.float32)
ROW_WEIGHTS, COL_WEIGHTS = RNG.rand(6).astype(np.float32), RNG.rand(5).astype(np.float32)


def sparse(matrix, rows=None):
    at = np.argwhere(matrix)
    at = at if rows is None else at[np.isin(at[:, 0], rows)]
    return tf.SparseTensor(at, matrix[at[:, 0], at[:, 1]], matrix.shape)


def weights_of(matrix, weighted):
    seen = np.outer(ROW_WEIGHTS, COL_WEIGHTS) * (matrix != 0) if weighted else 0
    return 0.1 + seen + np.zeros(matrix.shape)


def best_rows(matrix, weights, cols, regularization=0.3):
    """The rows that make the loss least, and the loss."""
    found = [np.linalg.solve((cols.T * w) @ cols + regularization * np.eye(2), (cols.T * w) @ a) for a, w in zip(matrix, weights)]
    rows = np.array(found)
    return rows, np.sum(weights * (matrix - rows @ cols.T) ** 2), regularization * (np.sum(rows**2) + np.sum(cols**2))


def model(weighted=True, shards=1, cache=True):
    def cut(x):
        return [part.tolist() for part in np.array_split(x, shards)] if shards > 1 else x.tolist()

    given = dict(row_weights=cut(ROW_WEIGHTS), col_weights=cut(COL_WEIGHTS)) if weighted else dict(row_weights=None, col_weights=None)
    starts = [np.array_split(x, shards) if shards > 1 else x for x in (ROWS, COLS)]
    return F.WALSModel(6, 5, 2, 0.1, 0.3, *starts, shards, shards, use_factors_weights_cache=cache, use_gramian_cache=cache, **given)


@pytest.mark.parametrize("weighted, shards, cache", [(True, 1, True), (True, 2, True), (True, 3, False), (False, 2, True)])
def test_updates_are_least_squares(weighted, shards, cache):
    made = model(weighted, shards, cache)
    of_rows = made.update_row_factors(sparse(MATRIX))
    of_cols = made.update_col_factors(sparse(MATRIX.T.copy()), transpose_input=True)
    again = made.update_col_factors(sparse(MATRIX))
    weights = weights_of(MATRIX, weighted)
    with tf.Session() as session:
        for op in (made.initialize_op, made.worker_init, made.row_update_prep_gramian_op, made.initialize_row_update_op):
            session.run(op)
        rows, loss, regularization, total = session.run([of_rows[0], *of_rows[2:]])
        want = best_rows(MATRIX, weights, COLS)
        np.testing.assert_allclose(rows, want[0], atol=1e-4)
        np.testing.assert_allclose([loss, regularization, total], [*want[1:], weights.sum()], rtol=1e-4)
        session.run(of_rows[1])
        rows = session.run(tf.concat(made.row_factors, 0))
        np.testing.assert_allclose(rows, want[0], atol=1e-4)
        for op in (made.col_update_prep_gramian_op, made.initialize_col_update_op):
            session.run(op)
        want = best_rows(MATRIX.T, weights.T, rows)
        for update in (of_cols, again):
            cols, loss = session.run([update[0], update[2]])
            np.testing.assert_allclose(cols, want[0], atol=1e-3)
            np.testing.assert_allclose(loss, want[1], rtol=1e-3)


def test_some_rows_and_projections():
    made = model()
    some = made.update_row_factors(sparse(MATRIX, rows=[1, 4]))
    projected = made.project_row_factors(sparse(MATRIX, rows=[4, 5]), projection_weights=[0.5, 2.0])
    weights = weights_of(MATRIX, True)
    with tf.Session() as session:
        for op in (made.initialize_op, made.worker_init, made.row_update_prep_gramian_op, made.initialize_row_update_op):
            session.run(op)
        rows, loss = session.run([some[0], some[2]])
        want, _, _ = best_rows(MATRIX[[1, 4]], weights[[1, 4]], COLS)
        np.testing.assert_allclose(rows, want, atol=1e-4)
        np.testing.assert_allclose(loss, 3 * np.sum(weights[[1, 4]] * (MATRIX[[1, 4]] - want @ COLS.T) ** 2), rtol=1e-4)
        weights = 0.1 + np.outer([0.5, 2.0], COL_WEIGHTS) * (MATRIX[[4, 5]] != 0)
        np.testing.assert_allclose(session.run(projected), best_rows(MATRIX[[4, 5]], weights, COLS)[0], atol=1e-4)
        session.run(some[1])
        np.testing.assert_allclose(session.run(made.row_factors[0])[[0, 1, 4]], [ROWS[0], *want], atol=1e-4)


def test_what_a_model_refuses():
    with pytest.raises(ValueError, match="both be None"):
        F.WALSModel(2, 2, 1, row_weights=None)
    with pytest.raises(ValueError, match="Weights must be"):
        F.WALSModel(2, 2, 1, row_weights=-1)
    with pytest.raises(ValueError, match="1 initial values for 2 shards"):
        F.WALSModel(2, 2, 1, row_weights=[[1.0]], num_row_shards=2)
    with pytest.raises(TypeError, match="SparseTensor"):
        F.WALSModel(2, 2, 1).update_row_factors(tf.zeros([2, 2]))


def test_an_estimator_of_factors(tmp_path):
    W = F.WALSMatrixFactorization

    def batches():
        return {W.INPUT_ROWS: sparse(MATRIX), W.INPUT_COLS: sparse(MATRIX.T.copy())}, None

    def to_project():
        return {**batches()[0], W.PROJECT_ROW: tf.constant(True), W.PROJECTION_WEIGHTS: tf.constant(ROW_WEIGHTS)}, None

    made = W(6, 5, 2, 0.1, 0.3, ROWS, COLS, row_weights=ROW_WEIGHTS.tolist(), col_weights=COL_WEIGHTS.tolist(), max_sweeps=3, model_dir=str(tmp_path))
    made.fit(input_fn=batches)
    (rows,), (cols,) = made.get_row_factors(), made.get_col_factors()
    weights = weights_of(MATRIX, True)
    first, _, _ = best_rows(MATRIX, weights, COLS)
    columns, _, _ = best_rows(MATRIX.T, weights.T, first)
    want, loss, regularization = best_rows(MATRIX, weights, columns)
    np.testing.assert_allclose(cols, columns, atol=1e-3)
    np.testing.assert_allclose(rows, want, atol=1e-3)
    assert made.get_variable_value(W.COMPLETED_SWEEPS) == 3
    np.testing.assert_allclose(made.get_variable_value(W.LOSS), loss + regularization, rtol=1e-3)
    np.testing.assert_allclose(list(made.get_projections(to_project)), want, atol=1e-3)
    np.testing.assert_allclose(made.evaluate(input_fn=to_project, steps=1)["loss"], loss + regularization, rtol=1e-3)
