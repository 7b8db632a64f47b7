# SPDX-License-Identifier: Apache-2.0
"""Matrix factorization by weighted alternating least squares (Hu, Koren and Volinsky 2008)."""

from __future__ import annotations

import numbers
from collections.abc import Iterable
from contextlib import nullcontext
from typing import Any, List, NamedTuple, Optional, Tuple

import millrace as tf
from millrace.framework.errors import at_user_line
from millrace.ops import gen_ops
from millrace.ops.row_parts import RowParts


class _Axis(NamedTuple):
    """The rows, or the columns, of the model: their factors and weights, and what an update of the others reads of them."""

    size: int
    factors: List[Any]
    weights: Optional[List[Any]]
    gramian: Any
    cached_factors: RowParts
    cached_weights: Optional[RowParts]
    cached_gramian: Any
    prepare: Any  # makes the gramian
    keep: Any  # fills the caches of factors and gramian
    drop: Any  # empties them
    keep_weights: Any


def _sizes(count: int, shards: int) -> List[int]:
    each, more = divmod(count, shards)
    return [each + 1] * more + [each] * (shards - more)


def _random(shape: List[int]) -> Any:
    return lambda: tf.random_normal(shape)


def _factors(rows: int, width: int, shards: int, init: Any, name: str) -> List[Any]:
    if callable(init):
        init = init()
    if isinstance(init, str) and init == "random":
        init = [_random([size, width]) for size in _sizes(rows, shards)]
    elif not isinstance(init, list):
        init = [init]
    return _variables(init, shards, name)


def _weights(given: Any, count: int, shards: int, name: str) -> Optional[List[Any]]:
    if given is None:
        return None
    if isinstance(given, numbers.Real) and float(given) >= 0:
        return _variables([given * tf.ones([size]) for size in _sizes(count, shards)], shards, name)
    if not isinstance(given, Iterable):
        raise at_user_line(ValueError("Weights must be None, a non-negative number, or a list of lists of those, one for each shard; got %r" % (given,)))
    given = list(given)
    return _variables([given] if shards == 1 and len(given) == count else given, shards, name)


def _variables(values: List[Any], shards: int, name: str) -> List[Any]:
    if len(values) != shards:
        raise at_user_line(ValueError("%s: %d initial values for %d shards" % (name, len(values), shards)))
    return [tf.Variable(value, dtype=tf.float32, name="%s_shard_%d" % (name, i)) for i, value in enumerate(values)]


def _cached(values: List[Any], name: str, cache: bool) -> Tuple[List[Any], Any, Any]:
    """(copies of variables that the worker keeps, what fills them, what empties them): the variables themselves, unless there is a cache."""
    if not cache:
        return values, tf.no_op(), tf.no_op()
    names = [name] if len(values) == 1 else ["%s_shard_%d" % (name, i) for i in range(len(values))]
    copies = [tf.Variable(1.0, trainable=False, collections=[tf.GraphKeys.LOCAL_VARIABLES], validate_shape=False, name=n) for n in names]
    fill: List[Any] = []
    for copy, value in zip(copies, values):
        with tf.control_dependencies(fill[-1:]):  # one after another: less is in memory at once
            fill.append(tf.assign(copy, value, validate_shape=False))
    return copies, tf.group(*fill), tf.group(*[tf.assign(copy, 1.0, validate_shape=False) for copy in copies])


class WALSModel:
    """Factors U and V of a matrix A of which some entries are observed. They make sum(W * (A - U V')^2) + regularization * (|U|^2 + |V|^2) small, where
    W is unobserved_weight + row_weights[i] * col_weights[j] at observed entries, and unobserved_weight at others, which count as 0.

    Rows and columns are updated in turns. Before a turn of rows run row_update_prep_gramian_op and initialize_row_update_op; then the update that
    update_row_factors gives, for batches of rows. The same for columns. worker_init comes first of all."""

    def __init__(
        self,
        input_rows: int,
        input_cols: int,
        n_components: int,
        unobserved_weight: float = 0.1,
        regularization: Optional[float] = None,
        row_init: Any = "random",
        col_init: Any = "random",
        num_row_shards: int = 1,
        num_col_shards: int = 1,
        row_weights: Any = 1,
        col_weights: Any = 1,
        use_factors_weights_cache: bool = True,
        use_gramian_cache: bool = True,
        use_scoped_vars: bool = False,
    ) -> None:
        if (row_weights is None) != (col_weights is None):
            raise at_user_line(ValueError("row_weights and col_weights must both be None, or neither."))
        self._input_rows, self._input_cols, self._n_components = input_rows, input_cols, n_components
        self._unobserved_weight, self._regularization = unobserved_weight, regularization

        def scoped(name: str, make: Any, *args: Any) -> Any:
            with tf.name_scope(name) if use_scoped_vars else nullcontext():
                return make(*args, name)

        self._row_weights = scoped("row_weights", _weights, row_weights, input_rows, num_row_shards)
        self._col_weights = scoped("col_weights", _weights, col_weights, input_cols, num_col_shards)
        self._row_factors = scoped("row_factors", _factors, input_rows, n_components, num_row_shards, row_init)
        self._col_factors = scoped("col_factors", _factors, input_cols, n_components, num_col_shards, col_init)
        caches = (use_factors_weights_cache, use_gramian_cache)
        self._rows = self._axis("row", input_rows, self._row_factors, self._row_weights, *caches)
        self._cols = self._axis("col", input_cols, self._col_factors, self._col_weights, *caches)
        self._row_updates_init = tf.group(self._cols.keep, self._rows.drop)
        self._col_updates_init = tf.group(self._rows.keep, self._cols.drop)
        self._worker_init = tf.group(self._rows.keep_weights, self._cols.keep_weights, name="worker_init")

    def _axis(self, name: str, count: int, factors: List[Any], weights: Optional[List[Any]], cache: bool, cache_gramian: bool) -> _Axis:
        gramian = tf.Variable(tf.zeros([self._n_components, self._n_components]), name="%s_gramian" % name)
        with tf.name_scope("%s_prepare_gramian" % name):
            prepare = tf.assign(gramian, tf.add_n([tf.matmul(part, part, transpose_a=True) for part in factors])).op
        with tf.name_scope("transient_vars"):
            copies, keep, drop = _cached(factors, "%s_factors_cache" % name, cache)
            gramians, keep_gramian, drop_gramian = _cached([gramian], "%s_gramian_cache" % name, cache_gramian)
            of_weights, keep_weights, _ = _cached(weights, "%s_wt_cache" % name, cache) if weights else (None, tf.no_op(), None)
        sizes = _sizes(count, len(factors))
        return _Axis(
            count,
            factors,
            weights,
            gramian,
            RowParts(copies, sizes),
            RowParts(of_weights, sizes) if of_weights else None,
            gramians[0],
            prepare,
            tf.group(keep, keep_gramian),
            tf.group(drop, drop_gramian),
            keep_weights,
        )

    row_factors = property(lambda self: self._row_factors, doc="The variables of the factors of rows, one for each shard.")
    col_factors = property(lambda self: self._col_factors, doc="Those of columns.")
    row_weights = property(lambda self: self._row_weights, doc="The variables of the weights of rows, one for each shard.")
    col_weights = property(lambda self: self._col_weights, doc="Those of columns.")
    worker_init = property(lambda self: self._worker_init, doc="Copies the weights to the worker, where they are cached.")
    row_update_prep_gramian_op = property(lambda self: self._cols.prepare, doc="Comes before a turn of rows; one worker runs it.")
    col_update_prep_gramian_op = property(lambda self: self._rows.prepare, doc="Comes before a turn of columns; one worker runs it.")
    initialize_row_update_op = property(lambda self: self._row_updates_init, doc="Comes before a turn of rows; every worker runs it.")
    initialize_col_update_op = property(lambda self: self._col_updates_init, doc="Comes before a turn of columns; every worker runs it.")

    @property
    def initialize_op(self) -> Any:
        """Initializes the variables of the model."""
        of_axes = [[*axis.factors, axis.gramian, *(axis.weights or [])] for axis in (self._rows, self._cols)]
        return tf.variables_initializer(of_axes[0] + of_axes[1])

    def update_row_factors(self, sp_input: Any = None, transpose_input: bool = False) -> Tuple[Any, Any, Any, Any, Any]:
        """Of some rows of the input, in places of the whole matrix: (their new factors, the update, the unregularized loss of the rows and the
        regularization, both as if they were all rows, the sum of weights).

        With transpose_input the rows are columns of sp_input."""
        return self._solve(True, sp_input, transpose_input)

    def update_col_factors(self, sp_input: Any = None, transpose_input: bool = False) -> Tuple[Any, Any, Any, Any, Any]:
        """The same for some columns of the input; with transpose_input they are rows of sp_input."""
        return self._solve(False, sp_input, transpose_input)

    def project_row_factors(self, sp_input: Any = None, transpose_input: bool = False, projection_weights: Any = None) -> Any:
        """The factors that rows would have, with a weight for all of them or for each (1). Their numbers do not count, their order does."""
        return self._solve(True, sp_input, transpose_input, 1 if projection_weights is None else projection_weights)[0]

    def project_col_factors(self, sp_input: Any = None, transpose_input: bool = False, projection_weights: Any = None) -> Any:
        """The factors that columns would have."""
        return self._solve(False, sp_input, transpose_input, 1 if projection_weights is None else projection_weights)[0]

    def _solve(self, of_rows: bool, sp_input: Any, transposed: bool, weights: Any = None) -> Tuple[Any, Any, Any, Any, Any]:
        """Least squares for the rows (or columns), where the factors of the other axis are kept. `weights` take the place of theirs."""
        if not isinstance(sp_input, tf.SparseTensor):
            raise at_user_line(TypeError("sp_input must be a SparseTensor, got %s" % type(sp_input).__name__))
        left, right = (self._rows, self._cols) if of_rows else (self._cols, self._rows)
        first, second = (1, 0) if transposed == of_rows else (0, 1)
        rows, row_of = tf.unique(sp_input.indices[:, first])
        columns, column_of = tf.unique(sp_input.indices[:, second])
        entries = tf.to_int64(tf.stack([row_of, column_of], 1))
        count = tf.size(rows)
        factors, gramian = right.cached_factors.gather(columns), right.cached_gramian
        equations = self._unobserved_weight * gramian
        if self._regularization is not None:
            equations += self._regularization * tf.eye(self._n_components)
        if left.cached_weights is None or right.cached_weights is None:
            shape = tf.to_int64(tf.stack([count, tf.size(columns)]))
            product = tf.sparse_tensor_dense_matmul(tf.SparseTensor(entries, sp_input.values, shape), factors)
            solved = tf.transpose(tf.matrix_solve(equations, self._unobserved_weight * tf.transpose(product)))
            of_entries = None
        else:
            of_rows_here = left.cached_weights.gather(rows) if weights is None else self._one_each(weights, count)
            of_columns = right.cached_weights.gather(columns)
            more, goals = gen_ops.wals_compute_partial_lhs_and_rhs(
                factors, of_columns, self._unobserved_weight, of_rows_here, entries, sp_input.values, [], tf.to_int64(count), False
            )
            solved = tf.squeeze(tf.matrix_solve(tf.expand_dims(equations, 0) + more, tf.expand_dims(goals, -1)), [2])
            of_entries = tf.gather(of_rows_here, row_of) * tf.gather(of_columns, column_of)
        changed = RowParts(left.factors).scatter(tf.scatter_update, rows, solved)
        update = tf.group(*changed, name="row_update" if of_rows else "col_update")

        told = gen_ops.masked_matmul(solved, factors, entries, transpose_a=False, transpose_b=True)
        squares = tf.square(sp_input.values - told)
        own = tf.matmul(solved, solved, transpose_a=True)
        scale = left.size / tf.to_float(count)
        unobserved = tf.reduce_sum(squares) - tf.reduce_sum(tf.square(told)) + tf.trace(tf.matmul(own, gramian))
        loss = self._unobserved_weight * unobserved
        total = tf.constant(self._unobserved_weight * float(left.size * right.size))
        if of_entries is not None:
            loss += tf.reduce_sum(of_entries * squares)
            total += tf.reduce_sum(of_entries) * scale
        regularization = tf.constant(0.0) if self._regularization is None else self._regularization * (tf.trace(own) * scale + tf.trace(gramian))
        return solved, update, loss * scale, regularization, total

    @staticmethod
    def _one_each(weights: Any, count: Any) -> Any:
        weights = tf.convert_to_tensor(weights)
        with tf.control_dependencies([tf.assert_less_equal(tf.rank(weights), 1)]):
            return tf.ones(tf.expand_dims(count, 0)) * tf.cast(weights, tf.float32)


def wals_compute_partial_lhs_and_rhs(*args: Any, **kwargs: Any) -> Any:
    """The op of this name, also as it was before 1.13: without entry_weights, whose place is behind input_values."""
    old = len(args) + len(kwargs) - ("name" in kwargs) == 8 and "entry_weights" not in kwargs
    given = [*args[:6], [], *args[6:]] if old and len(args) > 6 else args
    return gen_ops.wals_compute_partial_lhs_and_rhs(*given, **({"entry_weights": [], **kwargs} if old and len(args) <= 6 else kwargs))
