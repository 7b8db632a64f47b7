# SPDX-License-Identifier: Apache-2.0
"""tf.keras.Model: layers that are trained together."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional

import numpy as np

from millrace import tf_logging
from millrace.framework import nest
from millrace.framework.composite_tensors import CompositeTensor
from millrace.framework.convert import convert_to_tensor
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Tensor, name_scope
from millrace.framework.strategy_base import get_strategy, has_strategy
from millrace.keras import backend as K
from millrace.keras import losses, optimizers, optimizers_v1
from millrace.keras import metrics as metrics_module
from millrace.keras.engine import training_data as data
from millrace.keras.engine.composites import fed_as
from millrace.keras.loss_scale_optimizer import LossScaleOptimizer
from millrace.keras.metric_base import MeanMetricWrapper
from millrace.keras.optimizer_base import Optimizer
from millrace.keras.utils.generic_utils import slice_arrays
from millrace.keras.utils.losses_utils import reduce_weighted_loss
from millrace.layers.base import Layer, is_keras_tensor, needed_arguments
from millrace.keras.engine.inputs import Input, input_like
from millrace.layers.nodes import listed, one_or_all, reachable_from, shape_tuple, with_leaves
from millrace.keras.engine.network import Network
from millrace.keras.engine.saving import SavedWeights
from millrace.keras.engine.training_loops import TrainingLoops
from millrace.keras.engine.training_streams import is_data_set
from millrace.keras.engine.training_utils import weighted_masked_objective as _weighted_masked_objective  # noqa: F401
from millrace.ops import array_ops, math_ops
from millrace.ops.variables import Variable

_check_array_lengths, _slice_arrays, _standardize_input_data = data.check_array_lengths, slice_arrays, data.standardize_input_data
_standardize_weights = data.standardize_weights


def _as_wide(weights: Any, values: Any) -> Any:
    """Weights with as many dimensions as values: of 1 behind, or without a last one of 1."""
    have, want = K.ndim(weights) or 0, K.ndim(values)
    if want is not None and have - want == 1 and want:
        return array_ops.squeeze(weights, [-1])
    for _ in range((want or 0) - have):
        weights = array_ops.expand_dims(weights, -1)
    return weights


def _loss_of(function: Any, y_true: Any, y_pred: Any, weights: Any, mask: Any) -> Any:
    """A loss as one number: that of all examples, steps and so on times their weights, where the mask is, divided by how many all are."""
    each = function.call(y_true, y_pred) if isinstance(function, losses.Loss) else function(y_true, y_pred)
    weights = math_ops.cast(weights, each.dtype.base_dtype)
    if mask is not None:
        weights = _as_wide(weights, mask) * math_ops.cast(mask, each.dtype.base_dtype)
    reduction = function.reduction if isinstance(function, losses.Loss) else losses.Reduction.AUTO
    return reduce_weighted_loss(each * _as_wide(weights, each), losses.Reduction.SUM_OVER_BATCH_SIZE if reduction == losses.Reduction.AUTO else reduction)


def _accuracy_for(loss: Any, shape: Any) -> Callable[..., Any]:
    """Which accuracy goes with a loss and the outputs' shape."""
    if loss is losses.sparse_categorical_crossentropy or isinstance(loss, losses.SparseCategoricalCrossentropy):
        return metrics_module.sparse_categorical_accuracy
    if shape[-1] == 1 or loss is losses.binary_crossentropy or isinstance(loss, losses.BinaryCrossentropy):
        return metrics_module.binary_accuracy
    return metrics_module.categorical_accuracy


def _values(*given: Any) -> Any:
    """Arrays as they are, of tensors their values; of a data set as the first one its first batch."""
    if is_data_set(given[0]):
        first = K.get_session().run(given[0].make_one_shot_iterator().get_next())
        parts = first if isinstance(first, tuple) else (first,)
        return (*parts, *given[len(parts) :])[: len(given)]
    return with_leaves(lambda x: K.get_session().run(x) if data.has_tensors(x) else x, given)


def _copied(metric: Any) -> Any:
    """A metric of its own for each output; what does not count over batches may be shared."""
    return type(metric).from_config(metric.get_config()) if isinstance(metric, metrics_module.Metric) else metric


def _collect(given: Any, names: List[str], what: str) -> List[Any]:
    """Settings of outputs (a list of each) from one for all, a list or a dictionary by name."""
    if not given:
        return [[] for _ in names]
    if isinstance(given, (list, tuple)) and any(isinstance(m, (list, tuple)) for m in given):
        if len(given) != len(names):
            raise at_user_line(
                ValueError(
                    "When passing a list of lists as `%s`, it should have one entry per model output. The model has %d outputs, but you passed %s=%s"
                    % (what, len(names), what, given)
                )
            )
        return [listed(m) for m in given]
    if isinstance(given, (list, tuple)):
        return [[_copied(m) if len(names) > 1 else m for m in given] for _ in names]
    if isinstance(given, dict):
        data.only_known(given, names, what)
        return [listed(given.get(name)) for name in names]
    raise at_user_line(TypeError("Type of `%s` argument not understood. Expected a list or dictionary, found: %s" % (what, given)))


def _per_output(given: Any, names: List[str], what: str, default: Any) -> List[Any]:
    if given is None:
        return [default] * len(names)
    if isinstance(given, dict):
        data.only_known(given, names, what)
        return [given.get(name, default) for name in names]
    if isinstance(given, (list, tuple)):
        if len(given) != len(names):
            raise at_user_line(
                ValueError(
                    "When passing a list as %s, it should have one entry per model output. The model has %d outputs, but you passed %s=%s"
                    % (what, len(names), what, given)
                )
            )
        return list(given)
    if what == "loss_weights":
        raise at_user_line(TypeError("Could not interpret loss_weights argument: %s - expected a list of dicts." % (given,)))
    return [given] * len(names)


class Model(TrainingLoops, SavedWeights, Network):
    """What leads from inputs to outputs, and is trained. A subclass makes layers in __init__ and connects them in call."""

    optimizer: Any = None
    predict_function: Any = None  # these three are there once they are made
    test_function: Any = None
    train_function: Any = None

    def __init__(self, inputs: Any = None, outputs: Any = None, name: Optional[str] = None, **kwargs: Any) -> None:
        if outputs is None and inputs is not None and not any(isinstance(x, (Tensor, CompositeTensor)) for x in nest.flatten(inputs)):
            inputs, name = None, inputs if isinstance(inputs, str) else name  # of a subclass the first argument is its name, as in 1.15
        super().__init__(inputs, outputs, name, **kwargs)
        self.history: Any = None
        self.stop_training = False
        self._functions: Dict[str, Any] = {}
        self._fetches_of_tests: Dict[Any, Callable[[Any], None]] = {}  # what evaluations fetch beside the measures, and who takes it

    def _build_for(self, x: Any) -> None:
        """Connects a model that is a subclass, by inputs like these arrays."""
        if getattr(self, "inputs", None) is None:
            self._set_inputs({name: input_like(x[name], name) for name in sorted(x)} if isinstance(x, dict) else [input_like(a) for a in listed(x)])

    def _check_call(self, method: str) -> None:
        """ValueError where call needs more than inputs: training gives it nothing else."""
        needed = [] if self._has_config else needed_arguments(self.call)
        if needed:
            raise at_user_line(
                ValueError(
                    "Models passed to `%s` can only have `training` and the first argument in `call` as positional arguments, found: %s." % (method, needed)
                )
            )

    def _set_inputs(self, inputs: Any, outputs: Any = None, training: Any = None) -> None:
        """Connects a model that is a subclass to an Input, several in a list, or in a dictionary by name; of arrays to inputs like them."""
        inputs = with_leaves(lambda x: x if is_keras_tensor(x) else Input(tensor=x) if isinstance(x, Tensor) else input_like(x), inputs)
        told = {} if training is None else {"training": training}
        made = self(inputs if isinstance(inputs, dict) else one_or_all(listed(inputs)), **told) if outputs is None else outputs
        names = list(inputs) if isinstance(inputs, dict) else ["input_%d" % (i + 1) for i in range(len(listed(inputs)))]
        inputs = list(inputs.values()) if isinstance(inputs, dict) else listed(inputs)
        self.inputs, self.outputs = inputs, nest.flatten(made)
        self._input_layers = [t._keras_history.layer for t in inputs]
        self.input_names = self._feed_input_names = names
        self._feed_inputs, self._feed_input_shapes = inputs, [shape_tuple(t) for t in inputs]
        self.output_names = ["output_%d" % (i + 1) for i in range(len(self.outputs))]
        if self.optimizer is not None:
            self._make_losses()

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """The outputs for inputs."""
        made = super().__call__(inputs, *args, **kwargs)
        self._restore_new_variables()
        return made

    def _training_of_parent(self) -> Dict[str, Any]:
        return super()._training_of_parent() or ({} if self._has_config else {"training": K.learning_phase()})

    # ---- what is trained ----

    def compile(
        self,
        optimizer: Any,
        loss: Any = None,
        metrics: Any = None,
        loss_weights: Any = None,
        sample_weight_mode: Any = None,
        weighted_metrics: Any = None,
        target_tensors: Any = None,
        **unused: Any,
    ) -> None:
        """Chooses how it is trained. ValueError for run_eagerly=True."""
        self.run_eagerly = unused.get("run_eagerly")
        self._check_strategy()
        self.optimizer = self._scaled(optimizers.get(optimizer))
        self._compiled_trainability = {id(part): part._trainable for part in self._all_layers()}
        self.loss, self.loss_weights, self.sample_weight_mode = loss or [], loss_weights, sample_weight_mode
        self._compile_metrics, self._compile_weighted_metrics, self._given_targets = metrics, weighted_metrics, target_tensors
        if not loss and not getattr(self, "losses", None):
            raise at_user_line(ValueError("The model cannot be compiled because it has no loss to optimize."))
        if getattr(self, "outputs", None):
            self._make_losses()

    @staticmethod
    def _target(given: Any, output: Any, name: str, function: Any) -> Any:
        """What an output is compared with: a tensor that was given, or else a placeholder, outside of the scope of losses as in 1.15."""
        if given is not None:
            return convert_to_tensor(given)
        rank, integers = K.ndim(output), function is losses.sparse_categorical_crossentropy
        kind = "int64" if integers else K.floatx() if not output.dtype.is_floating else output.dtype.base_dtype.name
        return K.placeholder(None if integers or not rank else [None] * rank, dtype=kind, name=name + "_target")

    def _check_strategy(self) -> None:
        """ValueError within a strategy for variables that were made outside of it."""
        strategy = get_strategy()
        other = next((v for v in self.variables if not strategy.extended.variable_created_in_scope(v)), None) if has_strategy() else None
        if other is not None:
            message = "Variable (%s) was not created in the distribution strategy scope of (%s). Make the layers, the model and its optimizer within the scope."
            raise at_user_line(ValueError(message % (other, strategy)))

    def _scaled(self, optimizer: Any) -> Any:
        """An optimizer that scales the loss as the model's policy says."""
        scale = self._dtype_policy.loss_scale
        if scale is None:
            return optimizer
        if not isinstance(optimizer, LossScaleOptimizer):
            if not isinstance(optimizer, Optimizer) or isinstance(optimizer, optimizers_v1.Optimizer):
                raise at_user_line(
                    ValueError(
                        '"optimizer" must be an instance of tf.keras.optimizers.Optimizer when a dype policy with a loss scale  used, but got: %s. '
                        "Using policy: %s" % (optimizer, self._dtype_policy)
                    )
                )
            return LossScaleOptimizer(optimizer, scale)
        if optimizer.loss_scale is not scale:
            tf_logging.warning(
                "LossScale of LossScaleOptimizer passed to compile (%s) is not the same as the dtype policy's loss scale (%s). Because the dtype policy has a "
                "loss scale, you should pass an optimizer that is not wrapped with a LossScaleOptimizer," % (optimizer.loss_scale, scale)
            )
        return optimizer

    def _make_losses(self) -> None:
        names, outputs = self.output_names, self.outputs
        given = self.loss
        if isinstance(given, dict):
            data.only_known(given, names, "loss")
            functions = [losses.get(given.get(name)) for name in names]
            for name in (n for n in names if n not in given):
                tf_logging.warning(
                    "Output %s missing from loss dictionary. We assume this was done on purpose. The fit and evaluate APIs will not be expecting any "
                    "data to be passed to %s." % (name, name)
                )
        elif isinstance(given, (list, tuple)) and given:
            if len(given) != len(names):
                raise at_user_line(
                    ValueError(
                        "When passing a list as loss, it should have one entry per model outputs. The model has %d outputs, but you passed "
                        "loss=%s" % (len(names), given)
                    )
                )
            functions = [losses.get(f) for f in given]
        else:
            functions = [losses.get(given) if given else None] * len(names)
        shares = _per_output(self.loss_weights, names, "loss_weights", 1.0)
        modes = (
            _per_output(self.sample_weight_mode, names, "sample_weight_mode", None)
            if self.sample_weight_mode != []
            else _per_output([], names, "sample_weight_mode", None)
        )
        given_targets = [self._given_targets] if isinstance(self._given_targets, (Tensor, Variable)) else self._given_targets
        if given_targets is not None and not isinstance(given_targets, (list, tuple, dict)):
            raise at_user_line(TypeError("Expected `target_tensors` to be a tensor, a list or tuple, or a dictionary, but got: %s" % (given_targets,)))
        targets = _per_output(given_targets, names, "target_tensors", None)
        masks = [getattr(x, "_keras_mask", None) for x in outputs]
        per_output, weighted = _collect(self._compile_metrics, names, "metrics"), _collect(self._compile_weighted_metrics, names, "metrics")
        self._plain_losses, self._loss_weights_list, self.sample_weight_modes = functions, [float(share) for share in shares], modes
        self.loss_functions = [f if f is None or isinstance(f, losses.Loss) else losses.LossFunctionWrapper(f) for f in functions]
        self.targets, self.sample_weights, self._feed_targets, self._fed_outputs = [], [], [], []  # type: ignore[var-annotated]
        self._feed_sample_weights: List[Any] = []
        self._feed_output_names: List[str] = []
        parts, total = [], None
        self.metrics_names: List[str] = ["loss"]
        self._measures: List[Any] = []
        self._counting: Dict[int, Any] = {}  # metrics, which count over batches, by their place among the measures: all but the loss
        given = [f if f is None else self._target(*of) for f, *of in zip(functions, targets, outputs, names, functions)]
        with name_scope("loss"):
            for i, (y, name, function, share, mode) in enumerate(zip(outputs, names, functions, shares, modes)):
                if function is None:
                    self.targets.append(None)
                    self.sample_weights.append(None)  # type: ignore[arg-type]
                    continue
                target = given[i]
                self._feed_targets.append(target if targets[i] is None or K.is_placeholder(target) else None)
                weights = array_ops.placeholder_with_default(
                    np.ones([1] * (2 if mode == "temporal" else 1), np.float32), [None] * (2 if mode == "temporal" else 1), name=name + "_sample_weights"
                )
                self.targets.append(target)
                self.sample_weights.append(weights)
                self._fed_outputs.append(i)
                self._feed_output_names.append(name)
                self._feed_sample_weights.append(weights)
                with name_scope(name + "_loss"):
                    part = _loss_of(function, target, y, weights, masks[i] if i < len(masks) else None)
                parts.append(part)
                if len(outputs) > 1:
                    self.metrics_names.append(name + "_loss")
                    self._counting[len(self._measures) + 1] = mean = metrics_module.Mean(name + "_loss")
                    self._measures.append(mean(part))
                part = part if share == 1.0 else part * share
                total = part if total is None else total + part
            penalties = self.get_losses_for(None) + self.get_losses_for(self.inputs)
            if penalties:
                penalty = math_ops.add_n(penalties)
                total = penalty if total is None else total + penalty
        if total is None:
            raise at_user_line(ValueError("The model cannot be compiled because it has no loss to optimize."))
        self.total_loss = total
        self._chosen_metrics: List[Any] = []
        with name_scope("metrics"):
            for i, name in enumerate(names):
                if functions[i] is None:
                    continue
                for metric, weights in [(m, None) for m in per_output[i]] + [(m, self.sample_weights[i]) for m in weighted[i]]:  # type: ignore[assignment]
                    self._measure(metric, i, name, functions[i], masks[i] if i < len(masks) else None, weights)
            for metric, value in self._pairs_of_layers():
                self._counting[len(self._measures) + 1] = metric
                self.metrics_names.append(metric.name)
                self._measures.append(value)
        self._measures = [self.total_loss, *self._measures]
        self._functions = {}
        self.predict_function = self.test_function = self.train_function = None
        self._collected_trainable_weights = list(dict.fromkeys(self.trainable_weights))

    def _pairs_of_layers(self) -> List[Any]:
        """(metric, what it gives with a batch) of the layers: those that are attributes of a layer before others, and of calls for other inputs none."""
        found: List[Any] = []
        for part in self._with_layers_within():
            pairs = getattr(part, "_added_metrics", [])
            held = [id(metric) for metric in part._attributes(metrics_module.Metric)] if pairs else []
            found += sorted(pairs, key=lambda pair: held.index(id(pair[0])) if id(pair[0]) in held else len(held))
        if not getattr(self, "inputs", None):
            return found
        here = reachable_from(self.inputs, [value for _, value in found])
        counted = {id(metric) for (metric, _), reached in zip(found, here) if reached}
        return [pair for pair, reached in zip(found, here) if reached or id(pair[0]) not in counted]

    def _with_layers_within(self) -> List[Any]:
        """The model and the layers of which it is made, in their order, those of a layer behind it."""
        found: Dict[int, Any] = {}

        def walk(part: Any) -> None:
            if id(part) not in found:
                found[id(part)] = part
                for inner in part._parts():
                    walk(inner)

        walk(self)
        return list(found.values())

    @property
    def metrics(self) -> List[Any]:
        """The metrics that it was compiled with, and those that layers have added."""
        return [*getattr(self, "_chosen_metrics", []), *dict.fromkeys(metric for metric, _ in self._pairs_of_layers())]

    def reset_metrics(self) -> None:
        """Lets metrics that count over batches start again."""
        if getattr(self, "_counting", None):
            K.get_session()  # they have first values
            plain = [m for m in self._counting.values() if type(m).reset_states is metrics_module.Metric.reset_states]
            K.batch_set_value([(v, np.zeros(v.get_shape().as_list(), v.dtype.base_dtype.as_numpy_dtype)) for m in plain for v in m.weights])
            for metric in self._counting.values():
                if not any(metric is m for m in plain):
                    metric.reset_states()

    def _measure(self, metric: Any, i: int, name: str, loss: Any, mask: Any, weights: Any) -> None:
        if metric in ("accuracy", "acc", "crossentropy", "ce"):
            accuracy = metric in ("accuracy", "acc")
            function = (
                _accuracy_for(loss, shape_tuple(self.outputs[i]))
                if accuracy
                else {
                    metrics_module.sparse_categorical_accuracy: losses.sparse_categorical_crossentropy,
                    metrics_module.binary_accuracy: losses.binary_crossentropy,
                }.get(_accuracy_for(loss, shape_tuple(self.outputs[i])), losses.categorical_crossentropy)
            )
            label = "acc" if accuracy else "ce"
        else:
            function = metrics_module.get(metric)
            if isinstance(function, metrics_module.Metric):
                self._count_over_batches(function, i, name, mask, weights)
                return
            label = getattr(function, "__name__", type(metric).__name__)
        self._count_over_batches(MeanMetricWrapper(function, label), i, name, mask, weights)

    def _count_over_batches(self, metric: Any, i: int, name: str, mask: Any, weights: Any) -> None:
        """Adds a metric that counts over batches itself; it takes the place of one of its name."""
        label = ("" if weights is None else "weighted_") + metric.name
        label = label if len(self.output_names) == 1 else "%s_%s" % (name, label)
        if mask is not None:
            mask = math_ops.cast(mask, self.outputs[i].dtype.base_dtype)
            weights = mask if weights is None else mask * _as_wide(weights, mask)
        made = metric(self.targets[i], self.outputs[i], sample_weight=weights)
        if label in self.metrics_names[1:]:
            at = self.metrics_names.index(label, 1)
            self._chosen_metrics[self._chosen_metrics.index(self._counting[at])] = metric
            self._counting[at], self._measures[at - 1] = metric, made
            return
        self._chosen_metrics.append(metric)
        self._counting[len(self._measures) + 1] = metric  # the loss comes before all
        self.metrics_names.append(label)
        self._measures.append(made)

    def _all_layers(self) -> List[Any]:
        """The model and all layers that it is made of."""
        return [part for part in (self, *self.submodules) if isinstance(part, Layer)]

    def _operations(self) -> Any:
        """What a training step runs: it trains what was to be trained when the model was compiled."""
        if "train" not in self._functions:
            self._check_compiled()
            now = [(part, part._trainable) for part in self._all_layers()]
            for part, trainable in now:
                part._trainable = self._compiled_trainability.get(id(part), trainable)
            try:
                with name_scope("training"):
                    steps = self.optimizer.get_updates(self.total_loss, self._collected_trainable_weights)
                self._functions["train"] = [steps, self.get_updates_for(None), self.get_updates_for(self.inputs)]
            finally:
                for part, trainable in now:
                    part._trainable = trainable
            self._restore_new_variables()
        return self._functions["train"]

    def _make_predict_function(self) -> None:
        """Makes predict_function, which takes a list of arrays for the inputs and gives the outputs: it may be made before threads predict."""
        if self.predict_function is None:
            self.predict_function = K.function(list(self._feed_inputs), list(self.outputs), [self.state_updates])

    def _make_test_function(self) -> None:
        """Makes test_function: of arrays for inputs and targets, the loss and the metrics."""
        self._check_compiled()
        if self.test_function is None:
            self.test_function = K.function(self._fed_by_functions(), list(self._measures), [self.state_updates])

    def _make_train_function(self) -> None:
        """Makes train_function, which trains too; the learning phase comes last where it is fed."""
        steps = self._operations()
        if self.train_function is None:
            phase = K.learning_phase()
            fed = self._fed_by_functions() + ([] if isinstance(phase, (bool, int)) else [phase])
            self.train_function = K.function(fed, list(self._measures), [steps])

    def _fed_by_functions(self) -> List[Any]:
        return [*self._feed_inputs, *(t for t in self._feed_targets if t is not None)]

    def _check_compiled(self) -> None:
        if self.optimizer is None:
            raise at_user_line(RuntimeError("You must compile your model before training/testing. Use `model.compile(optimizer, loss)`."))

    @property
    def _is_compiled(self) -> bool:
        return self.optimizer is not None

    @property
    def _feed_outputs(self) -> List[Any]:
        return [self.outputs[i] for i in self._fed_outputs]

    @property
    def run_eagerly(self) -> bool:
        """Whether `call` runs as Python, batch by batch: never. ValueError where it is set to True, as in graphs of 1.15."""
        return False

    @run_eagerly.setter
    def run_eagerly(self, value: Any) -> None:
        if value:
            raise at_user_line(ValueError("You can only set `run_eagerly=True` if eager execution is enabled."))

    # ---- what is fed ----

    def _phase(self, training: bool) -> Dict[Any, Any]:
        phase = K.learning_phase()
        return {} if isinstance(phase, (bool, int)) else {phase: training}

    def _feeds(self, x: List[Any], y: Any = None, weights: Any = None, training: bool = False) -> Dict[Any, Any]:
        feeds = {t: v for t, v in zip(self._feed_inputs, x) if v is not None}
        if y is not None:
            feeds.update((t, v) for t, v in zip(self._feed_targets, y) if t is not None and v is not None)
        if weights is not None:
            feeds.update((t, v) for t, v in zip(self._feed_sample_weights, weights) if v is not None)
        return {**feeds, **self._phase(training)}

    def _standardized_inputs(self, x: Any) -> List[Any]:
        """A value for each input, as it is fed."""
        values = data.standardize_input_data(x, self._feed_input_names, self._feed_input_shapes, False, "input")
        return [fed_as(value, tensor) for value, tensor in zip(values, self._feed_inputs)]

    def _standardize_user_data(
        self,
        x: Any,
        y: Any,
        sample_weight: Any = None,
        class_weight: Any = None,
        check_batch_axis: bool = True,
        batch_size: Optional[int] = None,
        of_data_set: bool = False,
    ) -> Any:
        """(inputs, targets, weights) as lists of arrays. What a data set gives need not have the outputs' shapes: losses may broadcast."""
        self._check_compiled()
        self._build_for(x)
        nothing = not self._feed_input_names and (isinstance(x, dict) or isinstance(x, (list, tuple)) and not x)
        inputs = self._standardized_inputs(None if nothing else x)
        fed = [n for n, t in zip(self._feed_output_names, self._feed_targets) if t is not None]
        if isinstance(y, dict):
            y = {k: v for k, v in y.items() if k in fed}
        given = data.standardize_input_data(y, fed, None, check_batch_axis=False, exception_prefix="target") if fed or y is not None else []
        rest = list(given)
        targets = [None if t is None else rest.pop(0) for t in self._feed_targets]
        by_output = data.standardize_sample_weights(sample_weight, self._feed_output_names)
        by_class = data.standardize_class_weights(class_weight, self._feed_output_names)
        modes = [self.sample_weight_modes[i] for i in self._fed_outputs]
        weights = [None if t is None else data.standardize_weights(t, w, c, mode) for t, w, c, mode in zip(targets, by_output, by_class, modes)]
        present = [a for a in inputs if a is not None]
        if present and any(t is not None for t in targets):
            data.check_array_lengths(present, [t for t in targets if t is not None], [w for w in weights if w is not None])
        if not of_data_set and self._is_graph_network:  # a subclassed model is not checked, as in 1.15
            shapes = [shape_tuple(self.outputs[i]) for i in self._fed_outputs]
            data.check_loss_and_target(targets, [self._plain_losses[i] for i in self._fed_outputs], shapes)
        if self.stateful and batch_size and present and present[0].shape[0] % batch_size != 0:
            raise at_user_line(
                ValueError(
                    "In a stateful network, you should only pass inputs with a number of samples that can be divided by the batch size. "
                    "Found: %d samples" % present[0].shape[0]
                )
            )
        return inputs, targets, weights

    def _extra_updates(self) -> List[Any]:
        return self.state_updates if self.stateful else []

    def train_on_batch(self, x: Any, y: Any = None, sample_weight: Any = None, class_weight: Any = None, reset_metrics: bool = True) -> Any:
        """A step with arrays; the loss and metrics, of this batch unless reset_metrics is False."""
        self._check_call("train_on_batch")
        if reset_metrics:
            self.reset_metrics()
        x, y, sample_weight = _values(x, y, sample_weight)
        x, y, weights = self._standardize_user_data(x, y, sample_weight, class_weight, check_batch_axis=True)
        operations = self._operations()
        return self._measured_alone(operations, self._feeds(x, y, weights, True), reset_metrics)

    def _measured_alone(self, operations: Any, feeds: Any, reset_metrics: bool) -> Any:
        values = K.get_session().run([self._measures, operations], feeds)[0]
        if reset_metrics:  # what comes after counts from here
            self.reset_metrics()
        return one_or_all(values)

    def test_on_batch(self, x: Any, y: Any = None, sample_weight: Any = None, reset_metrics: bool = True) -> Any:
        """The loss and metrics of arrays, of this batch unless reset_metrics is False."""
        self._check_call("test_on_batch")
        if reset_metrics:
            self.reset_metrics()
        x, y, sample_weight = _values(x, y, sample_weight)
        x, y, weights = self._standardize_user_data(x, y, sample_weight, check_batch_axis=True)
        return self._measured_alone(self._extra_updates(), self._feeds(x, y, weights), reset_metrics)

    def predict_on_batch(self, x: Any) -> Any:
        """The outputs for arrays."""
        self._check_call("predict_on_batch")
        (x,) = _values(x)
        self._build_for(x)
        x = self._standardized_inputs(x if self._feed_input_names else None)
        return one_or_all(K.get_session().run([self.outputs, self._extra_updates()], self._feeds(x))[0])


__all__ = ["Model"]
