# SPDX-License-Identifier: Apache-2.0
"""gbdt_batch of tf.contrib.boosted_trees: a model of boosted trees in a graph, which grows a layer whenever it has seen examples enough."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Tuple, Union

import numpy as np

from millrace.contrib import layers
from millrace.contrib.boosted_trees import model
from millrace.contrib.boosted_trees.quantiles import QuantileAccumulator
from millrace.contrib.boosted_trees.splits import build_categorical_equality_splits, build_dense_inequality_splits, build_sparse_inequality_splits
from millrace.contrib.boosted_trees.stats import StatsAccumulator, op_of
from millrace.framework import dtypes
from millrace.framework.composite_tensors import SparseTensor
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import GraphKeys, Operation, Tensor, control_dependencies
from millrace.losses import Reduction
from millrace.ops import array_ops, control_flow_ops, gen_ops, math_ops, stateless_random_ops
from millrace.ops.gradients import gradients
from millrace.ops.variables import Variable
from millrace.protos.contrib_trees import LearnerConfig

PREDICTIONS, PREDICTIONS_NO_DROPOUT, PARTITION_IDS = "predictions", "predictions_no_dropout", "partition_ids"
ENSEMBLE_STAMP, NUM_TREES, LEAF_INDEX = "ensemble_stamp", "num_trees", "leaf_index"
NUM_USED_HANDLERS, USED_HANDLERS_MASK = "num_used_handlers", "used_handlers_mask"
_BIAS = -(2**63)  # the id of what all examples of a node have
_EPSILON = 0.01


def extract_features(features: Dict[Any, Any], feature_columns: Any, use_core_columns: bool = False) -> Tuple[Any, ...]:
    """(names, dense floats [batch, 1], then indices, values and shapes of sparse floats, then those of sparse ints), in the order of their names. A dense
    tensor of several columns is as many features. ValueError where there is nothing, or something else."""
    if not features:
        raise at_user_line(ValueError("Features dictionary must be specified."))
    given = dict(features)
    if feature_columns:
        if use_core_columns:
            raise at_user_line(NotImplementedError("columns of tf.feature_column: use those of tf.contrib.layers, or features as they are"))
        given = {column.name: value for column, value in layers.transform_features(given, list(feature_columns)).items()}
    dense: List[Tuple[str, Any]] = []
    floats: List[Tuple[str, Any]] = []
    ids: List[Tuple[str, Any]] = []
    for name in sorted(given):
        tensor = given[name]
        if not isinstance(tensor, SparseTensor):
            dense.extend(_columns(name, convert_to_tensor(tensor)))
        elif tensor.dtype.base_dtype == dtypes.float32:
            floats.append((name, tensor))
        elif tensor.dtype.base_dtype == dtypes.int64:
            ids.append((name, tensor))
        else:
            raise at_user_line(ValueError("Unsupported sparse feature %s with dtype %s." % (name, tensor.dtype)))
    parts: List[Any] = [[name for name, _ in dense + floats + ids], [tensor for _, tensor in dense]]
    for sparse in (floats, ids):
        parts += [[t.indices for _, t in sparse], [t.values for _, t in sparse], [t.dense_shape for _, t in sparse]]
    return tuple(parts)


def _columns(name: str, tensor: Tensor) -> List[Tuple[str, Tensor]]:
    if not tensor.dtype.is_floating:
        raise at_user_line(ValueError("Unsupported dense feature %s with dtype %s." % (name, tensor.dtype)))
    tensor = math_ops.cast(tensor, dtypes.float32)
    if tensor.get_shape().ndims == 1:
        tensor = array_ops.expand_dims(tensor, 1)
    width = tensor.get_shape()[1].value if tensor.get_shape().ndims == 2 else None
    if width is None:
        raise at_user_line(ValueError("feature %s must be a matrix whose number of columns is known, got %s" % (name, tensor.get_shape())))
    if width == 1:
        return [(name, tensor)]
    return [("%s_%d" % (name, i), column) for i, column in enumerate(array_ops.split(tensor, width, 1))]


class GradientBoostedDecisionTreeModel:
    """Predicts, and grows by the gradients of a loss. learner_config says how. Gradients of batches are averaged, but for a loss_reduction of
    Reduction.SUM. Where leaves are asked for by output_leaf_index, the predictions of output_leaf_index_modes have them: those of "infer" alone unless
    it says more."""

    # What train() makes, for the steps below it.
    _class_id: Tensor
    _used: Tuple[Any, Any]  # how many features have split, and which
    _quantiles: List[QuantileAccumulator]
    _sums: List[StatsAccumulator]
    _steps: StatsAccumulator
    _bias: StatsAccumulator
    _ready: Tensor
    _buckets: List[Any]
    _centers: Variable

    def __init__(
        self,
        is_chief: bool,
        num_ps_replicas: int,
        ensemble_handle: Tensor,
        center_bias: bool,
        examples_per_layer: Union[int, Callable[[Any], Any]],
        learner_config: Any,
        features: Dict[Any, Any],
        logits_dimension: int,
        loss_reduction: Any = None,
        feature_columns: Any = None,
        use_core_columns: bool = False,
        output_leaf_index: bool = False,
        output_leaf_index_modes: Any = None,
        num_quantiles: int = 100,
    ) -> None:
        del num_ps_replicas  # devices are placed by themselves
        self._learner = LearnerConfig.FromString(learner_config.SerializeToString())
        self._check(logits_dimension)
        self._is_chief, self._handle, self._center_bias = is_chief, ensemble_handle, center_bias
        self._examples_per_layer, self._logits_dimension, self._leaf_index = examples_per_layer, logits_dimension, output_leaf_index
        extracted = extract_features(features, feature_columns, use_core_columns)
        self._names, self._features = extracted[0], list(extracted[1:])
        self._dense, self._floats, self._ids = extracted[1], extracted[2:5], extracted[5:8]
        self._num_quantiles, self._is_sum = num_quantiles, loss_reduction == Reduction.SUM
        self._leaf_index_modes = list(output_leaf_index_modes or ["infer"])

    def _check(self, logits_dimension: int) -> None:
        learner = self._learner
        if learner.num_classes < 2:
            raise at_user_line(ValueError("Number of classes must be >=2"))
        if logits_dimension not in (learner.num_classes, learner.num_classes - 1):
            raise at_user_line(ValueError("%d logits do not suit %d classes" % (logits_dimension, learner.num_classes)))
        if learner.weak_learner_type:
            raise at_user_line(NotImplementedError("oblivious trees: use NORMAL_DECISION_TREE"))
        tuner = learner.learning_rate_tuner.WhichOneof("tuner")
        if tuner == "line_search":
            raise at_user_line(ValueError("Line search not supported yet."))
        self._rate = getattr(learner.learning_rate_tuner, tuner).learning_rate if tuner else 0.1
        self._has_dropout = tuner == "dropout"
        if logits_dimension == 1:
            learner.multi_class_strategy = LearnerConfig.TREE_PER_CLASS
        elif not learner.multi_class_strategy:
            learner.multi_class_strategy = LearnerConfig.DIAGONAL_HESSIAN

    # ---- Predictions ----

    def predict(self, mode: str) -> Dict[str, Any]:
        """What the ensemble says, by the names above. While it trains, trees are dropped where learner_config asks for it."""
        stamp = gen_ops.tree_ensemble_stamp_token(self._handle)
        with control_dependencies([stamp]):
            counts = gen_ops.tree_ensemble_stats(self._handle, stamp)
            whole = self._asked(stamp, False)
            whole.predictions.set_shape([None, self._logits_dimension])
            made = {
                PREDICTIONS: whole.predictions,
                PREDICTIONS_NO_DROPOUT: whole.predictions,
                ENSEMBLE_STAMP: stamp,
                NUM_TREES: counts.num_trees,
                PARTITION_IDS: gen_ops.gradient_trees_partition_examples(self._handle, *self._features),
            }
            if mode == "train" and self._has_dropout:
                made[PREDICTIONS] = self._asked(stamp, True).predictions
            if self._leaf_index and mode in self._leaf_index_modes:
                made[LEAF_INDEX] = whole.leaf_index
            if self._learner.constraints.max_number_of_unique_feature_columns:
                used = gen_ops.tree_ensemble_used_handlers(self._handle, stamp, num_all_handlers=len(self._names))
                made[NUM_USED_HANDLERS], made[USED_HANDLERS_MASK] = used
            return made

    def _asked(self, stamp: Tensor, drops: bool) -> Any:
        attributes: Dict[str, Any] = {
            "learner_config": self._learner.SerializeToString(),
            "apply_dropout": drops,
            "apply_averaging": not drops and self._learner.HasField("averaging_config"),
            "center_bias": self._center_bias,
            "reduce_dim": self._logits_dimension == self._learner.num_classes - 1,
        }
        seed = stamp  # it is another one at each layer
        return gen_ops.gradient_trees_prediction_verbose(self._handle, seed, *self._features, **attributes)

    # ---- Training ----

    def train(self, loss: Tensor, predictions_dict: Dict[str, Any], labels: Any) -> Operation:
        """Adds the gradients of a batch to the sums, and a layer to the trees where these have seen enough."""
        del labels  # the loss has looked at them
        predictions = predictions_dict[PREDICTIONS]
        predictions.set_shape([None, self._logits_dimension])
        stamp = array_ops.identity(convert_to_tensor(predictions_dict[ENSEMBLE_STAMP]))
        self._class_id = self._class_that_grows(predictions_dict.get(NUM_TREES, 0))
        self._used = predictions_dict.get(NUM_USED_HANDLERS), predictions_dict.get(USED_HANDLERS_MASK)
        gradient, hessian, every_gradient, every_hessian = self._derivatives(loss, predictions)
        self._make_sums(stamp)
        nodes = math_ops.to_int32(convert_to_tensor(predictions_dict[PARTITION_IDS]))
        batch = array_ops.shape(predictions)[0]
        updates = self._add(stamp, nodes, gradient, hessian)
        updates.append(self._steps.add(stamp, [0], [[0, 0]], array_ops.reshape(math_ops.to_float(batch), [1]), [1.0]))
        if self._center_bias:
            sums = [math_ops.reduce_sum(x, 0, keepdims=True) for x in (every_gradient, every_hessian)]
            updates.append(self._bias.add(stamp, [0], [[0, 0]], *sums))
        if not self._is_chief:
            return control_flow_ops.group(*updates)
        with control_dependencies(updates):
            seen = math_ops.reduce_sum(self._steps.serialize()[4])
            layers_grown = gen_ops.tree_ensemble_stats(self._handle, stamp).active_layer
            wanted = self._examples_per_layer(layers_grown) if callable(self._examples_per_layer) else self._examples_per_layer
            is_time = gen_ops.greater_equal(seen, math_ops.to_float(convert_to_tensor(wanted)))
            current = gen_ops.equal(gen_ops.tree_ensemble_stamp_token(self._handle), stamp)
        done = control_flow_ops.cond(gen_ops.logical_and(is_time, current), lambda: self._end_layer(stamp), lambda: convert_to_tensor(False))
        return control_flow_ops.group(done, name="train_op")

    def _class_that_grows(self, num_trees: Any) -> Tensor:
        if self._logits_dimension == 1 or self._learner.multi_class_strategy != LearnerConfig.TREE_PER_CLASS:
            return convert_to_tensor(-1)
        return math_ops.to_int32(convert_to_tensor(num_trees)) % self._logits_dimension

    def _derivatives(self, loss: Tensor, predictions: Tensor) -> Tuple[Tensor, ...]:
        """(gradients and hessians that trees grow by, gradients [batch, logits] and the diagonals of all)."""
        (first,) = gradients(loss, predictions)
        count = self._logits_dimension
        parts = array_ops.split(first, count, 1) if count > 1 else [first]
        rows = [gradients(part, predictions)[0] for part in parts]
        rows = [array_ops.zeros_like(predictions) if row is None else row for row in rows]
        diagonal = array_ops.concat([row[:, i : i + 1] for i, row in enumerate(rows)], 1)
        strategy = self._learner.multi_class_strategy
        if strategy == LearnerConfig.FULL_HESSIAN:
            return first, array_ops.stack(rows, 1), first, diagonal
        if strategy == LearnerConfig.DIAGONAL_HESSIAN:
            return first, diagonal, first, diagonal
        place = array_ops.reshape(math_ops.maximum(self._class_id, 0), [1])
        return array_ops.gather(first, place, axis=1), array_ops.gather(diagonal, place, axis=1), first, diagonal

    def _make_sums(self, stamp: Tensor) -> None:
        strategy, count = self._learner.multi_class_strategy, self._logits_dimension
        shapes = {LearnerConfig.TREE_PER_CLASS: ([], []), LearnerConfig.DIAGONAL_HESSIAN: ([count], [count])}.get(strategy, ([count], [count, count]))
        ordinal = len(self._dense) + len(self._floats[0])
        self._quantiles = [QuantileAccumulator(0, _EPSILON, self._num_quantiles, name="quantiles_%d" % i) for i in range(ordinal)]
        self._sums = [StatsAccumulator(0, *shapes, name="sums_%d" % i) for i in range(len(self._names))]
        self._steps = StatsAccumulator(0, [], [], name="steps")
        self._bias = StatsAccumulator(0, [self._logits_dimension], [self._logits_dimension], name="bias")
        handles = [q.resource_handle for q in self._quantiles]
        if handles:
            ready, self._buckets = gen_ops.quantile_accumulator_get_buckets(handles, stamp)
            self._ready = ready[0]  # they are flushed together
        else:
            self._ready, self._buckets = convert_to_tensor(True), []
        if self._center_bias:
            self._centers = Variable(True, trainable=False, name="continue_centering", collections=[GraphKeys.GLOBAL_VARIABLES])

    def _add(self, stamp: Tensor, nodes: Tensor, gradient: Tensor, hessian: Tensor) -> List[Any]:
        """Adds a batch to the quantiles, and to the sums once there are buckets."""
        updates: List[Any] = []
        if self._quantiles:
            axes = [1, 2] if self._learner.multi_class_strategy == LearnerConfig.FULL_HESSIAN else [1]
            weights = gen_ops.sqrt(math_ops.reduce_sum(gen_ops.square(hessian), axes))
            indices, values, shapes = self._floats
            summaries = gen_ops.make_quantile_summaries(self._dense, indices, values, shapes, array_ops.reshape(weights, [-1, 1]), epsilon=_EPSILON / 2)
            handles = [q.resource_handle for q in self._quantiles]
            updates.append(gen_ops.quantile_accumulator_add_summaries(handles, stamp, list(summaries.dense_summaries) + list(summaries.sparse_summaries)))
        added = control_flow_ops.cond(self._ready, lambda: self._add_sums(stamp, nodes, gradient, hessian), lambda: convert_to_tensor(False))
        return updates + [added]

    def _add_sums(self, stamp: Tensor, nodes: Tensor, gradient: Tensor, hessian: Tensor) -> Tensor:
        dense = len(self._dense)
        places = gen_ops.quantiles(self._dense, self._floats[1], self._buckets[:dense], self._buckets[dense:], self._floats[0])
        rows: List[Tuple[Any, ...]] = [(nodes, math_ops.to_int64(ids), gradient, hessian) for ids in places.dense_quantiles]
        indices = list(self._floats[0]) + list(self._ids[0])
        ids = [math_ops.to_int64(q) for q in places.sparse_quantiles]
        ids += [array_ops.stack([values, array_ops.zeros_like(values)], axis=1) for values in self._ids[1]]
        bias = math_ops.to_int64(array_ops.stack([array_ops.zeros_like(nodes), array_ops.zeros_like(nodes)], axis=1)) + np.array([[_BIAS, 0]])
        for where, present in zip(indices, ids):
            parts = [array_ops.gather(x, where[:, 0]) for x in (nodes, gradient, hessian)]
            rows.append(
                (
                    array_ops.concat([nodes, parts[0]], 0),
                    array_ops.concat([bias, present], 0),
                    array_ops.concat([gradient, parts[1]], 0),
                    array_ops.concat([hessian, parts[2]], 0),
                )
            )
        is_scalar = self._learner.multi_class_strategy == LearnerConfig.TREE_PER_CLASS
        if is_scalar:
            rows = [(n, i, array_ops.reshape(g, [-1]), array_ops.reshape(h, [-1])) for n, i, g, h in rows]
        with control_dependencies([op_of(is_scalar, "add")([s.resource_handle for s in self._sums], stamp, *[list(part) for part in zip(*rows)])]):
            return convert_to_tensor(True)

    def _end_layer(self, stamp: Tensor) -> Tensor:
        """Takes what all sums and streams have, and moves the ensemble on."""
        following = stamp + 1
        sums = [s.flush(stamp, following) for s in self._sums]
        flushed = [q.flush(stamp, following) for q in self._quantiles] + [self._steps.flush(stamp, following)[0]]
        bias = self._bias.flush(stamp, following)
        with control_dependencies(flushed):
            if not self._center_bias:
                return self._grow(stamp, sums)
            return control_flow_ops.cond(self._centers.read_value(), lambda: self._center(stamp, bias), lambda: self._grow(stamp, sums))

    def _center(self, stamp: Tensor, bias: Any) -> Tensor:
        gradient, hessian = bias[3][0], bias[4][0]
        positive = gen_ops.greater(hessian, array_ops.zeros_like(hessian))
        delta = array_ops.where(positive, -gradient / array_ops.where(positive, hessian, array_ops.ones_like(hessian)), array_ops.zeros_like(gradient))
        goes_on = gen_ops.center_tree_ensemble_bias(self._handle, stamp, stamp + 1, delta, learner_config=self._learner.SerializeToString())
        with control_dependencies([self._centers.assign(goes_on)]):
            return convert_to_tensor(True)

    def _grow(self, stamp: Tensor, sums: List[Any]) -> Tensor:
        splits = [self._best(i, *taken) for i, taken in enumerate(sums)]
        chosen = self._chosen(stamp)
        if chosen is not None:
            kept = [array_ops.shape(s[0])[:1] * math_ops.to_int32(chosen[i : i + 1]) for i, s in enumerate(splits)]
            splits = [[array_ops.slice(part, [0], n) for part in s] for s, n in zip(splits, kept)]
        grown = model.grow_tree_ensemble(
            self._handle,
            stamp,
            stamp + 1,
            self._rate,
            stamp,
            partition_ids=[s[0] for s in splits],
            gains=[s[1] for s in splits],
            splits=[s[2] for s in splits],
            learner_config=self._learner.SerializeToString(),
            center_bias=self._center_bias,
        )
        with control_dependencies([grown]):
            return convert_to_tensor(True)

    def _best(self, feature: int, updates: Any, nodes: Any, ids: Any, gradient: Any, hessian: Any) -> List[Any]:
        """The best split of each node by a feature: (nodes, gains, splits)."""
        regular, dense = self._learner.regularization, len(self._dense)
        common = {
            "num_minibatches": 1 if self._is_sum else updates,  # what sums are divided by
            "partition_ids": nodes,
            "gradients": gradient,
            "hessians": hessian,
            "class_id": self._class_id,
            "l1_regularization": regular.l1,
            "l2_regularization": regular.l2,
            "tree_complexity_regularization": regular.tree_complexity,
            "min_node_weight": self._learner.constraints.min_node_weight,
            "multiclass_strategy": self._learner.multi_class_strategy,
        }
        if feature < dense:
            return list(build_dense_inequality_splits(bucket_ids=ids, bucket_boundaries=self._buckets[feature], feature_column_group_id=feature, **common))
        floats = len(self._floats[0])
        common["bias_feature_id"] = np.array(_BIAS, np.int64)
        if feature < dense + floats:
            limits = self._buckets[feature]
            return list(build_sparse_inequality_splits(bucket_ids=ids, bucket_boundaries=limits, feature_column_group_id=feature - dense, **common))
        return list(build_categorical_equality_splits(feature_ids=ids, feature_column_group_id=feature - dense - floats, **common))

    def _chosen(self, stamp: Tensor) -> Any:
        """Which features may split, or None for all: a part of them in each tree or layer, and no more different ones than are allowed."""
        count, chosen = len(self._names), None
        fraction = self._learner.WhichOneof("feature_fraction")
        if fraction:
            counts = gen_ops.tree_ensemble_stats(self._handle, stamp)
            seed = counts.attempted_layers if fraction == "feature_fraction_per_level" else counts.num_trees
            chosen = gen_ops.less(stateless_random_ops.stateless_uniform([count], array_ops.stack([seed, 1 + seed])), getattr(self._learner, fraction))
        most = self._learner.constraints.max_number_of_unique_feature_columns
        if most:
            used, mask = self._used
            allowed = gen_ops.logical_or(mask, gen_ops.less(math_ops.to_int64(convert_to_tensor(used)), np.int64(most)))
            chosen = allowed if chosen is None else gen_ops.logical_and(chosen, allowed)
        return chosen
