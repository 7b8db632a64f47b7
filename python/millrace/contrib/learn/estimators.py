# SPDX-License-Identifier: Apache-2.0
"""The estimators of tf.contrib.learn: fit, evaluate and predict over tf.estimator's loops."""

from __future__ import annotations

import inspect
import itertools
from typing import Any, Callable, Dict, Iterator, List, Optional

import numpy as np

from millrace.framework import arguments
from millrace import estimator as _estimator
from millrace.contrib.learn import export as _export
from millrace.contrib.learn.contracts import Evaluable, Trainable
from millrace.contrib.learn.metric_spec import as_metric_ops
from millrace.contrib.learn.model_fn import ModelFnOps
from millrace.contrib.learn.monitors import replace_monitors_with_hooks
from millrace.contrib.learn.sklearn_like import NotFittedError
from millrace.contrib.learn.tensor_signature import (
    create_example_parser_from_signatures,
    create_placeholders_from_signatures,
    create_signatures,
    tensors_compatible,
)
from millrace.data import Dataset, structure
from millrace.estimator.estimator import _get_replica_device_setter  # noqa: F401
from millrace.estimator.spec import EstimatorSpec, ModeKeys
from millrace.framework.errors import at_user_line
from millrace.framework.graph import Graph, GraphKeys, get_default_graph


def as_array(values: Any) -> Any:
    """Numbers as an array, or a dict of them."""
    if isinstance(values, dict):
        return {key: as_array(value) for key, value in values.items()}
    return np.asarray(getattr(values, "values", values))


def _flat_labels(labels: Any) -> Any:
    """Labels of one number each in a column lose that axis, as tf.contrib.learn has it."""
    if isinstance(labels, dict):
        return {key: _flat_labels(value) for key, value in labels.items()}
    return labels.reshape(labels.shape[:1] + labels.shape[2:]) if labels.ndim > 1 and labels.shape[1] == 1 else labels


def _streamed(x: Any, y: Any, batch_size: int) -> Callable[[], Any]:
    """An input function over iterators of examples, and of their labels, which are read once."""
    if y is not None and not hasattr(y, "__next__"):
        raise at_user_line(ValueError("Both x and y should be iterators for streaming learning to work."))

    def example(row: Any) -> Any:
        made = as_array(row)
        return {key: np.atleast_1d(value) for key, value in made.items()} if isinstance(made, dict) else np.atleast_1d(made)

    def label(row: Any) -> Any:
        return (
            {key: label(value) for key, value in row.items()} if isinstance(row, dict) else as_array(row[0] if isinstance(row, list) and len(row) == 1 else row)
        )

    rows: Iterator[Any] = ((example(row),) for row in x) if y is None else ((example(row), label(answer)) for row, answer in zip(x, y))
    first = next(rows)
    rows = itertools.chain([first], rows)

    def input_fn() -> Any:
        types, shapes = structure.mapped(lambda part: part.dtype, first), structure.mapped(lambda part: part.shape, first)
        batch = Dataset.from_generator(lambda: rows, types, shapes).batch(batch_size).make_one_shot_iterator().get_next()
        return batch if y is not None else (batch[0], None)

    return input_fn


def _ends(graph: Graph) -> bool:
    """Whether the input ends by itself: there are queues, or it comes from functions or iterators."""
    return bool(graph.get_collection(GraphKeys.QUEUE_RUNNERS)) or any(
        op.type.startswith("PyFunc") or "Dequeue" in op.type or op.type == "IteratorGetNext" for op in graph.get_operations()
    )


def _call(function: Callable[..., Any], features: Any, given: Dict[str, Any]) -> Any:
    names = inspect.signature(function).parameters
    every = any(p.kind is p.VAR_KEYWORD for p in names.values())
    if "labels" not in names and "targets" in names:
        given = {**given, "targets": given["labels"]}
    if "mode" not in names and len(names) == 2:  # (features, targets) whatever they are called
        return function(features, given["labels"])
    listed = [p for p in names.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if "labels" not in names and "targets" not in names and len(listed) > 1 and listed[1].name not in given:
        return function(features, given["labels"], **{k: v for k, v in given.items() if k != "labels" and k in names})
    return function(features, **{key: value for key, value in given.items() if every or key in names})


class _Inner(_estimator.Estimator):
    """tf.estimator's, whose loss is the one that the model tells, where it does."""

    told_loss: Any = None

    def _loss_metric(self, spec: EstimatorSpec) -> Any:
        return self.told_loss or super()._loss_metric(spec)


class BaseEstimator(Evaluable, Trainable):
    """Trains, evaluates and asks a model."""

    def __init__(self, model_dir: Optional[str] = None, config: Any = None, params: Any = None, feature_engineering_fn: Any = None) -> None:
        self._engineer, self._metrics, self._input_ends = feature_engineering_fn, {}, True  # type: Any, Dict[Any, Any], bool
        self._features_info: Any = None
        self._labels_info: Any = None
        self._default_output: Optional[str] = None
        self._inner = _Inner(self._spec, model_dir, config, params)

    model_dir = property(lambda self: self._inner.model_dir, doc="The folder of checkpoints and event files.")  # type: ignore[assignment]
    config = property(lambda self: self._inner.config, doc="Its RunConfig.")
    params = property(lambda self: self._inner.params, doc="What the model function gets as params.")

    def model(self, features: Any, labels: Any, mode: str, params: Any, config: Any) -> Any:
        """Builds the model: an EstimatorSpec, ModelFnOps, or (predictions, loss, train_op)."""
        raise NotImplementedError

    def _spec(self, features: Any, labels: Any, mode: str, params: Any, config: Any) -> EstimatorSpec:
        if mode == ModeKeys.PREDICT:
            labels = create_placeholders_from_signatures(self._labels_info)
        else:
            self._check_inputs(features, labels)
        features, labels = self._engineered(features, labels)
        made = self._made(features, labels, mode, params, config)
        measures = dict(made.eval_metric_ops or {})
        self._inner.told_loss = measures.pop("loss", None)
        if mode == ModeKeys.EVAL:
            measures.update(as_metric_ops(self._metrics, features, labels, made.predictions))
        outputs = made.export_outputs(self._default_output) if isinstance(made, ModelFnOps) else made.export_outputs
        return EstimatorSpec(mode, made.predictions, made.loss, made.train_op, measures, outputs, made.training_chief_hooks, made.training_hooks, made.scaffold)

    def _check_inputs(self, features: Any, labels: Any) -> None:
        """Notes what kinds of tensors come, or compares them with those that came."""
        for what, given in (("features", features), ("labels", labels)):
            info = getattr(self, "_%s_info" % what)
            if info is None:
                setattr(self, "_%s_info" % what, create_signatures(given))
            elif (given is not None or what == "features") and not tensors_compatible(given, info):
                message = "%s are incompatible with given information. Given %s: %s, required signatures: %s."
                raise at_user_line(ValueError(message % (what.capitalize(), what, given, info)))

    def _get_feature_ops_from_example(self, examples_batch: Any) -> Any:
        """Serialized Example messages as features of the kinds that came in training."""
        if self._features_info is None:
            raise at_user_line(ValueError("Features information missing, was fit() ever called?"))
        return create_example_parser_from_signatures(self._features_info, examples_batch)

    def _get_predict_ops(self, features: Any) -> Any:
        """What the model answers to be asked."""
        labels = create_placeholders_from_signatures(self._labels_info)
        features, labels = self._engineered(features, labels)
        return self._made(features, labels, ModeKeys.PREDICT, self.params, self.config)

    def _engineered(self, features: Any, labels: Any) -> Any:
        """What feature_engineering_fn makes of the inputs, which the model and metrics see."""
        return (features, labels) if self._engineer is None else self._engineer(features, labels)

    def _made(self, features: Any, labels: Any, mode: str, params: Any, config: Any) -> Any:
        """The model."""
        made = self.model(features, labels, mode, params, config)
        if isinstance(made, tuple) and not hasattr(made, "mode"):
            if len(made) != 3:
                raise at_user_line(ValueError("Unrecognized value returned by model_fn, please return ModelFnOps."))
            made = ModelFnOps(mode, *made)
        return made

    def _input(self, x: Any, y: Any, input_fn: Any, batch_size: Optional[int], epochs: Optional[int], shuffle: bool) -> Any:
        if input_fn is None:
            if x is None:
                raise at_user_line(ValueError("Either x or input_fn must be provided."))
            if hasattr(x, "__next__"):
                return self._noted(_streamed(x, y, batch_size or 1))
            features, labels = as_array(x), None if y is None else _flat_labels(as_array(y))
            count = len(next(iter(features.values()))) if isinstance(features, dict) else len(features)
            input_fn = _estimator.inputs.numpy_input_fn(features, labels, batch_size or count, epochs, shuffle)
        elif x is not None or y is not None:
            raise at_user_line(ValueError("Can not provide both input_fn and x or y."))
        elif batch_size is not None:
            raise at_user_line(ValueError("Can not provide both input_fn and batch_size."))
        return self._noted(input_fn)

    def _noted(self, input_fn: Callable[[], Any]) -> Callable[[], Any]:
        """The input function, which notes whether the input ends."""

        def call() -> Any:
            made = input_fn()
            self._input_ends = _ends(get_default_graph())
            return made

        return call

    def fit(
        self,
        x: Any = None,
        y: Any = None,
        input_fn: Any = None,
        steps: Optional[int] = None,
        batch_size: Optional[int] = None,
        monitors: Any = None,
        max_steps: Optional[int] = None,
    ) -> Any:
        """Trains on arrays, or on what an input function gives."""
        hooks = replace_monitors_with_hooks(monitors, self)
        steps = 1 if steps == 0 else steps  # what stops a training is asked after a step
        self._inner.train(self._input(x, y, input_fn, batch_size, None, True), hooks, steps, max_steps)
        return self

    partial_fit = fit

    def evaluate(
        self,
        x: Any = None,
        y: Any = None,
        input_fn: Any = None,
        feed_fn: Any = None,
        batch_size: Optional[int] = None,
        steps: Optional[int] = None,
        metrics: Any = None,
        name: Optional[str] = None,
        checkpoint_path: Optional[str] = None,
        hooks: Any = None,
        log_progress: bool = True,
    ) -> Dict[str, Any]:
        """The loss and metrics over `steps` batches, or all. Of an input that never ends one batch is taken."""
        del log_progress  # it is logged
        self._check_fitted(checkpoint_path)
        arguments.only(None, feed_fn=feed_fn)
        self._metrics = dict(metrics or {})
        source = self._input(x, y, input_fn, batch_size, 1, False)
        if steps is None:
            with Graph().as_default():
                source()
            steps = None if self._input_ends else 1
        try:
            return self._inner.evaluate(source, steps, hooks, checkpoint_path, name)
        finally:
            self._metrics = {}

    def _check_fitted(self, checkpoint_path: Optional[str] = None) -> None:
        if not checkpoint_path and self.latest_checkpoint() is None:
            raise at_user_line(NotFittedError("Couldn't find trained model at %s." % self.model_dir))

    def _batches(self, x: Any, input_fn: Any, batch_size: Optional[int], outputs: Any) -> Iterator[Any]:
        if x is not None and isinstance(outputs, str):
            outputs = [outputs]
        for batch in self._inner.predict(self._input(x, None, input_fn, batch_size, 1, False), outputs, yield_single_examples=False):
            yield batch
            if not self._input_ends:
                return

    def _predicted(self, x: Any, input_fn: Any, batch_size: Optional[int], outputs: Any, as_iterable: bool, only: Optional[str] = None) -> Any:
        self._check_fitted()
        batches = ((b[only] if only else b) for b in self._batches(x, input_fn, batch_size, outputs))
        if as_iterable:
            return (row for batch in batches for row in _rows(batch))
        return joined(list(batches))

    def predict(
        self,
        x: Any = None,
        input_fn: Any = None,
        batch_size: Optional[int] = None,
        outputs: Any = None,
        as_iterable: bool = True,
        iterate_batches: bool = False,
    ) -> Any:
        """The predictions, one example at a time, or (as_iterable=False) arrays of all."""
        self._check_fitted()
        if iterate_batches:
            return self._batches(x, input_fn, batch_size, outputs)
        return self._predicted(x, input_fn, batch_size, outputs, as_iterable)

    def get_variable_names(self) -> List[str]:
        """The variables in the newest checkpoint."""
        return self._inner.get_variable_names()

    def get_variable_value(self, name: str) -> Any:
        """A variable's value in the newest checkpoint."""
        return self._inner.get_variable_value(name)

    def latest_checkpoint(self) -> Optional[str]:
        """The newest checkpoint, or None."""
        return self._inner.latest_checkpoint()

    def export(
        self,
        export_dir: Any,
        input_fn: Any = _export.default_input_fn,
        input_feature_key: Any = None,
        use_deprecated_input_fn: bool = True,
        signature_fn: Any = None,
        prediction_key: Optional[str] = None,
        default_batch_size: Optional[int] = 1,
        exports_to_keep: Optional[int] = None,
        checkpoint_path: Optional[str] = None,
    ) -> bytes:
        """Writes a session bundle, the form that came before SavedModels, into a folder named after the step; its path. Features are what
        input_fn(estimator, examples) makes of serialized Example messages, or, unless use_deprecated_input_fn, the first of what input_fn()
        answers, of which input_feature_key names the messages."""
        return _export.written(
            self,
            export_dir,
            signature_fn,
            input_fn,
            default_batch_size,
            exports_to_keep,
            input_feature_key,
            use_deprecated_input_fn,
            prediction_key,
            checkpoint_path,
        )

    def export_savedmodel(
        self,
        export_dir_base: str,
        serving_input_fn: Callable[[], Any],
        default_output_alternative_key: Any = None,
        assets_extra: Any = None,
        as_text: bool = False,
        checkpoint_path: Optional[str] = None,
        graph_rewrite_specs: Any = None,
        strip_default_attrs: bool = False,
    ) -> bytes:
        """Writes the model for serving into a folder named after the time; its path."""
        arguments.only(None, graph_rewrite_specs=graph_rewrite_specs)
        self._default_output = default_output_alternative_key

        def receiver() -> Any:
            made = serving_input_fn()
            if hasattr(made, "receiver_tensors"):
                return made
            features, _, inputs = made  # InputFnOps
            return _estimator.export.ServingInputReceiver(features, inputs)

        return self._inner.export_savedmodel(export_dir_base, receiver, assets_extra, as_text, checkpoint_path, strip_default_attrs)


def _rows(batch: Any) -> Iterator[Any]:
    if not isinstance(batch, dict):
        yield from batch
        return
    for i in range(len(next(iter(batch.values())))):
        yield {key: value[i] for key, value in batch.items()}


def joined(batches: List[Any]) -> Any:
    """Batches as one array, or as a dict of arrays."""
    if batches and isinstance(batches[0], dict):
        return {key: np.concatenate([b[key] for b in batches]) for key in batches[0]}
    return np.concatenate(batches) if batches else np.zeros([0])


class Estimator(BaseEstimator):
    """Trains, evaluates and asks the model that model_fn(features, labels, mode, params) builds."""

    def __init__(
        self,
        model_fn: Optional[Callable[..., Any]] = None,
        model_dir: Optional[str] = None,
        config: Any = None,
        params: Any = None,
        feature_engineering_fn: Any = None,
    ) -> None:
        super().__init__(model_dir, config, params, feature_engineering_fn)
        self._model_fn = model_fn

    def model(self, features: Any, labels: Any, mode: str, params: Any, config: Any) -> Any:
        """What the function answers."""
        if self._model_fn is None:
            raise at_user_line(ValueError("model_fn must be given."))
        given = {"labels": labels, "mode": mode, "params": params, "config": config, "model_dir": self.model_dir}
        return _call(self._model_fn, features, given)


class SKCompat:
    """An estimator as scikit-learn's are: arrays in, arrays out."""

    def __init__(self, estimator: BaseEstimator) -> None:
        self._estimator = estimator

    def fit(self, x: Any, y: Any, batch_size: int = 128, steps: Optional[int] = None, max_steps: Optional[int] = None, monitors: Any = None) -> "SKCompat":
        """Trains."""
        self._estimator.fit(x, y, batch_size=batch_size, steps=steps, max_steps=max_steps, monitors=monitors)
        return self

    def score(self, x: Any, y: Any, batch_size: int = 128, steps: Optional[int] = None, metrics: Any = None, name: Optional[str] = None) -> Dict[str, Any]:
        """The metrics."""
        return self._estimator.evaluate(x, y, batch_size=batch_size, steps=steps, metrics=metrics, name=name)

    def predict(self, x: Any, batch_size: int = 128, outputs: Any = None) -> Any:
        """The predictions of all examples."""
        self._estimator._check_fitted()
        return joined(list(self._estimator._batches(x, None, batch_size, outputs)))
