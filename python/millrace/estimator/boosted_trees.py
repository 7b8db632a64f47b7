# SPDX-License-Identifier: Apache-2.0
"""Boosted trees: estimators whose models are sums of decision trees, each of which makes up for what those before it lack."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from millrace import losses, summary
from millrace.estimator import boosted_trees_features as columns_of
from millrace.estimator import boosted_trees_utils as utils
from millrace.estimator.boosted_trees_growing import (
    AccumulatingGrower,
    Grower,
    GrowerInitializationHook,
    NoCache,
    TableCache,
    VariablesCache,
    _StopAtAttemptsHook,
    _TreeHParams,
    _when,
    state_variable,
)
from millrace.estimator.estimator import Estimator
from millrace.estimator.head_inputs import checked_labels
from millrace.estimator.heads import (
    _binary_logistic_head_with_sigmoid_cross_entropy_loss,
    _BinaryLogisticHeadWithSigmoidCrossEntropyLoss,
    _Head,
    _MultiClassHeadWithSoftmaxCrossEntropyLoss,
    _regression_head,
)
from millrace.estimator.spec import EstimatorSpec, ModeKeys
from millrace.feature_column import numeric_column
from millrace.framework import dtypes
from millrace.framework.convert import constant
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Operation, control_dependencies, device, name_scope
from millrace.ops import array_ops, gen_ops, math_ops
from millrace.ops.control_flow_ops import group, no_op
from millrace.ops.gradients import gradients
from millrace.ops.variables import enable_resource_variables
from millrace.train import boosted_trees as trees
from millrace.train.checkpoint_utils import load_checkpoint
from millrace.train.global_step import get_or_create_global_step

_MEAN = losses.Reduction.SUM_OVER_BATCH_SIZE
_DEFAULT = object()  # of n_classes and label_dimension


def _given(value: Any, default: int) -> Any:
    return default if value is _DEFAULT else value


class _Model:
    """The ensemble and the buckets of its features, in a graph of any mode."""

    def __init__(self, columns: List[Any], features: Dict[str, Any], epsilon: float, scope: str) -> None:
        self.columns, self.features = columns, features
        self.ensemble = trees.TreeEnsemble(name=scope)
        self.float_columns, self.num_quantiles = columns_of.float_columns(columns), int(1.0 / epsilon)
        self.quantiles: Any = None
        boundaries: List[Any] = []
        if self.float_columns:
            count = len(columns_of.names_of_features(self.float_columns))
            self.quantiles = trees.QuantileAccumulator(epsilon, count, self.num_quantiles, name="QuantileAccumulator")
            boundaries = self.quantiles.get_bucket_boundaries()
        self._boundaries = boundaries

    def buckets(self) -> List[Any]:
        """Of each feature."""
        return columns_of.buckets_of_features(self.features, self.columns, self._boundaries)


def _weights(features: Dict[str, Any], weight_column: Any) -> Any:
    """The weights of the examples, for quantiles."""
    if weight_column is None:
        return constant([1.0])
    column = numeric_column(weight_column, shape=(1,)) if isinstance(weight_column, str) else weight_column
    return columns_of.numbers_of(features, [column])[0]


class _Training:
    """The graph of a training step."""

    def __init__(
        self, model: _Model, labels: Any, head: _Head, hparams: _TreeHParams, n_batches: Any, config: Any, in_memory: bool, example_ids: Any, scope: str
    ) -> None:
        self._model, self._labels, self._hparams = model, labels, hparams
        self._groups = columns_of.group_by_buckets(model.columns, model.num_quantiles)
        self._are_boundaries_ready = state_variable(not model.float_columns, "are_boundaries_ready")
        self._buckets = model.buckets()
        batch_size = array_ops.shape(labels)[0]
        if in_memory:
            # TensorFlow's checkpoints have them; buckets are made anew here.
            for i in range(len(self._buckets)):
                state_variable(array_ops.zeros([batch_size], dtypes.int32), "cached_feature_%d" % i)
            state_variable(False, "are_features_cached")
            self._cache: Any = VariablesCache(batch_size, head.logits_dimension)
        elif example_ids is not None:
            self._cache = TableCache(example_ids, head.logits_dimension)
        else:
            self._cache = NoCache(batch_size, head.logits_dimension)
        cached_trees, cached_nodes, cached_logits = self._cache.lookup()
        ensemble, copied = self._local_ensemble(config, scope)
        with control_dependencies(copied):
            self.states = ensemble.get_states()
            added, self._tree_ids, self._node_ids = trees.training_predict(
                ensemble.resource_handle, cached_trees, cached_nodes, self._buckets, logits_dimension=head.logits_dimension
            )
        self.logits = cached_logits + added
        if in_memory:
            self.grower: Grower = Grower(model.ensemble, model.quantiles, hparams, self._groups)
        else:
            self.grower = AccumulatingGrower(model.ensemble, model.quantiles, hparams, self._groups, self.states[0], n_batches, config.is_chief)
        for name, state in zip(("num_trees", "num_finalized_trees", "num_attempted_layers"), self.states[1:]):
            summary.scalar("ensemble/" + name, state)
        self._is_bias_needed = state_variable(hparams.center_bias, "center_bias_needed")

    def _local_ensemble(self, config: Any, scope: str) -> Tuple[trees.TreeEnsemble, List[Any]]:
        """Each of several workers asks a copy of its own, which follows the ensemble."""
        if config.num_worker_replicas <= 1:
            return self._model.ensemble, []
        with device(no_op().device):
            local = trees.TreeEnsemble(name=scope.rstrip("/") + "_local/", is_local=True)
        return local, [local.deserialize(*self._model.ensemble.serialize())]

    def _sums(self, gradients: Any, hessians: Any) -> List[Any]:
        """Of each group of features, by feature, node and bucket."""
        sums = []
        for members in self._groups:
            buckets = [math_ops.minimum(self._buckets[f], members.num_buckets - 1) for f in members.features]
            made = trees.make_stats_summary(self._node_ids, gradients, hessians, buckets, max_splits=self._hparams.max_splits, num_buckets=members.num_buckets)
            sums.append(made)
        return sums

    def _grow(self, derivatives: Callable[[], Tuple[Any, Any]]) -> Any:
        ops = []
        if not isinstance(self._cache, NoCache):
            insert = lambda: self._cache.insert(self._tree_ids, self._node_ids, self.logits)
            ops.append(_when(self._is_bias_needed.read_value(), no_op, insert))
        gradients, hessians = derivatives()
        sums, nodes_range = self._sums(gradients, hessians), self.states[4]

        def grow() -> Operation:
            return self.grower.grow_tree(sums, nodes_range)

        if self._hparams.center_bias:
            center = lambda: self.grower.center_bias(self._is_bias_needed, gradients, hessians)
            update = _when(self._is_bias_needed.read_value(), center, grow)
        else:
            update = grow()
        with control_dependencies([update]):
            ops += [update, get_or_create_global_step().assign_add(1).op]  # type: ignore[no-untyped-call]
        return group(*ops, name="grow_op")

    def _add_quantiles(self, weight_column: Any) -> Any:
        with name_scope("UpdateQuantile"):
            numbers = columns_of.numbers_of(self._model.features, self._model.float_columns)
            return self.grower.accumulate_quantiles(numbers, _weights(self._model.features, weight_column), self._are_boundaries_ready)

    def train_op(self, derivatives: Callable[[], Tuple[Any, Any]], weight_column: Any) -> Any:
        """Grows the trees; while there are no quantiles, makes those."""
        if not self._model.float_columns:
            return self._grow(derivatives)
        return _when(self._are_boundaries_ready.read_value(), lambda: self._grow(derivatives), lambda: self._add_quantiles(weight_column))


def _check_in_memory(n_batches_per_layer: Any, config: Any) -> None:
    if n_batches_per_layer != 1:
        raise at_user_line(
            AssertionError(
                "When train_in_memory is enabled, input_fn should return the entire dataset as a single batch, and n_batches_per_layer should be set as 1."
            )
        )
    if not config.is_chief or config.num_worker_replicas > 1 or config.num_ps_replicas > 0:
        raise at_user_line(ValueError("train_in_memory is supported only for non-distributed training."))


def _bt_model_fn(
    features: Any,
    labels: Any,
    mode: str,
    head: _Head,
    feature_columns: Any,
    tree_hparams: _TreeHParams,
    n_batches_per_layer: Any,
    config: Any,
    closed_form_grad_and_hess_fn: Any = None,
    example_id_column_name: Optional[str] = None,
    weight_column: Any = None,
    train_in_memory: bool = False,
    name: str = "boosted_trees",
) -> EstimatorSpec:
    """A model of boosted trees."""
    hparams = _TreeHParams(*tree_hparams)
    with name_scope(name) as scope:
        get_or_create_global_step()
        model = _Model(columns_of.sorted_columns(feature_columns), features, hparams.quantile_sketch_epsilon, scope)
        if mode != ModeKeys.TRAIN:
            logits = trees.predict(model.ensemble.resource_handle, model.buckets(), logits_dimension=head.logits_dimension)
            return head.create_estimator_spec(features=features, mode=mode, labels=labels, train_op_fn=no_op, logits=logits)
        if train_in_memory:
            _check_in_memory(n_batches_per_layer, config)
        example_ids = features[example_id_column_name] if example_id_column_name and not train_in_memory else None
        training = _Training(model, labels, head, hparams, n_batches_per_layer, config, train_in_memory, example_ids, scope)

        def train_op(loss: Any) -> Any:
            def derivatives() -> Tuple[Any, Any]:
                if closed_form_grad_and_hess_fn is not None:
                    return closed_form_grad_and_hess_fn(training.logits, labels)  # type: ignore[no-any-return]
                gradient = gradients(loss, training.logits, name="Gradients")[0]
                return gradient, gradients(gradient, training.logits, name="Hessians")[0]

            return training.train_op(derivatives, weight_column)

        spec = head.create_estimator_spec(features=features, mode=mode, labels=labels, train_op_fn=train_op, logits=training.logits)
    stop = _StopAtAttemptsHook(training.states[2], training.states[3], hparams.n_trees, hparams.max_depth)
    return spec._replace(
        training_hooks=[*spec.training_hooks, stop],
        training_chief_hooks=[GrowerInitializationHook(training.grower.chief_init_op()), *spec.training_chief_hooks],
    )


def _bt_explanations_fn(features: Any, head: _Head, sorted_feature_columns: Any, quantile_sketch_epsilon: float, name: str = "boosted_trees") -> EstimatorSpec:
    """Predictions, with each example's way through the trees."""
    with name_scope(name) as scope:
        model = _Model(sorted_feature_columns, features, quantile_sketch_epsilon, scope)
        handle, buckets = model.ensemble.resource_handle, model.buckets()
        logits = trees.predict(handle, buckets, logits_dimension=head.logits_dimension)
        spec = head.create_estimator_spec(features=features, mode=ModeKeys.PREDICT, labels=None, train_op_fn=no_op, logits=logits)
        spec.predictions[utils._DEBUG_PROTO_KEY] = trees.example_debug_outputs(handle, buckets, logits_dimension=head.logits_dimension)
    return spec


# ---- heads ----


def _create_classification_head(n_classes: Any, weight_column: Any = None, label_vocabulary: Any = None) -> _Head:
    if n_classes != 2:
        raise at_user_line(ValueError("For now only binary classification is supported.n_classes given as %s" % n_classes))
    return _binary_logistic_head_with_sigmoid_cross_entropy_loss(weight_column, label_vocabulary=label_vocabulary, loss_reduction=_MEAN)


def _create_classification_head_and_closed_form(n_classes: Any, weight_column: Any, label_vocabulary: Any) -> Tuple[_Head, Any]:
    """The head, and a function of the derivatives of its loss by the logits; None where the loss is to be differentiated."""
    head = _create_classification_head(n_classes, weight_column, label_vocabulary)

    def derivatives(logits: Any, labels: Any) -> Tuple[Any, Any]:
        predictions = gen_ops.reciprocal(gen_ops.exp(-logits) + 1.0)
        normalizer = gen_ops.reciprocal(math_ops.cast(array_ops.size(predictions), dtypes.float32))
        labels = checked_labels(math_ops.cast(labels, dtypes.float32), logits, head.logits_dimension)
        return (predictions - labels) * normalizer, predictions * (1.0 - predictions) * normalizer

    return head, derivatives if weight_column is None and label_vocabulary is None else None


def _create_regression_head(label_dimension: Any, weight_column: Any = None) -> _Head:
    if label_dimension != 1:
        raise at_user_line(ValueError("For now only 1 dimension regression is supported.label_dimension given as %s" % label_dimension))
    return _regression_head(weight_column, label_dimension, _MEAN)


# ---- estimators ----


class _BoostedTreesBase(Estimator):
    """What the estimators share: the model, what features are worth, and how predictions come about. `quantile_weights` names those of quantiles."""

    def __init__(
        self,
        head: _Head,
        feature_columns: Any,
        hparams: _TreeHParams,
        n_batches_per_layer: Any,
        model_dir: Optional[str] = None,
        config: Any = None,
        quantile_weights: Any = None,
        train_in_memory: bool = False,
        derivatives: Any = None,
    ) -> None:
        enable_resource_variables()
        columns = columns_of.sorted_columns(feature_columns)

        def model_fn(features: Any, labels: Any, mode: str, config: Any) -> EstimatorSpec:
            options = {"closed_form_grad_and_hess_fn": derivatives, "weight_column": quantile_weights, "train_in_memory": train_in_memory}
            return _bt_model_fn(features, labels, mode, head, columns, hparams, n_batches_per_layer, config, **options)

        super().__init__(model_fn=model_fn, model_dir=model_dir, config=config)
        self._head, self._hparams, self._sorted_feature_columns = head, hparams, columns
        self._feature_col_names = columns_of.names_of_features(columns)
        self._is_classification = isinstance(head, (_BinaryLogisticHeadWithSigmoidCrossEntropyLoss, _MultiClassHeadWithSoftmaxCrossEntropyLoss))

    def experimental_feature_importances(self, normalize: bool = False) -> Any:
        """How much each column has gained, the most first: an OrderedDict of names."""
        serialized = load_checkpoint(self.model_dir).get_tensor("boosted_trees:0_serialized")
        return utils.feature_importances(serialized, self._feature_col_names, normalize)

    def experimental_predict_with_explanations(
        self, input_fn: Any, predict_keys: Any = None, hooks: Any = None, checkpoint_path: Optional[str] = None
    ) -> Iterator[Dict[str, Any]]:
        """Predictions with "bias", what the model says of an example that it knows nothing of, and "dfc", what each column adds to that."""
        if not self._hparams.center_bias:
            raise at_user_line(ValueError("center_bias must be enabled during estimator instantiation when using experimental_predict_with_explanations."))
        if not self._is_classification and getattr(self._head, "_inverse_link", None) not in (None, array_ops.identity):
            raise at_user_line(ValueError("For now only identity inverse_link_fn in regression_head is supported for experimental_predict_with_explanations."))

        def model_fn(features: Any, labels: Any, mode: str) -> EstimatorSpec:
            return _bt_explanations_fn(features, self._head, self._sorted_feature_columns, self._hparams.quantile_sketch_epsilon)

        explaining = Estimator(model_fn, self.model_dir, self.config, warm_start_from=self._warm_start)
        keys = None if predict_keys is None else {*predict_keys, utils._DEBUG_PROTO_KEY}
        for prediction in explaining.predict(input_fn, keys, hooks, checkpoint_path):
            way = prediction.pop(utils._DEBUG_PROTO_KEY)
            bias, contributions = utils._parse_explanations_from_prediction(way, self._feature_col_names, self._is_classification)
            yield {**prediction, "bias": bias, "dfc": contributions}


class BoostedTreesEstimator(_BoostedTreesBase):
    """Boosted trees with any head of one logit."""

    def __init__(
        self,
        feature_columns: Any,
        n_batches_per_layer: Any,
        head: _Head,
        model_dir: Optional[str] = None,
        weight_column: Any = None,
        n_trees: int = 100,
        max_depth: int = 6,
        learning_rate: float = 0.1,
        l1_regularization: float = 0.0,
        l2_regularization: float = 0.0,
        tree_complexity: float = 0.0,
        min_node_weight: float = 0.0,
        config: Any = None,
        center_bias: bool = False,
        pruning_mode: str = "none",
        quantile_sketch_epsilon: float = 0.01,
    ) -> None:
        del weight_column  # the head's weights count, as in TensorFlow
        hparams = _TreeHParams(
            n_trees,
            max_depth,
            learning_rate,
            l1_regularization,
            l2_regularization,
            tree_complexity,
            min_node_weight,
            center_bias,
            pruning_mode,
            quantile_sketch_epsilon,
        )
        super().__init__(head, feature_columns, hparams, n_batches_per_layer, model_dir, config)


class BoostedTreesClassifier(_BoostedTreesBase):
    """Boosted trees that tell two classes apart."""

    def __init__(
        self,
        feature_columns: Any,
        n_batches_per_layer: Any,
        model_dir: Optional[str] = None,
        n_classes: Any = _DEFAULT,
        weight_column: Any = None,
        label_vocabulary: Any = None,
        n_trees: int = 100,
        max_depth: int = 6,
        learning_rate: float = 0.1,
        l1_regularization: float = 0.0,
        l2_regularization: float = 0.0,
        tree_complexity: float = 0.0,
        min_node_weight: float = 0.0,
        config: Any = None,
        center_bias: bool = False,
        pruning_mode: str = "none",
        quantile_sketch_epsilon: float = 0.01,
        train_in_memory: bool = False,
    ) -> None:
        head, derivatives = _create_classification_head_and_closed_form(_given(n_classes, 2), weight_column, label_vocabulary)
        hparams = _TreeHParams(
            n_trees,
            max_depth,
            learning_rate,
            l1_regularization,
            l2_regularization,
            tree_complexity,
            min_node_weight,
            center_bias,
            pruning_mode,
            quantile_sketch_epsilon,
        )
        super().__init__(head, feature_columns, hparams, n_batches_per_layer, model_dir, config, weight_column, train_in_memory, derivatives)


class BoostedTreesRegressor(_BoostedTreesBase):
    """Boosted trees that tell a number."""

    def __init__(
        self,
        feature_columns: Any,
        n_batches_per_layer: Any,
        model_dir: Optional[str] = None,
        label_dimension: Any = _DEFAULT,
        weight_column: Any = None,
        n_trees: int = 100,
        max_depth: int = 6,
        learning_rate: float = 0.1,
        l1_regularization: float = 0.0,
        l2_regularization: float = 0.0,
        tree_complexity: float = 0.0,
        min_node_weight: float = 0.0,
        config: Any = None,
        center_bias: bool = False,
        pruning_mode: str = "none",
        quantile_sketch_epsilon: float = 0.01,
        train_in_memory: bool = False,
    ) -> None:
        head = _create_regression_head(_given(label_dimension, 1), weight_column)
        hparams = _TreeHParams(
            n_trees,
            max_depth,
            learning_rate,
            l1_regularization,
            l2_regularization,
            tree_complexity,
            min_node_weight,
            center_bias,
            pruning_mode,
            quantile_sketch_epsilon,
        )
        super().__init__(head, feature_columns, hparams, n_batches_per_layer, model_dir, config, weight_column, train_in_memory)
