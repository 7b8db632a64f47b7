# SPDX-License-Identifier: Apache-2.0
"""How boosted trees grow: from the sums of one batch that is everything, or of several batches, which accumulators add up."""

from __future__ import annotations

from typing import Any, Callable, List, NamedTuple, Sequence

from millrace.estimator.boosted_trees_features import FeatureGroup
from millrace.framework import dtypes
from millrace.framework.convert import constant
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Operation, control_dependencies
from millrace.ops import array_ops, gen_ops, math_ops
from millrace.ops.accumulators import ConditionalAccumulator
from millrace.ops.control_flow_ops import cond, group, no_op
from millrace.ops.variables import Variable
from millrace.train import boosted_trees as trees
from millrace.train.hooks import SessionRunArgs, SessionRunHook

NO_NODE = -1  # an example that is in no tree yet


class _TreeHParams(NamedTuple):
    """What the estimators' arguments say of the trees."""

    n_trees: int
    max_depth: int
    learning_rate: float
    l1: float
    l2: float
    tree_complexity: float
    min_node_weight: float
    center_bias: bool = False
    pruning_mode: str = "none"
    quantile_sketch_epsilon: float = 0.01

    @property
    def max_splits(self) -> int:
        """How many nodes of a tree may be split."""
        return (1 << self.max_depth) - 1


def state_variable(initial_value: Any, name: str) -> Variable:
    """A variable that training keeps for itself, under the name that TensorFlow's checkpoints have."""
    return Variable(initial_value, trainable=False, validate_shape=False, name=name, use_resource=True)


# ---- where examples were when they came last ----


class VariablesCache:
    """For one batch that is everything."""

    def __init__(self, batch_size: Any, logits_dimension: int) -> None:
        self._tree_ids = state_variable(array_ops.zeros([batch_size], dtypes.int32), "tree_ids_cache")
        self._node_ids = state_variable(array_ops.fill([batch_size], NO_NODE), "node_ids_cache")
        self._logits = state_variable(array_ops.zeros([batch_size, logits_dimension]), "logits_cache")

    def lookup(self) -> List[Any]:
        """Tree, node and logits of each example."""
        return [self._tree_ids.read_value(), self._node_ids.read_value(), self._logits.read_value()]

    def insert(self, tree_ids: Any, node_ids: Any, logits: Any) -> Operation:
        """Keeps them."""
        return group(self._tree_ids.assign(tree_ids), self._node_ids.assign(node_ids), self._logits.assign(logits), name="cache_insert")


class TableCache:
    """For examples that have names: int64 numbers or strings."""

    def __init__(self, example_ids: Any, logits_dimension: int) -> None:
        self._ids, self._logits_dimension = array_ops.identity(example_ids), logits_dimension
        if self._ids.dtype == dtypes.int64:
            empty, deleted = constant(-1 << 62, dtypes.int64), constant(-1 << 61, dtypes.int64)
        elif self._ids.dtype == dtypes.string:
            empty, deleted = constant(""), constant("NEVER_USED_DELETED_KEY")
        else:
            raise at_user_line(ValueError("Unsupported example_id_feature dtype %s." % self._ids.dtype))
        if self._ids.get_shape().ndims not in (None, 1):
            raise at_user_line(ValueError("example_id should have rank 1, but got %s" % self._ids.get_shape()))
        # Numbers of trees and nodes are there as the bits of floats.
        self._table = gen_ops.mutable_dense_hash_table_v2(empty, deleted, dtypes.float32, value_shape=[2 + logits_dimension])

    def lookup(self) -> List[Any]:
        """Tree, node and logits of each example."""
        bits = gen_ops.bitcast(constant([0, NO_NODE]), dtypes.float32)
        missing = array_ops.concat([bits, array_ops.zeros([self._logits_dimension])], 0)
        values = gen_ops.lookup_table_find_v2(self._table, self._ids, missing)
        trees_and_nodes = gen_ops.bitcast(values[:, :2], dtypes.int32)
        return [trees_and_nodes[:, 0], trees_and_nodes[:, 1], values[:, 2:]]

    def insert(self, tree_ids: Any, node_ids: Any, logits: Any) -> Operation:
        """Keeps them."""
        bits = gen_ops.bitcast(array_ops.stack([tree_ids, node_ids], axis=1), dtypes.float32)
        return gen_ops.lookup_table_insert_v2(self._table, self._ids, array_ops.concat([bits, logits], axis=1))  # type: ignore[return-value]


class NoCache:
    """Every example starts at the first tree."""

    def __init__(self, batch_size: Any, logits_dimension: int) -> None:
        self._size, self._logits_dimension = batch_size, logits_dimension

    def lookup(self) -> List[Any]:
        """Of examples that are in no tree."""
        ids = array_ops.zeros([self._size], dtypes.int32)
        return [ids, ids + NO_NODE, array_ops.zeros([self._size, self._logits_dimension])]

    def insert(self, tree_ids: Any, node_ids: Any, logits: Any) -> Operation:
        """Nothing."""
        del tree_ids, node_ids, logits  # nothing is kept
        return no_op()


# ---- growing ----


class Grower:
    """Grows an ensemble from one batch that is everything."""

    def __init__(self, ensemble: trees.TreeEnsemble, quantiles: Any, hparams: _TreeHParams, groups: Sequence[FeatureGroup]) -> None:
        self._ensemble, self._quantiles, self._hparams, self._groups = ensemble, quantiles, hparams, groups
        self._pruning = trees.PruningMode.from_str(hparams.pruning_mode)
        if hparams.tree_complexity > 0 and self._pruning == trees.PruningMode.NO_PRUNING:
            raise at_user_line(ValueError("Tree complexity have no effect unless pruning mode is chosen."))
        if hparams.tree_complexity <= 0 and self._pruning != trees.PruningMode.NO_PRUNING:
            raise at_user_line(ValueError("For pruning, tree_complexity must be positive."))

    def chief_init_op(self) -> Operation:
        """What is to be run before the first step."""
        return no_op()

    def accumulate_quantiles(self, numbers: List[Any], weights: Any, are_ready: Variable) -> Operation:
        """Adds a batch, and sets the boundaries between buckets once there is enough."""
        with control_dependencies([self._quantiles.add_summaries(numbers, weights)]):
            return self._set_boundaries(are_ready)

    def center_bias(self, is_needed: Variable, gradients: Any, hessians: Any) -> Operation:
        """Moves the bias to where the mean loss is least, once there is enough."""
        return self._center(is_needed, math_ops.reduce_mean(gradients, 0), math_ops.reduce_mean(hessians, 0))

    def grow_tree(self, summaries: List[Any], nodes_range: Any) -> Operation:
        """Adds a layer from the sums of each group of features, once there is enough."""
        return self._add_layer(summaries, nodes_range)

    def _set_boundaries(self, are_ready: Variable) -> Operation:
        with control_dependencies([self._quantiles.flush()]):
            return are_ready.assign(True).op  # type: ignore[no-any-return]

    def _center(self, is_needed: Variable, gradient: Any, hessian: Any) -> Operation:
        gradients, hessians = (array_ops.expand_dims(mean, 0) for mean in (gradient, hessian))
        return is_needed.assign(trees.center_bias(self._ensemble.resource_handle, gradients, hessians, l1=self._hparams.l1, l2=self._hparams.l2)).op  # type: ignore[no-any-return]

    def _add_layer(self, summaries: List[Any], nodes_range: Any) -> Operation:
        lists: List[List[Any]] = [[], [], [], [], []]
        for sums in summaries:
            found = trees.calculate_best_gains_per_feature(
                nodes_range,
                array_ops.unstack(sums, axis=0),
                l1=self._hparams.l1,
                l2=self._hparams.l2,
                tree_complexity=self._hparams.tree_complexity,
                min_node_weight=self._hparams.min_node_weight,
                max_splits=self._hparams.max_splits,
            )
            for all_features, of_group in zip(lists, found):
                all_features.extend(of_group)
        node_ids, gains, thresholds, left, right = lists
        return trees.update_ensemble(  # type: ignore[return-value]
            self._ensemble.resource_handle,
            [feature for members in self._groups for feature in members.features],
            node_ids,
            gains,
            thresholds,
            left,
            right,
            max_depth=self._hparams.max_depth,
            learning_rate=self._hparams.learning_rate,
            pruning_mode=self._pruning,
        )


class AccumulatingGrower(Grower):
    """Grows an ensemble from the sums of `n_batches` batches; only the chief does, others add to them."""

    def __init__(
        self, ensemble: trees.TreeEnsemble, quantiles: Any, hparams: _TreeHParams, groups: Sequence[FeatureGroup], stamp: Any, n_batches: Any, is_chief: bool
    ) -> None:
        super().__init__(ensemble, quantiles, hparams, groups)
        self._stamp, self._n_batches, self._is_chief = stamp, n_batches, is_chief
        self._sums = [
            ConditionalAccumulator(
                dtypes.float32, [len(members.features), hparams.max_splits, members.num_buckets, 2], shared_name="numeric_stats_summary_accumulator_%d" % i
            )
            for i, members in enumerate(groups)
        ]
        self._bias = ConditionalAccumulator(dtypes.float32, [2, 1], shared_name="bias_accumulator") if hparams.center_bias else None

    def chief_init_op(self) -> Operation:
        return group(*[a.set_global_step(self._stamp) for a in [*self._sums, *([self._bias] if self._bias else [])]])

    def _once_enough(self, added: List[Any], accumulators: List[Any], fn: Callable[[], Operation], name: str) -> Operation:
        with control_dependencies(added):
            if not self._is_chief:
                return no_op()
            count = math_ops.reduce_min(array_ops.stack([a.num_accumulated() for a in accumulators]))
            return _when(gen_ops.greater_equal(count, self._n_batches), fn, no_op, name)

    def accumulate_quantiles(self, numbers: List[Any], weights: Any, are_ready: Variable) -> Operation:
        batches = ConditionalAccumulator(dtypes.float32, [], shared_name="quantile_summary_accum")
        added = [self._quantiles.add_summaries(numbers, weights), batches.set_global_step(self._stamp), batches.apply_grad(constant(0.0), self._stamp)]
        enough = lambda: group(self._set_boundaries(are_ready), batches.take_grad(1))
        return self._once_enough(added, [batches], enough, "wait_until_quaniles_accumulated")

    def center_bias(self, is_needed: Variable, gradients: Any, hessians: Any) -> Operation:
        bias = self._bias
        if bias is None:
            raise at_user_line(RuntimeError("center_bias called but bias centering is disabled."))

        def enough() -> Operation:
            gradient, hessian = array_ops.unstack(bias.take_grad(1), axis=0)
            with control_dependencies([self._center(is_needed, gradient, hessian)]):
                # The sums of the step that follows are of a new stamp.
                next_stamp = lambda: group(*[a.set_global_step(self._stamp + 1) for a in self._sums])
                return _when(is_needed.read_value(), no_op, next_stamp)

        means = math_ops.reduce_mean(array_ops.stack([gradients, hessians], axis=0), axis=1)
        return self._once_enough([bias.apply_grad(means, self._stamp)], [bias], enough, "wait_until_n_batches_for_bias_accumulated")

    def grow_tree(self, summaries: List[Any], nodes_range: Any) -> Operation:
        added = [a.apply_grad(sums, self._stamp) for a, sums in zip(self._sums, summaries)]
        enough = lambda: self._add_layer([a.take_grad(1) for a in self._sums], nodes_range)
        return self._once_enough(added, self._sums, enough, "wait_until_n_batches_accumulated")


def _when(condition: Any, true_fn: Callable[[], Any], false_fn: Callable[[], Any], name: Any = None) -> Operation:
    """One of two functions that make operations."""

    def run(fn: Callable[[], Any]) -> Callable[[], Any]:
        def branch() -> Any:
            with control_dependencies([fn()]):
                return constant(True)

        return branch

    return cond(condition, run(true_fn), run(false_fn), name=name).op  # type: ignore[no-any-return]


# ---- hooks ----


class _StopAtAttemptsHook(SessionRunHook):
    """Stops when the trees are finished, or as many layers were tried twice."""

    def __init__(self, num_finalized_trees_tensor: Any, num_attempted_layers_tensor: Any, max_trees: int, max_depth: int) -> None:
        self._counts = [num_finalized_trees_tensor, num_attempted_layers_tensor]
        self._max_trees, self._max_layers = max_trees, 2 * max_trees * max_depth

    def before_run(self, run_context: Any) -> SessionRunArgs:
        return SessionRunArgs(self._counts)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        finished, layers = run_values.results
        # They are those before the step, which may have been the last.
        if finished >= self._max_trees - 1 or layers > self._max_layers - 1:
            finished, layers = run_context.session.run(self._counts)
        if finished >= self._max_trees or layers > self._max_layers:
            run_context.request_stop()


class GrowerInitializationHook(SessionRunHook):
    """Runs what a grower needs before the first step."""

    def __init__(self, init_op: Any) -> None:
        self._init_op = init_op

    def after_create_session(self, session: Any, coord: Any) -> None:
        session.run(self._init_op)
