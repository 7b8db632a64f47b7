# SPDX-License-Identifier: Apache-2.0
"""A model function with its training loop, its checkpoints and its evaluation."""

from __future__ import annotations

import contextlib
import copy
import os
import tempfile
from typing import Any, Callable, Dict, Iterator, List, Optional

import numpy as np

from millrace import gfile, metrics, summary, tf_logging
from millrace.compat import as_bytes
from millrace.estimator import export
from millrace.estimator.run_config import RunConfig, TaskType
from millrace.estimator.reading import input_of
from millrace.estimator.spec import LOSS_METRIC_KEY, EstimatorSpec, ModeKeys
from millrace.estimator.util import fn_args
from millrace.framework import errors, nest
from millrace.framework.errors import NotFoundError, at_user_line
from millrace.framework.graph import Graph, GraphKeys, Tensor, add_to_collection, get_collection, get_default_graph
from millrace.framework.random_seed import set_random_seed
from millrace.framework.strategy import get_strategy, has_strategy
from millrace.framework.tensor_util import make_tensor_proto
from millrace.ops import control_flow_ops
from millrace.saved_model.reading import maybe_saved_model_directory
from millrace.train.checkpoint_management import latest_checkpoint
from millrace.train.cluster import replica_device_setter
from millrace.train.evaluation import _evaluate_once, _get_or_create_eval_step, _StopAfterNEvalsHook
from millrace.train.global_step import create_global_step, get_global_step
from millrace.train.hooks import CheckpointSaverHook, CheckpointSaverListener, LoggingTensorHook, NanTensorHook, SessionRunHook, StopAtStepHook
from millrace.train.monitored_session import ChiefSessionCreator, MonitoredSession, MonitoredTrainingSession, Scaffold
from millrace.train.saver import NewCheckpointReader, Saver

_MODEL_FN_ARGUMENTS = {"features", "labels", "mode", "params", "self", "config"}
_MAY_BE_OVERRIDDEN = {
    "_loss_metric",
    "_global_step",
    "_call_input_fn",
    "_create_global_step",
    "_convert_train_steps_to_hooks",
    "_convert_eval_steps_to_hooks",
    "_tf_api_names",
}


def _examples(batch: Any) -> Iterator[Any]:
    """The predictions of a batch, one example at a time."""
    if not isinstance(batch, dict):
        yield from batch
        return
    sizes = {key: value.shape[0] for key, value in batch.items()}
    count = next(iter(sizes.values()), 0)
    for key, size in sizes.items():
        if size != count:
            raise at_user_line(ValueError("Batch length of predictions should be same. %s has different batch length than others." % key))
    for i in range(count):
        yield {key: value[i] for key, value in batch.items()}


class Estimator:
    """Trains, evaluates and asks the model that model_fn(features, labels, mode, params, config) builds."""

    def __init__(
        self,
        model_fn: Callable[..., EstimatorSpec],
        model_dir: Optional[str] = None,
        config: Optional[RunConfig] = None,
        params: Any = None,
        warm_start_from: Any = None,
    ) -> None:
        Estimator._assert_members_are_not_overridden(self)
        if config is not None and not isinstance(config, RunConfig):
            raise at_user_line(ValueError("config must be an instance of RunConfig, but provided %s." % (config,)))
        self._config = config or RunConfig()
        model_dir = None if model_dir is None else os.fspath(model_dir)
        if model_dir is not None and self._config.model_dir not in (None, model_dir):
            raise at_user_line(
                ValueError(
                    "model_dir are set both in constructor and RunConfig, but with different values. In constructor: '%s', in RunConfig: "
                    "'%s' " % (model_dir, self._config.model_dir)
                )
            )
        self._model_dir = model_dir or self._config.model_dir
        if self._model_dir is None:
            self._model_dir = tempfile.mkdtemp()
            tf_logging.warning("Using temporary folder as model directory: %s", self._model_dir)
        if self._config.model_dir is None:
            self._config = self._config.replace(model_dir=self._model_dir)
        tf_logging.info("Using config: %s", vars(self._config))
        self._session_config = self._config.config_of_sessions()
        self._device_fn = self._config.device_fn or _get_replica_device_setter(self._config)
        if model_fn is None:
            raise at_user_line(ValueError("model_fn must be provided to Estimator."))
        _check_arguments(model_fn, params)
        self._model_fn, self._params = model_fn, copy.deepcopy(params or {})
        self._warm_start = _warm_start_settings(warm_start_from)

    model_dir = property(lambda self: self._model_dir, doc="The folder of checkpoints and event files.")
    config = property(lambda self: copy.deepcopy(self._config), doc="Its RunConfig.")
    params = property(lambda self: copy.deepcopy(self._params), doc="What model_fn gets as params.")

    @property
    def model_fn(self) -> Callable[..., EstimatorSpec]:
        """The function that builds the model, with its params bound."""

        def public_model_fn(features: Any, labels: Any, mode: str, config: Any) -> EstimatorSpec:
            return self._call_model_fn(features, labels, mode, config)

        return public_model_fn

    def eval_dir(self, name: Optional[str] = None) -> str:
        """The folder of the event files of evaluations, or of those of one name."""
        return os.path.join(self._model_dir, "eval_" + name if name else "eval")

    def latest_checkpoint(self) -> Optional[str]:
        """The newest checkpoint, or None."""
        return latest_checkpoint(self._model_dir)

    def get_variable_names(self) -> List[str]:
        """The variables in the newest checkpoint."""
        return sorted(NewCheckpointReader(self._checkpoint(None)).get_variable_to_shape_map())

    def get_variable_value(self, name: str) -> Any:
        """A variable's value in the newest checkpoint."""
        return NewCheckpointReader(self._checkpoint(None)).get_tensor(name[:-2] if name.endswith(":0") else name)

    def train(
        self, input_fn: Callable[..., Any], hooks: Any = None, steps: Optional[int] = None, max_steps: Optional[int] = None, saving_listeners: Any = None
    ) -> "Estimator":
        """Trains for `steps` more steps, up to step `max_steps`, or to the end of the input."""
        if steps is not None and max_steps is not None:
            raise at_user_line(ValueError("Can not provide both steps and max_steps."))
        for name, value in (("steps", steps), ("max_steps", max_steps)):
            if value is not None and value <= 0:
                raise at_user_line(ValueError("Must specify %s > 0, given: %s" % (name, value)))
        if self.config.task_type in (TaskType.EVALUATOR, TaskType.PS):
            raise at_user_line(
                ValueError(
                    "Train has been called wrong configuration. Please use tf.estimator.train_and_evaluate which calls proper API according to given "
                    "configuration. Current configuration: %s." % self.config
                )
            )
        if max_steps is not None and _load_global_step_from_checkpoint_dir(self._model_dir) >= max_steps:
            tf_logging.info("Skipping training since max_steps has already saved.")
            return self
        checked = [*_checked_hooks(hooks), *self._convert_train_steps_to_hooks(steps, max_steps)]
        listeners = list(saving_listeners or ())
        for listener in listeners:
            if not isinstance(listener, CheckpointSaverListener):
                raise at_user_line(TypeError("saving_listeners must be a list of CheckpointSaverListener, given: %s" % (listener,)))
        loss = self._train_model(input_fn, checked, listeners)
        tf_logging.info("Loss for final step: %s.", loss)
        return self

    def evaluate(
        self, input_fn: Callable[..., Any], steps: Optional[int] = None, hooks: Any = None, checkpoint_path: Optional[str] = None, name: Optional[str] = None
    ) -> Dict[str, Any]:
        """The metrics over `steps` batches, or all."""
        checked = [*_checked_hooks(hooks), *self._convert_eval_steps_to_hooks(steps)]
        path = self._checkpoint_or_none(checkpoint_path)
        with self._graph() as graph, graph.device(self._device_fn), _scope_of(self._config.eval_distribute):
            self._global_step(graph)
            spec = self._spec_of(input_fn, ModeKeys.EVAL)
            self._start_warm(path)
            for key, quoted in ((LOSS_METRIC_KEY, '"loss"'), (GraphKeys.GLOBAL_STEP, "`global_step`")):
                if key in spec.eval_metric_ops:
                    raise at_user_line(
                        ValueError("Metric with name %s is not allowed, because Estimator already defines a default metric with the same name." % quoted)
                    )
            measures = {**spec.eval_metric_ops, LOSS_METRIC_KEY: self._loss_metric(spec)}
            values: Dict[str, Any] = {key: value for key, (value, _) in sorted(measures.items())}
            scaffold = spec.scaffold
            if scaffold.local_init_op is not None:  # the measures have variables of their own
                _get_or_create_eval_step()
                both = control_flow_ops.group(scaffold.local_init_op, Scaffold.default_local_init_op())
                scaffold = Scaffold(local_init_op=both, copy_from_scaffold=scaffold)
            results: Dict[str, Any] = _evaluate_once(
                path,
                self._config.evaluation_master,
                scaffold,
                control_flow_ops.group(*[update for _, (_, update) in sorted(measures.items())]),
                final_ops={**values, GraphKeys.GLOBAL_STEP: get_global_step(graph)},
                hooks=[*checked, *spec.evaluation_hooks],
                config=self._session_config,
            )
            _write_dict_to_summary(self.eval_dir(name), results, results[GraphKeys.GLOBAL_STEP])
            if path:
                _write_checkpoint_path_to_summary(self.eval_dir(name), path, results[GraphKeys.GLOBAL_STEP])
        return results

    def _loss_metric(self, spec: EstimatorSpec) -> Any:
        """The loss that an evaluation tells: the mean over batches."""
        return metrics.mean(spec.loss)

    def predict(
        self,
        input_fn: Callable[..., Any],
        predict_keys: Any = None,
        hooks: Any = None,
        checkpoint_path: Optional[str] = None,
        yield_single_examples: bool = True,
    ) -> Iterator[Any]:
        """The predictions, one example at a time."""
        checked, path = _checked_hooks(hooks), self._checkpoint_or_none(checkpoint_path)
        with self._graph() as graph, graph.device(self._device_fn):
            self._global_step(graph)
            features = input_of(self._call_input_fn(input_fn, ModeKeys.PREDICT), with_labels=False)[0]
            if not _has_end(features):
                tf_logging.warning(
                    "Input graph does not use tf.data.Dataset or contain a QueueRunner. That means predict yields forever. This is probably a mistake."
                )
            spec = self._call_model_fn(features, None, ModeKeys.PREDICT, self.config)
            self._start_warm(path)
            wanted = self._extract_keys(spec.predictions, predict_keys)
            session = MonitoredSession(
                ChiefSessionCreator(spec.scaffold, config=self._session_config, checkpoint_filename_with_path=path), [*checked, *spec.prediction_hooks]
            )
        # Between two examples the caller's graph is the default one again.
        try:
            while not session.should_stop():
                try:
                    made = session.run(wanted)
                except errors.OutOfRangeError:
                    break
                yield from _examples(made) if yield_single_examples else [made]
        finally:
            session.close()

    def export_savedmodel(
        self,
        export_dir_base: Any,
        serving_input_receiver_fn: Callable[[], Any],
        assets_extra: Optional[Dict[str, Any]] = None,
        as_text: bool = False,
        checkpoint_path: Optional[str] = None,
        strip_default_attrs: bool = False,
    ) -> bytes:
        """Writes the model for serving into a folder named after the time; its path."""
        if serving_input_receiver_fn is None:
            raise at_user_line(ValueError("serving_input_receiver_fn must be defined."))
        return self._export(export_dir_base, {ModeKeys.PREDICT: serving_input_receiver_fn}, assets_extra, as_text, checkpoint_path, strip_default_attrs)

    def export_saved_model(
        self,
        export_dir_base: Any,
        serving_input_receiver_fn: Callable[[], Any],
        assets_extra: Optional[Dict[str, Any]] = None,
        as_text: bool = False,
        checkpoint_path: Optional[str] = None,
        experimental_mode: str = ModeKeys.PREDICT,
    ) -> bytes:
        """Writes the model of a mode into a folder named after the time; its path. Attributes that have their default values are left out."""
        if serving_input_receiver_fn is None:
            raise at_user_line(ValueError("An input_receiver_fn must be defined."))
        return self._export(export_dir_base, {experimental_mode: serving_input_receiver_fn}, assets_extra, as_text, checkpoint_path, True)

    def experimental_export_all_saved_models(
        self,
        export_dir_base: Any,
        input_receiver_fn_map: Dict[str, Callable[[], Any]],
        assets_extra: Optional[Dict[str, Any]] = None,
        as_text: bool = False,
        checkpoint_path: Optional[str] = None,
    ) -> bytes:
        """Writes the models of several modes, which share their variables, into one folder; its path."""
        return self._export(export_dir_base, input_receiver_fn_map, assets_extra, as_text, checkpoint_path, True)

    def _export(
        self, export_dir_base: Any, receivers: Dict[str, Any], assets_extra: Any, as_text: bool, checkpoint_path: Optional[str], strip_default_attrs: bool
    ) -> bytes:
        from millrace import saved_model

        path = checkpoint_path or self.latest_checkpoint()
        if not path:
            raise at_user_line(ValueError("Couldn't find trained model at %s." % self._model_dir))
        folder = export.get_timestamped_export_dir(export_dir_base)
        beside = export.get_temp_export_dir(folder)
        builder = saved_model.builder.SavedModelBuilder(beside)
        modes = [mode for mode in (ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT) if receivers.get(mode)]
        if not modes:
            raise at_user_line(ValueError("No valid modes for exporting found. Got %s." % sorted(receivers)))
        for mode in modes:
            add = builder.add_meta_graph_and_variables if mode == modes[0] else lambda session, *given, **more: builder.add_meta_graph(*given, **more)
            self._add_graph(mode, receivers[mode], path, add, strip_default_attrs)
        builder.save(as_text)
        for name, source in (assets_extra or {}).items():
            target = os.path.join(beside, b"assets.extra", as_bytes(name))
            gfile.MakeDirs(os.path.dirname(target))
            gfile.Copy(source, target)
        gfile.Rename(beside, folder)
        return folder

    def _add_graph(self, mode: str, receive: Callable[[], Any], path: str, add: Callable[..., None], strip_default_attrs: bool) -> None:
        """Adds the graph of a mode, with the values of a checkpoint, to a SavedModel."""
        from millrace.framework.session import Session
        from millrace.saved_model.constants import TRAIN_OP_KEY

        with self._graph() as graph:
            self._global_step(graph)
            receiver = receive()
            spec = self._call_model_fn(receiver.features, getattr(receiver, "labels", None), mode, self.config)
            outputs = export.export_outputs_for_mode(mode, spec.export_outputs, spec.predictions, spec.loss, spec.eval_metric_ops)
            signatures = export.build_all_signature_defs(
                receiver.receiver_tensors, outputs, getattr(receiver, "receiver_tensors_alternatives", None), serving_only=mode == ModeKeys.PREDICT
            )
            if spec.train_op is not None:
                graph.add_to_collection(TRAIN_OP_KEY, spec.train_op)
            saver = spec.scaffold.saver or Saver(sharded=True)
            with Session(config=self._session_config) as session:
                try:
                    saver.restore(session, path)
                except NotFoundError as error:
                    raise at_user_line(
                        ValueError(
                            "Could not load all requested variables from checkpoint. Please make sure your model_fn does not expect variables that "
                            "were not saved in the checkpoint. Encountered error with mode `%s` while restoring checkpoint from: `%s`: %s" % (mode, path, error)
                        )
                    ) from error
                add(
                    session,
                    export.EXPORT_TAG_MAP[mode],
                    signatures,
                    assets_collection=get_collection(GraphKeys.ASSET_FILEPATHS),
                    main_op=spec.scaffold.local_init_op or Scaffold.default_local_init_op(),
                    strip_default_attrs=strip_default_attrs,
                    saver=saver,
                )

    # ---- what subclasses may override ----

    def _call_input_fn(self, input_fn: Callable[..., Any], mode: str) -> Any:
        """What the input function answers: features, or (features, labels), or a data set of either."""
        given, names = {"mode": mode, "params": self.params, "config": self.config}, fn_args(input_fn)
        with get_default_graph().device("/cpu:0"):
            return input_fn(**{key: value for key, value in given.items() if key in names})

    def _create_global_step(self, graph: Graph) -> Any:
        """The variable that counts steps."""
        return create_global_step(graph)

    def _convert_train_steps_to_hooks(self, steps: Optional[int], max_steps: Optional[int]) -> List[SessionRunHook]:
        return [StopAtStepHook(steps, max_steps)] if steps is not None or max_steps is not None else []

    def _convert_eval_steps_to_hooks(self, steps: Optional[int]) -> List[SessionRunHook]:
        if steps is None:
            return []
        if steps <= 0:
            raise at_user_line(ValueError("Must specify steps > 0, given: %s" % steps))
        return [_StopAfterNEvalsHook(steps)]

    # ---- parts ----

    def _assert_members_are_not_overridden(self) -> None:
        own = {name for name in vars(Estimator) if not name.startswith("__")}
        overridden = sorted(name for name in own & set(vars(type(self))) - _MAY_BE_OVERRIDDEN if vars(Estimator)[name] is not vars(type(self))[name])
        if overridden:
            raise at_user_line(ValueError("Subclasses of Estimator cannot override members of Estimator. %s does override %s" % (type(self), overridden)))

    def _checkpoint(self, given: Optional[str]) -> str:
        path = given or self.latest_checkpoint()
        if not path:
            raise at_user_line(ValueError("Could not find trained model in model_dir: %s." % self._model_dir))
        return path

    def _checkpoint_or_none(self, given: Optional[str]) -> Optional[str]:
        path = given or self.latest_checkpoint()
        if not path:
            tf_logging.info("Could not find trained model in model_dir: %s, running initialization.", self._model_dir)
        return path

    def _start_warm(self, path: Optional[str]) -> None:
        """Variables start from what the estimator was told to start from, unless there is a checkpoint."""
        if self._warm_start is not None and not path:
            from millrace.train import warm_starting

            tf_logging.info("Warm-starting with WarmStartSettings: %s", self._warm_start)
            warm_starting.warm_start(*self._warm_start)

    def _graph(self) -> Any:
        """A new graph, as the default one, with the configuration's seed."""
        graph = Graph()
        with graph.as_default():
            set_random_seed(self._config.tf_random_seed)
        return graph.as_default()

    def _global_step(self, graph: Graph) -> Any:
        step = self._create_global_step(graph)
        if step is None or step is not get_global_step(graph) or not step.dtype.is_integer:
            raise at_user_line(AssertionError("_create_global_step should make an integer variable in the collection of the global step, got %s" % (step,)))
        return step

    @staticmethod
    def _extract_keys(predictions: Any, predict_keys: Any) -> Any:
        if not predict_keys:
            return predictions
        if not isinstance(predictions, dict):
            raise at_user_line(ValueError("predict_keys argument is not valid in case of non-dict predictions."))
        keys = [predict_keys] if isinstance(predict_keys, str) else list(predict_keys)
        wanted = {key: value for key, value in predictions.items() if key in keys}
        if not wanted:
            raise at_user_line(ValueError("Expected to run at least one output from %s, provided %s." % (list(predictions), keys)))
        return wanted

    def _spec_of(self, input_fn: Callable[..., Any], mode: str) -> EstimatorSpec:
        features, labels = input_of(self._call_input_fn(input_fn, mode))
        return self._call_model_fn(features, labels, mode, self.config)

    def _call_model_fn(self, features: Any, labels: Any, mode: str, config: Any) -> EstimatorSpec:
        names, given = fn_args(self._model_fn), {"labels": labels, "mode": mode, "params": self.params, "config": config}
        if "labels" not in names and labels is not None:
            raise at_user_line(ValueError("model_fn does not take labels, but input_fn returns labels."))
        taken = {"features": features, **{key: value for key, value in given.items() if key in names}}
        spec = get_strategy().extended.call_for_each_replica(self._model_fn, kwargs=taken) if has_strategy() else self._model_fn(**taken)
        if not isinstance(spec, EstimatorSpec):
            raise at_user_line(ValueError("model_fn should return an EstimatorSpec."))
        return spec

    def _train_model(self, input_fn: Callable[..., Any], hooks: List[SessionRunHook], listeners: List[CheckpointSaverListener]) -> Any:
        config = self._config
        with self._graph() as graph, graph.device(self._device_fn), _scope_of(config.train_distribute):
            self._global_step(graph)
            spec = self._spec_of(input_fn, ModeKeys.TRAIN)
            logged = {"loss": spec.loss, "step": get_global_step(graph)}
            self._start_warm(None)  # a checkpoint is restored over it
            if not any(t.op.name == "loss" for t in get_collection(GraphKeys.SUMMARIES)):
                summary.scalar("loss", spec.loss)
            add_to_collection(GraphKeys.LOSSES, spec.loss)
            hooks = [
                *hooks,
                NanTensorHook(spec.loss),
                *([LoggingTensorHook(logged, every_n_iter=config.log_step_count_steps)] if config.log_step_count_steps else []),
                *spec.training_hooks,
            ]
            if spec.scaffold.saver is None and not get_collection(GraphKeys.SAVERS):
                add_to_collection(
                    GraphKeys.SAVERS,
                    Saver(
                        sharded=True,
                        max_to_keep=config.keep_checkpoint_max,
                        keep_checkpoint_every_n_hours=config.keep_checkpoint_every_n_hours,
                        defer_build=True,
                        save_relative_paths=True,
                    ),
                )
            of_chief = self._saving_hooks(spec, hooks, listeners)
            loss = None
            with MonitoredTrainingSession(
                config.master,
                config.is_chief,
                self._model_dir,
                spec.scaffold,
                hooks,
                of_chief,
                save_checkpoint_secs=0,
                save_summaries_steps=config.save_summary_steps,
                config=self._session_config,
                log_step_count_steps=config.log_step_count_steps,
                max_wait_secs=config.session_creation_timeout_secs,
            ) as session:
                while not session.should_stop():
                    _, loss = session.run([spec.train_op, spec.loss])
        return loss

    def _saving_hooks(self, spec: EstimatorSpec, hooks: List[SessionRunHook], listeners: List[CheckpointSaverListener]) -> List[SessionRunHook]:
        """The chief's hooks, among them one that writes checkpoints, if the configuration wants any."""
        config, of_chief = self._config, list(spec.training_chief_hooks)
        saving = [h for h in [*hooks, *of_chief] if isinstance(h, CheckpointSaverHook)]
        if (config.save_checkpoints_secs or config.save_checkpoints_steps) and not saving:
            saving = [CheckpointSaverHook(self._model_dir, config.save_checkpoints_secs, config.save_checkpoints_steps, scaffold=spec.scaffold)]
            of_chief = [*saving, *of_chief]
        if listeners and not saving:
            raise at_user_line(
                ValueError(
                    "There should be a CheckpointSaverHook to use saving_listeners. Please set one of the "
                    "RunConfig.save_checkpoints_steps or RunConfig.save_checkpoints_secs."
                )
            )
        if listeners:
            saving[0]._listeners.extend(listeners)
        return of_chief


def _load_global_step_from_checkpoint_dir(checkpoint_dir: str) -> int:
    """The step of the newest checkpoint; 0 where there is none, or none that counts steps."""
    path = latest_checkpoint(checkpoint_dir)
    reader = NewCheckpointReader(path) if path else None
    return int(reader.get_tensor(GraphKeys.GLOBAL_STEP)) if reader is not None and reader.has_tensor(GraphKeys.GLOBAL_STEP) else 0


# ---- what is given ----


def _scope_of(strategy: Any) -> Any:
    return contextlib.nullcontext() if strategy is None else strategy.scope()


def _checked_hooks(hooks: Any) -> List[SessionRunHook]:
    for hook in hooks or ():
        if not isinstance(hook, SessionRunHook):
            raise at_user_line(TypeError("Hooks must be a SessionRunHook, given: %s" % (hook,)))
    return list(hooks or ())


def _check_arguments(model_fn: Any, params: Any) -> None:
    names = set(fn_args(model_fn))
    if "features" not in names:
        raise at_user_line(ValueError("model_fn (%s) must include features argument." % model_fn))
    if params is not None and "params" not in names:
        raise at_user_line(ValueError("model_fn (%s) does not include params argument, but params (%s) is passed to Estimator." % (model_fn, params)))
    if params is None and "params" in names:
        tf_logging.warning("Estimator's model_fn (%s) includes params argument, but params are not passed to Estimator.", model_fn)
    unknown = sorted(names - _MODEL_FN_ARGUMENTS)
    if unknown:
        raise at_user_line(ValueError("model_fn (%s) has following not expected args: %s" % (model_fn, unknown)))


def _get_replica_device_setter(config: RunConfig) -> Any:
    """Where variables go in a cluster that has processes for them."""
    if not config.num_ps_replicas:
        return None
    worker = "/job:%s/task:%d" % (config.task_type, config.task_id) if config.task_type else "/job:worker"
    return replica_device_setter(config.num_ps_replicas, worker_device=worker, cluster=config.cluster_spec)


def _variables_of(saved_model_dir: str) -> str:
    """The checkpoint in a SavedModel."""
    path = os.path.join(saved_model_dir, "variables", "variables")
    if not gfile.Exists(path + ".index"):
        raise at_user_line(ValueError("Directory provided has an invalid SavedModel format: %s" % saved_model_dir))
    return path


def _warm_start_settings(given: Any) -> Any:
    if given is None:
        return None
    from millrace.train.warm_starting import WarmStartSettings

    if isinstance(given, WarmStartSettings):
        return given
    if isinstance(given, (str, bytes)):
        path = given if isinstance(given, str) else given.decode()
        return WarmStartSettings(_variables_of(path) if maybe_saved_model_directory(path) else path)
    raise at_user_line(ValueError("warm_start_from must be a string or a WarmStartSettings, instead got %s" % type(given)))


def _has_end(features: Any) -> bool:
    """Whether the input may end: it comes from a data set or a queue."""
    return bool(any(isinstance(t, Tensor) and t.op.type == "IteratorGetNext" for t in nest.flatten(features)) or get_collection(GraphKeys.QUEUE_RUNNERS))


def _write_dict_to_summary(output_dir: str, dictionary: Dict[str, Any], current_global_step: int) -> None:
    """Metrics as summaries of the evaluation's event file: numbers, arrays, and messages as they are."""
    from millrace.protos.definitions import Summary  # type: ignore[attr-defined]

    tf_logging.info(
        "Saving dict for global step %d: %s",
        current_global_step,
        ", ".join("%s = %s" % (key, value) for key, value in sorted(dictionary.items()) if not isinstance(value, bytes)),
    )
    message = Summary()
    for key, value in dictionary.items():
        if value is None or key == GraphKeys.GLOBAL_STEP:
            continue
        if isinstance(value, (float, int, np.floating, np.integer)):
            message.value.add(tag=key, simple_value=float(value))
        elif isinstance(value, bytes):
            _add_messages(message, key, value)
        elif isinstance(value, np.ndarray):
            message.value.add(tag=key, node_name=key, tensor=make_tensor_proto(value))
        else:
            tf_logging.warn("Skipping summary for %s, must be a float, np.float32, np.int64, np.int32 or int or a serialized string of Summary.", key)
    writer = summary.FileWriterCache.get(output_dir)
    writer.add_summary(message, int(current_global_step))
    writer.flush()


def _write_checkpoint_path_to_summary(output_dir: str, checkpoint_path: str, current_global_step: int) -> None:
    """Which checkpoint was evaluated, as an event of its own."""
    from millrace.protos.definitions import Summary  # type: ignore[attr-defined]

    tf_logging.info("Saving 'checkpoint_path' summary for global step %d: %s", current_global_step, checkpoint_path)
    message = Summary()
    message.value.add(tag="checkpoint_path", tensor=make_tensor_proto(checkpoint_path))
    writer = summary.FileWriterCache.get(output_dir)
    writer.add_summary(message, int(current_global_step))
    writer.flush()


def _add_messages(message: Any, key: str, data: bytes) -> None:
    try:
        inner = type(message).FromString(data)
    except Exception:  # whatever the message package raises of bytes that are no message
        tf_logging.warn("Skipping summary for %s, cannot parse string to Summary.", key)
        return
    for i, value in enumerate(inner.value):
        value.tag = "%s/%d" % (key, i)
    message.value.extend(inner.value)
