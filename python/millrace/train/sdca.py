# SPDX-License-Identifier: Apache-2.0
"""Linear models that stochastic dual coordinate ascent trains (Shalev-Shwartz and Zhang 2013)."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

from millrace import nn, summary
from millrace.framework import dtypes
from millrace.framework.composite_tensors import SparseTensor
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import control_dependencies, device, name_scope
from millrace.ops import array_ops, control_flow_ops, gen_ops, math_ops, matrix_ops
from millrace.ops.row_parts import RowParts
from millrace.ops.variables import Variable, assign_add, scatter_add
from millrace.train.hooks import SessionRunArgs, SessionRunHook
from millrace.train.sharded_tables import ShardedMutableDenseHashTable

_LOSSES = ("logistic_loss", "squared_loss", "hinge_loss", "smooth_hinge_loss", "poisson_loss")


class SparseFeatureColumn:
    """Features of a batch, each with its example, and a value unless all are 1."""

    def __init__(self, example_indices: Any, feature_indices: Any, feature_values: Any) -> None:
        with name_scope(None, "SparseFeatureColumn", [example_indices, feature_indices]):
            self._example_indices = convert_to_tensor(example_indices, dtypes.int64, name="example_indices")
            self._feature_indices = convert_to_tensor(feature_indices, dtypes.int64, name="feature_indices")
            self._feature_values = None if feature_values is None else convert_to_tensor(feature_values, dtypes.float32, name="feature_values")

    example_indices = property(lambda self: self._example_indices, doc="The numbers of the examples.")
    feature_indices = property(lambda self: self._feature_indices, doc="The numbers of the features.")
    feature_values = property(lambda self: self._feature_values, doc="The values, or None.")


def classes_of_examples(classes: SparseTensor, weights: Optional[SparseTensor] = None) -> SparseFeatureColumn:
    """Numbers of classes as features: an example has each once, with how often it came (or with the sum of its weights). Numbers below 0 stand for none."""
    numbers = math_ops.to_int64(array_ops.reshape(classes.values, [-1]))
    values = array_ops.ones_like(numbers, dtypes.float32) if weights is None else math_ops.to_float(array_ops.reshape(weights.values, [-1]))
    known = array_ops.reshape(array_ops.where(gen_ops.greater_equal(numbers, 0)), [-1])
    examples, numbers, values = (array_ops.gather(x, known) for x in (classes.indices[:, 0], numbers, values))
    limit = math_ops.reduce_max(array_ops.concat([numbers, [0]], 0)) + 1
    pairs, at = gen_ops.unique(examples * limit + numbers)
    return SparseFeatureColumn(
        gen_ops.floor_div(pairs, limit), gen_ops.floor_mod(pairs, limit), gen_ops.unsorted_segment_sum(values, at, array_ops.size(pairs))
    )


def _slots(weights: RowParts) -> RowParts:
    """As many zeros, in variables beside them."""
    made = []
    for part in weights.parts:
        with device(part.device):
            made.append(Variable(array_ops.zeros_like(part.initialized_value(), dtypes.float32), name=part.op.name + "_unshrinked/SDCAOptimizer"))
    return RowParts(made)


def _total(weights: List[RowParts], of_each: Any) -> Any:
    """The sum of a function of each weight."""
    return math_ops.add_n([math_ops.reduce_sum(of_each(math_ops.cast(part, dtypes.float64))) for w in weights for part in w.parts])


class SdcaModel:
    """A linear model, and what trains it: minimize once a batch of examples, update_weights where the weights are to be used.

    Examples have sparse_features (a list of SparseFeatureColumn), dense_features (a list of [examples, features]), example_labels, example_weights and
    example_ids, which tell an example that comes again; the variables are sparse_features_weights and dense_features_weights, one (or a list of parts)
    for each. Options: loss_type, symmetric_l1_regularization, symmetric_l2_regularization (over all examples; training takes at least 1), adaptive,
    num_loss_partitions (how many optimizers work on the model at once) and num_table_shards."""

    def __init__(self, examples: Dict[str, Any], variables: Dict[str, Any], options: Dict[str, Any]) -> None:
        if not examples or not variables or not options:
            raise at_user_line(ValueError("examples, variables and options must all be specified."))
        if options["loss_type"] not in _LOSSES:
            raise at_user_line(ValueError("Unsupported loss_type: %s" % options["loss_type"]))
        _check(examples, ("example_labels", "example_weights", "example_ids"), ("sparse_features", "dense_features"))
        _check(variables, (), ("sparse_features_weights", "dense_features_weights"))
        for name in ("symmetric_l1_regularization", "symmetric_l2_regularization"):
            if options[name] < 0.0:
                raise at_user_line(ValueError("%s should be non-negative. Found (%f)" % (name, options[name])))
        self._examples, self._options = examples, options
        self._sparse = [RowParts(v) for v in variables["sparse_features_weights"]]
        self._dense = [RowParts(v) for v in variables["dense_features_weights"]]
        self._sparse_slots, self._dense_slots = [_slots(w) for w in self._sparse], [_slots(w) for w in self._dense]
        self._hashtable = ShardedMutableDenseHashTable(
            dtypes.int64,
            dtypes.float32,
            default_value=[0.0, 0.0, 0.0, 0.0],
            empty_key=[0, 0],  # no fingerprint begins with 0 or 1
            num_shards=options.get("num_table_shards") or 1,
        )
        summary.scalar("approximate_duality_gap", self.approximate_duality_gap())
        summary.scalar("examples_seen", self._hashtable.size())

    @property
    def _trained_l2(self) -> float:
        return max(self._options["symmetric_l2_regularization"], 1.0)

    def _l1_loss(self) -> Any:
        with name_scope("sdca/l1_loss"):
            return self._options["symmetric_l1_regularization"] * _total(self._sparse + self._dense, math_ops.abs)

    def _l2_loss(self, l2: float) -> Any:
        with name_scope("sdca/l2_loss"):
            return l2 * _total(self._sparse + self._dense, math_ops.square) / 2.0

    # ---- training ----

    def minimize(self, global_step: Any = None, name: Optional[str] = None) -> Any:
        """An operation that makes one pass over the batch, and counts a step."""
        with name_scope(name, "sdca/minimize"):
            columns = self._examples["sparse_features"]
            keys = gen_ops.sdca_fprint(convert_to_tensor(self._examples["example_ids"], dtypes.string))
            features = [gen_ops.unique(column.feature_indices)[0] for column in columns]
            state, sparse_changes, dense_changes = gen_ops.sdca_optimizer_v2(
                [column.example_indices for column in columns],
                [column.feature_indices for column in columns],
                [column.feature_values for column in columns if column.feature_values is not None],
                [convert_to_tensor(x) for x in self._examples["dense_features"]],
                convert_to_tensor(self._examples["example_weights"]),
                convert_to_tensor(self._examples["example_labels"]),
                features,
                [slot.gather(indices) for slot, indices in zip(self._sparse_slots, features)],
                [slot.whole() for slot in self._dense_slots],
                self._hashtable.lookup(keys),
                loss_type=self._options["loss_type"],
                l1=self._options["symmetric_l1_regularization"],
                l2=self._trained_l2,
                num_loss_partitions=self._options.get("num_loss_partitions", 1),
                num_inner_iterations=1,
                adaptive=self._options.get("adaptive", True),
            )
            with control_dependencies([state]):
                updates = [self._hashtable.insert(keys, state)]
                for slot, indices, change in zip(self._sparse_slots, features, sparse_changes):
                    updates += slot.scatter(scatter_add, indices, change)
                for slot, change in zip(self._dense_slots, dense_changes):
                    updates += [part.assign_add(of_part) for part, of_part in zip(slot.parts, slot.split(change))]
            if global_step is None:
                return control_flow_ops.group(*updates)
            with control_dependencies(updates):
                return assign_add(global_step, 1, name=name).op

    def update_weights(self, train_op: Any) -> Any:
        """An operation that gives the variables what `train_op` has found, shrunk by L1."""
        by = self._options["symmetric_l1_regularization"] / self._trained_l2
        with control_dependencies([train_op]):
            updates = []
            for weights, slots in zip(self._sparse + self._dense, self._sparse_slots + self._dense_slots):
                updates += [part.assign(_shrunk(convert_to_tensor(slot), by)) for part, slot in zip(weights.parts, slots.parts)]
            return control_flow_ops.group(*updates)

    # ---- what it has learned ----

    def approximate_duality_gap(self) -> Any:
        """How far the loss is from the best one at most, per weight of examples; not a number where there were none."""
        with name_scope("sdca/approximate_duality_gap"):
            _, states = self._hashtable.export_sharded()
            _, primal, dual, weights = array_ops.unstack(math_ops.add_n([math_ops.reduce_sum(math_ops.to_double(part), 0) for part in states]), 4)
            return (primal + dual + self._l1_loss() + 2.0 * self._l2_loss(self._trained_l2)) / weights

    def _linear_predictions(self, examples: Dict[str, Any]) -> Any:
        with name_scope("sdca/prediction"):
            made: Any = 0.0
            for column, weights in zip(examples["sparse_features"], self._sparse):
                found = array_ops.gather(weights.whole(), column.feature_indices)
                made += gen_ops.segment_sum(found if column.feature_values is None else found * column.feature_values, column.example_indices)
            for x, weights in zip(examples["dense_features"], self._dense):
                made += array_ops.squeeze(matrix_ops.matmul(convert_to_tensor(x), array_ops.expand_dims(weights.whole(), -1)), [1])
            return made

    def predictions(self, examples: Dict[str, Any]) -> Any:
        """Probabilities of a logistic model, numbers to expect of a Poisson one; of others sums of features times weights."""
        _check(examples, ("example_weights",), ("sparse_features", "dense_features"))
        made = self._linear_predictions(examples)
        if self._options["loss_type"] == "logistic_loss":
            return math_ops.sigmoid(made)
        return gen_ops.exp(made) if self._options["loss_type"] == "poisson_loss" else made

    def unregularized_loss(self, examples: Dict[str, Any]) -> Any:
        """The mean loss of examples, by their weights. That of smooth_hinge_loss is the hinge's, as in TensorFlow."""
        _check(examples, ("example_labels", "example_weights"), ("sparse_features", "dense_features"))
        with name_scope("sdca/unregularized_loss"):
            predictions = math_ops.cast(self._linear_predictions(examples), dtypes.float64)
            labels = math_ops.cast(convert_to_tensor(examples["example_labels"]), dtypes.float64)
            weights = math_ops.cast(convert_to_tensor(examples["example_weights"]), dtypes.float64)
            loss_type = self._options["loss_type"]
            if loss_type == "logistic_loss":
                each = nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=predictions)
            elif loss_type == "poisson_loss":
                each = nn.log_poisson_loss(labels, predictions)
            elif loss_type == "squared_loss":
                each = math_ops.square(labels - predictions) / 2.0
            else:
                each = nn.relu(1.0 - (2.0 * labels - 1.0) * predictions)
            return math_ops.reduce_sum(each * weights) / math_ops.reduce_sum(weights)

    def regularized_loss(self, examples: Dict[str, Any]) -> Any:
        """unregularized_loss and the mean of what weights cost, by the L2 that was asked for."""
        with name_scope("sdca/regularized_loss"):
            weights = math_ops.cast(convert_to_tensor(examples["example_weights"]), dtypes.float64)
            cost = self._l1_loss() + self._l2_loss(self._options["symmetric_l2_regularization"])
            return cost / math_ops.reduce_sum(weights) + self.unregularized_loss(examples)


def _check(given: Dict[str, Any], values: Any, lists: Any) -> None:
    for name in (*values, *lists):
        if given[name] is None:
            raise at_user_line(ValueError("%s must be specified." % name))
    for name in lists:
        if not isinstance(given[name], list):
            raise at_user_line(ValueError("%s must be a list." % name))


def _shrunk(weights: Any, by: float) -> Any:
    return math_ops.sign(weights) * gen_ops.maximum(math_ops.abs(weights) - by, 0.0)


class UpdateWeightsHook(SessionRunHook):
    """Gives the variables of a model after each step what the step has found."""

    def __init__(self, model: SdcaModel, train_op: Any) -> None:
        self._model, self._train_op = model, train_op

    def begin(self) -> None:
        """Makes the operation."""
        self._update_op = self._model.update_weights(self._train_op)

    def before_run(self, run_context: Any) -> SessionRunArgs:
        """Asks for it."""
        del run_context  # every step is one
        return SessionRunArgs(self._update_op)


def model_of_columns(
    sparse: List[Tuple[SparseFeatureColumn, Any]],
    dense: List[Tuple[Any, Any]],
    features: Dict[Any, Any],
    labels: Any,
    weight_column_name: Optional[str],
    example_id_column: Any,
    options: Dict[str, Any],
) -> SdcaModel:
    """The model of pairs of a column and its weights; other features tell what examples count (1 without a name) and which they are."""
    examples = {
        "sparse_features": [column for column, _ in sparse],
        "dense_features": [x for x, _ in dense],
        "example_labels": labels,
        "example_weights": array_ops.reshape(features[weight_column_name], [-1]) if weight_column_name else array_ops.ones_like(labels),
        "example_ids": features[example_id_column],
    }
    variables = {"sparse_features_weights": [v for _, v in sparse], "dense_features_weights": [v for _, v in dense]}
    return SdcaModel(examples, variables, options)
